//! Vector files: `.npy` (NumPy), `.fvecs`, `.bvecs` and `.ivecs` (TEXMEX, <http://corpus-texmex.irisa.fr>).
//!
//! A file is hostile until checked: nothing is allocated by a length that it claims before that length was compared
//! with the file's own, and every error names the file and the byte where it went wrong.

mod error;
mod npy;
mod source;
mod texmex;
mod write;

pub use error::DatasetError;
pub use write::{whole, write};

use source::Source;
use std::path::Path;

/// The most elements of a row, and so of a record of the TEXMEX formats. Larger ones are numbers read wrongly.
const DIM_MAX: usize = 1 << 20;

/// Elements of a file, row after row.
#[derive(Clone, Debug, PartialEq)]
pub enum Elements {
    /// Floats: `.fvecs`; `.npy` of float32, float16 and, rounded, float64.
    F32(Vec<f32>),
    /// Signed bytes: `.npy` of int8.
    I8(Vec<i8>),
    /// Unsigned bytes: `.bvecs`, `.npy` of uint8.
    U8(Vec<u8>),
    /// Truth values, a byte each, 0 or 1: `.npy` of bool.
    Bool(Vec<u8>),
    /// Wider integers, which serve as ids: `.ivecs`, `.npy` of int32, uint32, int64 and uint64.
    Int(Vec<i64>),
}

/// A matrix as a file holds it.
#[derive(Clone, Debug, PartialEq)]
pub struct Matrix {
    /// Number of rows, at least one.
    pub rows: usize,
    /// Elements of a row, at least one.
    pub columns: usize,
    /// `rows * columns` elements.
    pub elements: Elements,
    /// Whether a float64 was rounded to float32, so that the elements are not quite the file's.
    pub rounded: bool,
}

/// The formats, known by the ends of their names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Npy,
    Fvecs,
    Bvecs,
    Ivecs,
}

impl Format {
    fn of(path: &Path) -> Result<Self, DatasetError> {
        match path.extension().map(|e| e.to_ascii_lowercase()).as_deref().and_then(|e| e.to_str()) {
            Some("npy") => Ok(Format::Npy),
            Some("fvecs") => Ok(Format::Fvecs),
            Some("bvecs") => Ok(Format::Bvecs),
            Some("ivecs") => Ok(Format::Ivecs),
            _ => Err(DatasetError::Extension { path: path.to_owned() }),
        }
    }
}

/// Reads a matrix; the name's end says in which format.
///
/// # Errors
/// If the file cannot be read, is not of the format that its name says, is damaged, empty, or exceeds the memory.
pub fn read(path: &Path) -> Result<Matrix, DatasetError> {
    read_with(path, |shape| match *shape {
        [rows, columns] => Ok((rows, columns)),
        _ => Err("reshape it to (vectors, dimensions)"),
    })
}

/// Reads ids, one per vector: a `.npy` of shape (n,) or (n, 1), or an `.ivecs` of dimension 1, of integers.
///
/// # Errors
/// As [`read`], and if there is more than one column or the elements are not integers.
pub fn read_ids(path: &Path) -> Result<Vec<i64>, DatasetError> {
    let matrix = read_with(path, |shape| match *shape {
        [rows] | [rows, 1] => Ok((rows, 1)),
        _ => Err("ids need the shape (vectors,)"),
    })?;
    let wrong = |what: &str| Err(DatasetError::Use { path: path.to_owned(), what: what.to_owned() });
    match matrix.elements {
        Elements::Int(_) if matrix.columns > 1 => wrong("has several ids a row: give one id per vector"),
        Elements::Int(ids) => Ok(ids),
        _ => wrong("does not hold ids: they must be 32- or 64-bit integers"),
    }
}

/// Reads a matrix of integers, such as the ids of exact neighbours: one row per query, nearest first.
///
/// # Errors
/// As [`read`], and if the elements are not integers.
pub fn read_id_rows(path: &Path) -> Result<(Vec<i64>, usize), DatasetError> {
    let matrix = read(path)?;
    match matrix.elements {
        Elements::Int(ids) => Ok((ids, matrix.columns)),
        _ => Err(DatasetError::Use {
            path: path.to_owned(),
            what: "does not hold ids: they must be 32- or 64-bit integers, one row per query".to_owned(),
        }),
    }
}

/// Rows and columns of a NumPy shape, or why it does not serve.
type Shape = fn(&[usize]) -> Result<(usize, usize), &'static str>;

fn read_with(path: &Path, shape: Shape) -> Result<Matrix, DatasetError> {
    let format = Format::of(path)?;
    let mut source = Source::open(path)?;
    match format {
        Format::Npy => npy::read(&mut source, shape),
        Format::Fvecs => texmex::read(&mut source, f32::from_le_bytes, Elements::F32),
        Format::Bvecs => texmex::read(&mut source, u8::from_le_bytes, Elements::U8),
        Format::Ivecs => texmex::read(&mut source, |b| i64::from(i32::from_le_bytes(b)), Elements::Int),
    }
}
