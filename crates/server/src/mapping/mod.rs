//! An index's mappings, as OpenSearch has them, and the schema that a table gets of them.

mod vector;

pub(crate) use vector::Usual;

use crate::error::ApiError;
use lanewise_engine::documents::{Analyzer, Dynamic, FieldKind, Schema};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// What mappings say beside their fields, and is kept and given back.
const KEPT: [&str; 4] = ["_meta", "date_detection", "numeric_detection", "dynamic_date_formats"];
/// Parameters of fields that change nothing here: everything is indexed, sorted by, and kept.
const IDLE: [&str; 17] = [
    "boost",
    "coerce",
    "copy_to",
    "doc_values",
    "eager_global_ordinals",
    "fielddata",
    "format",
    "ignore_above",
    "ignore_malformed",
    "index",
    "index_options",
    "meta",
    "norms",
    "null_value",
    "scaling_factor",
    "similarity",
    "store",
];

/// The types that fields may have.
pub(crate) const TYPES: [&str; 16] = [
    "knn_vector",
    "keyword",
    "text",
    "byte",
    "short",
    "integer",
    "long",
    "half_float",
    "float",
    "double",
    "scaled_float",
    "date",
    "boolean",
    "object",
    "nested",
    "flat_object",
];

/// Mappings that were read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Mappings {
    /// The table's.
    pub(crate) schema: Schema,
    /// What is given back.
    pub(crate) given: Map<String, Value>,
}

impl Mappings {
    /// Of what a client gave as `mappings`.
    ///
    /// # Errors
    /// What is wrong, or not supported, by field.
    pub(crate) fn read(given: &Map<String, Value>, usual: Usual<'_>) -> Result<Mappings, ApiError> {
        let mut schema = Schema { dynamic: Dynamic::True, fields: BTreeMap::new() };
        for (name, value) in given {
            match name.as_str() {
                "properties" => properties("", value, &mut schema.fields, usual)?,
                "dynamic" => schema.dynamic = dynamic(value)?,
                "_source" => source(value)?,
                "dynamic_templates" => templates(value)?,
                "_routing" if value == &serde_json::json!({"required": false}) => {}
                name if KEPT.contains(&name) => {}
                other => {
                    let reason =
                        format!("Root mapping definition has unsupported parameters: [{other} : {value}]");
                    return Err(ApiError::mapping(reason));
                }
            }
        }
        schema.check().map_err(|error| ApiError::mapping(error.to_string()))?;
        Ok(Mappings { schema, given: given.clone() })
    }
}

/// Adds what a client gave later to mappings: fields that a table serves as it does those that nobody named.
///
/// # Errors
/// If a field is there already, and not so, or cannot come later.
pub(crate) fn add(mappings: &mut Map<String, Value>, given: &Map<String, Value>) -> Result<(), ApiError> {
    let open = mappings.get("dynamic").map_or(Ok(Dynamic::True), dynamic)? == Dynamic::True;
    for (name, value) in given {
        match name.as_str() {
            "properties" => {
                let wrong = || ApiError::mapping("Expected map for property [properties]");
                let fields = mappings.entry(name.clone()).or_insert_with(|| Value::Object(Map::new()));
                add_fields("", fields, value.as_object().ok_or_else(wrong)?, open)?;
            }
            "_meta" | "dynamic_templates" => drop(mappings.insert(name.clone(), value.clone())),
            name if mappings.get(name) == Some(value) => {}
            other => {
                return Err(ApiError::argument(format!(
                    "[{other}] cannot be changed after an index is made"
                )));
            }
        }
    }
    Ok(())
}

fn add_fields(
    path: &str,
    fields: &mut Value,
    given: &Map<String, Value>,
    open: bool,
) -> Result<(), ApiError> {
    let Some(fields) = fields.as_object_mut() else { return Ok(()) };
    for (key, how) in given {
        let name = format!("{path}{key}");
        let inner = how.get("properties").and_then(Value::as_object);
        match (fields.get_mut(key), inner) {
            (Some(now), _) if now == how => {}
            (Some(now), Some(inner)) if now.get("properties").is_some() => {
                add_fields(&format!("{name}."), &mut now["properties"], inner, open)?;
            }
            (Some(now), _) => {
                return Err(ApiError::argument(format!(
                    "mapper [{name}] cannot be changed from [{now}] to [{how}]: make an index with it, and reindex"
                )));
            }
            (None, _) if !open => {
                return Err(ApiError::argument(format!(
                    "field [{name}] cannot come later where dynamic is not true: make an index with it, and reindex"
                )));
            }
            (None, _) => {
                let mut schema = BTreeMap::new();
                let one = Map::from_iter([(key.clone(), how.clone())]);
                properties(path, &Value::Object(one), &mut schema, Usual::default())?;
                let later = |kind: &FieldKind| match kind {
                    FieldKind::Vector(_) => false,
                    FieldKind::Text { analyzer } => *analyzer == Analyzer::Standard,
                    _ => true,
                };
                if let Some((name, _)) = schema.iter().find(|(_, kind)| !later(kind)) {
                    return Err(ApiError::argument(format!(
                        "field [{name}]: vectors and analyzers are named when an index is made: make one, and reindex"
                    )));
                }
                fields.insert(key.clone(), how.clone());
            }
        }
    }
    Ok(())
}

fn dynamic(value: &Value) -> Result<Dynamic, ApiError> {
    match value {
        Value::Bool(true) => Ok(Dynamic::True),
        Value::Bool(false) => Ok(Dynamic::False),
        Value::String(text) => match text.as_str() {
            "true" | "strict_allow_templates" | "false_allow_templates" => Ok(Dynamic::True),
            "false" => Ok(Dynamic::False),
            "strict" => Ok(Dynamic::Strict),
            other => Err(ApiError::mapping(format!("dynamic [{other}]: give true, false, or strict"))),
        },
        _ => Err(ApiError::mapping("dynamic: give true, false, or strict")),
    }
}

/// Sources are always kept; what is left out of them is left out of answers.
fn source(value: &Value) -> Result<(), ApiError> {
    let fields = value.as_object().ok_or_else(|| ApiError::mapping("_source: give an object"))?;
    for (name, value) in fields {
        match (name.as_str(), value) {
            ("enabled", Value::Bool(true)) => {}
            ("enabled", Value::Bool(false)) => {
                return Err(ApiError::mapping("_source: enabled=false is not supported: use excludes"));
            }
            ("includes" | "excludes", Value::Array(paths)) if paths.iter().all(Value::is_string) => {}
            _ => return Err(ApiError::mapping(format!("_source: unknown parameter [{name} : {value}]"))),
        }
    }
    Ok(())
}

/// Fields that templates name are found as all that the schema does not name is, whatever the template says; those that
/// would have to be otherwise are refused.
fn templates(value: &Value) -> Result<(), ApiError> {
    let wrong = || ApiError::mapping("dynamic_templates: give an array of objects of one template each");
    for template in value.as_array().ok_or_else(wrong)? {
        let one = template.as_object().filter(|template| template.len() == 1).ok_or_else(wrong)?;
        for (name, how) in one {
            let mapping = how.get("mapping").and_then(Value::as_object);
            let mapping = mapping.ok_or_else(|| {
                ApiError::mapping(format!("template [{name}] must have a mapping set, an object"))
            })?;
            let kind = mapping.get("type").and_then(Value::as_str).unwrap_or("{dynamic_type}");
            if kind != "{dynamic_type}" && (kind == "knn_vector" || !TYPES.contains(&kind)) {
                return Err(ApiError::mapping(format!(
                    "dynamic template [{name}]: type [{kind}] is not supported there: name the field in properties"
                )));
            }
        }
    }
    Ok(())
}

/// The fields at `path`, which is empty or ends with a dot.
fn properties(
    path: &str,
    value: &Value,
    fields: &mut BTreeMap<String, FieldKind>,
    usual: Usual<'_>,
) -> Result<(), ApiError> {
    let wrong = || ApiError::mapping(format!("Expected map for property [properties] on field [{path}]"));
    for (key, field) in value.as_object().ok_or_else(wrong)? {
        let name = format!("{path}{key}");
        let wrong = || ApiError::mapping(format!("Expected map for property [fields] on field [{name}]"));
        let field = field.as_object().ok_or_else(wrong)?;
        let kind = match field.get("type") {
            None if field.contains_key("properties") => "object",
            Some(Value::String(kind)) => kind,
            _ => return Err(ApiError::mapping(format!("No type specified for field [{name}]"))),
        };
        let known: &[&str] = match kind {
            "knn_vector" => {
                fields.insert(name.clone(), FieldKind::Vector(vector::read(&name, field, usual)?));
                continue;
            }
            "object" | "nested" => &["type", "properties", "dynamic", "enabled"],
            "text" => &["type", "fields", "analyzer", "search_analyzer", "term_vector"],
            _ => &["type", "fields"],
        };
        let unknown = |name: &&String| !known.contains(&name.as_str()) && !IDLE.contains(&name.as_str());
        if let Some(other) = field.keys().find(unknown) {
            let value = &field[other];
            return Err(ApiError::mapping(format!(
                "unknown parameter [{other}] on mapper [{name}] of type [{kind}]: {value}"
            )));
        }
        let kind = match kind {
            "object" | "nested" => {
                match field.get("properties") {
                    Some(inner) => properties(&format!("{name}."), inner, fields, usual)?,
                    None => drop(fields.insert(name, FieldKind::Object)),
                }
                continue;
            }
            "flat_object" => FieldKind::Object,
            // Their strings are found whole and by words, as dynamic ones.
            "text" if has_keyword(field) && analyzer(&name, field)? == Analyzer::Standard => continue,
            "text" => FieldKind::Text { analyzer: analyzer(&name, field)? },
            "keyword" => FieldKind::Keyword,
            "byte" | "short" | "integer" | "long" => FieldKind::Integer,
            "half_float" | "float" | "double" | "scaled_float" => FieldKind::Float,
            "date" => FieldKind::Date,
            "boolean" => FieldKind::Boolean,
            other => {
                return Err(ApiError::mapping(format!(
                    "The type [{other}] of field [{name}] is not supported: use one of {}",
                    TYPES.join(", ")
                )));
            }
        };
        fields.insert(name, kind);
    }
    Ok(())
}

/// Whether a text is a keyword too, by another name.
fn has_keyword(field: &Map<String, Value>) -> bool {
    let others = field.get("fields").and_then(Value::as_object);
    others
        .is_some_and(|others| others.values().any(|other| other.get("type") == Some(&Value::from("keyword"))))
}

fn analyzer(name: &str, field: &Map<String, Value>) -> Result<Analyzer, ApiError> {
    match field.get("analyzer").map(Value::as_str) {
        None | Some(Some("standard" | "default")) => Ok(Analyzer::Standard),
        Some(Some("english")) => Ok(Analyzer::English),
        Some(Some("whitespace")) => Ok(Analyzer::Whitespace),
        Some(other) => Err(ApiError::mapping(format!(
            "analyzer [{}] of field [{name}] is not supported: use standard, english, or whitespace",
            other.unwrap_or_default()
        ))),
    }
}
