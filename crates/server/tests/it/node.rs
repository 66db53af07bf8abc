//! What the node says of itself: state, settings, tasks, figures, `_cat`, the k-NN plugin's requests.

use crate::served::Served;
use serde_json::{Value, json};

#[test]
fn settings_of_the_node_are_checked_kept_and_taken_back() {
    let folder = tempfile::tempdir().unwrap();
    let node = Served::new(folder.path());
    let put = |node: &Served, body: Value, status| {
        node.ask("PUT", "/_cluster/settings", body.to_string()).expect(status)
    };
    let unknown = put(&node, json!({"persistent": {"cluster.colour": "red"}}), 400);
    assert_eq!(unknown["error"]["reason"], "persistent setting [cluster.colour], not recognized");
    let wrong = put(&node, json!({"persistent": {"knn.memory.circuit_breaker.limit": "much"}}), 400);
    assert!(wrong["error"]["reason"].as_str().unwrap().contains("[knn.memory.circuit_breaker.limit]"));
    put(&node, json!({"transient": {"action": {"auto_create_index": "logs-*,-*"}}}), 200);
    put(&node, json!({"persistent": {"knn.memory.circuit_breaker.limit": "123456kb"}}), 200);
    node.ask("POST", "/logs-1/_doc", "{}").expect(201);
    assert_eq!(
        node.ask("POST", "/other/_doc", "{}").expect(404)["error"]["type"],
        "index_not_found_exception"
    );
    let stats = node.ask("GET", "/_nodes/stats/breaker", "").expect(200);
    let limit = |stats: &Value| {
        stats["nodes"].as_object().unwrap().values().next().unwrap()["breakers"]["parent"]["limit_size_in_bytes"].clone()
    };
    assert_eq!(limit(&stats), 123_456 << 10);
    drop(node);
    let node = Served::new(folder.path());
    let kept = node.ask("GET", "/_cluster/settings?flat_settings", "").expect(200);
    assert_eq!(
        kept,
        json!({"persistent": {"knn.memory.circuit_breaker.limit": "123456kb"}, "transient": {}})
    );
    assert_eq!(limit(&node.ask("GET", "/_nodes/stats", "").expect(200)), 123_456 << 10);
    put(&node, json!({"persistent": {"knn.*": null, "action.destructive_requires_name": true}}), 200);
    assert_ne!(limit(&node.ask("GET", "/_nodes/stats", "").expect(200)), 123_456 << 10);
    node.ask("DELETE", "/*", "").expect(400);
    node.ask("DELETE", "/logs-1", "").expect(200);
}

#[test]
fn tasks_that_are_not_there_are_said_so() {
    let folder = tempfile::tempdir().unwrap();
    let node = Served::new(folder.path());
    let id = node.ask("GET", "/_cluster/state/version", "").expect(200)["cluster_uuid"]
        .as_str()
        .unwrap()
        .to_owned();
    for (path, status) in
        [(format!("/_tasks/{id}:7"), 404), ("/_tasks/x:7".to_owned(), 404), ("/_tasks/7".to_owned(), 400)]
    {
        node.ask("GET", &path, "").expect(status);
        node.ask("POST", &format!("{path}/_cancel"), "").expect(status);
    }
    assert_eq!(node.ask("GET", "/_tasks", "").expect(200), json!({"nodes": {}}));
    assert_eq!(node.ask("GET", "/_tasks?group_by=none", "").expect(200), json!({"tasks": []}));
    let both = node.ask("POST", "/_forcemerge?max_num_segments=1&only_expunge_deletes=true", "").expect(400);
    assert!(both["error"]["reason"].as_str().unwrap().contains("mutually exclusive"));
}

#[test]
fn merging_drops_what_is_dead() {
    let folder = tempfile::tempdir().unwrap();
    let node = Served::new(folder.path());
    let lines = |from: usize| {
        (from..from + 50)
            .map(|i| format!("{{\"index\": {{\"_id\": {i}}}}}\n{{\"n\": {i}}}\n"))
            .collect::<String>()
    };
    for from in [0, 50, 100] {
        node.ask("POST", "/a/_bulk", lines(from)).expect(200);
        node.ask("POST", "/a/_flush", "").expect(200);
    }
    let query = json!({"query": {"range": {"n": {"lt": 20}}}});
    node.ask("POST", "/a/_delete_by_query", query.to_string()).expect(200);
    let dead =
        |node: &Served| node.ask("GET", "/a/_stats", "").expect(200)["_all"]["primaries"]["docs"].clone();
    assert_eq!(dead(&node), json!({"count": 130, "deleted": 20}));
    node.ask("POST", "/a/_forcemerge?only_expunge_deletes=true", "").expect(200);
    assert_eq!(dead(&node), json!({"count": 130, "deleted": 0}));
    node.ask("POST", "/a/_forcemerge?max_num_segments=1", "").expect(200);
    let segments = node.ask("GET", "/a/_segments", "").expect(200);
    assert_eq!(segments["indices"]["a"]["shards"]["0"][0]["num_committed_segments"], 1);
    let rows = node.ask("GET", "/_cat/segments/a?format=json&s=docs.count:desc", "").expect(200);
    assert_eq!(rows[0]["docs.count"], "130");
    node.ask("POST", "/a/_cache/clear", "").expect(200);
    assert_eq!(node.ask("GET", "/a/_count", "").expect(200)["count"], 130);
}

#[test]
fn cats_are_ordered_and_choose_columns() {
    let folder = tempfile::tempdir().unwrap();
    let node = Served::new(folder.path());
    for (index, documents) in [("b", 2), ("a", 10), ("c", 1)] {
        for _ in 0..documents {
            node.ask("POST", &format!("/{index}/_doc"), "{}").expect(201);
        }
    }
    node.ask("PUT", "/a/_alias/first", r#"{"filter": {"term": {"x": 1}}, "is_write_index": true}"#)
        .expect(200);
    let text = |path: &str| String::from_utf8(node.ask("GET", path, "").body).unwrap();
    assert_eq!(text("/_cat/indices?h=index,docs.count&s=docs.count:desc"), "a 10\nb 2\nc 1\n");
    assert_eq!(text("/_cat/indices?v&h=ind*&s=index:desc"), "index\nc\nb\na\n");
    assert_eq!(text("/_cat/aliases?h=alias,index,filter,is_write_index"), "first a * true\n");
    assert!(text("/_cat/count").ends_with(" 13\n"));
    assert!(text("/_cat/plugins").contains("opensearch-knn 3.5.0.0"));
    assert!(text("/_cat/health").contains(" lanewise green 1 1 3 3 0 0 0 0 - 100.0%"));
    assert!(text("/_cat/indices/c?h=store.size").trim_end().ends_with('b'));
    assert!(text("/_cat/indices/c?h=store.size&bytes=b").trim_end().parse::<u64>().is_ok());
    for path in ["shards", "nodes", "allocation", "thread_pool", "cluster_manager", "segments", "templates"] {
        let rows = node.ask("GET", &format!("/_cat/{path}?format=json"), "").expect(200);
        assert_eq!(rows.as_array().unwrap().is_empty(), path == "templates", "{path}");
        assert!(text(&format!("/_cat/{path}?help")).lines().count() >= 4);
    }
    node.ask("GET", "/_cat/indices?s=colour", "").expect(400);
    node.ask("GET", "/_cat/indices?format=yaml", "").expect(400);
}

#[test]
fn the_knn_plugins_requests_are_answered_under_both_names() {
    let folder = tempfile::tempdir().unwrap();
    let node = Served::new(folder.path());
    let body = json!({"mappings": {"properties": {
        "f": {"type": "knn_vector", "dimension": 3, "space_type": "cosinesimil"},
        "b": {"type": "knn_vector", "dimension": 8, "data_type": "byte"},
        "x": {"type": "knn_vector", "dimension": 16, "data_type": "binary"}}}});
    node.ask("PUT", "/a", body.to_string()).expect(200);
    node.ask("POST", "/a/_doc", r#"{"f": [1, 2, 3], "b": [1, 2, 3, 4, 5, 6, 7, 8], "x": [1, -1]}"#)
        .expect(201);
    for prefix in ["/_plugins/_knn", "/_opendistro/_knn"] {
        assert_eq!(
            node.ask("GET", &format!("{prefix}/warmup/a"), "").expect(200)["_shards"]["successful"],
            1
        );
        let stats = node.ask("GET", &format!("{prefix}/stats"), "").expect(200);
        assert_eq!(stats["circuit_breaker_triggered"], false);
        let (id, told) = stats["nodes"].as_object().unwrap().iter().next().unwrap();
        assert!(told["graph_memory_usage"].is_u64());
        let one = node.ask("GET", &format!("{prefix}/{id}/stats/knn_query_requests"), "").expect(200);
        assert_eq!(one["nodes"][id].as_object().unwrap().len(), 1);
        node.ask("GET", &format!("{prefix}/stats/colour"), "").expect(400);
    }
    node.ask("GET", "/_plugins/_knn/warmup/none", "").expect(404);
    node.ask("POST", "/_plugins/_knn/clear_cache/a", "").expect(200);
    node.ask("GET", "/_plugins/_knn/models/m", "").expect(404);
    assert_eq!(
        node.ask("POST", "/_plugins/_knn/models/_search", "").expect(200)["hits"]["total"]["value"],
        0
    );
    let refused = node.ask("POST", "/_plugins/_knn/models/m/_train", "{}").expect(400);
    assert!(refused["error"]["reason"].as_str().unwrap().contains("training is not supported"));
}

#[test]
fn state_and_figures_name_every_index() {
    let folder = tempfile::tempdir().unwrap();
    let node = Served::new(folder.path());
    node.ask("PUT", "/a", r#"{"aliases": {"x": {}}}"#).expect(200);
    let state = node.ask("GET", "/_cluster/state", "").expect(200);
    assert_eq!(state["metadata"]["indices"]["a"]["aliases"], json!(["x"]));
    let part = node.ask("GET", "/_cluster/state/metadata/x", "").expect(200);
    assert!(part.get("nodes").is_none() && part["metadata"]["indices"].get("a").is_some());
    let stats = node.ask("GET", "/_cluster/stats", "").expect(200);
    assert_eq!((&stats["indices"]["count"], &stats["status"]), (&json!(1), &json!("green")));
    let health = node.ask("GET", "/_cluster/health?level=shards", "").expect(200);
    assert_eq!(health["indices"]["a"]["shards"]["0"]["primary_active"], true);
    assert_eq!(node.ask("GET", "/a/_recovery", "").expect(200)["a"]["shards"][0]["stage"], "DONE");
    let resolved = node.ask("GET", "/_resolve/index/a,x*", "").expect(200);
    assert_eq!(resolved["indices"], json!([{"name": "a", "aliases": ["x"], "attributes": ["open"]}]));
    assert_eq!(resolved["aliases"], json!([{"name": "x", "indices": ["a"]}]));
    node.ask("GET", "/_resolve/index/none", "").expect(404);
    node.ask("GET", "/a/_stats/colour", "").expect(400);
    let part = node.ask("GET", "/a/_stats/docs,merge", "").expect(200);
    assert_eq!(part["_all"]["total"].as_object().unwrap().len(), 2);
}
