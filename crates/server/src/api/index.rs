//! Indexes: made, looked at, changed, dropped.

use super::{alias, document, route};
use crate::call::{Call, Reply};
use crate::cluster::{Alias, Index, Names, PARAMS};
use crate::cluster_settings;
use crate::error::ApiError;
use crate::mapping::{self, Mappings, Usual};
use crate::node::{Node, exists, of_engine};
use crate::route::{Reads, Role, Route, Verb};
use crate::settings;
use axum::http::StatusCode;
use lanewise_engine::documents::Schema;
use lanewise_engine::table::Watched;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Waits that have nothing to wait for: what is acknowledged is done.
const WAITS: [&str; 4] = ["timeout", "cluster_manager_timeout", "master_timeout", "wait_for_active_shards"];

/// Which indexes are shown, and how their settings are.
const SHOWN: [&str; 5] =
    ["ignore_unavailable", "allow_no_indices", "expand_wildcards", "flat_settings", "include_defaults"];

const OPENS: [&str; 7] = [
    "ignore_unavailable",
    "allow_no_indices",
    "expand_wildcards",
    "timeout",
    "cluster_manager_timeout",
    "master_timeout",
    "wait_for_active_shards",
];

pub(super) const ROUTES: &[Route] = &[
    Route {
        verbs: &[Verb::Put],
        paths: &["/{index}"],
        params: &WAITS,
        role: Role::Admin,
        reads: Reads::Whole,
        at_once: None,
        handler: create,
        says: "makes an index, with mappings, settings and aliases",
    },
    Route {
        verbs: &[Verb::Get],
        paths: &["/{index}"],
        params: &SHOWN,
        role: Role::Read,
        reads: Reads::Whole,
        at_once: None,
        handler: get,
        says: "aliases, mappings and settings of indexes",
    },
    Route {
        verbs: &[Verb::Head],
        paths: &["/{index}"],
        params: &PARAMS,
        role: Role::Read,
        reads: Reads::Whole,
        at_once: None,
        handler: is_there,
        says: "whether indexes are there",
    },
    Route {
        verbs: &[Verb::Delete],
        paths: &["/{index}"],
        params: &[
            "ignore_unavailable",
            "allow_no_indices",
            "expand_wildcards",
            "timeout",
            "cluster_manager_timeout",
            "master_timeout",
        ],
        role: Role::Admin,
        reads: Reads::Whole,
        at_once: None,
        handler: delete,
        says: "drops indexes",
    },
    Route {
        verbs: &[Verb::Get],
        paths: &["/_mapping", "/{index}/_mapping", "/{index}/_mappings"],
        params: &PARAMS,
        role: Role::Read,
        reads: Reads::Whole,
        at_once: None,
        handler: get_mapping,
        says: "mappings of indexes",
    },
    route(
        Role::Admin,
        &[Verb::Put, Verb::Post],
        &["/{index}/_mapping", "/{index}/_mappings"],
        &[
            "ignore_unavailable",
            "allow_no_indices",
            "expand_wildcards",
            "timeout",
            "cluster_manager_timeout",
            "master_timeout",
            "write_index_only",
        ],
        put_mapping,
        "names more fields of indexes, vectors too; documents from before have no values of them until they are written again",
    ),
    route(
        Role::Admin,
        &[Verb::Post],
        &["/{index}/_close"],
        &OPENS,
        close,
        "closes indexes: they take no searches and no writes, and no memory",
    ),
    route(Role::Admin, &[Verb::Post], &["/{index}/_open"], &OPENS, open, "opens indexes that were closed"),
    Route {
        verbs: &[Verb::Get],
        paths: &["/_settings", "/{index}/_settings"],
        params: &SHOWN,
        role: Role::Read,
        reads: Reads::Whole,
        at_once: None,
        handler: get_settings,
        says: "settings of indexes",
    },
    Route {
        verbs: &[Verb::Put],
        paths: &["/_settings", "/{index}/_settings"],
        params: &[
            "ignore_unavailable",
            "allow_no_indices",
            "expand_wildcards",
            "timeout",
            "cluster_manager_timeout",
            "preserve_existing",
        ],
        role: Role::Admin,
        reads: Reads::Whole,
        at_once: None,
        handler: put_settings,
        says: "changes settings of indexes while they serve",
    },
];

fn create(node: &Node, call: &mut Call) -> Result<Reply, ApiError> {
    let name = call.name("index").unwrap_or_default().to_owned();
    make(node, &name, &call.object()?)?;
    Ok(Reply::json(json!({"acknowledged": true, "shards_acknowledged": true, "index": name})))
}

/// What an index is made of.
struct Plan {
    settings: BTreeMap<String, String>,
    mappings: Mappings,
    aliases: BTreeMap<String, Alias>,
    of_table: lanewise_engine::table::Settings,
}

impl Plan {
    fn read(body: &Map<String, Value>) -> Result<Plan, ApiError> {
        let empty = Map::new();
        let part = |key: &str| match body.get(key) {
            None | Some(Value::Null) => Ok(&empty),
            Some(Value::Object(part)) => Ok(part),
            Some(_) => Err(ApiError::parsing(format!("[{key}]: give an object"))),
        };
        let given = settings::flat(part("settings")?)?;
        settings::check(&given, true)?;
        let settings: BTreeMap<String, String> =
            given.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
        let mappings = Mappings::read(part("mappings")?, usual(&settings))?;
        let mut aliases = BTreeMap::new();
        for (alias, fields) in part("aliases")? {
            let wrong = || ApiError::parsing(format!("alias [{alias}]: give an object"));
            aliases.insert(alias.clone(), alias::read(alias, fields.as_object().ok_or_else(wrong)?)?);
        }
        let of_table = settings::of_table(&settings)?;
        Ok(Plan { settings, mappings, aliases, of_table })
    }
}

/// Refuses what no index can be made of.
pub(super) fn check(body: &Map<String, Value>) -> Result<(), ApiError> {
    Plan::read(body).map(|_| ())
}

/// Makes an index as `body` says, and as templates say where it does not.
pub(super) fn make(node: &Node, name: &str, body: &Map<String, Value>) -> Result<(), ApiError> {
    if let Some(other) = body.keys().find(|key| !["settings", "mappings", "aliases"].contains(&key.as_str()))
    {
        return Err(ApiError::parsing(format!("unknown key [{other}] for create index")));
    }
    check(body)?;
    let mut template = node.cluster().given_to(name);
    template.add(&Value::Object(body.clone()));
    let Plan { settings, mappings, aliases, of_table } = Plan::read(&template.body())?;
    let cluster = node.cluster();
    if cluster.indices.contains_key(name) {
        return Err(exists(name));
    }
    if cluster.with_alias(name).next().is_some() {
        return Err(taken_by_alias(name));
    }
    let table = node.engine.create(name, mappings.schema).map_err(of_engine)?;
    let set = table.set_settings(of_table);
    let mut index = Index { settings, aliases, ..Index::new(name, mappings.given) };
    index.settle(name);
    let named = set.map_err(|error| ApiError::argument(error.to_string())).and_then(|()| {
        node.store.change(|cluster| {
            cluster.indices.insert(name.to_owned(), index);
            // One of the same name is dropped by now.
            cluster.dropping.retain(|dropping| dropping != name);
            alias::check(cluster)
        })
    });
    if named.is_err() {
        drop(table);
        // Nobody was told that it is there.
        let _ = node.engine.drop_table(name);
    }
    named
}

fn taken_by_alias(name: &str) -> ApiError {
    ApiError::new(
        StatusCode::BAD_REQUEST,
        "invalid_index_name_exception",
        format!("Invalid index name [{name}], already exists as alias"),
    )
    .with("index", name)
}

fn usual(settings: &BTreeMap<String, String>) -> Usual<'_> {
    let number = |name: &str| settings.get(name).and_then(|text| text.parse().ok());
    Usual {
        space_type: settings.get("index.knn.space_type").map(String::as_str),
        m: number("index.knn.algo_param.m"),
        ef_construction: number("index.knn.algo_param.ef_construction"),
    }
}

/// The indexes that a request's path names.
fn targets(node: &Node, call: &Call) -> Result<Vec<(String, Index)>, ApiError> {
    let cluster = node.cluster();
    let targets = Names::targets(&cluster, call)?;
    let with = |index: String| {
        let known = cluster.indices[&index].clone();
        (index, known)
    };
    Ok(targets.into_iter().map(|target| with(target.index)).collect())
}

fn each(
    node: &Node,
    call: &Call,
    show: impl Fn(&Index) -> Result<Value, ApiError>,
) -> Result<Reply, ApiError> {
    let mut answer = Map::new();
    for (name, index) in targets(node, call)? {
        answer.insert(name, show(&index)?);
    }
    Ok(Reply::json(Value::Object(answer)))
}

fn get(node: &Node, call: &mut Call) -> Result<Reply, ApiError> {
    let flat = call.params.flag("flat_settings", false)?;
    each(node, call, |index| {
        Ok(
            json!({"aliases": index.aliases, "mappings": index.mappings, "settings": settings::shown(&index.settings, flat)}),
        )
    })
}

fn get_mapping(node: &Node, call: &mut Call) -> Result<Reply, ApiError> {
    each(node, call, |index| Ok(json!({"mappings": index.mappings})))
}

fn put_mapping(node: &Node, call: &mut Call) -> Result<Reply, ApiError> {
    let body = call.object()?;
    let mut tables = Vec::new();
    for (name, _) in targets(node, call)? {
        let table = node.table(&name)?;
        tables.push((name, table));
    }
    let schemas = node.store.change(|cluster| {
        let changed = |(name, table): &(String, Arc<Watched>)| {
            let index = cluster.indices.get_mut(name).ok_or_else(|| ApiError::no_index(name))?;
            mapping::add(&mut index.mappings, &body)?;
            // Together they must be what could have been asked for at the beginning.
            let schema = schema_of(index)?;
            let sum = table.schema().with(&schema);
            sum.map(|_| schema).map_err(|error| ApiError::argument(error.to_string()))
        };
        tables.iter().map(changed).collect::<Result<Vec<_>, ApiError>>()
    })?;
    for ((_, table), schema) in tables.iter().zip(schemas) {
        table.grow(&schema).map_err(document::of_grow)?;
    }
    Ok(Reply::json(json!({"acknowledged": true})))
}

/// What the table of an index should have.
pub(super) fn schema_of(index: &Index) -> Result<Schema, ApiError> {
    Ok(Mappings::read(&index.mappings, usual(&index.settings))?.schema)
}

fn close(node: &Node, call: &mut Call) -> Result<Reply, ApiError> {
    let closed = mark(node, call, true)?;
    for name in &closed {
        node.unpin(name);
        // Whoever searches it at this moment ends first; then it goes when its place is needed.
        node.close_table(name)?;
    }
    let each: Map<String, Value> = closed.into_iter().map(|name| (name, json!({"closed": true}))).collect();
    Ok(Reply::json(json!({"acknowledged": true, "shards_acknowledged": true, "indices": each})))
}

fn open(node: &Node, call: &mut Call) -> Result<Reply, ApiError> {
    mark(node, call, false)?;
    Ok(Reply::json(json!({"acknowledged": true, "shards_acknowledged": true})))
}

/// Closes or opens the indexes that a call names: their names.
fn mark(node: &Node, call: &Call, closed: bool) -> Result<Vec<String>, ApiError> {
    let usual = Names::of(&call.params)?;
    // Wildcards mean those that are to change.
    let names = match call.params.get("expand_wildcards") {
        None => Names { open: closed, closed: !closed, ..usual },
        Some(_) => usual,
    };
    node.store.change(|cluster| {
        let targets = names.resolve(cluster, call.name("index").unwrap_or_default())?;
        let all: Vec<String> = targets.into_iter().map(|target| target.index).collect();
        for name in &all {
            cluster.indices.get_mut(name).ok_or_else(|| ApiError::no_index(name))?.closed = closed;
        }
        Ok(all)
    })
}

fn get_settings(node: &Node, call: &mut Call) -> Result<Reply, ApiError> {
    let flat = call.params.flag("flat_settings", false)?;
    each(node, call, |index| Ok(json!({"settings": settings::shown(&index.settings, flat)})))
}

fn put_settings(node: &Node, call: &mut Call) -> Result<Reply, ApiError> {
    let body = call.object()?;
    let inner = match body.get("settings") {
        Some(Value::Object(inner)) if body.len() == 1 => inner,
        _ => &body,
    };
    let given = settings::flat(inner)?;
    settings::check(&given, false)?;
    let keep = call.params.flag("preserve_existing", false)?;
    let names: Vec<String> = targets(node, call)?.into_iter().map(|(name, _)| name).collect();
    let mut tables = Vec::new();
    node.store.change(|cluster| {
        for name in &names {
            let index = cluster.indices.get_mut(name).ok_or_else(|| ApiError::no_index(name))?;
            for (setting, value) in &given {
                match value {
                    Some(_) if keep && index.settings.contains_key(setting) => {}
                    Some(value) => drop(index.settings.insert(setting.clone(), value.clone())),
                    None => drop(index.settings.remove(setting)),
                }
            }
            tables.push((name, settings::of_table(&index.settings)?));
        }
        Ok(())
    })?;
    for (name, made) in tables {
        let set = node.table(name)?.set_settings(made);
        set.map_err(ApiError::internal)?;
    }
    Ok(Reply::json(json!({"acknowledged": true})))
}

fn is_there(node: &Node, call: &mut Call) -> Result<Reply, ApiError> {
    let strict = Names { allow_no_indices: false, ..Names::of(&call.params)? };
    let found = strict.resolve(&node.cluster(), call.name("index").unwrap_or_default());
    Ok(Reply::exists(found.is_ok()))
}

fn delete(node: &Node, call: &mut Call) -> Result<Reply, ApiError> {
    let expression = call.name("index").unwrap_or_default();
    let names = Names::of(&call.params)?;
    let gone = node.store.change(|cluster| {
        if cluster.with_alias(expression).next().is_some() {
            return Err(ApiError::argument(format!(
                "The provided expression [{expression}] matches an alias, specify the corresponding concrete indices \
                 instead."
            )));
        }
        let wild = expression == "_all" || expression.contains('*');
        if wild && cluster_settings::drops_by_name(cluster) {
            return Err(ApiError::argument("Wildcard expressions or all indices are not allowed"));
        }
        let targets = names.resolve(cluster, expression)?;
        let gone: Vec<String> = targets.into_iter().map(|target| target.index).collect();
        for name in &gone {
            cluster.indices.remove(name);
            cluster.dropping.push(name.clone());
        }
        Ok(gone)
    })?;
    for name in gone {
        node.drop_table(&name)?;
    }
    Ok(Reply::json(json!({"acknowledged": true})))
}
