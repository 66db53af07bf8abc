//! `i8`: each dimension in a signed byte, x ≈ o + s·c with one scale s for all dimensions and an offset o for each.
//!
//! L2 is ‖q − o‖² + ‖x̂ − o‖² − 2s·Σ (q − o)·c, with the second norm kept in the row: the exact distance of what the two
//! became, so that errors shrink with the distance itself. Inner products are q·o + s·Σ q·c and keep nothing. A cosine is
//! half of an L2 where the norm finds room in the row's last cache line, else an inner product: rows of 384, 768, 1024
//! dimensions stay whole lines. A query has a scale of its own, which grows with it: none is clipped.
//!
//! Rejected: a scale for each dimension. It makes rows finer where a dimension spreads little, but the query must then
//! carry the squared scales, and its bytes become as much coarser there: the sum of both errors, s²(r² + 1/r²) for a
//! dimension whose scale is r times the common one, is least at r = 1. Where few dimensions outdo the others the vectors
//! are rotated first instead, which makes the common scale the mean and costs the walk nothing.

use super::plain::{byte, dot, most, round};
use super::rotation::Rotation;
use super::{Terms, read_tail, row_bytes, write_tail};
use crate::vectors::Metric;

const MOST: f32 = 127.0;

pub(super) struct Scalar {
    pub(super) rotation: Option<Rotation>,
    pub(super) offset: Vec<f32>,
    pub(super) scale: f32,
    metric: Metric,
    /// What a distance has of the squared norm that rows keep: 1 for L2, ½ for cosine, 0 if they keep none.
    kept: f32,
    /// All offsets are zero.
    centred: bool,
}

impl Scalar {
    pub(super) fn new(metric: Metric, rotation: Option<Rotation>, offset: Vec<f32>, scale: f32) -> Self {
        let centred = offset.iter().all(|&o| o == 0.0);
        let kept = match metric {
            _ if Self::tail(metric, offset.len()) == 0 => 0.0,
            Metric::L2 => 1.0,
            _ => 0.5,
        };
        Scalar { rotation, offset, scale, metric, kept, centred }
    }

    /// Offsets and scale by the squared error that they leave in `sample`, which `rotation` rotates first.
    pub(super) fn train(
        metric: Metric,
        rotation: Option<Rotation>,
        dim: usize,
        mut sample: Vec<f32>,
    ) -> Self {
        if let Some(rotation) = &rotation {
            sample.chunks_exact_mut(dim).for_each(|y| rotation.apply(y));
        }
        let sample = &sample[..];
        let mut fits: Vec<(f64, Vec<f32>, f32)> = Vec::new();
        for offset in [vec![0.0; dim], middles(dim, sample), means(dim, sample)] {
            let reach = sample.chunks_exact(dim).fold(0.0f32, |reach, y| {
                y.iter().zip(&offset).fold(reach, |reach, (y, o)| reach.max((y - o).abs()))
            });
            // What lies beyond is clipped: of bell-shaped data the last few thousandths are not worth their bits.
            for part in [1.0, 0.85, 0.7, 0.6, 0.5, 0.35, 0.25] {
                let scale = (reach * part / MOST).max(f32::MIN_POSITIVE);
                fits.push((squared_error(dim, sample, &offset, scale), offset.clone(), scale));
            }
        }
        let least = fits.iter().map(|fit| fit.0).fold(f64::INFINITY, f64::min);
        // For products an offset of zero lets a stored row be a query as it stands. It is tried first.
        let enough = if Self::tail(metric, dim) == 1 { least } else { 1.5 * least };
        let fit = fits.into_iter().find(|fit| fit.0 <= enough).expect("the least is among them");
        Scalar::new(metric, rotation, fit.1, fit.2)
    }

    /// Floats in a row's tail.
    pub(super) fn tail(metric: Metric, dim: usize) -> usize {
        let room = row_bytes(dim, 1) == row_bytes(dim, 0);
        usize::from(metric == Metric::L2 || metric == Metric::Cosine && room)
    }

    /// Whether rows keep their norms.
    pub(super) fn keeps(&self) -> bool {
        self.kept > 0.0
    }

    fn rotated<'a>(&self, vector: &'a [f32], scratch: &'a mut Vec<f32>) -> &'a [f32] {
        let Some(rotation) = &self.rotation else { return vector };
        scratch.clear();
        scratch.extend_from_slice(vector);
        rotation.apply(scratch);
        scratch
    }

    /// Whether all of `vector` is within what the bytes reach.
    pub(super) fn encode(&self, vector: &[f32], row: &mut [u8], scratch: &mut Vec<f32>) -> bool {
        let y = self.rotated(vector, scratch);
        row.fill(0);
        let inverse = 1.0 / self.scale;
        let mut outside = false;
        for ((code, y), o) in row.iter_mut().zip(y).zip(&self.offset) {
            let steps = (y - o) * inverse;
            *code = byte(steps.clamp(-MOST, MOST));
            outside |= steps.abs() > MOST + 0.5;
        }
        if self.keeps() {
            let norm = squares(&row[..self.offset.len()]);
            write_tail(row, 0, self.kept * (self.scale * self.scale) * norm);
        }
        !outside
    }

    pub(super) fn prepare(&self, vector: &[f32], query: &mut [u8], scratch: &mut Vec<f32>) -> Terms {
        if !self.keeps() {
            return self.prepare_product(self.rotated(vector, scratch), query);
        }
        scratch.clear();
        scratch.extend_from_slice(vector);
        if let Some(rotation) = &self.rotation {
            rotation.apply(scratch);
        }
        scratch.iter_mut().zip(&self.offset).for_each(|(y, o)| *y -= o);
        let step = self.scale.max(most(scratch) / MOST);
        quantise(scratch, step, query);
        let norm = squares(&query[..scratch.len()]);
        let weight = -2.0 * self.kept;
        Terms { a: self.kept * (step * step) * norm, c: weight * (step * self.scale), ..Terms::default() }
    }

    fn prepare_product(&self, y: &[f32], query: &mut [u8]) -> Terms {
        // Not so small that its inverse is infinite: a query may be zero.
        let step = (most(y) / MOST).max(f32::MIN_POSITIVE);
        quantise(y, step, query);
        Terms { a: self.nearest() - dot(y, &self.offset), c: -step * self.scale, ..Terms::default() }
    }

    /// The key where the inner product is zero.
    fn nearest(&self) -> f32 {
        if self.metric == Metric::Cosine { 1.0 } else { 0.0 }
    }

    pub(super) fn load(&self, row: &[u8], query: &mut [u8], scratch: &mut Vec<f32>) -> Terms {
        let dim = self.offset.len();
        let square = self.scale * self.scale;
        query[..dim].copy_from_slice(&row[..dim]);
        query[dim..].fill(0);
        if self.keeps() {
            return Terms { a: read_tail(row, 0), c: -2.0 * self.kept * square, ..Terms::default() };
        }
        if self.centred {
            return Terms { a: self.nearest(), c: -square, ..Terms::default() };
        }
        scratch.clear();
        scratch.extend(row.iter().zip(&self.offset).map(|(&c, o)| o + self.scale * f32::from(c as i8)));
        self.prepare_product(scratch, query)
    }
}

/// Writes `values` as multiples of `step`, at most 127 of them, and zeros behind them.
fn quantise(values: &[f32], step: f32, query: &mut [u8]) {
    query[values.len()..].fill(0);
    let inverse = 1.0 / step;
    for (q, y) in query.iter_mut().zip(values) {
        *q = byte((y * inverse).clamp(-MOST, MOST));
    }
}

/// The sum of the squares of signed bytes, as the kernel has it.
fn squares(bytes: &[u8]) -> f32 {
    bytes.iter().map(|&c| i32::from(c as i8).pow(2)).sum::<i32>() as f32
}

fn middles(dim: usize, sample: &[f32]) -> Vec<f32> {
    let mut ends = vec![(f32::INFINITY, f32::NEG_INFINITY); dim];
    for y in sample.chunks_exact(dim) {
        for (end, &y) in ends.iter_mut().zip(y) {
            *end = (end.0.min(y), end.1.max(y));
        }
    }
    // Halved first: the ends' sum may exceed what f32 holds.
    ends.iter().map(|(low, high)| low / 2.0 + high / 2.0).collect()
}

/// The mean of each dimension.
pub(super) fn means(dim: usize, sample: &[f32]) -> Vec<f32> {
    let mut sums = vec![0.0f64; dim];
    for y in sample.chunks_exact(dim) {
        sums.iter_mut().zip(y).for_each(|(sum, &y)| *sum += f64::from(y));
    }
    let count = (sample.len() / dim) as f64;
    sums.iter().map(|sum| (sum / count) as f32).collect()
}

fn squared_error(dim: usize, sample: &[f32], offset: &[f32], scale: f32) -> f64 {
    let inverse = 1.0 / scale;
    let error = |y: &[f32]| -> f64 {
        let each = y.iter().zip(offset).map(|(y, o)| {
            let steps = (y - o) * inverse;
            let lost = (steps - round(steps.clamp(-MOST, MOST))) * scale;
            f64::from(lost * lost)
        });
        each.sum()
    };
    // Some hundreds of vectors tell one scale from another.
    let rows = sample.chunks_exact(dim);
    let every = rows.len().div_ceil(512);
    rows.step_by(every).map(error).sum()
}
