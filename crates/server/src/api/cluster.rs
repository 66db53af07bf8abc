//! How the cluster of one is.

use crate::call::{Call, Content, Reply};
use crate::cluster::Names;
use crate::error::ApiError;
use crate::node::Node;
use crate::route::{Reads, Role, Route, Verb};
use axum::http::StatusCode;
use lanewise_engine::TableState;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::sync::Arc;

pub(super) const ROUTES: &[Route] = &[
    Route {
        verbs: &[Verb::Get],
        paths: &["/_cluster/health", "/_cluster/health/{index}"],
        params: &[
            "wait_for_status",
            "wait_for_nodes",
            "wait_for_active_shards",
            "wait_for_no_initializing_shards",
            "wait_for_no_relocating_shards",
            "wait_for_events",
            "timeout",
            "cluster_manager_timeout",
            "master_timeout",
            "level",
            "local",
            "expand_wildcards",
        ],
        role: Role::Read,
        reads: Reads::Whole,
        handler: health,
        says: "green, or red where a table is damaged",
    },
    Route {
        verbs: &[Verb::Get],
        paths: &["/_cat/indices", "/_cat/indices/{index}"],
        params: &["v", "h", "s", "bytes", "ignore_unavailable", "allow_no_indices", "expand_wildcards"],
        role: Role::Read,
        reads: Reads::Whole,
        handler: indices,
        says: "indexes, one in a line",
    },
];

/// The indexes whose tables are damaged, of those that `expression` names; and how many it names.
fn damaged(node: &Node, call: &Call) -> Result<(Vec<String>, usize), ApiError> {
    let targets = Names::targets(&node.cluster(), call)?;
    let damaged: HashSet<Arc<str>> = node
        .engine
        .list()
        .into_iter()
        .filter(|listed| matches!(listed.state, TableState::Damaged { .. }))
        .map(|listed| listed.name)
        .collect();
    let all = targets.len();
    Ok((
        targets
            .into_iter()
            .map(|target| target.index)
            .filter(|name| damaged.contains(name.as_str()))
            .collect(),
        all,
    ))
}

fn health(node: &Node, call: &mut Call) -> Result<Reply, ApiError> {
    let (damaged, all) = damaged(node, call)?;
    let status = if damaged.is_empty() { "green" } else { "red" };
    let wanted = call.params.get("wait_for_status");
    let late = wanted.is_some_and(|wanted| status == "red" && wanted != "red");
    let answer = json!({
        "cluster_name": node.cluster_name,
        "status": status,
        "timed_out": late,
        "number_of_nodes": 1,
        "number_of_data_nodes": 1,
        "discovered_master": true,
        "discovered_cluster_manager": true,
        "active_primary_shards": all - damaged.len(),
        "active_shards": all - damaged.len(),
        "relocating_shards": 0,
        "initializing_shards": 0,
        "unassigned_shards": damaged.len(),
        "delayed_unassigned_shards": 0,
        "number_of_pending_tasks": 0,
        "number_of_in_flight_fetch": 0,
        "task_max_waiting_in_queue_millis": 0,
        "active_shards_percent_as_number": if all == 0 { 100.0 } else { 100.0 * (all - damaged.len()) as f64 / all as f64 },
    });
    // Nothing that is waited for comes by itself.
    let code = if late { StatusCode::REQUEST_TIMEOUT } else { StatusCode::OK };
    Ok(Reply::json(answer).with_status(code))
}

fn indices(node: &Node, call: &mut Call) -> Result<Reply, ApiError> {
    let cluster = node.cluster();
    let targets = Names::targets(&cluster, call)?;
    let mut rows = Vec::new();
    for target in targets {
        let index = &cluster.indices[&target.index];
        let (health, documents, deleted) = match node.table(&target.index) {
            Ok(table) => {
                let deleted: usize = table.segments().iter().map(|segment| segment.deleted).sum();
                ("green", table.len().to_string(), deleted.to_string())
            }
            Err(_) => ("red", String::new(), String::new()),
        };
        let status = if index.closed { "close" } else { "open" };
        let cells = [health, status, &target.index, &index.uuid, "1", "0", &documents, &deleted];
        rows.push(cells.map(str::to_owned));
    }
    let names = ["health", "status", "index", "uuid", "pri", "rep", "docs.count", "docs.deleted"];
    table(call, &names, &rows)
}

/// Rows as `_cat` has them: text in columns, or JSON; with a head if `v` is there, and only the columns `h`.
fn table<const N: usize>(call: &Call, names: &[&str; N], rows: &[[String; N]]) -> Result<Reply, ApiError> {
    let shown: Vec<usize> = match call.params.list("h") {
        None => (0..N).collect(),
        Some(wanted) => {
            let place = |name: &&str| names.iter().position(|known| crate::cluster::matches(name, known));
            wanted.iter().filter_map(place).collect()
        }
    };
    match call.params.get("format") {
        Some("json") => {
            let row = |row: &[String; N]| -> Value {
                shown
                    .iter()
                    .map(|&at| (names[at].to_owned(), json!(row[at])))
                    .collect::<serde_json::Map<_, _>>()
                    .into()
            };
            Ok(Reply::json(rows.iter().map(row).collect()))
        }
        None | Some("text") => {
            let head = names.map(str::to_owned);
            let lines: Vec<&[String; N]> =
                call.params.flag("v", false)?.then_some(&head).into_iter().chain(rows).collect();
            let width = |at: usize| lines.iter().map(|line| line[at].chars().count()).max().unwrap_or(0);
            let widths: Vec<usize> = shown.iter().map(|&at| width(at)).collect();
            let mut text = String::new();
            for line in lines {
                let cells = shown.iter().zip(&widths).map(|(&at, width)| format!("{:<width$}", line[at]));
                text += cells.collect::<Vec<_>>().join(" ").trim_end();
                text.push('\n');
            }
            Ok(Reply { status: StatusCode::OK, content: Content::Text(text) })
        }
        Some(other) => Err(ApiError::argument(format!("format [{other}]: give text, or json"))),
    }
}
