//! Nested objects: each is found as a whole, with its vectors, whatever happens to its document.

use crate::check::{object, open, put, resources};
use crate::checks::{with, worse};
use lanewise_engine::documents::{DocumentError, Query, Schema};
use lanewise_engine::index::{OwnedVectors, Vectors};
use lanewise_engine::table::{
    Batch, Effort, MergePolicy, Nearest, Repair, Repository, Request, SearchTableError, Severity, Table,
    Write, WriteError, check, repair, score,
};
use lanewise_engine::{Threads, index::Metric};
use lanewise_storage::{Faulty, Memory, Rng, Storage};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

const IDS: usize = 12;

fn schema(kind: &str) -> Schema {
    serde_json::from_value(json!({"dynamic": "true", "fields": {
        "p": {"type": "nested"}, "p.n": {"type": "integer"}, "p.c": {"type": "keyword"}, "p.t": {"type": "text"},
        "p.v": {"type": "vector", "dim": 2, "kind": kind, "m": 4, "nlist": 2},
        "a.q": {"type": "nested"}, "a.q.w": {"type": "vector", "dim": 1, "metric": "cosine", "kind": "flat"},
        "v": {"type": "vector", "dim": 2, "kind": "flat"}, "k": {"type": "keyword"}}}))
    .unwrap()
}

/// Documents by id.
type Model = BTreeMap<String, Value>;

fn random_document(random: &mut Rng) -> Value {
    let part = |random: &mut Rng| {
        let mut part =
            json!({"n": random.usize(..4), "c": format!("c{}", random.usize(..3)), "x": random.usize(..3)});
        if random.u8(..4) > 0 {
            part["v"] = json!([random.usize(..20), random.usize(..20)]);
        }
        if random.bool() {
            part["t"] = json!(["red fox", "red red hen", "blue"][random.usize(..3)]);
        }
        part
    };
    let mut document = json!({"k": format!("k{}", random.usize(..2)), "n": random.usize(..4)});
    match random.usize(..5) {
        0 => {}
        1 => document["p"] = part(random),
        _ => document["p"] = (0..random.usize(..5)).map(|_| part(random)).collect(),
    }
    if random.bool() {
        document["v"] = json!([random.usize(..9), 1]);
    }
    if random.u8(..4) == 0 {
        document["a"] = json!([{"q": {"w": [random.usize(1..3)]}}, {"q": [{"w": [-1]}, {"w": null}]}]);
    }
    document
}

/// The nested objects at `path`.
fn parts(document: &Value, path: &str) -> Vec<Value> {
    let mut all = vec![document.clone()];
    for key in path.split('.') {
        let inner = all.iter().filter_map(|one| one.get(key)).flat_map(|inner| match inner {
            Value::Array(all) => all.clone(),
            Value::Null => Vec::new(),
            one => vec![one.clone()],
        });
        all = inner.collect();
    }
    all
}

fn vector(part: &Value, name: &str) -> Option<Vec<f32>> {
    Some(part.get(name)?.as_array()?.iter().map(|x| x.as_f64().unwrap() as f32).collect())
}

/// The squared distance, and what it scores.
fn scored(part: &Value, to: [f32; 2]) -> Option<f32> {
    let v = vector(part, "v")?;
    Some(score(Metric::L2, (v[0] - to[0]).powi(2) + (v[1] - to[1]).powi(2)))
}

fn query(value: Value) -> Query {
    serde_json::from_value(value).unwrap()
}

fn nested(mode: &str, inner: Value) -> Query {
    query(json!({"nested": {"path": "p", "query": inner, "score": mode}}))
}

/// Ids with scores, best first; of equals the lesser id.
fn found(table: &Table, query: &Query) -> Vec<(String, f32)> {
    let request = Request { query: Some(query.clone()), size: 50, ..Request::default() };
    table.search(&request, None).unwrap().hits.into_iter().map(|hit| (hit.id, hit.score)).collect()
}

fn ids(found: &[(String, f32)]) -> Vec<String> {
    let mut ids: Vec<String> = found.iter().map(|(id, _)| id.clone()).collect();
    ids.sort();
    ids
}

/// The documents with an object that fits.
fn fitting(model: &Model, fits: &dyn Fn(&Value) -> bool) -> Vec<String> {
    let with = |document: &&Value| parts(document, "p").iter().any(fits);
    model.iter().filter(|(_, document)| with(document)).map(|(id, _)| id.clone()).collect()
}

fn ranking(mut all: Vec<(String, f32)>) -> Vec<(String, f32)> {
    all.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    all
}

/// What a table has otherwise than the model.
fn differs(table: &Table, model: &Model) -> Option<String> {
    let not = |what: &str, found: &dyn std::fmt::Debug, expected: &dyn std::fmt::Debug| {
        Some(format!("{what}: {found:?}, not {expected:?}"))
    };
    if table.len() != model.len() {
        return not("documents", &table.len(), &model.len());
    }
    for i in 0..IDS {
        let id = format!("d{i}");
        let source = table.get(&id).unwrap().map(|d| serde_json::from_slice::<Value>(&d.source).unwrap());
        let mut expected = model.get(&id).cloned();
        expected.iter_mut().filter_map(Value::as_object_mut).for_each(|one| drop(one.remove("v")));
        if source != expected {
            return not(&id, &source, &expected);
        }
    }
    // Objects are no documents.
    let (all, everything) = (found(table, &Query::All), model.keys().cloned().collect::<Vec<_>>());
    if ids(&all) != everything {
        return not("all", &ids(&all), &everything);
    }
    let request = json!({"aggs": {"k": {"value_count": {"field": "k"}}}, "size": 50});
    let answer = table.search(&serde_json::from_value(request).unwrap(), None).unwrap();
    if answer.total.value as usize != model.len() || answer.aggregations["k"]["value"] != model.len() as f64 {
        return not("figures", &answer.aggregations, &model.len());
    }
    let c1 = json!({"term": {"field": "p.c", "value": "c1"}});
    let n2 = json!({"range": {"field": "p.n", "range": {"gte": 2}}});
    type Fits<'a> = &'a dyn Fn(&Value) -> bool;
    let asked: [(Value, Fits<'_>); 7] = [
        (c1.clone(), &|part| part["c"] == "c1"),
        (json!({"bool": {"must": [c1.clone(), n2.clone()]}}), &|part| {
            part["c"] == "c1" && part["n"].as_u64() >= Some(2)
        }),
        (json!({"bool": {"must_not": [c1.clone()]}}), &|part| part["c"] != "c1"),
        (json!("all"), &|_| true),
        (json!({"exists": {"field": "p.v"}}), &|part| part.get("v").is_some()),
        // What the schema does not name.
        (json!({"term": {"field": "p.x", "value": 2}}), &|part| part["x"] == 2),
        (json!({"match": {"field": "p.t", "text": "fox hen"}}), &|part| {
            part.get("t").is_some_and(|t| t != "blue")
        }),
    ];
    for (inner, fits) in asked {
        let expected = fitting(model, fits);
        let one = nested("avg", inner.clone());
        let found_ids = ids(&found(table, &one));
        if found_ids != expected {
            return not(&inner.to_string(), &found_ids, &expected);
        }
        let filtered = Request { filter: Some(one.clone()), size: 50, ..Request::default() };
        for times in 0..2 {
            let mut hits: Vec<String> =
                table.search(&filtered, None).unwrap().hits.into_iter().map(|hit| hit.id).collect();
            hits.sort();
            if hits != expected {
                return not(&format!("{inner} as a filter, {times}"), &hits, &expected);
            }
        }
        // Of documents, nothing of objects is found.
        let outside = found(table, &query(inner.clone()));
        if inner.get("term").is_some() && !outside.is_empty() {
            return not(&format!("{inner} of documents"), &outside, &"nothing");
        }
    }
    // Scores are made of those of objects.
    let to = [7.0, 9.0];
    let compared = json!({"scored": {"query": "all", "field": "p.v", "vector": to, "space": "l2"}});
    for (mode, of) in [
        ("avg", (|all| all.iter().sum::<f32>() / all.len() as f32) as fn(&[f32]) -> f32),
        ("max", |all| all.iter().copied().fold(0.0, f32::max)),
        ("min", |all| all.iter().copied().fold(9.0, f32::min)),
        ("sum", |all| all.iter().sum()),
        ("none", |_| 0.0),
    ] {
        let scores = |document: &Value| -> Vec<f32> {
            parts(document, "p").iter().map(|part| scored(part, to).unwrap_or(0.0)).collect()
        };
        let all = model.iter().map(|(id, document)| (id.clone(), scores(document)));
        let expected = ranking(all.filter(|(_, s)| !s.is_empty()).map(|(id, s)| (id, of(&s))).collect());
        let hits = found(table, &nested(mode, compared.clone()));
        let same = hits.len() == expected.len()
            && hits.iter().zip(&expected).all(|(a, b)| (a.1 - b.1).abs() < 1e-6)
            && ids(&hits) == ids(&expected);
        if !same {
            return not(mode, &hits, &expected);
        }
    }
    // The nearest of each document.
    let best = |document: &Value, may: Fits<'_>| {
        let scores =
            parts(document, "p").into_iter().filter(|part| may(part)).filter_map(|part| scored(&part, to));
        scores.reduce(f32::max)
    };
    let yes: Fits<'_> = &|_| true;
    let is_c1: Fits<'_> = &|part| part["c"] == "c1";
    let k1 = json!({"term": {"field": "k", "value": "k1"}});
    let is_k1 = |document: &Value| document["k"] == "k1";
    let has_c1 = |document: &Value| parts(document, "p").iter().any(is_c1);
    for k in [1, 3, 50] {
        let of_objects = json!({"nested": {"path": "p", "query": c1}});
        let both = json!({"bool": {"filter": [k1, of_objects]}});
        for (filter, documents, objects) in [
            (None, &(|_: &Value| true) as Fits<'_>, yes),
            (Some(of_objects), &|_: &Value| true, is_c1),
            (Some(both), &|document: &Value| is_k1(document) && has_c1(document), yes),
            (Some(json!({"bool": {"must_not": [k1.clone()]}})), &|document: &Value| !is_k1(document), yes),
            (Some(k1.clone()), &is_k1, yes),
        ] {
            let nearest = json!({"field": "p.v", "vector": to, "k": k, "exact": true, "filter": filter});
            let hits = found(table, &nested("avg", json!({"nearest": nearest})));
            let some = model.iter().filter(|(_, document)| documents(document));
            let mut expected =
                ranking(some.filter_map(|(id, d)| Some((id.clone(), best(d, objects)?))).collect());
            expected.truncate(k);
            let scores = |all: &[(String, f32)]| all.iter().map(|(_, score)| *score).collect::<Vec<f32>>();
            // Of equals, whichever comes first.
            let holds = |(id, score): &(String, f32)| {
                best(&model[id], objects) == Some(*score) && documents(&model[id])
            };
            if scores(&hits) != scores(&expected) || !hits.iter().all(holds) {
                return not(&nearest.to_string(), &hits, &expected);
            }
        }
    }
    let nearest = json!({"field": "p.v", "vector": to, "k": 50, "exact": true, "expand": true});
    let hits = found(table, &nested("avg", json!({"nearest": nearest})));
    let mean = |document: &Value| {
        let all: Vec<f32> = parts(document, "p").iter().filter_map(|part| scored(part, to)).collect();
        (!all.is_empty()).then(|| all.iter().sum::<f32>() / all.len() as f32)
    };
    let expected: BTreeMap<String, f32> =
        model.iter().filter_map(|(id, d)| Some((id.clone(), mean(d)?))).collect();
    if hits.len() != expected.len() || hits.iter().any(|(id, score)| (expected[id] - score).abs() > 1e-6) {
        return not("expanded", &hits, &expected);
    }
    let radius = json!({"field": "p.v", "vector": to, "min_score": 0.02, "exact": true});
    let hits = ids(&found(table, &nested("max", json!({"nearest": radius}))));
    let expected = fitting(model, &|part| scored(part, to).is_some_and(|score| score >= 0.02));
    if hits != expected {
        return not("within", &hits, &expected);
    }
    let cosine =
        json!({"nested": {"path": "a.q", "query": {"nearest": {"field": "a.q.w", "vector": [2], "k": 50}}}});
    let hits = ids(&found(table, &query(cosine)));
    let with = |d: &&Value| parts(d, "a.q").iter().any(|part| part["w"].is_array());
    let expected: Vec<String> = model.iter().filter(|(_, d)| with(d)).map(|(id, _)| id.clone()).collect();
    (hits != expected).then(|| format!("cosine: {hits:?}, not {expected:?}"))
}

/// A random history; the model after each change. Notes in `storage` which is acknowledged.
fn history(seed: u64, storage: &Memory) -> Vec<Model> {
    let mut random = Rng::with_seed(seed);
    let shared: Arc<dyn Storage> = Arc::new(Faulty::new(Arc::new(storage.clone())));
    let kind = ["hnsw", "flat", "ivf"][seed as usize % 3];
    let mut table = Table::create(shared.clone(), schema(kind), resources()).unwrap();
    let mut models = vec![Model::new()];
    storage.note(0);
    for at in 0..18 {
        let mut model = models.last().unwrap().clone();
        match random.usize(..10) {
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
            4 => {
                // One id comes twice: the last counts.
                let mut load = table.load().unwrap();
                let effort = Effort::of(Threads::new(NonZeroUsize::new(1)));
                let all = (0..6).map(|_| (format!("d{}", random.usize(..IDS)), random_document(&mut random)));
                let all: Vec<(String, Value)> = all.collect();
                for some in all.chunks(4) {
                    let ids = Some(some.iter().map(|(id, _)| id.clone()).collect());
                    let documents = some.iter().map(|(_, document)| object(document.clone())).collect();
                    load.add(Batch { ids, documents, vectors: Vec::new() }, &effort).unwrap();
                }
                assert_eq!(load.len(), 6);
                model.extend(all);
                let loaded = load.finish(&effort).unwrap();
                assert!(loaded <= 6);
                models.push(model);
            }
            _ => {
                let writes = (0..1 + random.usize(..4)).map(|_| {
                    let id = format!("d{}", random.usize(..IDS));
                    if random.u8(..4) == 0 {
                        model.remove(&id);
                        models.push(model.clone());
                        return Write::Delete { id, when: Default::default() };
                    }
                    let document = random_document(&mut random);
                    model.insert(id.clone(), document.clone());
                    models.push(model.clone());
                    put(&id, document)
                });
                for result in table.write(writes.collect()) {
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
fn objects_are_whole_after_any_crash() {
    let mut crashes = 0;
    for seed in 0..3 {
        let storage = Memory::new();
        let models = history(seed, &storage);
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
    assert!(crashes > 60, "{crashes} crashes");
}

#[test]
fn a_table_with_objects_is_checked_saved_and_restored() {
    let storage = Memory::new();
    let models = history(7, &storage);
    let last = models.last().unwrap();
    open(Arc::new(storage.clone())).flush().unwrap();
    let files: Arc<dyn Storage> = Arc::new(storage.clone());
    let report = check(&files, &mut |_, _| ControlFlow::Continue(())).unwrap();
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    assert_eq!(report.documents as usize, last.len());
    let repository = Repository::new(Arc::new(Memory::new()));
    let table = open(Arc::new(storage));
    table.snapshot(&repository, "one", 0, &mut |_, _| ControlFlow::Continue(())).unwrap();
    let to = Memory::new();
    repository.restore("one", &to, &mut |_, _| ControlFlow::Continue(())).unwrap();
    assert_eq!(differs(&open(Arc::new(to)), last), None);
}

/// What can be read of a damaged table is whole: a document comes back with all of its objects, or not at all.
#[test]
fn a_repaired_table_has_whole_documents() {
    let storage = Memory::new();
    let table = Table::create(Arc::new(storage.clone()), schema("hnsw"), resources()).unwrap();
    let mut random = Rng::with_seed(11);
    let mut model: Model = (0..IDS).map(|i| (format!("d{i}"), random_document(&mut random))).collect();
    table.write(model.iter().map(|(id, document)| put(id, document.clone())).collect());
    table.flush().unwrap();
    table.write(vec![Write::Delete { id: "d3".into(), when: Default::default() }]).remove(0).unwrap();
    table.force_merge(1).unwrap();
    model.remove("d3");
    drop(table);
    let (mut anew, mut lost) = (0, 0);
    let segment = storage.list(Path::new("segments")).unwrap().remove(0).name;
    let dir = Path::new("segments").join(segment);
    for entry in storage.list(&dir).unwrap() {
        let path = dir.join(&entry.name);
        let whole = (*storage.open(&path).unwrap()).as_ref().to_vec();
        for _ in 0..4 {
            let Some(bytes) = worse(&whole, &mut random) else { continue };
            let files: Arc<dyn Storage> = Arc::new(with(&storage, &path, Some(&bytes)));
            let threads = Threads::new(NonZeroUsize::new(1));
            let go_on = &mut |_, _| ControlFlow::Continue(());
            let report = repair(&files, Repair::default(), threads, go_on).unwrap();
            anew += usize::from(report.severity() > Some(Severity::Harmless));
            let table = open(files);
            let mut left = model.clone();
            left.retain(|id, _| table.get(id).unwrap().is_some());
            lost += model.len() - left.len();
            assert!(left.len() == model.len() || !report.affected.is_empty());
            // Vectors of documents may be gone; objects have theirs in the source.
            assert_eq!(differs(&table, &left), None, "{path:?}");
        }
    }
    assert!(anew > 5, "{anew} repaired");
    println!("{anew} repaired, {lost} documents lost");
}

#[test]
fn what_is_wrong_about_objects_is_said() {
    let table = Table::create(Arc::new(Memory::new()), schema("hnsw"), resources()).unwrap();
    let said = |document: Value| table.write(vec![put("a", document)]).remove(0).unwrap_err().to_string();
    assert!(said(json!({"p": 3})).contains("field \"p\": expected an object, or several"));
    assert!(said(json!({"p": [{"n": "x"}]})).contains("field \"p.n\": expected a whole number"));
    assert!(said(json!({"p": [{"v": [1]}]})).contains("field \"p.v\": a vector of 2 numbers is expected"));
    let many: Vec<Value> = vec![json!({}); 10_001];
    assert!(said(json!({"p": many})).contains("at most 10000 nested objects"));
    let zero = table.write(vec![put("a", json!({"a": {"q": {"w": [0]}}}))]).remove(0).unwrap_err();
    assert!(matches!(&zero, WriteError::Vector { field, .. } if field == "a.q.w"), "{zero}");
    let beside = Write::Put {
        id: Some("a".into()),
        document: object(json!({})),
        vectors: vec![("p.v".into(), OwnedVectors::F32(vec![1.0, 2.0]))],
        when: Default::default(),
    };
    let beside = table.write(vec![beside]).remove(0).unwrap_err();
    assert!(matches!(beside, WriteError::Document(DocumentError::NoVector { .. })), "{beside}");
    let mut load = table.load().unwrap();
    let effort = Effort::of(Threads::new(NonZeroUsize::new(1)));
    let batch = Batch {
        ids: None,
        documents: vec![object(json!({}))],
        vectors: vec![("p.v", Vectors::F32(&[1.0, 2.0]))],
    };
    assert!(load.add(batch, &effort).is_err());
    assert_eq!(table.len(), 0);

    let search = |request: Value| {
        let request: Request = serde_json::from_value(request).unwrap();
        table.search(&request, None).map(|_| ()).unwrap_err()
    };
    let near = json!({"field": "p.v", "vector": [1, 2]});
    let alone = search(json!({"nearest": [near]}));
    assert!(matches!(&alone, SearchTableError::Nested { path, .. } if path == "p"), "{alone}");
    let other = search(json!({"query": {"nested": {"path": "a.q", "query": {"nearest": near}}}}));
    assert!(matches!(other, SearchTableError::NotNested { .. }), "{other}");
    let nowhere = search(json!({"query": {"nested": {"path": "k", "query": "all"}}}));
    assert!(nowhere.to_string().contains("names no nested objects"), "{nowhere}");
    let twice = json!({"nested": {"path": "a.q", "query": "all"}});
    let twice = search(json!({"query": {"nested": {"path": "p", "query": twice}}}));
    assert!(twice.to_string().contains("within another nested query"), "{twice}");
    let inside = json!({"p": {"type": "nested"}, "p.q": {"type": "nested"}});
    let inside: Schema = serde_json::from_value(json!({"fields": inside})).unwrap();
    assert!(inside.check().unwrap_err().to_string().contains("nested objects hold no others"));
    let copied = json!({"fields": {"p": {"type": "nested"}, "p.a": {"type": "keyword"}, "b": {"type": "keyword"}},
        "rules": {"p.a": {"copy_to": ["b"]}}});
    assert!(serde_json::from_value::<Schema>(copied).unwrap().check().is_err());
}

/// Objects that come to a table later: documents from before have none until they are put again.
#[test]
fn objects_that_come_later_are_found_in_what_comes_after() {
    let memory = Memory::new();
    let first: Schema =
        serde_json::from_value(json!({"dynamic": "false", "fields": {"k": {"type": "keyword"}}})).unwrap();
    let table = Table::create(Arc::new(memory.clone()), first, resources()).unwrap();
    let document = json!({"k": "k1", "p": [{"n": 1, "v": [1, 1]}, {"n": "none", "v": "none"}]});
    table.write(vec![put("sealed", document.clone())]).remove(0).unwrap();
    table.flush().unwrap();
    let more = json!({"fields": {"p": {"type": "nested"}, "p.n": {"type": "integer"}, "p.v": {"type": "vector", "dim": 2}}});
    table.write(vec![put("logged", document)]).remove(0).unwrap();
    table.grow(&serde_json::from_value(more).unwrap()).unwrap();
    table.write(vec![put("new", json!({"k": "k1", "p": {"n": 1, "v": [2, 2]}}))]).remove(0).unwrap();
    let near = Nearest::new("p.v", OwnedVectors::F32(vec![1.0, 1.0]));
    let near =
        Query::Nested { path: "p".into(), query: Box::new(Query::Nearest(near)), score: Default::default() };
    let n1 = nested("none", json!({"term": {"field": "p.n", "value": 1}}));
    assert_eq!(
        (ids(&found(&table, &near)), ids(&found(&table, &n1))),
        (vec!["new".into()], vec!["new".into()])
    );
    drop(table);
    // What the log holds is read under the fields that there are now.
    let table = open(Arc::new(memory));
    assert_eq!(ids(&found(&table, &near)), ["logged", "new"]);
    assert_eq!(ids(&found(&table, &n1)), ["logged", "new"]);
    assert_eq!(table.len(), 3);
    table.force_merge(1).unwrap();
    assert_eq!(ids(&found(&table, &Query::All)), ["logged", "new", "sealed"]);
    assert_eq!(ids(&found(&table, &near)), ["logged", "new"]);
}
