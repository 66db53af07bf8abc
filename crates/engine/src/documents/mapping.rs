//! A schema made ready: documents are checked and turned into what is searched.
//!
//! Each named field is a field of tantivy's. What the schema does not name, and objects, go into two fields of JSON, by
//! whole values (`_raw`) and by words (`_text`), and are found by their paths. `_id` holds the document's id, `_fields` the names of the
//! fields that it has; `_source` the document, without its vectors, which lie with the indexes, and then those vectors that
//! the indexes do not keep as they came (`given.rs`).
//!
//! Each nested object is a row of its own, behind that of its document: it has no id and no source, and `_fields` says what
//! it is ([`Mapping::marker`]). Its vectors stay in the document's source.

use super::schema::{Analyzer, FieldKind, Schema, SchemaError, VectorField};
use super::walk::{Walk, is_deeper, numbers, of};
use lanewise_index::{OwnedVectors, Params};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::Arc;
use tantivy::TantivyDocument;
use tantivy::schema::{
    DateOptions, DateTimePrecision, FAST, Field, INDEXED, IndexRecordOption, JsonObjectOptions, STORED,
    STRING, TextFieldIndexing, TextOptions,
};

/// The longest keyword, bytes: Lucene's.
pub(super) const KEYWORD_BYTES_MAX: usize = 32_766;

/// The field of what the schema does not name, by whole values.
pub(super) const RAW: &str = "_raw";

/// Objects and arrays within one another, at most: what the log holds must be read again, at any price.
const DEPTH_MAX: usize = 64;

/// Nested objects of a document, at most.
pub(super) const NESTED_MAX: usize = 10_000;

/// What begins with it among `_fields` names nested objects, no field.
pub(super) const MARK: char = '\u{1}';

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
    #[error(
        "field {field:?}: it holds one vector, and here it lies in an array of objects: make the array's field nested"
    )]
    InArray { field: String },
    #[error("field {field:?}: a document has at most {NESTED_MAX} nested objects: divide it")]
    Nested { field: String },
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
    /// Its nested objects, in order, which have no source and no such of their own.
    pub(crate) nested: Vec<Parsed>,
}

impl Parsed {
    /// The document and its nested objects: a row each.
    pub(crate) fn rows(&self) -> impl Iterator<Item = &Parsed> + Clone {
        std::iter::once(self).chain(&self.nested)
    }

    /// The same, to be changed.
    pub(crate) fn each_row(&mut self, mut change: impl FnMut(&mut Parsed)) {
        change(self);
        self.nested.iter_mut().for_each(change);
    }
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
                FieldKind::Vector(_) | FieldKind::Object | FieldKind::Nested => continue,
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
        let mut walk = Walk::new(self, again, false);
        let (mut source, mut dynamic) = (Map::new(), Map::new());
        walk.object("", document, &mut source, &mut dynamic)?;
        for (field, vector) in beside {
            let known = self.vector(&field).filter(|_| self.schema.nested(&field).is_none());
            let Some((number, params)) = known else {
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
        let (mut document, vectors, nested) = walk.finish(dynamic);
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
        Ok(Parsed { document, vectors, source, given: given.len(), nested })
    }

    /// What the rows of nested objects at `path` have among `_fields`.
    pub(super) fn marker(path: &str) -> String {
        format!("{MARK}{path}")
    }
}
