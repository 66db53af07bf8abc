//! OpenSearch's queries, and what a table is asked for in their place.

mod knn;
mod nested;
mod script;
mod words;

use crate::error::ApiError;
use lanewise_engine::documents::{Query, Range, Schema};
use serde_json::{Map, Value};
use std::sync::Arc;

/// Queries within queries, at most.
const DEPTH_MAX: usize = 60;
/// The queries that are known.
pub(crate) const NAMES: [&str; 22] = [
    "bool",
    "constant_score",
    "dis_max",
    "exists",
    "fuzzy",
    "hybrid",
    "ids",
    "knn",
    "match",
    "match_all",
    "match_none",
    "match_phrase",
    "match_phrase_prefix",
    "multi_match",
    "nested",
    "prefix",
    "range",
    "regexp",
    "script_score",
    "term",
    "terms",
    "wildcard",
];

/// What is known of the index that a query is for.
#[derive(Clone, Default)]
pub(crate) struct About {
    /// Without one vectors cannot be looked for.
    pub(crate) schema: Option<Arc<Schema>>,
    /// For vectors of which nobody says it.
    pub(crate) ef_search: Option<usize>,
}

/// Reads a query.
///
/// # Errors
/// What is wrong, or not supported, by its name.
pub(crate) fn read(given: &Value, about: &About) -> Result<Query, ApiError> {
    at_depth(given, about, DEPTH_MAX)
}

/// The one name of an object, and what is behind it.
pub(crate) fn one<'a>(given: &'a Value, what: &str) -> Result<(&'a str, &'a Value), ApiError> {
    let wrong = || ApiError::parsing(format!("[{what}] malformed query, expected an object with one name"));
    let object = given.as_object().filter(|object| object.len() == 1).ok_or_else(wrong)?;
    object.iter().next().map(|(name, value)| (name.as_str(), value)).ok_or_else(wrong)
}

/// Refuses fields other than `known`.
pub(crate) fn only(query: &str, fields: &Map<String, Value>, known: &[&str]) -> Result<(), ApiError> {
    match fields.keys().find(|key| !known.contains(&key.as_str()) && *key != "_name") {
        Some(other) => Err(ApiError::parsing(format!(
            "[{query}] query does not support [{other}]: it takes {}",
            known.join(", ")
        ))),
        None => Ok(()),
    }
}

fn object<'a>(query: &str, given: &'a Value) -> Result<&'a Map<String, Value>, ApiError> {
    given.as_object().ok_or_else(|| ApiError::parsing(format!("[{query}] expected an object")))
}

/// A field's name, what else is said of it, and the value that is asked for.
type OfField<'a> = (&'a str, Option<&'a Map<String, Value>>, &'a Value);

/// A query of one field: its name, and what is asked of it; a value alone stands for `{key: value}`.
fn of_field<'a>(query: &str, key: &str, given: &'a Value, known: &[&str]) -> Result<OfField<'a>, ApiError> {
    let (field, asked) = one(given, query)?;
    match asked {
        Value::Object(fields) => {
            only(query, fields, known)?;
            let value = fields.get(key);
            let value =
                value.ok_or_else(|| ApiError::parsing(format!("[{query}] [{field}]: [{key}] is missing")))?;
            Ok((field, Some(fields), value))
        }
        value => Ok((field, None, value)),
    }
}

fn string(query: &str, field: &str, value: &Value) -> Result<String, ApiError> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Number(number) => Ok(number.to_string()),
        Value::Bool(given) => Ok(given.to_string()),
        _ => Err(ApiError::parsing(format!("[{query}] [{field}]: expected a string"))),
    }
}

fn factor(query: &str, fields: Option<&Map<String, Value>>) -> Result<Option<f32>, ApiError> {
    match fields.and_then(|fields| fields.get("boost")) {
        None => Ok(None),
        Some(boost) => match boost.as_f64() {
            Some(boost) => Ok(Some(boost as f32)),
            None => Err(ApiError::parsing(format!("[{query}] boost: expected a number"))),
        },
    }
}

fn boosted(query: Query, factor: Option<f32>) -> Query {
    match factor {
        Some(factor) if factor != 1.0 => Query::Boost { query: Box::new(query), factor },
        _ => query,
    }
}

fn at_depth(given: &Value, about: &About, left: usize) -> Result<Query, ApiError> {
    let too_deep = || ApiError::parsing(format!("queries within queries are at most {DEPTH_MAX} deep"));
    let left = left.checked_sub(1).ok_or_else(too_deep)?;
    let (name, asked) = one(given, "query")?;
    match name {
        "match_all" => {
            let fields = object(name, asked)?;
            only(name, fields, &["boost"])?;
            Ok(boosted(Query::All, factor(name, Some(fields))?))
        }
        "match_none" => Ok(Query::None),
        "term" => {
            let (field, fields, value) =
                of_field(name, "value", asked, &["value", "boost", "case_insensitive"])?;
            if field == "_id" {
                return Ok(Query::Ids(vec![string(name, field, value)?]));
            }
            let query = Query::Term { field: field.to_owned(), value: value.clone() };
            Ok(boosted(query, factor(name, fields)?))
        }
        "terms" => {
            let fields = object(name, asked)?;
            let boost = factor(name, Some(fields))?;
            let mut others = fields.iter().filter(|(key, _)| *key != "boost" && *key != "_name");
            let (Some((field, Value::Array(values))), None) = (others.next(), others.next()) else {
                return Err(ApiError::parsing("[terms] query expects one field with an array of values"));
            };
            let query = if field == "_id" {
                Query::Ids(values.iter().map(|value| string(name, field, value)).collect::<Result<_, _>>()?)
            } else {
                Query::Terms { field: field.clone(), values: values.clone() }
            };
            Ok(boosted(query, boost))
        }
        "ids" => {
            let fields = object(name, asked)?;
            only(name, fields, &["values", "boost"])?;
            let values = fields.get("values").and_then(Value::as_array);
            let values = values.ok_or_else(|| ApiError::parsing("[ids] requires an array of values"))?;
            let ids = values.iter().map(|value| string(name, "values", value)).collect::<Result<_, _>>()?;
            Ok(boosted(Query::Ids(ids), factor(name, Some(fields))?))
        }
        "exists" => {
            let fields = object(name, asked)?;
            only(name, fields, &["field", "boost"])?;
            let field = fields.get("field").and_then(Value::as_str);
            let field = field.ok_or_else(|| ApiError::parsing("[exists] must be provided with a [field]"))?;
            Ok(boosted(Query::Exists { field: field.to_owned() }, factor(name, Some(fields))?))
        }
        "range" => range(asked),
        "prefix" => {
            let (field, fields, value) = of_field(name, "value", asked, &["value", "boost"])?;
            let query = Query::Prefix { field: field.to_owned(), value: string(name, field, value)? };
            Ok(boosted(query, factor(name, fields)?))
        }
        "wildcard" => {
            let (field, fields, value) = of_field(name, "value", asked, &["value", "boost"])?;
            let query = Query::Wildcard { field: field.to_owned(), value: string(name, field, value)? };
            Ok(boosted(query, factor(name, fields)?))
        }
        "match" | "match_phrase" | "match_phrase_prefix" | "multi_match" | "fuzzy" => {
            words::read(name, asked, about)
        }
        "regexp" => {
            let known = ["value", "flags", "max_determinized_states", "boost"];
            let (field, fields, value) = of_field(name, "value", asked, &known)?;
            let query = Query::Regexp { field: field.to_owned(), value: string(name, field, value)? };
            Ok(boosted(query, factor(name, fields)?))
        }
        "dis_max" => {
            let fields = object(name, asked)?;
            only(name, fields, &["queries", "tie_breaker", "boost"])?;
            let queries = fields.get("queries").and_then(Value::as_array);
            let queries = queries.ok_or_else(|| ApiError::parsing("[dis_max] requires 'queries' field"))?;
            let queries = queries.iter().map(|one| at_depth(one, about, left)).collect::<Result<_, _>>()?;
            let tie_breaker = words::tie_breaker(name, fields)?.unwrap_or(0.0);
            Ok(boosted(Query::DisMax { queries, tie_breaker }, factor(name, Some(fields))?))
        }
        "constant_score" => {
            let fields = object(name, asked)?;
            only(name, fields, &["filter", "boost"])?;
            let inner = fields.get("filter");
            let inner = inner.ok_or_else(|| ApiError::parsing("[constant_score] requires a [filter]"))?;
            let score = factor(name, Some(fields))?.unwrap_or(1.0);
            Ok(Query::Constant { query: Box::new(at_depth(inner, about, left)?), score })
        }
        "bool" => {
            let fields = object(name, asked)?;
            let known = [
                "must",
                "should",
                "filter",
                "must_not",
                "minimum_should_match",
                "boost",
                "adjust_pure_negative",
            ];
            only(name, fields, &known)?;
            let clauses = |key: &str| -> Result<Vec<Query>, ApiError> {
                match fields.get(key) {
                    None | Some(Value::Null) => Ok(Vec::new()),
                    Some(Value::Array(all)) => all.iter().map(|one| at_depth(one, about, left)).collect(),
                    Some(one) => Ok(vec![at_depth(one, about, left)?]),
                }
            };
            let should = clauses("should")?;
            let minimum_should_match = match fields.get("minimum_should_match") {
                None => None,
                Some(given) => Some(least(given, should.len())?),
            };
            let query = Query::Bool {
                must: clauses("must")?,
                should,
                filter: clauses("filter")?,
                must_not: clauses("must_not")?,
                minimum_should_match,
            };
            Ok(boosted(query, factor(name, Some(fields))?))
        }
        "knn" => Ok(match knn::read(asked, about, left)? {
            Some((nearest, factor)) => boosted(Query::Nearest(nearest), factor),
            None => Query::None,
        }),
        "nested" => nested::read(asked, about, left),
        "script_score" => script::read(asked, about, left),
        "hybrid" => Err(ApiError::argument(
            "hybrid query must be a top level query and cannot be wrapped into other queries",
        )),
        other => {
            Err(ApiError::parsing(format!("unknown query [{other}]: it is one of {}", NAMES.join(", "))))
        }
    }
}

/// `minimum_should_match`: a number, one that counts from the end, or a share.
fn least(given: &Value, should: usize) -> Result<usize, ApiError> {
    let text = match given {
        Value::Number(number) => number.to_string(),
        Value::String(text) => text.clone(),
        _ => {
            return Err(ApiError::parsing(
                "[bool] minimum_should_match: give a number, or a share such as 75%",
            ));
        }
    };
    let wrong = || {
        ApiError::parsing(format!(
            "[bool] minimum_should_match [{text}]: give a number, or a share such as 75%"
        ))
    };
    let number = |text: &str| text.trim().parse::<i64>().map_err(|_| wrong());
    let all = should as i64;
    let least = match text.strip_suffix('%') {
        Some(share) => {
            let share = number(share)?;
            let part = all * share.abs() / 100;
            if share < 0 { all - part } else { part }
        }
        None => match number(&text)? {
            count if count < 0 => all + count,
            count => count,
        },
    };
    Ok(least.clamp(0, all) as usize)
}

fn range(asked: &Value) -> Result<Query, ApiError> {
    let (field, bounds) = one(asked, "range")?;
    let bounds = object("range", bounds)?;
    let known = [
        "gt",
        "gte",
        "lt",
        "lte",
        "from",
        "to",
        "include_lower",
        "include_upper",
        "boost",
        "format",
        "relation",
        "time_zone",
    ];
    only("range", bounds, &known)?;
    let bound = |key: &str| bounds.get(key).filter(|value| !value.is_null()).cloned();
    let flag = |key: &str| bounds.get(key).and_then(Value::as_bool).unwrap_or(true);
    let mut range = Range { gt: bound("gt"), gte: bound("gte"), lt: bound("lt"), lte: bound("lte") };
    // As old clients write it.
    if let Some(from) = bound("from") {
        *(if flag("include_lower") { &mut range.gte } else { &mut range.gt }) = Some(from);
    }
    if let Some(to) = bound("to") {
        *(if flag("include_upper") { &mut range.lte } else { &mut range.lt }) = Some(to);
    }
    let query = if range == Range::default() {
        Query::Exists { field: field.to_owned() }
    } else {
        Query::Range { field: field.to_owned(), range }
    };
    Ok(boosted(query, factor("range", Some(bounds))?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn queries_are_read() {
        let term = |field: &str, value: Value| Query::Term { field: field.to_owned(), value };
        for (given, is) in [
            (json!({"match_all": {}}), Query::All),
            (json!({"term": {"a": 1}}), term("a", json!(1))),
            (json!({"term": {"a": {"value": "x"}}}), term("a", json!("x"))),
            (json!({"terms": {"_id": ["1", 2]}}), Query::Ids(vec!["1".to_owned(), "2".to_owned()])),
            (
                json!({"range": {"n": {"from": 1, "to": 5, "include_upper": false}}}),
                Query::Range {
                    field: "n".to_owned(),
                    range: Range { gte: Some(json!(1)), lt: Some(json!(5)), ..Range::default() },
                },
            ),
            (
                json!({"bool": {"filter": {"term": {"a": 1}}, "must_not": [], "boost": 1.0}}),
                Query::Bool {
                    must: vec![],
                    should: vec![],
                    filter: vec![term("a", json!(1))],
                    must_not: vec![],
                    minimum_should_match: None,
                },
            ),
        ] {
            assert_eq!(read(&given, &About::default()).unwrap(), is, "{given}");
        }
    }

    #[test]
    fn what_is_not_supported_is_named() {
        for (given, says) in [
            (json!({"geo_distance": {}}), "unknown query [geo_distance]"),
            (json!({"term": {"a": {"value": 1, "fuzzy": true}}}), "[term] query does not support [fuzzy]"),
            (json!({"term": {}}), "[term] malformed query"),
            (json!({"bool": {"most": []}}), "[bool] query does not support [most]"),
            (json!([]), "[query] malformed query"),
        ] {
            let said = read(&given, &About::default()).unwrap_err().to_string();
            assert!(said.contains(says), "{said}");
        }
    }

    #[test]
    fn the_least_number_of_clauses_is_lucenes() {
        for (given, least_of_4) in [
            (json!(2), 2),
            (json!("-1"), 3),
            (json!("75%"), 3),
            (json!("-25%"), 3),
            (json!("10%"), 0),
            (json!(9), 4),
        ] {
            assert_eq!(least(&given, 4).unwrap(), least_of_4, "{given}");
        }
        assert!(least(&json!("some"), 4).is_err());
    }

    #[test]
    fn the_queries_that_are_named_are_known() {
        let unknown = |name: &str| match read(&json!({name: {}}), &About::default()) {
            Ok(_) => false,
            Err(error) => error.to_string().contains("unknown query"),
        };
        assert!(NAMES.iter().all(|name| !unknown(name)) && unknown("geo_shape"));
    }

    #[test]
    fn queries_within_queries_end() {
        let mut given = json!({"match_all": {}});
        for _ in 0..DEPTH_MAX {
            given = json!({"bool": {"must": given}});
        }
        assert!(read(&given, &About::default()).unwrap_err().to_string().contains("at most 60 deep"));
    }
}
