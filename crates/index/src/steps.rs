//! A search of lists in steps (document 004, intra-query): a query is made ready, its lists are scanned, each into a
//! private best, and what they gave is merged, ordered by the stored vectors, and filled up where it is too little.
//!
//! [`Reader::search`] takes the steps one after the other and keeps one best for all lists, whose bound spares it some
//! work; a scheduler takes the lists of one query to several threads by [`Reader::probe`]. Both give the same results, bit
//! for bit: the best of all lists is the least of what they hold by key and row, in whatever order they are scanned.

use crate::error::SearchError;
use crate::filter::Filter;
use crate::index::version;
use crate::ivf::{Allowed, Which};
use crate::listed::{ListQuery, Listed};
use crate::plan::{self, Plan};
use crate::pool::Entry;
use crate::search::{Counts, Neighbors, Reader, Scratch, Search, candidates};
use crate::space::{Compare, Probe};
use crate::stop::{Stop, Stopped, ask};
use crate::vectors::Vectors;
use std::sync::Arc;

/// If lists hold too few results, so many times more of them are scanned.
const WIDER: usize = 4;

/// How many results are looked for, in how many lists, by how many candidates.
#[derive(Clone, Copy)]
struct Aim {
    k: usize,
    nprobe: usize,
    want: usize,
}

impl Reader {
    fn aim(&self, listed: &Listed, k: usize, search: &Search<'_>) -> Option<Aim> {
        let nlist = listed.ivf.lists().len();
        let nprobe = plan::probes(self.state().space.len(), self.matches(search), k, search.nprobe, nlist)?;
        let want = if listed.exact() { k } else { candidates(k, search, listed.candidates() as usize) };
        Some(Aim { k, nprobe, want })
    }

    fn allowed<'a>(&'a self, filter: Option<&'a Filter>) -> Allowed<'a> {
        let state = self.state();
        let which = match filter {
            Some(filter) => Which::In(filter.words()),
            None if state.deleted.count() == 0 => Which::All,
            None => Which::NotIn(state.deleted.words()),
        };
        Allowed { rows: state.space.len(), which }
    }

    /// As [`approximate`](Self::approximate), by scanning lists.
    pub(crate) fn scan(
        &self,
        scratch: &mut Scratch,
        listed: &Listed,
        k: usize,
        search: &Search<'_>,
    ) -> Result<bool, Stopped> {
        let Some(aim) = self.aim(listed, k, search) else { return Ok(false) };
        self.scan_all(scratch, listed, aim, search)?;
        self.settle(scratch, listed, aim, search)
    }

    /// Leaves the best of all lists of the first probe in `scratch.lists.best`.
    fn scan_all(
        &self,
        scratch: &mut Scratch,
        listed: &Listed,
        aim: Aim,
        search: &Search<'_>,
    ) -> Result<(), Stopped> {
        self.prepare(scratch, listed, aim);
        scratch.lists.best.reset(aim.want);
        let allowed = self.allowed(search.filter);
        let Scratch { walker, probes, lists, .. } = scratch;
        for i in 0..lists.query.lists().len() {
            ask(search.stop)?;
            let query = (&probes[0], &lists.query);
            let (list, vectors) =
                listed.scan(&self.state().space, query, i, allowed, &mut lists.scan, &mut lists.best);
            walker.work.list(list, vectors, listed.ivf.lists().form().scanned_bytes(vectors));
        }
        Ok(())
    }

    /// Makes the first probe ready to scan lists.
    fn prepare(&self, scratch: &mut Scratch, listed: &Listed, aim: Aim) {
        let Scratch { walker, probes, lists, floats, .. } = scratch;
        let space = &self.state().space;
        space.probe_floats(&probes[0], floats);
        listed.prepare(space, floats, aim.nprobe, &mut lists.query);
        walker.work.chosen(&listed.ivf, lists.query.lists());
    }

    /// Leaves the results of the first probe in the walker's pool: the best of its lists, ordered by the stored vectors.
    /// Lists may be short, or what passes may lie in others: then more of them are scanned. Whether there were enough.
    fn settle(
        &self,
        scratch: &mut Scratch,
        listed: &Listed,
        mut aim: Aim,
        search: &Search<'_>,
    ) -> Result<bool, Stopped> {
        while scratch.lists.best.sorted().len() < aim.k {
            aim.nprobe *= WIDER;
            if aim.nprobe >= listed.ivf.lists().len() {
                return Ok(false);
            }
            self.scan_all(scratch, listed, aim, search)?;
        }
        let Scratch { walker, probes, lists, ids, keys, .. } = scratch;
        let best = lists.best.sorted();
        if listed.exact() {
            walker.pool.reset(aim.want);
            best.iter().for_each(|&entry| walker.pool.append(entry));
            walker.pool.settle();
        } else {
            ids.clear();
            ids.extend(best.iter().map(|e| e.id()));
            self.rescore(walker, &probes[0], ids, keys);
        }
        walker.work.counts.lists += 1;
        Ok(true)
    }

    /// The first step of a search that is to be taken apart: makes one query ready and chooses its lists. `None` if the
    /// [`plan`](Self::plan) is another than [`Plan::Lists`]: then [`search`](Self::search) answers it. `search.stop` is
    /// not kept, the caller is there between the steps.
    ///
    /// # Errors
    /// As [`search`](Self::search), or if there are several queries.
    pub fn probe(
        &self,
        query: Vectors<'_>,
        search: &Search<'_>,
        scratch: &mut Scratch,
    ) -> Result<Option<Probed>, SearchError> {
        let queries = self.check(query, search)?;
        if queries != 1 {
            return Err(SearchError::OneQuery { queries });
        }
        let k = search.k.min(self.matches(search));
        let Some(listed) = self.state().listed.as_ref().filter(|_| self.plan(search) == Plan::Lists) else {
            return Ok(None);
        };
        let Some(aim) = self.aim(listed, k, search) else { return Ok(None) };
        scratch.begin(self.state().version);
        scratch.walker.work.counts = Counts::default();
        let mut probe = Probe::default();
        self.state().space.prepare(query, &mut probe);
        scratch.load(&probe);
        self.prepare(scratch, listed, aim);
        Ok(Some(Probed {
            reader: self.clone(),
            listed: listed.clone(),
            aim,
            search: Search { filter: None, stop: None, ..*search },
            filter: search.filter.cloned(),
            probe,
            // The scratch makes itself another one.
            query: std::mem::take(&mut scratch.lists.query),
            work: scratch.walker.work.counts,
            number: version(),
        }))
    }
}

impl Scratch {
    /// Makes `probe` the first.
    fn load(&mut self, probe: &Probe) {
        self.probes.resize_with(self.probes.len().max(1), Probe::default);
        self.probes[0].clone_from(probe);
    }
}

/// A query made ready to scan its lists: a step of a search, made by [`Reader::probe`]. Threads may share it, and it holds
/// the state of the index that it was made for.
pub struct Probed {
    reader: Reader,
    listed: Arc<Listed>,
    aim: Aim,
    search: Search<'static>,
    filter: Option<Filter>,
    probe: Probe,
    query: ListQuery,
    work: Counts,
    /// No two have the same.
    number: u64,
}

/// What one list gave: the private best of a step.
pub struct Partial {
    best: Vec<Entry>,
    work: Counts,
    /// The query's number, and which of its lists.
    of: (u64, usize),
}

impl Partial {
    /// What the step did; its `bytes` are the list's traffic (document 004, equation 2).
    pub fn counts(&self) -> Counts {
        self.work
    }
}

impl Probed {
    /// The lists to be scanned, by their numbers, nearest first.
    pub fn lists(&self) -> impl ExactSizeIterator<Item = u32> + '_ {
        self.query.lists().lists()
    }

    /// What the step did that made it.
    pub fn counts(&self) -> Counts {
        self.work
    }

    /// Scans the `i`th of [`lists`](Self::lists): any of them at any time, on any thread.
    ///
    /// # Panics
    /// If there are not so many lists.
    pub fn scan(&self, i: usize, scratch: &mut Scratch) -> Partial {
        let Probed { reader, listed, aim, filter, probe, query, .. } = self;
        let state = reader.state();
        scratch.begin(state.version);
        let Scratch { walker, lists, .. } = scratch;
        lists.best.reset(aim.want);
        walker.work.counts = Counts::default();
        let allowed = reader.allowed(filter.as_ref());
        let (list, vectors) =
            listed.scan(&state.space, (probe, query), i, allowed, &mut lists.scan, &mut lists.best);
        walker.work.list(list, vectors, listed.ivf.lists().form().scanned_bytes(vectors));
        let best = lists.best.sorted().to_vec();
        Partial { best, work: walker.work.counts, of: (self.number, i) }
    }

    /// The last step: the results, as [`Reader::search`] gives them, and the work of all steps. `partials` come in any
    /// order. Where the lists hold too few results, more are scanned here, or all vectors compared, until `stop` says
    /// stop.
    ///
    /// # Errors
    /// If `partials` are not those of each of the lists, once; or if stopped.
    pub fn merge(
        &self,
        partials: &[Partial],
        stop: Option<Stop<'_>>,
        scratch: &mut Scratch,
    ) -> Result<(Neighbors, Counts), SearchError> {
        let Probed { reader, listed, aim, .. } = self;
        let mut lists: Vec<_> = partials.iter().map(|partial| partial.of).collect();
        lists.sort_unstable();
        if !lists.into_iter().eq((0..self.lists().len()).map(|i| (self.number, i))) {
            return Err(SearchError::Partials);
        }
        scratch.begin(reader.state().version);
        scratch.load(&self.probe);
        scratch.walker.work.counts = self.work;
        scratch.lists.best.reset(aim.want);
        for partial in partials {
            scratch.walker.work.counts += partial.work;
            scratch.lists.best.merge(&partial.best);
        }
        let search = Search { filter: self.filter.as_ref(), stop, ..self.search };
        let found = reader.settle(scratch, listed, *aim, &search)?;
        let mut results = Vec::new();
        reader.answer(scratch, found, (1, aim.k), &search, &mut results)?;
        Ok((results.pop().unwrap_or_default(), scratch.walker.work.counts))
    }
}
