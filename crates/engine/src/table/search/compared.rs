//! Vectors that are compared one by one, in a space that a request names: what OpenSearch calls a scoring script.

use super::super::view::Part;
use super::SearchTableError;
use super::fusion::score;
use crate::documents::Space;
use crate::index::{Dtype, Metric, OwnedVectors, Params};
use crate::kernels::Kernels;
use std::borrow::Cow;

/// Vectors that are read at a time.
const BLOCK: usize = 256;

/// A vector that others are compared with.
pub(in crate::table) struct Compared {
    pub(in crate::table) name: String,
    /// Number of the field.
    pub(in crate::table) field: usize,
    pub(in crate::table) space: Space,
    pub(in crate::table) vector: OwnedVectors,
    pub(in crate::table) min_score: Option<f32>,
    kernels: Kernels,
}

impl Compared {
    /// Of a field with these parameters; the vector is as the field's are brought.
    pub(super) fn new(
        (name, field, params): (&str, usize, &Params),
        space: Space,
        vector: OwnedVectors,
        min_score: Option<f32>,
    ) -> Result<Compared, SearchTableError> {
        let wrong =
            |what: &str| Err(SearchTableError::Space { field: name.to_owned(), what: what.to_owned() });
        match (space, params.dtype, params.metric) {
            (Space::Hamming, Dtype::Bits, _) => {}
            (Space::Hamming, ..) => return wrong("hamming compares bits"),
            (_, Dtype::Bits, _) => return wrong("its vectors are bits: give hamming"),
            (Space::CosineSimil, ..) if floats(&vector).iter().all(|x| *x == 0.0) => {
                return wrong("zero vector is not supported when space type is [cosinesimil]");
            }
            (Space::CosineSimil, ..) => {}
            (_, _, Metric::Cosine) => {
                return wrong("its vectors are kept with a length of 1, by its own space: give cosinesimil");
            }
            _ => {}
        }
        let kernels = Kernels::get().expect("there are indexes");
        Ok(Compared { name: name.to_owned(), field, space, vector, min_score, kernels })
    }

    /// Those of `rows` that have the least score, with their scores, until `stop` says so.
    pub(super) fn scores(
        &self,
        part: &Part,
        rows: &[u32],
        stop: &dyn Fn() -> bool,
    ) -> Result<Vec<(u32, f32)>, SearchTableError> {
        let reader = part.reader(self.field);
        let mut found = Vec::with_capacity(rows.len());
        for block in rows.chunks(BLOCK) {
            if stop() {
                break;
            }
            let numbers: Vec<Option<i64>> =
                block.iter().map(|&row| part.number_of(self.field, row)).collect();
            let wanted: Vec<i64> = numbers.iter().flatten().copied().collect();
            let vectors = reader.vectors(&wanted);
            let vectors =
                vectors.map_err(|error| SearchTableError::Vectors { field: self.name.clone(), error })?;
            let mut next = 0..wanted.len();
            for (&row, number) in block.iter().zip(&numbers) {
                let one = number.and_then(|_| next.next());
                let score = one.map_or(0.0, |at| {
                    let one = vectors.as_vectors().slice(reader.dim(), at..at + 1);
                    self.score(&OwnedVectors::from(one))
                });
                if self.min_score.is_none_or(|least| score >= least) {
                    found.push((row, score));
                }
            }
        }
        Ok(found)
    }

    fn score(&self, other: &OwnedVectors) -> f32 {
        if let (OwnedVectors::Bits(a), OwnedVectors::Bits(b)) = (&self.vector, other) {
            return score(Metric::Hamming, self.kernels.hamming_bits.one(a, b) as f32);
        }
        let (a, b) = (floats(&self.vector), floats(other));
        let of = |distance: f32| 1.0 / (1.0 + distance);
        match self.space {
            Space::L2 => of(self.kernels.l2_f32.one(&a, &b)),
            Space::L1 => of(self.kernels.l1_f32.one(&a, &b)),
            Space::Linf => of(self.kernels.linf_f32.one(&a, &b)),
            Space::InnerProduct => score(Metric::InnerProduct, -self.kernels.dot_f32.one(&a, &b)),
            // A vector without a direction is at a right angle to all.
            Space::CosineSimil if b.iter().all(|x| *x == 0.0) => 0.5,
            Space::CosineSimil => ((1.0 + self.kernels.cosine_f32.one(&a, &b)) / 2.0).max(0.0),
            Space::Hamming => unreachable!("only of bits"),
        }
    }
}

fn floats(vector: &OwnedVectors) -> Cow<'_, [f32]> {
    match vector {
        OwnedVectors::F32(all) => Cow::Borrowed(all),
        OwnedVectors::I8(all) => all.iter().map(|x| f32::from(*x)).collect(),
        OwnedVectors::U8(all) | OwnedVectors::Bits(all) => all.iter().map(|x| f32::from(*x)).collect(),
    }
}
