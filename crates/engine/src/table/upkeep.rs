//! Looks after tables while they serve: seals heads, merges, syncs what is acknowledged before it is on disk.
//!
//! One thread counts time and says what is due; builders do it, one table each, at a lower priority than searches: on
//! cores that searches fill, a builder gets about a tenth (Linux; elsewhere the system decides). A table that is let go
//! stops the work on it first.

use super::effort::Effort;
use super::seal::FlushError;
use super::segment::SegmentError;
use super::table::Table;
use super::view::Body;
use crate::threads::{self, Threads};
use std::num::NonZeroUsize;
use std::ops::{ControlFlow, Deref};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// How often it is asked what is due.
const TICK: Duration = Duration::from_millis(100);
/// Ticks after a failure until it is tried again.
const PATIENCE: u32 = 50;

/// Threads that look after tables.
#[derive(Debug)]
pub struct Upkeep {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

/// What the threads share.
#[derive(Debug)]
struct Shared {
    tables: Mutex<Vec<Entry>>,
    /// Something is due, or all is over.
    due: Condvar,
    /// A table came, or all is over.
    tick: Condvar,
    /// A builder is done with a table.
    done: Condvar,
    over: AtomicBool,
    threads: Threads,
}

/// A table that is looked after.
#[derive(Debug)]
struct Entry {
    table: Arc<Table>,
    /// Whoever works on it should stop.
    leave: Arc<AtomicBool>,
    busy: bool,
    syncing: bool,
    due: bool,
    /// How long its log has held something, and something that is not synced, milliseconds.
    unflushed: u64,
    unsynced: u64,
    /// Ticks to wait.
    patience: u32,
    /// Whether its head is to be sealed since memory is short.
    short: bool,
}

/// A table that is looked after until this is dropped; the work on it is stopped first.
#[derive(Debug)]
pub struct Watched {
    table: Arc<Table>,
    shared: Arc<Shared>,
}

impl Deref for Watched {
    type Target = Table;

    fn deref(&self) -> &Table {
        &self.table
    }
}

impl Upkeep {
    /// Starts the threads: so many builders, each of which may work with half of `threads`: with all of them no core would
    /// be free when a search comes.
    ///
    /// # Errors
    /// If the system gives no threads.
    pub fn start(builders: NonZeroUsize, threads: Threads) -> std::io::Result<Upkeep> {
        let shared = Arc::new(Shared {
            tables: Mutex::default(),
            due: Condvar::new(),
            tick: Condvar::new(),
            done: Condvar::new(),
            over: AtomicBool::new(false),
            threads: threads.half().behind_searches(),
        });
        let mut upkeep = Upkeep { shared: shared.clone(), threads: Vec::new() };
        for builder in 0..builders.get() {
            let shared = shared.clone();
            let build = move || {
                threads::yield_to_others();
                shared.build();
            };
            upkeep.threads.push(threads::start(format!("lanewise-builder-{builder}"), build)?);
        }
        upkeep.threads.push(threads::start("lanewise-upkeep".to_owned(), move || shared.keep_time())?);
        Ok(upkeep)
    }

    /// Looks after `table` from now on.
    pub fn watch(&self, table: Table) -> Watched {
        let table = Arc::new(table);
        self.shared.lock().push(Entry {
            table: table.clone(),
            leave: Arc::default(),
            busy: false,
            syncing: false,
            due: false,
            unflushed: 0,
            unsynced: 0,
            patience: 0,
            short: false,
        });
        self.shared.tick.notify_all();
        Watched { table, shared: self.shared.clone() }
    }
}

impl Drop for Upkeep {
    fn drop(&mut self) {
        // Release: nothing rides on it but the flag.
        self.shared.over.store(true, Ordering::Release);
        drop(self.shared.lock());
        self.shared.due.notify_all();
        self.shared.tick.notify_all();
        for thread in self.threads.drain(..) {
            // It says so itself if it panicked.
            let _ = thread.join();
        }
    }
}

impl Watched {
    /// Lets it go; a head that would take long to build anew when the table is opened is sealed first
    /// ([`Table::seal_large`]), which dropping does not do.
    ///
    /// # Errors
    /// If sealing failed, or `effort` ended it: nothing is lost, as the log has it.
    pub fn close(self, effort: &Effort<'_>) -> Result<(), FlushError> {
        // A merge that is under way would be waited for.
        self.leave();
        self.table.seal_large(effort)
    }

    /// Has nobody look after it any more; the work on it is stopped.
    fn leave(&self) {
        let mut tables = self.shared.lock();
        let is_this = |entry: &Entry| Arc::ptr_eq(&entry.table, &self.table);
        while let Some(at) = tables.iter().position(is_this) {
            if tables[at].busy || tables[at].syncing {
                tables[at].leave.store(true, Ordering::Release);
                tables = self.shared.done.wait(tables).unwrap_or_else(PoisonError::into_inner);
            } else {
                tables.swap_remove(at);
            }
        }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.leave();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }

    fn keep_time(&self) {
        let mut tables = self.lock();
        while !self.is_over() {
            tables = if tables.is_empty() {
                self.tick.wait(tables).unwrap_or_else(PoisonError::into_inner)
            } else {
                self.tick.wait_timeout(tables, TICK).unwrap_or_else(PoisonError::into_inner).0
            };
            let mut unsynced = Vec::new();
            for entry in tables.iter_mut() {
                if entry.count() {
                    entry.syncing = true;
                    unsynced.push(entry.table.clone());
                }
            }
            seal_early(&mut tables);
            if tables.iter().any(|entry| entry.due && !entry.busy) {
                self.due.notify_all();
            }
            if !unsynced.is_empty() {
                drop(tables);
                // A failure ends the log, which the next write says.
                let sync = |table: Arc<Table>| catch_unwind(AssertUnwindSafe(|| drop(table.sync())));
                unsynced.into_iter().for_each(|table| drop(sync(table)));
                tables = self.lock();
                tables.iter_mut().for_each(|entry| entry.syncing = false);
                self.done.notify_all();
            }
        }
    }

    fn build(&self) {
        let mut tables = self.lock();
        while !self.is_over() {
            let Some(entry) = tables.iter_mut().find(|entry| entry.due && !entry.busy) else {
                tables = self.due.wait(tables).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            (entry.busy, entry.due) = (true, false);
            let (table, leave) = (entry.table.clone(), entry.leave.clone());
            let flush = std::mem::take(&mut entry.short) || table.is_full(entry.unflushed);
            drop(tables);
            let proceed = || {
                let stop = leave.load(Ordering::Acquire) || self.is_over();
                if stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            };
            let effort = Effort::new(self.threads, &proceed);
            // A mistake of ours is no reason for whoever lets the table go to wait for ever.
            let kept = catch_unwind(AssertUnwindSafe(|| table.keep(flush, &effort)));
            if kept.is_err() {
                table.note(Some("its upkeep panicked".to_owned()));
            }
            let failed = !matches!(kept, Ok(Ok(())));
            tables = self.lock();
            if let Some(entry) = tables.iter_mut().find(|entry| Arc::ptr_eq(&entry.table, &table)) {
                entry.busy = false;
                entry.patience = if failed { PATIENCE } else { 0 };
            }
            drop(table);
            self.done.notify_all();
        }
    }
}

/// Where memory is short, has the head sealed that holds most, one at a time.
fn seal_early(tables: &mut [Entry]) {
    if tables.iter().any(|entry| entry.short) {
        return;
    }
    let largest = tables.iter_mut().map(|entry| (entry.table.head_bytes(), entry));
    let largest = largest.filter(|(bytes, entry)| *bytes > 0 && !entry.busy && entry.patience == 0);
    if let Some((bytes, entry)) = largest.max_by_key(|(bytes, _)| *bytes)
        && entry.table.resources.admission.is_short(bytes)
    {
        (entry.due, entry.short) = (true, true);
    }
}

impl Entry {
    /// Counts a tick; whether the table is to be synced.
    fn count(&mut self) -> bool {
        let tick = TICK.as_millis() as u64;
        self.patience = self.patience.saturating_sub(1);
        self.unflushed = if self.table.is_unflushed() { self.unflushed + tick } else { 0 };
        self.unsynced = if self.table.is_unsynced() { self.unsynced + tick } else { 0 };
        self.due = !self.busy && self.patience == 0 && (self.short || self.table.is_due(self.unflushed));
        let sync = self.unsynced >= self.table.settings().sync_interval_ms;
        self.unsynced = if sync { 0 } else { self.unsynced };
        sync
    }
}

impl Table {
    /// Whether the log holds what segments do not.
    fn is_unflushed(&self) -> bool {
        // Relaxed: asked again.
        self.replay_from.load(Ordering::Relaxed) <= self.log.last()
    }

    fn is_unsynced(&self) -> bool {
        self.log.durable() < self.log.last()
    }

    /// Whether the head is to be sealed; the oldest record in the log is so many milliseconds old.
    fn is_full(&self, unflushed: u64) -> bool {
        let (settings, view) = (self.settings(), self.view());
        let Some((head, _)) = view.parts.split_last() else { return false };
        let dead = head.deleted.count();
        unflushed >= settings.flush_after_ms
            || self.head_bytes() >= settings.flush_threshold_bytes
            || (dead >= settings.flush_dead_rows && 2 * dead >= head.rows())
    }

    /// Of the head, and of those before it that could not be sealed.
    fn head_bytes(&self) -> u64 {
        let view = self.view();
        let heads = view.parts.iter().filter(|part| matches!(part.body, Body::Head(_)));
        heads.map(|head| head.bytes()).sum()
    }

    fn is_due(&self, unflushed: u64) -> bool {
        self.is_full(unflushed) || self.settings().merge.choose(&self.candidates()).is_some()
    }

    /// Does what is due: seals the head if it is full, or memory is short.
    fn keep(&self, flush: bool, effort: &Effort<'_>) -> Result<(), FlushError> {
        let done = (|| {
            if flush {
                self.flush_with(effort)?;
            }
            while self.merge_with(&self.settings().merge, effort)?.is_some() {}
            Ok(())
        })();
        let trouble = match &done {
            Ok(()) => None,
            // It was let go.
            Err(FlushError::Segment { error: SegmentError::Stopped, .. }) => return done,
            Err(error) => Some(error.to_string()),
        };
        self.note(trouble);
        done
    }

    fn note(&self, trouble: Option<String>) {
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = trouble;
    }

    /// Why the table could not be looked after when that was last tried, if it could not: it is tried again, and nothing
    /// is lost, but memory and the log grow.
    pub fn trouble(&self) -> Option<String> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
