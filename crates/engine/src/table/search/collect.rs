//! A pass over the documents of one segment: those that match are counted, put into aggregations, and the first of them
//! in order are kept, never more than twice as many as are wanted.

use super::super::bits::Bits;
use super::super::view::{At, Part};
use super::SearchTableError;
use super::ready::Least;
use crate::documents::{Aggregations, Cell, Order, Partial, Position, Run, Weighed};
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// Rows between two questions whether to stop.
const ASKED_EVERY: usize = 256;

/// Which rows of a segment match, and how well.
pub(super) enum Source<'a> {
    /// All that are alive.
    All,
    /// Those that a query finds, scored by it.
    Query(&'a Weighed),
    /// Those in a set, with these scores; 0 where there is none.
    Set { rows: &'a Bits, scores: &'a BTreeMap<At, f32> },
}

/// What is wanted of the rows that match.
pub(super) struct Wanted<'a> {
    pub(super) order: &'a Order,
    /// Only what it lets pass matches.
    pub(super) least: Least,
    /// Only what comes after it is kept.
    pub(super) after: Option<&'a Position>,
    /// As many are kept.
    pub(super) hits: usize,
    pub(super) aggregations: Option<&'a Aggregations>,
    /// Whether all rows that match are noted.
    pub(super) noted: bool,
    /// Whether rows that cannot be kept may be passed over.
    pub(super) pruned: bool,
}

/// A document, and what it is sorted by.
pub(super) struct Found {
    pub(super) at: At,
    pub(super) score: f32,
    pub(super) position: Position,
    /// How its score came about.
    pub(super) explanation: Option<Box<serde_json::Value>>,
}

/// What a segment has.
#[derive(Default)]
pub(super) struct Collected {
    /// In order.
    pub(super) hits: Vec<Found>,
    /// Rows that match; with [`Wanted::pruned`] at least so many.
    pub(super) count: u64,
    pub(super) noted: Bits,
    pub(super) partials: Vec<Partial>,
}

/// The first of what is offered.
struct First<T> {
    kept: Vec<T>,
    wanted: usize,
    /// Whether the first `wanted` are apart, in no order but for the last of them.
    settled: bool,
}

impl<T> First<T> {
    /// The last that is kept as it is now: what does not come before it need not be offered.
    fn last(&self) -> Option<&T> {
        self.settled.then(|| &self.kept[self.wanted - 1])
    }

    fn offer(&mut self, item: T, compare: impl Fn(&T, &T) -> Ordering) {
        self.kept.push(item);
        let full = if self.settled { 2 * self.wanted } else { self.wanted };
        if self.kept.len() == full {
            self.kept.select_nth_unstable_by(self.wanted - 1, compare);
            self.kept.truncate(self.wanted);
            self.settled = true;
        }
    }
}

/// A row of a run, and what it is sorted by there.
struct Candidate {
    cells: Box<[Cell<u64>]>,
    row: u32,
    score: f32,
}

/// Puts what was found into order, and keeps the first.
pub(super) fn first(order: &Order, hits: &mut Vec<Found>, wanted: usize) {
    hits.sort_unstable_by(|a, b| compare(order, &a.position, &b.position));
    hits.truncate(wanted);
}

pub(super) fn compare(order: &Order, a: &Position, b: &Position) -> Ordering {
    order.compare((&a.cells, || a.id.as_str()), (&b.cells, || b.id.as_str()))
}

/// Passes over segment `number`, whose documents are in `runs`; `filter` says which rows may match, dead ones or not.
pub(super) fn collect(
    (number, part): (usize, &Part),
    runs: &[(u32, Run)],
    source: &Source<'_>,
    filter: Option<&Bits>,
    wanted: &Wanted<'_>,
    stop: &dyn Fn() -> bool,
) -> Result<Collected, SearchTableError> {
    let mut all = Collected::default();
    for &(start, ref run) in runs {
        if run.rows() > 0 && !stop() {
            collect_run((number, part), (start, run), source, filter, wanted, stop, &mut all)?;
        }
    }
    first(wanted.order, &mut all.hits, wanted.hits);
    Ok(all)
}

fn collect_run(
    (number, part): (usize, &Part),
    (start, run): (u32, &Run),
    source: &Source<'_>,
    filter: Option<&Bits>,
    wanted: &Wanted<'_>,
    stop: &dyn Fn() -> bool,
    all: &mut Collected,
) -> Result<(), SearchTableError> {
    let order = wanted.order;
    let columns = run.columns(order)?;
    let after = wanted.after.map(|after| Ok::<_, SearchTableError>((columns.place(after)?, &*after.id)));
    let after = after.transpose()?;
    let mut collecting = wanted.aggregations.map(|aggregations| aggregations.on(run)).transpose()?;
    let id = |row: u32| part.id(start + row);
    let by = |a: &Candidate, b: &Candidate| {
        order.compare((&a.cells[..], || id(a.row)), (&b.cells[..], || id(b.row)))
    };
    let mut best = First { kept: Vec::<Candidate>::new(), wanted: wanted.hits, settled: false };
    let mut cells = Vec::new();
    // Whether the row matches.
    let mut take = |row: u32, score: f32| {
        let at = start + row;
        if !part.is_document(at) || filter.is_some_and(|f| !f.contains(at)) || !wanted.least.passes(score) {
            return f32::MIN;
        }
        all.count += 1;
        if let Some(collecting) = &mut collecting {
            collecting.take(row);
        }
        if wanted.noted {
            all.noted.insert(at);
        }
        if wanted.hits == 0 {
            return f32::MIN;
        }
        cells.clear();
        columns.cells(row, score, &mut cells);
        let comes_after = |last: &[Cell<u64>], last_id: &str| {
            order.compare((&cells[..], || id(row)), (last, || last_id)).is_gt()
        };
        if after.as_ref().is_some_and(|(after, after_id)| !comes_after(after, after_id)) {
            return f32::MIN;
        }
        if best.last().is_none_or(|last| !comes_after(&last.cells, id(last.row))) {
            best.offer(Candidate { cells: cells.clone().into(), row, score }, by);
        }
        // An equal score may come first by its id.
        best.last().map_or(f32::MIN, |last| last.score.next_down())
    };
    match source {
        Source::Query(query) if wanted.pruned => run.best(query, &mut pruning(take, stop))?,
        Source::Query(query) => run.scores(query, stop, &mut |row, score| {
            take(row, score);
        })?,
        Source::All => rows(0..run.rows(), stop, |row| {
            take(row, 1.0);
        }),
        Source::Set { rows: set, scores } => {
            let within = |at: &u32| (start..start + run.rows()).contains(at);
            rows(set.rows().filter(within), stop, |at| {
                let score = scores.get(&At { part: number, row: at }).copied();
                take(at - start, score.unwrap_or(0.0));
            });
        }
    }
    for Candidate { cells, row, score } in best.kept {
        let position = Position { cells: columns.resolve(&cells)?, id: id(row).to_owned() };
        let at = At { part: number, row: start + row };
        all.hits.push(Found { at, score, position, explanation: None });
    }
    all.partials.extend(collecting.map(|collecting| collecting.finish()).transpose()?);
    Ok(())
}

/// What may be passed over never grows again: rows that do not match say nothing of it.
fn pruning(mut take: impl FnMut(u32, f32) -> f32, stop: &dyn Fn() -> bool) -> impl FnMut(u32, f32) -> f32 {
    let (mut least, mut asked) = (f32::MIN, 0_usize);
    move |row, score| {
        asked += 1;
        // No score is above infinity: all the rest is passed over.
        let stopped = asked.is_multiple_of(ASKED_EVERY) && stop();
        least = if stopped { f32::INFINITY } else { least.max(take(row, score)) };
        least
    }
}

fn rows(rows: impl Iterator<Item = u32>, stop: &dyn Fn() -> bool, mut take: impl FnMut(u32)) {
    for (asked, row) in rows.enumerate() {
        if asked % ASKED_EVERY == ASKED_EVERY - 1 && stop() {
            break;
        }
        take(row);
    }
}
