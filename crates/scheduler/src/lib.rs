//! Which worker runs a task, so that what it reads is in its chiplet's cache (document 004).
//!
//! This crate never sees a vector: a task is a closure that says which [`MappingId`] it belongs to and how many bytes it
//! touched. `policy/` decides and does nothing else: the same pure functions are called by the workers and by the
//! simulator. [`Scheduler`] carries the decisions out; docs/scheduler.md says what it guarantees.
#![cfg_attr(loom, allow(dead_code, unused_imports, reason = "loom's models use some of the parts alone"))]

mod mapping;
mod monitor;
pub mod policy;
pub mod sim;

mod clock;
mod counters;
mod fan;
mod parking;
mod queue;
mod snapshot;
mod sync;
mod task;
mod ticket;

// Loom models parts of the above; the rest waits for nothing but them.
#[cfg(not(loom))]
mod bind;
#[cfg(not(loom))]
mod guest;
#[cfg(not(loom))]
mod scheduler;
#[cfg(not(loom))]
mod scope;
#[cfg(not(loom))]
mod worker;

#[cfg(not(loom))]
pub use counters::{Stats, WorkerStats};
pub use mapping::{DAMPING, Home, Homes, Mapping, Sample};
pub use monitor::{Monitor, WINDOWS};
pub use policy::{Full, Layout, MappingId, PATIENCE, Policy, Steal, UnknownPolicy, View};
#[cfg(not(loom))]
pub use scheduler::{Options, QUEUE_CAPACITY_MAX, Scheduler, StartError, Workers};
#[cfg(not(loom))]
pub use scope::Scope;
#[cfg(not(loom))]
pub use task::{Context, Stolen, Trip};
#[cfg(not(loom))]
pub use ticket::{Answer, Canceller, Failure, Outcome, Ticket};
