//! Searches: many queries over threads, or one on the caller's own.

use crate::threads::Threads;
use lanewise_index::{Counts, Executor, Neighbors, Reader, Scratch, Search, SearchError, Vectors};
use std::cell::RefCell;
use std::sync::Mutex;

/// The most queries that one task takes: enough to share an exact search's blocks of rows.
const PER_TASK: usize = 32;

/// The min(k, len) nearest vectors to each query, in the order of the queries, and the work done. All queries see the
/// same vectors, whatever is added meanwhile.
///
/// # Errors
/// As [`Reader::search`]; nothing is run if any query is wrong.
pub fn search(
    reader: &Reader,
    queries: Vectors<'_>,
    how: &Search,
    threads: Threads,
) -> Result<(Vec<Neighbors>, Counts), SearchError> {
    // Kept per thread, not per index: a thread that calls again finds its memory warm, whatever index it asks.
    thread_local! {
        static SCRATCH: RefCell<Scratch> = RefCell::default();
    }
    let count = reader.check(queries, how)?;
    // Few queries are spread evenly, a few tasks to each thread.
    let per_task = count.div_ceil(4 * threads.workers()).min(PER_TASK);
    let tasks = count.div_ceil(per_task);
    let parts: Vec<Mutex<(Vec<Neighbors>, Counts)>> = (0..tasks).map(|_| Mutex::default()).collect();
    threads.run(tasks, &|_, task| {
        let range = task * per_task..count.min((task + 1) * per_task);
        let part = queries.slice(reader.dim(), range);
        let found = SCRATCH.with_borrow_mut(|scratch| reader.search(part, how, scratch));
        *parts[task].lock().expect("no task panics") = found.expect("the queries were checked");
    });
    let mut results = Vec::with_capacity(count);
    let mut counts = Counts::default();
    for part in parts {
        let (neighbors, part) = part.into_inner().expect("no task panics");
        results.extend(neighbors);
        counts += part;
    }
    Ok((results, counts))
}
