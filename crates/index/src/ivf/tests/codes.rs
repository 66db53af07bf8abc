//! 4-bit codes: prototypes, biases and tables against the definition in double precision.

use super::*;
use crate::ivf::pq::{divide, nearest};
use proptest::prelude::*;

proptest! {
    #[test]
    fn the_nearest_prototype(width in 1usize..12, seed in any::<u64>(), scale in -20i32..20) {
        let scale = (scale as f32).exp2();
        let values: Vec<f32> = normal(17 * width, seed).iter().map(|x| x * scale).collect();
        let (run, rest) = values.split_at(width);
        let prototypes: Vec<[f32; 16]> = rest.chunks(16).map(|p| p.try_into().unwrap()).collect();
        let to = |k: usize| {
            let column: Vec<f32> = prototypes.iter().map(|p| p[k]).collect();
            distance(Metric::L2, run, &column)
        };
        let (chosen, cost) = nearest(run, &prototypes);
        let best = (0..16).map(to).fold(f64::INFINITY, f64::min);
        prop_assert!(to(chosen) <= best * (1.0 + 1e-5), "{} instead of {best}", to(chosen));
        prop_assert!((f64::from(cost) - best).abs() <= best * 1e-5);
    }

    /// Runs cover all dimensions in order, none is empty, and no shift of one bound would be better.
    #[test]
    fn runs_divide_the_dimensions(variances in proptest::collection::vec(0f64..1.0, 1..60), share in 1usize..6) {
        let dim = variances.len();
        let runs = dim.div_ceil(share);
        let bounds = divide(&variances, runs);
        prop_assert_eq!(bounds.len(), runs + 1);
        prop_assert_eq!((bounds[0], bounds[runs]), (0, dim as u32));
        prop_assert!(bounds.windows(2).all(|w| w[0] < w[1]), "{bounds:?}");
        let cost = |bounds: &[u32]| -> f64 {
            let runs = bounds.windows(2).map(|w| w[0] as usize..w[1] as usize);
            runs.map(|r| (-8.0 / r.len() as f64).exp2() * variances[r].iter().sum::<f64>()).sum()
        };
        for i in 1..runs {
            for shift in [-1i64, 1] {
                let mut other = bounds.clone();
                other[i] = (i64::from(other[i]) + shift) as u32;
                let most = 4 * dim.div_ceil(runs) as u32;
                if other.windows(2).all(|w| w[0] < w[1] && w[1] - w[0] <= most) {
                    prop_assert!(cost(&bounds) <= cost(&other) + 1e-9);
                }
            }
        }
    }

    /// What a scan adds up is the estimate of the first comment of `pq`, up to half a step for each run, and no sum
    /// leaves 16 bits: whatever the query's and the vectors' scales.
    #[test]
    fn sums_are_estimates(
        dim in 2usize..60, seed in any::<u64>(), scale in -12i32..12, query_scale in -12i32..12, metric in 0usize..3,
    ) {
        let metric = [Metric::L2, Metric::InnerProduct, Metric::Cosine][metric];
        let (count, nlist, runs) = (300, 3, dim.div_ceil(3));
        let times = |v: Vec<f32>, scale: i32| v.iter().map(|x| x * (scale as f32).exp2()).collect::<Vec<f32>>();
        let mut vectors = times(clustered(count, dim, nlist, seed % 1000), scale);
        let mut query = times(clustered(1, dim, 1, seed % 77), query_scale);
        if metric == Metric::Cosine {
            (vectors, query) = (unit(vectors, dim), unit(query, dim));
        }
        let centroids: Vec<f32> = vectors[..nlist * dim].to_vec();
        let lists: Vec<u32> = (0..count as u32).map(|i| i % nlist as u32).collect();
        let origin = floats::mean(&vectors, dim);
        let centroids = Centroids::new(metric, centroids, origin, kernels()).unwrap();
        let book = Codebook::train(&centroids, &vectors, &lists, runs, seed, &Workers(1));
        let mut tables = Tables::default();
        let nearest = -0.7 * dot(&query, &query).sqrt() as f32;
        book.prepare(&query, nearest, &mut tables);
        prop_assert_eq!(tables.bytes.len(), 16 * runs);
        let mut codes = vec![0; runs];
        for (x, &list) in vectors.chunks(dim).zip(&lists) {
            let centroid = centroids.vector(list);
            let residual: Vec<f32> = x.iter().zip(centroid).map(|(x, c)| x - c).collect();
            let bias = book.encode(&residual, centroid, &mut codes);
            let stored = book.stored(bias);
            let sum: u32 = codes.iter().enumerate().map(|(s, &c)| u32::from(tables.bytes[16 * s + c as usize])).sum();
            let total = sum + ((u32::from(stored) * tables.factor) >> 16);
            prop_assert!(total <= 65535 && tables.factor < 65536, "{sum} + {stored} * {} / 65536", tables.factor);
            let coded = book.decode(&codes);
            let exact = if metric == Metric::InnerProduct {
                let missing: Vec<f32> = residual.iter().zip(&coded).map(|(r, c)| r - c).collect();
                -dot(&query, &coded) + f64::from(nearest) * dot(x, &missing) / dot(x, x)
            } else {
                let both: Vec<f32> = x.iter().zip(centroid).map(|(x, c)| x + c).collect();
                -2.0 * dot(&query, &coded) + dot(&both, &coded)
            };
            let estimate = f64::from(tables.offset) + f64::from(tables.step) * f64::from(total);
            let slack = f64::from(tables.step) * (runs as f64 / 2.0 + 2.0) + 1e-5 * exact.abs()
                + 1e-5 * dot(&query, &query).sqrt() * dot(x, x).sqrt();
            prop_assert!((estimate - exact).abs() <= slack, "{estimate} instead of {exact} (+- {slack})");
        }
    }
}

/// With prototypes that vectors lie on, estimates are distances; else they err to both sides alike.
#[test]
fn estimates_are_distances_in_the_mean() {
    let (dim, count) = (32, 4000);
    let vectors = clustered(count, dim, 20, 11);
    let params = Params { metric: Metric::L2, dim, nlist: 20, code: ListCode::Pq4 { runs: 16 }, seed: 2 };
    let ivf = build(params, &vectors, 2);
    let (mut probe, mut scratch, mut best) = (ListProbe::default(), ScanScratch::default(), Best::default());
    let (mut error, mut square, mut seen) = (0.0, 0.0, 0);
    for query in vectors.chunks(dim).take(50) {
        ivf.probe(query, 20, &mut probe);
        best.reset(30);
        for i in 0..20 {
            ivf.scan(
                &probe,
                i,
                &mut |_, _, _| {},
                Allowed { rows: count, which: Which::All },
                &mut scratch,
                &mut best,
            );
        }
        for entry in best.sorted() {
            let row = entry.id() as usize;
            let exact = distance(Metric::L2, query, &vectors[row * dim..][..dim]);
            let difference = f64::from(crate::space::float_of(entry.key())) - exact;
            (error, square, seen) = (error + difference, square + difference * difference, seen + 1);
        }
    }
    let (mean, spread) = (error / f64::from(seen), (square / f64::from(seen)).sqrt());
    // Candidates are those that seem near, so a part of the spread is to be expected.
    assert!(mean.abs() < spread, "mean error {mean}, spread {spread}");
    assert!(spread < 0.25 * dim as f64 * 0.09 / 3.0 * 2.0, "spread {spread}");
}
