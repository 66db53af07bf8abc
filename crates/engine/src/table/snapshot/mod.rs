//! Snapshots: tables as they were at one moment, in a repository that keeps each segment once.
//!
//! A snapshot is a manifest, written last, so that it is there as a whole or not at all. Segments never change and are
//! known by their table's identity, their number and the checksums of their blocks: what the repository has is not
//! copied again. Of a segment only the set of dead rows is the snapshot's own. Files that no manifest names are removed
//! by the next that takes the repository's lock.
//!
//! The table goes on meanwhile: what a view shows is opened at once, and what is open can be read even if a merge removes
//! it. The head's rows are sealed for the snapshot alone.

mod contents;
mod copy;
mod restore;

use super::bits::Bits;
use super::check::{Finding, Progress};
use super::effort::Effort;
use super::memory::Asked;
use super::seal::FlushError;
use super::segment::{Sealed, SegmentError, SegmentId, folder};
use super::table::Table;
use super::view::{Body, Part};
use crate::documents::{Mapping, Schema};
use contents::{Contents, File, Stored};
use copy::{Copying, end_of};
use lanewise_storage::blob::BlobError;
use lanewise_storage::log::AppendError;
use lanewise_storage::manifest::{self, ReadError, ReplaceError};
use lanewise_storage::{Bytes, Held, Kind, Memory, Storage};
use serde::Serialize;
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};

/// The longest name, bytes.
const NAME_BYTES_MAX: usize = 128;
const SNAPSHOTS: &str = "snapshots";
const SEGMENTS: &str = "segments";

/// Why a snapshot was not made, read, or restored.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum SnapshotError {
    #[error(
        "snapshot {name:?}: give 1 to {NAME_BYTES_MAX} letters, digits, `.`, `_` or `-`, not beginning with `.`"
    )]
    Name { name: String },
    #[error("snapshot {name:?} is there already: give another name, or delete it")]
    Exists { name: String },
    #[error("there is no snapshot {name:?}")]
    Missing { name: String },
    #[error("the repository is in use, here or in another process: try again when that is done")]
    Busy,
    #[error("there is a table, or something else, in the folder: name one that is empty or not there")]
    Occupied,
    #[error("{}: {error}", path.display())]
    Io { path: PathBuf, error: io::Error },
    #[error("{}: {error}", path.display())]
    Blob { path: PathBuf, error: BlobError },
    #[error("{}: not the file that the snapshot was made of", path.display())]
    Other { path: PathBuf },
    #[error(transparent)]
    Manifest(#[from] ReadError),
    #[error(transparent)]
    Replace(#[from] ReplaceError),
    #[error("the snapshot's manifest is none: {what}")]
    Invalid { what: String },
    #[error("version {found} of snapshots, this program reads up to 1: use a newer Lanewise")]
    Version { found: u32 },
    #[error("snapshot {name:?}: {error}; until it can be read or is deleted, nothing else is removed")]
    Unreadable { name: String, error: Box<SnapshotError> },
    #[error(transparent)]
    Flush(#[from] FlushError),
    #[error(transparent)]
    Segment(#[from] SegmentError),
    #[error("stopped: nothing was changed")]
    Stopped,
}

fn at(path: &Path) -> impl Fn(io::Error) -> SnapshotError {
    move |error| SnapshotError::Io { path: path.to_owned(), error }
}

/// What a snapshot is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Snapshot {
    /// Its name.
    pub name: String,
    /// When it was made, milliseconds since 1970, as whoever made it said.
    pub created_ms: u64,
    /// Documents.
    pub documents: u64,
    /// Segments.
    pub segments: usize,
    /// Bytes of all its files, those that other snapshots share included.
    pub bytes: u64,
    /// Bytes of them that were copied when it was made; 0 when it is read.
    pub copied: u64,
}

impl Snapshot {
    fn of(name: &str, contents: &Contents, copied: u64) -> Snapshot {
        Snapshot {
            name: name.to_owned(),
            created_ms: contents.created_ms,
            documents: contents.segments.iter().map(|stored| stored.live).sum(),
            segments: contents.segments.len(),
            bytes: contents.files().map(|file| file.bytes).sum(),
            copied,
        }
    }
}

/// What the bytes of a snapshot's manifest say.
///
/// # Errors
/// If they are damaged, no snapshot's, or a newer program's.
pub fn decode_snapshot(name: &str, file: &[u8]) -> Result<Snapshot, SnapshotError> {
    Contents::decode(file).map(|contents| Snapshot::of(name, &contents, 0))
}

/// A folder of snapshots, of any number of tables. One at a time changes it; any may read.
#[derive(Clone, Debug)]
pub struct Repository {
    storage: Arc<dyn Storage>,
}

/// Files of a segment, opened.
type Open = Vec<(String, Bytes)>;

/// A segment as a view shows it.
struct Frozen {
    segment: SegmentId,
    live: u64,
    files: Open,
    deleted: Bits,
}

impl Table {
    /// Makes the snapshot `name` of the table as it is now, while writes and searches go on. `created_ms` is the time of day,
    /// milliseconds since 1970. Says how much was copied: segments that the repository has are not.
    ///
    /// # Errors
    /// If the name is taken or no name, somebody else changes the repository, the system fails, a file is damaged, or
    /// `progress` stops it. No snapshot is there then, and the others are whole.
    pub fn snapshot(
        &self,
        repository: &Repository,
        name: &str,
        created_ms: u64,
        progress: Progress<'_>,
    ) -> Result<Snapshot, SnapshotError> {
        let _held = repository.change()?;
        if repository.exists(name)? {
            return Err(SnapshotError::Exists { name: name.to_owned() });
        }
        // What cannot be sealed on a full disk, say, is sealed for the snapshot alone.
        self.flush().or_else(unless_the_disks)?;
        let (frozen, last, identity, schema) = self.frozen()?;
        let mut contents = Contents::new(schema, (*self.settings()).clone(), created_ms, last);
        let made = repository.write(name, &mut contents, &frozen, identity, progress);
        if made.is_err() {
            // Best effort: what is left is removed by the next that changes the repository.
            let _ = repository.sweep();
        }
        made
    }

    /// The files of all segments as they are at one moment, its last write, whose they are, and the schema.
    fn frozen(&self) -> Result<(Vec<Frozen>, u64, u64, Schema), SnapshotError> {
        // No merge removes files meanwhile.
        let _sealing = self.sealing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut writer = self.writer();
        let (last, identity) = (self.log.last(), writer.state.identity);
        // Nobody adds to what was the head until now, nor while the writer is held where there can be no new head.
        let froze = self.freeze_as(&mut writer);
        let view = self.view();
        let held = match froze {
            Ok(_) => {
                drop(writer);
                None
            }
            Err(error) => {
                unless_the_disks(error)?;
                Some(writer)
            }
        };
        let frozen =
            view.parts.iter().filter(|part| part.live() > 0).map(|part| self.open_files(&view.mapping, part));
        let frozen = frozen.collect::<Result<_, _>>()?;
        drop(held);
        Ok((frozen, last, identity, Schema::clone(view.mapping.schema())))
    }

    fn open_files(&self, mapping: &Mapping, part: &Part) -> Result<Frozen, SnapshotError> {
        let segment = part.segment;
        let dir = folder(segment);
        let storage: Arc<dyn Storage> = match &part.body {
            Body::Sealed(_) => self.storage.clone(),
            Body::Head(head) => {
                let memory: Arc<dyn Storage> = Arc::new(Memory::new());
                memory.create_dir(Path::new(SEGMENTS)).map_err(at(&dir))?;
                let head = head.as_of(&self.resources.threads).map_err(SegmentError::from)?;
                let from = (&head, &part.deleted);
                let effort = Effort::of(self.resources.threads);
                Sealed::write(&memory, mapping, segment, from, &effort, Asked::Nobody)?;
                memory
            }
        };
        let mut files = Vec::new();
        for entry in storage.list(&dir).map_err(at(&dir))? {
            let Some(name) = entry.name.to_str().filter(|name| !name.starts_with("deleted-")) else {
                continue;
            };
            let path = dir.join(name);
            files.push((name.to_owned(), storage.open(&path).map_err(at(&path))?));
        }
        Ok(Frozen { segment, live: part.live() as u64, files, deleted: part.deleted.clone() })
    }
}

/// Passes over what may come of the table's own disk, which a snapshot does not write to.
fn unless_the_disks(error: FlushError) -> Result<(), FlushError> {
    match error {
        FlushError::Log(AppendError::Refused(_))
        | FlushError::Segment { error: SegmentError::Io { .. } | SegmentError::Documents(_), .. }
        | FlushError::Manifest(ReplaceError::Kept(_))
        | FlushError::OldLog(_) => Ok(()),
        error => Err(error),
    }
}

fn check_name(name: &str) -> Result<(), SnapshotError> {
    let fine = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    if name.is_empty() || name.len() > NAME_BYTES_MAX || name.starts_with('.') || !name.chars().all(fine) {
        return Err(SnapshotError::Name { name: name.to_owned() });
    }
    Ok(())
}

fn manifest_of(name: &str) -> PathBuf {
    Path::new(SNAPSHOTS).join(name).join("manifest")
}

/// A snapshot's name, and what it is, or why it cannot be read.
pub type NamedSnapshot = (String, Result<Snapshot, SnapshotError>);

impl Repository {
    /// The repository in the folder that is `storage`'s root.
    pub fn new(storage: Arc<dyn Storage>) -> Repository {
        Repository { storage }
    }

    /// Takes the lock, and removes what a crash left.
    fn change(&self) -> Result<Box<dyn Held>, SnapshotError> {
        let path = Path::new("lock");
        let held = self.storage.lock(path).map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => SnapshotError::Busy,
            _ => at(path)(error),
        })?;
        for dir in [SNAPSHOTS, SEGMENTS] {
            self.make(Path::new(dir))?;
        }
        // What cannot be told from what is needed stays.
        match self.sweep() {
            Ok(()) | Err(SnapshotError::Unreadable { .. }) => Ok(held),
            Err(error) => Err(error),
        }
    }

    fn make(&self, dir: &Path) -> Result<(), SnapshotError> {
        match self.storage.create_dir(dir) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(at(dir)(error)),
            _ => {
                let above = dir.parent().unwrap_or(Path::new(""));
                self.storage.sync_dir(above).map_err(at(above))
            }
        }
    }

    fn exists(&self, name: &str) -> Result<bool, SnapshotError> {
        check_name(name)?;
        let path = manifest_of(name);
        match self.storage.open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            opened => opened.map(|_| true).map_err(at(&path)),
        }
    }

    /// Folders in a folder; none if it is not there.
    fn folders(&self, dir: &str) -> Result<BTreeSet<String>, SnapshotError> {
        match self.storage.list(Path::new(dir)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(BTreeSet::new()),
            Err(error) => Err(at(Path::new(dir))(error)),
            Ok(entries) => {
                let folders = entries.into_iter().filter(|entry| entry.kind == Kind::Folder);
                Ok(folders.filter_map(|entry| entry.name.into_string().ok()).collect())
            }
        }
    }

    /// Folders that have the name of a snapshot.
    fn named(&self) -> Result<impl Iterator<Item = String>, SnapshotError> {
        Ok(self.folders(SNAPSHOTS)?.into_iter().filter(|name| check_name(name).is_ok()))
    }

    fn read(&self, name: &str) -> Result<Contents, SnapshotError> {
        if !self.exists(name)? {
            return Err(SnapshotError::Missing { name: name.to_owned() });
        }
        let path = manifest_of(name);
        let file = self.storage.open(&path).map_err(at(&path))?;
        Contents::decode((*file).as_ref())
    }

    /// The snapshots by name; of one that cannot be read, why.
    ///
    /// # Errors
    /// If the repository cannot be read.
    pub fn list(&self) -> Result<Vec<NamedSnapshot>, SnapshotError> {
        let mut all = Vec::new();
        for name in self.named()? {
            if self.exists(&name)? {
                let read = self.read(&name).map(|contents| Snapshot::of(&name, &contents, 0));
                all.push((name, read));
            }
        }
        Ok(all)
    }

    /// Deletes a snapshot, and of its files those that no other one needs.
    ///
    /// # Errors
    /// If there is none of that name, somebody else changes the repository, or the system fails; and, once the snapshot is
    /// deleted, if another cannot be read: its files cannot be told from the others, so none are removed.
    pub fn delete(&self, name: &str) -> Result<(), SnapshotError> {
        let _held = self.change()?;
        if !self.exists(name)? {
            return Err(SnapshotError::Missing { name: name.to_owned() });
        }
        let path = manifest_of(name);
        self.storage.remove(&path).map_err(at(&path))?;
        let dir = path.parent().unwrap_or(Path::new(""));
        self.storage.sync_dir(dir).map_err(at(dir))?;
        self.sweep()
    }

    /// Reads all files of a snapshot, and says which are not as they were written.
    ///
    /// # Errors
    /// If there is none, its manifest cannot be read, or `progress` stops it.
    pub fn verify(&self, name: &str, progress: Progress<'_>) -> Result<Vec<Finding>, SnapshotError> {
        let contents = self.read(name)?;
        let mut copying = Copying::new(contents.files().map(|file| file.bytes).sum(), progress);
        let mut findings = Vec::new();
        for (path, file) in paths(name, &contents) {
            match copying.read(&*self.storage, &path, file, &mut |_| Ok(())) {
                Ok(()) => {}
                Err(SnapshotError::Stopped) => return Err(SnapshotError::Stopped),
                Err(error) => findings.push(Finding::lost(&path, error.to_string())),
            }
        }
        Ok(findings)
    }

    /// Removes what no snapshot names.
    fn sweep(&self) -> Result<(), SnapshotError> {
        let mut needed = BTreeSet::new();
        for name in self.named()? {
            let dir = Path::new(SNAPSHOTS).join(&name);
            if !self.exists(&name)? {
                self.remove(&dir)?;
                continue;
            }
            let contents = self
                .read(&name)
                .map_err(|error| SnapshotError::Unreadable { name: name.clone(), error: Box::new(error) })?;
            needed.extend(contents.segments.into_iter().map(|stored| stored.folder));
        }
        for folder in self.folders(SEGMENTS)?.difference(&needed) {
            self.remove(&Path::new(SEGMENTS).join(folder))?;
        }
        Ok(())
    }

    /// Removes a folder of files.
    fn remove(&self, dir: &Path) -> Result<(), SnapshotError> {
        for entry in self.storage.list(dir).map_err(at(dir))? {
            if entry.kind == Kind::File {
                let path = dir.join(&entry.name);
                self.storage.remove(&path).map_err(at(&path))?;
            }
        }
        self.storage.remove_dir(dir).map_err(at(dir))
    }

    fn write(
        &self,
        name: &str,
        contents: &mut Contents,
        frozen: &[Frozen],
        identity: u64,
        progress: Progress<'_>,
    ) -> Result<Snapshot, SnapshotError> {
        let own = Path::new(SNAPSHOTS).join(name);
        self.make(&own)?;
        let bytes = frozen.iter().flat_map(|one| &one.files).map(|(_, file)| (**file).as_ref().len() as u64);
        let mut copying = Copying::new(bytes.sum(), progress);
        for one in frozen {
            let mut files = Vec::new();
            for (file, bytes) in &one.files {
                let end = end_of(bytes)
                    .map_err(|error| SnapshotError::Blob { path: folder(one.segment).join(file), error })?;
                files.push(File { name: file.clone(), bytes: (**bytes).as_ref().len() as u64, end });
            }
            let folder = self.place(
                &format!("{identity:016x}-{:016x}", one.segment.0),
                &files,
                &one.files,
                &mut copying,
            )?;
            let deleted = if one.deleted.count() > 0 {
                let file = format!("deleted-{}", one.segment.0);
                let path = own.join(&file);
                super::segment::write_blob(&*self.storage, &path, &[&one.deleted.to_bytes()])?;
                let bytes = self.storage.open(&path).map_err(at(&path))?;
                let end = end_of(&bytes).map_err(|error| SnapshotError::Blob { path, error })?;
                Some(File { name: file, bytes: (*bytes).as_ref().len() as u64, end })
            } else {
                None
            };
            contents.segments.push(Stored { segment: one.segment, folder, live: one.live, files, deleted });
        }
        self.storage.sync_dir(Path::new(SEGMENTS)).map_err(at(Path::new(SEGMENTS)))?;
        // Or the manifest's name might be there, and not those of dead rows.
        self.storage.sync_dir(&own).map_err(at(&own))?;
        manifest::replace(&*self.storage, &manifest_of(name), 0, &contents.encode())?;
        Ok(Snapshot::of(name, contents, copying.copied))
    }

    /// The folder that holds a segment's files, after copying them if there is none.
    fn place(
        &self,
        name: &str,
        files: &[File],
        open: &Open,
        copying: &mut Copying<'_>,
    ) -> Result<String, SnapshotError> {
        let there = self.folders(SEGMENTS)?;
        // A table that was copied as a folder may write other segments of the same number.
        for number in 0u32.. {
            let folder = format!("{name}-{number}");
            let dir = Path::new(SEGMENTS).join(&folder);
            if there.contains(&folder) {
                if self.holds(&dir, files)? {
                    copying.skip(files)?;
                    return Ok(folder);
                }
                continue;
            }
            self.make(&dir)?;
            for (file, (name, bytes)) in files.iter().zip(open) {
                copying.write(bytes, &*self.storage, &dir.join(name), file)?;
            }
            self.storage.sync_dir(&dir).map_err(at(&dir))?;
            return Ok(folder);
        }
        unreachable!("there are fewer folders than numbers")
    }

    /// Whether a folder holds just these files, by their lengths and checksums.
    fn holds(&self, dir: &Path, files: &[File]) -> Result<bool, SnapshotError> {
        let entries = self.storage.list(dir).map_err(at(dir))?;
        let same = |file: &File| {
            entries.iter().any(|entry| entry.name == file.name.as_str() && entry.bytes == file.bytes)
                && self.storage.open(&dir.join(&file.name)).is_ok_and(|bytes| end_of(&bytes) == Ok(file.end))
        };
        Ok(entries.len() == files.len() && files.iter().all(same))
    }
}

/// Where a snapshot's files are in the repository.
fn paths<'a>(name: &str, contents: &'a Contents) -> Vec<(PathBuf, &'a File)> {
    let mut all = Vec::new();
    for Stored { folder, files, deleted, .. } in &contents.segments {
        let dir = Path::new(SEGMENTS).join(folder);
        all.extend(files.iter().map(|file| (dir.join(&file.name), file)));
        let own = Path::new(SNAPSHOTS).join(name);
        all.extend(deleted.iter().map(|file| (own.join(&file.name), file)));
    }
    all
}
