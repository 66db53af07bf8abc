//! `_source`: which of a document's fields an answer shows.

use crate::call::Params;
use crate::error::ApiError;
use crate::filter_path::FilterPath;
use lanewise_engine::index::{OwnedVectors, Vectors};
use serde_json::{Map, Value};

/// What is shown of documents.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum SourceFilter {
    All,
    None,
    Some(FilterPath),
}

impl SourceFilter {
    /// As a body's `_source` says, or the parameters, which come first.
    ///
    /// # Errors
    /// If it is none.
    pub(crate) fn read(body: Option<&Value>, params: &Params) -> Result<SourceFilter, ApiError> {
        let list =
            |name: &str| params.list(name).map(|all| all.into_iter().map(str::to_owned).collect::<Vec<_>>());
        let (includes, excludes) = (list("_source_includes"), list("_source_excludes"));
        if includes.is_some() || excludes.is_some() {
            return Ok(SourceFilter::of(includes.unwrap_or_default(), excludes.unwrap_or_default()));
        }
        match params.get("_source") {
            None => {}
            Some("true" | "") => return Ok(SourceFilter::All),
            Some("false") => return Ok(SourceFilter::None),
            Some(paths) => {
                return Ok(SourceFilter::of(paths.split(',').map(str::to_owned).collect(), Vec::new()));
            }
        }
        let wrong = || ApiError::parsing("[_source]: give true, false, fields, or {includes, excludes}");
        let strings = |value: &Value| match value {
            Value::String(path) => Ok(vec![path.clone()]),
            Value::Array(all) => {
                all.iter().map(|path| path.as_str().map(str::to_owned).ok_or_else(wrong)).collect()
            }
            _ => Err(wrong()),
        };
        match body {
            None | Some(Value::Bool(true) | Value::Null) => Ok(SourceFilter::All),
            Some(Value::Bool(false)) => Ok(SourceFilter::None),
            Some(Value::Object(fields)) => {
                if let Some(other) = fields
                    .keys()
                    .find(|key| !["includes", "include", "excludes", "exclude"].contains(&key.as_str()))
                {
                    return Err(ApiError::parsing(format!("[_source] unknown key [{other}]")));
                }
                let list = |names: [&str; 2]| {
                    names.iter().find_map(|name| fields.get(*name)).map_or(Ok(Vec::new()), strings)
                };
                Ok(SourceFilter::of(list(["includes", "include"])?, list(["excludes", "exclude"])?))
            }
            Some(paths) => Ok(SourceFilter::of(strings(paths)?, Vec::new())),
        }
    }

    fn of(includes: Vec<String>, excludes: Vec<String>) -> SourceFilter {
        if includes.is_empty() && excludes.is_empty() {
            return SourceFilter::All;
        }
        SourceFilter::Some(FilterPath::new(
            includes.iter().map(String::as_str),
            excludes.iter().map(String::as_str),
        ))
    }

    /// As mappings' `_source` says.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub(crate) fn of_mapping(mappings: &Map<String, Value>) -> Result<SourceFilter, ApiError> {
        let mapped = mappings.get("_source").and_then(Value::as_object).cloned().map(|mut fields| {
            fields.remove("enabled");
            Value::Object(fields)
        });
        SourceFilter::read(mapped.as_ref(), &Params::default())
    }

    /// Whether the field at `path` is shown.
    pub(crate) fn shows(&self, path: &str) -> bool {
        let mut document = Value::Object(Map::new());
        put(&mut document, path, Value::Null);
        self.apply(document)
            .is_some_and(|left| left.pointer(&format!("/{}", path.replace('.', "/"))).is_some())
    }

    /// What is shown of a document; `None` if nothing is.
    pub(crate) fn apply(&self, source: Value) -> Option<Value> {
        match self {
            SourceFilter::All => Some(source),
            SourceFilter::None => None,
            SourceFilter::Some(paths) => Some(paths.apply(source)),
        }
    }
}

/// Puts a value where a path leads to, in objects that are made where there are none; what is there stays.
pub(crate) fn put(document: &mut Value, path: &str, value: Value) {
    let Some(fields) = document.as_object_mut() else { return };
    match path.split_once('.') {
        None => drop(fields.entry(path).or_insert(value)),
        Some((outer, rest)) => {
            put(fields.entry(outer).or_insert_with(|| Value::Object(Map::new())), rest, value)
        }
    }
}

/// A vector as it is written: floats with as many digits as tell them from all others of 32 bits, bits as signed bytes.
pub(crate) fn written(vector: &OwnedVectors) -> Value {
    let short = |x: &f32| x.to_string().parse::<f64>().unwrap_or(f64::from(*x));
    match vector.as_vectors() {
        Vectors::F32(all) => all.iter().map(short).collect(),
        Vectors::I8(all) => all.iter().copied().collect(),
        Vectors::U8(all) => all.iter().copied().collect(),
        Vectors::Bits(all) => all.iter().map(|&byte| byte as i8).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    proptest! {
        #[test]
        fn floats_are_written_shortly_and_read_as_they_were(all in prop::collection::vec(prop::num::f32::NORMAL | prop::num::f32::SUBNORMAL | prop::num::f32::ZERO, 1..50)) {
            let text = written(&OwnedVectors::F32(all.clone())).to_string();
            let read: Vec<f64> = serde_json::from_str(&text).unwrap();
            prop_assert!(read.iter().map(|x| (*x as f32).to_bits()).eq(all.iter().map(|x| x.to_bits())), "{}", text);
        }
    }

    #[test]
    fn a_vector_goes_where_its_path_leads() {
        let mut document = json!({"o": {"x": 1}, "n": 2});
        put(&mut document, "o.v", written(&OwnedVectors::F32(vec![0.1, 3.0, -1e-7])));
        put(&mut document, "p.v", written(&OwnedVectors::Bits(vec![255, 1])));
        put(&mut document, "n.v", Value::Null);
        put(&mut document, "o.x", Value::Null);
        assert_eq!(document, json!({"o": {"x": 1, "v": [0.1, 3.0, -1e-7]}, "n": 2, "p": {"v": [-1, 1]}}));
    }
}
