//! Writing documents by batches: between two, signal handlers run and the bar is drawn; what a batch wrote is on disk.

use super::json::document;
use super::{Table, errors};
use crate::arrays::{self, Batch};
use crate::errors::{Failure, argument, dtype};
use crate::watch::{Bar, Watch};
use lanewise_engine::index::{OwnedVectors, Params, Vectors};
use lanewise_engine::table::{Outcome, When, Write, WriteError, Written};
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PySlice};
use serde_json::{Map, Value};
use std::ops::Range;

/// Documents of a batch: enough to build with all threads and to share a sync, few enough to stop soon.
const BATCH: usize = 512;

/// What one batch gave, write by write.
type Results = Vec<Result<Written, WriteError>>;

pub(super) fn condition(if_absent: bool, if_seq: Option<u64>) -> When {
    match if_seq {
        Some(seq) => When::Seq(seq),
        None if if_absent => When::Absent,
        None => When::Always,
    }
}

pub(super) fn name(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Created => "created",
        Outcome::Updated => "updated",
        Outcome::Deleted => "deleted",
        Outcome::Missing => "missing",
    }
}

/// Vectors of one field, one for each document.
pub(super) struct Column<'py> {
    field: String,
    params: Params,
    batch: Batch<'py>,
}

/// What was written so far.
#[derive(Default)]
struct Done {
    ids: Vec<Option<String>>,
    seqs: Vec<i64>,
    versions: Vec<i64>,
    outcomes: Vec<&'static str>,
    /// Documents that were refused for what they are, by their place.
    errors: Vec<(usize, PyErr)>,
}

/// Writes `documents`, a sequence of dicts that slices give, each under the id in the same place of `ids` and with the
/// vector in the same place of each array of `vectors`. Without `ids` it is the document's field `id`, which is kept only
/// if the schema names it; a new one if it has none. A dict of what was done: `ids`, `seqs`,
/// `versions`, `outcomes` (of refused ones None, -1, -1 and "failed"), and `errors`, a list of (place, exception).
///
/// # Errors
/// `ArgumentError` before anything is written, if arrays do not fit; what ends all writing, with a note that says how
/// many documents are in: the disk's and the memory's failures, and what a signal handler raises.
pub(super) fn put_many<'py>(
    table: &Table,
    py: Python<'py>,
    documents: &Bound<'py, PyAny>,
    ids: Option<Vec<Option<String>>>,
    vectors: Vec<(String, Bound<'py, PyAny>)>,
    when: When,
    progress: bool,
) -> PyResult<Bound<'py, PyDict>> {
    let len = documents.len()?;
    let columns = columns(table, documents, ids.as_deref(), vectors)?;
    let mut watch = Watch::new(progress.then(|| Bar::new(py, "writing", "documents")));
    let mut done = Done::default();
    for first in (0..len).step_by(BATCH) {
        let last = len.min(first + BATCH);
        let part = documents.get_item(PySlice::new(py, first as isize, last as isize, 1))?;
        let ended = batch(table, py, &part, first..last, ids.as_deref(), &columns, when, &mut done);
        let ended = ended.and_then(|()| {
            let stop = py.detach(|| watch.proceed_of(last, len)).is_break() && last < len;
            if stop { Err(Failure::Stopped(watch.raised.take()).raise(py)) } else { Ok(()) }
        });
        if let Err(error) = ended {
            watch.finish(py, done.ids.len(), len)?;
            let (settled, refused) = (done.ids.len(), done.errors.len());
            let note = format!(
                "documents[:{settled}] of {len} are written and on disk, but for {refused} that were refused; to go on, put \
                 documents[{settled}:]"
            );
            error.value(py).call_method1("add_note", (note,))?;
            return Err(error);
        }
    }
    // What was raised by a handler at the very end is not lost.
    if let Some(raised) = watch.raised.take() {
        return Err(raised);
    }
    watch.finish(py, len, len)?;
    let dict = PyDict::new(py);
    dict.set_item("ids", done.ids)?;
    dict.set_item("seqs", PyArray1::from_vec(py, done.seqs))?;
    dict.set_item("versions", PyArray1::from_vec(py, done.versions))?;
    dict.set_item("outcomes", done.outcomes)?;
    let errors = PyList::empty(py);
    for (place, error) in done.errors {
        errors.append((place, error.into_value(py)))?;
    }
    dict.set_item("errors", errors)?;
    Ok(dict)
}

/// The vectors that come beside `documents`, checked as the ids are: one for each.
pub(super) fn columns<'py>(
    table: &Table,
    documents: &Bound<'_, PyAny>,
    ids: Option<&[Option<String>]>,
    vectors: Vec<(String, Bound<'py, PyAny>)>,
) -> PyResult<Vec<Column<'py>>> {
    let len = documents.len()?;
    if let Some(given) = ids.map(<[_]>::len).filter(|&given| given != len) {
        let message = format!("ids has {given} entries for {len} documents: give one for each");
        return Err(argument(documents.py(), "ids", message));
    }
    vectors.into_iter().map(|(field, given)| column(table, field, &given, len)).collect()
}

fn column<'py>(table: &Table, field: String, given: &Bound<'py, PyAny>, len: usize) -> PyResult<Column<'py>> {
    let py = given.py();
    let params = table.params(py, &field)?;
    let batch = arrays::vectors(&field, given, &params)?;
    if batch.single || batch.count != len {
        let shape = if batch.single { "one vector".to_owned() } else { format!("{} vectors", batch.count) };
        let message = format!("vectors: field {field:?} has {shape} for {len} documents: give one for each");
        return Err(argument(py, "vectors", message));
    }
    Ok(Column { field, params, batch })
}

#[expect(clippy::too_many_arguments, reason = "one step of the above")]
fn batch(
    table: &Table,
    py: Python<'_>,
    documents: &Bound<'_, PyAny>,
    places: Range<usize>,
    ids: Option<&[Option<String>]>,
    columns: &[Column<'_>],
    when: When,
    done: &mut Done,
) -> PyResult<()> {
    // Each document by itself: one that is none does not keep the others out.
    let mut writes = Vec::with_capacity(places.len());
    let mut refused: Vec<Option<PyErr>> = Vec::with_capacity(places.len());
    for place in places.clone() {
        let given = documents.get_item(place - places.start)?;
        let name = format!("documents[{place}]");
        let made = document(&name, &given, &table.schema).and_then(|(mut document, mut vectors)| {
            vectors.extend(columns.iter().map(|column| column.vector(place)));
            let id = id_of(table, py, &name, ids, place, &mut document)?;
            Ok(Write::Put { id, document, vectors, when })
        });
        match made {
            Ok(write) => {
                writes.push(write);
                refused.push(None);
            }
            Err(error) if is_the_documents(py, &error) => refused.push(Some(error)),
            Err(error) => return Err(error),
        }
    }
    let results: Results =
        if writes.is_empty() { Vec::new() } else { table.with(py, |inner| inner.write(writes))? };
    // What failed for the disk's sake fails for all that follow: the call ends with it, and with what came before.
    let mut results = results.into_iter();
    for (place, refused) in places.zip(refused) {
        let error = match refused {
            Some(error) => error,
            None => match results.next().expect("a result for each write") {
                Ok(written) => {
                    done.push(written);
                    continue;
                }
                Err(error) => {
                    let own = errors::is_its_own(&error);
                    let error = errors::write(py, &table.root, &format!("documents[{place}]"), &error);
                    if !own {
                        return Err(error);
                    }
                    error
                }
            },
        };
        done.refuse(place, error);
    }
    Ok(())
}

/// The id of the document in `place`: that of `ids`, or what it has in its field `id`.
pub(super) fn id_of(
    table: &Table,
    py: Python<'_>,
    name: &str,
    ids: Option<&[Option<String>]>,
    place: usize,
    document: &mut Map<String, Value>,
) -> PyResult<Option<String>> {
    if let Some(ids) = ids {
        return Ok(ids[place].clone());
    }
    let kept = table.schema.fields.contains_key("id");
    let id = if kept { document.get("id").cloned() } else { document.remove("id") };
    match id {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(id)) => Ok(Some(id)),
        Some(Value::Number(id)) if !id.is_f64() => Ok(Some(id.to_string())),
        Some(other) => {
            let message = format!("{name}: its id is {other}: use str, or int, which becomes str");
            Err(dtype(py, name, message))
        }
    }
}

/// Whether `error` says that a document is wrong, not that something happened meanwhile.
fn is_the_documents(py: Python<'_>, error: &PyErr) -> bool {
    let class = py.import("lanewise.errors").and_then(|module| module.getattr("ArgumentError"));
    class.is_ok_and(|class| error.matches(py, class).unwrap_or(false))
}

impl Column<'_> {
    /// Field, dimension, and all of its vectors.
    pub(super) fn lent(&self) -> (&str, usize, Vectors<'_>) {
        (&self.field, self.params.dim, self.batch.vectors())
    }

    fn vector(&self, place: usize) -> (String, OwnedVectors) {
        let one = self.batch.vectors().slice(self.params.dim, place..place + 1);
        (self.field.clone(), OwnedVectors::from(one))
    }
}

impl Done {
    fn push(&mut self, written: Written) {
        self.ids.push(Some(written.id));
        self.seqs.push(written.seq as i64);
        self.versions.push(written.version as i64);
        self.outcomes.push(name(written.outcome));
    }

    fn refuse(&mut self, place: usize, error: PyErr) {
        self.ids.push(None);
        self.seqs.push(-1);
        self.versions.push(-1);
        self.outcomes.push("failed");
        self.errors.push((place, error));
    }
}

/// Deletes documents: (seq, version, outcome) of each.
///
/// # Errors
/// The first that failed. The others are done; deleting again harms nothing.
pub(super) fn delete(
    table: &Table,
    py: Python<'_>,
    ids: Vec<String>,
    if_seq: Option<u64>,
) -> PyResult<Vec<(u64, u64, &'static str)>> {
    let mut all = Vec::with_capacity(ids.len());
    for part in ids.chunks(BATCH) {
        let when = condition(false, if_seq);
        let writes = part.iter().map(|id| Write::Delete { id: id.clone(), when }).collect();
        for done in table.with(py, |inner| inner.write(writes))? {
            let done = done.map_err(|error| errors::write(py, &table.root, "ids", &error))?;
            all.push((done.seq, done.version, name(done.outcome)));
        }
        py.check_signals()?;
    }
    Ok(all)
}
