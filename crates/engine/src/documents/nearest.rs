//! What vectors are asked for, alone or within queries.

use super::query::Query;
use crate::index::{OwnedVectors, Search};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A vector to look for, and how hard; numbers that are not given are the usual ones ([`Search`]). With `radius` or
/// `min_score` all that are so near are found, and `k` only says how many are looked for at first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Nearest {
    /// Which vectors.
    pub field: String,
    /// One vector, as the field's are brought. As JSON, numbers.
    #[serde(serialize_with = "write_vector", deserialize_with = "read_vector")]
    pub vector: OwnedVectors,
    /// How many documents.
    #[serde(default = "usual_k")]
    pub k: usize,
    /// All whose distance, as the index has it (inner products negated), is this or less.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub radius: Option<f32>,
    /// All whose score ([`score`](crate::table::score)) is this or more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_score: Option<f32>,
    /// Only among documents that this finds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<Box<Query>>,
    /// HNSW: candidates that are kept on the way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ef_search: Option<usize>,
    /// HNSW, in place of `ef_search`: how much farther than the k-th is looked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epsilon: Option<f32>,
    /// IVF: lists that are scanned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nprobe: Option<usize>,
    /// With a code: candidates for each result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oversample: Option<f32>,
    /// Whether every vector is compared.
    #[serde(default)]
    pub exact: bool,
    /// In nested objects: of the `k` documents all objects with a vector count, not only the nearest of each.
    #[serde(default)]
    pub expand: bool,
}

impl Nearest {
    /// The ten nearest, with the usual effort.
    pub fn new(field: &str, vector: OwnedVectors) -> Nearest {
        Nearest {
            field: field.to_owned(),
            vector,
            k: usual_k(),
            radius: None,
            min_score: None,
            filter: None,
            ef_search: None,
            epsilon: None,
            nprobe: None,
            oversample: None,
            exact: false,
            expand: false,
        }
    }

    pub(crate) fn how(&self) -> Search<'static> {
        let usual = Search::new(self.k);
        Search {
            ef_search: self.ef_search.unwrap_or(usual.ef_search),
            epsilon: self.epsilon,
            nprobe: self.nprobe.unwrap_or(usual.nprobe),
            oversample: self.oversample,
            exact: self.exact,
            ..usual
        }
    }
}

/// Documents that are scored by their vectors, compared one by one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scored {
    /// Which documents.
    pub query: Box<Query>,
    /// Whose vectors; a document without one has the score 0.
    pub field: String,
    /// One vector, as the field's are brought. As JSON, numbers.
    #[serde(serialize_with = "write_vector", deserialize_with = "read_vector")]
    pub vector: OwnedVectors,
    /// What is computed.
    pub space: Space,
    /// Only documents whose score is this or more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_score: Option<f32>,
}

/// What OpenSearch's scripts compute of two vectors (`KNNScoringSpace`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Space {
    /// 1 / (1 + the squared distance).
    L2,
    /// 1 / (1 + the sum of differences).
    L1,
    /// 1 / (1 + the greatest difference).
    Linf,
    /// Half of 1 + the cosine.
    CosineSimil,
    /// Of a product of 0 or more: 1 + it; else 1 / (1 - it).
    InnerProduct,
    /// 1 / (1 + the bits that differ).
    Hamming,
}

fn usual_k() -> usize {
    10
}

fn write_vector<S: Serializer>(vector: &OwnedVectors, serializer: S) -> Result<S::Ok, S::Error> {
    match vector {
        OwnedVectors::F32(all) => all.serialize(serializer),
        OwnedVectors::I8(all) => all.serialize(serializer),
        OwnedVectors::U8(all) | OwnedVectors::Bits(all) => all.serialize(serializer),
    }
}

fn read_vector<'de, D: Deserializer<'de>>(deserializer: D) -> Result<OwnedVectors, D::Error> {
    Vec::deserialize(deserializer).map(OwnedVectors::F32)
}
