//! Clusterings: assignments against their definition, balance, degenerate vectors.

use super::*;
use crate::ivf::floats::{Panel, Scratch};
use crate::ivf::kmeans::{Near, reseats, weighted};
use proptest::prelude::*;

proptest! {
    /// Roundings move a vector and a centroid by 2⁻⁹ of themselves each: so much farther than the nearest may the chosen
    /// one be, and as much again is allowed for sums in f32.
    #[test]
    fn the_nearest_centroid_by_tiles(
        dim in 1usize..80, lists in 1usize..300, count in 1usize..140, seed in any::<u64>(), away in 0f32..1000.0,
    ) {
        let moved = |v: Vec<f32>| v.into_iter().map(|x| x + away).collect::<Vec<_>>();
        let (vectors, centroids) = (moved(normal(count * dim, seed)), moved(normal(lists * dim, seed ^ 1)));
        let origin = floats::mean(&centroids, dim);
        let panel = Panel::new(&centroids, &origin, kernels()).unwrap();
        let mut near = vec![Near::default(); count];
        panel.nearest(&vectors, &mut Scratch::default(), &mut near);
        let widest = centroids.chunks(dim).map(|c| distance(Metric::L2, c, &origin).sqrt()).fold(0.0, f64::max);
        for (vector, near) in vectors.chunks(dim).zip(&near) {
            let to = |c: &[f32]| distance(Metric::L2, vector, c).sqrt();
            let best = centroids.chunks(dim).map(to).fold(f64::INFINITY, f64::min);
            let slack = 4.0 / 512.0 * (distance(Metric::L2, vector, &origin).sqrt() + widest);
            let chosen = to(&centroids[near.list as usize * dim..][..dim]);
            prop_assert!(chosen <= best + slack, "{chosen} instead of {best} (+ {slack})");
            prop_assert!((f64::from(near.cost).sqrt() - chosen).abs() <= slack);
        }
    }

    #[test]
    fn draws_are_different_places(weights in proptest::collection::vec(0f32..1.0, 1..200), most in 0usize..50, seed in any::<u64>()) {
        let places = weighted(&weights, most, &mut kmeans::Draws(seed));
        prop_assert!(places.len() <= most);
        prop_assert!(places.windows(2).all(|w| w[0] < w[1]));
        prop_assert!(places.iter().all(|&p| weights[p] > 0.0));
        // Weights that are alike give as many as are wanted.
        let even = weighted(&vec![0.5; weights.len()], most, &mut kmeans::Draws(seed));
        prop_assert_eq!(even.len(), most.min(weights.len()));
    }

    #[test]
    fn samples_are_spread(n in 1usize..1000, want in 1usize..200, seed in any::<u64>()) {
        let rows = spread(n, want, seed);
        prop_assert_eq!(rows.len(), want.min(n));
        prop_assert!(rows.windows(2).all(|w| w[0] < w[1]) && rows[rows.len() - 1] < n);
        for (i, row) in rows.iter().enumerate() {
            prop_assert!(row * rows.len() / n <= i + 1 && i <= row * rows.len() / n + 1, "row {row} is the {i}th");
        }
    }

    /// Nobody gives up its centroid twice, nor to be halved; no empty list is left beside one of two vectors or more.
    #[test]
    fn reseats_end_and_fill_empty_lists(sizes in proptest::collection::vec(prop_oneof![Just(0), 0usize..100], 1..60)) {
        let moves = reseats(&sizes);
        let mut after = sizes.clone();
        for (i, &(from, to)) in moves.iter().enumerate() {
            prop_assert!(moves[..i].iter().all(|m| m.0 != from) && moves.iter().all(|m| m.1 != from));
            after[from] = after[to] / 2;
            after[to] -= after[from];
        }
        let from: Vec<usize> = moves.iter().map(|m| m.0).collect();
        let idle = (0..sizes.len()).any(|i| sizes[i] == 0 && !from.contains(&i));
        let largest = (0..sizes.len()).filter(|i| !from.contains(i)).map(|i| after[i]).max();
        prop_assert!(!idle || largest.is_none_or(|size| size <= 3), "{sizes:?} become {after:?}");
    }
}

/// Half of all vectors in one of 40 clusters: its list is divided.
#[test]
fn lists_are_balanced() {
    let (dim, count, nlist) = (24, 8000, 64);
    let mut vectors = clustered(count, dim, 40, 7);
    let heavy = clustered(count / 2, dim, 1, 8);
    vectors[..heavy.len()].copy_from_slice(&heavy);
    let params = Params { metric: Metric::L2, dim, nlist, code: ListCode::Rows { stride: 8 }, seed: 3 };
    let ivf = build(params, &vectors, 2);
    let sizes: Vec<usize> = (0..nlist).map(|list| ivf.lists().list(list).len()).collect();
    assert_eq!(sizes.iter().sum::<usize>(), count);
    let largest = sizes.iter().max().unwrap() * nlist;
    assert!(largest <= 4 * count, "{sizes:?}");
    assert!(sizes.iter().all(|&size| size > 0), "{sizes:?}");
}

/// 30 clusters, far apart, are found: costs are at most twice what their own centres give.
#[test]
fn clusters_are_found() {
    let (dim, count, nlist) = (16, 6000, 30);
    for seed in 0..4 {
        let vectors = clustered(count, dim, nlist, 100 + seed);
        let origin = floats::mean(&vectors, dim);
        let mut points = Floats::new(&origin, false, count, kernels()).unwrap();
        vectors.chunks(dim).for_each(|v| points.push(v));
        let plan = Plan { lists: nlist, iterations: ITERATIONS, seed };
        let centroids = cluster(&points, plan, &Workers(2), &mut go).unwrap();
        let nearest = |v: &[f32]| {
            centroids.chunks(dim).map(|c| distance(Metric::L2, v, c)).fold(f64::INFINITY, f64::min)
        };
        let mean = vectors.chunks(dim).map(nearest).sum::<f64>() / count as f64;
        // Noise of 0.3 times the sum of four uniform numbers: a variance of 0.09 / 3 a dimension.
        let planted = dim as f64 * 0.09 / 3.0;
        assert!(mean < 2.0 * planted, "seed {seed}: {mean} instead of {planted}");
    }
}

/// Copies of one vector, and more lists than different vectors.
#[test]
fn copies_are_clustered() {
    let dim = 5;
    for different in [1, 2, 7] {
        let vectors: Vec<f32> = (0..200).flat_map(|i| vec![(i % different) as f32; dim]).collect();
        for code in [ListCode::Rows { stride: 8 }, ListCode::Pq4 { runs: 2 }] {
            let ivf = build(Params { metric: Metric::L2, dim, nlist: 12, code, seed: 1 }, &vectors, 2);
            let filled = (0..12).filter(|&list| ivf.lists().list(list).len() > 0).count();
            assert_eq!(filled, different);
            assert_eq!((0..12).map(|list| ivf.lists().list(list).len()).sum::<usize>(), 200);
        }
    }
}

#[test]
fn what_cannot_be_trained_is_refused() {
    let vectors = normal(40, 1);
    let source = Dense { vectors: &vectors, dim: 4 };
    for runs in [0, 5] {
        let params = Params { metric: Metric::L2, dim: 4, nlist: 2, code: ListCode::Pq4 { runs }, seed: 1 };
        let result = Ivf::train(params, kernels(), &source, 10, &Workers(1), &mut go);
        assert_eq!(result.err(), Some(TrainError::Runs { runs, most: 4 }));
    }
    let train = |nlist, proceed: &mut dyn FnMut(usize) -> ControlFlow<()>| {
        let params = Params { metric: Metric::L2, dim: 4, nlist, code: ListCode::Pq4 { runs: 2 }, seed: 1 };
        Ivf::train(params, kernels(), &source, 10, &Workers(1), proceed).err()
    };
    assert_eq!(train(11, &mut go), Some(TrainError::Few { nlist: 11, vectors: 10 }));
    assert_eq!(train(0, &mut go), Some(TrainError::Few { nlist: 0, vectors: 10 }));
    assert_eq!(train(10, &mut go), None);
    let mut heard = Vec::new();
    let stopped = train(3, &mut |done| {
        heard.push(done);
        if done == 1 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert_eq!((stopped, heard), (Some(TrainError::Cancelled), vec![0, 1]));
}
