//! The elements of an array as those that the engine takes, lent or converted, never with loss.
//!
//! An array that already is what the engine takes (element type, C order) is lent to it; any other is converted in one
//! pass, which names the first element that does not fit.
//!
//! A lent array is read without the GIL. Python code that changes it meanwhile gets an index or an answer made of
//! whatever was read, but no access outside its memory: sizes are read beforehand and nothing is addressed by an
//! element's value. NumPy itself makes no other promise for its own functions. Memory cannot be freed under a call either:
//! `resize` refuses while the call holds the array, unless told not to look (`refcheck=False`).

use crate::errors::{argument, dtype as dtype_error};
use numpy::{PyArrayDyn, PyArrayMethods, PyReadonlyArrayDyn, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::PyMemoryError;
use pyo3::prelude::*;
use std::fmt::Debug;

/// Elements row after row, lent or our own.
pub(crate) enum Elements<'py, T: numpy::Element> {
    Lent(PyReadonlyArrayDyn<'py, T>),
    Own(Vec<T>),
}

impl<T: numpy::Element> Elements<'_, T> {
    pub(crate) fn as_slice(&self) -> &[T] {
        match self {
            Elements::Lent(array) => array.as_slice().expect("only contiguous arrays are lent"),
            Elements::Own(elements) => elements,
        }
    }
}

/// What to say when there is no memory to convert argument `name`.
pub(crate) fn memory(name: &str, bytes: usize) -> PyErr {
    PyMemoryError::new_err(format!("no memory to convert {name}, {bytes} bytes: give fewer vectors at once"))
}

/// The elements of `array` as `T`'s, lent where they are that already.
pub(crate) fn lent_or_own<'py, T: Target>(
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
pub(crate) fn converted<T: Target>(name: &str, array: &Bound<'_, PyUntypedArray>) -> PyResult<Vec<T::Out>> {
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
pub(crate) fn pack(bits: &[u8], dim: usize) -> Result<Vec<u8>, usize> {
    let bytes = bits.len() / dim * dim.div_ceil(8);
    let mut packed = Vec::new();
    packed.try_reserve_exact(bytes).map_err(|_| bytes)?;
    for vector in bits.chunks_exact(dim) {
        packed.extend(vector.chunks(8).map(|byte| byte.iter().rev().fold(0, |byte, &bit| byte << 1 | bit)));
    }
    Ok(packed)
}

/// An element type that is converted from.
pub(crate) trait Source: numpy::Element + Copy + Debug + Send + Sync {
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
                let odd = size.checked_shr(size.trailing_zeros()).unwrap_or(0);
                let digits = <$t>::BITS - odd.leading_zeros();
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
pub(crate) trait Target {
    type Out: numpy::Element + Copy + Send;
    /// The element, if it can be had without loss.
    fn of<S: Source>(element: S) -> Option<Self::Out>;
    /// The rest of the sentence that starts with the element that does not fit.
    fn remedy(name: &str, float: bool) -> String;
}

pub(crate) struct F32;
pub(crate) struct I8;
/// An unsigned byte: an element, or eight packed bits.
pub(crate) struct Byte;
/// One bit, 0 or 1.
pub(crate) struct Bit;
pub(crate) struct Id;

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
        "is not an integer between 0 and 255, which is what dtype \"u8\" holds: scale and round the vectors first, the \
         same way for all"
            .to_owned()
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
