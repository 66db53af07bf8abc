//! Recall as users ask for it and see it: the curve that chooses the effort, as Python's lists and dicts.

use crate::errors::{Failure, argument};
use crate::guard::change;
use crate::watch::{Bar, Watch};
use crate::{arguments, arrays};
use lanewise_engine::Threads;
use lanewise_engine::index::{CalibrateError, Curve, Estimate, Index as Inner, KS, Monitor, Point, Vectors};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyList, PyType};
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};

/// Who samples the searches of an index, if anybody does.
#[derive(Default)]
pub(crate) struct Monitored(Mutex<Option<Arc<Monitor>>>);

impl Monitored {
    pub(crate) fn get(&self) -> Option<Arc<Monitor>> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clone()
    }

    pub(crate) fn set(&self, monitor: Option<Monitor>) {
        *self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = monitor.map(Arc::new);
    }
}

/// The numbers of results that `k` says: an integer, or a sequence of them.
pub(crate) fn ks(given: Option<&Bound<'_, PyAny>>) -> PyResult<Vec<usize>> {
    let Some(given) = given else { return Ok(KS.to_vec()) };
    match given.try_iter() {
        // One more than are allowed says that there are too many, of endless ones too.
        Ok(all) => all.take(9).map(|k| arguments::k(&k?)).collect(),
        Err(_) => Ok(vec![arguments::k(given)?]),
    }
}

/// Measures the curve of `index` by `queries`, an array, or by stored vectors.
pub(crate) fn calibrate(
    index: &Inner,
    queries: Option<&Bound<'_, PyAny>>,
    ks: &[usize],
    progress: bool,
    num_threads: Option<NonZeroUsize>,
    py: Python<'_>,
) -> PyResult<Arc<Curve>> {
    let batch = queries.map(|queries| arrays::vectors("queries", queries, index.params())).transpose()?;
    let vectors: Option<Vectors<'_>> = batch.as_ref().map(|batch| batch.vectors());
    let mut watch = Watch::new(progress.then(|| Bar::new(py, "measuring", "queries")));
    let threads = Threads::new(num_threads);
    let curve =
        watched(py, index, &mut watch, |index, proceed| index.calibrate(vectors, ks, &threads, proceed))?;
    let done = curve.queries * (curve.tables.len() + 1);
    watch.finish(py, done, done)?;
    Ok(curve)
}

/// The curve of `index`, measured if there is none that speaks for it.
pub(crate) fn curve(
    index: &Inner,
    num_threads: Option<NonZeroUsize>,
    py: Python<'_>,
) -> PyResult<Arc<Curve>> {
    // Without a lock, and without letting others run, where there is one.
    if let Some(curve) = index.curve() {
        return Ok(curve);
    }
    let threads = Threads::new(num_threads);
    watched(py, index, &mut Watch::new(None), |index, proceed| index.tuned(&threads, proceed))
}

/// Runs `work` without the GIL, as a change of `index`, so that a signal handler that asks the same does not wait for
/// itself.
fn watched(
    py: Python<'_>,
    index: &Inner,
    watch: &mut Watch,
    work: impl FnOnce(
        &Inner,
        &mut dyn FnMut(usize, usize) -> ControlFlow<()>,
    ) -> Result<Arc<Curve>, CalibrateError>
    + Send,
) -> PyResult<Arc<Curve>> {
    let done = py.detach(|| {
        let mut proceed = |done, all| watch.proceed_of(done, all);
        change(index, |index| Ok(work(index, &mut proceed)))
    });
    match done.map_err(|failure| failure.raise(py))? {
        Ok(curve) => Ok(curve),
        Err(CalibrateError::Cancelled) => Err(Failure::Stopped(watch.raised.take()).raise(py)),
        Err(error @ CalibrateError::Vector(_)) => Err(argument(py, "queries", format!("queries: {error}"))),
        Err(error @ CalibrateError::FewQueries { .. }) => Err(argument(py, "queries", error.to_string())),
        Err(error @ CalibrateError::Ks) => Err(argument(py, "k", error.to_string())),
    }
}

/// A curve as a list of dicts, a point each.
pub(crate) fn points<'py>(py: Python<'py>, curve: &Curve) -> PyResult<Bound<'py, PyList>> {
    let points = PyList::empty(py);
    for table in &curve.tables {
        for Point { effort, oversample, recall, low, distances } in &table.points {
            let point = PyDict::new(py);
            point.set_item("k", table.k)?;
            match curve.knob.is_whole() {
                true => point.set_item(curve.knob.name(), *effort as u64)?,
                false => point.set_item(curve.knob.name(), effort)?,
            }
            point.set_item("oversample", oversample)?;
            point.set_item("recall", recall)?;
            point.set_item("recall_low", low)?;
            point.set_item("distances", distances)?;
            points.append(point)?;
        }
    }
    Ok(points)
}

/// An estimate as `lanewise.RecallEstimate`.
pub(crate) fn estimate(py: Python<'_>, estimate: Option<Estimate>) -> PyResult<Bound<'_, PyAny>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let Estimate { recall, low, high, queries } =
        estimate.unwrap_or(Estimate { recall: f64::NAN, low: 0.0, high: 1.0, queries: 0 });
    CLASS.import(py, "lanewise.results", "RecallEstimate")?.call1((recall, low, high, queries))
}
