//! Snapshots in folders below `path.repo`.

use crate::served::Served;
use serde_json::{Value, json};
use std::path::Path;

fn files(folder: &Path) -> usize {
    std::fs::read_dir(folder).map_or(0, |all| all.count())
}

fn filled(folder: &Path) -> Served {
    let node = Served::new(folder);
    let body = json!({"mappings": {"properties": {"v": {"type": "knn_vector", "dimension": 2}}}, "aliases": {"x": {}}});
    node.ask("PUT", "/a", body.to_string()).expect(200);
    for n in 0..5 {
        node.ask("POST", "/a/_doc", json!({"v": [n, 1]}).to_string()).expect(201);
    }
    node.ask("POST", "/b/_doc", "{}").expect(201);
    node.ask("PUT", "/_snapshot/r", r#"{"type": "fs", "settings": {"location": "one"}}"#).expect(200);
    node
}

#[test]
fn a_snapshot_holds_indexes_and_shares_what_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let node = filled(folder.path());
    let made =
        node.ask("PUT", "/_snapshot/r/first?wait_for_completion=true", "").expect(200)["snapshot"].clone();
    assert_eq!(
        (&made["state"], &made["indices"], &made["shards"]["failed"]),
        (&json!("SUCCESS"), &json!(["a", "b"]), &json!(0))
    );
    let told = node.ask("GET", "/_snapshot/r/_all", "").expect(200);
    assert_eq!(told["snapshots"], json!([made]));
    let size = |name: &str| {
        let told =
            node.ask("GET", &format!("/_snapshot/r/{name}/_status"), "").expect(200)["snapshots"][0].clone();
        let part = |key: &str| told["stats"][key]["size_in_bytes"].as_u64().unwrap();
        (part("total"), part("incremental"))
    };
    assert!(size("first").0 > 0 && size("first").1 > 0);
    let body = json!({"indices": ["a"], "metadata": {"why": "again"}});
    node.ask("PUT", "/_snapshot/r/second?wait_for_completion=true", body.to_string()).expect(200);
    assert_eq!(size("second").1, 0);
    assert_eq!(
        node.ask("GET", "/_snapshot/r/second", "").expect(200)["snapshots"][0]["metadata"]["why"],
        "again"
    );
    let segments = folder.path().join("repos/one/segments");
    let before = files(&segments);
    node.ask("DELETE", "/_snapshot/r/first", "").expect(200);
    assert!(files(&segments) < before && files(&segments) > 0);
    node.ask("GET", "/_snapshot/r/first", "").expect(404);
    node.ask("DELETE", "/_snapshot/r/second", "").expect(200);
    assert_eq!(files(&segments), 0);
    // What is there does not go with its name.
    node.ask("PUT", "/_snapshot/r/third", "").expect(202);
    for _ in 0..100 {
        if node.ask("GET", "/_snapshot/r/third", "").status == 200 {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    node.ask("DELETE", "/_snapshot/r", "").expect(200);
    node.ask("GET", "/_snapshot/r/third", "").expect(404);
    node.ask("PUT", "/_snapshot/s", r#"{"type": "fs", "settings": {"location": "one"}}"#).expect(200);
    assert_eq!(node.ask("GET", "/_snapshot/s/th*", "").expect(200)["snapshots"][0]["snapshot"], "third");
}

#[test]
fn repositories_and_snapshots_that_cannot_be_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let node = filled(folder.path());
    let put = |path: &str, body: Value| node.ask("PUT", path, body.to_string());
    for (body, says) in [
        (json!({"type": "s3", "settings": {}}), "give fs"),
        (json!({"type": "fs", "settings": {}}), "missing location"),
        (json!({"type": "fs", "settings": {"location": "/etc"}}), "path.repo"),
        (json!({"type": "fs", "settings": {"location": "../up"}}), "path.repo"),
        (json!({"type": "fs", "settings": {"location": "x", "readonly": true}}), "[readonly]"),
    ] {
        let refused = put("/_snapshot/bad", body).expect(400);
        assert!(refused["error"]["reason"].as_str().unwrap().contains(says), "{refused}");
    }
    node.ask("GET", "/_snapshot/bad", "").expect(404);
    assert_eq!(
        put("/_snapshot/none/x", json!({})).expect(404)["error"]["type"],
        "repository_missing_exception"
    );
    assert_eq!(
        put("/_snapshot/r/UPPER", json!({})).expect(400)["error"]["type"],
        "invalid_snapshot_name_exception"
    );
    put("/_snapshot/r/x?wait_for_completion=true", json!({"indices": "none"})).expect(404);
    put("/_snapshot/r/x?wait_for_completion=true", json!({"indices": "b"})).expect(200);
    let twice = put("/_snapshot/r/x?wait_for_completion=true", json!({})).expect(400);
    assert!(twice["error"]["reason"].as_str().unwrap().contains("same name already exists"));
    assert_eq!(node.ask("GET", "/_snapshot/_status", "").expect(200), json!({"snapshots": []}));
    assert!(node.ask("POST", "/_snapshot/r/_verify", "").expect(200)["nodes"].is_object());
}

#[test]
#[expect(clippy::disallowed_methods, reason = "somebody writes meanwhile")]
fn a_snapshot_is_restored_under_other_names_while_its_index_is_written_to() {
    let folder = tempfile::tempdir().unwrap();
    let node = filled(folder.path());
    node.ask("PUT", "/_snapshot/r/one?wait_for_completion=true", "").expect(200);
    let restore = |body: Value| {
        node.ask("POST", "/_snapshot/r/one/_restore?wait_for_completion=true", body.to_string())
    };
    let taken = restore(json!({})).expect(500);
    assert_eq!(taken["error"]["type"], "snapshot_restore_exception");
    assert!(
        taken["error"]["reason"].as_str().unwrap().contains("cannot restore index [a] because an open index")
    );
    std::thread::scope(|scope| {
        // The index goes on meanwhile; what is restored is what was saved.
        let writer = scope.spawn(|| {
            for n in 0..60 {
                node.ask("POST", "/a/_doc", json!({"v": [n, 2], "more": n}).to_string()).expect(201);
            }
        });
        for n in 0..4 {
            let body = json!({"indices": "a,b*", "rename_pattern": "^(.)$", "rename_replacement": format!("$1_{n}"),
                "include_aliases": false});
            let done = restore(body).expect(200);
            assert_eq!(done["snapshot"]["indices"], json!([format!("a_{n}"), format!("b_{n}")]));
            let count = node.ask("GET", &format!("/a_{n}/_count"), "").expect(200)["count"].clone();
            assert_eq!(count, 5);
        }
        writer.join().unwrap();
    });
    assert_eq!(node.ask("GET", "/a/_count", "").expect(200)["count"], 65);
    let one = node.ask("GET", "/a_0", "").expect(200)["a_0"].clone();
    assert_eq!((&one["aliases"], &one["settings"]["index"]["provided_name"]), (&json!({}), &json!("a_0")));
    assert_ne!(
        one["settings"]["index"]["uuid"],
        node.ask("GET", "/a", "").expect(200)["a"]["settings"]["index"]["uuid"]
    );
    // It is an index like others: it learns, and finds its vectors.
    node.ask("PUT", "/a_0/_doc/new?refresh=true", r#"{"v": [9, 9], "late": "x"}"#).expect(201);
    let query = json!({"query": {"knn": {"v": {"vector": [9, 9], "k": 1}}}});
    let found = node.ask("POST", "/a_0/_search", query.to_string()).expect(200);
    assert_eq!(found["hits"]["hits"][0]["_source"], json!({"v": [9.0, 9.0], "late": "x"}));
    node.ask("DELETE", "/a", "").expect(200);
    node.ask("POST", "/_snapshot/r/one/_restore", r#"{"indices": ["a"]}"#).expect(200);
    for _ in 0..100 {
        if node.ask("HEAD", "/a", "").status == 200 {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    assert_eq!(node.ask("GET", "/x/_count", "").expect(200)["count"], 5);
    for (body, status, says) in [
        (json!({"indices": "none"}), 404, "no such index [none]"),
        (json!({"rename_pattern": "("  , "rename_replacement": "x"}), 400, "rename_pattern"),
        (json!({"rename_pattern": ".*"}), 400, "go together"),
        (json!({"rename_pattern": ".+", "rename_replacement": "same"}), 500, "same index [same]"),
        (json!({"rename_pattern": "$", "rename_replacement": "/up"}), 400, "Invalid index name"),
        (json!({"index_settings": {}}), 400, "index_settings"),
        (json!({"include_global_state": true}), 400, "include_global_state"),
    ] {
        let said = restore(body).expect(status);
        assert!(said["error"]["reason"].as_str().unwrap().contains(says), "{said}");
    }
    assert_eq!(node.ask("POST", "/_snapshot/r/none/_restore", "").status, 404);
}

/// A file of the snapshot is damaged: there is no index then, and no table.
#[test]
fn what_cannot_be_restored_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let node = filled(folder.path());
    node.ask("PUT", "/_snapshot/r/one?wait_for_completion=true", r#"{"indices": "a"}"#).expect(200);
    let segments = folder.path().join("repos/one/segments");
    let segment = std::fs::read_dir(segments).unwrap().next().unwrap().unwrap().path();
    let file = segment.join("rows");
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[20] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    let body = r#"{"rename_pattern": "a", "rename_replacement": "z"}"#;
    let said = node.ask("POST", "/_snapshot/r/one/_restore?wait_for_completion=true", body).expect(500);
    assert_eq!(said["error"]["type"], "snapshot_exception");
    assert_eq!(node.ask("HEAD", "/z", "").status, 404);
    assert!(!folder.path().join("tables/z").exists());
    drop(node);
    assert_eq!(Served::new(folder.path()).ask("HEAD", "/z", "").status, 404);
}
