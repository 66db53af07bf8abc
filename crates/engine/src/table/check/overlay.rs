//! A storage as it will be once damaged files are set right: read only.

use lanewise_storage::{Append, Bytes, Entry, Held, Storage};
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Files of a storage, some of them with other contents.
pub(super) struct Overlay {
    inner: Arc<dyn Storage>,
    files: Mutex<BTreeMap<PathBuf, Bytes>>,
}

impl Overlay {
    pub(super) fn new(inner: Arc<dyn Storage>, files: BTreeMap<PathBuf, Bytes>) -> Overlay {
        Overlay { inner, files: Mutex::new(files) }
    }

    pub(super) fn insert(&self, path: &Path, bytes: Vec<u8>) {
        self.lock().insert(path.to_owned(), Arc::new(bytes));
    }

    /// Those with other contents.
    pub(super) fn files(&self) -> BTreeMap<PathBuf, Bytes> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<PathBuf, Bytes>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Overlay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Overlay").field("inner", &self.inner).finish_non_exhaustive()
    }
}

fn refused<T>() -> io::Result<T> {
    Err(io::ErrorKind::ReadOnlyFilesystem.into())
}

impl Storage for Overlay {
    fn open(&self, path: &Path) -> io::Result<Bytes> {
        let other = self.lock().get(path).cloned();
        other.map_or_else(|| self.inner.open(path), Ok)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<Entry>> {
        self.inner.list(dir)
    }

    fn free_bytes(&self) -> io::Result<u64> {
        self.inner.free_bytes()
    }

    fn create(&self, _: &Path) -> io::Result<Box<dyn Append>> {
        refused()
    }

    fn sync_file(&self, _: &Path) -> io::Result<()> {
        refused()
    }

    fn rename(&self, _: &Path, _: &Path) -> io::Result<()> {
        refused()
    }

    fn remove(&self, _: &Path) -> io::Result<()> {
        refused()
    }

    fn link(&self, _: &Path, _: &Path) -> io::Result<()> {
        refused()
    }

    fn create_dir(&self, _: &Path) -> io::Result<()> {
        refused()
    }

    fn remove_dir(&self, _: &Path) -> io::Result<()> {
        refused()
    }

    fn sync_dir(&self, _: &Path) -> io::Result<()> {
        refused()
    }

    fn lock(&self, _: &Path) -> io::Result<Box<dyn Held>> {
        refused()
    }
}
