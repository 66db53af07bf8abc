//! The steps of a search: filters, vectors, passes over documents, each a task of the pool for each segment.

use super::super::bits::Bits;
use super::super::view::{At, Body, Part, View};
use super::collect::{self, Collected, Found, Source, Wanted, collect};
use super::profile::{DocumentProfile, FilterProfile, SegmentProfile, VectorProfile, plan};
use super::ready::{Asked, Least, Prepared, Probe, Ready, Within};
use super::wait::wait;
use super::{SearchTableError, Total, fusion, score};
use crate::documents::{Order, Partial, Position, Rows, Run, Weighed};
use crate::pool::{Found as Near, Pending, Pool};
use lanewise_index::Search;
use lanewise_scheduler::{Failure, MappingId, Trip};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

/// Documents by how well they fit, best first; of equals the lesser id.
pub(super) type Ranking = Vec<(At, f32)>;

/// Vector searches under way: cancelled when nobody waits for them any more.
struct Waiting(Vec<((usize, usize), Pending)>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.iter().for_each(|(_, pending)| pending.cancel());
    }
}

/// A search under way.
pub(super) struct Searching<'a> {
    pub(super) pool: &'a Pool,
    pub(super) view: &'a View,
    /// By segment; none if no documents are looked at.
    pub(super) runs: Vec<Arc<Vec<(u32, Run)>>>,
    /// By the scheduler's clock.
    pub(super) until: Option<Duration>,
    /// Asked while it waits whether to go on.
    pub(super) proceed: &'a dyn Fn() -> ControlFlow<()>,
    /// Whether its own thread may search: nobody has to be asked meanwhile.
    pub(super) here: bool,
    /// Whether segments are searched at the same time.
    pub(super) together: bool,
    /// By segment.
    pub(super) profiles: Vec<SegmentProfile>,
}

impl Searching<'_> {
    /// The first documents in order, how many match, and what they give to aggregations.
    pub(super) fn run(
        &mut self,
        ready: &Ready<'_>,
    ) -> Result<(Vec<Found>, Total, Vec<Partial>), SearchTableError> {
        let filters = ready.filter.as_ref().map(|filter| self.filtered(filter)).transpose()?;
        if let Some(query) = &ready.query {
            self.fill(&query.within)?;
        }
        let all: Vec<&Run> = self.runs.iter().flat_map(|runs| runs.iter().map(|(_, run)| run)).collect();
        let weighed =
            ready.query.as_ref().map(|query| query.compiled.weigh(&all, true)).transpose()?.flatten();
        let wanted = Wanted {
            order: &ready.order,
            least: ready.least(),
            after: ready.after.as_ref(),
            hits: ready.hits,
            aggregations: ready.aggregations.as_ref(),
            noted: false,
            pruned: false,
        };
        if ready.probes.is_empty() {
            let by_score = ready.order.is_by_score() && ready.aggregations.is_none();
            let wanted = Wanted { pruned: by_score && !ready.request.exact_total, ..wanted };
            let source = |_: usize| match (&ready.query, &weighed) {
                (None, _) => Some(Source::All),
                // Without runs there are no documents, either.
                (Some(_), weighed) => weighed.as_ref().map(Source::Query),
            };
            let collected = self.pass(&filters, source, &wanted)?;
            let (mut hits, total, partials) = together(&wanted, collected);
            if let Some(weighed) = weighed.filter(|_| ready.request.explain) {
                let shown = hits.iter_mut().skip(ready.request.from);
                shown.into_iter().try_for_each(|found| self.explain(&weighed, found))?;
            }
            return Ok((hits, total, partials));
        }
        let mut rankings = Vec::new();
        let mut noted = vec![Bits::default(); self.view.parts.len()];
        if ready.query.is_some() {
            rankings.push(self.ranked(ready, &filters, weighed.as_ref(), &mut noted)?);
        }
        let own = ready.probes.iter().map(|(_, own)| own.as_ref().map(|own| self.filtered(own)).transpose());
        let own = own.collect::<Result<Vec<_>, _>>()?;
        let probes = ready.probes.iter().zip(&own);
        let probes: Vec<_> =
            probes.map(|((probe, _), own)| (probe, own.as_ref().or(filters.as_ref()))).collect();
        // By OpenSearch's score where it is fused with others; alone by distance, of which no digit is lost.
        let ranked = |probe: &Probe, distance| match ready.alone() {
            Some(_) => ready.shown(distance),
            None => score(probe.metric, distance),
        };
        rankings.extend(self.nearest(&probes, &ranked)?);
        if ready.is_ranking()
            && let [ranking] = &rankings[..]
        {
            return Ok(self.page(ready, ranking));
        }
        for &(At { part, row }, _) in rankings.iter().flatten() {
            noted[part].insert(row);
        }
        let scores: BTreeMap<At, f32> = match &rankings[..] {
            [ranking] => ranking.iter().copied().collect(),
            rankings => fusion::fuse(&ready.request.fusion, rankings),
        };
        let source = |number: usize| {
            let rows = &noted[number];
            (rows.count() > 0).then_some(Source::Set { rows, scores: &scores })
        };
        let collected = self.pass(&filters, source, &wanted)?;
        Ok(together(&wanted, collected))
    }

    /// Says how a document's score came about.
    fn explain(&self, weighed: &Weighed, found: &mut Found) -> Result<(), SearchTableError> {
        let At { part, row } = found.at;
        let runs = &self.runs[part];
        let at = runs.partition_point(|(start, _)| *start <= row);
        if let Some((start, run)) = at.checked_sub(1).map(|at| &runs[at]) {
            found.explanation = Some(Box::new(run.explain(weighed, row - start)?));
        }
        Ok(())
    }

    /// The time that is left.
    fn left(&self) -> Result<Option<Duration>, SearchTableError> {
        if (self.proceed)().is_break() {
            return Err(SearchTableError::Stopped);
        }
        let Some(until) = self.until else { return Ok(None) };
        let left = until.saturating_sub(self.pool.scheduler().elapsed());
        if left.is_zero() { Err(Failure::DeadlineExceeded.into()) } else { Ok(Some(left)) }
    }

    /// Runs `task` on the pool for each of the segments; also says which it was, and how it went. When one fails the others
    /// are cancelled.
    pub(super) fn on_pool<T: Send>(
        &self,
        parts: impl Iterator<Item = usize>,
        task: impl Fn(usize, &dyn Fn() -> bool) -> Result<T, SearchTableError> + Sync,
    ) -> Result<Vec<(usize, T, Trip)>, SearchTableError> {
        let (task, view) = (&task, self.view);
        self.pool.scheduler().scope(|scope| {
            let (mut tickets, mut done, mut failed) = (Vec::new(), Vec::new(), None);
            let mut parts = parts.peekable();
            while failed.is_none() && (parts.peek().is_some() || !tickets.is_empty()) {
                if let Some(number) = parts.next() {
                    let id = MappingId::table(view.parts[number].searched.0);
                    let run = move |_: &mut _, context: &lanewise_scheduler::Context<'_>| {
                        // What it reads is not known: tantivy does not say.
                        (task(number, &|| context.stopped()), 0)
                    };
                    match self.left().and_then(|left| Ok(scope.submit(id, left, run)?)) {
                        Ok(ticket) => tickets.push((number, ticket)),
                        Err(error) => failed = Some(error),
                    }
                    if failed.is_none() && self.together && parts.peek().is_some() {
                        continue;
                    }
                }
                for (number, ticket) in tickets.drain(..) {
                    if failed.is_some() {
                        ticket.cancel();
                        continue;
                    }
                    let canceller = ticket.canceller();
                    let answer = wait(ticket, self.proceed).and_then(|answer| Ok(answer?));
                    match answer.and_then(|answer| Ok((answer.value?, answer.trip))) {
                        Ok((value, trip)) => done.push((number, value, trip)),
                        Err(error) => {
                            canceller.cancel();
                            failed = Some(error);
                        }
                    }
                }
            }
            match failed {
                Some(error) => Err(error),
                None => Ok(done),
            }
        })
    }

    /// The rows of each segment that a query finds, dead ones among them.
    pub(super) fn filtered(&mut self, filter: &Prepared) -> Result<Filtered, SearchTableError> {
        self.fill(&filter.within)?;
        let json = filter.json.as_deref();
        let view = self.view;
        let known = |part: &Part| match &part.body {
            Body::Sealed(sealed) => sealed.filters.rows(json?),
            Body::Head(_) => None,
        };
        let mut rows: Vec<Option<Bits>> = view.parts.iter().map(known).collect();
        for (profile, known) in self.profiles.iter_mut().zip(&rows) {
            let known = known.as_ref();
            profile.filter = profile
                .filter
                .or_else(|| known.map(|rows| FilterProfile { rows: rows.count(), cached: true, task: None }));
        }
        let all: Vec<&Run> = self.runs.iter().flat_map(|runs| runs.iter().map(|(_, run)| run)).collect();
        if let Some(weighed) = filter.compiled.weigh(&all, false)? {
            let unknown = (0..rows.len()).filter(|&number| rows[number].is_none());
            let runs = &self.runs;
            let evaluated = self.on_pool(unknown.collect::<Vec<_>>().into_iter(), |number, stop| {
                let mut found = Bits::default();
                for (start, run) in runs[number].iter() {
                    run.matches(&weighed, stop, &mut |row| {
                        found.insert(start + row);
                    })?;
                }
                Ok(found)
            })?;
            for (number, found, trip) in evaluated {
                if let (Body::Sealed(sealed), Some(json)) = (&view.parts[number].body, json) {
                    sealed.filters.keep_rows(json, &found);
                }
                let task = Some(trip.into());
                let profile = FilterProfile { rows: found.count(), cached: false, task };
                self.profiles[number].filter.get_or_insert(profile);
                rows[number] = Some(found);
            }
        }
        let rows = rows.into_iter().map(Option::unwrap_or_default).collect();
        Ok(Filtered { json: json.map(str::to_owned), rows })
    }

    /// What is near each vector that is looked for, among what its filter finds, of all segments, as `ranked` by distance.
    pub(super) fn nearest(
        &mut self,
        probes: &[(&Probe, Option<&Filtered>)],
        ranked: &dyn Fn(&Probe, f32) -> f32,
    ) -> Result<Vec<Ranking>, SearchTableError> {
        let view = self.view;
        let mut rankings: Vec<Ranking> = vec![Ranking::new(); probes.len()];
        let (mut asked, mut waiting) = (Vec::new(), Waiting(Vec::new()));
        for (ranking, (probe, filter)) in probes.iter().enumerate() {
            for (number, part) in view.parts.iter().enumerate() {
                let reader = part.reader(probe.field);
                let rows = filter.map(|of| (of.json.as_deref(), &of.rows[number]));
                if reader.is_empty() || rows.is_some_and(|(_, rows)| rows.count() == 0) {
                    continue;
                }
                let filter = part.filter(probe.field, rows);
                if filter.as_ref().is_some_and(|filter| filter.matches() == 0) {
                    continue;
                }
                asked.push(((ranking, number), filter));
            }
        }
        let last = asked.len().saturating_sub(1);
        for (at, ((ranking, number), filter)) in asked.into_iter().enumerate() {
            let (probe, part) = (probes[ranking].0, &view.parts[number]);
            let how = Search { filter: filter.as_ref(), ..probe.how };
            let (table, reader, vector) =
                (part.tables[probe.field], part.reader(probe.field), probe.vector.as_vectors());
            let left = self.left()?;
            // Nothing is left to be submitted: this thread would only wait.
            let idle = at == last || !self.together;
            let pending = match probe.radius {
                Some(radius) => self.pool.within(table, reader, vector, radius, &how, left)?,
                None if self.here && idle => self.pool.search_here(table, reader, vector, &how, left)?,
                None => self.pool.search(table, reader, vector, &how, left)?,
            };
            waiting.0.push(((ranking, number), pending));
            if !self.together {
                self.take(probes, ranked, &mut waiting, &mut rankings)?;
            }
        }
        self.take(probes, ranked, &mut waiting, &mut rankings)?;
        for (ranking, (probe, _)) in rankings.iter_mut().zip(probes) {
            sort(view, ranking);
            if probe.radius.is_none() {
                ranking.truncate(probe.how.k);
            }
        }
        Ok(rankings)
    }

    /// Waits for the searches under way.
    fn take(
        &mut self,
        probes: &[(&Probe, Option<&Filtered>)],
        ranked: &dyn Fn(&Probe, f32) -> f32,
        waiting: &mut Waiting,
        rankings: &mut [Ranking],
    ) -> Result<(), SearchTableError> {
        while let Some(((ranking, number), pending)) = waiting.0.last_mut() {
            let ((ranking, number), found) = ((*ranking, *number), wait(pending, self.proceed)?);
            waiting.0.pop();
            let (probe, _) = probes[ranking];
            let Near { neighbors, counts, trip } = found?;
            let part = &self.view.parts[number];
            for (id, distance) in neighbors.ids.into_iter().zip(neighbors.distances) {
                if probe.min_score.is_some_and(|least| score(probe.metric, distance) < least) {
                    continue;
                }
                let row = part.row_of(probe.field, id);
                rankings[ranking].extend(row.map(|row| (At { part: number, row }, ranked(probe, distance))));
            }
            self.profiles[number].vectors.push(VectorProfile {
                field: probe.name.clone(),
                plan: plan(&counts),
                visited: counts.distances,
                hops: counts.hops,
                bytes: counts.bytes,
                task: trip.into(),
            });
        }
        Ok(())
    }

    /// Finds what queries ask of vectors, and fills it in.
    pub(super) fn fill(&mut self, within: &[Within]) -> Result<(), SearchTableError> {
        for Within { asked, among, rows } in within {
            let mut found = vec![Vec::new(); self.view.parts.len()];
            if let (Asked::Documents(mode), Some(nested)) = (asked, among) {
                self.documents_of(*mode, nested, &mut found)?;
                self.fill_in(rows, found);
                continue;
            }
            let among = among.as_ref().map(|among| self.filtered(among)).transpose()?;
            match asked {
                Asked::Documents(_) => unreachable!("they are among something"),
                Asked::Nearest { probe, of_documents } => {
                    let among = match (among, of_documents) {
                        (Some(among), true) => Some(self.nested_of(&among)),
                        (among, _) => among,
                    };
                    for (At { part, row }, score) in self.nearest_of_documents(probe, among.as_ref())? {
                        found[part].push((row, score));
                    }
                }
                Asked::Compared(compared) => {
                    let view = self.view;
                    let alive = |number: usize| -> Vec<u32> {
                        let (part, among) = (&view.parts[number], among.as_ref());
                        let rows = among.into_iter().flat_map(|among| among.rows[number].rows());
                        rows.filter(|&row| part.is_alive(row)).collect()
                    };
                    let work = |number: usize, stop: &dyn Fn() -> bool| {
                        compared.scores(&view.parts[number], &alive(number), stop)
                    };
                    for (number, scores, _) in self.on_pool(0..found.len(), work)? {
                        found[number] = scores;
                    }
                }
            }
            self.fill_in(rows, found);
        }
        Ok(())
    }

    /// Says what was found, by segment.
    fn fill_in(&self, rows: &Rows, found: Vec<Vec<(u32, f32)>>) {
        rows.fill(self.runs.iter().zip(found).flat_map(|(runs, mut found)| {
            found.sort_unstable_by_key(|(row, _)| *row);
            runs.iter().map(move |(start, run)| {
                let (start, end) = (*start, start + run.rows());
                let own = found.iter().filter(move |(row, _)| (start..end).contains(row));
                (run, own.map(|(row, score)| (row - start, *score)).collect())
            })
        }));
    }

    /// A pass over the documents of all segments for which `source` says what matches.
    fn pass<'s>(
        &mut self,
        filters: &Option<Filtered>,
        source: impl Fn(usize) -> Option<Source<'s>>,
        wanted: &Wanted<'_>,
    ) -> Result<Vec<Collected>, SearchTableError> {
        let (view, runs) = (self.view, &self.runs);
        let rows = |number: usize| filters.as_ref().map(|of| &of.rows[number]);
        let sources: BTreeMap<usize, Source<'s>> = (0..view.parts.len())
            .filter(|&number| view.parts[number].live() > 0 && rows(number).is_none_or(|r| r.count() > 0))
            .filter_map(|number| Some((number, source(number)?)))
            .collect();
        let parts = sources.keys().copied();
        let collected = self.on_pool(parts, |number, stop| {
            let (part, source) = (&view.parts[number], &sources[&number]);
            collect((number, part), &runs[number], source, rows(number), wanted, stop)
        })?;
        let mut all = Vec::new();
        for (number, collected, trip) in collected {
            let documents = &mut self.profiles[number].documents;
            documents.push(DocumentProfile { found: collected.count, task: trip.into() });
            all.push(collected);
        }
        Ok(all)
    }

    /// The best of what the query finds; `noted` gets all of it.
    fn ranked(
        &mut self,
        ready: &Ready<'_>,
        filters: &Option<Filtered>,
        weighed: Option<&Weighed>,
        noted: &mut [Bits],
    ) -> Result<Ranking, SearchTableError> {
        let (_, window) = ready.request.fusion.weights();
        let order = Order::by_score();
        let rows = self.view.parts.iter().map(Part::rows).sum();
        let wanted = Wanted {
            order: &order,
            least: Least::NONE,
            after: None,
            hits: window.min(rows),
            aggregations: None,
            noted: true,
            pruned: false,
        };
        let collected = self.pass(filters, |_| weighed.map(Source::Query), &wanted)?;
        let mut ranking = Ranking::new();
        for Collected { hits, noted: rows, .. } in collected {
            if let Some(Found { at, .. }) = hits.first() {
                noted[at.part] = rows;
            }
            ranking.extend(hits.into_iter().map(|Found { at, score, .. }| (at, score)));
        }
        sort(self.view, &mut ranking);
        ranking.truncate(wanted.hits);
        Ok(ranking)
    }

    /// The hits of a ranking that is all there is.
    fn page(&self, ready: &Ready<'_>, ranking: &Ranking) -> (Vec<Found>, Total, Vec<Partial>) {
        let found = |&(at, score): &(At, f32)| {
            let id = self.view.parts[at.part].id(at.row).to_owned();
            Found { at, score, position: Position::of_score(score, id), explanation: None }
        };
        let after = |found: &Found| {
            ready
                .after
                .as_ref()
                .is_none_or(|after| collect::compare(&ready.order, &found.position, after).is_gt())
        };
        // They descend.
        let least = ready.least();
        let ranking = &ranking[..ranking.partition_point(|(_, rank)| least.passes(*rank))];
        let hits = ranking.iter().map(found).filter(after).take(ready.hits).collect();
        (hits, Total { value: ranking.len() as u64, exact: true }, Vec::new())
    }
}

/// What a filter finds.
pub(super) struct Filtered {
    /// The filter, if what it finds may be kept.
    pub(super) json: Option<String>,
    /// By segment.
    pub(super) rows: Vec<Bits>,
}

fn sort(view: &View, ranking: &mut Ranking) {
    let id = |at: &At| view.parts[at.part].id(at.row);
    ranking.sort_unstable_by(|a, b| {
        b.1.total_cmp(&a.1).then_with(|| id(&a.0).cmp(id(&b.0))).then_with(|| a.0.cmp(&b.0))
    });
}

/// What all segments have.
fn together(wanted: &Wanted<'_>, collected: Vec<Collected>) -> (Vec<Found>, Total, Vec<Partial>) {
    let (mut hits, mut value, mut partials) = (Vec::new(), 0, Vec::new());
    for mut one in collected {
        value += one.count;
        hits.append(&mut one.hits);
        partials.append(&mut one.partials);
    }
    collect::first(wanted.order, &mut hits, wanted.hits);
    // Nothing is passed over before there are as many as are wanted.
    let exact = !wanted.pruned || value < wanted.hits as u64;
    (hits, Total { value, exact }, partials)
}
