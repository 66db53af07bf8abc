//! Replays a trace's reads by real loads, for cachegrind to count: `replay TRACE [--dry]`.
//!
//! One load for each line that the trace touches, in its order, task after task. With `--dry` everything but the loads: the
//! misses of both runs differ by the loads' own. `tests/it/cachegrind.rs` compares them with the simulator's caches.

use clap::Parser;
use lanewise_scheduler::sim::trace::{self, Span, Trace};
use std::hint::black_box;
use std::path::PathBuf;
use std::process::ExitCode;

/// A trace's reads as real loads
#[derive(Parser)]
#[command(name = "replay")]
struct Arguments {
    /// The trace file
    trace: PathBuf,
    /// The memory that is read begins at a multiple of 2 to this power
    #[arg(long, default_value_t = 21, value_parser = clap::value_parser!(u8).range(6..=30))]
    align: u8,
    /// Everything but the loads
    #[arg(long)]
    dry: bool,
}

/// More than the last-level caches that are compared.
const FLUSH_BYTES: usize = 32 << 20;

/// First lines and numbers of lines, in the order in which they are read. Walking through them misses once for each of their
/// own lines, with loads between or without, so that a dry run takes off just that.
fn runs_of(trace: &Trace) -> Vec<(u32, u32)> {
    let run = |span: &Span| {
        let (first, last) = (span.first as usize, (span.first + span.count - 1) as usize);
        // A span's objects lie together.
        let end = trace.starts[last] + u64::from(trace.lines[last]);
        (trace.starts[first] as u32, (end - trace.starts[first]) as u32)
    };
    trace.spans.iter().map(run).collect()
}

/// Reads one byte of each line, or none; how many lines.
fn replay(runs: &[(u32, u32)], memory: &[u8], dry: bool) -> u64 {
    let (mut sum, mut lines) = (0u64, 0u64);
    for &(first, count) in runs {
        lines += u64::from(count);
        if !dry {
            (first..first + count).for_each(|line| sum += u64::from(memory[line as usize * 64]));
        }
    }
    black_box(sum);
    lines
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match arguments.run() {
        Ok(lines) => {
            eprintln!("{lines} lines");
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("error: {}: {why}", arguments.trace.display());
            ExitCode::FAILURE
        }
    }
}

impl Arguments {
    fn run(&self) -> Result<u64, String> {
        let bytes = std::fs::read(&self.trace).map_err(|error| error.to_string())?;
        let trace = trace::read([&bytes[..]]).map_err(|(_, error)| error.to_string())?;
        if trace.starts.last().is_some_and(|&start| start + trace::BLOCK_LINES > u32::MAX.into()) {
            return Err("its tables are larger than 256 GiB".to_owned());
        }
        let end = trace.starts.last().map_or(0, |&start| (start + trace::BLOCK_LINES) * 64) as usize;
        let align = 1usize << self.align;
        // Zeros from the system: nothing is touched before the replay.
        let memory = vec![0u8; end + align];
        let start = memory.as_ptr().align_offset(align);
        let runs = runs_of(&trace);
        // Neither run finds in a cache what came before.
        let other = black_box(vec![0u8; FLUSH_BYTES]);
        black_box(other.iter().step_by(64).map(|&byte| u64::from(byte)).sum::<u64>());
        Ok(replay(&runs, black_box(&memory[start..]), self.dry))
    }
}
