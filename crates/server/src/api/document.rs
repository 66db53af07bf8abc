//! Documents, one at a time.

use super::{index, route};
use crate::call::{Call, Params, Reply};
use crate::cluster::Cluster;
use crate::cluster_settings;
use crate::error::ApiError;
use crate::mapping::{self, Known};
use crate::node::Node;
use crate::route::{Reads, Role, Route, Verb};
use crate::source::{self, SourceFilter};
use axum::http::StatusCode;
use lanewise_engine::index::OwnedVectors;
use lanewise_engine::table::{
    FetchError, Fetched, GrowError, Outcome, Watched, When, Write, WriteError, Written,
};
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

/// What documents may be asked for with.
const READS: [&str; 7] =
    ["realtime", "refresh", "routing", "preference", "_source", "_source_includes", "_source_excludes"];

pub(super) const ROUTES: &[Route] = &[
    Route {
        verbs: &[Verb::Put, Verb::Post],
        paths: &["/{index}/_doc/{id}"],
        params: &WRITES,
        role: Role::Write,
        reads: Reads::Whole,
        at_once: None,
        handler: put,
        says: "writes a document",
    },
    Route {
        verbs: &[Verb::Post],
        paths: &["/{index}/_doc"],
        params: &WRITES,
        role: Role::Write,
        reads: Reads::Whole,
        at_once: None,
        handler: put,
        says: "writes a document with an id that nobody has",
    },
    Route {
        verbs: &[Verb::Put, Verb::Post],
        paths: &["/{index}/_create/{id}"],
        params: &WRITES,
        role: Role::Write,
        reads: Reads::Whole,
        at_once: None,
        handler: create,
        says: "writes a document, if its id is free",
    },
    Route {
        verbs: &[Verb::Get, Verb::Head],
        paths: &["/{index}/_doc/{id}"],
        params: &READS,
        role: Role::Read,
        reads: Reads::Whole,
        at_once: None,
        handler: get,
        says: "a document by its id",
    },
    Route {
        verbs: &[Verb::Get, Verb::Head],
        paths: &["/{index}/_source/{id}"],
        params: &READS,
        role: Role::Read,
        reads: Reads::Whole,
        at_once: None,
        handler: source,
        says: "a document's source alone",
    },
    route(
        Role::Read,
        &[Verb::Get, Verb::Post],
        &["/_mget", "/{index}/_mget"],
        &READS,
        many,
        "documents by their ids",
    ),
    Route {
        verbs: &[Verb::Delete],
        paths: &["/{index}/_doc/{id}"],
        params: &WRITES,
        role: Role::Write,
        reads: Reads::Whole,
        at_once: None,
        handler: delete,
        says: "deletes a document",
    },
];

/// The table that writes to `name` go to: made as the templates say, if nothing has the name.
pub(super) fn written_to(node: &Node, name: &str) -> Result<(String, Arc<Watched>), ApiError> {
    let cluster = node.cluster();
    if cluster.write_index(name)?.is_none() {
        if !cluster_settings::makes(&cluster, name) {
            return Err(ApiError::no_index(name));
        }
        match index::make(node, name, &Map::new()) {
            Ok(()) => {}
            // Somebody else was faster.
            Err(error) if error.is("resource_already_exists_exception") => {}
            Err(error) => return Err(error),
        }
    }
    let cluster = node.cluster();
    let index = cluster.write_index(name)?.ok_or_else(|| ApiError::no_index(name))?;
    unblocked(&cluster, index, false)?;
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
pub(super) fn opened(
    node: &Node,
    cluster: &Cluster,
    index: &str,
) -> Result<(String, Arc<Watched>), ApiError> {
    if cluster.indices[index].closed {
        let closed = ApiError::new(StatusCode::BAD_REQUEST, "index_closed_exception", "closed");
        return Err(closed.with("index", index));
    }
    Ok((index.to_owned(), node.table(index)?))
}

/// Refuses writes to an index whose settings say so; deletes are left where a full disk is the reason.
pub(super) fn unblocked(cluster: &Cluster, index: &str, deletes: bool) -> Result<(), ApiError> {
    let is_set = |name: &str| {
        let settings = cluster.indices.get(index).map(|index| &index.settings);
        settings.and_then(|settings| settings.get(name)).is_some_and(|value| value == "true")
    };
    let blocks = [
        ("index.blocks.read_only", "FORBIDDEN/5/index read-only (api)"),
        ("index.blocks.write", "FORBIDDEN/8/index write (api)"),
        ("index.blocks.read_only_allow_delete", "FORBIDDEN/12/index read-only / allow delete (api)"),
    ];
    let blocks = &blocks[..if deletes { 2 } else { 3 }];
    match blocks.iter().find(|(name, _)| is_set(name)) {
        None => Ok(()),
        Some((_, block)) => {
            let reason = format!("index [{index}] blocked by: [{block}];");
            Err(ApiError::new(StatusCode::FORBIDDEN, "cluster_block_exception", reason))
        }
    }
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
    one(node, &index, &table, id.as_deref().unwrap_or("_auto"), write)
}

fn delete(node: &Node, call: &mut Call) -> Result<Reply, ApiError> {
    let when = when(call)?;
    let (index, table) = read_from(node, call.name("index").unwrap_or_default())?;
    unblocked(&node.cluster(), &index, true)?;
    let id = call.name("id").unwrap_or_default().to_owned();
    one(node, &index, &table, &id.clone(), Write::Delete { id, when })
}

fn one(node: &Node, index: &str, table: &Watched, id: &str, write: Write) -> Result<Reply, ApiError> {
    let count = node.counts.of(index);
    let timed = if matches!(write, Write::Delete { .. }) { &count.deleted } else { &count.indexed };
    learned(node, index, table, std::slice::from_ref(&write)).pop().transpose()?;
    let done =
        timed.time(1, || table.write(vec![write])).into_iter().next().expect("one outcome for each write");
    Ok(told(index, &done.map_err(|error| of_write(index, id, error))?).reply())
}

/// Has an index learn the fields of documents that are to be written, as its mapping says. One outcome for each write: one
/// that failed is not to be done.
pub(super) fn learned(
    node: &Node,
    index: &str,
    table: &Watched,
    writes: &[Write],
) -> Vec<Result<(), ApiError>> {
    let mut outcomes: Vec<Result<(), ApiError>> = writes.iter().map(|_| Ok(())).collect();
    let (cluster, schema) = (node.cluster(), table.schema());
    let Some(mappings) = cluster.indices.get(index).map(|index| &index.mappings) else { return outcomes };
    let (mut drafted, mut missing) = (None, false);
    let mut new = Vec::new();
    for (at, write) in writes.iter().enumerate() {
        let Write::Put { document, .. } = write else { continue };
        match mapping::known(mappings, &schema, document) {
            Known::All => {}
            Known::NotInTable => missing = true,
            Known::NotMapped => {
                let mut draft = drafted.as_ref().unwrap_or(mappings).clone();
                outcomes[at] = mapping::learn(&mut draft, &schema, document);
                if outcomes[at].is_ok() && draft != *drafted.as_ref().unwrap_or(mappings) {
                    drafted = Some(draft);
                    new.push((at, document));
                }
            }
        }
    }
    if new.is_empty() && !missing {
        return outcomes;
    }
    // Mappings come first: what they name and the table does not have, it gets with the next write.
    let grown = node.store.change_if(!new.is_empty(), |cluster| {
        let index = cluster.indices.get_mut(index).ok_or_else(|| ApiError::no_index(index))?;
        // Others may have learned meanwhile.
        new.iter().try_for_each(|(_, document)| mapping::learn(&mut index.mappings, &schema, document))?;
        index::schema_of(index)
    });
    let grown = grown.and_then(|schema| table.grow(&schema).map_err(of_grow));
    if let Err(error) = grown {
        new.iter().for_each(|(at, _)| outcomes[*at] = Err(error.clone()));
    }
    outcomes
}

/// Why a table did not get fields, as OpenSearch has it.
pub(super) fn of_grow(error: GrowError) -> ApiError {
    match error {
        GrowError::Schema(error) => ApiError::argument(error.to_string()),
        error => ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "exception", error.to_string()),
    }
}

/// What is said of a write, and the status that it has.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Told {
    pub(super) said: Map<String, Value>,
    pub(super) status: StatusCode,
}

impl Told {
    pub(super) fn reply(self) -> Reply {
        Reply::json(Value::Object(self.said)).with_status(self.status)
    }
}

/// Of a write that was done.
pub(super) fn told(index: &str, written: &Written) -> Told {
    Told { said: outcome(index, written), status: status(written) }
}

/// How a write that was done is answered.
fn status(written: &Written) -> StatusCode {
    match written.outcome {
        Outcome::Created => StatusCode::CREATED,
        Outcome::Updated | Outcome::Deleted => StatusCode::OK,
        Outcome::Missing => StatusCode::NOT_FOUND,
    }
}

/// What is said of a write that was done.
fn outcome(index: &str, written: &Written) -> Map<String, Value> {
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

/// How documents of an index are shown: `asked` says of what, and the mapping's `_source` leaves out more.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sources {
    asked: SourceFilter,
    mapped: SourceFilter,
    /// Vector fields that are shown: tables keep them beside the document.
    pub(super) vectors: Vec<String>,
}

impl Sources {
    pub(super) fn of(
        cluster: &Cluster,
        (index, table): (&str, &Watched),
        asked: SourceFilter,
    ) -> Result<Sources, ApiError> {
        let mappings = cluster.indices.get(index).map(|index| &index.mappings);
        let mapped = mappings.map_or(Ok(SourceFilter::All), SourceFilter::of_mapping)?;
        let schema = table.schema();
        let shown =
            schema.vectors().map(|(name, _)| name).filter(|name| mapped.shows(name) && asked.shows(name));
        let vectors = shown.map(str::to_owned).collect();
        Ok(Sources { asked, mapped, vectors })
    }

    /// Whether anything is shown.
    pub(super) fn any(&self) -> bool {
        self.asked != SourceFilter::None
    }

    /// What is shown of a source, to which `vector` gives those fields; `None` if nothing is.
    pub(super) fn apply(
        &self,
        source: &[u8],
        mut vector: impl FnMut(&str) -> Result<Option<OwnedVectors>, FetchError>,
    ) -> Result<Option<Value>, ApiError> {
        if !self.any() {
            return Ok(None);
        }
        let mut shown = serde_json::from_slice(source).map_err(ApiError::internal)?;
        for name in &self.vectors {
            if let Some(vector) = vector(name).map_err(ApiError::internal)? {
                source::put(&mut shown, name, source::written(&vector));
            }
        }
        Ok(self.mapped.apply(shown).and_then(|source| self.asked.apply(source)))
    }
}

/// A document of a table, with the vectors that are shown.
pub(super) fn fetched(table: &Watched, id: &str, sources: &Sources) -> Result<Option<Fetched>, ApiError> {
    let fields: Vec<&str> = sources.vectors.iter().map(String::as_str).collect();
    Ok(table.fetch(&[id], &fields).map_err(ApiError::internal)?.pop().flatten())
}

/// What is shown of a document's source.
pub(super) fn shown(fetched: Fetched, sources: &Sources) -> Result<Option<Value>, ApiError> {
    let mut vectors = fetched.vectors.into_iter();
    sources.apply(&fetched.document.source, |_| Ok(vectors.next().flatten()))
}

fn found(index: &str, fetched: Fetched, sources: &Sources) -> Result<Value, ApiError> {
    let document = &fetched.document;
    let mut found = json!({
        "_index": index, "_id": document.id, "_version": document.version, "_seq_no": document.seq,
        "_primary_term": 1, "found": true,
    });
    if let Some(source) = shown(fetched, sources)? {
        found["_source"] = source;
    }
    Ok(found)
}

/// The document with an id, or that there is none.
pub(super) fn looked_up(
    node: &Node,
    name: &str,
    id: &str,
    asked: SourceFilter,
) -> Result<(Value, bool), ApiError> {
    let (index, table) = read_from(node, name)?;
    let sources = Sources::of(&node.cluster(), (&index, &table), asked)?;
    match node.counts.of(&index).got.time(1, || fetched(&table, id, &sources))? {
        Some(document) => Ok((found(&index, document, &sources)?, true)),
        None => Ok((json!({"_index": index, "_id": id, "found": false}), false)),
    }
}

fn get(node: &Node, call: &mut Call) -> Result<Reply, ApiError> {
    let asked = SourceFilter::read(None, &call.params)?;
    let (name, id) = (call.name("index").unwrap_or_default(), call.name("id").unwrap_or_default());
    let (found, is_there) = looked_up(node, name, id, asked)?;
    let status = if is_there { StatusCode::OK } else { StatusCode::NOT_FOUND };
    Ok(Reply::json(found).with_status(status))
}

fn source(node: &Node, call: &mut Call) -> Result<Reply, ApiError> {
    let asked = SourceFilter::read(None, &call.params)?;
    let (name, id) = (call.name("index").unwrap_or_default(), call.name("id").unwrap_or_default());
    let (mut found, is_there) = looked_up(node, name, id, asked)?;
    if !is_there {
        let index = found["_index"].as_str().unwrap_or_default();
        let reason = format!("Document not found [{index}]/[{id}]");
        return Err(ApiError::new(StatusCode::NOT_FOUND, "resource_not_found_exception", reason));
    }
    Ok(Reply::json(found["_source"].take()))
}

/// Documents of one request, at most.
const MANY: usize = 10_000;

fn many(node: &Node, call: &mut Call) -> Result<Reply, ApiError> {
    let body = call.object()?;
    let wrong = |what: &str| ApiError::argument(format!("[mget] {what}"));
    let usual = call.name("index");
    let mut asked = Vec::new();
    for (key, value) in &body {
        let all = value.as_array().ok_or_else(|| wrong(&format!("{key}: give an array")))?;
        match key.as_str() {
            "ids" => asked.extend(all.iter().map(|id| (id, usual, None))),
            "docs" => {
                for one in all {
                    let fields = one.as_object().ok_or_else(|| wrong("docs: give objects"))?;
                    let known = ["_index", "_id", "_source", "routing", "_routing"];
                    if let Some(other) = fields.keys().find(|key| !known.contains(&key.as_str())) {
                        return Err(wrong(&format!("unknown parameter [{other}]")));
                    }
                    let index = fields.get("_index").and_then(Value::as_str).or(usual);
                    asked.push((one.get("_id").unwrap_or(&Value::Null), index, fields.get("_source")));
                }
            }
            other => return Err(wrong(&format!("unknown key [{other}]: give docs, or ids"))),
        }
    }
    if asked.is_empty() {
        return Err(ApiError::new(
            StatusCode::BAD_REQUEST,
            "action_request_validation_exception",
            "Validation Failed: 1: no documents to get;",
        ));
    }
    if asked.len() > MANY {
        return Err(wrong(&format!("more than {MANY} documents: ask for them in parts")));
    }
    let none = Params::default();
    let mut docs = Vec::with_capacity(asked.len());
    for (id, index, source) in asked {
        let id = match id {
            Value::String(id) => id.clone(),
            Value::Number(id) => id.to_string(),
            _ => return Err(wrong("_id is missing")),
        };
        let index = index.ok_or_else(|| wrong("_index is missing"))?;
        let asked = SourceFilter::read(source, if source.is_some() { &none } else { &call.params })?;
        docs.push(match looked_up(node, index, &id, asked) {
            Ok((found, _)) => found,
            Err(error) => json!({"_index": index, "_id": id, "error": error.body()["error"]}),
        });
    }
    Ok(Reply::json(json!({"docs": docs})))
}
