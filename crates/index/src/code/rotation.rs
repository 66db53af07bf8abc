//! A random rotation of any dimension in O(d log d): no direction of the data then lies along few dimensions, as
//! RaBitQ's bounds ask for (Gao & Long, SIGMOD 2024), where they draw a full matrix.
//!
//! Four rounds, each of random signs, a Hadamard transform of as many dimensions as a power of two allows (the first
//! ones and the last ones in turn), and, where some are left out, a butterfly between the two halves of the vector, which
//! mixes what two transforms with a short overlap would keep apart. For powers of two this is HDHDHDHD (Ailon &
//! Chazelle 2009; Yu et al., Orthogonal Random Features, 2016). Each step is orthogonal, and plain `f32` arithmetic in
//! one order: the same bits on every machine.

const ROUNDS: usize = 4;

/// A source of random numbers: SplitMix64.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

pub(super) struct Rotation {
    dim: usize,
    /// Dimensions that a transform takes: the largest power of two.
    block: usize,
    /// For each round and dimension its sign, scaled where the transform that follows takes it.
    factors: Vec<f32>,
}

impl Rotation {
    pub(super) fn new(dim: usize, seed: u64) -> Self {
        let block = 1 << dim.ilog2();
        let scale = (1.0 / (block as f64).sqrt()) as f32;
        let mut random = Random(seed);
        let mut factors = Vec::with_capacity(ROUNDS * dim);
        for round in 0..ROUNDS {
            let taken = Self::taken(dim, block, round);
            for d in 0..dim {
                let sign = if random.next() >> 63 == 1 { -1.0 } else { 1.0 };
                factors.push(if taken.contains(&d) { sign * scale } else { sign });
            }
        }
        Rotation { dim, block, factors }
    }

    /// The dimensions that the transform of `round` takes.
    fn taken(dim: usize, block: usize, round: usize) -> std::ops::Range<usize> {
        let start = if round.is_multiple_of(2) { 0 } else { dim - block };
        start..start + block
    }

    /// Rotates `x` in place.
    pub(super) fn apply(&self, x: &mut [f32]) {
        assert_eq!(x.len(), self.dim);
        for (round, factors) in self.factors.chunks_exact(self.dim).enumerate() {
            for (x, factor) in x.iter_mut().zip(factors) {
                *x *= factor;
            }
            transform(&mut x[Self::taken(self.dim, self.block, round)]);
            if self.block < self.dim {
                mix(x);
            }
        }
    }
}

/// The Hadamard transform of a power of two of numbers, not scaled; the results may be in another order, which is as good.
fn transform(x: &mut [f32]) {
    let mut half = 1;
    if x.len() >= 16 {
        x.as_chunks_mut::<16>().0.iter_mut().for_each(sixteen);
        half = 16;
    }
    // Two steps at once: half the loads and stores.
    while 4 * half <= x.len() {
        for four in x.chunks_exact_mut(4 * half) {
            let (low, high) = four.split_at_mut(2 * half);
            let ((a, b), (c, d)) = (low.split_at_mut(half), high.split_at_mut(half));
            for (((a, b), c), d) in a.iter_mut().zip(b).zip(c).zip(d) {
                let (ab, a_b, cd, c_d) = (*a + *b, *a - *b, *c + *d, *c - *d);
                (*a, *b, *c, *d) = (ab + cd, a_b + c_d, ab - cd, a_b - c_d);
            }
        }
        half *= 4;
    }
    if half < x.len() {
        for both in x.chunks_exact_mut(2 * half) {
            let (low, high) = both.split_at_mut(half);
            for (a, b) in low.iter_mut().zip(high) {
                (*a, *b) = (*a + *b, *a - *b);
            }
        }
    }
}

/// Sixteen numbers as a square: its columns, then its rows, which come out as columns, so that all is done by fours.
fn sixteen(x: &mut [f32; 16]) {
    type Square = [[f32; 4]; 4];
    let columns = |[a, b, c, d]: Square| -> Square {
        let each = |x: [f32; 4], y: [f32; 4], sign: f32| std::array::from_fn(|i| x[i] + sign * y[i]);
        let (ab, a_b, cd, c_d) = (each(a, b, 1.0), each(a, b, -1.0), each(c, d, 1.0), each(c, d, -1.0));
        [each(ab, cd, 1.0), each(a_b, c_d, 1.0), each(ab, cd, -1.0), each(a_b, c_d, -1.0)]
    };
    let square: Square = std::array::from_fn(|i| std::array::from_fn(|j| x[4 * i + j]));
    let done = columns(square);
    let done = columns(std::array::from_fn(|i| std::array::from_fn(|j| done[j][i])));
    *x = std::array::from_fn(|i| done[i / 4][i % 4]);
}

/// A rotation by 45° of each dimension of the first half with one of the second; of an odd number the middle one stays.
fn mix(x: &mut [f32]) {
    let half = x.len() / 2;
    let rest = x.len() - half;
    let (low, high) = x.split_at_mut(rest);
    for (a, b) in low.iter_mut().zip(high) {
        const COSINE: f32 = std::f32::consts::FRAC_1_SQRT_2;
        (*a, *b) = ((*a + *b) * COSINE, (*a - *b) * COSINE);
    }
}
