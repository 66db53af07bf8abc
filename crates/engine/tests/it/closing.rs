//! Opening that is stopped, closing that seals, tables that go while somebody works with them.

use crate::check::{Model, differs, open, put, random_write, resources, schema};
use lanewise_engine::documents::Schema;
use lanewise_engine::table::{Effort, FlushError, OpenError, SegmentError, Table, Upkeep};
use lanewise_engine::{Engine, EngineError, Limits, TableState, Threads};
use lanewise_storage::{Call, Failure, Faulty, Kind, Memory, Rng, Storage};
use serde_json::json;
use std::cell::Cell;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

const ONE: NonZeroUsize = NonZeroUsize::MIN;

fn effort() -> Effort<'static> {
    Effort::of(Threads::new(Some(ONE)))
}

fn engine(storage: &Memory) -> Engine {
    Engine::open(Arc::new(storage.clone()), resources(), Limits::default()).unwrap()
}

/// Writes `count` documents.
fn fill(table: &Table, count: usize) {
    let document = |i: usize| json!({"v": [i % 97, i / 97]});
    for first in (0..count).step_by(500) {
        let writes = (first..count.min(first + 500)).map(|i| put(&i.to_string(), document(i))).collect();
        table.write(writes).into_iter().for_each(|written| drop(written.unwrap()));
    }
}

fn of(kind: &str) -> Schema {
    let vector = json!({"type": "vector", "dim": 2, "kind": kind, "m": 4, "ef_construction": 20});
    serde_json::from_value(json!({"fields": {"v": vector}})).unwrap()
}

fn made(kind: &str, count: usize) -> Memory {
    let memory = Memory::new();
    fill(&Table::create(Arc::new(memory.clone()), of(kind), resources()).unwrap(), count);
    memory
}

/// Documents in segments, and in the head.
fn live(table: &Table) -> (usize, usize) {
    let segments = table.segments();
    let of = |sealed| segments.iter().filter(|one| one.sealed == sealed).map(|one| one.live).sum();
    (of(true), of(false))
}

#[test]
fn an_opening_that_is_stopped_leaves_the_table_as_it_was() {
    let memory = made("hnsw", 3000);
    let asked = Cell::new(0);
    let opened = |stop: usize| {
        asked.set(0);
        Table::open_with(Arc::new(memory.clone()), resources(), &|| {
            asked.set(asked.get() + 1);
            if asked.get() > stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
    };
    assert_eq!(opened(usize::MAX).unwrap().len(), 3000);
    let all = asked.get();
    // Within a batch of the log, too.
    assert!(all > 20, "asked {all} times");
    for stop in [0, 1, all / 2, all - 1] {
        let error = opened(stop).unwrap_err();
        assert!(matches!(error, OpenError::Stopped), "after {stop} of {all}: {error}");
        assert_eq!(asked.get(), stop + 1, "it was asked again");
    }
    assert_eq!(open(Arc::new(memory.clone())).len(), 3000);
}

#[test]
fn an_engine_stops_opening_and_waiting_for_who_opens() {
    let memory = Memory::new();
    let engine = engine(&memory);
    fill(&engine.create("a", of("hnsw")).unwrap(), 1000);
    let stop = || ControlFlow::Break(());
    // An open table is given at once.
    assert_eq!(engine.table_with("a", &stop).unwrap().len(), 1000);
    assert!(engine.close("a").unwrap());
    let stopped = |error: EngineError| match error {
        EngineError::Open { error, .. } => matches!(*error, OpenError::Stopped),
        _ => false,
    };
    assert!(stopped(engine.table_with("a", &stop).unwrap_err()));
    assert!(stopped(engine.retry_with("a", &stop).unwrap_err()));
    assert_eq!(engine.list()[0].state, TableState::Closed, "it is not put aside");
    // While it is opened here, somebody else (or a signal handler) asks for it.
    let waited = Cell::new(false);
    let table = engine.table_with("a", &|| {
        waited.set(waited.get() || stopped(engine.table_with("a", &stop).unwrap_err()));
        ControlFlow::Continue(())
    });
    assert!(waited.get());
    assert_eq!(table.unwrap().len(), 1000);
}

#[test]
fn a_large_head_is_sealed_when_its_table_is_closed() {
    let upkeep = Upkeep::start(ONE, Threads::new(Some(ONE))).unwrap();
    let stop: Effort<'_> = Effort::new(Threads::new(Some(ONE)), &|| ControlFlow::Break(()));
    for (kind, count, how, sealed) in [
        ("hnsw", 5000, effort(), true),
        ("ivf", 5000, effort(), true),
        // Not worth while, nothing to build, not wanted.
        ("hnsw", 500, effort(), false),
        ("flat", 5000, effort(), false),
        ("hnsw", 5000, stop, false),
    ] {
        let memory = made(kind, count);
        let faulty = Arc::new(Faulty::new(Arc::new(memory.clone())));
        let table = upkeep.watch(Table::open(faulty.clone(), resources()).unwrap());
        assert_eq!(live(&table), (0, count));
        let closed = table.close(&how);
        let stopped = matches!(&closed, Err(FlushError::Segment { error: SegmentError::Stopped, .. }));
        assert!(closed.is_ok() != stopped, "{kind} {count}: {closed:?}");
        let expected = if sealed { (count, 0) } else { (0, count) };
        assert_eq!(live(&open(Arc::new(memory))), expected, "{kind} {count}");
    }
}

#[test]
fn a_close_that_cannot_seal_loses_nothing() {
    let upkeep = Upkeep::start(ONE, Threads::new(Some(ONE))).unwrap();
    let (mut site, mut failed) = (0, true);
    while failed {
        let memory = made("hnsw", 4200);
        let faulty = Arc::new(Faulty::new(Arc::new(memory.clone())));
        let table = upkeep.watch(Table::open(faulty.clone(), resources()).unwrap());
        let before = faulty.failed();
        faulty.fail(&Call::ALL, site, true, Failure::Full);
        let closed = table.close(&effort());
        failed = faulty.failed() > before;
        assert!(failed || closed.is_ok(), "call {site}: {closed:?}");
        let table = open(Arc::new(memory));
        assert_eq!((table.len(), table.get("4199").unwrap().is_some()), (4200, true), "call {site}");
        site += 3;
    }
    assert!(site > 15, "{site} calls");
}

#[test]
fn an_engine_seals_large_heads_when_it_closes_its_tables() {
    let memory = Memory::new();
    let engine = engine(&memory);
    for (name, count) in [("a", 5000), ("b", 5000), ("c", 20)] {
        fill(&engine.create(name, of("hnsw")).unwrap(), count);
    }
    assert!(engine.close("a").unwrap());
    let held = engine.table("c").unwrap();
    engine.close_all(&effort());
    let state = |at: usize| engine.list()[at].state.clone();
    assert_eq!((state(1), state(2)), (TableState::Closed, TableState::Open { documents: 20, files: 0 }));
    for name in ["a", "b"] {
        assert_eq!(live(&engine.table(name).unwrap()), (5000, 0), "{name}");
    }
    drop((held, engine));
    assert_eq!(live(&self::engine(&memory).table("c").unwrap()), (0, 20));
}

/// What fails since a table is dropped meanwhile fails for that.
#[test]
fn work_on_a_table_that_is_dropped_meanwhile_says_that_it_is_missing() {
    let memory = Memory::new();
    let engine = engine(&memory);
    let (mut random, mut model) = (Rng::with_seed(3), Model::new());
    let on = |name: &str, work: &mut dyn FnMut(&Table)| {
        engine.on(name, &|| ControlFlow::Continue(()), |table| work(table))
    };
    engine.create("a", schema()).unwrap();
    on("a", &mut |table| {
        for _ in 0..40 {
            table.write(vec![random_write(&mut random, &mut model)]).remove(0).unwrap();
        }
        table.flush().unwrap();
        table.write(vec![put("d1", json!({"n": 1}))]).remove(0).unwrap();
    })
    .unwrap();
    let mut flushed = None;
    let done = on("a", &mut |table| {
        engine.drop_table("a").unwrap();
        flushed = Some(table.flush());
    });
    assert!(flushed.unwrap().is_err(), "or this test is of nothing");
    assert!(matches!(done, Err(EngineError::Missing { name }) if name == "a"));
    // A drop that fails takes nothing away.
    let faulty = Faulty::new(Arc::new(memory.clone()));
    drop(engine);
    let engine = Engine::open(Arc::new(faulty.clone()), resources(), Limits::default()).unwrap();
    engine.create("b", schema()).unwrap();
    let len = engine.on("b", &|| ControlFlow::Continue(()), |table| {
        faulty.fail(&[Call::Rename], 0, true, Failure::Full);
        assert!(matches!(engine.drop_table("b"), Err(EngineError::Io { .. })));
        faulty.heal();
        table.len()
    });
    assert_eq!(len.unwrap(), 0);
    assert!(matches!(engine.list()[0].state, TableState::Open { .. }));
}

/// Removes a folder as somebody does who knows nothing of the engine.
fn remove(storage: &dyn Storage, folder: &Path) {
    for entry in storage.list(folder).unwrap() {
        let path = folder.join(&entry.name);
        match entry.kind {
            Kind::Folder => remove(storage, &path),
            Kind::File => storage.remove(&path).unwrap(),
        }
    }
    storage.remove_dir(folder).unwrap();
}

#[test]
fn a_folder_that_was_removed_by_hand_is_a_missing_table_and_its_name_free() {
    let memory = Memory::new();
    let engine = engine(&memory);
    let names = || engine.names().iter().map(|name| name.to_string()).collect::<Vec<_>>();
    for name in ["closed", "dropped", "made", "open"] {
        engine.create(name, schema()).unwrap();
    }
    for name in ["closed", "dropped", "made"] {
        assert!(engine.close(name).unwrap());
    }
    assert!(matches!(engine.create("made", schema()), Err(EngineError::Exists { .. })));
    remove(&memory, Path::new("tables/closed"));
    assert!(matches!(engine.table("closed"), Err(EngineError::Missing { .. })));
    assert_eq!(names(), ["dropped", "made", "open"]);
    remove(&memory, Path::new("tables/dropped"));
    assert!(matches!(engine.drop_table("dropped"), Err(EngineError::Missing { .. })));
    assert_eq!(names(), ["made", "open"]);
    for name in ["closed", "dropped"] {
        assert!(engine.create(name, schema()).unwrap().is_empty());
    }
    remove(&memory, Path::new("tables/made"));
    remove(&memory, Path::new("tables/open"));
    for name in ["made", "open"] {
        let table = engine.create(name, schema()).unwrap();
        table.write(vec![put("d1", json!({"n": 1}))]).remove(0).unwrap();
    }
    drop(engine);
    assert_eq!(self::engine(&memory).table("open").unwrap().len(), 1);
}

#[test]
fn a_tables_folder_is_no_engines() {
    let memory = Memory::new();
    let table = Table::create(Arc::new(memory.clone()), schema(), resources()).unwrap();
    let opened = || Engine::open(Arc::new(memory.clone()), resources(), Limits::default());
    for closed in [false, true] {
        let error = opened().unwrap_err();
        assert!(matches!(error, EngineError::IsTable), "{error}");
        assert!(error.to_string().contains("Table.open"), "{error}");
        if !closed {
            assert_eq!(differs(&table, &Model::new()), None);
        }
    }
    drop(table);
    assert!(opened().is_err());
    assert!(memory.list(Path::new("tables")).is_err(), "it leaves nothing there");
    assert!(open(Arc::new(memory)).is_empty());
}
