//! What a scheduler and its simulator need of searches: stopping them, the bytes that they read and where these lie, and
//! the steps of a search of lists run apart.

use crate::data::{Data, Random, SPACES, build, go_on, params};
use lanewise_index::{
    Code, Counts, Dtype, Filter, Index, Inline, Kind, Metric, Neighbors, Params, Partial, Plan, Probed,
    Reader, Region, Scratch, Search, SearchError, Stop, Touch, Vectors,
};
use proptest::prelude::*;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const DIM: usize = 24;

/// An index of every kind, with every code that the kind takes.
fn kinds() -> Vec<Params> {
    let usual = params(Dtype::F32, Metric::L2, DIM, Kind::Flat);
    let codes = |kind: Kind, codes: &[Code]| -> Vec<Params> {
        codes.iter().map(|&code| Params { kind, code, nlist: 40, ..usual }).collect()
    };
    [
        codes(Kind::Flat, &[Code::None, Code::I8]),
        codes(Kind::Hnsw, &[Code::None, Code::I8, Code::I4, Code::Bits]),
        codes(Kind::Ivf, &Code::ALL),
    ]
    .concat()
}

/// Three thousand vectors, a few of them removed.
fn index(params: Params) -> Index {
    let index = build(params, &Data::clustered(params.dtype, DIM, 3000, 701));
    let mut random = Random(702);
    let gone: Vec<i64> = (0..60).map(|_| random.below(3000) as i64).collect();
    assert!(index.remove(&gone).unwrap() > 50);
    index
}

fn share(reader: &Reader, of_1000: u64) -> Filter {
    reader.filter(|id| Random(id as u64).next() % 1000 < of_1000)
}

fn query(seed: u64) -> Data {
    Data::clustered(Dtype::F32, DIM, 1, seed)
}

/// Runs `work` told to stop at its first question, at its second, and so on, until it comes to its end: which must be
/// `right`, as must be a search with the same memory after each stop. How often it was stopped.
fn stopped_anywhere<T: PartialEq + std::fmt::Debug>(
    right: &T,
    mut work: impl FnMut(Option<Stop<'_>>, &mut Scratch) -> Result<T, SearchError>,
) -> usize {
    let mut scratch = Scratch::default();
    for n in 0.. {
        let left = AtomicUsize::new(n);
        let asked = || left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1)).is_err();
        match work(Some(Stop::new(&asked)), &mut scratch) {
            Ok(found) => {
                assert_eq!(&found, right, "after {n} questions");
                return n;
            }
            Err(error) => assert_eq!(error, SearchError::Stopped, "at question {n}"),
        }
        if n % 7 == 0 {
            assert_eq!(&work(None, &mut scratch).unwrap(), right, "after a stop at question {n}");
        }
    }
    unreachable!("some search ends")
}

#[test]
fn a_search_can_be_stopped_at_every_step() {
    for params in kinds() {
        let index = index(params);
        let reader = index.reader();
        for of_1000 in [1000, 300, 5] {
            let filter = share(&reader, of_1000);
            let query = query(703);
            let usual = Search::new(10).nprobe(6).ef(30);
            let how = if of_1000 < 1000 { usual.filter(&filter) } else { usual };
            let run = |stop: Option<Stop<'_>>, scratch: &mut Scratch| {
                reader.search(query.vectors(), &Search { stop, ..how }, scratch)
            };
            let right = run(None, &mut Scratch::default()).unwrap();
            let steps = stopped_anywhere(&right, run);
            let least = match reader.plan(&how) {
                // The first is expanded unasked, and the question that ends the walk finds nothing left.
                Plan::Graph | Plan::FilteredGraph => 20,
                Plan::Lists => 6,
                Plan::Exact if of_1000 == 5 => 1,
                Plan::Exact | Plan::Codes => 3000 * of_1000 as usize / 1000 / 128,
            };
            assert!(steps >= least, "{params:?} {of_1000}: {steps} questions");
            let within = |stop: Option<Stop<'_>>, scratch: &mut Scratch| {
                reader.within(
                    query.vectors(),
                    right.0[0].distances[9],
                    None,
                    &Search { stop, ..how },
                    scratch,
                )
            };
            let all = within(None, &mut Scratch::default()).unwrap();
            assert!(all.0[0].ids.len() >= 10 || params.kind != Kind::Flat);
            assert!(stopped_anywhere(&all, within) > 0);
        }
    }
}

#[test]
fn groups_and_pages_can_be_stopped() {
    for params in kinds() {
        let index = index(params);
        let reader = index.reader();
        let query = query(704);
        let two = NonZeroUsize::new(2).unwrap();
        let groups = |stop: Option<Stop<'_>>, scratch: &mut Scratch| {
            let group = |ids: &[i64]| Ok(ids.iter().map(|id| id % 7).collect::<Vec<_>>());
            let how = Search { stop, ..Search::new(5) };
            let find = |q: Vectors<'_>, how: &Search<'_>| reader.search(q, how, scratch);
            reader.search_groups::<i64, SearchError>(query.vectors(), two, &how, group, find)
        };
        let right = groups(None, &mut Scratch::default()).unwrap();
        assert!(stopped_anywhere(&right, groups) > 0);
        let mut pages = reader.pages(query.vectors(), &Search::new(20)).unwrap();
        let mut whole = reader.pages(query.vectors(), &Search::new(20)).unwrap();
        for page in 0..4 {
            let right = whole.next_page(&mut Scratch::default()).unwrap();
            let (mut stops, mut scratch) = (0, Scratch::default());
            // A page that was stopped is asked for again, with a little more time.
            let found = loop {
                let left = AtomicUsize::new(stops);
                let asked =
                    || left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1)).is_err();
                match pages.next_page_until(Some(Stop::new(&asked)), &mut scratch) {
                    Ok(found) => break found,
                    Err(error) => assert_eq!(error, SearchError::Stopped),
                }
                stops += 1;
            };
            assert!(found == right && (stops > 0 || page > 0), "{params:?} page {page}: {stops}");
        }
    }
}

/// Searches with what they read written down: results, work, reads.
fn recorded(reader: &Reader, queries: &Data, how: &Search<'_>) -> (Vec<Neighbors>, Counts, Vec<Touch>) {
    let mut scratch = Scratch::default();
    scratch.record(Some(Arc::new(reader.layout())));
    let (found, counts) = reader.search(queries.vectors(), how, &mut scratch).unwrap();
    (found, counts, scratch.recorded())
}

fn bytes_of(touches: &[Touch], region: Region) -> u64 {
    touches.iter().filter(|touch| touch.region == region).map(|touch| touch.bytes).sum()
}

#[test]
fn reads_lie_in_their_regions_and_add_up() {
    let spaces = SPACES.into_iter().flat_map(|(dtype, metric)| {
        Kind::ALL.map(|kind| Params { nlist: 40, ..params(dtype, metric, DIM, kind) })
    });
    for params in kinds().into_iter().chain(spaces) {
        let index = index(params);
        let (reader, stats) = (index.reader(), index.stats());
        let layout = reader.layout();
        let regions = Region::ALL.map(|region| layout.region(region));
        assert!(regions.windows(2).all(|pair| pair[0].end <= pair[1].start && pair[1].start % 4096 == 0));
        assert_eq!(layout.end(), regions[6].end);
        let size = |region| {
            let range = layout.region(region);
            range.end - range.start
        };
        assert_eq!(size(Region::Vectors) + size(Region::Norms), stats.vector_bytes as u64);
        assert_eq!((size(Region::Codes), layout.lists()), (stats.code_bytes as u64, stats.lists));
        for (i, list) in (0..).zip(reader.lists()) {
            let range = layout.list(i);
            assert_eq!(range.end - range.start, list.bytes);
        }
        assert_eq!(
            reader.lists().map(|list| list.vectors).sum::<usize>(),
            if stats.lists > 0 { 3000 } else { 0 }
        );
        assert!(
            reader.bytes() as u64 >= size(Region::Vectors) + size(Region::Links) + size(Region::Lists) / 2
        );

        for (of_1000, exact) in [(1000, false), (300, false), (1000, true), (300, true)] {
            let filter = share(&reader, of_1000);
            let usual = Search { exact, ..Search::new(10).nprobe(6).ef(30) };
            let how = if of_1000 < 1000 { usual.filter(&filter) } else { usual };
            let queries = Data::clustered(params.dtype, DIM, 5, 705);
            let (found, counts, touches) = recorded(&reader, &queries, &how);
            let plain = reader.search(queries.vectors(), &how, &mut Scratch::default()).unwrap();
            assert_eq!((&found, &counts), (&plain.0, &plain.1), "{params:?}");
            assert_eq!(recorded(&reader, &queries, &how).2, touches);
            for touch in &touches {
                let range = match touch.region {
                    Region::Lists => layout.list(touch.of),
                    region => layout.region(region),
                };
                assert!(range.start <= touch.offset && touch.offset + touch.bytes <= range.end, "{touch:?}");
            }
            assert_eq!(touches.iter().map(|touch| touch.bytes).sum::<u64>(), counts.bytes, "{params:?}");
            assert!(counts.bytes > 0);

            // Of what they should be, by the numbers that were counted otherwise.
            let row = (size(Region::Vectors) + size(Region::Norms)) / 3000;
            let of_rows = bytes_of(&touches, Region::Vectors) + bytes_of(&touches, Region::Norms);
            let number =
                |region: Region| touches.iter().filter(|touch| touch.region == region).count() as u64;
            match reader.plan(&how) {
                // Five queries read together.
                Plan::Exact if how.filter.is_some() => assert_eq!(of_rows, filter.matches() as u64 * row),
                Plan::Exact => assert_eq!(of_rows, 3000 * row),
                Plan::Codes => {
                    let share = if how.filter.is_some() { filter.matches() as u64 } else { 3000 };
                    assert_eq!(bytes_of(&touches, Region::Codes), share * size(Region::Codes) / 3000);
                }
                Plan::Graph | Plan::FilteredGraph => {
                    let links = number(Region::Links) + number(Region::UpperLinks);
                    let around = reader.plan(&how) == Plan::FilteredGraph;
                    assert!(links == counts.hops || around && links > counts.hops, "{links} {counts:?}");
                    assert_eq!(bytes_of(&touches, Region::Links), 4 * 16 * number(Region::Links));
                    assert_eq!(bytes_of(&touches, Region::UpperLinks), 4 * 8 * number(Region::UpperLinks));
                    assert_eq!(number(Region::Vectors) + number(Region::Codes), counts.distances);
                }
                Plan::Lists => {
                    let lists: u64 = touches
                        .iter()
                        .filter(|touch| touch.region == Region::Lists)
                        .map(|touch| reader.lists().nth(touch.of as usize).unwrap().vectors as u64)
                        .sum();
                    let searches = 5 * layout.lists() as u64;
                    assert_eq!(counts.distances, searches + lists + number(Region::Vectors), "{params:?}");
                }
            }
        }
    }
}

/// Reads are recorded when asked for, of the state that was asked for.
#[test]
fn only_what_is_asked_for_is_recorded() {
    for params in kinds() {
        let index = index(params);
        let before = index.reader();
        let query = query(706);
        let mut scratch = Scratch::default();
        let run = |reader: &Reader, scratch: &mut Scratch| {
            reader.search(query.vectors(), &Search::new(10), scratch).unwrap();
            scratch.recorded().len()
        };
        assert_eq!(run(&before, &mut scratch), 0);
        scratch.record(Some(Arc::new(before.layout())));
        let touches = run(&before, &mut scratch);
        assert!(touches > 0);
        let more = Data::clustered(Dtype::F32, DIM, 100, 707);
        index.add(more.vectors(), None, &Inline, &mut go_on).unwrap();
        assert_eq!(run(&index.reader(), &mut scratch), 0);
        // Lists have grown, but not what is recorded of them.
        assert_eq!(run(&before, &mut scratch), touches);
        scratch.record(None);
        assert_eq!(run(&before, &mut scratch), 0);
    }
}

fn shared<T: Send + Sync>(_: &T) {}

/// The steps of one query, its lists in some order, each with other memory.
fn by_steps(probed: &Probed, random: &mut Random, scratch: &mut [Scratch]) -> Vec<Partial> {
    shared(probed);
    let mut order: Vec<usize> = (0..probed.lists().len()).collect();
    for i in (1..order.len()).rev() {
        order.swap(i, random.below(i + 1));
    }
    order.into_iter().map(|i| probed.scan(i, &mut scratch[random.below(3)])).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Steps run apart give what a search gives, and do the same work.
    #[test]
    fn steps_run_apart_are_a_search(
        space in 0..SPACES.len(),
        code in 0..Code::ALL.len(),
        removed in 0usize..400,
        of_1000 in prop_oneof![Just(1000u64), 1..1000u64],
        k in prop_oneof![1usize..30, 100usize..900],
        nprobe in 1usize..50,
        seed in 0u64..1000,
    ) {
        let (dtype, metric) = SPACES[space];
        let bits = matches!(metric, Metric::Hamming | Metric::Jaccard);
        let code = if bits { Code::None } else { Code::ALL[code] };
        let usual = Params { code, nlist: 40, ..params(dtype, metric, DIM, Kind::Ivf) };
        let data = Data::clustered(dtype, DIM, 2000, seed);
        let built = Index::new(usual).unwrap();
        if built.add(data.vectors(), None, &Inline, &mut go_on).is_err() {
            // A code that cannot order these vectors.
            return Ok(());
        }
        let gone: Vec<i64> = (0..removed as i64).map(|i| i * 5).collect();
        built.remove(&gone).unwrap();
        let reader = built.reader();
        let filter = share(&reader, of_1000);
        let how = Search::new(k).nprobe(nprobe);
        let how = if of_1000 < 1000 { how.filter(&filter) } else { how };
        let queries = Data::clustered(dtype, DIM, 4, seed + 1);
        let (mut random, mut scratch) = (Random(seed), [(); 3].map(|()| Scratch::default()));
        for q in 0..4 {
            let query = queries.vectors().slice(DIM, q..q + 1);
            let (found, counts) = reader.search(query, &how, &mut Scratch::default()).unwrap();
            match reader.probe(query, &how, &mut scratch[0]).unwrap() {
                None => prop_assert!(reader.plan(&how) != Plan::Lists),
                Some(probed) => {
                    prop_assert_eq!(reader.plan(&how), Plan::Lists);
                    let partials = by_steps(&probed, &mut random, &mut scratch);
                    let (one, work) = probed.merge(&partials, None, &mut scratch[1]).unwrap();
                    prop_assert_eq!((&one, &work), (&found[0], &counts));
                    let lists: Vec<u32> = probed.lists().collect();
                    let sizes: Vec<_> = reader.lists().collect();
                    let bytes: u64 = lists.iter().map(|&list| sizes[list as usize].bytes).sum();
                    prop_assert_eq!(partials.iter().map(|partial| partial.counts().bytes).sum::<u64>(), bytes);
                }
            }
        }
    }
}

/// What steps record together is what a search records, but for the order of lists.
#[test]
fn steps_read_what_a_search_reads() {
    for params in kinds().into_iter().filter(|params| params.kind == Kind::Ivf) {
        let index = index(params);
        let reader = index.reader();
        let (query, how) = (query(708), Search::new(10).nprobe(7));
        let (_, _, mut whole) = recorded(&reader, &query, &how);
        let mut scratch = [(); 3].map(|()| Scratch::default());
        let layout = Arc::new(reader.layout());
        scratch.iter_mut().for_each(|scratch| scratch.record(Some(layout.clone())));
        let probed = reader.probe(query.vectors(), &how, &mut scratch[0]).unwrap().unwrap();
        let partials = by_steps(&probed, &mut Random(709), &mut scratch);
        probed.merge(&partials, None, &mut scratch[2]).unwrap();
        let mut apart: Vec<Touch> = scratch.iter_mut().flat_map(Scratch::recorded).collect();
        let order = |touch: &Touch| (touch.offset, touch.bytes);
        apart.sort_by_key(order);
        whole.sort_by_key(order);
        assert_eq!(apart, whole, "{params:?}");
    }
}

#[test]
fn merging_asks_for_every_list_once() {
    let index = index(Params { nlist: 40, ..params(Dtype::F32, Metric::L2, DIM, Kind::Ivf) });
    let reader = index.reader();
    let (query, mut scratch) = (query(710), Scratch::default());
    let mut probe = |how: &Search<'_>| reader.probe(query.vectors(), how, &mut scratch).unwrap();
    let how = Search::new(10).nprobe(5);
    let (one, other) = (probe(&how).unwrap(), probe(&how).unwrap());
    assert!(probe(&Search { exact: true, ..how }).is_none());
    // One more, as some of the vectors were removed.
    assert_eq!(one.lists().len(), 6);
    let scans = |probed: &Probed, lists: &[usize]| -> Vec<Partial> {
        lists.iter().map(|&i| probed.scan(i, &mut Scratch::default())).collect()
    };
    let merge = |partials: &[Partial]| one.merge(partials, None, &mut Scratch::default());
    let right = reader.search(query.vectors(), &how, &mut Scratch::default()).unwrap();
    assert_eq!(merge(&scans(&one, &[3, 1, 4, 0, 5, 2])).unwrap(), (right.0[0].clone(), right.1));
    for lists in [&[0, 1, 2, 3, 4][..], &[0, 1, 2, 3, 4, 4], &[0, 1, 2, 3, 4, 5, 5], &[]] {
        assert_eq!(merge(&scans(&one, lists)), Err(SearchError::Partials), "{lists:?}");
    }
    assert_eq!(merge(&scans(&other, &[0, 1, 2, 3, 4, 5])), Err(SearchError::Partials));
    let several = Data::clustered(Dtype::F32, DIM, 2, 711);
    let error = reader.probe(several.vectors(), &how, &mut Scratch::default()).err();
    assert_eq!(error, Some(SearchError::OneQuery { queries: 2 }));
    // What the lists lack is looked for where they are merged, until stopped.
    let every = Search { exact: true, ..Search::new(3000) };
    let every = reader.search(query.vectors(), &every, &mut Scratch::default()).unwrap().0;
    let few = reader.filter_of(&every[0].ids[1700..]);
    let all = Search::new(200).nprobe(7).filter(&few);
    let probed = reader.probe(query.vectors(), &all, &mut Scratch::default()).unwrap().unwrap();
    let partials = scans(&probed, &(0..probed.lists().len()).collect::<Vec<_>>());
    let merge = |stop| probed.merge(&partials, stop, &mut Scratch::default());
    let right = reader.search(query.vectors(), &all, &mut Scratch::default()).unwrap();
    assert_eq!(merge(None).unwrap(), (right.0[0].clone(), right.1));
    let scanned: u64 = partials.iter().map(|partial| partial.counts().distances).sum();
    println!("{} lists, {scanned} compared, then {}", partials.len(), right.1.distances);
    assert!(right.1.distances > scanned + 40, "nothing was lacking");
    assert_eq!(merge(Some(Stop::new(&|| true))), Err(SearchError::Stopped));
}
