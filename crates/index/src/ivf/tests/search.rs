//! Searches: scans against the definition, the same answer in any order and by any number of workers, recall.

use super::*;
use crate::pool::Entry;
use crate::space::key_of;
use proptest::prelude::*;

const DIM: usize = 20;

fn search(
    ivf: &Ivf,
    query: &[f32],
    nprobe: usize,
    want: usize,
    allowed: Allowed<'_>,
    backwards: bool,
) -> Vec<Entry> {
    let (mut probe, mut scratch, mut best) = (ListProbe::default(), ScanScratch::default(), Best::default());
    ivf.probe(query, nprobe, &mut probe);
    best.reset(want);
    let lists = probe.lists().len();
    for i in 0..lists {
        let i = if backwards { lists - 1 - i } else { i };
        ivf.scan(&probe, i, &mut |_, _, _| {}, allowed, &mut scratch, &mut best);
    }
    best.sorted().to_vec()
}

/// The estimates of all vectors of `lists` by their codes, one by one.
fn by_definition(ivf: &Ivf, query: &[f32], lists: &[(f32, u32)], tables: &Tables) -> Vec<Entry> {
    assert_eq!(query.len(), DIM);
    let mut all = Vec::new();
    for &(base, list) in lists {
        ivf.lists().list(list as usize).entries(&mut |row, code, bias| {
            let sum: u32 =
                code.iter().enumerate().map(|(s, &c)| u32::from(tables.bytes[16 * s + c as usize])).sum();
            let sum = sum + ((u32::from(bias) * tables.factor) >> 16);
            all.push(Entry::new(key_of((base + tables.offset) + tables.step * sum as f32), row));
        });
    }
    all.sort_unstable();
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    /// Scans find exactly the best estimates among the rows that count.
    #[test]
    fn scans_find_the_best(
        seed in 0u64..1000, nprobe in 1usize..9, want in 1usize..200, keep in 1u64..4, metric in 0usize..3, later in 0usize..100,
    ) {
        let metric = [Metric::L2, Metric::InnerProduct, Metric::Cosine][metric];
        let count = 1500;
        let vectors = unit(clustered(count, DIM, 30, seed), DIM);
        let params = Params { metric, dim: DIM, nlist: 8, code: ListCode::Pq4 { runs: 8 }, seed };
        let (bulk, rest) = vectors.split_at((count - later) * DIM);
        let ivf = build(params, bulk, 1);
        let mut probe = ListProbe::default();
        for (i, vector) in rest.chunks(DIM).enumerate() {
            ivf.insert((count - later + i) as u32, vector, &|_, _| {}, &mut probe).unwrap();
        }
        let mut draws = kmeans::Draws(seed);
        let bitmap: Vec<u64> = (0..count.div_ceil(64)).map(|_| (0..keep).fold(!0, |w, _| w & draws.below(usize::MAX) as u64)).collect();
        // The reader's view ends before the last rows.
        let allowed = Allowed { rows: count - 10, which: Which::In(&bitmap) };
        for query in unit(clustered(3, DIM, 30, seed), DIM).chunks(DIM) {
            ivf.probe(query, nprobe, &mut probe);
            prop_assert_eq!(probe.lists().len(), nprobe.min(8));
            let mut expected = by_definition(&ivf, query, &probe.choice.lists, &probe.tables);
            expected.retain(|e| (e.id() as usize) < count - 10 && bitmap[e.id() as usize / 64] >> (e.id() % 64) & 1 == 1);
            expected.truncate(want);
            prop_assert_eq!(search(&ivf, query, nprobe, want, allowed, false), expected.clone());
            prop_assert_eq!(search(&ivf, query, nprobe, want, allowed, true), expected);
        }
    }

    /// What several workers found, each in its own, is what one would have found.
    #[test]
    fn merged_is_the_same(keys in proptest::collection::vec(-50i32..50, 0..400), want in 1usize..60, parts in 1usize..6) {
        let entries: Vec<Entry> = keys.iter().zip(0..).map(|(&key, id)| Entry::new(key, id)).collect();
        let mut whole = Best::default();
        whole.reset(want);
        for part in entries.chunks(entries.len().div_ceil(parts).max(1)) {
            let mut best = Best::default();
            best.reset(want);
            part.iter().for_each(|&e| { best.push(e); });
            whole.merge(best.sorted());
        }
        let mut expected = entries.clone();
        expected.sort_unstable();
        expected.truncate(want);
        prop_assert_eq!(whole.sorted(), expected);
    }
}

/// What training learnt comes back from its bytes, and what bytes anyone has spoilt give does no harm.
#[test]
fn parameters_come_back() {
    let vectors = clustered(600, DIM, 25, 3);
    for metric in [Metric::L2, Metric::InnerProduct] {
        for code in [ListCode::Pq4 { runs: 6 }, ListCode::Rows { stride: 8 }] {
            let params = Params { metric, dim: DIM, nlist: 5, code, seed: 9 };
            let ivf = build(params, &vectors, 1);
            let bytes = ivf.parameters();
            let again = Ivf::from_parameters(params, kernels(), &bytes).unwrap();
            assert_eq!(again.parameters(), bytes);
            for list in 0..5 {
                let mut all = Vec::new();
                ivf.lists().list(list).entries(&mut |row, code, bias| all.push((row, code.to_vec(), bias)));
                let mut fill = |i: usize, to: &mut [u8]| {
                    to.copy_from_slice(&all[i].1);
                    (all[i].0, all[i].2)
                };
                again.lists().list(list).extend(all.len(), &mut fill).unwrap();
            }
            let allowed = Allowed { rows: 600, which: Which::All };
            if let ListCode::Pq4 { .. } = code {
                let query = &vectors[..DIM];
                assert_eq!(
                    search(&ivf, query, 3, 20, allowed, false),
                    search(&again, query, 3, 20, allowed, false)
                );
            }
            for length in [0, 1, bytes.len() - 1] {
                assert!(matches!(
                    Ivf::from_parameters(params, kernels(), &bytes[..length]),
                    Err(ParameterError::Length { .. })
                ));
            }
            let (mut refused, mut draws) = (0, kmeans::Draws(1));
            for bit in 0..8 * bytes.len() {
                let mut spoilt = bytes.clone();
                spoilt[bit / 8] ^= 1 << (bit % 8);
                let Ok(spoilt) = Ivf::from_parameters(params, kernels(), &spoilt) else {
                    refused += 1;
                    continue;
                };
                if let ListCode::Pq4 { .. } = code {
                    for row in 0..40 {
                        let any: Vec<u8> = (0..6).map(|_| draws.below(256) as u8).collect();
                        spoilt
                            .lists()
                            .list(draws.below(5))
                            .push(row * 100, &any, draws.below(65536) as u16)
                            .unwrap();
                    }
                    search(&spoilt, &vectors[..DIM], 5, 7, allowed, false);
                }
            }
            // The highest bit of nearly every float's exponent makes it too large.
            assert!(refused >= bytes.len() / 5, "{refused} of {}", 8 * bytes.len());
        }
    }
}

/// Everything about lists is the same at any number of workers.
#[test]
fn builds_are_reproducible() {
    let vectors = clustered(3000, DIM, 25, 3);
    for metric in [Metric::L2, Metric::InnerProduct, Metric::Cosine] {
        let vectors = if metric == Metric::Cosine { unit(vectors.clone(), DIM) } else { vectors.clone() };
        let params = Params { metric, dim: DIM, nlist: 40, code: ListCode::Pq4 { runs: 8 }, seed: 9 };
        let builds = [1, 2, 5].map(|workers| build(params, &vectors, workers));
        let other = build(Params { seed: 10, ..params }, &vectors, 2);
        let bits = |ivf: &Ivf| ivf.centroids().vectors().iter().map(|x| x.to_bits()).collect::<Vec<_>>();
        let entries = |ivf: &Ivf| {
            let mut all = Vec::new();
            for list in 0..ivf.lists().len() {
                ivf.lists()
                    .list(list)
                    .entries(&mut |row, code, bias| all.push((list, row, code.to_vec(), bias)));
            }
            all
        };
        assert_eq!(entries(&builds[0]).len(), 3000);
        for build in &builds[1..] {
            assert_eq!(bits(&builds[0]), bits(build), "{metric:?}");
            assert_eq!(builds[0].book, build.book, "{metric:?}");
            assert_eq!(entries(&builds[0]), entries(build), "{metric:?}");
        }
        assert_ne!(bits(&builds[0]), bits(&other), "{metric:?}: the seed counts");
    }
}

/// With all lists probed and candidates to spare, rescoring finds what an exact search does; with some, most of it.
#[test]
fn neighbours_are_found() {
    let (count, queries) = (6000, 100);
    for metric in [Metric::L2, Metric::InnerProduct, Metric::Cosine] {
        let all = clustered(count + queries, DIM, 200, 17);
        let all = if metric == Metric::Cosine { unit(all, DIM) } else { all };
        let (vectors, queries) = all.split_at(count * DIM);
        let params = Params { metric, dim: DIM, nlist: 48, code: ListCode::Pq4 { runs: 8 }, seed: 1 };
        let ivf = build(params, vectors, 2);
        let allowed = Allowed { rows: count, which: Which::All };
        let recall = |nprobe, want| {
            let mut found = 0;
            for query in queries.chunks(DIM) {
                let to = |row: usize| distance(metric, query, &vectors[row * DIM..][..DIM]);
                let mut truth: Vec<usize> = (0..count).collect();
                truth.sort_by(|&a, &b| to(a).total_cmp(&to(b)));
                let mut rows: Vec<usize> = search(&ivf, query, nprobe, want, allowed, false)
                    .iter()
                    .map(|e| e.id() as usize)
                    .collect();
                assert!(rows.len() <= want);
                rows.sort_by(|&a, &b| to(a).total_cmp(&to(b)));
                found += rows.iter().take(10).filter(|row| truth[..10].contains(row)).count();
            }
            found as f64 / (queries.len() / DIM * 10) as f64
        };
        assert_eq!(recall(48, count), 1.0, "{metric:?}");
        assert!(recall(48, 100) > 0.97, "{metric:?}: {}", recall(48, 100));
        // Large inner products are not only those with near vectors.
        let few = if metric == Metric::InnerProduct { 0.5 } else { 0.85 };
        assert!(recall(12, 100) > few, "{metric:?}: {}", recall(12, 100));
    }
}

/// A vector that is inserted alone lies where a build would have put it, is found at once, and is gone from the new value
/// once rows are numbered anew.
#[test]
fn inserted_is_found_and_dropped_is_gone() {
    let vectors = clustered(2000, DIM, 30, 5);
    let params =
        Params { metric: Metric::L2, dim: DIM, nlist: 16, code: ListCode::Pq4 { runs: DIM }, seed: 1 };
    let (first, rest) = vectors.split_at(1900 * DIM);
    let ivf = build(params, first, 2);
    let mut lists = vec![0; 100];
    let source = Dense { vectors: rest, dim: DIM };
    assert!(ivf.assign(&source, 0, &mut lists, &Workers(2), &mut go));
    let mut probe = ListProbe::default();
    let allowed = Allowed { rows: 2000, which: Which::All };
    for (i, vector) in rest.chunks(DIM).enumerate() {
        let row = 1900 + i as u32;
        let before = ivf.lists().list(lists[i] as usize).len();
        ivf.insert(row, vector, &|_, _| {}, &mut probe).unwrap();
        assert_eq!(ivf.lists().list(lists[i] as usize).len(), before + 1, "list of row {row}");
        let rows: Vec<u32> = search(&ivf, vector, 1, 10, allowed, false).iter().map(|e| e.id()).collect();
        assert!(rows.contains(&row), "{row} in {rows:?}");
    }
    let list = lists[0] as usize;
    let compacted = ivf.renumbered(&|row| (row != 1900).then_some(row)).unwrap();
    assert_eq!(compacted.lists().list(list).len() + 1, ivf.lists().list(list).len());
    let has = |ivf: &Ivf| search(ivf, &rest[..DIM], 16, 2000, allowed, false).iter().any(|e| e.id() == 1900);
    assert!(has(&ivf) && !has(&compacted));
}

/// Rows: the caller's keys decide, whatever the codes are.
#[test]
fn rows_are_scanned_by_the_callers_keys() {
    let vectors = clustered(1000, DIM, 10, 5);
    let params =
        Params { metric: Metric::L2, dim: DIM, nlist: 10, code: ListCode::Rows { stride: 8 }, seed: 1 };
    let ivf = build(params, &vectors, 2);
    let (mut probe, mut scratch, mut best) = (ListProbe::default(), ScanScratch::default(), Best::default());
    let query = &vectors[..DIM];
    ivf.probe(query, 10, &mut probe);
    best.reset(7);
    for i in 0..probe.lists().len() {
        let mut keys = |list: u32, codes: &[u8], keys: &mut [i32]| {
            assert_eq!(codes.len(), 8 * keys.len());
            for (key, code) in keys.iter_mut().zip(codes.as_chunks::<8>().0) {
                let row = u64::from_le_bytes(*code) as usize;
                let own = ivf.centroids().vector(list);
                let nearest = (0..10)
                    .map(|l| distance(Metric::L2, &vectors[row * DIM..][..DIM], ivf.centroids().vector(l)));
                let away = distance(Metric::L2, &vectors[row * DIM..][..DIM], own);
                assert!(away <= 1.05 * nearest.fold(f64::INFINITY, f64::min), "row {row} in list {list}");
                *key = key_of(distance(Metric::L2, query, &vectors[row * DIM..][..DIM]) as f32);
            }
        };
        ivf.scan(&probe, i, &mut keys, Allowed { rows: 1000, which: Which::All }, &mut scratch, &mut best);
    }
    let mut expected: Vec<usize> = (0..1000).collect();
    expected
        .sort_by_key(|&row| (key_of(distance(Metric::L2, query, &vectors[row * DIM..][..DIM]) as f32), row));
    let rows: Vec<usize> = best.sorted().iter().map(|e| e.id() as usize).collect();
    assert_eq!(rows, expected[..7]);
}

proptest! {
    /// The lists chosen are the nearest, but for what bytes cannot tell apart; their distances are exact but for bf16.
    #[test]
    fn the_nearest_lists_are_probed(
        dim in 1usize..80, nlist in 1usize..300, count in 1usize..40, seed in any::<u64>(), metric in 0usize..3, away in -50f32..50.0,
    ) {
        let metric = [Metric::L2, Metric::InnerProduct, Metric::Cosine][metric];
        let values: Vec<f32> = normal((nlist + 1) * dim, seed).into_iter().map(|x| x + away).collect();
        let values = if metric == Metric::Cosine { unit(values, dim) } else { values };
        let (query, vectors) = values.split_at(dim);
        let origin = floats::mean(vectors, dim);
        let centroids = Centroids::new(metric, vectors.to_vec(), origin, kernels()).unwrap();
        let mut choice = Choice::default();
        centroids.choose(query, count, &mut choice);
        let to = |list: u32| distance(metric, query, &vectors[list as usize * dim..][..dim]);
        let mut expected: Vec<u32> = (0..nlist as u32).collect();
        expected.sort_by(|&a, &b| to(a).total_cmp(&to(b)));
        expected.truncate(count);
        prop_assert_eq!(choice.lists.len(), count.min(nlist));
        let size: f64 = dot(query, query) + f64::from(away * away) * dim as f64 + dim as f64;
        for (found, list) in &choice.lists {
            prop_assert!((f64::from(*found) - to(*list)).abs() <= size / 256.0, "{found} instead of {}", to(*list));
        }
        prop_assert!(choice.lists.windows(2).all(|w| w[0].0 <= w[1].0 && w[0].1 != w[1].1));
        let hits = choice.lists.iter().filter(|l| expected.contains(&l.1)).count();
        prop_assert!(hits + 1 + count / 10 >= expected.len(), "{hits} of {}", expected.len());
    }
}
