//! The node over HTTP, as clients see it.

mod clients;
mod documents;
mod indices;
mod node;
mod requests;
mod searches;
mod served;
mod snapshots;
mod templates;
mod writes;
