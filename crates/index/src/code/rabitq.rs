//! `i4` and `bits`: RaBitQ (Gao & Long, SIGMOD 2024, arXiv 2405.12497) and its extension to more bits (Gao et al.,
//! arXiv 2409.09913).
//!
//! A vector is centred and rotated, z = R(x − μ); each dimension becomes one of 2 or 16 levels v, evenly spaced around
//! zero: ±1, or u − 7½ with u from 0 to 15. With the factor f = ‖z‖² / ⟨v, z⟩ the row's f·v is z plus an error that is
//! orthogonal to z, and so ⟨f·v, q⟩ is an unbiased estimate of ⟨z, q⟩ whose error depends only on what of q lies across
//! z (theorem 3.2): it shrinks with the distance of the two. A row keeps f, h·‖z‖² (h: 1 for L2, ½ for cosine, whose
//! distance is half of unit vectors' L2, 0 for inner products) and, for bits, f times its count of ones.
//!
//! The query is rotated too. Against 16 levels it has signed bytes, against bits 4-bit numbers in planes, with the best
//! step found as a row's is. What rounding the query adds to its product with itself is taken off the estimate, so that
//! only its product with the difference of the two remains.
//!
//! The centre may be another than the sample's mean (the centroid of a list): whoever has one rotates it once, and hands
//! over differences of rotated vectors.

use super::plain::{byte, dot, most, norm1, round, two_sums};
use super::rotation::Rotation;
use super::{Terms, read_tail, write_tail};
use crate::vectors::Metric;

/// The middle of the 16 levels.
const MIDDLE: f32 = 7.5;

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Levels {
    Two,
    Sixteen,
}

pub(super) struct RaBitQ {
    pub(super) mean: Vec<f32>,
    levels: Levels,
    metric: Metric,
    rotation: Rotation,
    rotated_mean: Vec<f32>,
    dim: usize,
}

impl RaBitQ {
    pub(super) fn new(levels: Levels, metric: Metric, mean: Vec<f32>, seed: u64) -> Self {
        let dim = mean.len();
        let rotation = Rotation::new(dim, seed);
        let mut rotated_mean = mean.clone();
        rotation.apply(&mut rotated_mean);
        RaBitQ { mean, levels, metric, rotation, rotated_mean, dim }
    }

    /// Bytes of the codes alone.
    pub(super) fn bytes(levels: Levels, dim: usize) -> usize {
        match levels {
            Levels::Two => dim.div_ceil(8),
            Levels::Sixteen => dim.div_ceil(2),
        }
    }

    /// Floats in a row's tail.
    pub(super) fn tail(levels: Levels) -> usize {
        match levels {
            Levels::Two => 3,
            Levels::Sixteen => 2,
        }
    }

    /// What a distance has of each squared norm.
    fn half(&self) -> f32 {
        match self.metric {
            Metric::L2 => 1.0,
            Metric::Cosine => 0.5,
            _ => 0.0,
        }
    }

    /// What a distance has of the inner product.
    fn weight(&self) -> f32 {
        if self.metric == Metric::L2 { 2.0 } else { 1.0 }
    }

    pub(super) fn rotate(&self, vector: &[f32], to: &mut Vec<f32>) {
        to.clear();
        to.extend_from_slice(vector);
        self.rotation.apply(to);
    }

    pub(super) fn encode(&self, vector: &[f32], row: &mut [u8], scratch: &mut Vec<f32>) {
        scratch.clear();
        scratch.extend(vector.iter().zip(&self.mean).map(|(x, m)| x - m));
        self.rotation.apply(scratch);
        self.encode_residual(scratch, row);
    }

    /// Encodes the rotated difference of a vector and a centre.
    pub(super) fn encode_residual(&self, z: &[f32], row: &mut [u8]) {
        let norm = dot(z, z);
        row.fill(0);
        let along = match self.levels {
            Levels::Sixteen => {
                let fit = Fit::of(z);
                let half = z.len().div_ceil(2);
                for (byte, z) in row.iter_mut().zip(&z[..half]) {
                    *byte = fit.code(*z) << 4;
                }
                for (byte, z) in row.iter_mut().zip(&z[half..]) {
                    *byte |= fit.code(*z);
                }
                fit.along
            }
            Levels::Two => {
                for (byte, z) in row.iter_mut().zip(z.chunks(8)) {
                    let mut signs = [0; 8];
                    // By their bits: signs are chance, and branches on them would be guessed wrong half of the time.
                    signs.iter_mut().zip(z).for_each(|(sign, &z)| *sign = (!z.to_bits() >> 31) as u8);
                    *byte = gather(u64::from_le_bytes(signs));
                }
                norm1(z)
            }
        };
        let factor = if along > 0.0 { norm / along } else { 0.0 };
        if self.levels == Levels::Two {
            let ones: u32 = row[..z.len().div_ceil(8)].iter().map(|byte| byte.count_ones()).sum();
            write_tail(row, 2, factor * ones as f32);
        }
        write_tail(row, 1, factor);
        write_tail(row, 0, self.half() * norm);
    }

    pub(super) fn prepare(&self, vector: &[f32], query: &mut [u8], scratch: &mut Vec<f32>) -> Terms {
        self.rotate(vector, scratch);
        if self.metric == Metric::InnerProduct {
            let base = -dot(scratch, &self.rotated_mean);
            return Terms { a: base, ..self.prepare_residual(scratch, query) };
        }
        scratch.iter_mut().zip(&self.rotated_mean).for_each(|(z, m)| *z -= m);
        self.prepare_residual(scratch, query)
    }

    /// Prepares the rotated difference of a query and a centre; for inner products the rotated query, and the result
    /// leaves out its product with the centre.
    pub(super) fn prepare_residual(&self, z: &[f32], query: &mut [u8]) -> Terms {
        query.fill(0);
        // `itself`: the product of what the query becomes with what it was.
        let (itself, terms) = match self.levels {
            Levels::Sixteen => self.signed_bytes(z, query),
            Levels::Two => self.planes(z, query),
        };
        Terms { a: self.half() * (2.0 * itself - dot(z, z)), ..terms }
    }

    fn signed_bytes(&self, z: &[f32], query: &mut [u8]) -> (f32, Terms) {
        // Not so small that its inverse is infinite: a query may be its centre.
        let step = (most(z) / 127.0).max(f32::MIN_POSITIVE);
        let inverse = 1.0 / step;
        let (high, low) = query.split_at_mut(query.len() / 2);
        let half = z.len().div_ceil(2);
        // Within what a byte holds: the largest is 127 steps, but for a rounding.
        high.iter_mut().zip(&z[..half]).for_each(|(q, z)| *q = byte(z * inverse));
        low.iter_mut().zip(&z[half..]).for_each(|(q, z)| *q = byte(z * inverse));
        let (sum, itself) = two_sums(z, |z| (round(z * inverse), round(z * inverse) * z));
        (step * itself, self.against_sixteen(step, sum))
    }

    /// The terms of a query of signed bytes whose sum is `sum`, worth `step` each.
    fn against_sixteen(&self, step: f32, sum: f32) -> Terms {
        let weight = self.weight() * step;
        Terms { c: -weight, d: MIDDLE * weight * sum, ..Terms::default() }
    }

    fn planes(&self, z: &[f32], query: &mut [u8]) -> (f32, Terms) {
        let fit = Fit::of(z);
        let step = if fit.levels > 0.0 { fit.along / fit.levels } else { 0.0 };
        let plane = query.len() / 4;
        let mut sum = 0;
        for (i, z) in z.chunks(64).enumerate() {
            let mut numbers = [0; 64];
            numbers.iter_mut().zip(z).for_each(|(u, &z)| *u = fit.code(z));
            sum += numbers.iter().map(|&u| u32::from(u)).sum::<u32>();
            for (j, eight) in numbers.as_chunks::<8>().0[..z.len().div_ceil(8)].iter().enumerate() {
                let eight = u64::from_le_bytes(*eight);
                for p in 0..4 {
                    query[p * plane + 8 * i + j] = gather(eight >> p);
                }
            }
        }
        (step * fit.along, self.against_two(step, sum))
    }

    /// The terms of a query of 4-bit numbers whose sum is `sum`, 7½ less and times `step` each.
    fn against_two(&self, step: f32, sum: u32) -> Terms {
        let weight = self.weight() * step;
        let d = weight * (sum as f32 - MIDDLE * self.dim as f32);
        Terms { c: -2.0 * weight, d, e: 2.0 * MIDDLE * weight, ..Terms::default() }
    }

    pub(super) fn load(&self, row: &[u8], query: &mut [u8], scratch: &mut Vec<f32>) -> Terms {
        if self.metric == Metric::InnerProduct {
            scratch.clear();
            scratch.resize(self.dim, 0.0);
            self.decode_residual(row, scratch);
            scratch.iter_mut().zip(&self.rotated_mean).for_each(|(z, m)| *z += m);
            let base = -dot(scratch, &self.rotated_mean);
            return Terms { a: base, ..self.prepare_residual(scratch, query) };
        }
        let factor = read_tail(row, 1);
        let code = &row[..Self::bytes(self.levels, self.dim)];
        query.fill(0);
        let terms = match self.levels {
            Levels::Sixteen => {
                let (high, low) = query.split_at_mut(query.len() / 2);
                // Twice the levels are odd integers. An odd dimension's last low half is none.
                let last = code.len() - self.dim % 2;
                high.iter_mut()
                    .zip(code)
                    .for_each(|(q, byte)| *q = (byte >> 4).wrapping_mul(2).wrapping_sub(15));
                low.iter_mut()
                    .zip(&code[..last])
                    .for_each(|(q, byte)| *q = (byte & 15).wrapping_mul(2).wrapping_sub(15));
                let sum = |q: &[u8]| q.iter().map(|&q| i32::from(q as i8)).sum::<i32>();
                self.against_sixteen(factor / 2.0, (sum(&high[..code.len()]) + sum(&low[..last])) as f32)
            }
            Levels::Two => {
                let plane = query.len() / 4;
                query.chunks_exact_mut(plane).for_each(|plane| plane[..code.len()].copy_from_slice(code));
                let ones: u32 = code.iter().map(|byte| byte.count_ones()).sum();
                self.against_two(factor / MIDDLE, 15 * ones)
            }
        };
        Terms { a: read_tail(row, 0), ..terms }
    }

    /// f·v of a row.
    pub(super) fn decode_residual(&self, row: &[u8], z: &mut [f32]) {
        let factor = read_tail(row, 1);
        let half = z.len().div_ceil(2);
        for (d, z) in z.iter_mut().enumerate() {
            let v = match self.levels {
                Levels::Two => f32::from(row[d / 8] >> (d % 8) & 1) * 2.0 - 1.0,
                Levels::Sixteen if d < half => f32::from(row[d] >> 4) - MIDDLE,
                Levels::Sixteen => f32::from(row[d - half] & 15) - MIDDLE,
            };
            *z = factor * v;
        }
    }
}

/// Of `z` the number 0 to 15 whose level is nearest, with the levels 1 / `inverse` apart.
#[inline]
fn level(z: f32, inverse: f32) -> f32 {
    round((z * inverse + MIDDLE).clamp(0.0, 15.0))
}

/// The lowest bits of eight bytes as a byte: the product brings the bit of byte i to 56 + i, and nothing else there.
#[inline]
fn gather(eight: u64) -> u8 {
    ((eight & 0x0101_0101_0101_0101).wrapping_mul(0x0102_0408_1020_4080) >> 56) as u8
}

/// How far apart the levels are for a vector z: so that v points along z as well as can be.
struct Fit {
    inverse: f32,
    /// ⟨v, z⟩.
    along: f32,
    /// ⟨v, v⟩.
    levels: f32,
}

impl Fit {
    fn at(z: &[f32], step: f32) -> Fit {
        let inverse = 1.0 / step;
        let (along, levels) = two_sums(z, |z| {
            let v = level(z, inverse) - MIDDLE;
            (v * z, v * v)
        });
        Fit { inverse, along, levels }
    }

    /// The number 0 to 15 of a dimension.
    fn code(&self, z: f32) -> u8 {
        byte((z * self.inverse + MIDDLE).clamp(0.0, 15.0))
    }

    /// The square of the cosine of the angle between v and z, times ‖z‖².
    fn quality(&self) -> f32 {
        self.along * (self.along / self.levels)
    }

    /// Starts at the step that is best for normally distributed numbers (0.335 deviations) or the one that reaches the
    /// largest, whichever serves better, and goes on to the step that is best for the levels found; as Lloyd's
    /// algorithm, this never gets worse.
    fn of(z: &[f32]) -> Fit {
        let reach = most(z);
        // Below this squares underflow.
        if reach < 1e-18 {
            return Fit { inverse: 0.0, along: 0.0, levels: 0.0 };
        }
        let deviation = (dot(z, z) / z.len() as f32).sqrt();
        let mut best = Fit::at(z, reach / MIDDLE);
        let mut step = 0.335 * deviation;
        for _ in 0..3 {
            let fit = Fit::at(z, step);
            if fit.quality() > best.quality() {
                best = fit;
            }
            step = best.along / best.levels;
        }
        best
    }
}
