//! Rows that are found by their vectors, or by their nested objects, as a query of tantivy's: they are filled in before it
//! is weighed.

use super::compile::Compiled;
use super::nearest::{Nearest, Scored};
use super::query::ScoreMode;
use super::run::Run;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use tantivy::index::SegmentId;
use tantivy::query::{EnableScoring, Explanation, Query, Scorer, Weight};
use tantivy::{DocId, DocSet, Score, SegmentReader, TERMINATED, TantivyError};

/// What within a query is to be answered before it, and where what it finds goes.
#[derive(Debug)]
pub struct Ahead {
    /// What is asked.
    pub asked: Question,
    /// Which nested objects are asked; not given: documents.
    pub path: Option<String>,
    /// Among which; not given: all.
    pub among: Option<Compiled>,
    /// Where the rows go.
    pub rows: Rows,
}

/// What is to be answered ahead.
#[derive(Clone, Debug, PartialEq)]
pub enum Question {
    /// Those whose vectors are near; with `of_documents` the filter is about the documents of nested objects.
    Nearest {
        /// What is looked for.
        nearest: Nearest,
        /// Whether its filter finds documents, though nested objects are asked.
        of_documents: bool,
    },
    /// Of each how near its vector is.
    Scored(Scored),
    /// The documents of nested objects, with scores made of theirs.
    Documents(ScoreMode),
}

/// Rows of each run, ascending, with their scores.
#[derive(Clone, Debug, Default)]
pub struct Rows(Arc<OnceLock<HashMap<SegmentId, Own>>>);

type Own = Arc<[(DocId, Score)]>;

impl Rows {
    /// Says what was found, once: of each run rows, ascending, with their scores.
    pub fn fill<'a>(&self, found: impl Iterator<Item = (&'a Run, Vec<(u32, f32)>)>) {
        let found = found.map(|(run, rows)| (run.segment().segment_id(), rows.into()));
        // A query is made for one search.
        let _ = self.0.set(found.collect());
    }

    fn of(&self, reader: &SegmentReader) -> Own {
        self.0.get().and_then(|found| found.get(&reader.segment_id()).cloned()).unwrap_or_default()
    }
}

impl Query for Rows {
    fn weight(&self, _: EnableScoring<'_>) -> tantivy::Result<Box<dyn Weight>> {
        Ok(Box::new(self.clone()))
    }
}

impl Weight for Rows {
    fn scorer(&self, reader: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        Ok(Box::new(Walk { rows: self.of(reader), at: 0, boost }))
    }

    fn explain(&self, reader: &SegmentReader, row: DocId) -> tantivy::Result<Explanation> {
        let rows = self.of(reader);
        let at = rows.binary_search_by_key(&row, |(row, _)| *row);
        let at = at.map_err(|_| TantivyError::InvalidArgument(format!("row {row} does not match")))?;
        Ok(Explanation::new("what its vector's distance scores", rows[at].1))
    }
}

/// The rows of one run.
struct Walk {
    rows: Own,
    at: usize,
    boost: Score,
}

impl DocSet for Walk {
    fn advance(&mut self) -> DocId {
        self.at = self.rows.len().min(self.at + 1);
        self.doc()
    }

    fn seek(&mut self, target: DocId) -> DocId {
        self.at += self.rows[self.at..].partition_point(|(row, _)| *row < target);
        self.doc()
    }

    fn doc(&self) -> DocId {
        self.rows.get(self.at).map_or(TERMINATED, |(row, _)| *row)
    }

    fn size_hint(&self) -> u32 {
        self.rows.len() as u32
    }
}

impl Scorer for Walk {
    fn score(&mut self) -> Score {
        self.rows.get(self.at).map_or(0.0, |(_, score)| self.boost * score)
    }
}
