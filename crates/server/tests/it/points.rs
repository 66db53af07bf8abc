//! Points in time and scrolls: what they show, how long, and how many there may be.

use crate::served::Served;
use serde_json::{Value, json};

/// Indexes `a` and `b` of twenty documents each, every other one of which is red.
fn filled(folder: &std::path::Path) -> Served {
    let node = Served::new(folder);
    for index in ["a", "b"] {
        let body = json!({"mappings": {"properties": {
            "v": {"type": "knn_vector", "dimension": 2, "space_type": "l2"}, "n": {"type": "integer"},
            "color": {"type": "keyword"}, "text": {"type": "text"}}}});
        node.ask("PUT", &format!("/{index}"), body.to_string()).expect(200);
        write(&node, index, 0);
    }
    node
}

/// Writes the documents of an index (again), with `n` from `from` on.
fn write(node: &Served, index: &str, from: usize) {
    let line = |i: usize| {
        let color = if i.is_multiple_of(2) { "red" } else { "blue" };
        let document = json!({"n": from + i, "color": color, "v": [from + i, 0],
            "text": "word ".repeat(i % 3 + 1)});
        format!("{}\n{document}\n", json!({"index": {"_id": format!("{index}{i:02}")}}))
    };
    let lines: String = (0..20).map(line).collect();
    assert_eq!(node.ask("POST", &format!("/{index}/_bulk"), lines).expect(200)["errors"], false);
}

fn point(node: &Served, expression: &str, keep: &str) -> Value {
    let path = format!("/{expression}/_search/point_in_time?keep_alive={keep}");
    node.ask("POST", &path, "").expect(200)["pit_id"].clone()
}

fn search(node: &Served, body: &Value) -> Value {
    node.ask("POST", "/_search", body.to_string()).expect(200)
}

/// Hits and figures, without what differs from one answer to the next.
fn told(mut answer: Value) -> Value {
    json!([answer["hits"].take(), answer["aggregations"].take()])
}

#[test]
fn a_point_in_time_shows_what_was_there_when_it_was_made() {
    let folder = tempfile::tempdir().unwrap();
    let node = filled(folder.path());
    node.ask("POST", "/a/_flush", "").expect(200);
    let id = point(&node, "a", "5m");
    let bodies = [
        json!({"query": {"match": {"text": "word"}}, "size": 20}),
        json!({"query": {"knn": {"v": {"vector": [3, 0], "k": 5}}}}),
        json!({"sort": [{"n": "desc"}], "aggs": {"n": {"stats": {"field": "n"}}, "c": {"terms": {"field": "color"}}}}),
        json!({"query": {"bool": {"filter": {"term": {"color": "red"}}}}, "sort": ["n"], "size": 3}),
    ];
    let asked = |body: &Value| {
        let mut body = body.clone();
        body["pit"] = json!({"id": id, "keep_alive": "5m"});
        let answer = search(&node, &body);
        assert_eq!(answer["pit_id"], id);
        told(answer)
    };
    let first: Vec<Value> = bodies.iter().map(asked).collect();
    assert_eq!(first[0][0]["total"]["value"], 20);
    for round in 1..4 {
        write(&node, "a", 100 * round);
        node.ask("DELETE", &format!("/a/_doc/a0{round}"), "").expect(200);
        node.ask("POST", "/a/_flush", "").expect(200);
        assert_eq!(bodies.iter().map(asked).collect::<Vec<_>>(), first);
    }
    node.ask("POST", "/a/_forcemerge?max_num_segments=1", "").expect(200);
    assert_eq!(bodies.iter().map(asked).collect::<Vec<_>>(), first);
    let now = node.ask("POST", "/a/_search", bodies[2].to_string()).expect(200);
    assert_eq!(now["hits"]["hits"][0]["_source"]["n"], 319, "the index itself is as it is now");
}

#[test]
fn pages_of_a_point_in_time_miss_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let node = filled(folder.path());
    let id = point(&node, "a,b", "5m");
    let mut body = json!({"size": 7, "sort": [{"color": "asc"}, {"_shard_doc": "asc"}], "pit": {"id": id}});
    let mut all = Vec::new();
    for round in 0.. {
        let page = search(&node, &body);
        let hits = page["hits"]["hits"].as_array().unwrap().clone();
        let Some(last) = hits.last() else { break };
        body["search_after"] = last["sort"].clone();
        all.extend(hits.iter().map(|hit| hit["_id"].as_str().unwrap().to_owned()));
        write(&node, "b", 1000 * round);
        node.ask("POST", "/a/_delete_by_query", r#"{"query": {"range": {"n": {"lt": 9}}}}"#).expect(200);
    }
    let half = |odd: usize| (0..20).filter(move |i| i % 2 == odd).map(|i| format!("{i:02}"));
    let ids =
        |odd| ["a", "b"].into_iter().flat_map(move |index| half(odd).map(move |i| format!("{index}{i}")));
    assert_eq!(all, ids(1).chain(ids(0)).collect::<Vec<_>>());
}

#[test]
fn points_in_time_are_listed_let_go_and_end() {
    let folder = tempfile::tempdir().unwrap();
    let node = filled(folder.path());
    let (one, other) = (point(&node, "a", "1h"), point(&node, "*", "2h"));
    let listed = node.ask("GET", "/_search/point_in_time/_all", "").expect(200);
    let of = |id: &Value| {
        let mut all = listed["pits"].as_array().unwrap().iter();
        all.find(|pit| pit["pit_id"] == *id).unwrap()["keep_alive"].clone()
    };
    assert_eq!((of(&one), of(&other)), (json!(3_600_000), json!(7_200_000)));
    let ask = |id: &Value, status| {
        node.ask("POST", "/_search", json!({"pit": {"id": id}}).to_string()).expect(status)
    };
    let let_go = json!({"pit_id": [one]}).to_string();
    let gone = node.ask("DELETE", "/_search/point_in_time", &let_go).expect(200);
    assert_eq!(gone, json!({"pits": [{"successful": true, "pit_id": one}]}));
    node.ask("DELETE", "/_search/point_in_time", &let_go).expect(404);
    assert_eq!(ask(&one, 404)["error"]["type"], "search_context_missing_exception");
    // Each request gives it more time, or less.
    let short = json!({"pit": {"id": other, "keep_alive": "40ms"}}).to_string();
    node.ask("POST", "/_search", short).expect(200);
    std::thread::sleep(std::time::Duration::from_millis(60));
    ask(&other, 404);
    let all = [point(&node, "a", "1h"), point(&node, "b", "1h")];
    let gone = node.ask("DELETE", "/_search/point_in_time/_all", "").expect(200);
    assert_eq!(gone["pits"].as_array().unwrap().len(), 2);
    all.iter().for_each(|id| drop(ask(id, 404)));
    // Their number has a bound.
    (0..300).for_each(|_| drop(point(&node, "a", "1h")));
    let full = node.ask("POST", "/a/_search/point_in_time?keep_alive=1h", "").expect(429);
    assert_eq!(full["error"]["type"], "rejected_execution_exception");
    let stats = node.ask("GET", "/_nodes/stats/indices", "").expect(200);
    let node_stats = stats["nodes"].as_object().unwrap().values().next().unwrap().clone();
    assert_eq!(node_stats["indices"]["search"]["point_in_time_current"], 300);
}

#[test]
fn what_an_index_left_open_goes_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let node = filled(folder.path());
    let (own, both, other) = (point(&node, "a", "1h"), point(&node, "a,b", "1h"), point(&node, "b", "1h"));
    let scroll = node.ask("POST", "/a/_search?scroll=1h&size=1", "").expect(200)["_scroll_id"].clone();
    node.ask("DELETE", "/a", "").expect(200);
    let ask = |id: &Value, status| {
        node.ask("POST", "/_search", json!({"pit": {"id": id}}).to_string()).expect(status)
    };
    for id in [&own, &both] {
        assert_eq!(ask(id, 404)["error"]["type"], "search_context_missing_exception");
    }
    ask(&other, 200);
    node.ask("POST", "/_search/scroll", json!({"scroll_id": scroll}).to_string()).expect(404);
    // Another of the same name is another.
    node.ask("PUT", "/a", "{}").expect(200);
    ask(&own, 404);
    node.ask("POST", "/b/_close", "").expect(200);
    ask(&other, 404);
}

#[test]
fn what_does_not_go_with_a_point_in_time_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let node = filled(folder.path());
    let id = point(&node, "a", "1h");
    let refused = |method: &str, path: &str, body: Value, says: &str| {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let answer = node.ask(method, path, body).expect(400);
        assert!(answer["error"]["reason"].as_str().unwrap().contains(says), "{answer}");
    };
    let with = json!({"pit": {"id": id}});
    refused("POST", "/a/_search", with.clone(), "cannot be used with point in time");
    refused("POST", "/_search?scroll=1m", with, "not allowed in a scroll context");
    refused("POST", "/_search", json!({"pit": {"id": 1}}), "[pit]");
    refused(
        "POST",
        "/_search",
        json!({"pit": {"id": id, "keep_alive": "3d"}}),
        "point_in_time.max_keep_alive",
    );
    refused(
        "POST",
        "/_search",
        json!({"pit": {"id": id, "index": "a"}}),
        "[pit] query does not support [index]",
    );
    refused("POST", "/a/_search/point_in_time", Value::Null, "keep alive not specified");
    refused("POST", "/a/_search/point_in_time?keep_alive=soon", Value::Null, "keep_alive");
    refused("DELETE", "/_search/point_in_time", json!({}), "no pit ids specified");
    node.ask("POST", "/none/_search/point_in_time?keep_alive=1m", "").expect(404);
}

/// By score, with ties, over several indexes that change meanwhile.
#[test]
fn a_scroll_over_several_indexes_misses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let node = filled(folder.path());
    let body = json!({"query": {"match": {"text": "word"}}, "size": 40}).to_string();
    let whole = node.ask("POST", "/a,b/_search", body).expect(200)["hits"].clone();
    let body = json!({"query": {"match": {"text": "word"}}, "size": 3, "aggs": {}}).to_string();
    let mut page = node.ask("POST", "/a,b/_search?scroll=1m", body).expect(200);
    let scroll = json!({"scroll": "1m", "scroll_id": page["_scroll_id"]}).to_string();
    let mut all: Vec<Value> = Vec::new();
    for round in 0.. {
        let hits = page["hits"]["hits"].as_array().unwrap();
        assert_eq!(page["hits"]["total"], whole["total"]);
        if hits.is_empty() {
            break;
        }
        all.extend(hits.iter().cloned());
        write(&node, ["a", "b"][round % 2], 100);
        node.ask("POST", "/a,b/_forcemerge?max_num_segments=1", "").expect(200);
        page = node.ask("POST", "/_search/scroll", &scroll).expect(200);
    }
    assert_eq!(json!(all), whole["hits"]);
}
