//! `lanewise import`: into a node that runs.
#![cfg(unix)]

use crate::Folder;
use crate::serve::Node;
use lanewise_bench::dataset::{self, Elements};
use serde_json::Value;

fn body(answer: &str) -> Value {
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    serde_json::from_str(body).unwrap_or_else(|_| panic!("{head}\n{body}"))
}

#[test]
fn vectors_with_ids_are_found_again() {
    let folder = Folder::with_vectors();
    folder.write("ids.npy", 1, Elements::Int((0..500).map(|row| row * 7 + 1).collect()));
    let node = Node::start(&folder, "");
    let url = format!("http://{}", node.address);
    let done = folder.run(&format!("import x.npy --index v --field e --ids ids.npy --url {url} --json")).ok();
    let said: Value = serde_json::from_str(&done.out).unwrap();
    assert_eq!((&said["imported"], &said["refused"]), (&500.into(), &0.into()));
    assert!(done.err.contains("made the index v"), "{}", done.err);
    assert_eq!(body(&node.ask("GET /v/_count", ""))["count"], 500);
    let Elements::F32(all) = dataset::read(&folder.path("x.npy")).unwrap().elements else { panic!() };
    let second = &all[8..16];
    let query = format!(r#"{{"query": {{"knn": {{"e": {{"vector": {second:?}, "k": 1}}}}}}}}"#);
    assert_eq!(body(&node.ask("POST /v/_search", &query))["hits"]["hits"][0]["_id"], "8");
    // Once more: the same ids, so the same documents.
    folder.run(&format!("import x.npy --index v --field e --ids ids.npy --url {url}")).ok();
    assert_eq!(body(&node.ask("GET /v/_count", ""))["count"], 500);
}

#[test]
fn lines_are_imported_and_wrong_ones_are_named() {
    let folder = Folder::new();
    let lines: String = (0..2500).map(|n| format!("{{\"n\": {n}, \"key\": \"k{n}\"}}\n")).collect();
    std::fs::write(folder.path("d.ndjson"), lines + "\n[1]\n{\"n\": 1}\n{\"n\": \"x\", \"key\": 5}\n{\n")
        .unwrap();
    let node = Node::start(&folder, "");
    let made = node.ask("PUT /d", r#"{"mappings": {"properties": {"n": {"type": "integer"}}}}"#);
    assert!(made.starts_with("HTTP/1.1 200"), "{made}");
    let args = format!("import d.ndjson --index d --id key --url http://{}", node.address);
    let ended = folder.run(&args);
    assert_eq!(ended.code, Some(1), "{}", ended.err);
    assert!(ended.out.contains("2,500 documents imported"), "{}", ended.out);
    let words = [
        "document 2502: it is no JSON object",
        "document 2503: it has no field \"key\"",
        "document 2504: ",
        "document 2505: ",
        "4 documents were refused",
    ];
    for word in words {
        assert!(ended.err.contains(word), "{word}: {}", ended.err);
    }
    assert_eq!(body(&node.ask("GET /d/_doc/k7", ""))["_source"]["n"], 7);
    assert_eq!(body(&node.ask("GET /d/_count", ""))["count"], 2500);
    folder.run(&format!("{args} --strict")).error(1, &["document 25"]);
}

#[test]
fn what_cannot_be_imported_says_why() {
    let folder = Folder::with_vectors();
    std::fs::write(folder.path("d.ndjson"), "{}\n").unwrap();
    let node = Node::start(&folder, "");
    let url = format!("--url http://{}", node.address);
    for (args, code, words) in [
        (format!("x.npy --index a {url}"), 2, &["--field"][..]),
        (format!("d.ndjson --index a --field f {url}"), 2, &["--field"]),
        (format!("d.txt --index a {url}"), 2, &["d.txt", ".ndjson"]),
        (format!("none.ndjson --index a {url}"), 1, &["none.ndjson"]),
        ("d.ndjson --index a --url ftp://x".to_owned(), 2, &["http"]),
        ("d.ndjson --index a --url http://127.0.0.1:1".to_owned(), 1, &["127.0.0.1:1"]),
    ] {
        folder.run(&format!("import {args}")).error(code, words);
    }
    let mut far = folder.command(&["import", "d.ndjson", "--index", "a", "--url", "http://192.0.2.1"]);
    crate::Ended::of(far.env("LANEWISE_API_KEY", "k").output().unwrap()).error(2, &["https"]);
}
