//! Joins indexes, the machine and files: what a program needs to build, search, save and open.

mod admission;
pub mod documents;
mod engine;
mod file;
mod memory_limit;
mod pool;
mod record;
mod search;
pub mod table;
mod threads;

pub use admission::{Admission, Admitted, InUse, Purpose, Refusal};
pub use engine::{Engine, EngineError, Limits, Listed, RestoreError, TableState, wrong_name};
pub use file::{FileError, open, predict_open, save};
pub use lanewise_index as index;
pub use lanewise_kernels as kernels;
pub use lanewise_scheduler as scheduler;
pub use lanewise_topology as topology;
pub use memory_limit::{MemoryLimit, MemoryLimitError, allowed_bytes};
pub use pool::{Found, Pending, Pool, Refused, TableId};
pub use record::{RecordError, record};
pub use search::{next_page, observe, search, search_within};
pub use threads::{Threads, allowed};
