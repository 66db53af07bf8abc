//! Indexes and aliases.

use crate::served::Served;
use serde_json::{Value, json};

fn knn(dim: usize) -> Value {
    json!({"settings": {"index.knn": true}, "mappings": {"properties": {
        "v": {"type": "knn_vector", "dimension": dim, "space_type": "l2"}, "color": {"type": "keyword"}}}})
}

#[test]
fn an_index_is_made_looked_at_and_dropped_and_outlives_the_node() {
    let folder = tempfile::tempdir().unwrap();
    let node = Served::new(folder.path());
    let uuid = node.ask("GET", "/", "").expect(200)["cluster_uuid"].clone();
    assert_eq!(node.ask("HEAD", "/a", "").status, 404);
    let made = node.ask("PUT", "/a", knn(4).to_string()).expect(200);
    assert_eq!(made, json!({"acknowledged": true, "shards_acknowledged": true, "index": "a"}));
    let twice = node.ask("PUT", "/a", "").expect(400);
    assert_eq!(twice["error"]["type"], "resource_already_exists_exception");
    drop(node);
    let node = Served::new(folder.path());
    assert_eq!(node.ask("GET", "/", "").expect(200)["cluster_uuid"], uuid);
    assert_eq!(node.ask("HEAD", "/a", "").status, 200);
    let known = node.ask("GET", "/a", "").expect(200);
    assert_eq!(known["a"]["mappings"], knn(4)["mappings"]);
    assert_eq!(known["a"]["settings"]["index"]["knn"], "true");
    assert_eq!(node.ask("DELETE", "/a", "").expect(200), json!({"acknowledged": true}));
    let gone = node.ask("GET", "/a", "").expect(404);
    assert_eq!(gone["error"]["root_cause"][0]["type"], "index_not_found_exception");
    assert_eq!(gone["status"], 404);
}

#[test]
fn aliases_are_swapped_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let node = Served::new(folder.path());
    for index in ["v1", "v2"] {
        node.ask("PUT", &format!("/{index}"), knn(2).to_string()).expect(200);
    }
    node.ask("PUT", "/v1/_alias/now", "").expect(200);
    let swap = json!({"actions": [
        {"remove": {"index": "v1", "alias": "now"}}, {"add": {"index": "v2", "alias": "now"}}]});
    node.ask("POST", "/_aliases", swap.to_string()).expect(200);
    let now = node.ask("GET", "/_alias/now", "").expect(200);
    assert_eq!(now, json!({"v2": {"aliases": {"now": {}}}}));
    // One that fails changes nothing, whatever stood before it.
    let wrong = json!({"actions": [
        {"remove": {"index": "v2", "alias": "now"}}, {"add": {"index": "missing", "alias": "now"}}]});
    node.ask("POST", "/_aliases", wrong.to_string()).expect(404);
    assert_eq!(node.ask("GET", "/_alias/now", "").expect(200), now);
    let taken = json!({"actions": [{"add": {"index": "v1", "alias": "v2"}}]});
    let taken = node.ask("POST", "/_aliases", taken.to_string()).expect(400);
    assert_eq!(taken["error"]["type"], "invalid_alias_name_exception");
    assert_eq!(
        node.ask("GET", "/_alias/none", "").expect(404),
        json!({"error": "alias [none] missing", "status": 404})
    );
}

#[test]
fn mappings_that_cannot_be_are_refused_by_field() {
    let folder = tempfile::tempdir().unwrap();
    let node = Served::new(folder.path());
    for (field, says) in [
        (json!({"type": "knn_vector"}), "dimension is missing"),
        (json!({"type": "knn_vector", "dimension": 0}), "from 1 to 16000"),
        (json!({"type": "knn_vector", "dimension": 4, "space_type": "l1"}), "space_type [l1]"),
        (json!({"type": "knn_vector", "dimension": 4, "method": {"name": "scann"}}), "method [scann]"),
        (json!({"type": "geo_point"}), "The type [geo_point] of field [f] is not supported"),
        (json!({"type": "keyword", "analyzer": "x"}), "unknown parameter [analyzer] on mapper [f]"),
    ] {
        let body = json!({"mappings": {"properties": {"f": field}}});
        let refused = node.ask("PUT", "/a", body.to_string()).expect(400);
        let reason = refused["error"]["reason"].as_str().unwrap();
        assert!(reason.contains(says) && reason.contains('f'), "{reason}");
        assert_eq!(refused["error"]["type"], "mapper_parsing_exception");
    }
    assert_eq!(node.ask("HEAD", "/a", "").status, 404);
}
