//! Who the node is.

use crate::call::{Call, Reply};
use crate::error::ApiError;
use crate::node::Node;
use crate::route::{Reads, Role, Route, Verb};
use serde_json::json;

/// The OpenSearch whose clients need not be changed: they look at the number.
pub(super) const OPENSEARCH: &str = "3.5.0";
/// Its Lucene.
pub(super) const LUCENE: &str = "10.3.2";

pub(super) const ROUTES: &[Route] = &[Route {
    verbs: &[Verb::Get, Verb::Head],
    paths: &["/"],
    params: &[],
    role: Role::Read,
    reads: Reads::Whole,
    at_once: None,
    handler: root,
    says: "who the node is",
}];

fn root(node: &Node, _: &mut Call) -> Result<Reply, ApiError> {
    Ok(Reply::json(json!({
        "name": node.name,
        "cluster_name": node.cluster_name,
        "cluster_uuid": node.cluster().uuid,
        "version": {
            "distribution": "opensearch",
            "number": OPENSEARCH,
            "build_type": "lanewise",
            "build_hash": env!("CARGO_PKG_VERSION"),
            "build_date": "1970-01-01T00:00:00Z",
            "build_snapshot": false,
            "lucene_version": LUCENE,
            "minimum_wire_compatibility_version": "2.19.0",
            "minimum_index_compatibility_version": "2.0.0",
        },
        "tagline": "Lanewise: vector search that uses the whole CPU",
    })))
}
