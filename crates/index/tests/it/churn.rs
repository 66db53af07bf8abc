//! Removing, replacing and repairing: what searches find, that everything stays reachable, and recall after much churn.

use crate::data::{Data, Random, SPACES, Scrambled, build, go_on, params, search};
use lanewise_index::{
    AddError, Dtype, Index, Inline, Kind, Metric, Neighbors, Params, RemoveError, Scratch, Search,
};
use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

fn mend(index: &Index) -> lanewise_index::Repaired {
    index.repair(&Inline, &mut |_, _| ControlFlow::Continue(())).unwrap()
}

fn hits(found: &[Neighbors], exact: &[Neighbors]) -> usize {
    found.iter().zip(exact).map(|(f, e)| f.ids.iter().filter(|id| e.ids.contains(id)).count()).sum()
}

/// Random adds, removals, replacements and repairs against a map from ids to vectors: an exact index finds just what the
/// map says; a graph finds nothing else, as much, and nearly as near.
#[test]
fn any_history_against_a_map() {
    for (n, (dtype, metric)) in SPACES.into_iter().enumerate() {
        for kind in Kind::ALL {
            let mut random = Random(301 + n as u64);
            let data = Data::clustered(dtype, 12, 1200, 302);
            let queries = Data::clustered(dtype, 12, 8, 303);
            let index = Index::new(params(dtype, metric, 12, kind)).unwrap();
            // Id to row of `data`.
            let mut model: HashMap<i64, usize> = HashMap::new();
            let mut fresh = 0;
            for step in 0..40 {
                let some = |random: &mut Random| -> Vec<i64> {
                    let mut ids: Vec<i64> = model.keys().copied().collect();
                    ids.sort_unstable();
                    (0..random.below(60))
                        .filter_map(|_| ids.get(random.below(ids.len().max(1))).copied())
                        .collect()
                };
                match random.below(5) {
                    0 | 1 => {
                        let count = 1 + random.below(60);
                        let first = random.below(1200 - count);
                        let ids: Vec<i64> = (fresh..fresh + count as i64).collect();
                        let part = data.vectors().slice(12, first..first + count);
                        // Numbered on, or by ids that say the same.
                        let given = (step % 2 == 1).then_some(&ids[..]);
                        match index.add(part, given, &Inline, &mut go_on) {
                            Ok(_) => {}
                            Err(AddError::IdsMissing) => {
                                index.add(part, Some(&ids), &Inline, &mut go_on).unwrap();
                            }
                            Err(error) => panic!("{error}"),
                        }
                        model.extend(ids.iter().copied().zip(first..));
                        fresh += count as i64;
                    }
                    2 => {
                        let ids = some(&mut random);
                        let distinct: HashSet<i64> = ids.iter().copied().collect();
                        let removed = index.remove(&[ids, vec![-5, 1 << 40]].concat()).unwrap();
                        assert_eq!(removed, distinct.len());
                        model.retain(|id, _| !distinct.contains(id));
                    }
                    3 => {
                        let mut ids = some(&mut random);
                        ids.sort_unstable();
                        ids.dedup();
                        ids.push(fresh);
                        fresh += 1;
                        let first = random.below(1200 - ids.len());
                        let part = data.vectors().slice(12, first..first + ids.len());
                        index.upsert(part, &ids, &Inline, &mut go_on).unwrap();
                        model.extend(ids.into_iter().zip(first..));
                    }
                    _ => {
                        assert!(mend(&index).finished);
                        assert_eq!(index.unreachable().unwrap(), 0, "{dtype:?} {metric:?} step {step}");
                    }
                }
                assert_eq!(index.len(), model.len());
                let found = search(&index, &queries, 10, 40);
                for (q, found) in found.iter().enumerate() {
                    assert_eq!(found.ids.len(), 10.min(model.len()));
                    let distinct: HashSet<i64> = found.ids.iter().copied().collect();
                    assert_eq!(distinct.len(), found.ids.len(), "an id twice");
                    for (id, &d) in found.ids.iter().zip(&found.distances) {
                        let row = *model.get(id).unwrap_or_else(|| panic!("{id} is not there"));
                        let right =
                            crate::data::distance(metric, 12, queries.vectors(), q, data.vectors(), row);
                        assert!((f64::from(d) - right).abs() < 0.2, "{dtype:?} {metric:?}: {d} for {right}");
                    }
                    if kind == Kind::Flat && !model.is_empty() {
                        let right = |row| {
                            crate::data::distance(metric, 12, queries.vectors(), q, data.vectors(), row)
                        };
                        let mut all: Vec<f64> = model.values().map(|&row| right(row)).collect();
                        all.sort_by(f64::total_cmp);
                        let last = found.distances[found.ids.len() - 1];
                        assert!((f64::from(last) - all[found.ids.len() - 1]).abs() < 0.2);
                    }
                }
            }
        }
    }
}

/// Ten times a fifth of the vectors replaced by others: recall within a point of a graph built of the same vectors.
#[test]
fn recall_after_ten_generations_of_churn() {
    const N: usize = 6000;
    let usual = Params { m: 12, ef_construction: 100, ..params(Dtype::F32, Metric::L2, 24, Kind::Hnsw) };
    let data = Data::clustered(Dtype::F32, 24, N * 3, 311);
    let Data::F32(floats) = &data else { unreachable!() };
    let queries = Data::clustered(Dtype::F32, 24, 300, 312);
    let mut random = Random(313);
    let index = Index::new(usual).unwrap();
    let ids: Vec<i64> = (0..N as i64).collect();
    index.add(data.vectors().slice(24, 0..N), Some(&ids), &Inline, &mut go_on).unwrap();
    let mut live = ids;
    for generation in 0..10 {
        for _ in 0..N / 5 {
            let place = random.below(live.len());
            let id = live.swap_remove(place);
            assert_eq!(index.remove(&[id]).unwrap(), 1);
        }
        let fresh: Vec<i64> = (0..N as i64 / 5).map(|i| (N * (5 + generation) / 5) as i64 + i).collect();
        let rows = fresh[0] as usize..fresh[0] as usize + fresh.len();
        index.add(data.vectors().slice(24, rows), Some(&fresh), &Inline, &mut go_on).unwrap();
        live.extend(fresh);
        let repaired = mend(&index);
        assert!(repaired.finished && repaired.dropped == N / 5, "{repaired:?}");
        assert_eq!((index.unreachable().unwrap(), index.len()), (0, N));
    }
    live.sort_unstable();
    let rows: Vec<f32> =
        live.iter().flat_map(|&id| &floats[id as usize * 24..(id as usize + 1) * 24]).copied().collect();
    let fresh = Index::new(usual).unwrap();
    fresh.add(Data::F32(rows.clone()).vectors(), Some(&live), &Inline, &mut go_on).unwrap();
    let flat = Index::new(Params { kind: Kind::Flat, ..usual }).unwrap();
    flat.add(Data::F32(rows).vectors(), Some(&live), &Inline, &mut go_on).unwrap();
    let exact = search(&flat, &queries, 10, 1);
    for ef in [15, 40, 100] {
        let churned = hits(&search(&index, &queries, 10, ef), &exact);
        let built = hits(&search(&fresh, &queries, 10, ef), &exact);
        println!("ef {ef}: {churned} after churn, {built} fresh, of 3000");
        assert!(churned + 30 >= built, "ef {ef}: {churned} against {built} of 3000");
    }
}

#[test]
fn a_repair_is_the_same_whatever_runs_it() {
    let data = Data::clustered(Dtype::I8, 16, 2500, 321);
    let gone: Vec<i64> = (0..2500).filter(|i| i % 4 == 1).collect();
    let image = |executor: &dyn lanewise_index::Executor| {
        let index = build(params(Dtype::I8, Metric::L2, 16, Kind::Hnsw), &data);
        index.remove(&gone).unwrap();
        let repaired = index.repair(executor, &mut |_, _| ControlFlow::Continue(())).unwrap();
        assert!(repaired.relinked > 1000 && repaired.dropped == gone.len(), "{repaired:?}");
        index.image().unwrap().pieces().flatten().copied().collect::<Vec<u8>>()
    };
    let reference = image(&Inline);
    for workers in [2, 7] {
        assert!(image(&Scrambled { workers, seed: 5 }) == reference, "{workers} workers");
    }
}

#[test]
fn everything_may_go_and_come_back() {
    for kind in Kind::ALL {
        let data = Data::clustered(Dtype::F32, 8, 500, 331);
        let index = build(params(Dtype::F32, Metric::L2, 8, kind), &data);
        let all: Vec<i64> = (0..500).collect();
        assert_eq!(index.remove(&all).unwrap(), 500);
        assert!(index.is_empty() && search(&index, &data, 3, 10).iter().all(|found| found.ids.is_empty()));
        index.add(data.vectors().slice(8, 0..1), None, &Inline, &mut go_on).unwrap();
        assert_eq!(search(&index, &data, 3, 10)[0].ids, [500]);
        mend(&index);
        assert_eq!(search(&index, &data, 3, 10)[0].ids, [500]);
        index.add(data.vectors(), None, &Inline, &mut go_on).unwrap();
        assert_eq!((index.len(), index.unreachable().unwrap()), (501, 0));
        let found = index.search(data.vectors(), &Search::new(1).ef(50), &mut Scratch::default()).unwrap().0;
        let right = (501i64..).zip(&found[1..]).filter(|(id, found)| found.ids == [*id + 1]).count();
        assert!(right >= 470, "{right}");
    }
}

/// Ids of one's own that begin with the number that would come next end the numbering, which would come to them.
#[test]
fn numbering_does_not_meet_ids_of_ones_own() {
    let data = Data::clustered(Dtype::F32, 8, 20, 341);
    let index = build(params(Dtype::F32, Metric::L2, 8, Kind::Flat), &data);
    index.remove(&[0, 1, 2]).unwrap();
    assert_eq!(mend(&index).dropped, 3);
    index.add(data.vectors().slice(8, 0..2), None, &Inline, &mut go_on).unwrap();
    index.add(data.vectors().slice(8, 2..4), Some(&[22, 24]), &Inline, &mut go_on).unwrap();
    let more = index.add(data.vectors().slice(8, 4..8), None, &Inline, &mut go_on);
    assert_eq!(more.unwrap_err(), AddError::IdsMissing);
}

/// A refused upsert makes the map of ids; a removal by positions after it must not leave it as it was.
#[test]
fn a_removed_position_can_be_an_id_again() {
    let index = Index::new(params(Dtype::F32, Metric::L2, 2, Kind::Hnsw)).unwrap();
    let data = Data::clustered(Dtype::F32, 2, 5, 5);
    index.add(data.vectors(), None, &Inline, &mut go_on).unwrap();
    let one = data.vectors().slice(2, 0..1);
    assert!(matches!(index.add(one, Some(&[3]), &Inline, &mut go_on), Err(AddError::DuplicateId { id: 3 })));
    assert_eq!(index.remove(&[3, 3, -1, 5, 1 << 40]).unwrap(), 1);
    assert_eq!(index.remove(&[3]).unwrap(), 0);
    index.add(one, Some(&[3]), &Inline, &mut go_on).unwrap();
    let mut ids: Vec<i64> = index.reader().ids().collect();
    ids.sort_unstable();
    assert_eq!(ids, [0, 1, 2, 3, 4]);
}

/// The links of an opened file are copied before they are changed, and the copy is within the limit.
#[test]
fn a_repair_stays_within_the_memory_limit() {
    let data = Data::clustered(Dtype::F32, 16, 1000, 751);
    let built = build(params(Dtype::F32, Metric::L2, 16, Kind::Hnsw), &data);
    let opened = || {
        let index = crate::files::open(&crate::files::image(&built)).unwrap();
        index.remove(&(0..200).collect::<Vec<_>>()).unwrap();
        index
    };
    let mut proceed = |_: usize, _: usize| ControlFlow::Continue(());
    let links = built.stats().graph_bytes;
    let index = opened();
    index.set_memory_limit(Some(links / 2));
    let refused = index.repair(&Inline, &mut proceed);
    let limit = links / 2;
    assert!(matches!(refused, Err(RemoveError::Limit { limit: l, needs }) if l == limit && needs > l));
    assert_eq!(index.owned_bytes(), 0);
    // Room for the links, or for the rows that stay, but not for both at once.
    let copy = index.stats().vector_bytes + links;
    index.set_memory_limit(Some(copy));
    assert!(!index.repair_due());
    assert_eq!(index.repair(&Inline, &mut proceed).unwrap().dropped, 0);
    assert!(index.owned_bytes() <= copy);
    let index = opened();
    index.set_memory_limit(Some(2 * copy));
    assert!(index.repair_due());
    assert_eq!(index.repair(&Inline, &mut proceed).unwrap().dropped, 200);
}

/// What is renumbered has ids from 0 on, and room for what comes: nothing grows beyond what was predicted.
#[test]
fn renumbered_vectors_count_from_zero_and_have_room_for_more() {
    let data = Data::clustered(Dtype::F32, 16, 900, 451);
    let (first, more) = (data.vectors().slice(16, 0..600), data.vectors().slice(16, 600..900));
    for kind in [Kind::Flat, Kind::Hnsw] {
        for removed in [0, 40, 300, 600] {
            let built = Index::new(params(Dtype::F32, Metric::L2, 16, kind)).unwrap();
            built.add(first, None, &Inline, &mut go_on).unwrap();
            let index = crate::files::open(&crate::files::image(&built)).unwrap();
            let need = index.predict_renumbered(removed, 300, 1).unwrap();
            index.remove(&(0..removed as i64).collect::<Vec<_>>()).unwrap();
            if removed == 600 {
                // Nothing is left, and numbering would go on.
                mend(&index);
            }
            let mut proceed = |_: usize, _: usize| ControlFlow::Continue(());
            let former = index.renumber(300, &Inline, &mut proceed).unwrap();
            assert!(former.iter().copied().eq(removed as i64..600), "{kind:?}, {removed} removed");
            index.add(more, None, &Inline, &mut go_on).unwrap();
            assert!(index.reader().ids().eq(0..900 - removed as i64), "{kind:?}, {removed} removed");
            // Which nodes are in upper layers is drawn by their numbers.
            let off = index.owned_bytes().abs_diff(need.held);
            assert!(off * 20 <= need.held, "{kind:?}, {removed} removed: {off} bytes off of {need:?}");
        }
    }
}

/// An index that lost all of its vectors, and their rows, goes on numbering, in memory and from a file.
#[test]
fn numbering_goes_on_when_nothing_is_left() {
    let data = Data::clustered(Dtype::F32, 8, 40, 351);
    for kind in Kind::ALL {
        let index = build(params(Dtype::F32, Metric::L2, 8, kind), &data);
        index.remove(&(0..40).collect::<Vec<i64>>()).unwrap();
        assert_eq!(mend(&index).dropped, 40);
        let opened = crate::files::open(&crate::files::image(&index)).unwrap();
        for index in [index, opened] {
            index.add(data.vectors().slice(8, 0..3), None, &Inline, &mut go_on).unwrap();
            assert_eq!(index.reader().ids().collect::<Vec<_>>(), [40, 41, 42]);
            assert_eq!(index.remove(&[0, 41]).unwrap(), 1);
        }
    }
}
