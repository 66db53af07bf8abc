//! Scrolls: a search whose hits are all found at once, as the indexes are then, and given page by page.
//!
//! What is kept pins the segments that it was found in. It goes when it is not asked for in the time that each request
//! gives it.

use super::asked::Asked;
use super::found::Found;
use crate::call::{Call, Reply};
use crate::error::ApiError;
use crate::node::{Node, new_uuid, now_ms};
use crate::settings::time_ms;
use axum::http::StatusCode;
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Scrolls at a time: `search.max_open_scroll_context`.
const OPEN: usize = 500;
/// Hits of one scroll.
pub(super) const HITS: usize = 1_000_000;
/// Hits of all scrolls.
const ALL_HITS: usize = 4_000_000;
/// The longest that one is kept: `search.max_keep_alive`.
const KEEP_MS: u64 = 24 * 3_600_000;

/// All scrolls of a node.
#[derive(Default)]
pub(crate) struct Scrolls {
    open: Mutex<HashMap<String, Arc<Mutex<Scroll>>>>,
    /// When the first may go: milliseconds since 1970, 0 if none is open.
    next: AtomicU64,
}

struct Scroll {
    found: Found,
    asked: Asked,
    /// The next hit that is shown.
    at: usize,
    until_ms: u64,
}

/// How long a scroll is kept.
pub(super) fn keep(text: &str) -> Result<u64, ApiError> {
    let wrong = || {
        ApiError::argument(format!(
            "failed to parse setting [scroll] with value [{text}]: give a time such as 5m"
        ))
    };
    let keep = time_ms(text).filter(|keep| *keep > 0).ok_or_else(wrong)?;
    if keep > KEEP_MS {
        return Err(ApiError::argument(format!(
            "Keep alive for request ({text}) is too large. It must be less than (24h). This limit can be set by changing \
             the [search.max_keep_alive] cluster level setting."
        )));
    }
    Ok(keep)
}

fn missing(id: &str) -> ApiError {
    let reason = format!("No search context found for id [{id}]");
    ApiError::new(StatusCode::NOT_FOUND, "search_context_missing_exception", reason)
}

impl Scrolls {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<Mutex<Scroll>>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets go of those whose time is over.
    pub(super) fn sweep(&self, now: u64) {
        // Relaxed: whoever sweeps looks again under the lock.
        let next = self.next.load(Ordering::Relaxed);
        if next == 0 || now < next {
            return;
        }
        let mut open = self.lock();
        // One that is read at this moment is not over.
        open.retain(|_, scroll| scroll.try_lock().map_or(true, |scroll| scroll.until_ms > now));
        let until = |scroll: &Arc<Mutex<Scroll>>| scroll.try_lock().map_or(now + 1, |scroll| scroll.until_ms);
        self.next.store(open.values().map(until).min().unwrap_or(0), Ordering::Relaxed);
    }

    /// Keeps what was found, and gives the first page.
    pub(super) fn begin(
        &self,
        found: Found,
        asked: Asked,
        keep_ms: u64,
        took: u64,
    ) -> Result<Value, ApiError> {
        let now = now_ms();
        self.sweep(now);
        let (id, until_ms) = (new_uuid() + &new_uuid(), now + keep_ms);
        let at = asked.size;
        let mut answer = found.answer(&asked, 0..at, took)?;
        answer["_scroll_id"] = json!(id);
        let mut open = self.lock();
        let hits = |scroll: &Arc<Mutex<Scroll>>| scroll.try_lock().map_or(0, |scroll| scroll.found.len());
        let hits: usize = open.values().map(hits).sum();
        let refused = |reason: String| {
            Err(ApiError::new(StatusCode::TOO_MANY_REQUESTS, "rejected_execution_exception", reason))
        };
        if open.len() >= OPEN {
            return refused(format!(
                "Trying to create too many scroll contexts. Must be less than or equal to: [{OPEN}]. This limit can be set \
                 by changing the [search.max_open_scroll_context] setting."
            ));
        }
        if hits + found.len() > ALL_HITS {
            return refused(format!(
                "all scrolls together keep more than {ALL_HITS} hits: clear some, or filter"
            ));
        }
        open.insert(id, Arc::new(Mutex::new(Scroll { found, asked, at, until_ms })));
        let next = self.next.load(Ordering::Relaxed);
        self.next.store(if next == 0 { until_ms } else { next.min(until_ms) }, Ordering::Relaxed);
        Ok(answer)
    }

    fn next(&self, id: &str, keep_ms: Option<u64>) -> Result<Value, ApiError> {
        let now = now_ms();
        self.sweep(now);
        let scroll = self.lock().get(id).cloned().ok_or_else(|| missing(id))?;
        let mut scroll = scroll.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(keep) = keep_ms {
            scroll.until_ms = now + keep;
        }
        let (from, to) = (scroll.at, scroll.at.saturating_add(scroll.asked.size));
        let mut answer = scroll.found.answer(&scroll.asked, from..to, now_ms().saturating_sub(now))?;
        scroll.at = to;
        // Figures come with the first page alone.
        if let Some(fields) = answer.as_object_mut() {
            fields.remove("aggregations");
        }
        answer["_scroll_id"] = json!(id);
        Ok(answer)
    }

    /// Lets go of these, or of all; how many there were.
    fn clear(&self, ids: &[&str]) -> usize {
        let mut open = self.lock();
        let before = open.len();
        open.retain(|id, _| !ids.iter().any(|gone| *gone == "_all" || *gone == id.as_str()));
        before - open.len()
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }
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
    node.scrolls.next(id, text.map(keep).transpose()?).map(Reply::json)
}

pub(super) fn clear(node: &Node, call: &mut Call) -> Result<Reply, ApiError> {
    let body = call.object()?;
    let ids = said(call, &body)?;
    if ids.is_empty() {
        return Err(required());
    }
    let freed = node.scrolls.clear(&ids);
    let status = if freed == 0 && ids != ["_all"] { StatusCode::NOT_FOUND } else { StatusCode::OK };
    Ok(Reply::json(json!({"succeeded": true, "num_freed": freed})).with_status(status))
}
