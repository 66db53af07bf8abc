//! Ground truth: the exact neighbours of queries, found by comparing every vector, or read from a file.

use crate::dataset::{self, DatasetError, Elements, Matrix};
use lanewise_engine::index::{
    AddError, Code, CreateError, Index, Kind, Params, Search, SearchError, Vectors,
};
use lanewise_engine::{Threads, search};
use std::ops::ControlFlow;
use std::path::Path;

/// The exact nearest vectors of some queries.
#[derive(Clone, Debug, PartialEq)]
pub struct Truth {
    k: usize,
    ids: Vec<i64>,
    /// As many as `ids`, or none if a file gave the ids alone.
    distances: Vec<f32>,
}

/// Why exact neighbours were not found.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages are those of the causes")]
pub enum TruthError {
    #[error(transparent)]
    Create(#[from] CreateError),
    #[error(transparent)]
    Add(#[from] AddError),
    #[error(transparent)]
    Search(#[from] SearchError),
    #[error(transparent)]
    Dataset(#[from] DatasetError),
}

impl Truth {
    /// The min(k, vectors) exact neighbours of each query among `vectors`, whose ids are their positions. The vectors
    /// are copied; `params` gives dimension, metric and element type.
    ///
    /// # Errors
    /// If parameters, vectors or queries are wrong, or there is no memory.
    pub fn compute(
        params: Params,
        vectors: Vectors<'_>,
        queries: Vectors<'_>,
        k: usize,
        threads: Threads,
    ) -> Result<Self, TruthError> {
        let exact = Index::new(Params { kind: Kind::Flat, code: Code::None, ..params })?;
        exact.add(vectors, None, &threads, &mut |_| ControlFlow::Continue(()))?;
        let (found, _) = search(&exact.reader(), queries, &Search::new(k), threads)?;
        Ok(Truth {
            k: k.min(exact.len()),
            ids: found.iter().flat_map(|n| n.ids.iter().copied()).collect(),
            distances: found.iter().flat_map(|n| n.distances.iter().copied()).collect(),
        })
    }

    /// Reads the ids of exact neighbours, a row per query, nearest first (`.ivecs`, or `.npy` of integers).
    ///
    /// # Errors
    /// As [`dataset::read_id_rows`].
    pub fn read(path: &Path) -> Result<Self, DatasetError> {
        let (ids, k) = dataset::read_id_rows(path)?;
        Ok(Truth { k, ids, distances: Vec::new() })
    }

    /// Writes the ids; the name's end (`.ivecs` or `.npy`) says how.
    ///
    /// # Errors
    /// As [`dataset::write()`].
    pub fn save(&self, path: &Path) -> Result<(), DatasetError> {
        let elements = Elements::Int(self.ids.clone());
        dataset::write(path, &Matrix { rows: self.len(), columns: self.k, elements, rounded: false })
    }

    /// Neighbours known of each query.
    pub fn k(&self) -> usize {
        self.k
    }

    /// Number of queries.
    pub fn len(&self) -> usize {
        self.ids.len() / self.k
    }

    /// Whether there is no query.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// The ids of the `k` nearest of query `i`, and the distance of the last of them if it is known.
    pub(crate) fn of(&self, i: usize, k: usize) -> (&[i64], Option<f32>) {
        let row = i * self.k;
        (&self.ids[row..row + k], self.distances.get(row + k - 1).copied())
    }
}
