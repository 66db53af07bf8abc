//! Figures of indexes, and what they are made of.

use super::{nodes, route, tables};
use crate::call::{Call, Reply};
use crate::cluster::Names;
use crate::error::ApiError;
use crate::node::Node;
use crate::route::{Role, Route, Verb};
use lanewise_engine::table::Watched;
use serde_json::{Map, Value, json};

const STATS: [&str; 10] = [
    "ignore_unavailable",
    "allow_no_indices",
    "expand_wildcards",
    "level",
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
        &["/_stats", "/_stats/{metric}", "/{index}/_stats", "/{index}/_stats/{metric}"],
        &STATS,
        stats,
        "figures of indexes since the node started",
    ),
    route(
        Role::Read,
        &[Verb::Get],
        &["/_segments", "/{index}/_segments"],
        &["ignore_unavailable", "allow_no_indices", "expand_wildcards", "verbose"],
        segments,
        "the segments of indexes",
    ),
    route(
        Role::Read,
        &[Verb::Get, Verb::Post],
        &["/_search_shards", "/{index}/_search_shards"],
        &["ignore_unavailable", "allow_no_indices", "expand_wildcards", "local", "preference", "routing"],
        search_shards,
        "where a search would go: to the one node",
    ),
    route(
        Role::Read,
        &[Verb::Get],
        &["/_recovery", "/{index}/_recovery"],
        &["active_only", "detailed"],
        recovery,
        "how indexes came to the node: from its own disk",
    ),
];

/// What can be asked for; in the request merges and segments are called so too.
const PARTS: [&str; 9] =
    ["docs", "store", "indexing", "get", "search", "merges", "refresh", "flush", "segments"];

/// An index's figures.
fn of_one(node: &Node, index: &str, table: &Watched) -> Value {
    let count = node.counts.of(index);
    let (segments, work) = (table.segments(), table.work_done());
    let deleted: usize = segments.iter().map(|segment| segment.deleted).sum();
    json!({
        "docs": {"count": table.len(), "deleted": deleted},
        "store": {"size_in_bytes": node.bytes_of(index), "reserved_in_bytes": 0},
        "indexing": {
            "index_total": count.indexed.times(), "index_time_in_millis": count.indexed.millis(), "index_current": 0,
            "delete_total": count.deleted.times(), "delete_time_in_millis": count.deleted.millis(),
            "is_throttled": false, "throttle_time_in_millis": 0,
        },
        "get": {"total": count.got.times(), "time_in_millis": count.got.millis()},
        "search": {"query_total": count.searched.times(), "query_time_in_millis": count.searched.millis()},
        "merges": {
            "total": work.merges, "total_time_in_millis": work.merging.as_millis() as u64,
            "total_docs": work.merged_rows, "total_size_in_bytes": work.merged_bytes,
            "total_throttled_time_in_millis": 0,
        },
        // Nothing is to be refreshed: writes are seen at once.
        "refresh": {"total": 0, "total_time_in_millis": 0},
        "flush": {"total": work.flushes, "total_time_in_millis": work.flushing.as_millis() as u64},
        "segments": {"count": segments.iter().filter(|segment| segment.live + segment.deleted > 0).count()},
    })
}

/// Of all indexes that can be opened together.
pub(super) fn of_all(node: &Node) -> Result<Value, ApiError> {
    let cluster = node.cluster();
    let mut sum = Value::Null;
    for target in Names::default().resolve(&cluster, "")? {
        if let Ok(table) = node.table(&target.index) {
            add(&mut sum, &of_one(node, &target.index, &table));
        }
    }
    Ok(if sum.is_null() { json!({}) } else { sum })
}

/// Adds the numbers of `more` to those of the same names.
pub(super) fn add(sum: &mut Value, more: &Value) {
    match (sum, more) {
        (sum @ Value::Null, more) => *sum = more.clone(),
        (Value::Object(sum), Value::Object(more)) => {
            more.iter().for_each(|(name, value)| add(sum.entry(name).or_insert(Value::Null), value));
        }
        (sum @ Value::Number(_), Value::Number(more)) => {
            *sum = json!(sum.as_u64().unwrap_or(0) + more.as_u64().unwrap_or(0));
        }
        _ => {}
    }
}

/// The place of an index's one shard.
fn routing(node: &Node) -> Value {
    json!({"state": "STARTED", "primary": true, "node": node.id(), "relocating_node": null})
}

fn stats(node: &Node, call: &mut Call) -> Result<Reply, ApiError> {
    let cluster = node.cluster();
    let parts: Option<Vec<&str>> = match call.name("metric") {
        None => None,
        Some(metrics) if metrics.split(',').any(|metric| metric == "_all") => None,
        Some(metrics) => {
            let part =
                |metric| PARTS.iter().find(|part| **part == metric || part.strip_suffix('s') == Some(metric));
            let wrong = |metric| {
                ApiError::argument(format!(
                    "request [/_stats/{metrics}] contains unrecognized metric: [{metric}]: it takes {}",
                    PARTS.join(", ")
                ))
            };
            Some(
                metrics
                    .split(',')
                    .map(|metric| part(metric).copied().ok_or_else(|| wrong(metric)))
                    .collect::<Result<_, _>>()?,
            )
        }
    };
    let level = call.params.get("level").unwrap_or("indices");
    if !["cluster", "indices", "shards"].contains(&level) {
        return Err(ApiError::argument(format!(
            "level parameter must be one of [cluster] or [indices] or [shards] but was [{level}]"
        )));
    }
    let (mut sum, mut each) = (Value::Null, Map::new());
    let all = tables(node, call)?;
    for (index, table) in &all {
        let mut figures = of_one(node, index, table);
        if let (Some(parts), Some(figures)) = (&parts, figures.as_object_mut()) {
            figures.retain(|part, _| parts.contains(&part.as_str()));
        }
        add(&mut sum, &figures);
        let mut told = json!({"uuid": cluster.indices[index].uuid, "primaries": figures, "total": figures});
        if level == "shards" {
            figures["routing"] = routing(node);
            told["shards"] = json!({"0": [figures]});
        }
        each.insert(index.clone(), told);
    }
    let sum = if sum.is_null() { json!({}) } else { sum };
    let mut answer = json!({
        "_shards": {"total": all.len(), "successful": all.len(), "failed": 0},
        "_all": {"primaries": sum, "total": sum},
    });
    if level != "cluster" {
        answer["indices"] = Value::Object(each);
    }
    Ok(Reply::json(answer))
}

fn segments(node: &Node, call: &mut Call) -> Result<Reply, ApiError> {
    let all = tables(node, call)?;
    let mut each = Map::new();
    for (index, table) in &all {
        let segments = table.segments();
        let sealed = segments.iter().filter(|segment| segment.sealed).count();
        let told: Map<String, Value> = segments
            .iter()
            .map(|segment| {
                let number = segment.segment.0;
                let told = json!({
                    "generation": number, "num_docs": segment.live, "deleted_docs": segment.deleted,
                    "committed": segment.sealed, "search": true,
                });
                (format!("_{number}"), told)
            })
            .collect();
        let shard = json!({
            "routing": routing(node), "num_committed_segments": sealed, "num_search_segments": segments.len(),
            "segments": told,
        });
        each.insert(index.clone(), json!({"shards": {"0": [shard]}}));
    }
    Ok(Reply::json(json!({
        "_shards": {"total": all.len(), "successful": all.len(), "failed": 0}, "indices": each,
    })))
}

fn search_shards(node: &Node, call: &mut Call) -> Result<Reply, ApiError> {
    let targets = Names::targets(&node.cluster(), call)?;
    let mut indices = Map::new();
    let mut shards = Vec::new();
    for target in &targets {
        let told = match &target.filters[..] {
            [] => json!({}),
            [one] => json!({"filter": one}),
            several => json!({"filter": {"bool": {"should": several}}}),
        };
        indices.insert(target.index.clone(), told);
        let mut shard = routing(node);
        shard["index"] = json!(target.index);
        shard["shard"] = json!(0);
        shards.push(json!([shard]));
    }
    let who = Map::from_iter([(node.id(), nodes::who(node))]);
    Ok(Reply::json(json!({"nodes": who, "indices": indices, "shards": shards})))
}

fn recovery(node: &Node, call: &mut Call) -> Result<Reply, ApiError> {
    let cluster = node.cluster();
    let mut each = Map::new();
    if call.params.flag("active_only", false)? {
        return Ok(Reply::json(Value::Object(each)));
    }
    for target in Names::targets(&cluster, call)? {
        let bytes = node.bytes_of(&target.index);
        let who = nodes::who(node);
        let shard = json!({
            "id": 0, "type": "EXISTING_STORE", "stage": "DONE", "primary": true,
            "start_time_in_millis": cluster.indices[&target.index].created_ms,
            "source": {}, "target": {"id": node.id(), "host": who["host"], "ip": who["ip"], "name": who["name"]},
            "index": {"size": {"total_in_bytes": bytes, "reused_in_bytes": bytes, "recovered_in_bytes": 0, "percent": "100.0%"}},
        });
        each.insert(target.index, json!({"shards": [shard]}));
    }
    Ok(Reply::json(Value::Object(each)))
}
