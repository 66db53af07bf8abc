//! Searches: each segment by itself, the best of all together.

use super::bits::Bits;
use super::segment::SegmentId;
use super::table::Table;
use super::view::{Part, View};
use crate::documents::{Query, QueryError, RunError, Statistics};
use crate::pool::{Found, Pending, Refused};
use lanewise_index::{Counts, Search, Vectors};
use lanewise_scheduler::{Failure, Trip};
use std::time::Duration;

/// A document that was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Hit {
    /// Its id.
    pub id: String,
    /// Number of the write that it came with.
    pub seq: u64,
    /// How far its vector is, or how well its words fit.
    pub score: f32,
}

/// The vectors to look for.
#[derive(Clone, Debug)]
pub struct Nearest<'a> {
    /// Which vectors.
    pub field: &'a str,
    /// One vector, as the field's are brought.
    pub query: Vectors<'a>,
    /// How many, and how hard; its filter is not looked at.
    pub how: Search<'a>,
    /// Only documents that this finds.
    pub filter: Option<&'a Query>,
    /// Whether segments are searched at the same time.
    pub concurrent: Concurrent,
}

/// Searches under way: cancelled when nobody waits for them any more.
struct Waiting(Vec<(usize, Pending)>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.iter().for_each(|(_, pending)| pending.cancel());
    }
}

/// What is wrong with a search.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum SearchTableError {
    #[error("field {field:?}: the schema names no such vector field")]
    Field { field: String },
    #[error(transparent)]
    Query(#[from] QueryError),
    #[error(transparent)]
    Refused(#[from] Refused),
    #[error(transparent)]
    Failed(#[from] Failure),
    #[error(transparent)]
    Documents(#[from] RunError),
}

/// Documents that were found, and how.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The documents, best first.
    pub hits: Vec<Hit>,
    /// The work done, all segments together.
    pub counts: Counts,
    /// Segment by segment.
    pub searched: Vec<Searched>,
}

/// A segment that was searched.
#[derive(Clone, Debug)]
pub struct Searched {
    /// Which.
    pub segment: SegmentId,
    /// The work done.
    pub counts: Counts,
    /// Who did it, how long it waited, and whether it was stolen.
    pub trip: Trip,
}

/// Whether the segments of a table are searched at the same time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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

impl Table {
    /// The min(k, matches) documents whose vectors are nearest, by ascending distance, and the work done; given up after
    /// `timeout`. Runs on the pool.
    ///
    /// # Errors
    /// If anything about the search is wrong, too many wait already, it takes too long, or documents cannot be read.
    pub fn nearest(
        &self,
        nearest: &Nearest<'_>,
        timeout: Option<Duration>,
    ) -> Result<Answer, SearchTableError> {
        let Some((field, _)) = self.mapping.vector(nearest.field) else {
            return Err(SearchTableError::Field { field: nearest.field.to_owned() });
        };
        let filter = nearest.filter.map(|query| self.mapping.compile(query)).transpose()?;
        let (view, pool) = (self.view(), &self.resources.pool);
        let together = match nearest.concurrent {
            Concurrent::Off => false,
            Concurrent::On => true,
            Concurrent::Auto => pool.stats().workers.iter().all(|(_, worker)| worker.queued == 0),
        };
        let (mut hits, mut searched) = (Vec::new(), Vec::new());
        let mut take = |number: usize, pending: Pending| -> Result<(), SearchTableError> {
            let (part, Found { neighbors, counts, trip }) = (&view.parts[number], pending.wait()?);
            for (id, distance) in neighbors.ids.into_iter().zip(neighbors.distances) {
                hits.extend(part.row_of(field, id).map(|row| (distance, number, row)));
            }
            searched.push(Searched { segment: part.segment, counts, trip });
            Ok(())
        };
        let mut waiting = Waiting(Vec::new());
        let last = view.parts.len() - 1;
        for (number, part) in view.parts.iter().enumerate() {
            // The head is searched even if it is empty, so that what is wrong with a query is always said.
            if number != last && part.reader(field).is_empty() {
                continue;
            }
            let rows = filter.as_ref().map(|query| self.rows(part, query)).transpose()?;
            let filter = part.filter(field, rows.as_ref());
            let how = Search { filter: filter.as_ref(), ..nearest.how };
            let pending =
                pool.search(part.tables[field], part.reader(field), nearest.query, &how, timeout)?;
            if together { waiting.0.push((number, pending)) } else { take(number, pending)? }
        }
        while let Some((number, pending)) = waiting.0.pop() {
            take(number, pending)?;
        }
        hits.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)).then(a.2.cmp(&b.2)));
        hits.truncate(nearest.how.k);
        let mut counts = Counts::default();
        searched.iter().for_each(|one| counts += one.counts);
        Ok(Answer { hits: self::hits(&view, hits), counts, searched })
    }

    /// The `size` documents that fit a query best, by descending score, and how many it finds.
    ///
    /// # Errors
    /// If anything about the query is wrong, or documents cannot be read.
    pub fn matching(&self, query: &Query, size: usize) -> Result<(Vec<Hit>, usize), SearchTableError> {
        let query = self.mapping.compile(query)?;
        let view = self.view();
        let runs: Vec<_> =
            view.parts.iter().map(|part| part.runs(&self.mapping)).collect::<Result<_, _>>()?;
        let statistics = Statistics(runs.iter().flat_map(|runs| runs.iter().map(|(_, run)| run)).collect());
        let mut found = Vec::new();
        for (number, (part, runs)) in view.parts.iter().zip(&runs).enumerate() {
            for (first, run) in runs.iter() {
                run.scores(&query, &statistics, |row, score| {
                    if part.is_alive(first + row) {
                        found.push((score, number, first + row));
                    }
                })?;
            }
        }
        let matches = found.len();
        found.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)).then(a.2.cmp(&b.2)));
        found.truncate(size);
        Ok((hits(&view, found), matches))
    }

    /// The rows that a query finds.
    fn rows(&self, part: &Part, query: &crate::documents::Compiled) -> Result<Bits, RunError> {
        let mut rows = Bits::default();
        for (first, run) in part.runs(&self.mapping)?.iter() {
            run.matches(query, |row| {
                rows.insert(first + row);
            })?;
        }
        Ok(rows)
    }
}

fn hits(view: &View, found: Vec<(f32, usize, u32)>) -> Vec<Hit> {
    let hit = |(score, part, row): (f32, usize, u32)| {
        let part = &view.parts[part];
        Hit { id: part.id(row).to_owned(), seq: part.seq(row), score }
    };
    found.into_iter().map(hit).collect()
}
