//! Processes that are killed (SIGKILL) while they write: nothing acknowledged is lost, on a real disk.
//!
//! A victim, this program again, reports each write before and after; it is killed after a random line of its report, and
//! what it left is compared with an oracle by whoever opens it next: this process, or first another victim, which may be
//! killed while it opens. A kill does not lose what the system holds in memory, so that this proves nothing about power
//! cuts: crash images do (`it/tables.rs`).

#![cfg(unix)]

mod oracle;
mod report;
#[path = "../token/mod.rs"]
mod token;
mod victim;

use lanewise_storage::fault::plant;
use lanewise_storage::{Fault, Rng};
use oracle::Oracle;
use report::{Line, Making};
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// What this test must find if it is planted. (A log that is dropped early too, but only where a kill comes between two calls
/// of the system: after a hundred kills or so.)
const FAULTS: [Fault; 3] = [Fault::TombstonesLost, Fault::ReplayedTooLate, Fault::DeadFound];

/// Kills that one table meets.
const OF_ONE_TABLE: usize = 20;

fn ids() -> impl ExactSizeIterator<Item = String> {
    (0..40).map(|i| format!("d{i}"))
}

/// What the kills met.
#[derive(Debug, Default)]
struct Counts {
    kills: usize,
    acknowledged: usize,
    /// Writes that were under way.
    cut: usize,
    /// Of these, those that are there.
    survived: usize,
    opening: usize,
    flushing: usize,
    merging: usize,
    /// Victims that were done before.
    ended: usize,
}

/// One victim, from its start to its end.
fn kill(
    folder: &Path,
    seeds: (u64, u64),
    fault: Option<Fault>,
    oracle: &mut Oracle,
    counts: &mut Counts,
) -> Result<(), String> {
    let mut victim = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "victim_of_a_kill", "--nocapture"])
        .env("LANEWISE_VICTIM", folder)
        .env("LANEWISE_VICTIM_SEEDS", format!("{} {}", seeds.0, seeds.1))
        .env("LANEWISE_VICTIM_FAULT", fault.map_or(String::new(), |fault| format!("{fault:?}")))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut random = Rng::with_seed(seeds.1);
    let heard = hear(&mut victim, &mut random, oracle, counts);
    // Where something is wrong it may live on.
    let _ = victim.kill();
    let status = victim.wait().unwrap();
    heard?;
    match status.signal() {
        Some(libc::SIGKILL) => counts.kills += 1,
        None if status.success() => counts.ended += 1,
        _ => return Err(format!("the victim ended by itself: {status}")),
    }
    counts.cut += oracle.killed();
    Ok(())
}

/// Tells the oracle what a victim reports, and kills it after a random line.
fn hear(
    victim: &mut Child,
    random: &mut Rng,
    oracle: &mut Oracle,
    counts: &mut Counts,
) -> Result<(), String> {
    let mut lines = BufReader::new(victim.stderr.take().unwrap());
    // A seventh is killed while it opens, a third of the others while segments are made.
    let wanted = if random.usize(..7) == 0 { 0 } else { random.usize(..120) };
    let in_making = wanted > 0 && random.usize(..3) == 0;
    // Up to 16 ms, the short ones as often as the long.
    let most = 1 << random.u32(5..15);
    let pause = Duration::from_micros(random.u64(..most));
    let (mut opening, mut flushing, mut merging) = (true, 0, 0);
    let (mut heard, mut killed) = (0, false);
    let mut line = String::new();
    while lines.read_line(&mut line).unwrap() > 0 {
        let Ok(said) = serde_json::from_str(&line) else {
            // What a panic says comes in several lines.
            let more: Vec<String> = lines.lines().take(3).map_while(Result::ok).collect();
            return Err(format!("the victim says {line}{}", more.join("; ")));
        };
        line.clear();
        let mut making = |making, by: isize| match making {
            Making::Flush => flushing += by,
            Making::Merge | Making::ForceMerge => merging += by,
        };
        let begins = matches!(said, Line::Making(_));
        match said {
            Line::Opening => {}
            Line::Opened => opening = false,
            Line::Writing { thread, items } => oracle.begin(thread, items),
            Line::Wrote { thread, done } => counts.acknowledged += oracle.end(thread, done)?,
            Line::Making(what) => making(what, 1),
            Line::Made(what) => making(what, -1),
            Line::Failed(what) => return Err(what),
        }
        heard += 1;
        if !killed && heard > wanted && (begins || !in_making) {
            std::thread::sleep(pause);
            victim.kill().unwrap();
            killed = true;
        }
    }
    counts.opening += usize::from(opening);
    counts.flushing += usize::from(flushing > 0);
    counts.merging += usize::from(merging > 0);
    Ok(())
}

/// Kills victims of one table after the other, until there were `wanted` kills. `each` hears of each table.
fn kills(
    seed: u64,
    wanted: usize,
    fault: Option<Fault>,
    mut each: impl FnMut(&Counts),
) -> Result<Counts, String> {
    let _planted = plant(fault);
    let mut counts = Counts::default();
    let mut random = Rng::with_seed(seed);
    while counts.kills < wanted {
        let folder = tempfile::tempdir().unwrap();
        let table_seed = random.u64(..);
        let (mut oracle, mut here) = (Oracle::default(), 0);
        while here < OF_ONE_TABLE && counts.kills < wanted {
            let seeds = (table_seed, random.u64(..));
            let at = |what| format!("seed {seed}, table {table_seed}, victim {}: {what}", seeds.1);
            kill(folder.path(), seeds, fault, &mut oracle, &mut counts).map_err(at)?;
            here += 1;
            // One in three is left to the next victim.
            if random.usize(..3) > 0 {
                let table = victim::open(folder.path(), table_seed, &mut random)
                    .map_err(|error| at(error.to_string()))?;
                let found = token::contents(&table, ids()).map_err(|error| at(error.to_string()))?;
                counts.survived += oracle.look(found).map_err(at)?;
            }
        }
        each(&counts);
    }
    Ok(counts)
}

/// Run as a process of its own by the tests below.
#[test]
fn victim_of_a_kill() {
    let Some(folder) = std::env::var_os("LANEWISE_VICTIM") else { return };
    let seeds = std::env::var("LANEWISE_VICTIM_SEEDS").unwrap();
    let (table, seed) = seeds.split_once(' ').unwrap();
    let fault = std::env::var("LANEWISE_VICTIM_FAULT").ok();
    victim::work(Path::new(&folder), table.parse().unwrap(), seed.parse().unwrap(), fault.as_deref());
}

#[test]
fn nothing_acknowledged_is_lost_by_a_kill() {
    let of = |name: &str, usual| {
        std::env::var(name).map_or(usual, |n| n.parse().unwrap_or_else(|_| panic!("{name}: give a number")))
    };
    let (wanted, seed) = (of("LANEWISE_KILLS", 100), of("LANEWISE_SEED", 1));
    let counts = kills(seed, wanted as usize, None, |counts| println!("{counts:?}")).unwrap();
    // Kills that meet nothing prove nothing.
    assert!(counts.acknowledged > 5 * counts.kills && counts.cut > 0 && counts.opening > 0, "{counts:?}");
    assert!(counts.flushing > 0 && counts.merging > 0, "{counts:?}");
}

#[test]
fn planted_faults_are_found_by_kills() {
    for fault in FAULTS {
        let found = kills(7, 400, Some(fault), |_| ()).expect_err(&format!("{fault:?} is not found"));
        println!("{fault:?}: {}", found.chars().take(200).collect::<String>());
    }
}
