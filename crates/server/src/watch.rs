//! What each request's work took: counted, and written down where it was a slow search.

use crate::call::{Body, Call, Reply};
use crate::cluster::Cluster;
use crate::error::ApiError;
use crate::log::Level;
use crate::metrics::Work;
use crate::node::Node;
use crate::route::{AtOnce, Handler};
use crate::settings::time_ms;
use std::time::Duration;
use tokio::time::Instant;

/// Bytes of a slow search's body that are written down.
const SOURCE_BYTES: usize = 4096;

/// Searches that take so long are written down, where their index says nothing else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlowSearches {
    /// As a warning.
    pub warn: Option<Duration>,
    /// As information.
    pub info: Option<Duration>,
}

/// Does what is asked for, and sees how long it takes.
///
/// # Errors
/// As the handler.
pub(crate) fn watch(node: &Node, work: Work, call: &mut Call, handler: Handler) -> Result<Reply, ApiError> {
    let began = Instant::now();
    let reply = handler(node, call);
    note(node, work, call, began.elapsed());
    reply
}

/// The same of what may be done at once; `None` if it was not.
pub(crate) fn watch_at_once(
    node: &Node,
    work: Work,
    call: &mut Call,
    at_once: AtOnce,
) -> Option<Result<Reply, ApiError>> {
    let began = Instant::now();
    let reply = at_once(node, call)?;
    note(node, work, call, began.elapsed());
    Some(reply)
}

fn note(node: &Node, work: Work, call: &Call, took: Duration) {
    let cluster = node.cluster();
    let index = call.name("index").and_then(|name| one_index(&cluster, name));
    node.metrics.took(work, index, took);
    if work == Work::Search
        && let Some(level) = level(&cluster, index, node.slow, took)
    {
        let source = match &call.body {
            Body::Whole(bytes) => shortened(bytes),
            Body::Stream(_) => String::new(),
        };
        let more = [
            ("index", call.name("index").unwrap_or("_all").into()),
            ("took_ms", (took.as_millis() as u64).into()),
            ("source", source.into()),
        ];
        node.log.say(level, "slow search", &more);
    }
}

/// The index that a name stands for, if it is one.
fn one_index<'a>(cluster: &'a Cluster, name: &str) -> Option<&'a str> {
    if let Some((index, _)) = cluster.indices.get_key_value(name) {
        return Some(index);
    }
    let mut having = cluster.with_alias(name).map(|(index, _)| index);
    having.next().filter(|_| having.next().is_none())
}

/// How loud to be, if at all.
fn level(cluster: &Cluster, index: Option<&str>, usual: SlowSearches, took: Duration) -> Option<Level> {
    let settings = index.and_then(|index| cluster.indices.get(index)).map(|index| &index.settings);
    let limit = |name: &str, usual: Option<Duration>| match settings.and_then(|all| all.get(name)) {
        // -1: never.
        Some(said) => time_ms(said).map(Duration::from_millis),
        None => usual,
    };
    let over = |name, usual| limit(name, usual).is_some_and(|limit| took >= limit);
    match () {
        () if over("index.search.slowlog.threshold.query.warn", usual.warn) => Some(Level::Warn),
        () if over("index.search.slowlog.threshold.query.info", usual.info) => Some(Level::Info),
        () => None,
    }
}

/// The beginning of a body.
fn shortened(bytes: &[u8]) -> String {
    let mut text = String::from_utf8_lossy(&bytes[..bytes.len().min(SOURCE_BYTES)]).into_owned();
    if bytes.len() > SOURCE_BYTES {
        text += "…";
    }
    text
}
