//! Vector indexes: exact ([`Kind::Flat`]), graph ([`Kind::Hnsw`]) and lists ([`Kind::Ivf`]), over floats, bytes and bits.
//!
//! This crate never spawns a thread, does I/O or reads a clock: threads come as an [`Executor`], a file as its bytes.

mod add;
mod calibrate;
mod code;
mod coded;
mod curve;
mod error;
mod executor;
mod filter;
mod flat;
mod format;
mod get;
mod groups;
mod hnsw;
mod index;
mod interval;
mod ivf;
mod listed;
mod memory;
mod monitor;
mod pages;
mod params;
mod plan;
mod pool;
mod predict;
mod prefetch;
mod range;
mod recode;
mod record;
mod remove;
mod search;
mod space;
mod steps;
mod stop;
mod vectors;
mod visited;

pub use calibrate::KS;
pub use code::{Code, CodeError, ParametersError};
pub use curve::{Curve, Knob, Point, Table};
pub use error::{
    AddError, Broken, CalibrateError, CreateError, GetError, RemoveError, SearchError, VectorError,
};
pub use executor::{Executor, Inline};
pub use filter::Filter;
pub use format::{FormatError, Image, Recovered};
pub use get::OwnedVectors;
pub use groups::{Group, Groups};
pub use hnsw::repair::Repaired;
pub use index::{Index, Stats};
pub use interval::Estimate;
pub use memory::{FileBytes, OutOfMemory};
pub use monitor::Monitor;
pub use pages::Pages;
pub use params::{Kind, Params};
pub use plan::Plan;
pub use predict::Need;
pub use record::{Layout, ListSize, Region, Touch};
pub use search::{Counts, Neighbors, Reader, Scratch, Search};
pub use steps::{Partial, Probed};
pub use stop::Stop;
pub use vectors::{Dtype, Metric, Vectors};
