//! What was found in all indexes, in one order, and how it is written.

use super::asked::{Asked, Collapse};
use super::hybrid::{Hybrid, Ranking, whole};
use super::{Searched, both, fields};
use crate::api::document::Sources;
use crate::error::ApiError;
use lanewise_engine::documents::{Query, Sort, SortBy};
use lanewise_engine::table::{Answer, Figures, Hit, Request};
use serde_json::{Map, Value, json};
use std::cmp::Ordering;
use std::collections::HashSet;
use std::ops::Range;

/// Hits that are looked through for the first of each value of a field.
const COLLAPSED: usize = 10_000;

/// What was found.
pub(super) struct Found {
    shards: usize,
    parts: Vec<Part>,
    /// The hits in order: of which part, and which of its own.
    order: Vec<(usize, usize)>,
    total: u64,
    inexact: bool,
    figures: Vec<Figures>,
    /// Of a hybrid query, by part and query.
    rankings: Vec<Vec<Ranking>>,
    aggregations: Option<Value>,
    timed_out: bool,
}

/// What was found in one index.
struct Part {
    index: String,
    answer: Answer,
    sources: Sources,
    /// Those of the answer's hits that count.
    hits: Vec<usize>,
}

impl Found {
    pub(super) fn new(shards: usize) -> Found {
        let (parts, order) = (Vec::new(), Vec::new());
        Found {
            shards,
            parts,
            order,
            total: 0,
            inexact: false,
            figures: Vec::new(),
            rankings: Vec::new(),
            aggregations: None,
            timed_out: false,
        }
    }

    /// Searches one index more.
    pub(super) fn add(
        &mut self,
        searched: &Searched,
        mut request: Request,
        sources: Sources,
        asked: &Asked,
    ) -> Result<(), ApiError> {
        let search = |request: &Request| searched.search(request, asked.timeout);
        request.open_figures = true;
        if let Some(filter) = asked.post_filter(&searched.about())? {
            if !request.aggregations.is_empty() {
                // Figures are of all that is found, hits of what the filter leaves.
                let figures = Request { size: 0, sort: Vec::new(), after: None, ..request.clone() };
                self.figures.extend(search(&figures)?.and_then(|answer| answer.figures));
                request.aggregations = Map::new();
            }
            request = after(request, filter);
        }
        if let Some(Collapse { field, .. }) = &asked.collapse {
            if request.sort.is_empty() {
                request.sort.push(Sort::new(SortBy::Score));
            }
            request.sort.push(Sort::new(SortBy::Field(field.clone())));
            request.size = COLLAPSED;
        }
        let found = match &asked.hybrid {
            Some(hybrid) => hybrid.search(searched, &request, asked.timeout)?,
            None => search(&request)?.map(|answer| (answer, Vec::new())),
        };
        let Some((answer, rankings)) = found else {
            self.timed_out = true;
            return Ok(());
        };
        let mut hits: Vec<usize> = (0..answer.hits.len()).collect();
        if asked.collapse.is_some() {
            let mut seen = HashSet::new();
            hits.retain(|hit| seen.insert(collapsed(&answer.hits[*hit]).to_string()));
            if hits.len() < asked.reach() && answer.hits.len() == COLLAPSED {
                return Err(ApiError::argument(format!(
                    "[collapse] the first {COLLAPSED} hits have too few values: ask for less, or filter"
                )));
            }
        }
        self.rankings.push(rankings);
        self.put(&searched.index, answer, hits, sources);
        Ok(())
    }

    /// Takes what an index answered, of which these hits count.
    pub(super) fn put(&mut self, index: &str, mut answer: Answer, hits: Vec<usize>, sources: Sources) {
        self.total += answer.total.value;
        self.inexact |= !answer.total.exact;
        self.figures.extend(answer.figures.take());
        self.parts.push(Part { index: index.to_owned(), answer, sources, hits });
    }

    /// Brings the hits of all indexes into one order.
    ///
    /// # Errors
    /// If figures have too many buckets.
    pub(super) fn settle(&mut self, asked: &Asked) -> Result<(), ApiError> {
        if !self.figures.is_empty() {
            let figures = Figures::together(std::mem::take(&mut self.figures));
            self.aggregations = Some(figures.map_err(|error| ApiError::parsing(error.to_string()))?);
        }
        if let Some(hybrid) = &asked.hybrid {
            self.fuse(hybrid, asked.min_score);
        }
        let all = self.parts.iter().enumerate();
        self.order = all.flat_map(|(part, of)| of.hits.iter().map(move |hit| (part, *hit))).collect();
        if self.parts.len() < 2 && asked.hybrid.is_none() {
            return Ok(());
        }
        let parts = &self.parts;
        let hit = |(part, hit): (usize, usize)| &parts[part].answer.hits[hit];
        self.order.sort_by(|&one, &other| compare(hit(one), hit(other), &asked.sort));
        if asked.collapse.is_some() {
            let mut seen = HashSet::new();
            self.order.retain(|&at| seen.insert(collapsed(hit(at)).to_string()));
        }
        self.order.truncate(asked.reach());
        Ok(())
    }

    /// Gives the hits of a hybrid query the scores that are made of those of its queries.
    fn fuse(&mut self, hybrid: &Hybrid, least: Option<f32>) {
        for ((part, hit), score) in hybrid.fuse(&self.rankings) {
            self.parts[part].answer.hits[hit].score = score;
        }
        let Some(least) = least else { return };
        for Part { answer, hits, .. } in &mut self.parts {
            hits.retain(|hit| answer.hits[*hit].score >= least);
        }
        self.total = self.parts.iter().map(|part| part.hits.len() as u64).sum();
    }

    /// Has each index go on after its last hit among the first `shown`.
    pub(super) fn go_on(&self, all: &mut [Searched], shown: usize) {
        for &(part, hit) in self.order.iter().take(shown) {
            let Part { index, answer, .. } = &self.parts[part];
            if let Some(one) = all.iter_mut().find(|one| one.index == *index) {
                one.after = Some(answer.hits[hit].sort.clone());
            }
        }
    }

    /// The answer with these hits.
    pub(super) fn answer(&self, asked: &Asked, shown: Range<usize>, took: u64) -> Result<Value, ApiError> {
        let end = shown.end.min(self.order.len());
        let page = &self.order[shown.start.min(end)..end];
        let hits = page.iter().map(|&(part, hit)| self.parts[part].written(hit, asked));
        let hits = hits.collect::<Result<Vec<_>, _>>()?;
        let scores = self.order.iter().map(|&(part, hit)| self.parts[part].answer.hits[hit].score);
        let best = if self.shards == 0 { Some(0.0) } else { scores.max_by(f32::total_cmp) };
        let mut said = json!({"max_score": best.filter(|_| asked.scores), "hits": hits});
        if let Some(counted) = asked.counted {
            said["total"] = match (asked.total_as_number, self.inexact || self.total > counted) {
                (true, _) => json!(self.total),
                (false, true) => json!({"value": self.total.min(counted), "relation": "gte"}),
                (false, false) => json!({"value": self.total, "relation": "eq"}),
            };
        }
        let mut answer = json!({
            "took": took,
            "timed_out": self.timed_out,
            "_shards": {"total": self.shards, "successful": self.shards, "skipped": 0, "failed": 0},
            "hits": said,
        });
        if let Some(aggregations) = &self.aggregations {
            answer["aggregations"] = aggregations.clone();
        }
        if asked.profile {
            let shard = |part: &Part| {
                json!({
                    "id": format!("[{}][0]", part.index), "searches": [], "aggregations": [],
                    "lanewise": part.answer.profile,
                })
            };
            answer["profile"] = json!({"shards": self.parts.iter().map(shard).collect::<Vec<_>>()});
        }
        Ok(answer)
    }
}

/// The same, with hits left out that `filter` does not find: after the nearest are chosen.
fn after(request: Request, filter: Query) -> Request {
    if request.nearest.is_empty() {
        return Request { filter: both(request.filter, Some(filter)), ..request };
    }
    let query = whole(Request {
        nearest: request.nearest.clone(),
        filter: request.filter.clone(),
        ..Request::default()
    });
    let query = Query::Bool {
        must: vec![query],
        should: Vec::new(),
        filter: vec![filter],
        must_not: Vec::new(),
        minimum_should_match: None,
    };
    Request { query: Some(query), nearest: Vec::new(), filter: None, ..request }
}

/// The value that a hit is the first of: it was asked for as the last key before the id.
fn collapsed(hit: &Hit) -> &Value {
    hit.sort.iter().rev().nth(1).unwrap_or(&Value::Null)
}

/// By the keys of the order, or by score; then by id.
fn compare(one: &Hit, other: &Hit, sort: &[Sort]) -> Ordering {
    let by_score = || other.score.total_cmp(&one.score);
    let keys = sort.iter().enumerate().map(|(at, key)| {
        if key.by == SortBy::Score {
            let order = by_score();
            return if key.descending { order } else { order.reverse() };
        }
        let null = Value::Null;
        let (one, other) = (one.sort.get(at).unwrap_or(&null), other.sort.get(at).unwrap_or(&null));
        match (one.is_null(), other.is_null()) {
            (true, true) => Ordering::Equal,
            (true, false) if key.missing_first => Ordering::Less,
            (false, true) if !key.missing_first => Ordering::Less,
            (true, false) | (false, true) => Ordering::Greater,
            (false, false) if key.descending => values(other, one),
            (false, false) => values(one, other),
        }
    });
    let order = keys.fold(Ordering::Equal, Ordering::then);
    let order = if sort.is_empty() { by_score() } else { order };
    order.then_with(|| one.id.cmp(&other.id))
}

/// Booleans before numbers before strings, as a table has them.
fn values(one: &Value, other: &Value) -> Ordering {
    let rank = |value: &Value| match value {
        Value::Bool(_) => 0,
        Value::Number(_) => 1,
        _ => 2,
    };
    match (one, other) {
        (Value::Bool(one), Value::Bool(other)) => one.cmp(other),
        (Value::String(one), Value::String(other)) => one.cmp(other),
        (Value::Number(one), Value::Number(other)) => match (one.as_i64(), other.as_i64()) {
            (Some(one), Some(other)) => one.cmp(&other),
            _ => one.as_f64().unwrap_or(0.0).total_cmp(&other.as_f64().unwrap_or(0.0)),
        },
        _ => rank(one).cmp(&rank(other)),
    }
}

impl Part {
    fn written(&self, hit: usize, asked: &Asked) -> Result<Value, ApiError> {
        let hit = &self.answer.hits[hit];
        let mut said = json!({"_index": self.index, "_score": asked.scores.then_some(hit.score)});
        if asked.id {
            said["_id"] = json!(hit.id);
        }
        if asked.version {
            said["_version"] = json!(hit.version);
        }
        if asked.seq_no {
            said["_seq_no"] = json!(hit.seq);
            said["_primary_term"] = json!(1);
        }
        let wants_fields = !asked.fields.is_empty() || !asked.docvalues.is_empty();
        let mut values = Map::new();
        if wants_fields || self.sources.any() {
            let source = self.answer.source(hit).map_err(ApiError::internal)?;
            if let Some(source) = self.sources.apply(&source, |field| self.answer.vector(hit, field))? {
                said["_source"] = source;
            }
            if wants_fields {
                let source = serde_json::from_slice(&source).map_err(ApiError::internal)?;
                let patterns = [&asked.fields[..], &asked.docvalues[..]].concat();
                values = fields::of(&source, &patterns);
            }
        }
        if asked.id_field {
            values.insert("_id".to_owned(), json!([hit.id]));
        }
        if let Some(Collapse { field, .. }) = &asked.collapse {
            values.insert(field.clone(), json!([collapsed(hit)]));
        }
        if !values.is_empty() {
            said["fields"] = Value::Object(values);
        }
        if !asked.sort.is_empty() {
            said["sort"] = json!(hit.sort[..asked.sort.len().min(hit.sort.len())]);
        }
        if let Some(explanation) = &hit.explanation {
            said["_explanation"] = Value::clone(explanation);
        }
        Ok(said)
    }
}
