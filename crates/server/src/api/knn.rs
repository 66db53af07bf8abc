//! Requests of OpenSearch's k-NN plugin, under its name of today and its first.

use super::upkeep::shards;
use super::{nodes, route, tables, upkeep};
use crate::call::{Call, Reply};
use crate::cluster::PARAMS;
use crate::error::ApiError;
use crate::node::Node;
use crate::route::{Role, Route, Verb};
use axum::http::StatusCode;
use lanewise_engine::Purpose;
use lanewise_engine::documents::{Query, ScoreMode};
use lanewise_engine::index::{Dtype, OwnedVectors};
use lanewise_engine::table::{Nearest, Request, SearchTableError, Watched};
use serde_json::{Value, json};

const GET: &[Verb] = &[Verb::Get];

pub(super) const ROUTES: &[Route] = &[
    route(
        Role::Read,
        GET,
        &[
            "/_plugins/_knn/stats",
            "/_plugins/_knn/stats/{stat}",
            "/_plugins/_knn/{node}/stats",
            "/_plugins/_knn/{node}/stats/{stat}",
            "/_opendistro/_knn/stats",
            "/_opendistro/_knn/stats/{stat}",
            "/_opendistro/_knn/{node}/stats",
            "/_opendistro/_knn/{node}/stats/{stat}",
        ],
        &["timeout"],
        stats,
        "figures of vectors in memory",
    ),
    route(
        Role::Read,
        GET,
        &["/_plugins/_knn/warmup/{index}", "/_opendistro/_knn/warmup/{index}"],
        &PARAMS,
        warmup,
        "opens indexes and reads their vectors, so that the first searches need not",
    ),
    route(
        Role::Write,
        &[Verb::Post],
        &["/_plugins/_knn/clear_cache/{index}"],
        &PARAMS,
        upkeep::clear,
        "closes tables that nobody uses",
    ),
    route(
        Role::Write,
        &[Verb::Post],
        &["/_plugins/_knn/models/_train", "/_plugins/_knn/models/{model}/_train"],
        &["preference"],
        train,
        "refused: codes are fitted to the vectors of each segment, without a model",
    ),
    route(
        Role::Read,
        &[Verb::Get, Verb::Post],
        &["/_plugins/_knn/models/_search"],
        &["size", "from", "_source", "_source_includes", "_source_excludes"],
        models,
        "no models",
    ),
    route(
        Role::Write,
        &[Verb::Get, Verb::Delete],
        &["/_plugins/_knn/models/{model}", "/_opendistro/_knn/models/{model}"],
        &[],
        model,
        "404: there are no models",
    ),
];

fn stats(node: &Node, call: &mut Call) -> Result<Reply, ApiError> {
    let admission = node.engine.admission();
    let (limit, in_use) = (admission.limit(), admission.in_use());
    let open = in_use.0[Purpose::Open as usize];
    let full = in_use.total() >= limit;
    let cluster = node.cluster();
    let queries: u64 = cluster.indices.keys().map(|index| node.counts.of(index).searched.times()).sum();
    let mut told = json!({
        "graph_memory_usage": open / 1024,
        "graph_memory_usage_percentage": open as f64 * 100.0 / limit.max(1) as f64,
        "cache_capacity_reached": full,
        "knn_query_requests": queries,
        "faiss_initialized": true, "nmslib_initialized": true, "lucene_initialized": true,
    });
    let mut whole = json!({"circuit_breaker_triggered": full, "model_index_status": null});
    if let Some(stats) = call.name("stat").filter(|stats| *stats != "_all") {
        for stat in stats.split(',') {
            if told.get(stat).is_none() && whole.get(stat).is_none() {
                return Err(ApiError::argument(format!(
                    "request [/_plugins/_knn/stats/{stats}] contains unrecognized stat: [{stat}]"
                )));
            }
        }
        for part in [&mut told, &mut whole] {
            if let Some(fields) = part.as_object_mut() {
                fields.retain(|name, _| stats.split(',').any(|stat| stat == name));
            }
        }
    }
    let mut answer = nodes::of_one(node, call.name("node"), told);
    super::extend(&mut answer, whole);
    Ok(Reply::json(answer))
}

fn warmup(node: &Node, call: &mut Call) -> Result<Reply, ApiError> {
    let all = tables(node, call)?;
    for (index, table) in &all {
        warm(table).map_err(|error| super::search::of_search(index, error))?;
    }
    Ok(Reply::json(shards(all.len())))
}

/// Reads every vector once, by comparing all of them, and the ways to some.
fn warm(table: &Watched) -> Result<(), SearchTableError> {
    let schema = table.schema();
    for (field, params) in schema.vectors() {
        let numbers = if params.dtype == Dtype::Bits { params.dim / 8 } else { params.dim };
        let vector = match params.dtype.brought() {
            Dtype::I8 => OwnedVectors::I8(vec![1; numbers]),
            Dtype::U8 => OwnedVectors::U8(vec![1; numbers]),
            Dtype::Bits => OwnedVectors::Bits(vec![1; numbers]),
            _ => OwnedVectors::F32(vec![1.0; numbers]),
        };
        for exact in [true, false] {
            let nearest = Nearest { exact, ..Nearest::new(field, vector.clone()) };
            let request = match schema.nested(field) {
                None => Request { nearest: vec![nearest], ..Request::default() },
                Some(path) => {
                    let (path, query) = (path.to_owned(), Box::new(Query::Nearest(nearest)));
                    let query = Query::Nested { path, query, score: ScoreMode::None };
                    Request { query: Some(query), ..Request::default() }
                }
            };
            table.search(&request, None)?;
        }
    }
    Ok(())
}

fn train(_: &Node, _: &mut Call) -> Result<Reply, ApiError> {
    Err(ApiError::argument(
        "[models] training is not supported: give method and dimension in the mapping, codes are fitted to the vectors of \
         each segment",
    ))
}

fn models(_: &Node, _: &mut Call) -> Result<Reply, ApiError> {
    let none: [Value; 0] = [];
    Ok(Reply::json(json!({
        "took": 0, "timed_out": false, "_shards": {"total": 0, "successful": 0, "skipped": 0, "failed": 0},
        "hits": {"total": {"value": 0, "relation": "eq"}, "max_score": null, "hits": none},
    })))
}

fn model(_: &Node, call: &mut Call) -> Result<Reply, ApiError> {
    let name = call.name("model").unwrap_or_default();
    let reason = format!("Model \"{name}\" does not exist");
    Err(ApiError::new(StatusCode::NOT_FOUND, "resource_not_found_exception", reason))
}
