//! Searches: each segment by itself, the best of all together.

use super::bits::Bits;
use super::table::Table;
use super::view::{Part, View};
use crate::documents::{Query, QueryError, RunError, Statistics};
use crate::search::with_scratch;
use lanewise_index::{Counts, Search, SearchError, Vectors};

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
    Search(#[from] SearchError),
    #[error(transparent)]
    Documents(#[from] RunError),
}

impl Table {
    /// The min(k, matches) documents whose vectors are nearest, by ascending distance, and the work done.
    ///
    /// # Errors
    /// If anything about the search is wrong, or documents cannot be read.
    pub fn nearest(&self, nearest: &Nearest<'_>) -> Result<(Vec<Hit>, Counts), SearchTableError> {
        let Some((field, _)) = self.mapping.vector(nearest.field) else {
            return Err(SearchTableError::Field { field: nearest.field.to_owned() });
        };
        let filter = nearest.filter.map(|query| self.mapping.compile(query)).transpose()?;
        let view = self.view();
        let (mut found, mut counts) = (Vec::new(), Counts::default());
        for (number, part) in view.parts.iter().enumerate() {
            let rows = filter.as_ref().map(|query| self.rows(part, query)).transpose()?;
            let filter = part.filter(field, rows.as_ref());
            let how = Search { filter: filter.as_ref(), ..nearest.how };
            let reader = part.reader(field);
            let (mut neighbors, work) = with_scratch(|scratch| reader.search(nearest.query, &how, scratch))?;
            counts += work;
            // One query has one result; `check` refuses more.
            let neighbors = neighbors.swap_remove(0);
            for (id, distance) in neighbors.ids.into_iter().zip(neighbors.distances) {
                found.extend(part.row_of(field, id).map(|row| (distance, number, row)));
            }
        }
        found.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)).then(a.2.cmp(&b.2)));
        found.truncate(nearest.how.k);
        Ok((hits(&view, found), counts))
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
