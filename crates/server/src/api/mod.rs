//! What each request does, by what it is about.

mod alias;
mod bulk;
mod by_query;
mod cat;
mod cluster;
mod console;
mod document;
mod index;
mod knn;
mod metrics;
mod nodes;
mod openapi;
mod root;
mod search;
mod snapshot;
mod state;
mod stats;
mod task;
mod template;
mod update;
mod upkeep;

pub(crate) use search::{KEYS as SEARCH_KEYS, Points, Scrolls};

use crate::call::{Call, Params};
use crate::cluster::{Names, Target};
use crate::error::ApiError;
use crate::node::Node;
use crate::route::{Handler, Reads, Role, Route, Verb};
use lanewise_engine::table::Watched;
use serde_json::Value;
use std::sync::Arc;

/// Every route, by subject.
pub(crate) static ROUTES: &[&[Route]] = &[
    root::ROUTES,
    cluster::ROUTES,
    state::ROUTES,
    nodes::ROUTES,
    task::ROUTES,
    index::ROUTES,
    alias::ROUTES,
    template::ROUTES,
    upkeep::ROUTES,
    stats::ROUTES,
    document::ROUTES,
    update::ROUTES,
    bulk::ROUTES,
    by_query::ROUTES,
    search::ROUTES,
    cat::ROUTES,
    snapshot::ROUTES,
    knn::ROUTES,
    openapi::ROUTES,
    metrics::ROUTES,
    console::ROUTES,
];

/// A route whose body is read before its handler runs.
const fn route(
    role: Role,
    verbs: &'static [Verb],
    paths: &'static [&'static str],
    params: &'static [&'static str],
    handler: Handler,
    says: &'static str,
) -> Route {
    Route { verbs, paths, params, role, reads: Reads::Whole, handler, at_once: None, says }
}

/// The open indexes that an expression names, with their tables.
fn targets(node: &Node, expression: &str, params: &Params) -> Result<Vec<(Target, Arc<Watched>)>, ApiError> {
    let cluster = node.cluster();
    let names = Names::of(params)?;
    let targets = names.resolve(&cluster, expression)?.into_iter();
    let open = targets.filter(|target| !(names.ignore_unavailable && cluster.indices[&target.index].closed));
    open.map(|target| {
        let (_, table) = document::opened(node, &cluster, &target.index)?;
        Ok((target, table))
    })
    .collect()
}

/// The tables of the open indexes that a request's path names, with the indexes' names.
fn tables(node: &Node, call: &Call) -> Result<Vec<(String, Arc<Watched>)>, ApiError> {
    let targets = targets(node, call.name("index").unwrap_or_default(), &call.params)?;
    Ok(targets.into_iter().map(|(target, table)| (target.index, table)).collect())
}

/// Adds the fields of `more`.
fn extend(told: &mut Value, more: Value) {
    if let (Some(told), Value::Object(more)) = (told.as_object_mut(), more) {
        told.extend(more);
    }
}
