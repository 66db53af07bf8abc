//! Fields that nobody named are mapped when the first document has them: by the first dynamic template that fits, or by
//! their values, as OpenSearch does it.
//!
//! | value | mapped as |
//! |---|---|
//! | a string; a time by ISO 8601, unless `date_detection` is false | text with `.keyword` (256 characters); date |
//! | a whole number, one with a fraction, a boolean | long, float, boolean |
//! | an object, or several | its fields |
//! | numbers, where a template for `knn_vector` fits | a vector |

use super::{Unnamed, dynamic};
use crate::cluster::matches;
use crate::error::ApiError;
use axum::http::StatusCode;
use lanewise_engine::documents::{FieldKind, Schema, is_date};
use serde_json::{Map, Value, json};

/// What templates may say of values.
pub(super) const SEEN: [&str; 8] = ["*", "object", "string", "long", "double", "boolean", "date", "binary"];

/// What is known of a document's fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Known {
    /// All that there is to know.
    All,
    /// The mappings name fields that the table does not have.
    NotInTable,
    /// There are fields to be mapped, or to be refused.
    NotMapped,
}

/// Whether `mappings` name all fields of a document, and its table, of this schema, has them.
pub(crate) fn known(mappings: &Map<String, Value>, schema: &Schema, document: &Map<String, Value>) -> Known {
    let unnamed = mappings.get("dynamic").and_then(|how| dynamic(how).ok()).unwrap_or(Unnamed::Mapped);
    within("", mappings, unnamed, schema, document)
}

fn within(
    path: &str,
    level: &Map<String, Value>,
    unnamed: Unnamed,
    schema: &Schema,
    document: &Map<String, Value>,
) -> Known {
    let fields = level.get("properties").and_then(Value::as_object);
    let mut most = Known::All;
    for (key, value) in document {
        let name = format!("{path}{key}");
        let found = match fields.and_then(|fields| fields.get(key)).and_then(Value::as_object) {
            Some(field) if is_object(field) => match field.get("enabled") {
                Some(Value::Bool(false)) => Known::All,
                _ => {
                    let unnamed = field.get("dynamic").and_then(|how| dynamic(how).ok()).unwrap_or(unnamed);
                    let inner = |value: &Value| match value {
                        Value::Object(inner) => within(&format!("{name}."), field, unnamed, schema, inner),
                        Value::Null => Known::All,
                        _ => Known::NotMapped,
                    };
                    match value {
                        Value::Array(all) => all.iter().map(inner).max().unwrap_or(Known::All),
                        one => inner(one),
                    }
                }
            },
            Some(_) if schema.fields.contains_key(&name) => Known::All,
            Some(_) => Known::NotInTable,
            None if unnamed == Unnamed::Kept => Known::All,
            // Nothing says what it would be.
            None if unnamed == Unnamed::Mapped && is_nothing(value) => Known::All,
            None => Known::NotMapped,
        };
        most = most.max(found);
    }
    most
}

fn is_nothing(value: &Value) -> bool {
    value.is_null() || value.as_array().is_some_and(|all| all.iter().all(is_nothing))
}

fn is_object(field: &Map<String, Value>) -> bool {
    match field.get("type").and_then(Value::as_str) {
        None => field.contains_key("properties"),
        Some(kind) => kind == "object" || kind == "nested",
    }
}

/// Adds to `mappings` the fields of a document that they do not name; `schema` is the table's.
///
/// # Errors
/// If they are strict, or an object's name has a value; they may hold some of the fields then.
pub(crate) fn learn(
    mappings: &mut Map<String, Value>,
    schema: &Schema,
    document: &Map<String, Value>,
) -> Result<(), ApiError> {
    let flag =
        |key: &str, usual: bool| mappings.get(key).map_or(usual, |value| value == true || value == "true");
    let rules = Learning {
        templates: mappings.get("dynamic_templates").and_then(Value::as_array).cloned().unwrap_or_default(),
        dates: flag("date_detection", true),
        numbers: flag("numeric_detection", false),
        schema,
    };
    let unnamed = mappings.get("dynamic").map_or(Ok(Unnamed::Mapped), dynamic)?;
    rules.object("", mappings, unnamed, document)
}

/// How fields are mapped.
struct Learning<'a> {
    templates: Vec<Value>,
    dates: bool,
    numbers: bool,
    schema: &'a Schema,
}

impl Learning<'_> {
    fn object(
        &self,
        path: &str,
        level: &mut Map<String, Value>,
        unnamed: Unnamed,
        document: &Map<String, Value>,
    ) -> Result<(), ApiError> {
        for (key, value) in document {
            // A dot in a name is a way into an object.
            if let Some((outer, rest)) = key.split_once('.') {
                if outer.is_empty() || rest.is_empty() {
                    let reason = format!("field name [{path}{key}] cannot begin or end with a dot");
                    return Err(ApiError::mapping(reason));
                }
                let inner = Map::from_iter([(rest.to_owned(), value.clone())]);
                let outer = Map::from_iter([(outer.to_owned(), Value::Object(inner))]);
                let named =
                    |name: &str| level.get("properties").is_some_and(|fields| fields.get(name).is_some());
                if !named(key) {
                    self.object(path, level, unnamed, &outer)?;
                }
                continue;
            }
            self.field(path, level, unnamed, (key, value))?;
        }
        Ok(())
    }

    fn field(
        &self,
        path: &str,
        level: &mut Map<String, Value>,
        unnamed: Unnamed,
        (key, value): (&str, &Value),
    ) -> Result<(), ApiError> {
        let name = format!("{path}{key}");
        let known = level.get_mut("properties").and_then(|fields| fields.get_mut(key));
        if let Some(known) = known.and_then(Value::as_object_mut) {
            if !is_object(known) || known.get("enabled") == Some(&Value::Bool(false)) {
                return Ok(());
            }
            let unnamed = known.get("dynamic").map_or(Ok(unnamed), dynamic)?;
            return self.inner(&name, known, unnamed, value);
        }
        let template = self.template(&name, key, value);
        let strict = || {
            let within = path.strip_suffix('.').unwrap_or("_doc");
            ApiError::new(
                StatusCode::BAD_REQUEST,
                "strict_dynamic_mapping_exception",
                format!(
                    "mapping set to strict, dynamic introduction of [{key}] within [{within}] is not allowed"
                ),
            )
        };
        match unnamed {
            Unnamed::Refused => return Err(strict()),
            Unnamed::RefusedUnlessTemplate if template.is_none() => return Err(strict()),
            Unnamed::Kept => return Ok(()),
            Unnamed::KeptUnlessTemplate if template.is_none() => return Ok(()),
            _ => {}
        }
        // What the table has as an object of any fields, or cannot name, it keeps as it is.
        if self.schema.fields.get(&name) == Some(&FieldKind::Object)
            || key.is_empty()
            || name.starts_with('_')
        {
            return Ok(());
        }
        let Some(seen) = self.seen(value) else { return Ok(()) };
        let mapped = match template {
            Some(mapping) => mapping,
            None if seen == "object" => json!({"properties": {}}),
            None if seen == "string" => {
                json!({"type": "text", "fields": {"keyword": {"type": "keyword", "ignore_above": 256}}})
            }
            None => json!({"type": if seen == "double" { "float" } else { seen }}),
        };
        let fields = level.entry("properties").or_insert_with(|| json!({}));
        fields[key] = mapped;
        match fields[key].as_object_mut() {
            Some(made) if is_object(made) => {
                let unnamed = made.get("dynamic").map_or(Ok(unnamed), dynamic)?;
                self.inner(&name, made, unnamed, value)
            }
            _ => Ok(()),
        }
    }

    /// The objects of a field.
    fn inner(
        &self,
        name: &str,
        level: &mut Map<String, Value>,
        unnamed: Unnamed,
        value: &Value,
    ) -> Result<(), ApiError> {
        match value {
            Value::Null => Ok(()),
            Value::Object(inner) => self.object(&format!("{name}."), level, unnamed, inner),
            Value::Array(all) => all.iter().try_for_each(|value| self.inner(name, level, unnamed, value)),
            _ => Err(ApiError::mapping(format!(
                "object mapping for [{name}] tried to parse field [{name}] as object, but found a concrete value"
            ))),
        }
    }

    /// What a value is taken for; `None` if there is none.
    fn seen(&self, value: &Value) -> Option<&'static str> {
        Some(match value {
            Value::Null => return None,
            Value::Bool(_) => "boolean",
            Value::Object(_) => "object",
            Value::Number(number) if number.is_f64() => "double",
            Value::Number(_) => "long",
            Value::String(text) if self.dates && is_date(text) => "date",
            Value::String(text) if self.numbers && text.parse::<i64>().is_ok() => "long",
            Value::String(text) if self.numbers && text.parse().is_ok_and(f64::is_finite) => "double",
            Value::String(_) => "string",
            Value::Array(all) => {
                let mut seen = all.iter().filter_map(|value| self.seen(value));
                let first = seen.next()?;
                if first == "long" && seen.any(|other| other == "double") { "double" } else { first }
            }
        })
    }

    /// What the first template that fits makes of a field.
    fn template(&self, name: &str, key: &str, value: &Value) -> Option<Value> {
        let seen = self.seen(value)?;
        let numbers = value.as_array().is_some_and(|all| all.iter().all(Value::is_number));
        self.templates.iter().filter_map(|one| one.as_object()?.values().next()).find_map(|how| {
            let is_vector = how["mapping"]["type"] == "knn_vector";
            let named = |rule: &str, name: &str| {
                let fits = |pattern: &Value| pattern.as_str().is_some_and(|pattern| matches(pattern, name));
                how.get(rule).map(|rule| match rule {
                    Value::Array(all) => all.iter().any(fits),
                    one => fits(one),
                })
            };
            let kind = how.get("match_mapping_type").and_then(Value::as_str);
            let fits = match kind {
                None | Some("*") => true,
                // Numbers of a vector come as one value.
                Some("object") if is_vector => numbers,
                Some(kind) => kind == seen,
            };
            let fits = fits
                && numbers >= is_vector
                && named("match", key) != Some(false)
                && named("unmatch", key) != Some(true)
                && named("path_match", name) != Some(false)
                && named("path_unmatch", name) != Some(true);
            // An object is only meant where a template says so.
            if !fits
                || (seen == "object"
                    && kind.is_none_or(|kind| kind == "*")
                    && !how["mapping"]["properties"].is_object())
            {
                return None;
            }
            let mut mapping = filled(&how["mapping"], key, seen);
            if mapping.get("type").is_none() && seen != "object" {
                mapping["type"] = if seen == "string" {
                    "text"
                } else if seen == "double" {
                    "float"
                } else {
                    seen
                }
                .into();
            }
            Some(mapping)
        })
    }
}

/// A template's mapping with `{name}` and `{dynamic_type}` filled in.
fn filled(mapping: &Value, key: &str, seen: &str) -> Value {
    let kind = match seen {
        "string" => "text",
        "double" => "float",
        seen => seen,
    };
    match mapping {
        Value::String(text) => text.replace("{name}", key).replace("{dynamic_type}", kind).into(),
        Value::Array(all) => all.iter().map(|value| filled(value, key, seen)).collect(),
        Value::Object(fields) => Value::Object(
            fields.iter().map(|(k, v)| (k.replace("{name}", key), filled(v, key, seen))).collect(),
        ),
        other => other.clone(),
    }
}
