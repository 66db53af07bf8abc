//! How a worker sleeps when it has nothing to do, and is woken: no wakeup is lost, and nothing spins at rest.
//!
//! ```text
//! worker                                    who pushes a task
//! ------                                    -----------------
//! finds nothing                             puts the task into a queue
//! idle():   running = false; fence          fence
//! looks once more; finds something:         looks for a worker that does not run:
//!   busy(): running = true                    wake(): unpark
//! else sleep(): park
//! ```
//!
//! One of the two fences comes first. If the worker's, the other sees that it does not run, and unparks it; a worker that
//! is unparked before it parks does not stop there. If the other's, the worker sees the task at its second look. A
//! worker that was unparked and finds nothing goes back to `sleep()`: its `running` has stayed false all the while.
//!
//! There is no spinning before `park`: see docs/scheduler.md for what it would gain.

use crate::sync::{AtomicBool, Ordering, Thread, current, fence, park};
use std::sync::OnceLock;

/// Whether a worker runs, and whom to unpark if not.
#[derive(Debug)]
pub(crate) struct Sleeper {
    running: AtomicBool,
    /// It does not run, but will look before long.
    napping: AtomicBool,
    /// Not loom's, since it is never waited for: it is set before `running` is false for the first time.
    thread: OnceLock<Thread>,
}

impl Sleeper {
    /// Of a worker whose thread has not started: it counts as running, since it will look before it sleeps.
    pub(crate) fn new() -> Self {
        Sleeper { running: AtomicBool::new(true), napping: AtomicBool::new(false), thread: OnceLock::new() }
    }

    /// First of all on the worker's thread.
    pub(crate) fn begin(&self) {
        let _ = self.thread.set(current());
    }

    /// The worker found nothing. It must look once more before it sleeps.
    pub(crate) fn idle(&self) {
        // Release, with `wake`'s acquire: the thread is set.
        self.running.store(false, Ordering::Release);
        // With `pushed`'s: either the worker sees the task, or who pushed it sees that the worker does not run.
        fence(Ordering::SeqCst);
    }

    /// The worker found something.
    pub(crate) fn busy(&self) {
        // Relaxed: at worst it is unparked in vain.
        self.running.store(true, Ordering::Relaxed);
    }

    pub(crate) fn running(&self) -> bool {
        // Relaxed: `pushed`'s fence came before.
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
    use loom::sync::Arc;
    use loom::thread;

    /// The worker's loop, until it has run so many tasks: loom reports a worker that sleeps for ever as a deadlock.
    fn work(queue: &Queue<u32>, me: &Sleeper, tasks: usize) {
        me.begin();
        let mut run = 0;
        while run < tasks {
            if queue.pop().is_some() {
                run += 1;
                continue;
            }
            me.idle();
            loop {
                if queue.pop().is_some() {
                    break;
                }
                me.sleep();
            }
            me.busy();
            run += 1;
        }
    }

    fn push(queue: &Queue<u32>, sleeper: &Sleeper) {
        queue.push(1, 0).unwrap();
        pushed();
        if !sleeper.running() {
            sleeper.wake();
        }
    }

    #[test]
    fn no_wakeup_is_lost() {
        loom::model(|| {
            let shared = Arc::new((Queue::new(2), Sleeper::new()));
            let worker = {
                let shared = shared.clone();
                thread::spawn(move || work(&shared.0, &shared.1, 2))
            };
            push(&shared.0, &shared.1);
            push(&shared.0, &shared.1);
            worker.join().unwrap();
        });
    }

    #[test]
    fn no_wakeup_is_lost_between_two_who_push() {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(|| {
            let shared = Arc::new((Queue::new(2), Sleeper::new()));
            let worker = {
                let shared = shared.clone();
                thread::spawn(move || work(&shared.0, &shared.1, 2))
            };
            let other = {
                let shared = shared.clone();
                thread::spawn(move || push(&shared.0, &shared.1))
            };
            push(&shared.0, &shared.1);
            other.join().unwrap();
            worker.join().unwrap();
        });
    }
}
