//! The one place of this crate that reads the clock.

use std::time::{Duration, Instant};

/// What `work` gives, and how long it took (monotonic clock).
#[expect(clippy::disallowed_methods, reason = "what measures has to read the clock; nothing else does")]
pub fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    let result = work();
    (result, start.elapsed())
}

/// A moment from which several threads measure.
#[derive(Clone, Copy, Debug)]
pub struct Start(Instant);

impl Start {
    /// This moment.
    #[expect(clippy::disallowed_methods, reason = "as above")]
    pub fn now() -> Self {
        Start(Instant::now())
    }

    /// The time since then.
    pub fn elapsed(self) -> Duration {
        self.0.elapsed()
    }
}
