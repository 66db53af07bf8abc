//! A real file system without room, or without names (inodes): writes are refused and say why, reads and searches go on,
//! flushes and merges fail without loss, tables open, and writes resume when there is room, without being opened again.
//!
//! Needs a small file system, empty, in `LANEWISE_SMALL_DISK`: `scripts/reliability full` makes one.

#![cfg(unix)]

#[path = "../token/mod.rs"]
mod token;

use lanewise_engine::scheduler::{Layout, Options, Workers};
use lanewise_engine::table::{Outcome, Resources, Table, When, Write};
use lanewise_engine::{Admission, MemoryLimit, Pool, Threads};
use lanewise_storage::{Disk, Rng};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{ErrorKind, Write as _};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use token::{Found, contents};

type Model = BTreeMap<String, Found>;

fn ids() -> impl ExactSizeIterator<Item = String> {
    (0..60).map(|i| format!("d{i}"))
}

fn resources() -> Resources {
    let workers = Workers::Unbound(Layout::new(&[1, 1]));
    let pool = Pool::start(Options { workers, ..Options::default() }).unwrap();
    let admission = Admission::new(MemoryLimit::Unlimited, NonZeroUsize::MIN);
    Resources { threads: Threads::new(NonZeroUsize::new(1)), pool: Arc::new(pool), admission }
}

/// What there is none of.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Short {
    Bytes,
    Names,
}

/// Takes all room, but for a random rest.
fn fill(folder: &Path, short: Short, random: &mut Rng) {
    fs::create_dir(folder).unwrap();
    let full = |error: std::io::Error| assert_eq!(error.kind(), ErrorKind::StorageFull, "{error}");
    match short {
        Short::Names => {
            let mut made = Vec::new();
            let failed = (0..).find_map(|i| {
                made.push(folder.join(i.to_string()));
                File::create_new(made.last().unwrap()).err()
            });
            full(failed.unwrap());
            made.pop();
            for path in made.iter().rev().take(random.usize(..10)) {
                fs::remove_file(path).unwrap();
            }
        }
        Short::Bytes => {
            let path = folder.join("ballast");
            let mut ballast = File::create_new(&path).unwrap();
            let mut piece = 1 << 16;
            // Smaller and smaller, to the last byte.
            while piece > 0 {
                if let Err(error) = ballast.write_all(&vec![1; piece]) {
                    full(error);
                    piece /= 2;
                }
            }
            let _ = ballast.sync_all();
            let left = [0, 1, 4096, 20_000, 150_000][random.usize(..5)];
            ballast.set_len(ballast.metadata().unwrap().len().saturating_sub(left)).unwrap();
            let _ = ballast.sync_all();
        }
    }
}

/// Writes at random, and what was acknowledged into the model; the texts of errors.
fn write(table: &Table, model: &mut Model, calls: usize, random: &mut Rng) -> Vec<String> {
    let mut errors = Vec::new();
    for _ in 0..calls {
        let mut asked: BTreeMap<String, Option<u64>> = BTreeMap::new();
        for _ in 0..1 + random.usize(..4) {
            let token = (random.usize(..5) > 0).then(|| random.u64(..1 << 53));
            asked.insert(random.choice(ids()).unwrap(), token);
        }
        let when = When::Always;
        let writes = asked.iter().map(|(id, put)| match put {
            Some(token) => {
                let (id, document) = (Some(id.clone()), token::document(*token));
                Write::Put { id, document, vectors: Vec::new(), when }
            }
            None => Write::Delete { id: id.clone(), when },
        });
        let results = table.write(writes.collect());
        for ((id, put), result) in asked.into_iter().zip(results) {
            match (result, put) {
                (Ok(written), _) if written.outcome == Outcome::Missing => {}
                (Ok(written), Some(token)) => {
                    model.insert(id, Found { token, seq: written.seq, version: written.version });
                }
                (Ok(_), None) => drop(model.remove(&id)),
                (Err(error), _) => errors.push(error.to_string()),
            }
        }
    }
    errors
}

/// What was refused, over all rounds.
#[derive(Debug, Default)]
struct Counts {
    rounds: usize,
    writes: usize,
    flushes: usize,
    merges: usize,
    creations: usize,
}

fn round(root: &Path, short: Short, seed: u64, counts: &mut Counts) {
    let random = &mut Rng::with_seed(seed);
    let said = |what: &str| format!("{short:?}, seed {seed}: {what}");
    let (folder, ballast) = (root.join("table"), root.join("full"));
    fs::create_dir(&folder).unwrap();
    let disk = || Arc::new(Disk::new(&folder).unwrap());
    let mut table = Table::create(disk(), token::schema(random), resources()).unwrap();
    let mut model = Model::new();
    let check = |table: &Table, model: &Model, when: &str| {
        let found = contents(table, ids()).unwrap_or_else(|error| panic!("{}: {error}", said(when)));
        assert!(found == *model, "{}: {found:?}, not {model:?}", said(when));
    };
    let names_it = |error: &str| assert!(error.contains("No space left"), "{}", said(error));
    for _ in 0..3 {
        assert_eq!(write(&table, &mut model, 20, random), [""; 0], "{}", said("with room"));
        if random.bool() {
            table.flush().unwrap();
        }
        fill(&ballast, short, random);
        for _ in 0..3 {
            let errors = write(&table, &mut model, 30, random);
            errors.iter().for_each(|error| names_it(error));
            counts.writes += errors.len();
            check(&table, &model, "full");
            if let Err(error) = table.flush() {
                names_it(&error.to_string());
                counts.flushes += 1;
            }
            check(&table, &model, "after a flush");
            if let Err(error) = table.force_merge(1) {
                names_it(&error.to_string());
                counts.merges += 1;
            }
            check(&table, &model, "after a merge");
            if random.usize(..3) == 0 {
                drop(table);
                table = Table::open(disk(), resources())
                    .unwrap_or_else(|error| panic!("{}", said(&error.to_string())));
                check(&table, &model, "opened without room");
            }
        }
        let second = root.join("second");
        let created = fs::create_dir(&second).map_err(|error| error.to_string()).and_then(|()| {
            let disk = Arc::new(Disk::new(&second).unwrap());
            let created = Table::create(disk, token::schema(random), resources());
            created.map(drop).map_err(|error| error.to_string())
        });
        if let Err(error) = created {
            names_it(&error);
            counts.creations += 1;
        }
        fs::remove_dir_all(&ballast).unwrap();
        // What a creation left is no hindrance.
        if second.exists() && Disk::new(&second).is_ok() {
            let disk = || Arc::new(Disk::new(&second).unwrap());
            let opened = Table::open(disk(), resources());
            opened.or_else(|_| Table::create(disk(), token::schema(random), resources())).unwrap();
            fs::remove_dir_all(&second).unwrap();
        }
        assert_eq!(write(&table, &mut model, 10, random), [""; 0], "{}", said("with room again"));
        check(&table, &model, "with room again");
    }
    table.flush().unwrap();
    table.force_merge(1).unwrap();
    drop(table);
    check(&Table::open(disk(), resources()).unwrap(), &model, "at the end");
    fs::remove_dir_all(&folder).unwrap();
    counts.rounds += 1;
}

#[test]
#[ignore = "needs a small file system: scripts/reliability full"]
fn a_full_disk_refuses_writes_and_loses_nothing() {
    let root = std::env::var_os("LANEWISE_SMALL_DISK").map(PathBuf::from);
    let root = root.expect("LANEWISE_SMALL_DISK: name an empty folder of a file system of a few MiB");
    let wanted: u64 =
        std::env::var("LANEWISE_ROUNDS").map_or(3, |n| n.parse().expect("LANEWISE_ROUNDS: a number"));
    for short in [Short::Bytes, Short::Names] {
        let mut counts = Counts::default();
        (0..wanted).for_each(|seed| round(&root, short, seed, &mut counts));
        println!("{short:?}: {counts:?}");
        // What is never refused was never short.
        let Counts { writes, flushes, merges, creations, .. } = counts;
        // Without names the log still takes writes in, as long as its file lasts.
        assert!(writes > 0 || short == Short::Names, "no write was refused");
        assert!(flushes > 0 && merges > 0 && creations > 0, "{flushes} {merges} {creations}");
    }
}
