//! The centroids of the lists: which list a vector belongs to, and which lists a query should probe.
//!
//! A build assigns by tiles (`floats`). A query, or one new vector, compares itself with i8 codes of all centroids
//! first (a quarter of the memory: 1,024 × 384 in 4 instead of 21 µs on Sapphire Rapids), and then, by bf16 rows,
//! with a few more than it needs: every vector's estimate starts from the distance to its centroid.
//!
//! Rejected: a second level over the centroids. At 4,096 × 128 all codes take 9 µs, and every level loses lists.

use super::floats::{self, Panel, Scratch};
use super::kmeans::{BLOCK, Near, least, lock};
use super::scan::Best;
use crate::executor::Executor;
use crate::memory::{Column, OutOfMemory};
use crate::pool::Entry;
use crate::space::key_of;
use crate::vectors::Metric;
use lanewise_kernels::{ALIGN, Kernels, Rows};
use std::ops::ControlFlow;
use std::sync::Mutex;

/// Where vectors of an index come from, whatever they are stored as: floats, of length 1 for cosine.
pub(crate) trait Source: Sync {
    /// Writes vector `row`.
    fn fetch(&self, row: usize, to: &mut [f32]);
}

/// Vectors row after row.
pub(crate) struct Dense<'a> {
    pub(crate) vectors: &'a [f32],
    pub(crate) dim: usize,
}

impl Source for Dense<'_> {
    fn fetch(&self, row: usize, to: &mut [f32]) {
        to.copy_from_slice(&self.vectors[row * self.dim..][..self.dim]);
    }
}

/// Centroids of lists, by floats.
pub(crate) struct Centroids {
    metric: Metric,
    dim: usize,
    kernels: Kernels,
    vectors: Vec<f32>,
    origin: Vec<f32>,
    panel: Panel,
    /// Signed bytes of `centroid - origin`, in units of `unit`.
    codes: Column<u8>,
    unit: f32,
    /// ‖centroid − origin‖²/2, or 0 where only the inner product counts.
    halves: Vec<f32>,
}

/// A query's choice of lists, and the memory for it.
#[derive(Default)]
pub(crate) struct Choice {
    /// The lists, nearest first, each with the distance of its centroid: squared L2, or the negated inner product.
    pub(crate) lists: Vec<(f32, u32)>,
    code: Vec<i8>,
    dots: Vec<i32>,
    scores: Vec<f32>,
    centred: Vec<f32>,
    row: Vec<f32>,
    ids: Vec<u32>,
    best: Best,
    near: Vec<Near>,
    scratch: Scratch,
}

/// A worker's memory for assignments.
#[derive(Default)]
struct Assigner {
    vectors: Vec<f32>,
    scratch: Scratch,
    near: Vec<Near>,
}

impl Choice {
    /// The lists whose centroids were compared by their rows.
    pub(super) fn compared(&self) -> &[u32] {
        &self.ids
    }
}

impl Centroids {
    /// `vectors` row after row; `origin` is the mean of the vectors they are means of.
    pub(super) fn new(
        metric: Metric,
        vectors: Vec<f32>,
        origin: Vec<f32>,
        kernels: Kernels,
    ) -> Result<Self, OutOfMemory> {
        let dim = origin.len();
        let panel = Panel::new(&vectors, &origin, kernels)?;
        let centred = vectors.iter().zip(origin.iter().cycle()).map(|(v, o)| v - o);
        let widest = centred.clone().fold(0.0f32, |a, b| a.max(b.abs()));
        let unit = if widest > 0.0 { widest / 127.0 } else { 1.0 };
        let stride = dim.next_multiple_of(ALIGN);
        let mut codes = Column::new();
        codes.reserve(vectors.len() / dim * stride)?;
        let mut halves = Vec::with_capacity(vectors.len() / dim);
        for vector in vectors.chunks_exact(dim) {
            let mut half = 0.0;
            for (v, o) in vector.iter().zip(&origin) {
                codes.push(((v - o) / unit).round() as i8 as u8);
                half += f64::from(v - o) * f64::from(v - o) / 2.0;
            }
            codes.extend_with(stride - dim, |_| 0);
            halves.push(if metric == Metric::InnerProduct { 0.0 } else { half as f32 });
        }
        Ok(Centroids { metric, dim, kernels, vectors, origin, panel, codes, unit, halves })
    }

    pub(crate) fn len(&self) -> usize {
        self.halves.len()
    }

    pub(crate) fn metric(&self) -> Metric {
        self.metric
    }

    pub(crate) fn dim(&self) -> usize {
        self.dim
    }

    /// All centroids, row after row.
    pub(crate) fn vectors(&self) -> &[f32] {
        &self.vectors
    }

    pub(crate) fn vector(&self, list: u32) -> &[f32] {
        &self.vectors[list as usize * self.dim..][..self.dim]
    }

    pub(crate) fn origin(&self) -> &[f32] {
        &self.origin
    }

    /// The list of each of the vectors from `first` on, one for each place in `lists`. Lists are Euclidean cells for
    /// every metric: unit vectors have the same ones, and for inner products they are the better ones. `proceed` hears
    /// how many vectors are assigned, and may stop there: whether all were.
    pub(crate) fn assign(
        &self,
        source: &dyn Source,
        first: usize,
        lists: &mut [u32],
        executor: &dyn Executor,
        proceed: &mut dyn FnMut(usize) -> ControlFlow<()>,
    ) -> bool {
        let workers: Vec<Mutex<Assigner>> = (0..executor.workers()).map(|_| Mutex::default()).collect();
        // Between two questions, enough work for a hundred cores.
        for (round, lists) in lists.chunks_mut(256 * BLOCK).enumerate() {
            let first = first + round * 256 * BLOCK;
            if proceed(first).is_break() {
                return false;
            }
            let blocks: Vec<_> = lists.chunks_mut(BLOCK).map(Mutex::new).collect();
            executor.run(blocks.len(), &|worker, i| {
                let mut worker = lock(&workers[worker]);
                let Assigner { vectors, scratch, near } = &mut *worker;
                let mut lists = lock(&blocks[i]);
                vectors.resize(lists.len() * self.dim, 0.0);
                near.resize(lists.len(), Near::default());
                for (row, to) in vectors.chunks_exact_mut(self.dim).enumerate() {
                    source.fetch(first + i * BLOCK + row, to);
                }
                self.panel.nearest(vectors, scratch, near);
                lists.iter_mut().zip(near).for_each(|(list, near)| *list = near.list);
            });
        }
        true
    }

    /// The nearest `count` lists of `query`, into `choice.lists`.
    pub(crate) fn choose(&self, query: &[f32], count: usize, choice: &mut Choice) {
        let count = count.clamp(1, self.len());
        self.shortlist(query, (count + count / 4 + 8).min(self.len()), choice);
        choice.scores.resize(choice.ids.len(), 0.0);
        let ip = self.metric == Metric::InnerProduct;
        choice.centred.clear();
        choice.centred.extend(query.iter().zip(&self.origin).map(|(q, o)| if ip { *q } else { q - o }));
        self.panel.compare(&choice.centred, !ip, &choice.ids, &mut choice.row, &mut choice.scores);
        let origin = if ip { self.kernels.dot_f32.one(query, &self.origin) } else { 0.0 };
        choice.lists.clear();
        let scores = choice.scores.iter().map(|s| if ip { -s - origin } else { *s });
        choice.lists.extend(scores.zip(choice.ids.iter().copied()));
        choice.lists.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        choice.lists.truncate(count);
    }

    /// The list that `vector` belongs to, as `choice.lists[0]`: the nearest by Euclidean distance.
    pub(crate) fn nearest(&self, vector: &[f32], choice: &mut Choice) {
        choice.near.resize(1, Near::default());
        self.panel.nearest(vector, &mut choice.scratch, &mut choice.near);
        choice.lists.clear();
        choice.lists.push((choice.near[0].cost, choice.near[0].list));
    }

    /// The `count` lists that seem nearest by their codes, into `choice.ids`.
    fn shortlist(&self, query: &[f32], count: usize, choice: &mut Choice) {
        choice.ids.clear();
        if count == self.len() {
            choice.ids.extend(0..count as u32);
            return;
        }
        let stride = self.dim.next_multiple_of(ALIGN);
        let unit = self.encode(query, &mut choice.code);
        choice.code.resize(stride, 0);
        choice.dots.resize(self.len(), 0);
        choice.scores.resize(self.len(), 0.0);
        let rows = Rows::new(&self.codes, stride, self.len(), stride);
        self.kernels.dot_i8.rows(&choice.code, rows, 0, &mut choice.dots);
        for ((score, half), &dot) in choice.scores.iter_mut().zip(&self.halves).zip(&choice.dots) {
            *score = half - unit * dot as f32;
        }
        choice.best.reset(count);
        let push = |i: usize, score: f32, best: &mut Best| best.push(Entry::new(key_of(score), i as u32));
        let (sixteens, rest) = choice.scores.as_chunks::<16>();
        for (block, scores) in sixteens.iter().enumerate() {
            if choice.best.may_take(least(*scores)) {
                for (i, &score) in scores.iter().enumerate() {
                    push(16 * block + i, score, &mut choice.best);
                }
            }
        }
        for (i, &score) in rest.iter().enumerate() {
            push(16 * sixteens.len() + i, score, &mut choice.best);
        }
        choice.ids.extend(choice.best.sorted().iter().map(|entry| entry.id()));
    }

    /// `query` in signed bytes, relative to the origin if its distance is measured; what a product of the bytes with a
    /// centroid's stands for.
    fn encode(&self, query: &[f32], code: &mut Vec<i8>) -> f32 {
        let zero = self.metric == Metric::InnerProduct;
        let weight = if zero { 0.0 } else { 1.0 };
        let value = |(q, o): (&f32, &f32)| q - weight * o;
        let mut widest = [0.0f32; 16];
        for (i, x) in query.iter().zip(&self.origin).map(value).enumerate() {
            widest[i % 16] = widest[i % 16].max(x.abs());
        }
        let widest = widest.into_iter().fold(0.0, f32::max);
        let unit = if widest > 0.0 { widest / 127.0 } else { 1.0 };
        let inverse = 1.0 / unit;
        code.clear();
        // Beside 3 · 2²² a float's last bits are its integer part, rounded, negative ones in two's complement.
        let round = |x: f32| (x * inverse + 12_582_912.0).to_bits() as i8;
        code.extend(query.iter().zip(&self.origin).map(value).map(round));
        unit * self.unit
    }

    /// Bytes of the codes, and of codes and rows: what queries read of centroids.
    pub(crate) fn rows_from(&self) -> usize {
        self.codes.len()
    }

    pub(crate) fn scanned_bytes(&self) -> u64 {
        (self.codes.len() + self.len() * floats::row_bytes(self.dim)) as u64
    }

    pub(crate) fn owned_bytes(&self) -> usize {
        Self::bytes_of(self.dim, self.len())
    }

    /// What `count` centroids hold: floats, bf16, signed bytes, two halved norms and a norm each, and the origin twice.
    pub(super) fn bytes_of(dim: usize, count: usize) -> usize {
        count * (4 * dim + floats::row_bytes(dim) + dim.next_multiple_of(ALIGN) + 12) + 8 * dim
    }
}
