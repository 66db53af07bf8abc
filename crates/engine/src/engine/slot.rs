//! A table's place in the engine: closed, open, damaged or gone.
//!
//! Whoever opens, closes, creates or drops a table holds its stage's lock, and waits for no other table's, so that others of
//! the same table wait and those of other tables do not. Who asks for a table that is open takes no lock.

use crate::table::{Effort, Watched};
use arc_swap::ArcSwapOption;
use lanewise_storage::Sub;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread;
use std::time::Duration;

/// Between two looks whether a stage is free.
const PERIOD: Duration = Duration::from_millis(5);

/// What becomes of a table.
pub(super) enum Stage {
    /// On disk only.
    Closed,
    /// In memory too.
    Open(Arc<Sub>),
    /// It cannot be opened, for this reason.
    Damaged(Arc<str>),
    /// Not made yet, or dropped.
    Gone,
}

/// A table's place.
pub(super) struct Slot {
    /// There while the stage is [`Stage::Open`], but for the moment in which it is found out whether somebody holds it.
    table: ArcSwapOption<Watched>,
    stage: Mutex<Stage>,
    /// Whether the stage is not [`Stage::Gone`], for those who do not wait.
    there: AtomicBool,
    /// When somebody last asked, in openings of tables.
    used: AtomicU64,
}

impl Slot {
    pub(super) fn new(stage: Stage) -> Slot {
        let there = AtomicBool::new(!matches!(stage, Stage::Gone));
        Slot { table: ArcSwapOption::empty(), stage: Mutex::new(stage), there, used: AtomicU64::new(0) }
    }

    /// The table, if it is open.
    pub(super) fn table(&self, now: u64) -> Option<Arc<Watched>> {
        let table = self.table.load_full()?;
        self.touch(now);
        Some(table)
    }

    pub(super) fn touch(&self, now: u64) {
        // Relaxed: an order for eviction, of which nothing else depends. Not written in vain: tables that many ask for
        // would have the line go from core to core.
        if self.used.load(Ordering::Relaxed) != now {
            self.used.store(now, Ordering::Relaxed);
        }
    }

    pub(super) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    pub(super) fn is_there(&self) -> bool {
        // Relaxed: whoever asks while it changes may hear either.
        self.there.load(Ordering::Relaxed)
    }

    pub(super) fn stage(&self) -> MutexGuard<'_, Stage> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The stage, unless `proceed` ends the wait for it.
    pub(super) fn stage_while(&self, proceed: &dyn Fn() -> ControlFlow<()>) -> Option<MutexGuard<'_, Stage>> {
        loop {
            if let Some(stage) = self.try_stage() {
                return Some(stage);
            }
            if proceed().is_break() {
                return None;
            }
            thread::sleep(PERIOD);
        }
    }

    /// The stage, unless somebody is at work on it.
    pub(super) fn try_stage(&self) -> Option<MutexGuard<'_, Stage>> {
        match self.stage.try_lock() {
            Ok(stage) => Some(stage),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// To be called by who holds the stage.
    pub(super) fn set(&self, stage: &mut Stage, now: Stage, table: Option<Arc<Watched>>) {
        self.there.store(!matches!(now, Stage::Gone), Ordering::Relaxed);
        *stage = now;
        self.table.store(table);
    }

    /// Whether this is the table that is open.
    pub(super) fn has(&self, table: &Arc<Watched>) -> bool {
        self.table.load().as_ref().is_some_and(|now| Arc::ptr_eq(now, table))
    }

    /// Takes the table away, if it is open, so that whoever asks waits for the stage. To be called by who holds that.
    pub(super) fn take(&self) -> Option<Arc<Watched>> {
        self.table.swap(None)
    }

    /// Puts back what was taken.
    pub(super) fn put_back(&self, table: Option<Arc<Watched>>) {
        self.table.store(table);
    }

    /// Closes the table unless somebody holds it; whether it is closed. A large head is sealed first with `effort`, if there
    /// is one. To be called by who holds the stage.
    pub(super) fn close(&self, stage: &mut Stage, effort: Option<&Effort<'_>>) -> bool {
        let Stage::Open(_) = stage else { return true };
        // Whoever asks meanwhile comes to wait for the stage; whoever asked before holds it now.
        let table = self.take().expect("an open table is there");
        match Arc::try_unwrap(table) {
            Ok(table) => {
                match effort {
                    // What was not sealed is in the log.
                    Some(effort) => drop(table.close(effort)),
                    None => drop(table),
                }
                *stage = Stage::Closed;
                true
            }
            Err(held) => {
                self.table.store(Some(held));
                false
            }
        }
    }
}
