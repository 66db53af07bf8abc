//! Documents that are loaded in bulk: what is refused, what is left when a load is given up or fails. That what is loaded
//! survives crashes is the matter of `check/`.

use crate::check::{differs, object, open, put, resources, schema};
use lanewise_engine::Threads;
use lanewise_engine::index::Vectors;
use lanewise_engine::table::{Batch, Effort, Load, Nearest, Request, Table, Upkeep};
use lanewise_storage::{Call, Failure, Faulty, Memory, Storage};
use serde_json::{Value, json};
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

const ONE: NonZeroUsize = NonZeroUsize::MIN;

fn effort() -> Effort<'static> {
    Effort::of(Threads::new(Some(ONE)))
}

/// Documents with these ids, without vectors.
fn batch(ids: &[&str]) -> Batch<'static> {
    Batch {
        ids: Some(ids.iter().map(|&id| id.to_owned()).collect()),
        documents: ids.iter().map(|id| object(json!({"text": id}))).collect(),
        vectors: Vec::new(),
    }
}

fn segments(memory: &Memory) -> usize {
    memory.list(Path::new("segments")).unwrap().len()
}

fn source(table: &Table, id: &str) -> Option<Value> {
    table.get(id).unwrap().map(|document| serde_json::from_slice(&document.source).unwrap())
}

#[test]
fn vectors_come_beside_documents_or_inside() {
    let table = Table::create(Arc::new(Memory::new()), schema(), resources()).unwrap();
    table.write(vec![put("b", json!({"v": [8, 8]})), put("z", json!({"n": 1}))]);
    let mut load = table.load().unwrap();
    load.reserve(5).unwrap();
    let beside = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
    let with = |ids: &[&str], w: Value| {
        let mut batch = batch(ids);
        batch.documents[1].insert("w".to_owned(), w);
        batch
    };
    let first =
        Batch { vectors: vec![("v", Vectors::F32(&beside))], ..with(&["a", "b", "c"], json!([9, 9])) };
    load.add(first, &effort()).unwrap();
    load.add(with(&["c", "d"], json!([7, 7])), &effort()).unwrap();
    assert_eq!((load.len(), table.len()), (5, 2));
    assert_eq!(load.finish(&effort()).unwrap(), 4);
    assert_eq!((table.len(), source(&table, "c")), (5, Some(json!({"text": "c"}))));
    let b = table.get("b").unwrap().unwrap();
    assert!(b.version == 2 && b.seq > table.get("z").unwrap().unwrap().seq);
    let near = |field: &str| {
        let nearest = vec![Nearest::new(field, Vectors::F32(&[0.0, 0.0]).into())];
        let answer = table.search(&Request { nearest, ..Request::default() }, None).unwrap();
        answer.hits.into_iter().map(|hit| (hit.id, hit.distance.unwrap())).collect::<Vec<_>>()
    };
    let pairs = |pairs: &[(&str, f32)]| pairs.iter().map(|&(id, d)| (id.to_owned(), d)).collect::<Vec<_>>();
    // The second c has no vector.
    assert_eq!(near("v"), pairs(&[("a", 5.0), ("b", 25.0)]));
    assert_eq!(near("w"), pairs(&[("d", 98.0), ("b", 162.0)]));
}

#[test]
fn what_is_wrong_with_a_batch_is_named_and_nothing_of_it_taken() {
    let memory = Memory::new();
    let table = Table::create(Arc::new(memory.clone()), schema(), resources()).unwrap();
    let mut load = table.load().unwrap();
    let few = [1.0, 2.0];
    let wrong = |load: &mut Load<'_>, batch: Batch<'_>| load.add(batch, &effort()).unwrap_err().to_string();
    let ids = Batch { ids: Some(vec!["a".to_owned()]), ..batch(&["a", "b"]) };
    assert_eq!(wrong(&mut load, ids), "1 ids for 2 documents: give one each");
    let vectors = Batch { vectors: vec![("v", Vectors::F32(&few))], ..batch(&["a", "b"]) };
    assert_eq!(wrong(&mut load, vectors), "field \"v\": 1 vectors for 2 documents: give one each");
    let field = Batch { vectors: vec![("x", Vectors::F32(&few))], ..batch(&["a"]) };
    assert!(wrong(&mut load, field).contains("names no such vector field"));
    let nan = Batch { vectors: vec![("v", Vectors::F32(&[f32::NAN, 1.0]))], ..batch(&["a"]) };
    assert!(wrong(&mut load, nan).contains("field \"v\": vector 0 has NaN"));
    let some = [1.0, 2.0, 3.0, 4.0, 5.0, f32::INFINITY];
    let third = Batch { vectors: vec![("w", Vectors::F32(&some))], ..batch(&["a", "b", "c"]) };
    assert!(wrong(&mut load, third).starts_with("document 2: field \"w\": vector 0 has inf"));
    assert_eq!(wrong(&mut load, batch(&["a", ""])), "document 1: id \"\": give 1 to 512 bytes");
    let mut twice = Batch { vectors: vec![("v", Vectors::F32(&few))], ..batch(&["a"]) };
    twice.documents[0].insert("v".to_owned(), json!([1, 2]));
    assert!(wrong(&mut load, twice).contains("there are two: inside the document and beside it"));
    let mut number = batch(&["a", "b"]);
    number.documents[1].insert("n".to_owned(), json!("seven"));
    assert!(wrong(&mut load, number).starts_with("document 1: field \"n\": expected"));
    assert!(load.is_empty());
    load.add(batch(&["a"]), &effort()).unwrap();
    assert_eq!(load.finish(&effort()).unwrap(), 1);
    assert_eq!(table.load().unwrap().finish(&effort()).unwrap(), 0);
    let unnamed = Batch { ids: None, ..batch(&["b", "b"]) };
    let mut load = table.load().unwrap();
    load.add(unnamed, &effort()).unwrap();
    load.finish(&effort()).unwrap();
    assert_eq!((table.len(), segments(&memory)), (3, 2));
}

#[test]
fn a_load_that_is_given_up_leaves_nothing() {
    let memory = Memory::new();
    let table = Table::create(Arc::new(memory.clone()), schema(), resources()).unwrap();
    let mut load = table.load().unwrap();
    load.add(batch(&["a", "b"]), &effort()).unwrap();
    assert_eq!(segments(&memory), 1);
    drop(load);
    assert_eq!((segments(&memory), table.len()), (0, 0));
    let stop = Effort::new(Threads::new(Some(ONE)), &|| ControlFlow::Break(()));
    let mut load = table.load().unwrap();
    load.add(batch(&["a"]), &effort()).unwrap();
    assert!(load.finish(&stop).is_err());
    let mut load = table.load().unwrap();
    let with = Batch { vectors: vec![("v", Vectors::F32(&[1.0, 2.0]))], ..batch(&["a"]) };
    assert!(load.add(with, &stop).unwrap_err().to_string().ends_with("begin the load again"));
    assert!(load.add(batch(&["a"]), &effort()).unwrap_err().to_string().contains("an earlier batch failed"));
    assert!(load.finish(&effort()).is_err());
    assert_eq!((segments(&memory), table.len()), (0, 0));
}

/// Each call of the storage fails once: the load is there as a whole or not at all, and the table goes on.
#[test]
fn a_load_that_meets_a_full_disk_changes_nothing() {
    let (mut site, mut failed) = (0, true);
    while failed {
        let memory = Memory::new();
        let faulty = Arc::new(Faulty::new(Arc::new(memory.clone())));
        let table = Table::create(faulty.clone(), schema(), resources()).unwrap();
        table.write(vec![put("a", json!({"v": [1, 1], "w": [2, 2]}))]).remove(0).unwrap();
        table.flush().unwrap();
        table.write(vec![put("b", json!({"v": [3, 3]}))]).remove(0).unwrap();
        let before = faulty.failed();
        faulty.fail(&Call::ALL, site, true, Failure::Full);
        let load =
            table.load().and_then(|mut load| load.add(batch(&["a", "b", "c"]), &effort()).map(|()| load));
        let done = load.is_ok_and(|load| load.finish(&effort()).is_ok());
        failed = faulty.failed() > before;
        faulty.heal();
        // What was written survives, with or without the load.
        let sources = |table: &Table| ["a", "b", "c"].map(|id| source(table, id));
        let loaded = ["a", "b", "c"].map(|id| Some(json!({"text": id})));
        let old = [Some(json!({})), Some(json!({})), None];
        let here = sources(&table);
        assert_eq!(here, if done { loaded.clone() } else { old.clone() }, "call {site}");
        drop(table);
        let table = open(Arc::new(memory.clone()));
        // A manifest whose replacement is uncertain may hold.
        let there = sources(&table);
        assert!(there == here || (!done && there == loaded), "call {site}: {there:?}");
        table.write(vec![put("a", json!({"n": 1}))]).remove(0).unwrap();
        table.force_merge(1).unwrap();
        assert_eq!(source(&table, "a"), Some(json!({"n": 1})));
        site += 1;
    }
    assert!(site > 20, "{site} calls");
}

/// Loads and upkeep share a table.
#[test]
fn loads_and_upkeep_go_together() {
    let memory = Memory::new();
    let table = Table::create(Arc::new(memory.clone()), schema(), resources()).unwrap();
    let upkeep = Upkeep::start(ONE, Threads::new(Some(ONE))).unwrap();
    let table = upkeep.watch(table);
    let mut model = crate::check::Model::new();
    for round in 0..25u64 {
        let mut load = table.load().unwrap();
        let id = format!("d{}", round % 3);
        load.add(batch(&[&id]), &effort()).unwrap();
        load.finish(&effort()).unwrap();
        let version = model.get(&id).map_or(1, |known| known.0 + 1);
        model.insert(id.clone(), (version, json!({"text": id}), None));
        assert_eq!(differs(&table, &model), None);
    }
    drop(table);
    assert_eq!(differs(&open(Arc::new(memory)), &model), None);
}
