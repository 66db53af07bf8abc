//! Decisions: pure functions from what is seen of the workers to what is done. Others carry them out: the workers of this
//! process, and the simulator.
//!
//! Three policies, as in document 004's evaluation: V0 deals tasks out in turn and leaves them there; V1 lets idle workers
//! take from any other (as brpc's bthread does); V2 sends a task to the chiplet that holds what it reads and steals within
//! it first.

mod dispatch;
mod layout;
mod place;
mod steal;
mod watch;

pub use dispatch::{Full, dispatch};
pub use layout::Layout;
pub use place::{Item, follow, pieces, place};
pub use steal::{PATIENCE, Steal, steal, wake};
pub use watch::{nap_ns, watch};

use std::fmt;
use std::str::FromStr;

/// What the tasks that read the same memory have in common: a table searched by its graph, or a list of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MappingId(pub u64);

impl MappingId {
    /// A table as a whole.
    pub fn table(table: u32) -> Self {
        MappingId(u64::from(table) << 32 | u64::from(u32::MAX))
    }

    /// The list number `list` of a table; at most 2³² − 2.
    pub fn list(table: u32, list: u32) -> Self {
        MappingId(u64::from(table) << 32 | u64::from(list))
    }

    /// Whether it is this table, or a list of it.
    pub fn is_of(self, table: u32) -> bool {
        self.0 >> 32 == u64::from(table)
    }
}

/// How tasks are given to workers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// V0: in turn, one after the other; no stealing.
    RoundRobin,
    /// V1: in turn; who has nothing takes from anyone.
    Stealing,
    /// V2: to the chiplet of the task's mapping id; who has nothing takes from its own chiplet, and from others only when
    /// the whole chiplet has nothing to do and others fall behind.
    #[default]
    Chiplet,
}

impl Policy {
    /// All, in the order of their versions.
    pub const ALL: [Policy; 3] = [Policy::RoundRobin, Policy::Stealing, Policy::Chiplet];

    /// What it comes to on these chiplets: with a single one there is nothing to place, and to deal tasks out in turn costs
    /// less than to look at every worker's queue for the shortest.
    pub fn on(self, layout: &Layout) -> Policy {
        if self == Policy::Chiplet && layout.chiplets() == 1 { Policy::Stealing } else { self }
    }

    /// The name that [`FromStr`] reads.
    pub fn name(self) -> &'static str {
        match self {
            Policy::RoundRobin => "round-robin",
            Policy::Stealing => "stealing",
            Policy::Chiplet => "chiplet",
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// No policy has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown policy {0:?}: use round-robin, stealing or chiplet")]
pub struct UnknownPolicy(String);

impl FromStr for Policy {
    type Err = UnknownPolicy;

    fn from_str(name: &str) -> Result<Self, UnknownPolicy> {
        Policy::ALL.into_iter().find(|policy| policy.name() == name).ok_or_else(|| UnknownPolicy(name.into()))
    }
}

/// What decisions see of the workers. Values may be a little old: whoever carries a decision out must cope with its being
/// too late.
pub trait View {
    /// Tasks in the worker's queue, without the one it runs.
    fn queued(&self, worker: usize) -> usize;
    /// Whether the worker runs a task.
    fn running(&self, worker: usize) -> bool;
    /// For how long the oldest task in the worker's queue has been there; 0 if there is none.
    fn waited_ns(&self, worker: usize) -> u64;
}
