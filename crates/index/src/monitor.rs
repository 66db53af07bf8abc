//! The recall of searches while they run: one query in so many is also searched exactly, in the same state of the index.
//!
//! Which queries are sampled is drawn from a seed and the query's number, so that no pattern of requests can hide from
//! it. What the last sampled ones found is kept, so that an estimate follows a drift of the queries or of the index.

use crate::error::SearchError;
use crate::interval::{Estimate, estimate};
use crate::ivf::kmeans::Draws;
use crate::plan::Plan;
use crate::search::{Neighbors, Reader, Scratch, Search};
use crate::vectors::Vectors;
use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Deviations of an interval of 95 %.
const Z: f64 = 1.96;

/// What sampled queries found. Threads may use it together.
pub struct Monitor {
    rate: f64,
    window: usize,
    seed: u64,
    /// Queries that were asked about.
    asked: AtomicU64,
    /// Results found, and looked for, of the queries sampled last. The lock is taken by sampled queries alone.
    found: Mutex<VecDeque<(u32, u32)>>,
}

impl Monitor {
    /// One that samples the share `rate` (0 to 1) of the queries and remembers the last `window` (at least one) sampled.
    pub fn new(rate: f64, window: usize, seed: u64) -> Monitor {
        let rate = if rate.is_nan() { 0.0 } else { rate.clamp(0.0, 1.0) };
        Monitor { rate, window: window.max(1), seed, asked: AtomicU64::new(0), found: Mutex::default() }
    }

    /// Share of the queries that are sampled.
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// Of the next `count` queries those that are sampled, by their places.
    pub fn sample(&self, count: usize) -> Vec<usize> {
        // Relaxed: a counter that nothing else depends on.
        let first = self.asked.fetch_add(count as u64, Ordering::Relaxed);
        let drawn = |i: &usize| {
            let number = first.wrapping_add(*i as u64);
            // A second draw, as those of neighbouring numbers must not be the same generator's next.
            let mixed = Draws(self.seed ^ number.wrapping_mul(0xd6e8_feb8_6659_fd93)).next();
            Draws(mixed).unit() < self.rate
        };
        (0..count).filter(drawn).collect()
    }

    /// Notes what sampled queries found: [`Reader::hits`] of each.
    pub fn note(&self, found: impl Iterator<Item = (u32, u32)>) {
        let mut all = self.found.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        for query in found.filter(|(_, of)| *of > 0) {
            all.truncate(self.window - 1);
            all.push_front(query);
        }
    }

    /// The recall of the queries sampled last, and its interval of 95 %, which allows for the results of a query being
    /// found or missed together.
    pub fn estimate(&self) -> Estimate {
        let all = self.found.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        estimate(all.iter().copied(), Z)
    }
}

impl Reader {
    /// How many of the results that this reader's `search` `found` for `query`, a single one, are among the nearest, or as
    /// near as the last of them; and of how many. An exact search tells, unless it was one; nothing stops it.
    ///
    /// # Errors
    /// As [`search`](Self::search).
    pub fn hits(
        &self,
        query: Vectors<'_>,
        search: &Search<'_>,
        found: &Neighbors,
        scratch: &mut Scratch,
    ) -> Result<(u32, u32), SearchError> {
        let of = found.ids.len() as u32;
        if self.plan(search) == Plan::Exact {
            return Ok((of, of));
        }
        let (nearest, _) = self.search(query, &Search { exact: true, stop: None, ..*search }, scratch)?;
        Ok((nearest.first().map_or(0, |nearest| hits(found, nearest)), of))
    }
}

/// How many of `found` are among the `nearest`, or as near as the last of them.
fn hits(found: &Neighbors, nearest: &Neighbors) -> u32 {
    let last = nearest.distances.last().copied().unwrap_or(f32::NEG_INFINITY);
    let mut ids = nearest.ids.clone();
    ids.sort_unstable();
    let near = found.ids.iter().zip(&found.distances);
    near.filter(|(id, distance)| **distance <= last || ids.binary_search(id).is_ok()).count() as u32
}
