//! Workers: the loop of Algorithm 2, and what they share with submitters. The one place where threads start.
//!
//! ```text
//! own queue; else the queue that `policy::steal` names; else say so and look again; else sleep, or nap where
//! `policy::nap_ns` says that there will be something to take
//! ```
//!
//! A worker that leaves tasks in the queue it took from wakes whom `policy::wake` names: so a burst wakes one after the
//! other, not all at once.

use crate::clock::Clock;
use crate::counters::Counters;
use crate::mapping::{Mapping, Sample};
use crate::parking::{Sleeper, pushed};
use crate::policy::{Full, Layout, MappingId, Policy, View, dispatch, nap_ns, steal, wake, watch};
use crate::queue::Queue;
use crate::snapshot::Snapshot;
use crate::sync::{AtomicBool, AtomicU64, AtomicUsize, Mutex, Ordering, Padded};
use crate::task::{Place, Stolen, Task};
use lanewise_topology::ChipletId;
use std::cell::Cell;
use std::collections::HashMap;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, PoisonError};
use std::thread;
use std::time::Duration;

/// Of a worker, while others want its core: longer than most tasks, shorter than the system's own turns, so that a task
/// waits less for a thread that is in the middle of one.
const TURN: Duration = Duration::from_micros(500);

/// What workers and submitters share.
pub(crate) struct Shared<S> {
    pub(crate) clock: Clock,
    pub(crate) policy: Policy,
    pub(crate) layout: Layout,
    pub(crate) patience_ns: u64,
    pub(crate) capacity: usize,
    pub(crate) queues: Box<[Queue<Task<S>>]>,
    pub(crate) sleepers: Box<[Padded<Sleeper>]>,
    pub(crate) counters: Box<[Padded<Counters>]>,
    /// By worker, of those who work in its place.
    pub(crate) guests: Box<[Padded<Guest<S>>]>,
    /// Of the CPUs that workers are bound to; empty if they are bound to none.
    pub(crate) chiplet_of_cpu: Box<[Option<ChipletId>]>,
    /// Counts submissions.
    pub(crate) turn: Padded<AtomicUsize>,
    /// Where the policy asks for homes, and there is more than one.
    pub(crate) mapping: Option<Snapshot<Mapping>>,
    pub(crate) refused: Padded<AtomicU64>,
    /// By mapping id, since the monitor last took them.
    pub(crate) refused_by_id: Mutex<HashMap<MappingId, u64>>,
    /// No more tasks will come.
    pub(crate) stop: AtomicBool,
}

/// What a guest of a worker needs, one at a time.
pub(crate) struct Guest<S> {
    pub(crate) counters: Counters,
    pub(crate) scratch: Mutex<Option<S>>,
}

/// The workers as they are now. The clock is read once, if at all.
struct Now<'a, S> {
    shared: &'a Shared<S>,
    now_ns: Cell<Option<u64>>,
}

impl<S> View for Now<'_, S> {
    fn queued(&self, worker: usize) -> usize {
        self.shared.queues[worker].len()
    }

    fn running(&self, worker: usize) -> bool {
        self.shared.sleepers[worker].busy()
    }

    fn waited_ns(&self, worker: usize) -> u64 {
        let Some(since_ns) = self.shared.queues[worker].oldest_ns() else { return 0 };
        let now_ns = self.now_ns.get().unwrap_or_else(|| self.shared.clock.now_ns());
        self.now_ns.set(Some(now_ns));
        now_ns.saturating_sub(since_ns)
    }
}

impl<S> Shared<S> {
    fn now(&self, now_ns: Option<u64>) -> Now<'_, S> {
        Now { shared: self, now_ns: Cell::new(now_ns) }
    }

    /// Puts a task into the queue that the policy names, by the current mapping.
    pub(crate) fn admit(&self, task: Task<S>) -> Result<(), (Full, Task<S>)> {
        match &self.mapping {
            Some(mapping) => mapping.read(|mapping| self.admit_by(Some(mapping), task)),
            None => self.admit_by(None, task),
        }
    }

    pub(crate) fn admit_by(
        &self,
        mapping: Option<&Mapping>,
        mut task: Task<S>,
    ) -> Result<(), (Full, Task<S>)> {
        let home = mapping.map_or(&[ChipletId(0)][..], |mapping| mapping.home(task.id));
        let now = self.now(Some(task.since_ns));
        // Others may fill the queue between the look and the push: then look again. Whoever never gets in is refused,
        // as if all were full.
        for _ in 0..2 + self.layout.workers() {
            // Relaxed: a number that changes.
            let turn = self.turn.fetch_add(1, Ordering::Relaxed);
            let to = match dispatch(self.policy, &self.layout, &now, turn, home, self.capacity) {
                Ok(to) => to,
                Err(full) => return Err((full, task)),
            };
            let since_ns = task.since_ns;
            match self.queues[to].push(task, since_ns) {
                Ok(()) => {
                    pushed();
                    self.wake_for(to, turn, &now);
                    return Ok(());
                }
                Err(back) => task = back,
            }
        }
        let queued = (0..self.layout.workers()).map(|worker| now.queued(worker)).sum();
        Err((Full { queued }, task))
    }

    /// Counts a submission that is refused for good.
    pub(crate) fn refuse(&self, id: MappingId) {
        self.refused.fetch_add(1, Ordering::Relaxed);
        if self.mapping.is_some() {
            *self.refused_by_id.lock().unwrap_or_else(PoisonError::into_inner).entry(id).or_default() += 1;
        }
    }

    /// Moves the samples of this window out.
    pub(crate) fn take_samples(&self) -> HashMap<MappingId, Sample> {
        let mut all = HashMap::new();
        for counters in self.counters.iter().map(|of| &**of).chain(self.guests.iter().map(|of| &of.counters))
        {
            counters.take_samples(&mut all);
        }
        for (id, refused) in self.refused_by_id.lock().unwrap_or_else(PoisonError::into_inner).drain() {
            *all.entry(id).or_default() += Sample { refused, ..Sample::default() };
        }
        all
    }

    fn wake_for(&self, target: usize, turn: usize, now: &Now<'_, S>) {
        if let Some(worker) = wake(self.policy, &self.layout, now, target, turn, self.patience_ns) {
            self.sleepers[worker].wake();
        } else if let Some(worker) = watch(self.policy, &self.layout, now, target)
            && !self.sleepers[worker].napping()
        {
            self.sleepers[worker].wake();
        }
    }

    /// Lets all workers end once the queues are empty.
    pub(crate) fn stop(&self) {
        // Release, with the acquire in `Sleeper::next`: what was pushed is seen by who sees this.
        self.stop.store(true, Ordering::Release);
        pushed();
        self.sleepers.iter().for_each(|sleeper| sleeper.wake());
    }

    /// A task, whose queue it was in, and whether that is a theft.
    fn find(&self, me: usize, turn: usize) -> Option<(Task<S>, usize, Stolen)> {
        if let Some(task) = self.queues[me].pop() {
            return Some((task, me, Stolen::No));
        }
        let now = self.now(None);
        // A queue that looked full may be empty by now. Whoever emptied it wakes others if it left something.
        for attempt in 0..self.layout.workers() {
            let from =
                steal(self.policy, &self.layout, &now, me, turn.wrapping_add(attempt), self.patience_ns)?;
            if let Some(task) = self.queues[from.from].pop() {
                return Some((task, from.from, if from.across { Stolen::Across } else { Stolen::Near }));
            }
        }
        None
    }
}

/// The loop. `scratch` is made by the first task, on this thread.
fn work<S: Default>(shared: &Shared<S>, me: usize) {
    let (sleeper, counters) = (&*shared.sleepers[me], &*shared.counters[me]);
    let chiplet = shared.layout.of_worker(me);
    let mut scratch: Option<S> = None;
    // When the last task ended; `None` after a sleep.
    let ended_ns: Cell<Option<u64>> = Cell::new(None);
    let sleep = |sleeper: &Sleeper| {
        ended_ns.set(None);
        counters.slept();
        match nap_ns(shared.policy, &shared.layout, &shared.now(None), me, shared.patience_ns) {
            Some(time_ns) => sleeper.nap(Duration::from_nanos(time_ns)),
            None => sleeper.sleep(),
        }
    };
    let turn = Cell::new(me);
    let find = || {
        turn.set(turn.get().wrapping_add(1));
        shared.find(me, turn.get())
    };
    sleeper.begin();
    while let Some((task, from, stolen)) = sleeper.next(&shared.stop, find, sleep) {
        // A task begins when the one before it ended, or came: a clock reading less.
        let start_ns = ended_ns.get().map_or_else(|| shared.clock.now_ns(), |ended| ended.max(task.since_ns));
        if !shared.queues[from].is_empty() {
            shared.wake_for(from, turn.get(), &shared.now(Some(start_ns)));
        }
        let Task { id, since_ns, deadline_ns, body } = task;
        let waited_ns = start_ns.saturating_sub(since_ns);
        let clock = &shared.clock;
        let end_ns = AtomicU64::new(start_ns);
        let place = Place {
            worker: me,
            chiplet,
            id,
            waited_ns,
            start_ns,
            deadline_ns,
            stolen,
            clock,
            counters,
            end_ns,
        };
        // The task's own panic is caught within. This one is of what it gives or holds, dropped here; it is answered.
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| body.run(&place, &mut scratch))) {
            counters.panicked_elsewhere();
            crate::task::message(panic);
        }
        ended_ns.set(Some(place.end_ns.load(Ordering::Relaxed)));
    }
    let _ = catch_unwind(AssertUnwindSafe(|| drop(scratch)));
}

/// Starts a worker, bound to `cpus` if there are any.
///
/// # Errors
/// If the system gives no more threads.
#[expect(clippy::disallowed_methods, reason = "the one place where threads start")]
pub(crate) fn start<S: Default + Send + 'static>(
    shared: &Arc<Shared<S>>,
    me: usize,
    cpus: Vec<usize>,
) -> io::Result<thread::JoinHandle<()>> {
    let shared = shared.clone();
    thread::Builder::new().name(format!("lanewise-w{me}")).spawn(move || {
        crate::bind::bind(&cpus);
        lanewise_topology::ask_for_turns(TURN);
        work(&shared, me);
    })
}

/// Starts the thread that does `each` after every `interval`, until `stop`.
///
/// # Errors
/// If the system gives no more threads.
#[expect(clippy::disallowed_methods, reason = "as above")]
pub(crate) fn start_monitor<S: Send + 'static>(
    shared: &Arc<Shared<S>>,
    interval: Duration,
    each: impl Fn() + Send + 'static,
) -> io::Result<thread::JoinHandle<()>> {
    let shared = shared.clone();
    thread::Builder::new().name("lanewise-map".to_owned()).spawn(move || {
        while !shared.stop.load(Ordering::Relaxed) {
            thread::park_timeout(interval);
            each();
        }
    })
}
