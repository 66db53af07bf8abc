//! What is asked of a table: as JSON and as Rust, one form for the server, Python and the command line.

use crate::documents::{Query, Sort};
use crate::index::{OwnedVectors, Search};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

/// A search. What it finds are the documents that `query` matches and the `k` nearest of each of `nearest`, all of them among
/// those that `filter` lets through; without `query` and `nearest`, all these.
///
/// ```
/// # use lanewise_engine::table::Request;
/// let request: Request = serde_json::from_str(r#"{
///     "query": {"match": {"field": "title", "text": "red shoes"}},
///     "nearest": [{"field": "embedding", "vector": [0.1, 0.9], "k": 50}],
///     "filter": {"range": {"field": "price", "range": {"lt": 50}}},
///     "fusion": {"rrf": {}},
///     "size": 10, "sort": ["_score"],
///     "aggregations": {"colors": {"terms": {"field": "color"}}}
/// }"#)?;
/// # assert_eq!(serde_json::from_value::<Request>(serde_json::to_value(&request)?)?, request);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Request {
    /// What documents say; scored by BM25.
    pub query: Option<Query>,
    /// What vectors are near.
    pub nearest: Vec<Nearest>,
    /// How one score is made of those of `query` and `nearest`, if there are several.
    pub fusion: Fusion,
    /// Only documents that this finds; it counts for no score.
    pub filter: Option<Query>,
    /// Hits that are passed over.
    pub from: usize,
    /// Hits, at most.
    pub size: usize,
    /// The order; empty: by score, best first. Ids decide at last.
    pub sort: Vec<Sort>,
    /// Only hits that come after the one that has these sort values ([`Hit::sort`](super::Hit::sort)).
    pub after: Option<Vec<Value>>,
    /// Figures over all that is found.
    #[serde(alias = "aggs")]
    pub aggregations: Map<String, Value>,
    /// Whether all that is found is counted. If not, whatever cannot be among the hits may be passed over.
    pub exact_total: bool,
    /// Whether the answer says how it was found.
    pub profile: bool,
    /// Whether segments are searched at the same time.
    pub concurrent: Concurrent,
}

impl Default for Request {
    fn default() -> Self {
        Request {
            query: None,
            nearest: Vec::new(),
            fusion: Fusion::default(),
            filter: None,
            from: 0,
            size: 10,
            sort: Vec::new(),
            after: None,
            aggregations: Map::new(),
            exact_total: true,
            profile: false,
            concurrent: Concurrent::default(),
        }
    }
}

/// A vector to look for, and how hard; numbers that are not given are the usual ones ([`Search`]).
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
}

impl Nearest {
    /// The ten nearest, with the usual effort.
    pub fn new(field: &str, vector: OwnedVectors) -> Nearest {
        let (field, k) = (field.to_owned(), usual_k());
        let (ef_search, epsilon, nprobe, oversample) = (None, None, None, None);
        Nearest { field, vector, k, ef_search, epsilon, nprobe, oversample, exact: false }
    }

    pub(super) fn how(&self) -> Search<'static> {
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

/// How one score is made of several. Weights go by [`Request::query`], if there is one, and then [`Request::nearest`];
/// none given: all equal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Fusion {
    /// Reciprocal rank: the sum of weight / (`rank_constant` + rank), ranks from 1 (Cormack, Clarke & Büttcher 2009).
    Rrf {
        /// How little the first ranks stand out.
        #[serde(default = "usual_rank_constant")]
        rank_constant: f32,
        /// Of each ranking.
        #[serde(default)]
        weights: Vec<f32>,
        /// Documents of the query that are ranked.
        #[serde(default = "usual_window")]
        window: usize,
    },
    /// The mean, by weights, of scores that were normalised; 0 where a document was not found, and of a vector's distance
    /// the score that OpenSearch makes of it ([`score`](super::score)).
    ArithmeticMean {
        /// How each ranking's scores are brought to 0 to 1.
        #[serde(default)]
        normalization: Normalization,
        /// Of each ranking.
        #[serde(default)]
        weights: Vec<f32>,
        /// Documents of the query that are ranked.
        #[serde(default = "usual_window")]
        window: usize,
    },
}

impl Default for Fusion {
    fn default() -> Self {
        Fusion::Rrf { rank_constant: usual_rank_constant(), weights: Vec::new(), window: usual_window() }
    }
}

fn usual_rank_constant() -> f32 {
    60.0
}

fn usual_window() -> usize {
    100
}

/// How scores are brought to 0 to 1; as OpenSearch's processor does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Normalization {
    /// Their place between the least, which is 0.001, and the greatest, which is 1.
    #[default]
    MinMax,
    /// Divided by the square root of the sum of their squares.
    L2,
}

/// Whether the segments of a table are searched at the same time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Concurrent {
    /// One after the other.
    Off,
    /// All at once.
    On,
    /// At once while nobody else waits for the threads: a busy machine answers more queries one segment after the other
    /// (document 003).
    #[default]
    Auto,
}
