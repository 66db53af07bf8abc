//! Tables: documents with their vectors, that lose nothing that was acknowledged.
//!
//! A table is a head, which changes, and sealed segments, which do not (a row that dies is a bit). What is written goes
//! into the log, then the head, and is acknowledged once the log is on disk; the manifest says which segments there are
//! and from which record on the log counts. Readers work on a [`View`](view::View) and never wait.
//!
//! Files, below the table's folder: `manifest`, `log/`, `segments/`, `lock`; `docs/formats/table.md` gives every byte.

mod append;
mod apply;
mod bits;
mod check;
mod directory;
mod effort;
mod fetch;
mod filters;
mod grow;
mod head;
mod indexes;
mod load;
mod lookup;
mod memory;
mod merge;
mod merge_policy;
mod need;
mod op;
mod open;
mod repair;
mod rows;
mod seal;
mod search;
mod segment;
mod settings;
mod snapshot;
mod state;
#[expect(clippy::module_inception, reason = "the type that the module is about")]
mod table;
mod upkeep;
mod view;
mod write;

pub use check::{Affected, CheckError, Effect, Finding, Progress, Report, Severity, check};
pub use effort::Effort;
pub use fetch::{FetchError, Fetched};
pub use grow::GrowError;
pub use load::{Batch, Load, LoadError};
pub use merge_policy::{Candidate, MergePolicy};
pub use op::RecordError;
pub use open::OpenError;
pub use repair::{Repair, RepairError, repair};
pub use seal::FlushError;
pub use search::{
    Answer, Concurrent, DocumentProfile, Figures, FilterProfile, Fusion, Hit, Nearest, Normalization, Pin,
    Profile, Request, SearchTableError, SegmentProfile, TaskProfile, Total, VectorProfile, fuse, score,
};
pub use segment::{SegmentError, SegmentId};
pub use settings::{Durability, Settings, SettingsError};
pub use snapshot::{NamedSnapshot, Repository, Snapshot, SnapshotError, decode_snapshot};
pub use state::StateError;
pub use table::{Document, Resources, SegmentInfo, Share, Table, WorkDone};
pub use upkeep::{Upkeep, Watched};
pub use write::{Outcome, When, Write, WriteError, Written};
