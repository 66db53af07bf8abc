//! What users bring as arrays: vectors, queries and ids.
//!
//! Anything NumPy can read is read by NumPy first; shapes are checked here, elements in [`convert`](crate::convert).

use crate::arguments::type_name;
use crate::convert::{Bit, Byte, Elements, F32, I8, Id, converted, lent_or_own, memory, pack};
use crate::errors::{argument, dtype as dtype_error};
use lanewise_engine::index::{Dtype, Params, Vectors};
use numpy::{PyArrayDyn, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::{PyException, PyMemoryError, PyTypeError};
use pyo3::prelude::*;

/// Vectors of the index's element type.
pub(crate) struct Batch<'py> {
    elements: BatchElements<'py>,
    /// How many vectors.
    pub(crate) count: usize,
    /// Whether it was one vector of shape (dim,), rather than (n, dim).
    pub(crate) single: bool,
}

enum BatchElements<'py> {
    F32(Elements<'py, f32>),
    I8(Elements<'py, i8>),
    U8(Elements<'py, u8>),
    Bits(Elements<'py, u8>),
}

impl Batch<'_> {
    pub(crate) fn vectors(&self) -> Vectors<'_> {
        match &self.elements {
            BatchElements::F32(elements) => Vectors::F32(elements.as_slice()),
            BatchElements::I8(elements) => Vectors::I8(elements.as_slice()),
            BatchElements::U8(elements) => Vectors::U8(elements.as_slice()),
            BatchElements::Bits(elements) => Vectors::Bits(elements.as_slice()),
        }
    }
}

/// The vectors `given` as argument `name`: shape (dim,) or (n, dim), for bits also (n, ceil(dim / 8)) bytes.
///
/// # Errors
/// `DtypeError` and `ArgumentError`, if they are not that or an element does not convert without loss.
pub(crate) fn vectors<'py>(name: &str, given: &Bound<'py, PyAny>, params: &Params) -> PyResult<Batch<'py>> {
    let Array { array, boolean } = read(name, given)?;
    let py = array.py();
    let dim = params.dim;
    let shape = array.shape();
    let (count, width) = match *shape {
        [width] => (1, width),
        [count, width] => (count, width),
        _ => {
            let message = format!("{name} has shape {}: use ({dim},) or (n, {dim})", tuple(shape));
            return Err(argument(py, name, message));
        }
    };
    if array.is_empty() {
        let message = format!("{name} is empty, of shape {}: give at least one vector", tuple(shape));
        return Err(argument(py, name, message));
    }
    let single = shape.len() == 1;
    let packed = params.dtype == Dtype::Bits
        && width == dim.div_ceil(8)
        && !boolean
        && array.cast::<PyArrayDyn<u8>>().is_ok();
    if width != dim && !packed {
        return Err(argument(py, name, wrong_width(name, params, shape)));
    }
    let elements = match params.dtype {
        Dtype::F32 | Dtype::F16 | Dtype::Bf16 => BatchElements::F32(lent_or_own::<F32>(name, &array)?),
        Dtype::I8 => BatchElements::I8(lent_or_own::<I8>(name, &array)?),
        Dtype::U8 => BatchElements::U8(lent_or_own::<Byte>(name, &array)?),
        Dtype::Bits if packed => BatchElements::Bits(lent_or_own::<Byte>(name, &array)?),
        Dtype::Bits => {
            let bits = converted::<Bit>(name, &array)?;
            BatchElements::Bits(Elements::Own(
                py.detach(|| pack(&bits, dim)).map_err(|bytes| memory(name, bytes))?,
            ))
        }
    };
    Ok(Batch { elements, count, single })
}

/// The ids `given` as argument `name`: integers that fit int64, of shape (n,).
///
/// # Errors
/// `DtypeError` and `ArgumentError` if they are not that. That there are as many as vectors is the engine's to check.
pub(crate) fn ids(name: &str, given: &Bound<'_, PyAny>) -> PyResult<Vec<i64>> {
    ids_of(name, &read(name, given)?)
}

/// Some vectors of an index.
pub(crate) enum Choice {
    /// For each vector whether it is one, 0 or 1.
    Bools(Vec<u8>),
    Ids(Vec<i64>),
}

/// The choice among `len` vectors `given` as argument `name`: bools of shape (len,), or ids.
///
/// # Errors
/// As [`ids`].
pub(crate) fn choice(name: &str, given: &Bound<'_, PyAny>, len: usize) -> PyResult<Choice> {
    let read = read(name, given)?;
    if !read.boolean {
        return ids_of(name, &read).map(Choice::Ids);
    }
    if read.array.shape() != [len] {
        let message = format!(
            "{name} has shape {}: one bool for each of the {len} vectors is needed, in the order of index.ids()",
            tuple(read.array.shape())
        );
        return Err(argument(given.py(), name, message));
    }
    converted::<Byte>(name, &read.array).map(Choice::Bools)
}

fn ids_of(name: &str, Array { array, boolean }: &Array<'_>) -> PyResult<Vec<i64>> {
    let py = array.py();
    if array.ndim() != 1 {
        let message = format!("{name} have shape {}: use (n,), one for each vector", tuple(array.shape()));
        return Err(argument(py, name, message));
    }
    if array.is_empty() {
        return Ok(Vec::new());
    }
    if *boolean || array.dtype().getattr("kind")?.extract::<char>()? == 'f' {
        let message = format!(
            "{name} must be integers that int64 holds, not floats or bools: convert them with ids.astype(np.int64)"
        );
        return Err(dtype_error(py, name, message));
    }
    converted::<Id>(name, array)
}

/// An array of numbers that this module can read: aligned, native.
struct Array<'py> {
    array: Bound<'py, PyUntypedArray>,
    /// Whether it was of bools; they are now bytes 0 and 1.
    boolean: bool,
}

/// Reads `given` by `numpy.asarray`, and brings rare element types to a near common one.
fn read<'py>(name: &str, given: &Bound<'py, PyAny>) -> PyResult<Array<'py>> {
    let py = given.py();
    let np = py.import("numpy")?;
    let array = match given.cast_exact::<PyUntypedArray>() {
        Ok(array) => array.clone(),
        Err(_) => {
            if np.getattr("ma")?.call_method1("is_masked", (given,))?.is_truthy()? {
                let message =
                    format!("{name} has masked elements: drop those vectors, or fill them with x.filled(0)");
                return Err(argument(py, name, message));
            }
            let array =
                np.call_method1("asarray", (given,)).map_err(|error| unreadable(name, given, error))?;
            array.cast_into::<PyUntypedArray>()?
        }
    };
    let dtype = array.dtype();
    let kind: char = dtype.getattr("kind")?.extract()?;
    let bytes: usize = dtype.getattr("itemsize")?.extract()?;
    // Bytes that are neither 0 nor 1 can stand in an array of bools.
    let boolean = kind == 'b';
    let converted = match (kind, bytes) {
        ('b', _) => {
            let set = array.call_method1("view", ("uint8",))?.call_method1("__ne__", (0,))?;
            // Of an array without dimensions NumPy makes a scalar.
            Some(np.call_method1("asarray", (set,))?.call_method1("view", ("uint8",))?)
        }
        ('f', 2) => Some(array.call_method1("astype", ("float32",))?),
        ('f', 9..) => Some(array.call_method1("astype", ("float64",))?),
        ('f' | 'i' | 'u', _) if array.is_aligned() && dtype.getattr("isnative")?.is_truthy()? => None,
        ('f' | 'i' | 'u', _) => {
            Some(array.call_method1("astype", (dtype.call_method1("newbyteorder", ("=",))?,))?)
        }
        _ => {
            let remedy = match (name, kind) {
                ("ids", _) => "use an array of integers",
                ("filter", _) => "use an array of ids or bools, or a function that returns bools",
                (_, 'O') => "convert it to numbers first, with .astype(np.float32) or .to_numpy(np.float32)",
                _ => "use an array of floats, integers or bools",
            };
            let message = format!("{name} has dtype {dtype}: {remedy}");
            return Err(dtype_error(py, name, message));
        }
    };
    let array = converted.map_or(Ok(array), |converted| converted.cast_into::<PyUntypedArray>())?;
    Ok(Array { array, boolean })
}

/// What NumPy could not read is the argument's fault, except for what ends more than this call.
fn unreadable(name: &str, given: &Bound<'_, PyAny>, error: PyErr) -> PyErr {
    let py = given.py();
    if !error.is_instance_of::<PyException>(py) || error.is_instance_of::<PyMemoryError>(py) {
        return error;
    }
    let message =
        format!("{name}, of type {}, cannot be read as an array: {}", type_name(given), error.value(py));
    let raised = if error.is_instance_of::<PyTypeError>(py) {
        dtype_error(py, name, message)
    } else {
        argument(py, name, message)
    };
    raised.set_cause(py, Some(error));
    raised
}

fn wrong_width(name: &str, params: &Params, shape: &[usize]) -> String {
    let Params { dim, dtype, .. } = *params;
    let shape = tuple(shape);
    if dtype != Dtype::Bits {
        return format!("{name} has shape {shape}, but the index has dim={dim}: use ({dim},) or (n, {dim})");
    }
    let bytes = dim.div_ceil(8);
    format!(
        "{name} has shape {shape}, but the index has dim={dim} bits: use ({dim},) or (n, {dim}) with bools or 0 and 1, \
         or uint8 of shape ({bytes},) or (n, {bytes}), packed as by np.packbits(x, axis=-1, bitorder=\"little\")"
    )
}

/// A shape as Python prints it.
fn tuple(shape: &[usize]) -> String {
    match shape {
        [one] => format!("({one},)"),
        _ => format!("({})", shape.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")),
    }
}
