//! The cluster's state on disk: one checksummed file, replaced by each change before anybody sees the change.

use super::Cluster;
use crate::error::ApiError;
use arc_swap::ArcSwap;
use lanewise_storage::Storage;
use lanewise_storage::manifest::{self, ReadError, ReplaceError};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// The file.
const PATH: &str = "cluster";

/// Why the state cannot be had.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum StoreError {
    #[error("the file `{PATH}` of the node's folder: {0}")]
    Read(#[from] ReadError),
    #[error("the file `{PATH}` of the node's folder: {0}")]
    Replace(#[from] ReplaceError),
    #[error("the file `{PATH}` of the node's folder is of another program: {0}")]
    Contents(#[from] serde_json::Error),
}

/// The state as it is, and on disk.
#[derive(Debug)]
pub(crate) struct Store {
    storage: Arc<dyn Storage>,
    now: ArcSwap<Cluster>,
    /// Of the file; whoever changes the state holds it. `None` once it is unknown what the file says.
    generation: Mutex<Option<u64>>,
}

impl Store {
    /// Reads the state, or begins one as `uuid`.
    ///
    /// # Errors
    /// If it cannot be read, or not be written.
    pub(crate) fn open(
        storage: Arc<dyn Storage>,
        uuid: impl FnOnce() -> String,
    ) -> Result<Store, StoreError> {
        let path = Path::new(PATH);
        let (cluster, generation) = match manifest::read_durable(&*storage, path) {
            Ok(read) => (serde_json::from_slice(&read.contents)?, read.generation),
            Err(ReadError::Missing) => {
                let cluster = Cluster { uuid: uuid(), ..Cluster::default() };
                (cluster.clone(), manifest::replace(&*storage, path, 0, &serde_json::to_vec(&cluster)?)?)
            }
            Err(error) => return Err(error.into()),
        };
        Ok(Store { storage, now: ArcSwap::from_pointee(cluster), generation: Mutex::new(Some(generation)) })
    }

    /// The state at this moment.
    pub(crate) fn get(&self) -> Arc<Cluster> {
        self.now.load_full()
    }

    /// As [`change`](Self::change) if there is a change to be made, else what `read` makes of the state as it is.
    ///
    /// # Errors
    /// As [`change`](Self::change).
    pub(crate) fn change_if<T>(
        &self,
        changes: bool,
        read: impl FnOnce(&mut Cluster) -> Result<T, ApiError>,
    ) -> Result<T, ApiError> {
        if changes { self.change(read) } else { read(&mut Cluster::clone(&self.now.load())) }
    }

    /// Changes the state: durably, when this returns, and as a whole.
    ///
    /// # Errors
    /// What `change` says, or the system; nothing has changed then, except where the message says that it is unknown.
    pub(crate) fn change<T>(
        &self,
        change: impl FnOnce(&mut Cluster) -> Result<T, ApiError>,
    ) -> Result<T, ApiError> {
        let mut generation = self.generation.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(before) = *generation else {
            return Err(ApiError::internal(
                "an earlier change of the cluster's state may be lost: start the node anew",
            ));
        };
        let mut cluster = Cluster::clone(&self.now.load());
        let done = change(&mut cluster)?;
        cluster.version += 1;
        let bytes = serde_json::to_vec(&cluster).map_err(ApiError::internal)?;
        match manifest::replace(&*self.storage, Path::new(PATH), before, &bytes) {
            Ok(after) => *generation = Some(after),
            Err(error) => {
                if matches!(error, ReplaceError::Unsure(_)) {
                    *generation = None;
                }
                return Err(ApiError::internal(error));
            }
        }
        self.now.store(Arc::new(cluster));
        Ok(done)
    }
}
