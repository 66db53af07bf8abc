//! Searches: pages, scrolls, what is shown of hits, figures.

use crate::served::Served;
use serde_json::{Value, json};

const COLORS: [&str; 3] = ["red", "green", "blue"];

/// Twelve documents: `n` from 0, `color` by thirds, `v` on a line.
fn filled(folder: &std::path::Path) -> Served {
    let node = Served::new(folder);
    let body = json!({"mappings": {"properties": {
        "v": {"type": "knn_vector", "dimension": 2, "space_type": "l2"}, "n": {"type": "integer"}, "x": {"type": "double"},
        "color": {"type": "keyword"}, "day": {"type": "date"}, "text": {"type": "text"}}}});
    node.ask("PUT", "/a", body.to_string()).expect(200);
    let line = |n: usize| {
        let document = json!({"v": [n, 0], "n": n, "x": n as f64 / 2.0, "color": COLORS[n % 3],
            "day": format!("2024-01-{:02}", n / 4 + 1), "text": format!("word{} common", n)});
        format!("{}\n{document}\n", json!({"index": {"_id": format!("{n:02}")}}))
    };
    let done = node.ask("POST", "/a/_bulk", (0..12).map(line).collect::<String>()).expect(200);
    assert_eq!(done["errors"], false);
    node
}

fn search(node: &Served, body: &Value) -> Value {
    node.ask("POST", "/a/_search", body.to_string()).expect(200)
}

#[track_caller]
fn refused(node: &Served, path: &str, body: &Value, says: &str) {
    let answer = node.ask("POST", path, body.to_string()).expect(400);
    assert!(answer["error"]["reason"].as_str().unwrap().contains(says), "{answer}");
}

fn ids(answer: &Value) -> Vec<&str> {
    answer["hits"]["hits"].as_array().unwrap().iter().map(|hit| hit["_id"].as_str().unwrap()).collect()
}

#[test]
fn a_scroll_shows_what_was_there_when_it_began() {
    let folder = tempfile::tempdir().unwrap();
    let node = filled(folder.path());
    let first = node.ask("POST", "/a/_search?scroll=5m&size=5&sort=_doc", "").expect(200);
    assert_eq!(first["hits"]["total"]["value"], 12);
    let id = first["_scroll_id"].as_str().unwrap();
    node.ask("DELETE", "/a/_doc/11", "").expect(200);
    node.ask("PUT", "/a/_doc/05", r#"{"n": 99}"#).expect(200);
    node.ask("POST", "/a/_forcemerge?max_num_segments=1", "").expect(200);
    let mut all: Vec<String> = ids(&first).into_iter().map(str::to_owned).collect();
    let body = json!({"scroll": "5m", "scroll_id": id}).to_string();
    loop {
        let next = node.ask("POST", "/_search/scroll", &body).expect(200);
        if all.contains(&"05".to_owned()) || ids(&next).contains(&"05") {
            let hits = next["hits"]["hits"].as_array().unwrap();
            assert!(hits.iter().filter(|hit| hit["_id"] == "05").all(|hit| hit["_source"]["n"] == 5));
        }
        if ids(&next).is_empty() {
            break;
        }
        all.extend(ids(&next).into_iter().map(str::to_owned));
    }
    assert_eq!(all, (0..12).map(|n| format!("{n:02}")).collect::<Vec<_>>());
    let freed = node.ask("DELETE", "/_search/scroll", json!({"scroll_id": [id]}).to_string()).expect(200);
    assert_eq!(freed, json!({"succeeded": true, "num_freed": 1}));
    let gone = node.ask("POST", "/_search/scroll", &body).expect(404);
    assert_eq!(gone["error"]["type"], "search_context_missing_exception");
    node.ask("DELETE", &format!("/_search/scroll/{id}"), "").expect(404);
    node.ask("DELETE", "/_search/scroll/_all", "").expect(200);
    refused(&node, "/a/_search?scroll=2d", &json!({}), "too large");
    refused(&node, "/a/_search?scroll=1m", &json!({"from": 1}), "[from] is not allowed");
    refused(&node, "/a/_search?scroll=1m", &json!({"size": 10_001}), "Batch size is too large");
    node.ask("POST", "/_search/scroll", "").expect(400);
}

#[test]
fn scrolls_end_with_their_time_and_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let node = filled(folder.path());
    let open = |node: &Served| {
        let stats = node.ask("GET", "/_nodes/stats/indices", "").expect(200);
        stats["nodes"].as_object().unwrap().values().next().unwrap()["indices"]["search"]["scroll_current"]
            .clone()
    };
    let short = node.ask("POST", "/a/_search?scroll=50ms", "").expect(200)["_scroll_id"].clone();
    for _ in 0..499 {
        node.ask("POST", "/a/_search?scroll=1h&size=1", "").expect(200);
    }
    std::thread::sleep(std::time::Duration::from_millis(60));
    search(&node, &json!({}));
    assert_eq!(open(&node), 499);
    node.ask("POST", "/_search/scroll", json!({"scroll_id": short}).to_string()).expect(404);
    node.ask("POST", "/a/_search?scroll=1h&size=1", "").expect(200);
    let full = node.ask("POST", "/a/_search?scroll=1h&size=1", "").expect(429);
    assert!(full["error"]["reason"].as_str().unwrap().contains("too many scroll contexts"));
    assert_eq!(node.ask("DELETE", "/_search/scroll/_all", "").expect(200)["num_freed"], 500);
}

#[test]
fn pages_follow_one_another() {
    let folder = tempfile::tempdir().unwrap();
    let node = filled(folder.path());
    let mut body = json!({"size": 5, "sort": [{"color": "desc"}, {"n": "asc"}]});
    let mut all = Vec::new();
    loop {
        let page = search(&node, &body);
        let Some(last) = page["hits"]["hits"].as_array().unwrap().last() else { break };
        all.extend(ids(&page).into_iter().map(str::to_owned));
        body["search_after"] = last["sort"].clone();
    }
    assert_eq!(all, ["00", "03", "06", "09", "01", "04", "07", "10", "02", "05", "08", "11"]);
    let page = search(&node, &json!({"from": 10, "size": 5, "sort": ["n"]}));
    assert_eq!(ids(&page), ["10", "11"]);
    refused(&node, "/a/_search", &json!({"search_after": [1]}), "search_after must have a value");
    refused(&node, "/a/_search", &json!({"from": 1, "sort": ["n"], "search_after": [1]}), "must be set to 0");
}

#[test]
fn several_indexes_are_searched_in_one_order() {
    let folder = tempfile::tempdir().unwrap();
    let node = filled(folder.path());
    let body = json!({"mappings": {"properties": {"v": {"type": "knn_vector", "dimension": 2, "space_type": "l2"}}}});
    node.ask("PUT", "/b", body.to_string()).expect(200);
    node.ask("PUT", "/b/_doc/x", r#"{"v": [0.4, 0], "n": 2.5}"#).expect(201);
    node.ask("PUT", "/b/_doc/y", r#"{"v": [9, 9]}"#).expect(201);
    let find = |body: Value| node.ask("POST", "/a,b/_search", body.to_string()).expect(200);
    let near = find(json!({"size": 3, "query": {"knn": {"v": {"vector": [0, 0], "k": 4}}}}));
    assert_eq!(ids(&near), ["00", "x", "01"]);
    let near = find(json!({"size": 2, "from": 1, "query": {"knn": {"v": {"vector": [0, 0], "k": 4}}}}));
    assert_eq!((ids(&near), &near["hits"]["max_score"]), (vec!["x", "01"], &json!(1.0)));
    let sorted = find(json!({"size": 20, "sort": [{"n": "desc"}], "query": {"range": {"n": {"lt": 4}}}}));
    assert_eq!(ids(&sorted), ["03", "x", "02", "01", "00"]);
    let sorted = find(json!({"size": 2, "sort": [{"n": {"order": "asc", "missing": "_first"}}]}));
    assert_eq!(ids(&sorted), ["y", "00"]);
}

#[test]
fn documents_in_several_indexes_have_the_order_that_they_have_in_one() {
    let folder = tempfile::tempdir().unwrap();
    let node = Served::new(folder.path());
    let body = json!({"mappings": {"properties": {"v": {"type": "knn_vector", "dimension": 2, "space_type": "l2"},
        "color": {"type": "keyword"}, "n": {"type": "double"}}}});
    for index in ["whole", "p0", "p1", "p2"] {
        node.ask("PUT", &format!("/{index}"), body.to_string()).expect(200);
    }
    let mut state = 7_u64;
    let mut draw = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let mut lines = String::new();
    for id in 0..60 {
        let mut document = json!({"v": [draw(10), draw(10)], "flag": draw(2) == 0});
        if draw(4) > 0 {
            document["n"] = json!(draw(8) as f64 / 2.0);
        }
        if draw(4) > 0 {
            document["color"] = json!(COLORS[draw(3) as usize]);
        }
        for index in ["whole".to_owned(), format!("p{}", draw(3))] {
            lines +=
                &format!("{}\n{document}\n", json!({"index": {"_index": index, "_id": format!("{id:02}")}}));
        }
    }
    assert_eq!(node.ask("POST", "/_bulk", lines).expect(200)["errors"], false);
    let knn = json!({"knn": {"v": {"vector": [4, 5], "k": 60}}});
    for (sort, query) in [
        (json!(["n"]), json!({"match_all": {}})),
        (json!([{"n": "desc"}, "color"]), json!({"match_all": {}})),
        (
            json!([{"color": {"order": "desc", "missing": "_first"}}, {"n": {"missing": "_first"}}]),
            json!({"match_all": {}}),
        ),
        (json!(["flag", {"n": "desc"}]), json!({"range": {"n": {"gte": 1}}})),
        (json!(["_id"]), json!({"term": {"color": "red"}})),
        (json!(["color", "_score"]), knn.clone()),
        (json!([]), knn),
    ] {
        for (from, size) in [(0, 60), (7, 9)] {
            let body = json!({"sort": sort, "query": query, "from": from, "size": size, "_source": false})
                .to_string();
            let [one, several] =
                ["/whole/_search", "/p*/_search"].map(|path| node.ask("POST", path, &body).expect(200));
            assert_eq!(ids(&one), ids(&several), "{body}");
            assert_eq!(one["hits"]["total"], several["hits"]["total"], "{body}");
            assert_eq!(one["hits"]["max_score"], several["hits"]["max_score"], "{body}");
        }
    }
}

#[test]
fn hits_show_what_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let node = filled(folder.path());
    let found = search(
        &node,
        &json!({"size": 1, "sort": ["n"], "_source": false, "fields": ["col*", {"field": "n"}],
        "docvalue_fields": ["x", "_id"], "version": true, "seq_no_primary_term": true}),
    );
    let hit = &found["hits"]["hits"][0];
    assert_eq!(hit["fields"], json!({"color": ["red"], "n": [0], "x": [0.0], "_id": ["00"]}));
    assert_eq!((&hit["_version"], &hit["_primary_term"], hit.get("_source")), (&json!(1), &json!(1), None));
    refused(&node, "/a/_search", &json!({"docvalue_fields": ["text"]}), "Text fields have no doc values");
    let knn = json!({"knn": {"v": {"vector": [0, 0], "k": 2}}});
    let found = search(&node, &json!({"query": knn, "explain": true, "profile": true}));
    assert_eq!(found["hits"]["hits"][1]["_explanation"]["value"], 0.5);
    assert_eq!(found["profile"]["shards"][0]["lanewise"]["segments"][0]["vectors"][0]["field"], "v");
    let found = search(&node, &json!({"size": 2, "track_total_hits": false}));
    assert!(found["hits"].get("total").is_none());
    let found = search(&node, &json!({"size": 2, "track_total_hits": 5}));
    assert_eq!(found["hits"]["total"], json!({"value": 5, "relation": "gte"}));
    let found =
        node.ask("GET", "/a/_search?track_total_hits=3&rest_total_hits_as_int=true&size=0", "").expect(200);
    assert_eq!(found["hits"]["total"], 12);
}

#[test]
fn scores_filters_and_values_leave_hits_out() {
    let folder = tempfile::tempdir().unwrap();
    let node = filled(folder.path());
    let knn = json!({"knn": {"v": {"vector": [0, 0], "k": 12}}});
    let found = search(&node, &json!({"query": knn, "min_score": 0.2}));
    assert_eq!(
        (ids(&found), &found["hits"]["total"]),
        (vec!["00", "01", "02"], &json!({"value": 3, "relation": "eq"}))
    );
    let filter = json!({"term": {"color": "green"}});
    let found = search(&node, &json!({"query": knn, "post_filter": filter, "size": 2}));
    assert_eq!((ids(&found), &found["hits"]["total"]["value"]), (vec!["01", "04"], &json!(4)));
    let found = search(
        &node,
        &json!({"query": {"range": {"n": {"lt": 6}}}, "post_filter": filter, "sort": ["n"],
        "aggs": {"colors": {"terms": {"field": "color"}}}}),
    );
    assert_eq!((ids(&found), &found["hits"]["total"]["value"]), (vec!["01", "04"], &json!(2)));
    assert_eq!(found["aggregations"]["colors"]["buckets"].as_array().unwrap().len(), 3);
    let found = search(&node, &json!({"query": knn, "collapse": {"field": "color"}}));
    assert_eq!(ids(&found), ["00", "01", "02"]);
    assert_eq!(found["hits"]["hits"][2]["fields"], json!({"color": ["blue"]}));
    let found = search(
        &node,
        &json!({"sort": [{"n": "desc"}], "collapse": {"field": "color"}, "size": 2, "from": 1}),
    );
    assert_eq!(ids(&found), ["10", "09"]);
    assert_eq!(found["hits"]["hits"][0]["sort"], json!([10]));
    let inner = json!([{"name": "next", "size": 2, "from": 1, "sort": [{"n": "desc"}]}, {"name": "near", "_source": false}]);
    let body = json!({"query": knn, "post_filter": {"range": {"n": {"lt": 8}}},
        "collapse": {"field": "color", "inner_hits": inner}});
    let found = search(&node, &body);
    assert_eq!(ids(&found), ["00", "01", "02"]);
    let green = &found["hits"]["hits"][1]["inner_hits"];
    assert_eq!((ids(&green["next"]), ids(&green["near"])), (vec!["04", "01"], vec!["01", "04", "07"]));
    assert_eq!(green["near"]["hits"]["total"]["value"], 3);
    assert_eq!(green["near"]["hits"]["hits"][2]["_score"], 1.0 / 50.0_f32);
    let unnamed = json!({"collapse": {"field": "color", "inner_hits": {}}});
    refused(&node, "/a/_search", &unnamed, "[inner_hits]");
}

#[test]
fn figures_have_opensearchs_form() {
    let folder = tempfile::tempdir().unwrap();
    let node = filled(folder.path());
    let figures = |aggs: Value| search(&node, &json!({"size": 0, "aggs": aggs}))["aggregations"].clone();
    let told = figures(json!({"c": {"terms": {"field": "color"}, "aggs": {"top": {"max": {"field": "n"}}}}}));
    let red = told["c"]["buckets"].as_array().unwrap().iter().find(|bucket| bucket["key"] == "red").unwrap();
    assert_eq!((&red["doc_count"], &red["top"]["value"]), (&json!(4), &json!(9.0)));
    assert_eq!(
        (&told["c"]["sum_other_doc_count"], &told["c"]["doc_count_error_upper_bound"]),
        (&json!(0), &json!(0))
    );
    let told = figures(json!({
        "s": {"stats": {"field": "n"}}, "avg": {"avg": {"field": "x"}}, "min": {"min": {"field": "n"}},
        "sum": {"sum": {"field": "n"}}, "count": {"value_count": {"field": "color"}},
        "kinds": {"cardinality": {"field": "color"}},
        "r": {"range": {"field": "n", "ranges": [{"to": 3}, {"from": 3, "to": 10}, {"from": 10}]}},
        "h": {"histogram": {"field": "n", "interval": 6}},
        "d": {"date_histogram": {"field": "day", "fixed_interval": "1d"}},
        "f": {"filter": {"bool": {"must_not": [{"term": {"color": "red"}}]}}, "aggs": {"n": {"value_count": {"field": "n"}}}},
    }));
    assert_eq!(told["s"], json!({"count": 12, "min": 0.0, "max": 11.0, "avg": 5.5, "sum": 66.0}));
    assert_eq!(
        (&told["avg"]["value"], &told["min"]["value"], &told["sum"]["value"]),
        (&json!(2.75), &json!(0.0), &json!(66.0))
    );
    assert_eq!((told["count"]["value"].as_f64(), told["kinds"]["value"].as_f64()), (Some(12.0), Some(3.0)));
    let counts = |name: &str| -> Vec<u64> {
        told[name]["buckets"]
            .as_array()
            .unwrap()
            .iter()
            .map(|bucket| bucket["doc_count"].as_u64().unwrap())
            .collect()
    };
    assert_eq!((counts("r"), counts("h"), counts("d")), (vec![3, 7, 2], vec![6, 6], vec![4, 4, 4]));
    assert_eq!(told["d"]["buckets"][1]["key_as_string"].as_str().map(|day| &day[..10]), Some("2024-01-02"));
    assert_eq!((&told["f"]["doc_count"], told["f"]["n"]["value"].as_f64()), (&json!(8), Some(8.0)));
    refused(&node, "/a/_search", &json!({"aggs": {"a": {"geo_bounds": {"field": "x"}}}}), "geo_bounds");
}

#[test]
fn searches_of_several_lines_fail_each_by_itself() {
    let folder = tempfile::tempdir().unwrap();
    let node = filled(folder.path());
    let lines = concat!(
        "{\"index\": \"a\"}\n{\"size\": 1, \"sort\": [\"n\"]}\n",
        "{}\n{\"query\": {\"term\": {\"color\": \"red\"}}, \"size\": 0}\n",
        "{\"index\": \"none\"}\n{}\n",
        "{\"index\": [\"a\"], \"colour\": 1}\n{}\n",
        "{}\n{\"query\": {\"unknown\": {}}}\n\n",
    );
    let answer = node.ask("POST", "/a/_msearch", lines).expect(200);
    let statuses: Vec<u64> =
        answer["responses"].as_array().unwrap().iter().map(|one| one["status"].as_u64().unwrap()).collect();
    assert_eq!(statuses, [200, 200, 404, 400, 400]);
    assert_eq!(ids(&answer["responses"][0]), ["00"]);
    assert_eq!(answer["responses"][1]["hits"]["total"]["value"], 4);
    assert_eq!(answer["responses"][2]["error"]["type"], "index_not_found_exception");
    node.ask("POST", "/_msearch", "").expect(400);
    node.ask("POST", "/_msearch", "{}\n").expect(400);
}

#[test]
fn more_than_a_page_is_deleted_by_query() {
    let folder = tempfile::tempdir().unwrap();
    let node = filled(folder.path());
    let lines = (0..6001).map(|n| format!("{{\"index\": {{}}}}\n{{\"m\": {n}}}\n"));
    assert_eq!(node.ask("POST", "/a/_bulk", lines.collect::<String>()).expect(200)["errors"], false);
    let query = json!({"query": {"range": {"m": {"gte": 1}}}});
    let gone = node.ask("POST", "/a/_delete_by_query", query.to_string()).expect(200);
    assert_eq!((&gone["deleted"], &gone["total"], &gone["batches"]), (&json!(6000), &json!(6000), &json!(2)));
    assert_eq!(node.ask("GET", "/a/_count", "").expect(200)["count"], 13);
}
