//! What is wrong with a search, and what is too much; requests as JSON.

use super::*;
use lanewise_engine::Pool;
use lanewise_engine::scheduler::{Context, Layout, MappingId, Options, Workers};
use lanewise_engine::table::Resources;
use std::ops::ControlFlow;

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

/// Told to stop at its first, second, … question, a search of any kind stops, or is done and says what it says else.
#[test]
fn a_search_stops_when_it_is_told() {
    let mut random = Rng::with_seed(5);
    let model: Model = (0..60).map(|n| (n.to_string(), document(&mut random))).collect();
    let table = table(&mut random, &model, false);
    let near = json!([{"field": "v", "vector": [1, 2]}, {"field": "w", "vector": [1, 2]}]);
    for request in [
        json!({"nearest": [near[0]]}),
        json!({"nearest": near, "concurrent": "off"}),
        json!({"filter": {"term": {"field": "k", "value": "ab"}}}),
        json!({"query": {"match": {"field": "t", "text": "ab"}}, "nearest": near}),
        json!({"query": {"match": {"field": "t", "text": "ab"}}, "exact_total": false}),
        json!({"aggs": {"a": {"terms": {"field": "k"}}}, "size": 0}),
    ] {
        let request: Request = serde_json::from_value(request).unwrap();
        let whole = table.search(&request, None).unwrap();
        let mut stopped = 0;
        for allowed in 0..1000 {
            let asked = std::cell::Cell::new(0);
            let proceed = || {
                asked.set(asked.get() + 1);
                if asked.get() > allowed { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            };
            match table.search_with(&request, None, &proceed) {
                Err(SearchTableError::Stopped) => stopped += 1,
                Err(error) => panic!("{error}"),
                Ok(answer) => {
                    assert_eq!((&answer.hits, &answer.aggregations), (&whole.hits, &whole.aggregations));
                    break;
                }
            }
        }
        assert!((1..1000).contains(&stopped), "{request:?}: stopped {stopped} times");
    }
}

/// Whoever waits behind others' work is asked, too.
#[test]
fn a_search_that_waits_in_a_queue_stops() {
    let workers = Workers::Unbound(Layout::new(&[1]));
    let pool = Arc::new(Pool::start(Options { workers, ..Options::default() }).unwrap());
    let schema = serde_json::from_value(schema()).unwrap();
    let resources = Resources { pool: pool.clone(), ..resources() };
    let table = Table::create(Arc::new(Memory::new()), schema, resources).unwrap();
    table.write(vec![put("1", json!({"v": [1, 1]}))]).remove(0).unwrap();
    let (free, blocked) = std::sync::mpsc::channel::<()>();
    // Until the other end goes.
    let block = move |_: &mut _, _: &Context<'_>| (blocked.recv().is_err(), 0);
    let blocking = pool.scheduler().submit(MappingId::table(99), None, block).unwrap();
    let asked = std::cell::Cell::new(0);
    let proceed = || {
        asked.set(asked.get() + 1);
        if asked.get() > 4 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let request = serde_json::from_value(json!({"nearest": [{"field": "v", "vector": [1, 2]}]})).unwrap();
    let error = table.search_with(&request, None, &proceed).unwrap_err();
    assert!(matches!(error, SearchTableError::Stopped), "{error}");
    drop(free);
    blocking.wait().unwrap();
    assert_eq!(table.search(&request, None).unwrap().hits.len(), 1);
}
