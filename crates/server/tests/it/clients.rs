//! What clients send, in the order in which they send it: opensearch-benchmark, VectorDBBench, LangChain, LlamaIndex,
//! Haystack, Spark.

use crate::served::Served;
use serde_json::{Value, json};
use std::time::Duration;

/// Lines of a bulk: `(id, document)` with numbers for ids.
fn lines(documents: impl IntoIterator<Item = (Value, Value)>) -> String {
    documents
        .into_iter()
        .map(|(id, document)| format!("{}\n{document}\n", json!({"index": {"_id": id}})))
        .collect()
}

/// Asks for a task until it is done.
fn done(node: &Served, task: &Value) -> Value {
    let path = format!("/_tasks/{}", task.as_str().unwrap());
    for _ in 0..200 {
        let told = node.ask("GET", &path, "").expect(200);
        if told["completed"] == true {
            return told;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("{task} is not done");
}

#[test]
fn opensearch_benchmark_runs_its_vector_search() {
    let folder = tempfile::tempdir().unwrap();
    let node = Served::new(folder.path());
    let health = node.ask("GET", "/_cluster/health?wait_for_nodes=%3E%3D1", "").expect(200);
    assert_eq!((&health["status"], &health["timed_out"]), (&json!("green"), &json!(false)));
    assert_eq!(node.ask("GET", "/_cluster/health?wait_for_nodes=2", "").expect(408)["timed_out"], true);
    for path in ["/_nodes/stats/_all", "/_nodes/_all"] {
        let all = node.ask("GET", path, "").expect(200);
        let told = all["nodes"].as_object().unwrap().values().next().unwrap();
        assert_eq!(told["name"], "lanewise");
        if path.contains("stats") {
            assert!(told["jvm"]["gc"]["collectors"]["young"]["collection_count"].is_u64());
            assert!(told["process"]["open_file_descriptors"].as_u64().unwrap() > 0);
        } else {
            assert!(told["os"]["available_processors"].as_u64().unwrap() > 0);
        }
    }
    node.ask("GET", "/target_index,other/_stats/_all?level=shards", "").expect(404);
    assert_eq!(node.ask("HEAD", "/target_index", "").status, 404);
    let body = json!({"settings": {"index.knn": true, "number_of_shards": 1}, "mappings": {"properties": {
        "target_field": {"type": "knn_vector", "dimension": 2,
            "method": {"name": "hnsw", "space_type": "l2", "engine": "faiss"}}}}});
    node.ask("PUT", "/target_index", body.to_string()).expect(200);
    let documents = (0..20).map(|i| (json!(i), json!({"target_field": [i, 0]})));
    let written = node.ask("POST", "/target_index/_bulk", lines(documents)).expect(200);
    assert_eq!(written["errors"], false);
    node.ask("POST", "/target_index/_refresh", "").expect(200);
    let path = "/target_index/_forcemerge?max_num_segments=1&wait_for_completion=false";
    let task = node.ask("POST", path, "").expect(200)["task"].clone();
    let merged = done(&node, &task);
    assert_eq!(merged["task"]["action"], "indices:admin/forcemerge");
    assert_eq!(merged["response"]["_shards"], json!({"total": 1, "successful": 1, "failed": 0}));
    assert_eq!(node.ask("GET", "/_plugins/_knn/warmup/target_index", "").expect(200)["_shards"]["failed"], 0);
    let query = json!({"docvalue_fields": ["_id"], "stored_fields": "_none_", "size": 2,
        "query": {"knn": {"target_field": {"vector": [7, 0], "k": 2}}}});
    let path = "/target_index/_search?allow_partial_search_results=false";
    let found = node.ask("GET", path, query.to_string()).expect(200);
    assert_eq!(found["hits"]["hits"][0]["fields"], json!({"_id": ["7"]}));
    assert!(
        found["hits"]["hits"][0].get("_source").is_none() && found["hits"]["hits"][0].get("_id").is_none()
    );
    let query = json!({"size": 0, "query": {"bool": {"must": [{"term": {"result_type": "bucket"}}]}},
        "aggs": {"jobs": {"terms": {"field": "job_id"}}}});
    let none = node.ask("POST", "/.ml-anomalies-*/_search", query.to_string()).expect(200);
    assert_eq!(none["hits"], json!({"total": {"value": 0, "relation": "eq"}, "max_score": 0.0, "hits": []}));
    let stats = node.ask("GET", "/_stats/_all?level=shards", "").expect(200);
    let all = &stats["_all"]["primaries"];
    assert_eq!((&all["docs"]["count"], &all["indexing"]["index_total"]), (&json!(20), &json!(20)));
    assert_eq!((&all["segments"]["count"], &all["merges"]["total"]), (&json!(1), &json!(0)));
    assert!(stats["_all"]["total"]["store"]["size_in_bytes"].as_u64().unwrap() > 20 * 8);
    assert_eq!(stats["indices"]["target_index"]["shards"]["0"][0]["routing"]["primary"], true);
    let rows = node.ask("GET", "/_cat/indices?format=json&h=index,docs.count", "").expect(200);
    assert_eq!(rows, json!([{"index": "target_index", "docs.count": "20"}]));
}

#[test]
fn vectordbbench_sets_loads_merges_and_searches() {
    let folder = tempfile::tempdir().unwrap();
    let node = Served::new(folder.path());
    let settings = json!({"persistent":
        {"knn.algo_param.index_thread_qty": 4, "knn.memory.circuit_breaker.limit": "60%"}});
    let set = node.ask("PUT", "/_cluster/settings", settings.to_string()).expect(200);
    assert_eq!(set["persistent"]["knn"]["algo_param"]["index_thread_qty"], "4");
    let body = json!({
        "settings": {"index": {"knn": true, "number_of_shards": 1, "number_of_replicas": 0,
            "translog.flush_threshold_size": "5120mb", "replication.type": "DOCUMENT",
            "knn.algo_param.ef_search": 128, "knn.derived_source.enabled": false}, "refresh_interval": "60s"},
        "mappings": {"properties": {"id": {"type": "integer", "store": true}, "label": {"type": "keyword"},
            "embedding": {"type": "knn_vector", "dimension": 2, "method": {"name": "hnsw", "engine": "faiss",
                "space_type": "l2", "parameters": {"m": 16, "ef_construction": 100}}}}}});
    node.ask("PUT", "/vdb", body.to_string()).expect(200);
    let documents = (0..10).map(|i| (json!(i), json!({"embedding": [i, i], "label": format!("l{}", i % 2)})));
    node.ask("POST", "/vdb/_bulk", lines(documents)).expect(200);
    node.ask("PUT", "/vdb/_settings", json!({"index": {"knn.algo_param.ef_search": 256}}).to_string())
        .expect(200);
    let settings = node.ask("GET", "/vdb/_settings", "").expect(200);
    assert_eq!(settings["vdb"]["settings"]["index"]["knn.algo_param"]["ef_search"], "256");
    node.ask("GET", "/_cluster/health/vdb?wait_for_status=green&wait_for_no_relocating_shards=true", "")
        .expect(200);
    let task =
        node.ask("POST", "/vdb/_forcemerge?max_num_segments=1&wait_for_completion=false", "").expect(200);
    done(&node, &task["task"]);
    let query = json!({"size": 3, "query": {"knn": {"embedding": {"vector": [4, 4], "k": 3,
        "method_parameters": {"ef_search": 256}, "filter": {"term": {"label": "l0"}}}}}});
    let path = "/vdb/_search?size=3&_source=false&stored_fields=_id&preference=_only_local";
    let found = node.ask("POST", path, query.to_string()).expect(200);
    let hits = found["hits"]["hits"].as_array().unwrap();
    assert_eq!(hits.len(), 3);
    assert_eq!(hits[0]["_id"], "4");
    assert!(hits.iter().all(|hit| hit.get("_source").is_none()));
}

#[test]
fn langchain_and_llamaindex_write_search_and_delete_by_query() {
    let folder = tempfile::tempdir().unwrap();
    let node = Served::new(folder.path());
    node.ask("GET", "/docs", "").expect(404);
    let body = json!({"settings": {"index": {"knn": true, "knn.algo_param.ef_search": 512}}, "mappings": {"properties": {
        "vector_field": {"type": "knn_vector", "dimension": 2, "method": {"name": "hnsw", "space_type": "l2",
            "engine": "nmslib", "parameters": {"ef_construction": 512, "m": 16}}}}}});
    node.ask("PUT", "/docs", body.to_string()).expect(200);
    let documents = (0..6).map(|i| {
        (
            json!(format!("d{i}")),
            json!({"vector_field": [i, 1], "text": format!("text {i}"), "metadata": {"n": i}}),
        )
    });
    node.ask("POST", "/docs/_bulk?refresh=true", lines(documents)).expect(200);
    let query = json!({"size": 2, "min_score": 0.0, "query": {"knn": {"vector_field": {"vector": [2, 1], "k": 2,
        "filter": {"bool": {"filter": [{"range": {"metadata.n": {"gte": 3}}}]}}}}},
        "_source": {"excludes": ["vector_field"]}});
    let found = node.ask("POST", "/docs/_search", query.to_string()).expect(200);
    assert_eq!(found["hits"]["hits"][0]["_source"], json!({"text": "text 3", "metadata": {"n": 3}}));
    let query = json!({"query": {"terms": {"_id": ["d0", "d1", "none"]}}});
    let gone = node.ask("POST", "/docs/_delete_by_query?refresh=true", query.to_string()).expect(200);
    assert_eq!((&gone["deleted"], &gone["total"]), (&json!(2), &json!(2)));
    assert_eq!(gone["failures"], json!([]));
    assert_eq!(node.ask("GET", "/docs/_count", "").expect(200)["count"], 4);
    let gone =
        node.ask("POST", "/docs/_delete_by_query", r#"{"query": {"bool": {"filter": []}}}"#).expect(200);
    assert_eq!(gone["deleted"], 4);
    assert_eq!(node.ask("GET", "/docs/_count", "").expect(200)["count"], 0);
    let missing = node.ask("POST", "/docs/_delete_by_query", "{}").expect(400);
    assert!(missing["error"]["reason"].as_str().unwrap().contains("query is missing"));
}

#[test]
fn haystack_maps_by_templates_and_writes_by_create() {
    let folder = tempfile::tempdir().unwrap();
    let node = Served::new(folder.path());
    let strings = json!({"strings": {"path_match": "*", "match_mapping_type": "string", "mapping": {"type": "keyword"}}});
    let body = json!({"mappings": {
        "properties": {"embedding": {"type": "knn_vector", "index": true, "dimension": 2}, "content": {"type": "text"}},
        "dynamic_templates": [strings], "_source": {"excludes": ["embedding"]}}});
    node.ask("PUT", "/h", body.to_string()).expect(200);
    let lines = concat!(
        "{\"create\": {\"_id\": \"1\"}}\n{\"content\": \"a cat\", \"embedding\": [1, 0], \"name\": \"x\"}\n",
        "{\"create\": {\"_id\": \"1\"}}\n{\"content\": \"again\"}\n",
        "{\"delete\": {\"_id\": \"none\"}}\n",
    );
    let written = node.ask("POST", "/h/_bulk?refresh=wait_for", lines).expect(200);
    assert_eq!(written["items"][1]["create"]["status"], 409);
    assert_eq!(written["items"][2]["delete"]["status"], 404);
    assert_eq!(node.ask("POST", "/h/_count", "").expect(200)["count"], 1);
    let query = json!({"query": {"bool": {"filter": {"term": {"name": "x"}}}}, "size": 10000});
    let found = node.ask("POST", "/h/_search", query.to_string()).expect(200);
    assert_eq!(found["hits"]["hits"][0]["_source"], json!({"content": "a cat", "name": "x"}));
}

#[test]
fn sparks_connector_finds_the_node_and_its_shards() {
    let folder = tempfile::tempdir().unwrap();
    let node = Served::new(folder.path());
    node.ask("PUT", "/s", "").expect(200);
    let http = node.ask("GET", "/_nodes/http", "").expect(200);
    let told = http["nodes"].as_object().unwrap().values().next().unwrap();
    assert_eq!(told["http"]["publish_address"], node.address.to_string());
    assert!(told.get("os").is_none());
    let shards = node.ask("GET", "/s/_search_shards", "").expect(200);
    assert_eq!(
        (&shards["shards"][0][0]["index"], &shards["shards"][0][0]["primary"]),
        (&json!("s"), &json!(true))
    );
    assert_eq!(node.ask("GET", "/_nodes/nobody/stats", "").expect(200)["_nodes"]["total"], 0);
}
