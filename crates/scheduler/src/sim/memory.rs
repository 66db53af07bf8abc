//! The memory side of a machine: what a slice of a task finds in its chiplet's cache, and how long the rest takes through
//! the chiplet's link and the socket's memory.
//!
//! Link and memory are servers with a queue: bytes are served in the order in which slices begin, at the part's rate. A
//! slice is short against its task, so cores of a chiplet share its cache and its link by turns.
//! - *Gathered*: a step's rows are fetched together, as many lines at once as the core can have on their way, one latency
//!   after the links that name them; then they are computed with.
//! - *Streamed*: the prefetcher runs ahead; the slowest of computing, the core's stream and the queues counts, and each task
//!   begins with one latency.

use super::cache::{LINE_BYTES, Ranges, Replacement, Sets};
use super::machine::Machine;
use super::trace::{Access, Trace};

/// A slice ends with the object that makes it so long.
const GATHERED_OBJECTS: u32 = 16;
const STREAMED_LINES: u64 = 256;
const WAYS: usize = 16;

/// What went through a chiplet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Lines that were touched.
    pub lines: u64,
    /// Those that were not in the cache.
    pub missed: u64,
    /// Bytes through the link.
    pub link_bytes: u64,
}

#[derive(Clone, Debug)]
enum Cache {
    Objects(Ranges),
    Lines(Sets),
}

/// Where a task is.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cursor {
    /// Spans behind it, and objects of the next one.
    span: usize,
    object: u32,
}

/// What a slice did.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slice {
    pub(super) end_ns: f64,
    /// Of the time to `end_ns`, that which was computing.
    pub(super) compute_ns: f64,
    /// Whether the task has come to its end.
    pub(super) done: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Memory<'a> {
    machine: &'a Machine,
    trace: &'a Trace,
    caches: Vec<Cache>,
    links_free_ns: Vec<f64>,
    free_ns: f64,
    traffic: Vec<Traffic>,
    bytes: u64,
}

impl<'a> Memory<'a> {
    pub(super) fn new(machine: &'a Machine, trace: &'a Trace, seed: u64) -> Self {
        let chiplets = machine.shape.chiplets;
        let lines = machine.cache_lines();
        let cache = |chiplet| match machine.replacement {
            Replacement::Lru => Cache::Objects(Ranges::new(lines, trace.lines.len())),
            other => {
                let ways = WAYS.min(lines as usize);
                Cache::Lines(Sets::new(lines, ways, other, seed ^ chiplet as u64))
            }
        };
        Memory {
            machine,
            trace,
            caches: (0..chiplets).map(cache).collect(),
            links_free_ns: vec![0.0; chiplets],
            free_ns: 0.0,
            traffic: vec![Traffic::default(); chiplets],
            bytes: 0,
        }
    }

    /// What went through each chiplet so far.
    pub(super) fn traffic(&self) -> &[Traffic] {
        &self.traffic
    }

    /// Bytes that came from memory so far.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Runs a task on from `at`, on a core of `chiplet`.
    pub(super) fn slice(&mut self, chiplet: usize, now_ns: f64, task: u32, at: &mut Cursor) -> Slice {
        let task = &self.trace.tasks[task as usize];
        let access = self.trace.tables[(task.id.0 >> 32) as usize].access;
        let spans = &self.trace.spans[task.spans.clone()];
        let first = at.span == 0 && at.object == 0;
        let (mut objects, mut lines, mut missed) = (0, 0u64, 0u64);
        while at.span < spans.len() {
            let enough = match access {
                Access::Gathered => objects >= GATHERED_OBJECTS,
                Access::Streamed => lines >= STREAMED_LINES,
            };
            if enough {
                break;
            }
            let span = spans[at.span];
            let object = span.first + at.object;
            let count = self.trace.lines[object as usize];
            missed += match &mut self.caches[chiplet] {
                Cache::Objects(cache) => u64::from(cache.touch(object, count.into())),
                Cache::Lines(cache) => {
                    let start = self.trace.starts[object as usize];
                    (start..start + u64::from(count)).filter(|&line| !cache.touch(line)).count() as u64
                }
            };
            objects += 1;
            lines += u64::from(count);
            at.object += 1;
            if at.object == span.count {
                *at = Cursor { span: at.span + 1, object: 0 };
            }
        }
        let share = if task.lines == 0 { 1.0 } else { lines as f64 / task.lines as f64 };
        let compute_ns = task.compute_ns as f64 * share;
        let end_ns = now_ns + self.time(chiplet, now_ns, access, compute_ns, missed, first);
        let traffic = &mut self.traffic[chiplet];
        traffic.lines += lines;
        traffic.missed += missed;
        Slice { end_ns, compute_ns, done: at.span == spans.len() }
    }

    /// How long a slice takes that computes for so long and misses so many lines.
    fn time(
        &mut self,
        chiplet: usize,
        now_ns: f64,
        access: Access,
        compute_ns: f64,
        missed: u64,
        first: bool,
    ) -> f64 {
        if missed == 0 {
            return compute_ns;
        }
        let machine = self.machine;
        let bytes = missed * LINE_BYTES;
        self.traffic[chiplet].link_bytes += bytes;
        self.bytes += bytes;
        let link = &mut self.links_free_ns[chiplet];
        *link = link.max(now_ns) + bytes as f64 / machine.link_gb_s;
        self.free_ns = self.free_ns.max(now_ns) + bytes as f64 / machine.memory_gb_s;
        let queues_ns = link.max(self.free_ns) - now_ns;
        match access {
            Access::Gathered => {
                let own_ns = machine.memory_ns * missed as f64 / machine.in_flight;
                compute_ns + machine.memory_ns + own_ns.max(queues_ns)
            }
            Access::Streamed => {
                let latency_ns = if first { machine.memory_ns } else { 0.0 };
                latency_ns + compute_ns.max(bytes as f64 / machine.core_gb_s).max(queues_ns)
            }
        }
    }
}
