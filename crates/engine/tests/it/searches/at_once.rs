//! Searches that the calling thread does itself, or leaves.

use crate::check::{object, resources};
use lanewise_engine::Pool;
use lanewise_engine::scheduler::{Layout, MappingId, Options, Workers};
use lanewise_engine::table::{Request, Resources, Table, When, Write};
use lanewise_storage::{Memory, Rng};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::mpsc::channel;

fn table(resources: &Resources) -> Table {
    let schema = json!({"fields": {"v": {"type": "vector", "dim": 4, "m": 4}, "l": {"type": "vector", "dim": 4, "kind": "ivf", "nlist": 4},
        "n": {"type": "integer"}}});
    let table = serde_json::from_value(schema).unwrap();
    let table = Table::create(Arc::new(Memory::new()), table, resources.clone()).unwrap();
    let mut random = Rng::with_seed(1);
    let mut vector = || -> Value { (0..4).map(|_| random.f32()).collect() };
    for round in 0..4 {
        let put = |i: usize| Write::Put {
            id: Some(format!("d{i:04}")),
            document: object(json!({"n": i % 7, "v": vector(), "l": vector()})),
            vectors: Vec::new(),
            when: When::Always,
        };
        table
            .write((round * 700..round * 700 + 1000).map(put).collect())
            .into_iter()
            .for_each(|done| drop(done.unwrap()));
        if round < 3 {
            table.flush().unwrap();
        }
    }
    table
}

fn request(value: Value) -> Request {
    serde_json::from_value(value).unwrap()
}

#[test]
fn what_is_answered_at_once_is_what_a_search_answers() {
    let workers = Workers::Unbound(Layout::new(&[2]));
    let pool = Arc::new(Pool::start(Options { workers, ..Options::default() }).unwrap());
    let resources = Resources { pool: pool.clone(), ..resources() };
    let table = table(&resources);
    let asleep = || while pool.stats().total().running {};
    let near = json!({"field": "v", "vector": [0.1, 0.9, 0.5, 0.2], "k": 20});
    let ids = |request: &Request| -> Vec<(String, f32)> {
        table.search(request, None).unwrap().hits.into_iter().map(|hit| (hit.id, hit.score)).collect()
    };
    for plain in
        [json!({"nearest": [near], "size": 20}), json!({"nearest": [near], "size": 5, "min_score": 0.9})]
    {
        let plain = request(plain);
        asleep();
        let tasks = pool.stats().total().tasks;
        let answer = table.search_at_once(&plain).expect("workers sleep").unwrap();
        assert_eq!(pool.stats().total().tasks, tasks + 4, "one for each segment");
        let found: Vec<_> = answer.hits.into_iter().map(|hit| (hit.id, hit.score)).collect();
        assert_eq!(found, ids(&plain));
    }
    let filter = json!({"term": {"field": "n", "value": 3}});
    for more in [
        json!({"nearest": [near], "filter": filter}),
        json!({"nearest": [near], "query": filter}),
        json!({"nearest": [near], "sort": ["n"]}),
        json!({"nearest": [near], "aggs": {"n": {"max": {"field": "n"}}}}),
        json!({"nearest": [{"field": "v", "vector": [0, 0, 0, 0], "radius": 0.5}]}),
        json!({"nearest": [near, near]}),
        // Lists are searched by many.
        json!({"nearest": [{"field": "l", "vector": [0, 0, 0, 0]}]}),
        json!({}),
    ] {
        asleep();
        assert!(table.search_at_once(&request(more.clone())).is_none(), "{more}");
    }
    let wrong = request(json!({"nearest": [{"field": "v", "vector": [0]}]}));
    assert!(table.search_at_once(&wrong).expect("it is known at once").is_err());
    // Where all workers work, it would have to wait.
    let (open, gates) = (0..2).map(|_| channel::<()>()).unzip::<_, _, Vec<_>, Vec<_>>();
    let hold = |gate: std::sync::mpsc::Receiver<()>| {
        let task = move |_: &mut _, _: &lanewise_engine::scheduler::Context<'_>| (gate.recv().is_ok(), 0);
        pool.scheduler().submit(MappingId(0), None, task).unwrap()
    };
    let held: Vec<_> = gates.into_iter().map(hold).collect();
    while pool.stats().workers.iter().any(|(_, worker)| !worker.running || worker.queued > 0) {}
    assert!(table.search_at_once(&request(json!({"nearest": [near]}))).is_none());
    open.into_iter().for_each(|open| open.send(()).unwrap());
    held.into_iter().for_each(|held| assert!(held.wait().unwrap().value));
}
