//! From a file's elements to those that an index holds, without loss or with a word about it.
//!
//! The rule depends on the file's element type alone, never on its values, so that vectors and queries of one type
//! always get the same treatment:
//!
//! | file | `f32`, `f16`, `bf16` | `i8` | `u8` | `bits` |
//! |---|---|---|---|---|
//! | floats | as they are (rounded by the index) | if whole numbers, −128 to 127 | if whole numbers, 0 to 255 | – |
//! | signed bytes | same values | as they are | from 0 | – |
//! | unsigned bytes | same values | L2: minus 128, which no difference notices; else up to 127 | as they are | packed, 8 bits each |
//! | truth values | 0.0 and 1.0 | 0 and 1 | 0 and 1 | packed |

use crate::dataset::{Elements, Matrix};
use lanewise_engine::index::{Dtype, Metric, Vectors};
use lanewise_engine::topology::Machine;
use std::fmt;
use std::ops::Range;

/// Vectors in an index's element type.
#[derive(Clone, Debug, PartialEq)]
pub struct VectorSet {
    /// Dimensions of a vector; bits for [`Dtype::Bits`].
    pub dim: usize,
    values: Values,
}

#[derive(Clone, Debug, PartialEq)]
enum Values {
    F32(Vec<f32>),
    I8(Vec<i8>),
    U8(Vec<u8>),
    Bits(Vec<u8>),
}

/// What happened to the values on the way, for the user to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Note {
    /// float64 became float32, and not every value is the same.
    Rounded,
    /// Unsigned bytes are held as signed ones by subtracting 128.
    Shifted,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Note::Rounded => "float64 values were rounded to float32",
            Note::Shifted => {
                "uint8 values are held as int8 by subtracting 128, which leaves every L2 distance as it is"
            }
        })
    }
}

/// Why elements cannot become those that an index holds.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum ConvertError {
    #[error("the file holds wide integers (ids), not vectors: save x.astype('float32')")]
    Ids,
    #[error("{found} do not become bits: use another dtype, or save numpy.packbits(x, axis=1) or booleans")]
    NotBits { found: &'static str },
    #[error(
        "vector {row} has {value} at position {column}, which dtype {dtype} does not hold: scale and round the values \
         to {range} first, or use dtype f32"
    )]
    NotByte { row: usize, column: usize, value: f32, dtype: &'static str, range: &'static str },
    #[error("no memory for {bytes} bytes of vectors: use fewer vectors, or raise the memory limit")]
    Memory { bytes: u64 },
}

impl VectorSet {
    /// Vectors of `dim` floats each.
    ///
    /// # Panics
    /// If `values` is not a whole number of vectors.
    pub fn floats(dim: usize, values: Vec<f32>) -> Self {
        assert!(dim > 0 && values.len().is_multiple_of(dim), "whole vectors");
        VectorSet { dim, values: Values::F32(values) }
    }

    /// The rows of a file as vectors of `dtype` for an index with `metric`, and what happened to their values.
    ///
    /// # Errors
    /// If the elements do not become `dtype`, or there is no memory.
    pub fn of_matrix(
        matrix: Matrix,
        dtype: Dtype,
        metric: Metric,
    ) -> Result<(Self, Option<Note>), ConvertError> {
        let columns = matrix.columns;
        let mut note = matrix.rounded.then_some(Note::Rounded);
        let (dim, values) = match (matrix.elements, dtype.brought()) {
            (Elements::Int(_), _) => return Err(ConvertError::Ids),
            (Elements::F32(_), Dtype::Bits) => return Err(ConvertError::NotBits { found: "floats" }),
            (Elements::I8(_), Dtype::Bits) => return Err(ConvertError::NotBits { found: "signed bytes" }),

            (_, Dtype::F16 | Dtype::Bf16) => unreachable!("brought as f32"),
            (Elements::F32(x), Dtype::F32) => (columns, Values::F32(x)),
            (Elements::I8(x), Dtype::F32) => (columns, Values::F32(map(&x, |e| e.into())?)),
            (Elements::U8(x) | Elements::Bool(x), Dtype::F32) => {
                (columns, Values::F32(map(&x, |e| e.into())?))
            }

            (Elements::F32(x), Dtype::I8) => {
                check(I8, &x, columns, |e| f32::from(e as i8) == e, |e| e)?;
                (columns, Values::I8(map(&x, |e| e as i8)?))
            }
            (Elements::I8(x), Dtype::I8) => (columns, Values::I8(x)),
            (Elements::U8(x), Dtype::I8) if metric == Metric::L2 => {
                note = Some(Note::Shifted);
                // Flipping the highest bit subtracts 128 and reads the rest as signed.
                (columns, Values::I8(map(&x, |e| (e ^ 128) as i8)?))
            }
            (Elements::U8(x) | Elements::Bool(x), Dtype::I8) => {
                check(I8, &x, columns, |e| e <= 127, f32::from)?;
                (columns, Values::I8(map(&x, |e| e as i8)?))
            }

            (Elements::F32(x), Dtype::U8) => {
                check(U8, &x, columns, |e| f32::from(e as u8) == e, |e| e)?;
                (columns, Values::U8(map(&x, |e| e as u8)?))
            }
            (Elements::I8(x), Dtype::U8) => {
                check(U8, &x, columns, |e| e >= 0, f32::from)?;
                (columns, Values::U8(map(&x, |e| e as u8)?))
            }
            (Elements::U8(x) | Elements::Bool(x), Dtype::U8) => (columns, Values::U8(x)),

            (Elements::U8(x), Dtype::Bits) => (columns * 8, Values::Bits(x)),
            (Elements::Bool(x), Dtype::Bits) => (columns, Values::Bits(pack(&x, columns)?)),
        };
        Ok((VectorSet { dim, values }, note))
    }

    /// The vectors, as an index takes them.
    pub fn as_vectors(&self) -> Vectors<'_> {
        match &self.values {
            Values::F32(x) => Vectors::F32(x),
            Values::I8(x) => Vectors::I8(x),
            Values::U8(x) => Vectors::U8(x),
            Values::Bits(x) => Vectors::Bits(x),
        }
    }

    /// The vectors `range`.
    ///
    /// # Panics
    /// If there are not so many.
    pub fn part(&self, range: Range<usize>) -> Vectors<'_> {
        self.as_vectors().slice(self.dim, range)
    }

    /// Number of vectors.
    pub fn len(&self) -> usize {
        self.as_vectors().count(self.dim)
    }

    /// Whether there is no vector.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes the vectors out that `rows` (ascending, each once) names, and closes the gaps.
    ///
    /// # Panics
    /// If a row is not there.
    pub fn take_out(&mut self, rows: &[usize]) -> VectorSet {
        let width = match self.values {
            Values::Bits(_) => self.dim.div_ceil(8),
            Values::F32(_) | Values::I8(_) | Values::U8(_) => self.dim,
        };
        let values = match &mut self.values {
            Values::F32(x) => Values::F32(split_off(x, width, rows)),
            Values::I8(x) => Values::I8(split_off(x, width, rows)),
            Values::U8(x) => Values::U8(split_off(x, width, rows)),
            Values::Bits(x) => Values::Bits(split_off(x, width, rows)),
        };
        VectorSet { dim: self.dim, values }
    }
}

fn split_off<T: Copy>(all: &mut Vec<T>, width: usize, rows: &[usize]) -> Vec<T> {
    assert!(rows.is_sorted_by(|a, b| a < b), "ascending, each once");
    let out: Vec<T> =
        rows.iter().flat_map(|row| all[row * width..(row + 1) * width].iter().copied()).collect();
    let mut rows = rows.iter().peekable();
    let mut kept = 0;
    for row in 0..all.len() / width {
        if rows.next_if_eq(&&row).is_none() {
            all.copy_within(row * width..(row + 1) * width, kept * width);
            kept += 1;
        }
    }
    all.truncate(kept * width);
    out
}

/// Room for `count` elements, or an error where the system would abort the process or kill it later.
fn room<T>(count: usize) -> Result<Vec<T>, ConvertError> {
    let bytes = (count as u64).saturating_mul(size_of::<T>() as u64);
    let fail = || ConvertError::Memory { bytes };
    if Machine::detect().memory_bytes().is_some_and(|there| bytes > there) {
        return Err(fail());
    }
    let mut room = Vec::new();
    room.try_reserve_exact(count).map_err(|_| fail())?;
    Ok(room)
}

fn map<T: Copy, U>(from: &[T], value: impl Fn(T) -> U) -> Result<Vec<U>, ConvertError> {
    let mut to = room(from.len())?;
    to.extend(from.iter().map(|&e| value(e)));
    Ok(to)
}

/// A dtype's name and what it holds, for messages.
type Range8 = (&'static str, &'static str);
const I8: Range8 = ("i8", "−128..=127");
const U8: Range8 = ("u8", "0..=255");

fn check<T: Copy>(
    (dtype, range): Range8,
    all: &[T],
    columns: usize,
    fits: impl Fn(T) -> bool,
    shown: impl Fn(T) -> f32,
) -> Result<(), ConvertError> {
    match all.iter().position(|&e| !fits(e)) {
        None => Ok(()),
        Some(i) => {
            let (row, column, value) = (i / columns, i % columns, shown(all[i]));
            Err(ConvertError::NotByte { row, column, value, dtype, range })
        }
    }
}

/// Eight truth values to a byte, the first in the lowest place; every row starts a byte.
fn pack(truths: &[u8], columns: usize) -> Result<Vec<u8>, ConvertError> {
    let mut packed = room(truths.len() / columns * columns.div_ceil(8))?;
    for row in truths.chunks_exact(columns) {
        packed.extend(row.chunks(8).map(|eight| eight.iter().rev().fold(0, |byte, &bit| byte << 1 | bit)));
    }
    Ok(packed)
}
