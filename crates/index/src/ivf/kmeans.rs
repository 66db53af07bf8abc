//! k-means over whatever can be assigned and averaged: floats, and bits as floats of 0 and 1 (`floats.rs`).
//!
//!   draw the first centroids by D², in ROUNDS rounds: in each, a share of them, by the distances to those before
//!     (k-means||, Bahmani et al., VLDB 2012; with one centroid a round it would be k-means++)
//!   up to `iterations` times, most of them for the first part of the vectors only:
//!     assign each vector to its nearest centroid (tiles), until that gains less than GAIN
//!     move each centroid to the mean of its vectors
//!     reseat: while a list is empty, or the largest has more than BALANCE times the mean, the smallest list gives up
//!       its centroid, which goes to a vector of the largest
//!
//! Reproducible: vectors are assigned one by one, whoever does it, a list's mean is summed by one task in the order of
//! its vectors, and costs are added up in their order. So the same vectors and seed give the same centroids at any
//! number of workers, on one instruction-set level.
//!
//! Rejected: penalties on large lists. They have to be kept for every later assignment and make the probed lists the
//! wrong ones; and a sample's largest lists shrink by reseating just as well.

use super::floats;
use crate::executor::Executor;
use std::collections::BTreeSet;
use std::ops::{ControlFlow, Range};
use std::sync::{Mutex, MutexGuard};

/// Rounds in which the first centroids are drawn.
const ROUNDS: usize = 32;
/// A list larger than this many times the mean is halved, as long as there is a list smaller than half the mean.
const BALANCE: usize = 3;
/// An iteration that lowers the cost by less than this part is the last.
const GAIN: f64 = 1e-3;
/// Iterations for all vectors; those before take a quarter of them, but at least so many for each list.
const LAST: usize = 5;
const FIRST_PART: usize = 32;
/// Vectors of one task of an assignment.
pub(super) const BLOCK: usize = 512;

/// The nearest centroid of a vector, and how far it is: a squared distance, or differing bits.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Near {
    pub(super) list: u32,
    pub(super) cost: f32,
}

/// Vectors that can be clustered.
pub(super) trait Points: Sync {
    /// What centroids are rows of.
    type Element: Copy + Default + Send + Sync;
    /// Centroids made ready for assignments.
    type Ready: Sync;
    /// A worker's memory.
    type Scratch: Default + Send;

    fn len(&self) -> usize;
    /// Elements of a centroid.
    fn width(&self) -> usize;
    /// Makes `centroid` what vector `row` is.
    fn copy(&self, row: usize, centroid: &mut [Self::Element]);
    /// Moves `centroid` to the mean of the rows `members`, of which there is at least one.
    fn average(&self, members: &[u32], centroid: &mut [Self::Element]);
    fn ready(&self, centroids: &[Self::Element]) -> Self::Ready;
    /// The nearest of the centroids for each of `rows`, of equally near ones the first.
    fn nearest(
        &self,
        ready: &Self::Ready,
        rows: Range<usize>,
        scratch: &mut Self::Scratch,
        near: &mut [Near],
    );
}

/// The caller wanted no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cancelled;

/// What is asked of a clustering.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    /// Centroids, at least one and at most as many as vectors.
    pub(super) lists: usize,
    pub(super) iterations: usize,
    pub(super) seed: u64,
}

/// What clustering `count` points of `width` dimensions takes besides them: their places and costs, the lists' members,
/// centroids as they are and as they are compared.
pub(super) fn bytes(count: usize, width: usize, lists: usize, workers: usize) -> usize {
    let compared = floats::row_bytes(width) + 2 * size_of::<f32>();
    count * (2 * size_of::<Near>() + size_of::<u32>())
        + lists * (4 * width + compared + 4 * size_of::<usize>())
        + workers * floats::scratch_bytes(width, lists)
}

/// `plan.lists` centroids of `points`, row after row. Their first part should be a sample of them all. `proceed` hears the number of iterations done and may stop there.
pub(super) fn cluster<P: Points>(
    points: &P,
    plan: Plan,
    executor: &dyn Executor,
    proceed: &mut dyn FnMut(usize) -> ControlFlow<()>,
) -> Result<Vec<P::Element>, Cancelled> {
    assert!((1..=points.len()).contains(&plan.lists), "between one list and one for each vector");
    let mut work = Work::new(points, plan.lists, executor);
    let mut draws = Draws(plan.seed);
    let mut centroids = work.draw(plan.lists, &mut draws);
    let mut last = f64::INFINITY;
    let mut whole = work.near.len() == points.len();
    for iteration in 0..plan.iterations {
        if proceed(iteration).is_break() {
            return Err(Cancelled);
        }
        if !whole && iteration + LAST >= plan.iterations {
            whole = true;
            last = f64::INFINITY;
            work.near.resize(points.len(), Near::default());
        }
        let cost = work.assign(&centroids);
        let groups = Groups::new(&work.near, plan.lists);
        work.average(&groups, &mut centroids);
        let moves = if iteration + 1 < plan.iterations { reseats(&groups.sizes()) } else { Vec::new() };
        for &(from, to) in &moves {
            let members = groups.members(to);
            let row = members[draws.below(members.len())] as usize;
            let width = points.width();
            points.copy(row, &mut centroids[from * width..][..width]);
        }
        if whole && moves.is_empty() && last - cost <= GAIN * cost {
            break;
        }
        last = cost;
    }
    Ok(centroids)
}

/// Which list gives up its centroid (first) to halve which other. A list that is halved more than once is large enough.
pub(super) fn reseats(sizes: &[usize]) -> Vec<(usize, usize)> {
    let total: usize = sizes.iter().sum();
    let mut order: BTreeSet<(usize, usize)> = sizes.iter().enumerate().map(|(i, &size)| (size, i)).collect();
    let mut moves = Vec::new();
    while order.len() >= 2 {
        let (Some(&small), Some(&large)) = (order.first(), order.last()) else { break };
        let unbalanced =
            large.0 * sizes.len() > BALANCE * total && 2 * small.0 * sizes.len() < total && large.0 > 1;
        if !(unbalanced || small.0 == 0 && large.0 > 1) {
            break;
        }
        moves.push((small.1, large.1));
        order.remove(&small);
        order.remove(&large);
        // The reseated list stays out: it is where the largest was halved.
        order.insert((large.0 / 2, large.1));
    }
    moves
}

/// The vectors of each list, in their order.
struct Groups {
    rows: Vec<u32>,
    starts: Vec<usize>,
}

impl Groups {
    fn new(near: &[Near], lists: usize) -> Self {
        let mut starts = vec![0; lists + 1];
        for n in near {
            starts[n.list as usize + 1] += 1;
        }
        for i in 0..lists {
            starts[i + 1] += starts[i];
        }
        let mut next = starts.clone();
        let mut rows = vec![0; near.len()];
        for (row, n) in near.iter().enumerate() {
            rows[next[n.list as usize]] = row as u32;
            next[n.list as usize] += 1;
        }
        Groups { rows, starts }
    }

    fn members(&self, list: usize) -> &[u32] {
        &self.rows[self.starts[list]..self.starts[list + 1]]
    }

    fn sizes(&self) -> Vec<usize> {
        self.starts.windows(2).map(|w| w[1] - w[0]).collect()
    }
}

/// The least of 16 floats, by halves, which a compiler turns into few instructions.
#[inline]
pub(super) fn least(mut values: [f32; 16]) -> f32 {
    let mut half = values.len() / 2;
    while half > 0 {
        for i in 0..half {
            values[i] = if values[i + half] < values[i] { values[i + half] } else { values[i] };
        }
        half /= 2;
    }
    values[0]
}

/// A lock that no other worker holds; a panic elsewhere is raised by the executor, not here.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// A clustering at work: the vectors, who works, and where each vector belongs.
struct Work<'a, P: Points> {
    points: &'a P,
    executor: &'a dyn Executor,
    scratch: Vec<Mutex<P::Scratch>>,
    /// The first vectors' places: of those that take part.
    near: Vec<Near>,
}

impl<'a, P: Points> Work<'a, P> {
    fn new(points: &'a P, lists: usize, executor: &'a dyn Executor) -> Self {
        let scratch = (0..executor.workers()).map(|_| Mutex::default()).collect();
        let part = (points.len() / 4).max(FIRST_PART * lists).min(points.len());
        Work { points, executor, scratch, near: vec![Near::default(); part] }
    }

    /// Assigns the vectors that take part; the sum of the costs.
    fn assign(&mut self, centroids: &[P::Element]) -> f64 {
        let ready = self.points.ready(centroids);
        let blocks: Vec<_> = self.near.chunks_mut(BLOCK).map(Mutex::new).collect();
        self.executor.run(blocks.len(), &|worker, i| {
            let mut near = lock(&blocks[i]);
            let rows = i * BLOCK..i * BLOCK + near.len();
            self.points.nearest(&ready, rows, &mut lock(&self.scratch[worker]), &mut near);
        });
        drop(blocks);
        self.near.iter().map(|n| f64::from(n.cost)).sum()
    }

    fn average(&self, groups: &Groups, centroids: &mut [P::Element]) {
        let rows: Vec<_> = centroids.chunks_mut(self.points.width()).map(Mutex::new).collect();
        self.executor.run(rows.len(), &|_, list| {
            let members = groups.members(list);
            if !members.is_empty() {
                self.points.average(members, &mut lock(&rows[list]));
            }
        });
    }

    /// The first centroids: vectors, different ones as long as there are.
    fn draw(&mut self, lists: usize, draws: &mut Draws) -> Vec<P::Element> {
        let n = self.near.len();
        let mut costs = vec![1.0f32; n];
        let mut taken = vec![false; n];
        let width = self.points.width();
        let mut centroids = vec![P::Element::default(); lists * width];
        let mut count = 0;
        for round in 1..=ROUNDS.min(lists) {
            let most = lists * round / ROUNDS.min(lists) - count;
            let first = count;
            for row in weighted(&costs, most, draws) {
                taken[row] = true;
                self.points.copy(row, &mut centroids[count * width..][..width]);
                count += 1;
            }
            if round < ROUNDS.min(lists) && count > first {
                self.assign(&centroids[first * width..count * width]);
                for ((cost, near), taken) in costs.iter_mut().zip(&self.near).zip(&taken) {
                    let new = if *taken { 0.0 } else { near.cost.max(0.0) };
                    *cost = if round == 1 { new } else { cost.min(new) };
                }
            }
        }
        // Fewer different vectors than lists: copies, whose lists stay empty.
        let rest = centroids[count * width..].chunks_exact_mut(width);
        for (centroid, row) in rest.zip((0..n).filter(|&row| !taken[row])) {
            self.points.copy(row, centroid);
        }
        centroids
    }
}

/// Up to `most` different places, each with a probability in proportion to its weight (systematic sampling).
pub(super) fn weighted(weights: &[f32], most: usize, draws: &mut Draws) -> Vec<usize> {
    let total: f64 = weights.iter().map(|&w| f64::from(w)).sum();
    let mut places = Vec::with_capacity(most);
    if most == 0 || total.is_nan() || total <= 0.0 || total.is_infinite() {
        return places;
    }
    let step = total / most as f64;
    let mut next = step * draws.unit();
    let mut sum = 0.0;
    for (place, &weight) in weights.iter().enumerate() {
        sum += f64::from(weight);
        if sum > next {
            places.push(place);
            // A place that is heavier than a step would be drawn again: it is passed over.
            next += step * ((sum - next) / step).ceil().max(1.0);
        }
    }
    places.truncate(most);
    places
}

/// `want` different numbers below `n`, ascending: one of each of `want` equal parts.
pub(crate) fn spread(n: usize, want: usize, seed: u64) -> Vec<usize> {
    let mut draws = Draws(seed);
    let want = want.min(n);
    let start = |i: usize| (i as u128 * n as u128 / want as u128) as usize;
    (0..want).map(|i| start(i) + draws.below(start(i + 1) - start(i))).collect()
}

/// Numbers drawn from a seed: SplitMix64 (Steele et al., OOPSLA 2014).
pub(crate) struct Draws(pub(crate) u64);

impl Draws {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Below `n`, which is not zero.
    pub(super) fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.next()) * n as u128) >> 64) as usize
    }

    /// At least 0, below 1.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}
