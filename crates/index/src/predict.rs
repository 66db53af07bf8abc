//! What an add takes before it starts, from sizes alone, by the rules that the parts themselves grow by; and a limit to
//! it. Heights in the graph are drawn from the seed, so what some million nodes take is known to the byte; how vectors
//! share lists is not, nor what a hash table rounds up to on another machine. Within 5 % from some megabytes on, which the tests
//! measure.

use crate::add::build_params;
use crate::coded::Coded;
use crate::error::AddError;
use crate::filter::RowSet;
use crate::hnsw::{Graph, build};
use crate::index::{Index, State, Writer};
use crate::listed::Listed;
use crate::memory::{Column, Growth};
use crate::params::{Kind, Params};
use crate::pool::IDS;
use crate::space::Compare;
use std::ops::Range;
use std::sync::atomic::Ordering;

/// Memory that an add takes, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Need {
    /// What the index holds afterwards, room to grow included.
    pub held: usize,
    /// The most that it holds on the way there, with what the workers need. What readers of an older view keep alive is
    /// counted until the first new vectors can be searched.
    pub peak: usize,
}

/// A part of the index that is made in two steps: something is learnt, then the part is filled.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Part {
    pub(crate) growth: Growth,
    /// Memory of the first step, in which the part is not there yet.
    pub(crate) learning: usize,
    /// Memory of the second step besides the part itself.
    pub(crate) filling: usize,
}

impl Index {
    /// What adding `count` vectors in one call by `workers` would take; `own_ids`: with ids given.
    ///
    /// # Errors
    /// If there would be more vectors than an index holds, or an earlier change panicked.
    pub fn predict(&self, count: usize, own_ids: bool, workers: usize) -> Result<Need, AddError> {
        let writer = self.writer()?;
        fits(writer.state.space.len(), count)?;
        Ok(writer.need(&self.params, count, own_ids, workers))
    }

    /// What [`renumber`](Self::renumber) and then adding `count` vectors in one call would take, once so many vectors are
    /// `removed`.
    ///
    /// # Errors
    /// As [`predict`](Self::predict).
    pub fn predict_renumbered(&self, removed: usize, count: usize, workers: usize) -> Result<Need, AddError> {
        let writer = self.writer()?;
        let state = &writer.state;
        fits(state.space.len(), count)?;
        if removed == 0 && state.is_numbered() {
            return Ok(writer.need(&self.params, count, false, workers));
        }
        // All is copied to where there is room for all; the links that were mended before are given up then.
        let live = state.len().saturating_sub(removed);
        let empty = State {
            space: state.space.keep(&[], 0)?,
            coded: state.coded.as_ref().map(|coded| coded.keep(&[], 0)).transpose()?,
            graph: Graph::new(state.graph.m),
            ids: Column::new(),
            deleted: RowSet::default(),
            ..state.view(0, state.graph.entry)
        };
        let empty = Writer { state: empty, rows: None };
        // Lists are copied as they are; what is added comes beside them.
        let need = match self.params.kind {
            Kind::Ivf => {
                let (listed, space) = (state.listed.as_deref(), &state.space);
                let part = Listed::part(listed, &self.params, space, (live, count), true, workers);
                empty.need_beside(part, &self.params, live + count, false, workers)
            }
            _ => empty.need(&self.params, live + count, false, workers),
        };
        let mended = state.graph.own_bytes() + size_of::<i64>() * 2 * live;
        Ok(Need { held: need.held, peak: need.peak.max(need.held + mended) })
    }

    /// The most bytes that the index may take; adds that would take more are refused, and rows of removed vectors stay
    /// where there is no room for a copy without them. `None`: as many as the system gives.
    pub fn memory_limit(&self) -> Option<usize> {
        // Relaxed: a figure that nothing else depends on.
        Some(self.limit.load(Ordering::Relaxed)).filter(|&limit| limit < usize::MAX)
    }

    /// Sets [`memory_limit`](Self::memory_limit). What is held already stays.
    pub fn set_memory_limit(&self, bytes: Option<usize>) {
        self.limit.store(bytes.unwrap_or(usize::MAX), Ordering::Relaxed);
    }
}

/// Whether `count` vectors more than `before` are no more than an index holds.
pub(crate) fn fits(before: usize, count: usize) -> Result<(), AddError> {
    if count > IDS - 1 - before {
        return Err(AddError::Full { len: before, more: count, max: IDS - 1 });
    }
    Ok(())
}

/// How many of `nodes` are above the base, and in how many layers together: of so many drawn, of more in proportion, so
/// that billions are predicted at once.
fn raised(params: build::Params, nodes: Range<usize>) -> (usize, usize) {
    const DRAWN: usize = 1 << 22;
    let drawn = nodes.len().min(DRAWN);
    let heights =
        (nodes.start..nodes.start + drawn).map(|node| usize::from(build::height(params, node as u32)));
    let (pilots, blocks) = heights.fold((0, 0), |(p, b), height| (p + usize::from(height > 0), b + height));
    let all = |of_drawn: usize| (of_drawn as u128 * nodes.len() as u128 / drawn.max(1) as u128) as usize;
    (all(pilots), all(blocks))
}

impl Writer {
    /// What adding `count` vectors takes.
    pub(crate) fn need(&self, params: &Params, count: usize, own_ids: bool, workers: usize) -> Need {
        let State { space, coded, listed, .. } = &self.state;
        let part = match params.kind {
            Kind::Ivf => Listed::part(listed.as_deref(), params, space, (space.len(), count), false, workers),
            _ => Coded::part(coded.as_ref(), params.code, space, count),
        };
        self.need_beside(part, params, count, own_ids, workers)
    }

    /// What adding `count` vectors takes, with what codes or lists take of it.
    fn need_beside(&self, part: Part, params: &Params, count: usize, own_ids: bool, workers: usize) -> Need {
        let State { space, graph, ids, .. } = &self.state;
        let all = space.len() + count;
        let (now, known) = (self.state.owned_bytes(), self.known_bytes());
        let nodes = if params.kind.is_graph() { count } else { 0 };
        let raised = raised(build_params(params), space.len()..space.len() + nodes);
        let written = own_ids || !ids.is_empty();
        let columns = space.growth(count)
            + graph.growth(nodes, raised)
            + ids.growth(if written { all - ids.len() } else { 0 });
        let linking = |count| match params.kind {
            Kind::Hnsw => build::bytes(build_params(params), count, workers),
            Kind::Flat | Kind::Ivf => 0,
        };
        // The call's own: heights, the ids in the type they are kept in.
        let call = nodes + if own_ids { 8 * count } else { 0 };
        let map = match &self.rows {
            _ if !own_ids => 0,
            Some(rows) if self.state.len() + count <= rows.capacity() => known,
            _ => table_bytes::<(i64, u32)>(self.state.len() + count),
        };
        let distinct = if own_ids { table_bytes::<i64>(count) } else { 0 };
        let grown = if map == known { 0 } else { known };
        let checking = now + map + grown + distinct;
        let learning = columns.held + columns.replaced + part.growth.replaced + part.learning + map;
        let held = columns.held + part.growth.held + map;
        let replaced = columns.replaced + part.growth.replaced;
        // The first batch is linked while readers still have what is replaced.
        let linking = (replaced + linking(space.len())).max(linking(all));
        let filling = held + linking + part.filling;
        Need { held, peak: call + checking.max(learning).max(filling) }
    }

    /// Bytes of the map of ids.
    pub(crate) fn known_bytes(&self) -> usize {
        let held = |capacity| if capacity == 0 { 0 } else { table_bytes::<(i64, u32)>(capacity) };
        self.rows.as_ref().map_or(0, |rows| held(rows.capacity()))
    }
}

/// Bytes of a hash table with room for `entries`: a power of two of places, seven in eight of which are used at most,
/// with a byte each beside.
fn table_bytes<T>(entries: usize) -> usize {
    let places = (entries.saturating_mul(8) / 7).max(4).next_power_of_two();
    places.saturating_mul(size_of::<T>() + 1)
}
