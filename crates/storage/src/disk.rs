//! A folder of the operating system's file system.
//!
//! Files are mapped, not read; calls that a signal interrupts are repeated; no descriptor is left to a child process (std
//! opens all with `O_CLOEXEC`).

use crate::storage::{Append, Bytes, Entry, Held, Kind, Storage, check};
use memmap2::Mmap;
use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Files below a folder.
#[derive(Clone, Debug)]
pub struct Disk {
    root: PathBuf,
}

impl Disk {
    /// Files below `root`, a folder that exists.
    ///
    /// # Errors
    /// If there is no such folder.
    pub fn new(root: &Path) -> io::Result<Disk> {
        // Later changes of the working directory lead nowhere else.
        let root = root.canonicalize()?;
        if !root.is_dir() {
            return Err(io::Error::new(io::ErrorKind::NotADirectory, "root must be a folder"));
        }
        Ok(Disk { root })
    }

    fn place(&self, path: &Path) -> io::Result<PathBuf> {
        check(path)?;
        // Joining nothing would add a slash.
        Ok(if path.as_os_str().is_empty() { self.root.clone() } else { self.root.join(path) })
    }
}

impl Storage for Disk {
    fn create(&self, path: &Path) -> io::Result<Box<dyn Append>> {
        Ok(Box::new(Growing { file: new_file(&self.place(path)?)?, bytes: AtomicU64::new(0) }))
    }

    fn open(&self, path: &Path) -> io::Result<Bytes> {
        let path = self.place(path)?;
        // Asked before it is opened: opening a pipe would wait for a writer.
        if !fs::metadata(&path)?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a file"));
        }
        let file = File::open(path)?;
        if file.metadata()?.len() == 0 {
            return Ok(Arc::new(Vec::new()));
        }
        // SAFETY: nobody changes or shortens a file in place; `Storage` has no call for it.
        Ok(Arc::new(unsafe { Mmap::map(&file) }?))
    }

    fn sync_file(&self, path: &Path) -> io::Result<()> {
        // Some systems sync only what is open for writing.
        File::options().write(true).open(self.place(path)?)?.sync_all()
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(self.place(from)?, self.place(to)?)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(self.place(path)?)
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        let (from, to) = (self.place(from)?, self.place(to)?);
        match fs::hard_link(&from, &to) {
            Err(error) if may_copy(&error) && fs::metadata(&from)?.is_file() => copy(&from, &to),
            linked => linked,
        }
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<Entry>> {
        let mut entries = Vec::new();
        for entry in fs::read_dir(self.place(dir)?)? {
            let entry = entry?;
            let metadata = match entry.metadata() {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                metadata => metadata?,
            };
            let (kind, bytes) = match metadata {
                m if m.is_file() => (Kind::File, m.len()),
                m if m.is_dir() => (Kind::Folder, 0),
                // A socket, a pipe, a link: none of ours.
                _ => continue,
            };
            entries.push(Entry { name: entry.file_name(), kind, bytes });
        }
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        fs::create_dir(self.place(path)?)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir(self.place(path)?)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let path = self.place(dir)?;
        if cfg!(unix) {
            let folder = File::open(path)?;
            if !folder.metadata()?.is_dir() {
                return Err(io::ErrorKind::NotADirectory.into());
            }
            return folder.sync_all();
        }
        // Elsewhere folders cannot be synced; renames are as durable as the file system makes them.
        fs::metadata(path).map(|_| ())
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Held>> {
        let file = File::options().write(true).create(true).truncate(false).open(self.place(path)?)?;
        match file.try_lock() {
            Ok(()) => Ok(Box::new(Locked { file, process: std::process::id() })),
            Err(TryLockError::WouldBlock) => Err(taken()),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    #[cfg(unix)]
    fn free_bytes(&self) -> io::Result<u64> {
        use std::os::unix::ffi::OsStrExt;
        let root = std::ffi::CString::new(self.root.as_os_str().as_bytes())?;
        let mut said = std::mem::MaybeUninit::<libc::statvfs>::uninit();
        // SAFETY: a path that ends with 0, and room for what is said.
        if unsafe { libc::statvfs(root.as_ptr(), said.as_mut_ptr()) } != 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: it succeeded, so all fields are set.
        let said = unsafe { said.assume_init() };
        // Their types differ by system.
        #[allow(clippy::unnecessary_cast, reason = "32 bits on some systems")]
        Ok((said.f_bavail as u64).saturating_mul(said.f_frsize as u64))
    }

    #[cfg(not(unix))]
    fn free_bytes(&self) -> io::Result<u64> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// What it says when a lock is taken.
pub(crate) fn taken() -> io::Error {
    io::Error::new(io::ErrorKind::WouldBlock, "locked by another process, or another part of this one")
}

fn new_file(path: &Path) -> io::Result<File> {
    File::options().write(true).create_new(true).open(path)
}

/// Whether a hard link was refused for what the file system is, or for the number of names, not for the names.
fn may_copy(error: &io::Error) -> bool {
    use io::ErrorKind::{CrossesDevices, PermissionDenied, TooManyLinks, Unsupported};
    matches!(error.kind(), CrossesDevices | PermissionDenied | TooManyLinks | Unsupported)
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let (mut source, mut copy) = (File::open(from)?, new_file(to)?);
    let copied = io::copy(&mut source, &mut copy).and_then(|_| copy.sync_all());
    if copied.is_err() {
        // Best effort: the error that matters is the one above.
        let _ = fs::remove_file(to);
    }
    copied
}

#[derive(Debug)]
struct Growing {
    file: File,
    bytes: AtomicU64,
}

impl Append for Growing {
    fn append(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match (&self.file).write(bytes) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => {
                    // Relaxed: one thread appends; for others it is a figure.
                    self.bytes.fetch_add(written as u64, Ordering::Relaxed);
                    bytes = &bytes[written..];
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        // The length is part of what `sync_data` makes durable; times are not, and cost a second write.
        self.file.sync_data()
    }

    fn len(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }
}

/// The system ends the lock with the last descriptor, of which a forked child has one too: who took it gives it back
/// itself, and nobody else does.
#[derive(Debug)]
struct Locked {
    file: File,
    process: u32,
}

impl Drop for Locked {
    fn drop(&mut self) {
        if self.process == std::process::id() {
            // If it fails the lock ends with the descriptor.
            let _ = self.file.unlock();
        }
    }
}

impl Held for Locked {}
