//! How a search came about, segment by segment.

use super::super::segment::SegmentId;
use crate::index::Counts;
use lanewise_scheduler::{Stolen, Trip};
use serde::Serialize;

/// How a search came about.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Profile {
    /// Segment by segment, those that nothing was asked of left out.
    pub segments: Vec<SegmentProfile>,
}

/// How a segment was searched.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SegmentProfile {
    /// Which.
    pub segment: SegmentId,
    /// What the filter lets through.
    pub filter: Option<FilterProfile>,
    /// Each vector field that was searched; a segment of which a filter lets nothing through is not.
    pub vectors: Vec<VectorProfile>,
    /// Each pass over its documents.
    pub documents: Vec<DocumentProfile>,
}

/// What a filter lets through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct FilterProfile {
    /// Rows, dead ones among them.
    pub rows: usize,
    /// Whether that was known from an earlier search.
    pub cached: bool,
    /// Who evaluated it.
    pub task: Option<TaskProfile>,
}

/// How vectors were searched.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VectorProfile {
    /// Which.
    pub field: String,
    /// How: `exact`, `graph`, `filtered_graph`, `lists` or `codes`.
    pub plan: &'static str,
    /// Vectors that were compared with the query.
    pub visited: u64,
    /// Nodes whose links were followed.
    pub hops: u64,
    /// Bytes that were read.
    pub bytes: u64,
    /// Who did it.
    pub task: TaskProfile,
}

/// A pass over documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct DocumentProfile {
    /// Documents that were found.
    pub found: u64,
    /// Who did it.
    pub task: TaskProfile,
}

/// How a task of the pool went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct TaskProfile {
    /// On which chiplet.
    pub chiplet: usize,
    /// Time in the queue, nanoseconds.
    pub waited_ns: u64,
    /// Time that it ran, nanoseconds.
    pub ran_ns: u64,
    /// Whether it was taken from another worker's queue: `no`, `near` (of the same chiplet) or `across`.
    pub stolen: &'static str,
}

impl From<Trip> for TaskProfile {
    fn from(trip: Trip) -> Self {
        let stolen = match trip.stolen {
            Stolen::No => "no",
            Stolen::Near => "near",
            Stolen::Across => "across",
        };
        let Trip { waited_ns, ran_ns, .. } = trip;
        TaskProfile { chiplet: trip.chiplet.0 as usize, waited_ns, ran_ns, stolen }
    }
}

/// The name of the plan that found all of one query's results, or of the last that was tried.
pub(super) fn plan(counts: &Counts) -> &'static str {
    let plans = [
        (counts.exact, "exact"),
        (counts.lists, "lists"),
        (counts.codes, "codes"),
        (counts.filtered_graph, "filtered_graph"),
    ];
    plans.iter().find(|(queries, _)| *queries > 0).map_or("graph", |(_, name)| name)
}
