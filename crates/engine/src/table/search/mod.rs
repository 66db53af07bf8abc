//! One search over a table: what documents say and what vectors are near, filtered, in order, page by page, with figures
//! over all that is found.
//!
//! On one view: the filter's rows in each segment (known, or evaluated) → the nearest vectors among them → a pass over the
//! documents that match → the first of all segments. Each step is a task of the pool for each segment, within one time; a
//! segment of which the filter lets nothing through is left out. Where documents are ranked several times over (a query
//! and vectors, or several vectors), the pass goes over all that any ranking found, with the scores that `fusion.rs` makes.

mod answer;
mod at_once;
mod collect;
mod compared;
mod fusion;
mod nested;
mod pin;
mod profile;
mod ready;
mod request;
mod steps;
mod wait;

pub use crate::documents::Nearest;
pub use answer::{Answer, Figures, Hit, Total};
pub use fusion::{fuse, score};
pub use pin::Pin;
pub use profile::{DocumentProfile, FilterProfile, Profile, SegmentProfile, TaskProfile, VectorProfile};
pub use request::{Concurrent, Fusion, Normalization, Request};

use super::head::Divided;
use super::need;
use super::table::Table;
use super::view::{Body, Part, View};
use crate::Refusal;
use crate::admission::AdmittedSearch;
use crate::documents::{AggregationError, OrderError, QueryError, RunError};
use crate::pool::Refused;
use crate::threads::Searching as Counted;
use collect::Found;
use lanewise_index::{GetError, SearchError};
use lanewise_scheduler::{Failure, Full};
pub(in crate::table) use ready::{Asked, Prepared, Probe, Ready, Within};
use serde_json::json;
use std::cell::Cell;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;
use steps::Searching;

/// What is wrong with a search.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum SearchTableError {
    #[error("nearest: field {field:?}: the schema names no such vector field")]
    Field { field: String },
    #[error("nearest: field {field:?}: {error}")]
    Nearest { field: String, error: SearchError },
    #[error(
        "nearest: field {field:?} lies in nested objects: ask for it within a nested query of path {path:?}"
    )]
    Nested { field: String, path: String },
    #[error("nearest: field {field:?} does not lie in the nested objects of path {path:?}")]
    NotNested { field: String, path: String },
    #[error("nearest: field {field:?}: {found} in the vector: give whole numbers from {least} to {most}")]
    Whole { field: String, least: f32, most: f32, found: f32 },
    #[error("field {field:?}: {what}")]
    Space { field: String, what: String },
    #[error("field {field:?}: {error}")]
    Vectors { field: String, error: GetError },
    #[error("fusion: {what}")]
    Fusion { what: String },
    #[error(transparent)]
    Query(#[from] QueryError),
    #[error("sort: {0}")]
    Order(#[from] OrderError),
    #[error(transparent)]
    Aggregation(#[from] AggregationError),
    #[error(transparent)]
    Refused(#[from] Refused),
    #[error(transparent)]
    Busy(#[from] Full),
    #[error(transparent)]
    Failed(#[from] Failure),
    #[error(transparent)]
    Memory(#[from] Refusal),
    #[error(transparent)]
    Documents(#[from] RunError),
    #[error("the pin is of another table, or was made before this one was opened")]
    Pin,
    #[error("it was stopped")]
    Stopped,
}

/// How long a search without a timeout waits for memory.
const PATIENCE: Duration = Duration::from_secs(2);

impl Table {
    /// Finds documents; given up after `timeout`, which holds for waiting for memory and all of the rest but for putting documents of the head, which
    /// nobody searched since they were written, into a form that can be searched.
    ///
    /// # Errors
    /// If anything about the request is wrong, too many searches wait already, it takes too long, memory is short until
    /// then, or documents cannot be read.
    pub fn search(&self, request: &Request, timeout: Option<Duration>) -> Result<Answer, SearchTableError> {
        self.search_in(self.view(), None, request, timeout, None)
    }

    /// As [`search`](Self::search), asking `proceed` on this thread every 20 milliseconds or oftener whether to go on.
    ///
    /// # Errors
    /// As [`search`](Self::search), and [`SearchTableError::Stopped`].
    pub fn search_with(
        &self,
        request: &Request,
        timeout: Option<Duration>,
        proceed: &dyn Fn() -> ControlFlow<()>,
    ) -> Result<Answer, SearchTableError> {
        self.search_in(self.view(), None, request, timeout, Some(proceed))
    }

    /// Searches `view`, whose documents are in `runs`, if somebody has made them.
    fn search_in(
        &self,
        view: Arc<View>,
        runs: Option<&[Divided]>,
        request: &Request,
        timeout: Option<Duration>,
        proceed: Option<&dyn Fn() -> ControlFlow<()>>,
    ) -> Result<Answer, SearchTableError> {
        let (here, proceed) = (proceed.is_none(), proceed.unwrap_or(&|| ControlFlow::Continue(())));
        let _searching = Counted::begin();
        let pool = &*self.resources.pool;
        let until = timeout.map(|timeout| pool.scheduler().elapsed().saturating_add(timeout));
        let mut ready = Ready::new(&view, request)?;
        let together = match request.concurrent {
            Concurrent::Off => false,
            Concurrent::On => true,
            Concurrent::Auto => pool.stats().workers.iter().all(|(_, worker)| worker.queued == 0),
        };
        let searched = ready.is_searched();
        let _admitted = self.admitted(need::search(&ready, &view, searched), until, proceed)?;
        let runs = match (searched, runs) {
            (false, _) => Vec::new(),
            (true, Some(runs)) => runs.to_vec(),
            (true, None) => {
                let runs = view.parts.iter().map(|part| self.runs(&view, part, until, proceed));
                runs.collect::<Result<_, _>>()?
            }
        };
        let profiles = view.parts.iter().map(|part| SegmentProfile {
            segment: part.segment,
            filter: None,
            vectors: Vec::new(),
            documents: Vec::new(),
        });
        let profiles = profiles.collect();
        let mut searching = Searching { pool, view: &view, runs, until, proceed, here, together, profiles };
        let (found, total, partials) = searching.run(&ready)?;
        let hits = found.into_iter().skip(request.from).map(|found| hit(&ready, &view, found)).collect();
        let nothing = || serde_json::Value::Object(serde_json::Map::new());
        let (aggregations, figures) = match ready.aggregations.take() {
            Some(asked) if request.open_figures => {
                (nothing(), Some(Figures { asked: Arc::new(asked), partials }))
            }
            Some(asked) => (asked.answer(partials)?, None),
            None => (nothing(), None),
        };
        let asked =
            |s: &SegmentProfile| s.filter.is_some() || !s.vectors.is_empty() || !s.documents.is_empty();
        let segments = searching.profiles.into_iter().filter(asked).collect();
        let profile = request.profile.then_some(Profile { segments });
        Ok(Answer { hits, total, aggregations, figures, profile, view })
    }

    /// Memory for a search, which ends at `until`.
    fn admitted(
        &self,
        bytes: u64,
        until: Option<Duration>,
        proceed: &dyn Fn() -> ControlFlow<()>,
    ) -> Result<AdmittedSearch<'_>, SearchTableError> {
        let elapsed = self.resources.pool.scheduler().elapsed();
        let patience = until.map_or(PATIENCE, |until| until.saturating_sub(elapsed));
        let stopped = Cell::new(false);
        let admitted = self.resources.admission.admit_search(bytes, patience, &|| {
            let went_on = proceed();
            stopped.set(went_on.is_break());
            went_on
        });
        admitted.map_err(|refusal| if stopped.get() { SearchTableError::Stopped } else { refusal.into() })
    }

    /// Runs that hold all rows of a part. Who makes them asks for the memory, not who waits for that.
    fn runs(
        &self,
        view: &View,
        part: &Part,
        until: Option<Duration>,
        proceed: &dyn Fn() -> ControlFlow<()>,
    ) -> Result<Divided, SearchTableError> {
        let Body::Head(head) = &part.body else { return Ok(part.runs(&view.mapping)?) };
        if let Some(runs) = head.runs() {
            return Ok(runs);
        }
        let turn = head.turn(proceed).ok_or(SearchTableError::Stopped)?;
        if let Some(runs) = head.runs() {
            return Ok(runs);
        }
        let _admitted = self.admitted(need::runs(head), until, proceed)?;
        head.make_runs(&turn, &view.mapping, proceed)?.ok_or(SearchTableError::Stopped)
    }

    /// The most memory that a search takes as the table is now, bytes, beside what threads keep from search to search.
    ///
    /// # Errors
    /// If anything about the request is wrong.
    pub fn predict_search(&self, request: &Request) -> Result<u64, SearchTableError> {
        let view = self.view();
        let ready = Ready::new(&view, request)?;
        let runs = |part: &Part| match &part.body {
            Body::Head(head) if ready.is_searched() => need::runs(head),
            _ => 0,
        };
        // One after the other.
        let runs = view.parts.iter().map(runs).max().unwrap_or(0);
        Ok(need::search(&ready, &view, ready.is_searched()) + runs)
    }
}

fn hit(ready: &Ready<'_>, view: &View, found: Found) -> Hit {
    let Found { at, score: rank, position, explanation } = found;
    let part = &view.parts[at.part];
    let distance = ready.alone().map(|_| ready.shown(rank));
    let score = ready.least().score_of(rank);
    let sort = ready.order.values(&position, |score| ready.shown(score));
    let (seq, version) = (part.seq(at.row), part.version(at.row));
    let explanation = explanation.or_else(|| {
        let described = match (distance, ready.probes.len() + usize::from(ready.query.is_some())) {
            (Some(distance), _) => format!("what a distance of {distance} scores"),
            (None, 0) => "every document scores 1".to_owned(),
            (None, rankings) => format!("made of its places in {rankings} rankings"),
        };
        let told = || Box::new(json!({"value": score, "description": described, "details": []}));
        ready.request.explain.then(told)
    });
    Hit { id: position.id, seq, version, score, distance, sort, explanation, at }
}
