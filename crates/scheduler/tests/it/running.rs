//! What workers do with single tasks. Gates instead of times: a task waits until the test lets it go on.

use lanewise_scheduler::{Failure, Full, Layout, MappingId, Options, Policy, Scheduler, Stolen, Workers};
use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

const ID: MappingId = MappingId(7);
const LONG: Duration = Duration::from_secs(3600);

/// All of them, so that nobody asks this machine for its shape (Miri could not).
pub(crate) fn options(policy: Policy, workers: &[usize]) -> Options {
    Options {
        policy,
        workers: Workers::Unbound(Layout::new(workers)),
        queue_capacity: 256,
        patience: LONG,
        remap_interval: Duration::from_secs(10),
    }
}

pub(crate) fn scheduler<S: Default + Send>(policy: Policy, workers: &[usize]) -> Scheduler<S> {
    Scheduler::new(options(policy, workers)).unwrap()
}

/// A task that has begun, and waits until it is let go.
pub(crate) struct Gate {
    open: Sender<()>,
    pub(crate) worker: usize,
}

impl Gate {
    /// Returns once a worker runs it.
    pub(crate) fn close<S: Default + Send>(scheduler: &Scheduler<S>, id: MappingId) -> Gate {
        let (open, opened) = channel();
        let (begin, begun) = channel();
        let gate = move |_: &mut S, context: &lanewise_scheduler::Context<'_>| {
            begin.send(context.worker()).unwrap();
            let _: Result<(), _> = opened.recv();
            ((), 0)
        };
        drop(scheduler.submit(id, None, gate).unwrap());
        Gate { open, worker: begun.recv().unwrap() }
    }

    pub(crate) fn open(self) {
        self.open.send(()).unwrap();
    }
}

#[test]
fn the_answer_comes_back_with_its_trip() {
    for policy in Policy::ALL {
        let scheduler = scheduler::<()>(policy, &[1, 1]);
        let answer =
            scheduler.submit(ID, Some(LONG), |_, context| (context.worker(), 100)).unwrap().wait().unwrap();
        assert_eq!((answer.value, answer.trip.bytes), (answer.trip.worker, 100));
        assert_eq!(scheduler.layout().of_worker(answer.trip.worker), answer.trip.chiplet);
        let total = scheduler.stats().total();
        assert_eq!((total.tasks, total.bytes, total.busy_ns), (1, 100, answer.trip.ran_ns));
    }
}

#[test]
fn scratch_stays_with_the_worker_until_a_task_panics() {
    let scheduler = scheduler::<usize>(Policy::Chiplet, &[1]);
    let count = || {
        let next = |scratch: &mut usize, _: &lanewise_scheduler::Context<'_>| {
            *scratch += 1;
            (*scratch, 0)
        };
        scheduler.submit(ID, None, next).unwrap().wait().unwrap().value
    };
    assert_eq!((count(), count()), (1, 2));
    let panics = scheduler.submit::<(), _>(ID, None, |_, _| panic!("number {}", 3)).unwrap();
    assert_eq!(panics.wait(), Err(Failure::Panicked("number 3".to_owned())));
    assert_eq!(count(), 1);
    assert_eq!(scheduler.stats().total().panicked, 1);
}

#[test]
fn a_full_queue_says_how_long_it_is_and_runs_what_it_took_in_order() {
    for policy in Policy::ALL {
        let options = Options { queue_capacity: 3, ..options(policy, &[1]) };
        let scheduler: Scheduler<()> = Scheduler::new(options).unwrap();
        let gate = Gate::close(&scheduler, ID);
        let seen = Arc::new(Mutex::new(Vec::new()));
        let submit = |i: usize| {
            let seen = seen.clone();
            scheduler.submit(ID, None, move |_, _| (seen.lock().unwrap().push(i), 0))
        };
        let tickets: Vec<_> = (0..3).map(|i| submit(i).unwrap()).collect();
        assert_eq!(submit(3).unwrap_err(), Full { queued: 3 });
        assert_eq!(scheduler.stats().refused, 1);
        gate.open();
        for ticket in tickets {
            ticket.wait().unwrap();
        }
        assert_eq!(*seen.lock().unwrap(), [0, 1, 2]);
    }
}

/// Two workers held up, four tasks for each; then one is let go.
fn half_freed(
    policy: Policy,
    workers: &[usize],
    patience: Duration,
) -> (Scheduler<()>, Gate, Receiver<Stolen>) {
    let options = Options { patience, ..options(policy, workers) };
    let scheduler: Scheduler<()> = Scheduler::new(options).unwrap();
    let ids = [MappingId(1), MappingId(2)];
    scheduler.place(&[(ids[0], 1), (ids[1], 1)]);
    let gates = ids.map(|id| Gate::close(&scheduler, id));
    assert_ne!(gates[0].worker, gates[1].worker);
    let (report, reports) = channel();
    for i in 0..8 {
        let report = report.clone();
        let task = move |_: &mut (), context: &lanewise_scheduler::Context<'_>| {
            report.send(context.stolen()).unwrap();
            ((), 0)
        };
        drop(scheduler.submit(ids[i % 2], None, task).unwrap());
    }
    let [held, free] = gates;
    free.open();
    (scheduler, held, reports)
}

#[test]
fn who_is_free_takes_from_whom_the_policy_allows() {
    let count = |reports: &Receiver<Stolen>, n: usize| {
        let mut counts = [0; 3];
        reports.iter().take(n).for_each(|stolen| counts[stolen as usize] += 1);
        counts
    };
    // Near: all eight run on the free worker.
    for (policy, workers, patience, expected) in [
        (Policy::Stealing, &[2][..], LONG, [4, 4, 0]),
        (Policy::Stealing, &[1, 1], LONG, [4, 0, 4]),
        (Policy::Chiplet, &[2], LONG, [4, 4, 0]),
        (Policy::Chiplet, &[1, 1], Duration::ZERO, [4, 0, 4]),
    ] {
        let (scheduler, held, reports) = half_freed(policy, workers, patience);
        assert_eq!(count(&reports, 8), expected, "{policy} {workers:?}");
        held.open();
        drop(scheduler);
    }
    // Nobody takes them: they wait for their worker.
    for policy in [Policy::RoundRobin, Policy::Chiplet] {
        let (scheduler, held, reports) = half_freed(policy, &[1, 1], LONG);
        assert_eq!(count(&reports, 4), [4, 0, 0], "{policy}");
        held.open();
        assert_eq!(count(&reports, 4), [4, 0, 0], "{policy}");
        drop(scheduler);
    }
}

/// Nobody is woken by anything but the task's waiting.
#[test]
fn an_idle_chiplet_takes_what_waits_for_long() {
    let options = Options { patience: Duration::from_millis(1), ..options(Policy::Chiplet, &[1, 2]) };
    let scheduler: Scheduler<()> = Scheduler::new(options).unwrap();
    for id in [MappingId(0), MappingId(1)] {
        let gate = Gate::close(&scheduler, id);
        let more: Vec<_> =
            (0..5).map(|_| scheduler.submit(id, None, |_, c| (c.stolen(), 0)).unwrap()).collect();
        for ticket in more {
            ticket.wait().unwrap();
        }
        gate.open();
    }
    assert!(scheduler.stats().total().stolen_across > 0);
}

#[test]
fn what_is_late_or_cancelled_is_not_run() {
    let scheduler = scheduler::<()>(Policy::Chiplet, &[1]);
    let gate = Gate::close(&scheduler, ID);
    let ran = Arc::new(AtomicUsize::new(0));
    let submit = |timeout| {
        let ran = ran.clone();
        scheduler.submit(ID, timeout, move |_, _| (ran.fetch_add(1, Ordering::Relaxed), 0)).unwrap()
    };
    let late = submit(Some(Duration::ZERO));
    let (cancelled, elsewhere, fine) = (submit(None), submit(None), submit(Some(LONG)));
    cancelled.cancel();
    elsewhere.canceller().cancel();
    gate.open();
    assert_eq!(late.wait(), Err(Failure::DeadlineExceeded));
    assert_eq!(cancelled.wait(), Err(Failure::Cancelled));
    assert_eq!(elsewhere.wait(), Err(Failure::Cancelled));
    assert_eq!(fine.wait().unwrap().value, 0);
    assert_eq!(ran.load(Ordering::Relaxed), 1);
    // The gate and the last.
    assert_eq!((scheduler.stats().total().tasks, scheduler.stats().total().skipped), (2, 3));
}

#[test]
fn a_running_task_that_asks_is_stopped() {
    let scheduler = scheduler::<()>(Policy::Chiplet, &[1]);
    let (begin, begun) = channel();
    let until_stopped = move |_: &mut (), context: &lanewise_scheduler::Context<'_>| {
        let _ = begin.send(());
        while !context.stopped() {
            std::hint::spin_loop();
        }
        assert!(context.stopped());
        ((), 0)
    };
    let ticket = scheduler.submit(ID, Some(LONG), until_stopped.clone()).unwrap();
    begun.recv().unwrap();
    ticket.cancel();
    assert_eq!(ticket.wait(), Err(Failure::Cancelled));
    let ticket = scheduler.submit(ID, Some(Duration::from_millis(5)), until_stopped).unwrap();
    assert_eq!(ticket.wait(), Err(Failure::DeadlineExceeded));
}

#[test]
fn a_ticket_can_be_awaited() {
    struct Flag(Sender<()>);
    impl Wake for Flag {
        fn wake(self: Arc<Self>) {
            self.0.send(()).unwrap();
        }
    }
    let scheduler = scheduler::<()>(Policy::Chiplet, &[1]);
    let gate = Gate::close(&scheduler, ID);
    let mut ticket = pin!(scheduler.submit(ID, None, |_, _| (5, 0)).unwrap());
    let (wake, woken) = channel();
    let waker = Waker::from(Arc::new(Flag(wake)));
    assert!(ticket.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    // The last waker counts.
    assert!(ticket.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    gate.open();
    woken.recv().unwrap();
    match ticket.as_mut().poll(&mut Context::from_waker(&waker)) {
        Poll::Ready(outcome) => assert_eq!(outcome.unwrap().value, 5),
        Poll::Pending => panic!("woken, but not ready"),
    }
    assert!(woken.try_recv().is_err());
}

#[test]
fn the_end_runs_what_is_queued() {
    for policy in Policy::ALL {
        let scheduler = scheduler::<()>(policy, &[2, 1]);
        let gates: Vec<_> = (0..3).map(|i| Gate::close(&scheduler, MappingId(i))).collect();
        let ran = Arc::new(AtomicUsize::new(0));
        for i in 0..30 {
            let ran = ran.clone();
            drop(
                scheduler
                    .submit(MappingId(i), None, move |_, _| (ran.fetch_add(1, Ordering::Relaxed), 0))
                    .unwrap(),
            );
        }
        gates.into_iter().for_each(Gate::open);
        drop(scheduler);
        assert_eq!(ran.load(Ordering::Relaxed), 30);
    }
}

#[test]
fn a_task_may_hold_the_last_reference() {
    let scheduler = Arc::new(scheduler::<()>(Policy::Chiplet, &[1, 1]));
    let (go, gone) = channel::<()>();
    let last = scheduler.clone();
    let task = move |_: &mut (), _: &lanewise_scheduler::Context<'_>| {
        let _: Result<(), _> = gone.recv();
        drop(last);
        (1, 0)
    };
    let ticket = scheduler.submit(ID, None, task).unwrap();
    drop(scheduler);
    drop(go);
    assert_eq!(ticket.wait().unwrap().value, 1);
}

#[test]
#[cfg_attr(miri, ignore = "what panics when it is dropped is leaked, as it must be; Miri reports that")]
fn values_that_panic_when_dropped_take_no_worker_with_them() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("dropped");
        }
    }
    #[derive(Default)]
    struct Scratch(Option<Bomb>);
    let scheduler = scheduler::<Scratch>(Policy::Chiplet, &[1]);
    let gate = Gate::close(&scheduler, ID);
    // Nobody takes the result; what the closure holds; the payload; the scratch.
    drop(scheduler.submit(ID, None, |_, _| (Bomb, 0)).unwrap());
    let bomb = Bomb;
    let held = scheduler.submit(ID, Some(Duration::ZERO), move |_, _| (size_of_val(&bomb), 0)).unwrap();
    let payload = scheduler.submit::<(), _>(ID, None, |_, _| std::panic::panic_any(Bomb)).unwrap();
    let scratch = scheduler.submit::<(), _>(ID, None, |scratch, _| {
        scratch.0 = Some(Bomb);
        panic!("with a full scratch")
    });
    gate.open();
    assert!(held.wait().is_err());
    assert_eq!(payload.wait(), Err(Failure::Panicked("(no message)".to_owned())));
    assert_eq!(scratch.unwrap().wait(), Err(Failure::Panicked("with a full scratch".to_owned())));
    assert_eq!(scheduler.submit(ID, None, |_, _| (1, 0)).unwrap().wait().unwrap().value, 1);
}

#[test]
fn ids_stay_at_home_and_move_when_one_chiplet_has_all_the_traffic() {
    // One caller keeps one worker of four busy at most, however slow this is: no id is split over chiplets.
    let scheduler = scheduler::<()>(Policy::Chiplet, &[4, 4]);
    let ids: Vec<MappingId> = (0..4).map(MappingId).collect();
    scheduler.place(&ids.iter().map(|&id| (id, 100)).collect::<Vec<_>>());
    let chiplet =
        |id, bytes| scheduler.submit(id, None, move |_, _| ((), bytes)).unwrap().wait().unwrap().trip.chiplet;
    let homes: Vec<_> = ids.iter().map(|&id| chiplet(id, 0)).collect();
    assert_eq!(homes.iter().filter(|home| home.0 == 0).count(), 2);
    assert!(!scheduler.remap());
    let hot: Vec<MappingId> =
        ids.iter().zip(&homes).filter(|(_, home)| home.0 == 0).map(|(&id, _)| id).collect();
    for _ in 0..10 {
        hot.iter().for_each(|&id| assert_eq!(chiplet(id, 1 << 20).0, 0));
    }
    let epoch = scheduler.stats().epoch;
    assert!(scheduler.remap());
    assert_eq!(scheduler.stats().epoch, epoch + 1);
    assert_ne!(chiplet(hot[0], 0), chiplet(hot[1], 0));
    // A table that is closed leaves nothing behind.
    scheduler.forget(|_| true);
    assert_eq!(scheduler.stats().epoch, epoch + 2);
}

#[test]
fn one_chiplet_has_no_mapping() {
    let scheduler = scheduler::<()>(Policy::Chiplet, &[2]);
    scheduler.place(&[(ID, 5)]);
    scheduler.submit(ID, None, |_, _| ((), 1 << 30)).unwrap().wait().unwrap();
    assert!(!scheduler.remap());
    assert_eq!(scheduler.stats().epoch, 0);
}

#[test]
fn options_that_make_no_sense_are_refused() {
    for (queue_capacity, remap_interval) in [(0, LONG), (1 << 17, LONG), (1, Duration::ZERO)] {
        let options = Options { queue_capacity, remap_interval, ..options(Policy::Chiplet, &[1]) };
        let error = Scheduler::<()>::new(options).unwrap_err().to_string();
        assert!(
            error.starts_with("queue_capacity is ") || error.starts_with("remap_interval is "),
            "{error}"
        );
    }
    assert!(
        Scheduler::<()>::new(Options { remap_interval: Duration::MAX, ..options(Policy::Chiplet, &[1, 1]) })
            .is_ok()
    );
}

/// Bound as far as the system lets us.
#[test]
#[cfg_attr(miri, ignore = "Miri shows no machine")]
fn this_machines_own_workers_run() {
    let here: Scheduler<()> = Scheduler::new(Options::default()).unwrap();
    assert_eq!(here.submit(ID, None, |_, _| (1, 0)).unwrap().wait().unwrap().value, 1);
}
