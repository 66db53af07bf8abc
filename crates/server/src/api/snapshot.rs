//! Snapshots of indexes, in folders that `path.repo` allows.

mod restore;

use super::route;
use crate::call::{Call, Reply};
use crate::cluster::{Names, matches};
use crate::error::ApiError;
use crate::node::{Node, new_uuid, now_ms};
use crate::repository::{Kept, Made, Place, of_table};
use crate::route::{Role, Route, Verb};
use crate::tasks::Proceed;
use axum::http::StatusCode;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::PoisonError;

const WAITS: [&str; 3] = ["timeout", "cluster_manager_timeout", "master_timeout"];
const PUT: &[Verb] = &[Verb::Put, Verb::Post];

pub(super) const ROUTES: &[Route] = &[
    route(
        Role::Admin,
        PUT,
        &["/_snapshot/{repo}"],
        &["timeout", "cluster_manager_timeout", "master_timeout", "verify"],
        put_repository,
        "names a folder of snapshots below `path.repo`, of type `fs`",
    ),
    route(
        Role::Read,
        &[Verb::Get],
        &["/_snapshot", "/_snapshot/{repo}"],
        &["local", "cluster_manager_timeout", "master_timeout"],
        get_repositories,
        "folders of snapshots",
    ),
    route(
        Role::Admin,
        &[Verb::Delete],
        &["/_snapshot/{repo}"],
        &WAITS,
        drop_repository,
        "forgets folders of snapshots; what is in them stays",
    ),
    route(
        Role::Admin,
        &[Verb::Post],
        &["/_snapshot/{repo}/_verify"],
        &WAITS,
        verify,
        "whether a folder of snapshots can be written",
    ),
    route(
        Role::Admin,
        PUT,
        &["/_snapshot/{repo}/{snapshot}"],
        &["cluster_manager_timeout", "master_timeout", "wait_for_completion"],
        create,
        "makes a snapshot of indexes while they serve; segments that the folder has are not copied again",
    ),
    route(
        Role::Admin,
        &[Verb::Post],
        &["/_snapshot/{repo}/{snapshot}/_restore"],
        &["cluster_manager_timeout", "master_timeout", "wait_for_completion"],
        restore::restore,
        "makes indexes of those in a snapshot, under other names if asked for; none may be there already, open or closed",
    ),
    route(
        Role::Read,
        &[Verb::Get],
        &["/_snapshot/{repo}/{snapshot}"],
        &["cluster_manager_timeout", "ignore_unavailable", "master_timeout", "verbose"],
        get,
        "snapshots",
    ),
    route(
        Role::Admin,
        &[Verb::Delete],
        &["/_snapshot/{repo}/{snapshot}"],
        &["cluster_manager_timeout", "master_timeout"],
        delete,
        "deletes snapshots, and of their files those that no other needs",
    ),
    route(
        Role::Read,
        &[Verb::Get],
        &["/_snapshot/_status", "/_snapshot/{repo}/_status", "/_snapshot/{repo}/{snapshot}/_status"],
        &["cluster_manager_timeout", "ignore_unavailable", "master_timeout"],
        status,
        "what snapshots hold; without a name those that are being made",
    ),
];

fn missing(repo: &str) -> ApiError {
    ApiError::new(StatusCode::NOT_FOUND, "repository_missing_exception", format!("[{repo}] missing"))
}

fn no_snapshot(repo: &str, snapshot: &str) -> ApiError {
    let reason = format!("[{repo}:{snapshot}] is missing");
    ApiError::new(StatusCode::NOT_FOUND, "snapshot_missing_exception", reason)
}

/// A repository as it was put.
fn place(node: &Node, repo: &str) -> Result<Place, ApiError> {
    let cluster = node.cluster();
    let given = cluster.repositories.get(repo).ok_or_else(|| missing(repo))?;
    Place::open(repo, &node.repositories, given["settings"]["location"].as_str().unwrap_or_default())
}

fn put_repository(node: &Node, call: &mut Call) -> Result<Reply, ApiError> {
    let (repo, body) = (call.name("repo").unwrap_or_default(), call.object()?);
    let wrong = |what: String| ApiError::argument(format!("[{repo}] {what}"));
    if let Some(what) = lanewise_engine::wrong_name(repo) {
        return Err(wrong(format!("Invalid repository name: {what}")));
    }
    if let Some(other) = body.keys().find(|key| !["type", "settings"].contains(&key.as_str())) {
        return Err(wrong(format!("unknown field [{other}]")));
    }
    if body.get("type") != Some(&json!("fs")) {
        return Err(wrong("repository type: give fs".to_owned()));
    }
    let known =
        ["location", "compress", "chunk_size", "max_restore_bytes_per_sec", "max_snapshot_bytes_per_sec"];
    let settings = body
        .get("settings")
        .and_then(Value::as_object)
        .ok_or_else(|| wrong("settings are missing".to_owned()))?;
    if let Some(other) = settings.keys().find(|key| !known.contains(&key.as_str())) {
        return Err(wrong(format!(
            "unknown or unsupported setting [{other}]: it takes {}",
            known.join(", ")
        )));
    }
    let location = settings.get("location").and_then(Value::as_str);
    Place::open(repo, &node.repositories, location.ok_or_else(|| wrong("missing location".to_owned()))?)?;
    let given = Value::Object(body.clone());
    node.store.change(|cluster| {
        cluster.repositories.insert(repo.to_owned(), given);
        Ok(())
    })?;
    Ok(Reply::json(json!({"acknowledged": true})))
}

fn named<'a>(
    all: &'a BTreeMap<String, Value>,
    names: &str,
) -> Result<Vec<(&'a String, &'a Value)>, ApiError> {
    let mut found = Vec::new();
    for name in names.split(',') {
        let before = found.len();
        found.extend(all.iter().filter(|(repo, _)| name == "_all" || matches(name, repo)));
        if found.len() == before && !name.contains('*') && name != "_all" {
            return Err(missing(name));
        }
    }
    Ok(found)
}

fn get_repositories(node: &Node, call: &mut Call) -> Result<Reply, ApiError> {
    let cluster = node.cluster();
    let found = named(&cluster.repositories, call.name("repo").unwrap_or("_all"))?;
    let told: Map<String, Value> =
        found.into_iter().map(|(name, given)| (name.clone(), given.clone())).collect();
    Ok(Reply::json(Value::Object(told)))
}

fn drop_repository(node: &Node, call: &mut Call) -> Result<Reply, ApiError> {
    node.store.change(|cluster| {
        let found = named(&cluster.repositories, call.name("repo").unwrap_or_default())?;
        let names: Vec<String> = found.into_iter().map(|(name, _)| name.clone()).collect();
        names.iter().for_each(|name| drop(cluster.repositories.remove(name)));
        Ok(())
    })?;
    Ok(Reply::json(json!({"acknowledged": true})))
}

fn verify(node: &Node, call: &mut Call) -> Result<Reply, ApiError> {
    place(node, call.name("repo").unwrap_or_default())?;
    Ok(Reply::json(json!({"nodes": Map::from_iter([(node.id(), json!({"name": node.name}))])})))
}

/// Names in a body: a string with commas, or strings.
fn names(body: &Map<String, Value>) -> Result<String, ApiError> {
    match body.get("indices") {
        None | Some(Value::Null) => Ok("_all".to_owned()),
        Some(Value::String(names)) => Ok(names.clone()),
        Some(Value::Array(all)) => Ok(all.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(",")),
        Some(_) => Err(ApiError::argument("malformed indices section: give a string, or strings")),
    }
}

fn create(node: &Node, call: &mut Call) -> Result<Reply, ApiError> {
    let (repo, snapshot) = (
        call.name("repo").unwrap_or_default().to_owned(),
        call.name("snapshot").unwrap_or_default().to_owned(),
    );
    let body = call.object()?;
    let known = ["indices", "ignore_unavailable", "include_global_state", "partial", "metadata"];
    if let Some(other) = body.keys().find(|key| !known.contains(&key.as_str())) {
        return Err(ApiError::argument(format!("Unknown parameter {other}")));
    }
    let place = place(node, &repo)?;
    if place.get(&snapshot)?.is_some() {
        let reason = format!(
            "[{repo}:{snapshot}] Invalid snapshot name [{snapshot}], snapshot with the same name already exists"
        );
        return Err(ApiError::new(StatusCode::BAD_REQUEST, "invalid_snapshot_name_exception", reason));
    }
    let cluster = node.cluster();
    let ignore_unavailable = body.get("ignore_unavailable") == Some(&json!(true));
    let targets = Names { ignore_unavailable, ..Names::default() }.resolve(&cluster, &names(&body)?)?;
    let mut tables = Vec::new();
    for target in targets {
        let (index, table) = super::document::opened(node, &cluster, &target.index)?;
        tables.push((cluster.indices[&index].clone(), index, table));
    }
    let began_ms = now_ms();
    let mut made = Made {
        uuid: new_uuid(),
        began_ms,
        ended_ms: 0,
        metadata: body.get("metadata").cloned(),
        indices: BTreeMap::new(),
    };
    let changing = node.changing_repositories.clone();
    let described = format!("snapshot [{repo}:{snapshot}]");
    let work = move |proceed: Proceed<'_>| {
        let _one_at_a_time = changing.lock().unwrap_or_else(PoisonError::into_inner);
        // What an earlier one left half-made.
        place.sweep()?;
        for (index, name, table) in tables {
            let of = of_table(&new_uuid());
            let kept = table.snapshot(&place.tables, &of, now_ms(), &mut |_, _| proceed());
            let kept = match kept {
                Ok(kept) => kept,
                Err(error) => {
                    // Best effort: the next change removes what is left.
                    let _ = place.sweep();
                    return Err(place.of(error));
                }
            };
            let (documents, segments) = (kept.documents, kept.segments as u64);
            let kept = Kept { index, table: of, documents, segments, bytes: kept.bytes, copied: kept.copied };
            made.indices.insert(name, kept);
        }
        made.ended_ms = now_ms();
        place.publish(&snapshot, &made)?;
        Ok(json!({"snapshot": told(&snapshot, &made)}))
    };
    const ACTION: &str = "cluster:admin/snapshot/create";
    if call.params.flag("wait_for_completion", false)? {
        return node.tasks.run(ACTION, described, work).map(Reply::json);
    }
    node.tasks.begin(ACTION, described, work)?;
    Ok(Reply::json(json!({"accepted": true})).with_status(StatusCode::ACCEPTED))
}

fn told(name: &str, made: &Made) -> Value {
    let count = made.indices.len();
    json!({
        "snapshot": name, "uuid": made.uuid, "version": super::root::OPENSEARCH, "state": "SUCCESS",
        "indices": made.indices.keys().collect::<Vec<_>>(), "data_streams": [], "include_global_state": false,
        "metadata": made.metadata,
        "start_time_in_millis": made.began_ms, "end_time_in_millis": made.ended_ms,
        "duration_in_millis": made.ended_ms.saturating_sub(made.began_ms),
        "failures": [], "shards": {"total": count, "failed": 0, "successful": count},
    })
}

/// The snapshots of a repository that a call names.
fn chosen(place: &Place, repo: &str, names: &str, ignore: bool) -> Result<Vec<(String, Made)>, ApiError> {
    let all = place.names()?;
    let mut found = Vec::new();
    for name in names.split(',') {
        let before = found.len();
        for known in all.iter().filter(|known| name == "_all" || matches(name, known)) {
            if let Some(made) = place.get(known)? {
                found.push((known.clone(), made));
            }
        }
        if found.len() == before && !ignore && !name.contains('*') && name != "_all" {
            return Err(no_snapshot(repo, name));
        }
    }
    found.sort_by_key(|(_, made)| made.began_ms);
    Ok(found)
}

fn get(node: &Node, call: &mut Call) -> Result<Reply, ApiError> {
    let repo = call.name("repo").unwrap_or_default();
    let ignore = call.params.flag("ignore_unavailable", false)?;
    let found = chosen(&place(node, repo)?, repo, call.name("snapshot").unwrap_or_default(), ignore)?;
    let told: Vec<Value> = found.iter().map(|(name, made)| told(name, made)).collect();
    Ok(Reply::json(json!({"snapshots": told})))
}

fn delete(node: &Node, call: &mut Call) -> Result<Reply, ApiError> {
    let repo = call.name("repo").unwrap_or_default();
    let place = place(node, repo)?;
    let _one_at_a_time = node.changing_repositories.lock().unwrap_or_else(PoisonError::into_inner);
    for (name, _) in chosen(&place, repo, call.name("snapshot").unwrap_or_default(), false)? {
        place.remove(&name)?;
    }
    Ok(Reply::json(json!({"acknowledged": true})))
}

fn status(node: &Node, call: &mut Call) -> Result<Reply, ApiError> {
    let (Some(repo), Some(names)) = (call.name("repo"), call.name("snapshot")) else {
        return Ok(Reply::json(json!({"snapshots": []})));
    };
    let ignore = call.params.flag("ignore_unavailable", false)?;
    let found = chosen(&place(node, repo)?, repo, names, ignore)?;
    let stats = |kept: &[&Kept], began: u64, took: u64| {
        let sum = |of: fn(&Kept) -> u64| kept.iter().map(|kept| of(kept)).sum::<u64>();
        json!({
            "total": {"size_in_bytes": sum(|kept| kept.bytes)},
            "incremental": {"size_in_bytes": sum(|kept| kept.copied)},
            "start_time_in_millis": began, "time_in_millis": took,
        })
    };
    let one = |(name, made): &(String, Made)| {
        let took = made.ended_ms.saturating_sub(made.began_ms);
        let all: Vec<&Kept> = made.indices.values().collect();
        let index = |(name, kept): (&String, &Kept)| {
            let stats = stats(&[kept], made.began_ms, took);
            (name.clone(), json!({"shards": {"0": {"stage": "DONE", "stats": stats}}, "stats": stats}))
        };
        json!({
            "snapshot": name, "repository": repo, "uuid": made.uuid, "state": "SUCCESS", "include_global_state": false,
            "shards_stats": {"initializing": 0, "started": 0, "finalizing": 0, "done": all.len(), "failed": 0, "total": all.len()},
            "stats": stats(&all, made.began_ms, took),
            "indices": made.indices.iter().map(index).collect::<Map<_, _>>(),
        })
    };
    Ok(Reply::json(json!({"snapshots": found.iter().map(one).collect::<Vec<_>>()})))
}
