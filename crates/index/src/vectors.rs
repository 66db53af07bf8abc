//! What a vector is: its element type, how two of them are compared, and vectors as users bring them.

use crate::error::VectorError;
use lanewise_kernels::{bf16, f16};
use std::ops::Range;

/// How the difference of two vectors is measured. Smaller is nearer for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Metric {
    /// Squared Euclidean distance: the sum of squared differences.
    L2 = 0,
    /// Negated inner product.
    InnerProduct = 1,
    /// One minus the cosine of the angle, 0 to 2. Vectors of floats are normalised as they enter.
    Cosine = 2,
    /// Count of differing bits.
    Hamming = 3,
    /// One minus the share of common bits among those set in either, 0 to 1; 0 between two vectors without bits.
    Jaccard = 4,
}

/// Element type of the stored vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Dtype {
    /// 32-bit floats.
    F32 = 0,
    /// Signed bytes.
    I8 = 1,
    /// Bits, eight to a byte, the first in the lowest place. The dimension counts bits.
    Bits = 2,
    /// 16-bit floats (IEEE half precision): 11 bits of precision, up to 65504.
    F16 = 3,
    /// 16-bit floats with the exponent of `f32` (bfloat16): 8 bits of precision.
    Bf16 = 4,
    /// Unsigned bytes.
    U8 = 5,
}

impl Metric {
    /// All metrics.
    pub const ALL: [Metric; 5] =
        [Metric::L2, Metric::InnerProduct, Metric::Cosine, Metric::Hamming, Metric::Jaccard];

    /// The name users write.
    pub fn name(self) -> &'static str {
        match self {
            Metric::L2 => "l2",
            Metric::InnerProduct => "ip",
            Metric::Cosine => "cosine",
            Metric::Hamming => "hamming",
            Metric::Jaccard => "jaccard",
        }
    }

    /// Whether it measures bits, and bits alone.
    pub fn of_bits(self) -> bool {
        matches!(self, Metric::Hamming | Metric::Jaccard)
    }
}

impl Dtype {
    /// All element types, in the order of their numbers in files.
    pub const ALL: [Dtype; 6] = [Dtype::F32, Dtype::I8, Dtype::Bits, Dtype::F16, Dtype::Bf16, Dtype::U8];

    /// The name users write.
    pub fn name(self) -> &'static str {
        match self {
            Dtype::F32 => "f32",
            Dtype::I8 => "i8",
            Dtype::Bits => "bits",
            Dtype::F16 => "f16",
            Dtype::Bf16 => "bf16",
            Dtype::U8 => "u8",
        }
    }

    /// Element type of the vectors that users bring: those stored as 16-bit floats come as `f32`.
    pub fn brought(self) -> Dtype {
        if self.is_float() { Dtype::F32 } else { self }
    }

    /// Whether floats of squared norm `norm2` are a normalised vector as 16 bits hold it, as one that comes of another index
    /// is: normalised again it would be rounded again, and change.
    pub(crate) fn is_normalised(self, v: &[f32], norm2: f64) -> bool {
        let (fits, unit_roundoff): (fn(f32) -> bool, f64) = match self {
            Dtype::F16 => (|x| f16::from_f32(x).to_f32() == x, 1.0 / 2048.0),
            Dtype::Bf16 => (|x| bf16::from_f32(x).to_f32() == x, 1.0 / 256.0),
            _ => return false,
        };
        (norm2 - 1.0).abs() <= 2.1 * unit_roundoff && v.iter().all(|&x| fits(x))
    }

    /// Whether elements are floats.
    pub fn is_float(self) -> bool {
        matches!(self, Dtype::F32 | Dtype::F16 | Dtype::Bf16)
    }

    /// Bytes of a stored vector of `dim` dimensions, without padding.
    pub fn vector_bytes(self, dim: usize) -> usize {
        match self {
            Dtype::F32 => dim * 4,
            Dtype::F16 | Dtype::Bf16 => dim * 2,
            Dtype::I8 | Dtype::U8 => dim,
            Dtype::Bits => dim.div_ceil(8),
        }
    }
}

/// Vectors as users bring them: row after row, without gaps.
#[derive(Clone, Copy, Debug)]
pub enum Vectors<'a> {
    /// `dim` floats a vector, for an index of [`Dtype::F32`], [`Dtype::F16`] or [`Dtype::Bf16`].
    F32(&'a [f32]),
    /// `dim` signed bytes a vector.
    I8(&'a [i8]),
    /// `dim` unsigned bytes a vector.
    U8(&'a [u8]),
    /// `dim` bits a vector, in `ceil(dim / 8)` bytes; bits beyond `dim` must be zero.
    Bits(&'a [u8]),
}

impl<'a> Vectors<'a> {
    /// Element type.
    pub fn dtype(&self) -> Dtype {
        match self {
            Vectors::F32(_) => Dtype::F32,
            Vectors::I8(_) => Dtype::I8,
            Vectors::U8(_) => Dtype::U8,
            Vectors::Bits(_) => Dtype::Bits,
        }
    }

    /// Elements of all together; bytes for bits.
    pub fn elements(&self) -> usize {
        match self {
            Vectors::F32(x) => x.len(),
            Vectors::I8(x) => x.len(),
            Vectors::U8(x) | Vectors::Bits(x) => x.len(),
        }
    }

    /// Elements (bytes for bits) of one vector of `dim` dimensions.
    fn width(&self, dim: usize) -> usize {
        if let Vectors::Bits(_) = self { dim.div_ceil(8) } else { dim }
    }

    /// Number of vectors of `dim` dimensions; a part of one at the end does not count.
    pub fn count(&self, dim: usize) -> usize {
        self.elements() / self.width(dim).max(1)
    }

    /// The vectors `range`.
    ///
    /// # Panics
    /// If there are not so many.
    pub fn slice(&self, dim: usize, range: Range<usize>) -> Vectors<'a> {
        let width = self.width(dim);
        let part = range.start * width..range.end * width;
        match self {
            Vectors::F32(x) => Vectors::F32(&x[part]),
            Vectors::I8(x) => Vectors::I8(&x[part]),
            Vectors::U8(x) => Vectors::U8(&x[part]),
            Vectors::Bits(x) => Vectors::Bits(&x[part]),
        }
    }

    /// Checks what a user brought for an index of `dim` dimensions: type, shape and values; the number of vectors.
    /// `norm2` gives the squared norm of floats.
    pub(crate) fn check(
        &self,
        dim: usize,
        dtype: Dtype,
        metric: Metric,
        norm2: impl Fn(&[f32]) -> f32,
    ) -> Result<usize, VectorError> {
        if self.dtype() != dtype.brought() {
            let (got, expected) = (self.dtype().name(), dtype.brought().name());
            return Err(VectorError::Dtype { got, expected });
        }
        let width = self.width(dim);
        if !self.elements().is_multiple_of(width) {
            return Err(VectorError::Shape { elements: self.elements(), width });
        }
        let zero = |row: Option<usize>| row.map_or(Ok(()), |row| Err(VectorError::Zero { row }));
        match *self {
            Vectors::F32(x) => {
                for (row, v) in x.chunks_exact(dim).enumerate() {
                    check_floats(row, v, norm2(v), dtype, metric)?;
                }
            }
            Vectors::I8(x) if metric == Metric::Cosine => {
                zero(x.chunks_exact(dim).position(|v| v.iter().all(|&e| e == 0)))?;
            }
            Vectors::U8(x) if metric == Metric::Cosine => {
                zero(x.chunks_exact(dim).position(|v| v.iter().all(|&e| e == 0)))?;
            }
            Vectors::Bits(x) if !dim.is_multiple_of(8) => {
                let beyond = !0u8 << (dim % 8);
                if let Some(row) = x.chunks_exact(width).position(|v| v[width - 1] & beyond != 0) {
                    return Err(VectorError::BitsBeyondDim { row, dim });
                }
            }
            Vectors::I8(_) | Vectors::U8(_) | Vectors::Bits(_) => {}
        }
        Ok(self.elements() / width)
    }
}

/// The largest finite half.
const F16_MAX: f32 = 65504.0;

fn check_floats(row: usize, v: &[f32], norm2: f32, dtype: Dtype, metric: Metric) -> Result<(), VectorError> {
    // The sum of squares tells in one pass: it is NaN or infinite if any element is, or too large.
    if norm2.is_nan() || norm2 > f32::MAX / 4.0 {
        return Err(match v.iter().position(|e| !e.is_finite()) {
            Some(column) => VectorError::NotFinite { row, column, value: v[column] },
            None => VectorError::TooLarge { row },
        });
    }
    // Cosine's are normalised before they are rounded.
    let rounded = dtype == Dtype::F16 && metric != Metric::Cosine;
    if rounded && let Some(column) = v.iter().position(|e| e.abs() > F16_MAX) {
        return Err(VectorError::BeyondF16 { row, column, value: v[column] });
    }
    // Below this the square underflows and the direction is lost.
    if metric == Metric::Cosine && norm2 < 1e-30 {
        return Err(VectorError::Zero { row });
    }
    Ok(())
}
