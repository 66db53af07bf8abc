//! Processes that are killed (SIGKILL) while they write: nothing acknowledged is lost, on a real disk.
//!
//! A victim, this program again, reports each write before and after; it is killed after a random line of its report, and
//! what it left, snapshots among it, is compared with an oracle by whoever opens it next: this process, or first another
//! victim, which may be killed while it opens. A kill does not lose what the system holds in memory, so that this proves
//! nothing about power cuts: crash images do (`it/tables.rs`).

#![cfg(unix)]

mod oracle;
mod report;
mod snapshots;
#[path = "../token/mod.rs"]
mod token;
mod victim;

use lanewise_storage::fault::plant;
use lanewise_storage::{Fault, Rng};
use oracle::Oracle;
use report::{Line, Making};
use snapshots::Snapshots;
use std::collections::BTreeMap;
use std::error::Error;
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// What this test must find if it is planted. (A log that is dropped early too, but only where a kill comes between two calls
/// of the system: after a hundred kills or so.)
const FAULTS: [Fault; 3] = [Fault::TombstonesLost, Fault::ReplayedTooLate, Fault::DeadFound];

/// Kills that one table meets.
const OF_ONE_TABLE: usize = 20;
/// Tables that are at work at once.
const JOBS: usize = 2;

/// Below a table's folder: the table, and the repository of its snapshots.
const TABLE: &str = "table";
const BACKUP: &str = "backup";

/// Threads of a victim, at most.
const THREADS: usize = 4;

/// Documents that anybody writes.
fn ids() -> impl ExactSizeIterator<Item = String> {
    (0..40).map(|i| format!("d{i}"))
}

/// The document that is in each load of a thread, and in nothing else.
fn alone(thread: usize) -> String {
    format!("of-thread-{thread}")
}

fn all_ids() -> impl Iterator<Item = String> {
    ids().chain((0..THREADS).map(alone))
}

/// When kills come.
const MOMENTS: [&str; 5] =
    ["while opening", "while flushing", "while merging", "while loading", "while saving"];

/// What the kills met, by name.
#[derive(Clone, Debug, Default)]
struct Counts(BTreeMap<&'static str, usize>);

impl Counts {
    fn add(&mut self, what: &'static str, count: usize) {
        *self.0.entry(what).or_default() += count;
    }

    fn of(&self, what: &str) -> usize {
        self.0.get(what).copied().unwrap_or(0)
    }
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
        Some(libc::SIGKILL) => counts.add("kills", 1),
        None if status.success() => counts.add("victims that ended before", 1),
        _ => return Err(format!("the victim ended by itself: {status}")),
    }
    counts.add("writes cut off", oracle.killed());
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
    // A seventh is killed while it opens, a third of the others while segments or snapshots are made.
    let wanted = if random.usize(..7) == 0 { 0 } else { random.usize(..120) };
    let in_making = wanted > 0 && random.usize(..3) == 0;
    // Up to 16 ms, the short ones as often as the long; a load ends after 20 ms and more.
    let most = 1 << if in_making { random.u32(10..18) } else { random.u32(5..15) };
    let pause = Duration::from_micros(random.u64(..most));
    let (mut opening, mut flushing, mut merging, mut loading, mut saving) = (true, 0, 0, 0, 0);
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
        let begins = matches!(said, Line::Making(_) | Line::Loading { .. } | Line::Saving(_));
        match said {
            Line::Opening => {}
            Line::Opened => opening = false,
            Line::Writing { thread, items } => oracle.begin(thread, items, false),
            Line::Wrote { thread, done } => counts.add("writes", oracle.end(thread, done)?),
            Line::Loading { thread, items } => {
                loading += 1;
                oracle.begin(thread, items, true);
            }
            Line::Loaded { thread, seq } => {
                loading -= 1;
                counts.add("loads", 1);
                counts.add("writes", oracle.loaded(thread, seq)?);
            }
            Line::Saving(name) => {
                saving += 1;
                oracle.save(name);
            }
            Line::Saved => {
                saving -= 1;
                counts.add("snapshots", 1);
                oracle.saved(true);
            }
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
    let was = [opening, flushing > 0, merging > 0, loading > 0, saving > 0];
    MOMENTS.into_iter().zip(was).for_each(|(what, was)| counts.add(what, usize::from(was)));
    Ok(())
}

/// Kills victims of one table. What was met, until something was wrong.
fn kills_of_one(table_seed: u64, fault: Option<Fault>, counts: &mut Counts) -> Result<(), String> {
    let folder = tempfile::tempdir().unwrap();
    for name in [TABLE, BACKUP] {
        std::fs::create_dir(folder.path().join(name)).unwrap();
    }
    let mut random = Rng::with_seed(table_seed);
    let (mut oracle, mut snapshots) = (Oracle::default(), Snapshots::default());
    while counts.of("kills") < OF_ONE_TABLE {
        let seeds = (table_seed, random.u64(..));
        let at = |what| format!("table {table_seed}, victim {}: {what}", seeds.1);
        kill(folder.path(), seeds, fault, &mut oracle, counts).map_err(at)?;
        // One in three is left to the next victim.
        if random.usize(..3) > 0 {
            look(folder.path(), table_seed, &mut oracle, &mut snapshots, &mut random, counts)
                .map_err(|error| at(error.to_string()))?;
        }
    }
    Ok(())
}

/// Opens what victims left.
fn look(
    folder: &Path,
    table_seed: u64,
    oracle: &mut Oracle,
    snapshots: &mut Snapshots,
    random: &mut Rng,
    counts: &mut Counts,
) -> Result<(), Box<dyn Error>> {
    let restored = snapshots.look(folder, oracle, random)?;
    counts.add("snapshots restored", restored);
    let table = victim::open(folder, table_seed, random)?;
    let found = token::contents(&table, all_ids())?;
    counts.add("writes cut off that are there", oracle.look(found)?);
    Ok(())
}

/// Kills victims of one table after the other, of several at once, until there were `wanted` kills. `each` hears of each
/// table.
#[expect(clippy::disallowed_methods, reason = "most of the time they wait")]
fn kills(
    seed: u64,
    wanted: usize,
    fault: Option<Fault>,
    each: impl Fn(&Counts) + Sync,
) -> Result<Counts, String> {
    let _planted = plant(fault);
    let state = Mutex::new((Rng::with_seed(seed), Counts::default(), Ok(())));
    let lock = || state.lock().unwrap_or_else(PoisonError::into_inner);
    let work = || {
        loop {
            let table_seed = {
                let (random, counts, wrong) = &mut *lock();
                if wrong.is_err() || counts.of("tables") * OF_ONE_TABLE >= wanted {
                    return;
                }
                counts.add("tables", 1);
                random.u64(..)
            };
            let mut here = Counts::default();
            let done = kills_of_one(table_seed, fault, &mut here);
            let (_, counts, wrong) = &mut *lock();
            here.0.into_iter().for_each(|(what, count)| counts.add(what, count));
            *wrong = std::mem::replace(wrong, Ok(())).and(done);
            each(counts);
        }
    };
    std::thread::scope(|scope| (0..JOBS).for_each(|_| drop(scope.spawn(work))));
    let (_, counts, wrong) = state.into_inner().unwrap();
    wrong.map(|()| counts).map_err(|what| format!("seed {seed}, {what}"))
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
    let counts = kills(seed, wanted as usize, None, |counts| println!("{:?}", counts.0)).unwrap();
    // Kills that meet nothing prove nothing.
    assert!(counts.of("writes") > 5 * counts.of("kills"), "{counts:?}");
    let met = ["writes cut off", "snapshots restored"].into_iter().chain(MOMENTS);
    assert!(met.into_iter().all(|what| counts.of(what) > 0), "{counts:?}");
}

#[test]
fn planted_faults_are_found_by_kills() {
    for fault in FAULTS {
        let found = kills(7, 400, Some(fault), |_| ()).expect_err(&format!("{fault:?} is not found"));
        println!("{fault:?}: {}", found.chars().take(200).collect::<String>());
    }
}
