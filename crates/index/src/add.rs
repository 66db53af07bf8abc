//! Adding vectors: check everything, reserve all memory, append, link; publish batch by batch.

use crate::error::AddError;
use crate::executor::Executor;
use crate::hnsw::{Graph, build};
use crate::index::{Index, State, Writer};
use crate::memory::OutOfMemory;
use crate::params::{Kind, Params};
use crate::pool::IDS;
use crate::search::Counts;
use crate::space::Compare;
use crate::vectors::Vectors;
use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::atomic::Ordering;

impl Index {
    /// Adds vectors, with ids if given (one each, unique), else numbered on from the first. Searches run meanwhile, and
    /// find those that are in.
    ///
    /// HNSW: `proceed` hears before each batch how many of them are in, and may stop there; a flat index is filled at
    /// once. The index that results depends on the vectors, the parameters and the division into calls, never on the
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
        let mut writer = self.writer()?;
        let before = writer.state.space.len();
        let count = writer.state.space.check(vectors)?;
        if count == 0 {
            return Err(AddError::Empty);
        }
        if count > IDS - 1 - before {
            return Err(AddError::Full { len: before, more: count, max: IDS - 1 });
        }
        let ids = writer.check_ids(count, ids)?;
        let build = build_params(&self.params);
        let heights: Vec<u8> = match self.params.kind {
            Kind::Flat => Vec::new(),
            Kind::Hnsw => (before..before + count).map(|node| build::height(build, node as u32)).collect(),
        };
        let Writer { state, known } = &mut *writer;
        state.space.reserve(count)?;
        state.graph.reserve(&heights)?;
        state.ids.reserve(ids.len())?;

        let ids_before = state.ids.len();
        state.space.append(vectors);
        state.ids.extend(&ids);
        match known {
            // `check_ids` made room.
            Some(known) if !ids.is_empty() => known.extend(&ids),
            // Positions serve as ids: a set of them would be out of date after this call.
            _ => *known = None,
        }
        let bytes = known.as_ref().map_or(0, |set| set.capacity() * (size_of::<i64>() + 1));
        // Relaxed: a figure that nothing else depends on.
        self.known_bytes.store(bytes, Ordering::Relaxed);
        if !self.params.kind.is_graph() {
            self.publish(state, before + count);
            return Ok(Counts::default());
        }
        state.graph.append(before as u32, &heights);
        let State { space, graph, ids, deleted } = state;
        let mut report = |graph: &Graph, done: usize| {
            if done > before {
                let view = State {
                    space: space.view(done),
                    graph: graph.view(done, graph.entry),
                    ids: ids.view(done.min(ids.len())),
                    deleted: deleted.clone(),
                };
                self.current.store(view.into());
            }
            proceed(done - before)
        };
        let (done, counts) = build::link(graph, &*space, build, before, executor, &mut report);
        if done < before + count {
            if done == before {
                // Nothing came in: positions that were to become ids stay positions.
                state.ids.truncate(ids_before);
            }
            writer.truncate(done);
            return Err(AddError::Cancelled { added: done - before, total: count });
        }
        self.publish(state, done);
        Ok(counts)
    }
}

fn build_params(params: &Params) -> build::Params {
    let Params { m, ef_construction, seed, .. } = *params;
    build::Params { m, ef_construction, seed }
}

impl Writer {
    /// The ids to append: those given, checked; none while positions serve as ids. Ids of one's own given later than
    /// the first vectors turn the positions so far into ids.
    fn check_ids(&mut self, count: usize, ids: Option<&[i64]>) -> Result<Vec<i64>, AddError> {
        let held = &self.state.ids;
        let Some(ids) = ids else {
            return if held.is_empty() { Ok(Vec::new()) } else { Err(AddError::IdsMissing) };
        };
        if ids.len() != count {
            return Err(AddError::IdsLen { ids: ids.len(), vectors: count });
        }
        let len = self.state.space.len();
        let positions = if held.is_empty() { len } else { 0 };
        if self.known.is_none() {
            self.known = Some(set(held.iter().copied().chain(0..positions as i64), len)?);
        }
        let known = self.known.get_or_insert_default();
        known.try_reserve(count).map_err(|_| no_memory_for(count))?;
        let mut new = set(std::iter::empty(), count)?;
        if let Some(&id) = ids.iter().find(|id| known.contains(id) || !new.insert(**id)) {
            return Err(AddError::DuplicateId { id });
        }
        let mut all = Vec::new();
        all.try_reserve_exact(positions + count).map_err(|_| no_memory_for(positions + count))?;
        all.extend((0..positions as i64).chain(ids.iter().copied()));
        Ok(all)
    }

    /// Forgets the vectors from `count` on, which nothing links to and no reader was shown.
    fn truncate(&mut self, count: usize) {
        self.state.space.truncate(count);
        self.state.graph.truncate(count);
        if !self.state.ids.is_empty() {
            self.state.ids.truncate(count);
            self.known = None;
        }
    }
}

/// A set of `ids`, with room for `len`.
fn set(ids: impl Iterator<Item = i64>, len: usize) -> Result<HashSet<i64>, OutOfMemory> {
    let mut set = HashSet::new();
    set.try_reserve(len).map_err(|_| no_memory_for(len))?;
    set.extend(ids);
    Ok(set)
}

fn no_memory_for(ids: usize) -> OutOfMemory {
    OutOfMemory { bytes: ids * size_of::<i64>() }
}
