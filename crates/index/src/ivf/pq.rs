//! 4-bit product quantization of what a vector adds to its list's centroid (Jégou et al., PAMI 2011; tables in
//! registers after André et al., VLDB 2015).
//!
//! A vector x of a list with centroid c is coded as c + r̂: the dimensions are divided into up to 256 runs, and of
//! each run the nearest of 16 prototypes is kept. Then
//!
//!   ‖q − x‖² ≈ ‖q − c‖² − 2⟨q, r̂⟩ + ⟨x + c, r̂⟩        and        −⟨q, x⟩ ≈ −⟨q, c⟩ − ⟨q, r̂⟩ + bias
//!
//! The first term belongs to the list, the second is a sum of one table for all lists, the third (the *bias*) is stored
//! with the vector. So a query makes its table once, where tables of ‖q − c − r̂‖² would be made for each list.
//!
//! With the bias ⟨c + x̂, r̂⟩ (x̂ = c + r̂) the estimate would be ‖q − x̂‖². Its error, 2⟨q − x̂, x − x̂⟩ − ‖x − x̂‖², is
//! not 0 in the mean over near q: it grows with q's part along x − x̂. The bias here takes half of the vector's own
//! ⟨r, x − x̂⟩ away, as much as is right for a q whose part along r is half of r, which measures best on text (recall of
//! 30 candidates, 20,000 × 384, 96 runs: 0.974; ‖q − x̂‖² 0.952; without any correction 0.935; with all of it 0.862).
//!
//! For inner products the error is −⟨q, x − x̂⟩. Its part along x is ⟨q, x⟩ ⟨x, x − x̂⟩ / ‖x‖²: the bias is the last
//! factor, and a query weighs it by what it expects of the best vectors' ⟨q, x⟩, its product with the nearest centroid
//! (Guo et al., ICML 2020, look for codes where this part is small instead).
//!
//! Tables are rounded to bytes and sums compared as u16, with a step for each query that lets no sum overflow.

use super::centroids::Centroids;
use super::kmeans::{Draws, least, lock};
use crate::executor::Executor;
use crate::vectors::Metric;
use std::ops::Range;
use std::sync::Mutex;

/// Prototypes of a run: four bits.
pub(super) const K: usize = 16;
/// Iterations of a run's clustering.
const ITERATIONS: usize = 12;
/// Up to this many dimensions, runs are fitted to the variances.
const FITTED: usize = 4096;

/// The prototypes, and the range of the biases.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Codebook {
    pub(super) metric: Metric,
    /// Where runs begin; the last end.
    pub(super) bounds: Vec<u32>,
    /// For each dimension its value in each of its run's prototypes.
    pub(super) prototypes: Vec<[f32; K]>,
    /// The bias that is stored as 0, and what a unit of a stored bias is.
    pub(super) least: f32,
    pub(super) unit: f32,
}

/// A query's tables.
#[derive(Clone, Debug, Default)]
pub(super) struct Tables {
    /// 16 bytes a run, as [`Scan`](lanewise_kernels::Scan) wants them.
    pub(super) bytes: Vec<u8>,
    /// What a sum of 0 and a bias of 0 stand for, without the list's own distance; and what a unit of a sum does.
    pub(super) offset: f32,
    pub(super) step: f32,
    /// Sum units of a unit of the stored bias, times 2¹⁶.
    pub(super) factor: u32,
    values: Vec<[f32; K]>,
}

impl Codebook {
    /// Learns `runs` times 16 prototypes from `vectors`, each with the list it belongs to.
    pub(super) fn train(
        centroids: &Centroids,
        vectors: &[f32],
        lists: &[u32],
        runs: usize,
        seed: u64,
        executor: &dyn Executor,
    ) -> Codebook {
        let dim = centroids.dim();
        assert!((1..=dim).contains(&runs) && vectors.len() == lists.len() * dim, "runs, and a list a vector");
        let mut residuals = vectors.to_vec();
        for (residual, &list) in residuals.chunks_exact_mut(dim).zip(lists) {
            residual.iter_mut().zip(centroids.vector(list)).for_each(|(r, c)| *r -= c);
        }
        let bounds = divide(&squares(&residuals, dim), runs);
        let mut prototypes = vec![[0.0; K]; dim];
        let mut rest = prototypes.as_mut_slice();
        let mut parts = Vec::with_capacity(runs);
        for width in bounds.windows(2).map(|w| (w[1] - w[0]) as usize) {
            let (part, after) = rest.split_at_mut(width);
            parts.push(Mutex::new(part));
            rest = after;
        }
        executor.run(runs, &|_, run| {
            let range = bounds[run] as usize..bounds[run + 1] as usize;
            let points: Vec<f32> =
                residuals.chunks_exact(dim).flat_map(|r| r[range.clone()].iter().copied()).collect();
            sixteen(&points, &mut lock(&parts[run]), Draws(seed ^ run as u64));
        });
        drop(parts);
        let mut book = Codebook { metric: centroids.metric(), bounds, prototypes, least: 0.0, unit: 0.0 };
        book.measure(&residuals, lists, centroids);
        book
    }

    /// Sets the range of biases: that of the sample, and half of it on either side for vectors to come.
    fn measure(&mut self, residuals: &[f32], lists: &[u32], centroids: &Centroids) {
        let dim = self.dim();
        let mut codes = vec![0; self.runs()];
        let (mut low, mut high) = (f32::INFINITY, f32::NEG_INFINITY);
        for (residual, &list) in residuals.chunks_exact(dim).zip(lists) {
            let bias = self.encode(residual, centroids.vector(list), &mut codes);
            low = low.min(bias);
            high = high.max(bias);
        }
        let (least, unit) = (low - (high - low) / 2.0, 2.0 * (high - low) / f32::from(u16::MAX));
        // Neither without vectors, nor where sums of squares exceed what `f32` holds.
        if least.is_finite() && unit.is_finite() {
            (self.least, self.unit) = (least, unit);
        }
    }

    pub(super) fn dim(&self) -> usize {
        self.prototypes.len()
    }

    pub(super) fn runs(&self) -> usize {
        self.bounds.len() - 1
    }

    fn run(&self, run: usize) -> Range<usize> {
        self.bounds[run] as usize..self.bounds[run + 1] as usize
    }

    /// The code of each run of `residual`, a vector less its list's centroid; and the vector's bias.
    pub(super) fn encode(&self, residual: &[f32], centroid: &[f32], codes: &mut [u8]) -> f32 {
        assert!(residual.len() == self.dim() && centroid.len() == self.dim() && codes.len() == self.runs());
        let (mut bias, mut product, mut norm) = (0.0, 0.0, f32::MIN_POSITIVE);
        for (run, code) in codes.iter_mut().enumerate() {
            let range = self.run(run);
            let prototypes = &self.prototypes[range.clone()];
            let nearest = nearest(&residual[range.clone()], prototypes).0;
            *code = nearest as u8;
            for ((p, r), c) in prototypes.iter().zip(&residual[range.clone()]).zip(&centroid[range]) {
                bias += (r + 2.0 * c) * p[nearest];
                product += (r + c) * (p[nearest] - r);
                norm += (r + c) * (r + c);
            }
        }
        if self.metric == Metric::InnerProduct { product / norm } else { bias }
    }

    /// What `codes` stand for: r̂.
    #[cfg(test)]
    pub(super) fn decode(&self, codes: &[u8]) -> Vec<f32> {
        let run =
            |(run, &code): (usize, &u8)| self.prototypes[self.run(run)].iter().map(move |p| p[code as usize]);
        codes.iter().enumerate().flat_map(run).collect()
    }

    /// A bias as it is stored. One beyond the range, of a vector unlike the sample, is taken for the range's end: its
    /// estimate is off, not its distance, which comes from the stored vector.
    pub(super) fn stored(&self, bias: f32) -> u16 {
        if self.unit > 0.0 { ((bias - self.least) / self.unit).round() as u16 } else { 0 }
    }

    /// Makes the tables of `query`, whose nearest centroid is at distance `nearest`.
    pub(super) fn prepare(&self, query: &[f32], nearest: f32, tables: &mut Tables) {
        assert_eq!(query.len(), self.dim());
        let ip = self.metric == Metric::InnerProduct;
        let weight = if ip { -1.0 } else { -2.0 };
        // A nearest centroid that points away says nothing of the best vectors.
        let bias_weight = if ip { (-nearest).max(0.0) } else { 1.0 };
        let (lowest, unit) = (self.least * bias_weight, self.unit * bias_weight);
        tables.values.clear();
        let (mut offset, mut total, mut widest) = (0.0f32, 0.0f32, 0.0f32);
        for run in 0..self.runs() {
            let range = self.run(run);
            let mut sums = [0.0f32; K];
            for (q, p) in query[range.clone()].iter().zip(&self.prototypes[range]) {
                sums.iter_mut().zip(p).for_each(|(sum, p)| *sum += q * p);
            }
            sums.iter_mut().for_each(|sum| *sum *= weight);
            let least = least(sums);
            let range = -self::least(sums.map(|sum| -sum)) - least;
            sums.iter_mut().for_each(|sum| *sum -= least);
            offset += least;
            total += range;
            widest = widest.max(range);
            tables.values.push(sums);
        }
        // Each entry is at most 255, and all sums, each rounded up by at most a half for a run, and the bias stay inside
        // 16 bits.
        let sums = f32::from(u16::MAX) - self.runs() as f32;
        let step = (widest / 255.0).max((total + unit * f32::from(u16::MAX)) / sums);
        tables.offset = offset + lowest;
        tables.step = if step.is_finite() && step > 0.0 { step } else { 1.0 };
        tables.factor = (f64::from(unit) / f64::from(tables.step) * 65536.0) as u32;
        let inverse = 1.0 / tables.step;
        tables.bytes.clear();
        // At least 0 and at most 255: beside 2²³ a float's last bits are its integer part, rounded.
        let round = |value: &f32| (value * inverse + 8_388_608.0).to_bits() as u8;
        tables.bytes.extend(tables.values.as_flattened().iter().map(round));
    }
}

/// The mean square of each dimension.
fn squares(vectors: &[f32], dim: usize) -> Vec<f64> {
    let mut sums = vec![0.0; dim];
    for vector in vectors.chunks_exact(dim) {
        sums.iter_mut().zip(vector).for_each(|(sum, &x)| *sum += f64::from(x) * f64::from(x));
    }
    sums
}

/// Bounds of `runs` runs of neighbouring dimensions. A run of w dimensions with 4 bits leaves about 2^(-8/w) of its
/// variance (the rate of a Gaussian); the runs are those whose sum of that is least, by dynamic programming.
pub(super) fn divide(variances: &[f64], runs: usize) -> Vec<u32> {
    let dim = variances.len();
    let even = |run: usize| (run * dim / runs) as u32;
    if dim > FITTED {
        return (0..=runs).map(even).collect();
    }
    let most = (4 * dim.div_ceil(runs)).min(dim);
    let mut sums = vec![0.0; dim + 1];
    for (i, v) in variances.iter().enumerate() {
        sums[i + 1] = sums[i] + v;
    }
    let rates: Vec<f64> = (0..=most).map(|w| (-8.0 / w.max(1) as f64).exp2()).collect();
    // best[end] for the runs so far, and for each number of runs where the last began.
    let mut best = vec![f64::INFINITY; dim + 1];
    best[0] = 0.0;
    let mut began = vec![vec![0u32; dim + 1]; runs];
    for began in &mut began {
        let mut next = vec![f64::INFINITY; dim + 1];
        for end in 1..=dim {
            for (width, rate) in rates.iter().enumerate().take(end.min(most) + 1).skip(1) {
                let start = end - width;
                let cost = best[start] + (sums[end] - sums[start]) * rate;
                if cost < next[end] {
                    next[end] = cost;
                    began[end] = start as u32;
                }
            }
        }
        best = next;
    }
    if !best[dim].is_finite() {
        return (0..=runs).map(even).collect();
    }
    let mut bounds = vec![dim as u32];
    for began in began.iter().rev() {
        bounds.push(began[bounds[bounds.len() - 1] as usize]);
    }
    bounds.reverse();
    bounds
}

/// The nearest prototype of a run, and its squared distance. The place is put into the distance's last bits, so that
/// the least of 16 numbers is both; distances that differ by less than 2⁻¹⁹ of themselves count as equal.
#[inline]
pub(super) fn nearest(run: &[f32], prototypes: &[[f32; K]]) -> (usize, f32) {
    let mut distances = [0.0f32; K];
    for (x, p) in run.iter().zip(prototypes) {
        for (distance, p) in distances.iter_mut().zip(p) {
            let difference = x - p;
            *distance += difference * difference;
        }
    }
    for (place, distance) in distances.iter_mut().enumerate() {
        *distance = f32::from_bits(distance.to_bits() & !15 | place as u32);
    }
    let least = least(distances);
    ((least.to_bits() & 15) as usize, least)
}

/// Fills `prototypes` (a row a dimension) with 16 means of `points`: k-means++ (Arthur & Vassilvitskii, SODA 2007), then
/// Lloyd's iterations. A prototype without points goes to the point that is farthest from its own.
fn sixteen(points: &[f32], prototypes: &mut [[f32; K]], mut draws: Draws) {
    let width = prototypes.len();
    let count = points.len() / width;
    if count == 0 {
        return;
    }
    let put = |prototypes: &mut [[f32; K]], k: usize, point: usize| {
        for (p, &x) in prototypes.iter_mut().zip(&points[point * width..][..width]) {
            p[k] = x;
        }
    };
    let first = draws.below(count);
    (0..K).for_each(|k| put(prototypes, k, first));
    for k in 1..K {
        let costs = points.chunks_exact(width).map(|point| f64::from(nearest(point, prototypes).1));
        let total: f64 = costs.clone().sum();
        let mut left = total * draws.unit();
        let drawn = costs.clone().position(|cost| {
            left -= cost;
            left < 0.0
        });
        // All that follow start there too; the next of them moves on.
        (k..K).for_each(|k| put(prototypes, k, drawn.unwrap_or(first)));
    }
    let mut before = vec![K as u8; count];
    for _ in 0..ITERATIONS {
        let mut sums = vec![[0.0f64; K]; width];
        let mut counts = [0u32; K];
        let mut far = (0, -1.0);
        let mut changed = false;
        for (i, point) in points.chunks_exact(width).enumerate() {
            let (k, cost) = nearest(point, prototypes);
            changed |= before[i] != k as u8;
            before[i] = k as u8;
            counts[k] += 1;
            sums.iter_mut().zip(point).for_each(|(sums, &x)| sums[k] += f64::from(x));
            if cost > far.1 {
                far = (i, cost);
            }
        }
        if !changed {
            break;
        }
        for k in (0..K).filter(|&k| counts[k] > 0) {
            for (p, sums) in prototypes.iter_mut().zip(&sums) {
                p[k] = (sums[k] / f64::from(counts[k])) as f32;
            }
        }
        if let Some(k) = counts.iter().position(|&count| count == 0)
            && far.1 > 0.0
        {
            put(prototypes, k, far.0);
        }
    }
}
