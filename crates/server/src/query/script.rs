//! `script_score`: of scripts the one that compares vectors, `knn_score`.

use super::{About, at_depth, factor, knn, object, only};
use crate::error::ApiError;
use lanewise_engine::documents::{FieldKind, Query, Scored, Space, VectorField};
use serde_json::Value;

/// Reads `{"query": {…}, "script": {"lang": "knn", "source": "knn_score", "params": {…}}}`.
///
/// # Errors
/// What is wrong, or not supported.
pub(super) fn read(given: &Value, about: &About, left: usize) -> Result<Query, ApiError> {
    let fields = object("script_score", given)?;
    only("script_score", fields, &["query", "script", "min_score", "boost"])?;
    let missing = |key: &str| ApiError::parsing(format!("[script_score] requires [{key}] field"));
    let query = fields.get("query").ok_or_else(|| missing("query"))?;
    let script = object("script_score", fields.get("script").ok_or_else(|| missing("script"))?)?;
    only("script_score", script, &["lang", "source", "params"])?;
    let is = |key: &str, value: &str| script.get(key).and_then(Value::as_str) == Some(value);
    if !is("lang", "knn") || !is("source", "knn_score") {
        return Err(ApiError::argument(
            "[script_score] of scripts only [knn_score] of [lang] knn is supported: others are not run",
        ));
    }
    let none = Value::Object(Default::default());
    let params = object("script_score", script.get("params").unwrap_or(&none))?;
    only("script_score", params, &["field", "query_value", "space_type"])?;
    let param =
        |key: &str| params.get(key).ok_or_else(|| ApiError::argument(format!("Missing parameter [{key}]")));
    let space = param("space_type")?;
    let known = ["l2", "l1", "linf", "cosinesimil", "innerproduct", "hamming"];
    let space: Space = serde_json::from_value(space.clone()).map_err(|_| {
        let known = known.join(", ");
        ApiError::argument(format!("Invalid space type. Please refer to the available space types: {known}"))
    })?;
    let field = param("field")?.as_str().unwrap_or_default();
    let Some(FieldKind::Vector(VectorField(of_field))) =
        about.schema.as_ref().and_then(|s| s.fields.get(field))
    else {
        return Err(knn::failed(format!("Field '{field}' is not knn_vector type.")));
    };
    let least = match fields.get("min_score").map(Value::as_f64) {
        None => None,
        Some(Some(least)) => Some(least as f32),
        Some(None) => return Err(ApiError::parsing("[script_score] [min_score]: give a number")),
    };
    let scored = Scored {
        query: Box::new(at_depth(query, about, left)?),
        field: field.to_owned(),
        vector: knn::vector("script_score", param("query_value")?, of_field)?,
        space,
        min_score: least,
    };
    Ok(super::boosted(Query::Scored(scored), factor("script_score", Some(fields))?))
}
