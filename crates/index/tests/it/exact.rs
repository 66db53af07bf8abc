//! Flat indexes against the definition.

use crate::data::{Data, SPACES, build, distance, params, search};
use lanewise_index::{Code, Dtype, Kind, Metric, Params, Plan, Scratch, Search};
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
            let mut scratch = Scratch::default();
            let found = index.search(queries.vectors(), &Search::new(k).ef(1), &mut scratch);
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
                let (found, _) =
                    index.search(alone, &Search::new(10).ef(40), &mut Scratch::default()).unwrap();
                assert_eq!(&found[0], expected, "{dtype:?} {metric:?} {kind:?} query {q}");
            }
        }
    }
}

/// Numbers beyond all vectors are as good as all: searched in order, not kept one by one by a walk.
#[test]
fn numbers_beyond_all_vectors_are_exact() {
    let data = Data::clustered(Dtype::F32, 8, 3000, 741);
    let queries = Data::clustered(Dtype::F32, 8, 2, 742);
    for code in [Code::None, Code::I8] {
        let params = Params { code, ..params(Dtype::F32, Metric::L2, 8, Kind::Hnsw) };
        let index = build(params, &data);
        let reader = index.reader();
        let filter = reader.filter(|id| id % 3 == 0);
        for many in [usize::MAX, 1 << 61, 1 << 60] {
            let mut searches =
                vec![Search::new(many), Search::new(many).epsilon(0.1), Search::new(5).ef(many)];
            if code != Code::None {
                searches.push(Search::new(8).oversample(1000.0));
            }
            for how in searches {
                for how in [how, how.filter(&filter)] {
                    assert_eq!(reader.plan(&how), Plan::Exact, "{code:?} {how:?}");
                    let found = reader.search(queries.vectors(), &how, &mut Scratch::default()).unwrap().0;
                    let matches = if how.filter.is_some() { 1000 } else { 3000 };
                    assert!(found.iter().all(|one| one.ids.len() == how.k.min(matches)), "{how:?}");
                }
            }
        }
    }
}
