//! Documents: Python's values as JSON and back.
//!
//! What JSON cannot say as it is meant (NaN, a set, bytes) is refused with the field's name, never rounded or left out.
//! Vectors leave the document here: they go to the engine as arrays.

use crate::arguments::type_name;
use crate::arrays;
use crate::errors::{argument, dtype};
use lanewise_engine::documents::{FieldKind, Schema, VectorField};
use lanewise_engine::index::{OwnedVectors, Params};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{
    PyBool, PyBytes, PyDate, PyDict, PyFloat, PyInt, PyList, PyMapping, PyNone, PySequence, PyString, PyTuple,
};
use serde_json::{Map, Number, Value};

/// Values within values, at most: documents deeper than this are no documents.
const DEPTH_MAX: usize = 64;

/// A document on its way: which fields are vectors, and those that it has.
struct Walk<'a> {
    /// The argument's name, for messages.
    name: &'a str,
    schema: Option<&'a Schema>,
    vectors: Vec<(String, OwnedVectors)>,
}

/// A document, and the vectors that it had, by field.
pub(super) type Apart = (Map<String, Value>, Vec<(String, OwnedVectors)>);

/// The document `given` as argument `name`, and its vectors by field.
///
/// # Errors
/// `DtypeError` and `ArgumentError` that name the field, if it is no document.
pub(crate) fn document(name: &str, given: &Bound<'_, PyAny>, schema: &Schema) -> PyResult<Apart> {
    let mut walk = Walk { name, schema: Some(schema), vectors: Vec::new() };
    match walk.value("", given, DEPTH_MAX)? {
        Value::Object(document) => Ok((document, walk.vectors)),
        _ => {
            let message = format!("{name} must be a dict of the document's fields, not {}", type_name(given));
            Err(dtype(given.py(), name, message))
        }
    }
}

/// The value `given` as argument `name`, as JSON.
///
/// # Errors
/// `DtypeError` and `ArgumentError` that name the part, if JSON has no such value.
pub(crate) fn from_python(name: &str, given: &Bound<'_, PyAny>) -> PyResult<Value> {
    Walk { name, schema: None, vectors: Vec::new() }.value("", given, DEPTH_MAX)
}

impl Walk<'_> {
    /// The value of the field `path`, which is empty for the whole.
    fn value(&mut self, path: &str, given: &Bound<'_, PyAny>, left: usize) -> PyResult<Value> {
        let py = given.py();
        if left == 0 {
            let message = format!("{} is more than {DEPTH_MAX} levels deep: flatten it", self.place(path));
            return Err(argument(py, self.name, message));
        }
        // The usual types first; a bool is an int to Python.
        if given.is_instance_of::<PyNone>() {
            return Ok(Value::Null);
        }
        if let Ok(text) = given.cast::<PyString>() {
            return self.text(path, text).map(Value::String);
        }
        if let Ok(given) = given.cast::<PyBool>() {
            return Ok(Value::Bool(given.is_true()));
        }
        if let Ok(number) = given.cast::<PyInt>() {
            return self.integer(path, number);
        }
        if let Ok(number) = given.cast::<PyFloat>() {
            let number = Number::from_f64(number.value()).map(Value::Number);
            return number.ok_or_else(|| {
                let message = format!(
                    "{} is {given}, which JSON does not have: leave the field out, or set it to None",
                    self.place(path)
                );
                argument(py, self.name, message)
            });
        }
        if let Ok(dict) = given.cast::<PyDict>() {
            let entries = dict.iter().map(|(key, value)| Ok((key, value)));
            return self.object(path, entries, left);
        }
        if given.is_instance_of::<PyList>() || given.is_instance_of::<PyTuple>() {
            return self.array(path, given, left);
        }
        // A datetime is a date; without a time zone it is UTC, which is the engine's rule.
        if given.is_instance_of::<PyDate>() {
            return Ok(Value::String(given.call_method0("isoformat")?.extract()?));
        }
        if let Ok(mapping) = given.cast::<PyMapping>() {
            let pairs = mapping.items()?;
            let entries = pairs.iter().map(|pair| pair.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>());
            return self.object(path, entries, left);
        }
        self.of_numpy(path, given, left)?.map_or_else(
            || {
                let message = format!(
                    "{} is of type {}: use str, int, float, bool, None, datetime, or lists and dicts of these",
                    self.place(path),
                    type_name(given)
                );
                Err(dtype(py, self.name, message))
            },
            Ok,
        )
    }

    /// NumPy's scalars and arrays as Python's; and what else is a sequence.
    fn of_numpy(&mut self, path: &str, given: &Bound<'_, PyAny>, left: usize) -> PyResult<Option<Value>> {
        let np = given.py().import("numpy")?;
        let plain = if given.is_instance(&np.getattr("datetime64")?)? {
            // Finer ones become whole numbers otherwise.
            given.call_method1("astype", ("datetime64[ms]",))?.call_method0("item")?
        } else if given.is_instance(&np.getattr("generic")?)? {
            given.call_method0("item")?
        } else if given.is_instance(&np.getattr("ndarray")?)? {
            given.call_method0("tolist")?
        } else if let Ok(sequence) = given.cast::<PySequence>()
            && !given.hasattr("decode")?
        {
            sequence.to_list()?.into_any()
        } else {
            return Ok(None);
        };
        // A scalar of a type that Python lacks gives itself.
        if plain.get_type().is(given.get_type()) {
            return Ok(None);
        }
        self.value(path, &plain, left - 1).map(Some)
    }

    fn object<'py>(
        &mut self,
        path: &str,
        entries: impl Iterator<Item = PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)>>,
        left: usize,
    ) -> PyResult<Value> {
        let mut object = Map::new();
        for entry in entries {
            let (key, value) = entry?;
            let Ok(text) = key.cast::<PyString>() else {
                let place = self.place(path);
                let message = format!("{place} has the key {key}, of type {}: use str", type_name(&key));
                return Err(dtype(key.py(), self.name, message));
            };
            let text = self.text(path, text)?;
            let inner = if path.is_empty() { text.clone() } else { format!("{path}.{text}") };
            if let Some(params) = self.schema.and_then(|schema| vector_field(schema, &inner)) {
                if !value.is_none() {
                    let vector = one_vector(&inner, &value, params)?;
                    self.vectors.push((inner, vector));
                }
                continue;
            }
            object.insert(text, self.value(&inner, &value, left - 1)?);
        }
        Ok(Value::Object(object))
    }

    fn array(&mut self, path: &str, given: &Bound<'_, PyAny>, left: usize) -> PyResult<Value> {
        given.try_iter()?.map(|value| self.value(path, &value?, left - 1)).collect()
    }

    fn integer(&self, path: &str, given: &Bound<'_, PyInt>) -> PyResult<Value> {
        let number = given.extract::<i64>().map(Number::from);
        let number = number.or_else(|_| given.extract::<u64>().map(Number::from));
        number.map(Value::Number).map_err(|_| {
            let message = format!("{} = {given} exceeds 64 bits: use a str", self.place(path));
            argument(given.py(), self.name, message)
        })
    }

    fn text(&self, path: &str, given: &Bound<'_, PyString>) -> PyResult<String> {
        given.to_str().map(str::to_owned).map_err(|_| {
            let message = format!(
                "{} has a string that is no Unicode text (a lone surrogate): decode it with errors=\"replace\"",
                self.place(path)
            );
            argument(given.py(), self.name, message)
        })
    }

    fn place(&self, path: &str) -> String {
        if path.is_empty() { self.name.to_owned() } else { format!("{}: field {path:?}", self.name) }
    }
}

fn vector_field<'a>(schema: &'a Schema, path: &str) -> Option<&'a Params> {
    match schema.fields.get(path) {
        // Those of nested objects stay in the document.
        Some(FieldKind::Vector(VectorField(params))) if schema.nested(path).is_none() => Some(params),
        _ => None,
    }
}

/// The vector that a document has in `field`.
///
/// # Errors
/// As [`arrays::vectors`], and if it is more than one.
pub(crate) fn one_vector(field: &str, given: &Bound<'_, PyAny>, params: &Params) -> PyResult<OwnedVectors> {
    let batch = arrays::vectors(field, given, params)?;
    if !batch.single {
        let message = format!("{field} has {} vectors: a document has one of a field", batch.count);
        return Err(argument(given.py(), field, message));
    }
    Ok(OwnedVectors::from(batch.vectors()))
}

/// JSON as Python's values. Python reads it itself: its floats are exact.
pub(crate) fn to_python<'py>(py: Python<'py>, json: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    static LOADS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    LOADS.import(py, "json", "loads")?.call1((PyBytes::new(py, json),))
}
