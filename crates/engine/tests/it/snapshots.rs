//! Snapshots: what is restored is what the table was, whatever fails on the way; nothing is copied twice, nothing that is
//! needed is removed.

use crate::check::{
    Model, compare, delete, differs, files, history, open, put, random_write, resources, schema,
};
use lanewise_engine::table::{Repository, SnapshotError, Table, check};
use lanewise_storage::{Call, Failure, Faulty, Memory, Rng, Storage};
use serde_json::json;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn go_on(_: u64, _: u64) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn repository(memory: &Memory) -> Repository {
    Repository::new(Arc::new(memory.clone()))
}

fn all(memory: &Memory) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = Vec::new();
    files(memory, Path::new(""), &mut all);
    all.into_iter().collect()
}

fn restored(repository: &Repository, name: &str) -> Memory {
    let memory = Memory::new();
    repository.restore(name, &memory, &mut go_on).unwrap();
    memory
}

/// How a restored table differs from what it should be: the model, and each document's sequence number.
fn wrong(repository: &Repository, name: &str, model: &Model, seqs: &[Option<u64>]) -> Option<String> {
    let memory = restored(repository, name);
    let storage: Arc<dyn Storage> = Arc::new(memory.clone());
    let report = check(&storage, &mut go_on).unwrap();
    assert_eq!(report.findings, [], "{name}");
    let table = open(storage);
    assert_eq!(seqs_of(&table), seqs, "{name}");
    if let Some(what) = differs(&table, model) {
        return Some(what);
    }
    // And it goes on, with numbers of its own.
    let last = seqs.iter().flatten().max().copied().unwrap_or(0);
    assert!(table.write(vec![put("d0", json!({"n": 9}))]).remove(0).unwrap().seq > last);
    table.flush().unwrap();
    drop(table);
    let table = open(Arc::new(memory));
    (table.get("d0").unwrap().unwrap().source != br#"{"n":9}"#).then(|| "it does not go on".to_owned())
}

fn seqs_of(table: &Table) -> Vec<Option<u64>> {
    (0..crate::check::IDS).map(|i| table.get(&format!("d{i}")).unwrap().map(|found| found.seq)).collect()
}

/// What is in the log and not in a segment comes along without room on the table's disk, whichever call meets its end.
#[test]
fn a_snapshot_is_made_of_a_table_whose_disk_is_full() {
    for after in 0..25 {
        let faulty = Faulty::new(Arc::new(Memory::new()));
        let table = Table::create(Arc::new(faulty.clone()), schema(), resources()).unwrap();
        let (mut random, mut model) = (Rng::with_seed(after), Model::new());
        for step in 0..40 {
            table.write(vec![random_write(&mut random, &mut model)]).remove(0).unwrap();
            if step == 20 {
                table.flush().unwrap();
            }
        }
        faulty.fail(&Call::WRITES, after, false, Failure::Full);
        assert!(after > 0 || table.flush().is_err(), "or this test is of nothing");
        let (target, seqs) = (Memory::new(), seqs_of(&table));
        let made = table.snapshot(&repository(&target), "a", 0, &mut go_on);
        assert!(made.is_ok(), "full after {after} calls: {made:?}");
        assert_eq!(wrong(&repository(&target), "a", &model, &seqs), None, "full after {after} calls");
        // The table goes on where it was.
        faulty.heal();
        assert_eq!(differs(&table, &model), None);
        table.write(vec![random_write(&mut random, &mut model)]).remove(0).unwrap();
        table.flush().unwrap();
        assert_eq!(differs(&table, &model), None);
    }
}

#[test]
fn what_is_restored_is_what_the_table_was() {
    for seed in 0..8 {
        let (storage, backup) = (Memory::new(), Memory::new());
        let repository = repository(&backup);
        let mut model = history(700 + seed, &storage, 15).unwrap().pop().unwrap();
        let mut random = Rng::with_seed(seed);
        let mut taken = Vec::new();
        let table = open(Arc::new(storage));
        for number in 0..6 {
            let name = format!("s{number}");
            let made = table.snapshot(&repository, &name, 1000 + number, &mut go_on).unwrap();
            assert_eq!((made.documents, made.created_ms), (model.len() as u64, 1000 + number));
            taken.push((name, model.clone(), seqs_of(&table)));
            for _ in 0..random.usize(..8) {
                table.write(vec![random_write(&mut random, &mut model)]).remove(0).unwrap();
            }
            match random.usize(..4) {
                0 => table.force_merge(1).unwrap(),
                1 => table.flush().unwrap(),
                _ => {}
            }
            if random.usize(..3) == 0 {
                let (name, ..) = taken.swap_remove(random.usize(..taken.len()));
                repository.delete(&name).unwrap();
            }
        }
        for (name, model, seqs) in &taken {
            assert_eq!(wrong(&repository, name, model, seqs), None, "seed {seed}, {name}");
            assert_eq!(repository.verify(name, &mut go_on).unwrap(), []);
        }
        let mut names: Vec<&String> = taken.iter().map(|(name, ..)| name).collect();
        names.sort();
        let listed = repository.list().unwrap();
        assert!(listed.iter().map(|(name, _)| name).eq(names), "{listed:?}");
        assert!(listed.iter().all(|(_, read)| read.is_ok()));
        for (name, ..) in taken {
            repository.delete(&name).unwrap();
        }
        assert_eq!(all(&backup).into_keys().collect::<Vec<_>>(), [Path::new("lock")]);
    }
}

#[test]
fn what_is_there_is_not_copied_again() {
    let backup = Memory::new();
    let repository = repository(&backup);
    let storage = Memory::new();
    let table = Table::create(Arc::new(storage.clone()), schema(), resources()).unwrap();
    let write = |n: usize| table.write((0..n).map(|i| put(&format!("d{i}"), json!({"n": i}))).collect());
    write(5).into_iter().for_each(|written| drop(written.unwrap()));
    let first = table.snapshot(&repository, "a", 1, &mut go_on).unwrap();
    assert!(first.copied > 0 && first.copied == first.bytes);
    let again = table.snapshot(&repository, "b", 2, &mut go_on).unwrap();
    assert_eq!((again.copied, again.bytes), (0, first.bytes));
    // Dead rows are the snapshot's own, and few.
    table.write(vec![delete("d1")]).remove(0).unwrap();
    let third = table.snapshot(&repository, "c", 3, &mut go_on).unwrap();
    assert!(third.copied == 0 && third.documents == 4 && third.bytes > first.bytes, "{third:?}");
    // A copy of the table's folder writes another segment of the same number and identity.
    let copied = storage.journal().killed(storage.journal().len());
    let other = open(Arc::new(copied));
    for (table, id) in [(&table, "d8"), (&other, "d9")] {
        table.write(vec![put(id, json!({"n": 1}))]).remove(0).unwrap();
        table.snapshot(&repository, id, 4, &mut go_on).unwrap();
    }
    for (table, name) in [(&table, "d8"), (&other, "d9")] {
        let back = open(Arc::new(restored(&repository, name)));
        assert_eq!((seqs_of(&back), back.len()), (seqs_of(table), 5));
    }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "threads of the test's own")]
fn snapshots_are_of_one_moment_while_writes_and_merges_go_on() {
    let backup = Memory::new();
    let repository = repository(&backup);
    let table = Table::create(Arc::new(Memory::new()), schema(), resources()).unwrap();
    let done = std::sync::atomic::AtomicBool::new(false);
    let mut models = vec![Model::new()];
    let made = std::sync::atomic::AtomicUsize::new(0);
    let taken = std::thread::scope(|scope| {
        let merging = scope.spawn(|| {
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                table.flush().unwrap();
                table.force_merge(1).unwrap();
                // Locks are not fair: whoever saves wants one too.
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
        });
        let saving = scope.spawn(|| {
            let mut taken = 0;
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                table.snapshot(&repository, &taken.to_string(), 0, &mut go_on).unwrap();
                taken += 1;
                made.store(taken, std::sync::atomic::Ordering::Relaxed);
            }
            taken
        });
        let mut random = Rng::with_seed(3);
        let few = || made.load(std::sync::atomic::Ordering::Relaxed) < 5;
        while models.len() < 200 || few() && !saving.is_finished() && !merging.is_finished() {
            if models.len() > 2000 {
                // Enough: the others may be slow.
                std::thread::sleep(std::time::Duration::from_millis(1));
                continue;
            }
            let mut model = models.last().unwrap().clone();
            table.write(vec![random_write(&mut random, &mut model)]).remove(0).unwrap();
            models.push(model);
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        merging.join().unwrap();
        saving.join().unwrap()
    });
    let mut from = 0;
    for name in 0..taken {
        let back = open(Arc::new(restored(&repository, &name.to_string())));
        let moment = models[from..].iter().position(|model| compare(&back, model).unwrap().is_none());
        from += moment.unwrap_or_else(|| panic!("snapshot {name} is of no moment since the last"));
    }
    println!("{taken} snapshots");
}

/// A table and a repository with one snapshot of it, which later ones must not harm.
fn prepared() -> (Memory, Memory, Model) {
    let (storage, backup) = (Memory::new(), Memory::new());
    let mut model = history(3, &storage, 12).unwrap().pop().unwrap();
    let table = open(Arc::new(storage.clone()));
    table.snapshot(&repository(&backup), "first", 1, &mut go_on).unwrap();
    let mut random = Rng::with_seed(1);
    for _ in 0..5 {
        table.write(vec![random_write(&mut random, &mut model)]).remove(0).unwrap();
    }
    table.flush().unwrap();
    (storage, backup, model)
}

#[test]
fn a_crash_leaves_snapshots_whole_or_not_there() {
    let (storage, backup, model) = prepared();
    let first = all(&restored(&repository(&backup), "first")).len();
    let start = backup.journal().len();
    let table = open(Arc::new(storage));
    let seqs = seqs_of(&table);
    table.snapshot(&repository(&backup), "second", 2, &mut go_on).unwrap();
    repository(&backup).delete("first").unwrap();
    let (journal, mut random) = (backup.journal(), Rng::with_seed(9));
    let (mut crashes, mut seen) = (0, [0, 0]);
    for at in journal.syncs().filter(|at| *at >= start).flat_map(|at| [at, at + 1]) {
        for _ in 0..3 {
            let image = journal.image(at, &mut random);
            let repository = repository(&image);
            for (name, read) in repository.list().unwrap() {
                read.unwrap();
                assert_eq!(repository.verify(&name, &mut go_on).unwrap(), [], "{name}, crash at {at}");
                if name == "second" {
                    assert_eq!(wrong(&repository, &name, &model, &seqs), None, "crash at {at}");
                    seen[1] += 1;
                } else {
                    assert_eq!(all(&restored(&repository, &name)).len(), first);
                    seen[0] += 1;
                }
            }
            // It goes on: what is left is removed, or used.
            let name = "third";
            table.snapshot(&repository, name, 3, &mut go_on).unwrap();
            for (name, _) in repository.list().unwrap() {
                repository.delete(&name).unwrap();
            }
            assert_eq!(all(&image).into_keys().collect::<Vec<_>>(), [Path::new("lock")], "crash at {at}");
            crashes += 1;
        }
    }
    println!("{crashes} crashes, snapshots seen {seen:?}");
    assert!(crashes > 30 && seen.iter().all(|seen| *seen > 5), "{crashes}, {seen:?}");
}

#[test]
fn a_restore_is_all_or_nothing() {
    let (storage, backup, model) = prepared();
    let table = open(Arc::new(storage));
    let repository = repository(&backup);
    table.snapshot(&repository, "all", 2, &mut go_on).unwrap();
    let seqs = seqs_of(&table);
    assert_eq!(wrong(&repository, "all", &model, &seqs), None);
    // Calls that fail, one after the other; then it is tried again in the same folder.
    let mut site = 0;
    loop {
        let memory = Memory::new();
        let faulty = Faulty::new(Arc::new(memory.clone()));
        faulty.fail(&Call::ALL, site, site % 2 == 0, Failure::Full);
        let failed = repository.restore("all", &faulty, &mut go_on).is_err();
        if faulty.failed() == 0 {
            break;
        }
        faulty.heal();
        if failed && Table::open(Arc::new(memory.clone()), resources()).is_err() {
            drop(repository.restore("all", &memory, &mut go_on).unwrap());
        }
        assert_eq!(differs(&open(Arc::new(memory)), &model), None, "call {site}");
        site += 1;
    }
    assert!(site > 20, "{site}");
    // Crashes.
    let memory = restored(&repository, "all");
    let (journal, mut random) = (memory.journal(), Rng::with_seed(4));
    for at in journal.syncs().flat_map(|at| [at, at + 1]) {
        let image = journal.image(at, &mut random);
        if Table::open(Arc::new(image.clone()), resources()).is_err() {
            // Whose file nobody has seen yet may be there without its mark.
            match repository.restore("all", &image, &mut go_on) {
                Ok(_) => {}
                Err(error) => panic!("crash at {at}: {error}"),
            }
        }
        assert_eq!(differs(&open(Arc::new(image)), &model), None, "crash at {at}");
    }
    // Where somebody stops it, nothing is left.
    let memory = Memory::new();
    let mut calls = 0;
    let stopped = repository.restore("all", &memory, &mut |_, _| {
        calls += 1;
        if calls > 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert!(matches!(stopped, Err(SnapshotError::Stopped)));
    assert_eq!(all(&memory).into_keys().collect::<Vec<_>>(), [Path::new("lock")]);
    // Not where there is something.
    let occupied = repository.restore("all", &restored(&repository, "all"), &mut go_on);
    assert!(matches!(occupied, Err(SnapshotError::Occupied)));
}

#[test]
fn damage_to_a_snapshot_is_found_before_it_is_restored() {
    let (storage, backup, _) = prepared();
    let table = open(Arc::new(storage));
    table.snapshot(&repository(&backup), "all", 2, &mut go_on).unwrap();
    repository(&backup).delete("first").unwrap();
    let (mut bit, mut flips) = (5, 0);
    for (path, bytes) in all(&backup).into_iter().filter(|(path, _)| path != Path::new("lock")) {
        while bit < 8 * bytes.len() {
            let image = backup.journal().killed(backup.journal().len());
            let mut bytes = bytes.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            image.remove(&path).unwrap();
            image.create(&path).unwrap().append(&bytes).unwrap();
            let (repository, to) = (repository(&image), Memory::new());
            assert!(repository.restore("all", &to, &mut go_on).is_err(), "bit {bit} of {}", path.display());
            assert!(all(&to).keys().all(|path| path == Path::new("lock")), "bit {bit} of {}", path.display());
            let found = repository.verify("all", &mut go_on).is_ok_and(|findings| findings.is_empty());
            assert!(!found, "bit {bit} of {}", path.display());
            flips += 1;
            bit += 4099;
        }
        bit -= 8 * bytes.len();
    }
    assert!(flips > 20, "{flips}");
    // Whole files in each other's place.
    let image = backup.journal().killed(backup.journal().len());
    let segments = image.list(Path::new("segments")).unwrap();
    let [one, other] = [0, 1].map(|i| Path::new("segments").join(&segments[i].name).join("rows"));
    for (from, to) in [(&one, "x"), (&other, "y")] {
        image.rename(from, Path::new(to)).unwrap();
    }
    image.rename(Path::new("x"), &other).unwrap();
    image.rename(Path::new("y"), &one).unwrap();
    assert_eq!(repository(&image).verify("all", &mut go_on).unwrap().len(), 2);
    assert!(repository(&image).restore("all", &Memory::new(), &mut go_on).is_err());
    // Whose manifest cannot be read may need any file: nothing is removed.
    let image = backup.journal().killed(backup.journal().len());
    table.snapshot(&repository(&image), "other", 3, &mut go_on).unwrap();
    let manifest = Path::new("snapshots/all/manifest");
    image.remove(manifest).unwrap();
    image.create(manifest).unwrap().append(b"nonsense").unwrap();
    let before = all(&image).len();
    let refused = repository(&image).delete("other").unwrap_err();
    assert!(matches!(&refused, SnapshotError::Unreadable { name, .. } if name == "all"), "{refused}");
    assert!(all(&image).len() + 1 >= before);
    repository(&image).delete("all").unwrap();
    assert_eq!(all(&image).into_keys().collect::<Vec<_>>(), [Path::new("lock")]);
}

#[test]
fn names_and_who_is_first() {
    let (storage, backup, _) = prepared();
    let table = open(Arc::new(storage));
    let repository = repository(&backup);
    let long = "x".repeat(129);
    for name in ["", "..", ".a", "a/b", "a b", long.as_str()] {
        let refused = table.snapshot(&repository, name, 0, &mut go_on);
        assert!(matches!(refused, Err(SnapshotError::Name { .. })), "{name:?}");
        assert!(repository.restore(name, &Memory::new(), &mut go_on).is_err());
    }
    let taken = table.snapshot(&repository, "first", 0, &mut go_on);
    assert!(matches!(taken, Err(SnapshotError::Exists { .. })));
    assert!(matches!(repository.delete("second"), Err(SnapshotError::Missing { .. })));
    // What others put there is left alone.
    for path in ["snapshots/.x", "segments/y", "z"] {
        backup.create(Path::new(path)).unwrap();
    }
    table.snapshot(&repository, "0", 0, &mut go_on).unwrap();
    repository.delete("0").unwrap();
    assert_eq!(repository.list().unwrap().len(), 1);
    let mut busy = false;
    table
        .snapshot(&repository, "second", 0, &mut |_, _| {
            busy |= matches!(repository.delete("first"), Err(SnapshotError::Busy));
            ControlFlow::Continue(())
        })
        .unwrap();
    assert!(busy);
}

#[test]
fn manifests_that_mislead_lead_nowhere() {
    let (_, backup, _) = prepared();
    let path = Path::new("snapshots/first/manifest");
    let contents = lanewise_storage::manifest::read(&backup, path).unwrap().contents;
    let text = String::from_utf8(contents).unwrap();
    let mut random = Rng::with_seed(6);
    let (mut done, mut refused) = (0, 0);
    // Words of the manifest in each other's place, and what a stranger would try.
    let words: Vec<&str> = text.split_inclusive(['"', ':', ',']).collect();
    let more = [
        "../x\"",
        "18446744073709551615,",
        "-1,",
        "[],",
        r#""\u0000""#,
        "rows\"",
        "deleted-1\"",
        "9223372036854775806,",
    ];
    while done < 500 {
        let mut changed: Vec<&str> = words.clone();
        for _ in 0..1 + random.usize(..2) {
            let at = random.usize(..changed.len());
            changed[at] = match random.usize(..3) {
                0 => "",
                1 => words[random.usize(..words.len())],
                _ => more[random.usize(..more.len())],
            };
        }
        let image = backup.journal().killed(backup.journal().len());
        image.remove(path).unwrap();
        lanewise_storage::manifest::replace(&image, path, 0, changed.concat().as_bytes()).unwrap();
        let (repository, to) = (repository(&image), Memory::new());
        match repository.restore("first", &to, &mut go_on) {
            Ok(_) => drop(Table::open(Arc::new(to), resources())),
            Err(_) => {
                assert!(all(&to).keys().all(|path| path == Path::new("lock")));
                refused += 1;
            }
        }
        let _ = repository.verify("first", &mut go_on);
        repository.delete("first").unwrap();
        done += 1;
    }
    assert!(refused > done / 2 && refused < done, "{refused} of {done}");
}
