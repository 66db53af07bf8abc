//! Documents that are changed in part, and many at once.

use crate::served::Served;
use serde_json::{Value, json};

/// An index of documents with a vector, a text and an object.
fn filled(folder: &std::path::Path) -> Served {
    let node = Served::new(folder);
    let body = json!({"mappings": {"properties": {
        "v": {"type": "knn_vector", "dimension": 2, "space_type": "l2"}, "o": {"properties": {"w": {"type": "knn_vector", "dimension": 2}}}}}});
    node.ask("PUT", "/a", body.to_string()).expect(200);
    node.ask("PUT", "/a/_doc/1", r#"{"v": [3, 4], "n": 1, "o": {"w": [5, 6], "x": 1}}"#).expect(201);
    node
}

/// Ids by distance from a point.
fn nearest(node: &Served, field: &str, vector: [i32; 2]) -> Vec<(String, f64)> {
    let query = json!({"query": {"knn": {field: {"vector": vector, "k": 10}}}});
    let found = node.ask("POST", "/a/_search", query.to_string()).expect(200);
    let hits = found["hits"]["hits"].as_array().unwrap();
    hits.iter()
        .map(|hit| (hit["_id"].as_str().unwrap().to_owned(), hit["_score"].as_f64().unwrap()))
        .collect()
}

#[test]
fn a_part_changes_and_vectors_stay() {
    let folder = tempfile::tempdir().unwrap();
    let node = filled(folder.path());
    let done = node.ask("POST", "/a/_update/1", r#"{"doc": {"n": 2, "o": {"y": 2}}}"#).expect(200);
    assert_eq!((&done["result"], &done["_version"]), (&json!("updated"), &json!(2)));
    let source = node.ask("GET", "/a/_doc/1", "").expect(200)["_source"].clone();
    assert_eq!((&source["n"], &source["o"]["x"], &source["o"]["y"]), (&json!(2), &json!(1), &json!(2)));
    assert_eq!(nearest(&node, "v", [3, 4]), [("1".to_owned(), 1.0)]);
    assert_eq!(nearest(&node, "o.w", [5, 6]), [("1".to_owned(), 1.0)]);
    let same = node.ask("POST", "/a/_update/1", r#"{"doc": {"n": 2}}"#).expect(200);
    assert_eq!((&same["result"], &same["_version"]), (&json!("noop"), &json!(2)));
    let again = node.ask("POST", "/a/_update/1", r#"{"doc": {"n": 2}, "detect_noop": false}"#).expect(200);
    assert_eq!((&again["result"], &again["_version"]), (&json!("updated"), &json!(3)));
    node.ask("POST", "/a/_update/1", r#"{"doc": {"v": [0, 1], "o": {"w": null}}}"#).expect(200);
    assert_eq!(nearest(&node, "v", [0, 1]), [("1".to_owned(), 1.0)]);
    assert_eq!(nearest(&node, "o.w", [5, 6]), []);
    let shown = node.ask("POST", "/a/_update/1?_source=n", r#"{"doc": {"n": 9}}"#).expect(200);
    assert_eq!(shown["get"]["_source"], json!({"n": 9}));
}

#[test]
fn what_is_missing_is_written_if_it_may_be() {
    let folder = tempfile::tempdir().unwrap();
    let node = filled(folder.path());
    let missing = node.ask("POST", "/a/_update/2", r#"{"doc": {"n": 1}}"#).expect(404);
    assert_eq!(missing["error"]["type"], "document_missing_exception");
    let made = node.ask("POST", "/a/_update/2", r#"{"doc": {"n": 1}, "upsert": {"m": 1}}"#).expect(201);
    assert_eq!(made["result"], "created");
    assert_eq!(node.ask("GET", "/a/_source/2", "").expect(200), json!({"m": 1}));
    node.ask("POST", "/a/_update/3", r#"{"doc": {"n": 3}, "doc_as_upsert": true}"#).expect(201);
    assert_eq!(node.ask("GET", "/a/_source/3", "").expect(200), json!({"n": 3}));
    let seq = node.ask("GET", "/a/_doc/3", "").expect(200)["_seq_no"].as_u64().unwrap();
    let path = |seq: u64| format!("/a/_update/3?if_seq_no={seq}&if_primary_term=1");
    node.ask("POST", &path(seq + 1), r#"{"doc": {"n": 4}}"#).expect(409);
    node.ask("POST", &path(seq), r#"{"doc": {"n": 4}}"#).expect(200);
    let script = node.ask("POST", "/a/_update/3", r#"{"script": "ctx._source.n = 1"}"#).expect(400);
    assert!(script["error"]["reason"].as_str().unwrap().contains("[script] is not supported"));
    assert_eq!(node.ask("POST", "/none/_update/1", r#"{"doc": {}}"#).status, 404);
}

#[test]
fn updates_of_a_bulk_see_the_lines_before_them() {
    let folder = tempfile::tempdir().unwrap();
    let node = filled(folder.path());
    let lines = concat!(
        "{\"index\": {\"_id\": \"7\"}}\n{\"n\": 1, \"v\": [7, 7]}\n",
        "{\"update\": {\"_id\": \"7\"}}\n{\"doc\": {\"n\": 2}}\n",
        "{\"update\": {\"_id\": \"7\", \"retry_on_conflict\": 3}}\n{\"doc\": {\"m\": 3}}\n",
        "{\"update\": {\"_id\": \"1\"}}\n{\"doc\": {\"n\": 1}}\n",
        "{\"update\": {\"_id\": \"none\"}}\n{\"doc\": {\"n\": 1}}\n",
        "{\"update\": {\"_id\": \"new\"}}\n{\"doc\": {\"n\": 1}, \"doc_as_upsert\": true}\n",
        "{\"update\": {\"_id\": \"7\"}}\n{\"script\": \"x\"}\n",
        "{\"delete\": {\"_id\": \"7\"}}\n",
        "{\"update\": {\"_id\": \"7\"}}\n{\"doc\": {\"n\": 8}, \"upsert\": {\"n\": 9}}\n",
    );
    let done = node.ask("POST", "/a/_bulk", lines).expect(200);
    let told: Vec<(u64, &Value)> = done["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item.as_object().unwrap().values().next().unwrap())
        .map(|item| (item["status"].as_u64().unwrap(), &item["result"]))
        .collect();
    let expected =
        json!(["created", "updated", "updated", "noop", null, "created", null, "deleted", "created"]);
    assert_eq!(
        told.iter().map(|(status, _)| *status).collect::<Vec<_>>(),
        [201, 200, 200, 200, 404, 201, 400, 200, 201]
    );
    assert_eq!(
        told.into_iter().map(|(_, result)| result.clone()).collect::<Vec<_>>(),
        *expected.as_array().unwrap()
    );
    assert_eq!(node.ask("GET", "/a/_source/7", "").expect(200), json!({"n": 9}));
}

#[test]
fn many_documents_are_got_by_id() {
    let folder = tempfile::tempdir().unwrap();
    let node = filled(folder.path());
    node.ask("PUT", "/b/_doc/x", r#"{"p": 1, "q": 2}"#).expect(201);
    let asked = json!({"docs": [{"_index": "a", "_id": "1", "_source": ["n"]}, {"_index": "b", "_id": "x", "_source": {"excludes": "p"}},
        {"_index": "b", "_id": "none"}, {"_index": "c", "_id": "1"}]});
    let got = node.ask("POST", "/_mget", asked.to_string()).expect(200)["docs"].clone();
    assert_eq!((&got[0]["_source"], &got[1]["_source"]), (&json!({"n": 1}), &json!({"q": 2})));
    assert_eq!(
        (&got[2]["found"], &got[3]["error"]["type"]),
        (&json!(false), &json!("index_not_found_exception"))
    );
    let got = node.ask("GET", "/b/_mget?_source=false", r#"{"ids": ["x", "y"]}"#).expect(200)["docs"].clone();
    assert_eq!(
        (&got[0]["found"], got[0].get("_source"), &got[1]["found"]),
        (&json!(true), None, &json!(false))
    );
    node.ask("POST", "/_mget", "{}").expect(400);
    node.ask("POST", "/_mget", r#"{"ids": ["x"]}"#).expect(400);
}

#[test]
fn documents_are_written_again_by_query_and_keep_their_vectors() {
    let folder = tempfile::tempdir().unwrap();
    let node = filled(folder.path());
    node.ask("PUT", "/a/_doc/2", r#"{"v": [1, 1], "n": 5}"#).expect(201);
    let query = json!({"query": {"term": {"n": 1}}});
    let done = node.ask("POST", "/a/_update_by_query?conflicts=proceed", query.to_string()).expect(200);
    assert_eq!((&done["updated"], &done["total"]), (&json!(1), &json!(1)));
    assert_eq!(node.ask("GET", "/a/_doc/1", "").expect(200)["_version"], 2);
    assert_eq!(node.ask("GET", "/a/_doc/2", "").expect(200)["_version"], 1);
    assert_eq!(nearest(&node, "v", [3, 4])[0], ("1".to_owned(), 1.0));
    let done = node.ask("POST", "/a/_update_by_query?max_docs=1", "").expect(200);
    assert_eq!(done["updated"], 1);
    let task =
        node.ask("POST", "/a/_delete_by_query?wait_for_completion=false", r#"{"query": {"match_all": {}}}"#);
    let task = task.expect(200)["task"].as_str().unwrap().to_owned();
    let told = node.ask("GET", &format!("/_tasks/{task}?wait_for_completion=true"), "").expect(200);
    assert_eq!((&told["completed"], &told["response"]["deleted"]), (&json!(true), &json!(2)));
    node.ask("POST", "/a/_update_by_query", r#"{"script": {"source": "x"}}"#).expect(400);
}

#[test]
fn blocked_indexes_take_no_writes() {
    let folder = tempfile::tempdir().unwrap();
    let node = filled(folder.path());
    let block = |name: &str, value: Value| {
        node.ask("PUT", "/a/_settings", json!({"index.blocks": {name: value}}).to_string()).expect(200);
    };
    block("write", json!(true));
    for (method, path, body) in [
        ("PUT", "/a/_doc/2", "{}"),
        ("POST", "/a/_update/1", r#"{"doc": {"n": 2}}"#),
        ("DELETE", "/a/_doc/1", ""),
        ("POST", "/a/_delete_by_query", r#"{"query": {"match_all": {}}}"#),
        ("POST", "/a/_update_by_query", ""),
    ] {
        let refused = node.ask(method, path, body).expect(403);
        assert_eq!(refused["error"]["type"], "cluster_block_exception", "{path}");
    }
    let items = node.ask("POST", "/a/_bulk", "{\"index\": {}}\n{}\n").expect(200);
    assert_eq!(items["items"][0]["index"]["status"], 403);
    block("write", Value::Null);
    block("read_only_allow_delete", json!(true));
    node.ask("PUT", "/a/_doc/2", "{}").expect(403);
    node.ask("DELETE", "/a/_doc/1", "").expect(200);
}
