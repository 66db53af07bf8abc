//! Queries about vectors, within others and alone: their scores are OpenSearch's (`SpaceType`, `KNNScoringSpace`).

use crate::served::Served;
use serde_json::{Value, json};
use std::collections::BTreeMap;

const POINTS: [[f64; 2]; 6] = [[1.0, 2.0], [2.0, -1.0], [-3.0, 0.5], [0.25, 0.4], [4.0, 4.0], [-1.0, -2.0]];
const SPACES: [&str; 3] = ["l2", "cosinesimil", "innerproduct"];
const ASKED: [f64; 2] = [1.5, 0.7];

/// An index `a` with a vector for each space, one of bits, and `n`; of some the documents named.
fn filled(folder: &std::path::Path) -> Served {
    let node = Served::new(folder);
    fill(&node, "a", 0..POINTS.len());
    node
}

fn fill(node: &Served, index: &str, which: impl Iterator<Item = usize>) {
    let vector = |space: &str| json!({"type": "knn_vector", "dimension": 2, "space_type": space});
    let body = json!({"mappings": {"properties": {
        "l2": vector("l2"), "cosinesimil": vector("cosinesimil"), "innerproduct": vector("innerproduct"),
        "bits": {"type": "knn_vector", "dimension": 8, "data_type": "binary", "space_type": "hamming"},
        "n": {"type": "integer"}, "x": {"type": "double"}, "color": {"type": "keyword"}, "text": {"type": "text"}}}});
    node.ask("PUT", &format!("/{index}"), body.to_string()).expect(200);
    for i in which {
        let point = POINTS[i];
        let mut document = json!({"n": i, "x": i as f64 / 2.0, "bits": [i], "text": "word ".repeat(i + 1)});
        document["color"] = json!(if i.is_multiple_of(2) { "red" } else { "blue" });
        SPACES.iter().for_each(|space| document[*space] = json!(point));
        node.ask("PUT", &format!("/{index}/_doc/{i}"), document.to_string()).expect(201);
        if i == 2 {
            node.ask("POST", &format!("/{index}/_flush"), "").expect(200);
        }
    }
    node.ask("PUT", &format!("/{index}/_doc/none-{index}"), r#"{"n": 77}"#).expect(201);
}

/// What a space makes of two vectors: raw, as radii have it, and as a score.
fn raw(space: &str, a: &[f64], b: &[f64]) -> f64 {
    let pairs = || a.iter().zip(b);
    let product: f64 = pairs().map(|(a, b)| a * b).sum();
    let length = |v: &[f64]| v.iter().map(|x| x * x).sum::<f64>().sqrt();
    match space {
        "l2" => pairs().map(|(a, b)| (a - b).powi(2)).sum(),
        "l1" => pairs().map(|(a, b)| (a - b).abs()).sum(),
        "linf" => pairs().map(|(a, b)| (a - b).abs()).fold(0.0, f64::max),
        "cosinesimil" => 1.0 - product / (length(a) * length(b)),
        _ => product,
    }
}

fn score(space: &str, raw: f64) -> f64 {
    match space {
        "cosinesimil" => (2.0 - raw) / 2.0,
        "innerproduct" if raw >= 0.0 => 1.0 + raw,
        "innerproduct" => 1.0 / (1.0 - raw),
        _ => 1.0 / (1.0 + raw),
    }
}

fn search_in(node: &Served, index: &str, body: &Value) -> Value {
    node.ask("POST", &format!("/{index}/_search"), body.to_string()).expect(200)
}

fn scores(answer: &Value) -> BTreeMap<String, f64> {
    let hits = answer["hits"]["hits"].as_array().unwrap().iter();
    hits.map(|hit| (hit["_id"].as_str().unwrap().to_owned(), hit["_score"].as_f64().unwrap())).collect()
}

#[track_caller]
fn close(found: &BTreeMap<String, f64>, expected: &[(usize, f64)]) {
    let expected: BTreeMap<String, f64> = expected.iter().map(|(i, s)| (i.to_string(), *s)).collect();
    assert!(found.keys().eq(expected.keys()), "{found:?} {expected:?}");
    let near = |(own, other): (&f64, &f64)| (own - other).abs() <= 1e-6 * other.max(1.0);
    assert!(found.values().zip(expected.values()).all(near), "{found:?} {expected:?}");
}

#[track_caller]
fn refused(node: &Served, body: &Value, says: &str) {
    let answer = node.ask("POST", "/a/_search", body.to_string()).expect(400);
    assert!(answer["error"]["reason"].as_str().unwrap().contains(says), "{answer}");
}

/// The documents by how near they are in a space.
fn near(space: &str, k: usize) -> Vec<(usize, f64)> {
    let mut all: Vec<(usize, f64)> =
        POINTS.iter().enumerate().map(|(i, point)| (i, score(space, raw(space, &ASKED, point)))).collect();
    all.sort_by(|a, b| b.1.total_cmp(&a.1));
    all.truncate(k);
    all
}

#[test]
fn knn_within_bool_adds_its_score() {
    let folder = tempfile::tempdir().unwrap();
    let node = filled(folder.path());
    let ask = |query: Value| scores(&search_in(&node, "a", &json!({"query": query})));
    for space in SPACES {
        let knn = |k: usize| json!({"knn": {space: {"vector": ASKED, "k": k}}});
        close(&ask(knn(3)), &near(space, 3));
        // A filter of bool counts after the nearest were chosen, one of knn before.
        let red: Vec<(usize, f64)> = near(space, 3).into_iter().filter(|(i, _)| i % 2 == 0).collect();
        close(&ask(json!({"bool": {"must": [knn(3)], "filter": {"term": {"color": "red"}}}})), &red);
        let filter = json!({"term": {"color": "red"}});
        let among = json!({"knn": {space: {"vector": ASKED, "k": 2, "filter": filter}}});
        let mut red: Vec<(usize, f64)> = near(space, 6).into_iter().filter(|(i, _)| i % 2 == 0).collect();
        red.truncate(2);
        close(&ask(json!({"bool": {"must": [among]}})), &red);
        // Scores of must and should add up; filter and must_not have none.
        let constant = json!({"constant_score": {"filter": {"range": {"n": {"lt": 3}}}, "boost": 2.5}});
        let mut sum: BTreeMap<usize, f64> = near(space, 3).into_iter().collect();
        (0..3).for_each(|i| *sum.entry(i).or_insert(0.0) += 2.5);
        close(&ask(json!({"bool": {"should": [knn(3), constant]}})), &sum.into_iter().collect::<Vec<_>>());
        let expected: Vec<(usize, f64)> = near(space, 3).into_iter().map(|(i, _)| (i, 0.0)).collect();
        close(&ask(json!({"bool": {"filter": [knn(3)]}})), &expected);
        let others: Vec<(usize, f64)> =
            (0..6).filter(|i| near(space, 3).iter().all(|(near, _)| near != i)).map(|i| (i, 1.0)).collect();
        let has = json!({"exists": {"field": "x"}});
        close(&ask(json!({"bool": {"must": [has], "must_not": [knn(3)]}})), &others);
        let twice: Vec<(usize, f64)> = near(space, 3).into_iter().map(|(i, s)| (i, 3.0 * s)).collect();
        let boosted = json!({"knn": {space: {"vector": ASKED, "k": 3, "boost": 2}}});
        close(&ask(json!({"bool": {"must": [knn(3), boosted.clone()]}})), &twice);
        let twice: Vec<(usize, f64)> = near(space, 3).into_iter().map(|(i, s)| (i, 2.0 * s)).collect();
        close(&ask(boosted), &twice);
        let ones: Vec<(usize, f64)> = near(space, 4).into_iter().map(|(i, _)| (i, 1.5)).collect();
        close(&ask(json!({"constant_score": {"filter": knn(4), "boost": 1.5}})), &ones);
    }
    let bits = json!({"knn": {"bits": {"vector": [3], "k": 2}}});
    close(&ask(json!({"bool": {"must": [bits]}})), &[(3, 1.0), (1, 0.5)]);
    let count = json!({"query": {"bool": {"must": {"knn": {"l2": {"vector": ASKED, "k": 4}}}}}}).to_string();
    assert_eq!(node.ask("POST", "/a/_count", &count).expect(200)["count"], 4);
    let gone = node.ask("POST", "/a/_delete_by_query?refresh=true", &count).expect(200);
    assert_eq!(gone["deleted"], 4);
    assert_eq!(ask(json!({"knn": {"l2": {"vector": ASKED, "k": 10}}})).len(), 2);
}

#[test]
fn radial_searches_find_all_that_are_near() {
    let folder = tempfile::tempdir().unwrap();
    let node = filled(folder.path());
    let ask = |query: Value| scores(&search_in(&node, "a", &json!({"query": query})));
    for space in SPACES {
        for at in 0..6 {
            // From just beyond each document to the next.
            let (_, least) = near(space, 6)[at];
            let expected = near(space, at + 1);
            let distance = raw(space, &ASKED, &POINTS[expected[at].0]);
            let distance = distance + if space == "innerproduct" { -1e-4 } else { 1e-4 };
            for limit in [json!({"min_score": least - 1e-5}), json!({"max_distance": distance})] {
                let mut knn = json!({"vector": ASKED});
                knn.as_object_mut().unwrap().extend(limit.as_object().unwrap().clone());
                close(&ask(json!({"knn": {space: knn}})), &expected);
                let within =
                    json!({"bool": {"must": [{"knn": {space: knn}}], "must_not": [{"term": {"n": 3}}]}});
                let without: Vec<(usize, f64)> = expected.iter().copied().filter(|(i, _)| *i != 3).collect();
                close(&ask(within), &without);
                knn["filter"] = json!({"term": {"color": "blue"}});
                let blue: Vec<(usize, f64)> = expected.iter().copied().filter(|(i, _)| i % 2 == 1).collect();
                close(&ask(json!({"knn": {space: knn}})), &blue);
            }
        }
    }
    let both = json!({"vector": ASKED, "k": 1, "max_distance": 1});
    refused(&node, &json!({"query": {"knn": {"l2": both}}}), "exactly one of k, distance or score");
    let rescore = json!({"vector": ASKED, "max_distance": 1, "rescore": true});
    refused(&node, &json!({"query": {"knn": {"l2": rescore}}}), "rescore");
    for rescore in [json!(true), json!(false), json!({"oversample_factor": 2.0})] {
        close(&ask(json!({"knn": {"l2": {"vector": ASKED, "k": 2, "rescore": rescore}}})), &near("l2", 2));
    }
}

#[test]
fn scripts_compare_vectors_in_any_space() {
    let folder = tempfile::tempdir().unwrap();
    let node = filled(folder.path());
    let script = |field: &str, space: &str, query: Value| {
        json!({"script_score": {"query": query, "script": {"lang": "knn", "source": "knn_score",
            "params": {"field": field, "query_value": ASKED, "space_type": space}}}})
    };
    let ask = |query: Value| scores(&search_in(&node, "a", &json!({"query": query})));
    let all = json!({"exists": {"field": "x"}});
    for space in ["l2", "l1", "linf", "cosinesimil", "innerproduct"] {
        let of = |point: &[f64; 2]| score(space, raw(space, &ASKED, point));
        let expected: Vec<(usize, f64)> = POINTS.iter().enumerate().map(|(i, p)| (i, of(p))).collect();
        close(&ask(script("l2", space, all.clone())), &expected);
        let red: Vec<(usize, f64)> = expected.iter().copied().filter(|(i, _)| i % 2 == 0).collect();
        let filter = json!({"bool": {"filter": {"term": {"color": "red"}}}});
        close(&ask(script("l2", space, filter)), &red);
        let mut more = script("l2", space, all.clone());
        more["script_score"]["boost"] = json!(3.0);
        more["script_score"]["min_score"] = json!(expected[1].1 - 1e-5);
        let some = expected.iter().filter(|(_, score)| *score >= expected[1].1 - 1e-5);
        close(&ask(more), &some.map(|(i, score)| (*i, 3.0 * score)).collect::<Vec<_>>());
    }
    // A document without a vector scores nothing.
    assert_eq!(ask(script("l2", "l2", json!({"match_all": {}})))["none-a"], 0.0);
    let of_its_own = ask(script("cosinesimil", "cosinesimil", all.clone()));
    assert!((of_its_own["4"] - (1.0 - raw("cosinesimil", &ASKED, &POINTS[4]) / 2.0)).abs() < 1e-6);
    refused(&node, &json!({"query": script("cosinesimil", "l2", all.clone())}), "length of 1");
    refused(&node, &json!({"query": script("l2", "hamming", all.clone())}), "bits");
    refused(&node, &json!({"query": script("n", "l2", all.clone())}), "not knn_vector");
    refused(&node, &json!({"query": script("l2", "haversine", all.clone())}), "Invalid space type");
    let painless = json!({"script_score": {"query": all, "script": {"source": "1 + 1"}}});
    refused(&node, &json!({"query": painless}), "knn_score");
}

#[test]
fn scores_of_a_hybrid_query_are_made_one_over_all_indexes() {
    let folder = tempfile::tempdir().unwrap();
    let node = Served::new(folder.path());
    fill(&node, "a", 0..3);
    fill(&node, "b", 3..6);
    let range = |from: usize, boost: f64| json!({"constant_score": {"filter": {"range": {"n": {"gte": from, "lt": 6}}}, "boost": boost}});
    let queries = json!([{"knn": {"l2": {"vector": ASKED, "k": 3}}}, {"bool": {"should": [range(2, 4.0), range(5, 5.0)]}}]);
    let body = |more: Value| {
        let mut body = json!({"query": {"hybrid": {"queries": queries}}});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body
    };
    let pipeline = |normalization: &str, combination: &str, weights: Value| {
        json!({"search_pipeline": {"phase_results_processors": [{"normalization-processor": {
            "normalization": {"technique": normalization},
            "combination": {"technique": combination, "parameters": {"weights": weights}}}}]}})
    };
    // All six are near, three of each index; 2, 3 and 4 score 4 by their number, 5 scores 9.
    let by_vector: Vec<f64> = POINTS.iter().map(|point| score("l2", raw("l2", &ASKED, point))).collect();
    let by_number = [None, None, Some(4.0), Some(4.0), Some(4.0), Some(9.0)];
    let (least, most) =
        (by_vector.iter().copied().fold(9.0, f64::min), by_vector.iter().copied().fold(0.0, f64::max));
    let squares = |all: &[f64]| all.iter().map(|x| x * x).sum::<f64>().sqrt();
    let (length, numbers) = (squares(&by_vector), squares(&[4.0, 4.0, 4.0, 9.0]));
    let min_max = |i: usize| {
        let number = by_number[i].map_or(0.0, |score: f64| ((score - 4.0) / 5.0).max(0.001));
        (((by_vector[i] - least) / (most - least)).max(0.001), number)
    };
    let expected = |of: &dyn Fn(usize) -> f64| (0..6).map(|i| (i, of(i))).collect::<Vec<_>>();
    let ask = |body: &Value| scores(&search_in(&node, "a,b", body));
    close(&ask(&body(json!({}))), &expected(&|i| (min_max(i).0 + min_max(i).1) / 2.0));
    let weighed = body(pipeline("min_max", "arithmetic_mean", json!([0.3, 0.7])));
    close(&ask(&weighed), &expected(&|i| 0.3 * min_max(i).0 + 0.7 * min_max(i).1));
    let l2 = body(pipeline("l2", "arithmetic_mean", json!([0.5, 0.5])));
    close(&ask(&l2), &expected(&|i| (by_vector[i] / length + by_number[i].unwrap_or(0.0) / numbers) / 2.0));
    let harmonic = body(pipeline("min_max", "harmonic_mean", json!([0.5, 0.5])));
    close(
        &ask(&harmonic),
        &expected(&|i| match min_max(i) {
            (one, 0.0) => one,
            (one, other) => 2.0 / (1.0 / one + 1.0 / other),
        }),
    );
    let geometric = body(pipeline("min_max", "geometric_mean", json!([0.5, 0.5])));
    close(
        &ask(&geometric),
        &expected(&|i| match min_max(i) {
            (one, 0.0) => one,
            (one, other) => (one * other).sqrt(),
        }),
    );
    let rrf = json!({"search_pipeline": {"phase_results_processors": [{"score-ranker-processor": {
        "combination": {"technique": "rrf", "rank_constant": 10}}}]}});
    let rank =
        |i: usize| 1.0 / (11.0 + by_vector.iter().filter(|score| **score > by_vector[i]).count() as f64);
    assert!((ask(&body(rrf))["5"] - (rank(5) + 1.0 / 11.0)).abs() < 1e-6);
    // Figures and totals are of all that any of them finds; pages and the least score are of what was made one.
    let answer = search_in(
        &node,
        "a,b",
        &body(json!({"size": 2, "from": 1, "aggs": {"n": {"stats": {"field": "n"}}}})),
    );
    assert_eq!(answer["hits"]["total"]["value"], 6);
    assert_eq!(answer["aggregations"]["n"]["sum"], 15.0);
    let mut order: Vec<usize> = (0..6).collect();
    let made = |i: usize| (min_max(i).0 + min_max(i).1) / 2.0;
    order.sort_by(|a, b| made(*b).total_cmp(&made(*a)));
    let ids: Vec<String> = order[1..3].iter().map(|i| i.to_string()).collect();
    let hits = answer["hits"]["hits"].as_array().unwrap();
    assert!(hits.iter().map(|hit| hit["_id"].as_str().unwrap()).eq(ids.iter().map(String::as_str)));
    let some = ask(&body(json!({"min_score": made(order[2]) - 1e-4})));
    assert_eq!(some.len(), 3);
    let mut filtered = body(json!({}));
    filtered["query"]["hybrid"]["filter"] = json!({"term": {"color": "red"}});
    assert!(ask(&filtered).keys().eq(["0", "2", "4"]));
    fill(&node, "c", 0..0);
    assert_eq!(search_in(&node, "c", &body(json!({})))["hits"]["total"]["value"], 0);
}

#[test]
fn what_a_hybrid_query_cannot_do_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let node = filled(folder.path());
    let hybrid = json!({"hybrid": {"queries": [{"match_all": {}}]}});
    let with = |more: Value| {
        let mut body = json!({"query": hybrid});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body
    };
    let processor = |body: Value| json!({"search_pipeline": {"phase_results_processors": [body]}});
    refused(&node, &json!({"query": {"bool": {"must": [hybrid]}}}), "top level query");
    refused(&node, &json!({"query": {"hybrid": {"queries": []}}}), "at least one clause");
    let six: Vec<Value> = (0..6).map(|_| json!({"match_all": {}})).collect();
    refused(&node, &json!({"query": {"hybrid": {"queries": six}}}), "exceeds maximum");
    refused(&node, &with(json!({"sort": ["n"]})), "[sort]");
    refused(&node, &with(json!({"collapse": {"field": "n"}})), "[collapse]");
    refused(&node, &with(json!({"search_pipeline": "mine"})), "Pipeline mine is not defined");
    let z_score = json!({"normalization-processor": {"normalization": {"technique": "z_score"}}});
    refused(&node, &with(processor(z_score)), "z_score");
    let weights =
        json!({"normalization-processor": {"combination": {"parameters": {"weights": [0.5, 0.5]}}}});
    refused(&node, &with(processor(weights)), "must match number of sub-queries");
    let weights = json!({"normalization-processor": {"combination": {"parameters": {"weights": [0.5]}}}});
    refused(&node, &with(processor(weights)), "must be equal to 1.0");
    refused(&node, &with(processor(json!({"rerank": {}}))), "[rerank]");
    search_in(&node, "a", &with(json!({"search_pipeline": "_none"})));
}

#[test]
fn the_least_score_counts_for_hits_totals_and_figures() {
    let folder = tempfile::tempdir().unwrap();
    let node = filled(folder.path());
    let least = near("l2", 3)[2].1 - 1e-5;
    let body = json!({"query": {"bool": {"should": [{"knn": {"l2": {"vector": ASKED, "k": 6}}}]}}, "min_score": least,
        "sort": [{"n": "desc"}], "aggs": {"n": {"value_count": {"field": "n"}}}, "track_scores": true});
    let answer = search_in(&node, "a", &body);
    close(&scores(&answer), &near("l2", 3));
    assert_eq!(
        (&answer["hits"]["total"]["value"], &answer["aggregations"]["n"]["value"]),
        (&json!(3), &json!(3.0))
    );
}

/// Over parts they are what they are over the whole.
#[test]
fn figures_over_several_indexes_are_those_over_one() {
    let folder = tempfile::tempdir().unwrap();
    let node = filled(folder.path());
    node.ask("DELETE", "/a/_doc/none-a", "").expect(200);
    fill(&node, "b", [0, 3, 4].into_iter());
    fill(&node, "c", [1, 2, 5].into_iter());
    node.ask("DELETE", "/b/_doc/none-b", "").expect(200);
    node.ask("DELETE", "/c/_doc/none-c", "").expect(200);
    let aggs = json!({
        "colors": {"terms": {"field": "color"}, "aggs": {"most": {"max": {"field": "n"}}}},
        "stats": {"extended_stats": {"field": "x"}}, "distinct": {"cardinality": {"field": "color"}},
        "ranges": {"range": {"field": "n", "ranges": [{"to": 2}, {"from": 2, "to": 5}]}},
        "steps": {"histogram": {"field": "n", "interval": 2}}, "half": {"percentiles": {"field": "n"}},
        "some": {"filter": {"term": {"color": "red"}}, "aggs": {"sum": {"sum": {"field": "x"}}}}});
    for query in [json!({"match_all": {}}), json!({"range": {"n": {"gte": 2}}}), json!({"term": {"n": 99}})] {
        let body = json!({"query": query, "size": 0, "aggs": aggs});
        let whole = search_in(&node, "a", &body)["aggregations"].clone();
        assert_eq!(search_in(&node, "b,c", &body)["aggregations"], whole, "{query}");
    }
    let after =
        json!({"size": 0, "aggs": {"n": {"sum": {"field": "n"}}}, "post_filter": {"term": {"color": "red"}}});
    let answer = search_in(&node, "b,c", &after);
    assert_eq!(
        (&answer["aggregations"]["n"]["value"], &answer["hits"]["total"]["value"]),
        (&json!(15.0), &json!(3))
    );
}

#[test]
fn what_is_filtered_after_the_nearest_leaves_figures_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let node = filled(folder.path());
    let body = json!({"query": {"knn": {"l2": {"vector": ASKED, "k": 4}}}, "post_filter": {"term": {"color": "red"}},
        "aggs": {"n": {"value_count": {"field": "n"}}}});
    let answer = search_in(&node, "a", &body);
    let red: Vec<(usize, f64)> = near("l2", 4).into_iter().filter(|(i, _)| i % 2 == 0).collect();
    close(&scores(&answer), &red);
    assert_eq!(answer["hits"]["total"]["value"], red.len());
    assert_eq!(answer["aggregations"]["n"]["value"], 4.0);
}

#[test]
fn scores_are_explained() {
    let folder = tempfile::tempdir().unwrap();
    let node = filled(folder.path());
    let knn = json!({"knn": {"l2": {"vector": ASKED, "k": 3}}});
    for query in [
        knn.clone(),
        json!({"match_all": {}}),
        json!({"match": {"text": "word"}}),
        json!({"bool": {"should": [knn, {"match": {"text": {"query": "word", "boost": 2}}}], "must_not": [{"term": {"n": 1}}]}}),
        json!({"constant_score": {"filter": {"term": {"color": "red"}}, "boost": 3}}),
        json!({"script_score": {"query": {"term": {"color": "red"}}, "script": {"lang": "knn", "source": "knn_score",
            "params": {"field": "l2", "query_value": ASKED, "space_type": "l1"}}}}),
    ] {
        let answer = search_in(&node, "a", &json!({"query": query, "explain": true}));
        let hits = answer["hits"]["hits"].as_array().unwrap();
        assert!(!hits.is_empty());
        for hit in hits {
            let told = &hit["_explanation"];
            let (value, score) = (told["value"].as_f64().unwrap(), hit["_score"].as_f64().unwrap());
            assert!((value - score).abs() <= 1e-6 * score, "{query}: {hit}");
            assert!(told["description"].is_string() && told["details"].is_array(), "{told}");
        }
    }
}

#[test]
fn pipelines_say_how_scores_are_made_one() {
    let folder = tempfile::tempdir().unwrap();
    let node = filled(folder.path());
    let red = json!({"constant_score": {"filter": {"term": {"color": "red"}}}});
    let body = json!({"query": {"hybrid": {"queries": [{"knn": {"l2": {"vector": ASKED, "k": 1}}}, red]}}});
    let pipeline = |weights: Value| {
        let combination = json!({"technique": "arithmetic_mean", "parameters": {"weights": weights}});
        json!({"description": "d", "phase_results_processors": [{"normalization-processor": {"combination": combination}}]})
    };
    let path = "/_search/pipeline/mine";
    node.ask("GET", path, "").expect(404);
    node.ask("PUT", path, pipeline(json!([0.9, 0.1])).to_string()).expect(200);
    assert_eq!(node.ask("GET", path, "").expect(200), json!({"mine": pipeline(json!([0.9, 0.1]))}));
    node.ask("PUT", path, pipeline(json!([0.9, 0.9])).to_string()).expect(400);
    node.ask("PUT", path, json!({"response_processors": [{"rerank": {}}]}).to_string()).expect(400);
    let of_red =
        |node: &Served, path: &str| scores(&node.ask("POST", path, body.to_string()).expect(200))["4"];
    let near = |score: f64, other: f64| assert!((score - other).abs() < 1e-6, "{score} {other}");
    near(of_red(&node, "/a/_search"), 0.5);
    near(of_red(&node, "/a/_search?search_pipeline=mine"), 0.1);
    node.ask("PUT", "/a/_settings", json!({"index.search.default_pipeline": "mine"}).to_string()).expect(200);
    drop(node);
    let node = Served::new(folder.path());
    near(of_red(&node, "/a/_search"), 0.1);
    near(of_red(&node, "/a/_search?search_pipeline=_none"), 0.5);
    node.ask("DELETE", path, "").expect(200);
    node.ask("DELETE", path, "").expect(404);
    refused(&node, &body, "Pipeline mine is not defined");
}
