//! The class `_lanewise.Table`, which `lanewise/table.py` makes comfortable: checks and JSON here, the work in the engine,
//! without the GIL.
//!
//! close() waits for the calls of other threads. Python code runs inside of a call only while segments are made and
//! searches waited for, to see signals: a handler may read, search and write, and is refused what would wait for the call
//! itself. After a fork the child has neither the threads that search nor a right to the log: there every call is refused,
//! and what it inherited is left alone.

mod calls;
mod engine;
mod errors;
mod home;
mod json;
mod load;
mod memory;
mod pool;
mod search;
mod vectors;
mod write;

use crate::arguments;
use crate::errors::Failure;
use crate::guard::change;
use crate::watch::Watch;
use calls::Calls;
pub(crate) use engine::Engine;
use home::{Gone, Home};
use lanewise_engine::documents::Schema;
use lanewise_engine::table::{Effort, FlushError, OpenError, Resources, SegmentError, Table as Inner};
use lanewise_engine::{MemoryLimit, Threads};
use lanewise_storage::{Disk, Storage};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use serde_json::Value;
use std::cell::RefCell;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use std::{fs, io};

/// A segment's number, whether it is sealed, its live and its deleted rows, its uncoded fields.
type Segment = (u64, bool, usize, usize, Vec<String>);

/// A table in a folder of its own, or an engine's; see `lanewise.Table`.
#[pyclass(frozen, module = "lanewise._lanewise")]
pub(crate) struct Table {
    root: PathBuf,
    schema: Schema,
    threads: Threads,
    home: Calls<Home>,
}

/// A new folder that is there after a crash, too; none if there is one.
fn make_folder(path: &Path) -> io::Result<()> {
    match fs::create_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(()),
        made => made?,
    }
    #[cfg(unix)]
    {
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        fs::File::open(parent.unwrap_or(Path::new(".")))?.sync_all()?;
    }
    Ok(())
}

#[pymethods]
impl Table {
    /// Makes a table of `schema`, fields by name as JSON has them.
    #[staticmethod]
    #[pyo3(signature = (path, schema, *, num_threads=None, memory_limit=None))]
    fn create(
        py: Python<'_>,
        #[pyo3(from_py_with = arguments::path)] path: PathBuf,
        schema: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = arguments::num_threads)] num_threads: Option<NonZeroUsize>,
        #[pyo3(from_py_with = memory::limit)] memory_limit: Option<MemoryLimit>,
    ) -> PyResult<Table> {
        let schema = schema_of(schema)?;
        make_folder(&path).map_err(|error| errors::folder(py, &path, &error, true))?;
        Table::started(py, path, num_threads, memory_limit, |storage, resources, _| {
            Inner::create(storage, schema, resources)
        })
    }

    /// Opens a table.
    #[staticmethod]
    #[pyo3(signature = (path, *, num_threads=None, memory_limit=None))]
    fn open(
        py: Python<'_>,
        #[pyo3(from_py_with = arguments::path)] path: PathBuf,
        #[pyo3(from_py_with = arguments::num_threads)] num_threads: Option<NonZeroUsize>,
        #[pyo3(from_py_with = memory::limit)] memory_limit: Option<MemoryLimit>,
    ) -> PyResult<Table> {
        Table::started(py, path, num_threads, memory_limit, Inner::open_with)
    }

    /// Closes the table once no other thread works with it; without `wait` only if none does. Whether it is closed.
    #[pyo3(signature = (*, wait=true))]
    fn close(&self, py: Python<'_>, wait: bool) -> PyResult<bool> {
        closing(py, self.threads, |effort| self.home.close(wait, |home| home.close(effort)))
    }

    /// Whether it is closed, or not this process's.
    #[getter]
    fn closed(&self, py: Python<'_>) -> bool {
        py.detach(|| self.home.with(Home::is_closed).unwrap_or(true))
    }

    /// The folder.
    #[getter]
    fn path(&self) -> PathBuf {
        self.root.clone()
    }

    /// The fields by name, and what becomes of others.
    #[getter]
    fn schema<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        json::to_python(py, &serde_json::to_vec(&self.schema).expect("a schema is JSON"))
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        self.with(py, Inner::len)
    }

    /// For each id its document, as (seq, version, source, vectors of the fields), or None.
    fn get<'py>(
        &self,
        py: Python<'py>,
        ids: Vec<String>,
        fields: Vec<String>,
    ) -> PyResult<Bound<'py, PyList>> {
        vectors::get(self, py, &ids, &fields)
    }

    /// The memory limit, and what is in use: a dict.
    fn memory<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let admission = py.detach(|| self.home.with(Home::admission)).flatten();
        let admission = admission.ok_or_else(|| errors::closed(py, &self.root, self.home.is_forked()))?;
        memory::in_use(py, &admission)
    }

    /// The segments, oldest first, as (number, sealed, live, deleted, uncoded fields); the last is the head.
    fn segments(&self, py: Python<'_>) -> PyResult<Vec<Segment>> {
        let segments = self.with(py, Inner::segments)?;
        Ok(segments.into_iter().map(|s| (s.segment.0, s.sealed, s.live, s.deleted, s.uncoded)).collect())
    }

    /// Why the last flush or merge that nobody asked for failed, if it did.
    fn trouble(&self, py: Python<'_>) -> PyResult<Option<String>> {
        self.with(py, Inner::trouble)
    }

    /// The settings.
    fn settings<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let settings = self.with(py, Inner::settings)?;
        json::to_python(py, &serde_json::to_vec(&*settings).expect("settings are JSON"))
    }

    /// Changes those settings that are given.
    fn change_settings(&self, py: Python<'_>, changes: &Bound<'_, PyAny>) -> PyResult<()> {
        let changes = json::from_python("settings", changes)?;
        let now = self.with(py, Inner::settings)?;
        let settings = overlaid(&*now, changes).map_err(|error| errors::settings(py, &error))?;
        self.with(py, |table| table.set_settings(settings))?
            .map_err(|error| errors::flush(py, &self.root, error))
    }

    /// Waits until all that was written is on disk.
    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, Inner::sync)?.map_err(|error| errors::durability(py, &self.root, error))
    }

    /// Seals the head.
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        self.sealing(py, Inner::flush_with)
    }

    /// Merges once by the policy of the settings, but for `changes`: the new segment and those that it replaces.
    fn merge(&self, py: Python<'_>, changes: &Bound<'_, PyAny>) -> PyResult<Option<(u64, Vec<u64>)>> {
        let changes = json::from_python("merge", changes)?;
        let now = self.with(py, Inner::settings)?;
        let policy = overlaid(&now.merge, changes).map_err(|error| errors::settings(py, &error))?;
        let merged = self.sealing(py, |table, effort| table.merge_with(&policy, effort))?;
        Ok(merged.map(|(new, old)| (new.0, old.into_iter().map(|segment| segment.0).collect())))
    }

    /// Merges until there are at most so many segments.
    fn force_merge(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = arguments::segments)] segments: NonZeroUsize,
    ) -> PyResult<()> {
        self.sealing(py, |table, effort| table.force_merge_with(segments.get(), effort))
    }

    /// Writes documents; see [`write::put_many`].
    #[pyo3(signature = (documents, ids, vectors, *, if_absent=false, if_seq=None, progress=false))]
    #[expect(clippy::too_many_arguments, reason = "Python's arguments")]
    fn put_many<'py>(
        &self,
        py: Python<'py>,
        documents: &Bound<'py, PyAny>,
        ids: Option<Vec<Option<String>>>,
        vectors: Vec<(String, Bound<'py, PyAny>)>,
        if_absent: bool,
        if_seq: Option<u64>,
        #[pyo3(from_py_with = arguments::progress)] progress: bool,
    ) -> PyResult<Bound<'py, PyDict>> {
        write::put_many(self, py, documents, ids, vectors, write::condition(if_absent, if_seq), progress)
    }

    /// Loads documents in bulk; see [`load::load`].
    #[pyo3(signature = (documents, ids, vectors, *, progress=false))]
    fn load(
        &self,
        py: Python<'_>,
        documents: &Bound<'_, PyAny>,
        ids: Option<Vec<Option<String>>>,
        vectors: Vec<(String, Bound<'_, PyAny>)>,
        #[pyo3(from_py_with = arguments::progress)] progress: bool,
    ) -> PyResult<usize> {
        load::load(self, py, documents, ids, vectors, progress)
    }

    /// Deletes documents: for each id (seq, version, outcome); the first that fails ends it.
    #[pyo3(signature = (ids, *, if_seq=None))]
    fn delete(
        &self,
        py: Python<'_>,
        ids: Vec<String>,
        if_seq: Option<u64>,
    ) -> PyResult<Vec<(u64, u64, &'static str)>> {
        write::delete(self, py, ids, if_seq)
    }

    /// Finds documents; see [`search::search`].
    #[pyo3(signature = (request, vectors, effort, fields, *, exact=false, timeout=None, documents=true))]
    #[expect(clippy::too_many_arguments, reason = "Python's arguments")]
    fn search<'py>(
        &self,
        py: Python<'py>,
        request: &Bound<'py, PyDict>,
        vectors: Vec<(String, Bound<'py, PyAny>, usize)>,
        effort: &Bound<'py, PyDict>,
        fields: Vec<String>,
        exact: bool,
        #[pyo3(from_py_with = arguments::timeout)] timeout: Option<Duration>,
        documents: bool,
    ) -> PyResult<Bound<'py, PyDict>> {
        search::search(self, py, request, vectors, effort, &fields, exact, timeout, documents)
    }
}

/// `now`, with those of its fields that `changes` has.
fn overlaid<T>(now: &T, changes: Value) -> serde_json::Result<T>
where
    T: serde::Serialize + serde::de::DeserializeOwned,
{
    fn overlay(below: &mut Value, above: Value) {
        match (below, above) {
            (Value::Object(below), Value::Object(above)) => {
                for (key, value) in above {
                    overlay(below.entry(key).or_insert(Value::Null), value);
                }
            }
            (below, above) => *below = above,
        }
    }
    let mut json = serde_json::to_value(now)?;
    overlay(&mut json, changes);
    serde_json::from_value(json)
}

/// The schema `given`, fields by name as JSON has them.
fn schema_of(given: &Bound<'_, PyAny>) -> PyResult<Schema> {
    let py = given.py();
    let schema = json::from_python("schema", given)?;
    let schema: Schema = serde_json::from_value(schema).map_err(|error| errors::schema(py, error))?;
    schema.check().map_err(|error| errors::schema(py, error))?;
    Ok(schema)
}

impl Table {
    fn started(
        py: Python<'_>,
        root: PathBuf,
        num_threads: Option<NonZeroUsize>,
        memory_limit: Option<MemoryLimit>,
        open: impl FnOnce(Arc<dyn Storage>, Resources, &dyn Fn() -> ControlFlow<()>) -> Result<Inner, OpenError>
        + Send,
    ) -> PyResult<Table> {
        let root = std::path::absolute(root)?;
        let storage = Disk::new(&root).map_err(|error| errors::folder(py, &root, &error, false))?;
        let shared = pool::shared().map_err(|error| errors::start(py, &root, &error))?;
        let resources = shared.resources(Threads::new(num_threads), memory_limit);
        let (threads, admission) = (resources.threads, resources.admission.clone());
        let (opened, raised) = py.detach(|| {
            let watch = RefCell::new(Watch::new(None));
            let opened = open(Arc::new(storage), resources, &|| watch.borrow_mut().proceed(0));
            (opened, watch.into_inner().raised)
        });
        if let Some(raised) = raised {
            py.detach(|| drop(opened));
            return Err(raised);
        }
        let table = opened.map_err(|error| errors::open(py, &root, error))?;
        let schema = Schema::clone(&table.schema());
        let table = shared.upkeep.watch(table);
        Ok(Table { root, schema, threads, home: Calls::new(Home::Own { table, admission, _shared: shared }) })
    }

    /// Runs `work` on the table, without the GIL.
    ///
    /// # Errors
    /// `TableClosedError`; of an engine's table also what keeps it from being opened.
    fn with<T: Send>(&self, py: Python<'_>, work: impl FnOnce(&Inner) -> T + Send) -> PyResult<T> {
        let done = py.detach(|| self.home.with(|home| home.with(&self.schema, work)));
        match done {
            Some(Ok(done)) => Ok(done),
            None | Some(Err(Gone::Closed)) => Err(errors::closed(py, &self.root, self.home.is_forked())),
            Some(Err(gone)) => Err(errors::gone(py, &self.root, gone)),
        }
    }

    /// Runs `work`, which waits for a search; signal handlers run meanwhile, and may end it.
    fn searching<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&Inner, &dyn Fn() -> ControlFlow<()>) -> T + Send,
    ) -> PyResult<T> {
        let (done, raised) = self.with(py, |table| {
            let watch = RefCell::new(Watch::new(None));
            let done = work(table, &|| watch.borrow_mut().proceed(0));
            (done, watch.into_inner().raised)
        })?;
        // What a handler raised at the very end is not lost.
        raised.map_or(Ok(done), Err)
    }

    /// Runs `work`, which makes segments; signal handlers run meanwhile, and may end it.
    fn sealing<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&Inner, &Effort<'_>) -> Result<T, FlushError> + Send,
    ) -> PyResult<T> {
        let change = |effort: &Effort<'_>| self.with(py, |table| change(table, |_| Ok(work(table, effort))));
        let (done, raised) = watched(self.threads, change);
        let done = done?;
        match done.map_err(|error| error.raise(py))? {
            Err(FlushError::Segment { error: SegmentError::Stopped, .. }) => {
                Err(Failure::Stopped(raised).raise(py))
            }
            Err(error) => Err(errors::flush(py, &self.root, error)),
            // What a handler raised at the very end is not lost.
            Ok(done) => raised.map_or(Ok(done), Err),
        }
    }
}

/// Runs `work`, which asks at times whether signal handlers raised something; what they raised.
fn watched<T>(threads: Threads, work: impl FnOnce(&Effort<'_>) -> T) -> (T, Option<PyErr>) {
    let watch = Mutex::new(Watch::new(None));
    let proceed = || match watch.try_lock() {
        Ok(mut watch) => watch.proceed(0),
        // Another thread of this work is looking.
        Err(_) => ControlFlow::Continue(()),
    };
    let done = work(&Effort::new(threads, &proceed));
    (done, watch.into_inner().unwrap_or_else(PoisonError::into_inner).raised)
}

/// Closes something by `close`, which a signal handler may hasten, whose exception comes when it is closed.
fn closing(
    py: Python<'_>,
    threads: Threads,
    close: impl FnOnce(&Effort<'_>) -> Result<bool, Failure> + Send,
) -> PyResult<bool> {
    let (closed, raised) = py.detach(|| watched(threads, close));
    raised.map_or_else(|| closed.map_err(|error| error.raise(py)), Err)
}

/// Ends the threads that search tables and look after them, once no table is open; they start anew with the next.
#[pyfunction]
pub(crate) fn end_pool(py: Python<'_>) {
    let shared = pool::end();
    py.detach(|| drop(shared));
}
