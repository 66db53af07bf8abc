//! What the node knows beside its tables: indexes as they were asked for, aliases, templates, settings.
//!
//! One value, replaced as a whole and durably by each change (`store.rs`), so that several alias actions are one, and a
//! request that looks names up sees one state of them.

mod names;
mod store;
pub(crate) mod templates;

pub(crate) use names::{Names, PARAMS, Target, matches};
pub(crate) use store::Store;
pub use store::StoreError;

use crate::node::{new_uuid, now_ms};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The state of the cluster of one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Cluster {
    /// Who it is, for as long as its folder lives.
    pub(crate) uuid: String,
    /// Changes so far.
    #[serde(default)]
    pub(crate) version: u64,
    /// `_cluster/settings`, by full name.
    #[serde(default)]
    pub(crate) settings: BTreeMap<String, String>,
    /// The same, until the node ends.
    #[serde(skip)]
    pub(crate) transient: BTreeMap<String, String>,
    /// Indexes by name; the tables have the same names.
    #[serde(default)]
    pub(crate) indices: BTreeMap<String, Index>,
    /// Legacy templates (`_template`), as they were given; so the next two.
    #[serde(default)]
    pub(crate) templates: BTreeMap<String, Value>,
    #[serde(default)]
    pub(crate) index_templates: BTreeMap<String, Value>,
    #[serde(default)]
    pub(crate) component_templates: BTreeMap<String, Value>,
    /// Search pipelines, as they were given.
    #[serde(default)]
    pub(crate) pipelines: BTreeMap<String, Value>,
    /// Folders of snapshots, as they were given.
    #[serde(default)]
    pub(crate) repositories: BTreeMap<String, Value>,
    /// Tables that are to be dropped: their indexes are gone.
    #[serde(default)]
    pub(crate) dropping: Vec<String>,
}

/// An index, beside its table.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Index {
    pub(crate) uuid: String,
    /// When it was made, milliseconds since 1970.
    pub(crate) created_ms: u64,
    /// Its mappings, as OpenSearch would give them back.
    #[serde(default)]
    pub(crate) mappings: Map<String, Value>,
    /// Its settings by full name (`index.refresh_interval`).
    #[serde(default)]
    pub(crate) settings: BTreeMap<String, String>,
    #[serde(default)]
    pub(crate) aliases: BTreeMap<String, Alias>,
    /// Whether it takes neither searches nor writes.
    #[serde(default)]
    pub(crate) closed: bool,
}

/// Another name of an index.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Alias {
    /// Only documents that this finds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) filter: Option<Value>,
    /// Whether writes by the alias go to this index.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) is_write_index: Option<bool>,
    /// Kept and given back; one node has nothing to route.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) routing: Option<String>,
}

impl Index {
    /// A new one of a table, with these mappings, and settings that all indexes have.
    pub(crate) fn new(name: &str, mappings: Map<String, Value>) -> Index {
        let mut index = Index { uuid: new_uuid(), created_ms: now_ms(), mappings, ..Index::default() };
        index.settle(name);
        index
    }

    /// Makes its settings say whose they are, and what they do not say.
    pub(crate) fn settle(&mut self, name: &str) {
        let Index { uuid, created_ms, settings, .. } = self;
        settings.entry("index.number_of_shards".to_owned()).or_insert("1".to_owned());
        settings.entry("index.number_of_replicas".to_owned()).or_insert("0".to_owned());
        settings.insert("index.uuid".to_owned(), uuid.clone());
        settings.insert("index.creation_date".to_owned(), created_ms.to_string());
        settings.insert("index.provided_name".to_owned(), name.to_owned());
    }
}

impl Cluster {
    /// Indexes that have the alias.
    pub(crate) fn with_alias<'a, 'b>(
        &'a self,
        alias: &'b str,
    ) -> impl Iterator<Item = (&'a str, &'a Alias)> + use<'a, 'b> {
        self.indices.iter().filter_map(move |(name, index)| Some((name.as_str(), index.aliases.get(alias)?)))
    }
}
