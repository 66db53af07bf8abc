//! Searches written down for the simulator: what each task reads, and how long it computes when all of that is in the cache.

use lanewise_index::{Layout, Plan, Reader, Scratch, Search, SearchError, Touch, Vectors};
use lanewise_scheduler::sim::trace::{Access, Record};
use std::io;
use std::sync::Arc;

/// A task is run so often; the shortest time counts. The first time brings what it reads into the cache.
const TIMES: usize = 4;

/// Why searches were not recorded.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// Something about them is wrong.
    #[error(transparent)]
    Search(#[from] SearchError),
    /// The record cannot be written.
    #[error(transparent)]
    Write(#[from] io::Error),
}

/// Runs the queries, one by one, and writes them to `into` as those of its table number `table`, which is made with
/// `name`. `now_ns` is a clock that never goes back.
///
/// A query that scans lists becomes a task that chooses them and one for each; what is read when these are merged goes to
/// the last.
///
/// # Errors
/// As [`Reader::search`], or if the record cannot be written.
pub fn record(
    reader: &Reader,
    queries: Vectors<'_>,
    how: &Search<'_>,
    (table, name): (u32, &str),
    now_ns: &dyn Fn() -> u64,
    into: &mut impl Record,
) -> Result<(), RecordError> {
    let count = reader.check(queries, how)?;
    let plan = reader.plan(how);
    let listed = plan == Plan::Lists;
    let access = match plan {
        Plan::Graph | Plan::FilteredGraph => Access::Gathered,
        Plan::Exact | Plan::Codes | Plan::Lists => Access::Streamed,
    };
    let layout = Arc::new(reader.layout());
    into.table(name, access, layout.end())?;
    let mut scratch = Scratch::default();
    for i in 0..count {
        let query = queries.slice(reader.dim(), i..i + 1);
        if listed {
            let (probed, ns, read) =
                measured((&mut scratch, &layout), now_ns, |scratch| reader.probe(query, how, scratch))?;
            let probed = probed.expect("the plan says lists");
            into.query(table, true)?;
            into.task(None, ns, &ranges(&read))?;
            let lists: Vec<u32> = probed.lists().collect();
            let (mut tasks, mut partials) = (Vec::new(), Vec::new());
            for i in 0..lists.len() {
                let (partial, ns, read) =
                    measured((&mut scratch, &layout), now_ns, |scratch| Ok(probed.scan(i, scratch)))?;
                partials.push(partial);
                tasks.push((ns, read));
            }
            let merged = measured((&mut scratch, &layout), now_ns, |scratch| {
                probed.merge(&partials, how.stop, scratch)
            })?;
            if let Some(last) = tasks.last_mut() {
                last.0 += merged.1;
                last.1.extend(merged.2);
            }
            for (list, (ns, read)) in lists.into_iter().zip(tasks) {
                into.task(Some(list), ns, &ranges(&read))?;
            }
        } else {
            let (_, ns, read) =
                measured((&mut scratch, &layout), now_ns, |scratch| reader.search(query, how, scratch))?;
            into.query(table, false)?;
            into.task(None, ns, &ranges(&read))?;
        }
    }
    Ok(())
}

/// What `step` gives, how long it takes with all in the cache, and what it reads.
fn measured<T>(
    (scratch, layout): (&mut Scratch, &Arc<Layout>),
    now_ns: &dyn Fn() -> u64,
    mut step: impl FnMut(&mut Scratch) -> Result<T, SearchError>,
) -> Result<(T, u64, Vec<Touch>), SearchError> {
    let mut shortest = u64::MAX;
    scratch.record(Some(layout.clone()));
    let mut value = step(scratch)?;
    let read = scratch.recorded();
    // Writing down takes time too.
    scratch.record(None);
    for _ in 1..TIMES {
        let start_ns = now_ns();
        value = step(scratch)?;
        shortest = shortest.min(now_ns() - start_ns);
    }
    Ok((value, shortest, read))
}

fn ranges(read: &[Touch]) -> Vec<(u64, u32)> {
    // A block or list of more than 4 GiB comes in parts.
    const MOST: u64 = u32::MAX as u64;
    let parts = |touch: &Touch| {
        let (offset, bytes) = (touch.offset, touch.bytes);
        (0..bytes.div_ceil(MOST)).map(move |i| (offset + i * MOST, (bytes - i * MOST).min(MOST) as u32))
    };
    read.iter().flat_map(parts).collect()
}
