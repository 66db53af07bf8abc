//! A schema made ready: documents are checked and turned into what is searched.
//!
//! Each named field is a field of tantivy's. What the schema does not name, and objects, go into two fields of JSON, by
//! whole values (`_raw`) and by words (`_text`), and are found by their paths. `_id` holds the document's id, `_fields` the names of the
//! fields that it has; `_source` the document, without its vectors, which lie with the indexes, and then those vectors that
//! the indexes do not keep as they came (`given.rs`).

use super::schema::{Analyzer, Dynamic, FieldKind, Schema, SchemaError, VectorField};
use super::value;
use lanewise_index::{Dtype, OwnedVectors, Params};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tantivy::TantivyDocument;
use tantivy::schema::{
    DateOptions, DateTimePrecision, FAST, Field, INDEXED, IndexRecordOption, JsonObjectOptions, OwnedValue,
    STORED, STRING, TextFieldIndexing, TextOptions,
};

/// The longest keyword, bytes: Lucene's.
const KEYWORD_BYTES_MAX: usize = 32_766;

/// The field of what the schema does not name, by whole values.
pub(super) const RAW: &str = "_raw";

/// Objects and arrays within one another, at most: what the log holds must be read again, at any price.
const DEPTH_MAX: usize = 64;

/// A schema made ready.
#[derive(Clone, Debug)]
pub struct Mapping {
    pub(super) schema: Arc<Schema>,
    pub(super) fields: BTreeMap<String, Field>,
    pub(super) tantivy: tantivy::schema::Schema,
    pub(super) raw: Field,
    pub(super) text: Field,
    pub(super) names: Field,
    pub(super) id: Field,
    pub(super) source: Field,
    /// Vector fields by name, in the order of [`Schema::vectors`].
    pub(super) vectors: Vec<String>,
}

/// Why a document is refused.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum DocumentError {
    #[error("field {field:?}: expected {expected}, found {found}")]
    Type { field: String, expected: &'static str, found: String },
    #[error("field {field:?}: a keyword has at most {KEYWORD_BYTES_MAX} bytes, not {bytes}")]
    Keyword { field: String, bytes: usize },
    #[error(
        "field {field:?}: the schema does not name it, and is strict: add it to the schema, or leave it out"
    )]
    Unknown { field: String },
    #[error(
        "field {field:?}: objects and arrays within one another are at most {DEPTH_MAX} deep: flatten it"
    )]
    Depth { field: String },
    #[error("field {field:?}: a vector of {expected} numbers is expected, this one has {found}")]
    Dim { field: String, expected: usize, found: usize },
    #[error("field {field:?}: it holds one vector, and there are two: inside the document and beside it")]
    Twice { field: String },
    #[error("field {field:?}: the schema names no such vector field")]
    NoVector { field: String },
    #[error("field {field:?}: it holds one vector, and here it lies in an array of objects")]
    InArray { field: String },
}

/// A document that was checked, as it is searched.
#[derive(Clone, Debug)]
pub struct Parsed {
    pub(super) document: TantivyDocument,
    /// One for each vector field, in the order of [`Schema::vectors`].
    pub vectors: Vec<Option<OwnedVectors>>,
    /// The document without its vectors, as JSON.
    pub source: Vec<u8>,
    /// Bytes of the vectors that are kept with it as they came.
    pub(crate) given: usize,
}

/// JSON fields by whole values, or by words.
fn json(tokenizer: &str, index: IndexRecordOption) -> JsonObjectOptions {
    let indexing = TextFieldIndexing::default().set_tokenizer(tokenizer).set_index_option(index);
    JsonObjectOptions::default().set_indexing_options(indexing).set_expand_dots_enabled()
}

impl Mapping {
    /// Of a schema.
    ///
    /// # Errors
    /// As [`Schema::check`].
    pub fn new(schema: Schema) -> Result<Mapping, SchemaError> {
        schema.check()?;
        let mut builder = tantivy::schema::Schema::builder();
        let raw = builder.add_json_field(RAW, json("raw", IndexRecordOption::Basic).set_fast("raw"));
        let positions = IndexRecordOption::WithFreqsAndPositions;
        let text = builder.add_json_field("_text", json(Analyzer::Standard.tokenizer(), positions));
        let names = builder.add_text_field("_fields", STRING);
        let id = builder.add_text_field("_id", STRING);
        let source = builder.add_bytes_field("_source", STORED);
        let mut fields = BTreeMap::new();
        for (name, kind) in schema.ordered() {
            let field = match kind {
                FieldKind::Vector(_) | FieldKind::Object => continue,
                FieldKind::Keyword => builder.add_text_field(name, STRING | FAST),
                FieldKind::Text { analyzer } => {
                    let indexing = TextFieldIndexing::default()
                        .set_tokenizer(analyzer.tokenizer())
                        .set_index_option(positions);
                    builder.add_text_field(name, TextOptions::default().set_indexing_options(indexing))
                }
                FieldKind::Integer => builder.add_i64_field(name, INDEXED | FAST),
                FieldKind::Float => builder.add_f64_field(name, INDEXED | FAST),
                FieldKind::Boolean => builder.add_bool_field(name, INDEXED | FAST),
                FieldKind::Date => {
                    let options = DateOptions::default().set_indexed().set_fast();
                    builder.add_date_field(name, options.set_precision(DateTimePrecision::Milliseconds))
                }
            };
            fields.insert(name.clone(), field);
        }
        let vectors = schema.vectors().map(|(name, _)| name.to_owned()).collect();
        let schema = Arc::new(schema);
        Ok(Mapping { schema, fields, tantivy: builder.build(), raw, text, names, id, source, vectors })
    }

    /// What it was made of.
    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// The number of a vector field, and what its indexes are made for.
    pub fn vector(&self, name: &str) -> Option<(usize, &Params)> {
        let number = self.vectors.iter().position(|field| field == name)?;
        match &self.schema.fields[name] {
            FieldKind::Vector(VectorField(params)) => Some((number, params)),
            _ => None,
        }
    }

    /// Checks a document. `beside` are vectors by field that come outside of it, for whoever has them in memory.
    ///
    /// # Errors
    /// What is wrong, by field. That a vector's numbers suit its metric, only its index can tell.
    pub fn parse(
        &self,
        id: &str,
        document: &Map<String, Value>,
        beside: Vec<(String, OwnedVectors)>,
    ) -> Result<Parsed, DocumentError> {
        self.parse_as(id, document, beside, false)
    }

    /// As [`parse`](Self::parse), of a document that was taken before, perhaps when the schema named fewer fields: what does
    /// not suit those that came later is kept, and not found.
    ///
    /// # Errors
    /// As [`parse`](Self::parse), of the vectors beside it.
    pub(crate) fn parse_again(
        &self,
        id: &str,
        document: &Map<String, Value>,
        beside: Vec<(String, OwnedVectors)>,
    ) -> Result<Parsed, DocumentError> {
        self.parse_as(id, document, beside, true)
    }

    fn parse_as(
        &self,
        id: &str,
        document: &Map<String, Value>,
        beside: Vec<(String, OwnedVectors)>,
        again: bool,
    ) -> Result<Parsed, DocumentError> {
        if let Some((field, _)) = document.iter().find(|(_, value)| is_deeper(value, DEPTH_MAX - 1)) {
            return Err(DocumentError::Depth { field: field.clone() });
        }
        let vectors = vec![None; self.vectors.len()];
        let tantivy = TantivyDocument::default();
        let mut walk = Walk { mapping: self, again, document: tantivy, names: BTreeSet::new(), vectors };
        let (mut source, mut dynamic) = (Map::new(), Map::new());
        walk.object("", document, &mut source, &mut dynamic)?;
        for (field, vector) in beside {
            let Some((number, params)) = self.vector(&field) else {
                return Err(DocumentError::NoVector { field });
            };
            if vector.as_vectors().dtype() != params.dtype.brought() {
                let found = format!("one of {}", vector.as_vectors().dtype().name());
                return Err(DocumentError::Type { field, expected: of(params.dtype), found });
            }
            let (expected, found) = (numbers(params), vector.as_vectors().elements());
            if found != expected {
                return Err(DocumentError::Dim { field, expected, found });
            }
            if walk.vectors[number].replace(vector).is_some() {
                return Err(DocumentError::Twice { field });
            }
            walk.note(&field);
        }
        let Walk { mut document, names, vectors, .. } = walk;
        for name in &names {
            document.add_text(self.names, name);
        }
        if !dynamic.is_empty() {
            let values: BTreeMap<String, OwnedValue> =
                dynamic.into_iter().map(|(name, value)| (name, value.into())).collect();
            document.add_object(self.text, values.clone());
            document.add_object(self.raw, values);
        }
        let mut source = serde_json::to_vec(&source).expect("a map of strings to JSON is JSON");
        document.add_text(self.id, id);
        document.add_bytes(self.source, &source);
        let given = self.given(&vectors);
        if !given.is_empty() {
            document.add_bytes(self.source, &given);
        }
        // Heads hold many: without the room that they grew into.
        document.shrink_to_fit();
        source.shrink_to_fit();
        Ok(Parsed { document, vectors, source, given: given.len() })
    }
}

/// Whether more than `left` objects and arrays lie within one another.
fn is_deeper(value: &Value, left: usize) -> bool {
    match value {
        Value::Array(all) => left == 0 || all.iter().any(|value| is_deeper(value, left - 1)),
        Value::Object(all) => left == 0 || all.values().any(|value| is_deeper(value, left - 1)),
        _ => false,
    }
}

/// What is brought for a vector of so many.
fn of(dtype: Dtype) -> &'static str {
    match dtype.brought() {
        Dtype::I8 => "a vector of whole numbers from -128 to 127",
        Dtype::U8 => "a vector of whole numbers from 0 to 255",
        Dtype::Bits => "a vector of bytes, whole numbers from -128 to 255, eight bits each",
        _ => "a vector of numbers",
    }
}

/// Numbers that a vector is written with.
fn numbers(params: &Params) -> usize {
    if params.dtype == Dtype::Bits { params.dim.div_ceil(8) } else { params.dim }
}

/// What of an object is kept, and what of that the schema does not name.
type Halves = (Map<String, Value>, Map<String, Value>);

/// A document on its way.
struct Walk<'a> {
    mapping: &'a Mapping,
    /// Whether it was taken before.
    again: bool,
    document: TantivyDocument,
    /// Fields that it has.
    names: BTreeSet<String>,
    vectors: Vec<Option<OwnedVectors>>,
}

impl Walk<'_> {
    /// The fields of `object`, which lies at `path` (empty, or ends with a dot). `source` gets all but vectors, `dynamic`
    /// what the schema does not name.
    fn object(
        &mut self,
        path: &str,
        object: &Map<String, Value>,
        source: &mut Map<String, Value>,
        dynamic: &mut Map<String, Value>,
    ) -> Result<(), DocumentError> {
        for (key, value) in object {
            let name = format!("{path}{key}");
            let Schema { fields, dynamic: how, .. } = &*self.mapping.schema;
            match (fields.get(&name), value) {
                (Some(FieldKind::Vector(VectorField(params))), Value::Array(_)) if !self.again => {
                    self.vector(&name, params, value)?;
                    continue;
                }
                // Vectors that were taken before come beside the document.
                (Some(FieldKind::Vector(_)), _) if self.again || value.is_null() => {}
                (Some(FieldKind::Vector(VectorField(params))), value) => {
                    return Err(wrong(&name, of(params.dtype), value));
                }
                (Some(FieldKind::Object), value) => {
                    if !matches!(value, Value::Object(_) | Value::Null)
                        && !value.as_array().is_some_and(|all| all.iter().all(Value::is_object))
                        && !self.again
                    {
                        return Err(wrong(&name, "an object", value));
                    }
                    self.name_all(&name, value);
                    dynamic.insert(key.clone(), value::without_negative_zero(value));
                }
                (Some(kind), value) => self.leaf(&name, kind, value)?,
                (None, Value::Object(inner)) if self.leads_on(&name) => {
                    let (kept, unnamed) = self.inner(&name, inner)?;
                    source.insert(key.clone(), Value::Object(kept));
                    if !unnamed.is_empty() {
                        dynamic.insert(key.clone(), Value::Object(unnamed));
                    }
                    continue;
                }
                (None, Value::Array(all)) if self.leads_on(&name) && all.iter().any(Value::is_object) => {
                    let (all, unnamed) = self.objects(&name, all)?;
                    source.insert(key.clone(), Value::Array(all));
                    if !unnamed.is_empty() {
                        dynamic.insert(key.clone(), Value::Array(unnamed));
                    }
                    continue;
                }
                (None, _) if *how == Dynamic::Strict && !self.again => {
                    return Err(DocumentError::Unknown { field: name });
                }
                (None, _) if *how == Dynamic::False => {}
                (None, value) => {
                    self.name_all(&name, value);
                    dynamic.insert(key.clone(), value::without_negative_zero(value));
                }
            }
            source.insert(key.clone(), value.clone());
        }
        Ok(())
    }

    /// An object's fields.
    fn inner(&mut self, name: &str, object: &Map<String, Value>) -> Result<Halves, DocumentError> {
        let (mut kept, mut unnamed) = (Map::new(), Map::new());
        self.object(&format!("{name}."), object, &mut kept, &mut unnamed)?;
        Ok((kept, unnamed))
    }

    /// The same of several objects, whose values are together those of the fields.
    fn objects(&mut self, name: &str, all: &[Value]) -> Result<(Vec<Value>, Vec<Value>), DocumentError> {
        let (mut kept, mut unnamed) = (Vec::new(), Vec::new());
        let before: Vec<bool> = self.vectors.iter().map(Option::is_some).collect();
        for value in all {
            let Value::Object(object) = value else {
                kept.push(value.clone());
                continue;
            };
            let (source, dynamic) = self.inner(name, object)?;
            kept.push(Value::Object(source));
            if !dynamic.is_empty() {
                unnamed.push(Value::Object(dynamic));
            }
        }
        let is_new = |(now, before): (&Option<_>, &bool)| now.is_some() != *before;
        if let Some(number) = self.vectors.iter().zip(&before).position(is_new) {
            return Err(DocumentError::InArray { field: self.mapping.vectors[number].clone() });
        }
        Ok((kept, unnamed))
    }

    /// A value of a field, and of those that take the values of it.
    fn leaf(&mut self, name: &str, kind: &FieldKind, value: &Value) -> Result<(), DocumentError> {
        self.ruled(name, kind, value)?;
        let schema = &self.mapping.schema;
        let inside = format!("{name}.");
        for (inner, kind) in schema.fields.range(inside.clone()..).take_while(|(n, _)| n.starts_with(&inside))
        {
            self.ruled(inner, kind, value)?;
        }
        for to in schema.rules.get(name).into_iter().flat_map(|rules| &rules.copy_to) {
            self.leaf(to, &schema.fields[to], value)?;
        }
        Ok(())
    }

    /// A value as the field's rules say.
    fn ruled(&mut self, name: &str, kind: &FieldKind, value: &Value) -> Result<(), DocumentError> {
        if let Value::Array(all) = value {
            return all.iter().try_for_each(|value| self.ruled(name, kind, value));
        }
        let schema = &self.mapping.schema;
        let Some(rules) = schema.rules.get(name) else { return self.typed(name, kind, value) };
        let (mut value, cut) = (value, value.as_f64().map(|float| Value::from(float.trunc())));
        if let (Value::Null, Some(instead)) = (value, &rules.null_value) {
            value = instead;
        }
        if let (Some(most), Value::String(text)) = (rules.ignore_above, value)
            && text.encode_utf16().count() > most
        {
            return Ok(());
        }
        if let (FieldKind::Integer, Some(cut)) = (kind, &cut)
            && rules.coerce
            && value::integer(value).is_none()
        {
            value = cut;
        }
        match self.typed(name, kind, value) {
            Err(_) if rules.ignore_malformed => Ok(()),
            done => done,
        }
    }

    /// Whether the schema names fields inside of this one.
    fn leads_on(&self, name: &str) -> bool {
        let prefix = format!("{name}.");
        let after = self.mapping.schema.fields.range(prefix.clone()..).next();
        after.is_some_and(|(field, _)| field.starts_with(&prefix))
    }

    /// Notes that the document has `name`, or what is inside.
    fn name_all(&mut self, name: &str, value: &Value) {
        match value {
            Value::Null => {}
            Value::Array(all) => all.iter().for_each(|value| self.name_all(name, value)),
            Value::Object(inner) => {
                inner.iter().for_each(|(key, value)| self.name_all(&format!("{name}.{key}"), value));
            }
            _ => self.note(name),
        }
    }

    /// Notes that the document has `name`, and all that it lies in.
    fn note(&mut self, name: &str) {
        for (dot, _) in name.match_indices('.') {
            self.names.insert(name[..dot].to_owned());
        }
        self.names.insert(name.to_owned());
    }

    fn typed(&mut self, name: &str, kind: &FieldKind, value: &Value) -> Result<(), DocumentError> {
        match self.value(name, kind, value) {
            Err(_) if self.again => Ok(()),
            done => done,
        }
    }

    fn value(&mut self, name: &str, kind: &FieldKind, value: &Value) -> Result<(), DocumentError> {
        if let Value::Array(all) = value {
            return all.iter().try_for_each(|value| self.typed(name, kind, value));
        }
        if value.is_null() {
            return Ok(());
        }
        let field = self.mapping.fields[name];
        let fail = |expected| wrong(name, expected, value);
        match kind {
            FieldKind::Vector(_) | FieldKind::Object => unreachable!("handled before"),
            FieldKind::Keyword | FieldKind::Text { .. } => {
                // Numbers and booleans are taken as they are written, as everywhere in the field.
                let text = match value {
                    Value::String(text) => text.clone(),
                    Value::Number(number) => number.to_string(),
                    Value::Bool(given) => given.to_string(),
                    _ => return Err(fail("a string")),
                };
                if *kind == FieldKind::Keyword && text.len() > KEYWORD_BYTES_MAX {
                    return Err(DocumentError::Keyword { field: name.to_owned(), bytes: text.len() });
                }
                self.document.add_text(field, text);
            }
            FieldKind::Integer => {
                let number = value::integer(value).ok_or_else(|| fail("a whole number of 64 bits"))?;
                self.document.add_i64(field, number);
            }
            FieldKind::Float => {
                self.document.add_f64(field, value::float(value).ok_or_else(|| fail("a number"))?);
            }
            FieldKind::Boolean => {
                self.document.add_bool(field, value::boolean(value).ok_or_else(|| fail("true or false"))?);
            }
            FieldKind::Date => {
                let what = "a date (ISO 8601, or milliseconds since 1970)";
                self.document.add_date(field, value::date(value).ok_or_else(|| fail(what))?);
            }
        }
        self.note(name);
        Ok(())
    }

    fn vector(&mut self, name: &str, params: &Params, value: &Value) -> Result<(), DocumentError> {
        let Value::Array(all) = value else { return Err(wrong(name, of(params.dtype), value)) };
        if all.len() != numbers(params) {
            let (field, expected) = (name.to_owned(), numbers(params));
            return Err(DocumentError::Dim { field, expected, found: all.len() });
        }
        let fail = |value: &Value| wrong(name, of(params.dtype), value);
        let whole = |low: i64, high: i64| {
            all.iter().map(move |value| {
                let number = value::integer(value).filter(|number| (low..=high).contains(number));
                number.ok_or_else(|| fail(value))
            })
        };
        let vector = match params.dtype.brought() {
            Dtype::I8 => {
                OwnedVectors::I8(whole(-128, 127).map(|x| x.map(|x| x as i8)).collect::<Result<_, _>>()?)
            }
            Dtype::U8 => {
                OwnedVectors::U8(whole(0, 255).map(|x| x.map(|x| x as u8)).collect::<Result<_, _>>()?)
            }
            Dtype::Bits => {
                OwnedVectors::Bits(whole(-128, 255).map(|x| x.map(|x| x as u8)).collect::<Result<_, _>>()?)
            }
            _ => {
                let float = |value: &Value| value.as_f64().map(|x| x as f32).ok_or_else(|| fail(value));
                OwnedVectors::F32(all.iter().map(float).collect::<Result<_, _>>()?)
            }
        };
        let (number, _) = self.mapping.vector(name).expect("the schema names it");
        self.vectors[number] = Some(vector);
        self.note(name);
        Ok(())
    }
}

fn wrong(field: &str, expected: &'static str, value: &Value) -> DocumentError {
    DocumentError::Type { field: field.to_owned(), expected, found: value::kind(value) }
}
