//! Searching an index as it was at one moment.

use crate::error::SearchError;
use crate::flat;
use crate::hnsw::search::{Beam, Counts, Walker};
use crate::index::State;
use crate::pool::Pool;
use crate::space::{Compare, Probe};
use crate::vectors::{Metric, Vectors};
use std::sync::Arc;

/// Searches that keep one in so many of all vectors are exact.
const EXACT_SHARE: usize = 8;

/// What to look for, and how hard.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Search {
    /// How many vectors to find.
    pub k: usize,
    /// HNSW: candidates kept while walking the graph; less than `k` counts as `k`.
    pub ef_search: usize,
    /// HNSW, in place of `ef_search`: the walk goes on as long as there are candidates nearer than `1 + epsilon` times the
    /// `k`-th nearest so far (not squared where distances are squares). Adapts to how hard a query is, so that it finds
    /// more for the same work; 0 to 10.
    pub epsilon: Option<f32>,
}

impl Search {
    /// The nearest `k`, with the usual effort.
    pub fn new(k: usize) -> Self {
        Search { k, ef_search: 64, epsilon: None }
    }

    /// The same with another `ef_search`.
    pub fn ef(self, ef_search: usize) -> Self {
        Search { ef_search, ..self }
    }

    /// The same with another `epsilon`.
    pub fn epsilon(self, epsilon: f32) -> Self {
        Search { epsilon: Some(epsilon), ..self }
    }
}

/// The results of one query, nearest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Neighbors {
    /// Ids of the vectors found.
    pub ids: Vec<i64>,
    /// Their distances, ascending, by the index's metric.
    pub distances: Vec<f32>,
}

/// The memory of searches, reused from one to the next; not tied to an index. One per thread.
#[derive(Default)]
pub struct Scratch {
    walker: Walker,
    probes: Vec<Probe>,
    pools: Vec<Pool>,
}

/// An index as it was at one moment. Whatever is added later, searches through the same reader see the same vectors.
#[derive(Clone)]
pub struct Reader(Arc<State>);

impl Reader {
    pub(crate) fn new(state: Arc<State>) -> Reader {
        Reader(state)
    }

    /// Number of vectors.
    pub fn len(&self) -> usize {
        self.0.space.len()
    }

    /// Whether there is no vector.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Dimensions of a vector; bits for bits.
    pub fn dim(&self) -> usize {
        self.0.space.dim
    }

    /// The min(k, len) nearest vectors to each query, and the work done. Exact if the kind is flat.
    ///
    /// # Errors
    /// If anything about the queries is wrong, or `k` or `ef_search` is zero.
    pub fn search(
        &self,
        queries: Vectors<'_>,
        search: &Search,
        scratch: &mut Scratch,
    ) -> Result<(Vec<Neighbors>, Counts), SearchError> {
        let State { space, graph, .. } = &*self.0;
        let count = self.check(queries, search)?;
        let k = search.k.min(self.len());
        let beam = match search.epsilon {
            // Squared where distances are.
            Some(epsilon) => Beam::adaptive(self.len() / EXACT_SHARE, k.max(1), space.slack(1.0 + epsilon)),
            None => Beam::new(search.ef_search.max(k)),
        };
        // A walk that keeps an eighth of all vectors compares most of them, at random places: in order is cheaper.
        let least = if search.epsilon.is_some() { k } else { search.ef_search.max(k) };
        let walks = !graph.base.is_empty() && k > 0 && least < self.len() / EXACT_SHARE;
        let mut results = Vec::with_capacity(count);
        let mut counts = Counts::default();
        // Together only as many as share a block of rows while it is in cache.
        let together = if walks { 1 } else { 32 };
        for first in (0..count).step_by(together) {
            let range = first..count.min(first + together);
            scratch.probes.resize_with(range.len().max(scratch.probes.len()), Probe::default);
            for (probe, i) in scratch.probes.iter_mut().zip(range.clone()) {
                space.prepare(queries.slice(space.dim, i..i + 1), probe);
            }
            if walks {
                scratch.walker.counts = Counts::default();
                let walker = &mut scratch.walker;
                walker.search(graph, space, &scratch.probes[0], beam);
                counts += walker.counts;
                if walker.pool.entries().len() >= k {
                    results.push(self.neighbors(&walker.pool, k));
                    continue;
                }
                // The graph did not reach k vectors (many identical ones can hide each other): exact then.
            }
            let probes = &scratch.probes[..range.len()];
            scratch.pools.resize_with(range.len().max(scratch.pools.len()), Pool::default);
            flat::search(space, probes, k, &mut scratch.pools[..range.len()]);
            counts.distances += (self.len() * range.len()) as u64;
            results.extend(scratch.pools[..range.len()].iter().map(|pool| self.neighbors(pool, k)));
        }
        Ok((results, counts))
    }

    /// Checks a search without running it; the number of queries.
    ///
    /// # Errors
    /// As [`search`](Self::search).
    pub fn check(&self, queries: Vectors<'_>, search: &Search) -> Result<usize, SearchError> {
        let count = self.0.space.check(queries)?;
        match () {
            () if count == 0 => Err(SearchError::Empty),
            () if search.k == 0 => Err(SearchError::K),
            () if search.ef_search == 0 => Err(SearchError::EfSearch),
            () if search.epsilon.is_some_and(|e| !(0.0..=10.0).contains(&e)) => Err(SearchError::Epsilon),
            () if search.epsilon.is_some() && self.0.space.metric == Metric::InnerProduct => {
                Err(SearchError::EpsilonOfInnerProduct)
            }
            () => Ok(count),
        }
    }

    fn neighbors(&self, pool: &Pool, k: usize) -> Neighbors {
        let State { space, ids, .. } = &*self.0;
        let best = &pool.entries()[..k.min(pool.entries().len())];
        let id = |position: u32| match ids.get(position as usize) {
            Some(&id) => id,
            None => i64::from(position),
        };
        Neighbors {
            ids: best.iter().map(|e| id(e.id())).collect(),
            distances: best.iter().map(|e| space.distance(e.key())).collect(),
        }
    }
}
