//! The node over HTTP, as clients see it.

mod documents;
mod indices;
mod requests;
mod served;
