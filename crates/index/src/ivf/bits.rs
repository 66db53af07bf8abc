//! Bits as points of a clustering: nearest by Hamming distance, and a centroid's bit is what most of its vectors have
//! (k-majority, Grana et al., ICCV workshops 2013), which is the mean's rounding and the point of least distance in sum.

use super::kmeans::{Near, Points};
use lanewise_kernels::{Kernels, Rows};
use std::ops::Range;

/// Vectors and centroids of one tile.
const QUERIES: usize = 64;
const PANEL: usize = 1024;

/// A sample of bit vectors to be clustered, `width` bytes each.
pub(super) struct Bits<'a> {
    pub(super) vectors: &'a [u8],
    pub(super) width: usize,
    pub(super) kernels: Kernels,
}

impl Bits<'_> {
    fn row(&self, row: usize) -> &[u8] {
        &self.vectors[row * self.width..][..self.width]
    }
}

/// The nearest of `centroids` for each of `vectors`, both rows of `width` bytes.
pub(super) fn nearest(
    kernels: &Kernels,
    width: usize,
    centroids: &[u8],
    vectors: &[u8],
    distances: &mut Vec<i32>,
    near: &mut [Near],
) {
    for (vectors, near) in vectors.chunks(QUERIES * width).zip(near.chunks_mut(QUERIES)) {
        let mut least = [i32::MAX; QUERIES];
        let queries = Rows::new(vectors, width, near.len(), width);
        for (panel, rows) in centroids.chunks(PANEL * width).enumerate() {
            let count = rows.len() / width;
            distances.clear();
            distances.resize(near.len() * count, 0);
            kernels.hamming_bits.tile(queries, Rows::new(rows, width, count, width), distances);
            for ((distances, near), least) in distances.chunks_exact(count).zip(&mut *near).zip(&mut least) {
                let (list, &distance) =
                    distances.iter().enumerate().min_by_key(|d| d.1).expect("at least one");
                if distance < *least {
                    *least = distance;
                    *near = Near { list: (panel * PANEL + list) as u32, cost: distance as f32 };
                }
            }
        }
    }
}

impl Points for Bits<'_> {
    type Element = u8;
    type Ready = Vec<u8>;
    type Scratch = Vec<i32>;

    fn len(&self) -> usize {
        self.vectors.len() / self.width
    }

    fn width(&self) -> usize {
        self.width
    }

    fn copy(&self, row: usize, centroid: &mut [u8]) {
        centroid.copy_from_slice(self.row(row));
    }

    /// Where half the vectors have a bit, it stays as it is.
    fn average(&self, members: &[u32], centroid: &mut [u8]) {
        let mut counts = vec![[0u32; 8]; self.width];
        for &row in members {
            for (counts, &byte) in counts.iter_mut().zip(self.row(row as usize)) {
                for (bit, count) in counts.iter_mut().enumerate() {
                    *count += u32::from(byte >> bit & 1);
                }
            }
        }
        let half = members.len() as u32;
        for (byte, counts) in centroid.iter_mut().zip(&counts) {
            for (bit, count) in counts.iter().enumerate() {
                match (2 * count).cmp(&half) {
                    std::cmp::Ordering::Greater => *byte |= 1 << bit,
                    std::cmp::Ordering::Less => *byte &= !(1 << bit),
                    std::cmp::Ordering::Equal => {}
                }
            }
        }
    }

    fn ready(&self, centroids: &[u8]) -> Vec<u8> {
        centroids.to_vec()
    }

    fn nearest(&self, centroids: &Vec<u8>, rows: Range<usize>, distances: &mut Vec<i32>, near: &mut [Near]) {
        let vectors = &self.vectors[rows.start * self.width..rows.end * self.width];
        nearest(&self.kernels, self.width, centroids, vectors, distances, near);
    }
}
