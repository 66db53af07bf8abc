//! Mappings that grow, fields of several kinds, and vectors in `_source`.

use crate::served::Served;
use serde_json::{Value, json};

fn put(node: &Served, path: &str, body: &Value, status: u16) -> Value {
    node.ask("PUT", path, body.to_string()).expect(status)
}

fn reason(refused: &Value) -> &str {
    refused["error"]["reason"].as_str().unwrap()
}

fn properties(node: &Served, index: &str) -> Value {
    node.ask("GET", &format!("/{index}/_mapping"), "").expect(200)[index]["mappings"]["properties"].clone()
}

/// Ids that a query finds, ascending.
fn found(node: &Served, index: &str, query: Value) -> Vec<String> {
    let body = json!({"query": query, "size": 50});
    let answer = node.ask("POST", &format!("/{index}/_search"), body.to_string()).expect(200);
    let hits = answer["hits"]["hits"].as_array().unwrap();
    let mut ids: Vec<String> = hits.iter().map(|hit| hit["_id"].as_str().unwrap().to_owned()).collect();
    ids.sort();
    ids
}

/// Of every kind, numbers that no normalised vector, and none of 16 bits, has.
fn vectors() -> (Value, Value) {
    let field = |how: Value| {
        let mut field = json!({"type": "knn_vector", "dimension": 3});
        field.as_object_mut().unwrap().extend(how.as_object().unwrap().clone());
        field
    };
    let mappings = json!({"mappings": {"properties": {
        "l2": field(json!({})), "cos": field(json!({"space_type": "cosinesimil"})),
        "half": field(json!({"compression_level": "2x"})),
        "code": field(json!({"space_type": "cosinesimil", "mode": "on_disk"})),
        "byte": field(json!({"data_type": "byte"})),
        "bits": {"type": "knn_vector", "dimension": 16, "data_type": "binary"},
        "o": {"properties": {"w": field(json!({"space_type": "cosinesimil"}))}}}}});
    let document = json!({"l2": [0.1, -2.5, 1e-7], "cos": [3.3, 4.4, 0.123_456_79], "half": [0.1, 0.2, 1234.5677],
        "code": [7.0, -0.3, 0.5], "byte": [-128, 0, 127], "bits": [-1, 5], "o": {"w": [0.7, 0.1, 3.0], "x": 1}, "n": null});
    (mappings, document)
}

#[test]
fn a_source_holds_its_vectors_as_they_were_given() {
    let folder = tempfile::tempdir().unwrap();
    let node = Served::new(folder.path());
    let (mappings, document) = vectors();
    put(&node, "/a", &mappings, 200);
    put(&node, "/a/_doc/1", &document, 201);
    put(&node, "/a/_doc/2", &json!({"l2": null, "o": {}}), 201);
    for step in ["", "/a/_flush", "/a/_forcemerge?max_num_segments=1"] {
        if !step.is_empty() {
            node.ask("POST", step, "").expect(200);
        }
        assert_eq!(node.ask("GET", "/a/_source/1", "").expect(200), document, "{step}");
        assert_eq!(node.ask("GET", "/a/_source/2", "").expect(200), json!({"l2": null, "o": {}}));
        let query = json!({"query": {"ids": {"values": ["1"]}}});
        let hit = node.ask("POST", "/a/_search", query.to_string()).expect(200)["hits"]["hits"][0].clone();
        assert_eq!(hit["_source"], document, "{step}");
        let many = node.ask("POST", "/a/_mget", r#"{"ids": ["1"]}"#).expect(200);
        assert_eq!(many["docs"][0]["_source"], document);
    }
    let part = node.ask("GET", "/a/_doc/1?_source_includes=o.w,by*", "").expect(200);
    assert_eq!(part["_source"], json!({"o": {"w": [0.7, 0.1, 3.0]}, "byte": [-128, 0, 127]}));
    let shown = node.ask("POST", "/a/_update/1?_source=cos", r#"{"doc": {"n": 5}}"#).expect(200);
    assert_eq!(shown["get"]["_source"], json!({"cos": [3.3, 4.4, 0.123_456_79]}));
}

#[test]
fn updates_of_other_fields_never_change_a_vector() {
    let folder = tempfile::tempdir().unwrap();
    let node = Served::new(folder.path());
    let (mappings, mut document) = vectors();
    put(&node, "/a", &mappings, 200);
    put(&node, "/a/_doc/1", &document, 201);
    let mut random = fastrand::Rng::with_seed(7);
    for n in 0..40 {
        document["n"] = json!(n);
        match random.u8(..5) {
            0 => drop(node.ask("POST", "/a/_flush", "").expect(200)),
            1 => drop(node.ask("POST", "/a/_update_by_query", "{}").expect(200)),
            2 => {
                let line = format!(
                    "{{\"update\": {{\"_id\": \"1\"}}}}\n{}\n",
                    json!({"doc": {"n": n, "o": {"x": n}}})
                );
                document["o"]["x"] = json!(n);
                node.ask("POST", "/a/_bulk", line).expect(200);
            }
            3 => {
                let vector: Vec<f32> = (0..3).map(|_| random.f32() - 0.5).collect();
                let vector: Vec<f64> = vector.iter().map(|x| x.to_string().parse().unwrap()).collect();
                document["cos"] = json!(vector);
                let body = json!({"doc": {"cos": vector}});
                node.ask("POST", "/a/_update/1", body.to_string()).expect(200);
            }
            _ => drop(node.ask("POST", "/a/_forcemerge?max_num_segments=1", "").expect(200)),
        }
        node.ask("POST", "/a/_update/1", json!({"doc": {"n": n}}).to_string()).expect(200);
        assert_eq!(node.ask("GET", "/a/_source/1", "").expect(200), document, "{n}");
    }
}

#[test]
fn a_text_is_a_keyword_too() {
    let folder = tempfile::tempdir().unwrap();
    let node = Served::new(folder.path());
    let body = json!({"mappings": {"properties": {
        "title": {"type": "text", "fields": {"keyword": {"type": "keyword", "ignore_above": 12}, "en": {"type": "text", "analyzer": "english"}}},
        "tag": {"type": "keyword", "null_value": "none", "copy_to": "all"}, "all": {"type": "text"},
        "n": {"type": "integer", "null_value": -1, "fields": {"text": {"type": "keyword"}}}}}});
    put(&node, "/a", &body, 200);
    assert_eq!(properties(&node, "a"), body["mappings"]["properties"]);
    put(&node, "/a/_doc/1", &json!({"title": "Red Shoes", "tag": "x", "n": 3}), 201);
    put(&node, "/a/_doc/2", &json!({"title": "Blue Shoes", "tag": null, "n": null}), 201);
    put(&node, "/a/_doc/3", &json!({"title": "Red shoes that are long"}), 201);
    for _ in 0..2 {
        for (query, ids) in [
            (json!({"term": {"title.keyword": "Red Shoes"}}), &["1"][..]),
            (
                json!({"terms": {"title.keyword": ["Blue Shoes", "Red Shoes", "Red shoes that are long"]}}),
                &["1", "2"],
            ),
            (json!({"match": {"title": "red"}}), &["1", "3"]),
            (json!({"match": {"title.en": "shoe"}}), &["1", "2", "3"]),
            (json!({"term": {"title": "red"}}), &["1", "3"]),
            (json!({"term": {"title": "Red Shoes"}}), &[]),
            (json!({"term": {"tag": "none"}}), &["2"]),
            (json!({"match": {"all": "x"}}), &["1"]),
            (json!({"term": {"n": -1}}), &["2"]),
            (json!({"term": {"n.text": "3"}}), &["1"]),
            (json!({"exists": {"field": "title.keyword"}}), &["1", "2"]),
        ] {
            assert_eq!(found(&node, "a", query.clone()), ids, "{query}");
        }
        let body =
            json!({"sort": [{"title.keyword": "asc"}], "aggs": {"t": {"terms": {"field": "title.keyword"}}}});
        let answer = node.ask("POST", "/a/_search", body.to_string()).expect(200);
        let sorted: Vec<&Value> =
            answer["hits"]["hits"].as_array().unwrap().iter().map(|hit| &hit["_id"]).collect();
        assert_eq!(sorted, ["2", "1", "3"]);
        let buckets = answer["aggregations"]["t"]["buckets"].as_array().unwrap();
        assert_eq!(buckets.len(), 2);
        node.ask("POST", "/a/_flush", "").expect(200);
    }
    let sorted = node.ask("POST", "/a/_search", r#"{"sort": ["title"]}"#).expect(400);
    assert!(reason(&sorted).contains("title"), "{sorted}");
    for (field, says) in [
        (json!({"type": "text", "fields": {"x": {"type": "object"}}}), "[f.x]"),
        (json!({"type": "text", "fields": {"x": {"type": "keyword", "copy_to": "y"}}}), "[f.x]"),
        (json!({"type": "keyword", "copy_to": "nowhere"}), "copy_to [nowhere]"),
        (json!({"type": "keyword", "ignore_above": -1}), "ignore_above"),
        (json!({"type": "keyword", "null_value": {}}), "null_value"),
        (json!({"type": "boolean", "ignore_above": 3}), "unknown parameter [ignore_above]"),
    ] {
        let refused = put(&node, "/b", &json!({"mappings": {"properties": {"f": field}}}), 400);
        assert!(reason(&refused).contains(says), "{refused}");
    }
}

#[test]
fn fields_that_nobody_named_are_mapped_by_their_values() {
    let folder = tempfile::tempdir().unwrap();
    let node = Served::new(folder.path());
    let document = json!({"s": "Red Shoes", "n": 3, "f": [1, 2.5], "b": true, "d": "2024-02-03T04:05:06Z", "nothing": null,
        "empty": [], "o": {"x": "y", "deep": {"n": 1}}, "all": [{"k": "one"}, {"k": "two", "m": 2}], "dot.ted": 1});
    put(&node, "/a/_doc/1", &document, 201);
    let text = json!({"type": "text", "fields": {"keyword": {"type": "keyword", "ignore_above": 256}}});
    let expected = json!({"s": text, "n": {"type": "long"}, "f": {"type": "float"}, "b": {"type": "boolean"},
        "d": {"type": "date"}, "o": {"properties": {"x": text, "deep": {"properties": {"n": {"type": "long"}}}}},
        "all": {"properties": {"k": text, "m": {"type": "long"}}}, "dot": {"properties": {"ted": {"type": "long"}}}});
    assert_eq!(properties(&node, "a"), expected);
    assert_eq!(node.ask("GET", "/a/_source/1", "").expect(200), document);
    let lines = "{\"index\": {\"_id\": \"2\"}}\n{\"n\": 9.9, \"late\": \"x\"}\n{\"index\": {\"_id\": \"3\"}}\n{\"n\": \"many\"}\n";
    let done = node.ask("POST", "/a/_bulk", lines).expect(200);
    assert_eq!(done["items"][1]["index"]["error"]["type"], "mapper_parsing_exception");
    assert_eq!(properties(&node, "a")["late"], text);
    node.ask("POST", "/a/_update/1", r#"{"doc": {"more": "blue"}, "detect_noop": true}"#).expect(200);
    for (query, ids) in [
        (json!({"term": {"s.keyword": "Red Shoes"}}), &["1"][..]),
        (json!({"term": {"s": "red"}}), &["1"]),
        (json!({"range": {"n": {"gt": 5}}}), &["2"]),
        (json!({"term": {"all.k.keyword": "two"}}), &["1"]),
        (json!({"range": {"d": {"lt": "2025-01-01"}}}), &["1"]),
        (json!({"term": {"late.keyword": "x"}}), &["2"]),
        (json!({"term": {"dot.ted": 1}}), &["1"]),
        (json!({"match": {"more": "blue"}}), &["1"]),
    ] {
        assert_eq!(found(&node, "a", query.clone()), ids, "{query}");
    }
    // The same after a restart, and nothing is mapped twice.
    let mapped = properties(&node, "a");
    drop(node);
    let node = Served::new(folder.path());
    assert_eq!(properties(&node, "a"), mapped);
    let version =
        |node: &Served| node.ask("GET", "/_cluster/state/version", "").expect(200)["version"].clone();
    let before = version(&node);
    put(&node, "/a/_doc/1", &document, 200);
    assert_eq!(version(&node), before);
    assert_eq!(found(&node, "a", json!({"term": {"late": "x"}})), ["2"]);
    let wrong = put(&node, "/a/_doc/9", &json!({"o": 7}), 400);
    assert!(reason(&wrong).contains("[o]"), "{wrong}");
}

#[test]
fn dynamic_says_what_becomes_of_unnamed_fields() {
    let folder = tempfile::tempdir().unwrap();
    let node = Served::new(folder.path());
    let templates = json!([{"ids": {"match": "*_id", "mapping": {"type": "keyword"}}}]);
    let named = json!({"n": {"type": "long"}});
    for (dynamic, other, id) in [
        (json!(true), true, true),
        (json!("false"), false, false),
        (json!("false_allow_templates"), false, true),
    ] {
        let body =
            json!({"mappings": {"dynamic": dynamic, "dynamic_templates": templates, "properties": named}});
        put(&node, "/a", &body, 200);
        put(&node, "/a/_doc/1", &json!({"n": 1, "x": "y", "my_id": "A B"}), 201);
        let mapped = properties(&node, "a");
        assert_eq!((mapped.get("x").is_some(), mapped.get("my_id").is_some()), (other, id), "{dynamic}");
        let ids = |query: Value| found(&node, "a", query).len();
        assert_eq!(ids(json!({"term": {"my_id": "A B"}})), usize::from(id));
        assert_eq!(ids(json!({"match": {"x": "y"}})), usize::from(other));
        node.ask("DELETE", "/a", "").expect(200);
    }
    let body = json!({"mappings": {"dynamic": "strict", "properties": {"n": {"type": "long"},
        "o": {"dynamic": true, "properties": {}}, "f": {"dynamic": false, "properties": {}}, "off": {"type": "object", "enabled": false}}}});
    put(&node, "/s", &body, 200);
    let refused = put(&node, "/s/_doc/1", &json!({"x": 1}), 400);
    assert_eq!(refused["error"]["type"], "strict_dynamic_mapping_exception");
    assert_eq!(
        reason(&refused),
        "mapping set to strict, dynamic introduction of [x] within [_doc] is not allowed"
    );
    put(&node, "/s/_doc/1", &json!({"n": 1, "o": {"x": 1}, "f": {"y": 1}, "off": [1, {"z": 1}]}), 201);
    assert_eq!(properties(&node, "s")["o"]["properties"], json!({"x": {"type": "long"}}));
    assert_eq!(properties(&node, "s")["f"]["properties"], json!({}));
    put(&node, "/s/_mapping", &json!({"properties": {"x": {"type": "long"}}}), 200);
    put(&node, "/s/_doc/1", &json!({"x": 1}), 200);
    let body = json!({"mappings": {"dynamic": "strict_allow_templates", "dynamic_templates": templates}});
    put(&node, "/t", &body, 200);
    put(&node, "/t/_doc/1", &json!({"my_id": "x"}), 201);
    put(&node, "/t/_doc/2", &json!({"x": "x"}), 400);
    put(&node, "/t/_mapping", &json!({"dynamic": "true"}), 200);
    put(&node, "/t/_doc/2", &json!({"x": "x"}), 201);
    put(&node, "/u", &json!({"mappings": {"dynamic": "perhaps"}}), 400);
}

#[test]
fn templates_map_what_fits_them_vectors_too() {
    let folder = tempfile::tempdir().unwrap();
    let node = Served::new(folder.path());
    let templates = json!([
        {"vectors": {"match": "*_v", "mapping": {"type": "knn_vector", "dimension": 2, "space_type": "cosinesimil"}}},
        {"raw": {"path_match": "raw.*", "unmatch": "*_t", "match_mapping_type": "string", "mapping": {"type": "keyword"}}},
        {"both": {"match_mapping_type": "string", "match": "both*", "mapping": {"type": "keyword", "fields": {"{name}": {"type": "text"}}}}},
        {"longs": {"match_mapping_type": "long", "mapping": {"type": "{dynamic_type}", "ignore_malformed": true}}}]);
    put(&node, "/a", &json!({"mappings": {"dynamic_templates": templates}}), 200);
    put(
        &node,
        "/a/_doc/1",
        &json!({"my_v": [3, 4], "list": [3, 4], "raw": {"x": "a b", "x_t": "a b"}, "both1": "a b", "n": 5}),
        201,
    );
    put(&node, "/a/_doc/2", &json!({"my_v": [0.6, 0.9], "n": "five"}), 201);
    let mapped = properties(&node, "a");
    assert_eq!(mapped["my_v"]["type"], "knn_vector");
    assert_eq!(
        (&mapped["raw"]["properties"]["x"]["type"], &mapped["raw"]["properties"]["x_t"]["type"]),
        (&json!("keyword"), &json!("text"))
    );
    assert_eq!(mapped["both1"], json!({"type": "keyword", "fields": {"both1": {"type": "text"}}}));
    assert_eq!((&mapped["n"]["type"], &mapped["list"]["type"]), (&json!("long"), &json!("long")));
    let query = json!({"knn": {"my_v": {"vector": [3, 4], "k": 2}}});
    assert_eq!(found(&node, "a", query), ["1", "2"]);
    assert_eq!(node.ask("GET", "/a/_source/1", "").expect(200)["my_v"], json!([3.0, 4.0]));
    assert_eq!(found(&node, "a", json!({"match": {"both1.both1": "b"}})), ["1"]);
    let refused = put(&node, "/a/_doc/3", &json!({"my_v": [1, 2, 3]}), 400);
    assert!(reason(&refused).contains("my_v"));
    for (template, says) in [
        (json!({"match": "x", "mapping": {"type": "ip"}}), "[ip]"),
        (json!({"match": "x"}), "mapping set"),
        (json!({"match_pattern": "regex", "match": "^x", "mapping": {}}), "match_pattern"),
        (json!({"colour": "x", "mapping": {}}), "colour"),
        (json!({"match": "x", "mapping": {"type": "knn_vector"}}), "dimension is missing"),
    ] {
        let refused = put(&node, "/b", &json!({"mappings": {"dynamic_templates": [{"t": template}]}}), 400);
        assert!(reason(&refused).contains(says), "{refused}");
    }
}

#[test]
fn a_mapping_grows_while_it_holds_documents() {
    let folder = tempfile::tempdir().unwrap();
    let node = Served::new(folder.path());
    let body = json!({"mappings": {"dynamic": false, "properties": {"m": {"type": "knn_vector", "dimension": 2}, "t": {"type": "text"}}}});
    put(&node, "/a", &body, 200);
    put(&node, "/a/_doc/1", &json!({"m": [1, 2], "t": "one", "k": "red", "v": "no vector"}), 201);
    node.ask("POST", "/a/_flush", "").expect(200);
    put(&node, "/a/_doc/2", &json!({"m": [2, 2], "t": "two", "k": 7}), 201);
    let more = json!({"properties": {"a": {"type": "knn_vector", "dimension": 3, "space_type": "cosinesimil"}, "k": {"type": "keyword"},
        "t": {"type": "text", "fields": {"raw": {"type": "keyword"}}}, "o": {"properties": {"n": {"type": "long"}}},
        "v": {"type": "knn_vector", "dimension": 2}, "e": {"type": "text", "analyzer": "english"}}});
    put(&node, "/a/_mapping", &more, 200);
    assert_eq!(properties(&node, "a")["t"]["fields"]["raw"], json!({"type": "keyword"}));
    put(
        &node,
        "/a/_doc/3",
        &json!({"a": [3.3, 4.4, 0.1], "k": "red", "t": "three", "o": {"n": 4}, "v": [1, 1], "e": "shoes"}),
        201,
    );
    let check = |node: &Served| {
        assert_eq!(found(node, "a", json!({"knn": {"a": {"vector": [3, 4, 0], "k": 5}}})), ["3"]);
        assert_eq!(found(node, "a", json!({"knn": {"v": {"vector": [3, 4], "k": 5}}})), ["3"]);
        assert_eq!(found(node, "a", json!({"knn": {"m": {"vector": [3, 4], "k": 5}}})), ["1", "2"]);
        assert_eq!(found(node, "a", json!({"match": {"e": "shoe"}})), ["3"]);
        assert_eq!(found(node, "a", json!({"term": {"t.raw": "three"}})), ["3"]);
        assert_eq!(found(node, "a", json!({"match": {"t": "one two"}})), ["1", "2"]);
        assert_eq!(found(node, "a", json!({"range": {"o.n": {"gte": 4}}})), ["3"]);
        let first = node.ask("GET", "/a/_source/1", "").expect(200);
        assert_eq!(first, json!({"m": [1.0, 2.0], "t": "one", "k": "red", "v": "no vector"}));
    };
    check(&node);
    assert_eq!(found(&node, "a", json!({"term": {"k": "red"}})), ["3"]);
    node.ask("POST", "/a/_forcemerge?max_num_segments=1", "").expect(200);
    check(&node);
    node.ask("POST", "/a/_update_by_query", r#"{"query": {"ids": {"values": ["2"]}}}"#).expect(200);
    assert_eq!(found(&node, "a", json!({"term": {"k": "7"}})), ["2"]);
    drop(node);
    let node = Served::new(folder.path());
    check(&node);
    for (field, says) in [
        (json!({"t": {"type": "keyword"}}), "mapper [t] cannot be changed from type [text] to [keyword]"),
        (json!({"m": {"type": "long"}}), "mapper [m] cannot be changed from type [knn_vector] to [long]"),
        (
            json!({"m": {"type": "knn_vector", "dimension": 3}}),
            "Cannot update parameter [dimension] from [2] to [3]",
        ),
        (
            json!({"e": {"type": "text", "analyzer": "standard"}}),
            "Cannot update parameter [analyzer] from [english] to [standard]",
        ),
        (json!({"o": {"type": "keyword"}}), "mapper [o] cannot be changed from type [object] to [keyword]"),
        (json!({"x": {"type": "geo_point"}}), "geo_point"),
    ] {
        let before = properties(&node, "a");
        let refused = put(&node, "/a/_mapping", &json!({"properties": field}), 400);
        assert!(reason(&refused).contains(says), "{refused}");
        assert_eq!(properties(&node, "a"), before);
    }
    let more: serde_json::Map<String, Value> =
        (0..1001).map(|n| (format!("x{n}"), json!({"type": "long"}))).collect();
    let refused = put(&node, "/a/_mapping", &json!({"properties": more}), 400);
    assert_eq!(reason(&refused), "Limit of total fields [1000] has been exceeded");
    let many: serde_json::Map<String, Value> = (0..1001).map(|n| (format!("y{n}"), json!(n))).collect();
    put(&node, "/many/_doc/1", &Value::Object(many), 400);
    put(&node, "/many/_doc/1", &json!({"y": 1}), 201);
}
