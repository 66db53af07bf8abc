//! The class `lanewise.Filter`, and what it is made of.

use crate::arrays::{self, Choice};
use crate::errors::dtype as dtype_error;
use lanewise_engine::index::{Filter as Inner, Reader};
use numpy::PyArray1;
use pyo3::prelude::*;

/// The vectors among which a search looks, made by Index.filter() for one state of an index. len() is their number.
#[pyclass(frozen, module = "lanewise")]
pub(crate) struct Filter {
    pub(crate) inner: Inner,
}

#[pymethods]
impl Filter {
    fn __len__(&self) -> usize {
        self.inner.matches()
    }

    fn __repr__(&self) -> String {
        format!("<lanewise.Filter of {} vectors>", self.inner.matches())
    }
}

/// The filter of a search, made already or to be made; runs Python code.
///
/// # Errors
/// As [`filter`].
pub(crate) fn given_filter<'py>(
    reader: &Reader,
    given: Option<&Bound<'py, PyAny>>,
) -> PyResult<Option<PyRef<'py, Filter>>> {
    let Some(given) = given else { return Ok(None) };
    if let Ok(made) = given.extract::<PyRef<'py, Filter>>() {
        return Ok(Some(made));
    }
    Ok(Some(Bound::new(given.py(), Filter { inner: filter(reader, given)? })?.borrow()))
}

/// The filter that `given` says: ids, a bool for each vector, or a function from an array of ids to such bools.
///
/// # Errors
/// `DtypeError` and `ArgumentError` if it is none of these; what the function raises.
pub(crate) fn filter(reader: &Reader, given: &Bound<'_, PyAny>) -> PyResult<Inner> {
    let py = given.py();
    let function = given.is_callable();
    let chosen = if function {
        let ids: Vec<i64> = reader.ids().collect();
        given.call1((PyArray1::from_vec(py, ids),))?
    } else {
        given.clone()
    };
    match arrays::choice("filter", &chosen, reader.len())? {
        Choice::Bools(bools) => {
            let mut next = bools.into_iter();
            Ok(py.detach(|| reader.filter(|_| next.next() == Some(1))))
        }
        Choice::Ids(_) if function => {
            let message = "filter: the function must return bools, one for each id, not numbers";
            Err(dtype_error(py, "filter", message))
        }
        Choice::Ids(ids) => Ok(py.detach(|| reader.filter_of(&ids))),
    }
}
