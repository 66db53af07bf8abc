//! Opening a table: its manifest and segments, then what the log holds beyond them.

use super::apply::{Applied, Checked, Writing};
use super::bits::Bits;
use super::head::Head;
use super::memory::Asked;
use super::need;
use super::op::{Record, RecordError, decode};
use super::segment::{self, Sealed, SegmentError, SegmentId};
use super::state::{Listed, State, StateError};
use super::table::{Resources, Table, Work, Writer};
use super::view::{Body, Part, View};
use super::write::{When, WriteError};
use crate::documents::{Mapping, Schema, SchemaError};
use crate::{Purpose, Refusal};
use arc_swap::ArcSwap;
use lanewise_index::{AddError, CreateError};
use lanewise_storage::log::{Log, ReplayError};
use lanewise_storage::manifest::{ReadError, ReplaceError};
use lanewise_storage::{Held, Storage};
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

/// Records that are replayed together, at most, and their bytes, about.
const REPLAYED: usize = 1024;
const REPLAYED_BYTES: usize = 8 << 20;

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
    Refused(#[from] Refusal),
    #[error(transparent)]
    Log(#[from] ReplayError),
    #[error("record {seq} of the log: {error}")]
    Record { seq: u64, error: RecordError },
    #[error("record {seq} of the log: {error}")]
    Write { seq: u64, error: WriteError },
    #[error("it was stopped")]
    Stopped,
}

/// Whether to go on.
type Proceed<'a> = &'a dyn Fn() -> ControlFlow<()>;

fn check(proceed: Proceed<'_>) -> Result<(), OpenError> {
    if proceed().is_break() { Err(OpenError::Stopped) } else { Ok(()) }
}

/// Numbers that nobody else draws.
pub(super) fn unique() -> u64 {
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
        check(writing.proceed)?;
        let Applied { parts: done, results, failed, .. } =
            writing.apply(parts.take().expect("put back below"), waiting.into_iter().map(Ok).collect());
        parts = Some(done);
        let mut failed = failed.map(|why| OpenError::Write { seq: first, error: WriteError::Failed { why } });
        for (seq, result) in (first..).zip(results) {
            failed = failed.or(result.err().map(|error| match error {
                WriteError::Add { error, .. } if matches!(*error, AddError::Cancelled { .. }) => {
                    OpenError::Stopped
                }
                error => OpenError::Write { seq, error },
            }));
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
                    Ok(Record::Load) => return apply(first, std::mem::take(&mut waiting)),
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
        Table::open_locked(storage, held, resources, &|| ControlFlow::Continue(()))
    }

    /// Whether the folder that is `storage`'s root holds a table, damaged or not.
    pub(crate) fn is_in(storage: &dyn Storage) -> bool {
        !matches!(State::read(storage), Err(StateError::Read(ReadError::Missing)))
    }

    /// Opens the table in the folder that is `storage`'s root: what was acknowledged is there.
    ///
    /// # Errors
    /// If there is none, something is damaged, memory is short, or the system fails.
    pub fn open(storage: Arc<dyn Storage>, resources: Resources) -> Result<Table, OpenError> {
        Table::open_with(storage, resources, &|| ControlFlow::Continue(()))
    }

    /// As [`open`](Self::open), asking `proceed` on this thread at times whether to go on: a head that was not sealed is
    /// built anew, which may take long.
    ///
    /// # Errors
    /// As [`open`](Self::open), and [`OpenError::Stopped`]: the table is as it was, and can be opened again.
    pub fn open_with(
        storage: Arc<dyn Storage>,
        resources: Resources,
        proceed: &dyn Fn() -> ControlFlow<()>,
    ) -> Result<Table, OpenError> {
        let held = lock(&*storage)?;
        Table::open_locked(storage, held, resources, proceed)
    }

    fn open_locked(
        storage: Arc<dyn Storage>,
        held: Box<dyn Held>,
        resources: Resources,
        proceed: Proceed<'_>,
    ) -> Result<Table, OpenError> {
        let io = |path: &str| {
            let path = PathBuf::from(path);
            move |error| OpenError::Io { path, error }
        };
        lanewise_storage::remove_temporaries(&*storage, Path::new("")).map_err(io(""))?;
        let (state, generation) = State::read_durable(&*storage)?;
        let mapping = Arc::new(Mapping::new(state.schema.clone())?);
        let memory = resources.admission.admit(Purpose::Open, need::TABLE)?;
        let mut parts = Vec::new();
        let mut durable = HashMap::new();
        for &Listed { segment, deleted } in &state.segments {
            check(proceed)?;
            let at = |error| OpenError::Segment { segment, error };
            let asked = Asked::Of(&resources.admission);
            let sealed = Sealed::open(&storage, &mapping, segment, asked).map_err(at)?;
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
        let writing =
            Writing { mapping: &mapping, threads: resources.threads.yielding(), log: None, proceed };
        let (log, parts) = replay(&storage, &state, &writing, parts)?;
        let mut state = state;
        state.next_segment += 1;
        let settings = ArcSwap::from_pointee(state.settings.clone());
        let replay_from = AtomicU64::new(state.replay_from);
        let writer = Writer { state, generation, durable, failed: None };
        let table = Table {
            storage,
            log,
            resources,
            view: ArcSwap::from_pointee(View { mapping, parts }).into(),
            settings,
            replay_from,
            writer: Mutex::new(writer),
            sealing: Mutex::new(()),
            ids: (unique(), AtomicU64::new(0)),
            work: Work::default(),
            trouble: Mutex::default(),
            _memory: memory,
            _lock: held,
        };
        // Counted, not asked for: what was acknowledged is not left out, and what could be written can be opened.
        table.count_head(None);
        table.settle(&[], &table.view().parts);
        Ok(table)
    }
}
