//! What searches return, as the classes of `lanewise/results.py`.

use lanewise_engine::index::{Counts, Group, Groups, Neighbors};
use numpy::PyArray1;
use numpy::prelude::*;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyList, PyType};

/// A `Found` of ids and distances that have `shape`.
pub(crate) fn found<'py>(
    py: Python<'py>,
    ids: Vec<i64>,
    distances: Vec<f32>,
    shape: &[usize],
    counts: &Counts,
) -> PyResult<Bound<'py, PyAny>> {
    let ids = PyArray1::from_vec(py, ids).reshape(shape)?;
    let distances = PyArray1::from_vec(py, distances).reshape(shape)?;
    static FOUND: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    FOUND.import(py, "lanewise.results", "Found")?.call1((ids, distances, plan(py, counts)?))
}

/// A `FoundRange` of the results of each query, whose ends are `lims`.
pub(crate) fn found_range<'py>(
    py: Python<'py>,
    lims: Vec<i64>,
    ids: Vec<i64>,
    distances: Vec<f32>,
    counts: &Counts,
) -> PyResult<Bound<'py, PyAny>> {
    let lims = PyArray1::from_vec(py, lims);
    let (ids, distances) = (PyArray1::from_vec(py, ids), PyArray1::from_vec(py, distances));
    static FOUND: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let class = FOUND.import(py, "lanewise.results", "FoundRange")?;
    class.call1((lims, distances, ids, plan(py, counts)?))
}

/// A list of `Group`s; `keys` has what their numbers stand for.
pub(crate) fn groups<'py>(
    py: Python<'py>,
    groups: Groups<usize>,
    keys: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyList>> {
    static GROUP: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let class = GROUP.import(py, "lanewise.results", "Group")?;
    let all = PyList::empty(py);
    for Group { key, members: Neighbors { ids, distances } } in groups {
        let members = (PyArray1::from_vec(py, ids), PyArray1::from_vec(py, distances));
        all.append(class.call1((keys.get_item(key)?, members.0, members.1))?)?;
    }
    Ok(all)
}

fn plan<'py>(py: Python<'py>, counts: &Counts) -> PyResult<Bound<'py, PyDict>> {
    let plan = PyDict::new(py);
    plan.set_item("exact", counts.exact)?;
    plan.set_item("graph", counts.graph)?;
    plan.set_item("filtered_graph", counts.filtered_graph)?;
    plan.set_item("lists", counts.lists)?;
    plan.set_item("codes", counts.codes)?;
    plan.set_item("distances", counts.distances)?;
    plan.set_item("hops", counts.hops)?;
    Ok(plan)
}
