//! What was done to each index since the node started, for `_stats`.

use arc_swap::ArcSwap;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// By index.
#[derive(Debug, Default)]
pub(crate) struct Counts(ArcSwap<BTreeMap<String, Arc<Count>>>);

/// Of one index.
#[derive(Debug, Default)]
pub(crate) struct Count {
    pub(crate) indexed: Timed,
    pub(crate) deleted: Timed,
    pub(crate) got: Timed,
    pub(crate) searched: Timed,
}

/// How often something was done, and how long it took in all.
#[derive(Debug, Default)]
pub(crate) struct Timed {
    times: AtomicU64,
    micros: AtomicU64,
}

impl Counts {
    /// An index's, from now on if there is none yet.
    pub(crate) fn of(&self, index: &str) -> Arc<Count> {
        if let Some(count) = self.0.load().get(index) {
            return count.clone();
        }
        let new = Arc::new(Count::default());
        self.0.rcu(|all| {
            let mut all = BTreeMap::clone(all);
            all.entry(index.to_owned()).or_insert_with(|| new.clone());
            all
        });
        self.0.load().get(index).cloned().unwrap_or(new)
    }

    /// The index is gone.
    pub(crate) fn forget(&self, index: &str) {
        self.0.rcu(|all| {
            let mut all = BTreeMap::clone(all);
            all.remove(index);
            all
        });
    }
}

impl Timed {
    /// Does `work`, which counts for so many times.
    pub(crate) fn time<T>(&self, times: usize, work: impl FnOnce() -> T) -> T {
        self.time_if_some(times, || Some(work())).expect("it is there")
    }

    /// As [`time`](Self::time), of work that counts only if it was done.
    #[expect(clippy::disallowed_methods, reason = "an edge: the times of requests are told")]
    pub(crate) fn time_if_some<T>(&self, times: usize, work: impl FnOnce() -> Option<T>) -> Option<T> {
        let began = Instant::now();
        let done = work()?;
        // Relaxed: figures, each by itself.
        self.times.fetch_add(times as u64, Ordering::Relaxed);
        self.micros.fetch_add(began.elapsed().as_micros() as u64, Ordering::Relaxed);
        Some(done)
    }

    pub(crate) fn times(&self) -> u64 {
        self.times.load(Ordering::Relaxed)
    }

    pub(crate) fn millis(&self) -> u64 {
        self.micros.load(Ordering::Relaxed) / 1000
    }
}
