//! What becomes of a file's elements.

use lanewise_bench::convert::{ConvertError, Note, VectorSet};
use lanewise_bench::dataset::{Elements, Matrix};
use lanewise_engine::index::{Dtype, Metric, Vectors};

fn convert(
    columns: usize,
    elements: Elements,
    dtype: Dtype,
    metric: Metric,
) -> Result<(VectorSet, Option<Note>), ConvertError> {
    let len = match &elements {
        Elements::F32(x) => x.len(),
        Elements::I8(x) => x.len(),
        Elements::U8(x) | Elements::Bool(x) => x.len(),
        Elements::Int(x) => x.len(),
    };
    VectorSet::of_matrix(Matrix { rows: len / columns, columns, elements, rounded: false }, dtype, metric)
}

fn bytes(set: &VectorSet) -> &[i8] {
    let Vectors::I8(x) = set.as_vectors() else { panic!("bytes") };
    x
}

#[test]
fn unsigned_bytes_are_shifted_for_l2_alone() {
    let values = vec![0, 127, 128, 255];
    let (set, note) = convert(2, Elements::U8(values.clone()), Dtype::I8, Metric::L2).unwrap();
    assert_eq!((bytes(&set), note), ([-128, -1, 0, 127].as_slice(), Some(Note::Shifted)));
    let error = convert(2, Elements::U8(values), Dtype::I8, Metric::Cosine).unwrap_err();
    assert_eq!(
        error,
        ConvertError::NotByte { row: 1, column: 0, value: 128.0, dtype: "i8", range: "−128..=127" }
    );
    let (set, note) = convert(2, Elements::U8(vec![0, 127]), Dtype::I8, Metric::InnerProduct).unwrap();
    assert_eq!((bytes(&set), note), ([0, 127].as_slice(), None));
}

#[test]
fn floats_become_bytes_only_without_loss() {
    let (set, _) = convert(2, Elements::F32(vec![-128.0, 127.0]), Dtype::I8, Metric::L2).unwrap();
    assert_eq!(bytes(&set), [-128, 127]);
    for wrong in [0.5, 128.0, -129.0, f32::NAN, f32::INFINITY] {
        let error = convert(2, Elements::F32(vec![1.0, 2.0, 3.0, wrong]), Dtype::I8, Metric::L2).unwrap_err();
        assert!(matches!(error, ConvertError::NotByte { row: 1, column: 1, .. }), "{wrong}: {error}");
    }
}

#[test]
fn bits_come_packed_or_as_truth_values() {
    let truths = [1, 0, 0, 0, 0, 0, 0, 1, 1, 0, 1, 1, 0, 0, 0, 0, 0, 0].to_vec();
    let (set, _) = convert(9, Elements::Bool(truths), Dtype::Bits, Metric::Hamming).unwrap();
    assert_eq!((set.dim, set.len()), (9, 2));
    assert!(matches!(set.as_vectors(), Vectors::Bits([0x81, 0x01, 0x06, 0x00])), "{:?}", set.as_vectors());
    let (set, _) = convert(2, Elements::U8(vec![1, 2, 3, 4]), Dtype::Bits, Metric::Hamming).unwrap();
    assert_eq!((set.dim, set.len()), (16, 2));
    for elements in [Elements::F32(vec![1.0]), Elements::I8(vec![1])] {
        let error = convert(1, elements, Dtype::Bits, Metric::Hamming).unwrap_err();
        assert!(matches!(error, ConvertError::NotBits { .. }), "{error}");
    }
}

#[test]
fn ids_are_no_vectors_and_bytes_become_floats() {
    assert_eq!(convert(1, Elements::Int(vec![1]), Dtype::F32, Metric::L2).unwrap_err(), ConvertError::Ids);
    for elements in [Elements::U8(vec![0, 1]), Elements::I8(vec![0, 1]), Elements::Bool(vec![0, 1])] {
        let (set, note) = convert(2, elements, Dtype::F32, Metric::L2).unwrap();
        assert!(matches!(set.as_vectors(), Vectors::F32([0.0, 1.0])) && note.is_none());
    }
    let matrix = Matrix { rows: 1, columns: 1, elements: Elements::F32(vec![0.1]), rounded: true };
    assert_eq!(VectorSet::of_matrix(matrix, Dtype::F32, Metric::L2).unwrap().1, Some(Note::Rounded));
}

#[test]
fn vectors_taken_out_leave_no_gap() {
    let mut set = VectorSet::floats(2, (0..10).map(|e| e as f32).collect());
    let out = set.take_out(&[0, 3]);
    assert!(matches!(out.as_vectors(), Vectors::F32([0.0, 1.0, 6.0, 7.0])), "{out:?}");
    assert!(matches!(set.as_vectors(), Vectors::F32([2.0, 3.0, 4.0, 5.0, 8.0, 9.0])), "{set:?}");
    let (mut bits, _) =
        convert(9, Elements::Bool([[1; 9], [0; 9]].concat()), Dtype::Bits, Metric::Hamming).unwrap();
    let out = bits.take_out(&[1]);
    assert!(
        matches!(out.as_vectors(), Vectors::Bits([0, 0]))
            && matches!(bits.as_vectors(), Vectors::Bits([255, 1]))
    );
}
