//! Stored vectors as NumPy's arrays.

use super::json::to_python;
use super::{Table, errors};
use lanewise_engine::index::{OwnedVectors, Params};
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

/// One vector, shape (dim,): float32, int8, uint8 or bool.
pub(super) fn one<'py>(
    py: Python<'py>,
    params: &Params,
    vector: OwnedVectors,
) -> PyResult<Bound<'py, PyAny>> {
    Ok(match vector {
        OwnedVectors::F32(all) => PyArray1::from_vec(py, all).into_any(),
        OwnedVectors::I8(all) => PyArray1::from_vec(py, all).into_any(),
        OwnedVectors::U8(all) => PyArray1::from_vec(py, all).into_any(),
        OwnedVectors::Bits(all) => {
            let bits = (0..params.dim).map(|i| all[i / 8] >> (i % 8) & 1 == 1);
            PyArray1::from_vec(py, bits.collect()).into_any()
        }
    })
}

/// What each of `fields` is stored as.
pub(super) fn params(table: &Table, py: Python<'_>, fields: &[String]) -> PyResult<Vec<Params>> {
    fields.iter().map(|field| table.params(py, field)).collect()
}

/// For each id its document: (seq, version, source, vectors by field); None for those not there.
pub(super) fn get<'py>(
    table: &Table,
    py: Python<'py>,
    ids: &[String],
    fields: &[String],
) -> PyResult<Bound<'py, PyList>> {
    let params = params(table, py, fields)?;
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    let names: Vec<&str> = fields.iter().map(String::as_str).collect();
    let found = table.with(py, |table| table.fetch(&ids, &names))?;
    let all = PyList::empty(py);
    for fetched in found.map_err(|error| errors::fetch(py, &table.root, error))? {
        let Some(fetched) = fetched else {
            all.append(py.None())?;
            continue;
        };
        let vectors = PyDict::new(py);
        for ((field, params), vector) in fields.iter().zip(&params).zip(fetched.vectors) {
            if let Some(vector) = vector {
                vectors.set_item(field, one(py, params, vector)?)?;
            }
        }
        let document = fetched.document;
        all.append((document.seq, document.version, to_python(py, &document.source)?, vectors))?;
    }
    Ok(all)
}
