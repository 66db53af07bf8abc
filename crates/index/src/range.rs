//! Range search: all vectors within a radius of a query.
//!
//! Where the plan is exact, one pass over all that may be results keeps those within. Else the nearest are looked for,
//! each time four times as many, until the last found lies beyond the radius: the last search is most of the work, and
//! what lies within is found as well as that search finds its nearest. As more are looked for the plan may become exact.

use crate::error::SearchError;
use crate::flat;
use crate::index::State;
use crate::plan::Plan;
use crate::pool::Pool;
use crate::record::Work;
use crate::search::{Counts, Neighbors, Reader, Scratch, Search};
use crate::space::{Compare, Probe};
use crate::stop::Stopped;
use crate::vectors::Vectors;
use std::num::NonZeroUsize;

/// How many times as many are looked for when the last found is still within.
pub(crate) const WIDER: usize = 4;

/// Queries that share a block of rows while it is in cache.
const TOGETHER: usize = 32;

impl Reader {
    /// All vectors within `radius` of each query, nearest first: those whose distance, as the index reports it, is at
    /// most that. Smaller is nearer for every metric: inner products are negated, so a radius of -0.8 asks for products
    /// of at least 0.8. `search.k` is how many are looked for at first (it matters for speed alone), `limit` how many come
    /// at most. Exact if the kind is flat and there is no code.
    ///
    /// The counts say which plan the last search of each query had.
    ///
    /// # Errors
    /// As [`search`](Self::search), or if `radius` is not a number.
    pub fn within(
        &self,
        queries: Vectors<'_>,
        radius: f32,
        limit: Option<NonZeroUsize>,
        search: &Search<'_>,
        scratch: &mut Scratch,
    ) -> Result<(Vec<Neighbors>, Counts), SearchError> {
        let count = self.check_within(queries, radius, search)?;
        scratch.begin(self.state().version);
        let limit = limit.map_or(usize::MAX, NonZeroUsize::get);
        let mut results = vec![Neighbors::default(); count];
        let mut counts = Counts::default();
        let mut exact = Vec::new();
        for (place, result) in results.iter_mut().enumerate() {
            let query = queries.slice(self.dim(), place..place + 1);
            match self.widen(query, radius, limit, search, scratch, &mut counts)? {
                Some(found) => *result = found,
                None => exact.push(place),
            }
        }
        scratch.walker.work.counts = Counts::default();
        for places in exact.chunks(TOGETHER) {
            let part = places.iter().map(|&place| queries.slice(self.dim(), place..place + 1));
            let found = self.scan_within(part, radius, limit, search, &mut scratch.walker.work)?;
            places.iter().zip(found).for_each(|(&place, found)| results[place] = found);
        }
        counts += scratch.walker.work.counts;
        Ok((results, counts))
    }

    /// Checks a range search without running it; the number of queries.
    ///
    /// # Errors
    /// As [`within`](Self::within).
    pub fn check_within(
        &self,
        queries: Vectors<'_>,
        radius: f32,
        search: &Search<'_>,
    ) -> Result<usize, SearchError> {
        let count = self.check(queries, search)?;
        if radius.is_nan() { Err(SearchError::Radius) } else { Ok(count) }
    }

    /// Looks for more and more of the nearest to one query until the last is beyond `radius`, there are `limit`, or there
    /// are no others; `None` if comparing all is the better plan.
    fn widen(
        &self,
        query: Vectors<'_>,
        radius: f32,
        limit: usize,
        search: &Search<'_>,
        scratch: &mut Scratch,
        counts: &mut Counts,
    ) -> Result<Option<Neighbors>, SearchError> {
        let most = self.matches(search).min(limit);
        let mut k = search.k;
        loop {
            k = k.min(most.max(1));
            let how = Search { k, ..*search };
            if self.plan(&how) == Plan::Exact {
                return Ok(None);
            }
            let (mut found, work) = self.search(query, &how, scratch)?;
            let mut found = found.pop().unwrap_or_default();
            counts.hops += work.hops;
            counts.distances += work.distances;
            counts.bytes += work.bytes;
            if k >= most || found.distances.last().is_some_and(|&last| last > radius) {
                *counts += Counts { hops: 0, distances: 0, bytes: 0, ..work };
                let inside = found.distances.partition_point(|&distance| distance <= radius);
                found.ids.truncate(inside);
                found.distances.truncate(inside);
                return Ok(Some(found));
            }
            k = k.saturating_mul(WIDER);
        }
    }

    /// All within `radius` of each query, by comparing all that may be results.
    fn scan_within<'q>(
        &self,
        queries: impl Iterator<Item = Vectors<'q>>,
        radius: f32,
        limit: usize,
        search: &Search<'_>,
        work: &mut Work,
    ) -> Result<Vec<Neighbors>, Stopped> {
        let State { space, deleted, .. } = self.state();
        let probes: Vec<Probe> = queries
            .map(|query| {
                let mut probe = Probe::default();
                space.prepare(query, &mut probe);
                probe
            })
            .collect();
        let mut pools: Vec<Pool> = probes.iter().map(|_| Pool::default()).collect();
        let within = |key: i32| space.distance(key) <= radius;
        let stop = search.stop;
        match search.filter {
            Some(filter) => {
                flat::search_among(space, &probes, limit, &mut pools, filter.rows(), within, stop)?;
                work.scanned(space, (filter.rows(), filter.matches()), probes.len());
            }
            None => {
                let live = || (0..space.len() as u32).filter(|&row| !deleted.contains(row));
                flat::search_among(space, &probes, limit, &mut pools, live(), within, stop)?;
                work.scanned(space, (live(), self.len()), probes.len());
            }
        }
        work.counts.exact += probes.len() as u64;
        Ok(pools.iter().map(|pool| self.neighbors(pool, limit)).collect())
    }
}
