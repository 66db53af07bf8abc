//! Files and folders as inodes, and names that lead to them.

use crate::storage::check;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;
use std::sync::Arc;

/// An inode's number; the root's is 0.
pub(super) type Number = usize;

pub(super) const ROOT: Number = 0;

#[derive(Clone, Debug)]
pub(super) enum Inode {
    /// Shared with readers, who keep what they opened.
    File(Arc<Vec<u8>>),
    Folder(BTreeMap<OsString, Number>),
}

/// That a name in a folder leads to another inode from now on, or to none.
#[derive(Clone, Debug)]
pub(super) struct Renaming {
    pub(super) folder: Number,
    pub(super) name: OsString,
    pub(super) to: Option<Number>,
}

/// Inodes are never freed, so that numbers mean the same at all times.
#[derive(Clone, Debug)]
pub(super) struct Tree {
    pub(super) inodes: Vec<Inode>,
}

impl Default for Tree {
    fn default() -> Self {
        Tree { inodes: vec![Inode::Folder(BTreeMap::new())] }
    }
}

impl Tree {
    pub(super) fn find(&self, path: &Path) -> io::Result<Number> {
        check(path)?;
        let mut at = ROOT;
        for name in path {
            at = *self.folder(at)?.get(name).ok_or(io::ErrorKind::NotFound)?;
        }
        Ok(at)
    }

    /// The folder that `path` stands in, and its last name.
    pub(super) fn place<'a>(&self, path: &'a Path) -> io::Result<(Number, &'a OsStr)> {
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let folder = self.find(path.parent().unwrap_or(Path::new("")))?;
        self.folder(folder)?;
        check(path)?;
        Ok((folder, name))
    }

    /// Where a new thing is to be: there must be none.
    pub(super) fn free_place<'a>(&self, path: &'a Path) -> io::Result<(Number, &'a OsStr)> {
        match self.place(path)? {
            (folder, name) if self.folder(folder)?.contains_key(name) => {
                Err(io::ErrorKind::AlreadyExists.into())
            }
            place => Ok(place),
        }
    }

    pub(super) fn folder(&self, number: Number) -> io::Result<&BTreeMap<OsString, Number>> {
        match &self.inodes[number] {
            Inode::Folder(names) => Ok(names),
            Inode::File(_) => Err(io::ErrorKind::NotADirectory.into()),
        }
    }

    pub(super) fn file(&self, number: Number) -> io::Result<&Arc<Vec<u8>>> {
        match &self.inodes[number] {
            Inode::File(bytes) => Ok(bytes),
            Inode::Folder(_) => Err(io::ErrorKind::IsADirectory.into()),
        }
    }

    pub(super) fn apply(&mut self, renamings: &[Renaming]) {
        for Renaming { folder, name, to } in renamings {
            let Inode::Folder(names) = &mut self.inodes[*folder] else {
                unreachable!("names are in folders")
            };
            match to {
                Some(to) => names.insert(name.clone(), *to),
                None => names.remove(name),
            };
        }
    }

    pub(super) fn append(&mut self, file: Number, bytes: &[u8]) {
        let Inode::File(there) = &mut self.inodes[file] else { unreachable!("files are appended to") };
        Arc::make_mut(there).extend_from_slice(bytes);
    }
}
