//! Removing vectors: at once for searches, and for the graph and the memory when it is repaired.

use crate::add::build_params;
use crate::error::RemoveError;
use crate::executor::Executor;
use crate::filter::RowSet;
use crate::hnsw::repair::{self, Repaired};
use crate::index::{Index, State, Writer, version};
use crate::memory::Column;
use crate::space::Compare;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Rows are dropped when one in so many was deleted.
const DROP_SHARE: usize = 8;

impl Index {
    /// Removes the vectors with `ids`; those that are not there are passed over. No later search finds them. Their memory
    /// and their part in the graph stay until [`repair`](Self::repair). Returns how many were removed.
    ///
    /// # Errors
    /// If there is no memory, or an earlier change panicked.
    pub fn remove(&self, ids: &[i64]) -> Result<usize, RemoveError> {
        let mut writer = self.writer()?;
        let rows = if writer.state.ids.is_empty() {
            // Positions are ids: no map of them is needed, and one that a refused change left would be out of date.
            writer.rows = None;
            let State { space, deleted, .. } = &writer.state;
            let live = |row: &u32| (*row as usize) < space.len() && !deleted.contains(*row);
            let mut rows: Vec<u32> =
                ids.iter().filter_map(|&id| u32::try_from(id).ok()).filter(live).collect();
            rows.sort_unstable();
            rows.dedup();
            rows
        } else {
            writer.know()?;
            let known = writer.rows.get_or_insert_default();
            ids.iter().filter_map(|id| known.remove(id)).collect()
        };
        writer.state.deleted = writer.state.deleted.with(&rows);
        self.publish(&writer);
        self.tuned.note_removed(rows.len());
        Ok(rows.len())
    }

    /// Mends what removals left: links that lead to removed vectors are replaced, vectors that no link leads to any
    /// more are linked again, and the rows of removed vectors are dropped once they are an eighth of all. Searches run
    /// meanwhile. `proceed` hears the nodes done of those there are, and may stop; what is done then stays done.
    ///
    /// # Errors
    /// If there is no memory to drop rows (the rest is done then), or an earlier change panicked; and if the index reads
    /// its links from a file and the [`memory_limit`](Self::memory_limit) has no room for a copy: nothing is done then.
    pub fn repair(
        &self,
        executor: &dyn Executor,
        proceed: &mut dyn FnMut(usize, usize) -> ControlFlow<()>,
    ) -> Result<Repaired, RemoveError> {
        let mut writer = self.writer()?;
        let mut repaired = self.mend(&mut writer, executor, proceed)?;
        if repaired.finished && self.due(&writer.state) {
            repaired.dropped = writer.state.deleted.count();
            writer.state = writer.state.compact(0, &[])?;
            writer.rows = None;
            self.publish(&writer);
        }
        Ok(repaired)
    }

    /// Mends the links.
    fn mend(
        &self,
        writer: &mut Writer,
        executor: &dyn Executor,
        proceed: &mut dyn FnMut(usize, usize) -> ControlFlow<()>,
    ) -> Result<Repaired, RemoveError> {
        let (held, copy) = (writer.state.owned_bytes(), writer.state.graph.own_bytes());
        if let Some(limit) = self.memory_limit().filter(|&limit| copy > 0 && held + copy > limit) {
            return Err(RemoveError::Limit { limit, needs: held + copy });
        }
        let State { space, coded, graph, deleted, .. } = &mut writer.state;
        graph.own()?;
        if !self.params.kind.is_graph() {
            return Ok(Repaired { finished: true, ..Repaired::default() });
        }
        let params = build_params(&self.params);
        let repaired = match coded.as_ref().filter(|coded| coded.builds()) {
            Some(coded) => repair::repair(graph, coded, deleted, params, executor, proceed),
            None => repair::repair(graph, &*space, deleted, params, executor, proceed),
        };
        self.publish(writer);
        Ok(repaired)
    }

    /// Numbers the vectors from 0 on in their order, without those that were removed, and makes room for `more`: nothing is
    /// copied twice when these are added. Links are mended as by [`repair`](Self::repair). The former ids, in that order.
    ///
    /// # Errors
    /// As [`repair`](Self::repair), and if `proceed` stops it: the vectors keep their ids then.
    pub fn renumber(
        &self,
        more: usize,
        executor: &dyn Executor,
        proceed: &mut dyn FnMut(usize, usize) -> ControlFlow<()>,
    ) -> Result<Vec<i64>, RemoveError> {
        let mut writer = self.writer()?;
        if writer.state.is_numbered() {
            return Ok((0..writer.state.len() as i64).collect());
        }
        if !self.mend(&mut writer, executor, proceed)?.finished {
            return Err(RemoveError::Stopped);
        }
        let heights = self.heights(writer.state.len(), more)?;
        let mut state = writer.state.compact(more, &heights)?;
        let former = state.ids.to_vec();
        (state.ids, state.next_id) = (Column::new(), None);
        (writer.state, writer.rows) = (state, None);
        self.publish(&writer);
        Ok(former)
    }

    /// Whether so many vectors were removed that a [`repair`](Self::repair) would drop their rows: an eighth of all, and
    /// the [`memory_limit`](Self::memory_limit) has room for a copy of the others.
    pub fn repair_due(&self) -> bool {
        self.due(&self.current.load())
    }

    /// Whether it is time to drop the rows of what was removed, and the limit has room for a copy of the others.
    fn due(&self, state: &State) -> bool {
        let (gone, all) = (state.deleted.count(), state.space.len());
        let room = || {
            let copy = state.bytes() as u128 * (all - gone) as u128 / all as u128;
            let held = state.owned_bytes() + state.graph.own_bytes();
            self.memory_limit().is_none_or(|limit| held as u128 + copy <= limit as u128)
        };
        gone > 0 && gone * DROP_SHARE >= all && room()
    }

    /// Live vectors that no walk of the graph can reach; 0 after [`repair`](Self::repair) and after a large `add`.
    ///
    /// # Errors
    /// If an earlier change panicked.
    pub fn unreachable(&self) -> Result<usize, RemoveError> {
        let writer = self.writer()?;
        let State { space, graph, deleted, .. } = &writer.state;
        let live = space.len() - deleted.count();
        Ok(if graph.base.is_empty() { 0 } else { live - repair::reached(graph, deleted).1 })
    }
}

impl State {
    /// Whether vectors are numbered from 0 on, those to come too, and none was removed.
    pub(crate) fn is_numbered(&self) -> bool {
        self.ids.is_empty() && self.next_id.is_none() && self.deleted.count() == 0
    }

    /// The same vectors without the deleted rows; those that stay keep their order, their ids and their links. With room
    /// for `more`, of these heights in a graph.
    fn compact(&self, more: usize, heights: &[u8]) -> Result<State, crate::OutOfMemory> {
        let rows: Vec<u32> =
            (0..self.space.len() as u32).filter(|&row| !self.deleted.contains(row)).collect();
        let mut ids = Column::new();
        ids.reserve(rows.len())?;
        ids.extend_with(rows.len(), |i| self.id(rows[i]));
        // Positions that served as ids are ids from now on, and new vectors are numbered on.
        let next_id = if self.ids.is_empty() { Some(self.space.len() as i64) } else { self.next_id };
        let graph = if self.graph.base.is_empty() {
            crate::hnsw::Graph::new(self.graph.m)
        } else {
            self.graph.keep(&rows, heights)?
        };
        let coded = self.coded.as_ref().map(|coded| coded.keep(&rows, more)).transpose()?;
        let listed = self.listed.as_ref().map(|listed| listed.keep(&rows, self.space.len())).transpose()?;
        Ok(State {
            space: self.space.keep(&rows, more)?,
            coded,
            listed: listed.map(Arc::new),
            graph,
            ids,
            deleted: RowSet::default(),
            next_id,
            version: version(),
        })
    }
}
