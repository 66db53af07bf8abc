//! The table of routes: the router and `docs/rest.md` are made of it.

use crate::call::{Call, Reply};
use crate::error::ApiError;
use crate::node::Node;
use serde::{Deserialize, Serialize};

/// How a request is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verb {
    Get,
    Head,
    Post,
    Put,
    Delete,
}

impl Verb {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Verb::Get => "GET",
            Verb::Head => "HEAD",
            Verb::Post => "POST",
            Verb::Put => "PUT",
            Verb::Delete => "DELETE",
        }
    }
}

/// Who may ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Role {
    Read,
    Write,
    Admin,
}

impl Role {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Role::Read => "read",
            Role::Write => "write",
            Role::Admin => "admin",
        }
    }
}

/// Whether a request's body is read before its handler runs, or by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reads {
    Whole,
    Stream,
}

/// What answers a request. It may wait, for the disk or for a search: it runs on a thread that may.
pub(crate) type Handler = fn(&Node, &mut Call) -> Result<Reply, ApiError>;

/// Answers a request on the thread that it came to, which all share: only if that takes a few milliseconds and waits for
/// nothing. `None`: the handler does it. Handing a request to another thread and back takes as long as a small search.
pub(crate) type AtOnce = fn(&Node, &mut Call) -> Option<Result<Reply, ApiError>>;

/// Requests of some verbs and paths, and what answers them.
#[derive(Clone, Copy)]
pub(crate) struct Route {
    pub(crate) verbs: &'static [Verb],
    /// `{name}` stands for one part of a path.
    pub(crate) paths: &'static [&'static str],
    /// The parameters that it takes beside those of every request.
    pub(crate) params: &'static [&'static str],
    pub(crate) role: Role,
    pub(crate) reads: Reads,
    pub(crate) handler: Handler,
    pub(crate) at_once: Option<AtOnce>,
    /// What it does, for the documentation.
    pub(crate) says: &'static str,
}

/// The routes as Markdown: `docs/rest.md` is this.
pub fn reference() -> String {
    let mut page = "# REST\nRequests that the node answers, in OpenSearch's form; made of the table of routes (`crates/server/src/api`). Beside its \
                    own parameters each takes `pretty`, `human`, `error_trace`, `filter_path` and `format`; whatever is not \
                    listed is refused by name. The role is the least that a client needs.\n\n\
                    | request | does | parameters | role |\n| --- | --- | --- | --- |\n"
        .to_owned();
    for route in crate::api::ROUTES.iter().copied().flatten() {
        let verbs: Vec<&str> = route.verbs.iter().map(|verb| verb.name()).collect();
        let paths: Vec<String> =
            route.paths.iter().map(|path| format!("{} `{path}`", verbs.join(", "))).collect();
        let params: Vec<String> = route.params.iter().map(|name| format!("`{name}`")).collect();
        page += &format!(
            "| {} | {} | {} | {} |\n",
            paths.join("<br>"),
            route.says,
            params.join(", "),
            route.role.name()
        );
    }
    let listed = |names: &mut dyn Iterator<Item = &'static str>| {
        names.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
    };
    let of_indexes = |later: bool| {
        listed(&mut crate::settings::names().filter(|(_, always)| *always == later).map(|(name, _)| name))
    };
    let sections = [
        ("What a search's body may say", listed(&mut crate::api::SEARCH_KEYS.into_iter())),
        ("Queries", listed(&mut crate::query::NAMES.into_iter())),
        ("Types of fields", listed(&mut crate::mapping::TYPES.into_iter())),
        ("Settings of an index, at any time", of_indexes(true)),
        ("Settings of an index, when it is made", of_indexes(false)),
        ("Settings of the node", listed(&mut crate::cluster_settings::names())),
    ];
    for (title, names) in sections {
        page += &format!("\n## {title}\n{names}\n");
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documentation_is_what_is_served() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/rest.md");
        if std::env::var_os("LANEWISE_BLESS").is_some() {
            std::fs::write(path, reference()).unwrap();
        }
        let written = std::fs::read_to_string(path).unwrap_or_default();
        assert!(written == reference(), "docs/rest.md is stale: run this test with LANEWISE_BLESS=1");
    }
}
