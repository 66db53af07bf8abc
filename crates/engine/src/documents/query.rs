//! What documents are asked for by what is in their fields.
//!
//! As JSON: `{"term": {"field": "color", "value": "red"}}`. A field that the schema does not name is a path into the dynamic
//! ones; a trailing `.keyword` is passed over there, since each of their strings is both a keyword and a text.

use super::nearest::{Nearest, Scored};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Queries within queries, at most.
pub(super) const DEPTH_MAX: usize = 64;

/// Letters that words may be apart.
pub(super) const EDITS_MAX: u8 = 2;

/// What is asked for. Scores are BM25's for words, 1 for all else, and add up in [`Query::Bool`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[expect(missing_docs, reason = "the variants say what their fields are")]
pub enum Query {
    /// Every document.
    All,
    /// No document.
    None,
    /// With exactly this value. Of a text: with this word, as it stands in the index.
    Term { field: String, value: Value },
    /// With any of these values.
    Terms { field: String, values: Vec<Value> },
    /// With a value between bounds.
    Range { field: String, range: Range },
    /// With any value.
    Exists { field: String },
    /// With a string that begins so.
    Prefix { field: String, value: String },
    /// With a keyword, or a word, that has this form: `*` stands for any characters, `?` for one.
    Wildcard { field: String, value: String },
    /// With the words of `text`, made of it as of the field's: any of them, or all. Of other fields: with this value.
    Match {
        field: String,
        text: String,
        #[serde(default)]
        operator: Operator,
        /// How far a word may be from that of the field.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fuzziness: Option<Fuzziness>,
    },
    /// With the words of `text` one after the other, `slop` places apart at most.
    Phrase {
        field: String,
        text: String,
        #[serde(default)]
        slop: u32,
    },
    /// With the words of `text` one after the other, the last of them the beginning of one.
    PhrasePrefix { field: String, text: String },
    /// With a keyword, or a word, that is so near to this one.
    Fuzzy {
        field: String,
        value: String,
        #[serde(default)]
        fuzziness: Fuzziness,
    },
    /// With a keyword, or a word, that a regular expression describes as a whole.
    Regexp { field: String, value: String },
    /// With one of these ids.
    Ids(Vec<String>),
    /// With all of `must` and `filter` and none of `must_not`; of `should` with `minimum_should_match` (not given: 1 if
    /// there is neither `must` nor `filter`, else 0). `filter` and `must_not` do not count for the score.
    Bool {
        #[serde(default)]
        must: Vec<Query>,
        #[serde(default)]
        should: Vec<Query>,
        #[serde(default)]
        filter: Vec<Query>,
        #[serde(default)]
        must_not: Vec<Query>,
        #[serde(default)]
        minimum_should_match: Option<usize>,
    },
    /// With any of the queries, scored by the best of them and `tie_breaker` times the others.
    DisMax {
        queries: Vec<Query>,
        #[serde(default)]
        tie_breaker: f32,
    },
    /// The same with scores times `factor`.
    Boost { query: Box<Query>, factor: f32 },
    /// The same, each with this score.
    Constant { query: Box<Query>, score: f32 },
    /// With a vector that is near, of all in the table; scored by what OpenSearch makes of its distance.
    Nearest(Nearest),
    /// Those that a query finds, scored by their vectors.
    Scored(Scored),
    /// With nested objects, in the field `path`, of which one as a whole is what `query` asks for. Fields have their full
    /// names there.
    Nested {
        path: String,
        query: Box<Query>,
        #[serde(default)]
        score: ScoreMode,
    },
}

/// What a document's score is made of, of those of its nested objects that were found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "their names say it")]
pub enum ScoreMode {
    #[default]
    Avg,
    Max,
    Min,
    Sum,
    /// It is 0.
    None,
}

impl Query {
    /// What all of them find, without scores.
    pub fn all_of(queries: Vec<Query>) -> Query {
        Query::Bool {
            must: Vec::new(),
            should: Vec::new(),
            filter: queries,
            must_not: Vec::new(),
            minimum_should_match: None,
        }
    }
}

/// Bounds; any may be left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Range {
    /// Above this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gt: Option<Value>,
    /// This or above.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gte: Option<Value>,
    /// Below this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lt: Option<Value>,
    /// This or below.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lte: Option<Value>,
}

/// How many of a text's words a document must have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Operator {
    /// Any.
    #[default]
    Or,
    /// All.
    And,
}

/// How far words may be apart: letters that are added, left out, changed, or swapped with their neighbour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Fuzziness {
    /// None in words of one or two letters, one in those of three to five, else two.
    #[default]
    Auto,
    /// So many, at most two.
    Edits(u8),
}

impl Fuzziness {
    /// How many letters a word of so many may be apart.
    pub(super) fn edits(self, letters: usize) -> u8 {
        match (self, letters) {
            (Fuzziness::Edits(edits), _) => edits,
            (_, 0..=2) => 0,
            (_, 3..=5) => 1,
            _ => 2,
        }
    }
}

/// What is wrong with a query.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum QueryError {
    #[error("field {field:?}: expected {expected}, found {found}")]
    Value { field: String, expected: &'static str, found: String },
    #[error("field {field:?} is {kind}: it cannot be asked by {asked}")]
    Kind { field: String, kind: &'static str, asked: &'static str },
    #[error("field {field:?} is a text: {asked} takes whole values; make it a keyword")]
    Text { field: String, asked: &'static str },
    #[error(
        "field {field:?}: a range needs a bound: gt, gte, lt or lte; of gt and gte, and of lt and lte, give one"
    )]
    Bounds { field: String },
    #[error("queries within queries are at most {DEPTH_MAX} deep")]
    Depth,
    #[error("{argument}={given}: give a finite number, 0 or more")]
    Number { argument: &'static str, given: f32 },
    #[error("fuzziness={given}: words are at most {EDITS_MAX} letters apart, or give auto")]
    Fuzziness { given: u8 },
    #[error("vectors and nested objects are not looked for in a filter of aggregations")]
    Ahead,
    #[error("nested: path {path:?}: the schema names no nested objects there")]
    Path { path: String },
    #[error("nested: path {path:?} lies within another nested query: ask for both side by side")]
    NestedTwice { path: String },
    #[error("minimum_should_match={given}: there are {should} queries in should")]
    Minimum { given: usize, should: usize },
}
