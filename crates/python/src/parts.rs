//! Many queries, part by part: between parts, signal handlers run. Parts grow until one takes as long as a user would not
//! notice, so that starting threads for each costs nothing that matters.

use crate::errors::Failure;
use crate::watch::Watch;
use lanewise_engine as engine;
use lanewise_engine::Threads;
use lanewise_engine::index::{Counts, Executor, Neighbors, Reader, Search, Vectors};
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

/// The nearest to each query, where how many there are differs from one to the other. Call without the GIL.
pub(crate) fn neighbors(
    reader: &Reader,
    queries: Vectors<'_>,
    how: &Search<'_>,
    threads: Threads,
) -> Result<(Vec<Neighbors>, Counts), Failure> {
    let (mut results, mut counts) = (Vec::new(), Counts::default());
    in_parts(reader.check(queries, how)?, threads, |range| {
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
