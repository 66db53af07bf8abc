//! Workloads: vectors from files or from a seeded generator, exact neighbours, recall, and the clock that measures.
//!
//! A figure is made of these steps, each a module of its own:
//! [`dataset`] or [`generate`] → [`convert`] → an index → [`truth`] → [`recall`] and [`measure`].
//! [`lowlevel`] stands apart: it times checksums, hashes, memory, kernels and atomics, whatever uses them.

pub mod clock;
pub mod convert;
pub mod dataset;
pub mod generate;
pub mod lowlevel;
pub mod measure;
pub mod recall;
pub mod requests;
pub mod tables;
pub mod truth;
