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

/// As a crash leaves it between a table and its index, or somebody who uses the engine without the server.
#[test]
fn a_table_without_an_index_is_adopted() {
    use lanewise_engine::scheduler::Options;
    use lanewise_engine::table::{Resources, When, Write};
    use lanewise_engine::{Admission, Engine, Limits, Pool, Threads};
    let folder = tempfile::tempdir().unwrap();
    let node = Served::new(folder.path());
    node.ask("PUT", "/named", knn(2).to_string()).expect(200);
    node.ask("PUT", "/named/_alias/taken", "").expect(200);
    drop(node);
    let resources = Resources {
        threads: Threads::new(None),
        pool: std::sync::Arc::new(Pool::start(Options::default()).unwrap()),
        admission: Admission::usual(),
    };
    let engine = Engine::open_folder(folder.path(), resources, Limits::default()).unwrap();
    let schema = json!({"fields": {"v": {"type": "vector", "dim": 2, "dtype": "bf16", "metric": "cosine"}, "t": {"type": "text"}}});
    for name in ["orphan", "taken"] {
        let table = engine.create(name, serde_json::from_value(schema.clone()).unwrap()).unwrap();
        let Value::Object(document) = json!({"v": [3, 4], "t": "red shoes", "any": "thing"}) else {
            unreachable!()
        };
        let write = Write::Put { id: Some("1".into()), document, vectors: vec![], when: When::Always };
        table.write(vec![write]).remove(0).unwrap();
    }
    drop(engine);
    for _ in 0..2 {
        let node = Served::new(folder.path());
        let mappings = node.ask("GET", "/orphan/_mapping", "").expect(200)["orphan"]["mappings"].clone();
        assert_eq!(
            (&mappings["properties"]["v"]["dimension"], &mappings["properties"]["t"]["type"]),
            (&json!(2), &json!("text"))
        );
        let query = json!({"query": {"bool": {"must": [{"match": {"t": "red"}}], "filter": [{"term": {"any": "thing"}}]}}});
        assert_eq!(node.ask("POST", "/orphan/_count", query.to_string()).expect(200)["count"], 1);
        let query = json!({"query": {"knn": {"v": {"vector": [3, 4], "k": 5}}}});
        let found = node.ask("POST", "/orphan/_search", query.to_string()).expect(200);
        assert_eq!(found["hits"]["hits"][0]["_source"]["t"], "red shoes");
        node.ask("PUT", "/orphan/_mapping", r#"{"properties": {"k": {"type": "keyword"}}}"#).expect(200);
        node.ask("PUT", "/orphan/_doc/2", r#"{"k": "x", "any": "thing"}"#);
        assert_eq!(
            node.ask("POST", "/orphan/_count", r#"{"query": {"term": {"any": "thing"}}}"#).expect(200)["count"],
            2
        );
        // A name that stands for another index is left alone.
        assert_eq!(
            node.ask("GET", "/taken", "").expect(200).as_object().unwrap().keys().collect::<Vec<_>>(),
            ["named"]
        );
    }
}
