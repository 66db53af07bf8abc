//! Restoring a snapshot as a new table: all of it or nothing, since its manifest is written last.

use super::contents::{Contents, Stored};
use super::copy::Copying;
use super::{Repository, SEGMENTS, SNAPSHOTS, Snapshot, SnapshotError, at};
use crate::table::check::Progress;
use crate::table::open::unique;
use crate::table::segment::{self, SegmentId, deleted, folder};
use crate::table::state::{Listed, State};
use lanewise_storage::Storage;
use std::io;
use std::path::Path;

/// A file that says that what is here is an unfinished restore, which the next one may remove.
const UNFINISHED: &str = "restoring";
/// The generation that a restored table's manifest has.
const GENERATION: u64 = 1;

impl Repository {
    /// Makes a table of the snapshot `name` in the folder that is `to`'s root, which must be empty (or hold what an earlier
    /// restore left unfinished). Every checksum is compared. The table is one of its own: it has another identity than the
    /// one that the snapshot is of.
    ///
    /// # Errors
    /// If there is no such snapshot, there is something in the folder, a file is damaged, the system fails, or `progress`
    /// stops it. There is no table then, and nothing of it is left if the system lets it be removed.
    pub fn restore(
        &self,
        name: &str,
        to: &dyn Storage,
        progress: Progress<'_>,
    ) -> Result<Snapshot, SnapshotError> {
        let contents = self.read(name)?;
        let root = Path::new("");
        let there = to.list(root).map_err(at(root))?;
        let unfinished = there.iter().any(|entry| entry.name == UNFINISHED);
        let manifest = there.iter().any(|entry| entry.name == "manifest");
        if manifest || !unfinished && there.iter().any(|entry| entry.name != "lock") {
            return Err(SnapshotError::Occupied);
        }
        let lock = Path::new("lock");
        let _held = to.lock(lock).map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => SnapshotError::Occupied,
            _ => at(lock)(error),
        })?;
        if !unfinished {
            let mark = Path::new(UNFINISHED);
            to.create(mark).and_then(|file| file.sync()).map_err(at(mark))?;
            to.sync_dir(root).map_err(at(root))?;
        }
        let copied = self.copy(name, &contents, to, progress);
        if !matches!(
            copied,
            Ok(_) | Err(SnapshotError::Replace(lanewise_storage::manifest::ReplaceError::Unsure(_)))
        ) {
            // Best effort: the next restore removes what is left.
            let _ = clean(to).and_then(|()| to.remove(Path::new(UNFINISHED)));
        }
        let copied = copied?;
        // Best effort: it means nothing beside a manifest.
        let _ = to.remove(Path::new(UNFINISHED));
        Ok(Snapshot::of(name, &contents, copied))
    }

    fn copy(
        &self,
        name: &str,
        contents: &Contents,
        to: &dyn Storage,
        progress: Progress<'_>,
    ) -> Result<u64, SnapshotError> {
        clean(to).map_err(at(Path::new(SEGMENTS)))?;
        for dir in ["log", SEGMENTS] {
            to.create_dir(Path::new(dir)).map_err(at(Path::new(dir)))?;
        }
        let mut copying = Copying::new(contents.files().map(|file| file.bytes).sum(), progress);
        let mut state = State::new(contents.schema.clone(), unique());
        state.settings = contents.settings.clone();
        state.replay_from = contents.last + 1;
        for Stored { segment, folder: stored, files, deleted: dead, .. } in &contents.segments {
            let dir = folder(*segment);
            to.create_dir(&dir).map_err(at(&dir))?;
            for file in files {
                let from = Path::new(SEGMENTS).join(stored).join(&file.name);
                let bytes = self.storage.open(&from).map_err(at(&from))?;
                copying.write(&bytes, to, &dir.join(&file.name), file)?;
            }
            if let Some(file) = dead {
                let from = Path::new(SNAPSHOTS).join(name).join(&file.name);
                let bytes = self.storage.open(&from).map_err(at(&from))?;
                copying.write(&bytes, to, &deleted(*segment, GENERATION), file)?;
            }
            to.sync_dir(&dir).map_err(at(&dir))?;
            state.next_segment = state.next_segment.max(segment.0 + 1);
            state.segments.push(Listed { segment: *segment, deleted: dead.as_ref().map(|_| GENERATION) });
        }
        for dir in [SEGMENTS, ""] {
            to.sync_dir(Path::new(dir)).map_err(at(Path::new(dir)))?;
        }
        state.replace(to, GENERATION - 1)?;
        Ok(copying.copied)
    }
}

/// Removes what an unfinished restore left of segments and log.
fn clean(to: &dyn Storage) -> io::Result<()> {
    let gone = |done: io::Result<()>| match done {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    };
    for entry in to.list(Path::new(SEGMENTS)).or_else(|error| gone(Err(error)).map(|()| Vec::new()))? {
        let number = entry.name.to_str().and_then(|name| u64::from_str_radix(name, 16).ok());
        number.map_or(Ok(()), |number| segment::remove(to, SegmentId(number)))?;
    }
    ["log", SEGMENTS].iter().try_for_each(|dir| gone(to.remove_dir(Path::new(dir))))
}
