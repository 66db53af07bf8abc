//! Memory that is asked for before it is taken: what would exceed the limit is refused with the numbers, never killed.
//!
//! Every use says how many bytes it will take at most, and gets an [`Admitted`], which gives them back when it goes. The sum
//! is one number that only grows where it stays within the limit. Merges and searches may wait in a queue, which is bounded
//! too: first come, first served, each among its like, so that no search waits for a merge's turn.
//!
//! A part of the limit is for sealing and searches alone: what is written can be sealed, which gives memory back, and is
//! found, also where nothing more can be written, loaded or merged. Openings may have half of it: a segment may take more
//! than what it was made of, and what a table held must fit when it is opened again.

use crate::memory_limit::MemoryLimit;
use std::collections::VecDeque;
use std::fmt;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What memory is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Purpose {
    /// Opening a table, and having it open.
    Open,
    /// Taking in documents, and holding them until they are sealed.
    Write,
    /// Making a segment of a head.
    Seal,
    /// Making one segment of several.
    Merge,
    /// Answering.
    Search,
}

impl Purpose {
    /// All of them.
    pub const ALL: [Purpose; 5] =
        [Purpose::Open, Purpose::Write, Purpose::Seal, Purpose::Merge, Purpose::Search];

    /// Its name, as errors and figures have it.
    pub fn name(self) -> &'static str {
        match self {
            Purpose::Open => "open",
            Purpose::Write => "write",
            Purpose::Seal => "seal",
            Purpose::Merge => "merge",
            Purpose::Search => "search",
        }
    }

    /// What of a limit of so many bytes is not for it.
    fn kept(self, limit: u64) -> u64 {
        match self {
            Purpose::Seal | Purpose::Search => 0,
            _ if limit == u64::MAX => 0,
            Purpose::Open => KEPT_MAX.min(limit / 2) / 2,
            _ => KEPT_MAX.min(limit / 2),
        }
    }
}

/// What is kept for sealing and searches, the most: two heads are sealed at a time, whatever is in them (what depends on
/// that was asked for when it was written).
const KEPT_MAX: u64 = 32 << 20;

impl fmt::Display for Purpose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Bytes in use by purpose, in the order of [`Purpose::ALL`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InUse(pub [u64; Purpose::ALL.len()]);

impl InUse {
    /// All together.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }
}

impl fmt::Display for InUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let each = Purpose::ALL.iter().zip(self.0).filter(|(_, bytes)| *bytes > 0);
        let each: Vec<String> = each.map(|(purpose, bytes)| format!("{purpose} {bytes}")).collect();
        f.write_str(if each.is_empty() { "none" } else { "" })?;
        f.write_str(&each.join(", "))
    }
}

/// Why memory was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum Refusal {
    #[error(
        "{purpose} needs {asked} bytes, and of circuit_breaker.limit={limit}{} are in use {} ({in_use}): ask again later, close tables, or raise the limit",
        but(*.kept), in_use.total()
    )]
    Limit { purpose: Purpose, asked: u64, limit: u64, kept: u64, in_use: InUse },
    #[error("{purpose} needs {asked} bytes, and {waiting} wait for memory already: ask again later")]
    Queue { purpose: Purpose, asked: u64, waiting: usize },
    #[error(
        "{purpose} waited in vain for {asked} bytes, and of circuit_breaker.limit={limit}{} are in use {} ({in_use}): ask again later, or raise the limit",
        but(*.kept), in_use.total()
    )]
    Waited { purpose: Purpose, asked: u64, limit: u64, kept: u64, in_use: InUse },
}

fn but(kept: u64) -> String {
    if kept == 0 { String::new() } else { format!(", {kept} of it for sealing and searches alone,") }
}

/// Who says what may be taken.
#[derive(Debug)]
pub struct Admission {
    limit: AtomicU64,
    total: AtomicU64,
    /// By purpose: figures for people. Not of searches, which are the rest: one number less that all of them change.
    by: [AtomicU64; Purpose::ALL.len()],
    /// Those that wait. Nothing of others' is called while it is held.
    queue: Mutex<Queue>,
    /// How many wait, for those who give back.
    waiting: AtomicUsize,
    freed: Condvar,
    waiting_max: NonZeroUsize,
    /// Whether a write or an opening was refused since somebody last asked.
    short: AtomicBool,
}

#[derive(Debug, Default)]
struct Queue {
    next: u64,
    /// In order, each with what it is for.
    tickets: VecDeque<(u64, Purpose)>,
}

impl Queue {
    /// Whether nobody came before who waits for the same purpose.
    fn is_first(&self, ticket: (u64, Purpose)) -> bool {
        self.tickets.iter().find(|(_, purpose)| *purpose == ticket.1) == Some(&ticket)
    }
}

/// A place in the queue, until this goes, also when whoever waits panics.
struct Place<'a> {
    admission: &'a Admission,
    ticket: (u64, Purpose),
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.admission.queue().tickets.retain(|other| *other != self.ticket);
        self.admission.waiting.fetch_sub(1, Ordering::SeqCst);
        // The next in the queue may have been waiting for this one only.
        self.admission.freed.notify_all();
    }
}

/// How often whoever waits is asked whether to go on.
const STEP: Duration = Duration::from_millis(20);

/// Who may wait for memory, usually.
const WAITING_MAX: NonZeroUsize = NonZeroUsize::new(64).unwrap();

impl Admission {
    /// Within the usual share of the memory that there is ([`MemoryLimit::default`]); 64 may wait.
    pub fn usual() -> Arc<Admission> {
        Admission::new(MemoryLimit::default(), WAITING_MAX)
    }

    /// Within `limit`; so many may wait.
    pub fn new(limit: MemoryLimit, waiting_max: NonZeroUsize) -> Arc<Admission> {
        Arc::new(Admission {
            limit: AtomicU64::new(limit.bytes()),
            total: AtomicU64::new(0),
            by: Default::default(),
            queue: Mutex::default(),
            waiting: AtomicUsize::new(0),
            freed: Condvar::new(),
            waiting_max,
            short: AtomicBool::new(false),
        })
    }

    /// The limit, bytes.
    pub fn limit(&self) -> u64 {
        // Relaxed: whoever asks while it changes may go by either.
        self.limit.load(Ordering::Relaxed)
    }

    /// Changes the limit. What is in use already stays.
    pub fn set_limit(&self, limit: MemoryLimit) {
        self.limit.store(limit.bytes(), Ordering::Relaxed);
        self.wake();
    }

    /// Bytes in use by purpose.
    pub fn in_use(&self) -> InUse {
        // Relaxed: figures, each by itself.
        let mut by = std::array::from_fn(|at| self.by[at].load(Ordering::Relaxed));
        by[Purpose::Search as usize] =
            self.total.load(Ordering::Relaxed).saturating_sub(by.iter().sum::<u64>());
        InUse(by)
    }

    /// Whether memory is so short that something that would give `back` so many bytes should be done: a write or an opening
    /// was refused since this was last asked, or an eighth of what they may have is left at most, and it is worth while.
    pub(crate) fn is_short(&self, back: u64) -> bool {
        let limit = self.limit();
        let most = limit - Purpose::Write.kept(limit);
        // Relaxed: asked again and again.
        let full = self.total.load(Ordering::Relaxed) > most - most / 8;
        self.short.swap(false, Ordering::Relaxed) || (full && back >= limit / 16)
    }

    /// How many wait.
    pub fn waiting(&self) -> usize {
        self.waiting.load(Ordering::SeqCst)
    }

    /// `bytes` for `purpose`, at once or not at all.
    ///
    /// # Errors
    /// If that would exceed the limit.
    pub fn admit(self: &Arc<Self>, purpose: Purpose, bytes: u64) -> Result<Admitted, Refusal> {
        self.take(purpose, bytes)?;
        Ok(Admitted { admission: self.clone(), purpose, bytes })
    }

    /// Whether there is room for `bytes`, as things are now.
    pub(crate) fn has_room(&self, purpose: Purpose, bytes: u64) -> bool {
        let limit = self.limit();
        let total = self.total.load(Ordering::Relaxed);
        total.checked_add(bytes).is_some_and(|total| total <= limit - purpose.kept(limit))
    }

    /// No memory yet.
    pub fn nothing(self: &Arc<Self>, purpose: Purpose) -> Admitted {
        Admitted { admission: self.clone(), purpose, bytes: 0 }
    }

    /// As [`admit`](Self::admit), waiting for its turn and until there is room, for `timeout` at most.
    ///
    /// # Errors
    /// If there never will be room, too many wait already, or it was in vain.
    pub fn admit_later(
        self: &Arc<Self>,
        purpose: Purpose,
        bytes: u64,
        timeout: Duration,
    ) -> Result<Admitted, Refusal> {
        self.admit_while(purpose, bytes, timeout, &|| ControlFlow::Continue(()))
    }

    /// As [`admit_later`](Self::admit_later), asking `proceed` while it waits whether to go on.
    pub(crate) fn admit_while(
        self: &Arc<Self>,
        purpose: Purpose,
        bytes: u64,
        timeout: Duration,
        proceed: &dyn Fn() -> ControlFlow<()>,
    ) -> Result<Admitted, Refusal> {
        // Whoever waits already comes first.
        if self.waiting() > 0 || self.take(purpose, bytes).is_err() {
            self.wait(purpose, bytes, timeout, proceed)?;
        }
        Ok(Admitted { admission: self.clone(), purpose, bytes })
    }

    /// `bytes` for a search, which waits for `timeout` if there is no room: one number that changes, no queue and no count
    /// of who has the admission otherwise. While it waits, `proceed` is asked whether to go on.
    ///
    /// # Errors
    /// As [`admit_later`](Self::admit_later).
    pub(crate) fn admit_search(
        &self,
        bytes: u64,
        timeout: Duration,
        proceed: &dyn Fn() -> ControlFlow<()>,
    ) -> Result<AdmittedSearch<'_>, Refusal> {
        if self.take(Purpose::Search, bytes).is_err() {
            self.wait(Purpose::Search, bytes, timeout, proceed)?;
        }
        Ok(AdmittedSearch { admission: self, bytes })
    }

    fn wait(
        &self,
        purpose: Purpose,
        bytes: u64,
        timeout: Duration,
        proceed: &dyn Fn() -> ControlFlow<()>,
    ) -> Result<(), Refusal> {
        let limit = self.limit();
        let kept = purpose.kept(limit);
        if bytes > limit - kept {
            return Err(Refusal::Limit { purpose, asked: bytes, limit, kept, in_use: self.in_use() });
        }
        let mut queue = self.queue();
        if queue.tickets.len() >= self.waiting_max.get() {
            return Err(Refusal::Queue { purpose, asked: bytes, waiting: queue.tickets.len() });
        }
        let ticket = (queue.next, purpose);
        queue.next += 1;
        queue.tickets.push_back(ticket);
        // Before the next look at the total: whoever gives back after it sees that somebody waits, and wakes us.
        self.waiting.fetch_add(1, Ordering::SeqCst);
        drop(queue);
        let _place = Place { admission: self, ticket };
        let mut left = timeout;
        loop {
            let refused = |queue: &mut Queue| !queue.is_first(ticket) || self.take(purpose, bytes).is_err();
            let step = left.min(STEP);
            let waited = self.freed.wait_timeout_while(self.queue(), step, refused);
            let (queue, waited) = waited.unwrap_or_else(PoisonError::into_inner);
            drop(queue);
            if !waited.timed_out() {
                return Ok(());
            }
            left -= step;
            // It may take memory itself and give it back, and wait for those who do.
            if left.is_zero() || proceed().is_break() {
                break;
            }
        }
        let limit = self.limit();
        let (kept, in_use) = (purpose.kept(limit), self.in_use());
        Err(Refusal::Waited { purpose, asked: bytes, limit, kept, in_use })
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, purpose: Purpose, bytes: u64) -> Result<(), Refusal> {
        let taken = self.take_free(purpose, bytes);
        if taken.is_err() && matches!(purpose, Purpose::Write | Purpose::Open) {
            self.short.store(true, Ordering::Relaxed);
        }
        taken
    }

    /// As [`take`](Self::take), but memory is not short for it.
    fn take_free(&self, purpose: Purpose, bytes: u64) -> Result<(), Refusal> {
        let limit = self.limit();
        let kept = purpose.kept(limit);
        let fits = |total: u64| total.checked_add(bytes).filter(|&total| total <= limit - kept);
        // Nothing is published by it but the number, which is one atomic: its order with `waiting` alone counts.
        if bytes > 0 && self.total.fetch_update(Ordering::SeqCst, Ordering::SeqCst, fits).is_err() {
            return Err(Refusal::Limit { purpose, asked: bytes, limit, kept, in_use: self.in_use() });
        }
        self.note(purpose, |by| by.fetch_add(bytes, Ordering::Relaxed));
        Ok(())
    }

    /// Changes the figure of a purpose, if it has one.
    fn note(&self, purpose: Purpose, change: impl FnOnce(&AtomicU64) -> u64) {
        if purpose != Purpose::Search {
            change(&self.by[purpose as usize]);
        }
    }

    /// Counts bytes that are there already, limit or not.
    fn count(&self, purpose: Purpose, bytes: u64) {
        self.total.fetch_add(bytes, Ordering::SeqCst);
        self.note(purpose, |by| by.fetch_add(bytes, Ordering::Relaxed));
    }

    fn give(&self, purpose: Purpose, bytes: u64) {
        self.note(purpose, |by| by.fetch_sub(bytes, Ordering::Relaxed));
        self.total.fetch_sub(bytes, Ordering::SeqCst);
        self.wake();
    }

    fn wake(&self) {
        if self.waiting.load(Ordering::SeqCst) > 0 {
            // Whoever waits has not looked yet, or waits on the condition by now.
            drop(self.queue());
            self.freed.notify_all();
        }
    }
}

/// Memory that may be taken, until this goes.
#[derive(Debug)]
#[must_use = "the memory is given back when it is dropped"]
pub struct Admitted {
    admission: Arc<Admission>,
    purpose: Purpose,
    bytes: u64,
}

impl Admitted {
    /// How many bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Makes it `bytes`, if it is less.
    ///
    /// # Errors
    /// If that would exceed the limit: it is what it was then.
    pub fn raise(&mut self, bytes: u64) -> Result<(), Refusal> {
        if bytes > self.bytes {
            self.admission.take(self.purpose, bytes - self.bytes)?;
            self.bytes = bytes;
        }
        Ok(())
    }

    /// As [`raise`](Self::raise), for what can be done without: nobody makes room for it. Whether there is room.
    pub(crate) fn raise_if_free(&mut self, bytes: u64) -> bool {
        let more = bytes.saturating_sub(self.bytes);
        let taken = self.admission.take_free(self.purpose, more).is_ok();
        self.bytes += if taken { more } else { 0 };
        taken
    }

    /// Makes it what is really held, more or less than what was asked for: what is there already cannot be refused.
    pub fn settle(&mut self, bytes: u64) {
        if bytes > self.bytes {
            self.admission.count(self.purpose, bytes - self.bytes);
        } else if bytes < self.bytes {
            self.admission.give(self.purpose, self.bytes - bytes);
        }
        self.bytes = bytes;
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        self.settle(0);
    }
}

/// As [`Admitted`], of a search.
#[derive(Debug)]
pub(crate) struct AdmittedSearch<'a> {
    admission: &'a Admission,
    bytes: u64,
}

impl Drop for AdmittedSearch<'_> {
    fn drop(&mut self) {
        self.admission.give(Purpose::Search, self.bytes);
    }
}
