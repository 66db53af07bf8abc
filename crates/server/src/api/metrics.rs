//! Numbers for Prometheus.

use crate::call::{Call, Content, Reply};
use crate::error::ApiError;
use crate::metrics::page;
use crate::node::Node;
use crate::route::{Reads, Role, Route, Verb};
use axum::http::StatusCode;

pub(super) const ROUTES: &[Route] = &[Route {
    verbs: &[Verb::Get],
    paths: &["/_lanewise/metrics"],
    params: &[],
    role: Role::Read,
    reads: Reads::Whole,
    at_once: None,
    handler: metrics,
    says: "latencies, memory and the scheduler's work, as Prometheus reads them",
}];

fn metrics(node: &Node, _: &mut Call) -> Result<Reply, ApiError> {
    Ok(Reply { status: StatusCode::OK, content: Content::Text(page(node)) })
}
