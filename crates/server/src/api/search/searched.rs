//! An index as a search sees it: as it is, or as it was.

use super::of_search;
use crate::api::targets;
use crate::call::Params;
use crate::cluster::Target;
use crate::error::ApiError;
use crate::node::Node;
use crate::query::{self, About};
use lanewise_engine::documents::Query;
use lanewise_engine::scheduler::Failure;
use lanewise_engine::table::{Answer, Pin, Request, SearchTableError, Watched};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// An index that is searched.
pub(in crate::api) struct Searched {
    pub(super) index: String,
    pub(super) table: Arc<Watched>,
    /// What the aliases let through by which it was named.
    pub(super) filter: Option<Query>,
    /// For vectors of which nobody says it.
    ef_search: Option<usize>,
    pin: Option<Pin>,
    /// Only what comes after the hit with these sort values.
    pub(super) after: Option<Vec<Value>>,
}

/// The open indexes that an expression names.
pub(super) fn searched(node: &Node, expression: &str, params: &Params) -> Result<Vec<Searched>, ApiError> {
    let (cluster, all) = (node.cluster(), targets(node, expression, params)?.into_iter());
    all.map(|(target, table)| {
        let filter = filters(&target, &About { schema: Some(table.schema()), ef_search: None })?;
        let index = cluster.indices.get(&target.index);
        let ef_search =
            index.and_then(|index| index.settings.get("index.knn.algo_param.ef_search")?.parse().ok());
        Ok(Searched { index: target.index, table, filter, ef_search, pin: None, after: None })
    })
    .collect()
}

/// What the aliases let through by which an index was named.
pub(in crate::api) fn filters(target: &Target, about: &About) -> Result<Option<Query>, ApiError> {
    let should: Vec<Query> =
        target.filters.iter().map(|filter| query::read(filter, about)).collect::<Result<_, _>>()?;
    let any = Query::Bool {
        must: Vec::new(),
        should,
        filter: Vec::new(),
        must_not: Vec::new(),
        minimum_should_match: Some(1),
    };
    Ok((!target.filters.is_empty()).then_some(any))
}

impl Searched {
    /// An index by its own name, if it is open.
    pub(super) fn if_open(node: &Node, name: &str) -> Option<Searched> {
        let cluster = node.cluster();
        let index = cluster.indices.get(name).filter(|index| !index.closed)?;
        let ef_search = index.settings.get("index.knn.algo_param.ef_search").and_then(|ef| ef.parse().ok());
        let table = node.table_if_open(name)?;
        Some(Searched { index: name.to_owned(), table, filter: None, ef_search, pin: None, after: None })
    }

    /// What queries may know of it.
    pub(super) fn about(&self) -> About {
        About { schema: Some(self.table.schema()), ef_search: self.ef_search }
    }

    /// Keeps the index as it is.
    pub(super) fn pin(&mut self) -> Result<(), ApiError> {
        let pin = self.table.pin(None).map_err(|error| of_search(&self.index, error))?;
        self.pin = Some(pin);
        Ok(())
    }

    /// What it answers; nothing if it takes too long.
    pub(super) fn search(
        &self,
        request: &Request,
        timeout: Option<Duration>,
    ) -> Result<Option<Answer>, ApiError> {
        let answer = match &self.pin {
            Some(pin) => self.table.search_pinned(pin, request, timeout),
            None => self.table.search(request, timeout),
        };
        match answer {
            Ok(answer) => Ok(Some(answer)),
            Err(SearchTableError::Failed(Failure::DeadlineExceeded)) => Ok(None),
            Err(error) => Err(of_search(&self.index, error)),
        }
    }
}
