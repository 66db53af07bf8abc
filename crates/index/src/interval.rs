//! How sure a measured recall is: an interval for the share of results that are found, from some queries.
//!
//! The results of one query are found or missed together, so that k results of m queries say less than k · m independent
//! ones. What varies independently is the query: the variance is that of the ratio estimate between queries (Cochran,
//! Sampling Techniques, 1977, §6). From it follows how many independent results would vary as much, the effective sample
//! size (Korn & Graubard, Survey Methodology 24, 1998), and Wilson's interval (1927) of so many holds near 1 too, where
//! recalls lie and the normal interval is too short.
//!
//! Where hardly anything was missed the variance cannot be seen. So one more query, of average size and half of it
//! missed, is counted in with the variance, though not with the estimate; and the quantile is widened for few queries
//! towards Student's, by the first term of its expansion.

/// A measured recall.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Share of the results that were found; NaN without queries.
    pub recall: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// Number of queries.
    pub queries: usize,
}

/// The recall of queries that found `.0` of `.1` results each, with the interval of `z` deviations to each side.
pub(crate) fn estimate(queries: impl Iterator<Item = (u32, u32)> + Clone, z: f64) -> Estimate {
    let float = |(hits, of): (u32, u32)| (f64::from(hits), f64::from(of));
    let sum = |(a, b, m): (f64, f64, usize), (hits, of): (f64, f64)| (a + hits, b + of, m + 1);
    let (hits, all, count) = queries.clone().map(float).fold((0.0, 0.0, 0), sum);
    if all == 0.0 {
        return Estimate { recall: f64::NAN, low: 0.0, high: 1.0, queries: count };
    }
    let (recall, m) = (hits / all, count as f64);
    let size = all / m;
    let (more, of_more) = (hits + size / 2.0, all + size);
    let mean = more / of_more;
    let squares: f64 = queries.map(float).map(|(hits, of)| (hits - mean * of).powi(2)).sum();
    let squares = squares + (size / 2.0 - mean * size).powi(2);
    let variance = (m + 1.0) / m * squares / (of_more * of_more);
    // Queries of equal recall vary less than chance would have it: no more than all results count.
    let effective = if variance > 0.0 { (mean * (1.0 - mean) / variance).min(all) } else { all.min(m) };
    let t = z + (z.powi(3) + z) / (4.0 * m);
    let share = t * t / effective;
    let centre = recall + share / 2.0;
    let half = t * (recall * (1.0 - recall) / effective + share / (4.0 * effective)).sqrt();
    let low = ((centre - half) / (1.0 + share)).max(0.0);
    let high = ((centre + half) / (1.0 + share)).min(1.0);
    Estimate { recall, low: low.min(recall), high: high.max(recall), queries: count }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ivf::kmeans::Draws;

    /// Queries whose results are found independently, or most of which find all and some little.
    fn draw(random: &mut Draws, recall: f64, k: u32, hard: Option<f64>) -> (u32, u32) {
        let own = match hard {
            // A share of the queries, such that the mean is right, finds each result with half the chance.
            Some(low) => {
                if random.unit() < (1.0 - recall) / (1.0 - low) {
                    low
                } else {
                    1.0
                }
            }
            None => recall,
        };
        ((0..k).map(|_| u32::from(random.unit() < own)).sum(), k)
    }

    /// How often the interval has the truth in it, for recalls, numbers of queries and results, and correlations.
    #[test]
    fn intervals_cover_the_truth() {
        const RUNS: usize = 1000;
        let mut random = Draws(601);
        println!("seed 601");
        for (recall, queries) in [(0.5, 30), (0.8, 30), (0.9, 100), (0.95, 100), (0.95, 1000), (0.99, 500)] {
            for (k, hard) in [(1, None), (10, None), (10, Some(0.5)), (10, Some(0.1)), (100, Some(0.4))] {
                if hard.is_some_and(|low| low > recall) {
                    continue;
                }
                let (mut inside, mut above, mut naive, mut width) = (0, 0, 0, 0.0);
                for _ in 0..RUNS {
                    let found: Vec<_> = (0..queries).map(|_| draw(&mut random, recall, k, hard)).collect();
                    let two = estimate(found.iter().copied(), 1.96);
                    inside += usize::from((two.low..=two.high).contains(&recall));
                    width += (two.high - two.low) / RUNS as f64;
                    above += usize::from(estimate(found.iter().copied(), 1.2816).low <= recall);
                    // As if all results were independent.
                    let apart =
                        found.iter().flat_map(|&(hits, of)| (0..of).map(move |i| (u32::from(i < hits), 1)));
                    let one = estimate(apart, 1.96);
                    naive += usize::from((one.low..=one.high).contains(&recall));
                }
                let share = |count: usize| count as f64 / RUNS as f64;
                let (inside, above, naive) = (share(inside), share(above), share(naive));
                println!(
                    "recall {recall} k {k} queries {queries} {hard:?}: {inside} covered, width {width:.4}, one-sided {above}; taken as independent {naive}"
                );
                // Three deviations of a share of 1000 runs below 0.95 and 0.90; of few queries that differ much, less.
                assert!(inside >= if queries < 100 { 0.9 } else { 0.93 }, "{inside}");
                assert!(above >= 0.87, "{above}");
                assert!(hard.is_none() || queries < 100 || naive < inside, "{naive}");
                assert!(
                    width < 5.0 * (recall * (1.0 - recall) / queries as f64).sqrt() + 4.0 / queries as f64
                );
            }
        }
    }

    #[test]
    fn ends_of_the_range() {
        let none = estimate(std::iter::empty(), 1.96);
        assert!(none.recall.is_nan() && (none.low, none.high, none.queries) == (0.0, 1.0, 0));
        let all = estimate((0..500).map(|_| (10, 10)), 1.2816);
        assert!(all.recall == 1.0 && all.high == 1.0 && (0.996..0.9995).contains(&all.low), "{all:?}");
        // One miss more never gives a better bound that matters.
        let one = estimate((0..500).map(|i| (10 - u32::from(i == 7), 10)), 1.2816);
        assert!(one.low < all.low + 2e-4, "{one:?} {all:?}");
        let lost = estimate((0..500).map(|_| (0, 10)), 1.96);
        assert!(lost.low == 0.0 && lost.high < 0.01, "{lost:?}");
        // A single query says little.
        let single = estimate(std::iter::once((10, 10)), 1.96);
        assert!(single.low < 0.5 && single.queries == 1, "{single:?}");
    }
}
