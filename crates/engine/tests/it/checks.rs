//! Checks and repairs: what is whole stays as it is, one flipped bit loses nothing, worse damage loses what is named.

use crate::check::{IDS, Model, compare, files, history, object, put, resources, schema};
use lanewise_engine::Threads;
use lanewise_engine::table::{
    Batch, CheckError, Effect, Effort, Finding, Repair, RepairError, Report, Severity, Table, check, repair,
};
use lanewise_storage::blob::{Blob, BlobWriter};
use lanewise_storage::log::{Log, replay};
use lanewise_storage::{Memory, Rng, Storage, manifest};
use serde_json::{Value, json};
use std::io::Write as _;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

type Files = Vec<(PathBuf, Vec<u8>)>;

fn go_on(_: u64, _: u64) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn one() -> Threads {
    Threads::new(NonZeroUsize::new(1))
}

fn checked(memory: &Memory) -> Report {
    let storage: Arc<dyn Storage> = Arc::new(memory.clone());
    check(&storage, &mut go_on).unwrap()
}

fn repaired(memory: &Memory, dry_run: bool) -> Result<Report, RepairError> {
    let storage: Arc<dyn Storage> = Arc::new(memory.clone());
    repair(&storage, Repair { dry_run, schema: None }, one(), &mut go_on)
}

fn all(memory: &Memory) -> Files {
    let mut all = Vec::new();
    files(memory, Path::new(""), &mut all);
    all
}

/// A table that was closed, as files, with the model after each write.
fn closed(seed: u64, calls: usize) -> (Memory, Vec<Model>) {
    let memory = Memory::new();
    let models = history(seed, &memory, calls).unwrap();
    (memory, models)
}

/// The same table with other contents of one file; none: it is removed.
pub(crate) fn with(memory: &Memory, path: &Path, bytes: Option<&[u8]>) -> Memory {
    let journal = memory.journal();
    let damaged = journal.killed(journal.len());
    damaged.remove(path).unwrap();
    if let Some(bytes) = bytes {
        damaged.create(path).unwrap().append(bytes).unwrap();
    }
    damaged
}

/// A storage of files.
fn memory_of(files: &Files) -> Memory {
    let memory = Memory::new();
    for (path, bytes) in files {
        let mut dir = PathBuf::new();
        for part in path.parent().into_iter().flat_map(Path::components) {
            dir.push(part);
            let _ = memory.create_dir(&dir);
        }
        memory.create(path).unwrap().append(bytes).unwrap();
    }
    memory
}

fn bad(report: &Report) -> bool {
    report.severity() > Some(Severity::Harmless)
}

/// What is wrong with a repaired table: it must be the last model, but for documents that the report names.
fn misses(memory: &Memory, models: &[Model], report: &Report) -> Option<String> {
    let last = models.last().unwrap();
    let table = match Table::open(Arc::new(memory.clone()), resources()) {
        Ok(table) => table,
        Err(error) => return Some(format!("does not open: {error}")),
    };
    let differs = |model: &Model| compare(&table, model).unwrap_or_else(|error| Some(error.to_string()));
    let mut unnamed = 0;
    if let Some(lost) = &report.lost_writes {
        // A record that is destroyed does not say whose it was.
        unnamed = (lost.end() - lost.start() + 1).saturating_sub(
            report.affected.iter().filter(|one| matches!(one.effect, Effect::Older { .. })).count() as u64,
        );
    }
    // Nor does a file whose header is damaged say how many it held.
    let of_header = |finding: &Finding| finding.what.contains("header") && finding.path.starts_with("log");
    if report.lost_writes.is_some() && report.findings.iter().any(of_header) {
        unnamed = u64::MAX;
    }
    if report.affected.is_empty() && unnamed == 0 {
        return differs(last);
    }
    for id in (0..IDS).map(|i| format!("d{i}")) {
        let found = match table.get(&id) {
            Ok(found) => found,
            Err(error) => return Some(error.to_string()),
        };
        let found = found.map(|d| (d.version, serde_json::from_slice::<Value>(&d.source).unwrap()));
        let known = |model: &Model| model.get(&id).map(|known| (known.0, known.1.clone()));
        let named: Vec<&Effect> =
            report.affected.iter().filter(|one| one.id == id).map(|one| &one.effect).collect();
        if found != known(last) && named.is_empty() && unnamed > 0 {
            unnamed -= 1;
        } else if found != known(last) && named.is_empty() {
            return Some(format!("{id} is {found:?}, not {:?}, and is not named", known(last)));
        }
        if found.is_some() && !models.iter().any(|model| known(model) == found) {
            return Some(format!("{id} is {found:?}, which it never was"));
        }
    }
    None
}

#[test]
fn a_healthy_table_is_left_as_it_is() {
    for seed in 0..12 {
        let (memory, _) = closed(200 + seed, 25);
        let before = all(&memory);
        let report = checked(&memory);
        assert!(!bad(&report), "{report:?}");
        assert_eq!(repaired(&memory, false).unwrap(), report);
        assert!(all(&memory) == before, "seed {seed}");
        assert!(report.bytes > 0 && report.files > 2);
    }
}

#[test]
fn a_flipped_bit_loses_nothing() {
    let (mut flips, mut mended) = (0, 0);
    for seed in 0..4 {
        let (memory, models) = closed(300 + seed, 25);
        let step = 1499;
        let mut bit = seed as usize;
        for (path, bytes) in all(&memory) {
            while bit < 8 * bytes.len() {
                let mut bytes = bytes.clone();
                bytes[bit / 8] ^= 1 << (bit % 8);
                let damaged = with(&memory, &path, Some(&bytes));
                let place = format!("seed {seed}, bit {bit} of {}", path.display());
                let report = checked(&damaged);
                assert_eq!(repaired(&damaged, true).unwrap(), report, "{place}");
                assert_eq!(repaired(&damaged, false).unwrap(), report, "{place}");
                assert!(report.affected.is_empty() && report.lost_writes.is_none(), "{place}: {report:?}");
                let again = checked(&damaged);
                assert!(!bad(&again), "{place}: {report:?}, then {again:?}");
                assert_eq!(misses(&damaged, &models, &report), None, "{place}: {report:?}");
                if bad(&report) {
                    mended += 1;
                    let kept =
                        [&Path::new("lost").join(&path)].into_iter().any(|lost| damaged.open(lost).is_ok());
                    assert!(kept, "{place}: the damaged file is gone");
                }
                (flips, bit) = (flips + 1, bit + step);
            }
            bit -= 8 * bytes.len();
        }
    }
    println!("{flips} bits, {mended} set right");
    assert!(flips > 300 && mended > flips / 2, "{flips} bits, {mended} set right");
}

/// A part of a file is overwritten, its end is missing, or all of it is.
pub(crate) fn worse(bytes: &[u8], random: &mut Rng) -> Option<Vec<u8>> {
    let mut bytes = bytes.to_vec();
    let at = random.usize(..bytes.len() + 1);
    match random.usize(..5) {
        0 => return None,
        1 => bytes.truncate(at),
        2 => bytes[at..].fill(0),
        _ => {
            let end = bytes.len().min(at + 1 + random.usize(..600));
            bytes[at..end].iter_mut().for_each(|byte| *byte = random.u8(..));
        }
    }
    Some(bytes)
}

#[test]
fn worse_damage_loses_what_is_named() {
    let (mut done, mut lost) = (0, 0);
    for seed in 0..4 {
        let (memory, models) = closed(400 + seed, 25);
        let mut random = Rng::with_seed(seed);
        for (path, bytes) in all(&memory).into_iter().filter(|(path, _)| path != Path::new("lock")) {
            for _ in 0..3 {
                let damaged = with(&memory, &path, worse(&bytes, &mut random).as_deref());
                let place = format!("seed {seed}, {} (#{done})", path.display());
                let before = all(&damaged);
                let report = repaired(&damaged, true).unwrap();
                assert!(all(&damaged) == before, "{place}: a dry run writes");
                assert_eq!(repaired(&damaged, false).unwrap(), report, "{place}");
                // A log whose end is cut off is one that was never written.
                let cut = path.starts_with("log") && !bad(&report);
                if !cut {
                    assert_eq!(misses(&damaged, &models, &report), None, "{place}: {report:?}");
                }
                lost += usize::from(report.severity() == Some(Severity::Loss));
                let again = checked(&damaged);
                assert!(!bad(&again), "{place}: {report:?}, then {again:?}");
                done += 1;
            }
        }
    }
    println!("{done} files damaged, {lost} times something was lost");
    assert!(done > 100 && lost > 5);
}

#[test]
fn a_repair_may_be_cut_short_anywhere() {
    let mut crashes = 0;
    for seed in 0..3 {
        let (memory, _) = closed(500 + seed, 25);
        let mut random = Rng::with_seed(seed);
        let table = all(&memory);
        for _ in 0..4 {
            let (path, bytes) = &table[random.usize(..table.len())];
            if path == Path::new("lock") {
                continue;
            }
            let journal = with(&memory, path, worse(bytes, &mut random).as_deref()).journal();
            // All of it durable, damage included.
            let damaged = journal.killed(journal.len());
            for (path, _) in all(&damaged) {
                damaged.sync_file(&path).unwrap();
            }
            for dir in ["", "log", "segments"] {
                damaged.sync_dir(Path::new(dir)).unwrap();
            }
            for entry in damaged.list(Path::new("segments")).unwrap() {
                damaged.sync_dir(&Path::new("segments").join(entry.name)).unwrap();
            }
            let start = damaged.journal().len();
            let report = repaired(&damaged, false).unwrap();
            let documents = |memory: &Memory| {
                let table = Table::open(Arc::new(memory.clone()), resources()).map_err(|e| e.to_string())?;
                Ok::<_, String>((0..IDS).map(|i| table.get(&format!("d{i}")).unwrap()).collect::<Vec<_>>())
            };
            let journal = damaged.journal();
            let expected = documents(&damaged).unwrap();
            for at in journal.syncs().filter(|at| *at >= start).flat_map(|at| [at, at + 1]) {
                let image = journal.image(at, &mut random);
                repaired(&image, false).unwrap();
                let place = format!("seed {seed}, {}, crash at {at}: {report:?}", path.display());
                assert_eq!(documents(&image), Ok(expected.clone()), "{place}");
                crashes += 1;
            }
        }
    }
    println!("{crashes} crashes");
    assert!(crashes > 30, "{crashes}");
}

#[test]
fn without_its_manifest_a_table_is_made_anew() {
    for seed in 0..6 {
        let (memory, models) = closed(600 + seed, 25);
        let damaged = with(&memory, Path::new("manifest"), None);
        let report = repaired(&damaged, false).unwrap();
        assert_eq!(report.severity(), Some(Severity::Mendable), "{report:?}");
        assert!(report.affected.is_empty());
        assert_eq!(misses(&damaged, &models, &report), None, "seed {seed}");
        let damaged = with(&damaged, Path::new("manifest.copy"), None);
        let damaged = with(&damaged, Path::new("manifest"), Some(b"nonsense"));
        assert!(matches!(repaired(&damaged, false), Err(RepairError::NoSchema)));
        let storage: Arc<dyn Storage> = Arc::new(damaged.clone());
        let how = Repair { dry_run: false, schema: Some(schema()) };
        let report = repair(&storage, how.clone(), one(), &mut go_on).unwrap();
        assert_eq!(misses(&damaged, &models, &report), None, "seed {seed}");
        // Nor a log: writes go on behind the last that is known.
        let table = Table::open(storage, resources()).unwrap();
        table.flush().unwrap();
        let last = (0..IDS).filter_map(|i| table.get(&format!("d{i}")).unwrap()).map(|found| found.seq).max();
        drop(table);
        let bare: Files =
            all(&damaged).into_iter().filter(|(path, _)| path.starts_with("segments")).collect();
        let storage: Arc<dyn Storage> = Arc::new(memory_of(&bare));
        repair(&storage, how, one(), &mut go_on).unwrap();
        let table = Table::open(storage, resources()).unwrap();
        let next = table.write(vec![put("d0", serde_json::json!({}))]).remove(0).unwrap().seq;
        assert!(Some(next) > last, "{next}, {last:?}");
    }
}

#[test]
fn an_open_table_is_not_checked_and_nothing_is_no_table() {
    let (memory, _) = closed(1, 3);
    let storage: Arc<dyn Storage> = Arc::new(memory.clone());
    let table = Table::open(storage.clone(), resources()).unwrap();
    assert!(matches!(check(&storage, &mut go_on), Err(CheckError::Locked)));
    drop(table);
    assert!(check(&storage, &mut go_on).is_ok());
    assert!(matches!(check(&storage, &mut |_, _| ControlFlow::Break(())), Err(CheckError::Stopped)));
    let nothing: Arc<dyn Storage> = Arc::new(Memory::new());
    assert!(matches!(check(&nothing, &mut go_on), Err(CheckError::NoTable)));
}

/// What a load replaced within itself has its number: without the bitmap the last of them counts.
#[test]
fn what_a_load_replaced_itself_does_not_come_back_with_a_damaged_bitmap() {
    let memory = Memory::new();
    let table = Table::create(Arc::new(memory.clone()), schema(), resources()).unwrap();
    let effort = Effort::of(resources().threads);
    let mut load = table.load().unwrap();
    for (n, ids) in [["a", "b", "a"], ["b", "c", "a"]].into_iter().enumerate() {
        let ids = ids.map(str::to_owned).to_vec();
        let documents = (0..3).map(|at| object(json!({"n": 3 * n + at}))).collect();
        load.add(Batch { ids: Some(ids), documents, vectors: Vec::new() }, &effort).unwrap();
    }
    assert_eq!(load.finish(&effort).unwrap(), 3);
    drop(table);
    let files = all(&memory);
    let of_bitmap = |(path, _): &&(PathBuf, Vec<u8>)| path.to_string_lossy().contains("/deleted-");
    let (path, bytes) = files.iter().find(of_bitmap).expect("rows are dead");
    let other: Vec<u8> = bytes.iter().map(|byte| byte ^ 0x5a).collect();
    let damaged = with(&memory, path, Some(&other));
    repaired(&damaged, false).unwrap();
    let table = Table::open(Arc::new(damaged), resources()).unwrap();
    let n = |id: &str| serde_json::from_slice::<Value>(&table.get(id).unwrap().unwrap().source).unwrap();
    assert_eq!(table.len(), 3);
    assert_eq!([n("a"), n("b"), n("c")], [json!({"n": 5}), json!({"n": 3}), json!({"n": 4})]);
}

/// Changes a few bytes, or cuts or doubles a part.
fn mutated(bytes: &[u8], random: &mut Rng) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for _ in 0..1 + random.usize(..4) {
        let at = random.usize(..bytes.len().max(1)).min(bytes.len());
        match random.usize(..6) {
            0 => bytes.truncate(at),
            1 => drop(bytes.splice(at..at, vec![random.u8(..); random.usize(..20)])),
            2 if at + 8 <= bytes.len() => {
                let number = [0, 1, u64::MAX, 1 << 32, bytes.len() as u64][random.usize(..5)];
                bytes[at..at + 8].copy_from_slice(&number.to_le_bytes());
            }
            _ if at < bytes.len() => bytes[at] = random.u8(..),
            _ => {}
        }
    }
    bytes
}

/// A blob with other contents.
fn changed(file: &[u8], change: impl FnOnce(&[u8]) -> Vec<u8>) -> Vec<u8> {
    let blob = Blob::open(Arc::new(file.to_vec())).unwrap();
    let other = Memory::new();
    let mut writer = BlobWriter::new(other.create(Path::new("b")).unwrap());
    writer.write_all(&change(blob.read(0..blob.len()).unwrap())).unwrap();
    writer.finish().unwrap();
    (*other.open(Path::new("b")).unwrap()).as_ref().to_vec()
}

/// A row whose id was changed is not found by it: what it is written anew as must not be a second document of that id.
#[test]
fn a_row_that_its_id_does_not_find_is_no_second_document() {
    let memory = Memory::new();
    let table = Table::create(Arc::new(memory.clone()), schema(), resources()).unwrap();
    for ids in [["d1", "d2"], ["d3", "d4"]] {
        for id in ids {
            table.write(vec![put(id, json!({"n": 1}))]).remove(0).unwrap();
        }
        table.flush().unwrap();
    }
    drop(table);
    let rows = all(&memory).into_iter().filter(|(path, _)| path.ends_with("rows"));
    for (path, file) in rows {
        // The ids are at the end: one of the other segment, or one twice.
        for id in *b"1234" {
            let bytes = changed(&file, |data| [&data[..data.len() - 1], &[id]].concat());
            let damaged = with(&memory, &path, Some(&bytes));
            let report = repaired(&damaged, false).unwrap();
            assert!(!bad(&checked(&damaged)), "{}, d{}: {report:?}", path.display(), char::from(id));
        }
    }
}

#[test]
fn what_makes_no_sense_behind_right_checksums_is_set_aside_or_harmless() {
    let (mut done, mut found) = (0, 0);
    let wanted: usize = std::env::var("LANEWISE_MUTANTS").map_or(60, |n| n.parse().expect("a number"));
    let (memory, _) = closed(801, 30);
    let mut random = Rng::with_seed(8);
    let ours: Files = all(&memory)
        .into_iter()
        .filter(|(path, _)| {
            let name = path.file_name().unwrap().to_str().unwrap();
            path.starts_with("segments")
                && ["rows", "vectors-", "deleted-"].iter().any(|own| name.starts_with(own))
        })
        .collect();
    assert!(ours.len() > 5);
    while done < wanted {
        let (path, file) = &ours[random.usize(..ours.len())];
        let damaged = with(&memory, path, Some(&changed(file, |data| mutated(data, &mut random))));
        let report = repaired(&damaged, false).unwrap();
        assert!(!bad(&checked(&damaged)), "#{done} of {}: {report:?}", path.display());
        let table = Table::open(Arc::new(damaged), resources()).unwrap();
        (0..IDS).for_each(|i| drop(table.get(&format!("d{i}")).unwrap()));
        table.force_merge(1).unwrap();
        (done, found) = (done + 1, found + usize::from(bad(&report)));
    }
    println!("{done} files, {found} found");
    assert!(found > done / 4, "{found} of {done}");
}

#[test]
fn records_that_make_no_sense_are_cut_off() {
    let wanted: usize = std::env::var("LANEWISE_MUTANTS").map_or(60, |n| n.parse().expect("a number"));
    let (memory, _) = closed(802, 30);
    let manifest = manifest::read(&memory, Path::new("manifest")).unwrap();
    let state: Value = serde_json::from_slice(&manifest.contents).unwrap();
    let [identity, from] = ["identity", "replay_from"].map(|name| state[name].as_u64().unwrap());
    let go = &mut |_: u64, _: &[u8]| ControlFlow::Continue(());
    let (mut random, mut cut) = (Rng::with_seed(9), 0);
    let mut records = Vec::new();
    replay(&memory, Path::new("log"), identity, from, &mut |_, record| {
        records.push(record.to_vec());
        ControlFlow::Continue(())
    })
    .unwrap();
    assert!(!records.is_empty());
    for done in 0..wanted {
        let damaged = memory.journal().killed(memory.journal().len());
        let storage: Arc<dyn Storage> = Arc::new(damaged.clone());
        let (log, _) = Log::open(storage.clone(), Path::new("log"), identity, from, go).unwrap();
        for _ in 0..1 + done % 3 {
            log.append(&mutated(&records[random.usize(..records.len())], &mut random)).unwrap();
        }
        log.close().unwrap();
        let opens = Table::open(storage.clone(), resources()).is_ok();
        let report = repaired(&damaged, false).unwrap();
        assert_eq!(report.lost_writes.is_none(), opens, "#{done}: {report:?}");
        let table =
            Table::open(storage, resources()).unwrap_or_else(|error| panic!("#{done}: {error}, {report:?}"));
        table.flush().unwrap();
        cut += usize::from(!opens);
    }
    println!("{cut} of {wanted} cut");
    assert!(cut > wanted / 4 && cut < wanted, "{cut} of {wanted}");
}
