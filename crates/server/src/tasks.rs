//! Work that a request began and that may outlive it: it is listed, waited for and stopped by its number.

use crate::error::ApiError;
use crate::node::now_ms;
use axum::http::StatusCode;
use serde_json::Value;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Tasks at work at a time.
const AT_WORK: usize = 64;
/// Tasks that are done and still remembered.
const REMEMBERED: usize = 256;

/// Whether to go on; asked at times by whoever works.
pub(crate) type Proceed<'a> = &'a (dyn Fn() -> ControlFlow<()> + Sync);

/// All tasks of a node. Those at work are stopped when it goes.
#[derive(Debug, Default)]
pub(crate) struct Tasks(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    known: Mutex<Known>,
    /// A task is done.
    done: Condvar,
}

#[derive(Debug, Default)]
struct Known {
    last: u64,
    tasks: BTreeMap<u64, Task>,
}

/// A task as it is at one moment.
#[derive(Clone, Debug)]
pub(crate) struct Task {
    pub(crate) number: u64,
    /// What is done, by OpenSearch's names (`indices:admin/forcemerge`).
    pub(crate) action: &'static str,
    pub(crate) description: String,
    /// Milliseconds since 1970.
    pub(crate) began_ms: u64,
    /// What came of it, and how many milliseconds it took.
    pub(crate) done: Option<(Result<Value, ApiError>, u64)>,
    stop: Arc<AtomicBool>,
}

impl Task {
    /// Whether somebody stopped it.
    pub(crate) fn is_stopped(&self) -> bool {
        // Relaxed: a flag that nothing rides on; so everywhere.
        self.stop.load(Ordering::Relaxed)
    }
}

impl Tasks {
    /// Does `work` here, listed meanwhile.
    ///
    /// # Errors
    /// The work's, or that too many are at work.
    pub(crate) fn run(
        &self,
        action: &'static str,
        description: String,
        work: impl FnOnce(Proceed<'_>) -> Result<Value, ApiError>,
    ) -> Result<Value, ApiError> {
        let task = self.0.enlist(action, description)?;
        let done = self.0.work(&task, work);
        self.0.lock().tasks.remove(&task.number);
        done
    }

    /// Does `work` on a thread that may wait; its number. To be called on a thread of a runtime's.
    ///
    /// # Errors
    /// If too many are at work.
    pub(crate) fn begin(
        &self,
        action: &'static str,
        description: String,
        work: impl FnOnce(Proceed<'_>) -> Result<Value, ApiError> + Send + 'static,
    ) -> Result<u64, ApiError> {
        let task = self.0.enlist(action, description)?;
        let (number, shared) = (task.number, self.0.clone());
        tokio::task::spawn_blocking(move || {
            let done = shared.work(&task, work);
            let mut known = shared.lock();
            let took = now_ms().saturating_sub(task.began_ms);
            known.tasks.insert(task.number, Task { done: Some((done, took)), ..task });
            known.forget();
            shared.done.notify_all();
        });
        Ok(number)
    }

    /// The task, if it is known; waits until it is done, for `wait` at most.
    pub(crate) fn get(&self, number: u64, wait: Duration) -> Option<Task> {
        let at_work = |known: &mut Known| known.tasks.get(&number).is_some_and(|task| task.done.is_none());
        let waited = self.0.done.wait_timeout_while(self.0.lock(), wait, at_work);
        waited.unwrap_or_else(PoisonError::into_inner).0.tasks.get(&number).cloned()
    }

    /// Those at work, by number.
    pub(crate) fn at_work(&self) -> Vec<Task> {
        self.0.lock().tasks.values().filter(|task| task.done.is_none()).cloned().collect()
    }

    /// Stops a task; it ends when it next asks.
    pub(crate) fn stop(task: &Task) {
        task.stop.store(true, Ordering::Relaxed);
    }
}

impl Drop for Tasks {
    fn drop(&mut self) {
        self.at_work().iter().for_each(Tasks::stop);
    }
}

impl Known {
    /// Drops the oldest of those that are done, if they are too many.
    fn forget(&mut self) {
        let done = self.tasks.iter().filter(|(_, task)| task.done.is_some()).map(|(number, _)| *number);
        let done: Vec<u64> = done.collect();
        for number in &done[..done.len().saturating_sub(REMEMBERED)] {
            self.tasks.remove(number);
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enlist(&self, action: &'static str, description: String) -> Result<Task, ApiError> {
        let mut known = self.lock();
        if known.tasks.values().filter(|task| task.done.is_none()).count() >= AT_WORK {
            let reason = format!("{AT_WORK} tasks are at work already: try again when one of them is done");
            return Err(ApiError::new(StatusCode::TOO_MANY_REQUESTS, "rejected_execution_exception", reason));
        }
        known.last += 1;
        let (number, stop) = (known.last, Arc::default());
        let task = Task { number, action, description, began_ms: now_ms(), done: None, stop };
        known.tasks.insert(number, task.clone());
        Ok(task)
    }

    fn work(
        &self,
        task: &Task,
        work: impl FnOnce(Proceed<'_>) -> Result<Value, ApiError>,
    ) -> Result<Value, ApiError> {
        let proceed = || if task.is_stopped() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
        // Whoever waits for the task waits for its end, however it comes.
        let done = catch_unwind(AssertUnwindSafe(|| work(&proceed)));
        done.unwrap_or_else(|_| Err(ApiError::internal("the task met a bug: please report it")))
    }
}
