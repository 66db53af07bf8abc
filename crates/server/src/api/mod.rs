//! What each request does, by what it is about.

mod alias;
mod bulk;
mod cluster;
mod document;
mod index;
mod root;
mod search;

use crate::route::Route;

/// Every route, by subject.
pub(crate) static ROUTES: &[&[Route]] = &[
    root::ROUTES,
    cluster::ROUTES,
    index::ROUTES,
    alias::ROUTES,
    document::ROUTES,
    bulk::ROUTES,
    search::ROUTES,
];
