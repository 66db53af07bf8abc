//! The one place that reads the clock.

use std::time::{Duration, Instant};

/// Counts nanoseconds from its start (monotonic; for 584 years).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock(Instant);

impl Clock {
    #[expect(clippy::disallowed_methods, reason = "deadlines, waiting times and patience are of real time")]
    pub(crate) fn start() -> Self {
        Clock(Instant::now())
    }

    pub(crate) fn now_ns(&self) -> u64 {
        self.0.elapsed().as_nanos() as u64
    }

    /// The moment `timeout` after `now_ns`; [`NEVER`] if there is none.
    pub(crate) fn deadline_ns(now_ns: u64, timeout: Option<Duration>) -> u64 {
        let after =
            |timeout: Duration| now_ns.saturating_add(u64::try_from(timeout.as_nanos()).unwrap_or(NEVER));
        timeout.map_or(NEVER, after)
    }
}

/// A deadline that does not come.
pub(crate) const NEVER: u64 = u64::MAX;
