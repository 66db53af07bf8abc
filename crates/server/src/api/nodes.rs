//! The one node: who it is, and how it does.

use super::root::{LUCENE, OPENSEARCH};
use super::{extend, route, stats};
use crate::call::{Call, Reply};
use crate::cluster::matches;
use crate::error::ApiError;
use crate::machine::{Memory, Process, kernel, load};
use crate::node::{Node, now_ms};
use crate::route::{Role, Route, Verb};
use lanewise_engine::allowed;
use serde_json::{Map, Value, json};
use std::net::SocketAddr;

const PARAMS: [&str; 2] = ["flat_settings", "timeout"];
const STATS: [&str; 9] = [
    "timeout",
    "level",
    "types",
    "completion_fields",
    "fielddata_fields",
    "fields",
    "groups",
    "include_segment_file_sizes",
    "include_unloaded_segments",
];

pub(super) const ROUTES: &[Route] = &[
    route(
        Role::Read,
        &[Verb::Get],
        &["/_nodes", "/_nodes/{which}", "/_nodes/{which}/{metric}"],
        &PARAMS,
        info,
        "who the node is",
    ),
    route(
        Role::Read,
        &[Verb::Get],
        &[
            "/_nodes/stats",
            "/_nodes/stats/{metric}",
            "/_nodes/stats/{metric}/{part}",
            "/_nodes/{which}/stats",
            "/_nodes/{which}/stats/{metric}",
            "/_nodes/{which}/stats/{metric}/{part}",
        ],
        &STATS,
        statistics,
        "how the node does",
    ),
];

/// What a node can be asked for, beside who it is.
const INFO: [&str; 12] = [
    "settings",
    "os",
    "process",
    "jvm",
    "thread_pool",
    "transport",
    "http",
    "plugins",
    "ingest",
    "aggregations",
    "indices",
    "search_pipelines",
];

/// Where it listens, as others reach it.
pub(super) fn address(node: &Node) -> SocketAddr {
    let mut address = node.address.get().copied().unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], 9200)));
    if address.ip().is_unspecified() {
        address.set_ip([127, 0, 0, 1].into());
    }
    address
}

/// What every answer says of the node.
pub(super) fn who(node: &Node) -> Value {
    let address = address(node);
    json!({
        "name": node.name, "transport_address": address.to_string(), "host": address.ip().to_string(),
        "ip": address.ip().to_string(), "roles": ROLES,
    })
}

/// What the node does: all.
pub(super) const ROLES: [&str; 4] = ["cluster_manager", "data", "ingest", "remote_cluster_client"];

/// The answer for the one node, if it is among those that are asked for.
pub(super) fn of_one(node: &Node, which: Option<&str>, told: Value) -> Value {
    let id = node.id();
    let is_meant = which.is_none_or(|which| {
        which.split(',').any(|one| {
            let role = one.split_once(':').is_some_and(|(role, is)| is == "true" && ROLES.contains(&role));
            role || ["_all", "_local", "_cluster_manager", "_master"].contains(&one)
                || matches(one, &id)
                || matches(one, &node.name)
                || address(node).ip().to_string() == one
        })
    });
    let count = usize::from(is_meant);
    let nodes = if is_meant { Map::from_iter([(id, told)]) } else { Map::new() };
    json!({
        "_nodes": {"total": count, "successful": count, "failed": 0},
        "cluster_name": node.cluster_name, "nodes": nodes,
    })
}

/// Only these parts, beside who it is.
fn only(mut told: Value, parts: &[&str], metrics: Option<&str>) -> Value {
    let Some(metrics) = metrics else { return told };
    let wanted: Vec<&str> = metrics.split(',').collect();
    if !wanted.contains(&"_all")
        && let Some(fields) = told.as_object_mut()
    {
        fields.retain(|name, _| !parts.contains(&name.as_str()) || wanted.contains(&name.as_str()));
    }
    told
}

fn info(node: &Node, call: &mut Call) -> Result<Reply, ApiError> {
    let (mut which, mut metrics) = (call.name("which"), call.name("metric"));
    // One name alone is that of a node, or of what is asked for.
    if metrics.is_none() && which.is_some_and(|which| which.split(',').all(|name| INFO.contains(&name))) {
        (which, metrics) = (None, which);
    }
    let address = address(node);
    let mut told = who(node);
    let more = json!({
        "version": OPENSEARCH, "build_type": "lanewise", "build_hash": env!("CARGO_PKG_VERSION"),
        "lucene_version": LUCENE, "attributes": {},
        "settings": {"cluster": {"name": node.cluster_name}, "node": {"name": node.name}},
        "os": {
            "name": std::env::consts::OS, "pretty_name": std::env::consts::OS, "arch": std::env::consts::ARCH,
            "version": kernel(), "available_processors": allowed(), "allocated_processors": allowed(),
        },
        "process": {"id": std::process::id(), "mlockall": false},
        "transport": {"bound_address": [address.to_string()], "publish_address": address.to_string(), "profiles": {}},
        "http": {"bound_address": [address.to_string()], "publish_address": address.to_string()},
        "plugins": [plugin()], "modules": [], "ingest": {"processors": []},
    });
    extend(&mut told, more);
    Ok(Reply::json(of_one(node, which, only(told, &INFO, metrics))))
}

/// The plugin whose requests are answered: clients look for it.
pub(super) fn plugin() -> Value {
    json!({
        "name": "opensearch-knn", "version": format!("{OPENSEARCH}.0"), "opensearch_version": OPENSEARCH,
        "description": "k-NN, by Lanewise", "classname": "lanewise", "extended_plugins": [],
    })
}

/// What figures can be asked for.
const FIGURES: [&str; 9] =
    ["indices", "os", "process", "jvm", "thread_pool", "fs", "http", "breaker", "breakers"];

fn statistics(node: &Node, call: &mut Call) -> Result<Reply, ApiError> {
    let mut told = who(node);
    extend(&mut told, json!({"timestamp": now_ms(), "attributes": {}}));
    extend(&mut told, figures(node)?);
    // The answer has another name for it than the request.
    let metrics = call
        .name("metric")
        .map(|metrics| metrics.replace("breaker", "breakers").replace("breakerss", "breakers"));
    Ok(Reply::json(of_one(node, call.name("which"), only(told, &FIGURES, metrics.as_deref()))))
}

fn figures(node: &Node) -> Result<Value, ApiError> {
    let (process, memory) = (Process::now(), Memory::now());
    let used = memory.total.saturating_sub(memory.available);
    let [one, five, fifteen] = load().unwrap_or_default();
    let pool =
        json!({"used_in_bytes": 0, "max_in_bytes": 0, "peak_used_in_bytes": 0, "peak_max_in_bytes": 0});
    let collector = json!({"collection_count": 0, "collection_time_in_millis": 0});
    let admission = node.engine.admission();
    let free = node.free_bytes();
    let mut indices = stats::of_all(node)?;
    indices["search"]["scroll_current"] = json!(node.scrolls.len());
    indices["search"]["point_in_time_current"] = json!(node.points.len());
    Ok(json!({
        "indices": indices,
        "os": {
            "timestamp": now_ms(),
            "cpu": {"load_average": {"1m": one, "5m": five, "15m": fifteen}},
            "mem": {
                "total_in_bytes": memory.total, "free_in_bytes": memory.available, "used_in_bytes": used,
                "free_percent": memory.percent(memory.available), "used_percent": memory.percent(used),
            },
        },
        "process": {
            "timestamp": now_ms(), "open_file_descriptors": process.open_files,
            "mem": {"total_virtual_in_bytes": process.virtual_, "resident_in_bytes": process.resident},
        },
        // There is none: clients that compare its figures find no garbage collected.
        "jvm": {
            "timestamp": now_ms(), "uptime_in_millis": now_ms().saturating_sub(node.began_ms),
            "mem": {
                "heap_used_in_bytes": process.resident, "heap_max_in_bytes": memory.total,
                "heap_used_percent": memory.percent(process.resident), "pools": {"young": pool, "survivor": pool, "old": pool},
            },
            "threads": {"count": process.threads},
            "gc": {"collectors": {"young": collector, "old": collector}},
        },
        "fs": {"timestamp": now_ms(), "total": {"free_in_bytes": free, "available_in_bytes": free}},
        "breakers": {"parent": {
            "limit_size_in_bytes": admission.limit(), "estimated_size_in_bytes": admission.in_use().total(),
            "overhead": 1.0,
        }},
    }))
}
