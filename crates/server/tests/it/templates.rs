//! Templates of indexes, and fields that come later.

use crate::served::Served;
use serde_json::{Value, json};

fn put(node: &Served, path: &str, body: &Value, status: u16) -> Value {
    node.ask("PUT", path, body.to_string()).expect(status)
}

#[test]
fn an_index_gets_what_the_first_template_says_and_its_request_more() {
    let folder = tempfile::tempdir().unwrap();
    let node = Served::new(folder.path());
    let vectors = json!({"template": {"mappings": {"properties": {
        "v": {"type": "knn_vector", "dimension": 2}, "tag": {"type": "text"}}}}});
    put(&node, "/_component_template/vectors", &vectors, 200);
    let logs = json!({"index_patterns": ["logs-*"], "priority": 5, "composed_of": ["vectors"], "template": {
        "settings": {"number_of_replicas": 2}, "aliases": {"logs": {}}, "mappings": {"properties": {"tag": {"type": "keyword"}}}}});
    put(&node, "/_index_template/logs", &logs, 200);
    put(
        &node,
        "/_index_template/all",
        &json!({"index_patterns": "*", "template": {"aliases": {"every": {}}}}),
        200,
    );
    put(&node, "/_template/old", &json!({"index_patterns": ["logs-*"], "aliases": {"old": {}}}), 200);
    // By a write as by a request.
    node.ask("POST", "/logs-1/_doc", r#"{"v": [1, 2], "tag": "x"}"#).expect(201);
    let made = node.ask("GET", "/logs-1", "").expect(200)["logs-1"].clone();
    assert_eq!(made["aliases"], json!({"logs": {}}));
    assert_eq!(made["settings"]["index"]["number_of_replicas"], "2");
    assert_eq!(made["mappings"]["properties"]["tag"], json!({"type": "keyword"}));
    assert_eq!(made["mappings"]["properties"]["v"]["dimension"], 2);
    let query = json!({"query": {"knn": {"v": {"vector": [1, 2], "k": 1}}}});
    assert_eq!(node.ask("POST", "/logs/_search", query.to_string()).expect(200)["hits"]["total"]["value"], 1);
    put(
        &node,
        "/logs-2",
        &json!({"settings": {"index.number_of_replicas": 0}, "aliases": {"mine": {}}}),
        200,
    );
    let made = node.ask("GET", "/logs-2", "").expect(200)["logs-2"].clone();
    assert_eq!(made["settings"]["index"]["number_of_replicas"], "0");
    assert_eq!(made["aliases"], json!({"logs": {}, "mine": {}}));
    put(&node, "/other", &json!({}), 200);
    assert_eq!(node.ask("GET", "/other", "").expect(200)["other"]["aliases"], json!({"every": {}}));
    let told = node.ask("POST", "/_index_template/_simulate_index/logs-9", "").expect(200);
    assert_eq!(told["template"]["aliases"], json!({"logs": {}}));
    let overlapping: Vec<&Value> =
        told["overlapping"].as_array().unwrap().iter().map(|one| &one["name"]).collect();
    assert_eq!(overlapping, ["all", "old"]);
    let told = node.ask("POST", "/_index_template/_simulate/logs", "").expect(200);
    assert_eq!(told["template"]["settings"]["index"]["number_of_replicas"], "2");
}

#[test]
fn legacy_templates_add_up_by_their_order() {
    let folder = tempfile::tempdir().unwrap();
    let node = Served::new(folder.path());
    let last = json!({"index_patterns": ["a*"], "order": 2, "settings": {"refresh_interval": "2s"}});
    put(&node, "/_template/last", &last, 200);
    let first =
        json!({"index_patterns": ["*"], "settings": {"refresh_interval": "1s", "number_of_replicas": 3}});
    put(&node, "/_template/first?order=1", &first, 200);
    put(&node, "/ab", &json!({}), 200);
    let made = node.ask("GET", "/ab/_settings", "").expect(200)["ab"]["settings"]["index"].clone();
    assert_eq!((&made["refresh_interval"], &made["number_of_replicas"]), (&json!("2s"), &json!("3")));
    let told = node.ask("GET", "/_template/first", "").expect(200);
    assert_eq!((&told["first"]["order"], &told["first"]["mappings"]), (&json!(1), &json!({})));
    assert_eq!(node.ask("HEAD", "/_template/first", "").status, 200);
    node.ask("DELETE", "/_template/first", "").expect(200);
    assert_eq!(node.ask("HEAD", "/_template/first", "").status, 404);
    assert_eq!(
        node.ask("GET", "/_template/first", "").expect(404)["error"]["type"],
        "index_template_missing_exception"
    );
}

#[test]
fn templates_that_cannot_be_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let node = Served::new(folder.path());
    put(&node, "/_component_template/c", &json!({"template": {}}), 200);
    put(&node, "/_index_template/t", &json!({"index_patterns": ["x-*"], "composed_of": ["c"]}), 200);
    for (path, body, says) in [
        ("/_index_template/u", json!({"index_patterns": ["x-1*"]}), "same priority [0]"),
        ("/_index_template/u", json!({"template": {}}), "index patterns are missing"),
        ("/_index_template/u", json!({"index_patterns": ["u"], "composed_of": ["none"]}), "do not exist"),
        ("/_index_template/u", json!({"index_patterns": ["u"], "data_stream": {}}), "[data_stream]"),
        (
            "/_index_template/u",
            json!({"index_patterns": ["u"], "template": {"settings": {"colour": 1}}}),
            "unknown setting",
        ),
        (
            "/_component_template/d",
            json!({"template": {"mappings": {"properties": {"f": {"type": "ip"}}}}}),
            "[ip]",
        ),
        (
            "/_template/l",
            json!({"index_patterns": ["l"], "settings": {"uuid": "x"}}),
            "private index setting",
        ),
        ("/_index_template/t?create=true", json!({"index_patterns": ["y"]}), "already exists"),
    ] {
        let refused = put(&node, path, &body, 400);
        assert!(refused["error"]["reason"].as_str().unwrap().contains(says), "{refused}");
    }
    let used = node.ask("DELETE", "/_component_template/c", "").expect(400);
    assert!(used["error"]["reason"].as_str().unwrap().contains("still in use by index templates [t]"));
    node.ask("DELETE", "/_index_template/t", "").expect(200);
    node.ask("DELETE", "/_component_template/c", "").expect(200);
    node.ask("DELETE", "/_index_template/t", "").expect(404);
    assert_eq!(node.ask("GET", "/_index_template", "").expect(200), json!({"index_templates": []}));
}

#[test]
fn fields_come_later_where_the_mapping_is_open() {
    let folder = tempfile::tempdir().unwrap();
    let node = Served::new(folder.path());
    put(
        &node,
        "/a",
        &json!({"mappings": {"properties": {"n": {"type": "long"}, "o": {"properties": {"x": {"type": "long"}}}}}}),
        200,
    );
    let more = json!({"properties": {"color": {"type": "keyword"}, "n": {"type": "long"},
        "o": {"properties": {"y": {"type": "keyword"}}}}});
    put(&node, "/a/_mapping", &more, 200);
    let told = node.ask("GET", "/a/_mapping", "").expect(200)["a"]["mappings"]["properties"].clone();
    assert_eq!(
        (&told["color"], &told["o"]["properties"]["y"]),
        (&json!({"type": "keyword"}), &json!({"type": "keyword"}))
    );
    node.ask("PUT", "/a/_doc/1", r#"{"color": "red", "o": {"y": "z"}}"#).expect(201);
    let query = json!({"query": {"bool": {"filter": [{"term": {"color": "red"}}, {"term": {"o.y": "z"}}]}}});
    assert_eq!(node.ask("POST", "/a/_count", query.to_string()).expect(200)["count"], 1);
    let changed = json!({"properties": {"n": {"type": "keyword"}}});
    let refused = put(&node, "/a/_mapping", &changed, 400);
    assert!(refused["error"]["reason"].as_str().unwrap().contains("mapper [n] cannot be changed"));
    put(&node, "/none/_mapping", &json!({"properties": {}}), 404);
}
