//! Adding and replacing vectors, and the repair that replacing may bring.

use crate::arrays;
use crate::errors::Failure;
use crate::guard::change;
use crate::index::Index;
use crate::watch::{Bar, Watch};
use lanewise_engine::Threads;
use lanewise_engine::index::AddError;
use pyo3::prelude::*;
use std::num::NonZeroUsize;

/// Adds or replaces vectors. Ids were read before: reading them can run Python code, and none may run once an array is
/// lent.
pub(crate) fn add<'py>(
    this: Bound<'py, Index>,
    x: &Bound<'py, PyAny>,
    ids: Option<Vec<i64>>,
    replace: bool,
    progress: bool,
    num_threads: Option<NonZeroUsize>,
) -> PyResult<Bound<'py, Index>> {
    let py = this.py();
    let index = this.get();
    let batch = arrays::vectors("x", x, &index.params)?;
    let vectors = batch.vectors();
    let mut watch = Watch::new(progress.then(|| Bar::new(py, "adding", "vectors")));
    let result = py.detach(|| {
        change(&index.inner, |inner| {
            let threads = Threads::new(num_threads);
            let proceed = &mut |done| watch.proceed_of(done, batch.count);
            Ok(match &ids {
                Some(ids) if replace => inner.upsert(vectors, ids, &threads, proceed),
                ids => inner.add(vectors, ids.as_deref(), &threads, proceed),
            }?)
        })
    });
    match result {
        Ok(_) => {
            watch.finish(py, batch.count, batch.count)?;
            Ok(this)
        }
        Err(Failure::Add(cancelled @ AddError::Cancelled { added, .. })) => {
            watch.finish(py, added, batch.count)?;
            let raised = Failure::Stopped(watch.raised).raise(py);
            raised.value(py).call_method1("add_note", (cancelled.to_string(),))?;
            Err(raised)
        }
        Err(error) => Err(error.raise(py)),
    }
}

impl Index {
    /// A repair, once it would give memory back.
    pub(crate) fn repair_if_due(&self, py: Python<'_>, num_threads: Option<NonZeroUsize>) -> PyResult<()> {
        if self.inner.repair_due() { self.repair(py, num_threads) } else { Ok(()) }
    }
}
