//! Searching an index as it was at one moment.

use crate::code::CodeProbe;
use crate::coded::Coded;
use crate::error::SearchError;
use crate::filter::{Everything, Filter};
use crate::flat;
use crate::hnsw::search::{Beam, Walker};
use crate::index::State;
use crate::listed::ListScratch;
use crate::plan::{self, Plan};
use crate::pool::{Entry, Pool};
use crate::record::Work;
use crate::space::{Compare, Probe};
use crate::stop::{Stop, Stopped};
use crate::vectors::{Metric, Vectors};
use std::sync::Arc;

/// With `epsilon` a walk may keep this part of all vectors.
const ADAPTIVE_SHARE: usize = 8;

/// Accepted vectors from which a walk starts that goes around those that fail a filter.
const SAMPLES: usize = 128;

/// What to look for, and how hard.
#[derive(Clone, Copy, Debug)]
pub struct Search<'a> {
    /// How many vectors to find.
    pub k: usize,
    /// HNSW: candidates kept while walking the graph; less than `k` counts as `k`.
    pub ef_search: usize,
    /// HNSW, in place of `ef_search`: the walk goes on as long as there are candidates nearer than `1 + epsilon` times the
    /// `k`-th nearest so far (not squared where distances are squares). Adapts to how hard a query is, so that it finds
    /// more for the same work; 0 to 10.
    pub epsilon: Option<f32>,
    /// IVF: lists that are scanned, those of the centroids nearest to the query; more than there are counts as all.
    pub nprobe: usize,
    /// With a traversal code: candidates that are taken by code for each result, to be ordered by the stored vectors.
    /// Not given: what the code needed on the sample that it was fitted to. 1 to 1000.
    pub oversample: Option<f32>,
    /// Only these vectors may be results. Made by the same reader.
    pub filter: Option<&'a Filter>,
    /// Whether to compare every vector that may be a result, whatever else is said.
    pub exact: bool,
    /// Asked from time to time whether to give up.
    pub stop: Option<Stop<'a>>,
}

impl<'a> Search<'a> {
    /// The nearest `k`, with the usual effort.
    pub fn new(k: usize) -> Self {
        Search {
            k,
            ef_search: 64,
            epsilon: None,
            nprobe: 16,
            oversample: None,
            filter: None,
            exact: false,
            stop: None,
        }
    }

    /// The same with another `ef_search`.
    pub fn ef(self, ef_search: usize) -> Self {
        Search { ef_search, ..self }
    }

    /// The same with another `epsilon`.
    pub fn epsilon(self, epsilon: f32) -> Self {
        Search { epsilon: Some(epsilon), ..self }
    }

    /// The same with another `nprobe`.
    pub fn nprobe(self, nprobe: usize) -> Self {
        Search { nprobe, ..self }
    }

    /// The same with another `oversample`.
    pub fn oversample(self, oversample: f32) -> Self {
        Search { oversample: Some(oversample), ..self }
    }

    /// The same among the vectors of `filter`.
    pub fn filter<'b>(self, filter: &'b Filter) -> Search<'b>
    where
        'a: 'b,
    {
        Search { filter: Some(filter), ..self }
    }

    /// The same, given up when `stop` says so.
    pub fn stop<'b>(self, stop: Stop<'b>) -> Search<'b>
    where
        'a: 'b,
    {
        Search { stop: Some(stop), ..self }
    }
}

/// Candidates by code for `k` results: `usual` for each, where the search does not say.
pub(crate) fn candidates(k: usize, search: &Search<'_>, usual: usize) -> usize {
    (k as f32 * search.oversample.unwrap_or(usual as f32)).ceil() as usize
}

/// The results of one query, nearest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Neighbors {
    /// Ids of the vectors found.
    pub ids: Vec<i64>,
    /// Their distances, ascending, by the index's metric.
    pub distances: Vec<f32>,
}

/// What searches did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Nodes whose links were followed.
    pub hops: u64,
    /// Vectors that were compared with a query.
    pub distances: u64,
    /// Bytes of vectors, codes, links, lists and centroids that were read (document 004, equations 1 and 2): each time that
    /// they were compared or followed, but of an exact search, or one of all codes, once for up to 32 queries that share
    /// a block while it is in cache. `docs` of [`Region`](crate::Region) say what is left out.
    pub bytes: u64,
    /// Queries answered by [`Plan::Exact`].
    pub exact: u64,
    /// Queries answered by [`Plan::Graph`].
    pub graph: u64,
    /// Queries answered by [`Plan::FilteredGraph`].
    pub filtered_graph: u64,
    /// Queries answered by [`Plan::Lists`].
    pub lists: u64,
    /// Queries answered by [`Plan::Codes`].
    pub codes: u64,
}

impl std::ops::AddAssign for Counts {
    fn add_assign(&mut self, more: Counts) {
        self.hops += more.hops;
        self.distances += more.distances;
        self.bytes += more.bytes;
        self.exact += more.exact;
        self.graph += more.graph;
        self.filtered_graph += more.filtered_graph;
        self.lists += more.lists;
        self.codes += more.codes;
    }
}

/// The memory of searches, reused from one to the next; not tied to an index. One per thread.
#[derive(Default)]
pub struct Scratch {
    pub(crate) walker: Walker,
    pub(crate) probes: Vec<Probe>,
    pools: Vec<Pool>,
    codes: Vec<CodeProbe>,
    pub(crate) lists: ListScratch,
    pub(crate) floats: Vec<f32>,
    pub(crate) ids: Vec<u32>,
    pub(crate) keys: Vec<i32>,
}

/// An index as it was at one moment. Whatever changes later, searches through the same reader see the same vectors.
#[derive(Clone)]
pub struct Reader(Arc<State>);

impl Reader {
    pub(crate) fn new(state: Arc<State>) -> Reader {
        Reader(state)
    }

    pub(crate) fn state(&self) -> &State {
        &self.0
    }

    /// How many vectors may be results of `search`.
    pub(crate) fn matches(&self, search: &Search<'_>) -> usize {
        search.filter.map_or(self.len(), Filter::matches)
    }

    /// Number of vectors.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no vector.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Dimensions of a vector; bits for bits.
    pub fn dim(&self) -> usize {
        self.0.space.dim
    }

    /// The ids of the vectors, in the order in which they came.
    pub fn ids(&self) -> impl Iterator<Item = i64> + '_ {
        let State { space, deleted, .. } = &*self.0;
        let live = (0..space.len() as u32).filter(|&row| !deleted.contains(row));
        live.map(|row| self.0.id(row))
    }

    /// The vectors whose ids `chosen` accepts, for searches among them. Asks once for each, in the
    /// order of [`ids`](Self::ids).
    pub fn filter(&self, mut chosen: impl FnMut(i64) -> bool) -> Filter {
        Filter::new(self.0.version, self.0.space.len(), &self.0.deleted, |row| chosen(self.0.id(row)))
    }

    /// How a search would be carried out.
    pub fn plan(&self, search: &Search<'_>) -> Plan {
        if search.exact {
            return Plan::Exact;
        }
        let matches = self.matches(search);
        let ef = if search.epsilon.is_some() { search.k } else { search.ef_search };
        let k = search.k.min(matches);
        if let Some(listed) = &self.0.listed {
            let nlist = listed.ivf.lists().len();
            let probes = plan::probes(self.0.space.len(), matches, k, search.nprobe, nlist);
            return if probes.is_some() { Plan::Lists } else { Plan::Exact };
        }
        let graph = !self.0.graph.base.is_empty();
        if let Some(coded) = &self.0.coded {
            let by_code = plan::by_code(matches, candidates(k, search, coded.oversample()));
            if !graph || by_code == Plan::Exact {
                return by_code;
            }
        }
        plan::choose(self.0.space.len(), matches, search.filter.is_some(), k, ef, graph)
    }

    /// The min(k, matches) nearest vectors to each query, and the work done. Exact if the kind is flat and there
    /// is no code.
    ///
    /// # Errors
    /// If anything about the queries is wrong, or about what to look for; and if `search.stop` says stop.
    pub fn search(
        &self,
        queries: Vectors<'_>,
        search: &Search<'_>,
        scratch: &mut Scratch,
    ) -> Result<(Vec<Neighbors>, Counts), SearchError> {
        let count = self.check(queries, search)?;
        let plan = self.plan(search);
        let State { space, coded, listed, version, .. } = &*self.0;
        scratch.begin(*version);
        let k = search.k.min(self.matches(search));
        let mut results = Vec::with_capacity(count);
        let mut counts = Counts::default();
        // Together only as many as share a block of rows while it is in cache.
        let together = if matches!(plan, Plan::Exact | Plan::Codes) { 32 } else { 1 };
        for first in (0..count).step_by(together) {
            let range = first..count.min(first + together);
            let Scratch { walker, probes, .. } = &mut *scratch;
            probes.resize_with(range.len().max(probes.len()), Probe::default);
            for (probe, i) in probes.iter_mut().zip(range.clone()) {
                space.prepare(queries.slice(space.dim, i..i + 1), probe);
            }
            walker.work.counts = Counts::default();
            if let (Plan::Codes, Some(coded)) = (plan, coded) {
                self.scan_codes(scratch, coded, (range.len(), k), search, &mut results)?;
            } else {
                let found = match (plan, listed) {
                    (Plan::Lists, Some(listed)) => self.scan(scratch, listed, k, search)?,
                    (Plan::Graph | Plan::FilteredGraph, _) => self.approximate(scratch, plan, k, search)?,
                    _ => false,
                };
                self.answer(scratch, found, (range.len(), k), search, &mut results)?;
            }
            counts += scratch.walker.work.counts;
        }
        Ok((results, counts))
    }

    /// The results of the first `queries` probes: the walker's pool, if what was `found` there is enough for the only one,
    /// or what comparing all gives.
    pub(crate) fn answer(
        &self,
        scratch: &mut Scratch,
        found: bool,
        (queries, k): (usize, usize),
        search: &Search<'_>,
        results: &mut Vec<Neighbors>,
    ) -> Result<(), Stopped> {
        let Scratch { walker, probes, pools, .. } = scratch;
        if found {
            results.push(self.neighbors(&walker.pool, k));
            return Ok(());
        }
        walker.work.counts.exact += queries as u64;
        self.compare_all(&self.0.space, &probes[..queries], k, search, pools, &mut walker.work)?;
        results.extend(pools[..queries].iter().map(|pool| self.neighbors(pool, k)));
        Ok(())
    }

    /// Leaves the nearest `k` of all that may be results in the pool of each probe.
    fn compare_all<C: Compare>(
        &self,
        space: &C,
        probes: &[C::Probe],
        k: usize,
        search: &Search<'_>,
        pools: &mut Vec<Pool>,
        work: &mut Work,
    ) -> Result<(), Stopped> {
        pools.resize_with(probes.len().max(pools.len()), Pool::default);
        let pools = &mut pools[..probes.len()];
        match (search.filter, self.0.deleted.count()) {
            (Some(filter), _) => {
                flat::search_among(space, probes, k, pools, filter.rows(), |_| true, search.stop)?;
                work.scanned(space, (filter.rows(), filter.matches()), probes.len());
                return Ok(());
            }
            (None, 0) => flat::search(space, probes, k, pools, &Everything, search.stop)?,
            (None, _) => flat::search(space, probes, k, pools, &self.0.deleted, search.stop)?,
        }
        work.scanned(space, (0..space.len() as u32, space.len()), probes.len());
        Ok(())
    }

    /// Answers the first `queries` probes by comparing all codes and ordering the best by the stored vectors.
    fn scan_codes(
        &self,
        scratch: &mut Scratch,
        coded: &Coded,
        (queries, k): (usize, usize),
        search: &Search<'_>,
        results: &mut Vec<Neighbors>,
    ) -> Result<(), Stopped> {
        let Scratch { walker, probes, pools, codes, floats, ids, keys, .. } = scratch;
        codes.resize_with(queries.max(codes.len()), CodeProbe::default);
        for (probe, code) in probes.iter().zip(&mut codes[..queries]) {
            self.0.space.probe_floats(probe, floats);
            coded.coder.prepare(floats, code);
        }
        let wanted = candidates(k, search, coded.oversample());
        walker.work.counts.codes += queries as u64;
        self.compare_all(coded, &codes[..queries], wanted, search, pools, &mut walker.work)?;
        for (probe, pool) in probes.iter().zip(&pools[..queries]) {
            ids.clear();
            ids.extend(pool.entries().iter().map(|e| e.id()));
            self.rescore(walker, probe, ids, keys);
            results.push(self.neighbors(&walker.pool, k));
        }
        Ok(())
    }

    /// Finds the nearest by the graph or the code for the first probe, in the walker's pool; whether they are `k`. If not
    /// (many identical ones can hide each other, a filter's matches can lie apart from each other), only an exact search
    /// can tell.
    pub(crate) fn approximate(
        &self,
        scratch: &mut Scratch,
        plan: Plan,
        k: usize,
        search: &Search<'_>,
    ) -> Result<bool, Stopped> {
        let State { space, coded, .. } = &*self.0;
        let Scratch { walker, probes, codes, floats, ids, keys, .. } = scratch;
        let Some(coded) = coded else {
            return self.walk(walker, space, &probes[0], plan, (k, k), search);
        };
        codes.resize_with(codes.len().max(1), CodeProbe::default);
        let code = &mut codes[0];
        space.probe_floats(&probes[0], floats);
        coded.coder.prepare(floats, code);
        let wanted = candidates(k, search, coded.oversample());
        if !self.walk(walker, coded, code, plan, (k, wanted), search)? {
            return Ok(false);
        }
        let best = &walker.pool.entries()[..wanted.min(walker.pool.entries().len())];
        ids.clear();
        ids.extend(best.iter().map(|e| e.id()));
        self.rescore(walker, &probes[0], ids, keys);
        Ok(true)
    }

    /// Leaves `ids` in the walker's pool, ordered by the stored vectors.
    pub(crate) fn rescore(&self, walker: &mut Walker, probe: &Probe, ids: &[u32], keys: &mut Vec<i32>) {
        keys.resize(ids.len(), 0);
        self.0.space.keys_of(probe, ids, keys);
        walker.work.compared(&self.0.space, ids);
        walker.pool.reset(ids.len());
        ids.iter().zip(&*keys).for_each(|(&id, &key)| walker.pool.append(Entry::new(key, id)));
        walker.pool.settle();
    }

    /// Leaves the nearest to `probe` in the walker's pool: of results `k`, of candidates `wanted` or more. Whether there are
    /// `k`.
    fn walk<C: Compare>(
        &self,
        walker: &mut Walker,
        space: &C,
        probe: &C::Probe,
        plan: Plan,
        (k, wanted): (usize, usize),
        search: &Search<'_>,
    ) -> Result<bool, Stopped> {
        let State { graph, deleted, .. } = &*self.0;
        let beam = match search.epsilon {
            // Squared where distances are.
            Some(epsilon) => {
                let most = (space.len() / ADAPTIVE_SHARE).max(wanted);
                Beam::adaptive(most, k, space.slack(1.0 + epsilon))
            }
            None => Beam::new(search.ef_search.max(wanted)),
        };
        let beam = beam.until(search.stop);
        let mut ended = true;
        match search.filter {
            Some(filter) if plan == Plan::FilteredGraph => {
                let every = filter.matches().div_ceil(SAMPLES);
                let samples: Vec<u32> = filter.rows().step_by(every).collect();
                let budget = filter.matches() as u64;
                ended = walker.search_filtered(graph, space, probe, beam, filter, &samples, budget);
            }
            Some(filter) => walker.search(graph, space, probe, beam, filter),
            None if deleted.count() == 0 => walker.search(graph, space, probe, beam, &Everything),
            None => walker.search(graph, space, probe, beam, deleted),
        }
        if walker.stopped {
            return Err(Stopped);
        }
        let found = ended && walker.pool.entries().len() >= k;
        match plan {
            Plan::FilteredGraph => walker.work.counts.filtered_graph += u64::from(found),
            _ => walker.work.counts.graph += u64::from(found),
        }
        Ok(found)
    }

    /// Checks a search without running it; the number of queries.
    ///
    /// # Errors
    /// As [`search`](Self::search).
    pub fn check(&self, queries: Vectors<'_>, search: &Search<'_>) -> Result<usize, SearchError> {
        let count = self.0.space.check(queries)?;
        match () {
            () if count == 0 => Err(SearchError::Empty),
            () if search.k == 0 => Err(SearchError::K),
            () if search.ef_search == 0 => Err(SearchError::EfSearch),
            () if search.nprobe == 0 => Err(SearchError::Nprobe),
            () if search.epsilon.is_some_and(|e| !(0.0..=10.0).contains(&e)) => Err(SearchError::Epsilon),
            () if search.epsilon.is_some() && self.0.space.metric == Metric::InnerProduct => {
                Err(SearchError::EpsilonOfInnerProduct)
            }
            () if search.oversample.is_some_and(|o| !(1.0..=1000.0).contains(&o)) => {
                Err(SearchError::Oversample)
            }
            () if search.filter.is_some_and(|filter| filter.version != self.0.version) => {
                Err(SearchError::Filter)
            }
            () => Ok(count),
        }
    }

    pub(crate) fn neighbors(&self, pool: &Pool, k: usize) -> Neighbors {
        let best = &pool.entries()[..k.min(pool.entries().len())];
        Neighbors {
            ids: best.iter().map(|e| self.0.id(e.id())).collect(),
            distances: best.iter().map(|e| self.0.space.distance(e.key())).collect(),
        }
    }
}
