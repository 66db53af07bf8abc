//! How long a cycle of this core is, without asking anybody for its frequency.
//!
//! A chain of additions and exclusive-ors of registers, each of which needs the one before, advances by one operation a
//! cycle on every core that Lanewise runs on. (An addition of a constant would not do: recent Intel cores fold those
//! while renaming registers.) The frequency that a system reports is that of another moment, or of another machine.

use crate::clock::timed;
use std::hint::black_box;

/// Operations of the chain, and so cycles, in one pass of its loop.
const OPERATIONS: u32 = 64;

/// Passes that take some 50 microseconds: short enough to fall between disturbances.
const PASSES: u32 = 2500;

/// Seconds that one cycle took in one short run of the chain. A disturbance makes it longer, nothing makes it shorter.
pub(super) fn seconds() -> f64 {
    let (start, a, b) = black_box((1, 0x9e37_79b9_7f4a_7c15, 0xd1b5_4a32_d192_ed03));
    let (end, time) = timed(|| chain(PASSES, start, a, b));
    black_box(end);
    time.as_secs_f64() / f64::from(PASSES * OPERATIONS)
}

/// The chain. `a` and `b` are not known when it is compiled, so nothing of it can be computed beforehand.
#[inline(never)]
fn chain(passes: u32, start: u64, a: u64, b: u64) -> u64 {
    let mut x = start;
    for _ in 0..passes {
        for _ in 0..OPERATIONS / 2 {
            x = x.wrapping_add(a) ^ b;
        }
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chain_takes_every_step() {
        let mut x = 1u64;
        for _ in 0..3 * OPERATIONS / 2 {
            x = x.wrapping_add(5) ^ 9;
        }
        assert_eq!(chain(3, 1, 5, 9), x);
        assert!(seconds() > 0.0);
    }
}
