//! Other names of indexes: several actions are one change, which every request sees whole or not at all.

use crate::call::{Call, Reply};
use crate::cluster::{Alias, Cluster, Names, PARAMS, matches};
use crate::error::ApiError;
use crate::node::Node;
use crate::route::{Reads, Role, Route, Verb};
use axum::http::StatusCode;
use serde_json::{Map, Value, json};

pub(super) const ROUTES: &[Route] = &[
    Route {
        verbs: &[Verb::Post],
        paths: &["/_aliases"],
        params: &["timeout", "cluster_manager_timeout"],
        role: Role::Admin,
        reads: Reads::Whole,
        at_once: None,
        handler: actions,
        says: "adds and removes aliases, and removes indexes, all at once",
    },
    Route {
        verbs: &[Verb::Put, Verb::Post],
        paths: &["/{index}/_alias/{alias}", "/{index}/_aliases/{alias}"],
        params: &["timeout", "cluster_manager_timeout"],
        role: Role::Admin,
        reads: Reads::Whole,
        at_once: None,
        handler: put,
        says: "gives indexes another name",
    },
    Route {
        verbs: &[Verb::Delete],
        paths: &["/{index}/_alias/{alias}", "/{index}/_aliases/{alias}"],
        params: &["timeout", "cluster_manager_timeout"],
        role: Role::Admin,
        reads: Reads::Whole,
        at_once: None,
        handler: delete,
        says: "takes another name from indexes",
    },
    Route {
        verbs: &[Verb::Get, Verb::Head],
        paths: &["/_alias", "/_alias/{alias}", "/{index}/_alias", "/{index}/_alias/{alias}"],
        params: &PARAMS,
        role: Role::Read,
        reads: Reads::Whole,
        at_once: None,
        handler: get,
        says: "other names of indexes",
    },
];

/// One change.
#[derive(Debug)]
enum Action {
    Add { indices: Vec<String>, aliases: Vec<String>, alias: Alias },
    Remove { indices: Vec<String>, aliases: Vec<String>, must_exist: bool },
    RemoveIndex { indices: Vec<String>, must_exist: bool },
}

fn actions(node: &Node, call: &mut Call) -> Result<Reply, ApiError> {
    let body = call.object()?;
    let Some(Value::Array(given)) = body.get("actions") else {
        return Err(ApiError::argument("[aliases] actions: give an array of actions"));
    };
    if let Some(other) = body.keys().find(|key| *key != "actions") {
        return Err(ApiError::argument(format!("[aliases] unknown field [{other}]")));
    }
    let actions: Vec<Action> = given.iter().map(Action::parse).collect::<Result<_, _>>()?;
    if actions.is_empty() {
        return Err(ApiError::argument("[aliases] actions: no action was given"));
    }
    let gone = node.store.change(|cluster| {
        let mut gone = Vec::new();
        // Indexes go last, so that a name that one had can be an alias.
        let (removing, others): (Vec<_>, Vec<_>) =
            actions.iter().partition(|action| matches!(action, Action::RemoveIndex { .. }));
        for action in removing.into_iter().chain(others) {
            action.apply(cluster, &mut gone)?;
        }
        check(cluster)?;
        Ok(gone)
    })?;
    for index in gone {
        node.drop_table(&index)?;
    }
    Ok(Reply::json(json!({"acknowledged": true})))
}

/// Names mean one thing, and of an alias's indexes one at most is written to.
pub(super) fn check(cluster: &Cluster) -> Result<(), ApiError> {
    let aliases = cluster.indices.values().flat_map(|index| index.aliases.keys());
    for alias in aliases {
        if cluster.indices.contains_key(alias) {
            return Err(ApiError::new(
                StatusCode::BAD_REQUEST,
                "invalid_alias_name_exception",
                format!(
                    "Invalid alias name [{alias}]: an index or data stream exists with the same name as the alias"
                ),
            ));
        }
        let marked: Vec<&str> = cluster
            .with_alias(alias)
            .filter(|(_, alias)| alias.is_write_index == Some(true))
            .map(|(index, _)| index)
            .collect();
        if marked.len() > 1 {
            return Err(ApiError::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                "illegal_state_exception",
                format!("alias [{alias}] has more than one write index [{}]", marked.join(",")),
            ));
        }
    }
    Ok(())
}

/// A string or strings, under either name.
fn strings(action: &Map<String, Value>, one: &str, many: &str) -> Result<Vec<String>, ApiError> {
    let wrong =
        |name: &str| ApiError::argument(format!("[aliases] [{name}]: give a string, or an array of strings"));
    let mut all = Vec::new();
    for name in [one, many] {
        match action.get(name) {
            None => {}
            Some(Value::String(text)) => all.extend(text.split(',').map(str::to_owned)),
            Some(Value::Array(given)) => {
                for text in given {
                    all.push(text.as_str().ok_or_else(|| wrong(name))?.to_owned());
                }
            }
            Some(_) => return Err(wrong(name)),
        }
    }
    if all.is_empty() {
        return Err(ApiError::argument(format!("[aliases] one of [{one}] or [{many}] is required")));
    }
    Ok(all)
}

/// An alias, of the fields that say what it is.
fn alias(fields: &Map<String, Value>) -> Result<Alias, ApiError> {
    let flag = |name: &str| match fields.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Bool(given)) => Ok(Some(*given)),
        Some(_) => Err(ApiError::argument(format!("[aliases] [{name}]: give true or false"))),
    };
    let routing = match fields.get("routing") {
        None | Some(Value::Null) => None,
        Some(Value::String(text)) => Some(text.clone()),
        Some(Value::Number(number)) => Some(number.to_string()),
        Some(_) => return Err(ApiError::argument("[aliases] [routing]: give a string")),
    };
    flag("is_hidden")?;
    let filter = fields.get("filter").filter(|filter| !filter.is_null()).cloned();
    Ok(Alias { filter, is_write_index: flag("is_write_index")?, routing })
}

/// What may say what an alias is.
const FIELDS: [&str; 6] =
    ["filter", "is_write_index", "routing", "index_routing", "search_routing", "is_hidden"];

fn known(fields: &Map<String, Value>, more: &[&str]) -> Result<(), ApiError> {
    match fields.keys().find(|key| !FIELDS.contains(&key.as_str()) && !more.contains(&key.as_str())) {
        Some(other) => Err(ApiError::argument(format!("[aliases] unknown field [{other}]"))),
        None => Ok(()),
    }
}

impl Action {
    fn parse(given: &Value) -> Result<Action, ApiError> {
        let Some((kind, Value::Object(fields))) =
            given.as_object().filter(|action| action.len() == 1).and_then(|action| action.iter().next())
        else {
            let form = r#"{"add": {"index": "i", "alias": "a"}}"#;
            return Err(ApiError::argument(format!("[aliases] an action is an object such as {form}")));
        };
        known(fields, &["index", "indices", "alias", "aliases", "must_exist"])?;
        let must_exist = fields.get("must_exist").and_then(Value::as_bool);
        let indices = strings(fields, "index", "indices")?;
        Ok(match kind.as_str() {
            "add" => {
                let aliases = strings(fields, "alias", "aliases")?;
                aliases.iter().try_for_each(|alias| named(alias))?;
                Action::Add { indices, aliases, alias: alias(fields)? }
            }
            "remove" => Action::Remove {
                indices,
                aliases: strings(fields, "alias", "aliases")?,
                must_exist: must_exist.unwrap_or(true),
            },
            "remove_index" => Action::RemoveIndex { indices, must_exist: must_exist.unwrap_or(true) },
            other => {
                return Err(ApiError::argument(format!(
                    "[aliases] unknown action [{other}]: add, remove, or remove_index"
                )));
            }
        })
    }

    fn apply(&self, cluster: &mut Cluster, gone: &mut Vec<String>) -> Result<(), ApiError> {
        match self {
            Action::Add { indices, aliases, alias } => {
                for index in concrete(cluster, indices)? {
                    let index = cluster.indices.get_mut(&index).expect("it was just found");
                    for name in aliases {
                        index.aliases.insert(name.clone(), alias.clone());
                    }
                }
            }
            Action::Remove { indices, aliases, must_exist } => {
                let mut removed = false;
                for index in concrete(cluster, indices)? {
                    let index = cluster.indices.get_mut(&index).expect("it was just found");
                    let before = index.aliases.len();
                    index.aliases.retain(|name, _| !aliases.iter().any(|pattern| matches(pattern, name)));
                    removed |= index.aliases.len() < before;
                }
                if !removed && *must_exist {
                    return Err(missing(&aliases.join(",")));
                }
            }
            Action::RemoveIndex { indices, must_exist } => {
                for index in indices {
                    if cluster.indices.remove(index).is_some() {
                        cluster.dropping.push(index.clone());
                        gone.push(index.clone());
                    } else if *must_exist {
                        return Err(ApiError::no_index(index));
                    }
                }
            }
        }
        Ok(())
    }
}

/// The indexes that expressions name; not by aliases.
fn concrete(cluster: &Cluster, expressions: &[String]) -> Result<Vec<String>, ApiError> {
    let targets = Names::default().resolve(cluster, &expressions.join(","))?;
    Ok(targets.into_iter().map(|target| target.index).collect())
}

/// Whether an alias may have this name.
fn named(alias: &str) -> Result<(), ApiError> {
    match lanewise_engine::wrong_name(alias) {
        Some(what) => Err(ApiError::new(
            StatusCode::BAD_REQUEST,
            "invalid_alias_name_exception",
            format!("Invalid alias name [{alias}]: {what}"),
        )),
        None => Ok(()),
    }
}

/// An alias of this name, as it is given with an index.
pub(super) fn read(name: &str, fields: &Map<String, Value>) -> Result<Alias, ApiError> {
    known(fields, &[])?;
    named(name)?;
    alias(fields)
}

fn missing(aliases: &str) -> ApiError {
    ApiError::new(
        StatusCode::NOT_FOUND,
        "aliases_not_found_exception",
        format!("aliases [{aliases}] missing"),
    )
}

fn put(node: &Node, call: &mut Call) -> Result<Reply, ApiError> {
    let fields = call.object()?;
    let name = call.name("alias").unwrap_or_default().to_owned();
    let action = Action::Add {
        indices: vec![call.name("index").unwrap_or_default().to_owned()],
        alias: read(&name, &fields)?,
        aliases: vec![name],
    };
    node.store.change(|cluster| {
        action.apply(cluster, &mut Vec::new())?;
        check(cluster)
    })?;
    Ok(Reply::json(json!({"acknowledged": true})))
}

fn delete(node: &Node, call: &mut Call) -> Result<Reply, ApiError> {
    let list = |name| call.name(name).unwrap_or_default().split(',').map(str::to_owned).collect();
    let action = Action::Remove { indices: list("index"), aliases: list("alias"), must_exist: true };
    node.store.change(|cluster| action.apply(cluster, &mut Vec::new()))?;
    Ok(Reply::json(json!({"acknowledged": true})))
}

fn get(node: &Node, call: &mut Call) -> Result<Reply, ApiError> {
    let cluster = node.cluster();
    let (index, alias) = (call.name("index").unwrap_or_default(), call.name("alias"));
    let targets = Names::of(&call.params)?.resolve(&cluster, index)?;
    let patterns: Option<Vec<&str>> = alias.map(|alias| alias.split(',').collect());
    let wanted = |name: &str| {
        let fits = |pattern: &&str| *pattern == "_all" || matches(pattern, name);
        patterns.as_ref().is_none_or(|patterns| patterns.iter().any(fits))
    };
    let mut answer = Map::new();
    for target in targets {
        let all = &cluster.indices[&target.index].aliases;
        let shown: Map<String, Value> = all
            .iter()
            .filter(|(name, _)| wanted(name))
            .map(|(name, alias)| (name.clone(), json!(alias)))
            .collect();
        // Without a name to look for, indexes without aliases are shown too.
        if patterns.is_none() || !shown.is_empty() {
            answer.insert(target.index, json!({"aliases": shown}));
        }
    }
    let missing: Vec<&str> = patterns
        .iter()
        .flatten()
        .filter(|pattern| !pattern.contains('*') && **pattern != "_all")
        .filter(|pattern| cluster.with_alias(pattern).next().is_none())
        .copied()
        .collect();
    if missing.is_empty() {
        return Ok(Reply::json(Value::Object(answer)));
    }
    let plural = if missing.len() > 1 { "es" } else { "" };
    answer.insert("error".to_owned(), json!(format!("alias{plural} [{}] missing", missing.join(","))));
    answer.insert("status".to_owned(), json!(404));
    Ok(Reply::json(Value::Object(answer)).with_status(StatusCode::NOT_FOUND))
}
