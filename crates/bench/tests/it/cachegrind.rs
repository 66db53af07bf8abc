//! The simulator's caches against cachegrind's, on a trace that `replay` reads by real loads.
//!
//! The replay walks through the trace itself, which misses too: a dry run says how often, and its misses are taken off. That
//! the walk takes some of the cache's lines remains. Needs valgrind; `make sim-cachegrind` asks for it.

use lanewise_scheduler::sim::cache::{Levels, Replacement, Sets};
use lanewise_scheduler::sim::random::{Random, Zipf};
use lanewise_scheduler::sim::trace::{self, Access, Record, TraceWriter};
use std::path::Path;
use std::process::Command;

/// Bytes, ways.
type Geometry = (u64, usize);

/// A graph's searches over 20 MB and lists' scans over 16 MB, with heat.
fn write_trace(path: &Path) {
    const ROWS: u64 = 32_768;
    const LISTS: u64 = 256;
    let mut random = Random::new(42);
    let mut writer = TraceWriter::new(Vec::new(), "for cachegrind", true).unwrap();
    writer.table("graph", Access::Gathered, ROWS * (512 + 128)).unwrap();
    writer.table("lists", Access::Streamed, LISTS * 65_536).unwrap();
    let (rows, lists) = (Zipf::new(ROWS, 0.9), Zipf::new(LISTS, 0.8));
    for _ in 0..150 {
        let mut touched = Vec::new();
        for _ in 0..60 {
            let links = rows.draw(&mut random).wrapping_mul(12_345) % ROWS;
            touched.push((ROWS * 512 + links * 128, 128));
            for _ in 0..10 {
                touched.push((rows.draw(&mut random).wrapping_mul(7_919) % ROWS * 512, 512));
            }
        }
        writer.query(0, false).unwrap();
        writer.task(None, 1, &touched).unwrap();
        writer.query(1, false).unwrap();
        let list = lists.draw(&mut random);
        writer.task(Some(list as u32), 1, &[(list * 65_536, 20_000 + (list as u32 * 997) % 45_000)]).unwrap();
    }
    std::fs::write(path, writer.finish().unwrap()).unwrap();
}

/// Reads that missed in the first cache and in the last, as cachegrind counts them.
fn counted(trace: &Path, first: Geometry, last: Geometry, dry: bool) -> [u64; 2] {
    let out = trace.with_extension(if dry { "dry" } else { "out" });
    let mut command = Command::new("valgrind");
    command
        .args(["-q", "--tool=cachegrind", "--cache-sim=yes", "--I1=32768,8,64"])
        .arg(format!("--D1={},{},64", first.0, first.1))
        .arg(format!("--LL={},{},64", last.0, last.1))
        .arg(format!("--cachegrind-out-file={}", out.display()))
        .arg(env!("CARGO_BIN_EXE_replay"))
        .arg(trace);
    if dry {
        command.arg("--dry");
    }
    let ended = command.output().expect("valgrind runs");
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    let text = std::fs::read_to_string(&out).unwrap();
    let words = |key: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(key)).expect("cachegrind writes it");
        line.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    let (events, sums) = (words("events:"), words("summary:"));
    ["D1mr", "DLmr"].map(|name| sums[events.iter().position(|event| event == name).unwrap()].parse().unwrap())
}

#[test]
fn caches_miss_as_often_as_cachegrinds() {
    if Command::new("valgrind").arg("--version").output().is_err() {
        println!("skipped: no valgrind");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace");
    write_trace(&path);
    let bytes = std::fs::read(&path).unwrap();
    let trace = trace::read([&bytes[..]]).unwrap();
    for (first, last) in
        [((32 << 10, 8), (1 << 20, 16)), ((48 << 10, 12), (8 << 20, 16)), ((16 << 10, 4), (256 << 10, 8))]
    {
        let sets = |geometry: Geometry| Sets::new(geometry.0 / 64, geometry.1, Replacement::Lru, 0);
        let mut levels = Levels { first: sets(first), last: sets(last) };
        let mut simulated = [0u64; 2];
        for span in &trace.spans {
            for object in span.first as usize..(span.first + span.count) as usize {
                let start = trace.starts[object];
                for line in start..start + u64::from(trace.lines[object]) {
                    let (missed_first, missed_last) = levels.touch(line);
                    simulated[0] += u64::from(missed_first);
                    simulated[1] += u64::from(missed_last);
                }
            }
        }
        let (loads, walk) = (counted(&path, first, last, false), counted(&path, first, last, true));
        for (level, (simulated, (loads, walk))) in
            simulated.into_iter().zip(loads.into_iter().zip(walk)).enumerate()
        {
            let counted = loads - walk;
            let ratio = simulated as f64 / counted as f64;
            println!(
                "{first:?} {last:?} level {level}: {simulated} simulated, {counted} counted ({walk} of the walk taken off), \
                 ratio {ratio:.4}"
            );
            assert!((0.98..=1.02).contains(&ratio), "{simulated} misses for {counted}");
        }
    }
}
