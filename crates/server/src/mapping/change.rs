//! Mappings that a client gives later: fields come, parameters of those that are there stay, but for a few.

use super::{dynamic, templates};
use crate::error::ApiError;
use serde_json::{Map, Value};

/// Parameters of fields that may change.
const FREE: [&str; 9] = [
    "boost",
    "coerce",
    "dynamic",
    "eager_global_ordinals",
    "ignore_above",
    "ignore_malformed",
    "meta",
    "norms",
    "search_analyzer",
];

/// Adds what a client gave later to mappings; that the sum can be is for the caller to see.
///
/// # Errors
/// If a field is there already, and not so.
pub(crate) fn add(mappings: &mut Map<String, Value>, given: &Map<String, Value>) -> Result<(), ApiError> {
    for (name, value) in given {
        match name.as_str() {
            "properties" => {
                let wrong = || ApiError::mapping("Expected map for property [properties]");
                let fields = mappings.entry(name.clone()).or_insert_with(|| Value::Object(Map::new()));
                add_fields("", fields, value.as_object().ok_or_else(wrong)?)?;
                continue;
            }
            "dynamic" => drop(dynamic(value)?),
            "dynamic_templates" => templates(value)?,
            "_meta" | "date_detection" | "numeric_detection" | "dynamic_date_formats" => {}
            name if mappings.get(name) == Some(value) => {}
            other => {
                return Err(ApiError::argument(format!(
                    "[{other}] cannot be changed after an index is made"
                )));
            }
        }
        mappings.insert(name.clone(), value.clone());
    }
    Ok(())
}

fn add_fields(path: &str, fields: &mut Value, given: &Map<String, Value>) -> Result<(), ApiError> {
    let Some(fields) = fields.as_object_mut() else { return Ok(()) };
    for (key, how) in given {
        match (fields.get_mut(key), how) {
            (Some(Value::Object(now)), Value::Object(how)) => change(&format!("{path}{key}"), now, how)?,
            _ => drop(fields.insert(key.clone(), how.clone())),
        }
    }
    Ok(())
}

fn kind(field: &Map<String, Value>) -> &str {
    field.get("type").and_then(Value::as_str).unwrap_or("object")
}

/// Changes the field `name`, as far as it may.
fn change(name: &str, now: &mut Map<String, Value>, how: &Map<String, Value>) -> Result<(), ApiError> {
    if kind(now) != kind(how) {
        return Err(ApiError::argument(format!(
            "mapper [{name}] cannot be changed from type [{}] to [{}]",
            kind(now),
            kind(how)
        )));
    }
    for (key, value) in how {
        match (now.get_mut(key), value) {
            (Some(before), value) if before == value => {}
            (before, Value::Object(more)) if key == "properties" || key == "fields" => {
                let path = format!("{name}.");
                match before {
                    Some(before) => add_fields(&path, before, more)?,
                    None => drop(now.insert(key.clone(), value.clone())),
                }
            }
            (_, value) if FREE.contains(&key.as_str()) => drop(now.insert(key.clone(), value.clone())),
            (None, _) if key == "type" => {}
            (before, value) => {
                let before = before.map_or("null".to_owned(), |before| shown(before));
                return Err(ApiError::argument(format!(
                    "Mapper for [{name}] conflicts with existing mapper:\n\tCannot update parameter [{key}] from [{before}] to [{}]",
                    shown(value)
                )));
            }
        }
    }
    Ok(())
}

fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
