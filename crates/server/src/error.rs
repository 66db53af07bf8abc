//! Errors, in the shape that OpenSearch's clients read.

use axum::http::StatusCode;
use serde_json::{Map, Value, json};
use std::fmt;

/// What was wrong with a request, or went wrong with it.
#[derive(Clone, Debug, PartialEq)]
pub struct ApiError {
    status: StatusCode,
    kind: &'static str,
    reason: String,
    /// Fields beside `type` and `reason`.
    more: Map<String, Value>,
}

impl ApiError {
    /// An error of this status and type.
    pub(crate) fn new(status: StatusCode, kind: &'static str, reason: impl Into<String>) -> ApiError {
        ApiError { status, kind, reason: reason.into(), more: Map::new() }
    }

    /// What should not happen, or the system's: 500.
    pub(crate) fn internal(reason: impl ToString) -> ApiError {
        ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "exception", reason.to_string())
    }

    /// An argument that cannot be: 400.
    pub(crate) fn argument(reason: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::BAD_REQUEST, "illegal_argument_exception", reason)
    }

    /// A body that cannot be read: 400.
    pub(crate) fn parsing(reason: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::BAD_REQUEST, "parsing_exception", reason)
    }

    /// A mapping, or a document that does not fit it: 400.
    pub(crate) fn mapping(reason: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::BAD_REQUEST, "mapper_parsing_exception", reason)
    }

    /// An index that is not there: 404.
    pub(crate) fn no_index(name: &str) -> ApiError {
        let error = ApiError::new(
            StatusCode::NOT_FOUND,
            "index_not_found_exception",
            format!("no such index [{name}]"),
        );
        error
            .with("index", name)
            .with("resource.id", name)
            .with("resource.type", "index_or_alias")
            .with("index_uuid", "_na_")
    }

    /// The same with a field beside type and reason.
    pub(crate) fn with(mut self, name: &str, value: impl Into<Value>) -> ApiError {
        self.more.insert(name.to_owned(), value.into());
        self
    }

    /// Whether it is of this type.
    pub(crate) fn is(&self, kind: &str) -> bool {
        self.kind == kind
    }

    /// The status of the answer.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// The error alone, as in an item of a bulk's answer.
    pub(crate) fn cause(&self) -> Value {
        let mut cause = self.more.clone();
        cause.insert("type".to_owned(), self.kind.into());
        cause.insert("reason".to_owned(), self.reason.as_str().into());
        Value::Object(cause)
    }

    /// The body of the answer.
    pub(crate) fn body(&self) -> Value {
        let cause = self.cause();
        let mut error = self.more.clone();
        error.insert("root_cause".to_owned(), json!([cause]));
        error.insert("type".to_owned(), self.kind.into());
        error.insert("reason".to_owned(), self.reason.as_str().into());
        json!({"error": error, "status": self.status.as_u16()})
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind, self.reason)
    }
}

impl std::error::Error for ApiError {}
