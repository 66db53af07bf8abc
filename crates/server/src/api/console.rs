//! The console at `/_lanewise`: a page of our own, without anything from elsewhere, and what it asks for once a second.

use super::route;
use crate::call::{Call, Content, Reply};
use crate::error::ApiError;
use crate::metrics::{self, Work};
use crate::node::{Node, now_ms};
use crate::route::{Role, Route, Verb};
use axum::http::StatusCode;
use lanewise_engine::scheduler::{Homes, WorkerStats};
use lanewise_engine::table::{Share, Watched};
use lanewise_engine::{Purpose, TableState};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

pub(super) const ROUTES: &[Route] = &[
    route(Role::Read, &[Verb::Get], &["/_lanewise"], &[], page, "the console, for browsers"),
    route(Role::Read, &[Verb::Get], &["/_lanewise/console.js"], &[], script, "of the console"),
    route(Role::Read, &[Verb::Get], &["/_lanewise/console.css"], &[], style, "of the console"),
    route(Role::Read, &[Verb::Get], &["/_lanewise/live"], &[], live, "what the console shows, as JSON"),
];

/// The most indexes that are told of: the first by name.
const SHOWN: usize = 200;

fn asset(kind: &'static str, text: &'static str) -> Result<Reply, ApiError> {
    Ok(Reply { status: StatusCode::OK, content: Content::Asset { kind, text } })
}

fn page(_: &Node, _: &mut Call) -> Result<Reply, ApiError> {
    asset("text/html; charset=UTF-8", include_str!("../../console/index.html"))
}

fn script(_: &Node, _: &mut Call) -> Result<Reply, ApiError> {
    asset("text/javascript; charset=UTF-8", include_str!("../../console/console.js"))
}

fn style(_: &Node, _: &mut Call) -> Result<Reply, ApiError> {
    asset("text/css; charset=UTF-8", include_str!("../../console/console.css"))
}

fn live(node: &Node, _: &mut Call) -> Result<Reply, ApiError> {
    let (stats, homes) = (node.pool.stats(), node.pool.homes());
    let open: BTreeMap<_, _> = node.engine.opened().into_iter().collect();
    let listed = node.engine.list();
    let more = listed.len().saturating_sub(SHOWN);
    let indices = listed.into_iter().take(SHOWN).map(|one| {
        let table = open.get(&one.name).map(|table| &**table);
        index(node, &one.name, &one.state, table, &homes)
    });
    let work: Map<String, Value> = Work::ALL
        .into_iter()
        .map(|work| (work.name().to_owned(), json!(node.metrics.counts(work))))
        .collect();
    Ok(Reply::json(json!({
        "name": node.name, "cluster": node.cluster_name, "version": env!("CARGO_PKG_VERSION"),
        "uptime_ms": now_ms().saturating_sub(node.began_ms),
        "ends_us": metrics::BUCKETS, "work": work,
        "workers": stats.workers.iter().map(|(chiplet, of)| worker(chiplet.0, of)).collect::<Vec<_>>(),
        // With one chiplet nothing is placed.
        "mapped": node.pool.scheduler().layout().chiplets() > 1,
        "refused": stats.refused, "epoch": stats.epoch,
        "memory": memory(node),
        "indices": indices.collect::<Vec<_>>(), "more": more,
    })))
}

fn worker(chiplet: u32, stats: &WorkerStats) -> Value {
    json!({
        "chiplet": chiplet, "tasks": stats.tasks, "busy_ns": stats.busy_ns, "waited_ns": stats.waited_ns,
        "bytes": stats.bytes, "stolen_near": stats.stolen_near, "stolen_across": stats.stolen_across,
        "queued": stats.queued, "running": stats.running,
    })
}

fn memory(node: &Node) -> Value {
    let admission = node.engine.admission();
    let purposes = Purpose::ALL.iter().zip(admission.in_use().0);
    let predicted: Map<String, Value> =
        purposes.map(|(purpose, bytes)| (purpose.name().to_owned(), json!(bytes))).collect();
    json!({
        "limit": Some(admission.limit()).filter(|&limit| limit < u64::MAX),
        "predicted": predicted, "waiting": admission.waiting(),
        "resident": metrics::resident().map(|(_, resident)| resident),
    })
}

fn index(node: &Node, name: &str, state: &TableState, table: Option<&Watched>, homes: &Homes) -> Value {
    let (state, why) = match state {
        TableState::Closed => ("closed", None),
        TableState::Busy => ("busy", None),
        TableState::Open { .. } => ("open", None),
        TableState::Damaged { why } => ("damaged", Some(why)),
    };
    let mut told = json!({
        "name": name, "state": state, "why": why.map(|why| &**why), "documents": null, "deleted": null, "segments": null,
        "bytes": null, "merges": null, "homes": [],
        "searches": node.metrics.counts_of(name, Work::Search), "recall": node.recall.of(name),
    });
    if let Some(table) = table {
        let segments = table.segments();
        let filled = segments.iter().filter(|one| one.live + one.deleted > 0).count();
        let bytes: u64 = segments.iter().map(|one| one.bytes).sum();
        told["documents"] = json!(table.len());
        told["deleted"] = json!(segments.iter().map(|one| one.deleted).sum::<usize>());
        told["segments"] = json!(filled);
        told["bytes"] = json!(bytes);
        told["merges"] = json!(table.work_done().merges);
        told["homes"] = match node.pool.scheduler().layout().chiplets() {
            1 => json!([{"chiplet": 0, "held": bytes, "read": 0}]),
            _ => table.shares(homes).iter().map(home).collect(),
        };
    }
    told
}

fn home(share: &Share) -> Value {
    json!({"chiplet": share.chiplet.0, "held": share.held, "read": share.read})
}
