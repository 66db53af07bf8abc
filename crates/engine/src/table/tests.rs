//! Tables against a model: random histories, restarts, and every crash that a power cut may leave.

use super::*;
use crate::documents::{Query, Schema};
use crate::{Pool, Threads};
use lanewise_index::{OwnedVectors, Search, Vectors};
use lanewise_scheduler::{Layout, Options, Workers};
use lanewise_storage::{Call, Failure, Faulty, Memory, Random, Storage};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::{Arc, LazyLock};

/// A document: version, source, vector.
type Known = (u64, Value, Option<[f32; 2]>);
type Model = BTreeMap<String, Known>;

const IDS: usize = 12;

fn schema() -> Schema {
    let kinds = ["hnsw", "flat"];
    let vector =
        |kind: &str| json!({"type": "vector", "dim": 2, "kind": kind, "m": 4, "ef_construction": 20});
    let schema = json!({"fields": {"v": vector(kinds[0]), "w": vector(kinds[1]), "n": {"type": "integer"}}});
    serde_json::from_value(schema).unwrap()
}

/// Two chiplets of one worker each, for all tests.
fn resources() -> Resources {
    static POOL: LazyLock<Arc<Pool>> = LazyLock::new(|| {
        let workers = Workers::Unbound(Layout::new(&[1, 1]));
        Arc::new(Pool::start(Options { workers, ..Options::default() }).unwrap())
    });
    Resources { threads: Threads::new(NonZeroUsize::new(1)), pool: POOL.clone() }
}

fn object(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

fn put(id: &str, document: Value) -> Write {
    Write::Put {
        id: Some(id.to_owned()),
        document: object(document),
        vectors: Vec::new(),
        when: When::Always,
    }
}

fn delete(id: &str) -> Write {
    Write::Delete { id: id.to_owned(), when: When::Always }
}

/// A random write, and what it makes of the model.
fn random_write(random: &mut Random, model: &mut Model) -> Write {
    let id = format!("d{}", random.below(IDS));
    if random.below(4) == 0 {
        model.remove(&id);
        return delete(&id);
    }
    let n = random.below(5);
    let vector = (random.below(3) > 0).then(|| [random.below(9) as f32, random.below(9) as f32]);
    let source = json!({"n": n, "text": format!("word{n} all")});
    let mut document = source.clone();
    if let Some(vector) = vector {
        document["v"] = json!(vector);
        document["w"] = json!(vector);
    }
    let version = model.get(&id).map_or(1, |known| known.0 + 1);
    model.insert(id.clone(), (version, source, vector));
    put(&id, document)
}

/// Whether the table holds just what the model does; what differs.
fn differs(table: &Table, model: &Model) -> Option<String> {
    let check = |fine: bool, what: &dyn Fn() -> String| if fine { None } else { Some(what()) };
    let at = |what: &str, id: &str| format!("{what} of {id}");
    for i in 0..IDS {
        let id = format!("d{i}");
        let found = table.get(&id).unwrap();
        let known = found.map(|d| (d.version, serde_json::from_slice::<Value>(&d.source).unwrap()));
        let expected = model.get(&id).map(|known| (known.0, known.1.clone()));
        let wrong = || format!("{}: {known:?}, expected {expected:?}", at("document", &id));
        if let Some(what) = check(known == expected, &wrong) {
            return Some(what);
        }
    }
    if let Some(what) = check(table.len() == model.len(), &|| format!("{} documents", table.len())) {
        return Some(what);
    }
    let query = [4.0, 3.5];
    let distance = |v: &[f32; 2]| (v[0] - query[0]).powi(2) + (v[1] - query[1]).powi(2);
    for (field, filter) in [("v", None), ("w", None), ("v", Some(2)), ("w", Some(2))] {
        let query_of = filter.map(|n| Query::Term { field: "n".to_owned(), value: json!(n) });
        let concurrent = if field == "v" { Concurrent::On } else { Concurrent::Auto };
        let how = Search { exact: field == "v", ..Search::new(5) };
        let nearest =
            Nearest { field, query: Vectors::F32(&query), how, filter: query_of.as_ref(), concurrent };
        let Answer { hits, searched, .. } = table.nearest(&nearest, None).unwrap();
        assert!(!searched.is_empty());
        let fits = |known: &&Known| filter.is_none_or(|n| known.1["n"] == json!(n));
        let mut expected: Vec<f32> =
            model.values().filter(fits).filter_map(|k| k.2.as_ref().map(distance)).collect();
        expected.sort_by(f32::total_cmp);
        expected.truncate(5);
        let own = hits.iter().all(|hit| {
            model.get(&hit.id).and_then(|known| known.2.as_ref().map(distance)) == Some(hit.score)
        });
        let found: Vec<f32> = hits.iter().map(|hit| hit.score).collect();
        if let Some(what) =
            check(own && found == expected, &|| format!("{field} {filter:?}: {hits:?}, {expected:?}"))
        {
            return Some(what);
        }
    }
    let query =
        Query::Match { field: "text".to_owned(), text: "word3".to_owned(), operator: Default::default() };
    let (hits, all) = table.matching(&query, 100).unwrap();
    let mut found: Vec<String> = hits.into_iter().map(|hit| hit.id).collect();
    found.sort();
    let expected: Vec<&String> =
        model.iter().filter(|(_, known)| known.1["n"] == json!(3)).map(|(id, _)| id).collect();
    check(found.iter().eq(expected) && all == found.len(), &|| format!("words: {found:?}"))
}

fn open(storage: Arc<dyn Storage>) -> Table {
    Table::open(storage, resources()).unwrap()
}

/// A random history: writes in calls of several, flushes, restarts. Notes in `storage` how many writes were acknowledged.
/// The model after each write, the first before all.
fn history(seed: u64, storage: &Memory, calls: usize) -> Vec<Model> {
    let mut random = Random::new(seed);
    let shared: Arc<dyn Storage> = Arc::new(storage.clone());
    let mut table = Table::create(shared.clone(), schema(), resources()).unwrap();
    storage.note(0);
    let mut models = vec![Model::new()];
    for _ in 0..calls {
        match random.below(9) {
            0 => table.flush().unwrap(),
            1 => {
                drop(table);
                table = open(shared.clone());
            }
            2 if random.below(2) == 0 => table.force_merge(1 + random.below(2)).unwrap(),
            2 => {
                let (segments_per_tier, floor_segment) = (2, 1);
                let policy = MergePolicy { segments_per_tier, floor_segment, ..MergePolicy::default() };
                while table.merge(&policy).unwrap().is_some() {}
            }
            _ => {
                let mut model = models.last().unwrap().clone();
                let mut writes = Vec::new();
                for _ in 0..1 + random.below(3) {
                    writes.push(random_write(&mut random, &mut model));
                    models.push(model.clone());
                }
                for result in table.write(writes) {
                    result.unwrap();
                }
                storage.note(models.len() as u64 - 1);
            }
        }
        if let Some(what) = differs(&table, models.last().unwrap()) {
            panic!("seed {seed}: {what}");
        }
    }
    models
}

#[test]
fn a_table_is_its_model_through_flushes_and_restarts() {
    for seed in 0..60 {
        history(seed, &Memory::new(), 30);
    }
}

/// Opens what a crash left: it must be the model after some write, no earlier than the last that was acknowledged.
fn recovers(image: &Memory, models: &[Model], acknowledged: Option<u64>) -> Result<(), String> {
    let shared: Arc<dyn Storage> = Arc::new(image.clone());
    let table = match (Table::open(shared, resources()), acknowledged) {
        (Ok(table), _) => table,
        // The table was never acknowledged to be.
        (Err(_), None) => return Ok(()),
        (Err(error), _) => return Err(error.to_string()),
    };
    let first = acknowledged.unwrap_or(0) as usize;
    let why: Vec<String> =
        match models[first..].iter().take(4).map(|model| differs(&table, model)).collect::<Option<_>>() {
            Some(why) => why,
            None => return Ok(()),
        };
    Err(why.join("; or "))
}

#[test]
fn nothing_acknowledged_is_lost_by_any_crash() {
    let wanted: usize =
        std::env::var("LANEWISE_CRASHES").map_or(2000, |n| n.parse().expect("a number of crashes"));
    let (mut crashes, mut seed) = (0, 0);
    while crashes < wanted {
        let storage = Memory::new();
        let models = history(seed, &storage, 12);
        let journal = storage.journal();
        let mut random = Random::new(seed);
        // Before and after each sync.
        for at in journal.syncs().flat_map(|at| [at, at + 1]) {
            let acknowledged = journal.notes(at).max();
            let image =
                if random.below(8) == 0 { journal.killed(at) } else { journal.image(at, &mut random) };
            // A process that was killed leaves changes that are not durable yet.
            let before = image.journal().len();
            if let Err(what) = recovers(&image, &models, acknowledged) {
                panic!("seed {seed}, crash at {at}: {what}");
            }
            crashes += 1;
            // One in ten crashes again, somewhere in the recovery.
            if random.below(10) == 0 {
                let journal = image.journal();
                let then = before + random.below(journal.len() + 1 - before);
                if let Err(what) = recovers(&journal.image(then, &mut random), &models, acknowledged) {
                    panic!("seed {seed}, crash at {at}, then at {then} of the recovery: {what}");
                }
                crashes += 1;
            }
        }
        seed += 1;
    }
    println!("{crashes} crashes of {seed} histories");
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
            let mut random = Random::new(7);
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

#[test]
#[expect(clippy::disallowed_methods, reason = "threads of the test's own")]
fn writes_and_searches_go_on_while_segments_are_made() {
    let memory = Memory::new();
    let table = Table::create(Arc::new(memory.clone()), schema(), resources()).unwrap();
    let done = std::sync::atomic::AtomicBool::new(false);
    let mut model = Model::new();
    std::thread::scope(|scope| {
        let merging = scope.spawn(|| {
            let mut merges = 0;
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                table.flush().unwrap();
                table.force_merge(1).unwrap();
                merges += 1;
            }
            merges
        });
        let mut random = Random::new(3);
        for _ in 0..600 {
            let mut writes = Vec::new();
            writes.resize_with(1 + random.below(3), || random_write(&mut random, &mut model));
            table.write(writes).into_iter().for_each(|written| drop(written.unwrap()));
            assert_eq!(differs(&table, &model), None);
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(merging.join().unwrap() > 5);
    });
    drop(table);
    assert_eq!(differs(&open(Arc::new(memory)), &model), None);
}

#[test]
fn a_merged_segment_has_no_dead_rows() {
    let table = Table::create(Arc::new(Memory::new()), schema(), resources()).unwrap();
    let mut random = Random::new(5);
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
