//! Synthetic vectors with a stated structure, from a seed.
//!
//! **These are not real data.** They are a latent mixture, made so that a graph has the work that real embeddings give
//! it: few intrinsic dimensions inside many, and neighbourhoods of different density.
//!
//! ```text
//! centre[c] = normal(latent)                      for each of CLUSTERS clusters
//! spread[c] = 0.5 .. 1.5, evenly by c
//! vector    = basis · (centre[c] + spread[c] · normal(latent)) + NOISE · normal(dim),   c drawn evenly
//! basis     = normal(dim × latent) / sqrt(latent)
//! ```
//!
//! Only sums and products are used, no function of the system's mathematical library, so one seed gives the same bytes
//! on every machine. Planted clusters flatter indexes that partition by clusters: compare graphs with graphs on them.

/// Dimensions that the mixture lives in (or the vector's own, if fewer).
pub const LATENT: usize = 32;
/// Number of clusters.
pub const CLUSTERS: usize = 64;
/// Standard deviation of the noise that fills all dimensions.
pub const NOISE: f32 = 0.05;

/// A seeded source of numbers: SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The numbers of `seed`; different streams of one seed are unrelated.
    pub fn new(seed: u64, stream: u64) -> Self {
        let mut start = Random(seed);
        let seed = start.next();
        Random(seed ^ Random(stream).next())
    }

    /// 64 even bits.
    #[expect(clippy::should_implement_trait, reason = "not an iterator: it never ends")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// An even number below `bound`, by the upper half of a product (Lemire 2019; the bias is below `bound` / 2⁶⁴).
    ///
    /// # Panics
    /// If `bound` is zero.
    pub fn below(&mut self, bound: usize) -> usize {
        assert!(bound > 0, "nothing is below zero");
        ((u128::from(self.next()) * bound as u128) >> 64) as usize
    }

    /// Nearly a standard normal number: the sum of four even ones (Irwin–Hall), with variance 1 and no tails.
    fn normal(&mut self) -> f32 {
        let bits = self.next();
        let sum = (0..4).map(|i| ((bits >> (16 * i)) & 0xffff) as f32).sum::<f32>();
        // Four even numbers in [0, 1] have variance 4/12, so the deviation's inverse is the root of 3.
        (sum / 65_535.0 - 2.0) * 1.732_050_8
    }
}

/// What the streams of one seed are used for.
const SHAPE: u64 = 0;
const VECTORS: u64 = 1;
const QUERIES: u64 = 2;

/// `vectors` and `queries` vectors of `dim` floats of one mixture, row after row. The first vectors of a longer set are
/// those of a shorter one.
///
/// # Panics
/// If `dim` is zero or a set exceeds the address space.
pub fn mixture(dim: usize, vectors: usize, queries: usize, seed: u64) -> (Vec<f32>, Vec<f32>) {
    assert!(dim > 0, "a vector has at least one dimension");
    let latent = LATENT.min(dim);
    let mut random = Random::new(seed, SHAPE);
    let centres: Vec<f32> = (0..CLUSTERS * latent).map(|_| random.normal()).collect();
    let scale = 1.0 / (latent as f32).sqrt();
    // Column after column, so that a vector is a sum of columns.
    let basis: Vec<f32> = (0..latent * dim).map(|_| random.normal() * scale).collect();
    let draw = |count: usize, stream: u64| {
        let mut random = Random::new(seed, stream);
        let mut all = Vec::with_capacity(count * dim);
        for _ in 0..count {
            let c = random.below(CLUSTERS);
            let spread = 0.5 + c as f32 / (CLUSTERS - 1) as f32;
            let start = all.len();
            all.extend((0..dim).map(|_| NOISE * random.normal()));
            for (centre, column) in centres[c * latent..][..latent].iter().zip(basis.chunks_exact(dim)) {
                let weight = centre + spread * random.normal();
                all[start..].iter_mut().zip(column).for_each(|(e, b)| *e += weight * b);
            }
        }
        all
    };
    (draw(vectors, VECTORS), draw(queries, QUERIES))
}

/// `count` different numbers below `bound`, ascending: which vectors to hold out as queries.
///
/// # Panics
/// If `count` exceeds `bound`.
pub fn sample(bound: usize, count: usize, seed: u64) -> Vec<usize> {
    assert!(count <= bound, "there are only {bound} to choose from");
    let mut random = Random::new(seed, SHAPE);
    // Floyd's method (Bentley and Floyd 1987): as many draws as numbers, whatever the bound.
    let mut chosen = std::collections::BTreeSet::new();
    for last in bound - count..bound {
        let drawn = random.below(last + 1);
        if !chosen.insert(drawn) {
            chosen.insert(last);
        }
    }
    chosen.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seed_decides_and_a_prefix_stays() {
        let (a, q) = mixture(10, 50, 5, 7);
        assert_eq!((a.len(), q.len()), (500, 50));
        let (longer, _) = mixture(10, 80, 0, 7);
        assert_eq!(a[..], longer[..500]);
        assert_ne!(a[..50], q[..], "queries are other vectors");
        assert_ne!(a, mixture(10, 50, 5, 8).0);
    }

    #[test]
    fn normal_numbers_have_mean_0_and_variance_1() {
        let mut random = Random::new(1, 2);
        let x: Vec<f64> = (0..100_000).map(|_| f64::from(random.normal())).collect();
        let mean = x.iter().sum::<f64>() / x.len() as f64;
        let variance = x.iter().map(|e| (e - mean).powi(2)).sum::<f64>() / x.len() as f64;
        assert!(mean.abs() < 0.01 && (variance - 1.0).abs() < 0.02, "{mean} {variance}");
    }

    #[test]
    fn a_sample_has_each_number_once_and_reaches_all() {
        let mut seen = [0; 20];
        for seed in 0..2_000 {
            let chosen = sample(20, 5, seed);
            assert!(chosen.len() == 5 && chosen.is_sorted_by(|a, b| a < b) && chosen[4] < 20);
            chosen.iter().for_each(|&i| seen[i] += 1);
        }
        // 500 expected, deviation 19.
        assert!(seen.iter().all(|n| (400..600).contains(n)), "{seen:?}");
        assert_eq!(sample(5, 5, 0), [0, 1, 2, 3, 4]);
        assert!(sample(5, 0, 0).is_empty());
    }
}
