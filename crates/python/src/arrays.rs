//! What users bring as arrays, turned into what the engine takes, without loss.
//!
//! Anything NumPy can read is read by NumPy first. An array that already is what the engine takes (element type, C order,
//! aligned, native) is lent to it; any other is converted in one pass, which names the first element that does not fit.
//!
//! A lent array is read without the GIL. Python code that changes it meanwhile gets an index or an answer made of
//! whatever was read, but no access outside its memory: sizes are read beforehand and nothing is addressed by an
//! element's value. NumPy itself makes no other promise for its own functions.

use crate::arguments::type_name;
use crate::errors::{argument, dtype as dtype_error};
use lanewise_engine::index::{Dtype, Params, Vectors};
use numpy::{PyArrayDyn, PyArrayMethods, PyReadonlyArrayDyn, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::{PyException, PyMemoryError, PyTypeError};
use pyo3::prelude::*;
use std::fmt::Debug;

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
    Bits(Elements<'py, u8>),
}

/// Elements row after row, lent or our own.
enum Elements<'py, T: numpy::Element> {
    Lent(PyReadonlyArrayDyn<'py, T>),
    Own(Vec<T>),
}

impl<T: numpy::Element> Elements<'_, T> {
    fn as_slice(&self) -> &[T] {
        match self {
            Elements::Lent(array) => array.as_slice().expect("only contiguous arrays are lent"),
            Elements::Own(elements) => elements,
        }
    }
}

impl Batch<'_> {
    pub(crate) fn vectors(&self) -> Vectors<'_> {
        match &self.elements {
            BatchElements::F32(elements) => Vectors::F32(elements.as_slice()),
            BatchElements::I8(elements) => Vectors::I8(elements.as_slice()),
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
        Dtype::F32 => BatchElements::F32(lent_or_own::<F32>(name, &array)?),
        Dtype::I8 => BatchElements::I8(lent_or_own::<I8>(name, &array)?),
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

/// The ids `given`: integers that fit int64, of shape (n,).
///
/// # Errors
/// `DtypeError` and `ArgumentError` if they are not that. That there are as many as vectors is the engine's to check.
pub(crate) fn ids(given: &Bound<'_, PyAny>) -> PyResult<Vec<i64>> {
    let Array { array, boolean } = read("ids", given)?;
    let py = array.py();
    if array.ndim() != 1 {
        let message = format!("ids have shape {}: use (n,), one for each vector", tuple(array.shape()));
        return Err(argument(py, "ids", message));
    }
    if array.is_empty() {
        return Ok(Vec::new());
    }
    if boolean || array.dtype().getattr("kind")?.extract::<char>()? == 'f' {
        let message = "ids must be integers, not floats or bools: convert them with ids.astype(np.int64)";
        return Err(dtype_error(py, "ids", message));
    }
    converted::<Id>("ids", &array)
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
        ('b', _) => Some(
            array
                .call_method1("view", ("uint8",))?
                .call_method1("__ne__", (0,))?
                .call_method1("view", ("uint8",))?,
        ),
        ('f', 2) => Some(array.call_method1("astype", ("float32",))?),
        ('f', 9..) => Some(array.call_method1("astype", ("float64",))?),
        ('f' | 'i' | 'u', _) if array.is_aligned() && dtype.getattr("isnative")?.is_truthy()? => None,
        ('f' | 'i' | 'u', _) => {
            Some(array.call_method1("astype", (dtype.call_method1("newbyteorder", ("=",))?,))?)
        }
        _ => {
            let message = format!("{name} has dtype {dtype}: use an array of floats, integers or bools");
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

fn memory(name: &str, bytes: usize) -> PyErr {
    PyMemoryError::new_err(format!("no memory to convert {name}, {bytes} bytes: give fewer vectors at once"))
}

/// The elements of `array` as `T`'s, lent where they are that already.
fn lent_or_own<'py, T: Target>(
    name: &str,
    array: &Bound<'py, PyUntypedArray>,
) -> PyResult<Elements<'py, T::Out>> {
    if array.cast::<PyArrayDyn<T::Out>>().is_err() {
        return Ok(Elements::Own(converted::<T>(name, array)?));
    }
    let ordered = if array.is_c_contiguous() {
        array.clone().into_any()
    } else {
        array.call_method1("copy", ("C",))?
    };
    let lent = ordered.cast_into::<PyArrayDyn<T::Out>>()?.try_readonly();
    lent.map(Elements::Lent).map_err(|error| {
        argument(
            array.py(),
            name,
            format!("{name} is being changed by another extension ({error}): pass a copy"),
        )
    })
}

/// The elements of `array`, row after row, each converted to `T`'s.
fn converted<T: Target>(name: &str, array: &Bound<'_, PyUntypedArray>) -> PyResult<Vec<T::Out>> {
    macro_rules! try_each {
        ($($source:ty),*) => {
            $(if let Ok(array) = array.cast::<PyArrayDyn<$source>>() {
                return converted_from::<$source, T>(name, array);
            })*
        };
    }
    try_each!(f32, f64, u8, i8, i16, u16, i32, u32, i64, u64);
    let message = format!("{name} has dtype {}: use floats, integers or bools", array.dtype());
    Err(dtype_error(array.py(), name, message))
}

fn converted_from<S: Source, T: Target>(
    name: &str,
    array: &Bound<'_, PyArrayDyn<S>>,
) -> PyResult<Vec<T::Out>> {
    let py = array.py();
    let borrowed = array.try_readonly().map_err(|error| argument(py, name, format!("{name}: {error}")))?;
    let view = borrowed.as_array();
    let result = py.detach(|| {
        let mut all = Vec::new();
        all.try_reserve_exact(view.len()).map_err(|_| None)?;
        for (position, &element) in view.iter().enumerate() {
            all.push(T::of(element).ok_or(Some((position, element)))?);
        }
        Ok(all)
    });
    result.map_err(|unfit: Option<(usize, S)>| {
        let Some((position, element)) = unfit else {
            return memory(name, array.len().saturating_mul(size_of::<T::Out>()));
        };
        let place = match *array.shape() {
            [_, width] => format!("{}, {}", position / width, position % width),
            _ => position.to_string(),
        };
        argument(py, name, format!("{name}[{place}] = {element:?} {}", T::remedy(name, S::FLOAT)))
    })
}

/// Bits, one a byte, packed eight to a byte, vector by vector, the first in the lowest place; or the bytes that are
/// lacking.
fn pack(bits: &[u8], dim: usize) -> Result<Vec<u8>, usize> {
    let bytes = bits.len() / dim * dim.div_ceil(8);
    let mut packed = Vec::new();
    packed.try_reserve_exact(bytes).map_err(|_| bytes)?;
    for vector in bits.chunks_exact(dim) {
        packed.extend(vector.chunks(8).map(|byte| byte.iter().rev().fold(0, |byte, &bit| byte << 1 | bit)));
    }
    Ok(packed)
}

/// An element type that is converted from.
trait Source: numpy::Element + Copy + Debug + Send + Sync {
    const FLOAT: bool;
    /// The same value; floats are rounded to the nearest, which is how embeddings usually become `f32`.
    fn f32(self) -> Option<f32>;
    fn i64(self) -> Option<i64>;
}

macro_rules! integer_source {
    ($($t:ty),*) => {
        $(impl Source for $t {
            const FLOAT: bool = false;
            fn f32(self) -> Option<f32> {
                let size = self.abs_diff(0);
                let digits = <$t>::BITS - size.leading_zeros() - size.trailing_zeros().min(<$t>::BITS - size.leading_zeros());
                (digits <= f32::MANTISSA_DIGITS).then_some(self as f32)
            }
            fn i64(self) -> Option<i64> {
                i64::try_from(self).ok()
            }
        })*
    };
}
integer_source!(i8, u8, i16, u16, i32, u32, i64, u64);

macro_rules! float_source {
    ($($t:ty),*) => {
        $(impl Source for $t {
            const FLOAT: bool = true;
            fn f32(self) -> Option<f32> {
                let rounded = self as f32;
                // What is not finite already is the engine's to refuse, with its own words.
                (rounded.is_finite() || !self.is_finite()).then_some(rounded)
            }
            fn i64(self) -> Option<i64> {
                let whole = self as i64;
                (whole as $t == self).then_some(whole)
            }
        })*
    };
}
float_source!(f32, f64);

/// What elements are converted to.
trait Target {
    type Out: numpy::Element + Copy + Send;
    /// The element, if it can be had without loss.
    fn of<S: Source>(element: S) -> Option<Self::Out>;
    /// The rest of the sentence that starts with the element that does not fit.
    fn remedy(name: &str, float: bool) -> String;
}

struct F32;
struct I8;
/// A byte of packed bits.
struct Byte;
/// One bit, 0 or 1.
struct Bit;
struct Id;

impl Target for F32 {
    type Out = f32;
    fn of<S: Source>(element: S) -> Option<f32> {
        element.f32()
    }
    fn remedy(name: &str, float: bool) -> String {
        if float {
            return "exceeds what f32 holds: scale the vectors down".to_owned();
        }
        format!("has no exact f32: if rounding is fine, use {name}.astype(np.float32)")
    }
}

impl Target for I8 {
    type Out = i8;
    fn of<S: Source>(element: S) -> Option<i8> {
        element.i64()?.try_into().ok()
    }
    fn remedy(name: &str, float: bool) -> String {
        let remedy = if float {
            "scale and round the vectors first, the same way for all".to_owned()
        } else {
            format!(
                "for values 0 to 255 with metric \"l2\" use {name}.astype(np.int16) - 128, for others scale them"
            )
        };
        format!("is not an integer between -128 and 127, which is what dtype \"i8\" holds: {remedy}")
    }
}

impl Target for Byte {
    type Out = u8;
    fn of<S: Source>(element: S) -> Option<u8> {
        element.i64()?.try_into().ok()
    }
    fn remedy(_: &str, _: bool) -> String {
        "is not a byte".to_owned()
    }
}

impl Target for Bit {
    type Out = u8;
    fn of<S: Source>(element: S) -> Option<u8> {
        element.i64().filter(|bit| (0..2).contains(bit)).map(|bit| bit as u8)
    }
    fn remedy(name: &str, _: bool) -> String {
        format!("is not 0 or 1, which is what dtype \"bits\" holds: use a condition such as {name} > 0")
    }
}

impl Target for Id {
    type Out = i64;
    fn of<S: Source>(element: S) -> Option<i64> {
        element.i64()
    }
    fn remedy(_: &str, _: bool) -> String {
        "exceeds int64: use smaller ids".to_owned()
    }
}
