//! Exact neighbours, recall by them, and the figures of an index.

use lanewise_bench::convert::VectorSet;
use lanewise_bench::generate::mixture;
use lanewise_bench::measure::{MeasureError, Plan, figures, steps};
use lanewise_bench::recall::{RecallError, recall};
use lanewise_bench::truth::Truth;
use lanewise_engine::index::{Code, Index, Kind, Neighbors, Params, Search};
use lanewise_engine::{Threads, search};
use std::num::NonZeroUsize;
use std::ops::ControlFlow;

fn threads() -> Threads {
    Threads::new(NonZeroUsize::new(2))
}

/// Vectors on a line at 0, 1, 2 … and queries at the given places.
fn line(vectors: usize, queries: &[f32], k: usize) -> Truth {
    let vectors = VectorSet::floats(1, (0..vectors).map(|i| i as f32).collect());
    let queries = VectorSet::floats(1, queries.to_vec());
    Truth::compute(Params::new(1), vectors.as_vectors(), queries.as_vectors(), k, threads()).unwrap()
}

fn found(results: &[(i64, f32)]) -> Neighbors {
    Neighbors { ids: results.iter().map(|r| r.0).collect(), distances: results.iter().map(|r| r.1).collect() }
}

#[test]
fn the_truth_is_what_comparing_every_vector_gives() {
    let (dim, n, k) = (7, 300, 5);
    let (vectors, queries) = mixture(dim, n, 9, 3);
    let set = (VectorSet::floats(dim, vectors.clone()), VectorSet::floats(dim, queries.clone()));
    let truth =
        Truth::compute(Params::new(dim), set.0.as_vectors(), set.1.as_vectors(), k, threads()).unwrap();
    assert_eq!((truth.len(), truth.k()), (9, k));
    for (i, query) in queries.chunks(dim).enumerate() {
        let squares = |v: &[f32]| v.iter().zip(query).map(|(a, b)| f64::from(a - b).powi(2)).sum::<f64>();
        let mut all: Vec<(f64, i64)> = vectors.chunks(dim).map(squares).zip(0..).collect();
        all.sort_by(|a, b| a.0.total_cmp(&b.0));
        let expected: Vec<(i64, f32)> = all[..k].iter().map(|(d, id)| (*id, *d as f32)).collect();
        // One query at a time against a truth of that query: recall 1 says that ids agree, 0.8 that one does not.
        let one = VectorSet::floats(dim, query.to_vec());
        let truth =
            Truth::compute(Params::new(dim), set.0.as_vectors(), one.as_vectors(), k, threads()).unwrap();
        assert_eq!(recall(&[found(&expected)], &truth, k), Ok(1.0), "query {i}");
        let mut wrong = expected;
        wrong[k - 1] = (all[k + 5].1, all[k + 5].0 as f32);
        assert_eq!(recall(&[found(&wrong)], &truth, k), Ok(0.8), "query {i}");
    }
}

/// Whatever is measured against it scans or walks on: a flat index with a code is not exact.
#[test]
fn the_truth_is_of_the_vectors_not_of_a_code() {
    let (dim, n, k) = (24, 3000, 10);
    let (vectors, queries) = mixture(dim, n, 50, 7);
    let (vectors, queries) = (VectorSet::floats(dim, vectors), VectorSet::floats(dim, queries));
    let of = |code| {
        let params = Params { kind: Kind::Ivf, code, ..Params::new(dim) };
        Truth::compute(params, vectors.as_vectors(), queries.as_vectors(), k, threads()).unwrap()
    };
    for code in Code::ALL {
        assert_eq!(of(code), of(Code::None), "{code:?}");
    }
}

#[test]
fn equally_near_vectors_are_equally_right() {
    // From 5.0: 5 at 0, then 4 and 6 at 1, then 3 and 7 at 4. The truth names one of 4 and 6; both count.
    let truth = line(10, &[5.0], 2);
    for tie in [4, 6] {
        assert_eq!(recall(&[found(&[(5, 0.0), (tie, 1.0)])], &truth, 2), Ok(1.0), "{tie}");
    }
    assert_eq!(recall(&[found(&[(5, 0.0), (3, 4.0)])], &truth, 2), Ok(0.5));
    assert_eq!(
        recall(&[found(&[(4, 1.0), (6, 1.0)])], &truth, 2),
        Ok(1.0),
        "none is farther than the second"
    );
    assert_eq!(recall(&[found(&[(3, 4.0), (7, 4.0)])], &truth, 2), Ok(0.0));
}

#[test]
fn truth_from_a_file_has_ids_alone_and_counts_the_same_but_for_the_last_tie() {
    let folder = tempfile::tempdir().unwrap();
    let truth = line(10, &[5.0, 0.2], 3);
    for name in ["t.ivecs", "t.npy"] {
        let path = folder.path().join(name);
        truth.save(&path).unwrap();
        let read = Truth::read(&path).unwrap();
        assert_eq!((read.len(), read.k()), (2, 3));
        let second = found(&[(0, 0.04), (1, 0.64), (2, 3.24)]);
        assert_eq!(recall(&[found(&[(5, 0.0), (4, 1.0), (6, 1.0)]), second.clone()], &read, 3), Ok(1.0));
        assert_eq!(recall(&[found(&[(3, 4.0), (7, 4.0), (2, 9.0)]), second], &read, 3), Ok(0.5));
        // Fewer neighbours than the file has.
        assert_eq!(recall(&[found(&[(5, 0.0)]), found(&[(1, 0.64)])], &read, 1), Ok(0.5));
    }
}

#[test]
fn truth_and_results_must_go_together() {
    let truth = line(10, &[5.0], 2);
    let good = found(&[(5, 0.0), (4, 1.0), (6, 1.0)]);
    assert_eq!(recall(&[], &truth, 2), Err(RecallError::Queries { truth: 1, queries: 0 }));
    let two = [good.clone(), good.clone()];
    assert_eq!(recall(&two, &truth, 2), Err(RecallError::Queries { truth: 1, queries: 2 }));
    assert_eq!(recall(&[good], &truth, 3), Err(RecallError::K { truth: 2, k: 3 }));
    let short = Err(RecallError::Results { query: 0, found: 1, k: 2 });
    assert_eq!(recall(&[found(&[(5, 0.0)])], &truth, 2), short);
    assert_eq!(line(3, &[0.0], 10).k(), 3, "no more neighbours than vectors");
}

#[test]
fn figures_of_an_exact_index_have_recall_1_and_those_of_a_graph_less_work() {
    let (dim, n, k) = (16, 3_000, 10);
    let (vectors, queries) = mixture(dim, n, 40, 1);
    let (vectors, queries) = (VectorSet::floats(dim, vectors), VectorSet::floats(dim, queries));
    let params = Params::new(dim);
    let truth = Truth::compute(params, vectors.as_vectors(), queries.as_vectors(), k, threads()).unwrap();
    for kind in Kind::ALL {
        let index = Index::new(Params { kind, ..params }).unwrap();
        index.add(vectors.as_vectors(), None, &threads(), &mut |_| ControlFlow::Continue(())).unwrap();
        let plan = Plan { k, efforts: &[10, 200], threads: threads(), rounds: 2 };
        let mut heard = 0;
        let all = figures(&index, queries.as_vectors(), &truth, plan, &mut || heard += 1).unwrap();
        assert_eq!((all.len(), heard), (2, steps(plan)));
        for (f, effort) in all.iter().zip([10, 200]) {
            assert_eq!(f.effort, effort);
            assert!(f.per_second_one > 0.0 && f.per_second_all > 0.0 && f.p50 <= f.p99, "{f:?}");
            let (found, counts) = search(
                &index.reader(),
                queries.as_vectors(),
                &Search::new(k).ef(effort).nprobe(effort),
                threads(),
            )
            .unwrap();
            assert_eq!(f.recall, recall(&found, &truth, k).unwrap());
            assert_eq!(f.distances, counts.distances as f64 / 40.0);
        }
        match kind {
            Kind::Flat => assert!(all.iter().all(|f| f.recall == 1.0 && f.distances == n as f64)),
            Kind::Hnsw | Kind::Ivf => {
                assert!(all[0].recall < all[1].recall && all[1].recall > 0.95, "{all:?}")
            }
        }
        let few = Truth::compute(params, vectors.as_vectors(), queries.part(0..1), k, threads()).unwrap();
        let error = figures(&index, queries.as_vectors(), &few, plan, &mut || ()).unwrap_err();
        assert_eq!(error, MeasureError::Recall(RecallError::Queries { truth: 1, queries: 40 }));
    }
}
