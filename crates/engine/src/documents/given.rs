//! Vectors as they came, for fields whose index keeps them otherwise: cosine normalises floats, types of 16 bits round them.
//!
//! They are the second value of `_source`, of those fields that [`Rules::exact`](super::Rules::exact) names: for each its
//! number (u16), how many numbers it has (u32), and these (f32), little-endian. What is kept is what came, whatever the
//! index makes of it on this machine or another, so that a document that is written again does not drift.

use super::mapping::Mapping;
use lanewise_index::{Dtype, Metric, OwnedVectors, Params, Vectors};

/// Whether an index gives back what it took.
fn is_whole(params: &Params) -> bool {
    match params.dtype {
        Dtype::F32 => params.metric != Metric::Cosine,
        Dtype::F16 | Dtype::Bf16 => false,
        _ => true,
    }
}

impl Mapping {
    /// Whether vectors of a field are kept here.
    pub(crate) fn is_given(&self, name: &str) -> bool {
        let exact = self.schema.rules.get(name).is_some_and(|rules| rules.exact);
        // Those of nested objects are in the source.
        let apart = exact && self.schema.nested(name).is_none();
        apart && self.vector(name).is_some_and(|(_, params)| !is_whole(params))
    }

    /// What is kept of a document's vectors; empty if nothing is.
    pub(super) fn given(&self, vectors: &[Option<OwnedVectors>]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (number, vector) in (0u16..).zip(vectors) {
            let Some(Vectors::F32(all)) = vector.as_ref().map(OwnedVectors::as_vectors) else { continue };
            if self.is_given(&self.vectors[usize::from(number)]) {
                bytes.extend(number.to_le_bytes());
                bytes.extend((all.len() as u32).to_le_bytes());
                bytes.extend(all.iter().flat_map(|x| x.to_le_bytes()));
            }
        }
        bytes
    }
}

/// The vector of the field with this number.
pub(crate) fn read(mut bytes: &[u8], field: usize) -> Option<OwnedVectors> {
    while let (Some((number, rest)), true) = (bytes.split_first_chunk::<2>(), !bytes.is_empty()) {
        let (len, rest) = rest.split_first_chunk::<4>()?;
        let (numbers, rest) = rest.split_at_checked(4 * u32::from_le_bytes(*len) as usize)?;
        if usize::from(u16::from_le_bytes(*number)) == field {
            let floats = numbers.as_chunks::<4>().0.iter().map(|x| f32::from_le_bytes(*x));
            return Some(OwnedVectors::F32(floats.collect()));
        }
        bytes = rest;
    }
    None
}
