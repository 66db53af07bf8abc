//! Bytes per cycle of a piece of work, on a machine that others use too.

use super::cycle;
use crate::clock::timed;
use std::time::Duration;

/// What one piece of work reached.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Rate {
    /// Bytes that it went over per cycle.
    pub(super) bytes_per_cycle: f64,
    /// Seconds of a cycle meanwhile.
    pub(super) cycle_seconds: f64,
}

impl Rate {
    /// The better of the two.
    pub(super) fn better(self, other: Rate) -> Rate {
        if other.bytes_per_cycle > self.bytes_per_cycle { other } else { self }
    }
}

/// A run goes on for about that long: above the clock's own steps, below the time between disturbances.
const RUN: Duration = Duration::from_micros(200);

/// Runs of a piece of work; the fastest counts.
const RUNS: usize = 24;

/// Work on much memory takes far longer than [`RUN`]; it is repeated until about this time has gone by.
const ENOUGH: Duration = Duration::from_millis(300);

/// The rate of `run`, which goes over `bytes` bytes in one call.
///
/// Runs take turns with runs of the cycle's chain, so that both see the same frequencies. The shortest of each is taken:
/// whatever disturbs a run makes it longer.
pub(super) fn best_of(bytes: usize, run: &mut dyn FnMut()) -> Rate {
    // The first call chooses code and warms the caches.
    run();
    let ((), once) = timed(&mut *run);
    let calls = (RUN.as_secs_f64() / once.as_secs_f64().max(1e-9)).clamp(1.0, 1e6) as u32;
    let (mut shortest, mut cycle_seconds) = (f64::INFINITY, cycle::seconds());
    let mut spent = Duration::ZERO;
    for _ in 0..RUNS {
        let ((), time) = timed(|| (0..calls).for_each(|_| run()));
        shortest = shortest.min(time.as_secs_f64());
        cycle_seconds = cycle_seconds.min(cycle::seconds());
        spent += time;
        if spent > ENOUGH {
            break;
        }
    }
    Rate { bytes_per_cycle: per_cycle(bytes, calls, shortest, cycle_seconds), cycle_seconds }
}

/// Bytes per cycle of `calls` calls of `bytes` bytes each that took `seconds`.
fn per_cycle(bytes: usize, calls: u32, seconds: f64, cycle_seconds: f64) -> f64 {
    bytes as f64 * f64::from(calls) * cycle_seconds / seconds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_counted_by_cycles_whatever_their_length() {
        // 10 calls of 100 bytes in 500 cycles, at 2 GHz and at 4 GHz.
        assert_eq!(per_cycle(100, 10, 500.0 * 0.5e-9, 0.5e-9), 2.0);
        assert_eq!(per_cycle(100, 10, 500.0 * 0.25e-9, 0.25e-9), 2.0);
    }

    #[test]
    fn work_is_called_again_and_again_and_the_better_rate_is_kept() {
        let mut calls = 0;
        let rate = best_of(64, &mut || calls += 1);
        assert!(calls > RUNS && rate.bytes_per_cycle > 0.0 && rate.cycle_seconds > 0.0, "{calls} {rate:?}");
        let faster = Rate { bytes_per_cycle: rate.bytes_per_cycle * 2.0, ..rate };
        assert_eq!([rate.better(faster), faster.better(rate)], [faster; 2]);
    }
}
