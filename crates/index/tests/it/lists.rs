//! Inverted lists: exact when all are scanned, recall when some are, made once there are enough vectors, and again.

use crate::data::{Data, Random, SPACES, build, distance, go_on, params, recall, search};
use lanewise_index::{
    AddError, Code, Counts, Dtype, Index, Inline, Kind, Metric, Neighbors, Params, Plan, Scratch, Search,
    Vectors,
};
use std::ops::ControlFlow;
use std::sync::Arc;

fn run(index: &Index, queries: &Data, how: &Search<'_>) -> (Vec<Neighbors>, Counts) {
    index.search(queries.vectors(), how, &mut Scratch::default()).unwrap()
}

/// All lists hold all vectors; a few of them most of the nearest.
#[test]
fn scans_find_the_nearest() {
    for (dtype, metric) in SPACES {
        let data = Data::clustered(dtype, 64, 4000, 501);
        let queries = Data::clustered(dtype, 64, 100, 502);
        let exact = search(&build(params(dtype, metric, 64, Kind::Flat), &data), &queries, 10, 1);
        let index = build(Params { nlist: 0, ..params(dtype, metric, 64, Kind::Ivf) }, &data);
        let lists = index.stats().lists;
        assert_eq!(lists, 4 * 63);
        let (all, counts) = run(&index, &queries, &Search::new(10).nprobe(1000));
        assert_eq!(
            counts,
            Counts {
                distances: 100 * (4000 + lists as u64),
                lists: 100,
                bytes: counts.bytes,
                ..Counts::default()
            }
        );
        for (all, exact) in all.iter().zip(&exact) {
            // Kernels that take rows one by one add up floats in another order than those that gather.
            let near = |(a, b): (&f32, &f32)| (a - b).abs() <= 1e-5 * b.abs().max(1.0);
            assert!(all.distances.iter().zip(&exact.distances).all(near), "{dtype:?} {metric:?}");
        }
        // Lists with fewer than ten: more are scanned, not everything.
        let (few, counts) = run(&index, &queries, &Search::new(10).nprobe(1));
        assert!(few.iter().all(|found| found.ids.len() == 10));
        assert_eq!((counts.lists, counts.exact), (100, 0), "{dtype:?} {metric:?}");
        let (some, counts) = run(&index, &queries, &Search::new(10).nprobe(12));
        let found = recall(&some, &exact);
        println!("{dtype:?} {metric:?}: recall {found} of {} vectors a query", counts.distances / 100);
        assert!(found >= 0.9, "{dtype:?} {metric:?}: {found}");
        assert!(counts.distances < 100 * 4000 / 4, "{dtype:?} {metric:?}: {counts:?}");
    }
}

/// Vectors by the handful, removals and replacements, past the making of lists and their making anew: what is found by
/// all lists is right, and readers of before see what was then.
#[test]
fn lists_grow_and_are_made_anew() {
    for (code, removes) in Code::ALL.into_iter().flat_map(|code| [(code, false), (code, true)]) {
        let usual = Params { code, nlist: 5, ..params(Dtype::F32, Metric::L2, 16, Kind::Ivf) };
        let index = Index::new(usual).unwrap();
        let data = Data::clustered(Dtype::F32, 16, 900, 511);
        let queries = Data::clustered(Dtype::F32, 16, 10, 512);
        let mut random = Random(513);
        let (mut row, mut lists, mut live) = (0, Vec::new(), Vec::new());
        while row < 900 {
            let end = (row + 1 + random.below(if row < 60 { 8 } else { 60 })).min(900);
            let before = index.reader();
            let how = Search::new(10).nprobe(9).oversample(100.0);
            let then = before.search(queries.vectors(), &how, &mut Scratch::default()).unwrap().0;
            let ids: Vec<i64> = (row as i64..end as i64).collect();
            index.add(data.vectors().slice(16, row..end), Some(&ids), &Inline, &mut go_on).unwrap();
            live.extend(row..end);
            row = end;
            if removes {
                let gone = live.swap_remove(random.below(live.len()));
                assert_eq!(index.remove(&[gone as i64]).unwrap(), 1);
            }
            assert_eq!(before.search(queries.vectors(), &how, &mut Scratch::default()).unwrap().0, then);
            lists.push((index.stats().lists, index.code_report()));
            let (found, counts) = run(&index, &queries, &how);
            assert!(lists.last().unwrap().0 == 0 || live.len() < 100 || counts.lists == 10, "{counts:?}");
            for (q, found) in found.iter().enumerate() {
                let to = |row: usize| distance(Metric::L2, 16, queries.vectors(), q, data.vectors(), row);
                let mut right: Vec<f64> = live.iter().map(|&row| to(row)).collect();
                right.sort_by(f64::total_cmp);
                assert_eq!(found.ids.len(), 10.min(live.len()));
                for (id, (&d, right)) in found.ids.iter().zip(found.distances.iter().zip(&right)) {
                    assert!(live.contains(&(*id as usize)), "{id} was removed");
                    assert!((f64::from(d) - right).abs() < 1e-4, "{code:?}: {d} instead of {right}");
                }
            }
        }
        lists.dedup();
        let steps: Vec<usize> = lists.iter().map(|step| step.0).collect();
        // Made of 40 or a few more, and again of 16 times as many.
        assert_eq!(steps, if code == Code::None { vec![0, 5] } else { vec![0, 5, 5] }, "{lists:?}");
    }
}

/// A cancel while lists are made leaves what was there before, in every respect.
#[test]
fn a_cancelled_training_leaves_nothing() {
    let data = Data::clustered(Dtype::F32, 24, 3000, 521);
    let queries = Data::clustered(Dtype::F32, 24, 20, 522);
    let image = |index: &Index| index.image().unwrap().pieces().flatten().copied().collect::<Vec<u8>>();
    for (first, code) in [(0, Code::None), (100, Code::Pq4), (100, Code::I4)] {
        let usual = Params { code, nlist: 10, ..params(Dtype::F32, Metric::L2, 24, Kind::Ivf) };
        let index = Index::new(usual).unwrap();
        if first > 0 {
            index.add(data.vectors().slice(24, 0..first), None, &Inline, &mut go_on).unwrap();
        }
        let before = (image(&index), search(&index, &queries, 5, 10), index.stats().lists);
        assert_eq!(before.2, if first > 0 { 10 } else { 0 });
        let rest = data.vectors().slice(24, first..3000);
        let mut heard = 0;
        index
            .add(rest, None, &Inline, &mut |_| {
                heard += 1;
                ControlFlow::Continue(())
            })
            .unwrap();
        let whole = image(&index);
        assert!(heard > 5, "{heard}");
        for stop in [1, 2, heard / 2, heard] {
            let index = Index::new(usual).unwrap();
            if first > 0 {
                index.add(data.vectors().slice(24, 0..first), None, &Inline, &mut go_on).unwrap();
            }
            let mut left = stop;
            let mut proceed = |done| {
                assert_eq!(done, 0);
                left -= 1;
                if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            };
            let error = index.add(rest, None, &Inline, &mut proceed).unwrap_err();
            assert_eq!(error, AddError::Cancelled { added: 0, total: 3000 - first });
            assert!((image(&index), search(&index, &queries, 5, 10), index.stats().lists) == before);
            index.add(rest, None, &Inline, &mut go_on).unwrap();
            assert!(image(&index) == whole, "{code:?} after a cancel at {stop} of {heard}");
        }
    }
}

/// Lists with filters of every share: the plan, what passes and nothing else, recall.
#[test]
fn filters_widen_the_scan() {
    let data = Data::clustered(Dtype::F32, 16, 20_000, 531);
    let queries = Data::clustered(Dtype::F32, 16, 50, 532);
    let index = build(Params { nlist: 0, ..params(Dtype::F32, Metric::L2, 16, Kind::Ivf) }, &data);
    let flat = build(params(Dtype::F32, Metric::L2, 16, Kind::Flat), &data);
    for (share, plan) in [(1, Plan::Exact), (20, Plan::Exact), (300, Plan::Lists), (900, Plan::Lists)] {
        let passes = |id: i64| Random(id as u64).next() % 1000 < share;
        let (filter, other) = (index.reader().filter(passes), flat.reader().filter(passes));
        let how = Search::new(10).nprobe(24).filter(&filter);
        assert_eq!(index.reader().plan(&how), plan, "{share}");
        let (found, counts) = run(&index, &queries, &how);
        let exact = run(&flat, &queries, &Search::new(10).filter(&other)).0;
        let got = recall(&found, &exact);
        println!("{share} of 1000: recall {got}, {counts:?}");
        assert!(got >= 0.95, "{share}: {got}");
        assert!(found.iter().all(|one| one.ids.len() == 10 && one.ids.iter().all(|&id| passes(id))));
        assert_eq!((counts.lists, counts.exact), if plan == Plan::Lists { (50, 0) } else { (0, 50) });
    }
}

/// Lists of vectors as long as an index takes open again: biases are of the size of squares.
#[test]
fn lists_of_long_vectors_open_again() {
    for (code, length) in
        Code::ALL.into_iter().flat_map(|code| [1e10, 1e15, 1e18].map(|length| (code, length)))
    {
        let Data::F32(values) = Data::clustered(Dtype::F32, 2, 1200, 571) else { unreachable!("floats") };
        let long: Vec<f32> = values.iter().map(|x| x * length).collect();
        let usual = Params { code, nlist: 9, ..params(Dtype::F32, Metric::L2, 2, Kind::Ivf) };
        let index = Index::new(usual).unwrap();
        index.add(Vectors::F32(&long), None, &Inline, &mut go_on).unwrap();
        let file: Vec<u8> = index.image().unwrap().pieces().flatten().copied().collect();
        let opened =
            Index::open(Arc::new(file)).unwrap_or_else(|error| panic!("{code:?} × {length}: {error}"));
        let find = |index: &Index| {
            index.search(Vectors::F32(&long[..40]), &Search::new(5), &mut Scratch::default()).unwrap().0
        };
        assert_eq!(find(&opened), find(&index), "{code:?} × {length}");
    }
}
