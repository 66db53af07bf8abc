//! Plain arguments, checked at the door: one function each, so that every error names its argument.

use crate::errors::{argument, dtype as dtype_error};
use lanewise_engine::index::{Code, Dtype, Kind, Metric};
use pyo3::prelude::*;
use pyo3::types::PyString;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

type Given<'a, 'py> = &'a Bound<'py, PyAny>;

/// More threads than any machine has cores; each costs memory.
const THREADS_MAX: usize = 4096;

pub(crate) fn dim(given: Given<'_, '_>) -> PyResult<usize> {
    integer("dim", given)
}

pub(crate) fn m(given: Given<'_, '_>) -> PyResult<usize> {
    integer("m", given)
}

pub(crate) fn ef_construction(given: Given<'_, '_>) -> PyResult<usize> {
    integer("ef_construction", given)
}

pub(crate) fn nlist(given: Given<'_, '_>) -> PyResult<usize> {
    integer("nlist", given)
}

pub(crate) fn seed(given: Given<'_, '_>) -> PyResult<u64> {
    integer("seed", given)
}

pub(crate) fn n(given: Given<'_, '_>) -> PyResult<usize> {
    integer("n", given)
}

/// Bytes; `None`: no limit.
pub(crate) fn memory_limit(given: Given<'_, '_>) -> PyResult<Option<usize>> {
    if given.is_none() { Ok(None) } else { integer("memory_limit", given).map(Some) }
}

/// Tables; `None`: as many as usual.
pub(crate) fn open_tables(given: Given<'_, '_>) -> PyResult<Option<usize>> {
    if given.is_none() { Ok(None) } else { integer("open_tables", given).map(Some) }
}

pub(crate) fn k(given: Given<'_, '_>) -> PyResult<usize> {
    integer("k", given)
}

pub(crate) fn ef_search(given: Given<'_, '_>) -> PyResult<usize> {
    integer("ef_search", given)
}

pub(crate) fn nprobe(given: Given<'_, '_>) -> PyResult<usize> {
    integer("nprobe", given)
}

pub(crate) fn epsilon(given: Given<'_, '_>) -> PyResult<Option<f32>> {
    number("epsilon", given)
}

pub(crate) fn oversample(given: Given<'_, '_>) -> PyResult<Option<f32>> {
    number("oversample", given)
}

pub(crate) fn radius(given: Given<'_, '_>) -> PyResult<f32> {
    let radius = number("radius", given)?;
    radius.ok_or_else(|| dtype_error(given.py(), "radius", "radius must be a number, not None"))
}

pub(crate) fn limit(given: Given<'_, '_>) -> PyResult<Option<NonZeroUsize>> {
    if given.is_none() { Ok(None) } else { positive("limit", given).map(Some) }
}

pub(crate) fn per_group(given: Given<'_, '_>) -> PyResult<NonZeroUsize> {
    positive("per_group", given)
}

pub(crate) fn segments(given: Given<'_, '_>) -> PyResult<NonZeroUsize> {
    positive("segments", given)
}

pub(crate) fn page_size(given: Given<'_, '_>) -> PyResult<NonZeroUsize> {
    positive("page_size", given)
}

/// An integer of at least one.
fn positive(name: &str, given: Given<'_, '_>) -> PyResult<NonZeroUsize> {
    let value = NonZeroUsize::new(integer(name, given)?);
    value.ok_or_else(|| argument(given.py(), name, format!("{name}=0: use at least 1")))
}

pub(crate) fn target_recall(given: Given<'_, '_>) -> PyResult<Option<f32>> {
    number("target_recall", given)
}

pub(crate) fn rate(given: Given<'_, '_>) -> PyResult<f64> {
    let rate = number("rate", given)?.map(f64::from);
    let inside = rate.filter(|rate| (0.0..=1.0).contains(rate));
    inside
        .ok_or_else(|| argument(given.py(), "rate", "rate is not between 0 and 1: 0.01 is usual, 0 ends it"))
}

pub(crate) fn window(given: Given<'_, '_>) -> PyResult<usize> {
    let window = integer("window", given)?;
    if (1..=1_000_000).contains(&window) {
        return Ok(window);
    }
    Err(argument(
        given.py(),
        "window",
        format!("window={window} is not between 1 and 1000000: 1000 is usual"),
    ))
}

/// Seconds; `None`: no end.
pub(crate) fn timeout(given: Given<'_, '_>) -> PyResult<Option<Duration>> {
    let Some(seconds) = number("timeout", given)? else { return Ok(None) };
    let timeout = Duration::try_from_secs_f64(f64::from(seconds)).map(Some);
    timeout.map_err(|_| {
        let message = format!("timeout={seconds} is no number of seconds: 0.05 is 50 ms, None is no end");
        argument(given.py(), "timeout", message)
    })
}

/// A float, or `None`.
fn number(name: &str, given: Given<'_, '_>) -> PyResult<Option<f32>> {
    if given.is_none() {
        return Ok(None);
    }
    let wrong = || format!("{name} must be a number, not {}", type_name(given));
    given.extract().map(Some).map_err(|_| dtype_error(given.py(), name, wrong()))
}

pub(crate) fn metric(given: Given<'_, '_>) -> PyResult<Option<Metric>> {
    if given.is_none() { Ok(None) } else { named("metric", given, &Metric::ALL, Metric::name).map(Some) }
}

pub(crate) fn dtype(given: Given<'_, '_>) -> PyResult<Dtype> {
    named("dtype", given, &Dtype::ALL, Dtype::name)
}

pub(crate) fn code(given: Given<'_, '_>) -> PyResult<Code> {
    named("code", given, &Code::ALL, Code::name)
}

pub(crate) fn kind(given: Given<'_, '_>) -> PyResult<Kind> {
    named("kind", given, &Kind::ALL, Kind::name)
}

/// How many threads; `None` is left to the engine.
pub(crate) fn num_threads(given: Given<'_, '_>) -> PyResult<Option<NonZeroUsize>> {
    if given.is_none() {
        return Ok(None);
    }
    let count: usize = integer("num_threads", given)?;
    match NonZeroUsize::new(count) {
        Some(count) if count.get() <= THREADS_MAX => Ok(Some(count)),
        _ => Err(argument(
            given.py(),
            "num_threads",
            format!(
                "num_threads={count} is not between 1 and {THREADS_MAX}: leave it out to use what the process may"
            ),
        )),
    }
}

pub(crate) fn progress(given: Given<'_, '_>) -> PyResult<bool> {
    given.extract().map_err(|_| dtype_error(given.py(), "progress", "progress must be True or False"))
}

/// `str` or `os.PathLike`.
pub(crate) fn path(given: Given<'_, '_>) -> PyResult<PathBuf> {
    let py = given.py();
    let path: PathBuf = given.extract().map_err(|_| {
        let message = format!("path must be a str or os.PathLike, not {}", type_name(given));
        dtype_error(py, "path", message)
    })?;
    if path.as_os_str().is_empty() || path.as_os_str().as_encoded_bytes().contains(&0) {
        return Err(argument(py, "path", "path is empty or has a null character: give a file's name"));
    }
    Ok(path)
}

/// Anything with `__index__` (int, NumPy integers), not negative.
fn integer<T: TryFrom<u64>>(name: &str, given: Given<'_, '_>) -> PyResult<T> {
    let py = given.py();
    let index = py
        .import("operator")?
        .call_method1("index", (given,))
        .map_err(|_| dtype_error(py, name, format!("{name} must be an integer, not {}", type_name(given))))?;
    let value = index.extract::<u64>().ok().and_then(|value| T::try_from(value).ok());
    value.ok_or_else(|| {
        let wrong = if index.lt(0).unwrap_or(false) {
            "must not be negative"
        } else {
            "exceeds 64 bits: at most 2**64 - 1"
        };
        argument(py, name, format!("{name}={index} {wrong}"))
    })
}

/// One of `all`, by the name that users write.
fn named<T: Copy>(
    argument_name: &str,
    given: Given<'_, '_>,
    all: &[T],
    name: fn(T) -> &'static str,
) -> PyResult<T> {
    let py = given.py();
    let known = || all.iter().map(|&one| format!("{:?}", name(one))).collect::<Vec<_>>().join(", ");
    let Ok(text) = given.cast::<PyString>() else {
        let message = format!("{argument_name} must be one of {}, not {}", known(), type_name(given));
        return Err(dtype_error(py, argument_name, message));
    };
    let text = text.to_string_lossy();
    all.iter().copied().find(|&one| name(one) == text).ok_or_else(|| {
        argument(py, argument_name, format!("{argument_name}={text:?} is unknown: use one of {}", known()))
    })
}

/// The name of a value's type, for messages.
pub(crate) fn type_name(given: Given<'_, '_>) -> String {
    let name = given.get_type().fully_qualified_name();
    name.map_or_else(|_| "that".to_owned(), |name| name.to_string_lossy().into_owned())
}
