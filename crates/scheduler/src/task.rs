//! A task in a queue, what it sees while it runs, and how it is run: skipped if it is cancelled or late, its panic caught,
//! counted before it is answered (so whoever has the answer sees it in the counts).

use crate::clock::{Clock, NEVER};
use crate::counters::{Counters, Ran};
use crate::policy::MappingId;
use crate::sync::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use crate::ticket::{Answer, Failure, Promise};
use lanewise_topology::ChipletId;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// [`Context::stopped`] reads the clock once in so many calls: a read costs as much as half an expansion of a node.
const CLOCK_EVERY: u32 = 32;

/// Whose queue a task was taken from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stolen {
    /// Its worker's own.
    No,
    /// That of another worker on the same chiplet.
    Near,
    /// That of a worker on another chiplet.
    Across,
}

/// How a task got to its answer. Of a fan-out: of the worker that merged; the longest wait, the sums of time and bytes,
/// and the farthest theft of its tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trip {
    /// Who ran it.
    pub worker: usize,
    /// On which chiplet.
    pub chiplet: ChipletId,
    /// Time in the queue.
    pub waited_ns: u64,
    /// Time that it ran.
    pub ran_ns: u64,
    /// Bytes it says it touched.
    pub bytes: u64,
    /// Whether it came from another's queue.
    pub stolen: Stolen,
}

/// What a running task sees.
#[derive(Debug)]
pub struct Context<'a> {
    place: &'a Place<'a>,
    cancelled: &'a AtomicBool,
    asked: AtomicU32,
    /// Why it should stop, once [`Context::stopped`] has said so. Relaxed, as all here: one thread asks as a rule, and if
    /// several do, each finds out for itself.
    stopped: AtomicU32,
}

const GO_ON: u32 = 0;
const CANCELLED: u32 = 1;
const LATE: u32 = 2;

impl Context<'_> {
    /// Whether to give up: the ticket was cancelled, or the time is over. To be asked between expansions of nodes and
    /// between lists: it costs one load, and every 32nd time the clock. Once true it stays true, and the answer is the
    /// failure, whatever the task returns.
    pub fn stopped(&self) -> bool {
        if self.stopped.load(Ordering::Relaxed) != GO_ON {
            return true;
        }
        let asked = self.asked.load(Ordering::Relaxed).wrapping_add(1);
        self.asked.store(asked, Ordering::Relaxed);
        let deadline = self.place.deadline_ns;
        let why = if self.cancelled.load(Ordering::Relaxed) {
            CANCELLED
        } else if deadline != NEVER
            && asked.is_multiple_of(CLOCK_EVERY)
            && self.place.clock.now_ns() >= deadline
        {
            LATE
        } else {
            return false;
        };
        self.stopped.store(why, Ordering::Relaxed);
        true
    }

    /// Number of the worker that runs the task.
    pub fn worker(&self) -> usize {
        self.place.worker
    }

    /// The worker's chiplet.
    pub fn chiplet(&self) -> ChipletId {
        self.place.chiplet
    }

    /// For how long the task was in the queue.
    pub fn waited_ns(&self) -> u64 {
        self.place.waited_ns
    }

    /// Whether it came from another's queue.
    pub fn stolen(&self) -> Stolen {
        self.place.stolen
    }
}

/// What is in a queue.
pub(crate) struct Task<S> {
    pub(crate) id: MappingId,
    pub(crate) since_ns: u64,
    pub(crate) deadline_ns: u64,
    pub(crate) body: Box<dyn Body<S>>,
}

/// Runs once, and answers its ticket.
pub(crate) trait Body<S>: Send {
    fn run(self: Box<Self>, place: &Place<'_>, scratch: &mut Option<S>);
}

/// Where and when a task runs.
#[derive(Debug)]
pub(crate) struct Place<'a> {
    pub(crate) worker: usize,
    pub(crate) chiplet: ChipletId,
    pub(crate) id: MappingId,
    pub(crate) waited_ns: u64,
    pub(crate) start_ns: u64,
    pub(crate) deadline_ns: u64,
    pub(crate) stolen: Stolen,
    pub(crate) clock: &'a Clock,
    pub(crate) counters: &'a Counters,
    /// When the task had run; the next begins then.
    pub(crate) end_ns: AtomicU64,
}

/// Runs `f`, unless it is cancelled or late, and counts it.
pub(crate) fn attempt<S: Default, T>(
    place: &Place<'_>,
    cancelled: &AtomicBool,
    scratch: &mut Option<S>,
    f: impl FnOnce(&mut S, &Context<'_>) -> (T, u64),
) -> Result<Answer<T>, Failure> {
    let refusal = if cancelled.load(Ordering::Relaxed) {
        Some(Failure::Cancelled)
    } else if place.start_ns >= place.deadline_ns {
        Some(Failure::DeadlineExceeded)
    } else {
        None
    };
    if let Some(failure) = refusal {
        place.counters.skipped(place.waited_ns);
        return Err(failure);
    }
    let ran = call(place, cancelled, scratch, f);
    let end_ns = place.clock.now_ns();
    place.end_ns.store(end_ns, Ordering::Relaxed);
    let bytes = ran.as_ref().map_or(0, |(_, bytes)| *bytes);
    let trip = Trip {
        worker: place.worker,
        chiplet: place.chiplet,
        waited_ns: place.waited_ns,
        ran_ns: end_ns - place.start_ns,
        bytes,
        stolen: place.stolen,
    };
    let panicked = matches!(ran, Err(Failure::Panicked(_)));
    place.counters.ran(place.id, &Ran { trip, panicked });
    ran.map(|(value, _)| Answer { value, trip })
}

/// Calls `f`; a failure if it was told to stop, or panicked. After a panic the scratch is given up: who knows what is in it.
pub(crate) fn call<S: Default, T>(
    place: &Place<'_>,
    cancelled: &AtomicBool,
    scratch: &mut Option<S>,
    f: impl FnOnce(&mut S, &Context<'_>) -> T,
) -> Result<T, Failure> {
    let context = Context { place, cancelled, asked: AtomicU32::new(0), stopped: AtomicU32::new(GO_ON) };
    match catch_unwind(AssertUnwindSafe(|| f(scratch.get_or_insert_with(S::default), &context))) {
        Ok(value) => match context.stopped.into_inner() {
            GO_ON => Ok(value),
            CANCELLED => Err(Failure::Cancelled),
            _ => Err(Failure::DeadlineExceeded),
        },
        Err(panic) => {
            let scratch = scratch.take();
            let _ = catch_unwind(AssertUnwindSafe(|| drop(scratch)));
            Err(Failure::Panicked(message(panic)))
        }
    }
}

/// What a panic said. Its payload may itself panic when it is dropped.
pub(crate) fn message(panic: Box<dyn Any + Send>) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(panic))) {
        std::mem::forget(again);
    }
    text.unwrap_or_else(|| "(no message)".to_owned())
}

/// A task with a ticket of its own.
pub(crate) struct Single<T, F> {
    pub(crate) promise: Promise<T>,
    pub(crate) f: F,
}

impl<T, F> Single<T, F> {
    pub(crate) fn go<S: Default>(self, place: &Place<'_>, scratch: &mut Option<S>)
    where
        F: FnOnce(&mut S, &Context<'_>) -> (T, u64),
    {
        let Single { promise, f } = self;
        let outcome = attempt(place, promise.cancelled(), scratch, f);
        promise.answer(outcome);
    }
}

impl<S: Default, T: Send, F> Body<S> for Single<T, F>
where
    F: FnOnce(&mut S, &Context<'_>) -> (T, u64) + Send,
{
    fn run(self: Box<Self>, place: &Place<'_>, scratch: &mut Option<S>) {
        self.go(place, scratch);
    }
}
