//! Documents that are changed in part: read, merged, and written if nobody wrote them meanwhile.
//!
//! Vectors that a change does not touch are written again as they came.

use super::document::{
    self, Sources, Told, fetched, learned, of_write, read_from, told, unblocked, written_to,
};
use super::route;
use crate::call::{Call, Params, Reply};
use crate::error::ApiError;
use crate::node::Node;
use crate::route::{Role, Route, Verb};
use crate::source::SourceFilter;
use axum::http::StatusCode;
use lanewise_engine::index::OwnedVectors;
use lanewise_engine::table::{Answer, Fetched, Watched, When, Write};
use serde_json::{Map, Value, json};

const PARAMS: [&str; 12] = [
    "if_seq_no",
    "if_primary_term",
    "refresh",
    "routing",
    "timeout",
    "wait_for_active_shards",
    "require_alias",
    "retry_on_conflict",
    "lang",
    "_source",
    "_source_includes",
    "_source_excludes",
];

pub(super) const ROUTES: &[Route] = &[route(
    Role::Write,
    &[Verb::Post],
    &["/{index}/_update/{id}"],
    &PARAMS,
    update,
    "changes a document in part, or writes it where there is none",
)];

/// A change to a document.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Update {
    doc: Map<String, Value>,
    /// What is written where there is no document.
    upsert: Option<Map<String, Value>>,
    /// Whether a document that would stay as it is is left alone.
    detect_noop: bool,
    /// Tries after the first.
    retries: usize,
    /// On what condition, beside that nobody writes meanwhile.
    seq: Option<u64>,
    source: Option<SourceFilter>,
}

impl Update {
    /// Of a body.
    ///
    /// # Errors
    /// What is wrong, or not supported, by key.
    pub(super) fn read(mut body: Map<String, Value>, retries: usize, when: When) -> Result<Update, ApiError> {
        if let Some(key) = ["script", "scripted_upsert"].iter().find(|key| body.contains_key(**key)) {
            return Err(ApiError::argument(format!(
                "[{key}] is not supported: scripts are not run; give doc"
            )));
        }
        let mut object = |key: &str| match body.remove(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Object(object)) => Ok(Some(object)),
            Some(_) => Err(ApiError::parsing(format!(
                "[UpdateRequest] {key} doesn't support values of this type: give an object"
            ))),
        };
        let (doc, upsert) = (object("doc")?, object("upsert")?);
        let mut flag = |key: &str, usual: bool| match body.remove(key) {
            None => Ok(usual),
            Some(Value::Bool(given)) => Ok(given),
            Some(_) => Err(ApiError::parsing(format!("[UpdateRequest] {key}: give true or false"))),
        };
        let (as_upsert, detect_noop) = (flag("doc_as_upsert", false)?, flag("detect_noop", true)?);
        let source = body.remove("_source");
        let source =
            source.map(|source| SourceFilter::read(Some(&source), &Params::default())).transpose()?;
        if let Some(other) = body.keys().next() {
            return Err(ApiError::parsing(format!("[UpdateRequest] unknown field [{other}]")));
        }
        let Some(doc) = doc else {
            return Err(ApiError::new(
                StatusCode::BAD_REQUEST,
                "action_request_validation_exception",
                "Validation Failed: 1: script or doc is missing;",
            ));
        };
        let upsert = if as_upsert { Some(doc.clone()) } else { upsert };
        let seq = if let When::Seq(seq) = when { Some(seq) } else { None };
        Ok(Update { doc, upsert, detect_noop, retries, seq, source })
    }

    /// What is to be written of the document as it was found.
    pub(super) fn plan(
        &self,
        table: &Watched,
        index: &str,
        id: &str,
        found: Option<Fetched>,
    ) -> Result<Plan, ApiError> {
        let Some(Fetched { document: found, vectors }) = found else {
            if self.seq.is_some() {
                return Err(conflict(index, id));
            }
            let document = self.upsert.clone().ok_or_else(|| {
                let reason = format!("[{id}]: document missing");
                ApiError::new(StatusCode::NOT_FOUND, "document_missing_exception", reason)
                    .with("index", index)
            })?;
            return Ok(Plan::Write(Write::Put {
                id: Some(id.to_owned()),
                document,
                vectors: Vec::new(),
                when: When::Absent,
            }));
        };
        if self.seq.is_some_and(|seq| seq != found.seq) {
            return Err(conflict(index, id));
        }
        let mut document = parsed(&found.source)?;
        let changed = merge(&mut document, &self.doc);
        if self.detect_noop && !changed {
            return Ok(Plan::Nothing { version: found.version, seq: found.seq });
        }
        let vectors = untouched(table, &document, vectors);
        let when = When::Seq(found.seq);
        Ok(Plan::Write(Write::Put { id: Some(id.to_owned()), document, vectors, when }))
    }

    /// Tries again after a first try met `conflict`, if it may.
    pub(super) fn again(
        &self,
        node: &Node,
        index: &str,
        table: &Watched,
        id: &str,
        conflict: ApiError,
    ) -> Result<Told, ApiError> {
        let Some(retries) = self.retries.checked_sub(1) else { return Err(conflict) };
        Update { retries, ..self.clone() }.run(node, index, table, id)
    }

    /// Reads the document, and writes it changed; again, so often as it may, if somebody else was faster.
    ///
    /// # Errors
    /// If it is not there, not what was expected, or not to be written.
    pub(super) fn run(&self, node: &Node, index: &str, table: &Watched, id: &str) -> Result<Told, ApiError> {
        let fields = vector_fields(table);
        let fields: Vec<&str> = fields.iter().map(String::as_str).collect();
        let mut left = self.retries;
        loop {
            let found = table.fetch(&[id], &fields).map_err(ApiError::internal)?.pop().flatten();
            let write = match self.plan(table, index, id, found)? {
                Plan::Nothing { version, seq } => return Ok(nothing(index, id, version, seq)),
                Plan::Write(write) => write,
            };
            learned(node, index, table, std::slice::from_ref(&write)).pop().transpose()?;
            let done = node.counts.of(index).indexed.time(1, || table.write(vec![write]));
            let done = done.into_iter().next().expect("one outcome for each write");
            match done.map_err(|error| of_write(index, id, error)) {
                Err(error) if error.status() == StatusCode::CONFLICT && left > 0 => left -= 1,
                done => return done.map(|written| told(index, &written)),
            }
        }
    }
}

/// What an update comes to.
pub(super) enum Plan {
    Write(Write),
    /// The document is so already.
    Nothing {
        version: u64,
        seq: u64,
    },
}

/// What is said of an update that had nothing to do.
pub(super) fn nothing(index: &str, id: &str, version: u64, seq: u64) -> Told {
    let said = json!({
        "_index": index, "_id": id, "_version": version, "result": "noop",
        "_shards": {"total": 0, "successful": 0, "failed": 0}, "_seq_no": seq, "_primary_term": 1,
    });
    Told { said: said.as_object().cloned().unwrap_or_default(), status: StatusCode::OK }
}

fn conflict(index: &str, id: &str) -> ApiError {
    let reason = format!("[{id}]: version conflict, the document is not as if_seq_no says");
    ApiError::new(StatusCode::CONFLICT, "version_conflict_engine_exception", reason)
        .with("index", index)
        .with("shard", "0")
}

/// The names of the fields that hold vectors.
pub(super) fn vector_fields(table: &Watched) -> Vec<String> {
    table.schema().vectors().map(|(name, _)| name.to_owned()).collect()
}

fn parsed(source: &[u8]) -> Result<Map<String, Value>, ApiError> {
    serde_json::from_slice(source).map_err(ApiError::internal)
}

/// Puts the fields of `change` into `document`, those of objects into its objects; whether that changes anything.
fn merge(document: &mut Map<String, Value>, change: &Map<String, Value>) -> bool {
    let mut changed = false;
    for (name, value) in change {
        match (document.get_mut(name), value) {
            (Some(Value::Object(inner)), Value::Object(change)) => changed |= merge(inner, change),
            (Some(now), value) if now == value => {}
            _ => {
                document.insert(name.clone(), value.clone());
                changed = true;
            }
        }
    }
    changed
}

/// Whether a document says anything of the field at `path`, also that it, or what it is in, is nothing.
fn says(document: &Map<String, Value>, path: &str) -> bool {
    document.contains_key(path)
        || path.match_indices('.').any(|(dot, _)| match document.get(&path[..dot]) {
            None => false,
            Some(Value::Object(inner)) => says(inner, &path[dot + 1..]),
            Some(_) => true,
        })
}

/// Those of a document's stored vectors that it says nothing of.
fn untouched(
    table: &Watched,
    document: &Map<String, Value>,
    stored: Vec<Option<OwnedVectors>>,
) -> Vec<(String, OwnedVectors)> {
    let stored = vector_fields(table).into_iter().zip(stored);
    stored
        .filter(|(field, _)| !says(document, field))
        .filter_map(|(field, vector)| Some((field, vector?)))
        .collect()
}

/// Writes of the documents that were found, as they are.
pub(super) fn same(table: &Watched, found: &Answer) -> Result<Vec<Write>, ApiError> {
    let columns = vector_fields(table).into_iter().map(|field| found.vectors(&field));
    let mut columns = columns
        .map(|column| Ok(column.map_err(ApiError::internal)?.into_iter()))
        .collect::<Result<Vec<_>, ApiError>>()?;
    let write = |hit| -> Result<Write, ApiError> {
        let document = parsed(&found.source(hit).map_err(ApiError::internal)?)?;
        let stored = columns.iter_mut().map(|column| column.next().flatten()).collect();
        let vectors = untouched(table, &document, stored);
        Ok(Write::Put { id: Some(hit.id.clone()), document, vectors, when: When::Seq(hit.seq) })
    };
    found.hits.iter().map(write).collect()
}

fn update(node: &Node, call: &mut Call) -> Result<Reply, ApiError> {
    let retries = call.params.parsed("retry_on_conflict")?.unwrap_or(0);
    let seq = document::condition(call.params.parsed("if_seq_no")?, call.params.parsed("if_primary_term")?)?;
    let update = Update::read(call.object()?, retries, seq.unwrap_or_default())?;
    let (name, id) = (call.name("index").unwrap_or_default(), call.name("id").unwrap_or_default());
    // Only what may be written where it is missing makes an index.
    let (index, table) =
        if update.upsert.is_some() { written_to(node, name)? } else { read_from(node, name)? };
    unblocked(&node.cluster(), &index, false)?;
    let mut told = update.run(node, &index, &table, id)?;
    let asked = ["_source", "_source_includes", "_source_excludes"]
        .iter()
        .any(|name| call.params.get(name).is_some());
    let shown = if asked { Some(SourceFilter::read(None, &call.params)?) } else { update.source };
    if let Some(asked) = shown.filter(|shown| *shown != SourceFilter::None) {
        let sources = Sources::of(&node.cluster(), (&index, &table), asked)?;
        if let Some(document) = fetched(&table, id, &sources)? {
            let seq = document.document.seq;
            let source = document::shown(document, &sources)?;
            let get = json!({"_seq_no": seq, "_primary_term": 1, "found": true, "_source": source});
            told.said.insert("get".to_owned(), get);
        }
    }
    Ok(told.reply())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(value: Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap()
    }

    #[test]
    fn a_change_goes_into_objects_and_replaces_all_else() {
        let mut document = object(json!({"a": {"b": 1, "c": [1, 2]}, "d": "x"}));
        assert!(!merge(&mut document, &object(json!({"a": {"b": 1}, "d": "x"}))));
        assert!(merge(&mut document, &object(json!({"a": {"c": [3], "e": null}, "d": {"f": 1}}))));
        assert_eq!(Value::Object(document), json!({"a": {"b": 1, "c": [3], "e": null}, "d": {"f": 1}}));
    }

    #[test]
    fn a_document_says_something_of_a_field_by_any_spelling() {
        let document = object(json!({"v": null, "a": {"w": [1], "b.x": 1}, "n": null, "p.q": 2}));
        for (path, is_said) in [
            ("v", true),
            ("w", false),
            ("a.w", true),
            ("a.z", false),
            ("a.b.x", true),
            ("n.v", true),
            ("p.q", true),
            ("p.z", false),
        ] {
            assert_eq!(says(&document, path), is_said, "{path}");
        }
    }

    #[test]
    fn scripts_and_unknown_keys_are_refused_by_name() {
        for (body, says) in [
            (json!({"script": "ctx"}), "[script] is not supported"),
            (json!({"doc": {}, "extra": 1}), "unknown field [extra]"),
            (json!({"upsert": {}}), "script or doc is missing"),
            (json!({"doc": []}), "give an object"),
        ] {
            let said = Update::read(object(body), 0, When::Always).unwrap_err().to_string();
            assert!(said.contains(says), "{said}");
        }
    }
}
