//! What a run came to.

use super::memory::Traffic;

/// A query that was answered.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Answered {
    /// Its table.
    pub table: u32,
    /// When it came, from the beginning of the run.
    pub at_ns: f64,
    /// From when it came to its answer.
    pub latency_ns: f64,
}

/// Counts between warm-up and the last query's arrival, unless said otherwise.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// How long that was.
    pub measured_ns: f64,
    /// Queries that were answered in it.
    pub answered: Vec<Answered>,
    /// What those queries compute, with everything in the cache.
    pub compute_ns: f64,
    /// What went through each chiplet.
    pub traffic: Vec<Traffic>,
    /// Time that cores were on tasks, and of it that which they waited for memory.
    pub busy_ns: f64,
    /// See [`Self::busy_ns`].
    pub stall_ns: f64,
    /// Tasks that ran.
    pub tasks: u64,
    /// Of them, those taken from another worker of the same chiplet, and of another one.
    pub steals_near: u64,
    /// See [`Self::steals_near`].
    pub steals_far: u64,
    /// When the mapping changed, in the whole run.
    pub remaps_ns: Vec<f64>,
    /// Lines that each table's tasks touched, window by window, in the whole run.
    pub windows: Vec<Vec<u64>>,
    /// In the whole run: queries that came, that were answered, and tasks of those that came and that ran.
    pub whole: Whole,
}

/// Sums over a whole run, warm-up and end included: what must add up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Whole {
    /// Queries that came.
    pub came: u64,
    /// Queries that were answered.
    pub answered: u64,
    /// Tasks of queries that came.
    pub tasks_came: u64,
    /// Tasks that ran to their end.
    pub tasks_ran: u64,
    /// Lines of tasks that ran.
    pub lines: u64,
    /// What went through each chiplet.
    pub traffic: Vec<Traffic>,
    /// Bytes that came from memory.
    pub memory_bytes: u64,
}

impl Outcome {
    /// Queries a second.
    pub fn throughput(&self) -> f64 {
        self.answered.len() as f64 * 1e9 / self.measured_ns
    }

    /// Queries a second with everything in the caches and all of `cores` computing all the time: no order of tasks gives
    /// more.
    pub fn bound(&self, cores: usize) -> f64 {
        self.answered.len() as f64 * 1e9 * cores as f64 / self.compute_ns
    }

    /// Share of the lines that missed, on all chiplets together.
    pub fn miss_ratio(&self) -> f64 {
        let sum = |of: fn(&Traffic) -> u64| self.traffic.iter().map(of).sum::<u64>() as f64;
        sum(|traffic| traffic.missed) / sum(|traffic| traffic.lines).max(1.0)
    }

    /// Share of the time on tasks that went by waiting for memory.
    pub fn stall_share(&self) -> f64 {
        self.stall_ns / self.busy_ns.max(1.0)
    }

    /// Of all steals, the share of those from another chiplet; none if nothing was stolen.
    pub fn far_share(&self) -> Option<f64> {
        let steals = self.steals_near + self.steals_far;
        (steals > 0).then(|| self.steals_far as f64 / steals as f64)
    }

    /// Latencies of a table's queries (of all tables), sorted.
    pub fn latencies_ns(&self, table: Option<u32>) -> Vec<f64> {
        let of = self.answered.iter().filter(|answered| table.is_none_or(|table| answered.table == table));
        let mut latencies: Vec<f64> = of.map(|answered| answered.latency_ns).collect();
        latencies.sort_unstable_by(f64::total_cmp);
        latencies
    }
}

/// The value that a share `q` of the sorted values does not exceed (nearest rank); none of none.
pub fn quantile(sorted: &[f64], q: f64) -> Option<f64> {
    let rank = (sorted.len() as f64 * q).ceil() as usize;
    sorted.get(rank.clamp(1, sorted.len().max(1)) - 1).copied()
}
