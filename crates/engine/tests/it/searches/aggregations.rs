//! Aggregations against the figures of a model.

use super::{DAYS, filter, model, of, schema, table};
use crate::check::{object, put, resources};
use lanewise_engine::table::{Request, Table};
use lanewise_storage::{Memory, Rng};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Figures by hand, over documents that match and are alive, whatever the division.
#[test]
fn aggregations_are_the_models() {
    for seed in 0..60 {
        let mut random = Rng::with_seed(seed);
        let len = random.usize(..40);
        let model = model(&mut random, len);
        let tables = [table(&mut random, &model, false), table(&mut random, &model, false)];
        let (query, meant) = filter(&mut random);
        let asked = json!({
            "words": {"terms": {"field": "k", "size": 3}, "aggs": {"mean": {"avg": {"field": "f"}}}},
            "wholes": {"terms": {"field": "y", "size": 100, "order": {"_key": "asc"}}},
            "ranges": {"range": {"field": "i", "ranges": [{"to": 0}, {"from": 0, "to": 3}, {"from": 3}]}},
            "floats": {"range": {"field": "f", "ranges": [{"to": -0.25}, {"from": -0.25}]}},
            "whole": {"range": {"field": "i", "ranges": [{"to": 2.5}, {"from": 2.5}]}},
            "paths": {"range": {"field": "y", "ranges": [{"to": -1.5}, {"from": -1.5}]}},
            "kinds of x": {"terms": {"field": "o.x", "size": 100}}, "mixed": {"stats": {"field": "o.x"}},
            "most": {"terms": {"field": "o.x", "size": 1}}, "sum": {"sum": {"field": "y"}},
            "steps": {"histogram": {"field": "f", "interval": 1.0, "min_doc_count": 1}},
            "months": {"date_histogram": {"field": "d", "fixed_interval": "30d", "min_doc_count": 1}},
            "stats": {"stats": {"field": "f"}}, "more": {"extended_stats": {"field": "i"}},
            "kinds": {"cardinality": {"field": "k"}}, "half": {"percentiles": {"field": "f", "percents": [50.0]}},
            "true": {"filter": {"term": {"field": "b", "value": true}},
                "aggs": {"count": {"value_count": {"field": "i"}}}},
        });
        let request =
            Request { filter: Some(query), size: 0, aggregations: object(asked), ..Request::default() };
        let matching: Vec<&Value> = model.values().filter(|document| meant(document)).collect();
        let numbers = |path: &str, of_all: &[&Value]| -> Vec<f64> {
            of_all.iter().flat_map(|d| of(d, path)).filter_map(Value::as_f64).collect()
        };
        let close = |a: &Value, b: f64| (a.as_f64().unwrap_or(f64::NAN) - b).abs() < 1e-9 * b.abs().max(1.0);
        let bucket = |buckets: &Value| -> Vec<(Value, u64)> {
            let all = buckets["buckets"].as_array().unwrap();
            all.iter().map(|b| (b["key"].clone(), b["doc_count"].as_u64().unwrap())).collect()
        };
        for table in &tables {
            let answer = table.search(&request, None).unwrap();
            let got = &answer.aggregations;
            let context = format!("seed {seed}: {} of {matching:#?}: {got:#}", json!(request));
            // A document counts once for each bucket that any of its values is in.
            fn count<K: Ord>(all: &[&Value], path: &str, key: impl Fn(&Value) -> K) -> BTreeMap<K, u64> {
                let mut counts = BTreeMap::new();
                for document in all {
                    let keys: BTreeSet<K> = of(document, path).into_iter().map(&key).collect();
                    keys.into_iter().for_each(|key| *counts.entry(key).or_default() += 1);
                }
                counts
            }
            let pairs = |counts: BTreeMap<i64, u64>| counts.into_iter().collect::<Vec<_>>();
            let by_number = |buckets: &Value| -> Vec<(i64, u64)> {
                let all = bucket(buckets).into_iter();
                all.map(|(key, n)| (key.as_f64().unwrap() as i64, n)).collect()
            };
            let words = count(&matching, "k", |k| k.as_str().unwrap().to_owned());
            let mut best: Vec<(&String, &u64)> = words.iter().collect();
            best.sort_by(|a, b| b.1.cmp(a.1).then(a.0.cmp(b.0)));
            let expected: Vec<(Value, u64)> = best.iter().take(3).map(|(w, n)| (json!(w), **n)).collect();
            assert_eq!(bucket(&got["words"]), expected, "{context}");
            let other: u64 = best.iter().skip(3).map(|(_, n)| **n).sum();
            assert_eq!(got["words"]["sum_other_doc_count"], json!(other), "{context}");
            for one in got["words"]["buckets"].as_array().unwrap() {
                let with: Vec<&Value> =
                    matching.iter().copied().filter(|d| of(d, "k").contains(&&one["key"])).collect();
                let all = numbers("f", &with);
                let mean = all.iter().sum::<f64>() / all.len() as f64;
                let found = &one["mean"]["value"];
                assert!(if all.is_empty() { found.is_null() } else { close(found, mean) }, "{context}");
            }
            let whole = |value: &Value| value.as_f64().unwrap().floor() as i64;
            assert_eq!(by_number(&got["wholes"]), pairs(count(&matching, "y", whole)), "{context}");
            let range = |value: &Value| i64::from(whole(value) >= 0) + i64::from(whole(value) >= 3);
            let ranges = count(&matching, "i", range);
            let counts: Vec<u64> = bucket(&got["ranges"]).into_iter().map(|(_, n)| n).collect();
            assert_eq!(counts, [0, 1, 2].map(|at| ranges.get(&at).copied().unwrap_or(0)), "{context}");
            for (name, path, low) in [("floats", "f", -0.25), ("paths", "y", -1.5), ("whole", "i", 2.5)] {
                let sides = count(&matching, path, |value| value.as_f64().unwrap() >= low);
                let counts: Vec<u64> = bucket(&got[name]).into_iter().map(|(_, n)| n).collect();
                assert_eq!(
                    counts,
                    [false, true].map(|side| sides.get(&side).copied().unwrap_or(0)),
                    "{context}"
                );
            }
            let x = numbers("o.x", &matching);
            assert_eq!(got["mixed"]["count"], json!(x.len()), "{context}");
            assert!(close(&got["mixed"]["sum"], x.iter().sum()), "{context}");
            assert!(close(&got["sum"]["value"], numbers("y", &matching).iter().sum()), "{context}");
            let kinds = count(&matching, "o.x", |x| x.as_f64().map_or(x.to_string(), |x| x.to_string()));
            let found: u64 = bucket(&got["kinds of x"]).into_iter().map(|(_, n)| n).sum();
            assert_eq!(found, kinds.values().sum::<u64>(), "{context}");
            assert_eq!(bucket(&got["kinds of x"]).len(), kinds.len(), "{context}");
            let most = bucket(&got["most"]).first().map(|(_, n)| *n);
            assert_eq!(most, kinds.values().max().copied(), "{context}");
            assert_eq!(by_number(&got["steps"]), pairs(count(&matching, "f", whole)), "{context}");
            // The days of `DAYS`, in steps of 30 from 1970.
            let month = |date: &Value| match DAYS.iter().position(|day| date == day).unwrap() {
                0 | 1 => 658,
                2 => 657,
                _ => -6,
            };
            let months: Vec<(i64, u64)> = by_number(&got["months"])
                .into_iter()
                .map(|(millis, n)| (millis / (30 * 24 * 3600 * 1000), n))
                .collect();
            assert_eq!(months, pairs(count(&matching, "d", month)), "{context}");
            let (i, f) = (numbers("i", &matching), numbers("f", &matching));
            assert_eq!(got["stats"]["count"], json!(f.len()), "{context}");
            if !f.is_empty() {
                assert!(close(&got["stats"]["sum"], f.iter().sum()), "{context}");
                assert!(close(&got["stats"]["min"], f.iter().copied().fold(f64::MAX, f64::min)), "{context}");
                assert!(close(&got["stats"]["max"], f.iter().copied().fold(f64::MIN, f64::max)), "{context}");
                let half = got["half"]["values"]["50.0"].as_f64().unwrap();
                let mut sorted = f.clone();
                sorted.sort_by(f64::total_cmp);
                let near = |x: f64| (half - x).abs() <= 0.011 * x.abs().max(1e-6);
                assert!(sorted[(f.len() - 1) / 2..=f.len() / 2].iter().any(|x| near(*x)), "{context}");
            }
            // Of a single value tantivy gives none (Elasticsearch 0).
            if i.len() > 1 {
                let mean = i.iter().sum::<f64>() / i.len() as f64;
                let variance = i.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / i.len() as f64;
                assert!(close(&got["more"]["variance"], variance), "{context}");
            }
            assert_eq!(got["kinds"]["value"].as_f64().unwrap().round(), words.len() as f64, "{context}");
            let yes: Vec<&Value> =
                matching.iter().copied().filter(|d| of(d, "b").contains(&&json!(true))).collect();
            assert_eq!(got["true"]["doc_count"], json!(yes.len()), "{context}");
            let count = &got["true"]["count"]["value"];
            assert!(close(count, numbers("i", &yes).len() as f64), "{context}");
        }
        let [a, b] = tables.map(|table| table.search(&request, None).unwrap().aggregations);
        assert!(alike(&a, &b), "seed {seed}: {a:#} {b:#}");
    }
}

/// The same but for what adding in another order makes of floats.
fn alike(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| alike(a, b)))
        }
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| alike(a, b)),
        (Value::Number(a), Value::Number(b)) => {
            let (a, b) = (a.as_f64().unwrap(), b.as_f64().unwrap());
            (a - b).abs() <= 1e-9 * a.abs().max(1.0)
        }
        _ => a == b,
    }
}

/// A word that is rare in each segment, and the commonest of all.
#[test]
fn the_commonest_words_are_those_of_all_segments() {
    let table =
        Table::create(Arc::new(Memory::new()), serde_json::from_value(schema()).unwrap(), resources());
    let table = table.unwrap();
    for segment in 0..3 {
        let own = (0..30).flat_map(|word| [format!("s{segment} w{word}"), format!("s{segment} w{word}")]);
        let all = own.chain(["z".to_owned()]).enumerate();
        let writes = all.map(|(n, word)| put(&format!("{segment}-{n}"), json!({"k": word}))).collect();
        table.write(writes).into_iter().for_each(|written| drop(written.unwrap()));
        table.flush().unwrap();
    }
    let aggregations = object(json!({"words": {"terms": {"field": "k", "size": 1, "shard_size": 1}}}));
    let answer = table.search(&Request { aggregations, ..Request::default() }, None).unwrap();
    let words = &answer.aggregations["words"];
    assert_eq!((&words["buckets"][0]["key"], &words["buckets"][0]["doc_count"]), (&json!("z"), &json!(3)));
    assert_eq!(words["sum_other_doc_count"], json!(180));
}
