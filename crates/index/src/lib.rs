//! Vector indexes: exact ([`Kind::Flat`]) and graph ([`Kind::Hnsw`]), over floats, bytes and bits.
//!
//! This crate never spawns a thread, does I/O or reads a clock: threads come as an [`Executor`], a file as its bytes.

mod error;
mod executor;
mod flat;
mod format;
mod hnsw;
mod index;
mod memory;
mod pool;
mod space;
mod visited;

pub use error::{AddError, CreateError, SearchError, VectorError};
pub use executor::{Executor, Inline};
pub use format::{FormatError, Image};
pub use hnsw::search::Counts;
pub use index::{Index, Kind, Neighbors, Params, Scratch, Stats};
pub use memory::{FileBytes, OutOfMemory};
pub use space::{Dtype, Metric, Vectors};
