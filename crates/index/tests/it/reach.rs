//! Searches beyond the nearest k: within a radius, from stored vectors, by groups and page by page; each against its
//! definition, over every kind, element type and metric, beside copies, removals and filters.

use crate::data::{Data, Random, SPACES, build, go_on, params, search};
use lanewise_index::{
    AddError, Code, Counts, Dtype, Filter, GetError, Group, Index, Inline, Kind, Metric, Neighbors,
    OwnedVectors, Params, Reader, Scratch, Search, SearchError, VectorError, Vectors,
};
use proptest::prelude::*;
use std::collections::{HashMap, HashSet};
use std::num::NonZeroUsize;

const DIM: usize = 12;

/// Ids of one's own.
fn own(row: usize) -> i64 {
    (row as i64 * 7919 + 13) % 100_003 - 50_000
}

/// An index that was changed: vectors added by ids of one's own or positions, some of them removed.
struct Changed {
    index: Index,
    data: Data,
    /// Id to row of `data` of those that are there.
    rows: HashMap<i64, usize>,
}

/// None where a vector of bytes is zero, which cosine refuses.
fn changed(
    space: (Dtype, Metric),
    kind: Kind,
    n: usize,
    ids: bool,
    remove: usize,
    seed: u64,
) -> Option<Changed> {
    let data = Data::clustered(space.0, DIM, n, seed);
    let index = Index::new(params(space.0, space.1, DIM, kind)).unwrap();
    let all: Vec<i64> = (0..n).map(|row| if ids { own(row) } else { row as i64 }).collect();
    let added = index.add(data.vectors(), ids.then_some(&all[..]), &Inline, &mut go_on);
    if let Err(AddError::Vector(VectorError::Zero { .. })) = added {
        return None;
    }
    added.unwrap();
    let mut random = Random(seed);
    let mut rows: HashMap<i64, usize> = all.iter().copied().zip(0..).collect();
    for _ in 0..remove.min(n - 1) {
        let id = all[random.below(n)];
        if rows.len() > 1 && rows.remove(&id).is_some() {
            index.remove(&[id]).unwrap();
        }
    }
    Some(Changed { index, data, rows })
}

fn one(found: Result<(Vec<Neighbors>, Counts), SearchError>) -> Vec<Neighbors> {
    found.unwrap().0
}

/// All that match, nearest first: an exact search for as many as there are.
fn all(reader: &Reader, queries: Vectors<'_>, filter: Option<&Filter>) -> Vec<Neighbors> {
    let how = Search { filter, ..Search::new(reader.len().max(1)) };
    one(reader.search(queries, &how, &mut Scratch::default()))
}

fn cut(found: &Neighbors, len: usize) -> Neighbors {
    let len = len.min(found.ids.len());
    Neighbors { ids: found.ids[..len].to_vec(), distances: found.distances[..len].to_vec() }
}

fn positive(n: usize) -> NonZeroUsize {
    NonZeroUsize::new(n).unwrap()
}

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![Just(Kind::Flat), Just(Kind::Hnsw), Just(Kind::Ivf)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    /// Few vectors, so that every plan finds all: what each verb gives is what its definition makes of the exact order.
    #[test]
    fn each_verb_is_its_definition(
        space in 0..SPACES.len(),
        kind in kind(),
        n in 2usize..260,
        own_ids in any::<bool>(),
        remove in 0usize..30,
        share in prop_oneof![Just(0u64), Just(100), Just(5), Just(50)],
        k in 1usize..9,
        seed in 1u64..1 << 40,
    ) {
        let made = changed(SPACES[space], kind, n, own_ids, remove, seed);
        let queries = Data::clustered(SPACES[space].0, DIM, 3, seed ^ 1);
        let Some(Changed { index, data, rows }) = made else { return Ok(()) };
        let reader = index.reader();
        if reader.check(queries.vectors(), &Search::new(1)).is_err() {
            prop_assert!(SPACES[space].1 == Metric::Cosine && !SPACES[space].0.is_float());
            return Ok(());
        }
        let passes = |id: i64| Random(id as u64 ^ seed).next() % 100 < share;
        let filter = (share < 100).then(|| reader.filter(passes));
        let filter = filter.as_ref();
        let matches = filter.map_or(rows.len(), Filter::matches);
        let how = Search { filter, ..Search::new(k).ef(300).nprobe(4) };
        let exact = all(&reader, queries.vectors(), filter);
        let scratch = &mut Scratch::default();

        // Within the distance of one of them, of none, of all; and no more than a limit.
        for place in [0, matches / 3, matches.saturating_sub(1)] {
            let radius = exact[0].distances.get(place).copied().unwrap_or(1.0);
            for (radius, limit) in [(radius, None), (radius, Some(positive(k))), (f32::INFINITY, None), (f32::NEG_INFINITY, None)] {
                let found = one(reader.within(queries.vectors(), radius, limit, &how, scratch));
                for (found, exact) in found.iter().zip(&exact) {
                    let inside = exact.distances.iter().filter(|&&d| d <= radius).count();
                    let expected = cut(exact, limit.map_or(inside, |limit| inside.min(limit.get())));
                    prop_assert_eq!(&found.distances, &expected.distances);
                    prop_assert_eq!(&found.ids, &expected.ids);
                }
            }
        }

        // Page by page: the exact order, each once, pages full but for the last.
        let mut pages = reader.pages(queries.vectors().slice(DIM, 0..1), &how).unwrap();
        let mut read = Neighbors::default();
        while let Some((page, _)) = pages.next_page(scratch).unwrap() {
            prop_assert_eq!(page.ids.len(), k.min(matches - read.ids.len()));
            read.ids.extend(page.ids);
            read.distances.extend(page.distances);
        }
        prop_assert_eq!(&read, &exact[0]);

        // From a stored vector: the order of a search from it, without itself.
        let stored: Vec<i64> = reader.ids().take(3).collect();
        let vectors = reader.vectors(&stored).unwrap();
        let from = all(&reader, vectors.as_vectors(), filter);
        let found = reader.search_by_id(&stored, &how, |q, how| reader.search(q, how, &mut Scratch::default()));
        for ((found, from), id) in one(found).iter().zip(&from).zip(&stored) {
            let others: Vec<usize> = (0..from.ids.len()).filter(|&i| from.ids[i] != *id).take(k).collect();
            let distances: Vec<f32> = others.iter().map(|&i| from.distances[i]).collect();
            prop_assert_eq!(&found.distances, &distances);
            prop_assert!(!found.ids.contains(id));
        }

        // By groups: the first of each in the exact order, and the next of those.
        for (groups, per_group) in [(k, 1), (k, 3), (2, 1000)] {
            // Half of all are of one group, a quarter of another: the rare ones are far down.
            let key = |id: i64| u64::from(Random(id as u64).next().trailing_zeros());
            let mut asked = 0;
            let found = reader.search_groups(
                queries.vectors(),
                positive(per_group),
                &Search { k: groups, ..how },
                |ids| { asked += ids.len(); Ok(ids.iter().map(|&id| key(id)).collect()) },
                |q, how| reader.search(q, how, &mut Scratch::default()),
            );
            let found = found.unwrap().0;
            prop_assert_eq!(found.len(), 3);
            for (found, exact) in found.iter().zip(&exact) {
                prop_assert_eq!(found, &by_definition(exact, key, groups, per_group));
            }
            prop_assert!(matches == 0 || asked > 0);
        }

        // What was stored comes back; what was removed does not.
        let gone = (0..n).map(|row| if own_ids { own(row) } else { row as i64 }).find(|id| !rows.contains_key(id));
        for id in gone.into_iter().chain([1 << 40, -60_000, i64::MIN]) {
            prop_assert_eq!(reader.vectors(&[stored[0], id]), Err(GetError::Missing { id }));
            prop_assert_eq!(reader.filter_of(&[id]).matches(), 0);
        }
        prop_assert_eq!(reader.filter_of(&stored).matches(), stored.len());
        for (place, id) in stored.iter().enumerate() {
            let original = OwnedVectors::picked(data.vectors(), DIM, &[rows[id]]);
            let back = OwnedVectors::picked(vectors.as_vectors(), DIM, &[place]);
            prop_assert!(as_stored(SPACES[space], &original, &back), "{:?} {:?}", original, back);
        }
    }
}

/// The first `groups` groups in the order of `exact`, `per_group` members of each.
fn by_definition(
    exact: &Neighbors,
    key: impl Fn(i64) -> u64,
    groups: usize,
    per_group: usize,
) -> Vec<Group<u64>> {
    let mut order: Vec<u64> = Vec::new();
    exact.ids.iter().map(|&id| key(id)).for_each(|key| {
        if !order.contains(&key) {
            order.push(key);
        }
    });
    let members = |group: u64| {
        let of: Vec<usize> =
            (0..exact.ids.len()).filter(|&i| key(exact.ids[i]) == group).take(per_group).collect();
        Neighbors {
            ids: of.iter().map(|&i| exact.ids[i]).collect(),
            distances: of.iter().map(|&i| exact.distances[i]).collect(),
        }
    };
    order.into_iter().take(groups).map(|key| Group { key, members: members(key) }).collect()
}

/// Whether `back` is `original` as the docs say it is stored.
fn as_stored((dtype, metric): (Dtype, Metric), original: &OwnedVectors, back: &OwnedVectors) -> bool {
    let (OwnedVectors::F32(x), OwnedVectors::F32(y)) = (original, back) else { return original == back };
    let norm: f32 = if metric == Metric::Cosine { x.iter().map(|e| e * e).sum::<f32>().sqrt() } else { 1.0 };
    let tolerance = match dtype {
        Dtype::F16 => 1.0 / 2048.0,
        Dtype::Bf16 => 1.0 / 256.0,
        _ if metric == Metric::Cosine => 1e-6,
        _ => 0.0,
    };
    x.len() == y.len() && x.iter().zip(y).all(|(x, y)| (x / norm - y).abs() <= tolerance * x.abs().max(1.0))
}

/// Larger ones, where graphs and lists are searched by their own plans, codes included: nearly all within, nothing beyond;
/// pages without gaps or repetition.
#[test]
fn graphs_and_lists_find_nearly_all_within_and_page_through_all() {
    const N: usize = 6000;
    let data = Data::clustered(Dtype::F32, 24, N, 611);
    let queries = Data::clustered(Dtype::F32, 24, 20, 612);
    let usual = |kind| params(Dtype::F32, Metric::L2, 24, kind);
    let flat = build(usual(Kind::Flat), &data);
    let exact = search(&flat, &queries, 2000, 1);
    for (kind, code) in [(Kind::Hnsw, Code::None), (Kind::Hnsw, Code::I8), (Kind::Ivf, Code::Pq4)] {
        let index = build(Params { code, nlist: 40, ..usual(kind) }, &data);
        let reader = index.reader();
        for filtered in [false, true] {
            let passes = |id: i64| !filtered || id % 3 > 0;
            let filter = filtered.then(|| reader.filter(passes));
            let how = Search { filter: filter.as_ref(), ..Search::new(16).ef(64).nprobe(20) };
            for within in [3, 40, 300] {
                let radius = exact[0].distances[within];
                let (found, counts) =
                    reader.within(queries.vectors(), radius, None, &how, &mut Scratch::default()).unwrap();
                let (mut hits, mut inside) = (0, 0);
                for (found, exact) in found.iter().zip(&exact) {
                    assert!(found.distances.iter().all(|&d| d <= radius) && found.distances.is_sorted());
                    let ids: HashSet<i64> = found.ids.iter().copied().collect();
                    assert_eq!(ids.len(), found.ids.len());
                    assert!(found.ids.iter().all(|&id| passes(id)));
                    let truth = exact.ids.iter().zip(&exact.distances);
                    let truth: Vec<i64> =
                        truth.filter(|(id, d)| **d <= radius && passes(**id)).map(|(id, _)| *id).collect();
                    hits += truth.iter().filter(|id| ids.contains(id)).count();
                    inside += truth.len();
                }
                let some = one(reader.within(
                    queries.vectors(),
                    radius,
                    Some(positive(5)),
                    &how,
                    &mut Scratch::default(),
                ));
                for (some, found) in some.iter().zip(&found) {
                    assert_eq!(some.ids.len(), found.ids.len().min(5));
                    assert!(some.distances.iter().all(|&d| d <= radius));
                }
                println!("{kind:?} {code:?} filtered {filtered}: {hits} of {inside}, {counts:?}");
                assert!(hits as f64 >= 0.95 * inside as f64, "{hits} of {inside}");
                assert_eq!(counts.exact + counts.graph + counts.filtered_graph + counts.lists, 20);
                assert!(within > 3 || counts.exact < 20, "{counts:?}");
            }
            let mut pages = reader.pages(queries.vectors().slice(24, 0..1), &how).unwrap();
            let mut seen = HashSet::new();
            while let Some((page, _)) = pages.next_page(&mut Scratch::default()).unwrap() {
                assert!(page.distances.is_sorted());
                if seen.len() == 64 {
                    // Nearly in the order of distance, too.
                    let early = exact[0].ids.iter().filter(|&&id| passes(id)).take(64);
                    assert!(early.filter(|id| seen.contains(*id)).count() >= 60);
                }
                assert!(page.ids.iter().all(|&id| passes(id) && seen.insert(id)));
            }
            assert_eq!(seen.len(), filter.as_ref().map_or(N, Filter::matches));
        }
    }
}

/// Groups whose other members are far: found without comparing all vectors for each query.
#[test]
fn members_far_from_the_query_are_found() {
    const N: usize = 6000;
    let data = Data::clustered(Dtype::F32, 24, N, 621);
    let queries = Data::clustered(Dtype::F32, 24, 10, 622);
    let index = build(params(Dtype::F32, Metric::L2, 24, Kind::Hnsw), &data);
    let reader = index.reader();
    let key = |id: i64| id % 2000;
    let (found, counts) = reader
        .search_groups(
            queries.vectors(),
            positive(3),
            &Search::new(5).ef(100),
            |ids| Ok(ids.iter().map(|&id| key(id)).collect()),
            |q, how| reader.search(q, how, &mut Scratch::default()),
        )
        .unwrap();
    for groups in &found {
        assert_eq!(groups.len(), 5);
        assert!(groups.windows(2).all(|two| two[0].members.distances[0] <= two[1].members.distances[0]));
        for group in groups {
            let ids: HashSet<i64> = group.members.ids.iter().copied().collect();
            assert_eq!(ids, [group.key, group.key + 2000, group.key + 4000].into());
            assert!(group.members.distances.is_sorted());
        }
    }
    assert!(counts.distances < 10 * N as u64 / 2, "{counts:?}");
}

/// A reader's verbs see the vectors that were there, whatever happens to the index.
#[test]
fn pages_stay_with_the_vectors_that_were_there() {
    let data = Data::clustered(Dtype::F32, 8, 400, 631);
    let index = build(params(Dtype::F32, Metric::L2, 8, Kind::Hnsw), &data);
    let query = data.vectors().slice(8, 5..6);
    let mut pages = index.reader().pages(query, &Search::new(30)).unwrap();
    let first = pages.next_page(&mut Scratch::default()).unwrap().unwrap().0;
    index.remove(&(0..300).collect::<Vec<_>>()).unwrap();
    index.repair(&Inline, &mut |_, _| std::ops::ControlFlow::Continue(())).unwrap();
    index.add(query, Some(&[9000]), &Inline, &mut go_on).unwrap();
    let mut seen: HashSet<i64> = first.ids.into_iter().collect();
    while let Some((page, _)) = pages.next_page(&mut Scratch::default()).unwrap() {
        assert!(page.ids.into_iter().all(|id| seen.insert(id)));
    }
    assert_eq!(seen, (0..400).collect());
}

#[test]
fn what_makes_no_sense_is_refused() {
    let index = build(params(Dtype::F32, Metric::L2, 1, Kind::Flat), &Data::F32(vec![1.0, 2.0, 4.0]));
    let reader = index.reader();
    let (two, how, scratch) = (Vectors::F32(&[0.0, 1.0]), Search::new(2), &mut Scratch::default());
    let found = reader.within(two, f32::NAN, None, &how, scratch);
    assert_eq!(found, Err(SearchError::Radius));
    assert_eq!(
        reader.within(two, 1.0, None, &how.epsilon(f32::NAN), scratch).unwrap_err(),
        SearchError::Epsilon
    );
    assert_eq!(reader.pages(two, &how).err(), Some(SearchError::OneQuery { queries: 2 }));
    assert_eq!(reader.pages(two.slice(1, 0..1), &Search::new(0)).err(), Some(SearchError::K));
    let find = |q: Vectors<'_>, how: &Search<'_>| reader.search(q, how, &mut Scratch::default());
    let missing = SearchError::Get(GetError::Missing { id: 3 });
    assert_eq!(reader.search_by_id(&[0, 3, 4], &how, find), Err(missing));
    assert_eq!(reader.search_by_id(&[0], &Search::new(0), find), Err(SearchError::K));
    assert_eq!(reader.search_by_id(&[], &how, find), Err(SearchError::Empty));
    // A refusal of the groups is the search's.
    let found =
        reader.search_groups(two, positive(1), &how, |_| Err::<Vec<i64>, _>(SearchError::Oversample), find);
    assert_eq!(found, Err(SearchError::Oversample));
}
