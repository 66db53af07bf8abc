//! The scheduler as its users see it: options, submission, the mapping, counts, the end.

use crate::clock::Clock;
use crate::counters::{Counters, Stats};
use crate::fan::{Fan, Part};
use crate::mapping::{Homes, Mapping};
use crate::monitor::Monitor;
use crate::parking::Sleeper;
use crate::policy::{Full, Layout, MappingId, PATIENCE, Policy};
use crate::queue::Queue;
use crate::snapshot::Snapshot;
use crate::sync::{AtomicBool, AtomicU64, AtomicUsize, Mutex, Ordering, Padded};
use crate::task::{Body, Context, Single, Task};
use crate::ticket::{Ticket, ticket};
use crate::worker::{Guest, Shared, start, start_monitor};
use crate::{bind, scope};
use lanewise_topology::{ChipletId, Machine};
use std::collections::HashMap;
use std::io;
use std::sync::{Arc, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Longer queues than this are no queues: nobody waits for their end.
pub const QUEUE_CAPACITY_MAX: usize = 1 << 16;

/// Who the workers are.
#[derive(Clone, Debug)]
pub enum Workers {
    /// One for each core of a machine ([`Layout::of`]), bound to it; to its chiplet, where the container's quota is
    /// smaller than the number of cores.
    Of(Box<Machine>),
    /// As given, bound to nothing: to try the policies of a large machine on a small one.
    Unbound(Layout),
}

/// How a scheduler works.
#[derive(Clone, Debug)]
pub struct Options {
    /// Who decides.
    pub policy: Policy,
    /// Who works.
    pub workers: Workers,
    /// Tasks that may wait for one worker, 1 to [`QUEUE_CAPACITY_MAX`].
    pub queue_capacity: usize,
    /// How long a task must have waited before another chiplet takes it.
    pub patience: Duration,
    /// Time between looks at the traffic that may move mapping ids to other chiplets; not 0.
    pub remap_interval: Duration,
}

impl Default for Options {
    /// Of this machine: [`Policy::Chiplet`], 256 tasks, [`PATIENCE`], 10 s.
    fn default() -> Self {
        Options {
            policy: Policy::default(),
            workers: Workers::Of(Box::new(Machine::detect())),
            queue_capacity: 256,
            patience: PATIENCE,
            remap_interval: Duration::from_secs(10),
        }
    }
}

/// Why there is no scheduler.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The queues' length makes no sense.
    #[error("queue_capacity is {0}: give 1 to {QUEUE_CAPACITY_MAX}")]
    QueueCapacity(usize),
    /// The interval makes no sense.
    #[error("remap_interval is 0: give a time, for instance 10 seconds")]
    RemapInterval,
    /// The system gives no more threads.
    #[error("cannot start thread {started} of the scheduler: {source}; allow the process more threads")]
    Thread {
        /// Threads that were started (they are stopped again).
        started: usize,
        /// What the system says.
        source: io::Error,
    },
}

/// The windows, and when the current one began.
struct Windows {
    monitor: Monitor,
    since_ns: u64,
}

/// Workers that run tasks, each with its own scratch memory `S`, which its first task makes on its thread.
///
/// All methods may be called from any thread, but for those that say otherwise. Tasks of one queue begin in the order in
/// which they came; nothing else is promised of their order. A task that was taken in is run once, unless it is cancelled
/// or late, and its ticket is answered once, always.
///
/// Dropping the scheduler runs what is queued, then ends the threads. After a `fork` the child has no workers: make the
/// scheduler after it. In the child, tickets are never answered, and the drop waits for nobody.
pub struct Scheduler<S: Default + Send + 'static> {
    pub(crate) shared: Arc<Shared<S>>,
    windows: Arc<Mutex<Windows>>,
    threads: Vec<JoinHandle<()>>,
    monitor: Option<JoinHandle<()>>,
    process: u32,
}

impl<S: Default + Send + 'static> Scheduler<S> {
    /// Starts the workers.
    ///
    /// # Errors
    /// If an option makes no sense, or the system gives no more threads.
    pub fn new(options: Options) -> Result<Self, StartError> {
        let Options { policy, workers, queue_capacity: capacity, patience, remap_interval } = options;
        if !(1..=QUEUE_CAPACITY_MAX).contains(&capacity) {
            return Err(StartError::QueueCapacity(capacity));
        }
        if remap_interval.is_zero() {
            return Err(StartError::RemapInterval);
        }
        let (layout, cpus) = match workers {
            Workers::Of(machine) => {
                let layout = Layout::of(&machine);
                let cpus = bind::cpus(&machine, &layout);
                (layout, cpus)
            }
            Workers::Unbound(layout) => {
                let cpus = vec![Vec::new(); layout.workers()];
                (layout, cpus)
            }
        };
        // With one chiplet there is nothing to map: no monitor, no look-ups.
        let mapped = policy.on(&layout) == Policy::Chiplet;
        let clock = Clock::start();
        let shared = Arc::new(Shared {
            clock,
            policy,
            patience_ns: u64::try_from(patience.as_nanos()).unwrap_or(u64::MAX),
            capacity,
            queues: cpus.iter().map(|_| Queue::new(capacity)).collect(),
            sleepers: cpus.iter().map(|_| Padded(Sleeper::new())).collect(),
            counters: cpus.iter().map(|_| Padded(Counters::new(mapped))).collect(),
            guests: cpus.iter().map(|_| Padded(guest(mapped))).collect(),
            chiplet_of_cpu: chiplets(&layout, &cpus),
            turn: Padded(AtomicUsize::new(0)),
            mapping: mapped.then(|| Snapshot::new(Mapping::new(&layout))),
            refused: Padded(AtomicU64::new(0)),
            refused_by_id: Mutex::new(HashMap::new()),
            stop: AtomicBool::new(false),
            layout,
        });
        let windows = Arc::new(Mutex::new(Windows { monitor: Monitor::default(), since_ns: 0 }));
        // From here on a drop ends what was started.
        let process = std::process::id();
        let mut scheduler = Scheduler { shared, windows, threads: Vec::new(), monitor: None, process };
        for (worker, cpus) in cpus.into_iter().enumerate() {
            let thread = start(&scheduler.shared, worker, cpus);
            scheduler.threads.push(thread.map_err(|source| StartError::Thread { started: worker, source })?);
        }
        if mapped {
            let (shared, windows) = (scheduler.shared.clone(), scheduler.windows.clone());
            let thread = start_monitor(&scheduler.shared, remap_interval, move || {
                let since_ns = windows.lock().unwrap_or_else(PoisonError::into_inner).since_ns;
                // It may have been woken early, or somebody may just have closed the window by hand.
                let open = Duration::from_nanos(shared.clock.now_ns().saturating_sub(since_ns));
                if open >= remap_interval / 2 {
                    remap(&shared, &windows);
                }
            });
            let started = scheduler.threads.len();
            scheduler.monitor = Some(thread.map_err(|source| StartError::Thread { started, source })?);
        }
        Ok(scheduler)
    }

    /// Runs `task` where `id` is at home. It returns its result and the bytes that it touched (equations 1 and 2 of
    /// document 004), by which ids are spread over chiplets. It is not run if it has not begun after `timeout`.
    ///
    /// # Errors
    /// If all queues that it may go to are full; the task is dropped.
    pub fn submit<T, F>(&self, id: MappingId, timeout: Option<Duration>, task: F) -> Result<Ticket<T>, Full>
    where
        T: Send + 'static,
        F: FnOnce(&mut S, &Context<'_>) -> (T, u64) + Send + 'static,
    {
        let (promise, ticket) = ticket();
        let task = self.task(id, timeout, Box::new(Single { promise, f: task }));
        self.shared.admit(task).map_err(|(full, _)| {
            self.shared.refuse(id);
            full
        })?;
        Ok(ticket)
    }

    /// As [`submit`](Self::submit), for who will wait for the answer anyway: if a worker sleeps where `id` is at home, and the
    /// calling thread is on that chiplet, it runs the task itself, in that worker's place; the ticket is answered then. Not
    /// to be called by a task.
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    pub fn submit_here<T, F>(
        &self,
        id: MappingId,
        timeout: Option<Duration>,
        task: F,
    ) -> Result<Ticket<T>, Full>
    where
        T: Send + 'static,
        F: FnOnce(&mut S, &Context<'_>) -> (T, u64) + Send + 'static,
    {
        let (promise, ticket) = ticket();
        let task = self.task(id, timeout, Box::new(Single { promise, f: task }));
        let queued = self.shared.run_here(task).or_else(|task| self.shared.admit(task));
        queued.map_err(|(full, _)| {
            self.shared.refuse(id);
            full
        })?;
        Ok(ticket)
    }

    /// Whether [`submit_here`](Self::submit_here) would run a task on the calling thread, as things are now.
    pub fn has_place(&self, id: MappingId) -> bool {
        self.shared.has_place(id)
    }

    /// Runs `each(i, ..)` where `ids[i]` is at home, for all `ids`, and gives what they returned, in the order of `ids`, to
    /// `merge`, on the worker that finishes last (with the bytes that it touched as any task). All go by the same mapping. The first that fails answers for all, and
    /// the others stop.
    ///
    /// # Errors
    /// If not all find room in the queues: none is run then (those that had begun are told to stop).
    pub fn submit_all<P, T, E, M>(
        &self,
        ids: &[MappingId],
        timeout: Option<Duration>,
        each: E,
        merge: M,
    ) -> Result<Ticket<T>, Full>
    where
        P: Send + 'static,
        T: Send + 'static,
        E: Fn(usize, &mut S, &Context<'_>) -> (P, u64) + Send + Sync + 'static,
        M: FnOnce(Vec<P>, &mut S, &Context<'_>) -> (T, u64) + Send + 'static,
    {
        let Some((&last, before)) = ids.split_last() else {
            return self
                .submit(MappingId(0), timeout, move |scratch, context| merge(Vec::new(), scratch, context));
        };
        let (promise, ticket) = ticket();
        let stop = promise.cancelled().clone();
        let fan = Arc::new(Fan::new(ids.len(), each, merge, promise));
        let admit = |mapping: Option<&Mapping>| {
            let one = |index, id, fan| {
                let task = self.task(id, timeout, Box::new(Part { fan, index }));
                self.shared.admit_by(mapping, task).map_err(|(full, _)| {
                    self.shared.refuse(id);
                    full
                })
            };
            before.iter().enumerate().try_for_each(|(index, &id)| one(index, id, fan.clone()))?;
            // The last task takes ours, so that it is a task that finishes last.
            one(before.len(), last, fan)
        };
        let admitted = match &self.shared.mapping {
            Some(mapping) => mapping.read(|mapping| admit(Some(mapping))),
            None => admit(None),
        };
        if admitted.is_err() {
            // Relaxed: the flag says all there is to say.
            stop.store(true, Ordering::Relaxed);
        }
        admitted.map(|()| ticket)
    }

    /// Lets tasks borrow what lives outside of `f`: returns once all tasks that were submitted to the scope are done, also
    /// if `f` panics. Not to be called by a task.
    ///
    /// ```
    /// # use lanewise_scheduler::{MappingId, Options, Scheduler};
    /// let scheduler: Scheduler<Vec<u8>> = Scheduler::new(Options::default())?;
    /// let numbers = [1, 2, 3, 4];
    /// let sums = scheduler.scope(|scope| {
    ///     let tickets = numbers.chunks(2).map(|part| {
    ///         scope.submit(MappingId::table(0), None, move |_, _| (part.iter().sum::<i32>(), 8))
    ///     });
    ///     let tickets = tickets.collect::<Result<Vec<_>, _>>()?;
    ///     Ok::<_, lanewise_scheduler::Full>(tickets.into_iter().map(|t| t.wait().map(|a| a.value)).collect::<Vec<_>>())
    /// })?;
    /// assert_eq!(sums, [Ok(3), Ok(7)]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn scope<'env, R>(
        &'env self,
        f: impl for<'scope> FnOnce(&'scope scope::Scope<'scope, 'env, S>) -> R,
    ) -> R {
        scope::run(self, f)
    }

    /// Gives ids that hold so many bytes a home, before there is any traffic ([`Mapping::with`]). Ids that have one keep
    /// it.
    pub fn place(&self, sizes: &[(MappingId, u64)]) {
        if let Some(mapping) = &self.shared.mapping {
            mapping.replace(|current| Some(current.with(sizes)));
        }
    }

    /// Forgets the homes of ids that `gone` accepts, for instance of a table that was closed.
    pub fn forget(&self, gone: impl FnMut(MappingId) -> bool) {
        if let Some(mapping) = &self.shared.mapping {
            mapping.replace(|current| Some(current.without(gone)));
        }
    }

    /// Closes the window now, as the monitor does after each `remap_interval`; whether anything moves.
    pub fn remap(&self) -> bool {
        remap(&self.shared, &self.windows)
    }

    /// Time since it started, by the clock that timeouts go by: for who submits several tasks within one time.
    pub fn elapsed(&self) -> Duration {
        Duration::from_nanos(self.shared.clock.now_ns())
    }

    /// Where each id is that was placed, and what was asked of it in the last [windows](crate::WINDOWS). None where there
    /// is one chiplet alone.
    pub fn homes(&self) -> Homes {
        let Some(mapping) = &self.shared.mapping else { return Homes::default() };
        let windows = self.windows.lock().unwrap_or_else(PoisonError::into_inner);
        let (lately, window) = (windows.monitor.lately(), windows.monitor.span());
        drop(windows);
        Homes { homes: mapping.read(|mapping| mapping.homes(&lately)), window }
    }

    /// Who the workers are.
    pub fn layout(&self) -> &Layout {
        &self.shared.layout
    }

    /// What has been done so far. Whoever has a task's answer finds it counted.
    pub fn stats(&self) -> Stats {
        let shared = &self.shared;
        let of = |worker: usize| {
            let queued = shared.queues[worker].len();
            let busy = shared.sleepers[worker].busy();
            let mut stats = shared.counters[worker].stats(queued, busy);
            stats += shared.guests[worker].counters.stats(0, busy);
            (shared.layout.of_worker(worker), stats)
        };
        Stats {
            workers: (0..shared.layout.workers()).map(of).collect(),
            refused: shared.refused.load(Ordering::Relaxed),
            epoch: shared.mapping.as_ref().map_or(0, |mapping| mapping.read(Mapping::epoch)),
        }
    }

    pub(crate) fn task(&self, id: MappingId, timeout: Option<Duration>, body: Box<dyn Body<S>>) -> Task<S> {
        let since_ns = self.shared.clock.now_ns();
        Task { id, since_ns, deadline_ns: Clock::deadline_ns(since_ns, timeout), body }
    }
}

fn guest<S>(mapped: bool) -> Guest<S> {
    Guest { counters: Counters::new(mapped), scratch: Mutex::new(None) }
}

/// The chiplet of each CPU that a worker is bound to.
fn chiplets(layout: &Layout, cpus: &[Vec<usize>]) -> Box<[Option<ChipletId>]> {
    let end = cpus.iter().flatten().max().map_or(0, |last| last + 1);
    let mut all = vec![None; end];
    for (worker, cpus) in cpus.iter().enumerate() {
        cpus.iter().for_each(|&cpu| all[cpu] = Some(layout.of_worker(worker)));
    }
    all.into()
}

/// Closes a window; whether a new mapping took the place of the old one.
fn remap<S>(shared: &Shared<S>, windows: &Mutex<Windows>) -> bool {
    let Some(mapping) = &shared.mapping else { return false };
    let mut windows = windows.lock().unwrap_or_else(PoisonError::into_inner);
    let now_ns = shared.clock.now_ns();
    let window_ns = now_ns - windows.since_ns;
    windows.since_ns = now_ns;
    let samples = shared.take_samples();
    // A time in which nobody asked says nothing of where ids should be.
    !samples.is_empty()
        && mapping.replace(|current| windows.monitor.close_window(window_ns, samples, current))
}

impl<S: Default + Send + 'static> Drop for Scheduler<S> {
    fn drop(&mut self) {
        if std::process::id() != self.process {
            return;
        }
        self.shared.stop();
        if let Some(monitor) = &self.monitor {
            monitor.thread().unpark();
        }
        for thread in self.threads.drain(..).chain(self.monitor.take()) {
            // A task may hold the last reference: its worker ends by itself, when the task has.
            if thread.thread().id() != std::thread::current().id() {
                let _ = thread.join();
            }
        }
    }
}

impl<S: Default + Send + 'static> std::fmt::Debug for Scheduler<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scheduler")
            .field("policy", &self.shared.policy)
            .field("layout", &self.shared.layout)
            .finish()
    }
}
