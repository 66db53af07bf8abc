//! Tasks: what is at work, and what came of it.

use super::{nodes, route};
use crate::call::{Call, Reply};
use crate::cluster::matches;
use crate::error::ApiError;
use crate::node::{Node, now_ms};
use crate::route::{Role, Route, Verb};
use crate::settings::time_ms;
use crate::tasks::{Task, Tasks};
use axum::http::StatusCode;
use serde_json::{Map, Value, json};
use std::time::Duration;

/// How long somebody waits for a task who does not say.
const PATIENCE: Duration = Duration::from_secs(30);

const LIST: [&str; 7] =
    ["actions", "detailed", "group_by", "nodes", "parent_task_id", "timeout", "wait_for_completion"];

pub(super) const ROUTES: &[Route] = &[
    route(Role::Read, &[Verb::Get], &["/_tasks"], &LIST, list, "tasks at work"),
    route(
        Role::Read,
        &[Verb::Get],
        &["/_tasks/{task}"],
        &["timeout", "wait_for_completion"],
        get,
        "a task, and what came of it",
    ),
    route(
        Role::Admin,
        &[Verb::Post],
        &["/_tasks/_cancel", "/_tasks/{task}/_cancel"],
        &["actions", "nodes", "parent_task_id", "wait_for_completion"],
        cancel,
        "stops tasks; what they began is undone",
    ),
];

fn told(node: &Node, task: &Task) -> Value {
    let millis = task.done.as_ref().map_or_else(|| now_ms().saturating_sub(task.began_ms), |(_, took)| *took);
    json!({
        "node": node.id(), "id": task.number, "type": "transport", "action": task.action,
        "status": {}, "description": task.description, "start_time_in_millis": task.began_ms,
        "running_time_in_nanos": millis * 1_000_000, "cancellable": true, "cancelled": task.is_stopped(), "headers": {},
    })
}

/// The number of a task of this node, by its name.
fn number(node: &Node, name: &str) -> Result<Option<u64>, ApiError> {
    let wrong = || ApiError::argument(format!("malformed task id {name}"));
    let (of, number) = name.rsplit_once(':').ok_or_else(wrong)?;
    let number = number.parse().map_err(|_| wrong())?;
    Ok((of == node.id()).then_some(number))
}

fn missing(name: &str) -> ApiError {
    ApiError::new(
        StatusCode::NOT_FOUND,
        "resource_not_found_exception",
        format!("task [{name}] isn't running and hasn't stored its results"),
    )
}

fn patience(call: &Call) -> Result<Duration, ApiError> {
    if !call.params.flag("wait_for_completion", false)? {
        return Ok(Duration::ZERO);
    }
    let Some(text) = call.params.get("timeout") else { return Ok(PATIENCE) };
    let wrong = || ApiError::argument(format!("failed to parse setting [timeout] with value [{text}]"));
    time_ms(text).map(Duration::from_millis).ok_or_else(wrong)
}

fn get(node: &Node, call: &mut Call) -> Result<Reply, ApiError> {
    let name = call.name("task").unwrap_or_default();
    let wait = patience(call)?;
    let task = number(node, name)?.and_then(|number| node.tasks.get(number, wait));
    let task = task.ok_or_else(|| missing(name))?;
    let mut answer = json!({"completed": task.done.is_some(), "task": told(node, &task)});
    match &task.done {
        None if !wait.is_zero() => {
            let reason = format!("Timed out waiting for completion of [{name}]");
            return Err(ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "timeout_exception", reason));
        }
        None => {}
        Some((Ok(response), _)) => answer["response"] = response.clone(),
        Some((Err(error), _)) => answer["error"] = error.cause(),
    }
    Ok(Reply::json(answer))
}

/// Tasks at work, of the actions that a call names.
fn chosen(node: &Node, call: &Call) -> Vec<Task> {
    let patterns = call.params.list("actions");
    let wanted = |task: &Task| {
        patterns.as_ref().is_none_or(|patterns| patterns.iter().any(|pattern| matches(pattern, task.action)))
    };
    node.tasks.at_work().into_iter().filter(wanted).collect()
}

/// Tasks as they are grouped.
fn grouped(node: &Node, call: &Call, tasks: &[Task]) -> Result<Value, ApiError> {
    let by_name = || -> Map<String, Value> {
        tasks.iter().map(|task| (node.task_id(task.number), told(node, task))).collect()
    };
    match call.params.get("group_by") {
        None | Some("nodes") => {
            let mut nodes = Map::new();
            if !tasks.is_empty() {
                let mut told = nodes::who(node);
                told["tasks"] = Value::Object(by_name());
                nodes.insert(node.id(), told);
            }
            Ok(json!({"nodes": nodes}))
        }
        Some("parents") => Ok(json!({"tasks": by_name()})),
        Some("none") => Ok(json!({"tasks": tasks.iter().map(|task| told(node, task)).collect::<Vec<_>>()})),
        Some(other) => Err(ApiError::argument(format!(
            "[group_by] must be one of [nodes], [parents] or [none] but was [{other}]"
        ))),
    }
}

fn list(node: &Node, call: &mut Call) -> Result<Reply, ApiError> {
    let tasks = chosen(node, call);
    let wait = patience(call)?;
    if !wait.is_zero() {
        for task in &tasks {
            node.tasks.get(task.number, wait);
        }
    }
    Ok(Reply::json(grouped(node, call, &tasks)?))
}

fn cancel(node: &Node, call: &mut Call) -> Result<Reply, ApiError> {
    let tasks = match call.name("task") {
        None => chosen(node, call),
        Some(name) => {
            let task = number(node, name)?.and_then(|number| node.tasks.get(number, Duration::ZERO));
            let task = task.filter(|task| task.done.is_none()).ok_or_else(|| missing(name))?;
            vec![task]
        }
    };
    for task in &tasks {
        Tasks::stop(task);
        if call.params.flag("wait_for_completion", false)? {
            node.tasks.get(task.number, PATIENCE);
        }
    }
    Ok(Reply::json(grouped(node, call, &tasks)?))
}
