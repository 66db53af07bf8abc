//! One score of several rankings. Pure: rankings come in, scores go out.

use super::request::{Fusion, Normalization};
use crate::index::Metric;
use std::collections::BTreeMap;

/// What the least score of a ranking becomes by [`Normalization::MinMax`]: it was found, after all.
const LEAST: f32 = 0.001;

/// What OpenSearch makes of a distance: the greater, the nearer; above 0.
pub fn score(metric: Metric, distance: f32) -> f32 {
    match metric {
        Metric::InnerProduct if distance <= 0.0 => 1.0 - distance,
        Metric::Cosine => (2.0 - distance) / 2.0,
        _ => 1.0 / (1.0 + distance),
    }
}

/// A distance that nothing with a score of `least` or more is beyond, and little else is within.
pub(super) fn reach(metric: Metric, least: f32) -> f32 {
    let distance = match metric {
        _ if least <= 0.0 => return f32::INFINITY,
        Metric::InnerProduct if least >= 1.0 => 1.0 - least,
        Metric::Cosine => 2.0 - 2.0 * least,
        _ => 1.0 / least - 1.0,
    };
    distance + 1e-5 * (1.0 + distance.abs())
}

/// The score of each document that is in a ranking. Rankings are of scores, best first.
pub fn fuse<D: Copy + Ord>(fusion: &Fusion, rankings: &[Vec<(D, f32)>]) -> BTreeMap<D, f32> {
    let (weights, _) = fusion.weights();
    let weight = |ranking: usize| weights.get(ranking).copied().unwrap_or(1.0);
    let all: f32 = (0..rankings.len()).map(weight).sum();
    // Of each document: what the rankings give, and the weights of those that it is in.
    let mut sums: BTreeMap<D, (f32, f32)> = BTreeMap::new();
    for (number, ranking) in rankings.iter().enumerate() {
        let normal = normal(fusion.normalization(), ranking);
        for (rank, &(document, score)) in ranking.iter().enumerate() {
            let share = match fusion {
                Fusion::Rrf { rank_constant, .. } => 1.0 / (rank_constant + 1.0 + rank as f32),
                Fusion::ArithmeticMean { .. } => normal(score),
                // A score of nothing is none: it would make all nothing.
                _ if normal(score) <= 0.0 => continue,
                Fusion::GeometricMean { .. } => normal(score).ln(),
                Fusion::HarmonicMean { .. } => 1.0 / normal(score),
            };
            let (sum, own) = sums.entry(document).or_default();
            *sum += weight(number) * share;
            *own += weight(number);
        }
    }
    let fused = |(document, (sum, own)): (D, (f32, f32))| {
        let score = match fusion {
            Fusion::Rrf { .. } => sum,
            _ if own <= 0.0 => 0.0,
            Fusion::ArithmeticMean { .. } => sum / all,
            Fusion::GeometricMean { .. } => (sum / own).exp(),
            Fusion::HarmonicMean { .. } => own / sum,
        };
        (document, score)
    };
    sums.into_iter().map(fused).collect()
}

/// What becomes of a ranking's scores.
fn normal<D>(by: Normalization, ranking: &[(D, f32)]) -> impl Fn(f32) -> f32 {
    let scores = || ranking.iter().map(|(_, score)| *score);
    let (least, greatest) = (scores().fold(f32::MAX, f32::min), scores().fold(f32::MIN, f32::max));
    let length = scores().map(|score| score * score).sum::<f32>().sqrt();
    let l2 = by == Normalization::L2;
    move |score| match l2 {
        true if length > 0.0 => score / length,
        true => 0.0,
        false if greatest == least => 1.0,
        false => ((score - least) / (greatest - least)).max(LEAST),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: RRF with constant 60, and OpenSearch's arithmetic mean of min-max and L2 norms.
    #[test]
    fn scores_are_those_of_the_formulas() {
        let rankings = [vec![('a', 9.0), ('b', 5.0), ('c', 1.0)], vec![('c', 0.5), ('d', 0.25)]];
        let close = |fusion: Fusion, expected: [f32; 4]| {
            let fused = fuse(&fusion, &rankings);
            for ((_, found), expected) in fused.iter().zip(expected) {
                assert!((found - expected).abs() < 1e-6, "{fusion:?}: {fused:?}");
            }
            assert_eq!(fused.len(), 4);
        };
        let rank = |rank: f32| 1.0 / (60.0 + rank);
        close(Fusion::default(), [rank(1.0), rank(2.0), rank(3.0) + rank(1.0), rank(2.0)]);
        let weights = vec![3.0, 1.0];
        let rrf = Fusion::Rrf { rank_constant: 0.0, weights: weights.clone(), window: 100 };
        close(rrf, [3.0, 1.5, 2.0, 0.5]);
        let mean = |normalization, weights: &[f32]| Fusion::ArithmeticMean {
            normalization,
            weights: weights.to_vec(),
            window: 100,
        };
        close(mean(Normalization::MinMax, &[]), [0.5, 0.25, 0.5005, 0.0005]);
        close(mean(Normalization::MinMax, &weights), [0.75, 0.375, 0.25075, 0.00025]);
        let (a, b) = (107.0f32.sqrt(), 0.3125f32.sqrt());
        close(mean(Normalization::L2, &[]), [4.5 / a, 2.5 / a, 0.5 / a + 0.25 / b, 0.125 / b]);
        let geometric = Fusion::GeometricMean { normalization: Normalization::MinMax, weights, window: 100 };
        close(geometric, [1.0, 0.5, 0.001f32.powf(0.75), 0.001]);
        let (normalization, weights) = (Normalization::MinMax, vec![1.0, 3.0]);
        let harmonic = Fusion::HarmonicMean { normalization, weights, window: 100 };
        close(harmonic, [1.0, 0.5, 4.0 / (1000.0 + 3.0), 0.001]);
        // One alone, or all equal, is as good as can be.
        assert_eq!(fuse(&mean(Normalization::MinMax, &[]), &[vec![('a', 0.2)]])[&'a'], 1.0);
    }

    /// What scores are made of, turned round, misses nothing.
    #[test]
    fn what_has_a_score_is_within_reach_of_it() {
        for metric in [Metric::L2, Metric::InnerProduct, Metric::Cosine, Metric::Hamming] {
            for step in 0..4000 {
                let distance =
                    if metric == Metric::InnerProduct { step as f32 - 2000.0 } else { step as f32 / 2000.0 };
                let least = score(metric, distance);
                assert!(distance <= reach(metric, least), "{metric:?} {distance}");
                assert!(
                    reach(metric, least) < distance + 0.001 * (1.0 + distance.abs()),
                    "{metric:?} {distance}"
                );
            }
            assert_eq!(reach(metric, 0.0), f32::INFINITY);
        }
    }

    #[test]
    fn distances_become_scores_as_in_opensearch() {
        let cases = [
            (Metric::L2, 3.0, 0.25),
            (Metric::InnerProduct, -2.0, 3.0),
            (Metric::InnerProduct, 1.0, 0.5),
            (Metric::Cosine, 0.5, 0.75),
            (Metric::Hamming, 1.0, 0.5),
        ];
        for (metric, distance, expected) in cases {
            assert_eq!(score(metric, distance), expected, "{metric:?}");
        }
    }
}
