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

/// Rows with a number, a text, a time in nanoseconds and a vector of two, as data frames are written.
fn parquet(path: &std::path::Path, rows: usize) {
    use parquet::data_type::{ByteArray, ByteArrayType, FloatType, Int64Type};
    use parquet::file::writer::SerializedFileWriter;
    let schema = "message schema {
        required int64 key; optional binary title (utf8); required int64 time (timestamp(nanos,true));
        optional group v (list) { repeated group list { required float element; } }
    }";
    let schema = std::sync::Arc::new(parquet::schema::parser::parse_message_type(schema).unwrap());
    let mut writer =
        SerializedFileWriter::new(std::fs::File::create(path).unwrap(), schema, Default::default()).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let keys: Vec<i64> = (0..rows as i64).collect();
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<Int64Type>().write_batch(&keys, None, None).unwrap();
    column.close().unwrap();
    // The second row has no title.
    let titles: Vec<ByteArray> =
        keys.iter().filter(|key| **key != 1).map(|key| format!("title {key}").as_str().into()).collect();
    let there: Vec<i16> = keys.iter().map(|key| i16::from(*key != 1)).collect();
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<ByteArrayType>().write_batch(&titles, Some(&there), None).unwrap();
    column.close().unwrap();
    let times: Vec<i64> = keys.iter().map(|key| key * 1_000_000_000 + 5).collect();
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<Int64Type>().write_batch(&times, None, None).unwrap();
    column.close().unwrap();
    let vectors: Vec<f32> = keys.iter().flat_map(|key| [*key as f32, 0.25]).collect();
    let (there, begins): (Vec<i16>, Vec<i16>) = keys.iter().flat_map(|_| [(2, 0), (2, 1)]).unzip();
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<FloatType>().write_batch(&vectors, Some(&there), Some(&begins)).unwrap();
    column.close().unwrap();
    group.close().unwrap();
    writer.close().unwrap();
}

#[test]
fn parquet_is_imported_row_by_row() {
    let folder = Folder::new();
    parquet(&folder.path("d.parquet"), 2500);
    let node = Node::start(&folder, "");
    let url = format!("--url http://{}", node.address);
    let done = folder.run(&format!("import d.parquet --index d --id key --field v --json {url}")).ok();
    let said: Value = serde_json::from_str(&done.out).unwrap();
    assert_eq!((&said["imported"], &said["refused"]), (&2500.into(), &0.into()));
    assert!(done.err.contains("v has 2 dimensions"), "{}", done.err);
    let source = |id: &str| body(&node.ask(&format!("GET /d/_doc/{id}"), ""))["_source"].clone();
    let seventh = source("7");
    assert_eq!(
        (&seventh["key"], &seventh["title"], &seventh["time"]),
        (&7.into(), &"title 7".into(), &7000.into())
    );
    assert!(source("1")["title"].is_null());
    let query = r#"{"query": {"knn": {"v": {"vector": [1999.1, 0.25], "k": 1}}}}"#;
    assert_eq!(body(&node.ask("POST /d/_search", query))["hits"]["hits"][0]["_id"], "1999");
    folder
        .run(&format!("import d.parquet --index d --field title {url}"))
        .error(2, &["title", "no lists of numbers", "key, title, time, v"]);
    folder.run(&format!("import d.parquet --index d --field w {url}")).error(2, &["not there"]);
}

#[test]
fn damaged_parquet_ends_with_an_error() {
    let folder = Folder::new();
    parquet(&folder.path("d.parquet"), 300);
    let whole = std::fs::read(folder.path("d.parquet")).unwrap();
    let node = Node::start(&folder, "");
    let mut failed = 0;
    let seed = 5;
    let mut random = fastrand::Rng::with_seed(seed);
    for _ in 0..30 {
        let mut bytes = whole.clone();
        for _ in 0..1 + random.usize(..4) {
            let at = random.usize(..bytes.len());
            bytes[at] = random.u8(..);
        }
        bytes.truncate(bytes.len() - if random.bool() { 0 } else { random.usize(..bytes.len() / 2) });
        std::fs::write(folder.path("d.parquet"), &bytes).unwrap();
        let ended = folder.run(&format!("import d.parquet --index d --url http://{}", node.address));
        // Some changes leave it readable, or are of values alone.
        assert!(matches!(ended.code, Some(0 | 1)), "seed {seed}: {:?} {}", ended.code, ended.err);
        failed += usize::from(ended.code == Some(1));
    }
    assert!(failed > 5, "{failed} of 30 were refused");
}
