//! Lists against their definitions: exact assignment, exact distances, the same bytes at any number of workers.

use super::*;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Threads, for tests: tasks go to whoever is free.
pub(super) struct Workers(pub(super) usize);

impl Executor for Workers {
    fn workers(&self) -> usize {
        self.0
    }

    #[expect(clippy::disallowed_methods, reason = "a test's own threads")]
    fn run(&self, count: usize, task: &(dyn Fn(usize, usize) + Sync)) {
        let next = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for worker in 0..self.0 {
                let next = &next;
                scope.spawn(move || {
                    loop {
                        // Relaxed: the number alone is shared; the join publishes what tasks write.
                        let i = next.fetch_add(1, Ordering::Relaxed);
                        if i >= count {
                            return;
                        }
                        task(worker, i);
                    }
                });
            }
        });
    }
}
