//! Aggregations in OpenSearch's form, as a table takes them: their filters are OpenSearch's queries.

use crate::error::ApiError;
use crate::query::{self, About};
use serde_json::{Map, Value};

/// Aggregations within aggregations, at most.
const DEPTH_MAX: usize = 16;

/// Those of a search's body.
///
/// # Errors
/// If they are no objects, or a filter is no query.
pub(super) fn read(body: &Map<String, Value>) -> Result<Map<String, Value>, ApiError> {
    match body.get("aggs").or(body.get("aggregations")) {
        None | Some(Value::Null) => Ok(Map::new()),
        Some(given) => within(given, DEPTH_MAX),
    }
}

fn within(given: &Value, left: usize) -> Result<Map<String, Value>, ApiError> {
    let too_deep = || ApiError::parsing(format!("[aggs] within one another are at most {DEPTH_MAX} deep"));
    let left = left.checked_sub(1).ok_or_else(too_deep)?;
    let given = given.as_object().ok_or_else(|| ApiError::parsing("[aggs]: give an object"))?;
    let mut all = Map::new();
    for (name, one) in given {
        let wrong = || ApiError::parsing(format!("[aggs] [{name}]: give an object"));
        let mut made = Map::new();
        for (kind, how) in one.as_object().ok_or_else(wrong)? {
            let how = match kind.as_str() {
                "filter" => {
                    serde_json::to_value(query::read(how, &About::default())?).map_err(ApiError::internal)?
                }
                "aggs" | "aggregations" => Value::Object(within(how, left)?),
                _ => how.clone(),
            };
            made.insert(kind.clone(), how);
        }
        all.insert(name.clone(), Value::Object(made));
    }
    Ok(all)
}
