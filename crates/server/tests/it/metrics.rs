//! What the node tells of itself.

use crate::served::Served;
use std::collections::HashMap;

/// Values by name and labels, of a page that Prometheus could read.
fn read(node: &Served) -> HashMap<String, f64> {
    let reply = node.ask("GET", "/_lanewise/metrics", "");
    assert_eq!(reply.status, 200);
    let (mut values, mut kinds) = (HashMap::new(), HashMap::new());
    for line in String::from_utf8(reply.body).unwrap().lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
            assert!(kinds.insert(name.to_owned(), kind.to_owned()).is_none(), "{name} comes twice");
            continue;
        }
        if line.starts_with("# HELP ") {
            continue;
        }
        let (name, value) = line.rsplit_once(' ').unwrap();
        let family = name.split('{').next().unwrap();
        let of_histogram = ["_bucket", "_sum", "_count"].iter().find_map(|end| family.strip_suffix(end));
        assert!(
            kinds.contains_key(family) || of_histogram.is_some_and(|family| kinds[family] == "histogram"),
            "{line} has no type"
        );
        assert!(values.insert(name.to_owned(), value.parse().unwrap()).is_none(), "{name} comes twice");
    }
    values
}

#[test]
fn work_is_counted_by_index_and_names_that_are_none_are_not() {
    let folder = tempfile::tempdir().unwrap();
    let node = Served::new(folder.path());
    let mapping = r#"{"settings": {"index.knn": true}, "mappings": {"properties": {"v": {"type": "knn_vector", "dimension": 2}}}}"#;
    node.ask("PUT", "/books", mapping).expect(200);
    for n in 0..3 {
        node.ask("PUT", &format!("/books/_doc/{n}"), r#"{"v": [1, 2]}"#).expect(201);
    }
    for _ in 0..5 {
        let query = r#"{"query": {"knn": {"v": {"vector": [1, 2], "k": 2}}}}"#;
        node.ask("POST", "/books/_search", query).expect(200);
    }
    node.ask("POST", "/invented/_search", "{}").expect(404);
    let values = read(&node);
    let is = |name: &str, expected: f64| assert_eq!(values.get(name), Some(&expected), "{name}");
    is(r#"lanewise_index_request_seconds_count{index="books",work="search"}"#, 5.0);
    is(r#"lanewise_index_request_seconds_bucket{index="books",work="search",le="+Inf"}"#, 5.0);
    is(r#"lanewise_index_request_seconds_count{index="books",work="write"}"#, 3.0);
    is(r#"lanewise_request_seconds_count{work="search"}"#, 6.0);
    is(r#"lanewise_index_documents{index="books"}"#, 3.0);
    is(r#"lanewise_indices{state="open"}"#, 1.0);
    is(r#"lanewise_http_responses_total{status="4xx"}"#, 1.0);
    assert!(values.keys().all(|name| !name.contains("invented")));
    let sum = |family: &str| -> f64 {
        values.iter().filter(|(name, _)| name.starts_with(family)).map(|(_, value)| value).sum()
    };
    assert!(sum("lanewise_scheduler_tasks_total") >= 5.0);
    assert!(sum("lanewise_scheduler_bytes_total") > 0.0);
    assert!(sum("lanewise_memory_predicted_bytes") > 0.0);
    if cfg!(target_os = "linux") {
        assert!(values["process_resident_memory_bytes"] > 1e6);
    }

    node.ask("DELETE", "/books", "").expect(200);
    assert!(read(&node).keys().all(|name| !name.contains("books")));
}
