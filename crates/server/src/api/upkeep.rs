//! Segments of indexes: made of what was written, and merged.

use super::{route, tables};
use crate::call::{Call, Reply};
use crate::cluster::PARAMS;
use crate::error::ApiError;
use crate::node::Node;
use crate::route::{Role, Route, Verb};
use crate::tasks::Proceed;
use axum::http::StatusCode;
use lanewise_engine::Threads;
use lanewise_engine::table::{Effort, FlushError, MergePolicy, SegmentError, Watched};
use serde_json::{Value, json};
use std::sync::Arc;

const FLUSH: [&str; 5] =
    ["ignore_unavailable", "allow_no_indices", "expand_wildcards", "force", "wait_if_ongoing"];
const MERGE: [&str; 8] = [
    "ignore_unavailable",
    "allow_no_indices",
    "expand_wildcards",
    "max_num_segments",
    "only_expunge_deletes",
    "flush",
    "primary_only",
    "wait_for_completion",
];
const CLEAR: [&str; 8] = [
    "ignore_unavailable",
    "allow_no_indices",
    "expand_wildcards",
    "fielddata",
    "fields",
    "file",
    "query",
    "request",
];
const BOTH: &[Verb] = &[Verb::Post, Verb::Get];

pub(super) const ROUTES: &[Route] = &[
    route(
        Role::Write,
        BOTH,
        &["/_refresh", "/{index}/_refresh"],
        &PARAMS,
        refresh,
        "nothing: writes are seen at once",
    ),
    route(
        Role::Write,
        BOTH,
        &["/_flush", "/{index}/_flush"],
        &FLUSH,
        flush,
        "makes segments of what was written, so that logs begin anew",
    ),
    route(
        Role::Write,
        &[Verb::Post],
        &["/_forcemerge", "/{index}/_forcemerge"],
        &MERGE,
        merge,
        "merges segments until so many are left, or as the merge policy has it; with `wait_for_completion=false` as a task",
    ),
    route(
        Role::Write,
        &[Verb::Post],
        &["/_cache/clear", "/{index}/_cache/clear"],
        &CLEAR,
        clear,
        "closes tables that nobody uses, and with them what is kept of searches",
    ),
];

/// One shard each, which answered.
pub(super) fn shards(count: usize) -> Value {
    json!({"_shards": {"total": count, "successful": count, "failed": 0}})
}

fn refresh(node: &Node, call: &mut Call) -> Result<Reply, ApiError> {
    Ok(Reply::json(shards(tables(node, call)?.len())))
}

fn flush(node: &Node, call: &mut Call) -> Result<Reply, ApiError> {
    let all = tables(node, call)?;
    for (index, table) in &all {
        table.flush().map_err(|error| of_flush(index, &error))?;
    }
    Ok(Reply::json(shards(all.len())))
}

/// How far segments are merged.
#[derive(Clone, Copy)]
enum Until {
    Segments(usize),
    NoneDead,
    Policy,
}

fn merge(node: &Node, call: &mut Call) -> Result<Reply, ApiError> {
    let segments = call.params.parsed::<usize>("max_num_segments")?;
    let until = match (segments, call.params.flag("only_expunge_deletes", false)?) {
        (Some(_), true) => {
            let reason = "cannot set only_expunge_deletes and max_num_segments at the same time, those two parameters \
                          are mutually exclusive";
            return Err(ApiError::new(
                StatusCode::BAD_REQUEST,
                "action_request_validation_exception",
                format!("Validation Failed: 1: {reason};"),
            ));
        }
        (Some(0), _) => return Err(ApiError::argument("max_num_segments: give 1 or more")),
        (Some(segments), false) => Until::Segments(segments),
        (None, true) => Until::NoneDead,
        (None, false) => Until::Policy,
    };
    let all = tables(node, call)?;
    let names: Vec<&str> = all.iter().map(|(index, _)| index.as_str()).collect();
    let described = format!(
        "Force-merge indices [{}], maxSegments[{}]",
        names.join(", "),
        segments.map_or(-1, |n| n as i64)
    );
    let threads = node.threads;
    let work = move |proceed: Proceed<'_>| {
        for (index, table) in &all {
            merge_one(table, until, threads, proceed).map_err(|error| of_flush(index, &error))?;
        }
        Ok(shards(all.len()))
    };
    const ACTION: &str = "indices:admin/forcemerge";
    if call.params.flag("wait_for_completion", true)? {
        return node.tasks.run(ACTION, described, work).map(Reply::json);
    }
    let number = node.tasks.begin(ACTION, described, work)?;
    Ok(Reply::json(json!({"task": node.task_id(number)})))
}

fn merge_one(
    table: &Arc<Watched>,
    until: Until,
    threads: Threads,
    proceed: Proceed<'_>,
) -> Result<(), FlushError> {
    let effort = Effort::new(threads, proceed);
    let policy = match until {
        Until::Segments(segments) => return table.force_merge_with(segments, &effort),
        Until::NoneDead => MergePolicy { deletes_allowed: 0.0, ..table.settings().merge },
        Until::Policy => table.settings().merge,
    };
    table.flush_with(&effort)?;
    while table.merge_with(&policy, &effort)?.is_some() {}
    Ok(())
}

/// The error of work on segments as OpenSearch has it.
pub(super) fn of_flush(index: &str, error: &FlushError) -> ApiError {
    let reason = error.to_string();
    let error = match error {
        FlushError::Refused(_) | FlushError::Segment { error: SegmentError::Refused(_), .. } => {
            ApiError::new(StatusCode::TOO_MANY_REQUESTS, "circuit_breaking_exception", reason)
        }
        FlushError::Segment { error: SegmentError::Stopped, .. } => {
            ApiError::new(StatusCode::BAD_REQUEST, "task_cancelled_exception", "the task was cancelled")
        }
        FlushError::Settings(_) => ApiError::argument(reason),
        _ => ApiError::internal(reason),
    };
    error.with("index", index)
}

pub(super) fn clear(node: &Node, call: &mut Call) -> Result<Reply, ApiError> {
    let names: Vec<String> = tables(node, call)?.into_iter().map(|(index, _)| index).collect();
    for name in &names {
        node.close_table(name)?;
    }
    Ok(Reply::json(shards(names.len())))
}
