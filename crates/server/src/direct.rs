//! Requests that come without a network, one after the other, for fuzz targets and tests: what a route's handler gets is the
//! same.

use crate::api::ROUTES;
use crate::call::{Body, Call, Content, Params, Reply};
use crate::error::ApiError;
use crate::node::Node;
use crate::route::Reads;
use axum::http::StatusCode;
use std::collections::BTreeMap;
use std::io::Cursor;

impl Node {
    /// Answers a request as over HTTP, whoever asks: the status, and JSON or text. `target` is a path, with parameters if
    /// need be; its parts are taken as they stand.
    pub fn answer(&self, method: &str, target: &str, body: Vec<u8>) -> (u16, Vec<u8>) {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let reply = self.direct(method, path, query, body);
        let Reply { status, content } =
            reply.unwrap_or_else(|error| Reply::json(error.body()).with_status(error.status()));
        let bytes = match content {
            Content::Nothing => Vec::new(),
            Content::Text(text) => text.into_bytes(),
            Content::Asset { text, .. } => text.as_bytes().to_vec(),
            Content::Bytes(bytes) => bytes,
            Content::Json(value) => value.to_string().into_bytes(),
        };
        (status.as_u16(), bytes)
    }

    fn direct(&self, method: &str, path: &str, query: &str, body: Vec<u8>) -> Result<Reply, ApiError> {
        let params = Params::parse(query);
        let mut found = None;
        for route in ROUTES.iter().copied().flatten() {
            if route.verbs.iter().any(|verb| verb.name() == method) {
                let matches = route.paths.iter().filter_map(|pattern| matched(pattern, path));
                // Words go before names, as in the router.
                for names in matches {
                    let fewer = |(_, others): &(_, BTreeMap<_, _>)| names.len() < others.len();
                    if found.as_ref().is_none_or(fewer) {
                        found = Some((route, names));
                    }
                }
            }
        }
        let Some((route, names)) = found else {
            let reason = format!("no handler found for uri [{path}] and method [{method}]");
            return Err(ApiError::new(StatusCode::BAD_REQUEST, "illegal_argument_exception", reason));
        };
        params.check(path, route.params)?;
        let body = match route.reads {
            Reads::Whole => Body::Whole(body),
            Reads::Stream => Body::Stream(Box::new(Cursor::new(body))),
        };
        (route.handler)(self, &mut Call::new(names, params, body))
    }
}

/// What the braces of `pattern` stand for, if `path` is such a path.
fn matched(pattern: &str, path: &str) -> Option<BTreeMap<String, String>> {
    let (patterns, parts) = (pattern.split('/'), path.split('/'));
    if patterns.clone().count() != parts.clone().count() {
        return None;
    }
    let mut names = BTreeMap::new();
    for (pattern, part) in patterns.zip(parts) {
        match pattern.strip_prefix('{').and_then(|name| name.strip_suffix('}')) {
            Some(name) if !part.is_empty() => drop(names.insert(name.to_owned(), part.to_owned())),
            None if pattern == part => {}
            _ => return None,
        }
    }
    Some(names)
}
