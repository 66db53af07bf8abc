//! Searches: many queries over threads, or one on the caller's own.

use crate::threads::Threads;
use lanewise_index::{
    Counts, Executor, Monitor, Neighbors, Pages, Reader, Scratch, Search, SearchError, Vectors,
};
use std::cell::RefCell;
use std::num::NonZeroUsize;
use std::sync::OnceLock;

/// The most queries that one task takes: enough to share an exact search's blocks of rows.
const PER_TASK: usize = 32;

// Kept per thread, not per index: a thread that calls again finds its memory warm, whatever index it asks.
thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

/// Calls `f` with this thread's memory.
pub(crate) fn with_scratch<R>(f: impl FnOnce(&mut Scratch) -> R) -> R {
    SCRATCH.with_borrow_mut(f)
}

/// The min(k, len) nearest vectors to each query, in the order of the queries, and the work done. All queries see the
/// same vectors, whatever is added meanwhile.
///
/// # Errors
/// As [`Reader::search`]; nothing is run if any query is wrong, nothing given if any is stopped.
pub fn search(
    reader: &Reader,
    queries: Vectors<'_>,
    how: &Search,
    threads: Threads,
) -> Result<(Vec<Neighbors>, Counts), SearchError> {
    reader.check(queries, how)?;
    in_tasks(reader, queries, threads, |part, scratch| reader.search(part, how, scratch))
}

/// All vectors within `radius` of each query, up to `limit`, as [`search`] for the rest.
///
/// # Errors
/// As [`Reader::within`]; nothing is run if any query is wrong, nothing given if any is stopped.
pub fn search_within(
    reader: &Reader,
    queries: Vectors<'_>,
    radius: f32,
    limit: Option<NonZeroUsize>,
    how: &Search,
    threads: Threads,
) -> Result<(Vec<Neighbors>, Counts), SearchError> {
    reader.check_within(queries, radius, how)?;
    in_tasks(reader, queries, threads, |part, scratch| reader.within(part, radius, limit, how, scratch))
}

/// [`Pages::next_page`] with this thread's memory.
///
/// # Errors
/// As [`Pages::next_page`].
pub fn next_page(pages: &mut Pages) -> Result<Option<(Neighbors, Counts)>, SearchError> {
    with_scratch(|scratch| pages.next_page(scratch))
}

/// Runs `work` on parts of the queries, which were checked: it fails only where it is stopped. The results in the order of
/// the queries.
fn in_tasks(
    reader: &Reader,
    queries: Vectors<'_>,
    threads: Threads,
    work: impl Fn(Vectors<'_>, &mut Scratch) -> Result<(Vec<Neighbors>, Counts), SearchError> + Sync,
) -> Result<(Vec<Neighbors>, Counts), SearchError> {
    let count = queries.count(reader.dim());
    // Few queries are spread evenly, a few tasks to each thread.
    let per_task = count.div_ceil(4 * threads.workers()).min(PER_TASK);
    let tasks = count.div_ceil(per_task);
    let parts: Vec<OnceLock<_>> = (0..tasks).map(|_| OnceLock::new()).collect();
    threads.run(tasks, &|_, task| {
        let range = task * per_task..count.min((task + 1) * per_task);
        let part = queries.slice(reader.dim(), range);
        let found = with_scratch(|scratch| work(part, scratch));
        // Each task runs once.
        let _ = parts[task].set(found);
    });
    let mut results = Vec::with_capacity(count);
    let mut counts = Counts::default();
    for part in parts.into_iter().filter_map(OnceLock::into_inner) {
        let (neighbors, part) = part?;
        results.extend(neighbors);
        counts += part;
    }
    Ok((results, counts))
}

/// Lets `monitor` sample queries that [`search`] answered with `found`: those it chooses are searched exactly.
///
/// # Panics
/// If `queries` and `found` do not belong together, or the search would be refused.
pub fn observe(
    monitor: &Monitor,
    reader: &Reader,
    queries: Vectors<'_>,
    how: &Search,
    found: &[Neighbors],
    threads: Threads,
) {
    let sample = monitor.sample(found.len());
    let seen: Vec<OnceLock<_>> = sample.iter().map(|_| OnceLock::new()).collect();
    threads.run(sample.len(), &|_, i| {
        let query = queries.slice(reader.dim(), sample[i]..sample[i] + 1);
        let hits = with_scratch(|scratch| reader.hits(query, how, &found[sample[i]], scratch));
        // Each task runs once.
        let _ = seen[i].set(hits.expect("the queries were checked"));
    });
    // In the queries' order, whoever was first.
    monitor.note(seen.into_iter().filter_map(OnceLock::into_inner));
}
