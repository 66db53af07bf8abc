//! `_cat`: what there is, one in a line, for people who read it.

use super::{cluster, nodes, route, tables};
use crate::call::{Call, Content, Reply};
use crate::cluster::{Names, matches};
use crate::error::ApiError;
use crate::machine::{Memory, Process, load};
use crate::node::{Node, now_ms};
use crate::route::{Role, Route, Verb};
use axum::http::StatusCode;
use serde_json::{Map, Value, json};
use std::cmp::Ordering;

/// What each may be asked with.
const PARAMS: [&str; 13] = [
    "v",
    "h",
    "s",
    "help",
    "bytes",
    "time",
    "local",
    "timeout",
    "cluster_manager_timeout",
    "master_timeout",
    "ignore_unavailable",
    "allow_no_indices",
    "expand_wildcards",
];

const GET: &[Verb] = &[Verb::Get];

pub(super) const ROUTES: &[Route] = &[
    route(Role::Read, GET, &["/_cat/indices", "/_cat/indices/{index}"], &PARAMS, indices, "indexes"),
    route(
        Role::Read,
        GET,
        &["/_cat/shards", "/_cat/shards/{index}"],
        &PARAMS,
        shards,
        "shards: one of each index",
    ),
    route(
        Role::Read,
        GET,
        &["/_cat/segments", "/_cat/segments/{index}"],
        &PARAMS,
        segments,
        "segments of indexes",
    ),
    route(
        Role::Read,
        GET,
        &["/_cat/count", "/_cat/count/{index}"],
        &PARAMS,
        count,
        "how many documents there are",
    ),
    route(
        Role::Read,
        GET,
        &["/_cat/aliases", "/_cat/aliases/{alias}"],
        &PARAMS,
        aliases,
        "other names of indexes",
    ),
    route(
        Role::Read,
        GET,
        &["/_cat/templates", "/_cat/templates/{template}"],
        &PARAMS,
        templates,
        "index templates",
    ),
    route(Role::Read, GET, &["/_cat/health"], &PARAMS, health, "how the cluster of one is"),
    route(Role::Read, GET, &["/_cat/nodes"], &PARAMS, all_nodes, "the node"),
    route(
        Role::Read,
        GET,
        &["/_cat/cluster_manager", "/_cat/master"],
        &PARAMS,
        manager,
        "the node, which manages itself",
    ),
    route(
        Role::Read,
        GET,
        &["/_cat/allocation"],
        &PARAMS,
        allocation,
        "what indexes take on the node's disk",
    ),
    route(Role::Read, GET, &["/_cat/plugins"], &PARAMS, plugins, "plugins whose requests are answered"),
    route(
        Role::Read,
        GET,
        &["/_cat/thread_pool", "/_cat/thread_pool/{pool}"],
        &PARAMS,
        thread_pool,
        "the threads that search",
    ),
];

/// Rows of named cells.
struct Table {
    names: &'static [&'static str],
    rows: Vec<Vec<String>>,
}

impl Table {
    fn new(names: &'static [&'static str]) -> Table {
        Table { names, rows: Vec::new() }
    }

    fn row<const N: usize>(&mut self, cells: [&dyn ToString; N]) {
        self.rows.push(cells.iter().map(|cell| cell.to_string()).collect());
    }

    fn place(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|known| *known == name)
    }

    /// Text in columns, or JSON: with a head if `v` is there, only the columns `h`, ordered by `s`.
    fn reply(mut self, call: &Call) -> Result<Reply, ApiError> {
        if call.params.flag("help", false)? {
            let lines: String = self.names.iter().map(|name| format!("{name}\n")).collect();
            return Ok(text(lines));
        }
        for key in call.params.list("s").unwrap_or_default().into_iter().rev() {
            let (name, order) = key.split_once(':').unwrap_or((key, "asc"));
            let Some(at) = self.place(name) else {
                let reason = format!("Unable to sort by unknown sort key `{name}`");
                return Err(ApiError::new(
                    StatusCode::BAD_REQUEST,
                    "unsupported_operation_exception",
                    reason,
                ));
            };
            self.rows.sort_by(|one, other| {
                let ascending = compare(&one[at], &other[at]);
                if order == "desc" { ascending.reverse() } else { ascending }
            });
        }
        let shown: Vec<usize> = match call.params.list("h") {
            None => (0..self.names.len()).collect(),
            Some(wanted) => {
                let places = |pattern: &&str| -> Vec<usize> {
                    let fits = |at: &usize| matches(pattern, self.names[*at]);
                    (0..self.names.len()).filter(fits).collect()
                };
                wanted.iter().flat_map(places).collect()
            }
        };
        match call.params.get("format") {
            Some("json") => {
                let row = |row: &Vec<String>| -> Map<String, Value> {
                    shown.iter().map(|&at| (self.names[at].to_owned(), json!(row[at]))).collect()
                };
                Ok(Reply::json(self.rows.iter().map(row).collect::<Vec<_>>().into()))
            }
            None | Some("text") => {
                let head: Vec<String> = self.names.iter().map(|name| (*name).to_owned()).collect();
                let head = call.params.flag("v", false)?.then_some(&head);
                let lines: Vec<&Vec<String>> = head.into_iter().chain(&self.rows).collect();
                let width = |at: usize| lines.iter().map(|line| line[at].chars().count()).max().unwrap_or(0);
                let widths: Vec<usize> = shown.iter().map(|&at| width(at)).collect();
                let mut all = String::new();
                for line in lines {
                    let cells = shown.iter().zip(&widths).map(|(&at, width)| format!("{:<width$}", line[at]));
                    all += cells.collect::<Vec<_>>().join(" ").trim_end();
                    all.push('\n');
                }
                Ok(text(all))
            }
            Some(other) => Err(ApiError::argument(format!("format [{other}]: give text, or json"))),
        }
    }
}

/// Numbers by what they say, all else as text.
fn compare(one: &str, other: &str) -> Ordering {
    match (one.parse::<f64>(), other.parse::<f64>()) {
        (Ok(one), Ok(other)) => one.total_cmp(&other),
        _ => one.cmp(other),
    }
}

fn text(text: String) -> Reply {
    Reply { status: StatusCode::OK, content: Content::Text(text) }
}

const UNITS: [&str; 6] = ["b", "kb", "mb", "gb", "tb", "pb"];

/// Bytes as they are shown: of the unit that is asked for without its name, else as short as they can be.
fn size(call: &Call, bytes: u64) -> Result<String, ApiError> {
    let Some(unit) = call.params.get("bytes") else {
        let power = (0..UNITS.len()).rev().find(|power| bytes >> (10 * power) > 0).unwrap_or(0);
        let value = bytes as f64 / (1u64 << (10 * power)) as f64;
        let digits = usize::from(power > 0 && (value * 10.0).floor() % 10.0 != 0.0);
        return Ok(format!("{:.digits$}{}", (value * 10.0).floor() / 10.0, UNITS[power]));
    };
    let power = UNITS.iter().position(|known| *known == unit || known.strip_suffix('b') == Some(unit));
    let wrong = || ApiError::argument(format!("bytes [{unit}]: give one of {}", UNITS.join(", ")));
    Ok((bytes >> (10 * power.ok_or_else(wrong)?)).to_string())
}

fn indices(node: &Node, call: &mut Call) -> Result<Reply, ApiError> {
    let cluster = node.cluster();
    let mut table = Table::new(&[
        "health",
        "status",
        "index",
        "uuid",
        "pri",
        "rep",
        "docs.count",
        "docs.deleted",
        "store.size",
        "pri.store.size",
    ]);
    for target in Names::targets(&cluster, call)? {
        let index = &cluster.indices[&target.index];
        let table_of = (!index.closed).then(|| node.table(&target.index));
        let (health, documents, deleted) = match table_of {
            None => ("green", String::new(), String::new()),
            Some(Ok(table)) => {
                let deleted: usize = table.segments().iter().map(|segment| segment.deleted).sum();
                ("green", table.len().to_string(), deleted.to_string())
            }
            Some(Err(_)) => ("red", String::new(), String::new()),
        };
        let status = if index.closed { "close" } else { "open" };
        let bytes = size(call, node.bytes_of(&target.index))?;
        table.row([
            &health,
            &status,
            &target.index,
            &index.uuid,
            &"1",
            &"0",
            &documents,
            &deleted,
            &bytes,
            &bytes,
        ]);
    }
    table.reply(call)
}

fn shards(node: &Node, call: &mut Call) -> Result<Reply, ApiError> {
    let mut table = Table::new(&["index", "shard", "prirep", "state", "docs", "store", "ip", "node"]);
    let ip = nodes::address(node).ip();
    for (index, of) in tables(node, call)? {
        let bytes = size(call, node.bytes_of(&index))?;
        table.row([&index, &"0", &"p", &"STARTED", &of.len(), &bytes, &ip, &node.name]);
    }
    table.reply(call)
}

fn segments(node: &Node, call: &mut Call) -> Result<Reply, ApiError> {
    let mut table = Table::new(&[
        "index",
        "shard",
        "prirep",
        "ip",
        "segment",
        "generation",
        "docs.count",
        "docs.deleted",
        "committed",
        "searchable",
    ]);
    let ip = nodes::address(node).ip();
    for (index, of) in tables(node, call)? {
        for segment in of.segments() {
            let number = segment.segment.0;
            let name = format!("_{number}");
            let (live, deleted, sealed) = (segment.live, segment.deleted, segment.sealed);
            table.row([&index, &"0", &"p", &ip, &name, &number, &live, &deleted, &sealed, &true]);
        }
    }
    table.reply(call)
}

/// Seconds since 1970, and the time of day.
fn clock() -> (u64, String) {
    let seconds = now_ms() / 1000;
    let day = seconds % 86_400;
    (seconds, format!("{:02}:{:02}:{:02}", day / 3600, day / 60 % 60, day % 60))
}

fn count(node: &Node, call: &mut Call) -> Result<Reply, ApiError> {
    let mut table = Table::new(&["epoch", "timestamp", "count"]);
    let documents: usize = tables(node, call)?.iter().map(|(_, table)| table.len()).sum();
    let (epoch, timestamp) = clock();
    table.row([&epoch, &timestamp, &documents]);
    table.reply(call)
}

fn aliases(node: &Node, call: &mut Call) -> Result<Reply, ApiError> {
    let mut table =
        Table::new(&["alias", "index", "filter", "routing.index", "routing.search", "is_write_index"]);
    let cluster = node.cluster();
    let wanted: Vec<&str> = call.name("alias").unwrap_or("*").split(',').collect();
    for (name, index) in &cluster.indices {
        let meant = |alias: &str| wanted.iter().any(|pattern| matches(pattern, alias));
        for (alias, how) in index.aliases.iter().filter(|(alias, _)| meant(alias)) {
            let filter = if how.filter.is_some() { "*" } else { "-" };
            let routing = how.routing.as_deref().unwrap_or("-");
            let written = how.is_write_index.map_or("-".to_owned(), |is| is.to_string());
            table.row([alias, name, &filter, &routing, &routing, &written]);
        }
    }
    table.reply(call)
}

fn templates(node: &Node, call: &mut Call) -> Result<Reply, ApiError> {
    let mut table = Table::new(&["name", "index_patterns", "order", "version", "composed_of"]);
    let cluster = node.cluster();
    let wanted = call.name("template").unwrap_or("*");
    let list = |value: &Value| match value {
        Value::Array(all) => all.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", "),
        Value::String(one) => one.clone(),
        _ => String::new(),
    };
    let all = cluster.index_templates.iter().map(|(name, of)| (name, of, "priority"));
    let old = cluster.templates.iter().map(|(name, of)| (name, of, "order"));
    for (name, of, order) in all.chain(old).filter(|(name, ..)| matches(wanted, name)) {
        let number = |key: &str| of[key].as_i64().map_or(String::new(), |number| number.to_string());
        let patterns = format!("[{}]", list(&of["index_patterns"]));
        let composed = of.get("composed_of").map_or(String::new(), |of| format!("[{}]", list(of)));
        table.row([name, &patterns, &number(order), &number("version"), &composed]);
    }
    table.reply(call)
}

fn health(node: &Node, call: &mut Call) -> Result<Reply, ApiError> {
    let mut table = Table::new(&[
        "epoch",
        "timestamp",
        "cluster",
        "status",
        "node.total",
        "node.data",
        "shards",
        "pri",
        "relo",
        "init",
        "unassign",
        "pending_tasks",
        "max_task_wait_time",
        "active_shards_percent",
    ]);
    let (damaged, all) = cluster::damaged(node, Names::default().resolve(&node.cluster(), "")?);
    let (epoch, timestamp) = clock();
    let (status, active) = (if damaged.is_empty() { "green" } else { "red" }, all - damaged.len());
    let percent = format!("{:.1}%", cluster::percent(active, all));
    table.row([
        &epoch,
        &timestamp,
        &node.cluster_name,
        &status,
        &1,
        &1,
        &active,
        &active,
        &0,
        &0,
        &damaged.len(),
        &0,
        &"-",
        &percent,
    ]);
    table.reply(call)
}

fn all_nodes(node: &Node, call: &mut Call) -> Result<Reply, ApiError> {
    let mut table = Table::new(&[
        "ip",
        "heap.percent",
        "ram.percent",
        "load_1m",
        "load_5m",
        "load_15m",
        "node.role",
        "node.roles",
        "cluster_manager",
        "name",
        "id",
        "version",
        "http_address",
    ]);
    let (memory, process) = (Memory::now(), Process::now());
    let [one, five, fifteen] = load().unwrap_or_default();
    let address = nodes::address(node);
    table.row([
        &address.ip(),
        &memory.percent(process.resident),
        &memory.percent(memory.total.saturating_sub(memory.available)),
        &one,
        &five,
        &fifteen,
        &"dimr",
        &nodes::ROLES.join(","),
        &"*",
        &node.name,
        &node.id(),
        &super::root::OPENSEARCH,
        &address,
    ]);
    table.reply(call)
}

fn manager(node: &Node, call: &mut Call) -> Result<Reply, ApiError> {
    let mut table = Table::new(&["id", "host", "ip", "node"]);
    let ip = nodes::address(node).ip();
    table.row([&node.id(), &ip, &ip, &node.name]);
    table.reply(call)
}

fn allocation(node: &Node, call: &mut Call) -> Result<Reply, ApiError> {
    let mut table = Table::new(&["shards", "disk.indices", "disk.avail", "host", "ip", "node"]);
    let cluster = node.cluster();
    let bytes = cluster.indices.keys().map(|index| node.bytes_of(index)).sum();
    let ip = nodes::address(node).ip();
    let (taken, free) = (size(call, bytes)?, size(call, node.free_bytes())?);
    table.row([&cluster.indices.len(), &taken, &free, &ip, &ip, &node.name]);
    table.reply(call)
}

fn plugins(node: &Node, call: &mut Call) -> Result<Reply, ApiError> {
    let mut table = Table::new(&["name", "component", "version"]);
    let plugin = nodes::plugin();
    let text = |key: &str| plugin[key].as_str().unwrap_or_default().to_owned();
    table.row([&node.name, &text("name"), &text("version")]);
    table.reply(call)
}

fn thread_pool(node: &Node, call: &mut Call) -> Result<Reply, ApiError> {
    let mut table = Table::new(&["node_name", "name", "active", "queue", "rejected", "completed", "size"]);
    if matches(call.name("pool").unwrap_or("*"), "search") {
        let stats = node.pool.stats();
        let total = stats.total();
        let active = stats.workers.iter().filter(|(_, worker)| worker.running).count();
        let size = stats.workers.len();
        table.row([&node.name, &"search", &active, &total.queued, &stats.refused, &total.tasks, &size]);
    }
    table.reply(call)
}
