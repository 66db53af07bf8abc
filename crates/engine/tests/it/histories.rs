//! What several threads see of a table that they write, read, seal and merge at the same time is what a table would give
//! that does one thing after the other.

use crate::check::resources;
use crate::sequential::{Asked, Condition, Event, Saw, check};
use crate::token::{self, Found, GROUPS, nearest};
use lanewise_engine::documents::Query;
use lanewise_engine::table::{MergePolicy, Outcome, Table, When, Write, WriteError};
use lanewise_storage::{Disk, Memory, Rng, Storage};
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

const THREADS: usize = 3;
const CALLS: usize = 150;
const IDS: usize = 6;

fn id(random: &mut Rng) -> String {
    format!("d{}", random.usize(..IDS))
}

/// A write, sometimes on what the writer believes.
fn asked(table: &Table, id: String, random: &mut Rng) -> Asked {
    let when = match random.usize(..4) {
        0 => Condition::Absent,
        1 => table.get(&id).unwrap().map_or(Condition::Absent, |document| Condition::Seq(document.seq)),
        _ => Condition::Always,
    };
    Asked { id, put: (random.usize(..3) > 0).then(|| random.u64(..1 << 53)), when }
}

fn write(asked: &Asked) -> Write {
    let (id, when) = (
        asked.id.clone(),
        match asked.when {
            Condition::Always => When::Always,
            Condition::Absent => When::Absent,
            Condition::Seq(seq) => When::Seq(seq),
        },
    );
    match asked.put {
        Some(token) => {
            Write::Put { id: Some(id), document: token::document(token), vectors: Vec::new(), when }
        }
        None => Write::Delete { id, when },
    }
}

/// One random call, and what it said.
fn call(table: &Table, clock: &AtomicU64, random: &mut Rng) -> Vec<Event> {
    let tick = || clock.fetch_add(1, Ordering::SeqCst);
    let one = |start: u64, saw: Saw| vec![Event { start, end: tick(), saw }];
    match random.usize(..10) {
        0..5 => {
            // Of different documents: none in the call meets another.
            let ids: BTreeSet<String> = (0..1 + random.usize(..3)).map(|_| id(random)).collect();
            let asked: Vec<Asked> = ids.into_iter().map(|id| asked(table, id, random)).collect();
            let start = tick();
            let results = table.write(asked.iter().map(write).collect());
            let end = tick();
            let event = |(asked, result): (Asked, Result<_, _>)| {
                let saw = match result {
                    Ok(lanewise_engine::table::Written { outcome: Outcome::Missing, .. }) => {
                        Saw::Missing { id: asked.id }
                    }
                    Ok(written) => {
                        let created = written.outcome == Outcome::Created;
                        Saw::Wrote { asked, seq: written.seq, version: written.version, created }
                    }
                    Err(WriteError::Conflict { found, .. }) => Saw::Conflict { asked, met: found },
                    Err(error) => panic!("{asked:?}: {error}"),
                };
                Event { start, end, saw }
            };
            asked.into_iter().zip(results).map(event).collect()
        }
        5 | 6 => {
            let (id, start) = (id(random), tick());
            let found = table.get(&id).unwrap();
            let found = found.map(|document| Found {
                token: token::read(&document.source).unwrap(),
                seq: document.seq,
                version: document.version,
            });
            one(start, Saw::Got { id, found })
        }
        7 => {
            let start = tick();
            let len = table.len();
            one(start, Saw::Counted(len))
        }
        kind => {
            let group = random.bool().then(|| random.u64(..GROUPS));
            let filter = group.map(|group| Query::Term { field: "group".to_owned(), value: json!(group) });
            let vectors = kind == 8;
            let start = tick();
            let hits = if vectors {
                nearest(table, &[1.0, 2.0, 3.0, 4.0], IDS, true, filter.as_ref()).unwrap()
            } else {
                token::matching(table, filter.as_ref(), IDS).unwrap().0
            };
            let count = hits.len();
            let found: BTreeSet<(String, u64)> = hits.into_iter().map(|hit| (hit.id, hit.seq)).collect();
            assert_eq!(found.len(), count, "one document twice");
            one(start, Saw::Listed { group, vectors, found })
        }
    }
}

/// A random history of several threads. Says how many reads had a choice of places.
#[expect(clippy::disallowed_methods, reason = "threads of the test's own")]
fn history(seed: u64, storage: Arc<dyn Storage>) -> Result<usize, String> {
    let mut random = Rng::with_seed(seed);
    let table = Table::create(storage, token::schema(&mut random), resources()).unwrap();
    let (clock, writing) = (AtomicU64::new(0), AtomicUsize::new(THREADS));
    let mut events = Vec::new();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|_| {
                let mut random = Rng::with_seed(random.u64(..));
                let (table, clock, writing) = (&table, &clock, &writing);
                scope.spawn(move || {
                    let _ends = Ends(writing);
                    (0..CALLS).flat_map(|_| call(table, clock, &mut random)).collect::<Vec<Event>>()
                })
            })
            .collect();
        let policy = MergePolicy { segments_per_tier: 2, floor_segment: 1, ..MergePolicy::default() };
        while writing.load(Ordering::SeqCst) > 0 {
            match random.usize(..3) {
                0 => table.flush().unwrap(),
                1 => drop(table.merge(&policy).unwrap()),
                _ => table.force_merge(1 + random.usize(..2)).unwrap(),
            }
        }
        for thread in threads {
            events.extend(thread.join().unwrap());
        }
    });
    let (open, last) = check(&events).map_err(|what| format!("seed {seed}: {what}"))?;
    let found = token::contents(&table, (0..IDS).map(|i| format!("d{i}"))).map_err(|error| error.to_string());
    if found.as_ref() == Ok(&last) {
        Ok(open)
    } else {
        Err(format!("seed {seed}: at the end {found:?}, not {last:?}"))
    }
}

/// Counts a thread out, even if it panics.
struct Ends<'a>(&'a AtomicUsize);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[test]
fn what_threads_see_at_the_same_time_has_an_order() {
    let wanted: u64 =
        std::env::var("LANEWISE_HISTORIES").map_or(20, |n| n.parse().expect("a number of histories"));
    let mut open = 0;
    for seed in 0..wanted {
        // A disk makes writers wait for each other, memory makes more of them.
        open += if seed % 4 == 0 {
            let folder = tempfile::tempdir().unwrap();
            history(seed, Arc::new(Disk::new(folder.path()).unwrap())).unwrap()
        } else {
            history(seed, Arc::new(Memory::new())).unwrap()
        };
    }
    println!("{wanted} histories, {open} reads beside writes");
    assert!(open as u64 > wanted, "threads that never meet prove nothing: {open}");
}
