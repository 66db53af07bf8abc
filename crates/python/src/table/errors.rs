//! What goes wrong with a table, as Python's exceptions: each kind has a class of its own in `lanewise/errors.py`, what the
//! file system says stays Python's own `OSError`, with the path.

use super::home::Gone;
use super::memory::refused;
use crate::errors::{Failure, argument, class, search as search_error, system};
use lanewise_engine::documents::{RunError, SchemaError};
use lanewise_engine::index::{AddError, CreateError, GetError, RemoveError, SearchError};
use lanewise_engine::scheduler::{Failure as TaskFailure, StartError};
use lanewise_engine::table::{
    FetchError, FlushError, LoadError, OpenError, SearchTableError, SegmentError, StateError, WriteError,
};
use lanewise_engine::{EngineError, Refused};
use lanewise_storage::log::{AppendError, ReplayError};
use lanewise_storage::manifest::{ReadError, ReplaceError};
use pyo3::exceptions::{PyMemoryError, PyNotADirectoryError};
use pyo3::prelude::*;
use std::io;
use std::path::Path;

/// The table is closed, or belongs to the process that this one was forked from.
pub(super) fn closed(py: Python<'_>, root: &Path, forked: bool) -> PyErr {
    let why = if forked {
        "belongs to the process that this one was forked from: open another table, or use threads in place of processes"
    } else {
        "is closed: open it again with lanewise.Table.open()"
    };
    class(py, "TableClosedError", (format!("the table {} {why}", root.display()),))
}

/// The engine is closed, or belongs to the process that this one was forked from.
pub(super) fn engine_closed(py: Python<'_>, folder: &Path, forked: bool) -> PyErr {
    let why = if forked {
        "belongs to the process that this one was forked from: open another, or use threads in place of processes"
    } else {
        "is closed: open it again with lanewise.Engine()"
    };
    class(py, "TableClosedError", (format!("the engine {} {why}", folder.display()),))
}

/// A table was dropped, and another made by its name.
pub(super) fn replaced(py: Python<'_>, root: &Path) -> PyErr {
    let message = format!(
        "the table {} was dropped, and one with other fields has its name now: ask the engine for it again",
        root.display()
    );
    class(py, "TableMissingError", (message,))
}

/// There is no table to work on, for a reason of an engine's.
pub(super) fn gone(py: Python<'_>, root: &Path, gone: Gone) -> PyErr {
    match gone {
        Gone::Closed => closed(py, root, false),
        Gone::Replaced => replaced(py, root),
        Gone::Engine(folder, error) => engine(py, &folder, error),
        Gone::Ended(failure) => failure.raise(py),
    }
}

/// Of an engine in `folder`.
pub(super) fn engine(py: Python<'_>, folder: &Path, error: EngineError) -> PyErr {
    let message = error.to_string();
    match error {
        EngineError::Locked => class(py, "TableLockedError", (format!("{}: {message}", folder.display()),)),
        EngineError::IsTable => argument(
            py,
            "folder",
            format!(
                "{} is a table, not a folder of tables: open it with lanewise.Table.open()",
                folder.display()
            ),
        ),
        EngineError::Io { error, .. } => {
            let raised = system(py, folder, &error);
            // What was tried.
            let noted = raised.value(py).call_method1("add_note", (message,));
            noted.err().unwrap_or(raised)
        }
        EngineError::Name { .. } => argument(py, "name", message),
        EngineError::Missing { .. } => class(py, "TableMissingError", (message,)),
        EngineError::Exists { .. } => class(py, "TableExistsError", (message,)),
        EngineError::Open { name, error } => open(py, &folder.join("tables").join(name), *error),
        EngineError::Damaged { name, why } => {
            class(py, "TableDamagedError", (message, name, why.to_string()))
        }
    }
}

fn missing(py: Python<'_>, root: &Path) -> PyErr {
    let message = format!(
        "there is no table in {}: make one with lanewise.Table.create(), or give the path of another",
        root.display()
    );
    class(py, "TableMissingError", (message,))
}

/// Something on disk is not what was written.
fn damaged(py: Python<'_>, root: &Path, error: impl ToString) -> PyErr {
    class(py, "FormatError", (format!("{}: {}", root.display(), error.to_string()),))
}

/// The disk failed, so that more cannot be promised.
pub(super) fn durability(py: Python<'_>, root: &Path, error: impl ToString) -> PyErr {
    class(py, "DurabilityError", (format!("{}: {}", root.display(), error.to_string()),))
}

fn io_at(py: Python<'_>, root: &Path, path: &Path, error: &io::Error) -> PyErr {
    system(py, &root.join(path), error)
}

/// The folder could not be made or entered; `create` says whether it was to be made.
pub(super) fn folder(py: Python<'_>, root: &Path, error: &io::Error, create: bool) -> PyErr {
    match error.kind() {
        io::ErrorKind::NotFound if !create => missing(py, root),
        io::ErrorKind::NotADirectory => PyNotADirectoryError::new_err(format!(
            "{} is no folder: a table has a folder of its own, give its path",
            root.display()
        )),
        _ => system(py, root, error),
    }
}

pub(super) fn start(py: Python<'_>, root: &Path, error: &StartError) -> PyErr {
    match error {
        StartError::Thread { source, .. } => system(py, root, source),
        error => class(py, "Error", (error.to_string(),)),
    }
}

pub(super) fn schema(py: Python<'_>, error: impl ToString) -> PyErr {
    class(py, "SchemaError", (format!("schema: {}", error.to_string()), "schema"))
}

pub(super) fn open(py: Python<'_>, root: &Path, error: OpenError) -> PyErr {
    match error {
        OpenError::Exists => {
            let message = format!(
                "there is a table in {} already: open it with lanewise.Table.open(), or give another path",
                root.display()
            );
            class(py, "TableExistsError", (message,))
        }
        OpenError::Locked => {
            let message = format!(
                "the table {} is open already, in this process or another: close it there first",
                root.display()
            );
            class(py, "TableLockedError", (message,))
        }
        OpenError::Io { path, error } => io_at(py, root, &path, &error),
        OpenError::Schema(SchemaError::Vector { error: error @ CreateError::Isa(_), .. })
        | OpenError::Index(error) => Failure::Create(error).raise(py),
        OpenError::Schema(error) => schema(py, error),
        OpenError::State(StateError::Read(ReadError::Missing)) => missing(py, root),
        OpenError::State(StateError::Read(ReadError::Io(error))) => {
            io_at(py, root, Path::new("manifest"), &error)
        }
        OpenError::State(error) => damaged(py, root, error),
        OpenError::Manifest(error) => replace(py, root, error),
        OpenError::Segment { error, .. } => segment(py, root, error),
        OpenError::Log(ReplayError::Io { path, error }) => io_at(py, root, &path, &error),
        OpenError::Refused(error) => refused(py, &error),
        OpenError::Stopped => Failure::Stopped(None).raise(py),
        OpenError::Log(error) => damaged(py, root, error),
        OpenError::Write { error: WriteError::Add { error, .. }, .. } => add(py, &error),
        error @ (OpenError::Record { .. } | OpenError::Write { .. }) => damaged(py, root, error),
    }
}

fn replace(py: Python<'_>, root: &Path, error: ReplaceError) -> PyErr {
    match error {
        ReplaceError::Kept(error) => io_at(py, root, Path::new("manifest"), &error),
        error @ ReplaceError::Unsure(_) => durability(py, root, error),
    }
}

fn segment(py: Python<'_>, root: &Path, error: SegmentError) -> PyErr {
    match error {
        SegmentError::Io { path, error } => io_at(py, root, &path, &error),
        SegmentError::Documents(error) => documents(py, root, &error),
        SegmentError::Memory(error) => PyMemoryError::new_err(error.to_string()),
        SegmentError::Refused(error) => refused(py, &error),
        SegmentError::Add(error) => add(py, &error),
        SegmentError::Remove(error @ (RemoveError::Memory(_) | RemoveError::Limit { .. })) => {
            PyMemoryError::new_err(error.to_string())
        }
        SegmentError::Remove(error) => class(py, "Error", (error.to_string(),)),
        SegmentError::Stopped => Failure::Stopped(None).raise(py),
        error => damaged(py, root, error),
    }
}

fn append(py: Python<'_>, root: &Path, error: &AppendError) -> PyErr {
    match error {
        AppendError::TooLong { .. } => argument(py, "document", format!("document: {error}")),
        AppendError::Refused(error) => io_at(py, root, Path::new("log"), error),
        AppendError::Poisoned(error) => durability(py, root, error),
    }
}

fn add(py: Python<'_>, error: &AddError) -> PyErr {
    match error {
        AddError::Memory(_) | AddError::Limit { .. } => PyMemoryError::new_err(error.to_string()),
        error => class(py, "Error", (error.to_string(),)),
    }
}

pub(super) fn flush(py: Python<'_>, root: &Path, error: FlushError) -> PyErr {
    match error {
        FlushError::Failed { .. } => durability(py, root, error),
        FlushError::Log(error) => append(py, root, &error),
        FlushError::Index(error) => Failure::Create(error).raise(py),
        FlushError::Segment { error, .. } => segment(py, root, error),
        FlushError::Manifest(error) => replace(py, root, error),
        FlushError::OldLog(error) => io_at(py, root, Path::new("log"), &error),
        FlushError::Settings(error) => settings(py, &error),
        FlushError::Refused(error) => refused(py, &error),
    }
}

/// Whether the fault is the write's own, so that others may go on.
pub(super) fn is_its_own(error: &WriteError) -> bool {
    match error {
        WriteError::Id { .. }
        | WriteError::Document(_)
        | WriteError::Vector { .. }
        | WriteError::Conflict { .. } => true,
        WriteError::Log(error) => matches!(**error, AppendError::TooLong { .. }),
        WriteError::Add { .. }
        | WriteError::Refused(_)
        | WriteError::NotDurable(_)
        | WriteError::Failed { .. } => false,
    }
}

/// Of the write that came as argument `name`.
pub(super) fn write(py: Python<'_>, root: &Path, name: &str, error: &WriteError) -> PyErr {
    match error {
        WriteError::Id { .. } => argument(py, "id", error.to_string()),
        WriteError::Document(_) | WriteError::Vector { .. } => argument(py, name, format!("{name}: {error}")),
        WriteError::Conflict { id, found, .. } => {
            let message = format!("{error}; read it again with get(), and decide anew");
            class(py, "ConflictError", (message, id.clone(), *found))
        }
        WriteError::Add { error, .. } => add(py, error),
        WriteError::Refused(error) => refused(py, error),
        WriteError::Log(error) => append(py, root, error),
        WriteError::NotDurable(_) | WriteError::Failed { .. } => durability(py, root, error),
    }
}

/// Documents cannot be read.
pub(super) fn documents(py: Python<'_>, root: &Path, error: &RunError) -> PyErr {
    damaged(py, root, format!("{error}; restore the table from a snapshot"))
}

pub(super) fn fetch(py: Python<'_>, root: &Path, error: FetchError) -> PyErr {
    match error {
        FetchError::Field { .. } => argument(py, "vectors", error.to_string()),
        FetchError::Vectors { error: GetError::Memory(error), .. } => {
            PyMemoryError::new_err(error.to_string())
        }
        error @ FetchError::Vectors { .. } => damaged(py, root, error),
        FetchError::Documents(error) => documents(py, root, &error),
    }
}

/// Of a load, whose batch began at place `first`.
pub(super) fn load(py: Python<'_>, root: &Path, first: usize, error: LoadError) -> PyErr {
    match error {
        LoadError::Document { number, error } => {
            write(py, root, &format!("documents[{}]", first + number), &error)
        }
        LoadError::Add { error, .. } => add(py, &error),
        LoadError::Refused(error) => refused(py, &error),
        LoadError::Segment(error) => segment(py, root, error),
        LoadError::Create(error) => Failure::Create(error).raise(py),
        error @ (LoadError::Ids { .. } | LoadError::Vectors { .. }) => {
            argument(py, "documents", error.to_string())
        }
        error @ LoadError::Broken => class(py, "Error", (error.to_string(),)),
    }
}

/// Settings that make no sense.
pub(super) fn settings(py: Python<'_>, error: &impl ToString) -> PyErr {
    argument(py, "settings", format!("settings: {}", error.to_string()))
}

pub(super) fn search(py: Python<'_>, root: &Path, error: &SearchTableError) -> PyErr {
    let busy = |error: &dyn ToString| class(py, "BusyError", (error.to_string(),));
    match error {
        SearchTableError::Field { .. }
        | SearchTableError::Nested { .. }
        | SearchTableError::NotNested { .. }
        | SearchTableError::Whole { .. } => argument(py, "vector", error.to_string()),
        SearchTableError::Nearest { error: SearchError::Vector(_), .. } => {
            argument(py, "vector", error.to_string())
        }
        SearchTableError::Nearest { error, .. } | SearchTableError::Refused(Refused::Wrong(error)) => {
            search_error(py, error)
        }
        SearchTableError::Query(error) => argument(py, "query", format!("query or filter: {error}")),
        SearchTableError::Space { .. } => argument(py, "space", error.to_string()),
        SearchTableError::Fusion { .. } => argument(py, "fusion", error.to_string()),
        SearchTableError::Order(error) => argument(py, "sort", format!("sort: {error}")),
        SearchTableError::Aggregation(error) => argument(py, "aggs", error.to_string()),
        SearchTableError::Refused(Refused::Busy(error)) | SearchTableError::Busy(error) => busy(error),
        SearchTableError::Failed(TaskFailure::DeadlineExceeded) => {
            let message =
                "timeout: the search took longer and was given up: allow more time, or ask for less";
            class(py, "DeadlineError", (message,))
        }
        SearchTableError::Failed(error) => class(py, "Error", (error.to_string(),)),
        // Nothing is pinned here; vectors that are found can be read.
        SearchTableError::Pin | SearchTableError::Vectors { .. } => class(py, "Error", (error.to_string(),)),
        SearchTableError::Memory(error) => refused(py, error),
        SearchTableError::Documents(error) => documents(py, root, error),
        SearchTableError::Stopped => Failure::Stopped(None).raise(py),
    }
}
