//! An index: vectors in a space, their ids, and for [`Kind::Hnsw`] a graph over them. The same verbs for every kind.

use crate::error::{AddError, CreateError, SearchError};
use crate::executor::Executor;
use crate::flat;
use crate::hnsw::search::{Counts, Walker};
use crate::hnsw::{Graph, build};
use crate::memory::{Column, OutOfMemory};
use crate::pool::{IDS, Pool};
use crate::space::{Dtype, Metric, Probe, Space, Vectors};
use lanewise_kernels::{Kernels, Slot};
use std::collections::HashSet;
use std::ops::ControlFlow;

/// How an index finds what is near.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// By comparing every vector: exact.
    Flat = 0,
    /// By walking a graph (HNSW): approximate, in time that hardly grows with the number of vectors.
    Hnsw = 1,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Kind; 2] = [Kind::Flat, Kind::Hnsw];

    /// The name users write.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Flat => "flat",
            Kind::Hnsw => "hnsw",
        }
    }
}

/// Searches that keep one in so many of all vectors are exact.
const EXACT_SHARE: usize = 8;

/// What an index is made for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Params {
    /// Dimensions of a vector; bits for [`Dtype::Bits`].
    pub dim: usize,
    /// How distances are measured.
    pub metric: Metric,
    /// Element type of the stored vectors.
    pub dtype: Dtype,
    /// How near vectors are found.
    pub kind: Kind,
    /// HNSW: links a node has in upper layers; twice that in the base layer.
    pub m: usize,
    /// HNSW: candidates kept while a vector is inserted.
    pub ef_construction: usize,
    /// HNSW: what the layers are drawn from.
    pub seed: u64,
}

impl Params {
    /// The usual choices for vectors of `dim` dimensions: HNSW over floats by L2, `m` 16, `ef_construction` 200.
    pub fn new(dim: usize) -> Self {
        Params {
            dim,
            metric: Metric::L2,
            dtype: Dtype::F32,
            kind: Kind::Hnsw,
            m: 16,
            ef_construction: 200,
            seed: 0,
        }
    }
}

/// The results of one query, nearest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Neighbors {
    /// Ids of the vectors found.
    pub ids: Vec<i64>,
    /// Their distances, ascending, by the index's metric.
    pub distances: Vec<f32>,
}

/// The memory of searches, reused from one to the next; not tied to an index. One per thread.
#[derive(Default)]
pub struct Scratch {
    walker: Walker,
    probes: Vec<Probe>,
    pools: Vec<Pool>,
}

/// What an index holds and what it takes.
#[derive(Clone, Debug, PartialEq)]
pub struct Stats {
    /// Number of vectors.
    pub len: usize,
    /// Bytes of the vectors with their padding and norms.
    pub vector_bytes: usize,
    /// Bytes of the graph's links.
    pub graph_bytes: usize,
    /// Bytes of ids given by the user.
    pub id_bytes: usize,
    /// Layers of the graph above the base.
    pub layers: usize,
}

/// A set of vectors that can be searched.
pub struct Index {
    pub(crate) params: Params,
    pub(crate) space: Space,
    pub(crate) graph: Graph,
    /// Ids given by the user, in the order of the vectors; empty if a vector's id is its position.
    pub(crate) ids: Column<i64>,
    /// `ids` as a set, made when it is first needed.
    known: Option<HashSet<i64>>,
}

impl Index {
    /// An empty index.
    ///
    /// # Errors
    /// If a parameter is out of range or metric and element type do not go together; and if `LANEWISE_ISA` is wrong.
    pub fn new(params: Params) -> Result<Self, CreateError> {
        Self::with_kernels(params, Kernels::get()?)
    }

    /// As [`new`](Self::new), with a given set of kernels.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn with_kernels(params: Params, kernels: Kernels) -> Result<Self, CreateError> {
        if params.kind == Kind::Hnsw && !(2..=512).contains(&params.m) {
            return Err(CreateError::M { m: params.m });
        }
        if params.kind == Kind::Hnsw && !(1..=65_536).contains(&params.ef_construction) {
            return Err(CreateError::EfConstruction { ef: params.ef_construction });
        }
        let space = Space::new(params.dtype, params.metric, params.dim, kernels)?;
        Ok(Index { params, space, graph: Graph::new(params.m), ids: Column::new(), known: None })
    }

    /// What the index was made for.
    pub fn params(&self) -> &Params {
        &self.params
    }

    /// Number of vectors.
    pub fn len(&self) -> usize {
        self.space.len()
    }

    /// Whether there is no vector.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What the index holds, and the bytes of each part, in memory or in the file it was opened from.
    pub fn stats(&self) -> Stats {
        Stats {
            len: self.len(),
            vector_bytes: self.space.rows.bytes().len() + self.space.corrections.bytes().len(),
            graph_bytes: [&self.graph.base, &self.graph.pilots, &self.graph.starts, &self.graph.upper]
                .map(|column| column.bytes().len())
                .iter()
                .sum(),
            id_bytes: self.ids.bytes().len(),
            layers: self.graph.top(),
        }
    }

    /// Bytes of memory of its own; what an opened file holds is not counted.
    pub fn owned_bytes(&self) -> usize {
        let known = self.known.as_ref().map_or(0, |set| set.capacity() * (size_of::<i64>() + 1));
        self.space.owned_bytes() + self.graph.owned_bytes() + self.ids.owned_bytes() + known
    }

    /// The instruction set of each kernel slot.
    pub fn slots(&self) -> Vec<Slot> {
        self.space.kernels().slots()
    }

    /// Name of the instruction-set level in use.
    pub fn level(&self) -> &'static str {
        self.space.kernels().level()
    }

    /// Adds vectors, with ids if given (one each, unique), else numbered on from the first.
    ///
    /// HNSW: `proceed` hears before each batch how many of them are in, and may stop there; a flat index is filled at
    /// once. The index that results depends on
    /// the vectors, the parameters and the division into calls, never on the executor.
    ///
    /// # Errors
    /// If anything about the vectors or ids is wrong, nothing is added. If `proceed` stops, those that were in stay in
    /// and [`AddError::Cancelled`] says how many.
    pub fn add(
        &mut self,
        vectors: Vectors<'_>,
        ids: Option<&[i64]>,
        executor: &dyn Executor,
        proceed: &mut dyn FnMut(usize) -> ControlFlow<()>,
    ) -> Result<Counts, AddError> {
        let before = self.len();
        let count = self.space.check(vectors)?;
        if count == 0 {
            return Err(AddError::Empty);
        }
        if count > IDS - 1 - before {
            return Err(AddError::Full { len: before, more: count, max: IDS - 1 });
        }
        let ids = self.check_ids(count, ids)?;
        let build = self.build_params();
        let heights: Vec<u8> = match self.params.kind {
            Kind::Flat => Vec::new(),
            Kind::Hnsw => (before..before + count).map(|node| build::height(build, node as u32)).collect(),
        };
        self.space.reserve(count)?;
        self.graph.reserve(&heights)?;
        self.ids.reserve(ids.len())?;

        let ids_before = self.ids.len();
        self.space.append(vectors);
        self.ids.owned().extend(&ids);
        match &mut self.known {
            // `check_ids` made room.
            Some(known) if !ids.is_empty() => known.extend(&ids),
            // Positions serve as ids: a set of them would be out of date after this call.
            _ => self.known = None,
        }
        if self.params.kind == Kind::Flat {
            return Ok(Counts::default());
        }
        self.graph.append(before as u32, &heights);
        let mut report = |done: usize| proceed(done - before);
        let (done, counts) = build::link(&mut self.graph, &self.space, build, before, executor, &mut report);
        if done < before + count {
            self.truncate(done);
            if done == before {
                // Nothing came in: positions that were to become ids stay positions.
                self.ids.owned().truncate(ids_before);
            }
            return Err(AddError::Cancelled { added: done - before, total: count });
        }
        Ok(counts)
    }

    fn build_params(&self) -> build::Params {
        let Params { m, ef_construction, seed, .. } = self.params;
        build::Params { m, ef_construction, seed }
    }

    /// The ids to append: those given, checked; none while positions serve as ids. Ids of one's own given later than
    /// the first vectors turn the positions so far into ids.
    fn check_ids(&mut self, count: usize, ids: Option<&[i64]>) -> Result<Vec<i64>, AddError> {
        let Some(ids) = ids else {
            return if self.ids.is_empty() { Ok(Vec::new()) } else { Err(AddError::IdsMissing) };
        };
        if ids.len() != count {
            return Err(AddError::IdsLen { ids: ids.len(), vectors: count });
        }
        let positions = if self.ids.is_empty() { self.len() } else { 0 };
        if self.known.is_none() {
            self.known = Some(set(self.ids.iter().copied().chain(0..positions as i64), self.len())?);
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

    /// Forgets the vectors from `count` on, which nothing links to.
    fn truncate(&mut self, count: usize) {
        self.space.truncate(count);
        self.graph.truncate(count);
        if !self.ids.is_empty() {
            self.ids.owned().truncate(count);
            self.known = None;
        }
    }

    /// The min(k, len) nearest vectors to each query. `ef_search` is the number of candidates that a graph search keeps;
    /// less than `k` counts as `k`. Exact if the kind is flat.
    ///
    /// # Errors
    /// If anything about the queries is wrong, or `k` or `ef_search` is zero.
    pub fn search(
        &self,
        queries: Vectors<'_>,
        k: usize,
        ef_search: usize,
        scratch: &mut Scratch,
    ) -> Result<(Vec<Neighbors>, Counts), SearchError> {
        let count = self.check_queries(queries, k, ef_search)?;
        let k = k.min(self.len());
        let ef = ef_search.max(k);
        // A walk that keeps an eighth of all vectors compares most of them, at random places: in order is cheaper.
        let graph = self.params.kind == Kind::Hnsw && k > 0 && ef < self.len() / EXACT_SHARE;
        let mut results = Vec::with_capacity(count);
        let mut counts = Counts::default();
        // Together only as many as share a block of rows while it is in cache.
        let together = if graph { 1 } else { 32 };
        for first in (0..count).step_by(together) {
            let range = first..count.min(first + together);
            scratch.probes.resize_with(range.len().max(scratch.probes.len()), Probe::new);
            for (probe, i) in scratch.probes.iter_mut().zip(range.clone()) {
                self.space.prepare(queries.slice(self.params.dim, i..i + 1), probe);
            }
            if graph {
                scratch.walker.counts = Counts::default();
                let walker = &mut scratch.walker;
                walker.search(&self.graph, &self.space, &scratch.probes[0], ef);
                counts.hops += walker.counts.hops;
                counts.distances += walker.counts.distances;
                if walker.pool.entries().len() >= k {
                    results.push(self.neighbors(&walker.pool, k));
                    continue;
                }
                // The graph did not reach k vectors (many identical ones can hide each other): exact then.
            }
            let probes = &scratch.probes[..range.len()];
            scratch.pools.resize_with(range.len().max(scratch.pools.len()), Pool::default);
            flat::search(&self.space, probes, k, &mut scratch.pools[..range.len()]);
            counts.distances += (self.len() * range.len()) as u64;
            results.extend(scratch.pools[..range.len()].iter().map(|pool| self.neighbors(pool, k)));
        }
        Ok((results, counts))
    }

    /// Checks queries without running them; their number.
    ///
    /// # Errors
    /// As [`search`](Self::search).
    pub fn check_queries(
        &self,
        queries: Vectors<'_>,
        k: usize,
        ef_search: usize,
    ) -> Result<usize, SearchError> {
        let count = self.space.check(queries)?;
        match () {
            () if count == 0 => Err(SearchError::Empty),
            () if k == 0 => Err(SearchError::K),
            () if ef_search == 0 => Err(SearchError::EfSearch),
            () => Ok(count),
        }
    }

    fn neighbors(&self, pool: &Pool, k: usize) -> Neighbors {
        let best = &pool.entries()[..k.min(pool.entries().len())];
        let id = |position: u32| match self.ids.get(position as usize) {
            Some(&id) => id,
            None => i64::from(position),
        };
        Neighbors {
            ids: best.iter().map(|e| id(e.id())).collect(),
            distances: best.iter().map(|e| self.space.distance(e.key())).collect(),
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
