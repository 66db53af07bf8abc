//! A search's body, read: what is asked of each index, and how the answer is written.

use super::hybrid::{self, Hybrid};
use super::inner::{self, Inner};
use super::{Searched, aggregations, both, fields, pit};
use crate::call::Params;
use crate::error::ApiError;
use crate::query::{self, About};
use crate::settings::time_ms;
use crate::source::SourceFilter;
use lanewise_engine::documents::{Query, Sort, SortBy};
use lanewise_engine::table::Request;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

/// As `index.max_result_window`.
const WINDOW: usize = 10_000;
/// What is counted exactly where a request does not say.
const COUNTED: u64 = 10_000;

/// What a body may say.
pub(crate) const KEYS: [&str; 24] = [
    "query",
    "size",
    "from",
    "sort",
    "_source",
    "stored_fields",
    "docvalue_fields",
    "fields",
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
    "collapse",
    "explain",
    "profile",
    "ext",
    "pit",
    "search_pipeline",
];

/// Of the hits with one value the first is shown, and others beside it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Collapse {
    pub(super) field: String,
    pub(super) inner: Vec<Inner>,
}

/// A body that was read, for any index.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Asked {
    query: Option<Value>,
    post_filter: Option<Value>,
    /// Several queries whose scores are made one.
    pub(super) hybrid: Option<Hybrid>,
    pub(super) from: usize,
    pub(super) size: usize,
    pub(super) sort: Vec<Sort>,
    after: Option<Vec<Value>>,
    pub(super) aggregations: Map<String, Value>,
    pub(super) timeout: Option<Duration>,
    pub(super) min_score: Option<f32>,
    /// The field of whose values the first hit each is shown.
    pub(super) collapse: Option<Collapse>,
    pub(super) source: SourceFilter,
    /// Ids as hits have them, and as fields.
    pub(super) id: bool,
    pub(super) id_field: bool,
    /// Fields that are shown beside the source, by patterns.
    pub(super) fields: Vec<String>,
    pub(super) docvalues: Vec<String>,
    pub(super) version: bool,
    pub(super) seq_no: bool,
    pub(super) explain: bool,
    pub(super) profile: bool,
    /// Whether hits are shown with their scores.
    pub(super) scores: bool,
    /// How many are counted exactly; `None`: none.
    pub(super) counted: Option<u64>,
    pub(super) total_as_number: bool,
    pub(super) pit: Option<pit::Named>,
    /// Whether other pages follow, by themselves.
    scrolls: bool,
}

impl Asked {
    /// # Errors
    /// What is wrong, or not supported, by key.
    pub(super) fn read(body: &Map<String, Value>, params: &Params) -> Result<Asked, ApiError> {
        if let Some(other) = body.keys().find(|key| !KEYS.contains(&key.as_str())) {
            return Err(ApiError::parsing(format!(
                "unknown or unsupported key [{other}] in a search: it takes {}",
                KEYS.join(", ")
            )));
        }
        let number = |name: &str, usual: usize| match (params.parsed::<usize>(name)?, body.get(name)) {
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
        let flag = |name: &str| match body.get(name) {
            None => Ok(false),
            Some(Value::Bool(given)) => Ok(*given),
            Some(_) => Err(ApiError::parsing(format!("[{name}]: give true or false"))),
        };
        let sort = sorted(body, params)?;
        let stored = fields::names("stored_fields", body, params)?;
        let shown = fields::stored(&stored)?;
        let mut source = SourceFilter::read(body.get("_source"), params)?;
        if !shown.source && !body.contains_key("_source") && params.get("_source").is_none() {
            source = SourceFilter::None;
        }
        let mut docvalues = fields::names("docvalue_fields", body, params)?;
        let id_field = docvalues.iter().any(|field| field == "_id");
        docvalues.retain(|field| field != "_id");
        let asked = Asked {
            query: body.get("query").cloned(),
            post_filter: body.get("post_filter").cloned(),
            hybrid: hybrid::read(body)?,
            from: number("from", 0)?,
            size: number("size", 10)?,
            after: after(body, &sort)?,
            aggregations: aggregations::read(body)?,
            timeout: timeout(body, params)?,
            min_score: min_score(body)?,
            collapse: collapse(body)?,
            source,
            id: shown.id,
            id_field,
            fields: fields::names("fields", body, &Params::default())?,
            docvalues,
            version: flag("version")?,
            seq_no: flag("seq_no_primary_term")?,
            explain: flag("explain")?,
            profile: flag("profile")?,
            scores: sort.is_empty()
                || sort.iter().any(|key| key.by == SortBy::Score)
                || flag("track_scores")?,
            counted: counted(body, params)?,
            total_as_number: params.flag("rest_total_hits_as_int", false)?,
            sort,
            pit: pit::read(body)?,
            scrolls: false,
        };
        asked.check()?;
        Ok(asked)
    }

    /// Refuses what does not go together.
    fn check(&self) -> Result<(), ApiError> {
        let pairs = [
            (
                self.after.is_some() && self.from > 0,
                "`from` parameter must be set to 0 when `search_after` is used",
            ),
            (
                self.after.is_some() && self.collapse.is_some(),
                "cannot use `collapse` in conjunction with `search_after`",
            ),
            (
                self.collapse.is_some() && self.sort.iter().any(|key| key.by == SortBy::Id),
                "[collapse] with [sort] by _id or _doc is not supported",
            ),
        ];
        let of_hybrid = [
            (!self.sort.is_empty(), "[sort] with a hybrid query is not supported: hits come by score"),
            (self.collapse.is_some(), "[collapse] with a hybrid query is not supported"),
            (
                self.post_filter.is_some(),
                "[post_filter] with a hybrid query is not supported: use its [filter]",
            ),
            (self.explain, "[explain] with a hybrid query is not supported"),
        ];
        let of_hybrid = of_hybrid.into_iter().map(|(wrong, what)| (self.hybrid.is_some() && wrong, what));
        match pairs.into_iter().chain(of_hybrid).find(|(wrong, _)| *wrong) {
            Some((_, what)) => Err(ApiError::argument(what)),
            None => Ok(()),
        }
    }

    /// How many hits are wanted of each index, from the first on.
    pub(super) fn reach(&self) -> usize {
        self.from.saturating_add(self.size)
    }

    /// The hits that are shown, of all from the first on.
    pub(super) fn shown(&self) -> Range<usize> {
        self.from..self.reach()
    }

    /// Asks for page after page.
    ///
    /// # Errors
    /// If that does not go together with what is asked.
    pub(super) fn scroll(&mut self) -> Result<(), ApiError> {
        let wrong = [
            (self.from > 0, "using [from] is not allowed in a scroll context"),
            (self.size == 0, "[size] cannot be [0] in a scroll context"),
            (self.after.is_some(), "cannot use `search_after` in a scroll context"),
            (self.collapse.is_some(), "cannot use `collapse` in a scroll context"),
            (self.hybrid.is_some(), "a hybrid query is not supported in a scroll context"),
            (self.counted.is_none(), "disabling [track_total_hits] is not allowed in a scroll context"),
        ];
        if let Some((_, what)) = wrong.into_iter().find(|(wrong, _)| *wrong) {
            return Err(ApiError::argument(what));
        }
        self.scrolls = true;
        Ok(())
    }

    /// Whether it asks for documents by one query, as they are ranked, in any time, and for nothing more.
    pub(super) fn is_plain(&self) -> bool {
        let more = self.post_filter.is_some()
            || self.hybrid.is_some()
            || self.collapse.is_some()
            || self.pit.is_some();
        !more && self.sort.is_empty() && self.aggregations.is_empty() && self.timeout.is_none()
    }

    /// What leaves hits out, but not figures.
    pub(super) fn post_filter(&self, about: &About) -> Result<Option<Query>, ApiError> {
        self.post_filter.as_ref().map(|filter| query::read(filter, about)).transpose()
    }

    /// What is asked of an index with these settings: all from the first hit on.
    pub(super) fn request(
        &self,
        settings: Option<&BTreeMap<String, String>>,
        one: &Searched,
    ) -> Result<Request, ApiError> {
        let setting = |name: &str| settings.and_then(|settings| settings.get(name)?.parse().ok());
        let window: usize = setting("index.max_result_window").unwrap_or(WINDOW);
        if !self.scrolls && self.reach() > window {
            return Err(ApiError::argument(format!(
                "Result window is too large, from + size must be less than or equal to: [{window}] but was [{}]. See \
                 the scroll api for a more efficient way to request large data sets. This limit can be set by changing \
                 the [index.max_result_window] index level setting.",
                self.reach()
            )));
        }
        let mut request = Request { size: self.reach(), ..Request::default() };
        if let (Some(given), None) = (&self.query, &self.hybrid) {
            request = ask(given, &one.about(), request)?;
        }
        if self.scrolls && self.size > window {
            return Err(ApiError::argument(format!(
                "Batch size is too large, size must be less than or equal to: [{window}] but was [{}]",
                self.size
            )));
        }
        fields::check(&self.docvalues, &one.table.schema())?;
        request.filter = both(request.filter, one.filter.clone());
        request.explain = self.explain;
        request.min_score = self.min_score;
        request.sort = self.sort.clone();
        request.after = self.after.clone();
        request.aggregations = self.aggregations.clone();
        request.exact_total = self.counted.is_some();
        request.profile = self.profile;
        Ok(request)
    }
}

/// Asks for what a query finds. Vectors alone are looked for among what the request's filter finds.
pub(super) fn ask(given: &Value, about: &About, request: Request) -> Result<Request, ApiError> {
    Ok(match query::read(given, about)? {
        Query::Nearest(mut nearest) => {
            let filter = both(nearest.filter.take().map(|filter| *filter), request.filter);
            Request { nearest: vec![nearest], filter, ..request }
        }
        query => Request { query: Some(query), ..request },
    })
}

fn timeout(body: &Map<String, Value>, params: &Params) -> Result<Option<Duration>, ApiError> {
    let Some(text) = body.get("timeout").and_then(Value::as_str).or(params.get("timeout")) else {
        return Ok(None);
    };
    let wrong = || ApiError::parsing(format!("failed to parse timeout [{text}]: give a time such as 500ms"));
    Ok(Some(Duration::from_millis(time_ms(text).ok_or_else(wrong)?)))
}

fn min_score(body: &Map<String, Value>) -> Result<Option<f32>, ApiError> {
    let Some(given) = body.get("min_score").filter(|given| !given.is_null()) else { return Ok(None) };
    let least = given.as_f64().ok_or_else(|| ApiError::parsing("[min_score]: give a number"))?;
    Ok(Some(least as f32).filter(|least| *least > 0.0))
}

fn collapse(body: &Map<String, Value>) -> Result<Option<Collapse>, ApiError> {
    let Some(given) = body.get("collapse").filter(|given| !given.is_null()) else { return Ok(None) };
    let fields = given.as_object().ok_or_else(|| ApiError::parsing("[collapse]: give an object"))?;
    query::only("collapse", fields, &["field", "inner_hits", "max_concurrent_group_searches"])?;
    let field = fields.get("field").and_then(Value::as_str);
    let field = field.ok_or_else(|| ApiError::parsing("[collapse]: give a field"))?.to_owned();
    Ok(Some(Collapse { field, inner: inner::read(fields.get("inner_hits"))? }))
}

fn counted(body: &Map<String, Value>, params: &Params) -> Result<Option<u64>, ApiError> {
    let of_params: Option<Value> = params.get("track_total_hits").map(|text| match text {
        "" | "true" => json!(true),
        "false" => json!(false),
        text => text.parse::<i64>().map_or_else(|_| json!(text), |number| json!(number)),
    });
    match of_params.as_ref().or(body.get("track_total_hits")) {
        None => Ok(Some(COUNTED)),
        Some(Value::Bool(true)) => Ok(Some(u64::MAX)),
        Some(Value::Bool(false)) => Ok(None),
        Some(given) => match given.as_i64() {
            Some(-1) => Ok(Some(u64::MAX)),
            Some(count) if count >= 0 => Ok(Some(count as u64)),
            _ => Err(ApiError::parsing("[track_total_hits]: give true, false, or a number")),
        },
    }
}

/// The order.
fn sorted(body: &Map<String, Value>, params: &Params) -> Result<Vec<Sort>, ApiError> {
    let keys: Vec<Value> = match (params.list("sort"), body.get("sort")) {
        (Some(keys), _) => {
            let key = |key: &str| match key.split_once(':') {
                Some((field, order)) => json!({field: order}),
                None => json!(key),
            };
            keys.into_iter().map(key).collect()
        }
        (None, None | Some(Value::Null)) => Vec::new(),
        (None, Some(Value::Array(keys))) => keys.clone(),
        (None, Some(key)) => vec![key.clone()],
    };
    let is_doc = |name: &str| name == "_doc" || name == "_shard_doc";
    let read = |key: Value| -> Result<Sort, ApiError> {
        // Order of the index, which is any.
        let key = match key {
            Value::String(name) if is_doc(&name) => json!("_id"),
            Value::Object(object) if object.keys().any(|name| is_doc(name)) => {
                json!({"_id": object.into_iter().next().map(|(_, how)| how)})
            }
            Value::Object(mut object) => {
                for how in object.values_mut().filter_map(Value::as_object_mut) {
                    // There are no unmapped fields: what a document has not is missing.
                    how.remove("unmapped_type");
                }
                Value::Object(object)
            }
            key => key,
        };
        serde_json::from_value(key).map_err(|error| ApiError::parsing(error.to_string()))
    };
    keys.into_iter().map(read).collect()
}

/// Where in the order the page begins.
fn after(body: &Map<String, Value>, sort: &[Sort]) -> Result<Option<Vec<Value>>, ApiError> {
    match body.get("search_after") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Array(after)) if !sort.is_empty() && after.len() == sort.len() => {
            let mut after = after.clone();
            if !sort.iter().any(|key| key.by == SortBy::Id) {
                // Behind all that have the same keys.
                after.push(json!("\u{10ffff}".repeat(128)));
            }
            Ok(Some(after))
        }
        Some(_) => Err(ApiError::argument(
            "search_after must have a value for each key of sort, and there must be some".to_owned(),
        )),
    }
}
