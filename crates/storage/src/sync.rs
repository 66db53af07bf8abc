//! The one import of what threads wait for: std's, or loom's for its models (`RUSTFLAGS='--cfg loom'`), which try all
//! interleavings.

#[cfg(loom)]
pub(crate) use loom::sync::{Condvar, Mutex, MutexGuard};
use std::sync::PoisonError;
#[cfg(not(loom))]
pub(crate) use std::sync::{Condvar, Mutex, MutexGuard};

/// Takes a lock whose state is right between any two of its changes, so that another thread's panic spoils nothing.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
