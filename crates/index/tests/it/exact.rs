//! Flat indexes against the definition.

use crate::data::{Data, SPACES, build, distance, params, search};
use lanewise_index::{Dtype, Kind, Metric};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// The results are the k smallest distances, each right, ties in the order of insertion.
    #[test]
    fn flat_search_is_the_definition(
        dim in 1usize..150,
        n in 1usize..300,
        k in 1usize..40,
        seed in any::<u64>(),
    ) {
        for (dtype, metric) in SPACES {
            let data = Data::clustered(dtype, dim, n, seed);
            let queries = Data::clustered(dtype, dim, 3, seed ^ 1);
            let index = lanewise_index::Index::new(params(dtype, metric, dim, Kind::Flat)).unwrap();
            let added = index.add(data.vectors(), None, &lanewise_index::Inline, &mut crate::data::go_on);
            let mut scratch = lanewise_index::Scratch::default();
            let found = index.search(queries.vectors(), &lanewise_index::Search::new(k).ef(1), &mut scratch);
            let (Ok(_), Ok((found, _))) = (added, found) else {
                // Small bytes in few dimensions may all be zero, which cosine refuses.
                prop_assert!(metric == Metric::Cosine && !dtype.is_float());
                continue;
            };
            for (q, neighbors) in found.iter().enumerate() {
                let exact = |i: usize| distance(metric, dim, queries.vectors(), q, data.vectors(), i);
                let mut sorted: Vec<f64> = (0..n).map(exact).collect();
                sorted.sort_by(f64::total_cmp);
                prop_assert_eq!(neighbors.ids.len(), k.min(n));
                let mut seen = std::collections::HashSet::new();
                for (rank, (&id, &d)) in neighbors.ids.iter().zip(&neighbors.distances).enumerate() {
                    // Sixteen bits round each element by 2^-11 (f16) or 2^-8 (bf16) of it.
                let rounding = match dtype { Dtype::F16 => 1e-3, Dtype::Bf16 => 1e-2, _ => 1e-5 };
                let tolerance = rounding * (dim as f64 + 4.0);
                    prop_assert!(seen.insert(id));
                    prop_assert!((f64::from(d) - exact(id as usize)).abs() <= tolerance, "{dtype:?} {metric:?}");
                    prop_assert!((f64::from(d) - sorted[rank]).abs() <= tolerance, "{dtype:?} {metric:?}");
                }
                if !dtype.is_float() && !matches!(metric, Metric::Cosine | Metric::Jaccard) {
                    let mut order: Vec<usize> = (0..n).collect();
                    order.sort_by(|&a, &b| exact(a).total_cmp(&exact(b)).then(a.cmp(&b)));
                    let expected: Vec<i64> = order[..k.min(n)].iter().map(|&i| i as i64).collect();
                    prop_assert_eq!(&neighbors.ids, &expected);
                }
            }
        }
    }
}

#[test]
fn a_query_alone_and_among_others_gets_the_same_answer() {
    for (dtype, metric) in SPACES {
        for kind in Kind::ALL {
            let data = Data::clustered(dtype, 48, 700, 3);
            let queries = Data::clustered(dtype, 48, 70, 4);
            let index = build(params(dtype, metric, 48, kind), &data);
            let together = search(&index, &queries, 10, 40);
            for (q, expected) in together.iter().enumerate() {
                let alone = queries.vectors().slice(48, q..q + 1);
                let (found, _) = index
                    .search(
                        alone,
                        &lanewise_index::Search::new(10).ef(40),
                        &mut lanewise_index::Scratch::default(),
                    )
                    .unwrap();
                assert_eq!(&found[0], expected, "{dtype:?} {metric:?} {kind:?} query {q}");
            }
        }
    }
}
