//! What a victim tells who kills it: a line for each thing, written whole by one call, before and after it is done.

use lanewise_engine::table::Outcome;
use serde::{Deserialize, Serialize};
use std::io::{self, Write};

/// A write of a call.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Item {
    pub(crate) id: String,
    /// The document, or that it is to be deleted.
    pub(crate) put: Option<u64>,
    pub(crate) when: Condition,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Condition {
    Always,
    Absent,
    Seq(u64),
}

/// What became of a write.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Done {
    Written {
        seq: u64,
        version: u64,
        created: bool,
    },
    Deleted {
        seq: u64,
        version: u64,
    },
    /// Nothing was to be deleted, or the condition did not hold.
    Nothing,
}

impl Done {
    pub(crate) fn new(seq: u64, version: u64, outcome: Outcome) -> Done {
        match outcome {
            Outcome::Created => Done::Written { seq, version, created: true },
            Outcome::Updated => Done::Written { seq, version, created: false },
            Outcome::Deleted => Done::Deleted { seq, version },
            Outcome::Missing => Done::Nothing,
        }
    }
}

/// What makes segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Making {
    Flush,
    Merge,
    ForceMerge,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Line {
    Opening,
    Opened,
    /// About to do the writes of a call; a thread does one at a time.
    Writing {
        thread: usize,
        items: Vec<Item>,
    },
    /// They are acknowledged.
    Wrote {
        thread: usize,
        done: Vec<Done>,
    },
    /// About to load these.
    Loading {
        thread: usize,
        items: Vec<Item>,
    },
    /// They are there, all with this number.
    Loaded {
        thread: usize,
        seq: u64,
    },
    /// About to make a snapshot; a process makes one at a time.
    Saving(String),
    Saved,
    Making(Making),
    Made(Making),
    /// Something is wrong, which ends the victim.
    Failed(String),
}

/// Bytes that a pipe takes whole (POSIX says 512 or more, Linux 4096).
const PIPE_BYTES: usize = 4096;

pub(crate) fn say(line: &Line) {
    let mut bytes = serde_json::to_vec(line).expect("plain data");
    bytes.push(b'\n');
    assert!(bytes.len() <= PIPE_BYTES, "{} bytes in a line", bytes.len());
    // Standard error has no buffer. Whoever cannot be heard any more has no reason to go on.
    if io::stderr().write_all(&bytes).is_err() {
        std::process::exit(2);
    }
}
