//! Traversal codes: recall with rescoring, exact distances in the answer, files, churn.

use crate::data::{Data, Scrambled, build, go_on, params, recall, search};
use lanewise_index::{
    AddError, Code, CodeError, CreateError, Dtype, Index, Inline, Kind, Metric, Params, Plan, Reader,
    Scratch, Search,
};
use std::ops::ControlFlow;

const CODES: [(Kind, Code); 10] = [
    (Kind::Flat, Code::I8),
    (Kind::Flat, Code::I4),
    (Kind::Flat, Code::Bits),
    (Kind::Hnsw, Code::I8),
    (Kind::Hnsw, Code::I4),
    (Kind::Hnsw, Code::Bits),
    (Kind::Ivf, Code::I8),
    (Kind::Ivf, Code::I4),
    (Kind::Ivf, Code::Bits),
    (Kind::Ivf, Code::Pq4),
];
const SPACES: [(Dtype, Metric); 6] = [
    (Dtype::F32, Metric::L2),
    (Dtype::F32, Metric::Cosine),
    (Dtype::F32, Metric::InnerProduct),
    (Dtype::F16, Metric::L2),
    (Dtype::I8, Metric::L2),
    (Dtype::U8, Metric::Cosine),
];

/// 32 lists are made of 256 vectors, as codes are fitted to.
fn coded((kind, code): (Kind, Code), dtype: Dtype, metric: Metric, dim: usize) -> Params {
    Params { code, nlist: 32, ..params(dtype, metric, dim, kind) }
}

#[test]
fn rescoring_brings_back_what_a_code_loses() {
    for (dtype, metric) in SPACES {
        let data = Data::clustered(dtype, 96, 4000, 401);
        let queries = Data::clustered(dtype, 96, 100, 402);
        let flat = build(params(dtype, metric, 96, Kind::Flat), &data);
        let exact = search(&flat, &queries, 10, 1);
        for kind_and_code in CODES {
            let index = build(coded(kind_and_code, dtype, metric, 96), &data);
            let run = |how: Search<'_>| {
                let mut scratch = Scratch::default();
                recall(&index.search(queries.vectors(), &how, &mut scratch).unwrap().0, &exact)
            };
            let usual = run(Search::new(10).ef(200));
            let plain = run(Search::new(10).ef(200).oversample(1.0));
            let report = index.code_report().unwrap();
            println!("{dtype:?} {metric:?} {kind_and_code:?}: {plain} of k, {usual} usual; {report}");
            assert!(usual >= 0.95, "{dtype:?} {metric:?} {kind_and_code:?}: {usual}");
            assert!(usual >= plain);
            // What a vector adds to its centroid is what is encoded: few candidates are enough.
            assert!(!index.coarse(), "{report}");
            let of_lists = kind_and_code.0 == Kind::Ivf && matches!(kind_and_code.1, Code::I8 | Code::I4);
            assert!(!of_lists || report.contains(": 2 candidates"), "{report}");
            // Distances are those of the stored vectors.
            let all = search(&flat, &queries, 4000, 1);
            for (found, all) in search(&index, &queries, 10, 100).iter().zip(&all) {
                for (id, distance) in found.ids.iter().zip(&found.distances) {
                    let place = all.ids.iter().position(|other| other == id).unwrap();
                    assert_eq!(*distance, all.distances[place]);
                }
            }
        }
    }
}

#[test]
fn the_same_bytes_and_answers_from_any_workers_and_from_a_file() {
    let data = Data::clustered(Dtype::F32, 40, 1500, 411);
    let queries = Data::clustered(Dtype::F32, 40, 20, 412);
    for code in CODES {
        let p = coded(code, Dtype::F32, Metric::L2, 40);
        let reference = build(p, &data);
        let image = |index: &Index| index.image().unwrap().pieces().flatten().copied().collect::<Vec<u8>>();
        let bytes = image(&reference);
        for workers in [2, 7] {
            let index = Index::new(p).unwrap();
            let executor = Scrambled { workers, seed: 3 };
            index.add(data.vectors(), None, &executor, &mut go_on).unwrap();
            assert!(image(&index) == bytes, "{code:?} with {workers} workers");
        }
        let opened = crate::files::open(&bytes).unwrap();
        assert_eq!(opened.params(), reference.params());
        assert_eq!(opened.code_report(), reference.code_report());
        assert_eq!(search(&opened, &queries, 5, 30), search(&reference, &queries, 5, 30));
        opened.add(queries.vectors(), None, &Inline, &mut go_on).unwrap();
        reference.add(queries.vectors(), None, &Inline, &mut go_on).unwrap();
        assert!(image(&opened) == image(&reference), "{code:?} after an add");
    }
}

/// Flat with a code: all codes are compared, and few vectors; all vectors where that would be many. With and without a
/// filter, whose matches alone are compared.
#[test]
fn a_flat_index_scans_codes_where_few_vectors_are_compared_again() {
    let data = Data::clustered(Dtype::F16, 64, 2000, 431);
    let queries = Data::clustered(Dtype::F16, 64, 40, 432);
    let index = build(coded((Kind::Flat, Code::Bits), Dtype::F16, Metric::L2, 64), &data);
    let exact = build(params(Dtype::F16, Metric::L2, 64, Kind::Flat), &data);
    let mut scratch = Scratch::default();
    index.remove(&[0, 5, 700]).unwrap();
    exact.remove(&[0, 5, 700]).unwrap();
    let (reader, exact) = (index.reader(), exact.reader());
    let half = |reader: &Reader| reader.filter(|id| id % 2 == 1);
    for filtered in [false, true] {
        let (ours, theirs) = (half(&reader), half(&exact));
        let matches = if filtered { ours.matches() } else { reader.len() };
        for (k, oversample, plan) in [
            (10, 8.0, Plan::Codes),
            (10, (matches / 8 / 10) as f32, Plan::Codes),
            (10, (matches / 8 / 10 + 1) as f32, Plan::Exact),
            (matches, 1.0, Plan::Exact),
        ] {
            let how = Search { filter: filtered.then_some(&ours), ..Search::new(k).oversample(oversample) };
            assert_eq!(reader.plan(&how), plan, "{k} {oversample}");
            let (found, counts) = reader.search(queries.vectors(), &how, &mut scratch).unwrap();
            let rescored = if plan == Plan::Codes { (k as f32 * oversample) as u64 } else { 0 };
            assert_eq!(counts.codes, if plan == Plan::Codes { 40 } else { 0 });
            // Without a filter rows of removed vectors are compared too, and passed over.
            let scanned = if filtered { matches as u64 } else { 2000 };
            assert_eq!(counts.distances, 40 * (scanned + rescored));
            let truth = Search { filter: filtered.then_some(&theirs), ..Search::new(k) };
            let truth = exact.search(queries.vectors(), &truth, &mut scratch).unwrap().0;
            assert!(found.iter().all(|found| found.ids.len() == k.min(matches)));
            let recall = recall(&found, &truth);
            assert!(recall >= if plan == Plan::Codes { 0.95 } else { 1.0 }, "{recall} of {k}, {oversample}");
        }
    }
}

/// Vectors that come one by one: compared themselves at first, by a code once there are enough, by a better fitted one
/// once there are many more.
#[test]
fn a_code_comes_with_the_vectors() {
    let data = Data::clustered(Dtype::F32, 24, 6000, 421);
    let queries = Data::clustered(Dtype::F32, 24, 50, 422);
    for code in CODES {
        let index = Index::new(coded(code, Dtype::F32, Metric::L2, 24)).unwrap();
        let mut reports = Vec::new();
        for (first, last) in [(0, 100), (100, 255), (255, 256), (256, 1000), (1000, 4090), (4090, 6000)] {
            index.add(data.vectors().slice(24, first..last), None, &Inline, &mut go_on).unwrap();
            reports.push(index.code_report());
        }
        assert!(reports[..2].iter().all(Option::is_none));
        assert!(reports[2].is_some() && reports[2..5].iter().all(|report| *report == reports[2]));
        assert_ne!(reports[5], reports[2], "fitted anew");
        index.remove(&(0..1500).collect::<Vec<i64>>()).unwrap();
        index.repair(&Inline, &mut |_, _| ControlFlow::Continue(())).unwrap();
        let rest = Data::F32(match &data {
            Data::F32(x) => x[1500 * 24..].to_vec(),
            _ => unreachable!(),
        });
        let exact = search(&build(params(Dtype::F32, Metric::L2, 24, Kind::Flat), &rest), &queries, 10, 1);
        let found = recall(&search(&index, &queries, 10, 150), &exact);
        assert!(found >= 0.95, "{code:?}: {found}");
    }
}

#[test]
fn codes_that_cannot_be_are_refused() {
    let bits = Params { code: Code::I8, ..params(Dtype::Bits, Metric::Hamming, 64, Kind::Hnsw) };
    assert_eq!(Index::new(bits).err(), Some(CreateError::CodeOfBits { code: "i8" }));
    for kind in [Kind::Flat, Kind::Hnsw] {
        let pq4 = Params { code: Code::Pq4, ..params(Dtype::F32, Metric::L2, 64, kind) };
        let error = CreateError::CodeOfLists { code: "pq4", kind: kind.name() };
        assert_eq!(Index::new(pq4).err(), Some(error));
    }
    let nlist = Params { nlist: 65_537, ..params(Dtype::F32, Metric::L2, 64, Kind::Ivf) };
    assert_eq!(Index::new(nlist).err(), Some(CreateError::Nlist { nlist: 65_537 }));
    // Inner products decided by one dimension in a thousand million: a code cannot tell the rest.
    let mut x = Data::clustered(Dtype::F32, 16, 600, 431);
    let Data::F32(floats) = &mut x else { unreachable!() };
    floats.chunks_mut(16).enumerate().for_each(|(i, v)| v[3] = if i % 2 == 0 { 1e9 } else { -1e9 });
    let index = Index::new(coded((Kind::Hnsw, Code::Bits), Dtype::F32, Metric::L2, 16)).unwrap();
    let error = index.add(x.vectors(), None, &Inline, &mut go_on).unwrap_err();
    assert!(matches!(error, AddError::Code(CodeError::Unordered { .. })), "{error}");
    assert!(index.is_empty());
    // What was refused left nothing behind.
    let fine = Data::clustered(Dtype::F32, 16, 600, 432);
    index.add(fine.vectors(), None, &Inline, &mut go_on).unwrap();
    assert_eq!(search(&index, &fine, 1, 50).len(), 600);
    // Copies of one vector are no reason to refuse.
    let index = Index::new(coded((Kind::Hnsw, Code::I8), Dtype::F32, Metric::L2, 16)).unwrap();
    index.add(Data::F32([1.5; 16].repeat(500)).vectors(), None, &Inline, &mut go_on).unwrap();
    assert_eq!((index.len(), index.code_report()), (500, None));
}

/// A code that is given later is the one that was there from the start, and the two indexes go their own ways.
#[test]
fn a_code_can_be_given_later() {
    let data = Data::clustered(Dtype::F32, 40, 1500, 461);
    let more = Data::clustered(Dtype::F32, 40, 700, 462);
    let queries = Data::clustered(Dtype::F32, 40, 30, 463);
    let image = |index: &Index| index.image().unwrap().pieces().flatten().copied().collect::<Vec<u8>>();
    for (kind, code) in CODES {
        let p = coded((kind, code), Dtype::F32, Metric::L2, 40);
        let plain = build(Params { code: Code::None, ..p }, &data);
        let before = image(&plain);
        let given = plain.with_code(code, &Inline).unwrap();
        // A graph by i8 is built on the code's distances.
        if (kind, code) != (Kind::Hnsw, Code::I8) {
            assert!(image(&given) == image(&build(p, &data)), "{kind:?} {code:?}");
        }
        assert!(image(&plain) == before);
        let exact = search(&plain, &queries, 10, 1500);
        assert!(recall(&search(&given, &queries, 10, 200), &exact) >= 0.95, "{kind:?} {code:?}");
        // As it was before some of it died.
        let reader = plain.reader();
        plain.remove(&[7, 9]).unwrap();
        assert!(image(&plain) != before && image(&plain.as_of(&reader, &Inline).unwrap()) == before);
        let plain = plain.as_of(&reader, &Inline).unwrap();
        // Links, rows and lists of one are not the other's.
        given.remove(&[3, 5]).unwrap();
        given.repair(&Inline, &mut |_, _| ControlFlow::Continue(())).unwrap();
        given.add(more.vectors(), None, &Inline, &mut go_on).unwrap();
        assert!(image(&plain) == before, "{kind:?} {code:?}");
        let grown = image(&given);
        plain.add(queries.vectors(), None, &Inline, &mut go_on).unwrap();
        assert!(image(&given) == grown && given.len() == 2198 && plain.len() == 1530);
        let without = given.with_code(Code::None, &Inline).unwrap();
        assert!(without.code_report().is_none_or(|_| kind == Kind::Ivf) && without.len() == 2198);
    }
    let bits = build(
        params(Dtype::Bits, Metric::Hamming, 64, Kind::Flat),
        &Data::clustered(Dtype::Bits, 64, 300, 7),
    );
    assert!(matches!(
        bits.with_code(Code::I8, &Inline),
        Err(AddError::Create(CreateError::CodeOfBits { .. }))
    ));
}
