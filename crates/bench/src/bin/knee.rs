//! How well the simulator's cache predicts this machine: `cargo run --release -p lanewise-bench --bin knee`.
//!
//! Lines of a working set are read at random, each load waiting for the one before. As the set outgrows a cache, the time
//! of a load rises from that cache's to the next one's. Where it is half way up is the knee: measured here, and predicted
//! by the simulator's cache of the size that the system states, with the times far from the knee taken from the
//! measurement.

use clap::Parser;
use lanewise_bench::clock::timed;
use lanewise_engine::scheduler::sim::cache::{LINE_BYTES, Ranges};
use lanewise_engine::topology::{Cache, Machine};
use std::error::Error;
use std::hint::black_box;
use std::io::{self, Write};
use std::process::ExitCode;

/// Where the time of a random read rises with the working set, measured and predicted by the simulator's cache
#[derive(Parser)]
#[command(name = "knee")]
struct Arguments {
    /// Largest working set, MiB (rounded up to a power of two)
    #[arg(long, default_value_t = 1024, value_parser = clap::value_parser!(u32).range(64..=65536))]
    mib: u32,
    /// Rounds, in which the sizes take turns; the least of each counts, since neighbours only ever add
    #[arg(long, default_value_t = 9, value_parser = clap::value_parser!(u16).range(1..=1000))]
    rounds: u16,
}

/// Loads of one measurement, after as many that bring the set into the caches …
const LOADS: u64 = 1 << 20;
/// … or as many as there are lines, so that what does not fit has been driven out.
const PASSES: u64 = 2;
/// The smallest working set.
const SMALLEST: u64 = 16 * 1024;
/// Sizes between powers of two.
const STEPS: u32 = 4;

fn main() -> ExitCode {
    match experiment(&Arguments::parse(), &mut io::stdout().lock()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Numbers that choose lines: Knuth's MMIX generator, its high bits.
fn next(state: u64) -> u64 {
    state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407)
}

fn place(state: u64, lines: u64) -> u64 {
    ((state >> 32) * lines) >> 32
}

/// Reads `loads` lines of the first `lines`, one after the other: the next is known when one is there.
fn read(memory: &[u64], lines: u64, loads: u64, mut state: u64) -> u64 {
    for _ in 0..loads {
        // All words are 0, which the compiler cannot know.
        state = next(state).wrapping_add(memory[(place(state, lines) * (LINE_BYTES / 8)) as usize]);
    }
    state
}

/// Share of random touches of `lines` lines that miss a cache of `held` lines.
fn missed(lines: u64, held: u64) -> f64 {
    let mut cache = Ranges::new(held, lines as usize);
    let (mut state, mut misses) = (1, 0);
    let warm = (PASSES * lines).max(LOADS);
    for touch in 0..warm + LOADS {
        state = next(state);
        let missed = cache.touch(place(state, lines) as u32, 1);
        misses += u64::from(touch >= warm) * u64::from(missed);
    }
    misses as f64 / LOADS as f64
}

/// The working set at which `times`, by ascending `sizes`, reach `level`: between sizes by interpolation.
fn crossing(sizes: &[u64], times: &[f64], level: f64) -> Option<f64> {
    let after = times.iter().position(|&time| time >= level).filter(|&after| after > 0)?;
    let (low, high) = (times[after - 1], times[after]);
    let part = (level - low) / (high - low);
    let (from, to) = (sizes[after - 1] as f64, sizes[after] as f64);
    Some(from * (to / from).powf(part))
}

fn experiment(arguments: &Arguments, out: &mut dyn Write) -> Result<(), Box<dyn Error>> {
    let machine = Machine::detect();
    let largest = u64::from(arguments.mib).next_power_of_two() << 20;
    let doublings = (largest / SMALLEST).ilog2();
    let sizes: Vec<u64> = (0..=doublings * STEPS)
        .map(|step| (SMALLEST as f64 * (f64::from(step) / f64::from(STEPS)).exp2()) as u64)
        .collect();
    let mut memory = vec![0u64; (largest / 8) as usize];
    // The TLB would have a knee of its own, where a system has huge pages for whoever asks.
    #[cfg(target_os = "linux")]
    // SAFETY: the range is the vector's; advice changes nothing that it holds.
    unsafe {
        let start = memory.as_mut_ptr();
        let skip = start.align_offset(2 << 20);
        libc::madvise(
            start.wrapping_add(skip).cast(),
            (largest as usize).saturating_sub(8 * skip),
            libc::MADV_HUGEPAGE,
        );
    }
    // Written to, page by page: until then all of them are one page of zeros.
    memory.iter_mut().step_by(512).for_each(|word| *word = black_box(0));
    let memory = black_box(&memory[..]);
    let mut times = vec![f64::INFINITY; sizes.len()];
    for round in 0..arguments.rounds {
        writeln!(io::stderr(), "round {} of {}", round + 1, arguments.rounds)?;
        for (&size, best) in sizes.iter().zip(&mut times) {
            let lines = size / LINE_BYTES;
            let warm = if round == 0 { (PASSES * lines).max(LOADS) } else { LOADS.max(lines) };
            let state = read(memory, lines, warm, u64::from(round));
            let (state, time) = timed(|| read(memory, lines, LOADS, state));
            black_box(state);
            *best = best.min(time.as_secs_f64() * 1e9 / LOADS as f64);
        }
    }
    writeln!(out, "{:>12} {:>8}", "working set", "ns/load")?;
    for (size, time) in sizes.iter().zip(&times) {
        writeln!(out, "{:>8.0} KiB {time:>8.1}", *size as f64 / 1024.0)?;
    }
    let caches: Vec<&Cache> = machine.chiplets[0].caches.iter().filter(|cache| cache.level >= 2).collect();
    for (i, cache) in caches.iter().enumerate() {
        let Some(bytes) = cache.bytes else { continue };
        // Far below the knee, and as far above as the next cache or the memory at hand allows.
        let above =
            caches.get(i + 1).and_then(|next| next.bytes).map_or(largest, |next| (next / 8).min(8 * bytes));
        let at = |size: u64| sizes.partition_point(|&other| other <= size).saturating_sub(1);
        let (low, high) = (at(bytes / 4), at(above));
        if above < 4 * bytes {
            writeln!(out, "L{}: {} MiB: give --mib {} or more", cache.level, bytes >> 20, (4 * bytes) >> 20)?;
            continue;
        }
        let (below, beyond) = (times[low], times[high]);
        let misses: Vec<f64> =
            sizes[..=high].iter().map(|&size| missed(size / LINE_BYTES, bytes / LINE_BYTES)).collect();
        // What is left to miss at the upper end is in its time already.
        let predicted: Vec<f64> =
            misses.iter().map(|missed| below + (beyond - below) * missed / misses[high]).collect();
        let level = (below + beyond) / 2.0;
        let knee = |times: &[f64]| crossing(&sizes[low..=high], &times[low..=high], level);
        match (knee(&times), knee(&predicted)) {
            (Some(measured), Some(predicted)) => writeln!(
                out,
                "L{}: {:.1} MiB stated; {below:.1} to {beyond:.1} ns; knee measured at {:.2} MiB, predicted at {:.2} MiB: {:.2} times",
                cache.level,
                bytes as f64 / (1 << 20) as f64,
                measured / (1 << 20) as f64,
                predicted / (1 << 20) as f64,
                predicted / measured
            )?,
            _ => writeln!(
                out,
                "L{}: no knee between {} and {} KiB",
                cache.level,
                sizes[low] >> 10,
                sizes[high] >> 10
            )?,
        }
    }
    Ok(())
}
