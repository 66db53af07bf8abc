//! The node: tables, what is known beside them, and who it is.

use crate::api::{Points, Scrolls};
use crate::cluster::{Cluster, Index, Store, StoreError};
use crate::cluster_settings;
use crate::counts::Counts;
use crate::error::ApiError;
use crate::log::Log;
use crate::metrics::Metrics;
use crate::recall::Recalls;
use crate::tasks::Tasks;
use crate::watch::SlowSearches;
use axum::http::StatusCode;
use lanewise_engine::table::{Resources, Watched};
use lanewise_engine::{Engine, EngineError, Limits, Pool, Threads};
use lanewise_storage::{Disk, Kind, Storage};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{SystemTime, UNIX_EPOCH};

/// What a node is called where nobody said.
const NAME: &str = "lanewise";

/// A node of its own.
pub struct Node {
    pub(crate) engine: Arc<Engine>,
    pub(crate) store: Arc<Store>,
    pub(crate) name: String,
    pub(crate) cluster_name: String,
    /// Where it listens, once it does.
    pub(crate) address: OnceLock<SocketAddr>,
    pub(crate) began_ms: u64,
    pub(crate) counts: Counts,
    pub(crate) tasks: Tasks,
    pub(crate) scrolls: Scrolls,
    pub(crate) points: Points,
    /// Of memory, where no setting says it.
    pub(crate) limit_bytes: u64,
    pub(crate) threads: Threads,
    pub(crate) pool: Arc<Pool>,
    /// Below which folders of snapshots may be (`path.repo`).
    pub(crate) repositories: Vec<PathBuf>,
    /// Held by whoever changes one.
    pub(crate) changing_repositories: Arc<Mutex<()>>,
    storage: Arc<dyn Storage>,
    pub(crate) metrics: Metrics,
    pub(crate) recall: Arc<Recalls>,
    pub(crate) log: Log,
    pub(crate) slow: SlowSearches,
}

/// Why a node does not start.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum NodeError {
    #[error("folder {folder:?}: {error}")]
    Folder { folder: String, error: std::io::Error },
    #[error("folder {folder:?} is in use by another process: stop that one, or give another folder")]
    Taken { folder: String },
    #[error("folder {folder:?}: {error}")]
    Engine { folder: String, error: EngineError },
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Node {
    /// Opens the node of a folder, which is made if it is missing. Finishes what a crash left undone: tables that were to be
    /// dropped are dropped.
    ///
    /// # Errors
    /// If another process has the folder, or it cannot be read.
    pub fn open(folder: &Path, resources: Resources, limits: Limits) -> Result<Node, NodeError> {
        let name = || folder.display().to_string();
        let failed = |error| NodeError::Folder { folder: name(), error };
        create(folder).map_err(failed)?;
        let storage: Arc<dyn Storage> = Arc::new(Disk::new(folder).map_err(failed)?);
        // It holds the folder, for the state too.
        let (threads, pool) = (resources.threads, resources.pool.clone());
        let limit_bytes = resources.admission.limit();
        let engine = Engine::open(storage.clone(), resources, limits).map_err(|error| match error {
            EngineError::Locked => NodeError::Taken { folder: name() },
            error => NodeError::Engine { folder: name(), error },
        })?;
        let store = Arc::new(Store::open(storage.clone(), new_uuid)?);
        let node = Node {
            engine: Arc::new(engine),
            store,
            name: NAME.to_owned(),
            cluster_name: NAME.to_owned(),
            address: OnceLock::new(),
            began_ms: now_ms(),
            counts: Counts::default(),
            tasks: Tasks::default(),
            scrolls: Scrolls::default(),
            points: Points::default(),
            limit_bytes,
            threads,
            pool,
            repositories: Vec::new(),
            changing_repositories: Arc::default(),
            storage,
            metrics: Metrics::default(),
            recall: Arc::default(),
            log: Log::silent(),
            slow: SlowSearches::default(),
        };
        node.settle().map_err(|error| NodeError::Engine { folder: name(), error })?;
        node.adopt();
        cluster_settings::apply(&node);
        Ok(node)
    }

    /// The same with another name.
    pub fn named(mut self, name: &str) -> Node {
        name.clone_into(&mut self.name);
        self
    }

    /// The same, with folders of snapshots below these (`path.repo`): without any there are none.
    pub fn with_repositories(mut self, folders: Vec<PathBuf>) -> Node {
        self.repositories = folders;
        self
    }

    /// The same, which says what happens, and which searches are slow.
    pub(crate) fn telling(self, log: Log, slow: SlowSearches) -> Node {
        Node { log, slow, ..self }
    }

    fn settle(&self) -> Result<(), EngineError> {
        for name in &self.store.get().dropping {
            match self.engine.drop_table(name) {
                Ok(()) | Err(EngineError::Missing { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Makes indexes of tables that have none: a crash came between making both, or somebody made them without the server.
    /// What cannot be opened now, or be an index, waits for another start.
    fn adopt(&self) {
        for name in self.engine.names() {
            if self.cluster().indices.contains_key(&*name)
                || self.cluster().with_alias(&name).next().is_some()
            {
                continue;
            }
            let Ok(table) = self.engine.table(&name) else { continue };
            let index = Index::new(&name, crate::mapping::of_schema(&table.schema()));
            // Best effort: the next start tries again.
            let _ = self.store.change(|cluster| {
                cluster.indices.insert(name.to_string(), index);
                Ok(())
            });
        }
    }

    /// The table of an index.
    pub(crate) fn table(&self, index: &str) -> Result<Arc<Watched>, ApiError> {
        self.engine.table(index).map_err(of_engine)
    }

    /// The same, if it is open.
    pub(crate) fn table_if_open(&self, index: &str) -> Option<Arc<Watched>> {
        self.engine.table_if_open(index)
    }

    /// Drops the table of an index that is gone.
    pub(crate) fn drop_table(&self, index: &str) -> Result<(), ApiError> {
        self.unpin(index);
        match self.engine.drop_table(index) {
            Ok(()) | Err(EngineError::Missing { .. }) => {}
            Err(error) => return Err(of_engine(error)),
        }
        self.counts.forget(index);
        self.store.change(|cluster| {
            cluster.dropping.retain(|name| name != index);
            Ok(())
        })
    }

    /// Closes a table that nobody holds; the next who asks for it opens it.
    pub(crate) fn close_table(&self, index: &str) -> Result<bool, ApiError> {
        self.engine.close(index).map_err(of_engine)
    }

    /// Lets go of the scrolls and points in time of an index.
    pub(crate) fn unpin(&self, index: &str) {
        self.scrolls.forget(index);
        self.points.forget(index);
    }

    /// Lets go of scrolls and points in time whose time is over.
    pub(crate) fn sweep(&self) {
        self.scrolls.sweep();
        self.points.sweep();
    }

    /// Lets go of all scrolls and points in time.
    pub(crate) fn unpin_all(&self) {
        self.cluster().indices.keys().for_each(|index| self.unpin(index));
    }

    /// Bytes that are free where tables are, 0 if the system does not say.
    pub(crate) fn free_bytes(&self) -> u64 {
        self.storage.free_bytes().unwrap_or(0)
    }

    /// The node's name for clients, who may have several.
    pub(crate) fn id(&self) -> String {
        self.cluster().uuid.clone()
    }

    /// A task's name for clients.
    pub(crate) fn task_id(&self, number: u64) -> String {
        format!("{}:{number}", self.id())
    }

    /// Bytes of an index's files.
    pub(crate) fn bytes_of(&self, index: &str) -> u64 {
        let mut folders = vec![Path::new("tables").join(index)];
        let mut bytes = 0;
        while let Some(folder) = folders.pop() {
            // What goes while it is looked at has no bytes any more.
            for entry in self.storage.list(&folder).unwrap_or_default() {
                match entry.kind {
                    Kind::File => bytes += entry.bytes,
                    Kind::Folder => folders.push(folder.join(entry.name)),
                }
            }
        }
        bytes
    }

    /// What is known beside the tables, at this moment.
    pub(crate) fn cluster(&self) -> Arc<Cluster> {
        self.store.get()
    }
}

/// Makes a folder that nobody else may look into.
fn create(folder: &Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(folder)
}

/// 22 characters, as OpenSearch's ids have.
pub(crate) fn new_uuid() -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    (0..22).map(|_| char::from(DIGITS[fastrand::usize(..64)])).collect()
}

/// Milliseconds since 1970.
#[expect(clippy::disallowed_methods, reason = "indexes are dated, and the times of requests are told")]
pub(crate) fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_millis() as u64)
}

/// The engine's errors as OpenSearch has them.
pub(crate) fn of_engine(error: EngineError) -> ApiError {
    let reason = error.to_string();
    match error {
        EngineError::Missing { name } => ApiError::no_index(&name),
        EngineError::Exists { name } => exists(&name),
        EngineError::Name { name, what } => ApiError::new(
            StatusCode::BAD_REQUEST,
            "invalid_index_name_exception",
            format!("Invalid index name [{name}], {what}"),
        )
        .with("index", name),
        EngineError::Damaged { name, .. } => {
            ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "corrupt_index_exception", reason)
                .with("index", name)
        }
        EngineError::Open { .. } | EngineError::Io { .. } | EngineError::Locked | EngineError::IsTable => {
            ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "exception", reason)
        }
    }
}

/// The index is there already.
pub(crate) fn exists(name: &str) -> ApiError {
    ApiError::new(
        StatusCode::BAD_REQUEST,
        "resource_already_exists_exception",
        format!("index [{name}] already exists"),
    )
    .with("index", name)
}
