//! Who waits for a task may as well run it: in the place of a worker that sleeps, on the chiplet where the task is at home.
//!
//! To wake a worker, and to be woken by it, takes two switches of threads, which cost as much as a search of a small index.
//! A guest counts as its worker: who submits meanwhile sees that it is busy. A place has scratch memory of its own, so that
//! there is no more of it than places, however many threads ask.

use crate::bind::current_cpu;
use crate::policy::{MappingId, Policy};
use crate::sync::AtomicU64;
use crate::task::{Place, Stolen, Task};
use crate::worker::Shared;
use lanewise_topology::ChipletId;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::PoisonError;

/// A worker's place, until it is dropped.
struct Lent<'a, S> {
    shared: &'a Shared<S>,
    worker: usize,
}

impl<S> Drop for Lent<'_, S> {
    fn drop(&mut self) {
        let Shared { sleepers, queues, .. } = self.shared;
        sleepers[self.worker].give_back();
        // Its own, and others' from which it might steal: a worker would look before it sleeps.
        if queues.iter().any(|queue| !queue.is_empty()) {
            sleepers[self.worker].wake();
        }
    }
}

impl<S: Default> Shared<S> {
    /// Runs a task on the calling thread, if there is a place for it; else gives it back.
    pub(crate) fn run_here(&self, task: Task<S>) -> Result<(), Task<S>> {
        let Some(lent) = self.place_for(task.id) else { return Err(task) };
        let worker = lent.worker;
        let Task { id, since_ns, deadline_ns, body } = task;
        let place = Place {
            worker,
            chiplet: self.layout.of_worker(worker),
            id,
            waited_ns: 0,
            start_ns: since_ns,
            deadline_ns,
            stolen: Stolen::No,
            clock: &self.clock,
            counters: &self.guests[worker].counters,
            end_ns: AtomicU64::new(since_ns),
        };
        // Nobody else has the place.
        let mut scratch = self.guests[worker].scratch.lock().unwrap_or_else(PoisonError::into_inner);
        // As in `worker.rs`.
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| body.run(&place, &mut scratch))) {
            place.counters.panicked_elsewhere();
            crate::task::message(panic);
        }
        Ok(())
    }

    /// Whether there would be a place, as things are now.
    pub(crate) fn has_place(&self, id: MappingId) -> bool {
        let free = |worker: usize| self.queues[worker].is_empty() && !self.sleepers[worker].busy();
        self.places(id).is_some_and(|mut workers| workers.any(free))
    }

    /// The place of a worker that sleeps, where the id is at home and this thread is.
    fn place_for(&self, id: MappingId) -> Option<Lent<'_, S>> {
        let free = |worker: &usize| self.queues[*worker].is_empty() && self.sleepers[*worker].lend();
        self.places(id)?.find(free).map(|worker| Lent { shared: self, worker })
    }

    /// The workers where an id is at home and this thread is.
    fn places(&self, id: MappingId) -> Option<Range<usize>> {
        // In turn means in turn.
        if self.policy == Policy::RoundRobin {
            return None;
        }
        match &self.mapping {
            None => Some(0..self.layout.workers()),
            // Workers that are bound to nothing.
            Some(_) if self.chiplet_of_cpu.is_empty() => None,
            Some(mapping) => {
                let here: ChipletId = (*self.chiplet_of_cpu.get(current_cpu()?)?)?;
                mapping.read(|mapping| mapping.home(id).contains(&here)).then(|| self.layout.on(here))
            }
        }
    }
}
