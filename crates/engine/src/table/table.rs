//! A table: reading documents, and what it is made of. `open.rs`, `write.rs`, `search.rs`, `seal.rs` and `merge.rs` have the
//! rest.

use super::bits::Bits;
use super::segment::SegmentId;
use super::settings::Settings;
use super::state::State;
use super::view::{Body, Part, View};
use crate::documents::{Mapping, RunError, Schema};
use crate::{Admission, Admitted, Pool, Threads};
use arc_swap::ArcSwap;
use lanewise_storage::log::{Log, Poisoned};
use lanewise_storage::{Held, Storage};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What tables share.
#[derive(Clone, Debug)]
pub struct Resources {
    /// Who builds.
    pub threads: Threads,
    /// Who searches.
    pub pool: Arc<Pool>,
    /// Who says what memory may be taken.
    pub admission: Arc<Admission>,
}

/// Documents with their vectors. All methods may be called from any thread; readers never wait for writers.
pub struct Table {
    pub(super) storage: Arc<dyn Storage>,
    pub(super) mapping: Mapping,
    pub(super) log: Log,
    pub(super) resources: Resources,
    pub(super) view: ArcSwap<View>,
    pub(super) settings: ArcSwap<Settings>,
    /// The first record that the segments do not hold, as the manifest has it.
    pub(super) replay_from: AtomicU64,
    pub(super) writer: Mutex<Writer>,
    /// Held while segments are made.
    pub(super) sealing: Mutex<()>,
    /// What new ids are made of.
    pub(super) ids: (u64, AtomicU64),
    /// Why the last upkeep failed, if it did.
    pub(super) trouble: Mutex<Option<String>>,
    /// Its own; parts have theirs.
    pub(super) _memory: Admitted,
    pub(super) _lock: Box<dyn Held>,
}

/// What writers share.
pub(super) struct Writer {
    /// What the manifest says.
    pub(super) state: State,
    pub(super) generation: u64,
    /// Dead rows as the manifest has them.
    pub(super) durable: HashMap<SegmentId, Bits>,
    /// Why nothing can be written any more.
    pub(super) failed: Option<String>,
}

/// A document as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// Its id.
    pub id: String,
    /// Number of the write that it came with.
    pub seq: u64,
    /// How often it was written since it was created.
    pub version: u64,
    /// The document without its vectors, as JSON.
    pub source: Vec<u8>,
}

/// A segment, as somebody who looks after a table sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentInfo {
    /// Its number.
    pub segment: SegmentId,
    /// Whether it is on disk, or a head.
    pub sealed: bool,
    /// Documents.
    pub live: usize,
    /// Rows of documents that were replaced or deleted.
    pub deleted: usize,
    /// Vector fields that are searched without their code, which cannot order this segment's vectors: a finer one, or none,
    /// would be better.
    pub uncoded: Vec<String>,
}

impl Table {
    pub(super) fn writer(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn view(&self) -> Arc<View> {
        self.view.load_full()
    }

    /// To be called by who holds the writer.
    pub(super) fn publish(&self, view: View) {
        self.view.store(Arc::new(view));
    }

    /// An id that no document has.
    pub(super) fn new_id(&self) -> String {
        // Relaxed: only uniqueness matters.
        format!("{:016x}{:08x}", self.ids.0, self.ids.1.fetch_add(1, Ordering::Relaxed))
    }

    /// The fields.
    pub fn schema(&self) -> &Schema {
        self.mapping.schema()
    }

    /// What can be changed while it serves.
    pub fn settings(&self) -> Arc<Settings> {
        self.settings.load_full()
    }

    /// Makes what was written so far durable, for whoever writes without waiting for the disk.
    ///
    /// # Errors
    /// If the disk fails: nothing more can be written then until the table is opened again.
    pub fn sync(&self) -> Result<(), Poisoned> {
        self.log.sync_all().map(|_| ())
    }

    /// Number of documents.
    pub fn len(&self) -> usize {
        self.view().len()
    }

    /// Whether there is no document.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The document with `id`, if there is one; [`fetch`](Self::fetch) has its vectors too.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn get(&self, id: &str) -> Result<Option<Document>, RunError> {
        let view = self.view();
        view.find(id).map(|at| view.document(id, at)).transpose()
    }

    /// The segments, oldest first; the last is the head.
    pub fn segments(&self) -> Vec<SegmentInfo> {
        let fields = || self.mapping.schema().vectors();
        let uncoded = |part: &Part| match &part.body {
            Body::Head(_) => Vec::new(),
            Body::Sealed(sealed) => {
                let missing = fields().zip(&sealed.codes).filter(|((_, params), code)| params.code != **code);
                missing.map(|((name, _), _)| name.to_owned()).collect()
            }
        };
        let info = |part: &Part| SegmentInfo {
            segment: part.segment,
            sealed: matches!(part.body, Body::Sealed(_)),
            live: part.live(),
            deleted: part.deleted.count(),
            uncoded: uncoded(part),
        };
        self.view().parts.iter().map(info).collect()
    }
}

impl Table {
    /// Tells the pool which indexes are sealed now, by their sizes, and which are no longer there.
    pub(super) fn settle(&self, before: &[Part], now: &[Part]) {
        let pool = &self.resources.pool;
        let sealed = |part: &&Part| matches!(part.body, Body::Sealed(_));
        let known =
            |parts: &[Part], part: &Part| parts.iter().filter(sealed).any(|p| p.tables == part.tables);
        for part in now.iter().filter(sealed).filter(|part| !known(before, part)) {
            for (field, &table) in part.tables.iter().enumerate() {
                pool.place(table, part.reader(field));
            }
        }
        let gone = |part: &&Part| !now.iter().any(|p| p.documents == part.documents);
        before.iter().filter(gone).flat_map(Part::homes).for_each(|table| pool.forget(table));
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        // Nobody does it later. A failure ends the log, and what is not on disk was never promised to be.
        let _ = self.log.sync_all();
        let view = self.view();
        view.parts.iter().flat_map(Part::homes).for_each(|table| self.resources.pool.forget(table));
    }
}

impl std::fmt::Debug for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Table").field("segments", &self.segments()).finish_non_exhaustive()
    }
}
