//! A document on its way: each of its fields as the schema says.

use super::mapping::{DocumentError, KEYWORD_BYTES_MAX, MARK, Mapping, NESTED_MAX, Parsed};
use super::schema::{Dynamic, FieldKind, Schema, VectorField};
use super::value;
use lanewise_index::{Dtype, Index, OwnedVectors, Params, Search};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use tantivy::TantivyDocument;
use tantivy::schema::OwnedValue;

/// Whether more than `left` objects and arrays lie within one another.
pub(super) fn is_deeper(value: &Value, left: usize) -> bool {
    match value {
        Value::Array(all) => left == 0 || all.iter().any(|value| is_deeper(value, left - 1)),
        Value::Object(all) => left == 0 || all.values().any(|value| is_deeper(value, left - 1)),
        _ => false,
    }
}

/// What is brought for a vector of so many.
pub(super) fn of(dtype: Dtype) -> &'static str {
    match dtype.brought() {
        Dtype::I8 => "a vector of whole numbers from -128 to 127",
        Dtype::U8 => "a vector of whole numbers from 0 to 255",
        Dtype::Bits => "a vector of bytes, whole numbers from -128 to 255, eight bits each",
        _ => "a vector of numbers",
    }
}

/// Numbers that a vector is written with.
pub(super) fn numbers(params: &Params) -> usize {
    if params.dtype == Dtype::Bits { params.dim.div_ceil(8) } else { params.dim }
}

/// What of an object is kept, and what of that the schema does not name.
type Halves = (Map<String, Value>, Map<String, Value>);

/// A document on its way.
pub(super) struct Walk<'a> {
    mapping: &'a Mapping,
    /// Whether it was taken before.
    again: bool,
    /// Whether it is a nested object.
    is_nested: bool,
    document: TantivyDocument,
    /// Fields that it has.
    names: BTreeSet<String>,
    pub(super) vectors: Vec<Option<OwnedVectors>>,
    /// Its nested objects.
    nested: Vec<Parsed>,
}

impl<'a> Walk<'a> {
    pub(super) fn new(mapping: &'a Mapping, again: bool, is_nested: bool) -> Walk<'a> {
        let (document, names, nested) = (TantivyDocument::default(), BTreeSet::new(), Vec::new());
        Walk {
            mapping,
            again,
            is_nested,
            document,
            names,
            vectors: vec![None; mapping.vectors.len()],
            nested,
        }
    }

    /// What is searched, with `dynamic`, which the schema does not name.
    pub(super) fn finish(
        self,
        dynamic: Map<String, Value>,
    ) -> (TantivyDocument, Vec<Option<OwnedVectors>>, Vec<Parsed>) {
        let Walk { mapping, mut document, names, vectors, nested, .. } = self;
        for name in &names {
            document.add_text(mapping.names, name);
        }
        if !dynamic.is_empty() {
            let values: BTreeMap<String, OwnedValue> =
                dynamic.into_iter().map(|(name, value)| (name, value.into())).collect();
            document.add_object(mapping.text, values.clone());
            document.add_object(mapping.raw, values);
        }
        (document, vectors, nested)
    }

    /// Nested objects at `name`: one, or several.
    fn nested(&mut self, name: &str, value: &Value) -> Result<(), DocumentError> {
        match value {
            Value::Null => {}
            Value::Array(all) => all.iter().try_for_each(|value| self.nested(name, value))?,
            Value::Object(object) => {
                if self.nested.len() == NESTED_MAX {
                    return Err(DocumentError::Nested { field: name.to_owned() });
                }
                let mut walk = Walk::new(self.mapping, self.again, true);
                let (_, unnamed) = walk.inner(name, object)?;
                walk.names.insert(Mapping::marker(name));
                let mut dynamic = Map::new();
                if !unnamed.is_empty() {
                    dynamic.insert(name.to_owned(), Value::Object(unnamed));
                }
                let (mut document, vectors, _) = walk.finish(dynamic);
                document.shrink_to_fit();
                self.nested.push(Parsed {
                    document,
                    vectors,
                    source: Vec::new(),
                    given: 0,
                    nested: Vec::new(),
                });
            }
            _ if self.again => {}
            value => return Err(wrong(name, "an object, or several", value)),
        }
        Ok(())
    }

    /// The fields of `object`, which lies at `path` (empty, or ends with a dot). `source` gets all but vectors, `dynamic`
    /// what the schema does not name.
    pub(super) fn object(
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
                (Some(FieldKind::Vector(VectorField(params))), Value::Array(_)) if self.is_nested => {
                    match self.vector(&name, params, value) {
                        Err(_) if self.again => {}
                        done => done?,
                    }
                    continue;
                }
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
                (Some(FieldKind::Nested), value) => self.nested(&name, value)?,
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
    pub(super) fn note(&mut self, name: &str) {
        if name.starts_with(MARK) {
            return;
        }
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
            FieldKind::Vector(_) | FieldKind::Object | FieldKind::Nested => unreachable!("handled before"),
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
        // What was taken as something else may be no vector that the field's metric knows.
        if self.again && !suits(params, &vector) {
            return Ok(());
        }
        self.vectors[number] = Some(vector);
        self.note(name);
        Ok(())
    }
}

/// Whether an index for `params` takes a vector.
fn suits(params: &Params, vector: &OwnedVectors) -> bool {
    Index::new(*params).is_ok_and(|index| index.reader().check(vector.as_vectors(), &Search::new(1)).is_ok())
}

fn wrong(field: &str, expected: &'static str, value: &Value) -> DocumentError {
    DocumentError::Type { field: field.to_owned(), expected, found: value::kind(value) }
}
