//! The routes as an OpenAPI description, for programs that read one.

use super::route;
use crate::call::{COMMON, Call, Reply};
use crate::error::ApiError;
use crate::node::Node;
use crate::route::{Reads, Role, Route, Verb};
use serde_json::{Map, Value, json};

pub(super) const ROUTES: &[Route] = &[route(
    Role::Read,
    &[Verb::Get],
    &["/_lanewise/openapi.json"],
    &[],
    get,
    "this, as an OpenAPI description",
)];

fn get(_: &Node, _: &mut Call) -> Result<Reply, ApiError> {
    Ok(Reply::json(description()))
}

/// The names between braces.
fn names(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
}

fn operation(route: &Route, verb: Verb, path: &str) -> Value {
    let parameter = |name: &str, place: &str| json!({"name": name, "in": place, "required": place == "path", "schema": {"type": "string"}});
    let of_path = names(path).map(|name| parameter(name, "path"));
    let of_query = route.params.iter().chain(&COMMON).map(|name| parameter(name, "query"));
    let words: Vec<String> = path
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect();
    let mut told = json!({
        "operationId": format!("{}_{}", verb.name().to_lowercase(), words.join("_")),
        "summary": route.says,
        "x-role": route.role.name(),
        "parameters": of_path.chain(of_query).collect::<Vec<_>>(),
        "responses": {
            "2XX": {"description": "it was done"},
            "4XX": {"$ref": "#/components/responses/Error"},
            "5XX": {"$ref": "#/components/responses/Error"},
        },
    });
    // What has a body that is read: of GET too, as OpenSearch's clients send it, but the form knows none there.
    if matches!(verb, Verb::Post | Verb::Put) {
        let content = match route.reads {
            Reads::Whole => json!({"application/json": {"schema": {"type": "object"}}}),
            Reads::Stream => json!({"application/x-ndjson": {"schema": {"type": "string"}}}),
        };
        told["requestBody"] = json!({"content": content});
    }
    told
}

/// The description.
fn description() -> Value {
    let mut paths: Map<String, Value> = Map::new();
    for route in super::ROUTES.iter().copied().flatten() {
        for path in route.paths {
            let at = paths.entry(*path).or_insert_with(|| json!({}));
            for verb in route.verbs {
                at[verb.name().to_lowercase()] = operation(route, *verb, path);
            }
        }
    }
    let error = json!({
        "type": "object", "required": ["error", "status"],
        "properties": {"error": {}, "status": {"type": "integer"}},
    });
    json!({
        "openapi": "3.0.3",
        "info": {"title": "Lanewise", "version": env!("CARGO_PKG_VERSION"), "description": "OpenSearch's REST API over one node"},
        "paths": paths,
        "components": {
            "schemas": {"Error": error},
            "responses": {"Error": {
                "description": "what is wrong, in OpenSearch's form",
                "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
            }},
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_route_is_described_once() {
        let told = description();
        let (mut ids, mut count) = (BTreeSet::new(), 0);
        for (path, verbs) in told["paths"].as_object().unwrap() {
            for (verb, operation) in verbs.as_object().unwrap() {
                count += 1;
                assert!(ids.insert(operation["operationId"].as_str().unwrap()), "{verb} {path}");
                let parameters = operation["parameters"].as_array().unwrap();
                let known: BTreeSet<(&str, &str)> = parameters
                    .iter()
                    .map(|one| (one["name"].as_str().unwrap(), one["in"].as_str().unwrap()))
                    .collect();
                assert_eq!(known.len(), parameters.len(), "{verb} {path} names a parameter twice");
                assert!(names(path).all(|name| known.contains(&(name, "path"))), "{verb} {path}");
            }
        }
        let routes = super::super::ROUTES.iter().copied().flatten();
        assert_eq!(count, routes.map(|route| route.verbs.len() * route.paths.len()).sum::<usize>());
    }
}
