//! Folders of snapshots: of each table what the engine keeps, and beside it what is known of their indexes.
//!
//! A snapshot is there once the file `opensearch/<name>` is, which is written last; tables' snapshots that no such file names
//! are removed by the next change.

use crate::cluster::Index;
use crate::error::ApiError;
use axum::http::StatusCode;
use lanewise_engine::table::{Repository, SnapshotError};
use lanewise_storage::manifest::{self, ReadError};
use lanewise_storage::{Disk, Storage};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

const FOLDER: &str = "opensearch";
/// What the names of tables' snapshots begin with that are ours.
const OURS: &str = "rest-";
/// The longest name of a snapshot, bytes.
const NAME_BYTES_MAX: usize = 200;

/// A folder of snapshots.
pub(crate) struct Place {
    name: String,
    storage: Arc<dyn Storage>,
    pub(crate) tables: Repository,
}

/// A snapshot of several indexes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Made {
    pub(crate) uuid: String,
    /// Milliseconds since 1970.
    pub(crate) began_ms: u64,
    pub(crate) ended_ms: u64,
    #[serde(default)]
    pub(crate) metadata: Option<Value>,
    pub(crate) indices: BTreeMap<String, Kept>,
}

/// An index in a snapshot.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Kept {
    /// What is known of it beside its table.
    pub(crate) index: Index,
    /// The name of its table's snapshot.
    pub(crate) table: String,
    pub(crate) documents: u64,
    pub(crate) segments: u64,
    pub(crate) bytes: u64,
    pub(crate) copied: u64,
}

/// A new name for a table's snapshot.
pub(crate) fn of_table(uuid: &str) -> String {
    format!("{OURS}{uuid}")
}

fn failed(name: &str, what: impl ToString) -> ApiError {
    let reason = format!("[{name}] {}", what.to_string());
    ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "repository_exception", reason)
}

/// The folder that a location means: below one of those that are allowed.
///
/// # Errors
/// If it is in none of them, also by links, or cannot be made.
fn folder(name: &str, allowed: &[PathBuf], location: &str) -> Result<PathBuf, ApiError> {
    let refused = || {
        ApiError::new(
            StatusCode::BAD_REQUEST,
            "repository_exception",
            format!(
                "[{name}] location [{location}] doesn't match any of the locations specified by path.repo"
            ),
        )
    };
    let given = Path::new(location);
    let plain =
        |part: Component<'_>| matches!(part, Component::Normal(_) | Component::RootDir | Component::CurDir);
    let root = if given.is_absolute() {
        allowed.iter().find(|root| given.starts_with(root))
    } else {
        allowed.first()
    };
    let root = root.filter(|_| given.components().all(plain) && !location.is_empty()).ok_or_else(refused)?;
    let path = root.join(given);
    let failed = |error: io::Error| failed(name, format!("location [{location}]: {error}"));
    std::fs::create_dir_all(root).map_err(failed)?;
    let root = root.canonicalize().map_err(failed)?;
    // What is there of the path may lead elsewhere: nothing is made before that is known.
    let there = path.ancestors().find(|above| above.exists()).unwrap_or(&path);
    if !there.canonicalize().map_err(failed)?.starts_with(&root) {
        return Err(refused());
    }
    std::fs::create_dir_all(&path).map_err(failed)?;
    path.canonicalize().map_err(failed)
}

impl Place {
    /// The repository `name` at a location below one of `allowed`.
    ///
    /// # Errors
    /// If it may not be there, or cannot be.
    pub(crate) fn open(name: &str, allowed: &[PathBuf], location: &str) -> Result<Place, ApiError> {
        let folder = folder(name, allowed, location)?;
        let storage: Arc<dyn Storage> = Arc::new(Disk::new(&folder).map_err(|error| failed(name, error))?);
        match storage.create_dir(Path::new(FOLDER)) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(failed(name, error)),
            _ => storage.sync_dir(Path::new("")).map_err(|error| failed(name, error))?,
        }
        Ok(Place { name: name.to_owned(), tables: Repository::new(storage.clone()), storage })
    }

    fn path(&self, snapshot: &str) -> Result<PathBuf, ApiError> {
        let wrong = if snapshot.len() > NAME_BYTES_MAX || snapshot.ends_with(".tmp") {
            Some("give at most 200 bytes, not ending with .tmp")
        } else {
            lanewise_engine::wrong_name(snapshot)
        };
        match wrong {
            None => Ok(Path::new(FOLDER).join(snapshot)),
            Some(what) => Err(ApiError::new(
                StatusCode::BAD_REQUEST,
                "invalid_snapshot_name_exception",
                format!("[{}:{snapshot}] Invalid snapshot name [{snapshot}], {what}", self.name),
            )),
        }
    }

    /// The names of all snapshots, ascending.
    pub(crate) fn names(&self) -> Result<BTreeSet<String>, ApiError> {
        let entries = self.storage.list(Path::new(FOLDER)).map_err(|error| failed(&self.name, error))?;
        let names = entries.into_iter().filter_map(|entry| entry.name.into_string().ok());
        Ok(names.filter(|name| self.path(name).is_ok()).collect())
    }

    /// A snapshot, if it is there.
    pub(crate) fn get(&self, snapshot: &str) -> Result<Option<Made>, ApiError> {
        match manifest::read(&*self.storage, &self.path(snapshot)?) {
            Ok(read) => {
                let made = serde_json::from_slice(&read.contents);
                made.map(Some).map_err(|error| failed(&self.name, format!("snapshot [{snapshot}]: {error}")))
            }
            Err(ReadError::Missing) => Ok(None),
            Err(error) => Err(failed(&self.name, format!("snapshot [{snapshot}]: {error}"))),
        }
    }

    /// Makes a snapshot whose tables' are made.
    pub(crate) fn publish(&self, snapshot: &str, made: &Made) -> Result<(), ApiError> {
        let bytes = serde_json::to_vec(made).map_err(ApiError::internal)?;
        let done = manifest::replace(&*self.storage, &self.path(snapshot)?, 0, &bytes);
        done.map(|_| ()).map_err(|error| failed(&self.name, error))
    }

    /// Removes a snapshot, and then what no other one needs.
    pub(crate) fn remove(&self, snapshot: &str) -> Result<(), ApiError> {
        let removed = self.storage.remove(&self.path(snapshot)?);
        let synced = removed.and_then(|()| self.storage.sync_dir(Path::new(FOLDER)));
        synced.map_err(|error| failed(&self.name, error))?;
        self.sweep()
    }

    /// Removes tables' snapshots that no snapshot names.
    pub(crate) fn sweep(&self) -> Result<(), ApiError> {
        let mut needed = BTreeSet::new();
        for name in self.names()? {
            // One that cannot be read may need anything.
            let Some(made) = self.get(&name)? else { continue };
            needed.extend(made.indices.into_values().map(|kept| kept.table));
        }
        for (name, _) in self.tables.list().map_err(|error| self.of(error))? {
            if name.starts_with(OURS) && !needed.contains(&name) {
                self.tables.delete(&name).map_err(|error| self.of(error))?;
            }
        }
        Ok(())
    }

    /// The engine's errors as OpenSearch has them.
    pub(crate) fn of(&self, error: SnapshotError) -> ApiError {
        match error {
            SnapshotError::Busy => {
                let reason = format!("[{}] {error}", self.name);
                ApiError::new(
                    StatusCode::SERVICE_UNAVAILABLE,
                    "concurrent_snapshot_execution_exception",
                    reason,
                )
            }
            SnapshotError::Stopped => {
                ApiError::new(StatusCode::BAD_REQUEST, "task_cancelled_exception", "the task was cancelled")
            }
            error => ApiError::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                "snapshot_exception",
                format!("[{}] {error}", self.name),
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locations_stay_below_what_is_allowed() {
        let root = tempfile::tempdir().unwrap();
        let allowed = [root.path().join("repos")];
        let inside = root.path().join("repos/a/b");
        for location in ["x", "x/y", "./x", inside.to_str().unwrap()] {
            assert!(
                folder("r", &allowed, location).unwrap().starts_with(root.path().canonicalize().unwrap()),
                "{location}"
            );
        }
        let outside = root.path().join("repos2");
        for location in ["../x", "a/../../x", "/", "", "/etc", outside.to_str().unwrap()] {
            let said = folder("r", &allowed, location).unwrap_err().to_string();
            assert!(said.contains("path.repo"), "{location}: {said}");
        }
        assert!(folder("r", &[], "x").is_err());
        assert!(!outside.exists());
    }

    #[cfg(unix)]
    #[test]
    fn links_lead_nowhere_else() {
        let root = tempfile::tempdir().unwrap();
        let allowed = [root.path().join("repos")];
        std::fs::create_dir(&allowed[0]).unwrap();
        std::os::unix::fs::symlink("/tmp", allowed[0].join("link")).unwrap();
        assert!(folder("r", &allowed, "link/x").unwrap_err().to_string().contains("path.repo"));
    }
}
