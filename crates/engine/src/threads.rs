//! Threads: started for one piece of work and joined at its end, or for a table's upkeep and joined with it; none starts
//! by itself.

use lanewise_index::Executor;
use std::io;
use std::num::NonZeroUsize;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// How many threads this process may use at once: what the CPU affinity mask and the container's quota allow, rounded
/// down, at least one. Found once.
pub fn allowed() -> NonZeroUsize {
    static ALLOWED: OnceLock<NonZeroUsize> = OnceLock::new();
    *ALLOWED.get_or_init(|| lanewise_topology::Machine::detect().threads())
}

/// Starts a thread that whoever calls this joins.
///
/// # Errors
/// If the system gives none.
#[expect(clippy::disallowed_methods, reason = "threads start in this file")]
pub(crate) fn start(name: String, work: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    thread::Builder::new().name(name).spawn(work)
}

/// Of who works while others search: they wait for it no longer.
const TURN: Duration = Duration::from_micros(100);

/// Makes this thread, and those that it starts, get about a tenth of a core that others want too, in short turns.
pub(crate) fn yield_to_others() {
    // Nice 10 weighs 110 where 0 weighs 1024 (sched(7)). On Linux the call is of the thread; elsewhere of the process.
    #[cfg(target_os = "linux")]
    // SAFETY: a number for this thread. Refused or not, what it does is the same.
    unsafe {
        libc::setpriority(libc::PRIO_PROCESS, 0, 10);
    }
    lanewise_topology::ask_for_turns(TURN);
}

/// Searches under way in this process, whose cores are shared by all of its tables.
static SEARCHES: AtomicUsize = AtomicUsize::new(0);

/// Counts a search until it is dropped.
#[derive(Debug)]
pub(crate) struct Searching(());

impl Searching {
    pub(crate) fn begin() -> Self {
        // Relaxed, as below: a builder that sees it late has worked for one task more.
        SEARCHES.fetch_add(1, Ordering::Relaxed);
        Searching(())
    }
}

impl Drop for Searching {
    fn drop(&mut self) {
        SEARCHES.fetch_sub(1, Ordering::Relaxed);
    }
}

/// How work goes with what else wants its cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Manner {
    /// As any thread.
    Alike,
    /// After each task, what waits for the core goes first.
    Yielding,
    /// After each task it waits, ten turns at most, for searches that need its core.
    Behind,
}

const FOUR: NonZeroUsize = NonZeroUsize::new(4).unwrap();
const MANY: NonZeroUsize = NonZeroUsize::new(64).unwrap();

/// Runs tasks on this many threads, the caller's own among them.
#[derive(Clone, Copy, Debug)]
pub struct Threads {
    count: NonZeroUsize,
    manner: Manner,
}

impl Threads {
    /// `count` threads; all that are [`allowed`] if none is given. Beyond four for each that is allowed (and 64), more
    /// would only cost time to start: so many then.
    pub fn new(count: Option<NonZeroUsize>) -> Self {
        let most = allowed().saturating_mul(FOUR).max(MANY);
        Threads { count: count.map_or_else(allowed, |count| count.min(most)), manner: Manner::Alike }
    }

    /// Half as many, at least one.
    #[must_use]
    pub fn half(self) -> Self {
        Threads { count: NonZeroUsize::new(self.count.get() / 2).unwrap_or(NonZeroUsize::MIN), ..self }
    }

    /// As many, which let other threads go first after each task: for work beside searches. What the system calls a turn
    /// is no shorter than its clock's tick (4 ms at 250 Hz), and a search would wait so long.
    #[must_use]
    pub fn yielding(self) -> Self {
        Threads { manner: self.manner.max(Manner::Yielding), ..self }
    }

    /// As many, which stand back while searches are under way that need their cores; of these, work that never sees a
    /// pause gets about a tenth: for what nobody waits for.
    #[must_use]
    pub fn behind_searches(self) -> Self {
        Threads { manner: Manner::Behind, ..self }
    }

    /// Between two tasks: lets others go first.
    fn stand_back(self) {
        if self.manner == Manner::Alike {
            return;
        }
        let free = allowed().get().saturating_sub(self.count.get()).max(1);
        if self.manner == Manner::Behind && SEARCHES.load(Ordering::Relaxed) >= free {
            for _ in 0..10 {
                thread::sleep(TURN / 2);
                if SEARCHES.load(Ordering::Relaxed) < free {
                    return;
                }
            }
            return;
        }
        thread::yield_now();
    }
}

impl Executor for Threads {
    fn workers(&self) -> usize {
        self.count.get()
    }

    #[expect(clippy::disallowed_methods, reason = "the one place where threads start")]
    fn run(&self, count: usize, task: &(dyn Fn(usize, usize) + Sync)) {
        let next = AtomicUsize::new(0);
        // Whoever yields is reckoned to have had all of its turn. Threads that start take over its length.
        let _turns = (self.manner > Manner::Alike).then(|| lanewise_topology::Turns::of(TURN));
        let work = |worker| {
            loop {
                // Relaxed: the number alone is shared; what tasks write is published by the join.
                let i = next.fetch_add(1, Ordering::Relaxed);
                if i >= count {
                    return;
                }
                task(worker, i);
                self.stand_back();
            }
        };
        let workers = self.workers().min(count);
        if workers <= 1 {
            return work(0);
        }
        thread::scope(|scope| {
            let work = &work;
            let start = |worker| {
                let builder = thread::Builder::new().name(format!("lanewise-{worker}"));
                builder.spawn_scoped(scope, move || work(worker))
            };
            // Where the system gives no more threads, those there are do the work.
            let started: Vec<_> = (1..workers).map_while(|worker| start(worker).ok()).collect();
            work(0);
            // Joined one by one, so that none is left when the call returns; the scope alone waits for their work only.
            for thread in started {
                if let Err(panic) = thread.join() {
                    std::panic::resume_unwind(panic);
                }
            }
        });
    }
}
