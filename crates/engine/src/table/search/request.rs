//! What is asked of a table: as JSON and as Rust, one form for the server, Python and the command line.

use crate::documents::{Nearest, Query, Sort};
use serde::{Deserialize, Serialize};
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
    /// Only documents whose [score](super::Hit::score) is this or more: others are neither counted nor in figures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_score: Option<f32>,
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
    /// Whether figures are left open, to be put together with those of other tables ([`Figures`](super::Figures)).
    #[serde(skip)]
    pub open_figures: bool,
    /// Whether each hit says how its score came about.
    pub explain: bool,
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
            min_score: None,
            from: 0,
            size: 10,
            sort: Vec::new(),
            after: None,
            aggregations: Map::new(),
            exact_total: true,
            open_figures: false,
            explain: false,
            profile: false,
            concurrent: Concurrent::default(),
        }
    }
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
    /// The same with the geometric mean, of those scores that are there.
    GeometricMean {
        /// As above; so the others.
        #[serde(default)]
        normalization: Normalization,
        /// Of each ranking.
        #[serde(default)]
        weights: Vec<f32>,
        /// Documents of the query that are ranked.
        #[serde(default = "usual_window")]
        window: usize,
    },
    /// The same with the harmonic mean, of those scores that are there.
    HarmonicMean {
        /// As above; so the others.
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

impl Fusion {
    /// The weights of the rankings, and how many documents of the query are ranked.
    pub(super) fn weights(&self) -> (&[f32], usize) {
        match self {
            Fusion::Rrf { weights, window, .. }
            | Fusion::ArithmeticMean { weights, window, .. }
            | Fusion::GeometricMean { weights, window, .. }
            | Fusion::HarmonicMean { weights, window, .. } => (weights, *window),
        }
    }

    /// How scores are brought to 0 to 1, if they are.
    pub(super) fn normalization(&self) -> Normalization {
        match self {
            Fusion::Rrf { .. } => Normalization::default(),
            Fusion::ArithmeticMean { normalization, .. }
            | Fusion::GeometricMean { normalization, .. }
            | Fusion::HarmonicMean { normalization, .. } => *normalization,
        }
    }
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
