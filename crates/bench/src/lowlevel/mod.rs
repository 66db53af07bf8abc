//! The low-level parts that everything else stands on, each timed against what it should reach on this CPU.
//!
//! A library that picks its code when it runs can pick wrongly: document 002 found a CRC library that fell back to its
//! slowest code on Arm and took 29 % of a database's time, unnoticed, since it was correct. Here each part is timed in
//! bytes per cycle, and what stays below the figure that the CPU's features promise is marked:
//!
//! `features` says what the CPU has → [`expected`] what that promises → `parts` run → `rate` times them in
//! `cycle`s → [`expected::verdict`].

mod cycle;
pub mod expected;
mod features;
mod levels;
mod parts;
mod rate;
pub mod spinlock;

use expected::{Expected, Part, Verdict};
use lanewise_engine::kernels::Kernels;
use lanewise_engine::topology::Machine;
use std::time::Duration;

/// What was measured of one part.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// The part.
    pub part: Part,
    /// What did the work: a library, or the instruction set of a kernel.
    pub by: String,
    /// Bytes that the work goes over, again and again.
    pub bytes: usize,
    /// Bytes per cycle, the best of all runs.
    pub bytes_per_cycle: f64,
    /// Bytes per second in the same run.
    pub bytes_per_second: f64,
    /// What this CPU's features promise.
    pub expected: &'static Expected,
}

impl Reading {
    /// Whether the part runs as it should.
    pub fn verdict(&self) -> Verdict {
        expected::verdict(self.bytes_per_cycle, self.expected.bytes_per_cycle)
    }
}

/// Everything that was measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// Seconds of the shortest cycle seen: how long one step of a chain of dependent additions takes.
    pub cycle_seconds: f64,
    /// The parts, in the order of `parts::all`.
    pub readings: Vec<Reading>,
}

/// How often a part that seems too slow is measured again before it is believed.
const DOUBTS: usize = 3;

/// Time for whoever disturbs to go away, before a part is measured again.
const PAUSE: Duration = Duration::from_millis(150);

/// Times every part on the calling thread, in a few seconds. The kernels are those given; without any, none is timed.
///
/// The machine may be shared: runs are short, the best counts, and what seems too slow is measured again, so that only
/// what stays slow is marked. Memory for the largest part (twice the last-level cache, at most 1 GiB and a quarter of
/// what is free) is taken for a while; what there is no memory for is left out.
pub fn measure(machine: &Machine, kernels: Option<&Kernels>) -> Report {
    let has = features::here();
    let mut cycle_seconds = f64::INFINITY;
    let mut readings = Vec::new();
    parts::all(machine, kernels, &mut |work| {
        let expected = expected::expected(work.part, &has);
        let mut best = rate::best_of(work.bytes, work.run);
        for _ in 0..DOUBTS {
            if expected::verdict(best.bytes_per_cycle, expected.bytes_per_cycle) == Verdict::Fine {
                break;
            }
            std::thread::sleep(PAUSE);
            best = best.better(rate::best_of(work.bytes, work.run));
        }
        cycle_seconds = cycle_seconds.min(best.cycle_seconds);
        readings.push(Reading {
            part: work.part,
            by: work.by,
            bytes: work.bytes,
            bytes_per_cycle: best.bytes_per_cycle,
            bytes_per_second: best.bytes_per_cycle / best.cycle_seconds,
            expected,
        });
    });
    Report { cycle_seconds, readings }
}
