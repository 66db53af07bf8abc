//! Searches of tables against a model that keeps every document and evaluates everything one by one. Tables with the same
//! documents, divided into segments, heads and dead rows at random, must answer alike.

mod aggregations;
mod at_once;
mod refusals;
mod vectors;

use crate::check::{delete, object, put, resources};
use lanewise_engine::documents::{Query, Sort, SortBy};
use lanewise_engine::index::OwnedVectors;
use lanewise_engine::scheduler::Failure;
use lanewise_engine::table::{
    Answer, Concurrent, Fusion, Nearest, Normalization, Request, SearchTableError, Table, score,
};
use lanewise_storage::{Memory, Rng};
use serde_json::{Map, Value, json};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// Documents by id.
type Model = BTreeMap<String, Value>;

fn schema() -> Value {
    let vector =
        |kind: &str| json!({"type": "vector", "dim": 2, "kind": kind, "m": 4, "ef_construction": 20});
    json!({"fields": {
        "k": {"type": "keyword"}, "t": {"type": "text"}, "i": {"type": "integer"}, "f": {"type": "float"},
        "b": {"type": "boolean"}, "d": {"type": "date"}, "o": {"type": "object"},
        "v": vector("hnsw"), "w": {"type": "vector", "dim": 2, "kind": "flat", "dtype": "i8"},
    }})
}

fn pick<'a, T>(random: &mut Rng, all: &'a [T]) -> &'a T {
    &all[random.usize(..all.len())]
}

/// None, one or several values.
fn values(random: &mut Rng, mut one: impl FnMut(&mut Rng) -> Value) -> Value {
    match random.usize(..6) {
        0 => Value::Null,
        1 => Value::Array((0..random.usize(..4)).map(|_| one(random)).collect()),
        _ => one(random),
    }
}

const WORDS: [&str; 5] = ["ab", "abc", "b", "ca", "cab"];
const DAYS: [&str; 4] =
    ["2024-01-31T00:00:00Z", "2024-02-01T12:30:00.250Z", "2023-12-31T23:59:59Z", "1969-07-20T20:17:40Z"];

fn document(random: &mut Rng) -> Value {
    let word = |random: &mut Rng| json!(pick(random, &WORDS));
    let whole = |random: &mut Rng| json!(random.i64(-3..6));
    let half = |random: &mut Rng| json!(random.i64(-5..6) as f64 / 2.0);
    let mixed = |random: &mut Rng| match random.usize(..5) {
        0 => json!(random.bool()),
        1 => json!(pick(random, &DAYS)),
        2 => json!(pick(random, &WORDS)),
        3 => json!(random.i64(-3..4) as f64 / 2.0),
        _ => json!(random.i64(-3..4)),
    };
    let text: Vec<&str> = (0..random.usize(..5)).map(|_| *pick(random, &WORDS)).collect();
    let mut document = json!({
        "k": values(random, word), "t": text.join(" "), "i": values(random, whole), "f": values(random, half),
        "b": values(random, |random| json!(random.bool())), "d": values(random, |random| json!(pick(random, &DAYS))),
        "o": {"x": values(random, mixed)}, "y": values(random, whole),
    });
    // Distances without ties: which of two equally far is among the k nearest is not promised.
    let place = |random: &mut Rng| (f64::from(random.f32()) * 8.0, f64::from(random.f32()) * 8.0);
    if random.usize(..4) > 0 {
        let (x, y) = place(random);
        document["v"] = json!([x as f32, y as f32]);
    }
    if random.usize(..4) > 0 {
        document["w"] = json!([random.i8(-128..=127), random.i8(-128..=127)]);
    }
    for key in ["k", "i", "o", "y"] {
        if random.usize(..4) == 0 {
            document.as_object_mut().unwrap().remove(key);
        }
    }
    document
}

/// Writes the model into a new table, in an order of its own, with documents that are replaced or deleted on the way,
/// flushes and merges. Without dead rows that BM25 would count, if `clean`.
fn table(random: &mut Rng, model: &Model, clean: bool) -> Table {
    let schema = serde_json::from_value(schema()).unwrap();
    let table = Table::create(Arc::new(Memory::new()), schema, resources()).unwrap();
    let mut writes: Vec<_> = model.iter().map(|(id, document)| put(id, document.clone())).collect();
    random.shuffle(&mut writes);
    if !clean {
        let mut dead = Vec::new();
        for n in 0..random.usize(..20) {
            let of = model.keys().nth(random.usize(..=model.len()));
            let id = of.cloned().unwrap_or_else(|| format!("gone{n}"));
            dead.push(put(&id, document(random)));
            if !model.contains_key(&id) || random.bool() {
                dead.push(delete(&id));
            }
        }
        dead.append(&mut writes);
        writes = dead;
        // What was deleted last.
        for n in 0..random.usize(..5) {
            let at = random.usize(..=writes.len());
            writes.insert(at, put(&format!("late{n}"), document(random)));
            writes.push(delete(&format!("late{n}")));
        }
    }
    let mut writes = writes.into_iter().peekable();
    while writes.peek().is_some() {
        let call: Vec<_> = writes.by_ref().take(1 + random.usize(..9)).collect();
        table.write(call).into_iter().for_each(|written| drop(written.unwrap()));
        match random.usize(..12) {
            0 | 1 => table.flush().unwrap(),
            2 => table.force_merge(1 + random.usize(..2)).unwrap(),
            // The head is asked, and so divided.
            3 | 4 => drop(table.search(&Request::default(), None).unwrap()),
            _ => {}
        }
    }
    table
}

/// Values of a path, one by one.
fn of<'a>(document: &'a Value, path: &str) -> Vec<&'a Value> {
    let mut now = document;
    for key in path.split('.') {
        match now.get(key) {
            Some(value) => now = value,
            None => return Vec::new(),
        }
    }
    let all = now.as_array().map_or(vec![now], |all| all.iter().collect());
    all.into_iter().filter(|value| !value.is_null()).collect()
}

/// As documents are sorted: by type, then by value.
#[derive(Clone, Debug, PartialEq)]
enum Key {
    Boolean(bool),
    Number(f64),
    /// As written: all are in the same form, and of one length up to the second.
    Date(String),
    Text(String),
}

impl Key {
    fn of(value: &Value) -> Key {
        match value {
            Value::Bool(given) => Key::Boolean(*given),
            Value::Number(number) => Key::Number(number.as_f64().unwrap()),
            Value::String(text) if DAYS.contains(&text.as_str()) => Key::Date(text.replace('Z', "")),
            Value::String(text) => Key::Text(text.clone()),
            _ => panic!("{value} is no single value"),
        }
    }

    fn cmp(&self, other: &Key) -> Ordering {
        let rank = |key: &Key| match key {
            Key::Boolean(_) => 0,
            Key::Number(_) => 1,
            Key::Date(_) => 2,
            Key::Text(_) => 3,
        };
        match (self, other) {
            (Key::Boolean(a), Key::Boolean(b)) => a.cmp(b),
            (Key::Number(a), Key::Number(b)) => a.total_cmp(b),
            (Key::Date(a), Key::Date(b)) | (Key::Text(a), Key::Text(b)) => a.cmp(b),
            _ => rank(self).cmp(&rank(other)),
        }
    }
}

fn compare(sorts: &[Sort], a: (&str, &Value, f32), b: (&str, &Value, f32)) -> Ordering {
    for sort in sorts {
        let turn = |order: Ordering| if sort.descending { order.reverse() } else { order };
        let order = match &sort.by {
            SortBy::Score => turn(a.2.total_cmp(&b.2)),
            SortBy::Id => turn(a.0.cmp(b.0)),
            SortBy::Field(field) => {
                let first = |document: &Value| {
                    of(document, field).into_iter().map(Key::of).min_by(|a, b| turn(a.cmp(b)))
                };
                match (first(a.1), first(b.1)) {
                    (Some(a), Some(b)) => turn(a.cmp(&b)),
                    (None, None) => Ordering::Equal,
                    (None, _) if sort.missing_first => Ordering::Less,
                    (_, None) if !sort.missing_first => Ordering::Less,
                    _ => Ordering::Greater,
                }
            }
        };
        if order.is_ne() {
            return order;
        }
    }
    a.0.cmp(b.0)
}

/// Whether a document fits.
type Meaning = Box<dyn Fn(&Value) -> bool>;

/// Filters of every selectivity, with what they mean.
fn filter(random: &mut Rng) -> (Query, Meaning) {
    let term = |field: &str, value: Value| Query::Term { field: field.to_owned(), value };
    match random.usize(..6) {
        0 => (Query::All, Box::new(|_| true)),
        1 => (Query::None, Box::new(|_| false)),
        2 => {
            let word = *pick(random, &WORDS);
            (term("k", json!(word)), Box::new(move |d| of(d, "k").contains(&&json!(word))))
        }
        3 => {
            let least = random.i64(-3..7);
            let query = json!({"range": {"field": "i", "range": {"gte": least}}});
            let meant = move |d: &Value| of(d, "i").iter().any(|i| i.as_i64().unwrap() >= least);
            (serde_json::from_value(query).unwrap(), Box::new(meant))
        }
        4 => {
            let whole = random.i64(-3..7);
            let query = json!({"bool": {"must_not": [{"term": {"field": "y", "value": whole}}]}});
            (serde_json::from_value(query).unwrap(), Box::new(move |d| !of(d, "y").contains(&&json!(whole))))
        }
        _ => {
            let given = random.bool();
            (term("b", json!(given)), Box::new(move |d| of(d, "b").contains(&&json!(given))))
        }
    }
}

fn sorts(random: &mut Rng) -> Vec<Sort> {
    let fields = ["k", "i", "f", "b", "d", "o.x", "y"].map(|field| SortBy::Field(field.to_owned()));
    let by = |random: &mut Rng| match random.usize(..9) {
        0 => SortBy::Score,
        1 => SortBy::Id,
        _ => pick(random, &fields).clone(),
    };
    let one = |random: &mut Rng| {
        let by = by(random);
        Sort { by, descending: random.bool(), missing_first: random.bool() }
    };
    (0..random.usize(..4)).map(|_| one(random)).collect()
}

fn all_pages(table: &Table, request: &Request) -> Vec<String> {
    let mut request = Request { from: 0, ..request.clone() };
    let mut ids = Vec::new();
    loop {
        // As a client does it: through text.
        let text = serde_json::to_string(&request).unwrap();
        let Answer { hits, .. } = table.search(&serde_json::from_str(&text).unwrap(), None).unwrap();
        let Some(last) = hits.last() else { return ids };
        request.after = Some(last.sort.clone());
        assert!(!ids.contains(&last.id), "{} again: {request:?}", last.id);
        ids.extend(hits.into_iter().map(|hit| hit.id));
    }
}

fn model(random: &mut Rng, documents: usize) -> Model {
    (0..documents).map(|n| (format!("d{n:02}"), document(random))).collect()
}

fn ids(answer: &Answer) -> Vec<&str> {
    answer.hits.iter().map(|hit| hit.id.as_str()).collect()
}

#[test]
fn order_pages_and_totals_are_the_models_however_rows_are_divided() {
    for seed in 0..60 {
        let mut random = Rng::with_seed(seed);
        let len = random.usize(..40);
        let model = model(&mut random, len);
        let tables = [table(&mut random, &model, false), table(&mut random, &model, false)];
        for case in 0..8 {
            let sort = sorts(&mut random);
            let (query, meant) = filter(&mut random);
            let score = if query == Query::All { 1.0 } else { random.u8(1..4).into() };
            let mut expected: Vec<(&str, &Value, f32)> = model
                .iter()
                .filter(|(_, document)| meant(document))
                .map(|(id, document)| (id.as_str(), document, score))
                .collect();
            expected.sort_by(|a, b| compare(&sort, *a, *b));
            let (from, size) = (random.usize(..5), random.usize(..12));
            let constant = Query::Constant { query: Box::new(query.clone()), score };
            let (query, filter) = if random.bool() { (Some(constant), None) } else { (None, Some(query)) };
            let concurrent = *pick(&mut random, &[Concurrent::Off, Concurrent::On, Concurrent::Auto]);
            let request = Request { query, filter, from, size, sort, concurrent, ..Request::default() };
            let expected: Vec<&str> = expected.into_iter().map(|(id, ..)| id).collect();
            for table in &tables {
                let answer = table.search(&request, None).unwrap();
                let page: Vec<&str> = expected.iter().copied().skip(from).take(size).collect();
                assert_eq!(ids(&answer), page, "seed {seed}, case {case}: {request:?} {:#?}", model);
                assert_eq!((answer.total.value, answer.total.exact), (expected.len() as u64, true));
                for hit in &answer.hits {
                    let source: Value = serde_json::from_slice(&answer.source(hit).unwrap()).unwrap();
                    let mut document = model[&hit.id].clone();
                    document.as_object_mut().unwrap().retain(|key, _| key != "v" && key != "w");
                    assert_eq!(source, document);
                }
                if size > 0 {
                    assert_eq!(all_pages(table, &request), expected, "seed {seed}, case {case}: {request:?}");
                }
            }
        }
    }
}

/// Where no row is dead, scores are the same to the last bit but one, and so is the order.
#[test]
fn scores_are_bm25s_however_rows_are_divided() {
    for seed in 0..40 {
        let mut random = Rng::with_seed(seed);
        let model = model(&mut random, 30);
        let tables = [table(&mut random, &model, true), table(&mut random, &model, true)];
        // Of all documents: words in each, and how often each word is there.
        let words = |document: &Value| -> Vec<String> {
            document["t"].as_str().unwrap().split_whitespace().map(str::to_owned).collect()
        };
        let average = model.values().map(|d| words(d).len()).sum::<usize>() as f32 / model.len() as f32;
        let scored = |document: &Value, asked: &[&str]| -> f32 {
            let own = words(document);
            let one = |word: &&&str| {
                let with = model.values().filter(|d| words(d).iter().any(|w| w == *word)).count() as f32;
                let idf = (1.0 + (model.len() as f32 - with + 0.5) / (with + 0.5)).ln();
                let often = own.iter().filter(|w| w == *word).count() as f32;
                idf * often / (often + 1.2 * (0.25 + 0.75 * own.len() as f32 / average))
            };
            asked.iter().filter(|word| own.iter().any(|w| w == **word)).map(|word| one(&word)).sum()
        };
        for _ in 0..4 {
            let asked = [*pick(&mut random, &WORDS), "b"];
            let asked = if asked[0] == "b" { &asked[1..] } else { &asked[..] };
            let query = json!({"match": {"field": "t", "text": asked.join(" ")}});
            let size = random.usize(1..12);
            let exact =
                Request { query: Some(serde_json::from_value(query).unwrap()), size, ..Request::default() };
            let pruned = Request { exact_total: false, ..exact.clone() };
            let mut expected: Vec<f32> =
                model.values().map(|document| scored(document, asked)).filter(|score| *score > 0.0).collect();
            expected.sort_by(|a, b| b.total_cmp(a));
            for table in &tables {
                let answer = table.search(&exact, None).unwrap();
                let few = table.search(&pruned, None).unwrap();
                assert_eq!(answer.total.value, expected.len() as u64);
                assert_eq!(answer.hits, few.hits, "seed {seed}: what is passed over is no hit");
                assert!(few.total.value <= answer.total.value);
                assert!(!few.total.exact || few.total == answer.total);
                assert_eq!(answer.hits.len(), size.min(expected.len()));
                for (hit, expected) in answer.hits.iter().zip(&expected) {
                    assert!((hit.score - expected).abs() < 1e-4, "seed {seed}: {answer:?} {expected:?}");
                    assert!((scored(&model[&hit.id], asked) - hit.score).abs() < 1e-4);
                }
                assert!(
                    answer.hits.is_sorted_by_key(|hit| (-hit.score, &hit.id))
                        || answer
                            .hits
                            .is_sorted_by(|a, b| a.score > b.score || (a.score == b.score && a.id < b.id))
                );
            }
        }
    }
}

/// A vector's distance, by hand.
fn distance(document: &Value, field: &str, to: &[f32]) -> Option<f32> {
    let vector = document.get(field)?.as_array()?;
    Some(vector.iter().zip(to).map(|(x, y)| (x.as_f64().unwrap() as f32 - y).powi(2)).sum())
}

#[test]
fn the_nearest_are_found_among_all_that_match() {
    for seed in 0..60 {
        let mut random = Rng::with_seed(seed);
        let len = random.usize(..40);
        let model = model(&mut random, len);
        let table = table(&mut random, &model, false);
        for case in 0..8 {
            let (query, meant) = filter(&mut random);
            let k = *pick(&mut random, &[1, 3, 10, 1000, usize::MAX]);
            let field = *pick(&mut random, &["v", "w"]);
            let probe = match field {
                "v" => vec![4.0 + random.f32(), 3.0 + random.f32()],
                _ => vec![f32::from(random.i8(-128..=127)), f32::from(random.i8(-128..=127))],
            };
            let nearest = Nearest { k, ..Nearest::new(field, OwnedVectors::F32(probe.clone())) };
            let mut expected: Vec<(f32, &str)> = model
                .iter()
                .filter(|(_, document)| meant(document))
                .filter_map(|(id, document)| Some((distance(document, field, &probe)?, id.as_str())))
                .collect();
            expected.sort_by(|a, b| a.0.total_cmp(&b.0));
            expected.truncate(k);
            let nearest = vec![nearest];
            let request =
                Request { nearest, filter: Some(query), size: 50, profile: true, ..Request::default() };
            // The second time filters are known.
            for round in 0..2 {
                let answer = table.search(&request, None).unwrap();
                let context = format!("seed {seed}, case {case}, round {round}: {request:?}");
                let found: Vec<f32> = answer.hits.iter().map(|hit| hit.distance.unwrap()).collect();
                assert_eq!(found.len(), expected.len(), "{context}");
                assert_eq!(answer.total.value, expected.len() as u64);
                // The graph may miss a nearest one, never a result; here it does not.
                for (hit, (expected, _)) in answer.hits.iter().zip(&expected) {
                    let own = distance(&model[&hit.id], field, &probe);
                    assert_eq!(hit.distance, own, "{context}");
                    assert!((hit.distance.unwrap() - expected).abs() <= 1e-3 * expected, "{context}");
                    assert!(meant(&model[&hit.id]), "{context}");
                    assert_eq!(hit.score, 1.0 / (1.0 + hit.distance.unwrap()));
                }
                let segments = answer.profile.unwrap().segments;
                for segment in &segments {
                    let filter = segment.filter.as_ref().unwrap();
                    assert!(segment.vectors.is_empty() || filter.rows > 0, "{context}");
                }
                let sealed = segments.len().saturating_sub(1);
                let cached = segments.iter().filter(|s| s.filter.as_ref().unwrap().cached).count();
                assert!(round == 0 || cached >= sealed, "{context}: {segments:?}");
                assert_eq!(
                    all_pages(&table, &Request { size: 3, profile: false, ..request.clone() }).len(),
                    found.len()
                );
            }
        }
    }
}

/// What a segment knows of a filter does not bring back what died since.
#[test]
fn what_died_since_is_not_found() {
    let table =
        Table::create(Arc::new(Memory::new()), serde_json::from_value(schema()).unwrap(), resources());
    let table = table.unwrap();
    let one = |n: usize| put(&format!("d{n}"), json!({"k": "ab", "v": [n, 0], "w": [n, 0]}));
    table.write((0..6).map(one).collect()).into_iter().for_each(|written| drop(written.unwrap()));
    table.flush().unwrap();
    for left in (1..=6).rev() {
        for field in ["v", "w"] {
            for filter in [None, Some(Query::Term { field: "k".to_owned(), value: json!("ab") })] {
                let nearest = vec![Nearest::new(field, OwnedVectors::F32(vec![9.0, 0.0]))];
                let answer = table.search(&Request { nearest, filter, ..Request::default() }, None).unwrap();
                let expected: Vec<String> = (0..left).rev().map(|n| format!("d{n}")).collect();
                assert_eq!(ids(&answer), expected);
            }
        }
        table.write(vec![delete(&format!("d{}", left - 1))]).remove(0).unwrap();
    }
}

/// What a query and two vectors find together, by rank or by score; beyond the rankings the rest, with score 0.
#[test]
fn rankings_are_fused_as_by_hand() {
    for seed in 0..40 {
        let mut random = Rng::with_seed(seed);
        let model = model(&mut random, 30);
        let tables = [table(&mut random, &model, true), table(&mut random, &model, true)];
        let (filter_query, meant) = filter(&mut random);
        let word = *pick(&mut random, &WORDS);
        let (v, w) = ([4.0, 3.5], [10.0, -20.0]);
        let (k, window) = (random.usize(1..9), random.usize(1..9));
        let weights: Vec<f32> =
            if random.bool() { vec![] } else { vec![1.0, random.u8(0..4).into(), random.u8(1..4).into()] };
        let fusion = match random.usize(..3) {
            0 => Fusion::Rrf { rank_constant: 60.0, weights: weights.clone(), window },
            1 => Fusion::ArithmeticMean {
                normalization: Normalization::MinMax,
                weights: weights.clone(),
                window,
            },
            _ => {
                Fusion::ArithmeticMean { normalization: Normalization::L2, weights: weights.clone(), window }
            }
        };
        let query: Query = serde_json::from_value(json!({"term": {"field": "t", "value": word}})).unwrap();
        let near = |field: &str, to: &[f32]| Nearest {
            k,
            exact: true,
            ..Nearest::new(field, OwnedVectors::F32(to.to_vec()))
        };
        let request = Request {
            query: Some(query.clone()),
            nearest: vec![near("v", &v), near("w", &w)],
            fusion: fusion.clone(),
            filter: Some(filter_query.clone()),
            size: 100,
            aggregations: object(json!({"n": {"value_count": {"field": "d"}}})),
            ..Request::default()
        };
        // Constant scores, so that ranks go by id.
        let fits = |(_, document): &(&String, &Value)| meant(document);
        let matches: Vec<(&str, f32)> = model
            .iter()
            .filter(fits)
            .filter(|(_, d)| d["t"].as_str().unwrap().split_whitespace().any(|w| w == word))
            .map(|(id, _)| (id.as_str(), 1.0))
            .collect();
        let nearest = |field: &str, to: &[f32]| {
            let scored = |(id, document): (&'_ String, &Value)| {
                Some((id.clone(), 1.0 / (1.0 + distance(document, field, to)?)))
            };
            let mut all: Vec<(String, f32)> = model.iter().filter(fits).filter_map(scored).collect();
            all.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
            all.truncate(k);
            all
        };
        let owned = |(id, score): &(&str, f32)| ((*id).to_owned(), *score);
        let rankings: [Vec<(String, f32)>; 3] =
            [matches.iter().take(window).map(owned).collect(), nearest("v", &v), nearest("w", &w)];
        let found: BTreeSet<String> =
            matches.iter().map(owned).chain(rankings.concat()).map(|(id, _)| id).collect();
        let sum: f32 = if weights.is_empty() { 3.0 } else { weights.iter().sum() };
        let fused = |id: &str| -> f32 {
            let one = |(number, ranking): (usize, &Vec<(String, f32)>)| {
                let weight = weights.get(number).copied().unwrap_or(1.0);
                let Some(rank) = ranking.iter().position(|(other, _)| other == id) else { return 0.0 };
                let scores = || ranking.iter().map(|(_, score)| *score);
                let (least, most) = (scores().fold(f32::MAX, f32::min), scores().fold(f32::MIN, f32::max));
                let score = ranking[rank].1;
                match &fusion {
                    Fusion::Rrf { .. } => weight / (61.0 + rank as f32),
                    Fusion::ArithmeticMean { normalization: Normalization::L2, .. } => {
                        weight / sum * score / scores().map(|s| s * s).sum::<f32>().sqrt()
                    }
                    _ if least == most => weight / sum,
                    _ => weight / sum * ((score - least) / (most - least)).max(0.001),
                }
            };
            rankings.iter().enumerate().map(one).sum()
        };
        let dates: usize = found.iter().map(|id| of(&model[id], "d").len()).sum();
        // Term queries score 1 by their constant.
        let request =
            Request { query: Some(Query::Constant { query: Box::new(query), score: 1.0 }), ..request };
        for table in &tables {
            let answer = table.search(&request, None).unwrap();
            let context = format!("seed {seed}: {request:?}");
            assert_eq!(
                ids(&answer).into_iter().map(str::to_owned).collect::<BTreeSet<_>>(),
                found,
                "{context}"
            );
            assert_eq!(answer.total.value, found.len() as u64);
            for hit in &answer.hits {
                assert!((hit.score - fused(&hit.id)).abs() < 1e-5, "{context}: {hit:?} {}", fused(&hit.id));
                assert_eq!(hit.distance, None);
            }
            assert!(
                answer.hits.is_sorted_by(|a, b| a.score > b.score || (a.score == b.score && a.id < b.id))
            );
            assert_eq!(answer.aggregations["n"]["value"], json!(dates as f64), "{context}");
            let pages = all_pages(table, &Request { size: 4, ..request.clone() });
            assert_eq!(pages, ids(&answer), "{context}");
        }
    }
}
