//! Copying blobs: every block is checked on its way.

use super::{File, SnapshotError, at};
use crate::table::check::Progress;
use lanewise_storage::blob::{BLOCK, Blob, BlobError};
use lanewise_storage::{Bytes, Storage};
use std::path::Path;
use twox_hash::XxHash3_64;

/// Bytes that are copied together.
const TOGETHER: usize = 16 * BLOCK;

/// What a blob is known by.
pub(super) fn end_of(file: &Bytes) -> Result<u64, BlobError> {
    Blob::open(file.clone()).map(|blob| XxHash3_64::oneshot(blob.end()))
}

/// Files on their way, and who hears of it.
pub(super) struct Copying<'a> {
    done: u64,
    all: u64,
    /// Bytes that were written.
    pub(super) copied: u64,
    progress: Progress<'a>,
}

impl<'a> Copying<'a> {
    pub(super) fn new(all: u64, progress: Progress<'a>) -> Copying<'a> {
        Copying { done: 0, all, copied: 0, progress }
    }

    fn went(&mut self, bytes: u64) -> Result<(), SnapshotError> {
        self.done += bytes;
        if (self.progress)(self.done, self.all).is_break() { Err(SnapshotError::Stopped) } else { Ok(()) }
    }

    /// Passes over files that are there.
    pub(super) fn skip(&mut self, files: &[File]) -> Result<(), SnapshotError> {
        self.went(files.iter().map(|file| file.bytes).sum())
    }

    /// Gives `each` a file piece by piece, after checking it.
    pub(super) fn read(
        &mut self,
        storage: &dyn Storage,
        path: &Path,
        file: &File,
        each: &mut dyn FnMut(&[u8]) -> std::io::Result<()>,
    ) -> Result<(), SnapshotError> {
        let bytes = storage.open(path).map_err(at(path))?;
        self.pieces(&bytes, path, file, each)
    }

    fn pieces(
        &mut self,
        bytes: &Bytes,
        path: &Path,
        file: &File,
        each: &mut dyn FnMut(&[u8]) -> std::io::Result<()>,
    ) -> Result<(), SnapshotError> {
        let damaged = |error| SnapshotError::Blob { path: path.to_owned(), error };
        let blob = Blob::open(bytes.clone()).map_err(damaged)?;
        if XxHash3_64::oneshot(blob.end()) != file.end || (**bytes).as_ref().len() as u64 != file.bytes {
            return Err(SnapshotError::Other { path: path.to_owned() });
        }
        for start in (0..blob.len()).step_by(TOGETHER) {
            let piece = blob.read(start..blob.len().min(start + TOGETHER)).map_err(damaged)?;
            each(piece).map_err(at(path))?;
            self.went(piece.len() as u64)?;
        }
        each(blob.end()).map_err(at(path))?;
        self.went(blob.end().len() as u64)
    }

    /// Copies a file that is open to `path`, durably but for its name.
    pub(super) fn write(
        &mut self,
        bytes: &Bytes,
        storage: &dyn Storage,
        path: &Path,
        file: &File,
    ) -> Result<(), SnapshotError> {
        let to = storage.create(path).map_err(at(path))?;
        self.pieces(bytes, path, file, &mut |piece| to.append(piece))?;
        to.sync().map_err(at(path))?;
        self.copied += file.bytes;
        Ok(())
    }
}
