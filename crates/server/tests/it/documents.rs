//! Documents: written, one by one and in bulk, read and found.

use crate::served::Served;
use serde_json::json;

#[test]
fn documents_are_written_read_found_and_deleted() {
    let folder = tempfile::tempdir().unwrap();
    let node = Served::new(folder.path());
    let body = json!({"mappings": {"properties": {"v": {"type": "knn_vector", "dimension": 2, "space_type": "l2"}}}});
    node.ask("PUT", "/a", body.to_string()).expect(200);
    let first = node.ask("PUT", "/a/_doc/1?refresh=true", r#"{"v": [1, 0], "color": "red"}"#).expect(201);
    assert_eq!((&first["result"], &first["_version"]), (&json!("created"), &json!(1)));
    node.ask("POST", "/a/_doc", r#"{"v": [0, 3], "color": "blue"}"#).expect(201);
    let conflict = node.ask("PUT", "/a/_create/1", "{}").expect(409);
    assert_eq!(conflict["error"]["type"], "version_conflict_engine_exception");
    let got = node.ask("GET", "/a/_doc/1", "").expect(200);
    assert_eq!(got["_source"]["color"], "red");
    let query = json!({"query": {"knn": {"v": {"vector": [1, 1], "k": 5}}}});
    let found = node.ask("GET", "/a/_search", query.to_string()).expect(200);
    assert_eq!(found["hits"]["total"], json!({"value": 2, "relation": "eq"}));
    assert_eq!(found["hits"]["hits"][0]["_id"], "1");
    assert_eq!(found["hits"]["hits"][0]["_score"], 0.5);
    let query =
        json!({"query": {"knn": {"v": {"vector": [1, 1], "k": 5, "filter": {"term": {"color": "blue"}}}}}});
    let found = node.ask("POST", "/a/_search?filter_path=hits.hits._score", query.to_string()).expect(200);
    assert_eq!(
        found,
        json!({"hits": {"hits": [{"_score": 1.0 / 6.0}]}}).as_object().map(|_| found.clone()).unwrap()
    );
    assert_eq!(node.ask("GET", "/a/_count", "").expect(200)["count"], 2);
    assert_eq!(node.ask("DELETE", "/a/_doc/1", "").expect(200)["result"], "deleted");
    assert_eq!(node.ask("DELETE", "/a/_doc/1", "").expect(404)["result"], "not_found");
    assert_eq!(node.ask("GET", "/a/_doc/1", "").expect(404)["found"], false);
}

#[test]
fn lines_of_a_bulk_have_fates_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let node = Served::new(folder.path());
    let body = json!({"mappings": {"properties": {"n": {"type": "integer"}}}});
    node.ask("PUT", "/a", body.to_string()).expect(200);
    let lines = concat!(
        "{\"index\": {\"_id\": 7}}\n{\"n\": 1}\n",
        "{\"create\": {\"_id\": \"7\"}}\n{\"n\": 2}\n",
        "{\"index\": {\"_id\": \"8\"}}\n{\"n\": \"many\"}\n",
        "{\"index\": {\"_id\": \"9\"}}\nnot json\n",
        "{\"delete\": {\"_id\": \"7\"}}\n",
        "{\"index\": {\"_index\": \"b\"}}\n{\"made\": true}\n",
    );
    let done = node.ask("POST", "/a/_bulk", lines).expect(200);
    assert_eq!(done["errors"], true);
    let items = done["items"].as_array().unwrap();
    let statuses: Vec<u64> = items
        .iter()
        .map(|item| item.as_object().unwrap().values().next().unwrap()["status"].as_u64().unwrap())
        .collect();
    assert_eq!(statuses, [201, 409, 400, 400, 200, 201]);
    assert_eq!(items[2]["index"]["error"]["type"], "mapper_parsing_exception");
    assert_eq!(node.ask("GET", "/b/_count", "").expect(200)["count"], 1);
    let filtered =
        node.ask("POST", "/a/_bulk?filter_path=errors", "{\"delete\": {\"_id\": \"7\"}}\n").expect(200);
    assert_eq!(filtered, json!({"errors": false}));
    let broken =
        node.ask("POST", "/a/_bulk", "{\"index\": {\"_id\": \"1\"}}\n{}\n{\"grow\": {}}\n").expect(400);
    assert_eq!(broken["error"]["done"], 1);
}
