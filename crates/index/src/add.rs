//! Adding vectors and replacing them: check everything, reserve all memory, append, link; publish batch by batch.

use crate::coded::{CodeFailure, Coded};
use crate::error::AddError;
use crate::executor::Executor;
use crate::filter::RowSet;
use crate::hnsw::{Graph, build, repair};
use crate::index::{Index, State, Writer, version};
use crate::listed::Listed;
use crate::memory::OutOfMemory;
use crate::params::{Kind, Params};
use crate::predict::fits;
use crate::search::Counts;
use crate::space::Compare;
use crate::vectors::Vectors;
use std::collections::HashMap;
use std::ops::ControlFlow;

/// After an add of one in so many vectors, those that no link leads to are looked for and linked.
const CONNECT_SHARE: usize = 8;

impl Index {
    /// Adds vectors, with ids if given (one each, unique), else numbered on from the first. Searches run meanwhile, and
    /// find those that are in.
    ///
    /// HNSW: `proceed` hears before each batch how many of them are in, and may stop there; a flat index is filled at
    /// once. IVF: it hears 0 until all are in, and may stop till then, so that none is. The index that results depends on the vectors, the parameters and the division into calls, never on the
    /// executor.
    ///
    /// # Errors
    /// If anything about the vectors or ids is wrong, nothing is added. If `proceed` stops, those that were in stay in
    /// and [`AddError::Cancelled`] says how many.
    pub fn add(
        &self,
        vectors: Vectors<'_>,
        ids: Option<&[i64]>,
        executor: &dyn Executor,
        proceed: &mut dyn FnMut(usize) -> ControlFlow<()>,
    ) -> Result<Counts, AddError> {
        self.insert(vectors, ids, false, executor, proceed)
    }

    /// As [`add`](Self::add), but a vector whose id is there already replaces the one that had it. Every search finds
    /// either the old or the new one.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub fn upsert(
        &self,
        vectors: Vectors<'_>,
        ids: &[i64],
        executor: &dyn Executor,
        proceed: &mut dyn FnMut(usize) -> ControlFlow<()>,
    ) -> Result<Counts, AddError> {
        self.insert(vectors, Some(ids), true, executor, proceed)
    }

    /// Makes room for `count` vectors that will come in several calls: without, memory grows by halves, and is copied.
    ///
    /// # Errors
    /// If there is no memory, there would be more vectors than an index holds, or an earlier change panicked.
    pub fn reserve(&self, count: usize) -> Result<(), AddError> {
        let mut writer = self.writer()?;
        let before = writer.state.space.len();
        fits(before, count)?;
        let heights = self.heights(before, count)?;
        let Writer { state, .. } = &mut *writer;
        state.space.reserve(count)?;
        state.graph.reserve(&heights)?;
        if let Some(coded) = &mut state.coded {
            coded.reserve(before + count)?;
        }
        // Views of the memory from before keep it alive.
        self.publish(&writer);
        Ok(())
    }

    fn insert(
        &self,
        vectors: Vectors<'_>,
        ids: Option<&[i64]>,
        replace: bool,
        executor: &dyn Executor,
        proceed: &mut dyn FnMut(usize) -> ControlFlow<()>,
    ) -> Result<Counts, AddError> {
        let mut writer = self.writer()?;
        let before = writer.state.space.len();
        let count = writer.state.space.check(vectors)?;
        if count == 0 {
            return Err(AddError::Empty);
        }
        fits(before, count)?;
        if let Some(limit) = self.memory_limit() {
            let need = writer.need(&self.params, count, ids.is_some(), executor.workers());
            if need.peak > limit {
                return Err(AddError::Limit { limit, needs: need.peak, vectors: before + count });
            }
        }
        let heights = self.heights(before, count)?;
        let ids = writer.new_ids(count, ids, replace)?;
        // The row that each new one replaces, with the new one.
        let replaced = writer.replaced(&ids);
        let build = build_params(&self.params);
        let positions = writer.positions(&ids);
        let Writer { state, .. } = &mut *writer;
        state.space.reserve(count)?;
        state.graph.reserve(&heights)?;
        state.ids.reserve(if ids.is_empty() { 0 } else { positions + count })?;

        state.space.append(vectors);
        state.ids.extend_with(positions, |position| position as i64);
        state.ids.extend(&ids);
        let State { space, coded, listed, .. } = state;
        let made = if self.params.kind == Kind::Ivf {
            Listed::update(listed, &self.params, space, before, executor, proceed)
        } else {
            Coded::update(coded, self.params.code, space, self.params.seed, executor)
        };
        if let Err(failure) = made {
            state.space.truncate(before);
            if let Some(coded) = &mut state.coded {
                coded.truncate(before);
            }
            state.ids.truncate(state.ids.len() - positions - ids.len());
            return Err(match failure {
                CodeFailure::Cancelled => AddError::Cancelled { added: 0, total: count },
                CodeFailure::Code(error) => error.into(),
                CodeFailure::Memory(error) => error.into(),
            });
        }
        let deleted = state.deleted.clone();
        let gone = |done: usize| {
            let rows: Vec<u32> =
                replaced.iter().filter(|(new, _)| (*new as usize) < done).map(|r| r.1).collect();
            deleted.with(&rows)
        };
        let (done, counts) = if self.params.kind.is_graph() {
            state.graph.append(before as u32, &heights);
            let State { space, coded, graph, ids, .. } = state;
            let mut report = |graph: &Graph, done: usize| {
                if done > before {
                    let view = State {
                        space: space.view(done),
                        coded: coded.as_ref().map(|coded| coded.view(done)),
                        listed: None,
                        graph: graph.view(done, graph.entry),
                        ids: ids.view(done.min(ids.len())),
                        deleted: gone(done),
                        next_id: None,
                        version: version(),
                    };
                    self.current.store(view.into());
                }
                proceed(done - before)
            };
            match coded.as_ref().filter(|coded| coded.builds()) {
                Some(coded) => link(graph, coded, &deleted, build, before, executor, &mut report),
                None => link(graph, &*space, &deleted, build, before, executor, &mut report),
            }
        } else {
            (before + count, Counts::default())
        };
        state.deleted = gone(done);
        let removed = state.deleted.count() - deleted.count();
        if done == before {
            // Nothing came in: positions that were to become ids stay positions.
            state.ids.truncate(state.ids.len() - positions - ids.len());
        }
        writer.settle(before, done, &ids);
        self.publish(&writer);
        self.tuned.note_removed(removed);
        if done < before + count {
            return Err(AddError::Cancelled { added: done - before, total: count });
        }
        Ok(counts)
    }
}

impl Index {
    /// How many layers above the base each of `count` new nodes is in; empty without a graph.
    pub(crate) fn heights(&self, before: usize, count: usize) -> Result<Vec<u8>, OutOfMemory> {
        let params = build_params(&self.params);
        let count = if self.params.kind.is_graph() { count } else { 0 };
        let mut heights = Vec::new();
        heights.try_reserve_exact(count).map_err(|_| OutOfMemory { bytes: count })?;
        heights.extend((before..before + count).map(|node| build::height(params, node as u32)));
        Ok(heights)
    }
}

/// Links the nodes from `before` on; how many nodes are linked then, and the work done.
fn link<C: Compare>(
    graph: &mut Graph,
    space: &C,
    deleted: &RowSet,
    params: build::Params,
    before: usize,
    executor: &dyn Executor,
    proceed: &mut dyn FnMut(&Graph, usize) -> ControlFlow<()>,
) -> (usize, Counts) {
    let linked = build::link(graph, space, params, before, executor, proceed);
    let all = space.len();
    if linked.0 == all && (all - before) * CONNECT_SHARE >= all {
        repair::connect(graph, space, deleted, params);
    }
    linked
}

pub(crate) fn build_params(params: &Params) -> build::Params {
    let Params { m, ef_construction, seed, .. } = *params;
    build::Params { m, ef_construction, seed }
}

impl Writer {
    /// The ids to append: those given, checked, or numbers; none while positions serve as ids.
    fn new_ids(&mut self, count: usize, ids: Option<&[i64]>, replace: bool) -> Result<Vec<i64>, AddError> {
        let Some(ids) = ids else {
            return match self.state.next_id {
                Some(next) => Ok((next..next + count as i64).collect()),
                None if self.state.ids.is_empty() => Ok(Vec::new()),
                None => Err(AddError::IdsMissing),
            };
        };
        if ids.len() != count {
            return Err(AddError::IdsLen { ids: ids.len(), vectors: count });
        }
        self.know()?;
        let known = self.rows.get_or_insert_default();
        known.try_reserve(count).map_err(|_| no_memory_for(count))?;
        let mut new = std::collections::HashSet::new();
        new.try_reserve(count).map_err(|_| no_memory_for(count))?;
        let twice = |id: &&i64| !new.insert(**id) || (!replace && known.contains_key(*id));
        if let Some(&id) = ids.iter().find(twice) {
            return Err(AddError::DuplicateId { id });
        }
        Ok(ids.to_vec())
    }

    /// How many positions are to become ids before ids of one's own can follow them.
    fn positions(&self, ids: &[i64]) -> usize {
        if ids.is_empty() || !self.state.ids.is_empty() { 0 } else { self.state.space.len() }
    }

    /// For each of the new `ids` that is there: the new row and the one that it replaces.
    fn replaced(&self, ids: &[i64]) -> Vec<(u32, u32)> {
        let first = self.state.space.len() as u32;
        let Some(rows) = &self.rows else { return Vec::new() };
        let pairs = (first..).zip(ids);
        pairs.filter_map(|(row, id)| rows.get(id).map(|&old| (row, old))).collect()
    }

    /// Makes the map from ids to rows, if there is none.
    pub(crate) fn know(&mut self) -> Result<(), OutOfMemory> {
        if self.rows.is_none() {
            let State { space, deleted, .. } = &self.state;
            let mut rows = HashMap::new();
            rows.try_reserve(self.state.len()).map_err(|_| no_memory_for(self.state.len()))?;
            let live = (0..space.len() as u32).filter(|&row| !deleted.contains(row));
            rows.extend(live.map(|row| (self.state.id(row), row)));
            self.rows = Some(rows);
        }
        Ok(())
    }

    /// Forgets the rows from `done` on, which nothing links to and no reader was shown, and notes the `ids` of the others
    /// from `before` on.
    fn settle(&mut self, before: usize, done: usize, ids: &[i64]) {
        let state = &mut self.state;
        state.space.truncate(done);
        if let Some(coded) = &mut state.coded {
            coded.truncate(done);
        }
        if !state.graph.base.is_empty() {
            state.graph.truncate(done);
        }
        state.ids.truncate(done);
        let added = done - before;
        if ids.is_empty() {
            // Positions serve as ids: a map of them would be out of date.
            self.rows = None;
            return;
        }
        // Numbering goes on after numbers; ids of one's own end it, which could be what it comes to.
        let numbers = |&next: &i64| ids.iter().copied().eq(next..next + ids.len() as i64);
        state.next_id = state.next_id.filter(numbers).map(|next| next + added as i64);
        if let Some(rows) = &mut self.rows {
            rows.extend(ids[..added].iter().copied().zip(before as u32..));
        }
    }
}

fn no_memory_for(ids: usize) -> OutOfMemory {
    OutOfMemory { bytes: ids.saturating_mul(size_of::<(i64, u32)>() + 1) }
}
