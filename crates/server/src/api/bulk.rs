//! Many writes in one request, read as they come: each line's fate is its own.
//!
//! Writes are gathered and given to their tables together, so that one sync of the disk serves them all. A line that cannot
//! be read ends the request; what stood before it is done then, and the error says how many that were.

use super::document::{Told, condition, learned, of_write, told, written_to};
use super::update::{Plan, Update, nothing, vector_fields};
use crate::call::{Body, Call, Content, Reply};
use crate::error::ApiError;
use crate::filter_path::FilterPath;
use crate::node::{Node, now_ms};
use crate::route::{Reads, Role, Route, Verb};
use axum::http::StatusCode;
use lanewise_engine::table::{Watched, When, Write};
use serde_json::{Map, Value, json};
use std::collections::{HashMap, HashSet};
use std::io::{BufRead, BufReader, Read};
use std::sync::Arc;

/// Writes that are given to tables at a time.
const TOGETHER: usize = 1024;
/// Bytes of documents that are gathered.
const TOGETHER_BYTES: usize = 8 << 20;
/// Bytes of one line.
const LINE_BYTES: usize = 100 << 20;
/// Writes of a request: the answer names each.
const ACTIONS: usize = 1_000_000;

pub(super) const ROUTES: &[Route] = &[Route {
    verbs: &[Verb::Post, Verb::Put],
    paths: &["/_bulk", "/{index}/_bulk"],
    params: &[
        "refresh",
        "routing",
        "timeout",
        "wait_for_active_shards",
        "require_alias",
        "_source",
        "_source_includes",
        "_source_excludes",
    ],
    role: Role::Write,
    reads: Reads::Stream,
    at_once: None,
    handler: bulk,
    says: "many writes, as lines of JSON: index, create, update, delete",
}];

fn bulk(node: &Node, call: &mut Call) -> Result<Reply, ApiError> {
    let usual = call.name("index").map(str::to_owned);
    let filter = call.params.get("filter_path").map(FilterPath::parse);
    let Body::Stream(read) = &mut call.body else { unreachable!("the route reads it") };
    let began = now_ms();
    let mut lines = Lines { read: BufReader::with_capacity(1 << 16, read), number: 0, line: Vec::new() };
    let mut batch =
        Batch { node, waiting: Vec::new(), bytes: 0, tables: HashMap::new(), answer: Answer::new(filter) };
    while let Some(line) = lines.next().map_err(|error| batch.ended(error))? {
        if line.is_empty() {
            continue;
        }
        let action = Action::parse(line, usual.as_deref());
        let action = action.map_err(|error| {
            let number = lines.number;
            batch.ended(ApiError::argument(format!("Malformed action/metadata line [{number}], {error}")))
        })?;
        let document = match action.verb {
            "delete" => None,
            _ => {
                let line = lines.next().map_err(|error| batch.ended(error))?;
                let Some(line) = line.filter(|line| !line.is_empty()) else {
                    let error = "The bulk request must be terminated by a newline [\\n], and each write by its document";
                    return Err(batch.ended(ApiError::argument(error)));
                };
                batch.bytes += line.len();
                Some(serde_json::from_slice(line))
            }
        };
        if batch.answer.count + batch.waiting.len() >= ACTIONS {
            let error = ApiError::new(
                StatusCode::PAYLOAD_TOO_LARGE,
                "content_too_long_exception",
                format!("more than {ACTIONS} writes in one request: send it in parts"),
            );
            return Err(batch.ended(error));
        }
        batch.take(action, document);
        if batch.waiting.len() >= TOGETHER || batch.bytes >= TOGETHER_BYTES {
            batch.write();
        }
    }
    batch.write();
    if batch.answer.count == 0 {
        return Err(ApiError::parsing("request body is required: lines of JSON"));
    }
    Ok(batch.answer.reply(now_ms().saturating_sub(began)))
}

/// A body's lines, one at a time, without their ends.
struct Lines<'a> {
    read: BufReader<&'a mut Box<dyn Read + Send>>,
    number: usize,
    line: Vec<u8>,
}

impl Lines<'_> {
    fn next(&mut self) -> Result<Option<&[u8]>, ApiError> {
        self.number += 1;
        self.line.clear();
        let read = (&mut self.read).take(LINE_BYTES as u64 + 1).read_until(b'\n', &mut self.line);
        match read {
            Ok(0) => return Ok(None),
            Ok(_) if self.line.len() > LINE_BYTES => {
                return Err(ApiError::argument(format!(
                    "line {} has more than {LINE_BYTES} bytes",
                    self.number
                )));
            }
            Ok(_) => {}
            Err(error) => {
                // What it says itself, where it came from us.
                let ours = error.get_ref().and_then(|inner| inner.downcast_ref::<ApiError>()).cloned();
                return Err(
                    ours.unwrap_or_else(|| ApiError::parsing(format!("the body cannot be read: {error}")))
                );
            }
        }
        Ok(Some(self.line.trim_ascii()))
    }
}

/// What became of a write.
type Done = Result<Told, ApiError>;

/// What a line asks for.
struct Action {
    verb: &'static str,
    index: String,
    id: Option<String>,
    when: When,
    /// Of an update: tries after the first.
    retries: usize,
}

impl Action {
    fn parse(line: &[u8], usual: Option<&str>) -> Result<Action, String> {
        let parsed: Value = serde_json::from_slice(line).map_err(|error| error.to_string())?;
        let one =
            parsed.as_object().filter(|object| object.len() == 1).and_then(|object| object.iter().next());
        let (verb, Value::Object(fields)) = one.ok_or("expected an object of one action")? else {
            return Err("expected an object of the action's fields".to_owned());
        };
        let verb = match verb.as_str() {
            "index" => "index",
            "create" => "create",
            "delete" => "delete",
            "update" => "update",
            other => return Err(format!("action [{other}]: one of index, create, update, delete")),
        };
        let known = [
            "_index",
            "_id",
            "routing",
            "_routing",
            "if_seq_no",
            "if_primary_term",
            "require_alias",
            "op_type",
            "retry_on_conflict",
            "_retry_on_conflict",
        ];
        if let Some(other) = fields.keys().find(|key| !known.contains(&key.as_str())) {
            return Err(format!("unknown parameter [{other}]"));
        }
        let index = match fields.get("_index") {
            None => usual.ok_or("_index is missing")?.to_owned(),
            Some(Value::String(index)) => index.clone(),
            Some(_) => return Err("_index: give a string".to_owned()),
        };
        let id = match fields.get("_id") {
            None | Some(Value::Null) => None,
            Some(Value::String(id)) => Some(id.clone()),
            Some(Value::Number(id)) => Some(id.to_string()),
            Some(_) => return Err("_id: give a string".to_owned()),
        };
        let number = |name: &str| fields.get(name).and_then(Value::as_u64);
        let seq =
            condition(number("if_seq_no"), number("if_primary_term")).map_err(|error| error.to_string())?;
        let create = verb == "create" || fields.get("op_type") == Some(&Value::from("create"));
        let when = if create { When::Absent } else { seq.unwrap_or_default() };
        let retries =
            number("retry_on_conflict").or(number("_retry_on_conflict")).unwrap_or(0).min(100) as usize;
        Ok(Action { verb, index, id, when, retries })
    }
}

/// Writes that wait for their turn, and what became of those that had it.
struct Batch<'a> {
    node: &'a Node,
    waiting: Vec<Waiting>,
    bytes: usize,
    /// By the name that lines give.
    tables: HashMap<String, Result<(String, Arc<Watched>), ApiError>>,
    answer: Answer,
}

struct Waiting {
    verb: &'static str,
    name: String,
    id: Option<String>,
    job: Result<Job, ApiError>,
}

/// What is done with a document.
enum Job {
    Write(Write),
    Update(String, Box<Update>),
}

impl Job {
    fn id(&self) -> Option<&str> {
        match self {
            Job::Write(Write::Put { id, .. }) => id.as_deref(),
            Job::Write(Write::Delete { id, .. }) | Job::Update(id, _) => Some(id),
        }
    }
}

impl Batch<'_> {
    fn take(&mut self, action: Action, document: Option<serde_json::Result<Value>>) {
        let Action { verb, index: name, id, when, retries } = action;
        let required = |what: &str| ApiError::argument(format!("an id is required for {what}"));
        let job = match (document, verb, &id) {
            (Some(Ok(Value::Object(body))), "update", Some(id)) => {
                Update::read(body, retries, when).map(|update| Job::Update(id.clone(), Box::new(update)))
            }
            (Some(_), "update", None) => Err(required("an update")),
            (Some(Ok(Value::Object(document))), ..) => {
                Ok(Job::Write(Write::Put { id: id.clone(), document, vectors: Vec::new(), when }))
            }
            (Some(Ok(_)), ..) => Err(ApiError::mapping("failed to parse: the document is no JSON object")),
            (Some(Err(error)), ..) => Err(ApiError::mapping(format!("failed to parse: {error}"))),
            (None, _, Some(id)) => Ok(Job::Write(Write::Delete { id: id.clone(), when })),
            (None, ..) => Err(required("a delete")),
        };
        self.waiting.push(Waiting { verb, name, id, job });
    }

    /// Does what waits, index by index, and answers it in the order of the lines.
    fn write(&mut self) {
        self.bytes = 0;
        let mut said = Vec::new();
        let mut answers: Vec<Option<Done>> = Vec::new();
        // By index, whatever name it was given: writes to one keep their order.
        let mut by_index: Vec<Together> = Vec::new();
        for Waiting { verb, name, id, job } in std::mem::take(&mut self.waiting) {
            let at = answers.len();
            answers.push(None);
            let table = self.tables.entry(name.clone()).or_insert_with(|| written_to(self.node, &name));
            let known = table.as_ref().map_or(name, |(index, _)| index.clone());
            said.push((verb, known, id));
            match (job, table) {
                (Err(error), _) => answers[at] = Some(Err(error)),
                (_, Err(error)) => answers[at] = Some(Err(error.clone())),
                (Ok(job), Ok((index, table))) => {
                    let same = by_index.iter().position(|together| together.index == *index);
                    let same = same.unwrap_or_else(|| {
                        let (index, table) = (index.clone(), table.clone());
                        by_index.push(Together { index, table, jobs: Vec::new() });
                        by_index.len() - 1
                    });
                    by_index[same].jobs.push((at, job));
                }
            }
        }
        for together in by_index {
            together.work(self.node, |at, done| answers[at] = Some(done));
        }
        for ((verb, index, id), answer) in said.into_iter().zip(answers) {
            self.answer.item(verb, &index, id, answer.expect("each has one"));
        }
    }

    /// The error that ends the request, once what stood before it is done.
    fn ended(&mut self, error: ApiError) -> ApiError {
        self.write();
        error.with("done", self.answer.count)
    }
}

/// What is done in one index, with the places among all.
struct Together {
    index: String,
    table: Arc<Watched>,
    jobs: Vec<(usize, Job)>,
}

impl Together {
    /// Does all, in order: an update sees what stood before it.
    fn work(self, node: &Node, mut say: impl FnMut(usize, Done)) {
        let Together { index, table, jobs } = self;
        let (mut group, mut ids) = (Vec::new(), HashSet::new());
        for (at, job) in jobs {
            let id = job.id().map(str::to_owned);
            if matches!(job, Job::Update(..)) && id.as_ref().is_some_and(|id| ids.contains(id)) {
                write(node, &index, &table, std::mem::take(&mut group), &mut say);
                ids.clear();
            }
            ids.extend(id);
            group.push((at, job));
        }
        write(node, &index, &table, group, &mut say);
    }
}

/// Does jobs of which no update is of a document that one before it writes.
fn write(
    node: &Node,
    index: &str,
    table: &Watched,
    jobs: Vec<(usize, Job)>,
    say: &mut impl FnMut(usize, Done),
) {
    let updated: Vec<&str> = jobs
        .iter()
        .filter_map(|(_, job)| if let Job::Update(id, _) = job { Some(id.as_str()) } else { None })
        .collect();
    let fields = vector_fields(table);
    let fields: Vec<&str> = fields.iter().map(String::as_str).collect();
    let mut found = match table.fetch(&updated, &fields) {
        Ok(found) => found.into_iter(),
        Err(error) => {
            let error = ApiError::internal(error);
            return jobs.into_iter().for_each(|(at, _)| say(at, Err(error.clone())));
        }
    };
    let (mut writes, mut places) = (Vec::new(), Vec::new());
    for (at, job) in jobs {
        match job {
            Job::Write(write) => {
                places.push((at, None));
                writes.push(write);
            }
            Job::Update(id, update) => match update.plan(table, index, &id, found.next().flatten()) {
                Ok(Plan::Write(write)) => {
                    places.push((at, Some(update)));
                    writes.push(write);
                }
                Ok(Plan::Nothing { version, seq }) => say(at, Ok(nothing(index, &id, version, seq))),
                Err(error) => say(at, Err(error)),
            },
        }
    }
    let id = |write: &Write| match write {
        Write::Put { id, .. } => id.clone().unwrap_or("_auto".to_owned()),
        Write::Delete { id, .. } => id.clone(),
    };
    let ids: Vec<String> = writes.iter().map(id).collect();
    let deleted = writes.iter().filter(|write| matches!(write, Write::Delete { .. })).count();
    let count = node.counts.of(index);
    count.deleted.time(deleted, || ());
    let learned = learned(node, index, table, &writes);
    let writes: Vec<Write> = writes
        .into_iter()
        .zip(&learned)
        .filter(|(_, learned)| learned.is_ok())
        .map(|(write, _)| write)
        .collect();
    let mut done = count.indexed.time(writes.len() - deleted, || table.write(writes)).into_iter();
    for (((at, update), id), learned) in places.into_iter().zip(ids).zip(learned) {
        if let Err(error) = learned {
            say(at, Err(error));
            continue;
        }
        let done = done.next().expect("one outcome for each write");
        let done = done.map(|written| told(index, &written)).map_err(|error| of_write(index, &id, error));
        say(
            at,
            match (done, update) {
                (Err(error), Some(update)) if error.status() == StatusCode::CONFLICT => {
                    update.again(node, index, table, &id, error)
                }
                (done, _) => done,
            },
        );
    }
}

/// The answer, as it grows.
struct Answer {
    items: Vec<u8>,
    count: usize,
    errors: bool,
    filter: Option<FilterPath>,
}

impl Answer {
    fn new(filter: Option<FilterPath>) -> Answer {
        Answer { items: Vec::new(), count: 0, errors: false, filter }
    }

    fn item(&mut self, verb: &'static str, index: &str, id: Option<String>, done: Done) {
        let said = match done {
            Ok(Told { mut said, status }) => {
                said.insert("status".to_owned(), status.as_u16().into());
                Value::Object(said)
            }
            Err(error) => {
                self.errors = true;
                json!({"_index": index, "_id": id, "status": error.status().as_u16(), "error": error.cause()})
            }
        };
        self.count += 1;
        let mut item = Value::Object(Map::from_iter([(verb.to_owned(), said)]));
        if let Some(filter) = &self.filter {
            let mut kept = filter.apply(json!({"items": [item]}));
            match kept.get_mut("items").and_then(|items| items.get_mut(0)) {
                Some(kept) => item = kept.take(),
                None => return,
            }
        }
        if !self.items.is_empty() {
            self.items.push(b',');
        }
        serde_json::to_writer(&mut self.items, &item).expect("keys are strings, and memory takes it");
    }

    fn reply(self, took: u64) -> Reply {
        let mut head = json!({"took": took, "errors": self.errors});
        if let Some(filter) = &self.filter {
            head = filter.apply(head);
        }
        let mut bytes = serde_json::to_vec(&head).expect("keys are strings");
        if self.filter.is_none() || !self.items.is_empty() {
            bytes.pop();
            if bytes.len() > 1 {
                bytes.push(b',');
            }
            bytes.extend_from_slice(b"\"items\":[");
            bytes.extend_from_slice(&self.items);
            bytes.extend_from_slice(b"]}");
        }
        Reply { status: StatusCode::OK, content: Content::Bytes(bytes) }
    }
}
