//! How a file gets a name under which it is never seen half-written: written under a temporary name, synced, renamed,
//! and the folder synced.

use crate::storage::{Append, Kind, Storage, folder};
use std::io;
use std::path::{Path, PathBuf};

/// What temporary names end with.
const TEMPORARY: &str = "tmp";

/// Why a file was not published.
#[derive(Debug)]
pub(crate) enum PublishError {
    /// Its name is as it was.
    Before(io::Error),
    /// The sync of the renaming failed: after a crash the name may lead to either.
    Unsure(io::Error),
}

fn temporary(path: &Path) -> PathBuf {
    path.with_added_extension(TEMPORARY)
}

pub(crate) fn is_temporary(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == TEMPORARY)
}

/// Writes `pieces` as the file `path`, replacing one that is there. It can be appended to further.
pub(crate) fn publish(
    storage: &dyn Storage,
    path: &Path,
    pieces: &[&[u8]],
) -> Result<Box<dyn Append>, PublishError> {
    let temporary = temporary(path);
    let created = match storage.create(&temporary) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            storage.remove(&temporary).and_then(|()| storage.create(&temporary))
        }
        created => created,
    };
    let file = created.map_err(PublishError::Before)?;
    let written = pieces.iter().try_for_each(|piece| file.append(piece)).and_then(|()| file.sync());
    let written = written.and_then(|()| storage.rename(&temporary, path));
    if let Err(error) = written {
        // Best effort: the error that matters is this one, and what is left is removed when the folder is opened.
        let _ = storage.remove(&temporary);
        return Err(PublishError::Before(error));
    }
    storage.sync_dir(folder(path)).map_err(PublishError::Unsure)?;
    Ok(file)
}

/// Removes what crashes left half-written in a folder: all files whose names end with `.tmp`. Says how many.
///
/// # Errors
/// What the system says.
pub fn remove_temporaries(storage: &dyn Storage, dir: &Path) -> io::Result<usize> {
    let entries = storage.list(dir)?;
    let left =
        entries.iter().filter(|entry| entry.kind == Kind::File && is_temporary(Path::new(&entry.name)));
    let mut removed = 0;
    for entry in left {
        storage.remove(&dir.join(&entry.name))?;
        removed += 1;
    }
    Ok(removed)
}
