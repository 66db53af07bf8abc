//! Searches beyond the nearest k, and stored vectors: `range_search`, `search_by_id`, `search_groups`, `pages` and `get` of
//! `lanewise.Index`, which has their documentation.
//!
//! As in `search`, what may run Python code (filters, arrays that are none yet) comes before an array is lent.

use crate::arrays;
use crate::effort::Effort;
use crate::errors::{Failure, argument, warn_fewer};
use crate::filter::given_filter;
use crate::index::Index;
use crate::parts::{in_parts, neighbors};
use crate::results;
use lanewise_engine as engine;
use lanewise_engine::index::{Counts, OwnedVectors, SearchError};
use numpy::{PyArray1, PyArray2, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyList};
use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};

type Given<'a, 'py> = &'a Bound<'py, PyAny>;
type Keywords<'a, 'py> = Option<&'a Bound<'py, PyDict>>;

/// How many a range search looks for at first: what the usual `ef_search` finds at no cost.
const FIRST: usize = 64;

pub(crate) fn range_search<'py>(
    index: &Index,
    q: Given<'_, 'py>,
    radius: f32,
    limit: Option<NonZeroUsize>,
    filter: Option<Given<'_, 'py>>,
    effort: Keywords<'_, 'py>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = q.py();
    let effort = Effort::of("range_search", effort)?;
    let reader = index.inner.reader();
    let filter = given_filter(&reader, filter)?;
    let batch = arrays::vectors("q", q, &index.params)?;
    let queries = batch.vectors();
    let how = effort.search(FIRST, filter.as_deref());
    let (mut lims, mut ids, mut distances) = (vec![0], Vec::<i64>::new(), Vec::<f32>::new());
    let mut counts = Counts::default();
    let done = py.detach(|| {
        in_parts(reader.check_within(queries, radius, &how)?, effort.threads, |range| {
            let part = queries.slice(reader.dim(), range);
            let (found, work) = engine::search_within(&reader, part, radius, limit, &how, effort.threads)?;
            counts += work;
            let more: usize = found.iter().map(|one| one.ids.len()).sum();
            let bytes = (ids.len() + more).saturating_mul(size_of::<i64>() + size_of::<f32>());
            ids.try_reserve(more).map_err(|_| Failure::Memory(bytes))?;
            distances.try_reserve(more).map_err(|_| Failure::Memory(bytes))?;
            for one in found {
                ids.extend(one.ids);
                distances.extend(one.distances);
                lims.push(ids.len() as i64);
            }
            Ok(())
        })
    });
    done.map_err(|error| error.raise(py))?;
    results::found_range(py, lims, ids, distances, &counts)
}

pub(crate) fn search_by_id<'py>(
    index: &Index,
    ids: Given<'_, 'py>,
    k: usize,
    filter: Option<Given<'_, 'py>>,
    effort: Keywords<'_, 'py>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = ids.py();
    let effort = Effort::of("search_by_id", effort)?;
    let reader = index.inner.reader();
    let filter = given_filter(&reader, filter)?;
    let (ids, single) = ids_or_one(ids)?;
    if ids.is_empty() {
        return Err(argument(py, "ids", "ids is empty: give at least one id"));
    }
    let how = effort.search(k, filter.as_deref());
    let found = py.detach(|| {
        reader.search_by_id(&ids, &how, |queries, how| neighbors(&reader, queries, how, effort.threads))
    });
    let (found, counts) = found.map_err(|error| error.raise(py))?;
    let lens = || found.iter().map(|one| one.ids.len());
    let (fewest, width) = (lens().min().unwrap_or(0), lens().max().unwrap_or(0));
    if fewest < k {
        let of = if filter.is_some() { "the filter, itself left out" } else { "the index, itself left out" };
        warn_fewer(py, k, fewest, of)?;
    }
    // Only with a filter, and only where k is more than all, one may have one less than another: itself.
    let (mut flat_ids, mut flat_distances) = (Vec::new(), Vec::new());
    let all = ids.len() * width;
    let no_room = |_| Failure::Memory(all.saturating_mul(size_of::<i64>() + size_of::<f32>())).raise(py);
    flat_ids.try_reserve_exact(all).map_err(no_room)?;
    flat_distances.try_reserve_exact(all).map_err(no_room)?;
    for (row, one) in (1..).zip(found) {
        flat_ids.extend(one.ids);
        flat_ids.resize(row * width, -1);
        flat_distances.extend(one.distances);
        flat_distances.resize(row * width, f32::INFINITY);
    }
    let shape = if single { vec![width] } else { vec![ids.len(), width] };
    results::found(py, flat_ids, flat_distances, &shape, &counts)
}

pub(crate) fn search_groups<'py>(
    index: &Index,
    q: Given<'_, 'py>,
    k: usize,
    groups: Given<'_, 'py>,
    per_group: NonZeroUsize,
    filter: Option<Given<'_, 'py>>,
    effort: Keywords<'_, 'py>,
) -> PyResult<Bound<'py, PyList>> {
    let py = q.py();
    let effort = Effort::of("search_groups", effort)?;
    let reader = index.inner.reader();
    let filter = given_filter(&reader, filter)?;
    let keys = py.import("lanewise.groups")?.getattr("Keys")?.call1((groups,))?;
    // A copy, since the keys run Python code between searches.
    let (queries, single) = {
        let batch = arrays::vectors("q", q, &index.params)?;
        (OwnedVectors::from(batch.vectors()), batch.single)
    };
    let how = effort.search(k, filter.as_deref());
    let numbers = keys.getattr("numbers")?.unbind();
    let found = py.detach(|| {
        reader.search_groups(
            queries.as_vectors(),
            per_group,
            &how,
            |ids| {
                let asked = Python::try_attach(|py| {
                    numbers.bind(py).call1((PyArray1::from_slice(py, ids),))?.extract::<Vec<usize>>()
                });
                asked.ok_or(Failure::Stopped(None))?.map_err(|error| Failure::Stopped(Some(error)))
            },
            |queries, how| neighbors(&reader, queries, how, effort.threads),
        )
    });
    let (found, _) = found.map_err(|error| error.raise(py))?;
    let keys = keys.getattr("keys")?;
    let mut each = found.into_iter().map(|one| results::groups(py, one, &keys));
    if single {
        return each.next().unwrap_or_else(|| Ok(PyList::empty(py)));
    }
    PyList::new(py, each.collect::<PyResult<Vec<_>>>()?)
}

/// An iterator over ever farther results of one query, a page at a time; made by Index.pages().
///
/// It goes on with the vectors that were in the index when it was made, and holds their memory as long as it lives.
#[pyclass(frozen, module = "lanewise")]
pub(crate) struct Pages {
    inner: Mutex<engine::index::Pages>,
}

pub(crate) fn pages<'py>(
    index: &Index,
    q: Given<'_, 'py>,
    page_size: NonZeroUsize,
    filter: Option<Given<'_, 'py>>,
    effort: Keywords<'_, 'py>,
) -> PyResult<Pages> {
    let effort = Effort::of("pages", effort)?;
    let reader = index.inner.reader();
    let filter = given_filter(&reader, filter)?;
    let batch = arrays::vectors("q", q, &index.params)?;
    let made = reader.pages(batch.vectors(), &effort.search(page_size.get(), filter.as_deref()));
    let inner = Mutex::new(made.map_err(|error| Failure::Search(error).raise(q.py()))?);
    Ok(Pages { inner })
}

#[pymethods]
impl Pages {
    fn __iter__(this: Bound<'_, Self>) -> Bound<'_, Self> {
        this
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let page = py.detach(|| {
            let mut pages = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
            engine::next_page(&mut pages)
        });
        let page = page.map_err(|error| Failure::Search(error).raise(py))?;
        let page = page.map(|(page, counts)| {
            let len = page.ids.len();
            results::found(py, page.ids, page.distances, &[len], &counts)
        });
        page.transpose()
    }
}

pub(crate) fn get<'py>(index: &Index, ids: Given<'_, 'py>) -> PyResult<Bound<'py, PyAny>> {
    let py = ids.py();
    let reader = index.inner.reader();
    let (ids, single) = ids_or_one(ids)?;
    let vectors = py.detach(|| reader.vectors(&ids));
    let vectors = vectors.map_err(|error| Failure::Search(SearchError::from(error)).raise(py))?;
    let (rows, dim) = (ids.len(), index.params.dim);
    let matrix = match vectors {
        OwnedVectors::F32(all) => PyArray1::from_vec(py, all).reshape([rows, dim])?.into_any(),
        OwnedVectors::I8(all) => PyArray1::from_vec(py, all).reshape([rows, dim])?.into_any(),
        OwnedVectors::U8(all) => PyArray1::from_vec(py, all).reshape([rows, dim])?.into_any(),
        OwnedVectors::Bits(all) => {
            let packed: Bound<'_, PyArray2<u8>> =
                PyArray1::from_vec(py, all).reshape([rows, dim.div_ceil(8)])?;
            let how = PyDict::new(py);
            how.set_item("axis", 1)?;
            how.set_item("count", dim)?;
            how.set_item("bitorder", "little")?;
            let bits = py.import("numpy")?.call_method("unpackbits", (packed,), Some(&how))?;
            bits.call_method1("view", ("bool",))?
        }
    };
    if single { matrix.get_item(0) } else { Ok(matrix) }
}

/// Ids as an array, or one by itself.
fn ids_or_one(given: Given<'_, '_>) -> PyResult<(Vec<i64>, bool)> {
    match given.extract::<i64>() {
        Ok(id) if !given.is_instance_of::<PyBool>() => Ok((vec![id], true)),
        _ => Ok((arrays::ids("ids", given)?, false)),
    }
}
