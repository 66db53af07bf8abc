//! What an index holds, takes and runs on, and what it would take, as dicts.

use crate::tune;
use lanewise_engine::index::{Index, Need};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// As `Index.info()` documents it.
pub(crate) fn info<'py>(index: &Index, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
    let stats = index.stats();
    let params = index.params();
    let info = PyDict::new(py);
    info.set_item("len", stats.len)?;
    info.set_item("removed", stats.deleted)?;
    info.set_item("dim", params.dim)?;
    info.set_item("metric", params.metric.name())?;
    info.set_item("dtype", params.dtype.name())?;
    info.set_item("kind", params.kind.name())?;
    info.set_item("code", params.code.name())?;
    info.set_item("code_report", index.code_report())?;
    info.set_item("m", params.m)?;
    info.set_item("ef_construction", params.ef_construction)?;
    info.set_item("seed", params.seed)?;
    info.set_item("nlist", params.nlist)?;
    info.set_item("lists", stats.lists)?;
    let parts = stats.graph_bytes + stats.list_bytes;
    let bytes = stats.vector_bytes + stats.code_bytes + parts + stats.id_bytes;
    info.set_item("bytes_per_vector", bytes as f64 / stats.len.max(1) as f64)?;
    info.set_item("vector_bytes", stats.vector_bytes)?;
    info.set_item("code_bytes", stats.code_bytes)?;
    info.set_item("graph_bytes", stats.graph_bytes)?;
    info.set_item("list_bytes", stats.list_bytes)?;
    info.set_item("id_bytes", stats.id_bytes)?;
    info.set_item("memory_bytes", index.owned_bytes())?;
    info.set_item("layers", stats.layers)?;
    info.set_item("isa", index.level())?;
    let kernels = PyDict::new(py);
    for slot in index.slots() {
        kernels.set_item(slot.kernel, slot.isa)?;
    }
    info.set_item("kernels", kernels)?;
    let curve = index.curve().map(|curve| tune::points(py, &curve)).transpose()?;
    info.set_item("recall_curve", curve)?;
    Ok(info)
}

/// As `Index.predict_add()` documents it.
pub(crate) fn need(py: Python<'_>, need: Need) -> PyResult<Bound<'_, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("memory_bytes", need.held)?;
    dict.set_item("peak_bytes", need.peak)?;
    Ok(dict)
}
