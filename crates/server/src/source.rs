//! `_source`: which of a document's fields an answer shows.

use crate::call::Params;
use crate::error::ApiError;
use crate::filter_path::FilterPath;
use serde_json::Value;

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

    /// What is shown of a document; `None` if nothing is.
    pub(crate) fn apply(&self, source: Value) -> Option<Value> {
        match self {
            SourceFilter::All => Some(source),
            SourceFilter::None => None,
            SourceFilter::Some(paths) => Some(paths.apply(source)),
        }
    }
}
