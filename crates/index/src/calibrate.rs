//! Measuring which effort reaches which recall, so that users can ask for a recall.
//!
//! Without queries of the user some hundreds of stored vectors serve, one of each of as many equal parts of the rows, each
//! searched for as if it, and its copies, were not in the index. In a graph they count as met before the walk begins: they
//! are never compared or expanded, and their links do not help, as they were made for them: a walk through them would find
//! all neighbours. Who links to them leads on to one other vector instead (see `hnsw::search`), as it would without them.
//! Vectors in upper layers are left out, where a walk could begin at what it looks for; layers are drawn, so that the
//! others are as good a sample. In lists they are dropped from what is found, of which so many more are taken; their part
//! in their list's centroid stays.
//!
//! The efforts form a ladder, each step about 1.4 times the one before, from the least till the queries miss hardly
//! anything or compare an eighth of all vectors (in lists, a half). With a code, one walk tells the recall of each number of candidates:
//! they are the first of the greatest number. What is kept of steps × candidates are the stairs of cost and recall.

use crate::curve::{CERTAIN, Curve, Knob, Point, TABLES, Table, rise, stairs};
use crate::error::CalibrateError;
use crate::executor::Executor;
use crate::filter::Everything;
use crate::flat;
use crate::index::{Index, State};
use crate::interval;
use crate::ivf::kmeans::spread;
use crate::plan::Plan;
use crate::pool::Pool;
use crate::search::{Reader, Scratch, Search};
use crate::space::{Compare, Probe};
use crate::vectors::{Metric, Vectors};
use arc_swap::ArcSwapOption;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

/// Numbers of results that are measured unless told otherwise.
pub const KS: [usize; 3] = [1, 10, 100];
/// Queries: stored vectors that are held out, and the most of the user's that are looked at.
const HELD_OUT: usize = 512;
const MOST: usize = 1024;
/// Fewer of the user's queries vouch for nothing.
pub(crate) const FEWEST: usize = 50;
/// Deviations below the estimate where its lower bound lies: 95 %, one-sided.
const Z: f64 = 1.645;
/// Steps of a ladder at most; the first step above 0 of epsilon.
const STEPS: usize = 40;
const EPSILON: f32 = 0.01;
/// Searches for one in so many of all vectors, or that compare so many, are better exact.
const SHARE: usize = 8;
/// Numbers of candidates for each result.
const OVERSAMPLES: [f32; 6] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0];
/// Copies of a held-out vector that are held out with it; one that has more stays in the company of all of them.
const COPIES: usize = 16;
/// A vector compared at a random place costs as much as so many codes, which are smaller.
const RESCORE: u64 = 4;
/// Queries that share a block of rows; that one task takes; between which the caller is asked whether to go on.
const TOGETHER: usize = 32;
const TASK: usize = 8;
const BATCH: usize = 128;

const UNSTOPPED: &str = "nobody was asked whether to stop";

/// The curve of an index, and what tells whether it still speaks for it.
#[derive(Default)]
pub(crate) struct Tuned {
    curve: ArcSwapOption<Curve>,
    /// Vectors removed or replaced since the index was made or opened.
    removed: AtomicU64,
    /// Held while a first search measures, so that others wait for it and do not measure too.
    alone: Mutex<()>,
}

impl Tuned {
    /// What a file holds: a curve, if there is one, and how many vectors were removed since.
    pub(crate) fn restored(curve: Option<(Curve, u64)>) -> Tuned {
        let (curve, removed) = curve.map_or((None, 0), |(curve, removed)| (Some(curve.into()), removed));
        Tuned { curve: ArcSwapOption::new(curve), removed: removed.into(), alone: Mutex::default() }
    }

    /// The curve as a file keeps it; nothing without one.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let removed = self.removed.load(Ordering::Relaxed);
        self.curve.load().as_ref().map_or(Vec::new(), |curve| curve.bytes(removed))
    }

    /// Counts vectors that were removed or replaced, once readers see it: a curve measured on what they saw before is not
    /// to count them as gone already.
    pub(crate) fn note_removed(&self, count: usize) {
        // Relaxed: a count that nothing else depends on.
        self.removed.fetch_add(count as u64, Ordering::Relaxed);
    }
}

/// Told the queries done of all, and asked whether to go on.
type Proceed<'a> = dyn FnMut(usize, usize) -> ControlFlow<()> + 'a;

impl Index {
    /// The curve that was measured last, if it still speaks for the index: not once more vectors came in than there were,
    /// a quarter was removed or replaced, or lists or code were made anew.
    pub fn curve(&self) -> Option<Arc<Curve>> {
        let state = self.current.load();
        // Relaxed: a count that nothing else depends on.
        let removed = self.tuned.removed.load(Ordering::Relaxed);
        self.tuned.curve.load_full().filter(|curve| curve.speaks_for(state.len(), removed, state.fitted()))
    }

    /// [`curve`](Self::curve), or else a new one by [`calibrate`](Self::calibrate) of stored vectors for the usual `ks`.
    /// Who comes while another measures waits for it.
    ///
    /// # Errors
    /// If `proceed` stops.
    pub fn tuned(
        &self,
        executor: &dyn Executor,
        proceed: &mut Proceed<'_>,
    ) -> Result<Arc<Curve>, CalibrateError> {
        if let Some(curve) = self.curve() {
            return Ok(curve);
        }
        let _alone = self.tuned.alone.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        self.curve().map_or_else(|| self.calibrate(None, &KS, executor, proceed), Ok)
    }

    /// Measures which effort reaches which recall, for searches of `ks` (one to eight, rising) results without a filter;
    /// the index keeps the curve, also in its file.
    ///
    /// `queries` are the user's (50 or more, of which at most 1,024 are looked at); without, 512 stored vectors are held
    /// out in turn. It costs about as much as comparing each query two to five times with all vectors; `proceed` hears
    /// queries × k done of those there are, and may stop. The same curve comes from any executor. Changes go on meanwhile
    /// and are not seen.
    ///
    /// # Errors
    /// If anything about the queries or `ks` is wrong, or `proceed` stops: the curve is then what it was.
    pub fn calibrate(
        &self,
        queries: Option<Vectors<'_>>,
        ks: &[usize],
        executor: &dyn Executor,
        proceed: &mut Proceed<'_>,
    ) -> Result<Arc<Curve>, CalibrateError> {
        let rises = ks.windows(2).all(|pair| pair[0] < pair[1]);
        if !(1..=TABLES).contains(&ks.len()) || ks[0] == 0 || ks[ks.len() - 1] > 10_000 || !rises {
            return Err(CalibrateError::Ks);
        }
        // Before the reader: what is removed in between counts as removed since.
        let removed = self.tuned.removed.load(Ordering::Relaxed);
        let reader = self.reader();
        let trial = Trial::new(&reader, queries, self.params.seed, executor)?;
        let (state, len) = (reader.state(), reader.len());
        let knob = trial.knob;
        let ks: Vec<usize> = ks.iter().copied().filter(|k| knob != Knob::Exact && k * SHARE < len).collect();
        let (mut tables, mut count) = (Vec::new(), 0);
        if let Some(most) = ks.last() {
            let all = trial.count() * (ks.len() + 1);
            let truth = trial.truth(*most, &mut |done| proceed(done, all))?;
            count = truth.len();
            // Where no vector can be held out nothing is known, and searches that ask for a recall are exact.
            for (i, &k) in ks.iter().enumerate().filter(|_| count > 0) {
                let points = trial.climb(k, &truth, &mut || proceed(trial.count() * (i + 1), all))?;
                tables.push(Table { k, points });
            }
        }
        let held_out = queries.is_none();
        let fitted = state.fitted();
        let curve = Curve { knob, held_out, queries: count, len, tables, removed, fitted };
        let curve = Arc::new(curve);
        self.tuned.curve.store(Some(curve.clone()));
        Ok(curve)
    }
}

impl State {
    /// Vectors that lists or code were made of; 0 without.
    pub(crate) fn fitted(&self) -> u64 {
        let of_code = self.coded.as_ref().map_or(0, |coded| coded.fitted);
        self.listed.as_ref().map_or(of_code, |listed| listed.fitted) as u64
    }
}

/// Queries, and the index as it was when they came.
struct Trial<'a> {
    reader: &'a Reader,
    knob: Knob,
    queries: Queries<'a>,
    executor: &'a dyn Executor,
    scratch: Vec<Mutex<Scratch>>,
}

/// A query, and what it should find.
struct Query {
    /// Which of the trial's queries.
    place: usize,
    /// Rows that are not to be found: itself and its copies.
    hidden: Vec<u32>,
    /// Keys of the nearest others, ascending.
    keys: Vec<i32>,
}

enum Queries<'a> {
    Given(Vec<Vectors<'a>>),
    /// Stored vectors.
    Rows(Vec<u32>),
}

/// What a query found with one effort: of each number of candidates the hits, and the work.
#[derive(Clone, Copy, Default)]
struct Found {
    hits: [u32; OVERSAMPLES.len()],
    compared: u64,
    rescored: u64,
}

impl<'a> Trial<'a> {
    fn new(
        reader: &'a Reader,
        queries: Option<Vectors<'a>>,
        seed: u64,
        executor: &'a dyn Executor,
    ) -> Result<Self, CalibrateError> {
        let state = reader.state();
        let State { space, listed, graph, deleted, .. } = state;
        let knob = match () {
            () if listed.is_some() => Knob::Nprobe,
            () if graph.base.is_empty() => Knob::Exact,
            () if space.metric == Metric::InnerProduct => Knob::EfSearch,
            () => Knob::Epsilon,
        };
        let queries = match queries {
            Some(given) => {
                let count = space.check(given).map_err(CalibrateError::Vector)?;
                if count < FEWEST {
                    return Err(CalibrateError::FewQueries { count, fewest: FEWEST });
                }
                let most = count.min(MOST);
                let places = (0..most).map(|i| i * count / most);
                Queries::Given(places.map(|i| given.slice(space.dim, i..i + 1)).collect())
            }
            None => {
                let held = |row: &u32| {
                    let start = *row == graph.first && !graph.base.is_empty();
                    !deleted.contains(*row) && !start && graph.pilots.binary_search(row).is_err()
                };
                let starts = spread(space.len(), HELD_OUT, seed);
                // The next that can be held out, before the next part.
                let ends = starts.iter().skip(1).copied().chain([space.len()]);
                let next = |(start, end): (&usize, usize)| (*start as u32..end as u32).find(held);
                Queries::Rows(starts.iter().zip(ends).filter_map(next).collect())
            }
        };
        let scratch = (0..executor.workers()).map(|_| Mutex::default()).collect();
        Ok(Trial { reader, knob, queries, executor, scratch })
    }

    fn count(&self) -> usize {
        match &self.queries {
            Queries::Given(given) => given.len(),
            Queries::Rows(rows) => rows.len(),
        }
    }

    /// Makes query `i` ready; its row, if it is a stored vector.
    fn load(&self, i: usize, probe: &mut Probe) -> Option<u32> {
        let space = &self.reader.state().space;
        match &self.queries {
            Queries::Given(given) => {
                space.prepare(given[i], probe);
                None
            }
            Queries::Rows(rows) => {
                space.load(rows[i], probe);
                Some(rows[i])
            }
        }
    }

    /// Runs `work` once for each of `tasks`, `at_once` of them between two questions to `proceed`; what each gave.
    fn each<T: Send + Sync>(
        &self,
        tasks: usize,
        at_once: usize,
        proceed: &mut dyn FnMut(usize) -> ControlFlow<()>,
        work: &(dyn Fn(usize, &mut Scratch) -> T + Sync),
    ) -> Result<Vec<T>, CalibrateError> {
        let given: Vec<OnceLock<T>> = (0..tasks).map(|_| OnceLock::new()).collect();
        for first in (0..tasks).step_by(at_once) {
            if proceed(first).is_break() {
                return Err(CalibrateError::Cancelled);
            }
            self.executor.run(at_once.min(tasks - first), &|worker, i| {
                let mut scratch =
                    self.scratch[worker].lock().unwrap_or_else(|poisoned| poisoned.into_inner());
                // Each task runs once.
                let _ = given[first + i].set(work(first + i, &mut scratch));
            });
        }
        Ok(given.into_iter().filter_map(OnceLock::into_inner).collect())
    }

    /// The queries with the nearest `most` of each; without those that a walk could begin at.
    fn truth(
        &self,
        most: usize,
        proceed: &mut dyn FnMut(usize) -> ControlFlow<()>,
    ) -> Result<Vec<Query>, CalibrateError> {
        let State { space, deleted, .. } = self.reader.state();
        let tasks = self.count().div_ceil(TOGETHER);
        let work = |task: usize, _: &mut Scratch| -> Vec<Query> {
            let places = task * TOGETHER..self.count().min((task + 1) * TOGETHER);
            let mut probes: Vec<Probe> = places.clone().map(|_| Probe::default()).collect();
            let mut pools: Vec<Pool> = places.clone().map(|_| Pool::default()).collect();
            let rows: Vec<_> =
                places.clone().zip(&mut probes).map(|(i, probe)| self.load(i, probe)).collect();
            match deleted.count() {
                0 => flat::search(space, &probes, most + 1 + COPIES, &mut pools, &Everything, None),
                _ => flat::search(space, &probes, most + 1 + COPIES, &mut pools, deleted, None),
            }
            .expect(UNSTOPPED);
            let query = |(((place, row), pool), probe): (((usize, Option<u32>), &Pool), &Probe)| {
                let near: Vec<u32> = pool.entries().iter().map(|entry| entry.id()).collect();
                let of_row =
                    |row: u32| near.iter().copied().filter(|&other| space.same(row, other)).collect();
                let mut hidden: Vec<u32> = row.map_or(Vec::new(), of_row);
                // By inner product a vector need not be near itself.
                if let Some(row) = row.filter(|row| near.len() < most + hidden.len() || !hidden.contains(row))
                {
                    hidden = vec![row];
                }
                let others = near.into_iter().filter(|id| !hidden.contains(id));
                let ids: Vec<u32> = others.take(most).collect();
                // By the kernel that what was found is compared by, too: equal vectors have equal keys.
                let mut keys = vec![0; ids.len()];
                space.keys_of(probe, &ids, &mut keys);
                keys.sort_unstable();
                let walkable = hidden.iter().all(|&row| self.can_be_hidden(row));
                walkable.then_some(Query { place, hidden, keys })
            };
            places.zip(rows).zip(&pools).zip(&probes).filter_map(query).collect()
        };
        let at_once = self.executor.workers();
        let parts = self.each(tasks, at_once, &mut |task| proceed(task * TOGETHER), &work)?;
        Ok(parts.into_iter().flatten().collect())
    }

    /// Whether no walk of the base layer begins at `row`.
    fn can_be_hidden(&self, row: u32) -> bool {
        let graph = &self.reader.state().graph;
        graph.base.is_empty() || (row != graph.first && graph.pilots.binary_search(&row).is_err())
    }

    /// The efforts for `k` results, from the least to one that misses hardly anything or costs too much.
    fn climb(
        &self,
        k: usize,
        truth: &[Query],
        proceed: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<Vec<Point>, CalibrateError> {
        let (len, count) = (self.reader.len(), truth.len());
        let coded = self.coded();
        let mut columns: Vec<Vec<Point>> = vec![Vec::new(); OVERSAMPLES.len()];
        let mut last = None;
        for effort in (0..STEPS).map_while(|step| self.effort(k, step)) {
            if last.replace(effort) == Some(effort) {
                continue;
            }
            let search = self.search(k, effort);
            let work = |task: usize, scratch: &mut Scratch| -> Vec<Found> {
                let range = task * TASK..count.min((task + 1) * TASK);
                range.map(|i| self.found(&truth[i], &search, scratch)).collect()
            };
            let parts = self.each(count.div_ceil(TASK), BATCH / TASK, &mut |_| proceed(), &work)?;
            let found: Vec<Found> = parts.into_iter().flatten().collect();
            let compared: u64 = found.iter().map(|found| found.compared).sum();
            let mut best: f32 = 0.0;
            for (i, &oversample) in OVERSAMPLES.iter().enumerate() {
                let wanted = (k as f32 * oversample) as u64;
                // A walk that keeps fewer gives no more, and without a code there is nothing to choose.
                if (!coded && i > 0) || (self.knob == Knob::EfSearch && wanted > effort as u64 && i > 0) {
                    break;
                }
                let hits = found.iter().map(|found| (found.hits[i], k as u32));
                let estimate = interval::estimate(hits, Z);
                let rescored: u64 = found.iter().map(|found| found.rescored.min(wanted)).sum();
                best = best.max(estimate.recall as f32);
                columns[i].push(Point {
                    effort,
                    oversample: coded.then_some(oversample),
                    recall: estimate.recall as f32,
                    low: estimate.low as f32,
                    distances: (compared + RESCORE * rescored) as f32 / count as f32,
                });
            }
            // In order more can be compared before comparing all is better.
            let most = if self.knob == Knob::Nprobe { len / 2 } else { len / SHARE };
            if best >= CERTAIN || compared >= (most * count) as u64 {
                break;
            }
        }
        for points in &mut columns {
            rise(points);
        }
        Ok(stairs(columns.concat()))
    }

    /// Whether there are candidates of a code to be ordered.
    fn coded(&self) -> bool {
        let State { coded, listed, .. } = self.reader.state();
        listed.as_ref().map_or(coded.is_some(), |listed| !listed.exact())
    }

    /// A step of the ladder for `k` results, if it is one.
    fn effort(&self, k: usize, step: usize) -> Option<f32> {
        let rise = 2f32.powf(step as f32 / 2.0);
        let state = self.reader.state();
        match self.knob {
            Knob::Exact => None,
            Knob::Epsilon if step == 0 => Some(0.0),
            Knob::Epsilon => Some(EPSILON * rise / 2f32.sqrt()).filter(|&epsilon| epsilon <= 10.0),
            Knob::EfSearch => {
                Some((k as f32 * rise).ceil()).filter(|&ef| ef as usize * SHARE < state.space.len())
            }
            Knob::Nprobe => {
                let nlist = state.listed.as_ref().map_or(0, |listed| listed.ivf.lists().len());
                // Lists that seldom hold `k` are followed by others, as if more had been asked for.
                let first = (2 * k * nlist).div_ceil(state.space.len()) as f32;
                // The step that passes the last list scans them all.
                let wanted = first * rise;
                (wanted < nlist as f32 * 2f32.sqrt()).then(|| wanted.ceil().min(nlist as f32))
            }
        }
    }

    /// The search whose candidates have those of all numbers of candidates in front.
    fn search(&self, k: usize, effort: f32) -> Search<'static> {
        let most = OVERSAMPLES[OVERSAMPLES.len() - 1];
        let search = Search { oversample: Some(most), ..Search::new(k) };
        match self.knob {
            Knob::Exact => search,
            Knob::Epsilon => search.epsilon(effort),
            Knob::EfSearch => Search { oversample: Some(effort / k as f32), ..search.ef(effort as usize) },
            Knob::Nprobe => search.nprobe(effort as usize),
        }
    }

    /// What `query` finds of its nearest.
    fn found(&self, query: &Query, search: &Search<'_>, scratch: &mut Scratch) -> Found {
        let state = self.reader.state();
        let k = search.k;
        scratch.probes.resize_with(scratch.probes.len().max(1), Probe::default);
        self.load(query.place, &mut scratch.probes[0]);
        let kth = query.keys[k - 1];
        scratch.walker.work.counts = Default::default();
        let walked = match &state.listed {
            Some(listed) => self.reader.scan(scratch, listed, k + query.hidden.len(), search),
            None => {
                scratch.walker.hidden.clone_from(&query.hidden);
                let walked = self.reader.approximate(scratch, Plan::Graph, k, search);
                scratch.walker.hidden.clear();
                walked
            }
        }
        .expect(UNSTOPPED);
        let compared = scratch.walker.work.counts.distances;
        if !walked {
            // A search then compares all.
            let compared = compared + state.space.len() as u64;
            return Found { hits: [k as u32; OVERSAMPLES.len()], compared, rescored: 0 };
        }
        let Scratch { walker, probes, ids, keys, .. } = scratch;
        let coded = self.coded();
        if !coded {
            ids.clear();
            ids.extend(walker.pool.entries().iter().map(|entry| entry.id()));
            keys.resize(ids.len(), 0);
            state.space.keys_of(&probes[0], ids, keys);
        }
        let rescored = if coded { ids.len() as u64 } else { 0 };
        let others = ids.iter().zip(&*keys).filter(|(id, _)| !query.hidden.contains(id));
        let near: Vec<bool> = others.map(|(_, key)| *key <= kth).collect();
        let hits = OVERSAMPLES.map(|oversample| {
            let first = near.iter().take((k as f32 * oversample).ceil() as usize);
            (first.filter(|near| **near).count() as u32).min(k as u32)
        });
        Found { hits, compared: compared - rescored, rescored }
    }
}
