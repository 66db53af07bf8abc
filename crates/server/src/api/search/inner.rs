//! `inner_hits` of `collapse`: beside the first hit of each value others that have it, found by searches of their own.

use super::asked::Asked;
use super::found::Found;
use super::hybrid::whole;
use super::{Searched, Sources};
use crate::call::Params;
use crate::error::ApiError;
use crate::node::Node;
use lanewise_engine::documents::Query;
use lanewise_engine::table::Request;
use serde_json::{Map, Value, json};

/// Hits, where nobody says how many.
const SIZE: usize = 3;
/// What one may say beside its name.
const KEYS: [&str; 10] = [
    "from",
    "size",
    "sort",
    "_source",
    "docvalue_fields",
    "fields",
    "stored_fields",
    "version",
    "seq_no_primary_term",
    "track_scores",
];

/// What is shown of one value's hits, by a name.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Inner {
    name: String,
    asked: Asked,
}

/// Reads `inner_hits`: one, or several by name.
pub(super) fn read(given: Option<&Value>) -> Result<Vec<Inner>, ApiError> {
    let all = match given {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(all)) => all.iter().collect(),
        Some(one) => vec![one],
    };
    let one = |given: &Value| {
        let wrong = |what: &str| ApiError::parsing(format!("[inner_hits] {what}"));
        let mut body = given.as_object().cloned().ok_or_else(|| wrong("give an object"))?;
        let Some(Value::String(name)) = body.remove("name") else { return Err(wrong("give a name")) };
        if let Some(other) = body.keys().find(|key| !KEYS.contains(&key.as_str())) {
            return Err(wrong(&format!("does not support [{other}]")));
        }
        body.entry("size").or_insert(json!(SIZE));
        Ok(Inner { name, asked: Asked::read(&body, &Params::default())? })
    };
    all.into_iter().map(one).collect()
}

/// Adds to the hits of an answer what is to be shown beside them.
pub(super) fn add(node: &Node, all: &[Searched], asked: &Asked, answer: &mut Value) -> Result<(), ApiError> {
    let Some(collapse) = asked.collapse.as_ref().filter(|collapse| !collapse.inner.is_empty()) else {
        return Ok(());
    };
    for hit in answer["hits"]["hits"].as_array_mut().into_iter().flatten() {
        let field = collapse.field.clone();
        let group = match hit["fields"][&field][0].clone() {
            Value::Null => none_of(Query::Exists { field }),
            value => Query::Term { field, value },
        };
        let mut shown = Map::new();
        for Inner { name, asked: inner } in &collapse.inner {
            let found = find(node, all, asked, inner, &group)?;
            let mut told = found.answer(inner, inner.shown(), 0)?;
            shown.insert(name.clone(), json!({"hits": told["hits"].take()}));
        }
        hit["inner_hits"] = Value::Object(shown);
    }
    Ok(())
}

/// What a search finds of a group.
fn find(
    node: &Node,
    all: &[Searched],
    asked: &Asked,
    inner: &Asked,
    group: &Query,
) -> Result<Found, ApiError> {
    let cluster = node.cluster();
    let mut found = Found::new(all.len());
    for one in all {
        let settings = cluster.indices.get(&one.index).map(|index| &index.settings);
        let outer = asked.request(settings, one)?;
        let after = asked.post_filter(&one.about())?;
        let min_score = outer.min_score;
        let request = Request {
            query: Some(whole(outer)),
            filter: Some(Query::all_of(after.into_iter().chain([group.clone()]).collect())),
            min_score,
            size: inner.reach(),
            sort: inner.sort.clone(),
            ..Request::default()
        };
        let sources = Sources::of(&cluster, (&one.index, &one.table), inner.source.clone())?;
        found.add(one, request, sources, inner)?;
    }
    found.settle(inner)?;
    Ok(found)
}

fn none_of(query: Query) -> Query {
    Query::Bool {
        must: Vec::new(),
        should: Vec::new(),
        filter: Vec::new(),
        must_not: vec![query],
        minimum_should_match: None,
    }
}
