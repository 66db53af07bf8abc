//! Scrolls: a search on indexes as they were when it began, page by page. Each page begins where the last ended in each
//! index.

use super::asked::Asked;
use super::contexts::{Contexts, Kind};
use super::found::Found;
use super::{Searched, find};
use crate::call::{Call, Reply};
use crate::error::ApiError;
use crate::node::{Node, now_ms};
use axum::http::StatusCode;
use serde_json::{Map, Value, json};
use std::sync::{Mutex, PoisonError};

pub(super) const KIND: Kind = Kind {
    name: "scroll",
    open: 500,
    open_setting: "search.max_open_scroll_context",
    keep_setting: "search.max_keep_alive",
};

/// All scrolls of a node.
pub(crate) struct Scrolls(pub(super) Contexts<Mutex<Scroll>>);

impl Default for Scrolls {
    fn default() -> Self {
        Scrolls(Contexts::new(&KIND))
    }
}

/// A search that is shown page by page.
pub(super) struct Scroll {
    /// Pinned.
    all: Vec<Searched>,
    asked: Asked,
}

impl Scrolls {
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

impl Scroll {
    /// The next page.
    fn page(&mut self, node: &Node) -> Result<Value, ApiError> {
        let began = now_ms();
        let found: Found = find(node, &self.all, &self.asked)?;
        let answer = found.answer(&self.asked, 0..self.asked.size, now_ms().saturating_sub(began))?;
        found.go_on(&mut self.all, self.asked.size);
        // Figures come with the first page alone.
        self.asked.aggregations.clear();
        Ok(answer)
    }
}

/// Keeps the indexes as they are, and gives the first page.
pub(super) fn begin(
    node: &Node,
    mut all: Vec<Searched>,
    asked: Asked,
    keep_ms: u64,
) -> Result<Value, ApiError> {
    all.iter_mut().try_for_each(Searched::pin)?;
    let indexes: Vec<String> = all.iter().map(|one| one.index.clone()).collect();
    let mut scroll = Scroll { all, asked };
    let mut answer = scroll.page(node)?;
    answer["_scroll_id"] = node.scrolls.0.insert(&indexes, keep_ms, Mutex::new(scroll))?.into();
    Ok(answer)
}

/// What a request says, in its path, its parameters or its body.
fn said<'a>(call: &'a Call, body: &'a Map<String, Value>) -> Result<Vec<&'a str>, ApiError> {
    if let Some(other) = body.keys().find(|key| !["scroll", "scroll_id"].contains(&key.as_str())) {
        return Err(ApiError::argument(format!(
            "Unknown parameter [{other}] in request body or parameter is of the wrong type"
        )));
    }
    let of_body = match body.get("scroll_id") {
        None => Vec::new(),
        Some(Value::String(id)) => vec![id.as_str()],
        Some(Value::Array(ids)) => ids.iter().filter_map(Value::as_str).collect(),
        Some(_) => return Err(ApiError::argument("[scroll_id]: give a string")),
    };
    let of_call = call.name("id").or(call.params.get("scroll_id"));
    Ok(of_call.into_iter().flat_map(|ids| ids.split(',')).chain(of_body).collect())
}

fn required() -> ApiError {
    ApiError::new(
        StatusCode::BAD_REQUEST,
        "action_request_validation_exception",
        "Validation Failed: 1: scrollId is missing;",
    )
}

pub(super) fn next(node: &Node, call: &mut Call) -> Result<Reply, ApiError> {
    let body = call.object()?;
    let ids = said(call, &body)?;
    let [id] = ids[..] else { return Err(required()) };
    let text = call.params.get("scroll").or(body.get("scroll").and_then(Value::as_str));
    let context = node.scrolls.0.get(id, text.map(|text| KIND.keep(text)).transpose()?)?;
    let mut answer = context.what.lock().unwrap_or_else(PoisonError::into_inner).page(node)?;
    answer["_scroll_id"] = json!(id);
    Ok(Reply::json(answer))
}

pub(super) fn clear(node: &Node, call: &mut Call) -> Result<Reply, ApiError> {
    let body = call.object()?;
    let ids = said(call, &body)?;
    if ids.is_empty() {
        return Err(required());
    }
    let freed = node.scrolls.0.remove(|open| ids.iter().any(|gone| *gone == "_all" || *gone == open));
    let status = if freed == 0 && ids != ["_all"] { StatusCode::NOT_FOUND } else { StatusCode::OK };
    Ok(Reply::json(json!({"succeeded": true, "num_freed": freed})).with_status(status))
}
