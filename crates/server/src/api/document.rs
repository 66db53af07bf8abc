//! Documents, one at a time.

use super::index;
use crate::call::{Call, Reply};
use crate::cluster::Cluster;
use crate::error::ApiError;
use crate::node::Node;
use crate::route::{Reads, Role, Route, Verb};
use axum::http::StatusCode;
use lanewise_engine::table::{Document, Outcome, Watched, When, Write, WriteError, Written};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// What a write may be asked with: on what condition, and what there is nothing to do for.
const WRITES: [&str; 12] = [
    "if_seq_no",
    "if_primary_term",
    "op_type",
    "refresh",
    "routing",
    "timeout",
    "wait_for_active_shards",
    "require_alias",
    "retry_on_conflict",
    "_source",
    "_source_includes",
    "_source_excludes",
];

pub(super) const ROUTES: &[Route] = &[
    Route {
        verbs: &[Verb::Put, Verb::Post],
        paths: &["/{index}/_doc/{id}"],
        params: &WRITES,
        role: Role::Write,
        reads: Reads::Whole,
        handler: put,
        says: "writes a document",
    },
    Route {
        verbs: &[Verb::Post],
        paths: &["/{index}/_doc"],
        params: &WRITES,
        role: Role::Write,
        reads: Reads::Whole,
        handler: put,
        says: "writes a document with an id that nobody has",
    },
    Route {
        verbs: &[Verb::Put, Verb::Post],
        paths: &["/{index}/_create/{id}"],
        params: &WRITES,
        role: Role::Write,
        reads: Reads::Whole,
        handler: create,
        says: "writes a document, if its id is free",
    },
    Route {
        verbs: &[Verb::Get, Verb::Head],
        paths: &["/{index}/_doc/{id}"],
        params: &[
            "realtime",
            "refresh",
            "routing",
            "preference",
            "_source",
            "_source_includes",
            "_source_excludes",
        ],
        role: Role::Read,
        reads: Reads::Whole,
        handler: get,
        says: "a document by its id",
    },
    Route {
        verbs: &[Verb::Get, Verb::Head],
        paths: &["/{index}/_source/{id}"],
        params: &["realtime", "refresh", "routing", "preference"],
        role: Role::Read,
        reads: Reads::Whole,
        handler: source,
        says: "a document's source alone",
    },
    Route {
        verbs: &[Verb::Delete],
        paths: &["/{index}/_doc/{id}"],
        params: &WRITES,
        role: Role::Write,
        reads: Reads::Whole,
        handler: delete,
        says: "deletes a document",
    },
];

/// The table that writes to `name` go to: made as the templates say, if nothing has the name.
pub(super) fn written_to(node: &Node, name: &str) -> Result<(String, Arc<Watched>), ApiError> {
    if node.cluster().write_index(name)?.is_none() {
        match index::make(node, name, &Map::new()) {
            Ok(()) => {}
            // Somebody else was faster.
            Err(error) if error.is("resource_already_exists_exception") => {}
            Err(error) => return Err(error),
        }
    }
    let cluster = node.cluster();
    let index = cluster.write_index(name)?.ok_or_else(|| ApiError::no_index(name))?;
    opened(node, &cluster, index)
}

/// The one index that a name stands for.
pub(super) fn read_from(node: &Node, name: &str) -> Result<(String, Arc<Watched>), ApiError> {
    let cluster = node.cluster();
    let index = match cluster.indices.get_key_value(name) {
        Some((index, _)) => index.as_str(),
        None => {
            let mut all = cluster.with_alias(name).map(|(index, _)| index);
            let first = all.next().ok_or_else(|| ApiError::no_index(name))?;
            if all.next().is_some() {
                return Err(ApiError::argument(format!(
                    "alias [{name}] has more than one index associated with it, can't execute a single index op"
                )));
            }
            first
        }
    };
    opened(node, &cluster, index)
}

/// The table of an index that is not closed.
fn opened(node: &Node, cluster: &Cluster, index: &str) -> Result<(String, Arc<Watched>), ApiError> {
    if cluster.indices[index].closed {
        let closed = ApiError::new(StatusCode::BAD_REQUEST, "index_closed_exception", "closed");
        return Err(closed.with("index", index));
    }
    Ok((index.to_owned(), node.table(index)?))
}

/// On what condition a call writes.
fn when(call: &Call) -> Result<When, ApiError> {
    let create = match call.params.get("op_type") {
        None | Some("index") => false,
        Some("create") => true,
        Some(other) => {
            return Err(ApiError::argument(format!("op_type must be 'create' or 'index', found: [{other}]")));
        }
    };
    let seq = condition(call.params.parsed("if_seq_no")?, call.params.parsed("if_primary_term")?)?;
    match (create, seq) {
        (false, None) => Ok(When::Always),
        (true, None) => Ok(When::Absent),
        (false, Some(when)) => Ok(when),
        (true, Some(_)) => {
            Err(ApiError::argument("create operations do not support compare and set: leave if_seq_no out"))
        }
    }
}

/// Of a sequence number and a term, which is always 1.
pub(super) fn condition(seq: Option<u64>, term: Option<u64>) -> Result<Option<When>, ApiError> {
    match (seq, term) {
        (None, None) => Ok(None),
        // A term that never was: no document has it.
        (Some(seq), Some(term)) => Ok(Some(When::Seq(if term == 1 { seq } else { u64::MAX }))),
        _ => Err(ApiError::argument("if_seq_no and if_primary_term go together: give both, or neither")),
    }
}

fn put(node: &Node, call: &mut Call) -> Result<Reply, ApiError> {
    let when = when(call)?;
    put_when(node, call, when)
}

fn create(node: &Node, call: &mut Call) -> Result<Reply, ApiError> {
    put_when(node, call, When::Absent)
}

fn put_when(node: &Node, call: &mut Call, when: When) -> Result<Reply, ApiError> {
    let Some(Value::Object(document)) = call.json()? else {
        return Err(ApiError::parsing("request body is required: a document, a JSON object"));
    };
    let (index, table) = written_to(node, call.name("index").unwrap_or_default())?;
    let id = call.name("id").map(str::to_owned);
    let write = Write::Put { id: id.clone(), document, vectors: Vec::new(), when };
    one(&index, &table, id.as_deref().unwrap_or("_auto"), write)
}

fn delete(node: &Node, call: &mut Call) -> Result<Reply, ApiError> {
    let when = when(call)?;
    let (index, table) = read_from(node, call.name("index").unwrap_or_default())?;
    let id = call.name("id").unwrap_or_default().to_owned();
    one(&index, &table, &id.clone(), Write::Delete { id, when })
}

fn one(index: &str, table: &Watched, id: &str, write: Write) -> Result<Reply, ApiError> {
    let done = table.write(vec![write]).into_iter().next().expect("one outcome for each write");
    let written = done.map_err(|error| of_write(index, id, error))?;
    Ok(Reply::json(Value::Object(outcome(index, &written))).with_status(status(&written)))
}

/// How a write that was done is answered.
pub(super) fn status(written: &Written) -> StatusCode {
    match written.outcome {
        Outcome::Created => StatusCode::CREATED,
        Outcome::Updated | Outcome::Deleted => StatusCode::OK,
        Outcome::Missing => StatusCode::NOT_FOUND,
    }
}

/// What is said of a write that was done.
pub(super) fn outcome(index: &str, written: &Written) -> Map<String, Value> {
    let result = match written.outcome {
        Outcome::Created => "created",
        Outcome::Updated => "updated",
        Outcome::Deleted => "deleted",
        Outcome::Missing => "not_found",
    };
    let Value::Object(said) = json!({
        "_index": index, "_id": written.id, "_version": written.version, "result": result,
        "_shards": {"total": 1, "successful": 1, "failed": 0}, "_seq_no": written.seq, "_primary_term": 1,
    }) else {
        unreachable!("it is an object")
    };
    said
}

/// A write's error as OpenSearch has it.
pub(super) fn of_write(index: &str, id: &str, error: WriteError) -> ApiError {
    let reason = error.to_string();
    match error {
        WriteError::Conflict { .. } => ApiError::new(
            StatusCode::CONFLICT,
            "version_conflict_engine_exception",
            format!("[{id}]: version conflict, {reason}"),
        )
        .with("index", index)
        .with("shard", "0"),
        WriteError::Id { .. } => ApiError::argument(reason),
        WriteError::Document(_) | WriteError::Vector { .. } => ApiError::mapping(reason),
        _ => ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "exception", reason),
    }
}

fn found(index: &str, document: &Document) -> Result<Value, ApiError> {
    let source: Value = serde_json::from_slice(&document.source).map_err(ApiError::internal)?;
    Ok(json!({
        "_index": index, "_id": document.id, "_version": document.version, "_seq_no": document.seq,
        "_primary_term": 1, "found": true, "_source": source,
    }))
}

fn document(table: &Watched, id: &str) -> Result<Option<Document>, ApiError> {
    table.get(id).map_err(ApiError::internal)
}

fn get(node: &Node, call: &mut Call) -> Result<Reply, ApiError> {
    let (index, table) = read_from(node, call.name("index").unwrap_or_default())?;
    let id = call.name("id").unwrap_or_default();
    match document(&table, id)? {
        Some(document) => Ok(Reply::json(found(&index, &document)?)),
        None => {
            let missing = Reply::json(json!({"_index": index, "_id": id, "found": false}));
            Ok(missing.with_status(StatusCode::NOT_FOUND))
        }
    }
}

fn source(node: &Node, call: &mut Call) -> Result<Reply, ApiError> {
    let (index, table) = read_from(node, call.name("index").unwrap_or_default())?;
    let id = call.name("id").unwrap_or_default();
    let Some(document) = document(&table, id)? else {
        return Err(ApiError::new(
            StatusCode::NOT_FOUND,
            "resource_not_found_exception",
            format!("Document not found [{index}]/[{id}]"),
        ));
    };
    let found = found(&index, &document)?;
    Ok(Reply::json(found["_source"].clone()))
}
