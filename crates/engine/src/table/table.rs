//! A table: reading documents, and what it is made of. `open.rs`, `write.rs`, `search.rs`, `seal.rs` and `merge.rs` have the
//! rest.

use super::bits::Bits;
use super::segment::SegmentId;
use super::settings::Settings;
use super::state::State;
use super::view::{Body, Part, View};
use crate::documents::{RunError, Schema};
use crate::{Admission, Admitted, Pool, Threads};
use arc_swap::ArcSwap;
use lanewise_scheduler::{Homes, MappingId};
use lanewise_storage::log::{Log, Poisoned};
use lanewise_storage::{Held, Storage};
use lanewise_topology::ChipletId;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

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
    pub(super) log: Log,
    pub(super) resources: Resources,
    pub(super) view: Arc<ArcSwap<View>>,
    pub(super) settings: ArcSwap<Settings>,
    /// The first record that the segments do not hold, as the manifest has it.
    pub(super) replay_from: AtomicU64,
    pub(super) writer: Mutex<Writer>,
    /// Held while segments are made.
    pub(super) sealing: Mutex<()>,
    /// What new ids are made of.
    pub(super) ids: (u64, AtomicU64),
    /// What was done to its segments.
    pub(super) work: Work,
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

/// What was done to a table's segments since it was opened, by its upkeep and whoever asked for it.
#[derive(Debug, Default)]
pub(super) struct Work {
    flushes: AtomicU64,
    flush_us: AtomicU64,
    merges: AtomicU64,
    merged_rows: AtomicU64,
    merged_bytes: AtomicU64,
    merge_us: AtomicU64,
}

impl Work {
    /// A head was sealed.
    pub(super) fn flushed(&self, took: Duration) {
        // Relaxed, as below: figures, each by itself.
        self.flushes.fetch_add(1, Ordering::Relaxed);
        self.flush_us.fetch_add(took.as_micros() as u64, Ordering::Relaxed);
    }

    /// A merge was done.
    pub(super) fn merged(&self, rows: usize, bytes: u64, took: Duration) {
        self.merges.fetch_add(1, Ordering::Relaxed);
        self.merged_rows.fetch_add(rows as u64, Ordering::Relaxed);
        self.merged_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.merge_us.fetch_add(took.as_micros() as u64, Ordering::Relaxed);
    }
}

/// What was done to a table's segments since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkDone {
    /// Heads that were sealed.
    pub flushes: u64,
    /// What that took together.
    pub flushing: Duration,
    /// Merges that were done.
    pub merges: u64,
    /// Rows that they wrote.
    pub merged_rows: u64,
    /// Bytes of the files that they wrote.
    pub merged_bytes: u64,
    /// What they took together.
    pub merging: Duration,
}

/// What a chiplet has of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// The chiplet.
    pub chiplet: ChipletId,
    /// Bytes of vectors that are at home there.
    pub held: u64,
    /// Bytes of them that searches read a second, lately; of what several chiplets hold, an even part.
    pub read: u64,
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
    /// Bytes of its files; of a head, of its documents and vectors as the log holds them.
    pub bytes: u64,
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

    /// The fields, as they are at this moment.
    pub fn schema(&self) -> Arc<Schema> {
        self.view().mapping.schema().clone()
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
        let view = self.view();
        let fields = || view.mapping.schema().vectors();
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
            bytes: part.bytes(),
            uncoded: uncoded(part),
        };
        view.parts.iter().map(info).collect()
    }

    /// What was done to its segments since it was opened.
    pub fn work_done(&self) -> WorkDone {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        WorkDone {
            flushes: of(&self.work.flushes),
            flushing: Duration::from_micros(of(&self.work.flush_us)),
            merges: of(&self.work.merges),
            merged_rows: of(&self.work.merged_rows),
            merged_bytes: of(&self.work.merged_bytes),
            merging: Duration::from_micros(of(&self.work.merge_us)),
        }
    }

    /// Where its sealed vectors are, by chiplet, as the [pool](Pool::homes) says.
    pub fn shares(&self, Homes { homes, window }: &Homes) -> Vec<Share> {
        let per_second = |bytes: u64| (bytes as f64 / window.as_secs_f64().max(1e-3)) as u64;
        let mut shares: BTreeMap<ChipletId, Share> = BTreeMap::new();
        let view = self.view();
        for table in view.parts.iter().flat_map(Part::homes) {
            let first = homes.partition_point(|home| home.id < MappingId::list(table.0, 0));
            for home in homes[first..].iter().take_while(|home| home.id.is_of(table.0)) {
                let divided = home.chiplets.len() as u64;
                for &chiplet in &home.chiplets {
                    let share = shares.entry(chiplet).or_insert(Share { chiplet, held: 0, read: 0 });
                    share.held += home.size;
                    share.read += per_second(home.lately.bytes / divided);
                }
            }
        }
        shares.into_values().collect()
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
        let gone = |part: &&Part| !now.iter().any(|p| p.searched == part.searched);
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
