//! Several tasks with one answer, and tasks that borrow.

use crate::running::{Gate, options, scheduler};
use lanewise_scheduler::{Context, Failure, Full, MappingId, Options, Policy, Scheduler, Stolen};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

fn ids(count: u64) -> Vec<MappingId> {
    (0..count).map(MappingId).collect()
}

#[test]
fn partial_results_are_merged_in_the_order_of_their_ids() {
    for policy in Policy::ALL {
        let scheduler = scheduler::<()>(policy, &[2, 1]);
        for count in [0, 1, 5, 40] {
            let each = |i: usize, _: &mut (), _: &Context<'_>| (i, 10);
            let answer = scheduler
                .submit_all(&ids(count), None, each, |partials, _, _| (partials, 3))
                .unwrap()
                .wait()
                .unwrap();
            assert_eq!(answer.value, (0..count as usize).collect::<Vec<_>>());
            assert_eq!(answer.trip.bytes, 10 * count + 3);
        }
        // Without ids, merging is a task of its own.
        assert_eq!(scheduler.stats().total().bytes, 460 + 3);
    }
}

#[test]
fn the_trip_of_several_is_that_of_all() {
    let scheduler = scheduler::<()>(Policy::Stealing, &[1, 1]);
    let gates = [Gate::close(&scheduler, MappingId(0)), Gate::close(&scheduler, MappingId(0))];
    let ticket =
        scheduler.submit_all(&ids(2), None, |_, _, _| ((), 1), |parts, _, _| (parts.len(), 0)).unwrap();
    let [held, free] = gates;
    let worker = free.worker;
    free.open();
    let answer = ticket.wait().unwrap();
    assert_eq!((answer.value, answer.trip.worker, answer.trip.stolen), (2, worker, Stolen::Across));
    held.open();
}

#[test]
fn one_that_fails_answers_for_all() {
    let scheduler = scheduler::<()>(Policy::Chiplet, &[1]);
    let merged = Arc::new(AtomicUsize::new(0));
    let run = |timeout, cancel: bool, panics: bool| {
        let (ran, merges) = (Arc::new(AtomicUsize::new(0)), merged.clone());
        let gate = Gate::close(&scheduler, MappingId(0));
        let count = ran.clone();
        let each = move |i: usize, _: &mut (), _: &Context<'_>| {
            count.fetch_add(1, Ordering::Relaxed);
            assert!(!(panics && i == 1), "the second");
            (i, 0)
        };
        let merge =
            move |_: Vec<usize>, _: &mut (), _: &Context<'_>| (merges.fetch_add(1, Ordering::Relaxed), 0);
        let ticket = scheduler.submit_all(&ids(4), timeout, each, merge).unwrap();
        if cancel {
            ticket.cancel();
        }
        gate.open();
        let failure = ticket.wait().unwrap_err();
        // Behind the four.
        scheduler.submit(MappingId(0), None, |_, _| ((), 0)).unwrap().wait().unwrap();
        (failure, ran.load(Ordering::Relaxed))
    };
    assert_eq!(run(Some(Duration::ZERO), false, false), (Failure::DeadlineExceeded, 0));
    assert_eq!(run(None, true, false), (Failure::Cancelled, 0));
    assert_eq!(run(None, false, true), (Failure::Panicked("the second".to_owned()), 2));
    assert_eq!(merged.load(Ordering::Relaxed), 0);

    let merge = |_: Vec<()>, _: &mut (), _: &Context<'_>| -> (usize, u64) { panic!("merging") };
    let ticket = scheduler.submit_all(&ids(2), None, |_, _, _| ((), 0), merge).unwrap();
    assert_eq!(ticket.wait(), Err(Failure::Panicked("merging".to_owned())));
}

#[test]
fn all_find_room_or_none_runs() {
    let scheduler: Scheduler<()> =
        Scheduler::new(Options { queue_capacity: 3, ..options(Policy::Chiplet, &[1]) }).unwrap();
    let gate = Gate::close(&scheduler, MappingId(0));
    let ran = Arc::new(AtomicUsize::new(0));
    let submit = |count| {
        let ran = ran.clone();
        let each = move |_: usize, _: &mut (), _: &Context<'_>| (ran.fetch_add(1, Ordering::Relaxed), 0);
        scheduler.submit_all(&ids(count), None, each, |_, _, _| ((), 0))
    };
    assert_eq!(submit(4).map(drop), Err(Full { queued: 3 }));
    gate.open();
    // What was queued of it is skipped, and gives way. (To submit until there is room would leave more to skip.)
    while scheduler.stats().total().skipped < 3 {
        std::thread::yield_now();
    }
    submit(3).unwrap().wait().unwrap();
    assert_eq!((ran.load(Ordering::Relaxed), scheduler.stats().total().skipped), (3, 3));
}

#[test]
fn tasks_borrow_and_wait_for_room() {
    for policy in Policy::ALL {
        let options = Options { queue_capacity: 2, ..options(policy, &[1, 1]) };
        let scheduler: Scheduler<()> = Scheduler::new(options).unwrap();
        let numbers: Vec<usize> = (0..500).collect();
        let sum = AtomicUsize::new(0);
        let longest = scheduler.scope(|scope| {
            let (numbers, sum) = (&numbers, &sum);
            let task = |chunk: usize| {
                let part = &numbers[10 * chunk..10 * (chunk + 1)];
                let task = move |_: &mut (), _: &Context<'_>| {
                    sum.fetch_add(part.iter().sum(), Ordering::Relaxed);
                    (part, 0)
                };
                scope.submit(MappingId(chunk as u64), None, task).unwrap()
            };
            let tickets: Vec<_> = (0..50).map(task).collect();
            // Half are not waited for.
            tickets.into_iter().step_by(2).map(|ticket| ticket.wait().unwrap().value.len()).max()
        });
        assert_eq!((longest, sum.into_inner()), (Some(10), 500 * 499 / 2));
    }
}

#[test]
fn a_scope_ends_after_its_tasks_also_when_it_panics() {
    let scheduler = scheduler::<()>(Policy::Chiplet, &[2]);
    let done = AtomicUsize::new(0);
    let scope = AssertUnwindSafe(|| {
        scheduler.scope(|scope| {
            for i in 0..20 {
                let done = &done;
                let task = move |_: &mut (), _: &Context<'_>| {
                    std::thread::yield_now();
                    done.fetch_add(1, Ordering::Relaxed);
                    assert!(i % 3 > 0, "task");
                    ((), 0)
                };
                drop(scope.submit(MappingId(0), None, task).unwrap());
            }
            panic!("scope");
        })
    });
    assert_eq!(catch_unwind(scope).unwrap_err().downcast_ref(), Some(&"scope"));
    assert_eq!(done.load(Ordering::Relaxed), 20);
}

/// What a task gives is dropped, and what it holds, before the scope is over.
#[test]
fn a_scope_ends_after_all_that_its_tasks_held() {
    struct Held<'a>(&'a AtomicUsize);
    impl Drop for Held<'_> {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    let scheduler = scheduler::<()>(Policy::Chiplet, &[1]);
    for (timeout, expected) in [(None, 2), (Some(Duration::ZERO), 1)] {
        let dropped = AtomicUsize::new(0);
        scheduler.scope(|scope| {
            let held = Held(&dropped);
            let task = move |_: &mut (), _: &Context<'_>| {
                let held = held;
                (Held(held.0), 0)
            };
            drop(scope.submit(MappingId(0), timeout, task).unwrap());
        });
        assert_eq!(dropped.into_inner(), expected);
    }
}

#[test]
fn a_scope_is_refused_when_others_fill_the_queue() {
    let options = Options { queue_capacity: 1, ..options(Policy::Chiplet, &[1]) };
    let scheduler: Scheduler<()> = Scheduler::new(options).unwrap();
    let gate = Gate::close(&scheduler, MappingId(0));
    drop(scheduler.submit(MappingId(0), None, |_, _| ((), 0)).unwrap());
    let refused = scheduler.scope(|scope| scope.submit(MappingId(0), None, |_, _| ((), 0)).map(drop));
    assert_eq!(refused, Err(Full { queued: 1 }));
    gate.open();
}
