//! Searches: OpenSearch's bodies in, its answers out.

use crate::call::{Call, Reply};
use crate::cluster::{Cluster, Names, Target};
use crate::error::ApiError;
use crate::node::{Node, now_ms};
use crate::query;
use crate::route::{Reads, Role, Route, Verb};
use crate::settings::time_ms;
use crate::source::SourceFilter;
use axum::http::StatusCode;
use lanewise_engine::documents::{Query, Sort, SortBy};
use lanewise_engine::scheduler::Failure;
use lanewise_engine::table::{Answer, Hit, Request, SearchTableError, Watched};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::Duration;

/// As `index.max_result_window`.
const WINDOW: usize = 10_000;
/// What is counted exactly where a request does not say.
const COUNTED: u64 = 10_000;

/// What a search may be asked with beside its body.
const PARAMS: [&str; 22] = [
    "ignore_unavailable",
    "allow_no_indices",
    "expand_wildcards",
    "allow_partial_search_results",
    "batched_reduce_size",
    "ccs_minimize_roundtrips",
    "max_concurrent_shard_requests",
    "phase_took",
    "pre_filter_shard_size",
    "preference",
    "request_cache",
    "rest_total_hits_as_int",
    "routing",
    "search_type",
    "size",
    "from",
    "sort",
    "_source",
    "_source_includes",
    "_source_excludes",
    "stored_fields",
    "timeout",
];

pub(super) const ROUTES: &[Route] = &[
    Route {
        verbs: &[Verb::Get, Verb::Post],
        paths: &["/_search", "/{index}/_search"],
        params: &PARAMS,
        role: Role::Read,
        reads: Reads::Whole,
        handler: search,
        says: "finds documents",
    },
    Route {
        verbs: &[Verb::Get, Verb::Post],
        paths: &["/_count", "/{index}/_count"],
        params: &["ignore_unavailable", "allow_no_indices", "expand_wildcards", "preference", "routing"],
        role: Role::Read,
        reads: Reads::Whole,
        handler: count,
        says: "counts documents",
    },
];

/// What a body may say.
const KEYS: [&str; 18] = [
    "query",
    "size",
    "from",
    "sort",
    "_source",
    "stored_fields",
    "docvalue_fields",
    "min_score",
    "track_total_hits",
    "track_scores",
    "aggs",
    "aggregations",
    "search_after",
    "timeout",
    "version",
    "seq_no_primary_term",
    "post_filter",
    "ext",
];

fn search(node: &Node, call: &mut Call) -> Result<Reply, ApiError> {
    let began = now_ms();
    let body = call.object()?;
    let cluster = node.cluster();
    let targets = Names::targets(&cluster, call)?;
    if targets.len() > 1 && ["aggs", "aggregations", "sort"].iter().any(|key| body.contains_key(*key)) {
        return Err(ApiError::parsing(
            "[aggs] and [sort] over several indexes are not supported: name one index",
        ));
    }
    let mut found = Found::default();
    let mut shown = Shown::default();
    for target in &targets {
        let table = node.table(&target.index)?;
        let asked = Asked::read(&cluster, target, &table, &body, call)?;
        found.add(&target.index, &table, &asked)?;
        shown = asked.shown;
    }
    Ok(Reply::json(found.answer(&shown, targets.len(), now_ms().saturating_sub(began))))
}

fn count(node: &Node, call: &mut Call) -> Result<Reply, ApiError> {
    let body = call.object()?;
    if let Some(other) = body.keys().find(|key| *key != "query") {
        return Err(ApiError::parsing(format!("request does not support [{other}]")));
    }
    let cluster = node.cluster();
    let targets = Names::targets(&cluster, call)?;
    let mut total = 0;
    for target in &targets {
        let table = node.table(&target.index)?;
        let asked = body.get("query").map(query::read).transpose()?;
        let filter = both(asked, filters(target)?);
        let request = Request { filter, size: 0, ..Request::default() };
        total += table.search(&request, None).map_err(|error| of_search(&target.index, error))?.total.value;
    }
    let shards = json!({"total": targets.len(), "successful": targets.len(), "skipped": 0, "failed": 0});
    Ok(Reply::json(json!({"count": total, "_shards": shards})))
}

/// What the aliases let through by which an index was named.
fn filters(target: &Target) -> Result<Option<Query>, ApiError> {
    let should: Vec<Query> = target.filters.iter().map(query::read).collect::<Result<_, _>>()?;
    let any = Query::Bool {
        must: Vec::new(),
        should,
        filter: Vec::new(),
        must_not: Vec::new(),
        minimum_should_match: Some(1),
    };
    Ok((!target.filters.is_empty()).then_some(any))
}

/// What both let through.
fn both(one: Option<Query>, other: Option<Query>) -> Option<Query> {
    match (one, other) {
        (Some(one), Some(other)) => Some(Query::Bool {
            must: Vec::new(),
            should: Vec::new(),
            filter: vec![one, other],
            must_not: Vec::new(),
            minimum_should_match: None,
        }),
        (one, other) => one.or(other),
    }
}

/// A body that was read, for one index.
struct Asked {
    request: Request,
    timeout: Option<Duration>,
    min_score: Option<f32>,
    shown: Shown,
}

/// How an answer is written.
#[derive(Clone, Debug, PartialEq)]
struct Shown {
    source: SourceFilter,
    /// Ids as hits have them, and as fields.
    id: bool,
    id_field: bool,
    version: bool,
    seq_no: bool,
    /// By what hits are sorted, if that was said: how many keys, and whether scores are shown.
    sorted: Option<usize>,
    scores: bool,
    /// How many are counted exactly; `None`: none.
    counted: Option<u64>,
    total_as_number: bool,
    from: usize,
    size: usize,
}

impl Default for Shown {
    fn default() -> Self {
        Shown {
            source: SourceFilter::All,
            id: true,
            id_field: false,
            version: false,
            seq_no: false,
            sorted: None,
            scores: true,
            counted: Some(COUNTED),
            total_as_number: false,
            from: 0,
            size: 10,
        }
    }
}

impl Asked {
    fn read(
        cluster: &Cluster,
        target: &Target,
        table: &Watched,
        body: &Map<String, Value>,
        call: &Call,
    ) -> Result<Asked, ApiError> {
        if let Some(other) = body.keys().find(|key| !KEYS.contains(&key.as_str())) {
            return Err(ApiError::parsing(format!(
                "unknown or unsupported key [{other}] in a search: it takes {}",
                KEYS.join(", ")
            )));
        }
        let number = |name: &str, usual: usize| match (call.params.parsed::<usize>(name)?, body.get(name)) {
            (Some(given), _) => Ok(given),
            (None, None) => Ok(usual),
            (None, Some(given)) => {
                let given = given.as_u64().and_then(|given| usize::try_from(given).ok());
                given.ok_or_else(|| {
                    ApiError::argument(format!(
                        "[{name}] parameter cannot be negative, and is a whole number"
                    ))
                })
            }
        };
        let (size, from) = (number("size", 10)?, number("from", 0)?);
        let index = &cluster.indices[&target.index];
        let setting = |name: &str| index.settings.get(name).and_then(|text| text.parse().ok());
        let window: usize = setting("index.max_result_window").unwrap_or(WINDOW);
        if from.saturating_add(size) > window {
            return Err(ApiError::argument(format!(
                "Result window is too large, from + size must be less than or equal to: [{window}] but was [{}]. See \
                 the scroll api for a more efficient way to request large data sets. This limit can be set by changing \
                 the [index.max_result_window] index level setting.",
                from.saturating_add(size)
            )));
        }
        let mut request = Request { from, size, ..Request::default() };
        match body.get("query") {
            None => {}
            Some(given) => match query::one(given, "query")? {
                ("knn", asked) => {
                    let ef_search = setting("index.knn.algo_param.ef_search");
                    let (nearest, filter) = query::nearest(asked, table.schema(), ef_search)?;
                    request.nearest = vec![nearest];
                    request.filter = filter;
                }
                _ => request.query = Some(query::read(given)?),
            },
        }
        request.filter = both(request.filter, filters(target)?);
        let aggregations = body.get("aggs").or(body.get("aggregations"));
        if let Some(aggregations) = aggregations {
            let wrong = || ApiError::parsing("[aggs]: give an object");
            request.aggregations = aggregations.as_object().ok_or_else(wrong)?.clone();
        }
        if let Some(given) = body.get("post_filter") {
            if aggregations.is_some() || !request.nearest.is_empty() {
                return Err(ApiError::parsing(
                    "[post_filter] is not supported with aggregations, or with knn",
                ));
            }
            request.filter = both(request.filter, Some(query::read(given)?));
        }
        let mut shown = Shown { from, size, ..Shown::default() };
        sorted(body, call, &mut request, &mut shown)?;
        shown.source = SourceFilter::read(body.get("_source"), &call.params)?;
        fields(body, call, &mut shown)?;
        let flag = |name: &str| match body.get(name) {
            None => Ok(false),
            Some(Value::Bool(given)) => Ok(*given),
            Some(_) => Err(ApiError::parsing(format!("[{name}]: give true or false"))),
        };
        (shown.version, shown.seq_no) = (flag("version")?, flag("seq_no_primary_term")?);
        shown.scores |= flag("track_scores")?;
        shown.counted = match body.get("track_total_hits") {
            None => Some(COUNTED),
            Some(Value::Bool(true)) => Some(u64::MAX),
            Some(Value::Bool(false)) => None,
            Some(given) => match given.as_i64() {
                Some(-1) => Some(u64::MAX),
                Some(count) if count >= 0 => Some(count as u64),
                _ => return Err(ApiError::parsing("[track_total_hits]: give true, false, or a number")),
            },
        };
        request.exact_total = shown.counted.is_some();
        shown.total_as_number = call.params.flag("rest_total_hits_as_int", false)?;
        let timeout = body.get("timeout").and_then(Value::as_str).or(call.params.get("timeout"));
        let timeout = match timeout {
            None => None,
            Some(text) => {
                let wrong = || {
                    ApiError::parsing(format!("failed to parse timeout [{text}]: give a time such as 500ms"))
                };
                Some(Duration::from_millis(time_ms(text).ok_or_else(wrong)?))
            }
        };
        let min_score = match body.get("min_score") {
            None => None,
            Some(given) => {
                let wrong = || ApiError::parsing("[min_score]: give a number");
                Some(given.as_f64().ok_or_else(wrong)? as f32).filter(|least| *least > 0.0)
            }
        };
        Ok(Asked { request, timeout, min_score, shown })
    }
}

/// The order, and where in it the page begins.
fn sorted(
    body: &Map<String, Value>,
    call: &Call,
    request: &mut Request,
    shown: &mut Shown,
) -> Result<(), ApiError> {
    let keys: Vec<Value> = match (call.params.list("sort"), body.get("sort")) {
        (Some(keys), _) => {
            let key = |key: &str| match key.split_once(':') {
                Some((field, order)) => json!({field: order}),
                None => json!(key),
            };
            keys.into_iter().map(key).collect()
        }
        (None, None) => Vec::new(),
        (None, Some(Value::Array(keys))) => keys.clone(),
        (None, Some(key)) => vec![key.clone()],
    };
    for key in keys {
        // Order of the index, which is any.
        let key = match key {
            Value::String(name) if name == "_doc" => json!("_id"),
            Value::Object(mut object) if object.contains_key("_doc") => json!({"_id": object.remove("_doc")}),
            Value::Object(mut object) => {
                for how in object.values_mut().filter_map(Value::as_object_mut) {
                    // There are no unmapped fields: what a document has not is missing.
                    how.remove("unmapped_type");
                }
                Value::Object(object)
            }
            key => key,
        };
        let sort: Sort = serde_json::from_value(key).map_err(|error| ApiError::parsing(error.to_string()))?;
        request.sort.push(sort);
    }
    if !request.sort.is_empty() {
        shown.sorted = Some(request.sort.len());
        shown.scores = request.sort.iter().any(|sort| sort.by == SortBy::Score);
    }
    match body.get("search_after") {
        None => Ok(()),
        Some(Value::Array(after)) if Some(after.len()) == shown.sorted => {
            let mut after = after.clone();
            if !request.sort.iter().any(|sort| sort.by == SortBy::Id) {
                // Behind all that have the same keys.
                after.push(json!("\u{10ffff}".repeat(128)));
            }
            request.after = Some(after);
            Ok(())
        }
        Some(_) => Err(ApiError::argument(
            "search_after must have a value for each key of sort, and there must be some".to_owned(),
        )),
    }
}

/// What of a hit is shown beside its source.
fn fields(body: &Map<String, Value>, call: &Call, shown: &mut Shown) -> Result<(), ApiError> {
    let strings = |name: &str| -> Result<Vec<String>, ApiError> {
        match (call.params.list(name), body.get(name)) {
            (Some(given), _) => Ok(given.into_iter().map(str::to_owned).collect()),
            (None, None) => Ok(Vec::new()),
            (None, Some(Value::String(one))) => Ok(vec![one.clone()]),
            (None, Some(Value::Array(all))) => {
                let name = |field: &Value| match field {
                    Value::String(field) => Ok(field.clone()),
                    Value::Object(field) => {
                        Ok(field.get("field").and_then(Value::as_str).unwrap_or_default().to_owned())
                    }
                    _ => Err(ApiError::parsing(format!("[{name}]: give fields"))),
                };
                all.iter().map(name).collect()
            }
            _ => Err(ApiError::parsing(format!("[{name}]: give fields"))),
        }
    };
    let stored = strings("stored_fields")?;
    if !stored.is_empty() {
        if !body.contains_key("_source") && call.params.get("_source").is_none() {
            shown.source = SourceFilter::None;
        }
        shown.id = stored != ["_none_"];
        if let Some(other) =
            stored.iter().find(|field| !["_none_", "_id", "_source"].contains(&field.as_str()))
        {
            return Err(ApiError::parsing(format!(
                "stored_fields: [{other}] is not stored by itself: use _source"
            )));
        }
    }
    for field in strings("docvalue_fields")? {
        if field != "_id" {
            return Err(ApiError::parsing(format!(
                "docvalue_fields: [{field}] is not supported: use _source"
            )));
        }
        shown.id_field = true;
    }
    Ok(())
}

/// What was found in all indexes.
#[derive(Default)]
struct Found {
    /// With their scores.
    hits: Vec<(f32, Value)>,
    total: u64,
    inexact: bool,
    aggregations: Option<Value>,
    timed_out: bool,
}

impl Found {
    fn add(&mut self, index: &str, table: &Arc<Watched>, asked: &Asked) -> Result<(), ApiError> {
        let Asked { request, timeout, min_score, shown } = asked;
        let answer = match table.search(request, *timeout) {
            Ok(answer) => answer,
            Err(SearchTableError::Failed(Failure::DeadlineExceeded)) => {
                self.timed_out = true;
                return Ok(());
            }
            Err(error) => return Err(of_search(index, error)),
        };
        self.total += answer.total.value;
        self.inexact |= !answer.total.exact;
        if !request.aggregations.is_empty() {
            self.aggregations = Some(answer.aggregations.clone());
        }
        for hit in &answer.hits {
            if min_score.is_some_and(|least| hit.score < least) {
                self.total -= 1;
                continue;
            }
            self.hits.push((hit.score, written(index, &answer, hit, shown)?));
        }
        Ok(())
    }

    fn answer(mut self, shown: &Shown, shards: usize, took: u64) -> Value {
        if shards > 1 {
            self.hits.sort_by(|(one, _), (other, _)| other.total_cmp(one));
            self.hits.truncate(shown.size);
        }
        let best = self.hits.iter().map(|(score, _)| *score).max_by(f32::total_cmp);
        let hits: Vec<Value> = self.hits.into_iter().map(|(_, hit)| hit).collect();
        let mut said = json!({"max_score": best.filter(|_| shown.scores), "hits": hits});
        if let Some(counted) = shown.counted {
            said["total"] = match (shown.total_as_number, self.inexact || self.total > counted) {
                (true, _) => json!(self.total),
                (false, true) => json!({"value": self.total.min(counted), "relation": "gte"}),
                (false, false) => json!({"value": self.total, "relation": "eq"}),
            };
        }
        let mut answer = json!({
            "took": took,
            "timed_out": self.timed_out,
            "_shards": {"total": shards, "successful": shards, "skipped": 0, "failed": 0},
            "hits": said,
        });
        if let Some(aggregations) = self.aggregations {
            answer["aggregations"] = aggregations;
        }
        answer
    }
}

fn written(index: &str, answer: &Answer, hit: &Hit, shown: &Shown) -> Result<Value, ApiError> {
    let mut said = json!({"_index": index, "_score": shown.scores.then_some(hit.score)});
    if shown.id {
        said["_id"] = json!(hit.id);
    }
    if shown.id_field {
        said["fields"] = json!({"_id": [hit.id]});
    }
    if shown.version {
        said["_version"] = json!(hit.version);
    }
    if shown.seq_no {
        said["_seq_no"] = json!(hit.seq);
        said["_primary_term"] = json!(1);
    }
    if shown.source != SourceFilter::None {
        let source = answer.source(hit).map_err(ApiError::internal)?;
        let source = serde_json::from_slice(&source).map_err(ApiError::internal)?;
        if let Some(source) = shown.source.apply(source) {
            said["_source"] = source;
        }
    }
    if let Some(keys) = shown.sorted {
        said["sort"] = json!(hit.sort[..keys.min(hit.sort.len())]);
    }
    Ok(said)
}

/// A search's error as OpenSearch has it.
fn of_search(index: &str, error: SearchTableError) -> ApiError {
    let reason = error.to_string();
    let error = match error {
        SearchTableError::Busy(_) | SearchTableError::Refused(_) => {
            ApiError::new(StatusCode::TOO_MANY_REQUESTS, "rejected_execution_exception", reason)
        }
        SearchTableError::Memory(_) => {
            ApiError::new(StatusCode::TOO_MANY_REQUESTS, "circuit_breaking_exception", reason)
        }
        SearchTableError::Failed(_) | SearchTableError::Documents(_) | SearchTableError::Stopped => {
            ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "search_phase_execution_exception", reason)
        }
        _ => ApiError::new(StatusCode::BAD_REQUEST, "query_shard_exception", reason),
    };
    error.with("index", index)
}
