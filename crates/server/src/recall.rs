//! How many of the nearest searches find: now and then one is done again, as usual and much harder.
//!
//! An estimate. Where few bytes are to be compared the second search is exact; elsewhere it looks at many times as many
//! vectors, since an exact one would keep others waiting. The clients' own answers are not touched, and nobody waits.

use crate::node::now_ms;
use lanewise_engine::documents::{FieldKind, VectorField};
use lanewise_engine::index::{Dtype, Kind, Params};
use lanewise_engine::table::{Nearest, Request, Watched};
use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// From one search that is done again to the next, milliseconds.
const PERIOD_MS: u64 = 5000;
/// Bytes of vectors up to which the second is exact.
const EXACT_BYTES: usize = 8 << 20;
/// How much harder it looks elsewhere, at how many candidates and in how many lists at least.
const HARDER: usize = 8;
const CANDIDATES: usize = 1000;
const LISTS: usize = 128;
const TIMEOUT: Duration = Duration::from_secs(5);
/// Neighbours that count: from so many on, what was long ago counts half.
const LATELY: f64 = 1000.0;

/// What was found, by index.
#[derive(Debug, Default)]
pub(crate) struct Recalls {
    next_ms: AtomicU64,
    tallies: Mutex<BTreeMap<String, Tally>>,
}

/// Neighbours that searches should have found, and did.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    expected: f64,
    found: f64,
}

impl Recalls {
    /// Does a search for what is near again, in the background, if it is time for it.
    pub(crate) fn sample(self: &Arc<Self>, index: &str, table: &Arc<Watched>, request: &Request) {
        let [nearest] = request.nearest.as_slice() else { return };
        if request.query.is_some() || nearest.exact {
            return;
        }
        let (now, next) = (now_ms(), self.next_ms.load(Ordering::Relaxed));
        // Relaxed: one of those who see that it is time does it.
        let take =
            || self.next_ms.compare_exchange(next, now + PERIOD_MS, Ordering::Relaxed, Ordering::Relaxed);
        if now < next || take().is_err() {
            return;
        }
        let schema = table.schema();
        let Some(FieldKind::Vector(VectorField(params))) = schema.fields.get(&nearest.field) else {
            return;
        };
        let usual = Request {
            nearest: vec![nearest.clone()],
            filter: request.filter.clone(),
            size: nearest.k,
            ..Request::default()
        };
        let harder = Request { nearest: vec![harder(nearest, params, table.len())], ..usual.clone() };
        // Without a runtime there is nobody to do it.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let (recalls, table, index) = (self.clone(), table.clone(), index.to_owned());
        runtime.spawn_blocking(move || {
            let ids = |request: &Request| {
                let answer = table.search(request, Some(TIMEOUT)).ok()?;
                Some(answer.hits.into_iter().map(|hit| hit.id).collect::<HashSet<_>>())
            };
            // Whatever is wrong is said to whoever asked.
            let (Some(found), Some(expected)) = (ids(&usual), ids(&harder)) else { return };
            recalls.note(&index, expected.intersection(&found).count(), expected.len());
        });
    }

    fn note(&self, index: &str, found: usize, expected: usize) {
        let mut tallies = self.tallies.lock().unwrap_or_else(PoisonError::into_inner);
        let tally = tallies.entry(index.to_owned()).or_default();
        if tally.expected >= LATELY {
            (tally.expected, tally.found) = (tally.expected / 2.0, tally.found / 2.0);
        }
        tally.expected += expected as f64;
        tally.found += found as f64;
    }

    /// The share of the nearest that searches of an index found lately; `None` if none was done again.
    pub(crate) fn of(&self, index: &str) -> Option<f64> {
        let tallies = self.tallies.lock().unwrap_or_else(PoisonError::into_inner);
        tallies.get(index).filter(|tally| tally.expected > 0.0).map(|tally| tally.found / tally.expected)
    }

    /// Of all indexes that are `there`; the others are forgotten.
    pub(crate) fn all(&self, there: impl Fn(&str) -> bool) -> Vec<(String, f64)> {
        let mut tallies = self.tallies.lock().unwrap_or_else(PoisonError::into_inner);
        tallies.retain(|index, _| there(index));
        let known = tallies.iter().filter(|(_, tally)| tally.expected > 0.0);
        known.map(|(index, tally)| (index.clone(), tally.found / tally.expected)).collect()
    }
}

/// The same, looking harder.
fn harder(nearest: &Nearest, params: &Params, vectors: usize) -> Nearest {
    // At most: stored types are no larger.
    let bytes = if params.dtype == Dtype::Bits { params.dim / 8 } else { 4 * params.dim };
    if vectors.saturating_mul(bytes) <= EXACT_BYTES {
        return Nearest { exact: true, ..nearest.clone() };
    }
    let harder = |usual: Option<usize>, least: usize| Some((HARDER * usual.unwrap_or(0)).max(least));
    match params.kind {
        Kind::Ivf => Nearest { nprobe: harder(nearest.nprobe, LISTS), ..nearest.clone() },
        _ => {
            Nearest { ef_search: harder(nearest.ef_search, CANDIDATES.max(2 * nearest.k)), ..nearest.clone() }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_long_ago_counts_less() {
        let recalls = Recalls::default();
        assert_eq!(recalls.of("a"), None);
        (0..100).for_each(|_| recalls.note("a", 0, 10));
        assert_eq!(recalls.of("a"), Some(0.0));
        (0..1000).for_each(|_| recalls.note("a", 9, 10));
        let now = recalls.of("a").unwrap();
        assert!((now - 0.9).abs() < 0.01, "{now}");
        assert_eq!(recalls.all(|index| index == "b"), []);
        assert_eq!(recalls.of("a"), None, "an index that is gone is forgotten");
    }
}
