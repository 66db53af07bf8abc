//! Threads: started for one piece of work and joined at its end; none outlives a call, none starts by itself.

use lanewise_index::Executor;
use std::num::NonZeroUsize;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// How many threads this process may use at once: what the CPU affinity mask and the container's quota allow, rounded
/// down, at least one. Found once.
pub fn allowed() -> NonZeroUsize {
    static ALLOWED: OnceLock<NonZeroUsize> = OnceLock::new();
    *ALLOWED.get_or_init(|| lanewise_topology::Machine::detect().threads())
}

/// Runs tasks on this many threads, the caller's own among them.
#[derive(Clone, Copy, Debug)]
pub struct Threads(NonZeroUsize);

impl Threads {
    /// `count` threads; all that are [`allowed`] if none is given.
    pub fn new(count: Option<NonZeroUsize>) -> Self {
        Threads(count.unwrap_or_else(allowed))
    }
}

impl Executor for Threads {
    fn workers(&self) -> usize {
        self.0.get()
    }

    #[expect(clippy::disallowed_methods, reason = "the one place where threads start")]
    fn run(&self, count: usize, task: &(dyn Fn(usize, usize) + Sync)) {
        let next = AtomicUsize::new(0);
        let work = |worker| {
            loop {
                // Relaxed: the number alone is shared; what tasks write is published by the join.
                let i = next.fetch_add(1, Ordering::Relaxed);
                if i >= count {
                    return;
                }
                task(worker, i);
            }
        };
        let workers = self.workers().min(count);
        if workers <= 1 {
            return work(0);
        }
        thread::scope(|scope| {
            for worker in 1..workers {
                let builder = thread::Builder::new().name(format!("lanewise-{worker}"));
                // A system that gives no more threads: the others do the work.
                let _ = builder.spawn_scoped(scope, {
                    let work = &work;
                    move || work(worker)
                });
            }
            work(0);
        });
    }
}
