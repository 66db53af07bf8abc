//! A sealed segment: files that are written once, in a folder of their own, and read in place.
//!
//! `rows` (see `rows.rs`), `vectors-<field>` (an index as `docs/formats/index-2.md` has it), tantivy's files, and
//! `deleted-<generation>`, a bitmap that is written anew when rows died. All are blobs.

use super::bits::Bits;
use super::directory::Folder;
use super::effort::Effort;
use super::filters::Filters;
use super::head::Head;
use super::indexes::sealed_index;
use super::memory::Asked;
use super::need;
use super::rows::{self, Rows, RowsError};
use super::view::{Body, Part};
use crate::Refusal;
use crate::documents::{Mapping, Run, RunError};
use lanewise_index::{AddError, Code, FormatError, Index, OutOfMemory, Params, Reader, RemoveError};
use lanewise_storage::blob::{Blob, BlobError, BlobWriter};
use lanewise_storage::{Bytes, Kind, Storage};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Number of a segment, given once in a table's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub struct SegmentId(pub u64);

/// Why a segment cannot be written or read.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum SegmentError {
    #[error("{}: {error}", path.display())]
    Io { path: PathBuf, error: io::Error },
    #[error("{}: {error}", path.display())]
    Blob { path: PathBuf, error: BlobError },
    #[error("{}: {error}", path.display())]
    Index { path: PathBuf, error: FormatError },
    #[error("{}: damaged: {what}; restore the file from a snapshot", path.display())]
    Damaged { path: PathBuf, what: String },
    #[error(transparent)]
    Documents(#[from] RunError),
    #[error(transparent)]
    Memory(#[from] OutOfMemory),
    #[error(transparent)]
    Add(AddError),
    #[error(transparent)]
    Remove(RemoveError),
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error("it was stopped")]
    Stopped,
}

impl From<AddError> for SegmentError {
    fn from(error: AddError) -> Self {
        if matches!(error, AddError::Cancelled { .. }) {
            SegmentError::Stopped
        } else {
            SegmentError::Add(error)
        }
    }
}

impl From<RemoveError> for SegmentError {
    fn from(error: RemoveError) -> Self {
        if error == RemoveError::Stopped { SegmentError::Stopped } else { SegmentError::Remove(error) }
    }
}

/// A segment as it is read.
pub(super) struct Sealed {
    pub(super) rows: Arc<Rows>,
    pub(super) run: Run,
    /// By vector field; empty ones of those that came after it.
    pub(super) readers: Vec<Reader>,
    /// What codes they have.
    pub(super) codes: Vec<Code>,
    /// Of its files, bitmaps of dead rows but.
    pub(super) bytes: u64,
    pub(super) filters: Arc<Filters>,
}

/// Where a segment's files are.
pub(super) fn folder(segment: SegmentId) -> PathBuf {
    Path::new("segments").join(format!("{:016x}", segment.0))
}

/// A sealed part's index of a field, from its file; an empty one if the field came later.
pub(super) fn open_index(
    storage: &dyn Storage,
    part: &Part,
    field: usize,
    params: &Params,
) -> Result<Index, SegmentError> {
    if let Body::Sealed(sealed) = &part.body
        && field >= sealed.rows.fields()
    {
        return Ok(Index::new(*params).map_err(AddError::from)?);
    }
    let path = vectors(&folder(part.segment), field);
    let index = Index::open(read_blob(storage, &path)?);
    index.map_err(|error| SegmentError::Index { path, error })
}

pub(super) fn write_blob(storage: &dyn Storage, path: &Path, pieces: &[&[u8]]) -> Result<(), SegmentError> {
    let at = |error| SegmentError::Io { path: path.to_owned(), error };
    let mut file = BlobWriter::new(storage.create(path).map_err(at)?);
    pieces.iter().try_for_each(|piece| file.write_all(piece)).map_err(at)?;
    file.finish().map_err(at).map(|_| ())
}

pub(super) fn read_blob(storage: &dyn Storage, path: &Path) -> Result<Bytes, SegmentError> {
    let file = storage.open(path).map_err(|error| SegmentError::Io { path: path.to_owned(), error })?;
    let blob = Blob::open(file).and_then(|blob| blob.bytes());
    blob.map_err(|error| SegmentError::Blob { path: path.to_owned(), error })
}

/// Removes the folder of a segment, whatever is in it.
pub(super) fn remove(storage: &dyn Storage, segment: SegmentId) -> io::Result<()> {
    let dir = folder(segment);
    let gone = |done: io::Result<()>| match done {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    };
    match storage.list(&dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
        Ok(entries) => {
            let files = entries.iter().filter(|entry| entry.kind == Kind::File);
            files.map(|entry| dir.join(&entry.name)).try_for_each(|path| gone(storage.remove(&path)))?;
        }
    }
    gone(storage.remove_dir(&dir))
}

/// Makes the folder of a new segment.
pub(super) fn begin(storage: &Arc<dyn Storage>, segment: SegmentId) -> Result<Folder, SegmentError> {
    let dir = folder(segment);
    storage.create_dir(&dir).map_err(|error| SegmentError::Io { path: dir.clone(), error })?;
    Ok(Folder::new(storage.clone(), dir))
}

/// Writes a segment's index of a field.
pub(super) fn write_index(
    storage: &dyn Storage,
    segment: SegmentId,
    field: usize,
    index: &Index,
) -> Result<(), SegmentError> {
    let path = vectors(&folder(segment), field);
    let image = index.image().map_err(|error| damaged(&path, error))?;
    write_blob(storage, &path, &image.pieces().collect::<Vec<_>>())
}

/// A segment's bitmap of dead rows.
pub(super) fn deleted(segment: SegmentId, generation: u64) -> PathBuf {
    folder(segment).join(format!("deleted-{generation}"))
}

pub(super) fn vectors(dir: &Path, field: usize) -> PathBuf {
    dir.join(format!("vectors-{field}"))
}

fn damaged(path: &Path, what: impl ToString) -> SegmentError {
    SegmentError::Damaged { path: path.to_owned(), what: what.to_string() }
}

/// Adds empty indexes of the fields that came later.
fn add_empty(
    mapping: &Mapping,
    readers: &mut Vec<Reader>,
    codes: &mut Vec<Code>,
) -> Result<(), SegmentError> {
    for (_, params) in mapping.schema().vectors().skip(readers.len()) {
        readers.push(Index::new(*params).map_err(AddError::from)?.reader());
        codes.push(params.code);
    }
    Ok(())
}

impl Sealed {
    /// Writes a head, dead rows and all, as the segment `segment`, durably, and opens it.
    pub(super) fn write(
        storage: &Arc<dyn Storage>,
        mapping: &Mapping,
        segment: SegmentId,
        (head, deleted): (&Head, &Bits),
        effort: &Effort<'_>,
        asked: Asked<'_>,
    ) -> Result<Sealed, SegmentError> {
        let folder = begin(storage, segment)?;
        // One after the other: none is held longer than it takes.
        for (field, (of, (_, params))) in head.vectors.iter().zip(mapping.schema().vectors()).enumerate() {
            effort.check()?;
            let index = sealed_index(&of.index, params.code, effort)?;
            write_index(&**storage, segment, field, &index)?;
        }
        // Dead rows keep their places, empty.
        let parsed =
            (0..).zip(head.rows.iter()).map(|(row, r)| (!deleted.contains(row)).then_some(&r.parsed));
        Run::write(mapping, Box::new(folder.clone()), parsed)?;
        let all: Vec<rows::Written<'_>> = head
            .rows
            .iter()
            .map(|row| rows::Written { id: &row.id, seq: row.seq, version: row.version })
            .collect();
        let of_vectors: Vec<Vec<u32>> =
            head.vectors.iter().map(|v| v.rows.iter().copied().collect()).collect();
        Sealed::finish(storage, mapping, folder, segment, (&all, &of_vectors), asked)
    }

    /// Writes the documents of the live rows of `sources`, one source after the other.
    pub(super) fn write_documents(
        mapping: &Mapping,
        folder: Folder,
        sources: &[&Part],
        live: &[Vec<u32>],
    ) -> Result<(), SegmentError> {
        let runs = sources.iter().map(|part| part.runs(mapping)).collect::<Result<Vec<_>, _>>()?;
        // A sealed segment is one run.
        let runs: Vec<(Run, &[u32])> =
            runs.iter().zip(live).map(|(runs, live)| (runs[0].1.clone(), &live[..])).collect();
        Run::merge(mapping, Box::new(folder), &runs)?;
        Ok(())
    }

    /// Writes the last of a segment's files, makes all of them durable, and opens it.
    pub(super) fn finish(
        storage: &Arc<dyn Storage>,
        mapping: &Mapping,
        documents: Folder,
        segment: SegmentId,
        (all, of_vectors): (&[rows::Written<'_>], &[Vec<u32>]),
        asked: Asked<'_>,
    ) -> Result<Sealed, SegmentError> {
        let dir = folder(segment);
        let at = |error| SegmentError::Io { path: dir.clone(), error };
        write_blob(&**storage, &dir.join("rows"), &[&rows::to_bytes(all, of_vectors)])?;
        documents.finish().map_err(at)?;
        storage.sync_dir(&dir).map_err(at)?;
        storage.sync_dir(Path::new("segments")).map_err(at)?;
        Sealed::open(storage, mapping, segment, asked)
    }

    /// The same with all fields of `mapping`, of which some may have come since it was opened.
    pub(super) fn as_of(
        self: Arc<Self>,
        storage: &Arc<dyn Storage>,
        mapping: &Mapping,
        segment: SegmentId,
    ) -> Result<Arc<Sealed>, SegmentError> {
        if self.run.is_of(mapping) && self.readers.len() == mapping.schema().vectors().count() {
            return Ok(self);
        }
        let run = Run::open(mapping, Box::new(Folder::new(storage.clone(), folder(segment))))?;
        let (mut readers, mut codes) = (self.readers.clone(), self.codes.clone());
        add_empty(mapping, &mut readers, &mut codes)?;
        let (rows, filters) = (self.rows.clone(), self.filters.clone());
        Ok(Arc::new(Sealed { rows, run, readers, codes, bytes: self.bytes, filters }))
    }

    /// Writes which rows are dead, durably, as of the manifest's `generation`.
    pub(super) fn write_deleted(
        &self,
        storage: &dyn Storage,
        segment: SegmentId,
        generation: u64,
        bits: &Bits,
    ) -> Result<(), SegmentError> {
        let path = deleted(segment, generation);
        // A manifest that could not be replaced may have left one.
        match storage.remove(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(SegmentError::Io { path, error });
            }
            _ => {}
        }
        write_blob(storage, &path, &[&bits.to_bytes()])?;
        storage.sync_dir(&folder(segment)).map_err(|error| SegmentError::Io { path, error })
    }

    pub(super) fn read_deleted(
        &self,
        storage: &dyn Storage,
        segment: SegmentId,
        generation: u64,
    ) -> Result<Bits, SegmentError> {
        let path = deleted(segment, generation);
        let bytes = read_blob(storage, &path)?;
        let bits = Bits::from_bytes((*bytes).as_ref(), self.rows.len());
        bits.ok_or_else(|| damaged(&path, "it names rows that are not there"))
    }

    /// Opens a segment. All of it is checked but for documents, which are when they are read.
    pub(super) fn open(
        storage: &Arc<dyn Storage>,
        mapping: &Mapping,
        segment: SegmentId,
        asked: Asked<'_>,
    ) -> Result<Sealed, SegmentError> {
        let dir = folder(segment);
        let path = dir.join("rows");
        let fields = mapping.schema().vectors().count();
        let rows = Rows::open(read_blob(&**storage, &path)?, fields)
            .map_err(|error: RowsError| damaged(&path, error))?;
        let files = (0..rows.fields()).map(|field| read_blob(&**storage, &vectors(&dir, field)));
        let files = files.collect::<Result<Vec<_>, _>>()?;
        let entries = storage.list(&dir).map_err(|error| SegmentError::Io { path: dir.clone(), error })?;
        let packed =
            entries.iter().filter(|entry| Path::new(&entry.name).extension() == Some("store".as_ref()));
        let packed = packed.map(|entry| entry.bytes).sum();
        let memory = asked.hold(need::open(mapping, rows.len(), &files, packed))?;
        let (mut readers, mut codes) = (Vec::new(), Vec::new());
        for ((field, (_, params)), file) in mapping.schema().vectors().enumerate().zip(files) {
            let path = vectors(&dir, field);
            let index =
                Index::open(file).map_err(|error| SegmentError::Index { path: path.clone(), error })?;
            let plain = Params { code: Code::None, ..*params };
            if ![*params, plain].contains(index.params()) {
                return Err(damaged(&path, "its parameters are not the table's"));
            }
            let known = rows.of_vectors(field).len() as i64;
            if index.reader().ids().any(|id| !(0..known).contains(&id)) {
                return Err(damaged(&path, "it holds vectors of no row"));
            }
            readers.push(index.reader());
            codes.push(index.params().code);
        }
        add_empty(mapping, &mut readers, &mut codes)?;
        let run = Run::open(mapping, Box::new(Folder::new(storage.clone(), dir.clone())))?;
        if run.rows() as usize != rows.len() {
            return Err(damaged(&dir, "rows and documents are not as many"));
        }
        let bytes = entries.iter().map(|entry| entry.bytes).sum();
        let filters = Filters::new(rows.len(), memory).into();
        let rows = rows.into();
        Ok(Sealed { rows, run, readers, codes, bytes, filters })
    }
}
