//! Queries of words: `match`, `match_phrase`, `match_phrase_prefix`, `multi_match`, `fuzzy`.

use super::{About, boosted, factor, object, of_field, only, string};
use crate::cluster::matches;
use crate::error::ApiError;
use lanewise_engine::documents::{FieldKind, Fuzziness, Operator, Query, Schema};
use serde_json::{Map, Value};

/// What fuzzy queries say beside how far words may be apart: how they are expanded, of which there is no need here.
const EXPANSION: [&str; 4] = ["max_expansions", "fuzzy_transpositions", "fuzzy_rewrite", "rewrite"];

/// Reads the query `name`.
///
/// # Errors
/// What is wrong, or not supported.
pub(super) fn read(name: &str, asked: &Value, about: &About) -> Result<Query, ApiError> {
    if name == "multi_match" {
        return multi(object(name, asked)?, about);
    }
    let known: &[&str] = match name {
        "match" => {
            &["query", "operator", "fuzziness", "prefix_length", "boost", "lenient", "zero_terms_query"]
        }
        "match_phrase" => &["query", "slop", "boost"],
        "match_phrase_prefix" => &["query", "max_expansions", "boost"],
        _ => &["value", "fuzziness", "prefix_length", "transpositions", "boost"],
    };
    let known: Vec<&str> = known.iter().chain(&EXPANSION).copied().collect();
    let key = if name == "fuzzy" { "value" } else { "query" };
    let (field, fields, value) = of_field(name, key, asked, &known)?;
    let none = Map::new();
    let how = How::read(name, fields.unwrap_or(&none))?;
    let text = string(name, field, value)?;
    let query = match name {
        "fuzzy" => {
            let fuzziness = how.fuzziness.unwrap_or_default();
            Query::Fuzzy { field: field.to_owned(), value: text, fuzziness }
        }
        "match" => how.words(Kind::Words, field, &text),
        "match_phrase" => how.words(Kind::Phrase, field, &text),
        _ => how.words(Kind::PhrasePrefix, field, &text),
    };
    Ok(boosted(query, factor(name, fields)?))
}

/// What becomes of a text.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Words,
    Phrase,
    PhrasePrefix,
}

/// How words are looked for.
struct How {
    operator: Operator,
    fuzziness: Option<Fuzziness>,
    slop: u32,
}

impl How {
    fn read(name: &str, fields: &Map<String, Value>) -> Result<How, ApiError> {
        let operator = match fields.get("operator").map(Value::as_str) {
            None => Operator::Or,
            Some(Some(text)) if text.eq_ignore_ascii_case("or") => Operator::Or,
            Some(Some(text)) if text.eq_ignore_ascii_case("and") => Operator::And,
            _ => return Err(ApiError::parsing(format!("[{name}] operator: give or, or and"))),
        };
        let slop =
            fields.get("slop").map_or(Some(0), Value::as_u64).and_then(|slop| u32::try_from(slop).ok());
        let slop = slop.ok_or_else(|| ApiError::parsing(format!("[{name}] slop: give a whole number")))?;
        if fields.get("prefix_length").is_some_and(|length| length != 0) {
            return Err(ApiError::parsing(format!("[{name}] prefix_length: only 0 is supported")));
        }
        if fields.get("zero_terms_query").is_some_and(|given| given != "none") {
            return Err(ApiError::parsing(format!("[{name}] zero_terms_query: only none is supported")));
        }
        let transposed = ["transpositions", "fuzzy_transpositions"];
        if transposed.iter().any(|key| fields.get(*key).is_some_and(|given| given == false)) {
            return Err(ApiError::parsing(format!("[{name}] transpositions: only true is supported")));
        }
        let fuzziness = match fields.get("fuzziness") {
            None | Some(Value::Null) => None,
            Some(given) => Some(fuzziness(name, given)?),
        };
        Ok(How { operator, fuzziness, slop })
    }

    fn words(&self, kind: Kind, field: &str, text: &str) -> Query {
        let (field, text) = (field.to_owned(), text.to_owned());
        match kind {
            Kind::Words => Query::Match { field, text, operator: self.operator, fuzziness: self.fuzziness },
            Kind::Phrase => Query::Phrase { field, text, slop: self.slop },
            Kind::PhrasePrefix => Query::PhrasePrefix { field, text },
        }
    }
}

/// `AUTO`, or a number as it may be written.
fn fuzziness(name: &str, given: &Value) -> Result<Fuzziness, ApiError> {
    let wrong = || ApiError::parsing(format!("[{name}] fuzziness: give AUTO, 0, 1, or 2"));
    let text = match given {
        Value::String(text) => text.to_ascii_uppercase(),
        Value::Number(number) => number.to_string(),
        _ => return Err(wrong()),
    };
    match text.as_str() {
        "AUTO" | "AUTO:3,6" => Ok(Fuzziness::Auto),
        text => {
            let edits = text.parse::<f64>().ok().filter(|edits| [0.0, 1.0, 2.0].contains(edits));
            Ok(Fuzziness::Edits(edits.ok_or_else(wrong)? as u8))
        }
    }
}

/// How much of the others' scores counts.
pub(super) fn tie_breaker(name: &str, fields: &Map<String, Value>) -> Result<Option<f32>, ApiError> {
    match fields.get("tie_breaker").map(Value::as_f64) {
        None => Ok(None),
        Some(Some(share)) if (0.0..=1.0).contains(&share) => Ok(Some(share as f32)),
        Some(_) => Err(ApiError::parsing(format!("[{name}] tie_breaker: give a number from 0 to 1"))),
    }
}

/// The same words in several fields, or in all.
fn multi(asked: &Map<String, Value>, about: &About) -> Result<Query, ApiError> {
    let name = "multi_match";
    let known = [
        "query",
        "fields",
        "type",
        "operator",
        "fuzziness",
        "prefix_length",
        "slop",
        "tie_breaker",
        "lenient",
        "zero_terms_query",
        "boost",
    ];
    let known: Vec<&str> = known.iter().chain(&EXPANSION).copied().collect();
    only(name, asked, &known)?;
    let text = asked.get("query").ok_or_else(|| ApiError::parsing("[multi_match] requires query value"))?;
    let text = string(name, "query", text)?;
    let how = How::read(name, asked)?;
    let own = tie_breaker(name, asked)?;
    let (kind, tie_breaker) = match asked.get("type").map(Value::as_str) {
        None | Some(Some("best_fields")) => (Kind::Words, own.unwrap_or(0.0)),
        // All scores count.
        Some(Some("most_fields")) => (Kind::Words, own.unwrap_or(1.0)),
        Some(Some("phrase")) => (Kind::Phrase, own.unwrap_or(0.0)),
        Some(Some("phrase_prefix")) => (Kind::PhrasePrefix, own.unwrap_or(0.0)),
        _ => {
            return Err(ApiError::parsing(
                "[multi_match] type: give best_fields, most_fields, phrase, or phrase_prefix",
            ));
        }
    };
    let schema = about.schema.clone().unwrap_or_default();
    let all = match asked.get("fields") {
        None => named(&schema, "*", &text, kind),
        Some(Value::String(one)) => weighed(&schema, one, &text, kind)?,
        Some(Value::Array(some)) => {
            let mut all = Vec::new();
            for one in some {
                let wrong = || {
                    ApiError::parsing(
                        "[multi_match] fields: give names, each with ^ and a factor if it counts more",
                    )
                };
                all.extend(weighed(&schema, one.as_str().ok_or_else(wrong)?, &text, kind)?);
            }
            all
        }
        Some(_) => return Err(ApiError::parsing("[multi_match] fields: give an array of names")),
    };
    let of = |(field, factor): (String, f32)| {
        // What has no words is as a whole what a phrase would be.
        let text_of = matches!(schema.fields.get(&field), Some(FieldKind::Text { .. }));
        boosted(how.words(if text_of { kind } else { Kind::Words }, &field, &text), Some(factor))
    };
    let queries = all.into_iter().map(of).collect();
    Ok(boosted(Query::DisMax { queries, tie_breaker }, factor(name, Some(asked))?))
}

/// The fields that `given` names, as `title`, `title^2`, or `meta.*^0.5`, with their factors.
fn weighed(schema: &Schema, given: &str, text: &str, kind: Kind) -> Result<Vec<(String, f32)>, ApiError> {
    let (pattern, factor) = match given.split_once('^') {
        None => (given, 1.0),
        Some((pattern, factor)) => {
            let number = factor.parse::<f32>().ok().filter(|factor| factor.is_finite() && *factor >= 0.0);
            let wrong =
                || ApiError::parsing(format!("[multi_match] fields: [{given}]: give a number behind ^"));
            (pattern, number.ok_or_else(wrong)?)
        }
    };
    if pattern.contains('*') {
        return Ok(named(schema, pattern, text, kind).into_iter().map(|(name, _)| (name, factor)).collect());
    }
    // What is not there is in no document.
    let there = schema.fields.get(pattern).is_some_and(|kind| !matches!(kind, FieldKind::Vector(_)));
    Ok(if there { vec![(pattern.to_owned(), factor)] } else { Vec::new() })
}

/// The fields of documents that may hold a text: strings, and those of values that it may be.
fn named(schema: &Schema, pattern: &str, text: &str, kind: Kind) -> Vec<(String, f32)> {
    let holds = |field: &FieldKind| match field {
        FieldKind::Text { .. } => true,
        FieldKind::Keyword => kind == Kind::Words,
        FieldKind::Integer | FieldKind::Float => kind == Kind::Words && text.trim().parse::<f64>().is_ok(),
        FieldKind::Boolean => kind == Kind::Words && text.parse::<bool>().is_ok(),
        _ => false,
    };
    let some = schema.fields.iter().filter(|(name, field)| holds(field) && schema.nested(name).is_none());
    some.filter(|(name, _)| matches(pattern, name)).map(|(name, _)| (name.clone(), 1.0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::sync::Arc;

    #[test]
    fn words_are_looked_for_in_the_fields_that_are_named() {
        let schema: Schema = serde_json::from_value(json!({"fields": {"title": {"type": "text"},
            "title.raw": {"type": "keyword"}, "n": {"type": "integer"}, "v": {"type": "vector", "dim": 2},
            "p": {"type": "nested"}, "p.t": {"type": "text"}}}))
        .unwrap();
        let about = About { schema: Some(Arc::new(schema)), ef_search: None };
        let read = |given: Value| read("multi_match", &given, &about).unwrap();
        let names = |query: &Query| match query {
            Query::DisMax { queries, .. } => queries
                .iter()
                .map(|query| match query {
                    Query::Match { field, .. } | Query::Phrase { field, .. } => field.clone(),
                    Query::Boost { query, factor } => match &**query {
                        Query::Match { field, .. } => format!("{field}^{factor}"),
                        other => panic!("{other:?}"),
                    },
                    other => panic!("{other:?}"),
                })
                .collect::<Vec<String>>(),
            other => panic!("{other:?}"),
        };
        assert_eq!(names(&read(json!({"query": "red fox"}))), ["title", "title.raw"]);
        assert_eq!(names(&read(json!({"query": 12}))), ["n", "title", "title.raw"]);
        assert_eq!(names(&read(json!({"query": "12", "type": "phrase"}))), ["title"]);
        let some = json!({"query": "red", "fields": ["title^2.5", "title.*", "none", "v"]});
        assert_eq!(names(&read(some)), ["title^2.5", "title.raw"]);
        let how = json!({"query": "red", "type": "most_fields", "fuzziness": "AUTO", "operator": "AND", "fields": "title"});
        let title = Query::Match {
            field: "title".into(),
            text: "red".into(),
            operator: Operator::And,
            fuzziness: Some(Fuzziness::Auto),
        };
        assert_eq!(read(how), Query::DisMax { queries: vec![title], tie_breaker: 1.0 });
        for (given, says) in [
            (json!({"fields": ["title"]}), "requires query"),
            (json!({"query": "x", "type": "cross_fields"}), "type: give best_fields"),
            (json!({"query": "x", "fuzziness": 3}), "fuzziness: give AUTO"),
            (json!({"query": "x", "fields": ["title^x"]}), "give a number behind ^"),
            (json!({"query": "x", "analyzer": "x"}), "does not support [analyzer]"),
        ] {
            let said = super::read("multi_match", &given, &about).unwrap_err().to_string();
            assert!(said.contains(says), "{said}");
        }
    }
}
