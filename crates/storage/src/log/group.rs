//! Group commit: whoever finds nobody syncing does so for all that was appended until then, the others wait.
//!
//! ```text
//! sync(n):  until n is durable:
//!             failed:            say so
//!             nobody leads:      lead: note what is appended; unlocked, sync; note that it is durable, or the failure;
//!                                wake all
//!             else               sleep until woken
//! ```
//!
//! One sync at a time, for safety and not only for speed: the system reports a lost write to one sync, and the next
//! one succeeds (Rebello et al., "Can Applications Recover from fsync Failures?", USENIX ATC 2020). So a failure is
//! noted before anybody else may sync, and nothing is acknowledged after it.

use super::Poisoned;
use crate::fault::{Fault, planted};
use crate::sync::{Condvar, Mutex, MutexGuard, lock};
use std::sync::{Arc, PoisonError};

/// What was appended and how much of it is durable; `T` is what must be synced for that.
#[derive(Debug)]
pub(super) struct Group<T> {
    state: Mutex<State<T>>,
    led: Condvar,
}

#[derive(Debug)]
struct State<T> {
    /// The last number appended, and what to sync for it.
    last: u64,
    target: Option<T>,
    /// The last number that is durable, and what was synced for it.
    durable: u64,
    synced: Option<T>,
    leading: bool,
    failed: Option<Arc<str>>,
}

impl<T> State<T> {
    fn check(&self) -> Result<(), Poisoned> {
        match &self.failed {
            Some(why) => Err(Poisoned { why: why.clone() }),
            None => Ok(()),
        }
    }
}

impl<T: Clone> Group<T> {
    /// All numbers up to `last` are durable.
    pub(super) fn new(last: u64) -> Self {
        let state = State { last, target: None, durable: last, synced: None, leading: false, failed: None };
        Group { state: Mutex::new(state), led: Condvar::new() }
    }

    /// Number `last` was appended; it is durable once `target` is synced.
    pub(super) fn appended(&self, last: u64, target: T) {
        let mut state = lock(&self.state);
        state.last = last;
        state.target = Some(target);
    }

    /// What was synced last.
    pub(super) fn synced(&self) -> Result<Option<T>, Poisoned> {
        let state = lock(&self.state);
        state.check()?;
        Ok(state.synced.clone())
    }

    /// The last number that is durable.
    pub(super) fn durable(&self) -> u64 {
        lock(&self.state).durable
    }

    /// From now on all fails.
    pub(super) fn poison(&self, why: &str) -> Poisoned {
        let why: Arc<str> = why.into();
        if !planted(Fault::PoisonIgnored) {
            lock(&self.state).failed.get_or_insert_with(|| why.clone());
        }
        Poisoned { why }
    }

    /// Returns when `number` is durable. Whether this call made it so and nothing was appended meanwhile.
    pub(super) fn sync(
        &self,
        number: u64,
        sync: impl FnOnce(&T) -> std::io::Result<()>,
    ) -> Result<bool, Poisoned> {
        let mut state = lock(&self.state);
        assert!(number <= state.last, "a position of another log");
        loop {
            state.check()?;
            if number <= state.durable {
                return Ok(false);
            }
            if planted(Fault::AcknowledgedBeforeSync) && number == state.last {
                return Ok(false);
            }
            if !state.leading {
                break;
            }
            state = self.wait(state);
        }
        state.leading = true;
        let (last, target) = (state.last, state.target.clone().expect("what is not durable was appended"));
        drop(state);
        let leader = Leader { group: self };
        let result = sync(&target);
        if let Err(error) = &result {
            self.poison(&error.to_string());
        }
        let mut state = lock(&self.state);
        if result.is_ok() {
            state.durable = last;
            state.synced = Some(target);
        }
        let idle = state.last == last;
        drop(state);
        drop(leader);
        match result {
            Ok(()) => Ok(idle),
            Err(error) => Err(Poisoned { why: error.to_string().into() }),
        }
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State<T>>) -> MutexGuard<'a, State<T>> {
        self.led.wait(state).unwrap_or_else(PoisonError::into_inner)
    }
}

/// Gives the lead back. A sync that panics is one that failed.
struct Leader<'a, T> {
    group: &'a Group<T>,
}

impl<T> Drop for Leader<'_, T> {
    fn drop(&mut self) {
        let mut state = lock(&self.group.state);
        state.leading = false;
        if std::thread::panicking() {
            state.failed.get_or_insert_with(|| "a sync panicked".into());
        }
        drop(state);
        self.group.led.notify_all();
    }
}
