//! Indexes of a snapshot that are made again, beside those that are there.
//!
//! A table comes as a whole, then its index: after a crash between both it is adopted at the next start (`node.rs`).

use super::{names, no_snapshot, place};
use crate::api::alias;
use crate::call::{Call, Reply};
use crate::cluster::{Index, matches};
use crate::error::ApiError;
use crate::node::{Node, new_uuid, of_engine};
use crate::repository::{Kept, Made};
use crate::tasks::Proceed;
use axum::http::StatusCode;
use lanewise_engine::RestoreError;
use regex::Regex;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::PoisonError;

const KNOWN: [&str; 7] = [
    "indices",
    "ignore_unavailable",
    "include_aliases",
    "include_global_state",
    "partial",
    "rename_pattern",
    "rename_replacement",
];

/// What is to be restored: by the new name, what it was.
struct Asked {
    indices: BTreeMap<String, Kept>,
    aliases: bool,
}

fn refused(what: String) -> ApiError {
    ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "snapshot_restore_exception", what)
}

impl Asked {
    fn read(body: &Map<String, Value>, made: &Made) -> Result<Asked, ApiError> {
        if let Some(other) = body.keys().find(|key| !KNOWN.contains(&key.as_str())) {
            return Err(ApiError::argument(format!("Unknown or unsupported parameter {other}")));
        }
        let flag = |key: &str, usual: bool| match body.get(key) {
            None => Ok(usual),
            Some(Value::Bool(given)) => Ok(*given),
            Some(_) => Err(ApiError::argument(format!("malformed {key}: give true or false"))),
        };
        if flag("include_global_state", false)? {
            return Err(ApiError::argument("include_global_state: snapshots hold indexes alone"));
        }
        flag("partial", false)?;
        let ignore = flag("ignore_unavailable", false)?;
        let text = |key: &str| match body.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.as_str())),
            Some(_) => Err(ApiError::argument(format!("malformed {key}: give a string"))),
        };
        let rename = match (text("rename_pattern")?, text("rename_replacement")?) {
            (Some(pattern), Some(replacement)) => {
                let pattern = Regex::new(pattern)
                    .map_err(|error| ApiError::argument(format!("rename_pattern: {error}")))?;
                Some((pattern, groups(replacement)))
            }
            (None, None) => None,
            _ => return Err(ApiError::argument("rename_pattern and rename_replacement go together")),
        };
        let mut indices = BTreeMap::new();
        let named = names(body)?;
        for name in named.split(',') {
            let found: Vec<&String> =
                made.indices.keys().filter(|index| name == "_all" || matches(name, index)).collect();
            if found.is_empty() && !ignore && name != "_all" && !name.contains('*') {
                return Err(ApiError::no_index(name));
            }
            for index in found {
                let to = match &rename {
                    None => index.clone(),
                    Some((pattern, by)) => pattern.replace_all(index, by.as_str()).into_owned(),
                };
                let kept = &made.indices[index];
                let before = indices.insert(to.clone(), kept.clone());
                if before.is_some_and(|before| before != *kept) {
                    return Err(refused(format!("several indices are renamed into the same index [{to}]")));
                }
            }
        }
        Ok(Asked { indices, aliases: flag("include_aliases", true)? })
    }
}

/// A replacement's `$1` as `${1}`: what comes behind is no part of the number.
fn groups(replacement: &str) -> String {
    let mut groups = String::new();
    let mut rest = replacement;
    while let Some(at) = rest.find('$') {
        let digits = rest[at + 1..].bytes().take_while(u8::is_ascii_digit).count();
        groups += &rest[..at];
        groups += &if digits == 0 { "$$".to_owned() } else { format!("${{{}}}", &rest[at + 1..][..digits]) };
        rest = &rest[at + 1 + digits..];
    }
    groups + rest
}

pub(super) fn restore(node: &Node, call: &mut Call) -> Result<Reply, ApiError> {
    let repo = call.name("repo").unwrap_or_default().to_owned();
    let snapshot = call.name("snapshot").unwrap_or_default().to_owned();
    let place = place(node, &repo)?;
    let made = place.get(&snapshot)?.ok_or_else(|| no_snapshot(&repo, &snapshot))?;
    let Asked { indices, aliases } = Asked::read(&call.object()?, &made)?;
    let cluster = node.cluster();
    for to in indices.keys() {
        if let Some(what) = lanewise_engine::wrong_name(to) {
            return Err(ApiError::argument(format!("Invalid index name [{to}], {what}")));
        }
        if let Some(index) = cluster.indices.get(to) {
            let how = if index.closed { "a closed" } else { "an open" };
            return Err(refused(format!(
                "[{repo}:{snapshot}] cannot restore index [{to}] because {how} index with same name already exists in the \
                 cluster. Delete the existing index or restore the index under a different name by providing a rename \
                 pattern and replacement name"
            )));
        }
    }
    let (engine, store) = (node.engine.clone(), node.store.clone());
    let changing = node.changing_repositories.clone();
    let described = format!("restore [{repo}:{snapshot}]");
    let work = move |proceed: Proceed<'_>| {
        let _one_at_a_time = changing.lock().unwrap_or_else(PoisonError::into_inner);
        for (to, kept) in &indices {
            let table = engine.restore(to, &place.tables, &kept.table, &mut |_, _| proceed());
            let table = table.map_err(|error| match error {
                RestoreError::Engine(error) => of_engine(error),
                RestoreError::Snapshot(error) => place.of(error),
            })?;
            let mut index = Index { uuid: new_uuid(), closed: false, ..kept.index.clone() };
            index.settle(to);
            if !aliases {
                index.aliases.clear();
            }
            let named = store.change(|cluster| {
                cluster.indices.insert(to.clone(), index);
                cluster.dropping.retain(|dropping| dropping != to);
                alias::check(cluster)
            });
            if named.is_err() {
                drop(table);
                // Nobody was told that it is there.
                let _ = engine.drop_table(to);
            }
            named?;
        }
        let count = indices.len();
        Ok(json!({"snapshot": {"snapshot": snapshot, "indices": indices.keys().collect::<Vec<_>>(),
            "shards": {"total": count, "failed": 0, "successful": count}}}))
    };
    const ACTION: &str = "cluster:admin/snapshot/restore";
    if call.params.flag("wait_for_completion", false)? {
        return node.tasks.run(ACTION, described, work).map(Reply::json);
    }
    node.tasks.begin(ACTION, described, work)?;
    Ok(Reply::json(json!({"accepted": true})))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_end_with_their_digits() {
        for (given, expected) in
            [("$1_x", "${1}_x"), ("a$12", "a${12}"), ("$", "$$"), ("$a$0", "$$a${0}"), ("plain", "plain")]
        {
            assert_eq!(groups(given), expected);
        }
    }
}
