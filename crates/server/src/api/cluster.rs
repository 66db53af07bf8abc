//! How the cluster of one is.

use crate::call::{Call, Reply};
use crate::cluster::{Names, Target};
use crate::error::ApiError;
use crate::node::Node;
use crate::route::{Reads, Role, Route, Verb};
use axum::http::StatusCode;
use lanewise_engine::TableState;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::sync::Arc;

pub(super) const ROUTES: &[Route] = &[Route {
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
    at_once: None,
    handler: health,
    says: "green, or red where a table is damaged",
}];

/// The indexes whose tables are damaged, of those that are named; and how many these are.
pub(super) fn damaged(node: &Node, targets: Vec<Target>) -> (Vec<String>, usize) {
    let damaged: HashSet<Arc<str>> = node
        .engine
        .list()
        .into_iter()
        .filter(|listed| matches!(listed.state, TableState::Damaged { .. }))
        .map(|listed| listed.name)
        .collect();
    let all = targets.len();
    let named = targets.into_iter().map(|target| target.index);
    (named.filter(|name| damaged.contains(name.as_str())).collect(), all)
}

/// How all indexes are.
pub(super) fn status(node: &Node) -> Result<&'static str, ApiError> {
    let all = Names::default().resolve(&node.cluster(), "")?;
    Ok(if damaged(node, all).0.is_empty() { "green" } else { "red" })
}

/// Which share of shards is active, percent.
pub(super) fn percent(active: usize, all: usize) -> f64 {
    if all == 0 { 100.0 } else { 100.0 * active as f64 / all as f64 }
}

/// Whether one node is what somebody waits for: `2`, `>=1`, `ge(1)`, …
fn is_enough(nodes: &str) -> Result<bool, ApiError> {
    let wrong = || {
        ApiError::argument(format!("wait_for_nodes [{nodes}]: give a number, perhaps after >=, <=, > or <"))
    };
    let words = [("ge(", ">="), ("le(", "<="), ("gt(", ">"), ("lt(", "<")];
    let word =
        words.iter().find_map(|(word, sign)| Some((*sign, nodes.strip_prefix(word)?.strip_suffix(')')?)));
    let sign = || [">=", "<=", ">", "<"].into_iter().find_map(|sign| Some((sign, nodes.strip_prefix(sign)?)));
    let (sign, number) = word.or_else(sign).unwrap_or(("", nodes));
    let number: u32 = number.trim().parse().map_err(|_| wrong())?;
    Ok(match sign {
        ">=" => 1 >= number,
        "<=" => 1 <= number,
        ">" => 1 > number,
        "<" => 1 < number,
        _ => 1 == number,
    })
}

fn health(node: &Node, call: &mut Call) -> Result<Reply, ApiError> {
    let targets = Names::targets(&node.cluster(), call)?;
    let (damaged, all) = damaged(node, targets.clone());
    let color = |is_damaged: bool| if is_damaged { "red" } else { "green" };
    let status = color(!damaged.is_empty());
    let level = call.params.get("level").unwrap_or("cluster");
    let enough = call.params.get("wait_for_nodes").map_or(Ok(true), is_enough)?;
    let rank = |color: &str| ["green", "yellow", "red"].iter().position(|known| *known == color);
    let wanted = match call.params.get("wait_for_status") {
        None => 2,
        Some(wanted) => rank(&wanted.to_lowercase())
            .ok_or_else(|| ApiError::argument(format!("unknown cluster health status [{wanted}]")))?,
    };
    let late = !enough || rank(status) > Some(wanted);
    let shards = |all: usize, damaged: usize| {
        json!({
            "active_primary_shards": all - damaged, "active_shards": all - damaged, "relocating_shards": 0,
            "initializing_shards": 0, "unassigned_shards": damaged,
        })
    };
    let mut answer = json!({
        "cluster_name": node.cluster_name,
        "status": status,
        "timed_out": late,
        "number_of_nodes": 1,
        "number_of_data_nodes": 1,
        "discovered_master": true,
        "discovered_cluster_manager": true,
        "delayed_unassigned_shards": 0,
        "number_of_pending_tasks": 0,
        "number_of_in_flight_fetch": 0,
        "task_max_waiting_in_queue_millis": 0,
        "active_shards_percent_as_number": percent(all - damaged.len(), all),
    });
    super::extend(&mut answer, shards(all, damaged.len()));
    if level == "indices" || level == "shards" {
        let of = |target: Target| {
            let is_damaged = damaged.contains(&target.index);
            let mut told =
                json!({"status": color(is_damaged), "number_of_shards": 1, "number_of_replicas": 0});
            super::extend(&mut told, shards(1, usize::from(is_damaged)));
            if level == "shards" {
                let mut shard = json!({"status": color(is_damaged), "primary_active": !is_damaged});
                super::extend(&mut shard, shards(1, usize::from(is_damaged)));
                told["shards"] = json!({"0": shard});
            }
            (target.index, told)
        };
        answer["indices"] = Value::Object(targets.into_iter().map(of).collect());
    }
    // Nothing that is waited for comes by itself.
    let code = if late { StatusCode::REQUEST_TIMEOUT } else { StatusCode::OK };
    Ok(Reply::json(answer).with_status(code))
}
