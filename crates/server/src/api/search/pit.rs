//! Points in time: indexes as they were when one was made, for searches that follow one another.

use super::contexts::{Context, Contexts, Kind};
use super::{Searched, searched};
use crate::call::{Call, Reply};
use crate::error::ApiError;
use crate::node::Node;
use axum::http::StatusCode;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::sync::atomic::Ordering;

pub(super) const KIND: Kind = Kind {
    name: "Point In Time",
    open: 300,
    open_setting: "search.max_open_pit_context",
    keep_setting: "point_in_time.max_keep_alive",
};

/// Indexes, pinned.
pub(super) type Point = Vec<Searched>;

/// All points in time of a node.
pub(crate) struct Points(pub(super) Contexts<Point>);

impl Default for Points {
    fn default() -> Self {
        Points(Contexts::new(&KIND))
    }
}

impl Points {
    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Lets go of those whose time is over.
    pub(crate) fn sweep(&self) {
        self.0.sweep();
    }

    /// Lets go of those of an index.
    pub(crate) fn forget(&self, index: &str) {
        self.0.forget(index);
    }
}

/// What a search says of one.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Named {
    pub(super) id: String,
    pub(super) keep_ms: Option<u64>,
}

/// Reads `pit` of a search.
pub(super) fn read(body: &Map<String, Value>) -> Result<Option<Named>, ApiError> {
    let Some(given) = body.get("pit").filter(|given| !given.is_null()) else { return Ok(None) };
    let fields = given.as_object().ok_or_else(|| ApiError::parsing("[pit]: give an object"))?;
    crate::query::only("pit", fields, &["id", "keep_alive"])?;
    let Some(Value::String(id)) = fields.get("id") else {
        return Err(ApiError::parsing("[pit]: give the id of a point in time"));
    };
    let keep = fields.get("keep_alive").and_then(Value::as_str).map(|text| KIND.keep(text)).transpose()?;
    Ok(Some(Named { id: id.clone(), keep_ms: keep }))
}

pub(super) fn make(node: &Node, call: &mut Call) -> Result<Reply, ApiError> {
    let Some(text) = call.params.get("keep_alive") else {
        return Err(ApiError::new(
            StatusCode::BAD_REQUEST,
            "action_request_validation_exception",
            "Validation Failed: 1: keep alive not specified;",
        ));
    };
    let keep_ms = KIND.keep(text)?;
    let mut all = searched(node, call.name("index").unwrap_or_default(), &call.params)?;
    all.iter_mut().try_for_each(Searched::pin)?;
    let shards = json!({"total": all.len(), "successful": all.len(), "skipped": 0, "failed": 0});
    let contexts = &node.points.0;
    let id = contexts.insert(&all.iter().map(|one| one.index.clone()).collect::<Vec<_>>(), keep_ms, all)?;
    let made_ms = contexts.get(&id, None)?.made_ms;
    Ok(Reply::json(json!({"pit_id": id, "_shards": shards, "creation_time": made_ms})))
}

pub(super) fn list(node: &Node, _: &mut Call) -> Result<Reply, ApiError> {
    let told = |(id, one): (String, Arc<Context<Point>>)| {
        let keep = one.keep_ms.load(Ordering::Relaxed);
        json!({"pit_id": id, "creation_time": one.made_ms, "keep_alive": keep})
    };
    let all: Vec<Value> = node.points.0.all().into_iter().map(told).collect();
    Ok(Reply::json(json!({"pits": all})))
}

/// Lets go of those that the body names.
pub(super) fn clear(node: &Node, call: &mut Call) -> Result<Reply, ApiError> {
    let body = call.object()?;
    crate::query::only("pit", &body, &["pit_id"])?;
    let ids: Vec<&str> = match body.get("pit_id") {
        Some(Value::String(id)) => vec![id],
        Some(Value::Array(ids)) => ids.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    if ids.is_empty() {
        return Err(ApiError::new(
            StatusCode::BAD_REQUEST,
            "action_request_validation_exception",
            "Validation Failed: 1: no pit ids specified;",
        ));
    }
    let mut status = StatusCode::OK;
    let gone = ids.into_iter().map(|id| {
        let freed = node.points.0.remove(|open| open == id) > 0;
        if !freed {
            status = StatusCode::NOT_FOUND;
        }
        json!({"successful": freed, "pit_id": id})
    });
    let gone: Vec<Value> = gone.collect();
    Ok(Reply::json(json!({"pits": gone})).with_status(status))
}

pub(super) fn clear_all(node: &Node, _: &mut Call) -> Result<Reply, ApiError> {
    let all = node.points.0.all().into_iter();
    let gone: Vec<Value> = all
        .filter(|(id, _)| node.points.0.remove(|open| open == id) > 0)
        .map(|(id, _)| json!({"successful": true, "pit_id": id}))
        .collect();
    Ok(Reply::json(json!({"pits": gone})))
}
