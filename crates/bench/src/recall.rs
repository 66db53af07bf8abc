//! Recall@k: how many of the k exact neighbours a search found, where equally near vectors are equally right.
//!
//! A returned vector counts if it is among the k exact neighbours, or no farther than the k-th of them. Where only the
//! ids of the neighbours are known (a file), the farthest of them that was returned stands in for the k-th: it is at
//! most as far, so nothing counts that should not, and at worst a tie at the very end is missed.

use crate::truth::Truth;
use lanewise_engine::index::Neighbors;
use std::collections::HashSet;

/// Why results and truth do not go together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum RecallError {
    #[error("truth has {truth} rows for {queries} queries: give the truth of these very queries")]
    Queries { truth: usize, queries: usize },
    #[error("truth has {truth} neighbours a query, fewer than k={k}: ask for a smaller k, or give more")]
    K { truth: usize, k: usize },
    #[error("query {query} has {found} results where k={k} were asked for")]
    Results { query: usize, found: usize, k: usize },
}

impl Truth {
    /// Whether it is of as many queries, and knows `k` neighbours of each.
    ///
    /// # Errors
    /// If not.
    pub fn fits(&self, queries: usize, k: usize) -> Result<(), RecallError> {
        if self.len() != queries || queries == 0 {
            return Err(RecallError::Queries { truth: self.len(), queries });
        }
        if self.k() < k { Err(RecallError::K { truth: self.k(), k }) } else { Ok(()) }
    }
}

/// Mean recall@k of the results of all queries, 0 to 1.
///
/// # Errors
/// If the numbers of queries or neighbours differ.
///
/// # Panics
/// If `k` is zero.
pub fn recall(found: &[Neighbors], truth: &Truth, k: usize) -> Result<f64, RecallError> {
    assert!(k > 0, "recall is of at least one neighbour");
    truth.fits(found.len(), k)?;
    let mut hits = 0;
    for (query, results) in found.iter().enumerate() {
        if results.ids.len() < k || results.distances.len() < k {
            return Err(RecallError::Results { query, found: results.ids.len(), k });
        }
        let (ids, farthest) = truth.of(query, k);
        let ids: HashSet<i64> = ids.iter().copied().collect();
        let results = || results.ids.iter().zip(&results.distances).take(k);
        let known = results().filter(|(id, _)| ids.contains(id)).map(|(_, &distance)| distance);
        let bound = farthest.unwrap_or_else(|| known.fold(f32::NEG_INFINITY, f32::max));
        // By id as well: the same distance may be computed by two kernels that round differently.
        hits += results().filter(|(id, distance)| ids.contains(id) || **distance <= bound).count();
    }
    Ok(hits as f64 / (found.len() * k) as f64)
}
