//! Making a damaged table open again, with as little lost as can be, and nothing deleted: what is damaged is first linked
//! into the folder `lost`, under the path that it had.
//!
//! What is to be done is decided by `check::examine`; this carries it out, in an order that a crash may end anywhere: set
//! aside; set right, file by file; write segments anew under numbers that nothing names; replace the manifest; remove what
//! it does not name any more. Until the manifest is replaced the old one names what it did, so that the next repair finds
//! the same; afterwards the table opens.

use super::bits::Bits;
use super::check::{
    CheckError, Cut, Examined, Kept, Progress, Report, Salvage, Severity, TOGETHER, examine, hold,
};
use super::effort::Effort;
use super::head::{Head, Row};
use super::indexes::joined;
use super::memory::Asked;
use super::op::encode_load;
use super::segment::{self, Sealed, SegmentError, SegmentId, folder};
use super::state::{Listed, State};
use crate::Threads;
use crate::documents::{Mapping, Schema, SchemaError};
use lanewise_index::{AddError, CreateError};
use lanewise_storage::manifest::ReplaceError;
use lanewise_storage::{Kind, Storage, log};
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The folder that damaged files go to.
const LOST: &str = "lost";
/// Rows of a segment that is written anew, at most, so that memory is bounded.
const ROWS: usize = 1 << 16;

/// How to repair.
#[derive(Clone, Debug, Default)]
pub struct Repair {
    /// Only say what would be done.
    pub dry_run: bool,
    /// The table's schema, for where both the manifest and its copy are damaged.
    pub schema: Option<Schema>,
}

/// Why a table was not repaired. What is done is done: a second try goes on from there.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum RepairError {
    #[error(transparent)]
    Check(#[from] CheckError),
    #[error("manifest and schema are damaged or missing: give the table's schema")]
    NoSchema,
    #[error("{}: {error}", path.display())]
    Io { path: PathBuf, error: io::Error },
    #[error("segment {}: {error}", segment.0)]
    Segment { segment: SegmentId, error: SegmentError },
    #[error(transparent)]
    Schema(#[from] SchemaError),
    #[error(transparent)]
    Index(#[from] CreateError),
    #[error(transparent)]
    Add(#[from] AddError),
    #[error(transparent)]
    Manifest(#[from] ReplaceError),
}

/// Repairs the closed table in the folder that is `storage`'s root, and says what was wrong with it, what was done, and which
/// documents are not as they were. A table without findings worse than harmless is left as it is. With `dry_run` nothing is
/// written, and the same is said.
///
/// # Errors
/// If there is no table, it is open, or the system fails; and if nothing says what its schema is.
pub fn repair(
    storage: &Arc<dyn Storage>,
    how: Repair,
    threads: Threads,
    progress: Progress<'_>,
) -> Result<Report, RepairError> {
    let _held = hold(&**storage)?;
    let examined = examine(storage, how.schema, progress)?;
    let healthy = examined.report.severity().is_none_or(|worst| worst == Severity::Harmless);
    if healthy || how.dry_run {
        return Ok(examined.report);
    }
    Repairing { storage, threads }.run(examined)
}

struct Repairing<'a> {
    storage: &'a Arc<dyn Storage>,
    threads: Threads,
}

fn at(path: &Path) -> impl Fn(io::Error) -> RepairError {
    move |error| RepairError::Io { path: path.to_owned(), error }
}

impl Repairing<'_> {
    fn run(&self, examined: Examined) -> Result<Report, RepairError> {
        let Examined { report, mended, state, rewrite, segments, cut } = examined;
        let Some((mut state, generation)) = state else { return Err(RepairError::NoSchema) };
        let mapping = Mapping::new(state.schema.clone())?;
        for dir in ["log", "segments"] {
            self.folder(Path::new(dir))?;
        }
        for (path, bytes) in mended {
            // Blocks of others are damaged still: these are read, and set aside below.
            if !segments
                .iter()
                .any(|(listed, kept)| !kept.stays() && path.starts_with(folder(listed.segment)))
            {
                self.aside(&path)?;
                self.put(&path, (*bytes).as_ref())?;
            }
        }
        if let Some(cut) = &cut {
            self.cut(cut, state.identity)?;
        }
        let mut named = Vec::new();
        let mut replaced = Vec::new();
        let mut changed = rewrite;
        for (listed, kept) in segments {
            let failed = |error| RepairError::Segment { segment: listed.segment, error };
            match kept {
                Kept::Whole { rewrite: false, .. } => named.push(listed),
                Kept::Whole { sealed, bits, .. } => {
                    if let Some(old) = listed.deleted {
                        self.aside(&segment::deleted(listed.segment, old))?;
                    }
                    let storage = &**self.storage;
                    sealed.write_deleted(storage, listed.segment, generation + 1, &bits).map_err(failed)?;
                    let stale = listed.deleted.filter(|old| *old != generation + 1);
                    replaced.extend(stale.map(|old| segment::deleted(listed.segment, old)));
                    named.push(Listed { segment: listed.segment, deleted: Some(generation + 1) });
                    changed = true;
                }
                Kept::Anew { salvage, bits } => {
                    self.aside_all(&folder(listed.segment))?;
                    for segment in self.anew(&mapping, &salvage, &bits, &mut state.next_segment)? {
                        named.push(Listed { segment, deleted: None });
                    }
                    replaced.push(folder(listed.segment));
                    changed = true;
                }
                Kept::Aside => {
                    self.aside_all(&folder(listed.segment))?;
                    replaced.push(folder(listed.segment));
                    changed = true;
                }
            }
        }
        // Replacing the manifest writes its copy too.
        let changed = changed || State::read_copy(&**self.storage).is_none();
        if changed {
            state.segments = named;
            self.aside(Path::new("manifest"))?;
            state.replace(&**self.storage, generation)?;
        }
        for path in replaced {
            self.remove(&path)?;
        }
        Ok(report)
    }

    /// Writes what is left of a segment as new ones.
    fn anew(
        &self,
        mapping: &Mapping,
        salvage: &Salvage,
        dead: &Bits,
        next: &mut u64,
    ) -> Result<Vec<SegmentId>, RepairError> {
        let rows: Vec<u32> = salvage.usable(dead).collect();
        let mut written = Vec::new();
        for rows in rows.chunks(ROWS) {
            let mut head = Head::new(mapping)?;
            for rows in rows.chunks(TOGETHER) {
                let parsed = salvage.parsed(mapping, rows);
                let parsed: Vec<_> =
                    rows.iter().zip(parsed).filter_map(|(&row, parsed)| Some((row, parsed?.0))).collect();
                for field in 0..head.vectors.len() {
                    let rows = parsed.iter().flat_map(|(_, parsed)| parsed.rows());
                    let Some(all) = joined(rows.filter_map(|row| row.vectors[field].as_ref())) else {
                        continue;
                    };
                    let go = &mut |_| ControlFlow::Continue(());
                    head.vectors[field].index.add(all.as_vectors(), None, &self.threads, go)?;
                }
                for (row, parsed) in parsed {
                    let (id, seq, version) =
                        (salvage.rows.id(row), salvage.rows.seq(row), salvage.rows.version(row));
                    head.push(Row { id: id.to_owned(), seq, version, parsed });
                }
            }
            head.refresh();
            let segment = SegmentId(*next);
            *next += 1;
            let failed = |error| RepairError::Segment { segment, error };
            segment::remove(&**self.storage, segment).map_err(at(&folder(segment)))?;
            let from = (&head, &Bits::default());
            let effort = Effort::of(self.threads);
            Sealed::write(self.storage, mapping, segment, from, &effort, Asked::Nobody).map_err(failed)?;
            written.push(segment);
        }
        Ok(written)
    }

    /// Ends the log where it is to end, and spends the numbers of what is lost on nothing. The files behind go first, the last of them first: until the damaged one is
    /// replaced it is damaged still, and the next repair does the rest.
    fn cut(&self, cut: &Cut, identity: u64) -> Result<(), RepairError> {
        let dir = Path::new("log");
        for path in cut.later.iter().rev() {
            self.aside(path)?;
            self.storage.remove(path).map_err(at(path))?;
            self.storage.sync_dir(dir).map_err(at(dir))?;
        }
        self.aside(&cut.path)?;
        let file = self.storage.open(&cut.path).map_err(at(&cut.path))?;
        let kept = &(*file).as_ref()[..cut.offset];
        let number = cut.path.file_name().and_then(log::number).unwrap_or(0);
        self.put(&cut.path, &log::go_on(kept, number, identity, cut.numbers.clone(), &encode_load()))
    }

    /// Replaces a file, as a whole and durably.
    fn put(&self, path: &Path, bytes: &[u8]) -> Result<(), RepairError> {
        let temporary = path.with_added_extension("tmp");
        let dir = path.parent().unwrap_or(Path::new(""));
        let written = || {
            self.gone(self.storage.remove(&temporary))?;
            let file = self.storage.create(&temporary)?;
            file.append(bytes)?;
            file.sync()?;
            self.storage.rename(&temporary, path)?;
            self.storage.sync_dir(dir)
        };
        written().map_err(at(path))
    }

    fn gone(&self, done: io::Result<()>) -> io::Result<()> {
        match done {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            done => done,
        }
    }

    fn folder(&self, path: &Path) -> Result<(), RepairError> {
        match self.storage.create_dir(path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            Err(error) => Err(at(path)(error)),
            Ok(()) => {
                let dir = path.parent().unwrap_or(Path::new(""));
                self.storage.sync_dir(dir).map_err(at(dir))
            }
        }
    }

    /// Links a file into the folder of what is lost, unless it is there already; of another one there the name is kept.
    fn aside(&self, path: &Path) -> Result<(), RepairError> {
        let file = match self.storage.open(path) {
            Ok(file) => file,
            // There is nothing to keep.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(at(path)(error)),
        };
        let mut dir = PathBuf::from(LOST);
        self.folder(&dir)?;
        for part in path.parent().into_iter().flat_map(Path::components) {
            dir.push(part);
            self.folder(&dir)?;
        }
        let name = path.file_name().unwrap_or_default();
        for number in 0u32.. {
            let mut to = dir.join(name);
            if number > 0 {
                to.add_extension(number.to_string());
            }
            match self.storage.open(&to) {
                Ok(there) if (*there).as_ref() == (*file).as_ref() => break,
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    self.storage.link(path, &to).map_err(at(&to))?;
                    break;
                }
                Err(error) => return Err(at(&to)(error)),
            }
        }
        self.storage.sync_dir(&dir).map_err(at(&dir))
    }

    fn aside_all(&self, dir: &Path) -> Result<(), RepairError> {
        let entries = match self.storage.list(dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            entries => entries.map_err(at(dir))?,
        };
        let files = entries.iter().filter(|entry| entry.kind == Kind::File);
        files.map(|entry| dir.join(&entry.name)).try_for_each(|path| self.aside(&path))
    }

    /// Removes a file, or a folder of files, that nothing names.
    fn remove(&self, path: &Path) -> Result<(), RepairError> {
        if let Ok(entries) = self.storage.list(path) {
            for entry in entries.iter().filter(|entry| entry.kind == Kind::File) {
                let file = path.join(&entry.name);
                self.gone(self.storage.remove(&file)).map_err(at(&file))?;
            }
            return self.gone(self.storage.remove_dir(path)).map_err(at(path));
        }
        self.gone(self.storage.remove(path)).map_err(at(path))
    }
}

impl Kept {
    fn stays(&self) -> bool {
        matches!(self, Kept::Whole { .. })
    }
}
