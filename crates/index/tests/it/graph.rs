//! Graph indexes: recall, contract, reproducibility and counted work.

use crate::data::{Data, Random, SPACES, Scrambled, build, go_on, params, recall, search};
use lanewise_index::{Counts, Dtype, Index, Inline, Kind, Metric, Neighbors, Params, Scratch, Search};
use std::fmt::Write;

#[test]
fn finds_nearly_all_of_the_nearest() {
    for (dtype, metric) in SPACES {
        // Not clustered about the origin as inner products like it least: the same data for all.
        let data = Data::clustered(dtype, 64, 4000, 11);
        let queries = Data::clustered(dtype, 64, 200, 12);
        let exact = search(&build(params(dtype, metric, 64, Kind::Flat), &data), &queries, 10, 1);
        let index = build(params(dtype, metric, 64, Kind::Hnsw), &data);
        let wide = recall(&search(&index, &queries, 10, 200), &exact);
        let narrow = recall(&search(&index, &queries, 10, 20), &exact);
        assert!(wide >= 0.98, "{dtype:?} {metric:?}: recall@10 {wide} at ef 200");
        assert!(narrow >= 0.75, "{dtype:?} {metric:?}: recall@10 {narrow} at ef 20");
        assert!(wide >= narrow, "{dtype:?} {metric:?}: {wide} at ef 200 below {narrow} at ef 20");
    }
}

#[test]
fn the_same_bytes_whatever_runs_the_tasks() {
    for ((dtype, metric), kind) in SPACES.into_iter().flat_map(|s| [(s, Kind::Hnsw), (s, Kind::Ivf)]) {
        let data = Data::clustered(dtype, 40, 1500, 21);
        let usual = Params { nlist: 0, ..params(dtype, metric, 40, kind) };
        let reference = build(usual, &data);
        assert_eq!(reference.stats().lists, if kind == Kind::Ivf { 152 } else { 0 });
        let reference: Vec<u8> = reference.image().unwrap().pieces().flatten().copied().collect();
        for workers in [1, 2, 7, 64] {
            let index = Index::new(usual).unwrap();
            let executor = Scrambled { workers, seed: workers as u64 };
            index.add(data.vectors(), None, &executor, &mut go_on).unwrap();
            let bytes: Vec<u8> = index.image().unwrap().pieces().flatten().copied().collect();
            assert!(bytes == reference, "{dtype:?} {metric:?} with {workers} workers differs");
        }
    }
}

#[test]
fn seeds_give_different_graphs_and_the_same_recall() {
    let data = Data::clustered(Dtype::F32, 32, 2000, 31);
    let image = |seed| {
        let index = build(Params { seed, ..params(Dtype::F32, Metric::L2, 32, Kind::Hnsw) }, &data);
        index.image().unwrap().pieces().flatten().copied().collect::<Vec<u8>>()
    };
    assert_ne!(image(1), image(2));
    assert_eq!(image(1), image(1));
}

/// Vectors that come in order (a line, a random walk, one cluster after another) are found like any others: the nodes of
/// a batch, all new to the graph's region, must find each other.
#[test]
fn vectors_in_order_are_found() {
    let mut random = Random(43);
    let mut step = || (random.next() >> 40) as f32 / (1 << 24) as f32 - 0.5;
    let line: Vec<f32> = (0..8000).map(|i| i as f32).collect();
    let mut walk = vec![0.0; 16];
    for i in 0..7999 * 16 {
        walk.push(walk[i] + step());
    }
    let clusters: Vec<f32> =
        (0..60 * 100 * 16).map(|i| ((i / 1600 * 7919 + i % 16 * 104_729) % 97) as f32 + step()).collect();
    for (name, dim, data) in [("line", 1, line), ("walk", 16, walk), ("clusters", 16, clusters)] {
        let queries = Data::F32(data.chunks(dim).step_by(37).flatten().copied().collect());
        let data = Data::F32(data);
        let exact = search(&build(params(Dtype::F32, Metric::L2, dim, Kind::Flat), &data), &queries, 10, 1);
        let usual = Params { m: 16, ef_construction: 200, ..params(Dtype::F32, Metric::L2, dim, Kind::Hnsw) };
        let found = recall(&search(&build(usual, &data), &queries, 10, 100), &exact);
        assert!(found >= 0.9, "{name}: recall@10 {found}");
    }
}

/// Copies of a vector among others are all as near: none is passed over for one that is farther.
#[test]
fn copies_are_found_before_what_is_farther() {
    for (dtype, metric) in [(Dtype::F32, Metric::L2), (Dtype::F32, Metric::Cosine), (Dtype::I8, Metric::L2)] {
        for copies in [20, 200, 1000] {
            let others = Data::clustered(dtype, 32, 6000, 44);
            let one = Data::clustered(dtype, 32, 1, 45);
            let index = Index::new(params(dtype, metric, 32, Kind::Hnsw)).unwrap();
            index.add(others.vectors(), None, &Inline, &mut go_on).unwrap();
            for _ in 0..copies {
                index.add(one.vectors(), None, &Inline, &mut go_on).unwrap();
            }
            let found = &search(&index, &one, copies.min(60), 100)[0];
            let nearest = found.distances.iter().filter(|&&d| d <= 1e-6).count();
            assert!(nearest * 10 >= copies.min(60) * 9, "{dtype:?} {metric:?}: {nearest} of {copies} copies");
        }
    }
}

/// Against sorting everything, where keeping the best in order would take time by the square.
#[test]
fn very_many_results() {
    let data = Data::clustered(Dtype::I8, 8, 5000, 46);
    let queries = Data::clustered(Dtype::I8, 8, 2, 47);
    let index = build(params(Dtype::I8, Metric::L2, 8, Kind::Hnsw), &data);
    let all = search(&index, &queries, 9000, 10);
    for k in [1024, 1025, 4999, 5000] {
        for (some, all) in search(&index, &queries, k, 10).iter().zip(&all) {
            assert_eq!(some.ids[..], all.ids[..k]);
            assert!(some.distances.is_sorted());
        }
    }
}

/// Many identical vectors hide each other in the graph; the answer is still full.
#[test]
fn identical_vectors_do_not_cost_results() {
    for n in [1, 2, 50, 900] {
        for ((dtype, metric), kind) in SPACES.into_iter().flat_map(|s| Kind::ALL.map(|kind| (s, kind))) {
            let one = Data::clustered(dtype, 16, 1, 41);
            let data = match &one {
                Data::F32(x) => Data::F32(x.repeat(n)),
                Data::I8(x) => Data::I8(x.repeat(n)),
                Data::U8(x) => Data::U8(x.repeat(n)),
                Data::Bits(x) => Data::Bits(x.repeat(n)),
            };
            let index = build(params(dtype, metric, 16, kind), &data);
            for k in [1, 10, 100, 2000] {
                let found = search(&index, &one, k, 10);
                assert_eq!(found[0].ids.len(), k.min(n), "{dtype:?} {metric:?} n={n} k={k}");
                let mut ids = found[0].ids.clone();
                ids.sort_unstable();
                ids.dedup();
                assert_eq!(ids.len(), k.min(n), "results repeated");
            }
        }
    }
}

#[test]
fn an_empty_index_has_no_results() {
    for kind in Kind::ALL {
        let index = Index::new(params(Dtype::F32, Metric::L2, 4, kind)).unwrap();
        let found = search(&index, &Data::F32(vec![0.0; 8]), 5, 10);
        assert_eq!(found, vec![Neighbors::default(); 2]);
    }
}

/// Vectors added in any division into calls are all found, and k near the number of vectors works.
#[test]
fn many_small_adds() {
    for kind in Kind::ALL {
        let mut random = Random(51);
        let data = Data::clustered(Dtype::I8, 24, 600, 52);
        let index = Index::new(params(Dtype::I8, Metric::L2, 24, kind)).unwrap();
        let mut done = 0;
        while done < 600 {
            let end = (done + 1 + random.below(40)).min(600);
            index.add(data.vectors().slice(24, done..end), None, &Inline, &mut go_on).unwrap();
            done = end;
            assert_eq!(index.len(), done);
        }
        let queries = Data::clustered(Dtype::I8, 24, 50, 53);
        let exact = search(&build(params(Dtype::I8, Metric::L2, 24, Kind::Flat), &data), &queries, 10, 1);
        let found = recall(&search(&index, &queries, 10, 100), &exact);
        // All four lists are scanned.
        assert!(found > if kind == Kind::Hnsw { 0.97 } else { 0.9999 }, "{kind:?}: recall {found}");
    }
}

/// Whether keys are integers, the same on every machine.
fn exact_keys(dtype: Dtype, metric: Metric) -> bool {
    matches!(dtype, Dtype::I8 | Dtype::U8 | Dtype::Bits)
        && !matches!(metric, Metric::Cosine | Metric::Jaccard)
}

/// Work counted on seeded data of integers, so that it is the same on every machine: a change in the algorithm shows as
/// a change in this file, to be read and committed. `LANEWISE_REGENERATE=1` writes it.
#[test]
fn counted_work_is_what_was_committed() {
    let mut report = String::from(
        "# dtype metric: hops and distances of the build; ef: recall@10, hops, distances and bytes a query\n",
    );
    for (dtype, metric) in SPACES.into_iter().filter(|(dtype, metric)| exact_keys(*dtype, *metric)) {
        let data = Data::clustered(dtype, 64, 3000, 61);
        let queries = Data::clustered(dtype, 64, 100, 62);
        let exact = search(&build(params(dtype, metric, 64, Kind::Flat), &data), &queries, 10, 1);
        let index = Index::new(params(dtype, metric, 64, Kind::Hnsw)).unwrap();
        let Counts { hops, distances, .. } = index.add(data.vectors(), None, &Inline, &mut go_on).unwrap();
        let digest =
            index.image().unwrap().pieces().flatten().fold(0xcbf2_9ce4_8422_2325u64, |hash, &byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
            });
        writeln!(report, "{} {}: {hops} {distances}, file {digest:016x}", dtype.name(), metric.name())
            .unwrap();
        for ef in [10, 40, 160] {
            let (found, counts) =
                index.search(queries.vectors(), &Search::new(10).ef(ef), &mut Scratch::default()).unwrap();
            let recall = recall(&found, &exact);
            let per = |n: u64| n as f64 / 100.0;
            let (hops, distances, bytes) = (per(counts.hops), per(counts.distances), per(counts.bytes));
            writeln!(report, "  {ef}: {recall:.3} {hops:.2} {distances:.2} {bytes:.0}").unwrap();
        }
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/counted_work.txt");
    if std::env::var_os("LANEWISE_REGENERATE").is_some() {
        std::fs::write(path, &report).unwrap();
        return;
    }
    assert_eq!(report, include_str!("counted_work.txt"), "LANEWISE_REGENERATE=1 writes the new counts");
}

/// Widening epsilon finds more for more work, and no more than a fixed breadth for the same recall.
#[test]
fn epsilon_adapts_the_breadth_to_the_query() {
    let data = Data::clustered(Dtype::F32, 48, 8000, 63);
    let queries = Data::clustered(Dtype::F32, 48, 200, 64);
    for metric in [Metric::L2, Metric::Cosine] {
        let exact = search(&build(params(Dtype::F32, metric, 48, Kind::Flat), &data), &queries, 10, 1);
        let index = build(params(Dtype::F32, metric, 48, Kind::Hnsw), &data);
        let run = |how: Search| {
            let (found, counts) = index.search(queries.vectors(), &how, &mut Scratch::default()).unwrap();
            (recall(&found, &exact), counts.distances)
        };
        let by_epsilon: Vec<_> = (0..30).map(|e| run(Search::new(10).epsilon(e as f32 / 100.0))).collect();
        assert!(by_epsilon.is_sorted_by(|a, b| a.1 <= b.1), "{by_epsilon:?}");
        for ef in [60, 80, 160] {
            let (wanted, work) = run(Search::new(10).ef(ef));
            let (_, least) = by_epsilon.iter().find(|(recall, _)| *recall >= wanted).expect("reached");
            assert!(
                *least * 100 < work * 105, // real data, whose queries differ more, takes up to a quarter less
                "{metric:?}: recall {wanted} by {work} distances, with epsilon by {least}"
            );
        }
    }
}
