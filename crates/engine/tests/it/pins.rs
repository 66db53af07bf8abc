//! Pins: whatever becomes of a table, searches on what was kept of it find the same.

use crate::check::{Model, put, random_write, resources, schema};
use lanewise_engine::documents::Query;
use lanewise_engine::index::OwnedVectors;
use lanewise_engine::table::{Hit, MergePolicy, Nearest, Pin, Request, SearchTableError, Table};
use lanewise_storage::{Memory, Rng};
use serde_json::{Value, json};
use std::sync::Arc;

/// Words, vectors, filters, orders, figures.
fn requests() -> Vec<Request> {
    let words: Query =
        serde_json::from_value(json!({"match": {"field": "text", "text": "word3 all"}})).unwrap();
    let nearest = |field: &str| {
        vec![Nearest { k: 5, exact: true, ..Nearest::new(field, OwnedVectors::F32(vec![4.0, 3.5])) }]
    };
    let filter = Query::Term { field: "n".to_owned(), value: json!(2) };
    vec![
        Request { size: 100, ..Request::default() },
        Request { query: Some(words.clone()), size: 100, ..Request::default() },
        Request { query: Some(words), exact_total: false, size: 2, ..Request::default() },
        Request { nearest: nearest("v"), ..Request::default() },
        Request { nearest: nearest("w"), filter: Some(filter.clone()), ..Request::default() },
        serde_json::from_value(
            json!({"size": 3, "sort": [{"n": "desc"}], "aggs": {"n": {"stats": {"field": "n"}}}}),
        )
        .unwrap(),
        Request { filter: Some(filter), ..Request::default() },
    ]
}

type Seen = (Vec<Hit>, Vec<Value>, u64, Value);

fn seen(table: &Table, pin: &Pin) -> Vec<Seen> {
    let seen = |request: &Request| {
        let answer = table.search_pinned(pin, request, None).unwrap();
        let source = |hit| serde_json::from_slice(&answer.source(hit).unwrap()).unwrap();
        let sources = answer.hits.iter().map(source).collect();
        (answer.hits.clone(), sources, answer.total.value, answer.aggregations)
    };
    requests().iter().map(seen).collect()
}

#[test]
fn what_is_pinned_stays_as_it_was() {
    for seed in 0..40 {
        let mut random = Rng::with_seed(seed);
        let table = Table::create(Arc::new(Memory::new()), schema(), resources()).unwrap();
        let (mut model, mut pins) = (Model::new(), Vec::<(Pin, Vec<Seen>)>::new());
        for _ in 0..30 {
            match random.usize(..10) {
                0 => table.flush().unwrap(),
                1 => table.force_merge(1 + random.usize(..2)).unwrap(),
                2 => {
                    let (segments_per_tier, floor_segment) = (2, 1);
                    let policy = MergePolicy { segments_per_tier, floor_segment, ..MergePolicy::default() };
                    while table.merge(&policy).unwrap().is_some() {}
                }
                3 | 4 => {
                    let pin = table.pin(None).unwrap();
                    let first = seen(&table, &pin);
                    let found: Vec<(&str, &Value)> =
                        first[0].0.iter().zip(&first[0].1).map(|(hit, source)| (&*hit.id, source)).collect();
                    let expected: Vec<(&str, &Value)> =
                        model.iter().map(|(id, known)| (&**id, &known.1)).collect();
                    assert_eq!(found, expected, "seed {seed}");
                    assert_eq!(pin.len(), model.len());
                    pins.push((pin, first));
                }
                5 if !pins.is_empty() => drop(pins.swap_remove(random.usize(..pins.len()))),
                _ => {
                    let writes =
                        (0..1 + random.usize(..4)).map(|_| random_write(&mut random, &mut model)).collect();
                    table.write(writes).into_iter().for_each(|written| drop(written.unwrap()));
                }
            }
            for (pin, first) in &pins {
                assert_eq!(seen(&table, pin), *first, "seed {seed}");
            }
        }
    }
}

#[test]
fn a_pin_is_of_one_table_while_it_is_open() {
    let storage = Arc::new(Memory::new());
    let table = Table::create(storage.clone(), schema(), resources()).unwrap();
    table.write(vec![put("a", json!({"n": 1}))]).remove(0).unwrap();
    let pin = table.pin(None).unwrap();
    drop(table);
    let again = Table::open(storage, resources()).unwrap();
    let refused = again.search_pinned(&pin, &Request::default(), None);
    assert!(matches!(refused, Err(SearchTableError::Pin)));
}

/// What is pinned counts as in use until it is let go.
#[test]
fn memory_of_what_is_pinned_is_given_back() {
    let resources = resources();
    let table = Table::create(Arc::new(Memory::new()), schema(), resources.clone()).unwrap();
    let in_use = || resources.admission.in_use().total();
    for round in 0..2 {
        let writes = (0..50).map(|n| put(&format!("{round}-{n}"), json!({"v": [n, 0], "n": n}))).collect();
        table.write(writes).into_iter().for_each(|written| drop(written.unwrap()));
        table.flush().unwrap();
    }
    let pin = table.pin(None).unwrap();
    table.force_merge(1).unwrap();
    let held = in_use();
    drop(pin);
    assert!(in_use() < held, "{} after {held}", in_use());
}
