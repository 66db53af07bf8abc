//! Saved indexes: what comes back, and what damage does.

use crate::data::{Data, Random, SPACES, build, go_on, params, search};
use lanewise_index::{
    Code, Dtype, FileBytes, FormatError, Index, Inline, Kind, Metric, Neighbors, Params, Scratch, Search,
};
use proptest::prelude::*;
use std::ops::Range;
use std::sync::Arc;

/// Bytes on a cache line, as a map gives them.
struct Aligned(Vec<[u64; 8]>, usize);

impl AsRef<[u8]> for Aligned {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: `self.1` bytes of initialised numbers.
        unsafe { std::slice::from_raw_parts(self.0.as_ptr().cast(), self.1) }
    }
}

pub(crate) fn open(bytes: &[u8]) -> Result<Index, FormatError> {
    let mut lines = vec![[0u64; 8]; bytes.len().div_ceil(64)];
    for (word, chunk) in lines.as_flattened_mut().iter_mut().zip(bytes.chunks(8)) {
        let mut value = [0; 8];
        value[..chunk.len()].copy_from_slice(chunk);
        *word = u64::from_ne_bytes(value);
    }
    Index::open(Arc::new(Aligned(lines, bytes.len())))
}

pub(crate) fn image(index: &Index) -> Vec<u8> {
    index.image().unwrap().pieces().flatten().copied().collect()
}

fn small(dtype: Dtype, metric: Metric, kind: Kind, n: usize) -> (Index, Data) {
    small_coded(Params { m: 4, ..params(dtype, metric, 20, kind) }, n)
}

fn small_coded(params: Params, n: usize) -> (Index, Data) {
    let kind = params.kind;
    let data = Data::clustered(params.dtype, 20, n, 81);
    let index = Index::new(params).unwrap();
    let ids: Vec<i64> = (0..n as i64).map(|i| 1000 - i).collect();
    if n > 0 {
        index.add(data.vectors(), (kind == Kind::Hnsw).then_some(&ids[..]), &Inline, &mut go_on).unwrap();
    }
    (index, data)
}

#[test]
fn what_is_saved_comes_back() {
    for (dtype, metric) in SPACES {
        for kind in Kind::ALL {
            for n in [0, 1, 2, 300] {
                let (index, _) = small(dtype, metric, kind, n);
                let bytes = image(&index);
                assert_eq!(bytes.len() as u64, index.image().unwrap().bytes());
                let opened = open(&bytes).unwrap();
                assert_eq!(opened.params(), index.params());
                assert_eq!(opened.stats(), index.stats());
                // Centroids alone are copied.
                let copied = if kind == Kind::Ivf { 4096 } else { 0 };
                assert!(opened.owned_bytes() <= copied, "opened in place: {}", opened.owned_bytes());
                assert!(image(&opened) == bytes);
                let queries = Data::clustered(dtype, 20, 10, 82);
                assert_eq!(search(&opened, &queries, 5, 20), search(&index, &queries, 5, 20));
            }
        }
    }
}

#[test]
fn an_opened_index_grows_as_the_original_would() {
    for kind in Kind::ALL {
        let (index, _) = small(Dtype::F32, Metric::L2, kind, 200);
        let opened = open(&image(&index)).unwrap();
        let more = Data::clustered(Dtype::F32, 20, 150, 83);
        let ids: Vec<i64> = (5000..5150).collect();
        let ids = (kind == Kind::Hnsw).then_some(&ids[..]);
        index.add(more.vectors(), ids, &Inline, &mut go_on).unwrap();
        opened.add(more.vectors(), ids, &Inline, &mut go_on).unwrap();
        assert!(image(&opened) == image(&index));
    }
}

/// Every bit of the header and its neighbourhood, and of a sample of the rest: found, and named as damage.
#[test]
fn flipped_bits_are_found() {
    let mut random = Random(84);
    println!("seed 84");
    for ((dtype, metric), kind) in SPACES.into_iter().flat_map(|s| [(s, Kind::Hnsw), (s, Kind::Ivf)]) {
        let (index, _) = small(dtype, metric, kind, 60);
        let mut bytes = image(&index);
        let sample: Vec<usize> = (0..3000).map(|_| random.below(bytes.len() * 8)).collect();
        for bit in (0..1100 * 8).chain(sample) {
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(open(&bytes).is_err(), "{dtype:?} {metric:?}: bit {bit} flipped unseen");
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        assert!(open(&bytes).is_ok());
    }
}

#[test]
fn cut_and_grown_files_are_found() {
    let (index, _) = small(Dtype::I8, Metric::L2, Kind::Hnsw, 40);
    let mut bytes = image(&index);
    for length in 0..bytes.len() {
        let error = open(&bytes[..length]).err().expect("refused");
        let fits = if length < 8 {
            error == FormatError::Magic
        } else {
            matches!(error, FormatError::Length { .. })
        };
        assert!(fits, "cut to {length}: {error}");
    }
    bytes.push(0);
    assert!(matches!(open(&bytes), Err(FormatError::Length { .. })));
}

/// Files that earlier versions wrote, kept in `tests/golden`: opened, searched, extended, and written in today's version.
#[test]
fn files_of_earlier_versions_are_read() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden");
    let mut seen = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let bytes = std::fs::read(&path).unwrap();
        let name = path.file_name().unwrap().to_str().unwrap();
        let version = name.split('-').next().unwrap().parse::<u8>().unwrap();
        assert_eq!(bytes[8], version, "{name}");
        let index = open(&bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
        let params = *index.params();
        let queries = Data::clustered(params.dtype, params.dim, 5, 87);
        let answers = search(&index, &queries, 4, 20);
        assert!(answers.iter().all(|found| found.ids.len() == 4.min(index.len())));
        let exact = index.reader().search(
            queries.vectors(),
            &Search::new(index.len().max(1)),
            &mut Scratch::default(),
        );
        let nearest = |all: &[Neighbors]| -> Vec<Option<f32>> {
            all.iter().map(|found| found.distances.first().copied()).collect()
        };
        assert_eq!(nearest(&exact.unwrap().0), nearest(&answers), "{name}");
        let again = open(&image(&index)).unwrap();
        assert_eq!(search(&again, &queries, 4, 20), answers, "{name}");
        let ids: Vec<i64> = (9000..9005).collect();
        index.add(queries.vectors(), Some(&ids), &Inline, &mut go_on).unwrap();
        assert!(search(&index, &queries, 1, 30).iter().zip(9000..).all(|(f, id)| f.ids[0] == id), "{name}");
        seen += 1;
    }
    assert!(seen >= 7, "{seen} files");
}

/// Removed vectors stay removed, numbering goes on, and ids written down by a repair come back.
#[test]
fn what_was_removed_stays_removed() {
    for kind in Kind::ALL {
        let data = Data::clustered(Dtype::F32, 20, 200, 88);
        let index = build(params(Dtype::F32, Metric::L2, 20, kind), &data);
        let gone: Vec<i64> = (0..200).filter(|id| id % 3 == 0).collect();
        index.remove(&gone).unwrap();
        let opened = open(&image(&index)).unwrap();
        assert_eq!(
            (opened.len(), search(&opened, &data, 3, 20)),
            (index.len(), search(&index, &data, 3, 20))
        );
        assert!(search(&opened, &data, 200, 20)[0].ids.iter().all(|id| id % 3 != 0));
        // The links of an opened file are its own only once they change.
        opened.repair(&Inline, &mut |_, _| std::ops::ControlFlow::Continue(())).unwrap();
        let again = open(&image(&opened)).unwrap();
        again.add(data.vectors().slice(20, 0..1), None, &Inline, &mut go_on).unwrap();
        assert_eq!(search(&again, &data, 1, 20)[0].ids, [200]);
    }
}

#[test]
fn another_version_is_named() {
    let mut bytes = image(&small(Dtype::I8, Metric::L2, Kind::Flat, 3).0);
    bytes[8] = 3;
    assert_eq!(open(&bytes).err(), Some(FormatError::Version { found: 3 }));
    assert_eq!(open(b"something else").err(), Some(FormatError::Magic));
}

/// CRC32C bit by bit: the hostile writer below must not need the code under test.
fn crc(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |sum, &byte| {
        (0..8).fold(sum ^ u32::from(byte), |s, _| (s >> 1) ^ if s & 1 == 1 { 0x82f6_3b78 } else { 0 })
    })
}

/// Makes all checksums right again.
pub(crate) fn forge(bytes: &mut [u8]) {
    for i in 0..16 {
        let at = 128 + i * 32;
        let field =
            |bytes: &[u8], at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize;
        let (offset, length) = (field(bytes, at), field(bytes, at + 8));
        if let Some(section) = offset.checked_add(length).and_then(|end| bytes.get(offset..end)) {
            let sum = crc(section);
            bytes[at + 16..at + 20].copy_from_slice(&sum.to_le_bytes());
        }
    }
    let sum = crc(&bytes[..1020]);
    bytes[1020..1024].copy_from_slice(&sum.to_le_bytes());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// A file made to mislead, its checksums right: refused, or searched and extended without harm.
    #[test]
    fn forged_files_do_no_harm(
        space in 0usize..SPACES.len(),
        kind in 0usize..Kind::ALL.len(),
        empty in any::<bool>(),
        edits in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>(), any::<bool>()), 1..6),
    ) {
        let (dtype, metric) = SPACES[space];
        let (index, _) = small(dtype, metric, Kind::ALL[kind], if empty { 0 } else { 40 });
        let mut bytes = image(&index);
        for (at, value, early) in edits {
            // The header and the graph, which stands at the end, are where harm could come from.
            let span = if early { 400 } else { bytes.len() };
            bytes[at.index(span)] = value;
        }
        forge(&mut bytes);
        if let Ok(opened) = open(&bytes) {
            let dim = opened.params().dim;
            let dtype = opened.params().dtype;
            let queries = Data::clustered(dtype, dim, 3, 85);
            let found = opened.search(queries.vectors(), &Search::new(5).ef(20), &mut Scratch::default());
            if let Ok((found, _)) = found {
                prop_assert!(found.iter().all(|f| f.ids.len() == 5.min(opened.len())));
            }
            // Errors are fine here, panics are not.
            let _ = opened.add(queries.vectors(), None, &Inline, &mut go_on);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// As above, for lists of codes, whose vectors stand before all that could mislead.
    #[test]
    fn forged_lists_do_no_harm(
        code in 0usize..Code::ALL.len(),
        ip in any::<bool>(),
        edits in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let metric = if ip { Metric::InnerProduct } else { Metric::L2 };
        let usual = params(Dtype::F32, metric, 20, Kind::Ivf);
        let (index, _) = small_coded(Params { code: Code::ALL[code], ..usual }, 70);
        prop_assert_eq!(index.stats().lists, 4);
        let mut bytes = image(&index);
        let vectors = 1024 + 70 * 128;
        for (at, value) in edits {
            let at = vectors + at.index(bytes.len() - vectors);
            bytes[at] = value;
        }
        forge(&mut bytes);
        if let Ok(opened) = open(&bytes) {
            let queries = Data::clustered(Dtype::F32, 20, 5, 89);
            let found = search(&opened, &queries, 5, 20);
            prop_assert!(found.iter().all(|f| f.ids.len() == 5));
            let _ = opened.remove(&[3, 5]);
            let _ = opened.repair(&Inline, &mut |_, _| std::ops::ControlFlow::Continue(()));
            let _ = opened.add(queries.vectors(), None, &Inline, &mut go_on);
        }
    }
}

/// Found by forged files: a graph's parameters were multiplied where there is no graph.
#[test]
fn parameters_that_a_kind_does_not_have_do_no_harm() {
    for kind in [Kind::Flat, Kind::Ivf] {
        let mut bytes = image(&small(Dtype::F32, Metric::L2, kind, 70).0);
        bytes[40..56].fill(0xff);
        forge(&mut bytes);
        let index = open(&bytes).unwrap();
        let more = Data::clustered(Dtype::F32, 20, 3, 90);
        index.add(more.vectors(), None, &Inline, &mut go_on).unwrap();
        index.remove(&(0..40).collect::<Vec<i64>>()).unwrap();
        index.repair(&Inline, &mut |_, _| std::ops::ControlFlow::Continue(())).unwrap();
        assert_eq!((index.len(), search(&index, &more, 1, 10)[0].ids[0]), (33, 70));
    }
}

/// What no random byte is likely to be: rows in two lists or in none, lengths that do not add up.
#[test]
fn lists_that_are_none_are_refused() {
    let (index, _) = small(Dtype::F32, Metric::L2, Kind::Ivf, 70);
    let bytes = image(&index);
    let section = |i: usize| {
        let at = 128 + i * 32;
        u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize
    };
    let refused = |edit: &dyn Fn(&mut [u8])| {
        let mut bytes = bytes.clone();
        edit(&mut bytes);
        forge(&mut bytes);
        open(&bytes).err().expect("refused").to_string()
    };
    let (learnt, lengths, rows) = (section(10), section(11), section(14));
    let error = refused(&|b| b.copy_within(rows..rows + 4, rows + 4));
    assert!(error.contains("a row of a list"), "{error}");
    let error = refused(&|b| b[rows..rows + 4].copy_from_slice(&70u32.to_le_bytes()));
    assert!(error.contains("a row of a list"), "{error}");
    let error = refused(&|b| b[lengths] += 1);
    assert!(error.contains("lengths"), "{error}");
    let error = refused(&|b| b[lengths..lengths + 4].copy_from_slice(&u32::MAX.to_le_bytes()));
    assert!(error.contains("lengths"), "{error}");
    let error = refused(&|b| b[learnt..learnt + 4].copy_from_slice(&f32::NAN.to_le_bytes()));
    assert!(error.contains("not finite"), "{error}");
    let error = refused(&|b| b[88..96].fill(0));
    assert!(error.contains("cannot have been made"), "{error}");
    // A graph has no lists.
    let error = refused(&|b| b[64] = Kind::Flat as u8);
    assert!(error.contains("should be"), "{error}");
}

/// Sections that an empty index does not have, forged into its file.
#[test]
fn starts_without_pilots_are_refused() {
    for kind in Kind::ALL {
        for starts in [&[7u32][..], &[u32::MAX], &[1, 2, 3], &[0, 0]] {
            let mut bytes = image(&small(Dtype::F32, Metric::L2, kind, 0).0);
            bytes.truncate(1024);
            bytes.extend(starts.iter().flat_map(|s| s.to_le_bytes()));
            bytes.resize(1088, 0);
            let mut put = |at: usize, value: u64| bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
            put(16, 1088);
            put(128 + 5 * 32 + 8, starts.len() as u64 * 4);
            put(128 + 6 * 32, 1088);
            (7..16).for_each(|i| put(128 + i * 32, 1088));
            forge(&mut bytes);
            let error = open(&bytes).err().expect("refused");
            assert_eq!(error, FormatError::Invalid { what: "starts without pilots" }, "{kind:?} {starts:?}");
        }
    }
}

#[test]
fn the_checksum_of_the_forger_is_that_of_the_format() {
    assert_eq!(crc(b"123456789"), 0xe306_9283);
    let (index, _) = small(Dtype::F32, Metric::L2, Kind::Hnsw, 40);
    let mut bytes = image(&index);
    let before = bytes.clone();
    forge(&mut bytes);
    assert!(bytes == before);
}

#[test]
fn building_twice_gives_the_same_file() {
    let data = Data::clustered(Dtype::F32, 20, 500, 86);
    let p = params(Dtype::F32, Metric::Cosine, 20, Kind::Hnsw);
    assert!(image(&build(p, &data)) == image(&build(p, &data)));
}

#[test]
fn what_a_forged_file_would_take_is_not_counted() {
    let (index, _) = small_coded(params(Dtype::F32, Metric::L2, 20, Kind::Ivf), 70);
    let mut bytes = image(&index);
    assert!(Index::predict_open(&bytes).is_ok());
    bytes[32..40].copy_from_slice(&(u64::MAX / 3).to_le_bytes());
    forge(&mut bytes);
    assert!(matches!(Index::predict_open(&bytes), Err(FormatError::Parameters(_))));
}

#[test]
fn the_vectors_of_a_damaged_file_are_recovered() {
    for kind in Kind::ALL {
        let given = Params { code: Code::I8, m: 4, nlist: 32, ..params(Dtype::F32, Metric::L2, 20, kind) };
        let (index, _) = small_coded(given, 600);
        let own: Vec<i64> = index.reader().ids().collect();
        index.remove(&[own[5]]).unwrap();
        let file = image(&index);
        let all: Vec<i64> = index.reader().ids().collect();
        let vectors = index.reader().vectors(&all).unwrap();
        let recover = |bytes: &[u8], whole: &dyn Fn(Range<usize>) -> bool| {
            let file: FileBytes = Arc::new(bytes.to_vec());
            Index::recover(&file, whole)
        };
        // Behind the vectors and the ids anything may be wrong; what follows the end is passed over.
        let behind = 1024 + 600 * 128 + if kind == Kind::Hnsw { 600 * 8 } else { 0 };
        for at in [behind, behind + 700, file.len() - 1, file.len() + 3] {
            let mut wrong = [&file[..], &[0; 9]].concat();
            wrong[at] ^= 4;
            let recovered = recover(&wrong, &|_| false).unwrap();
            assert_eq!(*index.params(), recovered.params);
            let found = recovered.vectors.ids().filter(|id| *id != own[5]);
            assert!(found.eq(all.iter().copied()), "{kind:?}, byte {at}");
            assert!(recovered.vectors.vectors(&all).unwrap() == vectors);
        }
        // Of the vectors, those that lie where nothing vouches for the bytes are gone.
        let mut wrong = file;
        wrong[5000] ^= 4;
        let reader = recover(&wrong, &|range| range.end <= 4096 || range.start >= 8192).unwrap().vectors;
        assert_eq!(reader.ids().count(), 599 - (8192 - 4096) / 128);
        assert!(reader.ids().all(|id| reader.vectors(&[id]) == index.reader().vectors(&[id])));
        assert_eq!(recover(&wrong, &|_| false).unwrap().vectors.ids().count(), 0);
        wrong[40] ^= 1;
        assert!(recover(&wrong, &|_| true).is_err());
        assert!(recover(&wrong[..500], &|_| true).is_err());
    }
}
