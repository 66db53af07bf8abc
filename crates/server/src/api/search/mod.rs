//! Searches: OpenSearch's bodies in, its answers out.

mod aggregations;
mod asked;
mod at_once;
mod contexts;
mod fields;
mod found;
mod hybrid;
mod inner;
pub(crate) mod pipeline;
mod pit;
mod scroll;
mod searched;

use super::document::Sources;
use super::route;
use crate::call::{Body, Call, Params, Reply};
use crate::error::ApiError;
use crate::node::{Node, now_ms};
use crate::query;
use crate::route::{Role, Route, Verb};
use asked::Asked;
pub(crate) use asked::KEYS;
use axum::http::StatusCode;
use found::Found;
use lanewise_engine::documents::Query;
use lanewise_engine::table::{Request, SearchTableError};
pub(crate) use pit::Points;
pub(crate) use scroll::Scrolls;
pub(super) use searched::filters;
use searched::{Searched, searched};
use serde_json::{Map, Value, json};

/// Searches of one `_msearch`, at most.
const MANY: usize = 1000;

/// What a search may be asked with beside its body.
const PARAMS: [&str; 26] = [
    "ignore_unavailable",
    "allow_no_indices",
    "expand_wildcards",
    "allow_partial_search_results",
    "batched_reduce_size",
    "ccs_minimize_roundtrips",
    "docvalue_fields",
    "max_concurrent_shard_requests",
    "phase_took",
    "pre_filter_shard_size",
    "preference",
    "request_cache",
    "rest_total_hits_as_int",
    "routing",
    "scroll",
    "search_pipeline",
    "search_type",
    "size",
    "from",
    "sort",
    "_source",
    "_source_includes",
    "_source_excludes",
    "stored_fields",
    "timeout",
    "track_total_hits",
];
const MSEARCH: [&str; 6] = [
    "ccs_minimize_roundtrips",
    "max_concurrent_searches",
    "max_concurrent_shard_requests",
    "pre_filter_shard_size",
    "rest_total_hits_as_int",
    "search_type",
];
const BOTH: &[Verb] = &[Verb::Get, Verb::Post];

pub(super) const ROUTES: &[Route] = &[
    Route {
        at_once: Some(at_once::at_once),
        ..route(Role::Read, BOTH, &["/_search", "/{index}/_search"], &PARAMS, search, "finds documents")
    },
    route(
        Role::Read,
        BOTH,
        &["/_msearch", "/{index}/_msearch"],
        &MSEARCH,
        several,
        "several searches, as lines of JSON",
    ),
    route(
        Role::Read,
        BOTH,
        &["/_search/scroll", "/_search/scroll/{id}"],
        &["rest_total_hits_as_int", "scroll", "scroll_id"],
        scroll::next,
        "the next page of a search with `scroll`",
    ),
    route(
        Role::Read,
        &[Verb::Delete],
        &["/_search/scroll", "/_search/scroll/{id}"],
        &["scroll_id"],
        scroll::clear,
        "lets go of searches with `scroll`",
    ),
    route(
        Role::Read,
        &[Verb::Post],
        &["/{index}/_search/point_in_time"],
        &[
            "allow_partial_pit_creation",
            "allow_no_indices",
            "expand_wildcards",
            "ignore_unavailable",
            "keep_alive",
            "preference",
            "routing",
        ],
        pit::make,
        "keeps indexes as they are, for searches with `pit`",
    ),
    route(
        Role::Read,
        &[Verb::Get],
        &["/_search/point_in_time/_all"],
        &[],
        pit::list,
        "points in time that are open",
    ),
    route(
        Role::Read,
        &[Verb::Delete],
        &["/_search/point_in_time"],
        &[],
        pit::clear,
        "lets go of points in time",
    ),
    route(
        Role::Read,
        &[Verb::Delete],
        &["/_search/point_in_time/_all"],
        &[],
        pit::clear_all,
        "lets go of all points in time",
    ),
    route(
        Role::Admin,
        &[Verb::Put],
        &["/_search/pipeline/{id}"],
        &["cluster_manager_timeout", "timeout"],
        pipeline::put,
        "says how scores of hybrid queries are made one",
    ),
    route(
        Role::Read,
        &[Verb::Get],
        &["/_search/pipeline", "/_search/pipeline/{id}"],
        &["cluster_manager_timeout"],
        pipeline::get,
        "search pipelines",
    ),
    route(
        Role::Admin,
        &[Verb::Delete],
        &["/_search/pipeline/{id}"],
        &["cluster_manager_timeout", "timeout"],
        pipeline::delete,
        "removes a search pipeline",
    ),
    route(
        Role::Read,
        BOTH,
        &["/_count", "/{index}/_count"],
        &["ignore_unavailable", "allow_no_indices", "expand_wildcards", "preference", "routing"],
        count,
        "counts documents",
    ),
];

fn search(node: &Node, call: &mut Call) -> Result<Reply, ApiError> {
    let (body, index) = (call.object()?, call.name("index").unwrap_or_default());
    run(node, index, &body, &call.params).map(Reply::json)
}

/// Searches the indexes that an expression names, or a point in time.
fn run(node: &Node, index: &str, body: &Map<String, Value>, params: &Params) -> Result<Value, ApiError> {
    let began = now_ms();
    node.sweep();
    let mut asked = Asked::read(&*pipeline::resolved(node, index, body, params)?, params)?;
    let keep = params.get("scroll").map(|text| scroll::KIND.keep(text)).transpose()?;
    if let Some(named) = asked.pit.clone() {
        if !index.is_empty() || keep.is_some() {
            let what = if keep.is_some() {
                "using [point in time] is not allowed in a scroll context"
            } else {
                "[indices] cannot be used with point in time. Do not specify any index with point in time."
            };
            return Err(ApiError::argument(what));
        }
        let point = node.points.0.get(&named.id, named.keep_ms)?;
        let found = find(node, &point.what, &asked)?;
        let mut answer = found.answer(&asked, asked.shown(), now_ms().saturating_sub(began))?;
        inner::add(node, &point.what, &asked, &mut answer)?;
        answer["pit_id"] = named.id.into();
        return Ok(answer);
    }
    let mut all = searched(node, index, params)?;
    if let Some(keep_ms) = keep {
        asked.scroll()?;
        return scroll::begin(node, all, asked, keep_ms);
    }
    if asked.hybrid.is_some() {
        // Its queries see the same.
        all.iter_mut().try_for_each(Searched::pin)?;
    }
    let found = find(node, &all, &asked)?;
    let mut answer = found.answer(&asked, asked.shown(), now_ms().saturating_sub(began))?;
    inner::add(node, &all, &asked, &mut answer)?;
    Ok(answer)
}

/// What is found, in order.
fn find(node: &Node, all: &[Searched], asked: &Asked) -> Result<Found, ApiError> {
    let cluster = node.cluster();
    let mut found = Found::new(all.len());
    for one in all {
        let index = one.index.as_str();
        let settings = cluster.indices.get(index).map(|index| &index.settings);
        let mut request = asked.request(settings, one)?;
        if one.after.is_some() {
            request.after = one.after.clone();
        }
        let sources = Sources::of(&cluster, (index, &one.table), asked.source.clone())?;
        node.recall.sample(index, &one.table, &request);
        let count = node.counts.of(index);
        count.searched.time(1, || found.add(one, request, sources, asked))?;
    }
    found.settle(asked)?;
    Ok(found)
}

fn several(node: &Node, call: &mut Call) -> Result<Reply, ApiError> {
    let began = now_ms();
    let Body::Whole(bytes) = &call.body else { return Err(ApiError::parsing("request body is required")) };
    let lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).collect();
    let mut lines = lines.as_slice();
    while lines.last().is_some_and(|line| line.is_empty()) {
        lines = &lines[..lines.len() - 1];
    }
    if lines.is_empty() || !lines.len().is_multiple_of(2) {
        return Err(ApiError::parsing("[msearch] two lines for each search are expected: where, and what"));
    }
    if lines.len() / 2 > MANY {
        return Err(ApiError::argument(format!("[msearch] more than {MANY} searches: send them in parts")));
    }
    let usual = call.name("index").unwrap_or_default();
    let mut responses = Vec::with_capacity(lines.len() / 2);
    for pair in lines.chunks_exact(2) {
        let one = || -> Result<Value, ApiError> {
            let mut head = object(pair[0])?;
            let index = match head.remove("index") {
                None | Some(Value::Null) => usual.to_owned(),
                Some(Value::String(index)) => index,
                Some(Value::Array(all)) => all.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(","),
                Some(_) => return Err(ApiError::argument("[msearch] index: give a string")),
            };
            let mut params = Params::of(&head)?;
            params.check("/_msearch", &PARAMS)?;
            params.inherit(&call.params, "rest_total_hits_as_int");
            run(node, &index, &object(pair[1])?, &params)
        };
        responses.push(match one() {
            Ok(mut answer) => {
                answer["status"] = json!(200);
                answer
            }
            Err(error) => error.body(),
        });
    }
    Ok(Reply::json(json!({"took": now_ms().saturating_sub(began), "responses": responses})))
}

fn object(line: &[u8]) -> Result<Map<String, Value>, ApiError> {
    if line.is_empty() {
        return Ok(Map::new());
    }
    serde_json::from_slice(line).map_err(|error| ApiError::parsing(format!("[msearch] {error}")))
}

fn count(node: &Node, call: &mut Call) -> Result<Reply, ApiError> {
    let body = call.object()?;
    if let Some(other) = body.keys().find(|key| *key != "query") {
        return Err(ApiError::parsing(format!("request does not support [{other}]")));
    }
    let all = searched(node, call.name("index").unwrap_or_default(), &call.params)?;
    let mut total = 0;
    for one in &all {
        let asked = body.get("query").map(|asked| query::read(asked, &one.about())).transpose()?;
        let filter = both(asked, one.filter.clone());
        let request = Request { filter, size: 0, ..Request::default() };
        total += one.search(&request, None)?.map_or(0, |answer| answer.total.value);
    }
    let shards = json!({"total": all.len(), "successful": all.len(), "skipped": 0, "failed": 0});
    Ok(Reply::json(json!({"count": total, "_shards": shards})))
}

/// What both let through.
pub(super) fn both(one: Option<Query>, other: Option<Query>) -> Option<Query> {
    match (one, other) {
        (Some(one), Some(other)) => Some(Query::Bool {
            must: Vec::new(),
            should: Vec::new(),
            filter: vec![one, other],
            must_not: Vec::new(),
            minimum_should_match: None,
        }),
        (one, other) => one.or(other),
    }
}

/// A search's error as OpenSearch has it.
pub(super) fn of_search(index: &str, error: SearchTableError) -> ApiError {
    let reason = error.to_string();
    let error = match error {
        SearchTableError::Busy(_) | SearchTableError::Refused(_) => {
            ApiError::new(StatusCode::TOO_MANY_REQUESTS, "rejected_execution_exception", reason)
        }
        SearchTableError::Memory(_) => {
            ApiError::new(StatusCode::TOO_MANY_REQUESTS, "circuit_breaking_exception", reason)
        }
        SearchTableError::Failed(_) | SearchTableError::Documents(_) | SearchTableError::Stopped => {
            ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "search_phase_execution_exception", reason)
        }
        _ => ApiError::new(StatusCode::BAD_REQUEST, "query_shard_exception", reason),
    };
    error.with("index", index)
}
