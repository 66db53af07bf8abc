//! What is wrong with a search, and what is too much; requests as JSON.

use super::*;

#[test]
fn what_is_wrong_with_a_search_names_it() {
    let schema = serde_json::from_value(schema()).unwrap();
    let table = Table::create(Arc::new(Memory::new()), schema, resources()).unwrap();
    let says = |request: Value| match serde_json::from_value::<Request>(request) {
        Ok(request) => table.search(&request, None).unwrap_err().to_string(),
        Err(error) => error.to_string(),
    };
    let near = |more: Value| {
        let mut nearest = json!({"field": "v", "vector": [1, 2]});
        nearest.as_object_mut().unwrap().extend(object(more));
        json!({"nearest": [nearest]})
    };
    let aggregation = |how: Value| json!({"aggs": {"a": {"terms": {"field": "k"}, "aggs": {"b": how}}}});
    for (request, part) in [
        (json!({"sise": 3}), "unknown field `sise`"),
        (near(json!({"field": "x"})), "nearest: field \"x\": the schema names no such vector field"),
        (near(json!({"k": 0})), "nearest: field \"v\": k=0"),
        (near(json!({"vector": [1, 2, 3]})), "nearest: field \"v\": "),
        (
            near(json!({"field": "w", "vector": [1, 200]})),
            "nearest: field \"w\": 200 in the vector: give whole",
        ),
        (json!({"sort": ["t"]}), "sort: field \"t\" is a text"),
        (json!({"sort": ["v"]}), "field \"v\" is a vector"),
        (json!({"sort": [{"i": "up"}]}), "sort by \"i\": \"up\": give \"asc\" or \"desc\""),
        (json!({"sort": [{"i": "asc", "f": "asc"}]}), "sort: give a field"),
        (json!({"sort": ["i"], "after": [1]}), "after has 1 values: give the 2 sort values"),
        (json!({"sort": ["i"], "after": ["x", "d1"]}), "after, value of \"i\": expected a whole number"),
        (
            json!({"fusion": {"rrf": {"weights": [1]}}, "query": "all", "nearest": [{"field": "v", "vector": [1, 2]}]}),
            "fusion: weights=[1.0]: give 2 numbers",
        ),
        (json!({"fusion": {"rrf": {"window": 0}}}), "fusion: window=0"),
        (
            aggregation(json!({"turms": {"field": "k"}})),
            "aggregation \"a>b\": its kind is \"turms\": give terms",
        ),
        (aggregation(json!({"avg": {"field": "k"}})), "aggregation \"a>b\": avg: it takes numbers"),
        (aggregation(json!({"terms": {"field": "t"}})), "aggregation \"a>b\": field \"t\" is a text"),
        (aggregation(json!({"avg": {}})), "aggregation \"a>b\": avg: give a field"),
        (aggregation(json!({"filter": {"nope": 1}})), "aggregation \"a>b\": filter: "),
        (aggregation(json!({"histogram": {"field": "i", "interval": 0}})), "interval"),
        (aggregation(json!({"date_histogram": {"field": "i", "fixed_interval": "1d"}})), "it takes dates"),
        (json!({"aggs": {"a": {"terms": {"field": "k", "missing": [1]}}}}), "aggregation \"a\": terms: "),
    ] {
        let said = says(request.clone());
        assert!(said.contains(part), "{request}: {said}");
    }
}

/// Memory and buckets of aggregations have a limit, and so have searches' time.
#[test]
fn what_is_too_much_is_refused() {
    let schema = serde_json::from_value(schema()).unwrap();
    let table = Table::create(Arc::new(Memory::new()), schema, resources()).unwrap();
    let ends = [json!({"i": 0}), json!({"i": 1_000_000_000})];
    let writes = ends.into_iter().enumerate().map(|(n, d)| put(&n.to_string(), d)).collect();
    table.write(writes).into_iter().for_each(|written| drop(written.unwrap()));
    let aggregations = object(json!({"h": {"histogram": {"field": "i", "interval": 1}}}));
    let error = table.search(&Request { aggregations, ..Request::default() }, None).unwrap_err();
    assert!(matches!(error, SearchTableError::Aggregation(_)), "{error}");
    let late = table.search(&Request::default(), Some(Duration::ZERO)).unwrap_err();
    assert!(matches!(late, SearchTableError::Failed(Failure::DeadlineExceeded)), "{late}");
    assert_eq!(table.search(&Request::default(), Some(Duration::from_secs(600))).unwrap().hits.len(), 2);
}

#[test]
fn requests_are_read_and_written_back() {
    let all = json!({
        "query": {"match": {"field": "t", "text": "ab"}}, "nearest": [{"field": "v", "vector": [0.5, 1], "k": 5, "exact": true}],
        "filter": {"term": {"field": "k", "value": "ab"}}, "from": 2, "size": 3,
        "fusion": {"arithmetic_mean": {"normalization": "l2", "weights": [1.0, 2.0]}},
        "sort": ["_score", {"i": "desc"}, {"f": {"order": "asc", "missing": "_first"}}, "_id"],
        "aggs": {"a": {"terms": {"field": "k"}}}, "exact_total": false, "profile": true, "concurrent": "on",
        "after": [1.5, 3, null, "d1"],
    });
    let request: Request = serde_json::from_value(all).unwrap();
    assert_eq!(request.sort[0], Sort::new(SortBy::Score));
    assert!(request.sort[1].descending && !request.sort[1].missing_first);
    let back: Request = serde_json::from_str(&serde_json::to_string(&request).unwrap()).unwrap();
    assert_eq!(back, request);
    assert_eq!(serde_json::from_value::<Request>(Value::Object(Map::new())).unwrap(), Request::default());
    assert_eq!(score(lanewise_engine::index::Metric::L2, 1.0), 0.5);
}
