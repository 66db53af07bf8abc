//! Admission against a model, refusals and their numbers, and the queue.

use lanewise_engine::{Admission, Admitted, InUse, MemoryLimit, Purpose, Refusal};
use lanewise_storage::Rng;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Longer than any of it takes, unless something is wrong.
const LONG: Duration = Duration::from_secs(20);

fn admission(limit: u64, waiting: usize) -> Arc<Admission> {
    Admission::new(MemoryLimit::Bytes(limit), NonZeroUsize::new(waiting).unwrap())
}

#[test]
fn what_is_in_use_is_what_was_admitted_and_never_above_the_limit() {
    for seed in 0..200 {
        let mut random = Rng::with_seed(seed);
        let limit = random.u64(1..1000);
        // Half of so little is for sealing and searches, of which openings may have half.
        let kept = |at: usize| match Purpose::ALL[at] {
            Purpose::Seal | Purpose::Search => 0,
            Purpose::Open => limit / 2 / 2,
            Purpose::Write | Purpose::Merge => limit / 2,
        };
        let admission = admission(limit, 1);
        let mut held: Vec<(usize, Admitted)> = Vec::new();
        for step in 0..200 {
            let total = |held: &[(usize, Admitted)]| held.iter().map(|(_, one)| one.bytes()).sum::<u64>();
            let at = random.usize(..Purpose::ALL.len());
            if !held.is_empty() && random.bool() {
                let one = random.usize(..held.len());
                if random.bool() {
                    drop(held.swap_remove(one));
                } else if random.bool() {
                    let less = random.u64(..=held[one].1.bytes());
                    held[one].1.settle(less);
                } else {
                    let (before, other) = (held[one].1.bytes(), random.u64(..limit));
                    let more = other.saturating_sub(before);
                    let fits = more == 0 || total(&held) + more <= limit - kept(held[one].0);
                    assert_eq!(held[one].1.raise(other).is_ok(), fits, "seed {seed}, step {step}");
                    assert_eq!(held[one].1.bytes(), if fits { before.max(other) } else { before });
                }
            } else {
                let bytes = random.u64(..limit + 2);
                match admission.admit(Purpose::ALL[at], bytes) {
                    Ok(admitted) => held.push((at, admitted)),
                    Err(refusal) => {
                        let kept = kept(at);
                        assert!(total(&held) + bytes > limit - kept, "seed {seed}, step {step}: {refusal}");
                        let in_use = admission.in_use();
                        let purpose = Purpose::ALL[at];
                        assert_eq!(refusal, Refusal::Limit { purpose, asked: bytes, limit, kept, in_use });
                    }
                }
            }
            let mut expected = InUse::default();
            held.iter().for_each(|(at, one)| expected.0[*at] += one.bytes());
            assert_eq!(admission.in_use(), expected, "seed {seed}, step {step}");
            assert!(expected.total() <= limit, "seed {seed}, step {step}");
        }
        drop(held);
        assert_eq!(admission.in_use(), InUse::default(), "seed {seed}");
    }
    let admission = admission(1000, 1);
    let _open = admission.admit(Purpose::Open, 500).unwrap();
    let _seal = admission.admit(Purpose::Seal, 400).unwrap();
    let error = admission.admit(Purpose::Search, 101).unwrap_err().to_string();
    for part in ["search needs 101", "circuit_breaker.limit=1000", "900", "open 500", "seal 400"] {
        assert!(error.contains(part), "{error}");
    }
    assert!(admission.admit(Purpose::Search, u64::MAX).is_err());
    admission.set_limit(MemoryLimit::Unlimited);
    assert!(admission.admit(Purpose::Search, u64::MAX).is_err(), "it cannot be counted");
}

/// What is there already is counted beyond the limit, and keeps others out until it is gone.
#[test]
fn what_cannot_be_refused_is_counted() {
    let admission = admission(100, 1);
    let mut open = admission.admit(Purpose::Open, 10).unwrap();
    open.settle(150);
    assert_eq!(admission.in_use().total(), 150);
    assert!(admission.admit(Purpose::Search, 1).is_err());
    open.settle(99);
    assert!(admission.admit(Purpose::Search, 1).is_ok());
}

#[test]
#[expect(clippy::disallowed_methods, reason = "threads of the test's own")]
fn merges_wait_for_their_turn_and_the_queue_is_bounded() {
    let admission = admission(100, 2);
    let first = admission.admit(Purpose::Seal, 80).unwrap();
    // What never fits does not wait.
    assert!(matches!(admission.admit_later(Purpose::Seal, 101, LONG), Err(Refusal::Limit { .. })));
    let in_use = admission.in_use();
    assert_eq!(
        admission.admit_later(Purpose::Seal, 50, Duration::ZERO).unwrap_err(),
        Refusal::Waited { purpose: Purpose::Seal, asked: 50, limit: 100, kept: 0, in_use }
    );
    let order = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let waiters: Vec<_> = [90, 15]
            .into_iter()
            .enumerate()
            .map(|(nth, bytes)| {
                let (order, admission) = (&order, &admission);
                let waiter = scope.spawn(move || {
                    let admitted = admission.admit_later(Purpose::Seal, bytes, LONG).unwrap();
                    // There is room for the second at once, and it comes second all the same.
                    assert_eq!(order.fetch_add(1, Ordering::SeqCst), nth as u64);
                    drop(admitted);
                });
                while admission.waiting() < nth + 1 && !waiter.is_finished() {
                    std::thread::yield_now();
                }
                waiter
            })
            .collect();
        assert_eq!(
            admission.admit_later(Purpose::Seal, 50, LONG).unwrap_err(),
            Refusal::Queue { purpose: Purpose::Seal, asked: 50, waiting: 2 }
        );
        // Whoever does not wait is not held up by those who do.
        drop(admission.admit(Purpose::Search, 20).unwrap());
        drop(first);
        waiters.into_iter().for_each(|waiter| waiter.join().unwrap());
    });
    assert_eq!((admission.in_use().total(), admission.waiting()), (0, 0));
}

/// A merge that waits for much does not hold up a search for which there is room.
#[test]
#[expect(clippy::disallowed_methods, reason = "threads of the test's own")]
fn no_search_waits_for_a_merges_turn() {
    let admission = admission(100, 2);
    let mut held = admission.admit(Purpose::Seal, 80).unwrap();
    std::thread::scope(|scope| {
        let wait = |purpose, bytes, timeout| {
            let before = admission.waiting();
            let waiter = scope.spawn({
                let admission = &admission;
                move || admission.admit_later(purpose, bytes, timeout).map(drop)
            });
            while admission.waiting() == before && !waiter.is_finished() {
                std::thread::yield_now();
            }
            waiter
        };
        let merge = wait(Purpose::Merge, 50, LONG);
        let search = wait(Purpose::Search, 30, LONG / 4);
        held.settle(60);
        search.join().unwrap().unwrap();
        assert!(!merge.is_finished());
        drop(held);
        merge.join().unwrap().unwrap();
    });
    assert_eq!((admission.in_use().total(), admission.waiting()), (0, 0));
}

/// What is written can be sealed, and found: a part of the limit is for that alone.
#[test]
fn a_part_is_for_sealing_and_searches_alone() {
    let admission = admission(256 << 20, 1);
    for (purpose, kept) in [(Purpose::Open, 16 << 20), (Purpose::Write, 32 << 20), (Purpose::Merge, 32 << 20)]
    {
        let rest = (256 << 20) - kept;
        let error = admission.admit(purpose, rest + 1).unwrap_err();
        assert!(matches!(error, Refusal::Limit { kept: found, .. } if found == kept), "{error}");
        let _rest = admission.admit(purpose, rest).unwrap();
        for urgent in [Purpose::Seal, Purpose::Search] {
            assert!(admission.admit(urgent, kept + 1).is_err());
            drop(admission.admit(urgent, kept).unwrap());
        }
    }
    let error = admission.admit_later(Purpose::Merge, (224 << 20) + 1, LONG).unwrap_err().to_string();
    assert!(error.contains("33554432 of it for sealing and searches alone"), "{error}");
}

/// Threads take and give back at random, some of them waiting: all get through, and the limit holds at any time.
#[test]
#[expect(clippy::disallowed_methods, reason = "threads of the test's own")]
fn nobody_waits_for_ever() {
    let admission = admission(100, 8);
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (admission, over) = (&admission, &over);
            scope.spawn(move || {
                let mut random = Rng::with_seed(thread);
                for _ in 0..2000 {
                    let admitted = admission
                        .admit_later(Purpose::ALL[random.usize(..5)], random.u64(1..=50), LONG)
                        .unwrap();
                    if admission.in_use().total() > 100 {
                        over.store(true, Ordering::Relaxed);
                    }
                    drop(admitted);
                }
            });
        }
    });
    assert!(!over.load(Ordering::Relaxed) && admission.in_use().total() == 0);
}
