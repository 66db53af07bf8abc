//! How hard a search looks: the keyword arguments that every kind of search takes besides its own.

use crate::arguments;
use crate::filter::Filter;
use lanewise_engine::Threads;
use lanewise_engine::index::Search;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// `ef_search`, `epsilon`, `nprobe`, `oversample` and `num_threads`, as `Index.search` takes them.
pub(crate) struct Effort {
    search: Search<'static>,
    pub(crate) threads: Threads,
}

impl Effort {
    /// What the keyword arguments of the method `call` say.
    ///
    /// # Errors
    /// `TypeError` if there is another one; `DtypeError` and `ArgumentError` if a value is none.
    pub(crate) fn of(call: &str, given: Option<&Bound<'_, PyDict>>) -> PyResult<Effort> {
        let mut search = Search::new(1);
        let mut num_threads = None;
        for (name, value) in given.into_iter().flatten() {
            match name.extract::<String>()?.as_str() {
                "ef_search" => search.ef_search = arguments::ef_search(&value)?,
                "epsilon" => search.epsilon = arguments::epsilon(&value)?,
                "nprobe" => search.nprobe = arguments::nprobe(&value)?,
                "oversample" => search.oversample = arguments::oversample(&value)?,
                "num_threads" => num_threads = arguments::num_threads(&value)?,
                other => {
                    let message = format!("{call}() got an unexpected keyword argument '{other}'");
                    return Err(PyTypeError::new_err(message));
                }
            }
        }
        Ok(Effort { search, threads: Threads::new(num_threads) })
    }

    /// The search for `k` among the vectors of `filter`.
    pub(crate) fn search<'a>(&self, k: usize, filter: Option<&'a Filter>) -> Search<'a> {
        Search { k, filter: filter.map(|filter| &filter.inner), ..self.search }
    }
}
