//! Joins indexes, the machine and files: what a program needs to build, search, save and open.

mod file;
mod search;
mod threads;

pub use file::{FileError, open, predict_open, save};
pub use lanewise_index as index;
pub use lanewise_kernels as kernels;
pub use lanewise_topology as topology;
pub use search::{next_page, observe, search, search_within};
pub use threads::{Threads, allowed};
