//! What tables need of a file system, and no more, so that a test can stand in for it.
//!
//! Files are written by appending, synced, given their final name by a rename, and never changed after that: a reader's
//! memory map stays right for as long as it lives. Nothing is durable before its sync: bytes by [`Append::sync`] or
//! [`Storage::sync_file`], names by [`Storage::sync_dir`] of the folder that they stand in.

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::{Component, Path};
use std::sync::Arc;

/// Bytes of a file for as long as somebody holds them; a disk's are a memory map.
pub type Bytes = Arc<dyn AsRef<[u8]> + Send + Sync>;

/// A tree of files. Paths are relative to its root and made of plain names; the empty path is the root.
///
/// # Errors
/// Each call's are the system's: `NotFound`, `AlreadyExists`, `StorageFull` and so on, and `InvalidInput` for a path that
/// leads out of the root.
pub trait Storage: Send + Sync + fmt::Debug {
    /// A new file to append to; `AlreadyExists` if there is one.
    fn create(&self, path: &Path) -> io::Result<Box<dyn Append>>;

    /// The bytes that the file holds now.
    fn open(&self, path: &Path) -> io::Result<Bytes>;

    /// Makes durable what was ever written to a file, by whoever it was.
    fn sync_file(&self, path: &Path) -> io::Result<()>;

    /// Gives a file or folder another name. A file of that name is replaced. If it fails, nothing was changed.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a file. Whoever has it open can read on.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// A second name for a file that nobody appends to any more; a copy, synced, where there are no hard links.
    fn link(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// What is in a folder, by name.
    fn list(&self, dir: &Path) -> io::Result<Vec<Entry>>;

    /// A new folder in one that exists.
    fn create_dir(&self, path: &Path) -> io::Result<()>;

    /// Removes an empty folder.
    fn remove_dir(&self, path: &Path) -> io::Result<()>;

    /// Makes the names in a folder durable: those that came, went and changed.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;

    /// Takes the lock of this name for as long as the value lives, at most as long as the process; `WouldBlock` if it is
    /// taken. It leaves an empty file of this name, whose presence means nothing.
    fn lock(&self, path: &Path) -> io::Result<Box<dyn Held>>;

    /// Bytes that can still be written.
    fn free_bytes(&self) -> io::Result<u64>;
}

/// A file that grows at its end. One thread appends at a time; any may sync meanwhile.
pub trait Append: Send + Sync + fmt::Debug {
    /// Adds bytes at the end. When it fails, some of them may be there.
    ///
    /// # Errors
    /// What the system says.
    fn append(&self, bytes: &[u8]) -> io::Result<()>;

    /// Makes durable what was appended before the call.
    ///
    /// # Errors
    /// What the system says. What is then on disk is unknown, and stays so: a second sync that succeeds proves nothing.
    fn sync(&self) -> io::Result<()>;

    /// Bytes in the file, those of a failed append included.
    fn len(&self) -> u64;

    /// Whether there is nothing in it.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A lock that is held; see [`Storage::lock`].
pub trait Held: Send + Sync + fmt::Debug {}

/// A name in a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Without the folder's.
    pub name: OsString,
    /// What bears it.
    pub kind: Kind,
    /// A file's length, 0 for a folder.
    pub bytes: u64,
}

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "their names say it")]
pub enum Kind {
    File,
    Folder,
}

/// Refuses a path that is absolute or leads upwards.
pub(crate) fn check(path: &Path) -> io::Result<()> {
    if path.components().all(|part| matches!(part, Component::Normal(_))) {
        return Ok(());
    }
    let what =
        format!("{}: give a path below the storage's root, without `.`, `..` or a leading /", path.display());
    Err(io::Error::new(io::ErrorKind::InvalidInput, what))
}

/// The folder that a path stands in.
pub(crate) fn folder(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new(""))
}
