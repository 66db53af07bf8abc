//! The node over HTTP, as clients see it.

mod abuse;
mod access;
mod clients;
mod console;
mod documents;
mod indices;
mod mappings;
mod metrics;
mod node;
mod points;
mod queries;
mod requests;
mod searches;
mod served;
mod snapshots;
mod templates;
mod tls;
mod writes;
