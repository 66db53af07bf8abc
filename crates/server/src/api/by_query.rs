//! Writes to all documents that a query finds, page by page in the order of their ids.
//!
//! A document that somebody else writes meanwhile is a conflict, and left as that write has it.

use super::document::of_write;
use super::search::{both, filters, of_search};
use super::{document, route, update};
use crate::call::{Call, Reply};
use crate::cluster::{Names, Target};
use crate::counts::Count;
use crate::error::ApiError;
use crate::node::{Node, now_ms};
use crate::query::{self, About};
use crate::route::{Role, Route, Verb};
use crate::tasks::Proceed;
use axum::http::StatusCode;
use lanewise_engine::documents::{Query, Sort, SortBy};
use lanewise_engine::table::{Request, Watched, When, Write};
use serde_json::{Value, json};
use std::sync::Arc;

/// Documents that are written at a time.
const PAGE: usize = 5000;

const PARAMS: [&str; 17] = [
    "ignore_unavailable",
    "allow_no_indices",
    "expand_wildcards",
    "conflicts",
    "max_docs",
    "preference",
    "refresh",
    "request_cache",
    "requests_per_second",
    "routing",
    "scroll",
    "scroll_size",
    "search_timeout",
    "slices",
    "timeout",
    "wait_for_active_shards",
    "wait_for_completion",
];

pub(super) const ROUTES: &[Route] = &[
    route(
        Role::Write,
        &[Verb::Post],
        &["/{index}/_delete_by_query"],
        &PARAMS,
        delete,
        "deletes documents that a query finds",
    ),
    route(
        Role::Write,
        &[Verb::Post],
        &["/{index}/_update_by_query"],
        &PARAMS,
        rewrite,
        "writes documents that a query finds again, as they are",
    ),
];

/// What is done to each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Delete,
    Rewrite,
}

/// Documents of one index.
struct Scope {
    index: String,
    table: Arc<Watched>,
    filter: Option<Query>,
    count: Arc<Count>,
}

fn delete(node: &Node, call: &mut Call) -> Result<Reply, ApiError> {
    by_query(node, call, What::Delete)
}

fn rewrite(node: &Node, call: &mut Call) -> Result<Reply, ApiError> {
    by_query(node, call, What::Rewrite)
}

fn by_query(node: &Node, call: &mut Call, what: What) -> Result<Reply, ApiError> {
    let body = call.object()?;
    for (key, value) in &body {
        match key.as_str() {
            "query" | "max_docs" | "size" | "conflicts" => {}
            "script" => return Err(ApiError::argument("[script] is not supported: scripts are not run")),
            other => return Err(ApiError::parsing(format!("unknown or unsupported key [{other}]: {value}"))),
        }
    }
    let asked = match body.get("query") {
        Some(given) => Some(given.clone()),
        None if what == What::Delete => {
            let reason = "Validation Failed: 1: query is missing;";
            return Err(ApiError::new(
                StatusCode::BAD_REQUEST,
                "action_request_validation_exception",
                reason,
            ));
        }
        None => None,
    };
    let text =
        |name: &str| call.params.get(name).map(str::to_owned).or(body.get(name)?.as_str().map(str::to_owned));
    let goes_on = match text("conflicts").as_deref() {
        None | Some("abort") => false,
        Some("proceed") => true,
        Some(other) => {
            return Err(ApiError::argument(format!(
                "conflicts may only be \"proceed\" or \"abort\" but was [{other}]"
            )));
        }
    };
    let most = match (call.params.parsed("max_docs")?, body.get("max_docs").or(body.get("size"))) {
        (Some(most), _) => most,
        (None, None) => usize::MAX,
        (None, Some(given)) => {
            let most = given.as_u64().and_then(|most| usize::try_from(most).ok());
            most.ok_or_else(|| ApiError::argument("[max_docs] should be a whole number"))?
        }
    };
    let cluster = node.cluster();
    let targets = Names::targets(&cluster, call)?;
    let names: Vec<&str> = targets.iter().map(|target| target.index.as_str()).collect();
    let (action, described) = match what {
        What::Delete => {
            ("indices:data/write/delete/byquery", format!("delete-by-query [{}]", names.join(", ")))
        }
        What::Rewrite => {
            ("indices:data/write/update/byquery", format!("update-by-query [{}]", names.join(", ")))
        }
    };
    let scope = |target: &Target| -> Result<Scope, ApiError> {
        document::unblocked(&cluster, &target.index, what == What::Delete)?;
        let (index, table) = document::opened(node, &cluster, &target.index)?;
        let about = About { schema: Some(table.schema()), ef_search: None };
        let asked = asked.as_ref().map(|asked| query::read(asked, &about)).transpose()?;
        let filter = both(asked, filters(target, &about)?);
        Ok(Scope { count: node.counts.of(&index), index, table, filter })
    };
    let scopes = targets.iter().map(scope).collect::<Result<Vec<_>, _>>()?;
    let work = move |proceed: Proceed<'_>| {
        let mut done = Done { what, goes_on, left: most, ..Done::default() };
        let began = now_ms();
        for scope in &scopes {
            done.all_of(scope, proceed)?;
        }
        Ok(done.told(now_ms().saturating_sub(began)))
    };
    if !call.params.flag("wait_for_completion", true)? {
        let number = node.tasks.begin(action, described, work)?;
        return Ok(Reply::json(json!({"task": node.task_id(number)})));
    }
    let told = node.tasks.run(action, described, work)?;
    let failed =
        told["failures"][0]["status"].as_u64().and_then(|code| StatusCode::from_u16(code as u16).ok());
    Ok(Reply::json(told).with_status(failed.unwrap_or(StatusCode::OK)))
}

/// What was done so far.
struct Done {
    what: What,
    /// Whether conflicts are passed over.
    goes_on: bool,
    /// Documents that may still be written.
    left: usize,
    total: u64,
    written: u64,
    conflicts: u64,
    batches: u64,
    stopped: bool,
    failures: Vec<Value>,
}

impl Default for Done {
    fn default() -> Self {
        let (total, written, conflicts, batches) = (0, 0, 0, 0);
        let (what, goes_on, left) = (What::Delete, false, usize::MAX);
        Done { what, goes_on, left, total, written, conflicts, batches, stopped: false, failures: Vec::new() }
    }
}

impl Done {
    fn all_of(&mut self, scope: &Scope, proceed: Proceed<'_>) -> Result<(), ApiError> {
        let Scope { index, table, filter, count } = scope;
        let sort = vec![Sort::new(SortBy::Id)];
        let mut request =
            Request { filter: filter.clone(), sort, size: PAGE, exact_total: true, ..Request::default() };
        let mut is_first = true;
        while self.left > 0 && self.failures.is_empty() && !self.stopped {
            self.stopped = proceed().is_break();
            request.size = PAGE.min(self.left);
            let found = table.search(&request, None).map_err(|error| of_search(index, error))?;
            if std::mem::take(&mut is_first) {
                self.total += found.total.value.min(self.left as u64);
                request.exact_total = false;
            }
            let Some(last) = found.hits.last().filter(|_| !self.stopped) else { break };
            request.after = Some(last.sort.clone());
            self.left -= found.hits.len();
            self.batches += 1;
            let writes = match self.what {
                What::Delete => found
                    .hits
                    .iter()
                    .map(|hit| Write::Delete { id: hit.id.clone(), when: When::Seq(hit.seq) })
                    .collect(),
                What::Rewrite => update::same(table, &found)?,
            };
            let timed = if self.what == What::Delete { &count.deleted } else { &count.indexed };
            let ends = timed.time(writes.len(), || table.write(writes));
            for (hit, end) in found.hits.iter().zip(ends) {
                let Err(error) = end.map_err(|error| of_write(index, &hit.id, error)) else {
                    self.written += 1;
                    continue;
                };
                let conflict = error.status() == StatusCode::CONFLICT;
                self.conflicts += u64::from(conflict);
                if !(conflict && self.goes_on) {
                    self.failures.push(json!({
                        "index": index, "id": hit.id, "cause": error.cause(), "status": error.status().as_u16(),
                    }));
                }
            }
        }
        Ok(())
    }

    fn told(self, took: u64) -> Value {
        let key = if self.what == What::Delete { "deleted" } else { "updated" };
        let mut told = json!({
            "took": took, "timed_out": false, "total": self.total, key: self.written, "batches": self.batches,
            "version_conflicts": self.conflicts, "noops": 0, "retries": {"bulk": 0, "search": 0},
            "throttled_millis": 0, "requests_per_second": -1.0, "throttled_until_millis": 0, "failures": self.failures,
        });
        if self.stopped {
            told["canceled"] = json!("by user request");
        }
        told
    }
}
