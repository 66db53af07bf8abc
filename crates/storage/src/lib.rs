//! All input and output of tables: files behind one trait, a log, checksummed blobs, a manifest.
//!
//! This crate never interprets what it stores, starts no thread, reads no clock, and draws no number that is not seeded.
//! [`Storage`] is what tables need of a file system: a [`Disk`], or a [`Memory`] whose journal gives what a power cut
//! would leave, either of them perhaps [`Faulty`], or a folder of one as a [`Sub`].

pub mod blob;
mod checksum;
mod disk;
pub mod fault;
mod faulty;
pub mod log;
pub mod manifest;
mod memory;
mod mend;
mod publish;
mod storage;
mod sub;
mod sync;

pub use disk::Disk;
/// The seeded random numbers that crash images are drawn by.
pub use fastrand::Rng;
pub use fault::Fault;
pub use faulty::{Call, Failure, Faulty};
pub use memory::{Journal, Memory};
pub use publish::remove_temporaries;
pub use storage::{Append, Bytes, Entry, Held, Kind, Storage};
pub use sub::Sub;
