//! The one place where what goes wrong below becomes a Python exception. The classes are in `lanewise/errors.py`.

use lanewise_engine::FileError;
use lanewise_engine::index::{
    AddError, CreateError, FormatError, GetError, RemoveError, SearchError, VectorError,
};
use pyo3::exceptions::{PyMemoryError, PyOSError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;
use std::io;
use std::path::Path;

/// What can end a call. Made without the GIL; [`Failure::raise`] needs it.
pub(crate) enum Failure {
    Create(CreateError),
    Add(AddError),
    Search(SearchError),
    Remove(RemoveError),
    File(FileError),
    /// No memory for so many bytes of results.
    Memory(usize),
    /// A signal handler, or another piece of Python run during a call, changed the same index or table.
    Reentered,
    /// A signal handler, or other Python code that ran meanwhile, raised this; or the interpreter is going away.
    Stopped(Option<PyErr>),
}

macro_rules! from {
    ($($error:ident => $variant:ident),*) => {
        $(impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                Failure::$variant(error)
            }
        })*
    };
}
from!(CreateError => Create, AddError => Add, SearchError => Search, RemoveError => Remove, FileError => File);

impl Failure {
    /// The exception.
    pub(crate) fn raise(self, py: Python<'_>) -> PyErr {
        match self {
            Failure::Create(error) => create(py, &error),
            Failure::Add(error) => add(py, &error),
            Failure::Search(error) => search(py, &error),
            Failure::Remove(error @ (RemoveError::Memory(_) | RemoveError::Limit { .. })) => {
                PyMemoryError::new_err(error.to_string())
            }
            Failure::Remove(error) => class(py, "Error", (error.to_string(),)),
            Failure::File(FileError::Io { path, error }) => system(py, &path, &error),
            Failure::File(error @ FileError::Limit { .. }) => PyMemoryError::new_err(error.to_string()),
            Failure::File(FileError::Format {
                error: FormatError::Parameters(CreateError::Isa(error)),
                ..
            }) => class(py, "IsaError", (error.to_string(),)),
            Failure::File(error) => class(py, "FormatError", (error.to_string(),)),
            Failure::Memory(bytes) => PyMemoryError::new_err(format!(
                "no memory for {bytes} bytes of results: ask for fewer queries at once or a smaller k"
            )),
            Failure::Reentered => class(
                py,
                "Error",
                (
                    "this thread is in the middle of a change of the same index or table, or of a call: a signal handler can neither change nor close it",
                ),
            ),
            Failure::Stopped(error) => {
                error.unwrap_or_else(|| class(py, "Error", ("stopped: the interpreter is shutting down",)))
            }
        }
    }
}

/// An `ArgumentError` about `argument`; the message should name it and the remedy.
pub(crate) fn argument(py: Python<'_>, argument: &str, message: impl Into<String>) -> PyErr {
    class(py, "ArgumentError", (message.into(), argument.to_owned()))
}

/// A `DtypeError` about `argument`; the message should name it and the remedy.
pub(crate) fn dtype(py: Python<'_>, argument: &str, message: impl Into<String>) -> PyErr {
    class(py, "DtypeError", (message.into(), argument.to_owned()))
}

/// Warns that a search for `k` got all of the `len` vectors there are.
pub(crate) fn warn_fewer(py: Python<'_>, k: usize, len: usize, of: &str) -> PyResult<()> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let class = CLASS.import(py, "lanewise.errors", "FewerResultsWarning")?;
    let message = format!("k={k} exceeds the {len} vectors of {of}: {len} results per query are returned");
    let message = std::ffi::CString::new(message).expect("no NUL in it");
    PyErr::warn(py, class, &message, 1)
}

pub(crate) fn class<'py>(py: Python<'py>, name: &str, args: impl pyo3::PyErrArguments + 'static) -> PyErr {
    let class = py.import("lanewise.errors").and_then(|module| module.getattr(name));
    match class.and_then(|class| Ok(class.cast_into::<PyType>()?)) {
        Ok(class) => PyErr::from_type(class, args),
        Err(error) => error,
    }
}

fn create(py: Python<'_>, error: &CreateError) -> PyErr {
    let message = error.to_string();
    match error {
        CreateError::Isa(_) => class(py, "IsaError", (message,)),
        CreateError::Vector(VectorError::MetricOfDtype { .. }) => argument(py, "metric", message),
        CreateError::Vector(_) => argument(py, "dim", message),
        CreateError::CodeOfBits { .. } | CreateError::CodeOfLists { .. } => argument(py, "code", message),
        CreateError::Nlist { .. } => argument(py, "nlist", message),
        CreateError::M { .. } => argument(py, "m", message),
        CreateError::EfConstruction { .. } => argument(py, "ef_construction", message),
    }
}

fn add(py: Python<'_>, error: &AddError) -> PyErr {
    let message = error.to_string();
    match error {
        AddError::Vector(_) => argument(py, "x", format!("x: {message}")),
        AddError::Empty | AddError::Full { .. } => argument(py, "x", message),
        AddError::IdsLen { .. } | AddError::DuplicateId { .. } | AddError::IdsMissing => {
            argument(py, "ids", message)
        }
        AddError::Code(_) => argument(py, "code", message),
        AddError::Create(error) => create(py, error),
        AddError::Memory(_) | AddError::Limit { .. } => PyMemoryError::new_err(message),
        AddError::Cancelled { .. } | AddError::Broken(_) => class(py, "Error", (message,)),
    }
}

pub(crate) fn search(py: Python<'_>, error: &SearchError) -> PyErr {
    let message = error.to_string();
    match error {
        SearchError::Vector(_) => argument(py, "q", format!("q: {message}")),
        SearchError::Empty | SearchError::OneQuery { .. } => argument(py, "q", message),
        SearchError::K => argument(py, "k", message),
        SearchError::EfSearch => argument(py, "ef_search", message),
        SearchError::Nprobe => argument(py, "nprobe", message),
        SearchError::Oversample => argument(py, "oversample", message),
        SearchError::Radius => argument(py, "radius", message),
        SearchError::Get(GetError::Missing { .. }) => class(py, "IdError", (message, "ids")),
        SearchError::Get(GetError::Memory(_)) => PyMemoryError::new_err(message),
        SearchError::TargetRecall => argument(py, "target_recall", message),
        SearchError::Filter => argument(py, "filter", message),
        SearchError::Partials | SearchError::Stopped => class(py, "Error", (message,)),
        SearchError::Epsilon | SearchError::EpsilonOfInnerProduct => argument(py, "epsilon", message),
    }
}

/// Python's own exception for a system call's error: `FileNotFoundError` and so on, with the file's name.
pub(crate) fn system(py: Python<'_>, path: &Path, error: &io::Error) -> PyErr {
    const EINVAL: i32 = 22;
    let code = error.raw_os_error();
    let text = code.and_then(|code| {
        let text = py.import("os").and_then(|os| os.call_method1("strerror", (code,)));
        text.and_then(|text| text.extract::<String>()).ok()
    });
    let text = text.unwrap_or_else(|| error.to_string());
    PyOSError::new_err((code.unwrap_or(EINVAL), text, path.as_os_str().to_owned()))
}
