//! Settings of the whole node, as `_cluster/settings` has them: by full name, values as strings.

use crate::cluster::{Cluster, matches};
use crate::error::ApiError;
use crate::node::Node;
use crate::settings::{Flat, Form};
use lanewise_engine::MemoryLimit;
use std::collections::BTreeMap;

/// How much memory tables may take.
const LIMIT: &str = "knn.memory.circuit_breaker.limit";
/// Which indexes a write may make.
const AUTO_CREATE: &str = "action.auto_create_index";
/// Whether indexes are dropped by their whole names alone.
const BY_NAME: &str = "action.destructive_requires_name";

/// The settings that are known. Those beside the three above are kept and given back: nothing here follows them.
const KNOWN: [(&str, Form); 17] = [
    (AUTO_CREATE, Form::Any),
    (BY_NAME, Form::Flag),
    (LIMIT, Form::Memory),
    ("cluster.max_shards_per_node", Form::Number),
    ("cluster.routing.allocation.enable", Form::Any),
    ("cluster.routing.allocation.disk.threshold_enabled", Form::Flag),
    ("cluster.routing.allocation.disk.watermark.low", Form::Any),
    ("cluster.routing.allocation.disk.watermark.high", Form::Any),
    ("cluster.routing.allocation.disk.watermark.flood_stage", Form::Any),
    ("knn.algo_param.index_thread_qty", Form::Number),
    ("knn.cache.item.expiry.enabled", Form::Flag),
    ("knn.cache.item.expiry.minutes", Form::Any),
    ("knn.circuit_breaker.unset.percentage", Form::Number),
    ("knn.memory.circuit_breaker.enabled", Form::Flag),
    ("knn.plugin.enabled", Form::Flag),
    ("search.concurrent_segment_search.enabled", Form::Flag),
    ("search.concurrent_segment_search.mode", Form::Any),
];

/// The names of the settings that are known.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    KNOWN.iter().map(|(name, _)| *name)
}

/// Refuses settings that are not known, or have no such value.
///
/// # Errors
/// Naming the first.
pub(crate) fn check(kind: &str, given: &Flat) -> Result<(), ApiError> {
    for (name, value) in given {
        match (KNOWN.iter().find(|(known, _)| known == name), value) {
            (Some((_, form)), Some(value)) => form.check(name, value)?,
            (Some(_), None) => {}
            (None, None) if name.contains('*') => {}
            (None, _) => {
                return Err(ApiError::argument(format!("{kind} setting [{name}], not recognized")));
            }
        }
    }
    Ok(())
}

/// Sets what has a value, and takes back what has none.
pub(crate) fn set(settings: &mut BTreeMap<String, String>, given: &Flat) {
    for (name, value) in given {
        match value {
            Some(value) => drop(settings.insert(name.clone(), value.clone())),
            None => settings.retain(|known, _| !matches(name, known)),
        }
    }
}

/// Does as the settings say.
pub(crate) fn apply(node: &Node) {
    let cluster = node.cluster();
    let limit = get(&cluster, LIMIT).and_then(|limit| limit.parse().ok());
    node.engine.admission().set_limit(limit.unwrap_or(MemoryLimit::Bytes(node.limit_bytes)));
}

fn get<'a>(cluster: &'a Cluster, name: &str) -> Option<&'a str> {
    cluster.transient.get(name).or(cluster.settings.get(name)).map(String::as_str)
}

/// Whether a write may make the index `name`.
pub(crate) fn makes(cluster: &Cluster, name: &str) -> bool {
    match get(cluster, AUTO_CREATE) {
        None | Some("true") => true,
        Some("false") => false,
        // The first pattern that the name has decides.
        Some(patterns) => {
            patterns.split(',').map(str::trim).find_map(|pattern| match pattern.strip_prefix('-') {
                Some(pattern) => matches(pattern, name).then_some(false),
                None => matches(pattern.strip_prefix('+').unwrap_or(pattern), name).then_some(true),
            }) == Some(true)
        }
    }
}

/// Whether indexes are dropped by their whole names alone.
pub(crate) fn drops_by_name(cluster: &Cluster) -> bool {
    get(cluster, BY_NAME) == Some("true")
}
