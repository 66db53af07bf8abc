//! What `add`, `new` and `search` refuse, and that a refusal changes nothing.

use crate::data::{Data, build, go_on, params, search};
use lanewise_index::{
    AddError, CreateError, Dtype, Index, Inline, Kind, Metric, Params, Scratch, Search, SearchError,
    VectorError, Vectors,
};
use std::ops::ControlFlow;

fn empty(dtype: Dtype, metric: Metric, dim: usize) -> Index {
    Index::new(params(dtype, metric, dim, Kind::Hnsw)).unwrap()
}

fn refused(index: &Index, vectors: Vectors<'_>, ids: Option<&[i64]>) -> AddError {
    let before = index.len();
    let error = index.add(vectors, ids, &Inline, &mut go_on).unwrap_err();
    assert_eq!(index.len(), before, "a refusal changes nothing");
    error
}

#[test]
fn parameters_out_of_range() {
    let base = params(Dtype::F32, Metric::L2, 8, Kind::Hnsw);
    let error = |p: Params| Index::new(p).err().expect("refused");
    assert!(matches!(error(Params { dim: 0, ..base }), CreateError::Vector(VectorError::Dim { dim: 0, .. })));
    assert!(matches!(error(Params { dim: 1 << 40, ..base }), CreateError::Vector(VectorError::Dim { .. })));
    assert!(matches!(error(Params { m: 1, ..base }), CreateError::M { m: 1 }));
    assert!(matches!(error(Params { m: 513, ..base }), CreateError::M { .. }));
    assert!(matches!(error(Params { ef_construction: 0, ..base }), CreateError::EfConstruction { .. }));
    let wrong = CreateError::Vector(VectorError::MetricOfDtype { metric: "hamming", dtype: "f32" });
    assert_eq!(error(Params { metric: Metric::Hamming, ..base }), wrong);
    // A flat index has no graph to have parameters.
    assert!(Index::new(Params { m: 0, kind: Kind::Flat, ..base }).is_ok());
}

#[test]
fn values_that_are_no_vectors() {
    let l2 = empty(Dtype::F32, Metric::L2, 2);
    let cosine = empty(Dtype::F32, Metric::Cosine, 2);
    for value in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let error = refused(&l2, Vectors::F32(&[1.0, 2.0, 3.0, value]), None);
        assert!(
            matches!(error, AddError::Vector(VectorError::NotFinite { row: 1, column: 1, .. })),
            "{error}"
        );
    }
    let error = refused(&l2, Vectors::F32(&[1e20, 0.0]), None);
    assert_eq!(error, AddError::Vector(VectorError::TooLarge { row: 0 }));
    let error = refused(&cosine, Vectors::F32(&[1.0, 0.0, 0.0, 0.0]), None);
    assert_eq!(error, AddError::Vector(VectorError::Zero { row: 1 }));
    let error = refused(&cosine, Vectors::F32(&[1e-25, 0.0]), None);
    assert_eq!(error, AddError::Vector(VectorError::Zero { row: 0 }));
    let error = refused(&empty(Dtype::I8, Metric::Cosine, 2), Vectors::I8(&[0, 0]), None);
    assert_eq!(error, AddError::Vector(VectorError::Zero { row: 0 }));
    let error = refused(&empty(Dtype::Bits, Metric::Hamming, 9), Vectors::Bits(&[255, 2]), None);
    assert_eq!(error, AddError::Vector(VectorError::BitsBeyondDim { row: 0, dim: 9 }));
    // Zero has a place by L2 and inner product.
    assert!(l2.add(Vectors::F32(&[0.0, 0.0]), None, &Inline, &mut go_on).is_ok());
}

#[test]
fn shapes_and_types() {
    let index = empty(Dtype::F32, Metric::L2, 3);
    assert_eq!(refused(&index, Vectors::F32(&[]), None), AddError::Empty);
    let error = refused(&index, Vectors::F32(&[1.0; 4]), None);
    assert_eq!(error, AddError::Vector(VectorError::Shape { elements: 4, width: 3 }));
    let error = refused(&index, Vectors::I8(&[1; 3]), None);
    assert_eq!(error, AddError::Vector(VectorError::Dtype { got: "i8", expected: "f32" }));
}

#[test]
fn ids_are_unique_and_given_for_all_or_none() {
    let index = empty(Dtype::F32, Metric::L2, 1);
    let x = Vectors::F32(&[1.0, 2.0]);
    assert_eq!(refused(&index, x, Some(&[1])), AddError::IdsLen { ids: 1, vectors: 2 });
    assert_eq!(refused(&index, x, Some(&[5, 5])), AddError::DuplicateId { id: 5 });
    index.add(x, None, &Inline, &mut go_on).unwrap();
    // Positions so far are ids too.
    assert_eq!(refused(&index, x, Some(&[1, 9])), AddError::DuplicateId { id: 1 });
    index.add(Vectors::F32(&[3.0, 4.0]), Some(&[-7, i64::MAX]), &Inline, &mut go_on).unwrap();
    assert_eq!(refused(&index, x, None), AddError::IdsMissing);
    assert_eq!(refused(&index, x, Some(&[9, -7])), AddError::DuplicateId { id: -7 });
    let found = search(&index, &Data::F32(vec![3.9]), 4, 10);
    assert_eq!(found[0].ids, [i64::MAX, -7, 1, 0]);
}

#[test]
fn searches_that_ask_for_nothing() {
    let index = build(params(Dtype::F32, Metric::L2, 2, Kind::Hnsw), &Data::F32(vec![1.0; 8]));
    let mut scratch = Scratch::default();
    let mut error =
        |q: &[f32], k, ef| index.search(Vectors::F32(q), &Search::new(k).ef(ef), &mut scratch).unwrap_err();
    assert_eq!(error(&[], 1, 1), SearchError::Empty);
    assert_eq!(error(&[1.0, 1.0], 0, 1), SearchError::K);
    assert_eq!(error(&[1.0, 1.0], 1, 0), SearchError::EfSearch);
    let none = index.search(Vectors::F32(&[1.0; 2]), &Search::new(1).nprobe(0), &mut Scratch::default());
    assert_eq!(none, Err(SearchError::Nprobe));
    assert!(matches!(error(&[1.0, f32::NAN], 1, 1), SearchError::Vector(VectorError::NotFinite { .. })));
    assert!(matches!(error(&[1.0], 1, 1), SearchError::Vector(VectorError::Shape { .. })));
}

#[test]
fn a_cancelled_add_keeps_what_was_in() {
    let data = Data::clustered(Dtype::F32, 16, 3000, 71);
    let index = Index::new(params(Dtype::F32, Metric::L2, 16, Kind::Hnsw)).unwrap();
    let mut stop = |done| if done >= 1000 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
    let ids: Vec<i64> = (0..3000).map(|i| i * 2).collect();
    let error = index.add(data.vectors(), Some(&ids), &Inline, &mut stop).unwrap_err();
    let AddError::Cancelled { added, total: 3000 } = error else { panic!("{error}") };
    assert!((1000..1600).contains(&added), "{added}");
    assert_eq!(index.len(), added);
    // What is in is whole: searchable, and the rest can be added.
    let found = search(&index, &data, 1, 50);
    let hits = found[..added].iter().enumerate().filter(|(i, f)| f.ids[0] == ids[*i]).count();
    assert!(hits * 100 >= added * 95, "{hits} of {added}");
    index.add(data.vectors().slice(16, added..3000), Some(&ids[added..]), &Inline, &mut go_on).unwrap();
    assert_eq!(index.len(), 3000);
}

#[test]
fn a_cancel_at_once_leaves_an_empty_index_that_works() {
    let data = Data::clustered(Dtype::I8, 8, 100, 72);
    let index = empty(Dtype::I8, Metric::L2, 8);
    let error = index.add(data.vectors(), None, &Inline, &mut |_| ControlFlow::Break(())).unwrap_err();
    assert_eq!(error, AddError::Cancelled { added: 0, total: 100 });
    assert!(index.is_empty());
    index.add(data.vectors(), None, &Inline, &mut go_on).unwrap();
    assert_eq!(search(&index, &data, 1, 10).len(), 100);
}

/// Room that was made beforehand is enough for what comes in several calls, which give the same index.
#[test]
fn reserved_memory_is_filled_without_growing() {
    for kind in [Kind::Flat, Kind::Hnsw] {
        let data = Data::clustered(Dtype::F32, 16, 3000, 91);
        let in_calls = |reserve: bool| {
            let index = Index::new(params(Dtype::F32, Metric::L2, 16, kind)).unwrap();
            let part = |range| {
                index.add(data.vectors().slice(16, range), None, &Inline, &mut go_on).unwrap();
            };
            part(0..500);
            if reserve {
                index.reserve(2500).unwrap();
            }
            let held = index.owned_bytes();
            for first in (500..3000).step_by(500) {
                part(first..first + 500);
            }
            assert!(
                !reserve || index.owned_bytes() == held,
                "{kind:?}: {held}, then {}",
                index.owned_bytes()
            );
            crate::files::image(&index)
        };
        assert!(in_calls(true) == in_calls(false), "{kind:?}");
    }
}
