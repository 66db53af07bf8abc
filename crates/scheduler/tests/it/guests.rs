//! Tasks that are run by who submits them, in the place of a worker that sleeps.

use crate::running::{Gate, scheduler};
use lanewise_scheduler::{Failure, MappingId, Policy, Scheduler, Stolen};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, ThreadId};
use std::time::Duration;

const ID: MappingId = MappingId(7);

/// Waits until nobody works.
fn asleep(scheduler: &Scheduler<usize>) {
    while scheduler.stats().total().running {
        thread::yield_now();
    }
}

fn who(scheduler: &Scheduler<usize>) -> (ThreadId, usize) {
    let task = |scratch: &mut usize, _: &lanewise_scheduler::Context<'_>| {
        *scratch += 1;
        ((thread::current().id(), *scratch), 5)
    };
    let answer = scheduler.submit_here(ID, None, task).unwrap().wait().unwrap();
    assert_eq!((answer.trip.bytes, answer.trip.stolen), (5, Stolen::No));
    answer.value
}

#[test]
fn who_waits_runs_the_task_where_a_worker_sleeps() {
    let scheduler = scheduler::<usize>(Policy::Chiplet, &[1]);
    asleep(&scheduler);
    let me = thread::current().id();
    // The place keeps its scratch memory, which is not the worker's.
    assert_eq!((who(&scheduler), who(&scheduler)), ((me, 1), (me, 2)));
    let total = scheduler.stats().total();
    assert_eq!((total.tasks, total.bytes, total.running), (2, 10, false));
    // A worker that runs is not disturbed.
    let gate = Gate::close(&scheduler, ID);
    let ticket = scheduler.submit_here(ID, None, |_, _| (thread::current().id(), 0)).unwrap();
    gate.open();
    assert_ne!(ticket.wait().unwrap().value, me);
    asleep(&scheduler);
    let panics = scheduler.submit_here::<(), _>(ID, None, |_, _| panic!("number {}", 3)).unwrap();
    assert_eq!(panics.wait(), Err(Failure::Panicked("number 3".to_owned())));
    assert_eq!((who(&scheduler), scheduler.stats().total().panicked), ((me, 1), 1));
    let late = scheduler.submit_here(ID, Some(Duration::ZERO), |_, _| ((), 0)).unwrap();
    assert_eq!(late.wait(), Err(Failure::DeadlineExceeded));
}

#[test]
fn in_turn_means_in_turn_and_what_is_at_home_elsewhere_goes_there() {
    for (policy, workers) in [(Policy::RoundRobin, &[1][..]), (Policy::Chiplet, &[1, 1])] {
        let scheduler = scheduler::<usize>(policy, workers);
        asleep(&scheduler);
        assert_ne!(who(&scheduler).0, thread::current().id(), "{policy:?}");
    }
}

/// What comes while a guest works is not left: by the worker whose place it has, or another.
#[test]
fn a_guest_keeps_nobody_waiting_for_ever() {
    for workers in [&[1][..], &[2]] {
        let scheduler = Arc::new(scheduler::<usize>(Policy::Chiplet, workers));
        for _ in 0..if cfg!(miri) { 3 } else { 300 } {
            asleep(&scheduler);
            let (begun, go) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
            let guest = {
                let (scheduler, begun, go) = (scheduler.clone(), begun.clone(), go.clone());
                #[expect(clippy::disallowed_methods, reason = "a submitter")]
                thread::spawn(move || {
                    let task = move |_: &mut usize, _: &lanewise_scheduler::Context<'_>| {
                        begun.store(true, Ordering::SeqCst);
                        while !go.load(Ordering::SeqCst) {
                            thread::yield_now();
                        }
                        ((), 0)
                    };
                    scheduler.submit_here(ID, None, task).unwrap().wait().unwrap();
                })
            };
            while !begun.load(Ordering::SeqCst) {
                thread::yield_now();
            }
            let tickets: Vec<_> =
                (0..3).map(|_| scheduler.submit(ID, None, |_, _| ((), 0)).unwrap()).collect();
            go.store(true, Ordering::SeqCst);
            for ticket in tickets {
                ticket.wait().unwrap();
            }
            guest.join().unwrap();
        }
    }
}
