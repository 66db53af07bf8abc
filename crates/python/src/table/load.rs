//! Loading documents in bulk: all of them or none, into a segment whose indexes are built once.

use super::json::document;
use super::write::{Column, columns, id_of};
use super::{Table, errors};
use crate::errors::{Failure, argument};
use crate::guard::change;
use crate::watch::{Bar, Watch};
use lanewise_engine::index::{AddError, Vectors};
use lanewise_engine::table::{Batch, Effort, FlushError, LoadError, SegmentError};
use pyo3::prelude::*;
use pyo3::types::PySlice;
use serde_json::{Map, Value};
use std::ops::{ControlFlow, Range};
use std::sync::{Mutex, PoisonError};

/// Documents that are taken in together: enough for all cores, few enough not to hold all of them twice.
const BATCH: usize = 1 << 16;

/// What ends a load.
enum Ended {
    /// Of the batch that begins there.
    Load(usize, LoadError),
    Finish(FlushError),
    Raised(PyErr),
}

/// Loads `documents` as [`put_many`](super::write::put_many) takes them; how many, each id counted once.
///
/// # Errors
/// The first that is wrong, and what the system or a signal handler raises; the table is as it was then.
pub(super) fn load(
    table: &Table,
    py: Python<'_>,
    documents: &Bound<'_, PyAny>,
    ids: Option<Vec<Option<String>>>,
    vectors: Vec<(String, Bound<'_, PyAny>)>,
    progress: bool,
) -> PyResult<usize> {
    let len = documents.len()?;
    let columns = columns(table, documents, ids.as_deref(), vectors)?;
    let lent: Vec<(&str, usize, Vectors<'_>)> = columns.iter().map(Column::lent).collect();
    let documents = documents.clone().unbind();
    let watch = Mutex::new(Watch::new(progress.then(|| Bar::new(py, "loading", "documents"))));
    let done = table.with(py, |inner| {
        change(inner, |_| {
            let at = Mutex::new(0);
            let proceed = || match (watch.try_lock(), at.try_lock()) {
                (Ok(mut watch), Ok(at)) => watch.proceed_of(*at, len),
                // Another thread of this work is looking.
                _ => ControlFlow::Continue(()),
            };
            let effort = Effort::new(table.threads, &proceed);
            let all = || {
                let mut load = inner.load().map_err(|error| Ended::Load(0, error))?;
                for first in (0..len).step_by(BATCH) {
                    let places = first..len.min(first + BATCH);
                    let part =
                        Python::attach(|py| part(table, documents.bind(py), ids.as_deref(), places.clone()));
                    let (documents, ids) = part.map_err(Ended::Raised)?;
                    let vectors =
                        lent.iter().map(|&(field, dim, all)| (field, all.slice(dim, places.clone())));
                    let batch = Batch { ids, documents, vectors: vectors.collect() };
                    load.add(batch, &effort).map_err(|error| Ended::Load(first, error))?;
                    *at.lock().unwrap_or_else(PoisonError::into_inner) = places.end;
                }
                load.finish(&effort).map_err(Ended::Finish)
            };
            Ok(all())
        })
    })?;
    let mut watch = watch.into_inner().unwrap_or_else(PoisonError::into_inner);
    match done.map_err(|error| error.raise(py))? {
        Ok(loaded) => {
            watch.finish(py, len, len)?;
            watch.raised.map_or(Ok(loaded), Err)
        }
        Err(ended) if watch.raised.is_some() && is_stop(&ended) => {
            Err(Failure::Stopped(watch.raised).raise(py))
        }
        Err(Ended::Load(first, error)) => Err(errors::load(py, &table.root, first, error)),
        Err(Ended::Finish(error)) => Err(errors::flush(py, &table.root, error)),
        Err(Ended::Raised(error)) => Err(error),
    }
}

fn is_stop(ended: &Ended) -> bool {
    matches!(
        ended,
        Ended::Load(_, LoadError::Add { error: AddError::Cancelled { .. }, .. })
            | Ended::Load(_, LoadError::Segment(SegmentError::Stopped))
            | Ended::Finish(FlushError::Segment { error: SegmentError::Stopped, .. })
    )
}

/// Documents, and their ids if they are given.
type Taken = (Vec<Map<String, Value>>, Option<Vec<String>>);

/// The documents in `places`, and their ids, unless none has one.
fn part(
    table: &Table,
    documents: &Bound<'_, PyAny>,
    ids: Option<&[Option<String>]>,
    places: Range<usize>,
) -> PyResult<Taken> {
    let py = documents.py();
    let slice = PySlice::new(py, places.start as isize, places.end as isize, 1);
    let part = documents.get_item(slice)?;
    let (mut made, mut known) = (Vec::with_capacity(places.len()), Vec::with_capacity(places.len()));
    for place in places.clone() {
        let name = format!("documents[{place}]");
        let given = part.get_item(place - places.start)?;
        let (mut one, vectors) = document(&name, &given, &table.schema)?;
        if let Some((field, _)) = vectors.first() {
            let message = format!(
                "{name} holds the vector {field:?}: give vectors={{{field:?}: array}}, or use put_many()"
            );
            return Err(argument(py, "vectors", message));
        }
        known.extend(id_of(table, py, &name, ids, place, &mut one)?);
        made.push(one);
    }
    match known.len() {
        0 => Ok((made, None)),
        all if all == made.len() => Ok((made, Some(known))),
        some => {
            let message =
                format!("{some} of {} documents have an id: give one to each, or to none", made.len());
            Err(argument(py, "ids", message))
        }
    }
}
