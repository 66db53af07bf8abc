//! The class `lanewise.Filter`, and what it is made of.

use crate::arguments::type_name;
use crate::arrays;
use crate::errors::{argument, dtype as dtype_error};
use lanewise_engine::index::{Filter as Inner, Reader};
use numpy::{PyArray1, PyArrayDescrMethods, PyArrayMethods, PyUntypedArray, PyUntypedArrayMethods};
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
    let chosen = if given.is_callable() {
        let ids: Vec<i64> = reader.ids().collect();
        given.call1((PyArray1::from_vec(py, ids),))?
    } else {
        given.clone()
    };
    let array = py.import("numpy")?.call_method1("asarray", (&chosen,))?;
    let Ok(array) = array.cast::<PyUntypedArray>() else {
        let message = format!("filter must be ids, bools or a function, not {}", type_name(given));
        return Err(dtype_error(py, "filter", message));
    };
    if array.dtype().kind() == b'b' {
        if array.shape() != [reader.len()] {
            let message = format!(
                "filter has shape {:?}: one bool for each of the {} vectors is needed, in the order of index.ids()",
                array.shape(),
                reader.len()
            );
            return Err(argument(py, "filter", message));
        }
        let bools: Vec<bool> = array.cast::<PyArray1<bool>>()?.to_vec()?;
        let mut next = bools.into_iter();
        return Ok(py.detach(|| reader.filter(|_| next.next().unwrap_or(false))));
    }
    if given.is_callable() {
        let message = format!("filter: the function must return bools, not {}", array.dtype());
        return Err(dtype_error(py, "filter", message));
    }
    let ids = arrays::ids("filter", &array.clone().into_any())?;
    Ok(py.detach(|| reader.filter_of(&ids)))
}
