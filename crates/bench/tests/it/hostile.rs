//! Files that are wrong, by accident or on purpose: a clear error at the right place, never a panic, and no memory for
//! what is not there.

use crate::{file, header, npy, read, texmex};
use lanewise_bench::dataset::{self, DatasetError};
use proptest::collection::vec;
use proptest::prelude::*;
use std::fs::File;

/// The place and the message of the error that reading gives.
fn malformed(name: &str, contents: &[u8]) -> (u64, String) {
    match read(name, contents) {
        Err(DatasetError::Malformed { path, offset, what }) => {
            assert!(path.ends_with(name));
            (offset, what)
        }
        other => panic!("{name}: {other:?}"),
    }
}

#[test]
fn texmex_errors_name_their_place() {
    let row = 1f32.to_le_bytes();
    let cases: [(&[u8], u64, &str); 8] = [
        (&[], 0, "empty"),
        (&[1, 0], 0, "cut short"),
        (&texmex(&[(0, &[])]), 0, "dimension 0 is not between"),
        (&texmex(&[(-1, &row)]), 0, "dimension -1 is not between"),
        (&texmex(&[(i32::MAX, &row)]), 0, "is not between"),
        (&texmex(&[(2, &row)]), 0, "needs a row of 12 bytes, the file has 8"),
        (&texmex(&[(1, &row), (2, &row)]), 8, "row 1 has dimension 2, the first has 1"),
        (&texmex(&[(1, &row), (1, &row[..2])]), 8, "6 bytes after the last whole row"),
    ];
    for (contents, place, message) in cases {
        let (offset, what) = malformed("x.fvecs", contents);
        assert!(offset == place && what.contains(message), "{contents:?}: {offset} {what}");
    }
}

#[test]
fn npy_errors_name_their_place() {
    let two = [0; 8];
    let after = 10 + header("<f4", "(1, 2)").len() as u64;
    let cases: [(Vec<u8>, u64, &str); 14] = [
        (vec![], 0, "too short"),
        (b"PK\x03\x04 a zip file".to_vec(), 0, "not a .npy file"),
        (b"\x93NUMPY\x04\x00\x00\x00\x00\x00".to_vec(), 6, "version 4.0"),
        (b"\x93NUMPY\x01\x00\xff".to_vec(), 8, "cut short"),
        (b"\x93NUMPY\x01\x00\xff\x00{".to_vec(), 10, "cut short: 255 more bytes"),
        (b"\x93NUMPY\x02\x00\xff\xff\xff\xff".to_vec(), 8, "longer than"),
        (npy(&header(">f4", "(1, 2)"), &two), 0, "big-endian"),
        (npy(&header("<c8", "(1, 1)"), &two), 0, "astype('float32')"),
        (npy(&header("<f4", "(2,)"), &two), 0, "shape (2,): reshape"),
        (npy(&header("<f4", "(1, 1, 2)"), &two), 0, "shape (1, 1, 2): reshape"),
        (npy(&header("<f4", "(0, 2)"), &[]), 0, "nothing in it"),
        (npy(&header("<f4", "(1, 2)"), &two[1..]), after, "needs 8 bytes, 7 are there"),
        (npy(&header("<f4", "(1, 2)"), &[0; 9]), after, "needs 8 bytes, 9 are there"),
        (npy(&header("|b1", "(1, 2)"), &[1, 2]), after + 1, "2 is no truth value"),
    ];
    for (contents, place, message) in cases {
        let (offset, what) = malformed("x.npy", &contents);
        assert!(offset == place && what.contains(message), "{contents:?}: {offset} {what}");
    }
    let fortran = header("<f4", "(1, 2)").replace("False", "True");
    assert!(malformed("x.npy", &npy(&fortran, &two)).1.contains("ascontiguousarray"));
    let huge = header("<f4", "(9223372036854775807, 1048576)");
    assert!(malformed("x.npy", &npy(&huge, &two)).1.contains("more than 2^64"));
    let far = npy(&header("<f8", "(1, 1)"), &1e300f64.to_le_bytes());
    assert!(malformed("x.npy", &far).1.contains("1e300 is more than float32 holds"));
    let id = npy(&header("<u8", "(1, 1)"), &u64::MAX.to_le_bytes());
    assert!(malformed("x.npy", &id).1.contains("more than an id can be"));
}

#[test]
fn what_is_no_vector_file_is_refused_by_name() {
    for name in ["x", "x.txt", ".npy", "x.npy.gz"] {
        assert!(matches!(read(name, b""), Err(DatasetError::Extension { .. })), "{name}");
    }
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("d.npy");
    std::fs::create_dir(&directory).unwrap();
    let error = dataset::read(&directory).unwrap_err().to_string();
    assert!(error.contains("not a file"), "{error}");
    let error = dataset::read(&folder.path().join("none.npy")).unwrap_err().to_string();
    assert!(error.contains("none.npy"), "{error}");
}

/// A file as long as it claims, but without contents: it takes no disk, and must not be allowed to take memory.
#[test]
fn a_file_larger_than_memory_is_refused() {
    let bytes = 1u64 << 42;
    let text = header("|u1", &format!("({}, 1024)", bytes >> 10));
    let file = file("x.npy", &npy(&text, &[]));
    let length = 10 + text.len() as u64 + bytes;
    if File::options().write(true).open(&file.path).unwrap().set_len(length).is_err() {
        // Some file systems hold no file that long.
        return;
    }
    let error = dataset::read(&file.path).unwrap_err();
    assert!(matches!(error, DatasetError::Memory { bytes: found, .. } if found == bytes), "{error}");
}

#[test]
fn every_truncation_of_a_file_is_an_error() {
    let row = [1f32, 2.0, 3.0].map(f32::to_le_bytes).concat();
    let files = [
        ("x.npy", npy(&header("<f4", "(2, 3)"), &[row.clone(), row.clone()].concat())),
        ("x.fvecs", texmex(&[(3, &row), (3, &row)])),
    ];
    for (name, whole) in files {
        assert_eq!(read(name, &whole).unwrap().rows, 2);
        for len in 0..whole.len() {
            let result = read(name, &whole[..len]);
            // The first row alone is a whole file of this format.
            if name == "x.fvecs" && len == whole.len() / 2 {
                assert_eq!(result.unwrap().rows, 1);
            } else {
                assert!(matches!(result, Err(DatasetError::Malformed { .. })), "{name} of {len} bytes");
            }
        }
    }
}

/// Reads in every format; what is read has its shape.
fn read_all(contents: &[u8]) {
    for name in ["x.npy", "x.fvecs", "x.bvecs", "x.ivecs"] {
        if let Ok(matrix) = read(name, contents) {
            assert!(matrix.rows > 0 && matrix.columns > 0);
            assert!(matrix.rows * matrix.columns <= contents.len());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_bytes_never_panic(contents in vec(any::<u8>(), 0..300)) {
        read_all(&contents);
    }

    #[test]
    fn arbitrary_headers_never_panic(
        text in "[{}'\"\\(\\),: a-zA-Z0-9<>|\\[\\]-]{0,80}",
        version in 0u8..5,
        elements in vec(any::<u8>(), 0..40),
    ) {
        let mut contents = npy(&text, &elements);
        contents[6] = version;
        read_all(&contents);
    }

    #[test]
    fn a_good_file_with_bad_bytes_never_panics(
        places in vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        shape in (1usize..4, 1usize..4),
    ) {
        let elements = vec![1; shape.0 * shape.1 * 4];
        let mut contents = npy(&header("<f4", &format!("({}, {})", shape.0, shape.1)), &elements);
        for (place, byte) in places {
            let place = place.index(contents.len());
            contents[place] = byte;
        }
        read_all(&contents);
    }

    #[test]
    fn small_records_never_panic(rows in vec((-1i32..4, vec(any::<u8>(), 0..12)), 0..6)) {
        let rows: Vec<_> = rows.iter().map(|(dim, bytes)| (*dim, bytes.as_slice())).collect();
        read_all(&texmex(&rows));
    }
}
