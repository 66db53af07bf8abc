//! Floats as points of a clustering: nearest centroids by tiles of bf16.
//!
//! ‖x − c‖² = ‖x‖² + 2 (‖c‖²/2 − ⟨x, c⟩): the products are a matrix product, which AMX computes seven times as fast in
//! bf16 as anything does in f32, and other instruction sets about as fast (Sapphire Rapids, 64 × 512 × 384: 753
//! against 102 Gflop/s; without AMX 77 to 103). Both sides have the sample's mean subtracted, which changes no distance
//! but leaves bf16's eight bits to what differs. The norms are those of the rounded centroids, so that the only error
//! is a vector's own rounding, the same for all centroids: assignments are exact for vectors moved by 2⁻⁹ of
//! themselves.

use super::kmeans::{self, Near, Points};
use crate::memory::{Column, OutOfMemory};
use lanewise_kernels::{ALIGN, Kernels, Rows, bf16};
use std::ops::Range;

/// Vectors of one tile, and the bytes of centroids and results that should stay in an L2 cache with them.
const QUERIES: usize = 64;
const PANEL_BYTES: usize = 512 << 10;
const PANEL_ROWS: usize = 1024;

/// Vectors as bf16, relative to an origin, with their squared norms; rows end with zeros up to a line.
struct Rounded {
    dim: usize,
    /// Elements of a row.
    wide: usize,
    rows: Column<u8>,
    norms: Vec<f32>,
}

/// Bytes of a vector as bf16.
pub(super) fn row_bytes(dim: usize) -> usize {
    2 * dim.next_multiple_of(ALIGN / 2)
}

/// Bytes that a worker compares vectors with `centroids` centroids in.
pub(super) fn scratch_bytes(dim: usize, centroids: usize) -> usize {
    let panel = (PANEL_BYTES / row_bytes(dim)).clamp(QUERIES, PANEL_ROWS).min(centroids);
    QUERIES * (4 * panel + row_bytes(dim))
}

impl Rounded {
    fn new(dim: usize) -> Self {
        Rounded { dim, wide: dim.next_multiple_of(ALIGN / 2), rows: Column::new(), norms: Vec::new() }
    }

    fn reserve(&mut self, more: usize) -> Result<(), OutOfMemory> {
        self.norms.reserve(more);
        self.rows.reserve(more * 2 * self.wide)
    }

    /// Adds a vector, for which room was reserved.
    fn push(&mut self, vector: &[f32], origin: &[f32]) {
        let bytes = self.rows.extend_slots(2 * self.wide, 0);
        // SAFETY: aligned by whole lines before it, and any bytes are bf16 numbers.
        let (_, row, _) = unsafe { bytes.align_to_mut::<bf16>() };
        self.norms.push(round(vector, origin, row));
    }

    fn clear(&mut self) {
        self.rows.truncate(0);
        self.norms.clear();
    }

    fn len(&self) -> usize {
        self.norms.len()
    }

    fn slice(&self, rows: Range<usize>) -> Rows<'_, bf16> {
        let stride = 2 * self.wide;
        Rows::new(&self.rows[rows.start * stride..rows.end * stride], stride, rows.len(), self.wide)
    }

    fn row(&self, row: usize) -> impl Iterator<Item = f32> + '_ {
        let row = self.slice(row..row + 1).row(0);
        row[..self.dim].iter().map(|x| f32::from_bits(u32::from(x.to_bits()) << 16))
    }
}

/// Centroids, ready to be compared with many vectors.
pub(super) struct Panel {
    kernels: Kernels,
    origin: Vec<f32>,
    centroids: Rounded,
    /// ‖c‖²/2 of the rounded centroids.
    halves: Vec<f32>,
}

/// A worker's memory.
#[derive(Default)]
pub(super) struct Scratch {
    vectors: Option<Rounded>,
    products: Vec<f32>,
}

impl Panel {
    /// `centroids` row after row, compared after `origin` has been subtracted.
    pub(super) fn new(centroids: &[f32], origin: &[f32], kernels: Kernels) -> Result<Self, OutOfMemory> {
        let mut rounded = Rounded::new(origin.len());
        rounded.reserve(centroids.len() / origin.len())?;
        for centroid in centroids.chunks_exact(origin.len()) {
            rounded.push(centroid, origin);
        }
        let halves = rounded.norms.iter().map(|norm| norm / 2.0).collect();
        Ok(Panel { kernels, origin: origin.to_vec(), centroids: rounded, halves })
    }

    /// The nearest centroid for each of `vectors`, which lie row after row.
    pub(super) fn nearest(&self, vectors: &[f32], scratch: &mut Scratch, near: &mut [Near]) {
        let mut rounded = scratch.vectors.take().unwrap_or_else(|| Rounded::new(self.origin.len()));
        let dim = self.origin.len();
        for (vectors, near) in vectors.chunks(QUERIES * dim).zip(near.chunks_mut(QUERIES)) {
            rounded.clear();
            rounded.reserve(near.len()).expect("memory for a few vectors");
            vectors.chunks_exact(dim).for_each(|vector| rounded.push(vector, &self.origin));
            self.nearest_of(&rounded, 0..near.len(), scratch, near);
        }
        scratch.vectors = Some(rounded);
    }

    /// The same for vectors that are rounded already.
    fn nearest_of(&self, vectors: &Rounded, rows: Range<usize>, scratch: &mut Scratch, near: &mut [Near]) {
        let panel = (PANEL_BYTES / (2 * vectors.wide)).clamp(QUERIES, PANEL_ROWS);
        near.fill(Near { list: 0, cost: f32::INFINITY });
        for (first, near) in rows.step_by(QUERIES).zip(near.chunks_mut(QUERIES)) {
            let queries = vectors.slice(first..first + near.len());
            for first in (0..self.centroids.len()).step_by(panel) {
                let end = self.centroids.len().min(first + panel);
                scratch.products.resize(near.len() * (end - first), 0.0);
                self.kernels.dot_bf16.tile(queries, self.centroids.slice(first..end), &mut scratch.products);
                for (near, products) in near.iter_mut().zip(scratch.products.chunks_exact(end - first)) {
                    least(&self.halves[first..end], products, first, near);
                }
            }
            for (near, norm) in near.iter_mut().zip(&vectors.norms[first..]) {
                near.cost = (norm + 2.0 * near.cost).max(0.0);
            }
        }
    }

    /// The squared distance (or, without norms, the inner product) of `query` and each of the centroids `ids`, all
    /// relative to the origin. `row` is memory.
    pub(super) fn compare(
        &self,
        query: &[f32],
        norms: bool,
        ids: &[u32],
        row: &mut Vec<f32>,
        out: &mut [f32],
    ) {
        row.clear();
        row.extend_from_slice(query);
        row.resize(self.centroids.wide, 0.0);
        self.kernels.dot_f32bf16.ids(row, self.centroids.slice(0..self.centroids.len()), ids, out);
        if norms {
            let norm: f32 = self.kernels.dot_f32.one(row, row);
            for (out, &id) in out.iter_mut().zip(ids) {
                *out = norm + 2.0 * (self.halves[id as usize] - *out);
            }
        }
    }
}

/// Makes `near` the first of the least `halves - products`, if that is less than it is.
fn least(halves: &[f32], products: &[f32], first: usize, near: &mut Near) {
    const LANES: usize = 16;
    // Parts are looked at as wholes, and only one that holds something less again.
    const PART: usize = 128;
    for (part, (halves, products)) in halves.chunks(PART).zip(products.chunks(PART)).enumerate() {
        let mut lanes = [f32::INFINITY; LANES];
        let (halves16, halves1) = halves.as_chunks::<LANES>();
        let (products16, products1) = products.as_chunks::<LANES>();
        for (h, p) in halves16.iter().zip(products16) {
            for lane in 0..LANES {
                let value = h[lane] - p[lane];
                lanes[lane] = if value < lanes[lane] { value } else { lanes[lane] };
            }
        }
        for (lane, (h, p)) in lanes.iter_mut().zip(halves1.iter().zip(products1)) {
            *lane = lane.min(h - p);
        }
        let cost = kmeans::least(lanes);
        if cost < near.cost {
            let place = halves.iter().zip(products).position(|(h, p)| h - p == cost).unwrap_or(0);
            *near = Near { list: (first + part * PART + place) as u32, cost };
        }
    }
}

/// `vector - origin` rounded to the nearest bf16; its squared norm after that.
fn round(vector: &[f32], origin: &[f32], row: &mut [bf16]) -> f32 {
    const LANES: usize = 8;
    for ((to, &x), &o) in row.iter_mut().zip(vector).zip(origin) {
        // Finite floats: half a unit of the last place, to even. What rounds to infinity costs infinity, no more.
        let bits = (x - o).to_bits();
        *to = bf16::from_bits(((bits + 0x7fff + (bits >> 16 & 1)) >> 16) as u16);
    }
    let mut sums = [0.0f32; LANES];
    for part in row.chunks_exact(LANES) {
        for (sum, x) in sums.iter_mut().zip(part) {
            let x = f32::from_bits(u32::from(x.to_bits()) << 16);
            *sum += x * x;
        }
    }
    sums.iter().sum()
}

/// The mean of `vectors`, which lie row after row.
pub(super) fn mean(vectors: &[f32], dim: usize) -> Vec<f32> {
    let mut sums = vec![0.0f64; dim];
    for vector in vectors.chunks_exact(dim) {
        sums.iter_mut().zip(vector).for_each(|(sum, &x)| *sum += f64::from(x));
    }
    let count = (vectors.len() / dim).max(1) as f64;
    sums.iter().map(|sum| (sum / count) as f32).collect()
}

/// A sample of vectors to be clustered: as bf16, which is what they are compared as, and what means are good enough of.
pub(super) struct Floats {
    vectors: Rounded,
    /// What is subtracted before vectors are compared: about their mean.
    origin: Vec<f32>,
    /// Whether centroids are unit vectors, as the vectors are.
    unit: bool,
    kernels: Kernels,
}

impl Floats {
    /// A sample of up to `count` vectors.
    pub(super) fn new(
        origin: &[f32],
        unit: bool,
        count: usize,
        kernels: Kernels,
    ) -> Result<Self, OutOfMemory> {
        let mut vectors = Rounded::new(origin.len());
        vectors.reserve(count)?;
        Ok(Floats { vectors, origin: origin.to_vec(), unit, kernels })
    }

    /// Adds one of those for which there is room.
    pub(super) fn push(&mut self, vector: &[f32]) {
        self.vectors.push(vector, &self.origin);
    }
}

impl Points for Floats {
    type Element = f32;
    type Ready = Panel;
    type Scratch = Scratch;

    fn len(&self) -> usize {
        self.vectors.len()
    }

    fn width(&self) -> usize {
        self.origin.len()
    }

    fn copy(&self, row: usize, centroid: &mut [f32]) {
        centroid.copy_from_slice(&self.origin);
        centroid.iter_mut().zip(self.vectors.row(row)).for_each(|(c, x)| *c += x);
    }

    fn average(&self, members: &[u32], centroid: &mut [f32]) {
        centroid.fill(0.0);
        let share = 1.0 / members.len() as f32;
        for &row in members {
            // Shares are added, not vectors: sums of many large ones would leave f32's range.
            centroid.iter_mut().zip(self.vectors.row(row as usize)).for_each(|(c, x)| *c += x * share);
        }
        centroid.iter_mut().zip(&self.origin).for_each(|(c, o)| *c += o);
        if self.unit {
            normalise(centroid);
        }
    }

    fn ready(&self, centroids: &[f32]) -> Panel {
        // Smaller than the centroids, which are there.
        Panel::new(centroids, &self.origin, self.kernels).expect("memory for a copy of the centroids")
    }

    fn nearest(&self, panel: &Panel, rows: Range<usize>, scratch: &mut Scratch, near: &mut [Near]) {
        panel.nearest_of(&self.vectors, rows, scratch, near);
    }
}

/// Makes `vector` a unit vector, if it has a direction.
fn normalise(vector: &mut [f32]) {
    let norm = vector.iter().map(|&x| f64::from(x) * f64::from(x)).sum::<f64>().sqrt();
    if norm > 0.0 {
        vector.iter_mut().for_each(|x| *x = (f64::from(*x) / norm) as f32);
    }
}
