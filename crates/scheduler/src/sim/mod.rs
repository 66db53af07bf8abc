//! The simulator: the policies of this crate on machines that are not at hand, fed with traces of real searches
//! (document 004, section VIII, on a made-up machine).
//!
//! Discrete events: tasks run in slices on cores; a slice's lines go through its chiplet's last-level cache (`cache/`), and
//! what is missing through the chiplet's link and the socket's memory. Dispatch, steals, wakes and the mapping are decided
//! by the functions that the workers call. Nothing here reads a clock or draws an unseeded number: a seed and a trace give
//! the same figures everywhere.

pub mod cache;
mod events;
pub mod machine;
mod memory;
mod outcome;
pub mod random;
mod run;
pub mod synthetic;
pub mod trace;
mod workload;

pub use memory::Traffic;
pub use outcome::{Answered, Outcome, Whole, quantile};
pub use run::{Orchestration, Setup, run};
pub use workload::{Arrivals, Workload};
