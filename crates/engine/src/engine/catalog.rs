//! Which tables there are, on disk: a folder for each, in one folder.
//!
//! A table comes and goes by a rename, so that after any crash it is there as a whole or not at all: it is made in a folder
//! `_creating-<n>`, and goes by way of a folder `_dropped-<n>`; no table's name begins so. What a crash left of either is
//! removed at the next start. Files: `lock`, `tables/<name>/`.

use super::name;
use lanewise_storage::{Held, Kind, Storage, Sub};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const TABLES: &str = "tables";
const CREATING: &str = "_creating-";
const DROPPED: &str = "_dropped-";

/// The folder of all tables; one process has it open.
#[derive(Debug)]
pub(super) struct Catalog {
    storage: Arc<dyn Storage>,
    /// Of the next folder in passing.
    next: AtomicU64,
    _lock: Box<dyn Held>,
}

/// Why a table was not made.
pub(super) enum NotMade<E> {
    /// The table itself.
    Table(E),
    /// Its folder.
    Folder(io::Error),
}

impl Catalog {
    /// Opens the folder, makes it if there is none, and removes what was left half-made or half-removed; the names of the
    /// tables. Nothing of a table is looked at but its name.
    pub(super) fn open(storage: Arc<dyn Storage>) -> io::Result<(Catalog, Vec<String>)> {
        let lock = storage.lock(Path::new("lock"))?;
        let tables = Path::new(TABLES);
        match storage.create_dir(tables) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => made.and_then(|()| storage.sync_dir(Path::new("")))?,
        }
        let mut names = Vec::new();
        for entry in storage.list(tables)?.into_iter().filter(|entry| entry.kind == Kind::Folder) {
            // What is not UTF-8 is none of ours.
            let Ok(name) = entry.name.into_string() else { continue };
            if name.starts_with(CREATING) || name.starts_with(DROPPED) {
                // Best effort: what cannot be removed is tried again at the next start.
                let _ = remove(&*storage, &tables.join(name));
            } else if name::wrong_name(&name).is_none() {
                names.push(name);
            }
        }
        Ok((Catalog { storage, next: AtomicU64::new(0), _lock: lock }, names))
    }

    /// The folder of a table.
    pub(super) fn files(&self, name: &str) -> io::Result<Sub> {
        Sub::new(self.storage.clone(), &Path::new(TABLES).join(name))
    }

    /// Whether there is no folder of this name, which somebody may have removed by hand.
    pub(super) fn is_gone(&self, name: &str) -> bool {
        let listed = self.storage.list(&Path::new(TABLES).join(name));
        listed.is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
    }

    /// Makes a table in a folder of its own, which gets its name when the table is whole, durably.
    pub(super) fn create<T, E>(
        &self,
        name: &str,
        make: impl FnOnce(Arc<Sub>) -> Result<T, E>,
    ) -> Result<(T, Arc<Sub>), NotMade<E>> {
        let passing =
            self.passing(CREATING, |path| self.storage.create_dir(path)).map_err(NotMade::Folder)?;
        let files = Arc::new(Sub::new(self.storage.clone(), &passing).map_err(NotMade::Folder)?);
        let made = make(files.clone()).map_err(NotMade::Table).and_then(|table| {
            files.relocate(&Path::new(TABLES).join(name)).map_err(NotMade::Folder)?;
            Ok(table)
        });
        if made.is_err() {
            // Best effort, as at the start.
            let _ = remove(&*self.storage, &passing);
        }
        let table = made?;
        match self.sync() {
            Ok(()) => Ok((table, files)),
            // It may be there after a crash, but nobody was told that it is.
            Err(error) => {
                drop(table);
                let _ = self.drop(&files);
                Err(NotMade::Folder(error))
            }
        }
    }

    /// Takes a table's name away, durably, then its files. Whoever still has it open can read on; what they write goes
    /// nowhere. When it fails with `true`, the table is as it was; else it is gone, but may be there again after a crash.
    pub(super) fn drop(&self, files: &Sub) -> Result<(), (io::Error, bool)> {
        let passing = self.passing(DROPPED, |path| files.relocate(path)).map_err(|error| (error, true))?;
        // Not removed before its new name is durable: after a crash the old one may lead there.
        self.sync().map_err(|error| (error, false))?;
        // Best effort, as at the start.
        let _ = remove(&*self.storage, &passing);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        self.storage.sync_dir(Path::new(TABLES))
    }

    /// A path that is free, and what was made of it.
    fn passing(&self, prefix: &str, make: impl Fn(&Path) -> io::Result<()>) -> io::Result<PathBuf> {
        loop {
            // Relaxed: only uniqueness matters.
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let path = Path::new(TABLES).join(format!("{prefix}{number}"));
            match make(&path) {
                // Left by a crash, and could not be removed.
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::AlreadyExists | io::ErrorKind::DirectoryNotEmpty
                    ) => {}
                made => return made.map(|()| path),
            }
        }
    }
}

/// Removes a folder and all that is in it.
fn remove(storage: &dyn Storage, folder: &Path) -> io::Result<()> {
    for entry in storage.list(folder)? {
        let path = folder.join(&entry.name);
        match entry.kind {
            Kind::Folder => remove(storage, &path)?,
            Kind::File => storage.remove(&path)?,
        }
    }
    storage.remove_dir(folder)
}
