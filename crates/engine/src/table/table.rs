//! A table: opening it, reading documents, and sealing the head.

use super::apply::{Applied, Checked, Writing};
use super::bits::Bits;
use super::head::Head;
use super::op::{Record, RecordError, decode};
use super::segment::{self, Sealed, SegmentError, SegmentId, folder};
use super::state::{Listed, State, StateError};
use super::view::{Body, Part, View};
use super::write::{When, WriteError};
use crate::documents::{Mapping, RunError, Schema, SchemaError};
use crate::{Pool, TableId, Threads};
use arc_swap::ArcSwap;
use lanewise_index::CreateError;
use lanewise_storage::fault::planted;
use lanewise_storage::log::{AppendError, Log, ReplayError};
use lanewise_storage::manifest::{ReadError, ReplaceError};
use lanewise_storage::{Fault, Held, Storage};
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Records that are replayed together, at most, and their bytes, about.
const REPLAYED: usize = 1024;
const REPLAYED_BYTES: usize = 8 << 20;

/// What tables share.
#[derive(Clone, Debug)]
pub struct Resources {
    /// Who builds.
    pub threads: Threads,
    /// Who searches.
    pub pool: Arc<Pool>,
}

/// Documents with their vectors. All methods may be called from any thread; readers never wait for writers.
pub struct Table {
    pub(super) storage: Arc<dyn Storage>,
    pub(super) mapping: Mapping,
    pub(super) log: Log,
    pub(super) resources: Resources,
    view: ArcSwap<View>,
    writer: Mutex<Writer>,
    /// Held while segments are made.
    pub(super) sealing: Mutex<()>,
    /// What new ids are made of.
    ids: (u64, AtomicU64),
    _lock: Box<dyn Held>,
}

/// What writers share.
pub(super) struct Writer {
    /// What the manifest says.
    state: State,
    generation: u64,
    /// Dead rows as the manifest has them.
    durable: HashMap<SegmentId, Bits>,
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

/// Why a table could not be created or opened.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum OpenError {
    #[error("there is a table already")]
    Exists,
    #[error("the table is open already, here or in another process")]
    Locked,
    #[error("{}: {error}", path.display())]
    Io { path: PathBuf, error: io::Error },
    #[error(transparent)]
    Schema(#[from] SchemaError),
    #[error(transparent)]
    State(#[from] StateError),
    #[error(transparent)]
    Manifest(#[from] ReplaceError),
    #[error(transparent)]
    Index(#[from] CreateError),
    #[error("segment {}: {error}", segment.0)]
    Segment { segment: SegmentId, error: SegmentError },
    #[error(transparent)]
    Log(#[from] ReplayError),
    #[error("record {seq} of the log: {error}")]
    Record { seq: u64, error: RecordError },
    #[error("record {seq} of the log: {error}")]
    Write { seq: u64, error: WriteError },
}

/// Why the head could not be sealed. All documents are where they were.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum FlushError {
    #[error("the table takes no writes: {why}; open it again")]
    Failed { why: String },
    #[error(transparent)]
    Log(#[from] AppendError),
    #[error(transparent)]
    Index(#[from] CreateError),
    #[error("segment {}: {error}", segment.0)]
    Segment { segment: SegmentId, error: SegmentError },
    #[error(transparent)]
    Manifest(#[from] ReplaceError),
    #[error("old files of the log: {0}")]
    OldLog(io::Error),
}

/// Numbers that nobody else draws.
fn unique() -> u64 {
    RandomState::new().hash_one(std::process::id())
}

fn lock(storage: &dyn Storage) -> Result<Box<dyn Held>, OpenError> {
    let path = Path::new("lock");
    storage.lock(path).map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock => OpenError::Locked,
        _ => OpenError::Io { path: path.to_owned(), error },
    })
}

/// Opens the log, and does to `parts` what it says.
fn replay(
    storage: &Arc<dyn Storage>,
    state: &State,
    writing: &Writing<'_>,
    parts: Vec<Part>,
) -> Result<(Log, Vec<Part>), OpenError> {
    let (mut parts, mut wrong) = (Some(parts), None);
    let (mut first, mut bytes, mut waiting) = (0, 0, Vec::new());
    let mut apply = |first: u64, waiting: Vec<Checked>| {
        let Applied { parts: done, results, failed, .. } =
            writing.apply(parts.take().expect("put back below"), waiting.into_iter().map(Ok).collect());
        parts = Some(done);
        let mut failed = failed.map(|why| OpenError::Write { seq: first, error: WriteError::Failed { why } });
        for (seq, result) in (first..).zip(results) {
            failed = failed.or(result.err().map(|error| OpenError::Write { seq, error }));
        }
        failed.map_or(Ok(()), Err)
    };
    let opened = Log::open(
        storage.clone(),
        Path::new("log"),
        state.identity,
        state.replay_from,
        &mut |seq, record| {
            let mut take = || {
                let (id, put, version) = match decode(writing.mapping, record) {
                    Ok(Record::Put { id, version, parsed }) => (id, Some(parsed), version),
                    Ok(Record::Delete { id, version }) => (id, None, version),
                    Err(error) => return Err(OpenError::Record { seq, error }),
                };
                if waiting.is_empty() {
                    (first, bytes) = (seq, 0);
                }
                bytes += record.len();
                waiting.push(Checked { id, put, when: When::Always, logged: Some((seq, version)) });
                if waiting.len() < REPLAYED && bytes < REPLAYED_BYTES {
                    return Ok(());
                }
                apply(first, std::mem::take(&mut waiting))
            };
            match take() {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => {
                    wrong = Some(error);
                    ControlFlow::Break(())
                }
            }
        },
    );
    if let Some(wrong) = wrong {
        return Err(wrong);
    }
    let (log, _) = opened?;
    apply(first, waiting)?;
    Ok((log, parts.expect("put back above")))
}

impl Table {
    /// A new table in the folder that is `storage`'s root.
    ///
    /// # Errors
    /// If there is one, the schema is wrong, or the system fails.
    pub fn create(
        storage: Arc<dyn Storage>,
        schema: Schema,
        resources: Resources,
    ) -> Result<Table, OpenError> {
        schema.check()?;
        let held = lock(&*storage)?;
        match State::read(&*storage) {
            Err(StateError::Read(ReadError::Missing)) => {}
            Err(error) => return Err(error.into()),
            Ok(_) => return Err(OpenError::Exists),
        }
        for dir in ["log", "segments"] {
            match storage.create_dir(Path::new(dir)) {
                // A crash may have left it.
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                    return Err(OpenError::Io { path: dir.into(), error });
                }
                _ => {}
            }
        }
        // The manifest makes it a table, and syncs the folder with what was made above.
        State::new(schema, unique()).replace(&*storage, 0)?;
        Table::open_locked(storage, held, resources)
    }

    /// Opens the table in the folder that is `storage`'s root: what was acknowledged is there.
    ///
    /// # Errors
    /// If there is none, something is damaged, or the system fails.
    pub fn open(storage: Arc<dyn Storage>, resources: Resources) -> Result<Table, OpenError> {
        let held = lock(&*storage)?;
        Table::open_locked(storage, held, resources)
    }

    fn open_locked(
        storage: Arc<dyn Storage>,
        held: Box<dyn Held>,
        resources: Resources,
    ) -> Result<Table, OpenError> {
        let io = |path: &str| {
            let path = PathBuf::from(path);
            move |error| OpenError::Io { path, error }
        };
        lanewise_storage::remove_temporaries(&*storage, Path::new("")).map_err(io(""))?;
        let (state, generation) = State::read(&*storage)?;
        let mapping = Mapping::new(state.schema.clone())?;
        let mut parts = Vec::new();
        let mut durable = HashMap::new();
        for &Listed { segment, deleted } in &state.segments {
            let at = |error| OpenError::Segment { segment, error };
            let sealed = Sealed::open(&storage, &mapping, segment).map_err(at)?;
            let deleted = match deleted {
                Some(generation) => sealed.read_deleted(&*storage, segment, generation).map_err(at)?,
                None => Bits::default(),
            };
            durable.insert(segment, deleted.clone());
            parts.push(Part::new(&mapping, segment, Body::Sealed(Arc::new(sealed)), deleted));
        }
        // What the manifest does not name was never finished, or has been merged.
        for entry in storage.list(Path::new("segments")).map_err(io("segments"))? {
            let number =
                entry.name.to_str().and_then(|name| u64::from_str_radix(name, 16).ok()).map(SegmentId);
            if let Some(segment) = number.filter(|segment| !durable.contains_key(segment)) {
                segment::remove(&*storage, segment).map_err(io("segments"))?;
            }
        }
        let head = SegmentId(state.next_segment);
        parts.push(Part::new(&mapping, head, Body::Head(Head::new(&mapping)?), Bits::default()));
        let writing = Writing { mapping: &mapping, threads: &resources.threads, log: None };
        let (log, parts) = replay(&storage, &state, &writing, parts)?;
        let mut state = state;
        state.next_segment += 1;
        let writer = Writer { state, generation, durable, failed: None };
        let table = Table {
            storage,
            mapping,
            log,
            resources,
            view: ArcSwap::from_pointee(View { parts }),
            writer: Mutex::new(writer),
            sealing: Mutex::new(()),
            ids: (unique(), AtomicU64::new(0)),
            _lock: held,
        };
        table.settle(&[], &table.view().parts);
        Ok(table)
    }

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

    /// Number of documents.
    pub fn len(&self) -> usize {
        self.view().len()
    }

    /// Whether there is no document.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The document with `id`, if there is one.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn get(&self, id: &str) -> Result<Option<Document>, RunError> {
        let view = self.view();
        let Some(at) = view.find(id) else { return Ok(None) };
        let part = &view.parts[at.part];
        let (seq, version) = (part.seq(at.row), part.version(at.row));
        Ok(Some(Document { id: id.to_owned(), seq, version, source: part.source(at.row)? }))
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

    /// Seals the head: all that was written so far is in segments then, and the log begins anew. Searches and writes go on
    /// meanwhile. Nothing happens if nothing was written.
    ///
    /// # Errors
    /// What failed; all documents are where they were.
    pub fn flush(&self) -> Result<(), FlushError> {
        let _sealing = self.sealing.lock().unwrap_or_else(PoisonError::into_inner);
        let through = match self.freeze()? {
            Some(through) => through,
            None => return Ok(()),
        };
        let view = self.view();
        let (_, frozen) = view.parts.split_last().expect("there is always a head");
        let mut written = Vec::new();
        for part in frozen {
            let Body::Head(head) = &part.body else { continue };
            let segment = part.segment;
            let clean = || segment::remove(&*self.storage, segment);
            let sealed =
                clean().map_err(|error| SegmentError::Io { path: folder(segment), error }).and_then(|()| {
                    let from = (head, &part.deleted);
                    Sealed::write(&self.storage, &self.mapping, segment, from, &self.resources.threads)
                });
            match sealed {
                Ok(sealed) => written.push((segment, Arc::new(sealed))),
                Err(error) => {
                    // Best effort: what is left is removed when the table is opened.
                    let _ = clean();
                    return Err(FlushError::Segment { segment, error });
                }
            }
        }
        if planted(Fault::LogDroppedEarly) {
            let _ = self.log.drop_through(through);
        }
        self.install(&written, through)?;
        self.log.drop_through(through).map(|_| ()).map_err(FlushError::OldLog)
    }

    /// Puts a new head behind the present one, if that holds anything; the last record that the others hold. `None` if
    /// the manifest says all there is.
    fn freeze(&self) -> Result<Option<u64>, FlushError> {
        let mut writer = self.writer();
        if let Some(why) = &writer.failed {
            return Err(FlushError::Failed { why: why.clone() });
        }
        let view = self.view();
        if view.parts.last().is_none_or(|head| head.rows() == 0) && writer.state.replay_from > self.log.last()
        {
            return Ok(None);
        }
        self.log.rotate()?;
        let segment = SegmentId(writer.state.next_segment);
        writer.state.next_segment += 1;
        let head = Part::new(&self.mapping, segment, Body::Head(Head::new(&self.mapping)?), Bits::default());
        let parts = view.parts.iter().filter(|part| part.live() > 0).cloned().chain([head]);
        self.publish(View { parts: parts.collect() });
        Ok(Some(self.log.last()))
    }

    /// Makes segments that were written the table's own.
    fn install(&self, written: &[(SegmentId, Arc<Sealed>)], through: u64) -> Result<(), FlushError> {
        let mut writer = self.writer();
        let mut parts = self.view().parts.clone();
        for part in &mut parts {
            if let Some((_, sealed)) = written.iter().find(|(segment, _)| *segment == part.segment) {
                part.body = Body::Sealed(sealed.clone());
            }
        }
        self.record(&mut writer, parts, Some(through))
    }

    /// A number for a segment.
    pub(super) fn new_segment(&self) -> SegmentId {
        let mut writer = self.writer();
        writer.state.next_segment += 1;
        SegmentId(writer.state.next_segment - 1)
    }

    /// Makes the manifest say what `parts` are, the heads but, and shows them. `through` is the last record that the log
    /// is not needed for, if that changed.
    pub(super) fn record(
        &self,
        writer: &mut Writer,
        parts: Vec<Part>,
        through: Option<u64>,
    ) -> Result<(), FlushError> {
        if let Some(why) = &writer.failed {
            return Err(FlushError::Failed { why: why.clone() });
        }
        let generation = writer.generation + 1;
        let mut state = writer.state.clone();
        state.segments = Vec::new();
        state.replay_from = through.map_or(state.replay_from, |through| through + 1);
        state.replay_from += u64::from(planted(Fault::ReplayedTooLate));
        let mut durable = HashMap::new();
        let mut stale = Vec::new();
        for Part { segment, body, deleted, .. } in &parts {
            let Body::Sealed(sealed) = body else { continue };
            let before = writer.state.segments.iter().find(|listed| listed.segment == *segment);
            let known = writer.durable.get(segment);
            let file = match (known, before) {
                (Some(known), Some(before)) if known == deleted => before.deleted,
                _ if deleted.count() == 0 || planted(Fault::TombstonesLost) => None,
                _ => {
                    let done = sealed.write_deleted(&*self.storage, *segment, generation, deleted);
                    done.map_err(|error| FlushError::Segment { segment: *segment, error })?;
                    stale.extend(before.and_then(|before| Some((*segment, before.deleted?))));
                    Some(generation)
                }
            };
            state.segments.push(Listed { segment: *segment, deleted: file });
            durable.insert(*segment, deleted.clone());
        }
        match state.replace(&*self.storage, writer.generation) {
            Ok(generation) => writer.generation = generation,
            Err(ReplaceError::Unsure(error)) => {
                writer.failed = Some(format!("whether the manifest was replaced is unknown: {error}"));
                return Err(ReplaceError::Unsure(error).into());
            }
            Err(error) => return Err(error.into()),
        }
        (writer.state, writer.durable) = (state, durable);
        let before = self.view();
        self.settle(&before.parts, &parts);
        self.publish(View { parts });
        for (segment, generation) in stale {
            // Best effort: a bitmap that nobody reads.
            let _ = self.storage.remove(&segment::deleted(segment, generation));
        }
        Ok(())
    }
}

impl Table {
    /// Tells the pool which indexes are sealed now, by their sizes, and which are no longer there.
    fn settle(&self, before: &[Part], now: &[Part]) {
        let pool = &self.resources.pool;
        let sealed = |part: &&Part| matches!(part.body, Body::Sealed(_));
        let known =
            |parts: &[Part], part: &Part| parts.iter().filter(sealed).any(|p| p.tables == part.tables);
        for part in now.iter().filter(sealed).filter(|part| !known(before, part)) {
            for (field, &table) in part.tables.iter().enumerate() {
                pool.place(table, part.reader(field));
            }
        }
        let gone = |part: &&Part| !now.iter().any(|p| p.tables == part.tables);
        before.iter().filter(gone).flat_map(|part| part.tables.iter()).for_each(|&table| pool.forget(table));
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        let view = self.view();
        let tables: Vec<TableId> = view.parts.iter().flat_map(|part| part.tables.iter().copied()).collect();
        tables.into_iter().for_each(|table| self.resources.pool.forget(table));
    }
}

impl std::fmt::Debug for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Table").field("segments", &self.segments()).finish_non_exhaustive()
    }
}
