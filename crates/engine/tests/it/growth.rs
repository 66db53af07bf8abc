//! Tables whose schema grows: what is there stays, what comes is found, whatever happens in between.

use crate::check::{object, open, put, resources};
use lanewise_engine::documents::{Query, Schema};
use lanewise_engine::index::OwnedVectors;
use lanewise_engine::table::{MergePolicy, Nearest, Repository, Request, Table, Write, check};
use lanewise_storage::{Faulty, Memory, Rng, Storage};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;

const IDS: usize = 8;
const STEPS: usize = 3;

fn schema(value: Value) -> Schema {
    serde_json::from_value(value).unwrap()
}

fn first() -> Schema {
    schema(json!({"dynamic": "false", "fields": {
        "m": {"type": "vector", "dim": 2, "m": 4, "ef_construction": 20}, "t": {"type": "text"}}}))
}

/// What comes with each step; by name before, and behind, what is there.
fn step(n: usize) -> Schema {
    let kinds = ["hnsw", "flat", "ivf"];
    schema(json!({"dynamic": "false", "fields": {
        format!("a{n}"): {"type": "vector", "dim": 2, "kind": kinds[n], "m": 4, "nlist": 2},
        format!("k{n}"): {"type": "keyword"}, format!("t.w{n}"): {"type": "text", "analyzer": "whitespace"},
        format!("n{n}"): {"type": "integer"}}}))
}

/// Documents by id, and how many steps were taken.
#[derive(Clone, Debug, Default, PartialEq)]
struct Model {
    steps: usize,
    documents: BTreeMap<String, Value>,
}

fn random_put(random: &mut Rng, model: &mut Model) -> Write {
    let id = format!("d{}", random.usize(..IDS));
    let mut document = json!({"t": format!("Word{} all", random.usize(..3)), "m": [random.usize(..9), 1]});
    // A field that is not there yet is kept, and never found: none has a value of another kind.
    for n in 0..model.steps {
        if random.bool() {
            document[format!("a{n}")] = json!([random.usize(..9), random.usize(..9)]);
            document[format!("k{n}")] = json!(format!("v{}", random.usize(..3)));
            document[format!("n{n}")] = json!(random.usize(..5));
        }
    }
    model.documents.insert(id.clone(), document.clone());
    put(&id, document)
}

fn found(table: &Table, request: &Request) -> BTreeSet<String> {
    table.search(request, None).unwrap().hits.into_iter().map(|hit| hit.id).collect()
}

/// What a table has otherwise than the model.
fn differs(table: &Table, model: &Model) -> Option<String> {
    let ids = |fits: &dyn Fn(&Value) -> bool| {
        let all = model.documents.iter().filter(|(_, document)| fits(document));
        all.map(|(id, _)| id.clone()).collect::<BTreeSet<String>>()
    };
    for i in 0..IDS {
        let id = format!("d{i}");
        let source = table.get(&id).unwrap().map(|d| serde_json::from_slice::<Value>(&d.source).unwrap());
        let mut expected = model.documents.get(&id).cloned();
        if let Some(Value::Object(fields)) = &mut expected {
            fields.retain(|name, _| !name.starts_with(['a', 'm']));
        }
        if source != expected {
            return Some(format!("{id}: {source:?}, not {expected:?}"));
        }
    }
    let steps = (0..STEPS).take_while(|n| table.schema().fields.contains_key(&format!("k{n}"))).count();
    if steps != model.steps {
        return Some(format!("{steps} steps, not {}", model.steps));
    }
    let mut asked: Vec<(String, Query, BTreeSet<String>)> = Vec::new();
    let field = |name: &str, n: usize| format!("{name}{n}");
    for n in 0..steps {
        let value = json!("v1");
        let query = Query::Term { field: field("k", n), value: value.clone() };
        asked.push((field("k", n), query, ids(&|d| d[field("k", n)] == value)));
        let range = serde_json::from_value(json!({"gte": 2})).unwrap();
        let query = Query::Range { field: field("n", n), range };
        asked.push((field("n", n), query, ids(&|d| d[field("n", n)].as_u64() >= Some(2))));
        let query = Query::Exists { field: field("k", n) };
        asked.push((field("exists", n), query, ids(&|d| d.get(field("k", n)).is_some())));
    }
    let text = |text: &str| Query::Match {
        field: "t".into(),
        text: text.into(),
        operator: Default::default(),
        fuzziness: None,
    };
    asked.push(("t".into(), text("word2"), ids(&|d| d["t"] == "Word2 all")));
    for (what, query, expected) in asked {
        for scored in [false, true] {
            let mut request = Request { size: 50, ..Request::default() };
            *(if scored { &mut request.query } else { &mut request.filter }) = Some(query.clone());
            let found = found(table, &request);
            if found != expected {
                return Some(format!("{what}: {found:?}, not {expected:?}"));
            }
        }
    }
    for name in (0..steps).map(|n| field("a", n)).chain(["m".to_owned()]) {
        let nearest =
            Nearest { k: 50, exact: true, ..Nearest::new(&name, OwnedVectors::F32(vec![4.0, 3.0])) };
        let found = found(table, &Request { nearest: vec![nearest], size: 50, ..Request::default() });
        let expected = ids(&|d| d.get(&name).is_some());
        if found != expected {
            return Some(format!("{name}: {found:?}, not {expected:?}"));
        }
        let all: Vec<&str> = expected.iter().map(String::as_str).collect();
        for (id, fetched) in all.iter().zip(table.fetch(&all, &[&name]).unwrap()) {
            let numbers = model.documents[*id][&name].as_array().unwrap();
            let given = numbers.iter().map(|x| x.as_f64().unwrap() as f32).collect();
            if fetched.unwrap().vectors != [Some(OwnedVectors::F32(given))] {
                return Some(format!("{name} of {id}"));
            }
        }
    }
    // Segments of all ages in one order, and in one figure.
    if steps > 0 {
        let request: Request = serde_json::from_value(json!({"size": 50, "sort": [{"n0": {"order": "asc"}}],
            "aggs": {"s": {"sum": {"field": "n0"}}, "k": {"terms": {"field": "k0"}}}}))
        .unwrap();
        let answer = table.search(&request, None).unwrap();
        let sum: u64 = model.documents.values().filter_map(|d| d["n0"].as_u64()).sum();
        let sorted: Vec<u64> = answer
            .hits
            .iter()
            .filter_map(|hit| model.documents.get(&hit.id).map(|d| d["n0"].as_u64().unwrap_or(u64::MAX)))
            .collect();
        if answer.aggregations["s"]["value"].as_f64().unwrap_or(0.0) != sum as f64 || !sorted.is_sorted() {
            return Some(format!("{sorted:?}, {}, sum {sum}", answer.aggregations));
        }
    }
    None
}

/// A random history; the model after each change. Notes in `storage` which is acknowledged.
fn history(seed: u64, storage: &Memory) -> Vec<Model> {
    let mut random = Rng::with_seed(seed);
    let shared: Arc<dyn Storage> = Arc::new(Faulty::new(Arc::new(storage.clone())));
    let mut table = Table::create(shared.clone(), first(), resources()).unwrap();
    let mut models = vec![Model::default()];
    storage.note(0);
    for at in 0..24 {
        let mut model = models.last().unwrap().clone();
        match random.usize(..9) {
            0 => table.flush().unwrap(),
            1 => {
                drop(table);
                table = open(shared.clone());
            }
            2 => table.force_merge(1 + random.usize(..2)).unwrap(),
            3 => {
                let policy = MergePolicy { segments_per_tier: 2, floor_segment: 1, ..MergePolicy::default() };
                while table.merge(&policy).unwrap().is_some() {}
            }
            4 | 5 if model.steps < STEPS => {
                table.grow(&step(model.steps)).unwrap();
                model.steps += 1;
                models.push(model);
            }
            _ => {
                for result in table.write(
                    (0..1 + random.usize(..3))
                        .map(|_| {
                            let write = random_put(&mut random, &mut model);
                            models.push(model.clone());
                            write
                        })
                        .collect(),
                ) {
                    result.unwrap();
                }
            }
        }
        storage.note(models.len() as u64 - 1);
        if let Some(what) = differs(&table, models.last().unwrap()) {
            panic!("seed {seed}, change {at}: {what}");
        }
    }
    models
}

#[test]
fn a_grown_table_is_whole_after_any_crash() {
    let (mut crashes, mut steps) = (0, 0);
    for seed in 0..3 {
        let storage = Memory::new();
        let models = history(seed, &storage);
        steps += models.last().unwrap().steps;
        let journal = storage.journal();
        let mut random = Rng::with_seed(seed);
        for at in journal.syncs().flat_map(|at| [at, at + 1]) {
            let Some(acknowledged) = journal.notes(at).max() else { continue };
            let table = open(Arc::new(journal.image(at, &mut random)));
            let why: Option<Vec<String>> =
                models[acknowledged as usize..].iter().map(|model| differs(&table, model)).collect();
            assert_eq!(why.map(|why| why[0].clone()), None, "seed {seed}, crash at {at}");
            crashes += 1;
        }
    }
    assert!(crashes > 80 && steps > 3, "{crashes} crashes, {steps} steps");
}

#[test]
fn a_grown_table_is_checked_saved_and_restored() {
    let storage = Memory::new();
    let models = history(3, &storage);
    let last = models.last().unwrap();
    assert_eq!(last.steps, STEPS);
    let files: Arc<dyn Storage> = Arc::new(storage.clone());
    let report = check(&files, &mut |_, _| ControlFlow::Continue(())).unwrap();
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    let repository = Repository::new(Arc::new(Memory::new()));
    let table = open(Arc::new(storage));
    table.snapshot(&repository, "one", 0, &mut |_, _| ControlFlow::Continue(())).unwrap();
    let to = Memory::new();
    repository.restore("one", &to, &mut |_, _| ControlFlow::Continue(())).unwrap();
    assert_eq!(differs(&open(Arc::new(to)), last), None);
}

#[test]
fn what_cannot_come_later_is_refused_and_nothing_changes() {
    let memory = Memory::new();
    let table = Table::create(Arc::new(memory.clone()), first(), resources()).unwrap();
    table.grow(&step(0)).unwrap();
    let before = table.schema();
    for (more, says) in [
        (json!({"t": {"type": "keyword"}}), "\"t\" cannot become another"),
        (json!({"a0": {"type": "vector", "dim": 3}}), "\"a0\" cannot become another"),
        (json!({"m.x": {"type": "keyword"}}), "both a field and an object's path"),
    ] {
        let more = schema(json!({"dynamic": "false", "fields": more}));
        let said = table.grow(&more).unwrap_err().to_string();
        assert!(said.contains(says), "{said}");
        assert_eq!(table.schema(), before);
    }
    // What is there is not written again.
    let journal = memory.journal().len();
    table.grow(&step(0)).unwrap();
    assert_eq!(memory.journal().len(), journal);
}

/// What the log holds was taken under the schema of its time.
#[test]
fn documents_that_would_be_refused_now_are_kept_when_they_are_replayed() {
    let memory = Memory::new();
    let table = Table::create(Arc::new(memory.clone()), first(), resources()).unwrap();
    let old = json!({"n0": "no number", "a0": "no vector", "k0": ["x", {"y": 1}], "other": 1});
    table.write(vec![put("old", old.clone())]).remove(0).unwrap();
    table.grow(&step(0)).unwrap();
    assert!(table.write(vec![put("new", old.clone())]).remove(0).is_err());
    drop(table);
    let table = open(Arc::new(memory));
    let kept = table.get("old").unwrap().unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&kept.source).unwrap(), old);
    table.force_merge(1).unwrap();
    assert_eq!(table.len(), 1);
}

/// A field of several kinds, and rules of fields.
#[test]
fn one_value_is_found_in_several_ways() {
    let schema = schema(json!({"fields": {
        "t": {"type": "text"}, "t.keyword": {"type": "keyword"}, "t.n": {"type": "integer"}, "n": {"type": "integer"},
        "o.s": {"type": "keyword"}, "all": {"type": "text"}},
        "rules": {"t.keyword": {"ignore_above": 5}, "t.n": {"ignore_malformed": true}, "t": {"copy_to": ["all"]},
            "o.s": {"null_value": "NONE", "copy_to": ["all"]}, "n": {"coerce": true}}}));
    let table = Table::create(Arc::new(Memory::new()), schema, resources()).unwrap();
    let documents = [
        json!({"t": "Red"}),
        json!({"t": ["12", "Red Shoes"], "n": 3.9}),
        json!({"o": [{"s": "blue"}, {"s": null}]}),
        json!({"t": 7, "n": "-4", "o": {"s": "red"}}),
    ];
    let writes = documents.iter().enumerate().map(|(id, document)| put(&id.to_string(), document.clone()));
    table.write(writes.collect()).into_iter().for_each(|written| drop(written.unwrap()));
    for flushed in [false, true] {
        if flushed {
            table.flush().unwrap();
        }
        for (field, value, expected) in [
            ("t", json!("red"), &["0", "1"][..]),
            ("t.keyword", json!("Red"), &["0"]),
            ("t.keyword", json!("Red Shoes"), &[]),
            ("t.n", json!(12), &["1"]),
            ("t.n", json!(7), &["3"]),
            ("n", json!(3), &["1"]),
            ("n", json!(-4), &["3"]),
            ("o.s", json!("blue"), &["2"]),
            ("o.s", json!("NONE"), &["2"]),
            ("all", json!("red"), &["0", "1", "3"]),
        ] {
            let filter = Some(Query::Term { field: field.to_owned(), value: value.clone() });
            let found = found(&table, &Request { filter, size: 9, ..Request::default() });
            assert!(found.iter().eq(expected), "{field}={value}: {found:?}");
        }
    }
    let said = table.write(vec![put("x", json!({"n": "many"}))]).remove(0).unwrap_err().to_string();
    assert!(said.contains("field \"n\""), "{said}");
}

#[test]
fn a_vector_in_an_array_of_objects_is_refused_by_name() {
    let schema = schema(json!({"fields": {"o.v": {"type": "vector", "dim": 1}}}));
    let table = Table::create(Arc::new(Memory::new()), schema, resources()).unwrap();
    let said = table.write(vec![put("x", json!({"o": [{"v": [1]}]}))]).remove(0).unwrap_err().to_string();
    assert!(said.contains("\"o.v\"") && said.contains("array of objects"), "{said}");
    let object = object(json!({"o": {"v": [1]}}));
    table.write(vec![put("x", Value::Object(object))]).remove(0).unwrap();
}
