//! A file system in memory that remembers every change, so that what a power cut leaves can be made for any moment.
//!
//! [`Memory`] behaves like a disk while it runs. Its [`Journal`] holds each change in order; [`Journal::image`] makes of
//! the changes before some moment a storage as a disk could be found afterwards (`journal.rs` has the rules), which is
//! journaled in turn, so that a recovery can be cut short too. [`Memory::note`] puts marks of the user's between the
//! changes, such as "number n was acknowledged".

mod journal;
mod tree;

use crate::disk::taken;
use crate::storage::{Append, Bytes, Entry, Held, Kind, Storage, check};
pub use journal::Journal;
use journal::Op;
use std::collections::HashSet;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tree::{Inode, Number, Renaming, Tree};

/// What [`Storage::free_bytes`] subtracts the files from: 1 TiB.
const CAPACITY: u64 = 1 << 40;

/// A file system in memory. Clones are the same one.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    tree: Tree,
    /// What was durable at first.
    base: Tree,
    ops: Vec<Op>,
    /// As a system has it: whoever holds a lock keeps it when the file gets another name.
    locked: HashSet<Number>,
}

impl State {
    fn change(&mut self, op: Op) {
        op.apply(&mut self.tree);
        self.ops.push(op);
    }

    /// A new file or folder, as the next inode, under a name that is free.
    fn make(&mut self, path: &Path, kind: Kind) -> io::Result<Number> {
        let (folder, name) = self.tree.free_place(path)?;
        let number = self.tree.inodes.len();
        let names = vec![Renaming { folder, name: name.to_owned(), to: Some(number) }];
        self.change(Op::Names { made: Some(kind), names });
        Ok(number)
    }

    fn forget(&mut self, path: &Path) -> io::Result<()> {
        let (folder, name) = self.tree.place(path)?;
        self.change(Op::Names {
            made: None,
            names: vec![Renaming { folder, name: name.to_owned(), to: None }],
        });
        Ok(())
    }
}

impl Memory {
    /// An empty one.
    pub fn new() -> Memory {
        Memory::default()
    }

    /// Marks this moment in the journal; see [`Journal::notes`].
    pub fn note(&self, number: u64) {
        self.state().ops.push(Op::Note(number));
    }

    /// All changes until now.
    pub fn journal(&self) -> Journal {
        let state = self.state();
        Journal { base: state.base.clone(), ops: state.ops.clone() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Storage for Memory {
    fn create(&self, path: &Path) -> io::Result<Box<dyn Append>> {
        let file = self.state().make(path, Kind::File)?;
        Ok(Box::new(Growing { memory: self.clone(), file }))
    }

    fn open(&self, path: &Path) -> io::Result<Bytes> {
        let state = self.state();
        match &state.tree.inodes[state.tree.find(path)?] {
            Inode::File(bytes) => Ok(bytes.clone()),
            Inode::Folder(_) => Err(io::Error::new(io::ErrorKind::InvalidInput, "not a file")),
        }
    }

    fn sync_file(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        let file = state.tree.find(path)?;
        state.tree.file(file)?;
        state.change(Op::Sync(file));
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        check(from).and_then(|()| check(to))?;
        let mut state = self.state();
        let tree = &state.tree;
        let (source, old) = tree.place(from)?;
        let (target, new) = tree.place(to)?;
        let moved = tree.find(from)?;
        if to.starts_with(from) && to != from {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        if from.starts_with(to) && to != from {
            return Err(io::ErrorKind::DirectoryNotEmpty.into());
        }
        if let Some(&replaced) = tree.folder(target)?.get(new) {
            // As POSIX has it, two names of one file stay two.
            if replaced == moved {
                return Ok(());
            }
            match (&tree.inodes[moved], &tree.inodes[replaced]) {
                (Inode::Folder(_), Inode::File(_)) => return Err(io::ErrorKind::NotADirectory.into()),
                (Inode::File(_), Inode::Folder(_)) => return Err(io::ErrorKind::IsADirectory.into()),
                (Inode::Folder(_), Inode::Folder(names)) if !names.is_empty() => {
                    return Err(io::ErrorKind::DirectoryNotEmpty.into());
                }
                _ => {}
            }
        }
        let names = vec![
            Renaming { folder: source, name: old.to_owned(), to: None },
            Renaming { folder: target, name: new.to_owned(), to: Some(moved) },
        ];
        state.change(Op::Names { made: None, names });
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.tree.file(state.tree.find(path)?)?;
        state.forget(path)
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        check(from).and_then(|()| check(to))?;
        let mut state = self.state();
        let file = state.tree.find(from)?;
        let (folder, name) = state.tree.free_place(to)?;
        if state.tree.file(file).is_err() {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let names = vec![Renaming { folder, name: name.to_owned(), to: Some(file) }];
        state.change(Op::Names { made: None, names });
        Ok(())
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<Entry>> {
        let state = self.state();
        let names = state.tree.folder(state.tree.find(dir)?)?;
        let entry = |(name, &number): (&std::ffi::OsString, &Number)| {
            let (kind, bytes) = match &state.tree.inodes[number] {
                Inode::File(bytes) => (Kind::File, bytes.len() as u64),
                Inode::Folder(_) => (Kind::Folder, 0),
            };
            Entry { name: name.clone(), kind, bytes }
        };
        Ok(names.iter().map(entry).collect())
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.state().make(path, Kind::Folder).map(|_| ())
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        if !state.tree.folder(state.tree.find(path)?)?.is_empty() {
            return Err(io::ErrorKind::DirectoryNotEmpty.into());
        }
        state.forget(path)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let mut state = self.state();
        let folder = state.tree.find(dir)?;
        state.tree.folder(folder)?;
        state.change(Op::SyncFolder(folder));
        Ok(())
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Held>> {
        let mut state = self.state();
        let file = match state.tree.find(path) {
            Ok(file) => state.tree.file(file).map(|_| file)?,
            Err(_) => state.make(path, Kind::File)?,
        };
        if !state.locked.insert(file) {
            return Err(taken());
        }
        Ok(Box::new(Locked { memory: self.clone(), file }))
    }

    fn free_bytes(&self) -> io::Result<u64> {
        let state = self.state();
        let files = state.tree.inodes.iter().map(|inode| match inode {
            Inode::File(bytes) => bytes.len() as u64,
            Inode::Folder(_) => 0,
        });
        Ok(CAPACITY.saturating_sub(files.sum()))
    }
}

#[derive(Debug)]
struct Growing {
    memory: Memory,
    file: Number,
}

impl Append for Growing {
    fn append(&self, bytes: &[u8]) -> io::Result<()> {
        self.memory.state().change(Op::Append { file: self.file, bytes: bytes.into() });
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        self.memory.state().change(Op::Sync(self.file));
        Ok(())
    }

    fn len(&self) -> u64 {
        let state = self.memory.state();
        state.tree.file(self.file).map_or(0, |bytes| bytes.len() as u64)
    }
}

#[derive(Debug)]
struct Locked {
    memory: Memory,
    file: Number,
}

impl Held for Locked {}

impl Drop for Locked {
    fn drop(&mut self) {
        self.memory.state().locked.remove(&self.file);
    }
}
