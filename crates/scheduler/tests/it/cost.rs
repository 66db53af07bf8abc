//! What the scheduler itself costs: programs, not tests. They print medians and ratios, and judge nothing.
//!
//! `cargo test -p lanewise-scheduler --release --test it -- --ignored --nocapture --test-threads 1 cost`
#![expect(clippy::disallowed_methods, reason = "they measure time")]

use crate::running::scheduler;
use lanewise_scheduler::{MappingId, Policy, Scheduler};
use std::time::{Duration, Instant};

const ROUNDS: usize = 401;
const BATCH: u64 = 128;

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Nanoseconds for each of a batch of tasks that do nothing.
fn batch(scheduler: &Scheduler<()>) -> f64 {
    let start = Instant::now();
    let submit = |i| scheduler.submit(MappingId(i), None, |_, _| ((), 0)).unwrap();
    let tickets: Vec<_> = (0..BATCH).map(submit).collect();
    for ticket in tickets {
        ticket.wait().unwrap();
    }
    start.elapsed().as_nanos() as f64 / BATCH as f64
}

/// Nanoseconds from a submission to its answer, while the workers sleep.
fn alone(scheduler: &Scheduler<()>) -> f64 {
    std::thread::sleep(Duration::from_micros(200));
    let start = Instant::now();
    scheduler.submit(MappingId(0), None, |_, _| ((), 0)).unwrap().wait().unwrap();
    start.elapsed().as_nanos() as f64
}

#[test]
#[ignore = "measures"]
fn cost_of_tasks_that_do_nothing() {
    for workers in [&[1][..], &[2], &[1, 1]] {
        // By turns, so that what disturbs one disturbs all.
        let schedulers = Policy::ALL.map(|policy| scheduler::<()>(policy, workers));
        let mut times = [const { Vec::new() }; 3];
        for _ in 0..ROUNDS {
            for (scheduler, times) in schedulers.iter().zip(&mut times) {
                times.push((batch(scheduler), alone(scheduler)));
            }
        }
        let base = &times[1];
        for (policy, times) in Policy::ALL.iter().zip(&times) {
            let of = |part: fn(&(f64, f64)) -> f64| median(times.iter().map(part).collect());
            let ratio = median(times.iter().zip(base).map(|(a, b)| a.0 / b.0).collect());
            let (batch, alone) = (of(|t| t.0), of(|t| t.1));
            eprintln!(
                "{policy:12} workers {workers:?}: {batch:5.0} ns a task in batches ({ratio:.3} of stealing), {alone:6.0} ns alone"
            );
        }
    }
}

/// What this process's threads took of the CPU, by the system's count (Linux).
#[cfg(target_os = "linux")]
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    // Ticks are hundredths of a second on every Linux that Rust runs on.
    (fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap()) / 100.0
}

#[test]
#[ignore = "measures"]
#[cfg(target_os = "linux")]
fn cost_of_rest() {
    for policy in Policy::ALL {
        let scheduler: Scheduler<()> = scheduler(policy, &[8, 8]);
        for id in (0..64).map(MappingId) {
            scheduler.submit(id, None, |_, _| ((), 0)).unwrap().wait().unwrap();
        }
        let before = cpu_seconds();
        std::thread::sleep(Duration::from_secs(5));
        let share = (cpu_seconds() - before) / 5.0;
        eprintln!("{policy:12} 16 workers at rest: {:.2} % of a core", 100.0 * share);
    }
}
