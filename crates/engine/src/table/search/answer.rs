//! What a search found, and how.

use super::super::fetch::FetchError;
use super::super::segment::SegmentId;
use super::super::view::{At, View};
use super::Profile;
use crate::documents::{AggregationError, Aggregations, Partial, RunError};
use lanewise_index::OwnedVectors;
use serde_json::Value;
use std::sync::Arc;

/// A document that was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Hit {
    /// Its id.
    pub id: String,
    /// Number of the write that it came with.
    pub seq: u64,
    /// How often it was written since it was created.
    pub version: u64,
    /// How well it fits, the greater the better: BM25's score, what OpenSearch makes of a distance, or what
    /// [`Fusion`](super::Fusion) makes of several; 0 if it is in none of the rankings that were fused, 1 if nothing was
    /// asked for.
    pub score: f32,
    /// How far its vector is, if one vector was looked for and nothing else.
    pub distance: Option<f32>,
    /// What it is sorted by: a value for each of [`Request::sort`](super::Request::sort) before `_id`, and the id. A score
    /// that stands for one distance is that distance.
    pub sort: Vec<Value>,
    /// How its score came about, if that was asked for: `value`, `description`, and `details` of the same form.
    pub explanation: Option<Box<Value>>,
    pub(super) at: At,
}

/// How many documents were found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Total {
    /// As many, or at least so many.
    pub value: u64,
    /// Whether they are just as many.
    pub exact: bool,
}

/// What was found.
#[derive(Clone)]
pub struct Answer {
    /// The documents, in order.
    pub hits: Vec<Hit>,
    /// How many there are, on all pages.
    pub total: Total,
    /// The figures that were asked for, by name, as JSON; an empty object if none were.
    pub aggregations: Value,
    /// These, if they were to be left open.
    pub figures: Option<Figures>,
    /// How it was found, if that was asked for.
    pub profile: Option<Profile>,
    pub(super) view: Arc<View>,
}

/// Figures of one table, to be put together with those of others.
#[derive(Clone)]
pub struct Figures {
    pub(super) asked: Arc<Aggregations>,
    pub(super) partials: Vec<Partial>,
}

impl Figures {
    /// The figures over all tables, which were asked for the same.
    ///
    /// # Errors
    /// If there are too many buckets.
    pub fn together(all: Vec<Figures>) -> Result<Value, AggregationError> {
        let Some(asked) = all.first().map(|first| first.asked.clone()) else {
            return Ok(Value::Object(serde_json::Map::new()));
        };
        asked.answer(all.into_iter().flat_map(|one| one.partials))
    }
}

impl Answer {
    /// A hit's document without its vectors, as JSON, as it was when the search began.
    ///
    /// # Errors
    /// If it cannot be read.
    ///
    /// # Panics
    /// If the hit is of another answer.
    pub fn source(&self, hit: &Hit) -> Result<Vec<u8>, RunError> {
        self.view.parts[hit.at.part].source(hit.at.row)
    }

    /// Of each hit, in their order, the vector of a field as it was when the search began; `None` where it has none.
    ///
    /// # Errors
    /// As [`Table::fetch`](super::super::Table::fetch).
    pub fn vectors(&self, field: &str) -> Result<Vec<Option<OwnedVectors>>, FetchError> {
        let places: Vec<At> = self.hits.iter().map(|hit| hit.at).collect();
        self.view.vectors(field, &places)
    }

    /// The same of one hit.
    ///
    /// # Errors
    /// As [`Table::fetch`](super::super::Table::fetch).
    pub fn vector(&self, hit: &Hit, field: &str) -> Result<Option<OwnedVectors>, FetchError> {
        Ok(self.view.vectors(field, &[hit.at])?.pop().flatten())
    }

    /// The segment that a hit is in.
    pub fn segment(&self, hit: &Hit) -> SegmentId {
        self.view.parts[hit.at.part].segment
    }
}

impl std::fmt::Debug for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Answer { hits, total, aggregations, figures: _, profile, view: _ } = self;
        f.debug_struct("Answer")
            .field("hits", hits)
            .field("total", total)
            .field("aggregations", aggregations)
            .field("profile", profile)
            .finish_non_exhaustive()
    }
}
