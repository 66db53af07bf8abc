//! How an index runs work in parallel without knowing threads: the caller brings an [`Executor`].

/// Runs independent tasks, on as many workers as it likes. Results never depend on which worker ran what.
pub trait Executor: Sync {
    /// How many workers there are, at least one.
    fn workers(&self) -> usize;

    /// Calls `task(worker, i)` once for each `i` in `0..count` and returns when all are done. `worker` is below
    /// [`workers`](Self::workers), and no two tasks run on the same worker at the same time.
    fn run(&self, count: usize, task: &(dyn Fn(usize, usize) + Sync));
}

/// The caller's own thread.
#[derive(Clone, Copy, Debug, Default)]
pub struct Inline;

impl Executor for Inline {
    fn workers(&self) -> usize {
        1
    }

    fn run(&self, count: usize, task: &(dyn Fn(usize, usize) + Sync)) {
        (0..count).for_each(|i| task(0, i));
    }
}
