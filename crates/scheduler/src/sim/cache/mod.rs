//! Caches of lines of 64 bytes.
//!
//! [`Ranges`] is fully associative LRU over objects that are always touched as a whole, exact to the line and quick:
//! whole runs go through it. [`Sets`] goes line by line through sets of ways, with a choice of replacement: for the
//! comparison with cachegrind, and for asking what LRU and full associativity decide.

mod ranges;
mod sets;

pub use ranges::Ranges;
pub use sets::{Levels, Replacement, Sets};

/// Bytes of a line.
pub const LINE_BYTES: u64 = 64;
