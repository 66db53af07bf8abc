//! The `nested` query: documents by their nested objects.

use super::{About, at_depth, boosted, factor, knn, object, only};
use crate::error::ApiError;
use lanewise_engine::documents::{FieldKind, Query, ScoreMode};
use serde_json::Value;

/// Reads `{"path": "parts", "query": {…}, "score_mode": "avg"}`.
///
/// # Errors
/// What is wrong, or not supported.
pub(super) fn read(given: &Value, about: &About, left: usize) -> Result<Query, ApiError> {
    let fields = object("nested", given)?;
    only("nested", fields, &["path", "query", "score_mode", "ignore_unmapped", "boost"])?;
    let missing = |key: &str| ApiError::parsing(format!("[nested] requires '{key}' field"));
    let path = fields.get("path").and_then(Value::as_str).ok_or_else(|| missing("path"))?;
    let query = fields.get("query").ok_or_else(|| missing("query"))?;
    let Some(schema) = &about.schema else {
        return Err(ApiError::parsing("[nested] is not supported in the filters of [aggs]"));
    };
    if schema.fields.get(path) != Some(&FieldKind::Nested) {
        if fields.get("ignore_unmapped") == Some(&Value::Bool(true)) {
            return Ok(Query::None);
        }
        return Err(knn::failed(format!("[nested] failed to find nested object under path [{path}]")));
    }
    let score = match fields.get("score_mode").map(Value::as_str) {
        None | Some(Some("avg")) => ScoreMode::Avg,
        Some(Some("max")) => ScoreMode::Max,
        Some(Some("min")) => ScoreMode::Min,
        Some(Some("sum")) => ScoreMode::Sum,
        Some(Some("none")) => ScoreMode::None,
        _ => return Err(ApiError::argument("[nested] score_mode: give avg, max, min, sum, or none")),
    };
    let query = Box::new(at_depth(query, about, left)?);
    let query = Query::Nested { path: path.to_owned(), query, score };
    Ok(boosted(query, factor("nested", Some(fields))?))
}
