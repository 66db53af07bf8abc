//! Checking a closed table: all of it is read, nothing is written.
//!
//! [`examine`] finds what is wrong and decides what becomes of each part: kept, set right, built anew, or set aside. A
//! check tells of that; a repair (`table/repair.rs`) does it. So both say the same, and a repair of what has
//! no findings has nothing to do.

mod log;
mod overlay;
mod salvage;
mod segment;

pub(super) use log::Cut;
pub(super) use salvage::Salvage;
pub(super) use segment::TOGETHER;

use super::bits::Bits;
use super::open::unique;
use super::segment::{Sealed, SegmentId, folder};
use super::state::{Listed, State, StateError};
use crate::documents::{Mapping, Schema};
use lanewise_storage::blob::{self, Blob};
use lanewise_storage::{Bytes, Held, Kind, Storage, manifest};
use overlay::Overlay;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io;
use std::ops::{ControlFlow, Range, RangeInclusive};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How bad something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The table opens, and nothing is missing: left by a crash, or by somebody else.
    Harmless,
    /// A repair sets it right, and nothing is lost.
    Mendable,
    /// A repair makes the table open, and something is lost.
    Loss,
}

/// Something that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The file or folder.
    pub path: PathBuf,
    /// How bad it is.
    pub severity: Severity,
    /// What is wrong, and what a repair does about it.
    pub what: String,
}

/// What happens to a document by a repair.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(tag = "effect", rename_all = "lowercase")]
pub enum Effect {
    /// It is gone.
    Gone,
    /// Its vector is gone, the document stays.
    Vector {
        /// The field.
        field: String,
    },
    /// Its last writes, this one among them, are gone: it is as it was before, or not there.
    Older {
        /// The write's sequence number.
        seq: u64,
    },
    /// It may have been deleted before, and may be there again.
    Back,
}

/// A document that does not stay as it was.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Affected {
    /// Its id.
    pub id: String,
    /// What happens to it.
    #[serde(flatten)]
    pub effect: Effect,
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Files that were read.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Live documents in segments that stay; those of the log come on top.
    pub documents: u64,
    /// What is wrong.
    pub findings: Vec<Finding>,
    /// Documents that do not stay as they were, as far as they can be named.
    pub affected: Vec<Affected>,
    /// Writes whose records are lost, by sequence numbers: as far as these are known, since a file whose header is damaged
    /// does not say how many it held.
    pub lost_writes: Option<RangeInclusive<u64>>,
}

impl Finding {
    pub(super) fn lost(path: &Path, what: String) -> Finding {
        Finding { path: path.to_owned(), severity: Severity::Loss, what }
    }
}

impl Report {
    /// The worst finding.
    pub fn severity(&self) -> Option<Severity> {
        self.findings.iter().map(|finding| finding.severity).max()
    }

    pub(super) fn find(&mut self, path: &Path, severity: Severity, what: impl Into<String>) {
        self.findings.push(Finding { path: path.to_owned(), severity, what: what.into() });
    }

    pub(super) fn affect(&mut self, id: &str, effect: Effect) {
        self.affected.push(Affected { id: id.to_owned(), effect });
    }
}

/// Why a table could not be checked.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum CheckError {
    #[error("the table is open, here or in another process: close it first")]
    Locked,
    #[error("no table: there is neither a manifest nor a folder of segments")]
    NoTable,
    #[error("{}: {error}", path.display())]
    Io { path: PathBuf, error: io::Error },
    #[error("{0}")]
    Newer(String),
    #[error("stopped")]
    Stopped,
}

/// Hears how many bytes of how many were read, and says whether to go on.
pub type Progress<'a> = &'a mut dyn FnMut(u64, u64) -> ControlFlow<()>;

/// Reads all of the closed table in the folder that is `storage`'s root, and says what is wrong with it. Writes nothing, and
/// keeps no more in memory than what says of damaged files what is left of them.
///
/// # Errors
/// If there is no table, it is open, written by a newer program, or `progress` stops it. What is damaged is no error.
pub fn check(storage: &Arc<dyn Storage>, progress: Progress<'_>) -> Result<Report, CheckError> {
    let _held = hold(&**storage)?;
    Ok(examine(storage, None, progress)?.report)
}

/// The lock of a table that nobody has open. Where there is none nobody has; it is not made.
pub(super) fn hold(storage: &dyn Storage) -> Result<Option<Box<dyn Held>>, CheckError> {
    let path = Path::new("lock");
    let at = |error| CheckError::Io { path: path.to_owned(), error };
    let all = storage.list(Path::new("")).map_err(at)?;
    if !all.iter().any(|entry| entry.name == "lock") {
        return Ok(None);
    }
    match storage.lock(path) {
        Ok(held) => Ok(Some(held)),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Err(CheckError::Locked),
        // Where nobody can write, nobody has it open to write.
        Err(error) if error.kind() == io::ErrorKind::ReadOnlyFilesystem => Ok(None),
        Err(error) => Err(at(error)),
    }
}

/// What becomes of a segment.
pub(super) enum Kept {
    /// It stays; its dead rows are to be written anew if `bits` are not what the manifest names.
    Whole { sealed: Box<Sealed>, bits: Bits, rewrite: bool },
    /// What is left of it is written as another one.
    Anew { salvage: Box<Salvage>, bits: Bits },
    /// Nothing of it can be used.
    Aside,
}

/// What was found, and what is to be done.
pub(super) struct Examined {
    pub(super) report: Report,
    /// Damaged files whose contents are known.
    pub(super) mended: BTreeMap<PathBuf, Bytes>,
    /// The table as it should be, its segments excepted, and the generation to replace; `None`: nothing says what it was.
    pub(super) state: Option<(State, u64)>,
    /// Whether the manifest must be written even if the segments stay.
    pub(super) rewrite: bool,
    pub(super) segments: Vec<(Listed, Kept)>,
    pub(super) cut: Option<Cut>,
}

/// Files that are damaged still, with the ranges of their data that are; `None`: all of it.
type Damaged = BTreeMap<PathBuf, Option<(usize, Vec<Range<usize>>)>>;

pub(super) fn examine(
    storage: &Arc<dyn Storage>,
    schema: Option<Schema>,
    progress: Progress<'_>,
) -> Result<Examined, CheckError> {
    let mut report = Report::default();
    let files = Files::read(storage, &mut report, progress)?;
    let Files { mended, mut damaged, folders, has_log } = files;
    let overlay = Arc::new(Overlay::new(storage.clone(), mended));
    let reading: Arc<dyn Storage> = overlay.clone();
    let found = read_state(&*reading, schema, &folders, has_log, &mut report)?;
    let found = found.and_then(|(state, generation, known)| match Mapping::new(state.schema.clone()) {
        Ok(mapping) => Some((state, mapping, generation, known)),
        Err(error) => {
            report.find(Path::new("manifest"), Severity::Loss, format!("{error}: give the table's schema"));
            None
        }
    });
    let Some((mut state, mapping, generation, known)) = found else {
        let (segments, mended) = (Vec::new(), overlay.files());
        return Ok(Examined { report, mended, state: None, rewrite: false, segments, cut: None });
    };
    let mut segments = Vec::new();
    for listed in state.segments.clone() {
        let examining =
            segment::Examining { storage: &reading, mapping: &mapping, listed: &listed, damaged: &damaged };
        let kept = examining.run(&mut report);
        segments.push((listed, kept));
        if progress(report.bytes, report.bytes).is_break() {
            return Err(CheckError::Stopped);
        }
    }
    let named = |number: &u64| segments.iter().any(|(listed, _)| listed.segment.0 == *number);
    for number in folders.iter().filter(|number| !named(number)) {
        let path = folder(SegmentId(*number));
        damaged.retain(|file, _| !file.starts_with(&path));
        report.find(&path, Severity::Harmless, "never finished, or merged: removed when the table is opened");
    }
    segment::settle_twice(&mut segments, &mut report);
    let last = segments.iter().filter_map(|(_, kept)| kept.last()).max().unwrap_or(0);
    if known == Known::Folders {
        segments.iter().for_each(|(_, kept)| kept.may_be_back(&mut report));
        // A log without a file does not say where its numbers go on.
        state.replay_from = log::first(&*reading).unwrap_or(last + 1);
    }
    let mut cut = None;
    let rewrite = log::examine(&overlay, &mapping, last, &mut state, &mut cut, &mut report)?
        || known != Known::Manifest;
    report.documents = segments.iter().map(|(_, kept)| kept.live() as u64).sum();
    report.affected.sort();
    report.affected.dedup();
    let newest = folders.iter().max().map_or(0, |number| number + 1);
    state.next_segment = state.next_segment.max(newest);
    let mended = overlay.files();
    Ok(Examined { report, mended, state: Some((state, generation)), rewrite, segments, cut })
}

/// What there is, each file read once.
struct Files {
    mended: BTreeMap<PathBuf, Bytes>,
    damaged: Damaged,
    /// Numbers of the folders of segments.
    folders: Vec<u64>,
    has_log: bool,
}

impl Files {
    fn read(
        storage: &Arc<dyn Storage>,
        report: &mut Report,
        progress: Progress<'_>,
    ) -> Result<Files, CheckError> {
        let list =
            |dir: &Path| storage.list(dir).map_err(|error| CheckError::Io { path: dir.to_owned(), error });
        let mut files =
            Files { mended: BTreeMap::new(), damaged: BTreeMap::new(), folders: Vec::new(), has_log: false };
        let mut all: Vec<(PathBuf, u64)> = Vec::new();
        let (mut manifest, mut segments) = (false, false);
        for entry in list(Path::new(""))? {
            let path = PathBuf::from(&entry.name);
            match (entry.name.to_str(), entry.kind) {
                (Some("manifest" | "manifest.copy"), Kind::File) => {
                    manifest |= path == Path::new("manifest");
                    all.push((path, entry.bytes));
                }
                (Some("lock"), Kind::File) | (Some("lost"), Kind::Folder) => {}
                (Some("log"), Kind::Folder) => files.has_log = true,
                (Some("segments"), Kind::Folder) => segments = true,
                (Some(name), Kind::File) if name.ends_with(".tmp") => {
                    report.find(
                        &path,
                        Severity::Harmless,
                        "left by a crash: removed when the table is opened",
                    );
                }
                _ => report.find(&path, Severity::Harmless, "no file of a table's: left alone"),
            }
        }
        if !manifest && !segments {
            return Err(CheckError::NoTable);
        }
        let folders = if segments { list(Path::new("segments"))? } else { Vec::new() };
        for entry in folders {
            let path = Path::new("segments").join(&entry.name);
            let name = entry.name.to_str().unwrap_or_default();
            let number =
                u64::from_str_radix(name, 16).ok().filter(|_| name.len() == 16 && entry.kind == Kind::Folder);
            let Some(number) = number else {
                report.find(&path, Severity::Harmless, "no segment: left alone");
                continue;
            };
            files.folders.push(number);
            all.extend(
                list(&path)?
                    .iter()
                    .filter(|file| file.kind == Kind::File)
                    .map(|file| (path.join(&file.name), file.bytes)),
            );
        }
        let expected = all.iter().map(|(_, bytes)| bytes).sum();
        for (path, bytes) in all {
            if progress(report.bytes, expected).is_break() {
                return Err(CheckError::Stopped);
            }
            files.file(&**storage, &path, report);
            (report.files, report.bytes) = (report.files + 1, report.bytes + bytes);
        }
        Ok(files)
    }

    /// Reads a file: right, set right, or damaged.
    fn file(&mut self, storage: &dyn Storage, path: &Path, report: &mut Report) {
        let file = match storage.open(path) {
            Ok(file) => file,
            Err(_) => return drop(self.damaged.insert(path.to_owned(), None)),
        };
        let bytes = (*file).as_ref();
        if path.components().count() == 1 {
            if !matches!(manifest::decode(bytes), Err(manifest::ReadError::Damaged { .. })) {
                return;
            }
            if let Some(mended) = manifest::mend(bytes) {
                report.find(path, Severity::Mendable, "one bit is wrong: it is set right by the checksum");
                self.mended.insert(path.to_owned(), Arc::new(mended));
            } else if path == Path::new("manifest.copy") {
                report.find(path, Severity::Mendable, "it is damaged: it is written anew");
            }
            return;
        }
        if Blob::open(file.clone()).and_then(|blob| blob.verify()).is_ok() {
            return;
        }
        let Some(mended) = blob::mend(bytes) else {
            return drop(self.damaged.insert(path.to_owned(), None));
        };
        if mended.damaged.is_empty() {
            report.find(
                path,
                Severity::Mendable,
                "single bits are wrong: they are set right by the checksums",
            );
        } else {
            self.damaged.insert(path.to_owned(), Some((mended.data, mended.damaged)));
        }
        self.mended.insert(path.to_owned(), Arc::new(mended.file));
    }
}

/// What says which segments there are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Known {
    Manifest,
    Copy,
    /// Nothing but that they are there.
    Folders,
}

/// The table's state, and the generation of its manifest.
fn read_state(
    storage: &dyn Storage,
    schema: Option<Schema>,
    folders: &[u64],
    has_log: bool,
    report: &mut Report,
) -> Result<Option<(State, u64, Known)>, CheckError> {
    let path = Path::new("manifest");
    let why = match State::read(storage) {
        Ok((state, generation)) => return Ok(Some((state, generation, Known::Manifest))),
        Err(error @ (StateError::Version(_) | StateError::Read(manifest::ReadError::Version { .. }))) => {
            return Err(CheckError::Newer(error.to_string()));
        }
        Err(StateError::Read(manifest::ReadError::Io(error))) => {
            return Err(CheckError::Io { path: path.to_owned(), error });
        }
        Err(error) => error.to_string(),
    };
    let copy = State::read_copy(storage);
    if let (None, Some((state, generation))) = (&schema, &copy)
        && state.segments.iter().all(|listed| folders.contains(&listed.segment.0))
    {
        report.find(path, Severity::Mendable, format!("{why}: its copy takes its place"));
        return Ok(Some((state.clone(), *generation, Known::Copy)));
    }
    let Some(schema) = schema.or_else(|| copy.map(|(state, _)| state.schema)) else {
        let what = format!("{why}, and its copy is damaged or missing: give the table's schema");
        report.find(path, Severity::Loss, what);
        return Ok(None);
    };
    let identity = log::identity(storage).filter(|_| has_log);
    let mut state = State::new(schema, identity.unwrap_or_else(unique));
    let mut newest = 0;
    for &number in folders {
        let segment = SegmentId(number);
        let generation =
            |name: &std::ffi::OsStr| name.to_str()?.strip_prefix("deleted-")?.parse::<u64>().ok();
        let entries = storage.list(&folder(segment)).unwrap_or_default();
        let deleted = entries.iter().filter_map(|entry| generation(&entry.name)).max();
        newest = newest.max(deleted.unwrap_or(0));
        state.segments.push(Listed { segment, deleted });
    }
    let what = format!(
        "{why}: it is made anew of the {} segments that there are, some of which may have been merged or emptied, so that \
         documents that were deleted may be there again",
        folders.len()
    );
    report.find(path, Severity::Loss, what);
    Ok(Some((state, newest, Known::Folders)))
}

impl Kept {
    /// Live documents.
    pub(super) fn live(&self) -> usize {
        match self {
            Kept::Whole { sealed, bits, .. } => {
                sealed.rows.documents().filter(|&row| !bits.contains(row)).count()
            }
            Kept::Anew { salvage, bits } => salvage.usable(bits).count(),
            Kept::Aside => 0,
        }
    }
}
