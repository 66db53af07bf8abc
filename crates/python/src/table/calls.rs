//! Something that many threads call and any may close: closing waits for the calls. In a forked child there is nothing to
//! call: its threads are the other process's, and so are the files, which are left alone.

use crate::errors::Failure;
use crate::guard::{change, enter};
use std::mem;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// A `T` until it is closed.
pub(crate) struct Calls<T> {
    /// Whose it is.
    process: u32,
    open: Mutex<Open<T>>,
    /// A call has ended.
    ended: Condvar,
}

/// What is open, and how many use it.
struct Open<T> {
    inner: Option<Arc<T>>,
    calls: usize,
}

/// Counts a call out.
struct Call<'a, T>(&'a Calls<T>);

impl<T> Drop for Call<'_, T> {
    fn drop(&mut self) {
        self.0.state().calls -= 1;
        self.0.ended.notify_all();
    }
}

impl<T: 'static> Calls<T> {
    pub(crate) fn new(inner: T) -> Calls<T> {
        let open = Mutex::new(Open { inner: Some(Arc::new(inner)), calls: 0 });
        Calls { process: std::process::id(), open, ended: Condvar::new() }
    }

    /// Runs `work`, unless it is closed. Call without the GIL.
    pub(crate) fn with<R>(&self, work: impl FnOnce(&T) -> R) -> Option<R> {
        if self.is_forked() {
            return None;
        }
        let mut open = self.state();
        let inner = open.inner.clone()?;
        open.calls += 1;
        drop(open);
        let call = Call(self);
        let inside = enter(self);
        let done = work(&inner);
        drop(inside);
        // Before the call ends: whoever closes has the last hold.
        drop(inner);
        drop(call);
        Some(done)
    }

    /// Closes it, by `last`, once no other thread works with it; without `wait` only if none does. Whether it is closed. Call
    /// without the GIL.
    pub(crate) fn close(&self, wait: bool, last: impl FnOnce(T)) -> Result<bool, Failure> {
        if self.is_forked() {
            return Ok(true);
        }
        change(self, |_| {
            let mut open = self.state();
            if open.calls > 0 && !wait {
                return Ok(false);
            }
            let inner = open.inner.take();
            while open.calls > 0 {
                open = self.ended.wait(open).unwrap_or_else(PoisonError::into_inner);
            }
            drop(open);
            // Files are closed and threads ended here, not under the lock.
            if let Some(inner) = inner.and_then(Arc::into_inner) {
                last(inner);
            }
            Ok(true)
        })
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.is_forked() || self.state().inner.is_none()
    }
}

impl<T> Calls<T> {
    pub(crate) fn is_forked(&self) -> bool {
        self.process != std::process::id()
    }

    fn state(&self) -> MutexGuard<'_, Open<T>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Drop for Calls<T> {
    fn drop(&mut self) {
        if self.is_forked() {
            mem::forget(self.open.get_mut().unwrap_or_else(PoisonError::into_inner).inner.take());
        }
    }
}
