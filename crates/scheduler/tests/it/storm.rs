//! Everything at once, from two threads: tasks that are fine, panic, are late, are cancelled, whose tickets are dropped;
//! fan-outs; scopes; new mappings all the while; queues that are full. Each task that was taken in runs once (not at all
//! where it is late or cancelled), and each ticket is answered with what belongs to it.

use crate::running::options;
use lanewise_scheduler::{Context, Failure, MappingId, Options, Policy, Scheduler, Ticket};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut x = self.0;
        x = (x ^ x >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        x = (x ^ x >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        (x ^ x >> 31) % n
    }
}

#[derive(Debug, Default)]
struct Counts {
    /// Taken in, parts of fan-outs counted each.
    tasks: AtomicU64,
    refused: AtomicU64,
    panicked: AtomicU64,
    late: AtomicU64,
    cancelled: AtomicU64,
    /// Ran fewer or more times than they should.
    lost: AtomicU64,
    doubled: AtomicU64,
    /// Answered with something else than expected.
    wrong: AtomicU64,
    /// Tasks whose tickets were dropped, and how often such ran.
    forgotten: AtomicU64,
    forgotten_ran: AtomicU64,
}

impl Counts {
    fn add(&self, counter: impl Fn(&Counts) -> &AtomicU64, n: u64) {
        counter(self).fetch_add(n, Ordering::Relaxed);
    }

    /// A task that should run once ran so often.
    fn once(&self, ran: u64) {
        self.add(|c| &c.lost, u64::from(ran == 0));
        self.add(|c| &c.doubled, ran.saturating_sub(1));
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Fine,
    Panics,
    Late,
    Cancelled,
    Forgotten,
}

struct Pending {
    ticket: Ticket<u64>,
    kind: Kind,
    value: u64,
    /// How often each of its tasks ran.
    ran: Arc<[AtomicU64]>,
}

type Scratch = Vec<u64>;

fn work(scratch: &mut Scratch, rounds: u64, context: &Context<'_>) -> u64 {
    scratch.clear();
    scratch.extend((0..rounds).take_while(|_| !context.stopped()));
    scratch.len() as u64 * 8
}

struct Submitter<'a> {
    scheduler: &'a Scheduler<Scratch>,
    counts: &'a Arc<Counts>,
    random: Random,
    pending: VecDeque<Pending>,
}

impl Submitter<'_> {
    fn step(&mut self) {
        if self.pending.len() >= 24 || self.random.below(64) == 0 {
            self.check_oldest();
        }
        match self.random.below(16) {
            0 => self.scope(),
            1..4 => self.fan_out(),
            _ => self.single(),
        }
    }

    fn kind(&mut self) -> Kind {
        match self.random.below(16) {
            0 => Kind::Panics,
            1 => Kind::Late,
            2 => Kind::Cancelled,
            3 => Kind::Forgotten,
            _ => Kind::Fine,
        }
    }

    fn timeout(kind: Kind) -> Option<Duration> {
        (kind == Kind::Late).then_some(Duration::ZERO)
    }

    fn single(&mut self) {
        let (kind, value, rounds) = (self.kind(), self.random.below(1 << 40), self.random.below(2000));
        let id = MappingId(self.random.below(12));
        let ran: Arc<[AtomicU64]> = Arc::new([AtomicU64::new(0)]);
        let (count, counts) = (ran.clone(), self.counts.clone());
        let task = move |scratch: &mut Scratch, context: &Context<'_>| {
            if kind == Kind::Forgotten {
                counts.add(|c| &c.forgotten_ran, 1);
            }
            count[0].fetch_add(1, Ordering::Relaxed);
            assert!(kind != Kind::Panics, "{value}");
            (value, work(scratch, rounds, context))
        };
        let submitted = match self.random.below(3) {
            0 => self.scheduler.submit_here(id, Self::timeout(kind), task),
            _ => self.scheduler.submit(id, Self::timeout(kind), task),
        };
        let Ok(ticket) = submitted else {
            self.counts.add(|c| &c.refused, 1);
            self.counts.add(|c| &c.wrong, ran[0].load(Ordering::Relaxed));
            return self.check_oldest();
        };
        self.counts.add(|c| &c.tasks, 1);
        match kind {
            Kind::Forgotten => return self.counts.add(|c| &c.forgotten, 1),
            Kind::Cancelled => ticket.cancel(),
            _ => {}
        }
        self.pending.push_back(Pending { ticket, kind, value, ran });
    }

    fn fan_out(&mut self) {
        let kind = match self.kind() {
            Kind::Forgotten => Kind::Fine,
            kind => kind,
        };
        let ids: Vec<MappingId> =
            (0..1 + self.random.below(6)).map(|_| MappingId(self.random.below(12))).collect();
        let bad = self.random.below(ids.len() as u64) as usize;
        let (value, rounds) = (self.random.below(1 << 40), self.random.below(500));
        let ran: Arc<[AtomicU64]> = ids.iter().map(|_| AtomicU64::new(0)).collect();
        let count = ran.clone();
        let each = move |i: usize, scratch: &mut Scratch, context: &Context<'_>| {
            count[i].fetch_add(1, Ordering::Relaxed);
            assert!(kind != Kind::Panics || i != bad, "{value}");
            (value + i as u64, work(scratch, rounds, context))
        };
        // Wrong if one is missing or out of order.
        let merge = move |parts: Vec<u64>, _: &mut Scratch, _: &Context<'_>| {
            let right = parts.iter().enumerate().all(|(i, &part)| part == value + i as u64);
            (if right { value } else { u64::MAX }, 0)
        };
        match self.scheduler.submit_all(&ids, Self::timeout(kind), each, merge) {
            Err(_) => {
                self.counts.add(|c| &c.refused, 1);
                self.check_oldest();
            }
            Ok(ticket) => {
                self.counts.add(|c| &c.tasks, ids.len() as u64);
                if kind == Kind::Cancelled {
                    ticket.cancel();
                }
                self.pending.push_back(Pending { ticket, kind, value, ran });
            }
        }
    }

    fn scope(&mut self) {
        let numbers: Vec<u64> = (0..8).map(|_| self.random.below(1000)).collect();
        let ran: Vec<AtomicU64> = numbers.iter().map(|_| AtomicU64::new(0)).collect();
        let mut taken = 0;
        self.scheduler.scope(|scope| {
            for (i, number) in numbers.iter().enumerate() {
                let ran = &ran;
                let task = move |_: &mut Scratch, _: &Context<'_>| {
                    (ran[i].fetch_add(1 + number - number, Ordering::Relaxed), 8)
                };
                match scope.submit(MappingId(*number % 12), None, task) {
                    Ok(ticket) => drop(ticket),
                    Err(_) => break,
                }
                taken += 1;
            }
        });
        self.counts.add(|c| &c.tasks, taken as u64);
        for (i, ran) in ran.iter().enumerate() {
            let ran = ran.load(Ordering::Relaxed);
            if i < taken { self.counts.once(ran) } else { self.counts.add(|c| &c.doubled, ran) }
        }
    }

    fn check_oldest(&mut self) {
        let Some(Pending { ticket, kind, value, ran }) = self.pending.pop_front() else { return };
        let outcome = ticket.wait();
        let ran: Vec<u64> = ran.iter().map(|count| count.load(Ordering::Relaxed)).collect();
        let counts = self.counts;
        match (kind, outcome) {
            (Kind::Fine | Kind::Cancelled, Ok(answer)) => {
                ran.iter().for_each(|&ran| counts.once(ran));
                counts.add(|c| &c.wrong, u64::from(answer.value != value));
            }
            (Kind::Panics, Err(Failure::Panicked(message))) => {
                counts.add(|c| &c.wrong, u64::from(message != value.to_string()));
                counts.add(|c| &c.lost, u64::from(ran.iter().sum::<u64>() == 0));
                counts.add(|c| &c.doubled, ran.iter().map(|ran| ran.saturating_sub(1)).sum());
                counts.add(|c| &c.panicked, 1);
            }
            (Kind::Cancelled, Err(Failure::Cancelled)) => {
                counts.add(|c| &c.doubled, ran.iter().map(|ran| ran.saturating_sub(1)).sum());
                counts.add(|c| &c.cancelled, 1);
            }
            (Kind::Late, Err(Failure::DeadlineExceeded)) => {
                counts.add(|c| &c.wrong, ran.iter().sum());
                counts.add(|c| &c.late, 1);
            }
            (kind, outcome) => {
                eprintln!("{kind:?}: {outcome:?}, ran {ran:?}");
                counts.add(|c| &c.wrong, 1);
            }
        }
    }
}

/// Rounds of `steps` from two threads, remapped meanwhile, as long as `go_on` says.
#[expect(clippy::disallowed_methods, reason = "the test brings its own threads")]
fn storm(
    policy: Policy,
    workers: &[usize],
    seed: u64,
    steps: usize,
    go_on: &(dyn Fn() -> bool + Sync),
) -> Arc<Counts> {
    quiet_workers();
    let counts = Arc::new(Counts::default());
    let options =
        Options { queue_capacity: 8, patience: Duration::from_micros(50), ..options(policy, workers) };
    let scheduler: Scheduler<Scratch> = Scheduler::new(options).unwrap();
    std::thread::scope(|threads| {
        for thread in 0..2 {
            let (scheduler, counts) = (&scheduler, &counts);
            threads.spawn(move || {
                let random = Random(seed.wrapping_add(thread << 32));
                let mut submitter = Submitter { scheduler, counts, random, pending: VecDeque::new() };
                loop {
                    (0..steps).for_each(|_| submitter.step());
                    while !submitter.pending.is_empty() {
                        submitter.check_oldest();
                    }
                    if !go_on() {
                        break;
                    }
                }
            });
        }
        let mut random = Random(seed ^ 0xAA);
        loop {
            for _ in 0..steps {
                match random.below(4) {
                    0 => scheduler.place(&[(MappingId(random.below(12)), random.below(1 << 30))]),
                    1 => {
                        let gone = MappingId(random.below(12));
                        scheduler.forget(|id| id == gone);
                    }
                    _ => drop(scheduler.remap()),
                }
                std::thread::yield_now();
            }
            if !go_on() {
                break;
            }
        }
    });
    // Those whose tickets were dropped run before the end.
    drop(scheduler);
    let forgotten = counts.forgotten.load(Ordering::Relaxed);
    let ran = counts.forgotten_ran.load(Ordering::Relaxed);
    counts.add(|c| &c.lost, forgotten.saturating_sub(ran));
    counts.add(|c| &c.doubled, ran.saturating_sub(forgotten));
    counts
}

/// Panics of tasks are meant: they would fill the output.
fn quiet_workers() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let loud = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !std::thread::current().name().is_some_and(|name| name.starts_with("lanewise-w")) {
                loud(panic);
            }
        }));
    });
}

fn judge(policy: Policy, workers: &[usize], seed: u64, counts: &Counts) {
    eprintln!("{policy}, workers {workers:?}, seed {seed}: {counts:?}");
    let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    assert_eq!((get(&counts.lost), get(&counts.doubled), get(&counts.wrong)), (0, 0, 0));
    assert!(get(&counts.tasks) > 0);
}

#[test]
fn each_task_runs_once_whatever_happens() {
    let steps = if cfg!(miri) { 20 } else { 3000 };
    for policy in Policy::ALL {
        for (workers, seed) in [(&[1][..], 1), (&[2], 2), (&[2, 1], 3), (&[1, 1, 2], 4)] {
            let counts = storm(policy, workers, seed, steps, &|| false);
            judge(policy, workers, seed, &counts);
        }
    }
}

/// `LANEWISE_SOAK_SECONDS=600 cargo test -p lanewise-scheduler --release --test it -- --ignored --nocapture soak`.
#[test]
#[ignore = "runs for LANEWISE_SOAK_SECONDS (60)"]
#[expect(clippy::disallowed_methods, reason = "it is to run for so long")]
fn soak() {
    let seconds: u64 =
        std::env::var("LANEWISE_SOAK_SECONDS").map_or(60, |s| s.parse().expect("a number of seconds"));
    let layouts: [&[usize]; 3] = [&[2], &[2, 1], &[1, 1, 2]];
    let share = Duration::from_secs(seconds) / (Policy::ALL.len() * layouts.len()) as u32;
    for policy in Policy::ALL {
        for (seed, workers) in layouts.into_iter().enumerate() {
            let start = std::time::Instant::now();
            let counts = storm(policy, workers, seed as u64, 1000, &|| start.elapsed() < share);
            judge(policy, workers, seed as u64, &counts);
        }
    }
}
