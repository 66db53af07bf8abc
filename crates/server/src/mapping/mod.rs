//! An index's mappings, as OpenSearch has them, and the schema that a table gets of them.

mod adopt;
mod change;
mod learn;
mod vector;

pub(crate) use adopt::of_schema;
pub(crate) use change::add;
pub(crate) use learn::{Known, known, learn};
pub(crate) use vector::Usual;

use crate::error::ApiError;
use crate::source::SourceFilter;
use lanewise_engine::documents::{Analyzer, Dynamic, FieldKind, Rules, Schema};
use serde_json::{Map, Value};

/// What mappings say beside their fields, and is kept and given back.
const KEPT: [&str; 4] = ["_meta", "date_detection", "numeric_detection", "dynamic_date_formats"];
/// Parameters of fields that change nothing here: everything is indexed, sorted by, and kept.
const IDLE: [&str; 12] = [
    "boost",
    "doc_values",
    "eager_global_ordinals",
    "fielddata",
    "format",
    "index",
    "index_options",
    "meta",
    "norms",
    "scaling_factor",
    "similarity",
    "store",
];

/// The most fields of an index.
const FIELDS_MAX: usize = 1000;

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
        // What is not named is learned before it is written (`learn.rs`); tables only keep the rest.
        let mut schema = Schema { dynamic: Dynamic::False, ..Schema::default() };
        for (name, value) in given {
            match name.as_str() {
                "properties" => properties("", value, &mut schema, usual)?,
                "dynamic" => {
                    dynamic(value)?;
                }
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
        if schema.fields.len() > FIELDS_MAX {
            return Err(ApiError::argument(format!(
                "Limit of total fields [{FIELDS_MAX}] has been exceeded"
            )));
        }
        // What nobody is shown need not be kept.
        let shown = SourceFilter::of_mapping(given)?;
        let vectors: Vec<String> = schema.vectors().map(|(name, _)| name.to_owned()).collect();
        for name in vectors.into_iter().filter(|name| shown.shows(name)) {
            schema.rules.insert(name, Rules { exact: true, ..Rules::default() });
        }
        copied(&schema)?;
        schema.check().map_err(|error| ApiError::mapping(error.to_string()))?;
        Ok(Mappings { schema, given: given.clone() })
    }
}

/// What becomes of fields that nobody named.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Unnamed {
    /// They are mapped by templates, or by their values.
    Mapped,
    /// They are kept.
    Kept,
    /// The document is refused.
    Refused,
    /// The same where no template fits.
    KeptUnlessTemplate,
    RefusedUnlessTemplate,
}

fn dynamic(value: &Value) -> Result<Unnamed, ApiError> {
    let text = match value {
        Value::Bool(true) => "true",
        Value::Bool(false) => "false",
        Value::String(text) => text,
        _ => "",
    };
    match text {
        "true" => Ok(Unnamed::Mapped),
        "false" => Ok(Unnamed::Kept),
        "strict" => Ok(Unnamed::Refused),
        "false_allow_templates" => Ok(Unnamed::KeptUnlessTemplate),
        "strict_allow_templates" => Ok(Unnamed::RefusedUnlessTemplate),
        _ => Err(ApiError::mapping(format!(
            "dynamic [{text}]: give true, false, strict, false_allow_templates, or strict_allow_templates"
        ))),
    }
}

/// Refuses copies that lead to no field that takes them.
fn copied(schema: &Schema) -> Result<(), ApiError> {
    for (name, rules) in &schema.rules {
        for to in &rules.copy_to {
            let again = schema.rules.get(to).is_some_and(|rules| !rules.copy_to.is_empty());
            let takes = schema.fields.get(to).is_some_and(FieldKind::is_value);
            if again || !takes || schema.nested(to) != schema.nested(name) {
                return Err(ApiError::mapping(format!(
                    "copy_to [{to}] of field [{name}]: name that in properties, as no object, no vector, without copy_to, \
                     and in the same nested object"
                )));
            }
        }
    }
    Ok(())
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

/// Checks templates: what they map to as far as it is known before a field comes.
fn templates(value: &Value) -> Result<(), ApiError> {
    let wrong = || ApiError::mapping("dynamic_templates: give an array of objects of one template each");
    for template in value.as_array().ok_or_else(wrong)? {
        let one = template.as_object().filter(|template| template.len() == 1).ok_or_else(wrong)?;
        for (name, how) in one {
            let refused = |what: String| ApiError::mapping(format!("dynamic template [{name}]: {what}"));
            let known = [
                "match_mapping_type",
                "match",
                "unmatch",
                "path_match",
                "path_unmatch",
                "match_pattern",
                "mapping",
            ];
            for (key, value) in how.as_object().ok_or_else(wrong)? {
                let fits = match key.as_str() {
                    "mapping" => value.is_object(),
                    "match_pattern" => value == "simple",
                    "match_mapping_type" => value.as_str().is_some_and(|kind| learn::SEEN.contains(&kind)),
                    key if known.contains(&key) => value.is_string() || value.is_array(),
                    _ => false,
                };
                if !fits {
                    return Err(refused(format!(
                        "[{key} : {value}] is not supported: it takes {}",
                        known.join(", ")
                    )));
                }
            }
            let mapping = how.get("mapping").and_then(Value::as_object);
            let mapping =
                mapping.ok_or_else(|| refused("must have a mapping set, an object".to_owned()))?.clone();
            let kind = mapping.get("type").and_then(Value::as_str).unwrap_or("{dynamic_type}").to_owned();
            if !kind.contains('{') {
                let field = Value::Object(Map::from_iter([(name.replace('.', "_"), Value::Object(mapping))]));
                properties("", &field, &mut Schema::default(), Usual::default())?;
            }
        }
    }
    Ok(())
}

/// The fields at `path`, which is empty or ends with a dot.
fn properties(path: &str, value: &Value, schema: &mut Schema, usual: Usual<'_>) -> Result<(), ApiError> {
    let wrong = || ApiError::mapping(format!("Expected map for property [properties] on field [{path}]"));
    for (key, field) in value.as_object().ok_or_else(wrong)? {
        let name = format!("{path}{key}");
        let wrong = || ApiError::mapping(format!("Expected map for property [fields] on field [{name}]"));
        let field = field.as_object().ok_or_else(wrong)?;
        match type_of(&name, field)? {
            "knn_vector" => {
                let kind = FieldKind::Vector(vector::read(&name, field, usual)?);
                schema.fields.insert(name, kind);
            }
            kind @ ("object" | "nested") => {
                let known =
                    ["type", "properties", "dynamic", "enabled", "include_in_parent", "include_in_root"];
                only(&name, kind, field, &known[..if kind == "nested" { 6 } else { 4 }])?;
                if let Some(other) =
                    known[4..].iter().find(|key| field.get(**key).is_some_and(|value| value != false))
                {
                    return Err(ApiError::mapping(format!(
                        "field [{name}]: [{other}] is not supported: map what the document itself is found by outside of it"
                    )));
                }
                if kind == "nested" {
                    schema.fields.insert(name.clone(), FieldKind::Nested);
                }
                field.get("dynamic").map(dynamic).transpose()?;
                if let Some(inner) = field.get("properties") {
                    properties(&format!("{name}."), inner, schema, usual)?;
                }
            }
            kind => {
                leaf(&name, kind, field, schema)?;
                let wrong =
                    || ApiError::mapping(format!("fields of field [{name}]: give an object of fields"));
                let Some(others) = field.get("fields") else { continue };
                for (other, field) in others.as_object().ok_or_else(wrong)? {
                    let name = format!("{name}.{other}");
                    let field = field.as_object().ok_or_else(wrong)?;
                    let kind = type_of(&name, field)?;
                    if field.contains_key("fields") || field.contains_key("copy_to") || kind == "flat_object"
                    {
                        return Err(ApiError::mapping(format!(
                            "fields of field [{name}] cannot have type [{kind}], fields, or copy_to"
                        )));
                    }
                    leaf(&name, kind, field, schema)?;
                }
            }
        }
    }
    Ok(())
}

fn type_of<'a>(name: &str, field: &'a Map<String, Value>) -> Result<&'a str, ApiError> {
    match field.get("type") {
        None if field.contains_key("properties") => Ok("object"),
        Some(Value::String(kind)) => Ok(kind),
        _ => Err(ApiError::mapping(format!("No type specified for field [{name}]"))),
    }
}

fn only(name: &str, kind: &str, field: &Map<String, Value>, known: &[&str]) -> Result<(), ApiError> {
    let unknown = |key: &&String| !known.contains(&key.as_str()) && !IDLE.contains(&key.as_str());
    field.keys().find(unknown).map_or(Ok(()), |other| {
        let value = &field[other];
        Err(ApiError::mapping(format!(
            "unknown parameter [{other}] on mapper [{name}] of type [{kind}]: {value}"
        )))
    })
}

/// A field of values.
fn leaf(name: &str, kind: &str, field: &Map<String, Value>, schema: &mut Schema) -> Result<(), ApiError> {
    let known: &[&str] = match kind {
        "text" => &["type", "fields", "copy_to", "analyzer", "search_analyzer", "term_vector"],
        "keyword" => &["type", "fields", "copy_to", "null_value", "ignore_above"],
        "flat_object" => &["type"],
        _ => &["type", "fields", "copy_to", "null_value", "ignore_malformed", "coerce"],
    };
    let made = match kind {
        "flat_object" => FieldKind::Object,
        "text" => FieldKind::Text { analyzer: analyzer(name, field)? },
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
    only(name, kind, field, known)?;
    let wrong = |key: &str| {
        let value = &field[key];
        ApiError::mapping(format!("Failed to parse mapping [_doc]: field [{name}]: [{key} : {value}]"))
    };
    let flag = |key: &str, usual: bool| match field.get(key).map(|value| value.to_string()).as_deref() {
        None => Ok(usual),
        Some("true" | "\"true\"") => Ok(true),
        Some("false" | "\"false\"") => Ok(false),
        Some(_) => Err(wrong(key)),
    };
    let copy_to = match field.get("copy_to") {
        None => Vec::new(),
        Some(Value::String(to)) => vec![to.clone()],
        Some(Value::Array(all)) => {
            let to = |to: &Value| to.as_str().map(str::to_owned).ok_or_else(|| wrong("copy_to"));
            all.iter().map(to).collect::<Result<_, _>>()?
        }
        Some(_) => return Err(wrong("copy_to")),
    };
    let ignore_above = match field.get("ignore_above") {
        None => None,
        Some(most) => Some(most.as_u64().ok_or_else(|| wrong("ignore_above"))? as usize),
    };
    let null_value = field.get("null_value").filter(|value| !value.is_null()).cloned();
    if null_value.as_ref().is_some_and(|value| value.is_object() || value.is_array()) {
        return Err(wrong("null_value"));
    }
    let coerce = made == FieldKind::Integer && flag("coerce", true)?;
    let ignore_malformed = flag("ignore_malformed", false)?;
    let rules = Rules { exact: false, ignore_above, null_value, coerce, ignore_malformed, copy_to };
    if rules != Rules::default() {
        schema.rules.insert(name.to_owned(), rules);
    }
    schema.fields.insert(name.to_owned(), made);
    Ok(())
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
