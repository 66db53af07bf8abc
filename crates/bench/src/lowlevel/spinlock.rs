//! Document 002's spin-lock experiment: threads that take one lock again and again, by different atomic instructions.
//!
//! ```text
//! lock:    while exchange(held, true) { while held { pause } }     "test and test-and-set": a waiting core reads its
//! unlock:  held = false                                             own copy of the line until somebody changes it
//! ```
//!
//! On Arm the exchange is a loop of exclusive loads and stores (LL/SC), which a rival can break at any time, or, since
//! Armv8.1, one LSE instruction (`swpalb`) that always succeeds. Programs that must run on both are compiled with
//! *outline atomics*: a call that looks which of the two this CPU has. Rust does that for `aarch64-unknown-linux-gnu`
//! by itself, GCC since version 10; [`Exchange::Swap`] is what comes of it. On x86 the comparison is between `xchg`
//! and `lock cmpxchg`, and with a lock that exchanges without looking first.

use crate::clock::Start;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Alone on 128 bytes: two lines of 64, since cores fetch them in pairs, or one of those Arm cores that have longer ones.
#[repr(align(128))]
struct Padded<T>(T);

/// A way to take the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lock {
    /// Its name on the command line.
    pub name: &'static str,
    exchange: Exchange,
    /// Whether it waits until the lock looks free before it tries again.
    looks_first: bool,
}

/// The instruction that takes the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exchange {
    /// The standard library's `swap`: `xchg` on x86; on Arm what outline atomics choose when the program runs.
    Swap,
    /// The standard library's `compare_exchange`: `lock cmpxchg` on x86; on Arm again by outline atomics.
    Compare,
    /// `ldaxrb`, `stlxrb` and a loop around them.
    #[cfg(target_arch = "aarch64")]
    Exclusive,
    /// `swpalb`.
    #[cfg(target_arch = "aarch64")]
    Lse,
}

/// The ways that this CPU can run, the one that programs get first.
pub fn locks() -> Vec<Lock> {
    let lock = |name, exchange| Lock { name, exchange, looks_first: true };
    let mut locks = vec![lock("swap", Exchange::Swap), lock("compare", Exchange::Compare)];
    #[cfg(target_arch = "aarch64")]
    {
        locks.push(lock("llsc", Exchange::Exclusive));
        if std::arch::is_aarch64_feature_detected!("lse") {
            locks.push(lock("lse", Exchange::Lse));
        }
    }
    locks.push(Lock { name: "swap-blind", exchange: Exchange::Swap, looks_first: false });
    locks
}

/// How a run went.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// How often the lock was taken, counted by the threads under the lock.
    pub counted: u64,
    /// When each thread was done, from the common start.
    pub threads: Vec<Duration>,
}

impl Outcome {
    /// When the last thread was done.
    pub fn time(&self) -> Duration {
        self.threads.iter().copied().max().unwrap_or_default()
    }

    /// How much longer the last thread took than the first, both having had the same to do: 1 where the lock is fair.
    pub fn unfairness(&self) -> f64 {
        let first = self.threads.iter().copied().min().unwrap_or_default();
        self.time().as_secs_f64() / first.as_secs_f64().max(1e-9)
    }
}

/// Lets `threads` threads take one lock `times` times each.
///
/// # Errors
/// If the system does not give so many threads.
pub fn run(lock: Lock, threads: usize, times: u64) -> std::io::Result<Outcome> {
    match (lock.exchange, lock.looks_first) {
        (Exchange::Swap, true) => contend::<Swap, true>(threads, times),
        (Exchange::Swap, false) => contend::<Swap, false>(threads, times),
        (Exchange::Compare, _) => contend::<Compare, true>(threads, times),
        #[cfg(target_arch = "aarch64")]
        (Exchange::Exclusive, _) => contend::<arm::Exclusive, true>(threads, times),
        #[cfg(target_arch = "aarch64")]
        (Exchange::Lse, _) => contend::<arm::Lse, true>(threads, times),
    }
}

#[expect(clippy::disallowed_methods, reason = "the experiment is about exactly so many threads at once")]
fn contend<T: Take, const LOOKS_FIRST: bool>(threads: usize, times: u64) -> std::io::Result<Outcome> {
    let held = &Padded(AtomicBool::new(false));
    // Under the lock it is read and written apart: a lock that lets two in loses counts.
    let count = &Padded(AtomicU64::new(0));
    // Threads wait here for the rest, and go home where the system has none left to give.
    let complete = &OnceLock::<Option<Start>>::new();
    let work = move || {
        let Some(start) = complete.wait() else { return Duration::ZERO };
        for _ in 0..times {
            acquire::<T, LOOKS_FIRST>(&held.0);
            // Relaxed: the lock orders it.
            count.0.store(count.0.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
            release(&held.0);
        }
        start.elapsed()
    };
    std::thread::scope(|scope| {
        let start = |_| std::thread::Builder::new().spawn_scoped(scope, work);
        let started: std::io::Result<Vec<_>> = (0..threads).map(start).collect();
        complete.set(started.is_ok().then(Start::now)).expect("set once");
        let joined = started?.into_iter().map(|thread| thread.join().expect("nothing there panics"));
        let threads = joined.collect();
        // Relaxed: the joins order it.
        Ok(Outcome { counted: count.0.load(Ordering::Relaxed), threads })
    })
}

#[inline(always)]
fn acquire<T: Take, const LOOKS_FIRST: bool>(held: &AtomicBool) {
    while T::exchange(held) {
        if LOOKS_FIRST {
            // Relaxed: only a hint; the exchange decides.
            while held.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        } else {
            std::hint::spin_loop();
        }
    }
}

#[inline(always)]
fn release(held: &AtomicBool) {
    // Release: pairs with the acquiring exchange of the next holder.
    held.store(false, Ordering::Release);
}

/// One exchange.
trait Take {
    /// Sets `held`; whether it was set before. Acquires and releases, as document 002's lock does.
    fn exchange(held: &AtomicBool) -> bool;
}

struct Swap;
impl Take for Swap {
    #[inline(always)]
    fn exchange(held: &AtomicBool) -> bool {
        held.swap(true, Ordering::AcqRel)
    }
}

struct Compare;
impl Take for Compare {
    #[inline(always)]
    fn exchange(held: &AtomicBool) -> bool {
        held.compare_exchange(false, true, Ordering::AcqRel, Ordering::Relaxed).is_err()
    }
}

#[cfg(target_arch = "aarch64")]
mod arm {
    //! The two ways by hand, as document 002 shows them disassembled.

    use super::Take;
    use std::arch::asm;
    use std::sync::atomic::AtomicBool;

    pub(super) struct Exclusive;
    impl Take for Exclusive {
        #[inline(always)]
        fn exchange(held: &AtomicBool) -> bool {
            let before: u32;
            // SAFETY: an atomic exchange of the one byte behind a live reference, which holds 0 or 1 before and after.
            unsafe {
                asm!(
                    "2:",
                    "ldaxrb {before:w}, [{held}]",
                    "stlxrb {failed:w}, {one:w}, [{held}]",
                    "cbnz {failed:w}, 2b",
                    held = in(reg) held.as_ptr(),
                    one = in(reg) 1,
                    before = out(reg) before,
                    failed = out(reg) _,
                    options(nostack, preserves_flags),
                );
            }
            before != 0
        }
    }

    /// Only for CPUs with LSE; `locks` names it on no other.
    pub(super) struct Lse;
    impl Take for Lse {
        #[inline(always)]
        fn exchange(held: &AtomicBool) -> bool {
            let before: u32;
            // SAFETY: as above; that the CPU has the instruction was checked where the lock was named.
            unsafe {
                asm!(
                    ".arch_extension lse",
                    "swpalb {one:w}, {before:w}, [{held}]",
                    held = in(reg) held.as_ptr(),
                    one = in(reg) 1,
                    before = lateout(reg) before,
                    options(nostack, preserves_flags),
                );
            }
            before != 0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A lock that keeps nobody out.
    struct Open;
    impl Take for Open {
        fn exchange(_: &AtomicBool) -> bool {
            false
        }
    }

    #[test]
    fn no_count_is_lost_under_any_lock() {
        // Long enough that the threads meet, also where there are only two CPUs.
        for lock in locks() {
            let outcome = run(lock, 4, 2_000_000).unwrap();
            assert_eq!(outcome.counted, 8_000_000, "{lock:?}");
            assert_eq!(outcome.threads.len(), 4);
            assert!(outcome.unfairness() >= 1.0);
        }
    }

    #[test]
    fn exchanges_tell_what_was_there_and_set_it() {
        fn check<T: Take>() {
            let held = AtomicBool::new(false);
            assert_eq!([T::exchange(&held), T::exchange(&held)], [false, true]);
            assert!(held.load(Ordering::Relaxed));
            release(&held);
            assert!(!T::exchange(&held));
        }
        check::<Swap>();
        check::<Compare>();
        #[cfg(target_arch = "aarch64")]
        {
            check::<arm::Exclusive>();
            if std::arch::is_aarch64_feature_detected!("lse") {
                check::<arm::Lse>();
            }
        }
    }

    #[test]
    fn a_lock_that_lets_all_in_cannot_count_too_much() {
        let outcome = contend::<Open, true>(2, 1000).unwrap();
        assert!((1000..=2000).contains(&outcome.counted), "{}", outcome.counted);
    }

    #[test]
    fn lock_and_count_share_no_line() {
        assert_eq!((size_of::<Padded<AtomicBool>>(), align_of::<Padded<AtomicU64>>()), (128, 128));
    }
}
