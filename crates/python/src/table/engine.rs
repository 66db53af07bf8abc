//! The class `_lanewise.Engine`, which `lanewise/engine.py` makes comfortable: many tables by name.
//!
//! A table that it gives holds the name, not the table: the engine may close it between two calls, and opens it for the
//! next.

use super::calls::Calls;
use super::home::{self, Home};
use super::pool::{self, Shared};
use super::{Table, closing, errors, memory, schema_of};
use crate::arguments;
use lanewise_engine::documents::Schema;
use lanewise_engine::table::Watched;
use lanewise_engine::{Engine as Inner, EngineError, Limits, MemoryLimit, TableState, Threads};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;

/// A table's name, how it is, its documents if it is open, and what is wrong with it.
type Listed = (String, &'static str, Option<usize>, Option<String>);

/// What an engine is while it is open. Fields are dropped in their order.
pub(super) struct Tables {
    pub(super) engine: Inner,
    pub(super) folder: PathBuf,
    _shared: Arc<Shared>,
}

/// Tables in a folder; see `lanewise.Engine`.
#[pyclass(frozen, module = "lanewise._lanewise")]
pub(crate) struct Engine {
    folder: PathBuf,
    threads: Threads,
    tables: Arc<Calls<Tables>>,
}

#[pymethods]
impl Engine {
    /// Opens the tables of a folder, which is made if it is not there.
    #[staticmethod]
    #[pyo3(signature = (folder, *, memory_limit=None, open_tables=None, num_threads=None))]
    fn open(
        py: Python<'_>,
        #[pyo3(from_py_with = arguments::path)] folder: PathBuf,
        #[pyo3(from_py_with = memory::limit)] memory_limit: Option<MemoryLimit>,
        #[pyo3(from_py_with = arguments::open_tables)] open_tables: Option<usize>,
        #[pyo3(from_py_with = arguments::num_threads)] num_threads: Option<NonZeroUsize>,
    ) -> PyResult<Engine> {
        let folder = std::path::absolute(folder)?;
        let shared = pool::shared().map_err(|error| errors::start(py, &folder, &error))?;
        let resources = shared.resources(Threads::new(num_threads), memory_limit);
        let threads = resources.threads;
        let usual = Limits::default();
        let limits = Limits { open_tables: open_tables.unwrap_or(usual.open_tables), ..usual };
        let opened = py.detach(|| Inner::open_folder(&folder, resources, limits));
        let engine = opened.map_err(|error| errors::engine(py, &folder, error))?;
        let tables = Tables { engine, folder: folder.clone(), _shared: shared };
        Ok(Engine { folder, threads, tables: Arc::new(Calls::new(tables)) })
    }

    /// Makes a table of `schema`, fields by name as JSON has them.
    fn create(&self, py: Python<'_>, name: &str, schema: &Bound<'_, PyAny>) -> PyResult<Table> {
        let schema = schema_of(schema)?;
        self.got(py, name, |engine, _| engine.create(name, schema))
    }

    /// The table of this name.
    fn table(&self, py: Python<'_>, name: &str) -> PyResult<Table> {
        self.got(py, name, |engine, proceed| engine.table_with(name, proceed))
    }

    /// As table(); what was put aside is tried again.
    fn retry(&self, py: Python<'_>, name: &str) -> PyResult<Table> {
        self.got(py, name, |engine, proceed| engine.retry_with(name, proceed))
    }

    /// Drops a table.
    #[pyo3(name = "drop")]
    fn drop_table(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        self.with(py, |engine| engine.drop_table(name))?
            .map_err(|error| errors::engine(py, &self.folder, error))
    }

    /// The names of all tables, ascending.
    fn names(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.with(py, |engine| engine.names().iter().map(|name| name.to_string()).collect())
    }

    /// All tables, by ascending name: (name, state, documents, what is wrong).
    fn list(&self, py: Python<'_>) -> PyResult<Vec<Listed>> {
        let listed = |engine: &Inner| {
            let each = engine.list().into_iter().map(|one| {
                let name = one.name.to_string();
                match one.state {
                    TableState::Closed => (name, "closed", None, None),
                    TableState::Busy => (name, "busy", None, None),
                    TableState::Open { documents, .. } => (name, "open", Some(documents), None),
                    TableState::Damaged { why } => (name, "damaged", None, Some(why.to_string())),
                }
            });
            each.collect()
        };
        self.with(py, listed)
    }

    /// The memory limit, and what is in use: a dict.
    fn memory<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let admission = self.with(py, |engine| engine.admission().clone())?;
        memory::in_use(py, &admission)
    }

    /// Closes all tables once no other thread works with one; without `wait` only if none does. Whether they are closed.
    #[pyo3(signature = (*, wait=true))]
    fn close(&self, py: Python<'_>, wait: bool) -> PyResult<bool> {
        closing(py, self.threads, |effort| self.tables.close(wait, |tables| tables.engine.close_all(effort)))
    }

    /// Whether it is closed, or not this process's.
    #[getter]
    fn closed(&self) -> bool {
        self.tables.is_closed()
    }

    /// The folder.
    #[getter]
    fn path(&self) -> PathBuf {
        self.folder.clone()
    }
}

impl Engine {
    /// Runs `work`, without the GIL.
    ///
    /// # Errors
    /// `TableClosedError`.
    fn with<T: Send>(&self, py: Python<'_>, work: impl FnOnce(&Inner) -> T + Send) -> PyResult<T> {
        let done = py.detach(|| self.tables.with(|tables| work(&tables.engine)));
        done.ok_or_else(|| errors::engine_closed(py, &self.folder, self.tables.is_forked()))
    }

    /// The table that `get` gives.
    fn got(
        &self,
        py: Python<'_>,
        name: &str,
        get: impl FnOnce(&Inner, &dyn Fn() -> ControlFlow<()>) -> Result<Arc<Watched>, EngineError> + Send,
    ) -> PyResult<Table> {
        let get = |tables: &Tables| {
            home::opened(tables, |go| get(&tables.engine, go).map(|table| Schema::clone(&table.schema())))
        };
        let schema = match py.detach(|| self.tables.with(get)) {
            Some(Ok(schema)) => schema,
            Some(Err(gone)) => return Err(errors::gone(py, &self.folder, gone)),
            None => return Err(errors::engine_closed(py, &self.folder, self.tables.is_forked())),
        };
        let home = Home::Of { engine: self.tables.clone(), name: name.to_owned() };
        let root = self.folder.join("tables").join(name);
        Ok(Table { root, schema, threads: self.threads, home: Calls::new(home) })
    }
}
