//! tantivy's files as blobs of a folder.
//!
//! A segment's documents are written once: files as they come, and at the end `meta.json`, which is kept in memory until
//! then. tantivy's list of the files that it manages is not kept: the manifest decides what stays.

use lanewise_storage::Storage;
use lanewise_storage::blob::{Blob, BlobWriter};
use std::collections::HashMap;
use std::fmt;
use std::io::{self, Write};
use std::ops::{Deref, Range};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tantivy::HasLen;
use tantivy::directory::error::{DeleteError, LockError, OpenReadError, OpenWriteError};
use tantivy::directory::{
    AntiCallToken, Directory, DirectoryLock, FileHandle, Lock, OwnedBytes, TerminatingWrite, WatchCallback,
    WatchHandle, WritePtr,
};

const META: &str = "meta.json";

/// A folder of a storage.
#[derive(Clone)]
pub(super) struct Folder {
    storage: Arc<dyn Storage>,
    path: PathBuf,
    /// Files that are replaced as they grow, until they are written.
    atomic: Arc<Mutex<HashMap<PathBuf, Vec<u8>>>>,
}

impl Folder {
    pub(super) fn new(storage: Arc<dyn Storage>, path: PathBuf) -> Folder {
        Folder { storage, path, atomic: Arc::default() }
    }

    /// Writes what was kept in memory: the last of the files.
    pub(super) fn finish(&self) -> io::Result<()> {
        let Some(meta) = self.atomic().remove(Path::new(META)) else { return Ok(()) };
        let mut file = BlobWriter::new(self.storage.create(&self.path.join(META))?);
        file.write_all(&meta)?;
        file.finish().map(|_| ())
    }

    fn atomic(&self) -> MutexGuard<'_, HashMap<PathBuf, Vec<u8>>> {
        self.atomic.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn blob(&self, path: &Path) -> Result<Blob, OpenReadError> {
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => OpenReadError::FileDoesNotExist(path.to_owned()),
            _ => OpenReadError::wrap_io_error(error, path.to_owned()),
        };
        let file = self.storage.open(&self.path.join(path)).map_err(failed)?;
        Blob::open(file).map_err(|error| failed(io::Error::new(io::ErrorKind::InvalidData, error)))
    }
}

impl fmt::Debug for Folder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Folder").field(&self.path).finish()
    }
}

/// A file that is read block by block, each checked before it is first read.
#[derive(Debug)]
struct Handle(Arc<Blob>);

impl HasLen for Handle {
    fn len(&self) -> usize {
        self.0.len()
    }
}

impl FileHandle for Handle {
    fn read_bytes(&self, range: Range<usize>) -> io::Result<OwnedBytes> {
        self.0.read(range.clone()).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        Ok(OwnedBytes::new(Slice { blob: self.0.clone(), range }))
    }
}

/// Part of a file that was checked.
struct Slice {
    blob: Arc<Blob>,
    range: Range<usize>,
}

impl Deref for Slice {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.blob.read(self.range.clone()).expect("checked before")
    }
}

// SAFETY: the bytes lie in the file's memory, which does not move while `blob` is held.
unsafe impl stable_deref_trait::StableDeref for Slice {}

struct Writing(Option<BlobWriter>);

impl Write for Writing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.as_mut().expect("not terminated").write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl TerminatingWrite for Writing {
    fn terminate_ref(&mut self, _: AntiCallToken) -> io::Result<()> {
        self.0.take().map_or(Ok(()), |file| file.finish().map(|_| ()))
    }
}

impl Directory for Folder {
    fn get_file_handle(&self, path: &Path) -> Result<Arc<dyn FileHandle>, OpenReadError> {
        Ok(Arc::new(Handle(Arc::new(self.blob(path)?))))
    }

    fn delete(&self, path: &Path) -> Result<(), DeleteError> {
        self.storage.remove(&self.path.join(path)).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => DeleteError::FileDoesNotExist(path.to_owned()),
            _ => DeleteError::IoError { io_error: Arc::new(error), filepath: path.to_owned() },
        })
    }

    fn exists(&self, path: &Path) -> Result<bool, OpenReadError> {
        if self.atomic().contains_key(path) {
            return Ok(true);
        }
        match self.blob(path) {
            Ok(_) => Ok(true),
            Err(OpenReadError::FileDoesNotExist(_)) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn open_write(&self, path: &Path) -> Result<WritePtr, OpenWriteError> {
        let file = self.storage.create(&self.path.join(path)).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => OpenWriteError::FileAlreadyExists(path.to_owned()),
            _ => OpenWriteError::wrap_io_error(error, path.to_owned()),
        })?;
        Ok(io::BufWriter::new(Box::new(Writing(Some(BlobWriter::new(file))))))
    }

    fn atomic_read(&self, path: &Path) -> Result<Vec<u8>, OpenReadError> {
        if let Some(bytes) = self.atomic().get(path) {
            return Ok(bytes.clone());
        }
        let blob = self.blob(path)?;
        let bytes = blob.read(0..blob.len()).map(<[u8]>::to_vec);
        bytes.map_err(|error| {
            let error = io::Error::new(io::ErrorKind::InvalidData, error);
            OpenReadError::wrap_io_error(error, path.to_owned())
        })
    }

    fn atomic_write(&self, path: &Path, data: &[u8]) -> io::Result<()> {
        self.atomic().insert(path.to_owned(), data.to_vec());
        Ok(())
    }

    fn sync_directory(&self) -> io::Result<()> {
        self.storage.sync_dir(&self.path)
    }

    /// One process has a table open, and one thread writes a segment.
    fn acquire_lock(&self, _: &Lock) -> Result<DirectoryLock, LockError> {
        Ok(DirectoryLock::from(Box::new(())))
    }

    fn watch(&self, _: WatchCallback) -> tantivy::Result<WatchHandle> {
        Ok(WatchHandle::empty())
    }
}
