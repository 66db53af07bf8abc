//! What a vector is and how far apart two are: element type, metric, and their stored form.
//!
//! Distances are compared as *keys*: `i32`s in the order of the distances, exact for integer types and total for floats,
//! so that equal distances are ordered by id everywhere and every search gives the same answer on every run.

use crate::error::VectorError;
use crate::memory::{Column, FileBytes, OutOfMemory};
use lanewise_kernels::{ALIGN, Kernel, Kernels, Rows};
use std::ops::Range;

/// How the difference of two vectors is measured. Smaller is nearer for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Metric {
    /// Squared Euclidean distance: the sum of squared differences.
    L2 = 0,
    /// Negated inner product.
    InnerProduct = 1,
    /// One minus the cosine of the angle, 0 to 2. `f32` vectors are normalised as they enter.
    Cosine = 2,
    /// Count of differing bits.
    Hamming = 3,
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
}

impl Metric {
    /// All metrics.
    pub const ALL: [Metric; 4] = [Metric::L2, Metric::InnerProduct, Metric::Cosine, Metric::Hamming];

    /// The name users write.
    pub fn name(self) -> &'static str {
        match self {
            Metric::L2 => "l2",
            Metric::InnerProduct => "ip",
            Metric::Cosine => "cosine",
            Metric::Hamming => "hamming",
        }
    }
}

impl Dtype {
    /// All element types.
    pub const ALL: [Dtype; 3] = [Dtype::F32, Dtype::I8, Dtype::Bits];

    /// The name users write.
    pub fn name(self) -> &'static str {
        match self {
            Dtype::F32 => "f32",
            Dtype::I8 => "i8",
            Dtype::Bits => "bits",
        }
    }

    /// Bytes of a vector of `dim` dimensions as users bring it.
    pub fn vector_bytes(self, dim: usize) -> usize {
        match self {
            Dtype::F32 => dim * 4,
            Dtype::I8 => dim,
            Dtype::Bits => dim.div_ceil(8),
        }
    }
}

/// Vectors as users bring them: row after row, without gaps.
#[derive(Clone, Copy, Debug)]
pub enum Vectors<'a> {
    /// `dim` floats a vector.
    F32(&'a [f32]),
    /// `dim` signed bytes a vector.
    I8(&'a [i8]),
    /// `dim` bits a vector, in `ceil(dim / 8)` bytes; bits beyond `dim` must be zero.
    Bits(&'a [u8]),
}

impl<'a> Vectors<'a> {
    /// Element type.
    pub fn dtype(&self) -> Dtype {
        match self {
            Vectors::F32(_) => Dtype::F32,
            Vectors::I8(_) => Dtype::I8,
            Vectors::Bits(_) => Dtype::Bits,
        }
    }

    fn elements(&self) -> usize {
        match self {
            Vectors::F32(x) => x.len(),
            Vectors::I8(x) => x.len(),
            Vectors::Bits(x) => x.len(),
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
            Vectors::Bits(x) => Vectors::Bits(&x[part]),
        }
    }
}

/// The largest dimension of each element type: for integers the kernels' exact range, for floats the format's.
const DIM_MAX_F32: usize = 65_536;

/// What an index keeps its vectors in and compares them by.
pub(crate) struct Space {
    pub(crate) dtype: Dtype,
    pub(crate) metric: Metric,
    pub(crate) dim: usize,
    kernels: Kernels,
    stride: usize,
    count: usize,
    pub(crate) rows: Column<u8>,
    /// i8 only, what the inner product leaves out: for L2 the squared norm, for cosine the bits of one over the norm.
    pub(crate) corrections: Column<i32>,
}

/// A vector made ready to be compared with stored ones: padded like a row, normalised if the metric is cosine.
pub(crate) struct Probe {
    words: Vec<[u32; ALIGN / 4]>,
    correction: i32,
}

impl Probe {
    pub(crate) fn new() -> Self {
        Probe { words: Vec::new(), correction: 0 }
    }

    fn bytes(&self) -> &[u8] {
        cast(&self.words)
    }
}

/// Plain numbers read as others of no stricter alignment.
fn cast<T: Copy, U: Copy>(values: &[T]) -> &[U] {
    const { assert!(align_of::<T>() >= align_of::<U>() && size_of::<T>().is_multiple_of(size_of::<U>())) };
    // SAFETY: only used between numbers and arrays of numbers, without padding; alignment and size as asserted.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values) / size_of::<U>()) }
}

/// As `cast`, from bytes known to be aligned.
fn typed<U: Copy>(bytes: &[u8]) -> &[U] {
    assert!(bytes.as_ptr().cast::<U>().is_aligned());
    // SAFETY: used with numbers only; the alignment was just checked, the length rounds down.
    unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast(), bytes.len() / size_of::<U>()) }
}

/// A float's place in the order of all floats.
#[inline]
fn key_of(distance: f32) -> i32 {
    let bits = distance.to_bits() as i32;
    bits ^ ((bits >> 31) as u32 >> 1) as i32
}

/// The float that has `key`.
#[inline]
fn float_of(key: i32) -> f32 {
    f32::from_bits((key ^ ((key >> 31) as u32 >> 1) as i32) as u32)
}

impl Space {
    pub(crate) fn new(
        dtype: Dtype,
        metric: Metric,
        dim: usize,
        kernels: Kernels,
    ) -> Result<Self, VectorError> {
        let fits = (dtype == Dtype::Bits) == (metric == Metric::Hamming);
        if !fits {
            return Err(VectorError::MetricOfDtype { metric: metric.name(), dtype: dtype.name() });
        }
        let max = match dtype {
            Dtype::F32 => DIM_MAX_F32,
            Dtype::I8 => kernels.l2_i8.bound().min(kernels.dot_i8.bound()),
            Dtype::Bits => kernels.hamming_bits.bound().min(1 << 20),
        };
        if dim == 0 || dim > max {
            return Err(VectorError::Dim { dim, max, dtype: dtype.name() });
        }
        let stride = dtype.vector_bytes(dim).next_multiple_of(ALIGN);
        let (rows, corrections) = (Column::new(), Column::new());
        Ok(Space { dtype, metric, dim, kernels, stride, count: 0, rows, corrections })
    }

    /// Bytes of the two columns for `count` vectors: rows and corrections. `None` if too many to count.
    pub(crate) fn stored_bytes(&self, count: usize) -> Option<(usize, usize)> {
        let corrections = if self.corrected() { count.checked_mul(4)? } else { 0 };
        Some((count.checked_mul(self.stride)?, corrections))
    }

    pub(crate) fn map_columns(
        &mut self,
        file: &FileBytes,
        count: usize,
        rows: Range<usize>,
        corrections: Range<usize>,
    ) -> Option<()> {
        self.rows = Column::map(file, rows)?;
        self.corrections = Column::map(file, corrections)?;
        self.count = count;
        Some(())
    }

    fn corrected(&self) -> bool {
        self.dtype == Dtype::I8 && self.metric != Metric::InnerProduct
    }

    pub(crate) fn len(&self) -> usize {
        self.count
    }

    pub(crate) fn kernels(&self) -> &Kernels {
        &self.kernels
    }

    /// Checks what a user brought: type, shape and values.
    pub(crate) fn check(&self, vectors: Vectors<'_>) -> Result<usize, VectorError> {
        if vectors.dtype() != self.dtype {
            return Err(VectorError::Dtype { got: vectors.dtype().name(), expected: self.dtype.name() });
        }
        let width = vectors.width(self.dim);
        if !vectors.elements().is_multiple_of(width) {
            return Err(VectorError::Shape { elements: vectors.elements(), width });
        }
        match vectors {
            Vectors::F32(x) => {
                for (row, v) in x.chunks_exact(self.dim).enumerate() {
                    self.check_floats(row, v)?;
                }
            }
            Vectors::I8(x) if self.metric == Metric::Cosine => {
                if let Some(row) = x.chunks_exact(self.dim).position(|v| v.iter().all(|&e| e == 0)) {
                    return Err(VectorError::Zero { row });
                }
            }
            Vectors::Bits(x) if !self.dim.is_multiple_of(8) => {
                let beyond = !0u8 << (self.dim % 8);
                if let Some(row) = x.chunks_exact(width).position(|v| v[width - 1] & beyond != 0) {
                    return Err(VectorError::BitsBeyondDim { row, dim: self.dim });
                }
            }
            Vectors::I8(_) | Vectors::Bits(_) => {}
        }
        Ok(vectors.elements() / width)
    }

    fn check_floats(&self, row: usize, v: &[f32]) -> Result<(), VectorError> {
        // The sum of squares tells in one pass: it is NaN or infinite if any element is, or too large.
        let norm2: f32 = self.kernels.dot_f32.one(v, v);
        if norm2.is_nan() || norm2 > f32::MAX / 4.0 {
            return Err(match v.iter().position(|e| !e.is_finite()) {
                Some(column) => VectorError::NotFinite { row, column, value: v[column] },
                None => VectorError::TooLarge { row },
            });
        }
        // Below this the square underflows and the direction is lost.
        if self.metric == Metric::Cosine && norm2 < 1e-30 {
            return Err(VectorError::Zero { row });
        }
        Ok(())
    }

    /// Makes room for `more` vectors, in our own memory.
    pub(crate) fn reserve(&mut self, more: usize) -> Result<(), OutOfMemory> {
        let bytes = more.checked_mul(self.stride).ok_or(OutOfMemory { bytes: usize::MAX })?;
        self.rows.reserve(bytes)?;
        self.corrections.reserve(if self.corrected() { more } else { 0 })
    }

    /// Appends vectors that were checked and for which room was reserved.
    pub(crate) fn append(&mut self, vectors: Vectors<'_>) {
        let mut probe = Probe::new();
        for row in 0..vectors.count(self.dim) {
            self.prepare(vectors.slice(self.dim, row..row + 1), &mut probe);
            self.rows.owned().extend(&probe.bytes()[..self.stride]);
            if self.corrected() {
                self.corrections.owned().push(probe.correction);
            }
            self.count += 1;
        }
    }

    pub(crate) fn truncate(&mut self, count: usize) {
        self.rows.owned().truncate(count * self.stride);
        let corrections = if self.corrected() { count } else { 0 };
        self.corrections.owned().truncate(corrections);
        self.count = count;
    }

    /// Makes one checked vector ready to be compared.
    pub(crate) fn prepare(&self, vector: Vectors<'_>, probe: &mut Probe) {
        probe.words.clear();
        probe.words.resize(self.stride / ALIGN, [0; ALIGN / 4]);
        let bytes: &[u8] = match vector {
            Vectors::F32(v) => cast(v),
            Vectors::I8(v) => cast(v),
            Vectors::Bits(v) => v,
        };
        // SAFETY: the words as the bytes that they are.
        let target =
            unsafe { std::slice::from_raw_parts_mut(probe.words.as_mut_ptr().cast::<u8>(), self.stride) };
        target[..bytes.len()].copy_from_slice(bytes);
        match (vector, self.metric) {
            (Vectors::F32(v), Metric::Cosine) => {
                let norm2: f64 = v.iter().map(|&e| f64::from(e) * f64::from(e)).sum();
                let scale = 1.0 / norm2.sqrt();
                for word in probe.words.as_flattened_mut() {
                    *word = ((f64::from(f32::from_bits(*word)) * scale) as f32).to_bits();
                }
            }
            (Vectors::I8(v), Metric::L2) => probe.correction = self.kernels.dot_i8.one(v, v),
            (Vectors::I8(v), Metric::Cosine) => {
                let norm = f64::from(self.kernels.dot_i8.one(v, v)).sqrt();
                probe.correction = ((1.0 / norm) as f32).to_bits() as i32;
            }
            _ => probe.correction = 0,
        }
    }

    /// The stored vector `id` as a probe, by the bytes that are stored.
    pub(crate) fn load(&self, id: u32, probe: &mut Probe) {
        let start = id as usize * self.stride;
        probe.words.clear();
        let lines = self.rows[start..start + self.stride].chunks_exact(ALIGN);
        probe.words.extend(lines.map(|line| {
            let mut words = [0; ALIGN / 4];
            for (word, bytes) in words.iter_mut().zip(line.chunks_exact(4)) {
                *word = u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
            }
            words
        }));
        probe.correction = if self.corrected() { self.corrections[id as usize] } else { 0 };
    }

    /// The stored rows, padding included: it is zero in rows and probes, so the kernels' loops have no tail.
    fn typed_rows<T>(&self) -> Rows<'_, T> {
        Rows::new(&self.rows, self.stride, self.count, self.stride / size_of::<T>())
    }

    /// The kernel that the metric needs over floats; cosine is the inner product of unit vectors.
    #[inline]
    fn float_kernel(&self) -> &Kernel<f32, f32> {
        if self.metric == Metric::L2 { &self.kernels.l2_f32 } else { &self.kernels.dot_f32 }
    }

    /// Keys of the distances between `probe` and each of `ids`, in order.
    #[inline]
    pub(crate) fn keys_of(&self, probe: &Probe, ids: &[u32], keys: &mut [i32]) {
        let query = probe.bytes();
        match self.dtype {
            Dtype::F32 => {
                self.float_kernel().ids(typed(query), self.typed_rows(), ids, as_floats(keys));
            }
            Dtype::I8 => self.kernels.dot_i8.ids(typed(query), self.typed_rows(), ids, keys),
            Dtype::Bits => self.kernels.hamming_bits.ids(query, self.typed_rows(), ids, keys),
        }
        self.finish(probe, keys, |i| ids[i] as usize);
    }

    /// Keys of the distances between `probe` and the stored vectors `first..first + keys.len()`.
    pub(crate) fn keys_from(&self, probe: &Probe, first: usize, keys: &mut [i32]) {
        let query = probe.bytes();
        match self.dtype {
            Dtype::F32 => {
                self.float_kernel().rows(typed(query), self.typed_rows(), first, as_floats(keys));
            }
            Dtype::I8 => self.kernels.dot_i8.rows(typed(query), self.typed_rows(), first, keys),
            Dtype::Bits => self.kernels.hamming_bits.rows(query, self.typed_rows(), first, keys),
        }
        self.finish(probe, keys, |i| first + i);
    }

    /// Turns what the kernels gave into keys. Integer sums wrap: values within the checked bounds never do, and a
    /// hostile file's must not end the process.
    #[inline]
    fn finish(&self, probe: &Probe, keys: &mut [i32], id: impl Fn(usize) -> usize) {
        match (self.dtype, self.metric) {
            (Dtype::F32, Metric::L2) => keys.iter_mut().for_each(|k| *k = key_of(f32::from_bits(*k as u32))),
            (Dtype::F32, _) => keys.iter_mut().for_each(|k| *k = key_of(-f32::from_bits(*k as u32))),
            (Dtype::I8, Metric::L2) => {
                for (i, key) in keys.iter_mut().enumerate() {
                    let norms = probe.correction.wrapping_add(self.corrections[id(i)]);
                    *key = norms.wrapping_sub(key.wrapping_mul(2));
                }
            }
            (Dtype::I8, Metric::Cosine) => {
                let scale = f32::from_bits(probe.correction as u32);
                for (i, key) in keys.iter_mut().enumerate() {
                    let other = f32::from_bits(self.corrections[id(i)] as u32);
                    *key = key_of(-(*key as f32 * (scale * other)));
                }
            }
            (Dtype::I8, _) => keys.iter_mut().for_each(|k| *k = k.wrapping_neg()),
            (Dtype::Bits, _) => {}
        }
    }

    /// The distance that users see.
    pub(crate) fn distance(&self, key: i32) -> f32 {
        match (self.dtype, self.metric) {
            (Dtype::F32, Metric::L2 | Metric::InnerProduct) => float_of(key),
            (_, Metric::Cosine) => (1.0 + float_of(key)).clamp(0.0, 2.0),
            (Dtype::I8, _) | (Dtype::Bits, _) => key as f32,
            (Dtype::F32, Metric::Hamming) => unreachable!("refused by `new`"),
        }
    }

    /// How much nearer than to the new vector a neighbour must be to a chosen one to be left out, as a factor on
    /// [`distance`](Self::distance): Vamana's α, squared where distances are squares (L2; cosine, whose distance is half
    /// a square). Negated inner products have no factor that makes sense.
    pub(crate) fn slack(&self, alpha: f32) -> f32 {
        match self.metric {
            Metric::L2 | Metric::Cosine => alpha * alpha,
            Metric::Hamming => alpha,
            Metric::InnerProduct => 1.0,
        }
    }

    /// Up to this distance two vectors count as the same.
    pub(crate) fn identical(&self) -> f32 {
        match self.metric {
            Metric::L2 | Metric::Hamming => 0.0,
            Metric::Cosine => 1e-6,
            Metric::InnerProduct => f32::NEG_INFINITY,
        }
    }

    pub(crate) fn owned_bytes(&self) -> usize {
        self.rows.owned_bytes() + self.corrections.owned_bytes()
    }
}

/// Keys as the floats that a float kernel writes in their place.
fn as_floats(keys: &mut [i32]) -> &mut [f32] {
    // SAFETY: same size and alignment, and every bit pattern is a value of both.
    unsafe { std::slice::from_raw_parts_mut(keys.as_mut_ptr().cast(), keys.len()) }
}
