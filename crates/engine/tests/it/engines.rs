//! Many tables: each there as a whole or not at all, opened when asked for, put aside when damaged.

use crate::check::{IDS, Model, delete, differs, put, random_write, resources, schema};
use lanewise_engine::documents::Schema;
use lanewise_engine::table::{Durability, MergePolicy, Settings, Table, Watched};
use lanewise_engine::{Engine, EngineError, Limits, Listed, TableState};
use lanewise_storage::{Call, Failure, Faulty, Kind, Memory, Rng, Storage};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

type Models = BTreeMap<String, Model>;

fn engine(storage: &(impl Storage + Clone + 'static)) -> Engine {
    with(storage, Limits::default())
}

fn with(storage: &(impl Storage + Clone + 'static), limits: Limits) -> Engine {
    Engine::open(Arc::new(storage.clone()), resources(), limits).unwrap()
}

fn write(table: &Table, random: &mut Rng, model: &mut Model) -> Result<(), String> {
    let one = random_write(random, model);
    table.write(vec![one]).remove(0).map(|_| ()).map_err(|error| error.to_string())
}

fn names(engine: &Engine) -> Vec<String> {
    engine.names().iter().map(|name| name.to_string()).collect()
}

fn state(engine: &Engine, name: &str) -> TableState {
    let listed = engine.list().into_iter().find(|listed| &*listed.name == name);
    listed.unwrap_or_else(|| panic!("{name} is not listed")).state
}

/// What an engine's tables hold otherwise than the models.
fn unlike(engine: &Engine, models: &Models) -> Option<String> {
    if !names(engine).iter().eq(models.keys()) {
        return Some(format!("tables {:?}, expected {:?}", names(engine), models.keys()));
    }
    models.iter().find_map(|(name, model)| match engine.table(name) {
        Ok(table) => differs(&table, model).map(|what| format!("{name}: {what}")),
        Err(error) => Some(error.to_string()),
    })
}

#[test]
fn tables_come_are_found_and_go() {
    let storage = Memory::new();
    let engine = engine(&storage);
    let (mut random, mut model) = (Rng::with_seed(1), Model::new());
    for _ in 0..20 {
        let table = engine.create("a", schema()).or_else(|_| engine.table("a")).unwrap();
        write(&table, &mut random, &mut model).unwrap();
    }
    assert!(matches!(engine.create("a", schema()), Err(EngineError::Exists { .. })));
    assert!(matches!(engine.create("A", schema()), Err(EngineError::Name { .. })));
    assert!(matches!(engine.create("../a", schema()), Err(EngineError::Name { .. })));
    for name in ["b", "A", "../a", "_creating-0", ""] {
        assert!(matches!(engine.table(name), Err(EngineError::Missing { .. })), "{name:?}");
        assert!(matches!(engine.drop_table(name), Err(EngineError::Missing { .. })), "{name:?}");
        assert!(matches!(engine.close(name), Err(EngineError::Missing { .. })), "{name:?}");
    }
    let wrong: Schema = serde_json::from_value(json!({"fields": {"_x": {"type": "keyword"}}})).unwrap();
    let error = engine.create("b", wrong.clone()).unwrap_err().to_string();
    assert!(error.contains("\"b\"") && error.contains("_x"), "{error}");
    let shared: Arc<dyn Storage> = Arc::new(storage.clone());
    assert!(matches!(Engine::open(shared, resources(), Limits::default()), Err(EngineError::Locked)));
    engine.create("b", schema()).unwrap();
    assert_eq!(names(&engine), ["a", "b"]);
    assert_eq!(state(&engine, "a"), TableState::Open { documents: model.len(), files: 0 });
    // Nobody holds it.
    assert!(engine.close("a").unwrap());
    assert_eq!(state(&engine, "a"), TableState::Closed);
    assert_eq!(
        unlike(&engine, &[("a", model.clone()), ("b", Model::new())].map(|(n, m)| (n.to_owned(), m)).into()),
        None
    );
    engine.drop_table("b").unwrap();
    assert_eq!(names(&engine), ["a"]);
    drop(engine);
    let again = self::engine(&storage);
    assert_eq!(state(&again, "a"), TableState::Closed);
    assert_eq!(unlike(&again, &Models::from([("a".to_owned(), model)])), None);
    let left = storage.list(Path::new("tables")).unwrap();
    assert_eq!(left.len(), 1, "{left:?}");
}

/// A start lists one folder and opens nothing; an ask opens one table.
#[test]
fn a_start_reads_names_only() {
    let memory = Memory::new();
    let engine = engine(&memory);
    for i in 0..30 {
        engine.create(&format!("t{i:02}"), schema()).unwrap();
    }
    drop(engine);
    let faulty = Faulty::new(Arc::new(memory));
    let engine = self::engine(&faulty);
    assert_eq!(engine.names().len(), 30);
    let count = |calls: &[Call]| faulty.calls(calls);
    assert_eq!((count(&[Call::List]), count(&[Call::Lock]), count(&[Call::CreateDir])), (1, 1, 1));
    // And whether the folder is a table.
    assert_eq!(count(&Call::ALL), 4);
    assert!(engine.list().iter().all(|listed| listed.state == TableState::Closed));
    assert_eq!(count(&Call::ALL), 4);
    engine.table("t17").unwrap();
    let once = count(&Call::ALL);
    engine.table("t17").unwrap();
    assert_eq!((count(&Call::ALL), count(&[Call::Lock])), (once, 2));
}

#[test]
#[expect(clippy::disallowed_methods, reason = "threads of the test's own")]
fn whoever_asks_at_once_gets_the_same_table() {
    let memory = Memory::new();
    let engine = engine(&memory);
    engine.create("a", schema()).unwrap();
    drop(engine);
    for _ in 0..20 {
        let faulty = Faulty::new(Arc::new(memory.clone()));
        let engine = self::engine(&faulty);
        let tables: Vec<Arc<Watched>> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| engine.table("a").unwrap())).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(tables.iter().all(|table| Arc::ptr_eq(table, &tables[0])));
        // The engine's and the table's.
        assert_eq!(faulty.calls(&[Call::Lock]), 2);
        assert!(!engine.close("a").unwrap(), "somebody holds it");
        drop(tables);
        assert!(engine.close("a").unwrap());
    }
}

#[test]
fn tables_that_nobody_holds_are_closed_oldest_first() {
    let memory = Memory::new();
    let engine = with(&memory, Limits { open_tables: 3, ..Limits::default() });
    let is_open = |name: &str| matches!(state(&engine, name), TableState::Open { .. });
    let open = || ["a", "b", "c", "d", "e"].map(&is_open);
    for name in ["a", "b", "c", "d", "e"] {
        engine.create(name, schema()).unwrap();
    }
    assert_eq!(open(), [false, false, true, true, true]);
    let c = engine.table("c").unwrap();
    engine.table("a").unwrap();
    assert_eq!(open(), [true, false, true, false, true]);
    let (a, e) = (engine.table("a").unwrap(), engine.table("e").unwrap());
    // All are held: more are open than the limit says.
    let b = engine.table("b").unwrap();
    assert_eq!(open(), [true, true, true, false, true]);
    drop((a, b, c, e));
    engine.table("d").unwrap();
    assert_eq!(open().iter().filter(|&&open| open).count(), 3);
    assert!(is_open("d"));

    // By files: a sealed segment has several.
    drop(engine);
    let engine = with(&memory, Limits { open_files: 1, ..Limits::default() });
    for name in ["a", "b"] {
        let table = engine.table(name).unwrap();
        table.write(vec![put("d1", json!({"n": 1, "v": [1, 2]}))]).remove(0).unwrap();
        table.flush().unwrap();
        assert!(matches!(state(&engine, name), TableState::Open { documents: 1, files: 3.. }));
    }
    engine.table("c").unwrap();
    assert_eq!(
        ["a", "b", "c"].map(|name| state(&engine, name)),
        [TableState::Closed, TableState::Closed, TableState::Open { documents: 0, files: 0 }]
    );
}

/// Nobody looks after a closed table: what it acknowledged before it was on disk is there when it is closed.
#[test]
fn what_is_closed_is_on_disk() {
    let memory = Memory::new();
    let engine = engine(&memory);
    let table = engine.create("a", schema()).unwrap();
    let settings = Settings { durability: Durability::Async, ..Settings::default() };
    table.set_settings(settings).unwrap();
    // The first begins a file, which is synced.
    for id in ["d1", "d2"] {
        table.write(vec![put(id, json!({"n": 1}))]).remove(0).unwrap();
    }
    drop(table);
    assert!(engine.close("a").unwrap());
    for seed in 0..20 {
        let journal = memory.journal();
        let image = journal.image(journal.len(), &mut Rng::with_seed(seed));
        assert_eq!(self::engine(&image).table("a").unwrap().len(), 2, "seed {seed}");
    }
}

/// All files below a folder.
fn files(storage: &dyn Storage, dir: &Path) -> Vec<PathBuf> {
    let below = storage.list(dir).unwrap().into_iter().flat_map(|entry| {
        let path = dir.join(&entry.name);
        if entry.kind == Kind::Folder { files(storage, &path) } else { vec![path] }
    });
    below.collect()
}

fn replace(storage: &dyn Storage, path: &Path, bytes: &[u8]) {
    storage.remove(path).unwrap();
    storage.create(path).unwrap().append(bytes).unwrap();
}

/// A table of which a file is damaged or missing is put aside by name, is not tried again before somebody asks for that,
/// and is as it was when it has been mended; the others serve.
#[test]
fn a_damaged_table_is_put_aside_and_the_others_serve() {
    let memory = Memory::new();
    let (mut random, mut models) = (Rng::with_seed(3), Models::new());
    let engine = engine(&memory);
    for name in ["a", "b"] {
        let table = engine.create(name, schema()).unwrap();
        // Its files stay what they are.
        let merge = MergePolicy { deletes_allowed: 1.0, ..MergePolicy::default() };
        table.set_settings(Settings { merge, ..Settings::default() }).unwrap();
        let model = models.entry(name.to_owned()).or_default();
        for i in 0..30 {
            write(&table, &mut random, model).unwrap();
            if i == 20 {
                table.flush().unwrap();
            }
        }
        drop(table);
    }
    drop(engine);
    let all = files(&memory, Path::new("tables/b"));
    let all = all.into_iter().filter(|path| !path.ends_with("lock")).collect::<Vec<_>>();
    assert!(all.len() > 8, "{all:?}");
    // The manifest's copy is for repairs.
    for path in all.into_iter().filter(|path| !path.ends_with("manifest.copy")) {
        let whole = (*memory.open(&path).unwrap()).as_ref().to_vec();
        for missing in [false, true] {
            let faulty = Faulty::new(Arc::new(memory.clone()));
            // That the last file of a log is gone cannot be told from a log that was never begun; and tantivy takes
            // missing positions for none.
            let untold = path.starts_with("tables/b/log") || path.extension().is_some_and(|of| of == "pos");
            if missing && untold {
                continue;
            }
            if missing {
                memory.remove(&path).unwrap();
            } else {
                let mut bytes = whole.clone();
                bytes.iter_mut().for_each(|byte| *byte ^= 0x55);
                replace(&memory, &path, &bytes);
            }
            let engine = self::engine(&faulty);
            let what = format!("{}, missing: {missing}", path.display());
            let Err(EngineError::Damaged { name, why }) = engine.table("b") else { panic!("{what}") };
            assert_eq!(name, "b");
            let said = engine.table("b").unwrap_err().to_string();
            assert!(said.contains(&*why) && said.contains("lanewise repair"), "{said}");
            let calls = faulty.calls(&Call::ALL);
            assert!(engine.table("b").is_err());
            assert_eq!(faulty.calls(&Call::ALL), calls, "{what}: it is not tried again");
            assert!(engine.retry("b").is_err() && faulty.calls(&Call::ALL) > calls, "{what}");
            assert_eq!(differs(&engine.table("a").unwrap(), &models["a"]), None);
            assert_eq!(state(&engine, "b"), TableState::Damaged { why });
            if missing {
                memory.create(&path).unwrap().append(&whole).unwrap();
            } else {
                replace(&memory, &path, &whole);
            }
            assert!(engine.table("b").is_err());
            assert_eq!(differs(&engine.retry("b").unwrap(), &models["b"]), None, "{what}");
            assert_eq!(unlike(&engine, &models), None);
        }
    }
    let manifest = Path::new("tables/b/manifest");
    replace(&memory, manifest, b"damaged");
    let engine = self::engine(&memory);
    assert!(matches!(engine.table("b"), Err(EngineError::Damaged { .. })));
    engine.drop_table("b").unwrap();
    assert_eq!(names(&engine), ["a"]);
    engine.create("b", schema()).unwrap();
}

/// A call that fails while a table is opened puts nothing aside: the next ask opens it.
#[test]
fn what_fails_once_is_tried_again() {
    let memory = Memory::new();
    let mut model = Model::new();
    let engine = engine(&memory);
    let table = engine.create("a", schema()).unwrap();
    for seed in 0..10 {
        write(&table, &mut Rng::with_seed(seed), &mut model).unwrap();
        table.flush().unwrap();
    }
    drop((table, engine));
    let mut site = 0;
    loop {
        let faulty = Faulty::new(Arc::new(memory.clone()));
        let engine = self::engine(&faulty);
        faulty.fail(&Call::ALL, site, true, if site % 2 == 0 { Failure::Broken } else { Failure::Handles });
        let first = engine.table("a");
        if faulty.failed() == 0 {
            break;
        }
        assert!(matches!(first, Ok(_) | Err(EngineError::Open { .. })), "call {site}: {first:?}");
        drop(first);
        assert_eq!(differs(&engine.table("a").unwrap(), &model), None, "call {site}");
        site += 1;
    }
    assert!(site > 30, "{site} calls");
}

#[test]
fn whoever_holds_a_dropped_table_can_read_it() {
    let memory = Memory::new();
    let engine = engine(&memory);
    let (mut random, mut model) = (Rng::with_seed(9), Model::new());
    let old = engine.create("a", schema()).unwrap();
    for i in 0..20 {
        write(&old, &mut random, &mut model).unwrap();
        if i % 7 == 6 {
            old.flush().unwrap();
        }
    }
    engine.drop_table("a").unwrap();
    assert!(matches!(engine.table("a"), Err(EngineError::Missing { .. })));
    let new = engine.create("a", schema()).unwrap();
    assert_eq!(differs(&old, &model), None);
    // What it writes does not come to the new one.
    old.write((0..IDS).map(|i| delete(&format!("d{i}"))).collect()).into_iter().for_each(drop);
    let _ = (old.flush(), old.force_merge(1));
    new.write(vec![put("d1", json!({"n": 1}))]).remove(0).unwrap();
    drop((old, new, engine));
    let left = memory.list(Path::new("tables")).unwrap();
    assert_eq!(left.len(), 1, "{left:?}");
    let again = self::engine(&memory);
    let table = again.table("a").unwrap();
    assert_eq!(table.get("d1").unwrap().map(|d| d.source), Some(br#"{"n":1}"#.to_vec()));
    assert_eq!(table.len(), 1);
}

/// Tables created, written and dropped at random; the models after each step, of which the journal's notes give the number.
fn history(seed: u64, memory: &Memory, steps: usize) -> Vec<Models> {
    let engine = engine(memory);
    let mut random = Rng::with_seed(seed);
    let mut all = vec![Models::new()];
    memory.note(0);
    for _ in 0..steps {
        let mut models = all.last().unwrap().clone();
        let name = format!("t{}", random.usize(..3));
        match models.contains_key(&name) {
            false => drop(engine.create(&name, schema()).unwrap()),
            true if random.usize(..3) == 0 => engine.drop_table(&name).unwrap(),
            true => {
                let table = engine.table(&name).unwrap();
                let model = models.get_mut(&name).unwrap();
                write(&table, &mut random, model).unwrap();
                if random.usize(..6) == 0 {
                    table.flush().unwrap();
                }
                all.push(models);
                memory.note(all.len() as u64 - 1);
                continue;
            }
        }
        if models.remove(&name).is_none() {
            models.insert(name, Model::new());
        }
        all.push(models);
        memory.note(all.len() as u64 - 1);
    }
    all
}

/// An engine on what a crash left: it has what it had after some step, no earlier than the last that returned, and nothing
/// else.
fn recovers(image: &Memory, all: &[Models], acknowledged: Option<u64>) -> Result<(), String> {
    let engine = engine(image);
    let first = acknowledged.unwrap_or(0) as usize;
    let why: Option<Vec<String>> =
        all[first..].iter().take(3).map(|models| unlike(&engine, models)).collect();
    if let Some(why) = why {
        return Err(why.join("; or "));
    }
    let left: Vec<_> = image.list(Path::new("tables")).unwrap().into_iter().map(|entry| entry.name).collect();
    if left.len() != engine.names().len() {
        return Err(format!("left behind: {left:?}"));
    }
    Ok(())
}

#[test]
fn tables_come_and_go_as_a_whole_whenever_the_machine_stops() {
    let wanted: usize = std::env::var("LANEWISE_CRASHES").map_or(300, |n| n.parse().expect("a number"));
    let (mut crashes, mut seed) = (0, 0);
    while crashes < wanted {
        let memory = Memory::new();
        let all = history(seed, &memory, 14);
        let journal = memory.journal();
        let mut random = Rng::with_seed(seed);
        for at in journal.syncs().flat_map(|at| [at, at + 1]) {
            let acknowledged = journal.notes(at).max();
            let image =
                if random.usize(..8) == 0 { journal.killed(at) } else { journal.image(at, &mut random) };
            let before = image.journal().len();
            recovers(&image, &all, acknowledged)
                .unwrap_or_else(|what| panic!("seed {seed}, crash at {at}: {what}"));
            crashes += 1;
            if random.usize(..5) == 0 {
                let journal = image.journal();
                let then = before + random.usize(..journal.len() + 1 - before);
                recovers(&journal.image(then, &mut random), &all, acknowledged)
                    .unwrap_or_else(|what| panic!("seed {seed}, crash at {at}, then at {then}: {what}"));
                crashes += 1;
            }
        }
        seed += 1;
    }
    println!("{crashes} crashes of {seed} histories");
}

/// Each call of the storage fails once, or all do from there on: what returned stays, and what failed was done or not.
#[test]
fn a_call_that_fails_leaves_tables_whole() {
    let (mut site, mut done) = (0, false);
    while !done {
        for (once, failure) in [(true, Failure::Full), (false, Failure::Full), (true, Failure::Broken)] {
            let memory = Memory::new();
            drop(engine(&memory));
            let faulty = Faulty::new(Arc::new(memory.clone()));
            let engine = engine(&faulty);
            faulty.fail(&Call::ALL, site, once, failure);
            // What may be, by name; the first is what is known.
            let mut may: BTreeMap<&str, Vec<bool>> = BTreeMap::from([("a", vec![false]), ("b", vec![false])]);
            for (name, create) in [("a", true), ("b", true), ("a", false), ("a", true), ("b", false)] {
                let did =
                    if create { engine.create(name, schema()).map(drop) } else { engine.drop_table(name) };
                let there = engine.names().iter().any(|there| &**there == name);
                let of = may.get_mut(name).unwrap();
                match did {
                    Ok(()) => *of = vec![create],
                    Err(EngineError::Exists { .. } | EngineError::Missing { .. }) => {}
                    Err(_) => of.push(create),
                }
                assert!(of.contains(&there), "call {site}, once {once}, {name}");
            }
            done = site > 0 && faulty.failed() == 0;
            faulty.heal();
            drop(engine);
            let again = self::engine(&memory);
            for (name, of) in &may {
                let there = names(&again).iter().any(|there| there == name);
                assert!(
                    of.contains(&there),
                    "call {site}, once {once}: {name} there: {there}, expected {of:?}"
                );
                if there {
                    assert!(again.table(name).unwrap().is_empty());
                } else {
                    again.create(name, schema()).unwrap();
                }
            }
        }
        site += 1;
    }
    assert!(site > 50, "{site} calls");
}

/// Sixty tables, most of them small and a few large (document 004), are searched by several threads over one pool, written
/// and flushed, opened and closed, dropped and made anew meanwhile; each is its model at all times.
#[test]
#[expect(clippy::disallowed_methods, reason = "threads of the test's own")]
fn sixty_tables_are_their_models_while_they_open_and_close() {
    const TABLES: usize = 60;
    const THREADS: usize = 4;
    let memory = Memory::new();
    let engine = with(&memory, Limits { open_tables: 12, ..Limits::default() });
    let name = |table: usize| format!("table-{table:02}");
    let mut models: Vec<Model> = Vec::new();
    for table in 0..TABLES {
        let (mut random, mut model) = (Rng::with_seed(table as u64), Model::new());
        let held = engine.create(&name(table), schema()).unwrap();
        for _ in 0..240 / (table + 1) {
            write(&held, &mut random, &mut model).unwrap();
        }
        if table % 3 == 0 {
            held.flush().unwrap();
        }
        models.push(model);
    }
    let (asked, wrong) = (AtomicUsize::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        // A thread writes the tables that are its own, and reads them.
        for (thread, models) in models.chunks_mut(TABLES / THREADS).enumerate() {
            let (engine, asked, name) = (&engine, &asked, &name);
            scope.spawn(move || {
                let mut random = Rng::with_seed(100 + thread as u64);
                for _ in 0..150 {
                    // Few tables get most of the traffic.
                    let of = random.usize(..random.clone().usize(..models.len()) + 1);
                    let name = name(thread * (TABLES / THREADS) + of);
                    if random.usize(..40) == 0 {
                        engine.drop_table(&name).unwrap();
                        assert!(matches!(engine.table(&name), Err(EngineError::Missing { .. })));
                        engine.create(&name, schema()).unwrap();
                        models[of].clear();
                    }
                    let table = engine.table(&name).unwrap();
                    write(&table, &mut random, &mut models[of]).unwrap();
                    assert_eq!(differs(&table, &models[of]), None, "{name}");
                    if random.usize(..10) == 0 {
                        table.flush().unwrap();
                    }
                    asked.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        // And one closes what it may.
        let (engine, asked, wrong) = (&engine, &asked, &wrong);
        scope.spawn(move || {
            let mut random = Rng::with_seed(7);
            let mut closed = 0;
            while asked.load(Ordering::Relaxed) < 150 * THREADS && closed < 1_000_000 {
                closed += usize::from(engine.close(&name(random.usize(..TABLES))).unwrap_or(true));
                let open = |listed: &Listed| matches!(listed.state, TableState::Open { .. });
                // Those that are held, and those just opened, beside the twelve.
                if engine.list().iter().filter(|listed| open(listed)).count() > 12 + 2 * THREADS {
                    wrong.store(true, Ordering::Relaxed);
                }
            }
        });
    });
    assert!(!wrong.load(Ordering::Relaxed), "too many are open");
    let all = |models: Vec<Model>| {
        models.into_iter().enumerate().map(|(i, model)| (name(i), model)).collect::<Models>()
    };
    let models = all(models);
    assert_eq!(unlike(&engine, &models), None);
    drop(engine);
    assert_eq!(unlike(&self::engine(&memory), &models), None);
}
