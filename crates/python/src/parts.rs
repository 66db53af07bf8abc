//! Many queries, part by part: between parts, signal handlers run. Parts grow until one takes as long as a user would not
//! notice, so that starting threads for each costs nothing that matters.

use crate::errors::Failure;
use crate::watch::Watch;
use lanewise_engine as engine;
use lanewise_engine::Threads;
use lanewise_engine::index::{Counts, Executor, Monitor, Neighbors, Reader, Search, Vectors};
use std::ops::Range;
use std::time::{Duration, Instant};

/// Runs `work` on all of `count` queries. Call without the GIL.
pub(crate) fn in_parts(
    count: usize,
    threads: Threads,
    mut work: impl FnMut(Range<usize>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    const LONG: Duration = Duration::from_millis(50);
    let mut watch = Watch::new(None);
    let mut part_len = 32 * threads.workers();
    let mut first = 0;
    while first < count {
        let range = first..count.min(first + part_len);
        first = range.end;
        let start = now();
        work(range)?;
        if start.elapsed() < LONG {
            part_len *= 2;
        }
        if watch.proceed(first).is_break() {
            return Err(Failure::Stopped(watch.raised));
        }
    }
    Ok(())
}

/// Found vectors, query after query.
pub(crate) struct Found {
    pub(crate) ids: Vec<i64>,
    pub(crate) distances: Vec<f32>,
    /// Results for each query.
    pub(crate) k: usize,
    pub(crate) counts: Counts,
}

/// The results of all queries, of the same number each; `monitor` may sample them. Call without the GIL.
pub(crate) fn nearest(
    reader: &Reader,
    queries: Vectors<'_>,
    how: &Search,
    threads: Threads,
    monitor: Option<&Monitor>,
) -> Result<Found, Failure> {
    let count = reader.check(queries, how)?;
    let k = how.k.min(how.filter.map_or(reader.len(), |filter| filter.matches()));
    let results = count.checked_mul(k).ok_or(Failure::Memory(usize::MAX))?;
    let bytes = results.saturating_mul(size_of::<i64>() + size_of::<f32>());
    let mut found = Found { ids: Vec::new(), distances: Vec::new(), k, counts: Counts::default() };
    found.ids.try_reserve_exact(results).map_err(|_| Failure::Memory(bytes))?;
    found.distances.try_reserve_exact(results).map_err(|_| Failure::Memory(bytes))?;
    in_parts(count, threads, |range| {
        let part = queries.slice(reader.dim(), range);
        let (results, counts) = engine::search(reader, part, how, threads)?;
        found.counts += counts;
        if let Some(monitor) = monitor {
            engine::observe(monitor, reader, part, how, &results, threads);
        }
        for neighbors in results {
            found.ids.extend(neighbors.ids);
            found.distances.extend(neighbors.distances);
        }
        Ok(())
    })?;
    Ok(found)
}

/// The nearest to each query, where how many there are differs from one to the other. Call without the GIL.
///
/// # Errors
/// As a search, and if the results of all have no room. It is asked for and given back: each query's are on their own.
pub(crate) fn neighbors(
    reader: &Reader,
    queries: Vectors<'_>,
    how: &Search<'_>,
    threads: Threads,
) -> Result<(Vec<Neighbors>, Counts), Failure> {
    let count = reader.check(queries, how)?;
    let k = how.k.min(how.filter.map_or(reader.len(), |filter| filter.matches()));
    let bytes = count.saturating_mul(k).saturating_mul(size_of::<i64>() + size_of::<f32>());
    Vec::<u8>::new().try_reserve_exact(bytes).map_err(|_| Failure::Memory(bytes))?;
    let (mut results, mut counts) = (Vec::new(), Counts::default());
    in_parts(count, threads, |range| {
        let (found, work) = engine::search(reader, queries.slice(reader.dim(), range), how, threads)?;
        results.extend(found);
        counts += work;
        Ok(())
    })?;
    Ok((results, counts))
}

#[expect(clippy::disallowed_methods, reason = "an edge of the system")]
fn now() -> Instant {
    Instant::now()
}
