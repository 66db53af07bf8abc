//! A folder of a storage as a storage of its own, which may be moved while it is in use.
//!
//! Paths never lead out of the folder. A call sees the folder in one place from its beginning to its end: [`Sub::relocate`]
//! waits for the calls under way, and those that come wait for it.

use crate::storage::{Append, Bytes, Entry, Held, Storage, check};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

/// A folder of a storage.
#[derive(Debug)]
pub struct Sub {
    inner: Arc<dyn Storage>,
    folder: RwLock<PathBuf>,
    open: Arc<AtomicUsize>,
}

impl Sub {
    /// What lies below `folder`, which may come into being later.
    ///
    /// # Errors
    /// `InvalidInput` if the path leads out of the storage's root.
    pub fn new(inner: Arc<dyn Storage>, folder: &Path) -> io::Result<Sub> {
        check(folder)?;
        Ok(Sub { inner, folder: RwLock::new(folder.to_owned()), open: Arc::default() })
    }

    /// Moves the folder within the storage, and goes on below its new place. Files that are open stay so. Durable once the
    /// folders that it left and came to are synced.
    ///
    /// # Errors
    /// As [`Storage::rename`]; nothing was changed then.
    pub fn relocate(&self, to: &Path) -> io::Result<()> {
        let mut folder = self.folder.write().unwrap_or_else(PoisonError::into_inner);
        self.inner.rename(&folder, to)?;
        to.clone_into(&mut folder);
        Ok(())
    }

    /// Files whose bytes somebody holds; one that was opened twice counts twice.
    pub fn open_files(&self) -> usize {
        // Relaxed: a figure.
        self.open.load(Ordering::Relaxed)
    }

    fn folder(&self) -> RwLockReadGuard<'_, PathBuf> {
        self.folder.read().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where `path` is in the storage around.
fn place(folder: &Path, path: &Path) -> io::Result<PathBuf> {
    check(path)?;
    // Joining nothing would add a slash.
    Ok(if path.as_os_str().is_empty() { folder.to_owned() } else { folder.join(path) })
}

/// As [`place`], of a name that comes, goes or changes: the root's is not ours.
fn name(folder: &Path, path: &Path) -> io::Result<PathBuf> {
    if path.as_os_str().is_empty() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the root has no name"));
    }
    place(folder, path)
}

impl Storage for Sub {
    fn create(&self, path: &Path) -> io::Result<Box<dyn Append>> {
        let folder = self.folder();
        self.inner.create(&name(&folder, path)?)
    }

    fn open(&self, path: &Path) -> io::Result<Bytes> {
        let folder = self.folder();
        let bytes = self.inner.open(&place(&folder, path)?)?;
        self.open.fetch_add(1, Ordering::Relaxed);
        Ok(Arc::new(Counted { bytes, open: self.open.clone() }))
    }

    fn sync_file(&self, path: &Path) -> io::Result<()> {
        let folder = self.folder();
        self.inner.sync_file(&place(&folder, path)?)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let folder = self.folder();
        self.inner.rename(&name(&folder, from)?, &name(&folder, to)?)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let folder = self.folder();
        self.inner.remove(&name(&folder, path)?)
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        let folder = self.folder();
        self.inner.link(&name(&folder, from)?, &name(&folder, to)?)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<Entry>> {
        let folder = self.folder();
        self.inner.list(&place(&folder, dir)?)
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        let folder = self.folder();
        self.inner.create_dir(&name(&folder, path)?)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        let folder = self.folder();
        self.inner.remove_dir(&name(&folder, path)?)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let folder = self.folder();
        self.inner.sync_dir(&place(&folder, dir)?)
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Held>> {
        let folder = self.folder();
        self.inner.lock(&name(&folder, path)?)
    }

    fn free_bytes(&self) -> io::Result<u64> {
        self.inner.free_bytes()
    }
}

/// Bytes that are counted as long as somebody holds them.
struct Counted {
    bytes: Bytes,
    open: Arc<AtomicUsize>,
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        (*self.bytes).as_ref()
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.open.fetch_sub(1, Ordering::Relaxed);
    }
}

impl fmt::Debug for Counted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Counted").finish_non_exhaustive()
    }
}
