//! Tables: what they promise, by the checks of `check/`.

use crate::check::{
    Model, crashes, deaths, delete, differs, flips, history, object, open, put, random_write, replaced,
    resources, schema,
};
use lanewise_engine::allowed;
use lanewise_engine::index::OwnedVectors;
use lanewise_engine::table::{
    MergePolicy, Nearest, OpenError, Outcome, Request, Settings, Table, When, Write, WriteError,
};
use lanewise_storage::{Call, Failure, Faulty, Memory, Rng, Storage};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

#[test]
fn a_table_is_its_model_through_flushes_merges_and_restarts() {
    for seed in 0..60 {
        history(1000 + seed, &Memory::new(), 30).unwrap();
    }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "histories side by side")]
fn nothing_acknowledged_is_lost_by_any_crash() {
    let wanted: usize =
        std::env::var("LANEWISE_CRASHES").map_or(2000, |n| n.parse().expect("a number of crashes"));
    let (done, seed) = (AtomicUsize::new(0), AtomicU64::new(0));
    let of_long_runs = (wanted / 20).max(5000);
    std::thread::scope(|scope| {
        for _ in 0..allowed().get() {
            scope.spawn(|| {
                // Relaxed: they are only counted.
                while done.load(Ordering::Relaxed) < wanted {
                    let more = crashes(seed.fetch_add(1, Ordering::Relaxed)).unwrap();
                    let before = done.fetch_add(more, Ordering::Relaxed);
                    if before / of_long_runs < (before + more) / of_long_runs {
                        println!("{} crashes", before + more);
                    }
                }
            });
        }
    });
    println!("{done:?} crashes of {seed:?} histories");
}

/// Of histories in which a killed process leaves a manifest that is renamed and not durable, and the power is cut after the next.
#[test]
fn what_a_killed_process_left_stays_after_a_power_cut() {
    for seed in [83, 101] {
        assert!(crashes(seed).unwrap() > 0);
    }
}

#[test]
fn damage_is_found_or_harmless() {
    let done: usize = (0..4).map(|seed| flips(seed, 997).unwrap()).sum();
    assert!(done > 500, "{done} bits");
}

/// Each call of the storage fails once, or all do from there on: what is acknowledged stays, and what fails says so.
#[test]
fn nothing_acknowledged_is_lost_by_a_call_that_fails() {
    let kinds = Call::ALL;
    let (mut site, mut sites) = (0, usize::MAX);
    while site < sites {
        for (once, failure) in [(true, Failure::Full), (false, Failure::Full), (true, Failure::Broken)] {
            let memory = Memory::new();
            let faulty = Arc::new(Faulty::new(Arc::new(memory.clone())));
            let shared: Arc<dyn Storage> = faulty.clone();
            let mut random = Rng::with_seed(7);
            let mut model = Model::new();
            let mut unsure: Vec<Model> = Vec::new();
            faulty.fail(&kinds, site as u64, once, failure);
            let table = Table::create(shared.clone(), schema(), resources());
            let created = table.is_ok();
            if let Ok(table) = table {
                for call in 0..8 {
                    let mut next = model.clone();
                    let write = random_write(&mut random, &mut next);
                    match table.write(vec![write]).remove(0) {
                        // Nothing was written, so nothing is vouched for.
                        Ok(written) if written.outcome == Outcome::Missing => {}
                        Ok(_) => {
                            model = next;
                            unsure.clear();
                        }
                        Err(_) => unsure.push(next),
                    }
                    if call % 3 == 2 {
                        let _ = table.flush();
                    }
                }
            }
            if site == 0 || sites == usize::MAX && faulty.failed() == 0 {
                sites = if faulty.failed() == 0 { site } else { sites };
            }
            faulty.heal();
            match Table::open(Arc::new(memory.clone()), resources()) {
                Ok(table) => {
                    let fine = differs(&table, &model).is_none()
                        || unsure.iter().any(|model| differs(&table, model).is_none());
                    assert!(fine, "call {site}, once {once}: {:?}", differs(&table, &model));
                    // And it goes on.
                    let id = "d0";
                    table.write(vec![put(id, json!({"n": 3}))]).remove(0).unwrap();
                    table.flush().unwrap();
                    assert_eq!(table.get(id).unwrap().unwrap().source, br#"{"n":3}"#);
                }
                Err(error) => assert!(!created, "call {site}, once {once}: {error}"),
            }
        }
        site += 1;
    }
    assert!(site > 50, "{site} calls");
}

/// Whatever makes the manifest say that a document died, what took its place is on disk before.
#[test]
fn what_is_replaced_stays_until_what_replaces_it_is_durable() {
    assert!(deaths(1).unwrap() > 20);
}

/// After a sync that failed nothing that was written goes into a manifest, as it may not be in the log.
#[test]
fn a_failed_sync_ends_merges_too() {
    let memory = Memory::new();
    let faulty = Arc::new(Faulty::new(Arc::new(memory.clone())));
    let table = replaced(faulty.clone());
    faulty.fail(&[Call::Sync], 0, true, Failure::Broken);
    let written = table.write(vec![put("d0", json!({"n": 2}))]).remove(0);
    assert!(matches!(written, Err(WriteError::NotDurable(_))), "{written:?}");
    faulty.heal();
    let merge = MergePolicy { segments_per_tier: 2, deletes_allowed: 0.0, ..MergePolicy::default() };
    let merged = table.merge(&merge);
    assert!(merged.is_err(), "{merged:?}");
    assert!(table.set_settings(Settings { sync_interval_ms: 2000, ..Settings::default() }).is_err());
    let journal = memory.journal();
    let lost = open(Arc::new(journal.image(journal.len(), &mut Rng::with_seed(1))));
    assert_eq!(lost.len(), 4);
    assert_eq!(lost.get("d0").unwrap().unwrap().version, 1);
}

/// Segments of which nothing is alive leave no files.
#[test]
fn a_segment_that_died_as_a_whole_leaves_no_files() {
    let memory = Memory::new();
    let table = Table::create(Arc::new(memory.clone()), schema(), resources()).unwrap();
    for n in 0..4 {
        table.write(vec![put("d0", json!({"n": n, "v": [1, 2]}))]).remove(0).unwrap();
        table.flush().unwrap();
    }
    assert_eq!((table.len(), table.segments().len()), (1, 2));
    assert_eq!(memory.list(std::path::Path::new("segments")).unwrap().len(), 1);
}

/// While the disk is full writes are refused, reads go on, and nothing piles up; writes go on when there is room.
#[test]
fn a_full_disk_refuses_writes_until_there_is_room() {
    let memory = Memory::new();
    let faulty = Arc::new(Faulty::new(Arc::new(memory.clone())));
    let table = Table::create(faulty.clone(), schema(), resources()).unwrap();
    let one = || vec![put("d1", json!({"n": 1, "v": [1, 2], "w": [1, 2]})), put("d2", json!({"n": 2}))];
    assert!(table.write(one()).into_iter().all(|written| written.is_ok()));
    faulty.fail(&[Call::Append, Call::Create], 0, false, Failure::Full);
    for _ in 0..50 {
        let errors: Vec<String> =
            table.write(one()).into_iter().map(|w| w.unwrap_err().to_string()).collect();
        assert!(errors.iter().all(|error| error.contains("No space left")), "{errors:?}");
        assert_eq!(table.get("d1").unwrap().unwrap().version, 1);
    }
    assert!(table.flush().is_err());
    let head = table.segments().pop().unwrap();
    assert!(head.deleted <= 2, "{head:?}");
    faulty.heal();
    let versions: Vec<u64> = table.write(one()).into_iter().map(|written| written.unwrap().version).collect();
    assert_eq!(versions, [2, 2]);
    table.flush().unwrap();
    drop(table);
    assert_eq!(open(Arc::new(memory)).get("d2").unwrap().unwrap().version, 2);
}

#[test]
#[expect(clippy::disallowed_methods, reason = "threads of the test's own")]
fn writes_and_searches_go_on_while_segments_are_made() {
    let memory = Memory::new();
    let table = Table::create(Arc::new(memory.clone()), schema(), resources()).unwrap();
    let done = AtomicBool::new(false);
    let mut model = Model::new();
    std::thread::scope(|scope| {
        let merging = scope.spawn(|| {
            let mut merges = 0;
            while !done.load(Ordering::Relaxed) {
                table.flush().unwrap();
                table.force_merge(1).unwrap();
                merges += 1;
            }
            merges
        });
        let mut random = Rng::with_seed(3);
        for _ in 0..600 {
            let mut writes = Vec::new();
            writes.resize_with(1 + random.usize(..3), || random_write(&mut random, &mut model));
            table.write(writes).into_iter().for_each(|written| drop(written.unwrap()));
            assert_eq!(differs(&table, &model), None);
        }
        done.store(true, Ordering::Relaxed);
        assert!(merging.join().unwrap() > 5);
    });
    drop(table);
    assert_eq!(differs(&open(Arc::new(memory)), &model), None);
}

#[test]
fn a_merged_segment_has_no_dead_rows() {
    let table = Table::create(Arc::new(Memory::new()), schema(), resources()).unwrap();
    let mut random = Rng::with_seed(5);
    let mut model = Model::new();
    for _ in 0..40 {
        let writes = vec![random_write(&mut random, &mut model)];
        table.write(writes).remove(0).unwrap();
        table.flush().unwrap();
    }
    table.force_merge(1).unwrap();
    let segments: Vec<_> = table.segments().into_iter().map(|s| (s.sealed, s.live, s.deleted)).collect();
    assert_eq!(segments, [(true, model.len(), 0), (false, 0, 0)]);
    assert_eq!(differs(&table, &model), None);
    for id in model.keys() {
        table.write(vec![delete(id)]).remove(0).unwrap();
    }
    table.force_merge(1).unwrap();
    assert_eq!((table.len(), table.segments().len()), (0, 1));
}

#[test]
fn conditions_and_what_writes_say() {
    let table = Table::create(Arc::new(Memory::new()), schema(), resources()).unwrap();
    let when = |id: &str, when: When| Write::Put {
        id: Some(id.to_owned()),
        document: object(json!({})),
        vectors: vec![("v".to_owned(), OwnedVectors::F32(vec![1.0, 2.0]))],
        when,
    };
    let wrote = |write: Write| table.write(vec![write]).remove(0).map(|w| (w.seq, w.version, w.outcome));
    assert_eq!(wrote(when("a", When::Absent)).unwrap(), (1, 1, Outcome::Created));
    assert_eq!(
        wrote(when("a", When::Absent)).unwrap_err().to_string(),
        "document \"a\": it is there already"
    );
    assert_eq!(wrote(when("a", When::Seq(1))).unwrap(), (2, 2, Outcome::Updated));
    let says = "document \"a\": its sequence number is 2, not 1";
    assert_eq!(wrote(when("a", When::Seq(1))).unwrap_err().to_string(), says);
    assert_eq!(wrote(delete("b")).unwrap().2, Outcome::Missing);
    table.flush().unwrap();
    assert_eq!(wrote(delete("a")).unwrap(), (3, 3, Outcome::Deleted));
    let missing = "document \"a\": it is not there, so its sequence number is not 3";
    assert_eq!(wrote(when("a", When::Seq(3))).unwrap_err().to_string(), missing);
    // In one call, each sees what those before it did; what fails does not touch the others.
    let writes = vec![
        when("c", When::Absent),
        when("c", When::Absent),
        put("", json!({})),
        delete("c"),
        when("c", When::Absent),
    ];
    let results: Vec<_> =
        table.write(writes).into_iter().map(|r| r.map(|w| w.outcome).map_err(|e| e.to_string())).collect();
    let says = ["document \"c\": it is there already", "id \"\": give 1 to 512 bytes"];
    let expected = [
        Ok(Outcome::Created),
        Err(says[0].to_owned()),
        Err(says[1].to_owned()),
        Ok(Outcome::Deleted),
        Ok(Outcome::Created),
    ];
    assert_eq!(results, expected);
    assert_eq!(table.len(), 1);
    let own = Write::Put { id: None, document: object(json!({})), vectors: vec![], when: When::Absent };
    let ids: Vec<_> = table.write(vec![own.clone(), own]).into_iter().map(|w| w.unwrap().id).collect();
    assert!(ids[0] != ids[1] && table.get(&ids[1]).unwrap().is_some());
    let nan = put("x", json!({"v": [1, 2], "w": [0.5, 1e60]}));
    assert!(table.write(vec![nan]).remove(0).unwrap_err().to_string().starts_with("field \"w\": "));
    assert!(matches!(Table::open(Arc::new(Memory::new()), resources()), Err(OpenError::State(_))));
}

/// Vectors that a code can order get one when they are sealed; those that none can are searched as they are, and nothing
/// is refused, however the writes are divided and whatever is merged.
#[test]
fn a_code_never_refuses_a_write() {
    const DIM: usize = 16;
    let field = |kind: &str, code: &str| json!({"type": "vector", "dim": DIM, "kind": kind, "code": code, "m": 4, "ef_construction": 20, "nlist": 8});
    let fields = json!({"fields": {"a": field("hnsw", "bits"), "b": field("ivf", "i8")}});
    let schema: lanewise_engine::documents::Schema = serde_json::from_value(fields).unwrap();
    let memory = Memory::new();
    let mut random = Rng::with_seed(23);
    // One dimension decides all: a code cannot tell the rest.
    let mut vector = |i: usize, hard: bool| -> Vec<f32> {
        let mut vector: Vec<f32> = (0..DIM).map(|_| random.f32() + (i % 7) as f32).collect();
        vector[3] = if hard { [1e9, -1e9][i % 2] } else { vector[3] };
        vector
    };
    let mut all = Vec::new();
    let mut write = |table: &Table, range: std::ops::Range<usize>, hard: bool| {
        let writes = range.map(|i| {
            let vector = vector(i, hard);
            all.push(vector.clone());
            let vectors = ["a", "b"].map(|f| (f.to_owned(), OwnedVectors::F32(vector.clone()))).to_vec();
            let id = Some(i.to_string());
            Write::Put { id, document: object(json!({})), vectors, when: When::Absent }
        });
        table.write(writes.collect()).into_iter().for_each(|written| drop(written.unwrap()));
    };
    let uncoded = |table: &Table| -> Vec<Vec<String>> {
        table.segments().into_iter().filter(|s| s.sealed).map(|s| s.uncoded).collect()
    };
    let table = Table::create(Arc::new(memory.clone()), schema, resources()).unwrap();
    write(&table, 0..600, false);
    table.flush().unwrap();
    assert_eq!(uncoded(&table), [Vec::<String>::new()]);
    write(&table, 600..700, true);
    write(&table, 700..1200, true);
    drop(table);
    let table = open(Arc::new(memory.clone()));
    table.flush().unwrap();
    let both = vec!["a".to_owned(), "b".to_owned()];
    assert_eq!(uncoded(&table), [vec![], both.clone()]);
    table.force_merge(1).unwrap();
    drop(table);
    let table = open(Arc::new(memory));
    assert_eq!((table.len(), table.segments().len()), (1200, 2));
    for field in ["a", "b"] {
        for i in (0..1200).step_by(97) {
            // What a code that orders only half of the vectors loses is another matter.
            let vector = OwnedVectors::F32(all[i].clone());
            let nearest = vec![Nearest { k: 1, exact: true, ..Nearest::new(field, vector) }];
            let request = Request { nearest, size: 1, ..Request::default() };
            assert_eq!(table.search(&request, None).unwrap().hits[0].id, i.to_string(), "{field}");
        }
    }
}

/// A document that could not be read again from the log would keep the table from opening.
#[test]
fn documents_are_only_so_deep() {
    let memory = Memory::new();
    let table = Table::create(Arc::new(memory.clone()), schema(), resources()).unwrap();
    let deep = |levels: usize| {
        (1..levels).fold(
            json!([1]),
            |inner, level| if level % 2 == 0 { json!([inner]) } else { json!({"a": inner}) },
        )
    };
    table.write(vec![put("fine", json!({"x": deep(63)}))]).remove(0).unwrap();
    for levels in [64, 127, 500] {
        let error = table.write(vec![put("deep", json!({"x": deep(levels)}))]).remove(0).unwrap_err();
        assert!(error.to_string().starts_with("field \"x\": objects and arrays"), "{error}");
    }
    drop(table);
    let table = open(Arc::new(memory));
    assert_eq!(table.len(), 1);
    table.flush().unwrap();
    let expected = serde_json::to_vec(&json!({"x": deep(63)})).unwrap();
    assert_eq!(table.get("fine").unwrap().unwrap().source, expected);
}
