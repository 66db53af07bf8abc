//! Document 002's spin-lock experiment: `cargo run --release -p lanewise-bench --bin spinlock`.
//!
//! Times mean something on a real CPU with at least as many cores as threads; under an emulator count instructions
//! instead (`crates/bench/emulate/spinlock`).

use clap::Parser;
use lanewise_bench::lowlevel::spinlock::{Lock, Outcome, locks, run};
use lanewise_bench::measure::percentile;
use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

/// Threads that take one spin lock again and again, by different atomic instructions
#[derive(Parser)]
#[command(name = "spinlock")]
struct Arguments {
    /// Threads that want the lock
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: u16,
    /// How often each thread takes it
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..=1 << 40))]
    times: u64,
    /// Rounds, in which the locks take turns; medians are shown
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=1000))]
    rounds: u16,
    /// Only this lock
    #[arg(long, value_name = "NAME")]
    lock: Option<String>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match experiment(&arguments, &mut io::stdout().lock()) {
        Ok(()) => ExitCode::SUCCESS,
        // The reader (`| head`) has what it wanted.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn experiment(arguments: &Arguments, out: &mut dyn Write) -> io::Result<()> {
    let chosen = chosen(arguments.lock.as_deref())?;
    let (threads, times) = (usize::from(arguments.threads), arguments.times);
    let mut outcomes: Vec<Vec<Outcome>> = vec![Vec::new(); chosen.len()];
    for _ in 0..arguments.rounds {
        for (lock, outcomes) in chosen.iter().zip(&mut outcomes) {
            let outcome = run(*lock, threads, times)
                .map_err(|error| io::Error::other(format!("--threads {threads}: {error}; use fewer")))?;
            let wanted = threads as u64 * times;
            if outcome.counted != wanted {
                let counted = outcome.counted;
                return Err(io::Error::other(format!("{}: {counted} counted, not {wanted}", lock.name)));
            }
            outcomes.push(outcome);
        }
    }
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    writeln!(
        out,
        "{threads} threads, {times} times each, on {cores} CPUs; median of {} rounds",
        arguments.rounds
    )?;
    if threads > cores {
        writeln!(out, "more threads than CPUs: the times are the scheduler's as much as the lock's")?;
    }
    writeln!(
        out,
        "| lock       |  median ms | ns a time | least ms | most ms | last / first thread | to the first row |"
    )?;
    writeln!(
        out,
        "|------------|-----------:|----------:|---------:|--------:|--------------------:|-----------------:|"
    )?;
    let mut first = None;
    for (lock, outcomes) in chosen.iter().zip(&outcomes) {
        let mut all: Vec<Duration> = outcomes.iter().map(Outcome::time).collect();
        let median = percentile(&mut all, 50);
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        let mut unfairness: Vec<f64> = outcomes.iter().map(Outcome::unfairness).collect();
        unfairness.sort_by(f64::total_cmp);
        let base = *first.get_or_insert(median);
        writeln!(
            out,
            "| {:<10} | {:>10.1} | {:>9.1} | {:>8.1} | {:>7.1} | {:>19.2} | {:>16.2} |",
            lock.name,
            ms(median),
            median.as_secs_f64() * 1e9 / (threads as f64 * times as f64),
            ms(all[0]),
            ms(all[all.len() - 1]),
            unfairness[unfairness.len() / 2],
            median.as_secs_f64() / base.as_secs_f64().max(1e-9),
        )?;
    }
    Ok(())
}

/// The locks to compare.
fn chosen(name: Option<&str>) -> io::Result<Vec<Lock>> {
    let all = locks();
    let Some(name) = name else { return Ok(all) };
    match all.iter().find(|lock| lock.name == name) {
        Some(&lock) => Ok(vec![lock]),
        None => {
            let names: Vec<&str> = all.iter().map(|lock| lock.name).collect();
            let names = names.join(", ");
            Err(io::Error::other(format!("--lock {name:?}: this CPU has no such lock; use one of {names}")))
        }
    }
}
