//! What the cluster of one knows, and its settings.

use super::{nodes, route, stats};
use crate::call::{Call, Reply};
use crate::cluster::{Names, matches};
use crate::cluster_settings;
use crate::error::ApiError;
use crate::node::{Node, now_ms};
use crate::route::{Role, Route, Verb};
use crate::settings::{flattened, shown};
use lanewise_engine::allowed;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

const SETTINGS: [&str; 5] =
    ["flat_settings", "include_defaults", "timeout", "cluster_manager_timeout", "master_timeout"];
const STATE: [&str; 10] = [
    "local",
    "cluster_manager_timeout",
    "master_timeout",
    "flat_settings",
    "wait_for_metadata_version",
    "wait_for_timeout",
    "ignore_unavailable",
    "allow_no_indices",
    "expand_wildcards",
    "timeout",
];

pub(super) const ROUTES: &[Route] = &[
    route(Role::Read, &[Verb::Get], &["/_cluster/settings"], &SETTINGS, get_settings, "settings of the node"),
    route(
        Role::Admin,
        &[Verb::Put],
        &["/_cluster/settings"],
        &SETTINGS,
        put_settings,
        "changes settings of the node while it serves",
    ),
    route(
        Role::Read,
        &[Verb::Get],
        &["/_cluster/state", "/_cluster/state/{metric}", "/_cluster/state/{metric}/{index}"],
        &STATE,
        state,
        "what is known beside documents",
    ),
    route(
        Role::Read,
        &[Verb::Get],
        &["/_cluster/stats", "/_cluster/stats/nodes/{which}"],
        &["flat_settings", "timeout"],
        statistics,
        "figures of all indexes and the node",
    ),
    route(
        Role::Read,
        &[Verb::Get],
        &["/_resolve/index/{name}"],
        &["expand_wildcards"],
        resolve,
        "which indexes and aliases have a name",
    ),
    route(
        Role::Read,
        &[Verb::Get],
        &["/_cluster/pending_tasks"],
        &["local", "cluster_manager_timeout", "master_timeout"],
        pending,
        "none: changes are done when they are acknowledged",
    ),
];

fn get_settings(node: &Node, call: &mut Call) -> Result<Reply, ApiError> {
    let flat = call.params.flag("flat_settings", false)?;
    let cluster = node.cluster();
    let mut answer =
        json!({"persistent": shown(&cluster.settings, flat), "transient": shown(&cluster.transient, flat)});
    if call.params.flag("include_defaults", false)? {
        let name = [
            ("cluster.name".to_owned(), node.cluster_name.clone()),
            ("node.name".to_owned(), node.name.clone()),
        ];
        answer["defaults"] = shown(&name.into(), flat);
    }
    Ok(Reply::json(answer))
}

fn put_settings(node: &Node, call: &mut Call) -> Result<Reply, ApiError> {
    let body = call.object()?;
    let flat = call.params.flag("flat_settings", false)?;
    if let Some(other) = body.keys().find(|key| !["persistent", "transient"].contains(&key.as_str())) {
        return Err(ApiError::parsing(format!("[cluster_update_settings_request] unknown field [{other}]")));
    }
    let part = |kind: &str| {
        let given = match body.get(kind) {
            None | Some(Value::Null) => return Ok(Default::default()),
            Some(Value::Object(given)) => flattened(given)?,
            Some(_) => return Err(ApiError::parsing(format!("[{kind}]: give an object"))),
        };
        cluster_settings::check(kind, &given).map(|()| given)
    };
    let (persistent, transient) = (part("persistent")?, part("transient")?);
    if persistent.is_empty() && transient.is_empty() {
        return Err(ApiError::argument("no settings to update"));
    }
    node.store.change(|cluster| {
        cluster_settings::set(&mut cluster.settings, &persistent);
        cluster_settings::set(&mut cluster.transient, &transient);
        Ok(())
    })?;
    cluster_settings::apply(node);
    let told = |given: crate::settings::Flat| {
        shown(&given.into_iter().filter_map(|(name, value)| Some((name, value?))).collect(), flat)
    };
    Ok(Reply::json(
        json!({"acknowledged": true, "persistent": told(persistent), "transient": told(transient)}),
    ))
}

fn state(node: &Node, call: &mut Call) -> Result<Reply, ApiError> {
    const METRICS: [&str; 6] = ["version", "master_node", "blocks", "nodes", "metadata", "routing_table"];
    let cluster = node.cluster();
    let flat = call.params.flag("flat_settings", false)?;
    let (mut metadata, mut routing) = (Map::new(), Map::new());
    for target in Names::targets(&cluster, call)? {
        let index = &cluster.indices[&target.index];
        metadata.insert(
            target.index.clone(),
            json!({
                "state": if index.closed { "close" } else { "open" },
                "settings": shown(&index.settings, flat), "mappings": {"_doc": index.mappings},
                "aliases": index.aliases.keys().collect::<Vec<_>>(),
            }),
        );
        let shard = json!({
            "state": "STARTED", "primary": true, "node": node.id(), "relocating_node": null, "shard": 0,
            "index": target.index,
        });
        routing.insert(target.index, json!({"shards": {"0": [shard]}}));
    }
    let mut answer = json!({
        "cluster_name": node.cluster_name, "cluster_uuid": cluster.uuid,
        "version": cluster.version, "state_uuid": cluster.uuid,
        "master_node": node.id(), "cluster_manager_node": node.id(),
        "blocks": {}, "nodes": Map::from_iter([(node.id(), nodes::who(node))]),
        "metadata": {
            "cluster_uuid": cluster.uuid, "cluster_uuid_committed": true, "templates": {}, "indices": metadata,
        },
        "routing_table": {"indices": routing},
    });
    let metrics: Vec<&str> = call.name("metric").unwrap_or("_all").split(',').collect();
    if let Some(fields) = answer.as_object_mut()
        && !metrics.contains(&"_all")
    {
        let has = |name: &str| {
            metrics.contains(&name) || (name == "master_node" && metrics.contains(&"cluster_manager_node"))
        };
        let of = |field: &str| match field {
            "state_uuid" => "version",
            "cluster_manager_node" => "master_node",
            field => METRICS.iter().find(|metric| **metric == field).copied().unwrap_or_default(),
        };
        fields.retain(|field, _| of(field).is_empty() || has(of(field)));
    }
    Ok(Reply::json(answer))
}

fn statistics(node: &Node, _: &mut Call) -> Result<Reply, ApiError> {
    let cluster = node.cluster();
    let count = cluster.indices.len();
    let mut indices = stats::of_all(node)?;
    indices["count"] = json!(count);
    indices["shards"] = json!({"total": count, "primaries": count, "replication": 0.0});
    Ok(Reply::json(json!({
        "_nodes": {"total": 1, "successful": 1, "failed": 0},
        "cluster_name": node.cluster_name, "cluster_uuid": cluster.uuid, "timestamp": now_ms(),
        "status": super::cluster::status(node)?,
        "indices": indices,
        "nodes": {
            "count": {"total": 1, "data": 1, "cluster_manager": 1, "master": 1, "ingest": 1, "coordinating_only": 0},
            "versions": [super::root::OPENSEARCH],
            "os": {"available_processors": allowed(), "allocated_processors": allowed()},
            "plugins": [nodes::plugin()],
            "fs": {"free_in_bytes": node.free_bytes(), "available_in_bytes": node.free_bytes()},
        },
    })))
}

fn resolve(node: &Node, call: &mut Call) -> Result<Reply, ApiError> {
    let cluster = node.cluster();
    let patterns: Vec<&str> = call.name("name").unwrap_or_default().split(',').collect();
    let meant = |name: &str| patterns.iter().any(|pattern| *pattern == "_all" || matches(pattern, name));
    let mut aliases: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut indices = Vec::new();
    for (name, index) in &cluster.indices {
        if meant(name) {
            let state = if index.closed { "closed" } else { "open" };
            indices.push(json!({"name": name, "aliases": index.aliases.keys().collect::<Vec<_>>(), "attributes": [state]}));
        }
        for alias in index.aliases.keys().filter(|alias| meant(alias)) {
            aliases.entry(alias).or_default().push(name);
        }
    }
    let missing = |pattern: &&&str| {
        !pattern.contains('*') && **pattern != "_all" && {
            !cluster.indices.contains_key(**pattern) && cluster.with_alias(pattern).next().is_none()
        }
    };
    if let Some(missing) = patterns.iter().find(missing) {
        return Err(ApiError::no_index(missing));
    }
    let aliases: Vec<Value> =
        aliases.into_iter().map(|(name, indices)| json!({"name": name, "indices": indices})).collect();
    Ok(Reply::json(json!({"indices": indices, "aliases": aliases, "data_streams": []})))
}

fn pending(_: &Node, _: &mut Call) -> Result<Reply, ApiError> {
    Ok(Reply::json(json!({"tasks": []})))
}
