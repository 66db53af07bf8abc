//! The stored vectors, and how far a query is from them.
//!
//! Distances are compared as *keys*: `i32`s in the order of the distances, exact for integer types and total for floats,
//! so that equal distances are ordered by id everywhere and every search gives the same answer on every run.

use crate::error::VectorError;
use crate::memory::{Column, FileBytes, Growth, OutOfMemory};
use crate::prefetch::{prefetch, prefetch_rows};
use crate::record::{Region, RowRead};
use crate::vectors::{Dtype, Metric, Vectors};
use half::slice::HalfFloatSliceExt;
use lanewise_kernels::{ALIGN, Kernel, Kernels, Rows, bf16, f16};
use std::ops::Range;
use std::sync::Arc;

/// How candidates are compared with a probe: by the stored vectors ([`Space`]) or by a traversal code.
pub(crate) trait Compare: Sync {
    /// A query, or a member, made ready to be compared.
    type Probe: Default + Send;

    /// Number of members.
    fn len(&self) -> usize;
    /// Keys of the distances between `probe` and each of `ids`, in order.
    fn keys_of(&self, probe: &Self::Probe, ids: &[u32], keys: &mut [i32]);
    /// As `keys_of`, for the members from `first` on.
    fn keys_from(&self, probe: &Self::Probe, first: usize, keys: &mut [i32]);
    /// Asks for what comparing `ids` reads first, so that all of it is on its way at once.
    fn prefetch(&self, ids: &[u32]);
    /// Whether there are so many rows that asking for them early pays.
    fn is_far(&self) -> bool {
        self.len() * self.reads().row >= FAR
    }
    /// The member `id` as a probe.
    fn load(&self, id: u32, probe: &mut Self::Probe);
    /// The distance that has `key`.
    fn distance(&self, key: i32) -> f32;
    /// How distances are measured.
    fn metric(&self) -> Metric;
    /// What comparing a member by its id reads.
    fn reads(&self) -> RowRead;
    /// What comparing a member reads that is one of a sequence, or of a few with gaps that is scanned as one.
    fn scans(&self) -> RowRead {
        self.reads()
    }

    /// How much nearer than to the new vector a neighbour must be to a chosen one to be left out, as a factor on
    /// [`distance`](Self::distance): Vamana's α, squared where distances are squares (L2; cosine, whose distance is half
    /// a square). Negated inner products have no factor that makes sense.
    fn slack(&self, alpha: f32) -> f32 {
        match self.metric() {
            Metric::L2 | Metric::Cosine => alpha * alpha,
            Metric::Hamming | Metric::Jaccard => alpha,
            Metric::InnerProduct => 1.0,
        }
    }

    /// Up to this distance two vectors count as the same.
    fn identical(&self) -> f32 {
        match self.metric() {
            Metric::L2 | Metric::Hamming | Metric::Jaccard => 0.0,
            Metric::Cosine => 1e-6,
            Metric::InnerProduct => f32::NEG_INFINITY,
        }
    }
}

/// Bytes up to which a row counts as short: its norm, on a line of its own, then costs more than to do without.
const SHORT: usize = 256;

/// Bytes of rows from which they are taken to be out of the caches near the core.
const FAR: usize = 32 << 20;

/// The largest dimension of floats; integers have the kernels' exact range.
const DIM_MAX_FLOAT: usize = 65_536;

/// What an index keeps its vectors in and compares them by.
pub(crate) struct Space {
    pub(crate) dtype: Dtype,
    pub(crate) metric: Metric,
    pub(crate) dim: usize,
    kernels: Arc<Kernels>,
    stride: usize,
    count: usize,
    pub(crate) rows: Column<u8>,
    /// i8 and u8 only, what the inner product leaves out: for L2 the squared norm, for cosine the bits of one over the
    /// norm.
    pub(crate) corrections: Column<i32>,
}

/// A vector made ready to be compared with stored ones: padded like a row, normalised if the metric is cosine. Floats of
/// 16 bits are met by floats of 32.
#[derive(Clone, Default)]
pub(crate) struct Probe {
    words: Vec<[u32; ALIGN / 4]>,
    correction: i32,
}

impl Probe {
    fn bytes(&self) -> &[u8] {
        cast(&self.words)
    }

    fn floats(&self) -> &[f32] {
        cast(&self.words)
    }

    /// Room for `bytes`, all zero.
    fn reset(&mut self, bytes: usize) -> &mut [u8] {
        self.words.clear();
        self.words.resize(bytes.div_ceil(ALIGN), [0; ALIGN / 4]);
        // SAFETY: the words as the bytes that they are.
        unsafe { std::slice::from_raw_parts_mut(self.words.as_mut_ptr().cast::<u8>(), bytes) }
    }

    /// As `reset`, as floats.
    fn reset_floats(&mut self, count: usize) -> &mut [f32] {
        self.reset(4 * count);
        // SAFETY: as many initialised words, of the same size and a larger alignment.
        unsafe { std::slice::from_raw_parts_mut(self.words.as_mut_ptr().cast::<f32>(), count) }
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

/// As `typed`, to be written.
fn typed_mut<U: Copy>(bytes: &mut [u8]) -> &mut [U] {
    assert!(bytes.as_ptr().cast::<U>().is_aligned());
    // SAFETY: as for `typed`; the borrow is exclusive.
    unsafe { std::slice::from_raw_parts_mut(bytes.as_mut_ptr().cast(), bytes.len() / size_of::<U>()) }
}

/// Bits as floats, 0 and 1.
fn write_bits(bits: &[u8], to: &mut [f32]) {
    to.iter_mut().enumerate().for_each(|(d, to)| *to = f32::from(bits[d / 8] >> (d % 8) & 1));
}

/// A float's place in the order of all floats.
#[inline]
pub(crate) fn key_of(distance: f32) -> i32 {
    let bits = distance.to_bits() as i32;
    bits ^ ((bits >> 31) as u32 >> 1) as i32
}

/// The float that has `key`.
#[inline]
pub(crate) fn float_of(key: i32) -> f32 {
    f32::from_bits((key ^ ((key >> 31) as u32 >> 1) as i32) as u32)
}

impl Space {
    pub(crate) fn new(
        dtype: Dtype,
        metric: Metric,
        dim: usize,
        kernels: Kernels,
    ) -> Result<Self, VectorError> {
        if (dtype == Dtype::Bits) != metric.of_bits() {
            return Err(VectorError::MetricOfDtype { metric: metric.name(), dtype: dtype.name() });
        }
        let max = match dtype {
            Dtype::F32 | Dtype::F16 | Dtype::Bf16 => DIM_MAX_FLOAT,
            Dtype::I8 => kernels.l2_i8.bound().min(kernels.dot_i8.bound()),
            Dtype::U8 => kernels.l2_u8.bound().min(kernels.dot_u8.bound()),
            Dtype::Bits => kernels.hamming_bits.bound().min(kernels.jaccard_bits.bound()).min(1 << 20),
        };
        if dim == 0 || dim > max {
            return Err(VectorError::Dim { dim, max, dtype: dtype.name() });
        }
        let stride = dtype.vector_bytes(dim).next_multiple_of(ALIGN);
        let (rows, corrections) = (Column::new(), Column::new());
        Ok(Space { dtype, metric, dim, kernels: Arc::new(kernels), stride, count: 0, rows, corrections })
    }

    /// The first `count` vectors, for readers.
    pub(crate) fn view(&self, count: usize) -> Space {
        Space {
            kernels: self.kernels.clone(),
            count,
            rows: self.rows.view(count * self.stride),
            corrections: self.corrections.view(if self.corrected() { count } else { 0 }),
            ..*self
        }
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
        matches!(self.dtype, Dtype::I8 | Dtype::U8) && self.metric != Metric::InnerProduct
    }

    /// Whether gathered rows of bytes are compared by differences instead of by inner products and norms; the keys are the
    /// same.
    #[inline]
    fn by_differences(&self) -> bool {
        self.metric == Metric::L2 && self.stride <= SHORT
    }

    pub(crate) fn kernels(&self) -> &Kernels {
        &self.kernels
    }

    /// Checks what a user brought: type, shape and values.
    pub(crate) fn check(&self, vectors: Vectors<'_>) -> Result<usize, VectorError> {
        vectors.check(self.dim, self.dtype, self.metric, |v| self.kernels.dot_f32.one(v, v))
    }

    /// What [`reserve`](Self::reserve) would take.
    pub(crate) fn growth(&self, more: usize) -> Growth {
        let corrections = if self.corrected() { more } else { 0 };
        self.rows.growth(more.saturating_mul(self.stride)) + self.corrections.growth(corrections)
    }

    /// Makes room for `more` vectors, in our own memory.
    pub(crate) fn reserve(&mut self, more: usize) -> Result<(), OutOfMemory> {
        let bytes = more.checked_mul(self.stride).ok_or(OutOfMemory { bytes: usize::MAX })?;
        self.rows.reserve(bytes)?;
        self.corrections.reserve(if self.corrected() { more } else { 0 })
    }

    /// Appends vectors that were checked and for which room was reserved.
    pub(crate) fn append(&mut self, vectors: Vectors<'_>) {
        let mut probe = Probe::default();
        for row in 0..vectors.count(self.dim) {
            self.prepare(vectors.slice(self.dim, row..row + 1), &mut probe);
            let target = self.rows.extend_slots(self.stride, 0);
            match self.dtype {
                Dtype::F16 => typed_mut::<f16>(target).convert_from_f32_slice(probe.floats()),
                Dtype::Bf16 => typed_mut::<bf16>(target).convert_from_f32_slice(probe.floats()),
                _ => target.copy_from_slice(&probe.bytes()[..self.stride]),
            }
            if self.corrected() {
                self.corrections.push(probe.correction);
            }
            self.count += 1;
        }
    }

    pub(crate) fn truncate(&mut self, count: usize) {
        self.rows.truncate(count * self.stride);
        self.corrections.truncate(if self.corrected() { count } else { 0 });
        self.count = count;
    }

    /// The vectors in `rows` alone, in our own memory, with room for `more`.
    pub(crate) fn keep(&self, rows: &[u32], more: usize) -> Result<Space, OutOfMemory> {
        let mut kept = Space { rows: Column::new(), corrections: Column::new(), ..self.view(0) };
        kept.reserve(rows.len() + more)?;
        for &row in rows {
            kept.rows.extend(&self.rows[row as usize * self.stride..][..self.stride]);
            if self.corrected() {
                kept.corrections.push(self.corrections[row as usize]);
            }
        }
        kept.count = rows.len();
        Ok(kept)
    }

    /// Makes one checked vector ready to be compared.
    pub(crate) fn prepare(&self, vector: Vectors<'_>, probe: &mut Probe) {
        probe.correction = 0;
        match vector {
            Vectors::F32(v) => {
                let floats = probe.reset_floats(self.padded());
                floats[..v.len()].copy_from_slice(v);
                if self.metric == Metric::Cosine {
                    let norm2: f64 = v.iter().map(|&e| f64::from(e) * f64::from(e)).sum();
                    if !self.dtype.is_normalised(v, norm2) {
                        let scale = 1.0 / norm2.sqrt();
                        floats.iter_mut().for_each(|x| *x = (f64::from(*x) * scale) as f32);
                    }
                }
            }
            Vectors::I8(v) => {
                probe.reset(self.stride)[..v.len()].copy_from_slice(cast(v));
                probe.correction = self.correction(self.kernels.dot_i8.one(v, v));
            }
            Vectors::U8(v) => {
                probe.reset(self.stride)[..v.len()].copy_from_slice(v);
                probe.correction = self.correction(self.kernels.dot_u8.one(v, v));
            }
            Vectors::Bits(v) => probe.reset(self.stride)[..v.len()].copy_from_slice(v),
        }
    }

    /// What the inner product leaves out, for a vector of bytes of squared norm `norm2`.
    fn correction(&self, norm2: i32) -> i32 {
        match self.metric {
            Metric::L2 => norm2,
            Metric::Cosine => ((1.0 / f64::from(norm2).sqrt()) as f32).to_bits() as i32,
            _ => 0,
        }
    }

    /// Elements of a row with its padding.
    fn padded(&self) -> usize {
        match self.dtype {
            Dtype::F32 => self.stride / 4,
            Dtype::F16 | Dtype::Bf16 => self.stride / 2,
            Dtype::I8 | Dtype::U8 | Dtype::Bits => self.stride,
        }
    }

    /// The stored vector `id` as floats, `dim` of them, as a user would bring it (normalised if the metric is cosine);
    /// bits are 0 and 1.
    pub(crate) fn floats(&self, id: u32, out: &mut Vec<f32>) {
        out.clear();
        out.resize(self.dim, 0.0);
        self.write_floats(id, out);
    }

    /// As [`floats`](Self::floats), to where there is room for them.
    pub(crate) fn write_floats(&self, id: u32, out: &mut [f32]) {
        let row = &self.rows[id as usize * self.stride..][..self.stride];
        match self.dtype {
            Dtype::F32 => out.copy_from_slice(&typed(row)[..self.dim]),
            Dtype::F16 => typed::<f16>(row)[..self.dim].convert_to_f32_slice(out),
            Dtype::Bf16 => typed::<bf16>(row)[..self.dim].convert_to_f32_slice(out),
            Dtype::I8 => out.iter_mut().zip(typed::<i8>(row)).for_each(|(to, &x)| *to = f32::from(x)),
            Dtype::U8 => out.iter_mut().zip(row).for_each(|(to, &x)| *to = f32::from(x)),
            Dtype::Bits => write_bits(row, out),
        }
        if self.metric == Metric::Cosine && !self.dtype.is_float() {
            let scale = f32::from_bits(self.corrections[id as usize] as u32);
            out.iter_mut().for_each(|x| *x *= scale);
        }
    }

    /// The bytes of the stored vector `id`, without padding.
    pub(crate) fn vector_bytes(&self, id: u32) -> &[u8] {
        &self.rows[id as usize * self.stride..][..self.dtype.vector_bytes(self.dim)]
    }

    /// A query made ready, as floats: normalised if the metric is cosine; bits are 0 and 1.
    pub(crate) fn probe_floats(&self, probe: &Probe, out: &mut Vec<f32>) {
        out.clear();
        match self.dtype {
            Dtype::I8 => out.extend(typed::<i8>(&probe.bytes()[..self.dim]).iter().map(|&x| f32::from(x))),
            Dtype::U8 => out.extend(probe.bytes()[..self.dim].iter().map(|&x| f32::from(x))),
            Dtype::Bits => {
                out.resize(self.dim, 0.0);
                write_bits(probe.bytes(), out);
            }
            _ => out.extend_from_slice(&probe.floats()[..self.dim]),
        }
        if self.metric == Metric::Cosine && !self.dtype.is_float() {
            let scale = f32::from_bits(probe.correction as u32);
            out.iter_mut().for_each(|x| *x *= scale);
        }
    }

    /// Whether two stored vectors are copies of one another.
    pub(crate) fn same(&self, a: u32, b: u32) -> bool {
        let row = |id: u32| &self.rows[id as usize * self.stride..][..self.stride];
        row(a) == row(b)
    }

    /// The stored rows, padding included: it is zero in rows and probes, so the kernels' loops have no tail.
    fn typed_rows<T>(&self) -> Rows<'_, T> {
        Rows::new(&self.rows, self.stride, self.count, self.stride / size_of::<T>())
    }

    /// The kernel that the metric needs over floats; cosine is the inner product of unit vectors.
    #[inline]
    fn float_kernel<'a, R>(
        &'a self,
        l2: &'a Kernel<f32, f32, R>,
        dot: &'a Kernel<f32, f32, R>,
    ) -> &'a Kernel<f32, f32, R> {
        if self.metric == Metric::L2 { l2 } else { dot }
    }

    /// Bytes of a vector in a list: its row, or its bytes with what the inner product leaves out at the end.
    pub(crate) fn list_stride(&self) -> usize {
        if self.corrected() { (self.dim + 4).next_multiple_of(16) } else { self.stride }
    }

    /// Writes the vector `id` as lists hold it.
    pub(crate) fn write_listed(&self, id: u32, to: &mut [u8]) {
        let row = &self.rows[id as usize * self.stride..][..self.stride];
        if !self.corrected() {
            to.copy_from_slice(row);
            return;
        }
        let (bytes, correction) = to.split_at_mut(to.len() - 4);
        bytes.fill(0);
        bytes[..self.dim].copy_from_slice(&row[..self.dim]);
        correction.copy_from_slice(&self.corrections[id as usize].to_le_bytes());
    }

    /// Keys of the distances between `probe` and vectors as lists hold them.
    pub(crate) fn keys_listed(&self, probe: &Probe, listed: &[u8], keys: &mut [i32]) {
        let stride = self.list_stride();
        self.compare(probe, listed, stride, keys);
        self.finish(probe, keys, |i| {
            let end = &listed[(i + 1) * stride - 4..][..4];
            i32::from_le_bytes(end.try_into().expect("four bytes"))
        });
    }

    /// What the kernels give for `probe` and each of `rows`, `stride` bytes apart.
    fn compare(&self, probe: &Probe, rows: &[u8], stride: usize, keys: &mut [i32]) {
        let (bytes, floats, k, count) = (probe.bytes(), probe.floats(), &*self.kernels, keys.len());
        // Rows that end with zeros are compared whole, as no loop has a tail then.
        let width = if stride == self.stride { self.padded() } else { self.dim };
        match self.dtype {
            Dtype::F32 => self.float_kernel(&k.l2_f32, &k.dot_f32).rows(
                floats,
                Rows::new(rows, stride, count, width),
                0,
                as_floats(keys),
            ),
            Dtype::F16 => self.float_kernel(&k.l2_f32f16, &k.dot_f32f16).rows(
                floats,
                Rows::new(rows, stride, count, width),
                0,
                as_floats(keys),
            ),
            Dtype::Bf16 => self.float_kernel(&k.l2_f32bf16, &k.dot_f32bf16).rows(
                floats,
                Rows::new(rows, stride, count, width),
                0,
                as_floats(keys),
            ),
            Dtype::I8 => {
                k.dot_i8.rows(&typed(bytes)[..width], Rows::new(rows, stride, count, width), 0, keys);
            }
            Dtype::U8 => k.dot_u8.rows(&bytes[..width], Rows::new(rows, stride, count, width), 0, keys),
            Dtype::Bits if self.metric == Metric::Jaccard => {
                k.jaccard_bits.rows(bytes, Rows::new(rows, stride, count, width), 0, as_floats(keys));
            }
            Dtype::Bits => k.hamming_bits.rows(bytes, Rows::new(rows, stride, count, width), 0, keys),
        }
    }

    /// Turns what the kernels gave into keys; `correction` gives what an entry's inner product leaves out. Integer sums wrap: values within the checked bounds never do, and a
    /// hostile file's must not end the process.
    #[inline]
    fn finish(&self, probe: &Probe, keys: &mut [i32], correction: impl Fn(usize) -> i32) {
        let bytes = matches!(self.dtype, Dtype::I8 | Dtype::U8);
        match self.metric {
            Metric::L2 if bytes => {
                for (i, key) in keys.iter_mut().enumerate() {
                    let norms = probe.correction.wrapping_add(correction(i));
                    *key = norms.wrapping_sub(key.wrapping_mul(2));
                }
            }
            Metric::Cosine if bytes => {
                let scale = f32::from_bits(probe.correction as u32);
                for (i, key) in keys.iter_mut().enumerate() {
                    let other = f32::from_bits(correction(i) as u32);
                    *key = key_of(-(*key as f32 * (scale * other)));
                }
            }
            Metric::InnerProduct if bytes => keys.iter_mut().for_each(|k| *k = k.wrapping_neg()),
            Metric::L2 | Metric::Jaccard => {
                keys.iter_mut().for_each(|k| *k = key_of(f32::from_bits(*k as u32)))
            }
            Metric::InnerProduct | Metric::Cosine => {
                keys.iter_mut().for_each(|k| *k = key_of(-f32::from_bits(*k as u32)));
            }
            Metric::Hamming => {}
        }
    }

    pub(crate) fn owned_bytes(&self) -> usize {
        self.rows.owned_bytes() + self.corrections.owned_bytes()
    }
}

impl Compare for Space {
    type Probe = Probe;

    fn len(&self) -> usize {
        self.count
    }

    #[inline]
    fn keys_of(&self, probe: &Probe, ids: &[u32], keys: &mut [i32]) {
        let (bytes, floats, k) = (probe.bytes(), probe.floats(), &*self.kernels);
        match self.dtype {
            Dtype::F32 => {
                self.float_kernel(&k.l2_f32, &k.dot_f32).ids(floats, self.typed_rows(), ids, as_floats(keys))
            }
            Dtype::F16 => self.float_kernel(&k.l2_f32f16, &k.dot_f32f16).ids(
                floats,
                self.typed_rows(),
                ids,
                as_floats(keys),
            ),
            Dtype::Bf16 => self.float_kernel(&k.l2_f32bf16, &k.dot_f32bf16).ids(
                floats,
                self.typed_rows(),
                ids,
                as_floats(keys),
            ),
            Dtype::I8 if self.by_differences() => {
                return k.l2_i8.ids(typed(bytes), self.typed_rows(), ids, keys);
            }
            Dtype::U8 if self.by_differences() => return k.l2_u8.ids(bytes, self.typed_rows(), ids, keys),
            Dtype::I8 => k.dot_i8.ids(typed(bytes), self.typed_rows(), ids, keys),
            Dtype::U8 => k.dot_u8.ids(bytes, self.typed_rows(), ids, keys),
            Dtype::Bits if self.metric == Metric::Jaccard => {
                k.jaccard_bits.ids(bytes, self.typed_rows(), ids, as_floats(keys));
            }
            Dtype::Bits => k.hamming_bits.ids(bytes, self.typed_rows(), ids, keys),
        }
        self.finish(probe, keys, |i| self.corrections[ids[i] as usize]);
    }

    /// By the bytes that are stored, but that floats of 16 bits are widened.
    fn keys_from(&self, probe: &Probe, first: usize, keys: &mut [i32]) {
        let rows = &self.rows[first * self.stride..][..keys.len() * self.stride];
        self.compare(probe, rows, self.stride, keys);
        self.finish(probe, keys, |i| self.corrections[first + i]);
    }

    #[inline]
    fn prefetch(&self, ids: &[u32]) {
        prefetch_rows(&self.rows, self.stride, ids);
        if self.reads().norm > 0 {
            ids.iter().for_each(|&id| prefetch(self.corrections.as_ptr().wrapping_add(id as usize)));
        }
    }

    fn load(&self, id: u32, probe: &mut Probe) {
        let row = &self.rows[id as usize * self.stride..][..self.stride];
        match self.dtype {
            Dtype::F16 => typed::<f16>(row).convert_to_f32_slice(probe.reset_floats(self.padded())),
            Dtype::Bf16 => typed::<bf16>(row).convert_to_f32_slice(probe.reset_floats(self.padded())),
            _ => probe.reset(self.stride).copy_from_slice(row),
        }
        probe.correction = if self.corrected() { self.corrections[id as usize] } else { 0 };
    }

    /// The distance that users see.
    fn distance(&self, key: i32) -> f32 {
        match self.metric {
            Metric::Cosine => (1.0 + float_of(key)).clamp(0.0, 2.0),
            Metric::Hamming => key as f32,
            Metric::Jaccard => float_of(key),
            Metric::L2 | Metric::InnerProduct if self.dtype.is_float() => float_of(key),
            Metric::L2 | Metric::InnerProduct => key as f32,
        }
    }

    fn metric(&self) -> Metric {
        self.metric
    }

    #[inline]
    fn reads(&self) -> RowRead {
        let norm = if self.corrected() && !self.by_differences() { 4 } else { 0 };
        RowRead { region: Region::Vectors, row: self.stride, norm }
    }

    fn scans(&self) -> RowRead {
        RowRead { norm: if self.corrected() { 4 } else { 0 }, ..self.reads() }
    }
}

/// Keys as the floats that a float kernel writes in their place.
fn as_floats(keys: &mut [i32]) -> &mut [f32] {
    // SAFETY: same size and alignment, and every bit pattern is a value of both.
    unsafe { std::slice::from_raw_parts_mut(keys.as_mut_ptr().cast(), keys.len()) }
}

#[cfg(test)]
mod tests;
