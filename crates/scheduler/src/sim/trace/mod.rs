//! What searches did, recorded: tables, queries, and of each task what it read and how long it computes when all of that
//! is in the cache.
//!
//! A recorder gives byte ranges; a cache wants objects that are always touched as a whole. So ranges are widened to lines
//! and cut wherever another range of the table begins or ends: each piece is then touched as a whole or not at all, and
//! caches are exact whatever ranges overlap. Pieces longer than [`BLOCK_LINES`] are cut on, so that cores of a chiplet
//! interleave in its cache also where they read long lists.

mod file;

pub use file::{TraceError, TraceWriter, read};

use crate::policy::MappingId;
use crate::sim::cache::LINE_BYTES;
use std::collections::HashMap;
use std::io;
use std::ops::Range;

/// Most lines of an object: 16 KiB.
pub const BLOCK_LINES: u64 = 256;
/// Most objects of a trace.
const OBJECTS: usize = 1 << 26;

/// How tasks read a table's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Rows and links all over the table, those of one step at once: a graph search.
    Gathered,
    /// In sequence: a list's scan.
    Streamed,
}

/// Takes in what searches did: [`TraceWriter`] to a file, [`Builder`] to memory.
pub trait Record {
    /// A table of so many bytes; tables are numbered from 0 in this order.
    ///
    /// # Errors
    /// If it cannot be written.
    fn table(&mut self, name: &str, access: Access, bytes: u64) -> io::Result<()>;

    /// A query of a table: the tasks that follow. With `leads`, the first task runs before the others (it finds the lists).
    ///
    /// # Errors
    /// If it cannot be written.
    fn query(&mut self, table: u32, leads: bool) -> io::Result<()>;

    /// A task of the query: of the table's list, or of the table as a whole. It computes for `compute_ns` with all it reads
    /// in the cache, and touches `(offset, length)`, in bytes, in this order.
    ///
    /// # Errors
    /// If it cannot be written.
    fn task(&mut self, list: Option<u32>, compute_ns: u64, touched: &[(u64, u32)]) -> io::Result<()>;
}

/// A table of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// As the recorder called it.
    pub name: String,
    /// How it is read.
    pub access: Access,
    /// Bytes that searches may read.
    pub bytes: u64,
}

/// A query of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// Number of its table.
    pub table: u32,
    /// Whether its first task runs before the others.
    pub leads: bool,
    /// Its tasks, at least one.
    pub tasks: Range<u32>,
}

/// A task of a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// What tasks that read the same memory have in common.
    pub id: MappingId,
    /// Time that it computes with all it reads in the cache.
    pub compute_ns: u64,
    /// Lines that it touches.
    pub lines: u64,
    /// Its spans.
    pub spans: Range<usize>,
}

/// Objects that are touched one after the other, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The first.
    pub first: u32,
    /// How many.
    pub count: u32,
}

/// A trace in memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// What was recorded.
    pub source: String,
    /// Whether nothing was recorded: the trace was made up.
    pub synthetic: bool,
    /// Its tables.
    pub tables: Vec<Table>,
    /// Its queries.
    pub queries: Vec<Query>,
    /// Tasks, query by query.
    pub tasks: Vec<Task>,
    /// What is touched, task by task.
    pub spans: Vec<Span>,
    /// Lines of each object.
    pub lines: Vec<u16>,
    /// The first line of each object, for caches that go by address; tables lie one behind the other.
    pub starts: Vec<u64>,
}

/// Lines of a table, from the first to behind the last.
type Lines = (u64, u64);

/// Takes in what searches did, and cuts it into objects.
#[derive(Clone, Debug, Default)]
pub struct Builder {
    trace: Trace,
    /// Of each table, the ranges that were seen, and their numbers.
    seen: Vec<HashMap<Lines, u32>>,
    /// For each task its table; spans hold numbers of ranges until they are cut.
    table_of: Vec<u32>,
    /// Of all tables together.
    bytes: u64,
}

impl Builder {
    /// For a trace of what `source` says.
    pub fn new(source: impl Into<String>, synthetic: bool) -> Self {
        Builder {
            trace: Trace { source: source.into(), synthetic, ..Trace::default() },
            ..Builder::default()
        }
    }

    /// The trace; `None` if it would have more objects than can be handled.
    pub fn finish(self) -> Option<Trace> {
        let Builder { mut trace, seen, table_of, .. } = self;
        let mut cut: Vec<Vec<Span>> = Vec::with_capacity(seen.len());
        let mut base = 0;
        for (table, ranges) in trace.tables.iter().zip(&seen) {
            cut.push(cut_into_objects(ranges, base, &mut trace.starts, &mut trace.lines)?);
            base += table.bytes.div_ceil(LINE_BYTES);
        }
        for (task, &table) in trace.tasks.iter().zip(&table_of) {
            for span in &mut trace.spans[task.spans.clone()] {
                *span = cut[table as usize][span.first as usize];
            }
        }
        Some(trace)
    }
}

/// Cuts a table's ranges where others begin or end, and appends what comes out; the objects of each range.
fn cut_into_objects(
    ranges: &HashMap<Lines, u32>,
    base: u64,
    starts: &mut Vec<u64>,
    lines: &mut Vec<u16>,
) -> Option<Vec<Span>> {
    let mut ends: Vec<(u64, i32)> = ranges.keys().flat_map(|&(from, to)| [(from, 1), (to, -1)]).collect();
    ends.sort_unstable();
    let first = starts.len();
    let mut covering = 0;
    for pair in ends.windows(2) {
        covering += pair[0].1;
        let (mut from, to) = (pair[0].0, pair[1].0);
        if covering == 0 {
            continue;
        }
        if starts.len() + (to - from).div_ceil(BLOCK_LINES) as usize > OBJECTS {
            return None;
        }
        while from < to {
            let length = BLOCK_LINES.min(to - from);
            starts.push(base + from);
            lines.push(length as u16);
            from += length;
        }
    }
    let at = |line: u64| first + starts[first..].partition_point(|&start| start < base + line);
    let mut spans = vec![Span { first: 0, count: 0 }; ranges.len()];
    for (&(from, to), &number) in ranges {
        let first = at(from);
        spans[number as usize] = Span { first: first as u32, count: (at(to) - first) as u32 };
    }
    Some(spans)
}

impl Record for Builder {
    fn table(&mut self, name: &str, access: Access, bytes: u64) -> io::Result<()> {
        self.trace.tables.push(Table { name: name.to_owned(), access, bytes });
        self.seen.push(HashMap::new());
        self.bytes += bytes;
        Ok(())
    }

    fn query(&mut self, table: u32, leads: bool) -> io::Result<()> {
        assert!((table as usize) < self.trace.tables.len(), "table {table} has not been named");
        let next = self.trace.tasks.len() as u32;
        self.trace.queries.push(Query { table, leads, tasks: next..next });
        Ok(())
    }

    fn task(&mut self, list: Option<u32>, compute_ns: u64, touched: &[(u64, u32)]) -> io::Result<()> {
        let query = self.trace.queries.last_mut().expect("a task belongs to a query");
        query.tasks.end += 1;
        let id = list.map_or(MappingId::table(query.table), |list| MappingId::list(query.table, list));
        let seen = &mut self.seen[query.table as usize];
        let bytes = self.trace.tables[query.table as usize].bytes;
        let start = self.trace.spans.len();
        let mut lines = 0;
        for &(offset, length) in touched.iter().filter(|range| range.1 > 0) {
            let end = offset + u64::from(length);
            assert!(end <= bytes, "bytes {offset} to {end} of a table of {bytes}");
            let range = (offset / LINE_BYTES, end.div_ceil(LINE_BYTES));
            let next = seen.len() as u32;
            let number = *seen.entry(range).or_insert(next);
            self.trace.spans.push(Span { first: number, count: 1 });
            lines += range.1 - range.0;
        }
        self.trace.tasks.push(Task { id, compute_ns, lines, spans: start..self.trace.spans.len() });
        self.table_of.push(query.table);
        Ok(())
    }
}
