//! Which worker runs a task, so that what it reads is in its chiplet's cache (document 004).
//!
//! This crate never sees a vector: a task is a closure that says which [`MappingId`] it belongs to and how many bytes it
//! touched. `policy/` decides and does nothing else: the same pure functions are called by the workers and by the
//! simulator.

mod mapping;
mod monitor;
pub mod policy;

pub use mapping::{DAMPING, Mapping, Sample};
pub use monitor::{Monitor, WINDOWS};
pub use policy::{Full, Layout, MappingId, Policy, Steal, UnknownPolicy, View};
