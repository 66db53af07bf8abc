//! Memory limits, and what is in use.

use crate::arguments::type_name;
use crate::errors::{argument, class, dtype};
use lanewise_engine::{Admission, InUse, MemoryLimit, Purpose, Refusal};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyString};

/// As Python's argument is called.
fn named(message: &impl ToString) -> String {
    message.to_string().replace("circuit_breaker.limit", "memory_limit")
}

/// A limit: bytes, or text as the engine reads it; `None`: the process's.
pub(super) fn limit(given: &Bound<'_, PyAny>) -> PyResult<Option<MemoryLimit>> {
    let py = given.py();
    if given.is_none() {
        return Ok(None);
    }
    if let Ok(text) = given.cast::<PyString>() {
        let limit = text.to_str()?.parse().map(Some);
        return limit.map_err(|error| argument(py, "memory_limit", named(&error)));
    }
    match given.extract::<i128>() {
        Ok(bytes) if !given.is_instance_of::<PyBool>() => match u64::try_from(bytes) {
            Ok(bytes) if bytes > 0 => Ok(Some(MemoryLimit::Bytes(bytes))),
            _ => Err(argument(py, "memory_limit", format!("memory_limit={bytes}: give bytes, 1 or more"))),
        },
        _ => {
            let message = format!(
                "memory_limit must be bytes, or text such as \"8gb\" or \"70%\", not {}",
                type_name(given)
            );
            Err(dtype(py, "memory_limit", message))
        }
    }
}

fn by_purpose<'py>(py: Python<'py>, in_use: &InUse) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (purpose, bytes) in Purpose::ALL.iter().zip(in_use.0) {
        dict.set_item(purpose.name(), bytes)?;
    }
    Ok(dict)
}

/// `limit` (bytes; None: there is none), `in_use` by purpose, `waiting`: how many wait for memory.
pub(super) fn in_use<'py>(py: Python<'py>, admission: &Admission) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("limit", Some(admission.limit()).filter(|&limit| limit < u64::MAX))?;
    dict.set_item("in_use", by_purpose(py, &admission.in_use())?)?;
    dict.set_item("waiting", admission.waiting())?;
    Ok(dict)
}

/// `MemoryLimitError`, with the numbers.
pub(super) fn refused(py: Python<'_>, error: &Refusal) -> PyErr {
    let message = named(error);
    let (purpose, asked, limit, used, waiting) = match error {
        Refusal::Limit { purpose, asked, limit, in_use, .. }
        | Refusal::Waited { purpose, asked, limit, in_use, .. } => {
            (purpose, asked, Some(*limit), Some(in_use), None)
        }
        Refusal::Queue { purpose, asked, waiting } => (purpose, asked, None, None, Some(*waiting)),
    };
    match used.map(|used| by_purpose(py, used).map(Bound::unbind)).transpose() {
        Ok(used) => class(py, "MemoryLimitError", (message, purpose.name(), *asked, limit, used, waiting)),
        Err(error) => error,
    }
}
