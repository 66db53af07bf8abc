//! Searching: one request, one answer, as plain values.

use super::json::{from_python, one_vector, to_python};
use super::{Table, errors, vectors as stored};
use crate::effort::Effort;
use crate::errors::argument;
use lanewise_engine::documents::{FieldKind, VectorField};
use lanewise_engine::index::Params;
use lanewise_engine::table::{Nearest, Request, SearchTableError};
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use std::time::Duration;

impl Table {
    /// What the vector field's indexes are made for.
    ///
    /// # Errors
    /// `ArgumentError` if the schema names no such vector field.
    pub(super) fn params(&self, py: Python<'_>, field: &str) -> PyResult<Params> {
        match self.schema.fields.get(field) {
            Some(FieldKind::Vector(VectorField(params))) => Ok(*params),
            _ => {
                let known: Vec<&str> = self.schema.vectors().map(|(name, _)| name).collect();
                let message =
                    format!("{field:?} is no vector field of the table: its vector fields are {known:?}");
                Err(argument(py, "vectors", message))
            }
        }
    }
}

/// The request, whose parts are read one by one, so that what is wrong names the argument.
fn parsed(given: &Bound<'_, PyDict>) -> PyResult<Request> {
    let mut request = Request::default();
    for (name, value) in given {
        let name: String = name.extract()?;
        let json = from_python(&name, &value)?;
        let read = match name.as_str() {
            "query" => serde_json::from_value(json).map(|query| request.query = Some(query)),
            "filter" => serde_json::from_value(json).map(|filter| request.filter = Some(filter)),
            "fusion" => serde_json::from_value(json).map(|fusion| request.fusion = fusion),
            "sort" => serde_json::from_value(json).map(|sort| request.sort = sort),
            "after" => serde_json::from_value(json).map(|after| request.after = Some(after)),
            "aggs" => serde_json::from_value(json).map(|aggs| request.aggregations = aggs),
            "from_" => serde_json::from_value(json).map(|from| request.from = from),
            "k" => serde_json::from_value(json).map(|size| request.size = size),
            "exact_total" => serde_json::from_value(json).map(|exact| request.exact_total = exact),
            "profile" => serde_json::from_value(json).map(|profile| request.profile = profile),
            other => {
                return Err(argument(given.py(), other, format!("{other} is no argument of a search")));
            }
        };
        read.map_err(|error| argument(given.py(), &name, format!("{name}: {error}")))?;
    }
    Ok(request)
}

/// What was asked for: a dict of `ids`, `seqs`, `versions`, `scores`, `sort`, `total` (value, exact), `distances` of a
/// single vector, `sources` if `documents`, `aggregations`, `profile` if it was asked for,
/// and `vectors`, by field those of the hits.
///
/// `request` has the engine's ([`Request`]), by the names of Python's arguments, all but its vectors, which are (field, vector,
/// k) and share `effort`.
///
/// # Errors
/// `ArgumentError` and `DtypeError`; `BusyError`, `DeadlineError`; `FormatError` if documents cannot be read.
#[expect(clippy::too_many_arguments, reason = "Python's arguments")]
pub(super) fn search<'py>(
    table: &Table,
    py: Python<'py>,
    request: &Bound<'py, PyDict>,
    vectors: Vec<(String, Bound<'py, PyAny>, usize)>,
    effort: &Bound<'py, PyDict>,
    fields: &[String],
    exact: bool,
    timeout: Option<Duration>,
    documents: bool,
) -> PyResult<Bound<'py, PyDict>> {
    let mut request = parsed(request)?;
    let effort = Effort::of("search", Some(effort))?.search(1, None);
    for (field, given, k) in vectors {
        let vector = one_vector(&field, &given, &table.params(py, &field)?)?;
        request.nearest.push(Nearest {
            k,
            ef_search: Some(effort.ef_search),
            epsilon: effort.epsilon,
            nprobe: Some(effort.nprobe),
            oversample: effort.oversample,
            exact,
            ..Nearest::new(&field, vector)
        });
    }
    let kept = stored::params(table, py, fields)?;
    let found = table.searching(py, |table, proceed| {
        let answer = table.search_with(&request, timeout, proceed)?;
        let source = |hit| answer.source(hit);
        let sources =
            if documents { answer.hits.iter().map(source).collect::<Result<_, _>>()? } else { vec![] };
        let vectors = fields.iter().map(|field| answer.vectors(field)).collect::<Vec<_>>();
        Ok::<_, SearchTableError>((answer, sources, vectors))
    })?;
    let (answer, sources, vectors) = found.map_err(|error| errors::search(py, &table.root, &error))?;
    let hits = &answer.hits;
    let dict = PyDict::new(py);
    dict.set_item("ids", hits.iter().map(|hit| hit.id.as_str()).collect::<Vec<_>>())?;
    dict.set_item("seqs", hits.iter().map(|hit| hit.seq).collect::<Vec<_>>())?;
    dict.set_item("versions", hits.iter().map(|hit| hit.version).collect::<Vec<_>>())?;
    dict.set_item("scores", PyArray1::from_vec(py, hits.iter().map(|hit| hit.score).collect()))?;
    let distances: Option<Vec<f32>> = hits.iter().map(|hit| hit.distance).collect();
    let distances = distances.filter(|_| request.nearest.len() == 1 && request.query.is_none());
    dict.set_item("distances", distances.map(|distances| PyArray1::from_vec(py, distances)))?;
    dict.set_item("total", (answer.total.value, answer.total.exact))?;
    let json = |value: &dyn Fn() -> serde_json::Result<Vec<u8>>| to_python(py, &value().expect("it is JSON"));
    let sort: Vec<_> = hits.iter().map(|hit| &hit.sort).collect();
    dict.set_item("sort", json(&|| serde_json::to_vec(&sort))?)?;
    dict.set_item("aggregations", json(&|| serde_json::to_vec(&answer.aggregations))?)?;
    dict.set_item("profile", json(&|| serde_json::to_vec(&answer.profile))?)?;
    let all = PyList::empty(py);
    sources.iter().try_for_each(|source| all.append(to_python(py, source)?))?;
    dict.set_item("sources", documents.then_some(all))?;
    let by_field = PyDict::new(py);
    for ((field, params), column) in fields.iter().zip(&kept).zip(vectors) {
        let column = column.map_err(|error| errors::fetch(py, &table.root, error))?.into_iter();
        let column = column.map(|vector| vector.map(|vector| stored::one(py, params, vector)).transpose());
        by_field.set_item(field, column.collect::<PyResult<Vec<_>>>()?)?;
    }
    dict.set_item("vectors", by_field)?;
    Ok(dict)
}
