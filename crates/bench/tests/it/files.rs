//! Files as others write them, and as we write them.

use crate::{file, header, npy, read, texmex};
use lanewise_bench::dataset::{DatasetError, Elements, Matrix, read as read_path, read_ids, write};

/// What `numpy.lib.format.write_array` (NumPy 2) writes for one array in each version of the format.
#[test]
fn numpy_files_of_every_version_are_read() {
    let (pad1, pad23) = (" ".repeat(58), " ".repeat(56));
    let dictionary = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }";
    let elements = b"\x00\x00\x80?\x00\x00\x00\xc0\x00\x00@@\x00\x00\x00?";
    let expected = Elements::F32(vec![1.0, -2.0, 3.0, 0.5]);
    for (start, pad) in [
        (b"\x93NUMPY\x01\x00v\x00".as_slice(), pad1),
        (b"\x93NUMPY\x02\x00t\x00\x00\x00", pad23.clone()),
        (b"\x93NUMPY\x03\x00t\x00\x00\x00", pad23),
    ] {
        let contents = [start, dictionary.as_bytes(), pad.as_bytes(), b"\n", elements].concat();
        assert_eq!(contents.len(), 128 + 16, "as long as NumPy's");
        let matrix = read("x.npy", &contents).unwrap();
        assert_eq!((matrix.rows, matrix.columns, &matrix.elements), (2, 2, &expected));
    }
}

#[test]
fn every_element_type_keeps_its_values() {
    let one = |descr: &str, bytes: &[u8]| {
        let columns = bytes.len() / descr[2..].parse::<usize>().unwrap();
        read("x.npy", &npy(&header(descr, &format!("(1, {columns})")), bytes)).unwrap()
    };
    assert_eq!(one("<f2", &[0, 0x3c, 0, 0xc0]).elements, Elements::F32(vec![1.0, -2.0]));
    assert_eq!(one("|i1", &[255, 1]).elements, Elements::I8(vec![-1, 1]));
    assert_eq!(one("|u1", &[255, 1]).elements, Elements::U8(vec![255, 1]));
    assert_eq!(one("|b1", &[0, 1]).elements, Elements::Bool(vec![0, 1]));
    assert_eq!(one("<i4", &(-7i32).to_le_bytes()).elements, Elements::Int(vec![-7]));
    assert_eq!(one("<u4", &u32::MAX.to_le_bytes()).elements, Elements::Int(vec![u32::MAX.into()]));
    assert_eq!(one("<i8", &i64::MIN.to_le_bytes()).elements, Elements::Int(vec![i64::MIN]));
    assert_eq!(one("<u8", &7u64.to_le_bytes()).elements, Elements::Int(vec![7]));
    let exact = one("<f8", &0.5f64.to_le_bytes());
    assert_eq!((exact.elements, exact.rounded), (Elements::F32(vec![0.5]), false));
    let rounded = one("<f8", &0.1f64.to_le_bytes());
    assert_eq!((rounded.elements, rounded.rounded), (Elements::F32(vec![0.1]), true));
}

#[test]
fn texmex_files_are_read() {
    let f = [1.5f32, -2.0].map(f32::to_le_bytes).concat();
    let matrix = read("x.fvecs", &texmex(&[(2, &f), (2, &f)])).unwrap();
    assert_eq!((matrix.rows, matrix.columns), (2, 2));
    assert_eq!(matrix.elements, Elements::F32(vec![1.5, -2.0, 1.5, -2.0]));
    let matrix = read("X.BVECS", &texmex(&[(3, &[0, 128, 255]), (3, &[1, 2, 3])])).unwrap();
    assert_eq!(matrix.elements, Elements::U8(vec![0, 128, 255, 1, 2, 3]));
    let matrix = read("x.ivecs", &texmex(&[(1, &(-5i32).to_le_bytes())])).unwrap();
    assert_eq!((matrix.rows, matrix.columns, matrix.elements), (1, 1, Elements::Int(vec![-5])));
}

#[test]
fn ids_are_one_dimensional_integers() {
    let bytes = [3i64, -4].map(i64::to_le_bytes).concat();
    for shape in ["(2,)", "(2, 1)"] {
        assert_eq!(read_ids(&file("i.npy", &npy(&header("<i8", shape), &bytes)).path).unwrap(), [3, -4]);
    }
    let wide = read_ids(&file("i.npy", &npy(&header("<i8", "(1, 2)"), &bytes)).path).unwrap_err();
    assert!(wide.to_string().contains("ids need the shape (vectors,)"), "{wide}");
    let wide = read_ids(&file("i.ivecs", &texmex(&[(2, &bytes[..8])])).path).unwrap_err();
    assert!(wide.to_string().contains("one id per vector"), "{wide}");
    let floats = read_ids(&file("i.npy", &npy(&header("<f8", "(2,)"), &bytes)).path).unwrap_err();
    assert!(floats.to_string().contains("must be 32- or 64-bit integers"), "{floats}");
}

#[test]
fn what_is_written_is_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let cases = [
        ("x.npy", Elements::F32(vec![0.1, -2.0, f32::MAX, 0.0, 1.0, 2.0])),
        ("x.npy", Elements::I8(vec![-128, 0, 127, 1, 2, 3])),
        ("x.npy", Elements::U8(vec![0, 128, 255, 1, 2, 3])),
        ("x.npy", Elements::Bool(vec![0, 1, 1, 0, 0, 1])),
        ("x.npy", Elements::Int(vec![i64::MIN, 0, i64::MAX, 1, 2, 3])),
        ("x.fvecs", Elements::F32(vec![0.1, -2.0, f32::MAX, 0.0, 1.0, 2.0])),
        ("x.bvecs", Elements::U8(vec![0, 128, 255, 1, 2, 3])),
        ("x.ivecs", Elements::Int(vec![i32::MIN.into(), 0, i32::MAX.into(), 1, 2, 3])),
    ];
    for (name, elements) in cases {
        let path = folder.path().join(name);
        let matrix = Matrix { rows: 2, columns: 3, elements, rounded: false };
        write(&path, &matrix).unwrap();
        assert_eq!(read_path(&path).unwrap(), matrix, "{name}");
    }
    let names = std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(names, 4, "no temporary file is left");
}

#[test]
fn what_a_format_cannot_hold_is_not_written() {
    let folder = tempfile::tempdir().unwrap();
    for (name, elements) in [
        ("x.ivecs", Elements::Int(vec![1 << 31])),
        ("x.fvecs", Elements::Int(vec![1])),
        ("x.bvecs", Elements::I8(vec![1])),
    ] {
        let matrix = Matrix { rows: 1, columns: 1, elements, rounded: false };
        let error = write(&folder.path().join(name), &matrix).unwrap_err();
        assert!(error.to_string().contains("write .npy instead"), "{error}");
    }
    let matrix = Matrix { rows: 1, columns: 1, elements: Elements::Int(vec![1]), rounded: false };
    let error = write(&folder.path().join("no/x.npy"), &matrix).unwrap_err();
    assert!(matches!(error, DatasetError::Io { .. }), "{error}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[cfg(unix)]
#[test]
fn a_written_file_has_the_permissions_of_any_new_file() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let (ours, usual) = (folder.path().join("x.npy"), folder.path().join("y"));
    let matrix = Matrix { rows: 1, columns: 1, elements: Elements::Int(vec![1]), rounded: false };
    write(&ours, &matrix).unwrap();
    std::fs::write(&usual, "").unwrap();
    let mode = |path| std::fs::metadata(path).unwrap().permissions().mode();
    assert_eq!(mode(&ours), mode(&usual));
}
