//! `fields`, `docvalue_fields` and `stored_fields`: values of a document's fields beside its source.

use crate::call::Params;
use crate::cluster::matches;
use crate::error::ApiError;
use axum::http::StatusCode;
use lanewise_engine::documents::{FieldKind, Schema};
use serde_json::{Map, Value, json};

/// The names under a key, of the parameters or the body.
///
/// # Errors
/// If they are none.
pub(super) fn names(key: &str, body: &Map<String, Value>, params: &Params) -> Result<Vec<String>, ApiError> {
    let wrong = || ApiError::parsing(format!("[{key}]: give fields"));
    match (params.list(key), body.get(key)) {
        (Some(given), _) => Ok(given.into_iter().map(str::to_owned).collect()),
        (None, None | Some(Value::Null)) => Ok(Vec::new()),
        (None, Some(Value::String(one))) => Ok(vec![one.clone()]),
        (None, Some(Value::Array(all))) => {
            let name = |field: &Value| match field {
                Value::String(field) => Ok(field.clone()),
                Value::Object(field) => {
                    field.get("field").and_then(Value::as_str).map(str::to_owned).ok_or_else(wrong)
                }
                _ => Err(wrong()),
            };
            all.iter().map(name).collect()
        }
        _ => Err(wrong()),
    }
}

/// What `stored_fields` leaves of a hit.
pub(super) struct Stored {
    pub(super) id: bool,
    pub(super) source: bool,
}

/// # Errors
/// Naming a field that is not stored by itself.
pub(super) fn stored(names: &[String]) -> Result<Stored, ApiError> {
    if let Some(other) = names.iter().find(|field| !["_none_", "_id", "_source"].contains(&field.as_str())) {
        return Err(ApiError::parsing(format!(
            "stored_fields: [{other}] is not stored by itself: use _source"
        )));
    }
    let has = |name: &str| names.iter().any(|field| field == name);
    Ok(Stored { id: !has("_none_"), source: names.is_empty() || has("_source") })
}

/// Refuses fields that have no values by column: texts and vectors.
pub(super) fn check(docvalues: &[String], schema: &Schema) -> Result<(), ApiError> {
    for name in docvalues {
        let kind = match schema.fields.get(name) {
            Some(FieldKind::Text { .. }) => "Text fields",
            Some(FieldKind::Vector(_)) => "knn_vector fields",
            _ => continue,
        };
        return Err(ApiError::new(
            StatusCode::BAD_REQUEST,
            "query_shard_exception",
            format!("{kind} have no doc values, as docvalue_fields: [{name}] needs them: use _source"),
        ));
    }
    Ok(())
}

/// The values of the fields that have one of the names, by their paths, each in an array.
pub(super) fn of(source: &Map<String, Value>, patterns: &[String]) -> Map<String, Value> {
    fn walk(path: &str, value: &Value, patterns: &[String], found: &mut Map<String, Value>) {
        match value {
            Value::Null => {}
            Value::Object(inner) => {
                for (name, value) in inner {
                    let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                    walk(&path, value, patterns, found);
                }
            }
            Value::Array(all) => all.iter().for_each(|value| walk(path, value, patterns, found)),
            value => {
                let path = patterns.iter().find_map(|pattern| {
                    if matches(pattern, path) {
                        return Some(path);
                    }
                    // The same values as a keyword.
                    pattern.strip_suffix(".keyword").filter(|name| *name == path).and(Some(pattern))
                });
                if let Some(Value::Array(values)) =
                    path.map(|path| found.entry(path).or_insert_with(|| json!([])))
                {
                    values.push(value.clone());
                }
            }
        }
    }
    let mut found = Map::new();
    source.iter().for_each(|(name, value)| walk(name, value, patterns, &mut found));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_by_path_and_pattern() {
        let source =
            json!({"a": {"b": 1, "c": ["x", "y"]}, "d": null, "e": [{"f": 1}, {"f": 2}], "g": "word"});
        let source = source.as_object().unwrap();
        let found = |patterns: &[&str]| {
            Value::Object(of(source, &patterns.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>()))
        };
        assert_eq!(found(&["a.*", "d"]), json!({"a.b": [1], "a.c": ["x", "y"]}));
        assert_eq!(found(&["e.f", "g.keyword"]), json!({"e.f": [1, 2], "g.keyword": ["word"]}));
        assert_eq!(found(&["z"]), json!({}));
    }
}
