//! How a worker sleeps when it has nothing to do, and is woken: no wakeup is lost, and nothing spins at rest.
//!
//! ```text
//! worker (`next`)                           who pushes a task
//! ---------------                           -----------------
//! finds nothing                             puts the task into a queue
//! running = false; fence                    pushed(): fence
//! looks once more; finds something:         looks for a worker that does not run:
//!   running = true                            wake(): unpark
//! else parks, looks again, …
//! ```
//!
//! One of the two fences comes first. If the worker's, the other sees that it does not run, and unparks it; a worker that
//! is unparked before it parks does not stop there. If the other's, the worker sees the task at its second look. While a
//! worker looks after it was woken, its `running` stays false: who pushes then unparks it again.
//!
//! There is no spinning before `park`: docs/scheduler.md says what it would gain.

use crate::sync::{AtomicBool, Ordering, Thread, current, fence, park};
use std::sync::OnceLock;

/// Whether a worker runs, and whom to unpark if not.
#[derive(Debug)]
pub(crate) struct Sleeper {
    running: AtomicBool,
    /// It does not run, but will look before long.
    napping: AtomicBool,
    /// A guest works in its place (`guest.rs`).
    lent: AtomicBool,
    /// Not loom's, since it is never waited for: it is set before `running` is false for the first time.
    thread: OnceLock<Thread>,
}

impl Sleeper {
    /// Of a worker whose thread has not started: it counts as running, since it will look before it sleeps.
    pub(crate) fn new() -> Self {
        let flag = AtomicBool::new;
        Sleeper { running: flag(true), napping: flag(false), lent: flag(false), thread: OnceLock::new() }
    }

    /// First of all on the worker's thread.
    pub(crate) fn begin(&self) {
        let _ = self.thread.set(current());
    }

    /// What `find` finds, asleep (by `sleep`) while there is nothing; `None` once `stop` is set and there is nothing.
    pub(crate) fn next<T>(
        &self,
        stop: &AtomicBool,
        mut find: impl FnMut() -> Option<T>,
        mut sleep: impl FnMut(&Self),
    ) -> Option<T> {
        loop {
            // Before the look, so that nothing that was pushed before the stop is left. Acquire, with the release of who
            // stops: what was pushed is seen.
            let stopping = stop.load(Ordering::Acquire);
            if let Some(found) = find() {
                if !self.running() {
                    // Relaxed: at worst it is unparked in vain.
                    self.running.store(true, Ordering::Relaxed);
                }
                return Some(found);
            }
            if self.running() {
                // Release, with `wake`'s acquire: the thread is set.
                self.running.store(false, Ordering::Release);
                // With `pushed`'s: either the worker sees the task, or who pushed it sees that the worker does not run.
                fence(Ordering::SeqCst);
            } else if stopping {
                return None;
            } else {
                sleep(self);
            }
        }
    }

    /// Whether it runs, or a guest does in its place.
    pub(crate) fn busy(&self) -> bool {
        self.running() || self.lent.load(Ordering::Relaxed)
    }

    /// Takes the place of a worker that does not run, if nobody has it.
    pub(crate) fn lend(&self) -> bool {
        // Acquire, with `give_back`'s release: what guests before this one wrote is seen.
        let free = !self.busy();
        free && self.lent.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Gives it back. To look afterwards for what was pushed meanwhile, and to wake the worker for it.
    pub(crate) fn give_back(&self) {
        self.lent.store(false, Ordering::Release);
        // With `pushed`'s: either who looks now sees the task, or who pushed it sees that nobody works here.
        fence(Ordering::SeqCst);
    }

    pub(crate) fn running(&self) -> bool {
        // Relaxed: `pushed`'s fence came before; for the worker itself, it is its own.
        self.running.load(Ordering::Relaxed)
    }

    /// Until it is woken, or has been since the last time.
    pub(crate) fn sleep(&self) {
        park();
    }

    /// For so long at most. Sees what was pushed by those who saw it nap.
    #[cfg(not(loom))]
    pub(crate) fn nap(&self, time: std::time::Duration) {
        // Relaxed: at worst it is woken in vain.
        self.napping.store(true, Ordering::Relaxed);
        std::thread::park_timeout(time);
        self.napping.store(false, Ordering::Relaxed);
        // With `pushed`'s: either the worker sees the task, or who pushed it sees that the worker does not nap.
        fence(Ordering::SeqCst);
    }

    pub(crate) fn napping(&self) -> bool {
        // Relaxed: `pushed`'s fence came before.
        self.napping.load(Ordering::Relaxed)
    }

    /// Wakes a worker that was seen not to run; harmless if it does by now.
    pub(crate) fn wake(&self) {
        // Acquire: with `idle`'s release.
        if !self.running.load(Ordering::Acquire)
            && let Some(thread) = self.thread.get()
        {
            thread.unpark();
        }
    }
}

/// Between pushing a task and looking for a worker that does not run.
pub(crate) fn pushed() {
    fence(Ordering::SeqCst);
}

#[cfg(all(test, loom))]
mod loom_models {
    use super::{Sleeper, pushed};
    use crate::queue::Queue;
    use crate::sync::{AtomicBool, Ordering};
    use loom::sync::Arc;
    use loom::thread;

    type Shared = Arc<(Queue<u32>, Sleeper, AtomicBool)>;

    fn shared() -> Shared {
        Arc::new((Queue::new(2), Sleeper::new(), AtomicBool::new(false)))
    }

    /// Runs until it is stopped, or has run so many tasks: a worker that sleeps for ever is a deadlock to loom.
    fn work(shared: &Shared, most: u32) -> thread::JoinHandle<u32> {
        let shared = shared.clone();
        thread::spawn(move || {
            let (queue, me, stop) = &*shared;
            me.begin();
            let mut run = 0;
            while run < most && me.next(stop, || queue.pop(), Sleeper::sleep).is_some() {
                run += 1;
            }
            run
        })
    }

    fn push(shared: &Shared) {
        shared.0.push(1, 0).unwrap();
        pushed();
        if !shared.1.running() {
            shared.1.wake();
        }
    }

    #[test]
    fn no_wakeup_is_lost() {
        loom::model(|| {
            let shared = shared();
            let worker = work(&shared, 2);
            push(&shared);
            push(&shared);
            assert_eq!(worker.join().unwrap(), 2);
        });
    }

    #[test]
    fn no_wakeup_is_lost_between_two_who_push() {
        let mut builder = loom::model::Builder::new();
        // Three threads: all interleavings would take hours.
        builder.preemption_bound = Some(3);
        builder.check(|| {
            let shared = shared();
            let worker = work(&shared, 2);
            let other = {
                let shared = shared.clone();
                thread::spawn(move || push(&shared))
            };
            push(&shared);
            other.join().unwrap();
            assert_eq!(worker.join().unwrap(), 2);
        });
    }

    /// What is pushed while a guest has the worker's place is seen by the guest when it goes, or by the worker.
    #[test]
    fn a_guest_leaves_nothing() {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(|| {
            let shared = shared();
            let worker = work(&shared, 1);
            let guest = {
                let shared = shared.clone();
                thread::spawn(move || {
                    let (queue, sleeper, _) = &*shared;
                    if sleeper.lend() {
                        sleeper.give_back();
                        if !queue.is_empty() {
                            sleeper.wake();
                        }
                    }
                })
            };
            shared.0.push(1, 0).unwrap();
            pushed();
            if !shared.1.busy() {
                shared.1.wake();
            }
            guest.join().unwrap();
            assert_eq!(worker.join().unwrap(), 1);
        });
    }

    #[test]
    fn the_end_leaves_nothing() {
        loom::model(|| {
            let shared = shared();
            let worker = work(&shared, u32::MAX);
            push(&shared);
            shared.2.store(true, Ordering::Release);
            pushed();
            shared.1.wake();
            assert_eq!(worker.join().unwrap(), 1);
        });
    }
}
