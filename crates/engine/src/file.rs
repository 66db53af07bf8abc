//! Index files: written whole or not at all, opened by memory map.

use lanewise_index::{FileBytes, FormatError, Index, Need};
use memmap2::Mmap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Why an index could not be opened or saved.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum FileError {
    #[error("{}: {error}", path.display())]
    Io { path: PathBuf, error: io::Error },
    #[error("{}: {error}", path.display())]
    Format { path: PathBuf, error: FormatError },
    #[error("{}: memory_limit={limit}, and opening it takes {needs} bytes: raise the limit", path.display())]
    Limit { path: PathBuf, limit: usize, needs: usize },
}

/// Saves `index` as the file `path`, which holds either what it held before or all of the index, whatever happens: the
/// contents go to a temporary file beside it, which replaces it once it is on disk.
///
/// # Errors
/// What the system says; nothing is left behind.
pub fn save(index: &Index, path: &Path) -> Result<(), FileError> {
    let at = |error| FileError::Io { path: path.to_owned(), error };
    let invalid = |what| at(io::Error::new(io::ErrorKind::InvalidInput, what));
    if path.file_name().is_none() {
        return Err(invalid("path names no file"));
    }
    // A device or a pipe would be replaced, not written to.
    if fs::metadata(path).is_ok_and(|m| !m.is_file()) {
        return Err(invalid("there is something other than a file: give another path"));
    }
    // What a link leads to is replaced, not the link.
    let path = &path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let (mut file, temporary) = create_beside(path).map_err(at)?;
    let written = permit_as(path, &file).and_then(|()| write(index, &mut file));
    let written = written.and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        // Best effort: the error that matters is the one above.
        let _ = fs::remove_file(&temporary);
    }
    written.and_then(|()| sync_folder(path)).map_err(at)
}

/// A new file in the folder of `path`. Its name may be taken by what a killed process left, or by a process of the same
/// number in another container: then the next is tried.
fn create_beside(path: &Path) -> io::Result<(File, PathBuf)> {
    // Relaxed: only uniqueness matters.
    static SAVES: AtomicU64 = AtomicU64::new(0);
    loop {
        let unique =
            format!(".lanewise-{}-{}.tmp", std::process::id(), SAVES.fetch_add(1, Ordering::Relaxed));
        let temporary = path.with_file_name(unique);
        match File::options().write(true).create_new(true).open(&temporary) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            created => return created.map(|file| (file, temporary)),
        }
    }
}

/// Lets those read and write `file` who may read and write the file that it is to replace, if there is one.
fn permit_as(path: &Path, file: &File) -> io::Result<()> {
    fs::metadata(path).map_or(Ok(()), |replaced| file.set_permissions(replaced.permissions()))
}

fn write(index: &Index, file: &mut File) -> io::Result<()> {
    let image = index.image().map_err(io::Error::other)?;
    for piece in image.pieces() {
        file.write_all(piece)?;
    }
    file.sync_all()
}

/// Makes the rename itself durable, where folders can be synced.
fn sync_folder(path: &Path) -> io::Result<()> {
    #[cfg(unix)]
    {
        let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        File::open(folder)?.sync_all()?;
    }
    #[cfg(not(unix))]
    let _ = path;
    Ok(())
}

/// Opens the index in the file `path` by memory map: all of it is checked once, then read in place. The file must not be
/// changed while the index lives; [`save`] replaces a file and never changes one. What it takes besides the file is kept
/// within `memory_limit`, which becomes the index's own.
///
/// # Errors
/// What the system says, what is wrong with the contents, and if the limit is too small.
pub fn open(path: &Path, memory_limit: Option<usize>) -> Result<Index, FileError> {
    let bytes = map(path)?;
    let at = |error| FileError::Format { path: path.to_owned(), error };
    if let Some(limit) = memory_limit {
        let needs = Index::predict_open((*bytes).as_ref()).map_err(at)?.peak;
        if needs > limit {
            return Err(FileError::Limit { path: path.to_owned(), limit, needs });
        }
    }
    let index = Index::open(bytes).map_err(at)?;
    index.set_memory_limit(memory_limit);
    Ok(index)
}

/// What opening the file `path` takes besides the file itself, whose length comes along.
///
/// # Errors
/// As [`open`].
pub fn predict_open(path: &Path) -> Result<(usize, Need), FileError> {
    let bytes = map(path)?;
    let file: &[u8] = (*bytes).as_ref();
    let need =
        Index::predict_open(file).map_err(|error| FileError::Format { path: path.to_owned(), error })?;
    Ok((file.len(), need))
}

fn map(path: &Path) -> Result<FileBytes, FileError> {
    let at = |error| FileError::Io { path: path.to_owned(), error };
    // Asked before it is opened: opening a pipe would wait for a writer.
    let metadata = fs::metadata(path).map_err(at)?;
    if !metadata.is_file() {
        return Err(at(io::Error::new(io::ErrorKind::InvalidInput, "not a file")));
    }
    let file = File::open(path).map_err(at)?;
    let metadata = file.metadata().map_err(at)?;
    if metadata.len() == 0 {
        return Ok(Arc::new(Vec::new()));
    }
    // SAFETY: the contents are only read; that nobody changes them meanwhile is the caller's part, as `open` says.
    Ok(Arc::new(unsafe { Mmap::map(&file) }.map_err(at)?))
}
