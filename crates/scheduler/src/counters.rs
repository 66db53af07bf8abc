//! What workers did, counted by each for itself: a counter is written by its worker alone, so it costs a plain addition.

use crate::mapping::Sample;
use crate::policy::MappingId;
use crate::sync::{AtomicU64, Mutex, Ordering};
use crate::task::{Stolen, Trip};
use lanewise_topology::ChipletId;
use std::collections::HashMap;
use std::sync::PoisonError;

/// Of one worker.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    tasks: AtomicU64,
    skipped: AtomicU64,
    panicked: AtomicU64,
    busy_ns: AtomicU64,
    waited_ns: AtomicU64,
    bytes: AtomicU64,
    near: AtomicU64,
    across: AtomicU64,
    sleeps: AtomicU64,
    /// By mapping id, since the monitor last took them; `None` where there is no monitor. Its lock is contended once a
    /// window.
    samples: Option<Mutex<HashMap<MappingId, Sample>>>,
}

/// A task that ran.
pub(crate) struct Ran {
    pub(crate) trip: Trip,
    pub(crate) panicked: bool,
}

/// What a worker has done since it started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkerStats {
    /// Tasks that it ran, to their end or to a panic.
    pub tasks: u64,
    /// Tasks that it took but did not run, since they were cancelled or late.
    pub skipped: u64,
    /// Panics that it caught.
    pub panicked: u64,
    /// Time that tasks ran.
    pub busy_ns: u64,
    /// Time that its tasks were in queues.
    pub waited_ns: u64,
    /// Bytes that its tasks said they touched.
    pub bytes: u64,
    /// Tasks that it ran from queues of its chiplet's other workers.
    pub stolen_near: u64,
    /// Tasks that it ran from queues of other chiplets.
    pub stolen_across: u64,
    /// How often it went to sleep.
    pub sleeps: u64,
    /// Tasks in its queue now.
    pub queued: usize,
    /// Whether it runs a task now.
    pub running: bool,
}

impl std::ops::AddAssign for WorkerStats {
    fn add_assign(&mut self, other: WorkerStats) {
        self.tasks += other.tasks;
        self.skipped += other.skipped;
        self.panicked += other.panicked;
        self.busy_ns += other.busy_ns;
        self.waited_ns += other.waited_ns;
        self.bytes += other.bytes;
        self.stolen_near += other.stolen_near;
        self.stolen_across += other.stolen_across;
        self.sleeps += other.sleeps;
        self.queued += other.queued;
        self.running |= other.running;
    }
}

/// What all workers have done, and who they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stats {
    /// Of each worker, in order, and its chiplet.
    pub workers: Vec<(ChipletId, WorkerStats)>,
    /// Submissions that were refused since queues were full.
    pub refused: u64,
    /// Mappings that came before the current one.
    pub epoch: u64,
}

impl Stats {
    /// All workers together.
    pub fn total(&self) -> WorkerStats {
        let mut all = WorkerStats::default();
        self.workers.iter().for_each(|(_, worker)| all += worker.clone());
        all
    }
}

/// Relaxed, not an exchange: one thread writes, and who reads wants no order.
fn add(counter: &AtomicU64, n: u64) {
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(n), Ordering::Relaxed);
}

impl Counters {
    pub(crate) fn new(sampled: bool) -> Self {
        Counters { samples: sampled.then(Mutex::default), ..Counters::default() }
    }

    pub(crate) fn ran(&self, id: MappingId, ran: &Ran) {
        let Trip { waited_ns, ran_ns, bytes, stolen, .. } = ran.trip;
        add(&self.tasks, 1);
        add(&self.panicked, u64::from(ran.panicked));
        add(&self.busy_ns, ran_ns);
        add(&self.waited_ns, waited_ns);
        add(&self.bytes, bytes);
        add(&self.near, u64::from(stolen == Stolen::Near));
        add(&self.across, u64::from(stolen == Stolen::Across));
        if let Some(samples) = &self.samples {
            let mut samples = samples.lock().unwrap_or_else(PoisonError::into_inner);
            *samples.entry(id).or_default() += Sample { tasks: 1, refused: 0, bytes, busy_ns: ran_ns };
        }
    }

    pub(crate) fn skipped(&self, waited_ns: u64) {
        add(&self.skipped, 1);
        add(&self.waited_ns, waited_ns);
    }

    /// A panic outside of a task: while answers are merged, or what tasks hold is dropped.
    pub(crate) fn panicked_elsewhere(&self) {
        add(&self.panicked, 1);
    }

    pub(crate) fn slept(&self) {
        add(&self.sleeps, 1);
    }

    /// Moves the samples of this window into `all`.
    pub(crate) fn take_samples(&self, all: &mut HashMap<MappingId, Sample>) {
        let Some(samples) = &self.samples else { return };
        // Emptied, not replaced: the next window has much the same ids.
        let taken: Vec<_> = samples.lock().unwrap_or_else(PoisonError::into_inner).drain().collect();
        for (id, sample) in taken {
            *all.entry(id).or_default() += sample;
        }
    }

    pub(crate) fn stats(&self, queued: usize, running: bool) -> WorkerStats {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        WorkerStats {
            tasks: get(&self.tasks),
            skipped: get(&self.skipped),
            panicked: get(&self.panicked),
            busy_ns: get(&self.busy_ns),
            waited_ns: get(&self.waited_ns),
            bytes: get(&self.bytes),
            stolen_near: get(&self.near),
            stolen_across: get(&self.across),
            sleeps: get(&self.sleeps),
            queued,
            running,
        }
    }
}
