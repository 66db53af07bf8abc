//! An append-only log of records in numbered files, with group commit.
//!
//! `docs/formats/log.md` gives every byte. What is appended gets the next sequence number and is durable when
//! [`Log::sync`] returned. A file is begun only when all records before it are durable, and its header says where
//! numbering goes on: so a reader knows that nothing is missing between two files, and that what follows in the
//! older one was refused. A writer never goes on in a file that it did not begin.
//!
//! A sync that fails ends the log for good: what the system lost by then is unknown, and a second sync would not tell.
//! A write that fails (a full disk) refuses that record and gives up the file; the next append tries a new one.

mod format;
mod group;
mod mend;
#[cfg(all(test, loom))]
mod models;
mod replay;
mod writer;

pub use format::RECORD_BYTES_MAX;
pub use mend::{go_on, header, mend, number, survivors};
pub use replay::{ReplayError, Replayed, Torn, replay};
use std::io;
use std::sync::Arc;
pub use writer::Log;

/// A record that was appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position(u64);

impl Position {
    /// Its sequence number.
    pub fn sequence(self) -> u64 {
        self.0
    }
}

/// Why a record was not appended.
#[derive(Debug, thiserror::Error)]
pub enum AppendError {
    /// The log is as it was.
    #[error("a record of {bytes} bytes is longer than {RECORD_BYTES_MAX}: divide it")]
    TooLong {
        /// Its length.
        bytes: usize,
    },
    /// The record is not in the log, but for one case: if the process ends before another record is appended, it may be
    /// there afterwards, whole. Later appends may succeed.
    #[error("the log refused a record: {0}")]
    Refused(io::Error),
    /// Nothing can be appended any more.
    #[error(transparent)]
    Poisoned(#[from] Poisoned),
}

/// A sync failed, of this call or an earlier one: the log takes nothing more, and nothing is known to be durable that was
/// not acknowledged before.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the log could not be synced and takes nothing more: {why}; mend the disk and open the table again")]
pub struct Poisoned {
    /// What the system said.
    pub why: Arc<str>,
}
