//! Searches by the recall that is asked for, and the recall of searches as they run.

use crate::data::{Data, Random, Scrambled, build, go_on, params};
use crate::files::{forge, image, open};
use lanewise_index::{
    CalibrateError, Code, Counts, Dtype, Index, Inline, KS, Kind, Knob, Metric, Monitor, Neighbors, Params,
    Point, Scratch, Search, SearchError,
};
use std::ops::ControlFlow;

fn all(_: usize, _: usize) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn run(index: &Index, queries: &Data, how: &Search<'_>) -> (Vec<Neighbors>, Counts) {
    index.search(queries.vectors(), how, &mut Scratch::default()).unwrap()
}

/// Vectors that fill a cube evenly.
fn uniform(dim: usize, n: usize, seed: u64) -> Data {
    let mut random = Random(seed);
    Data::F32((0..n * dim).map(|_| (random.next() >> 40) as f32 / (1 << 24) as f32).collect())
}

/// Each vector four times.
fn copies(dim: usize, n: usize, seed: u64) -> Data {
    let Data::F32(floats) = Data::clustered(Dtype::F32, dim, n / 4, seed) else { unreachable!() };
    Data::F32(floats.chunks(dim).flat_map(|vector| vector.repeat(4)).collect())
}

struct Shape {
    name: &'static str,
    params: Params,
    data: Data,
    queries: Data,
}

/// Data of several shapes, and queries of the same shape that are not in it.
fn shapes(n: usize) -> Vec<Shape> {
    let shape = |name, params: Params, make: &dyn Fn(usize, u64) -> Data| Shape {
        name,
        params: Params { m: 16, ef_construction: 100, nlist: 0, ..params },
        data: make(n, 701),
        queries: make(1000, 702),
    };
    let of = |dtype, metric, dim, kind, code| Params { code, ..params(dtype, metric, dim, kind) };
    let clustered = |dtype, dim| move |n: usize, seed: u64| Data::clustered(dtype, dim, n, seed);
    let (f32, l2, ip, hnsw, ivf) = (Dtype::F32, Metric::L2, Metric::InnerProduct, Kind::Hnsw, Kind::Ivf);
    vec![
        shape("clustered", of(f32, l2, 32, hnsw, Code::None), &clustered(f32, 32)),
        shape("uniform", of(f32, l2, 12, hnsw, Code::None), &|n, seed| uniform(12, n, seed)),
        shape("copies", of(f32, l2, 24, hnsw, Code::None), &|n, seed| copies(24, n, seed)),
        shape("inner products", of(f32, ip, 24, hnsw, Code::None), &clustered(f32, 24)),
        shape("inner products, i8", of(f32, ip, 24, hnsw, Code::I8), &clustered(f32, 24)),
        shape("cosine, i8", of(f32, Metric::Cosine, 32, hnsw, Code::I8), &clustered(f32, 32)),
        shape("i4", of(f32, l2, 32, hnsw, Code::I4), &clustered(f32, 32)),
        shape("bits", of(Dtype::Bits, Metric::Hamming, 128, hnsw, Code::None), &clustered(Dtype::Bits, 128)),
        shape("lists", of(f32, l2, 24, ivf, Code::None), &clustered(f32, 24)),
        shape("lists of copies", of(f32, l2, 24, ivf, Code::None), &|n, seed| copies(24, n, seed)),
        shape("lists, uniform", of(f32, l2, 12, ivf, Code::None), &|n, seed| uniform(12, n, seed)),
        shape("lists, pq4", of(f32, l2, 32, ivf, Code::Pq4), &clustered(f32, 32)),
        shape("lists, inner products", of(f32, ip, 24, ivf, Code::None), &clustered(f32, 24)),
        shape(
            "lists of bits",
            of(Dtype::Bits, Metric::Hamming, 128, ivf, Code::None),
            &clustered(Dtype::Bits, 128),
        ),
    ]
}

/// The recall of queries that `found` the first `k` of `exact`, and its standard error.
fn mean(found: &[Neighbors], exact: &[Neighbors], k: usize) -> (f64, f64) {
    let shares = found.iter().zip(exact).map(|(found, exact)| {
        let kth = exact.distances[k - 1];
        // Kernels differ in the order of their sums.
        let near = |(id, distance): (&i64, &f32)| *distance <= kth || exact.ids[..k].contains(id);
        found.ids.iter().zip(&found.distances).filter(|one| near(*one)).count() as f64 / k as f64
    });
    let shares: Vec<f64> = shares.collect();
    let mean = shares.iter().sum::<f64>() / shares.len() as f64;
    let variance = shares.iter().map(|share| (share - mean).powi(2)).sum::<f64>() / shares.len() as f64;
    (mean, (variance / shares.len() as f64).sqrt())
}

/// By a curve of held-out vectors, queries that are not in the index find what was asked for.
#[test]
fn targets_are_reached_by_fresh_queries() {
    const N: usize = 12_000;
    let (mut reached, mut asked) = (0, 0);
    for Shape { name, params, data, queries } in shapes(N) {
        let index = build(params, &data);
        let exact = run(&index, &queries, &Search { exact: true, ..Search::new(300) }).0;
        let curve = index.tuned(&Inline, &mut all).unwrap();
        assert_eq!((curve.len, curve.held_out, curve.tables.len()), (N, true, 3));
        // Copies in upper layers keep theirs from being held out.
        assert!(curve.queries > if name == "copies" { 350 } else { 480 }, "{}", curve.queries);
        let knob = match (params.kind, params.metric) {
            (Kind::Ivf, _) => Knob::Nprobe,
            (_, Metric::InnerProduct) => Knob::EfSearch,
            _ => Knob::Epsilon,
        };
        assert_eq!(curve.knob, knob);
        for table in &curve.tables {
            let rises = |pair: &[Point]| {
                pair[0].recall < pair[1].recall
                    && pair[0].low < pair[1].low
                    && pair[0].distances <= pair[1].distances
            };
            assert!(table.points.windows(2).all(rises), "{table:?}");
        }
        let mut bias = (0.0, 0.0);
        for table in &curve.tables {
            for point in table.points.iter().filter(|point| (0.5..0.995).contains(&point.recall)) {
                let how = Search { oversample: point.oversample, ..Search::new(table.k) };
                let how = match curve.knob {
                    Knob::Epsilon => how.epsilon(point.effort),
                    Knob::EfSearch => how.ef(point.effort as usize),
                    _ => how.nprobe(point.effort as usize),
                };
                let (got, _) = mean(&run(&index, &queries, &how).0, &exact, table.k);
                println!(
                    "{name}: k {} effort {}: held out {}, fresh {got}",
                    table.k, point.effort, point.recall
                );
                bias = (bias.0 + f64::from(point.recall) - got, bias.1 + 1.0);
            }
        }
        let bias = bias.0 / f64::max(bias.1, 1.0);
        println!("{name}: held-out vectors find {bias:.4} more than fresh queries");
        assert!((-0.05..0.03).contains(&bias), "{name}: {bias}");
        for k in [1, 4, 10, 40, 100, 300] {
            for target in [0.8, 0.9, 0.95, 0.99] {
                let how = curve.tune(Search::new(k), target).unwrap();
                let (found, counts) = run(&index, &queries, &how);
                let (got, error) = mean(&found, &exact, k);
                println!(
                    "{name}: k {k} target {target}: {got:.4} with {:?} {:?} {} {} exact {}, {} compared",
                    how.epsilon,
                    how.oversample,
                    how.ef_search,
                    how.nprobe,
                    how.exact,
                    counts.distances / 1000
                );
                assert!(
                    got + 2.0 * error >= f64::from(target) - 0.01,
                    "{name}: k {k} target {target}: {got}"
                );
                reached += usize::from(got >= f64::from(target));
                asked += 1;
            }
        }
    }
    println!("{reached} of {asked} reached");
    assert!(reached as f64 >= 0.9 * asked as f64, "{reached} of {asked}");
}

/// A graph of 4,000 vectors, and lists of codes.
fn two() -> [Index; 2] {
    let data = Data::clustered(Dtype::F32, 24, 4000, 711);
    [(Kind::Hnsw, Code::I8), (Kind::Ivf, Code::Pq4)].map(|(kind, code)| {
        build(Params { code, nlist: 60, ..params(Dtype::F32, Metric::L2, 24, kind) }, &data)
    })
}

#[test]
fn curves_do_not_depend_on_the_executor() {
    let queries = Data::clustered(Dtype::F32, 24, 200, 712);
    for index in two() {
        for queries in [None, Some(queries.vectors())] {
            let curve = index.calibrate(queries, &KS, &Inline, &mut all).unwrap();
            assert_eq!(curve.held_out, queries.is_none());
            assert!(queries.is_none() || curve.queries == 200);
            for (workers, seed) in [(1, 5), (3, 6), (8, 7)] {
                let again = index.calibrate(queries, &KS, &Scrambled { workers, seed }, &mut all).unwrap();
                assert_eq!(again, curve, "{workers} workers, seed {seed}");
            }
        }
    }
}

/// Vectors without structure: a held-out one that were met after all would lead to its neighbours, or end the walk.
#[test]
fn held_out_vectors_are_out_of_sight() {
    let (data, queries) = (uniform(64, 4000, 713), uniform(64, 1000, 719));
    for kind in [Kind::Hnsw, Kind::Ivf] {
        let index = build(Params { nlist: 60, ..params(Dtype::F32, Metric::L2, 64, kind) }, &data);
        let exact = run(&index, &queries, &Search { exact: true, ..Search::new(1) }).0;
        let curve = index.calibrate(None, &[1], &Inline, &mut all).unwrap();
        let between = |point: &&Point| (0.3..0.95).contains(&point.recall);
        assert!(curve.tables[0].points.iter().filter(between).count() > 2, "{kind:?}: {curve:?}");
        for point in curve.tables[0].points.iter().filter(between) {
            let how = Search::new(1).nprobe((point.effort as usize).max(1));
            let how = if kind == Kind::Hnsw { how.epsilon(point.effort) } else { how };
            let (got, _) = mean(&run(&index, &queries, &how).0, &exact, 1);
            println!("{kind:?}: held out {}, fresh {got}", point.recall);
            assert!((f64::from(point.recall) - got).abs() < 0.15, "{kind:?}: {got}, {point:?}");
        }
    }
}

#[test]
fn calibrating_stops_when_told_to_and_changes_nothing() {
    for index in two() {
        let (mut heard, mut last) = (0, 0);
        let first = index.calibrate(None, &KS, &Inline, &mut |done, all| {
            assert!(done >= last && done <= all);
            (heard, last) = (heard + 1, done);
            ControlFlow::Continue(())
        });
        let first = first.unwrap();
        for stop in [1, 2, heard / 2, heard] {
            let mut left = stop;
            let stopped = index.calibrate(None, &[7], &Inline, &mut |_, _| {
                left -= 1;
                if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
            if stop < 10 {
                assert_eq!(stopped.unwrap_err(), CalibrateError::Cancelled);
                assert_eq!(index.curve().unwrap(), first);
            }
        }
    }
}

#[test]
fn wrong_calibrations_are_named() {
    let [index, _] = two();
    let few = Data::clustered(Dtype::F32, 24, 49, 714);
    let wrong = |queries: Option<&Data>, ks: &[usize]| {
        index.calibrate(queries.map(Data::vectors), ks, &Inline, &mut all).unwrap_err()
    };
    for ks in [&[][..], &[0, 1], &[10, 1], &[5, 5], &[10_001], &[1, 2, 3, 4, 5, 6, 7, 8, 9]] {
        assert_eq!(wrong(None, ks), CalibrateError::Ks);
    }
    assert_eq!(wrong(Some(&few), &[1]), CalibrateError::FewQueries { count: 49, fewest: 50 });
    let nan = Data::F32(vec![f32::NAN; 24 * 60]);
    assert!(matches!(wrong(Some(&nan), &[1]), CalibrateError::Vector(_)));
    assert!(index.curve().is_none());
}

/// Where searches compare all anyway, and where the curve grows old.
#[test]
fn curves_are_measured_anew_when_the_index_has_changed() {
    for kind in Kind::ALL {
        let index = Index::new(params(Dtype::F32, Metric::L2, 16, kind)).unwrap();
        let empty = index.tuned(&Inline, &mut all).unwrap();
        assert!(empty.tune(Search::new(5), 0.9).unwrap().exact && empty.tables.is_empty());
        let data = Data::clustered(Dtype::F32, 16, 900, 715);
        let add = |index: &Index, rows: std::ops::Range<usize>| {
            let ids: Vec<i64> = rows.clone().map(|row| row as i64).collect();
            index.upsert(data.vectors().slice(16, rows), &ids, &Inline, &mut go_on).unwrap();
        };
        add(&index, 0..20);
        assert!(index.curve().is_none());
        let few = index.tuned(&Inline, &mut all).unwrap();
        assert_eq!(few.tables.len(), if kind == Kind::Hnsw { 1 } else { 0 });
        // Lists are made, or more came in than there were.
        add(&index, 20..400);
        assert!(index.curve().is_none());
        let curve = index.tuned(&Inline, &mut all).unwrap();
        assert_eq!(curve.tables.len(), if kind == Kind::Flat { 0 } else { 2 }, "{kind:?}");
        add(&index, 400..800);
        assert_eq!(index.tuned(&Inline, &mut all).unwrap(), curve);
        // Saved and opened it is as old.
        let opened = open(&image(&index)).unwrap();
        assert!(opened.curve().is_some());
        for index in [&index, &opened] {
            add(index, 800..801);
            assert!(index.curve().is_none());
            index.tuned(&Inline, &mut all).unwrap();
            index.remove(&(0..200).collect::<Vec<i64>>()).unwrap();
            assert!(index.curve().is_some());
        }
        // Removed 200 and replaced one: more than a quarter of 801.
        let opened = open(&image(&index)).unwrap();
        for index in [&index, &opened] {
            add(index, 500..501);
            assert!(index.curve().is_none());
            assert_eq!(index.tuned(&Inline, &mut all).unwrap().len, 601);
        }
    }
}

#[test]
fn curves_come_back_from_files_or_are_refused() {
    for index in two() {
        let without = image(&index);
        let curve = index.tuned(&Inline, &mut all).unwrap();
        let bytes = image(&index);
        assert!(bytes.len() > without.len());
        let opened = open(&bytes).unwrap();
        let back = opened.curve().unwrap();
        assert_eq!((&back.tables, back.queries, back.knob), (&curve.tables, curve.queries, curve.knob));
        assert!(image(&opened) == bytes);
        let at = 128 + 15 * 32;
        let section = u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize;
        for (offset, value) in [(0, 9), (1, 7), (1, 0), (3, 200), (32, 0)] {
            let mut forged = bytes.clone();
            forged[section + offset] = value;
            forge(&mut forged);
            let error = open(&forged).err().expect("refused").to_string();
            assert!(error.contains("curve of recall"), "{error}");
        }
        let mut forged = bytes.clone();
        forged[section] ^= 1;
        let error = open(&forged).err().expect("refused").to_string();
        assert!(error.contains("curve of recall do not have their checksum"), "{error}");
    }
}

/// Sampled queries against the truth for all; the same sample from the same seed; drift shows.
#[test]
fn monitors_estimate_recall_and_follow_it() {
    let [index, _] = two();
    let reader = index.reader();
    let queries = Data::clustered(Dtype::F32, 24, 4000, 716);
    let mut scratch = Scratch::default();
    let (mut covered, mut runs) = (0, 0);
    for (round, ef) in [5, 10, 20, 40].into_iter().cycle().take(40).enumerate() {
        let how = Search::new(5).ef(ef).oversample(1.0);
        let exact = run(&index, &queries, &Search { exact: true, ..how }).0;
        let found = run(&index, &queries, &how).0;
        let (truth, _) = mean(&found, &exact, 5);
        let monitor = Monitor::new(0.05, 1000, 717 + round as u64);
        let sample = monitor.sample(4000);
        assert!((120..280).contains(&sample.len()), "{}", sample.len());
        for &i in &sample {
            let query = queries.vectors().slice(24, i..i + 1);
            let hits = reader.hits(query, &how, &found[i], &mut scratch).unwrap();
            monitor.note(std::iter::once(hits));
        }
        let estimate = monitor.estimate();
        assert_eq!(estimate.queries, sample.len());
        if round < 4 {
            println!("ef {ef}: {truth:.4}, {estimate:?}");
        }
        covered += usize::from((estimate.low..=estimate.high).contains(&truth));
        runs += 1;
        assert_eq!(Monitor::new(0.05, 10, 717 + round as u64).sample(4000), sample);
    }
    println!("{covered} of {runs} intervals have the truth in them");
    assert!(covered >= 36, "{covered} of {runs}");

    let monitor = Monitor::new(1.0, 100, 0);
    assert!(monitor.estimate().recall.is_nan() && monitor.sample(3) == [0, 1, 2]);
    monitor.note((0..500).map(|_| (10, 10)));
    assert_eq!((monitor.estimate().recall, monitor.estimate().queries), (1.0, 100));
    monitor.note((0..50).map(|_| (0, 10)));
    assert_eq!((monitor.estimate().recall, monitor.estimate().queries), (0.5, 100));
    monitor.note((0..50).map(|_| (0, 10)));
    assert_eq!(monitor.estimate().recall, 0.0);
    assert!(
        Monitor::new(0.0, 5, 0).sample(1000).is_empty() && Monitor::new(f64::NAN, 5, 0).sample(9).is_empty()
    );
}

#[test]
fn exact_means_exact() {
    for index in two() {
        let queries = Data::clustered(Dtype::F32, 24, 3, 718);
        let (_, counts) = run(&index, &queries, &Search { exact: true, ..Search::new(5) });
        let (distances, bytes) = (3 * 4000, counts.bytes);
        assert_eq!(counts, Counts { exact: 3, distances, bytes, ..Counts::default() });
        let curve = index.tuned(&Inline, &mut all).unwrap();
        assert!(curve.tune(Search::new(5), 1.0).unwrap().exact);
        assert_eq!(curve.tune(Search::new(5), 1.5).unwrap_err(), SearchError::TargetRecall);
    }
}

/// Every vector has a copy above the base layer, where walks begin, so that none can be held out.
#[test]
fn a_curve_of_nothing_held_out_is_exact_and_can_be_saved() {
    let distinct = Data::clustered(Dtype::F32, 8, 10, 731);
    let Data::F32(floats) = &distinct else { unreachable!() };
    let data = Data::F32(floats.chunks(8).flat_map(|vector| vector.repeat(16)).collect());
    let index = build(Params { m: 2, ..params(Dtype::F32, Metric::L2, 8, Kind::Hnsw) }, &data);
    let curve = index.calibrate(None, &[1, 10], &Inline, &mut all).unwrap();
    assert_eq!((curve.queries, curve.tables.len()), (0, 0));
    assert!(curve.tune(Search::new(5), 0.5).unwrap().exact);
    assert_eq!(open(&image(&index)).unwrap().curve().unwrap().queries, 0);
}
