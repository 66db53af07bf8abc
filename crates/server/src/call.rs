//! A request as its handler sees it, and what the handler gives back.

use crate::error::ApiError;
use axum::http::StatusCode;
use serde_json::{Map, Value};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::io::Read;
use std::str::FromStr;

/// A request: what its path names, its parameters, its body.
pub(crate) struct Call {
    /// What the braces of the route's path stand for.
    pub(crate) names: BTreeMap<String, String>,
    pub(crate) params: Params,
    pub(crate) body: Body,
    /// The body, if somebody has read it.
    parsed: Cell<Option<Map<String, Value>>>,
}

/// A body that was read to its end, or is read by its handler.
pub(crate) enum Body {
    Whole(Vec<u8>),
    Stream(Box<dyn Read + Send>),
}

impl Call {
    pub(crate) fn new(names: BTreeMap<String, String>, params: Params, body: Body) -> Call {
        Call { names, params, body, parsed: Cell::default() }
    }

    /// Gives the body back that [`object`](Self::object) gave, for who comes after.
    pub(crate) fn keep(&self, body: Map<String, Value>) {
        self.parsed.set(Some(body));
    }

    /// What `{name}` stands for in the path, if the route has it.
    pub(crate) fn name(&self, name: &str) -> Option<&str> {
        self.names.get(name).map(String::as_str)
    }

    /// The body as JSON; `None` if there is none.
    ///
    /// # Errors
    /// If it is not JSON; where.
    pub(crate) fn json(&self) -> Result<Option<Value>, ApiError> {
        let Body::Whole(bytes) = &self.body else { return Ok(None) };
        if bytes.iter().all(u8::is_ascii_whitespace) {
            return Ok(None);
        }
        let parsed = serde_json::from_slice(bytes);
        parsed.map(Some).map_err(|error| ApiError::parsing(format!("the body is not JSON: {error}")))
    }

    /// The body as a JSON object; an empty one if there is no body.
    ///
    /// # Errors
    /// If it is something else.
    pub(crate) fn object(&self) -> Result<Map<String, Value>, ApiError> {
        if let Some(parsed) = self.parsed.take() {
            return Ok(parsed);
        }
        match self.json()? {
            None => Ok(Map::new()),
            Some(Value::Object(object)) => Ok(object),
            Some(_) => Err(ApiError::parsing("the body is no JSON object")),
        }
    }
}

/// What stands behind the `?` of a request.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Params(BTreeMap<String, String>);

/// What every request may have.
pub(crate) const COMMON: [&str; 5] = ["pretty", "human", "error_trace", "filter_path", "format"];

impl Params {
    /// Of a query string; of a name that is there twice, the last.
    pub(crate) fn parse(query: &str) -> Params {
        Params(form_urlencoded::parse(query.as_bytes()).into_owned().collect())
    }

    /// Of an object of values, as the head of each search of several is.
    ///
    /// # Errors
    /// If something in it is no single value.
    pub(crate) fn of(head: &Map<String, Value>) -> Result<Params, ApiError> {
        let text = |(name, value): (&String, &Value)| match value {
            Value::String(text) => Ok((name.clone(), text.clone())),
            Value::Bool(_) | Value::Number(_) => Ok((name.clone(), value.to_string())),
            _ => Err(ApiError::argument(format!("[{name}]: give one value"))),
        };
        head.iter().map(text).collect::<Result<_, _>>().map(Params)
    }

    /// Takes over a parameter that is not there.
    pub(crate) fn inherit(&mut self, other: &Params, name: &str) {
        if let (None, Some(text)) = (self.get(name), other.get(name)) {
            let text = text.to_owned();
            self.0.insert(name.to_owned(), text);
        }
    }

    /// Refuses what is neither common nor among `known`.
    ///
    /// # Errors
    /// Naming the first that is not known.
    pub(crate) fn check(&self, path: &str, known: &[&str]) -> Result<(), ApiError> {
        let unknown = |name: &&String| !COMMON.contains(&name.as_str()) && !known.contains(&name.as_str());
        let Some(unknown) = self.0.keys().find(unknown) else { return Ok(()) };
        let listed = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        Err(ApiError::argument(format!(
            "request [{path}] contains unrecognized parameter: [{unknown}]; it takes {listed}"
        )))
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// A flag: there alone, or `true` or `false`; not there, `usual`.
    ///
    /// # Errors
    /// If it says something else.
    pub(crate) fn flag(&self, name: &str, usual: bool) -> Result<bool, ApiError> {
        match self.get(name) {
            None => Ok(usual),
            Some("" | "true") => Ok(true),
            Some("false") => Ok(false),
            Some(other) => Err(ApiError::argument(format!(
                "{name}: failed to parse value [{other}] as only [true] or [false] are allowed"
            ))),
        }
    }

    /// A number, or whatever is written as one value.
    ///
    /// # Errors
    /// If it says something else.
    pub(crate) fn parsed<T: FromStr>(&self, name: &str) -> Result<Option<T>, ApiError> {
        let Some(text) = self.get(name) else { return Ok(None) };
        let wrong = |_| ApiError::argument(format!("failed to parse parameter [{name}] with value [{text}]"));
        text.parse().map(Some).map_err(wrong)
    }

    /// What stands between commas.
    pub(crate) fn list(&self, name: &str) -> Option<Vec<&str>> {
        Some(self.get(name)?.split(',').filter(|part| !part.is_empty()).collect())
    }
}

/// What a handler gives back.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) content: Content,
}

/// The body of an answer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Content {
    Json(Value),
    Text(String),
    /// A part of the console.
    Asset {
        kind: &'static str,
        text: &'static str,
    },
    /// JSON that is written already, and filtered.
    Bytes(Vec<u8>),
    Nothing,
}

impl Reply {
    pub(crate) fn json(value: Value) -> Reply {
        Reply { status: StatusCode::OK, content: Content::Json(value) }
    }

    /// The answer to "is it there?".
    pub(crate) fn exists(there: bool) -> Reply {
        let status = if there { StatusCode::OK } else { StatusCode::NOT_FOUND };
        Reply { status, content: Content::Nothing }
    }

    pub(crate) fn with_status(mut self, status: StatusCode) -> Reply {
        self.status = status;
        self
    }
}
