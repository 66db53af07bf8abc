//! Search pipelines by name: how the scores of hybrid queries are made one.

use super::hybrid;
use crate::call::{Call, Params, Reply};
use crate::cluster::matches;
use crate::error::ApiError;
use crate::node::Node;
use axum::http::StatusCode;
use serde_json::{Map, Value, json};
use std::borrow::Cow;

/// The pipeline of an index whose searches name none.
pub(crate) const DEFAULT: &str = "index.search.default_pipeline";
/// Stands for no pipeline.
const NONE: &str = "_none";

/// A search's body with the pipeline in place of its name.
///
/// # Errors
/// If there is none of that name.
pub(super) fn resolved<'a>(
    node: &Node,
    index: &str,
    body: &'a Map<String, Value>,
    params: &Params,
) -> Result<Cow<'a, Map<String, Value>>, ApiError> {
    let cluster = node.cluster();
    let usual = || cluster.indices.get(index)?.settings.get(DEFAULT).map(String::as_str);
    let name = match (params.get("search_pipeline"), body.get("search_pipeline")) {
        (Some(name), _) => name,
        (None, Some(Value::String(name))) => name.as_str(),
        (None, Some(_)) => return Ok(Cow::Borrowed(body)),
        (None, None) => usual().unwrap_or(NONE),
    };
    let mut body = Cow::Borrowed(body);
    if name == NONE {
        if body.contains_key("search_pipeline") {
            body.to_mut().remove("search_pipeline");
        }
        return Ok(body);
    }
    let pipeline = cluster.pipelines.get(name);
    let missing = || ApiError::argument(format!("Pipeline {name} is not defined"));
    body.to_mut().insert("search_pipeline".to_owned(), pipeline.ok_or_else(missing)?.clone());
    Ok(body)
}

pub(super) fn put(node: &Node, call: &mut Call) -> Result<Reply, ApiError> {
    let (name, body) = (call.name("id").unwrap_or_default().to_owned(), Value::Object(call.object()?));
    hybrid::pipeline(Some(&body))?;
    node.store.change(|cluster| {
        cluster.pipelines.insert(name, body);
        Ok(())
    })?;
    Ok(Reply::json(json!({"acknowledged": true})))
}

pub(super) fn get(node: &Node, call: &mut Call) -> Result<Reply, ApiError> {
    let names = call.name("id").unwrap_or("*");
    let found = |name: &str| names.split(',').any(|pattern| matches(pattern, name));
    let cluster = node.cluster();
    let all = cluster.pipelines.iter().filter(|(name, _)| found(name));
    let all: Map<String, Value> = all.map(|(name, body)| (name.clone(), body.clone())).collect();
    let there = !all.is_empty() || names.contains('*');
    let status = if there { StatusCode::OK } else { StatusCode::NOT_FOUND };
    Ok(Reply::json(Value::Object(all)).with_status(status))
}

pub(super) fn delete(node: &Node, call: &mut Call) -> Result<Reply, ApiError> {
    let name = call.name("id").unwrap_or_default();
    node.store.change(|cluster| match cluster.pipelines.remove(name) {
        Some(_) => Ok(()),
        None => {
            let what = format!("pipeline [{name}] is missing");
            Err(ApiError::new(StatusCode::NOT_FOUND, "resource_not_found_exception", what))
        }
    })?;
    Ok(Reply::json(json!({"acknowledged": true})))
}
