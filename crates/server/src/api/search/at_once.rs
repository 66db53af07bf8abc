//! Searches that are answered on the thread that they came to: one index that is open, and one vector, whose nearest a graph
//! finds in a moment.

use super::asked::Asked;
use super::found::Found;
use super::{Searched, Sources, of_search, pipeline};
use crate::call::{Body, Call, Reply};
use crate::error::ApiError;
use crate::node::{Node, now_ms};
use serde_json::{Map, Value};

/// Bytes of a body that is read at once.
const BODY_BYTES: usize = 1 << 16;
/// Documents that are shown.
const SIZE: usize = 100;

pub(super) fn at_once(node: &Node, call: &mut Call) -> Option<Result<Reply, ApiError>> {
    let small = matches!(&call.body, Body::Whole(bytes) if bytes.len() <= BODY_BYTES);
    if !small || call.params.get("scroll").is_some() {
        return None;
    }
    let one = Searched::if_open(node, call.name("index")?)?;
    let body = match call.object() {
        Ok(body) => body,
        Err(error) => return Some(Err(error)),
    };
    let answer = answered(node, &one, call, &body).transpose();
    if answer.is_none() {
        call.keep(body);
    }
    answer
}

fn answered(
    node: &Node,
    one: &Searched,
    call: &Call,
    body: &Map<String, Value>,
) -> Result<Option<Reply>, ApiError> {
    let began = now_ms();
    let index = one.index.as_str();
    let asked = Asked::read(&*pipeline::resolved(node, index, body, &call.params)?, &call.params)?;
    if !asked.is_plain() || asked.reach() > SIZE {
        return Ok(None);
    }
    let cluster = node.cluster();
    let settings = cluster.indices.get(index).map(|index| &index.settings);
    let request = asked.request(settings, one)?;
    let counts = node.counts.of(index);
    let Some(answer) = counts.searched.time_if_some(1, || one.table.search_at_once(&request)) else {
        return Ok(None);
    };
    node.recall.sample(index, &one.table, &request);
    let answer = answer.map_err(|error| of_search(index, error))?;
    let sources = Sources::of(&cluster, (index, &one.table), asked.source.clone())?;
    let mut found = Found::new(1);
    let hits = (0..answer.hits.len()).collect();
    found.put(index, answer, hits, sources);
    found.settle(&asked)?;
    found
        .answer(&asked, asked.shown(), now_ms().saturating_sub(began))
        .map(|answer| Some(Reply::json(answer)))
}
