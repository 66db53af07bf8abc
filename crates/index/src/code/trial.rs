//! How well a code orders the vectors that it was fitted to, tried on some of them; and what follows from that.
//!
//! The decisions are pure functions of what was measured, which is the same on every machine. Queries are stored vectors, each compared with all the others
//! taken: what real queries of another kind would suffer is not seen.

use super::plain::{dot, l2};
use super::{CodeProbe, Coder};
use crate::space::float_of;
use crate::vectors::Metric;
use std::fmt;

/// Candidates for each result: how many times more are taken by code, to be ordered again by the stored vectors.
pub(crate) const OVERSAMPLES: [usize; 5] = [1, 2, 4, 8, 16];

const QUERIES: usize = 64;
pub(super) const VECTORS: usize = 4096;
const K: usize = 10;

/// What a trial gave.
#[derive(Clone, Debug, PartialEq, Default)]
pub(crate) struct Trial {
    /// Vectors taken.
    pub(crate) vectors: u32,
    /// Results looked for.
    pub(crate) k: u32,
    /// Error of the estimated distances of the nearest 4k, relative to how far those are spread (both as deviations from
    /// the mean), on average over the queries.
    pub(crate) noise: f32,
    /// Part of the nearest k that are among the first k · [`OVERSAMPLES`] by code; fewer where there are not so many
    /// vectors.
    pub(crate) recall: Vec<f32>,
}

/// Whether vectors can be searched by a code.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Verdict {
    /// By that many candidates for each result, reordered by the stored vectors, 99 % of the results are found.
    Ordered { oversample: usize },
    /// No number of candidates that was tried is enough for that: the caller should say so.
    Coarse,
    /// Most candidates would be chance: the code is no use.
    Refused,
}

/// What a trial says of a code.
pub(crate) fn verdict(trial: &Trial) -> Verdict {
    let enough = OVERSAMPLES.iter().zip(&trial.recall).find(|(_, recall)| **recall >= 0.99);
    match (enough, trial.recall.last()) {
        (Some((&oversample, _)), _) => Verdict::Ordered { oversample },
        (None, Some(&most)) if most >= 0.8 => Verdict::Coarse,
        _ => Verdict::Refused,
    }
}

/// Whether `i8` with one scale needs no help: its errors are far below what tells neighbours apart.
pub(super) fn accurate(trial: &Trial) -> bool {
    trial.noise < 0.05
}

/// Whether rotating vectors first, which costs each query about a microsecond, makes `i8` that much better.
pub(super) fn worth_rotating(plain: &Trial, rotated: &Trial) -> bool {
    rotated.noise < 0.7 * plain.noise
}

impl fmt::Display for Trial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "on a sample of {}: error {:.3} of the neighbours' spread, recall@{}",
            self.vectors, self.noise, self.k
        )?;
        for (oversample, recall) in OVERSAMPLES.iter().zip(&self.recall) {
            let separator = if *oversample == 1 { "" } else { "," };
            write!(f, "{separator} {recall:.3} of {oversample}k candidates")?;
        }
        Ok(())
    }
}

/// At most `most` of the vectors, evenly spread.
pub(super) fn spread(dim: usize, sample: &[f32], most: usize) -> Vec<f32> {
    let count = sample.len() / dim;
    let taken = count.min(most);
    let mut vectors = Vec::with_capacity(taken * dim);
    (0..taken).for_each(|i| vectors.extend_from_slice(&sample[i * count / taken * dim..][..dim]));
    vectors
}

pub(super) fn run(coder: &Coder, sample: &[f32]) -> Trial {
    let vectors = spread(coder.dim, sample, VECTORS);
    let count = vectors.len() / coder.dim;
    let k = K.min(count / 8).max(1);
    let mut rows = vec![0; count * coder.stride()];
    let (mut scratch, mut probe) = (Vec::new(), CodeProbe::new());
    for (x, row) in vectors.chunks_exact(coder.dim).zip(rows.chunks_exact_mut(coder.stride())) {
        coder.encode(x, row, &mut scratch);
    }
    let factors = OVERSAMPLES.iter().filter(|&factor| factor * k <= count / 2).count();
    let mut found = vec![0usize; factors];
    let (mut noise, mut spreads) = (0.0, 0);
    let queries = QUERIES.min(count);
    let (mut true_distances, mut keys) = (vec![0.0f32; count], vec![0; count]);
    for query in (0..queries).map(|i| i * count / queries) {
        let x = &vectors[query * coder.dim..][..coder.dim];
        for (to, y) in true_distances.iter_mut().zip(vectors.chunks_exact(coder.dim)) {
            *to = distance(coder.metric, x, y);
        }
        coder.prepare(x, &mut probe);
        coder.keys_from(&probe, &rows, count, 0, &mut keys);
        let nearest = order(query, &true_distances);
        let by_code: Vec<f32> = keys.iter().map(|&key| float_of(key)).collect();
        let coded = order(query, &by_code);
        for (found, factor) in found.iter_mut().zip(OVERSAMPLES) {
            *found += nearest[..k].iter().filter(|id| coded[..k * factor].contains(id)).count();
        }
        let near = &nearest[..(4 * k).min(nearest.len())];
        let error = deviation(near.iter().map(|&i| f64::from(by_code[i]) - f64::from(true_distances[i])));
        let spread = deviation(near.iter().map(|&i| f64::from(true_distances[i])));
        // Of copies of one vector all are as near.
        if spread > 0.0 {
            noise += (error / spread).sqrt();
            spreads += 1;
        }
    }
    // Distances that exceed what f32 holds have no error that could be told.
    noise = if noise.is_nan() { f64::INFINITY } else { noise };
    Trial {
        vectors: count as u32,
        k: k as u32,
        noise: (noise / f64::from(spreads.max(1))) as f32,
        recall: found.iter().map(|&found| found as f32 / (queries * k) as f32).collect(),
    }
}

/// The distance by the vectors' own numbers.
fn distance(metric: Metric, a: &[f32], b: &[f32]) -> f32 {
    match metric {
        Metric::L2 => l2(a, b),
        Metric::Cosine => 1.0 - dot(a, b),
        _ => -dot(a, b),
    }
}

/// All but `query`, nearest first.
fn order(query: usize, distances: &[f32]) -> Vec<usize> {
    let mut ids: Vec<usize> = (0..distances.len()).filter(|&i| i != query).collect();
    ids.sort_unstable_by(|&i, &j| distances[i].total_cmp(&distances[j]).then(i.cmp(&j)));
    ids
}

/// The mean square of deviations from the mean.
fn deviation(values: impl ExactSizeIterator<Item = f64> + Clone) -> f64 {
    let count = values.len() as f64;
    let mean = values.clone().sum::<f64>() / count;
    values.map(|value| (value - mean).powi(2)).sum::<f64>() / count
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the decision sees, and what it says.
    #[test]
    fn verdicts() {
        let trial = |recall: &[f32]| Trial { vectors: 4096, k: 10, noise: 0.1, recall: recall.to_vec() };
        assert_eq!(verdict(&trial(&[0.992, 1.0])), Verdict::Ordered { oversample: 1 });
        assert_eq!(verdict(&trial(&[0.9, 0.98, 0.99, 1.0])), Verdict::Ordered { oversample: 4 });
        assert_eq!(verdict(&trial(&[0.3, 0.5, 0.7, 0.8, 0.98])), Verdict::Coarse);
        assert_eq!(verdict(&trial(&[0.1, 0.2, 0.3, 0.5, 0.79])), Verdict::Refused);
        assert_eq!(verdict(&trial(&[])), Verdict::Refused);
        assert!(accurate(&Trial { noise: 0.04, ..trial(&[]) }));
        assert!(!accurate(&Trial { noise: 0.06, ..trial(&[]) }));
        assert!(!accurate(&Trial { noise: f32::INFINITY, ..trial(&[]) }));
        let noise = |noise| Trial { noise, ..trial(&[]) };
        assert!(worth_rotating(&noise(0.5), &noise(0.3)) && !worth_rotating(&noise(0.5), &noise(0.4)));
        assert!(worth_rotating(&noise(f32::INFINITY), &noise(0.3)));
        // A query is not its own neighbour; ties go by number.
        assert_eq!(order(1, &[3.0, 0.0, 2.0, 3.0]), [2, 0, 3]);
    }
}
