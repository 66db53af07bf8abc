//! One node that speaks OpenSearch's REST API over many tables.
//!
//! `http.rs` makes calls of requests, by the table of routes in `api/`; what is known of indexes beside their tables (aliases,
//! mappings, settings) is in `cluster/`. Handlers may wait: each runs on a thread that may.

mod api;
mod auth;
mod body;
mod call;
mod cluster;
mod cluster_settings;
mod config;
mod counts;
mod direct;
mod error;
mod filter_path;
mod http;
mod log;
mod machine;
mod mapping;
mod metrics;
mod node;
mod origin;
mod query;
mod recall;
mod reload;
mod repository;
mod route;
mod run;
mod serve;
mod settings;
mod source;
mod tasks;
mod tls;
mod watch;

pub use auth::{NewKey, UsersError, UsersFile};
pub use cluster::StoreError;
pub use config::{Config, ConfigError, KEYS, Key};
pub use error::ApiError;
pub use http::HttpLimits;
pub use log::{Form, Level};
pub use node::{Node, NodeError};
pub use route::reference;
pub use run::{Ended, RunError, Serving, run};
pub use serve::{ServeError, Server};
pub use tls::TlsError;
pub use watch::SlowSearches;
