//! An index: vectors in a space, their ids, and for [`Kind::Hnsw`] a graph over them, for [`Kind::Ivf`] lists of them.
//! The same verbs for every kind.
//!
//! Readers and one writer at a time use an index together, and readers never wait: the writer has a state of its own,
//! behind a lock, and publishes views of it. A reader works on one view from start to end. What a view shows never moves
//! and never changes, but for the graph's links (see `hnsw::graph`); what the writer appends lies beyond it, and in lists
//! is passed over (see `ivf`).
//!
//! | | waits for | sees |
//! |---|---|---|
//! | `search`, `reader`, `len`, `stats` | nothing | the view published last |
//! | `add`, `upsert`, `remove`, `repair` | another change, `image` | its own state |
//! | `image` (save) | a change | the writer's state |
//! | dropping the last reader of an old view | nothing | frees memory that the index has outgrown |

use crate::calibrate::Tuned;
use crate::coded::Coded;
use crate::error::{Broken, CreateError};
use crate::filter::RowSet;
use crate::hnsw::Graph;
use crate::listed::Listed;
use crate::memory::Column;
use crate::params::{Kind, Params};
use crate::search::{Reader, Scratch, Search};
use crate::space::{Compare, Space};
use crate::vectors::Vectors;
use crate::{Counts, Neighbors, SearchError};
use arc_swap::ArcSwap;
use lanewise_kernels::{Kernels, Slot};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// What an index holds and what it takes.
#[derive(Clone, Debug, PartialEq)]
pub struct Stats {
    /// Number of vectors.
    pub len: usize,
    /// Number of removed vectors whose rows are still there.
    pub deleted: usize,
    /// Bytes of the vectors with their padding and norms.
    pub vector_bytes: usize,
    /// Bytes of the traversal code's rows.
    pub code_bytes: usize,
    /// Bytes of the graph's links.
    pub graph_bytes: usize,
    /// Bytes of the lists and their centroids.
    pub list_bytes: usize,
    /// Number of lists; 0 while there are too few vectors for them.
    pub lists: usize,
    /// Bytes of ids given by the user.
    pub id_bytes: usize,
    /// Layers of the graph above the base.
    pub layers: usize,
}

/// All that a search reads: the writer's own, or a view of it.
pub(crate) struct State {
    pub(crate) space: Space,
    /// Rows of the traversal code, once there are enough vectors for one.
    pub(crate) coded: Option<Coded>,
    /// Lists of all vectors, once there are enough.
    pub(crate) listed: Option<Arc<Listed>>,
    pub(crate) graph: Graph,
    /// Ids given by the user, in the order of the vectors; empty if a vector's id is its position.
    pub(crate) ids: Column<i64>,
    /// Rows that are no longer there.
    pub(crate) deleted: RowSet,
    /// The id of the next vector, where positions that once served as ids were written down and numbering goes on.
    pub(crate) next_id: Option<i64>,
    /// Which state of which index it is: no two have the same.
    pub(crate) version: u64,
}

/// A number for a state, given once.
pub(crate) fn version() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    // Relaxed: only uniqueness matters.
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl State {
    /// Number of vectors.
    pub(crate) fn len(&self) -> usize {
        self.space.len() - self.deleted.count()
    }

    /// The id of the vector in `row`.
    #[inline]
    pub(crate) fn id(&self, row: u32) -> i64 {
        self.ids.get(row as usize).map_or(i64::from(row), |&id| id)
    }

    /// The first `count` rows, for readers; searches of the graph start at `entry`.
    pub(crate) fn view(&self, count: usize, entry: u32) -> State {
        State {
            space: self.space.view(count),
            coded: self.coded.as_ref().map(|coded| coded.view(count)),
            listed: self.listed.clone(),
            graph: self.graph.view(if self.graph.base.is_empty() { 0 } else { count }, entry),
            ids: self.ids.view(count.min(self.ids.len())),
            deleted: self.deleted.clone(),
            next_id: self.next_id,
            version: version(),
        }
    }

    /// Bytes of memory of its own.
    pub(crate) fn owned_bytes(&self) -> usize {
        self.space.owned_bytes()
            + self.coded.as_ref().map_or(0, |coded| coded.rows.owned_bytes())
            + self.listed.as_ref().map_or(0, |listed| listed.owned_bytes())
            + self.graph.owned_bytes()
            + self.ids.owned_bytes()
    }

    /// Bytes of all parts, in memory of its own or a file's.
    pub(crate) fn bytes(&self) -> usize {
        self.parts().iter().map(|part| part.len()).sum::<usize>() + self.list_bytes()
    }

    /// Bytes of the lists and their centroids.
    fn list_bytes(&self) -> usize {
        self.listed.as_ref().map_or(0, |listed| listed.ivf.bytes(self.space.len()))
    }

    /// The bytes of each part but the lists, as a file holds them.
    pub(crate) fn parts(&self) -> [&[u8]; 10] {
        let State { graph, coded, listed, .. } = self;
        let coded = coded.as_ref();
        let parameters = match (coded, listed) {
            (Some(coded), _) => &coded.parameters[..],
            (None, Some(listed)) => &listed.parameters,
            (None, None) => &[],
        };
        [
            self.space.rows.bytes(),
            self.space.corrections.bytes(),
            self.ids.bytes(),
            graph.base.bytes(),
            graph.pilots.bytes(),
            graph.starts.bytes(),
            graph.upper.bytes(),
            self.deleted.bytes(),
            parameters,
            coded.map_or(&[], |coded| coded.rows.bytes()),
        ]
    }
}

/// The writer's side of an index.
pub(crate) struct Writer {
    pub(crate) state: State,
    /// The row of each id, made when it is first needed.
    pub(crate) rows: Option<HashMap<i64, u32>>,
}

/// A set of vectors that can be searched, also while it changes: see the module's table for who waits for whom.
pub struct Index {
    pub(crate) params: Params,
    pub(crate) current: ArcSwap<State>,
    writer: Mutex<Writer>,
    /// Bytes of the writer's map of ids.
    known_bytes: AtomicUsize,
    /// The most bytes that the index may take.
    pub(crate) limit: AtomicUsize,
    pub(crate) tuned: Tuned,
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
        params.check()?;
        let space = Space::new(params.dtype, params.metric, params.dim, kernels)?;
        Ok(Self::from_state(
            params,
            State {
                space,
                coded: None,
                listed: None,
                graph: Graph::new(params.m),
                ids: Column::new(),
                deleted: RowSet::default(),
                next_id: None,
                version: version(),
            },
        ))
    }

    pub(crate) fn from_state(params: Params, state: State) -> Index {
        let view = state.view(state.space.len(), state.graph.entry);
        let writer = Writer { state, rows: None };
        Index {
            params,
            current: ArcSwap::from_pointee(view),
            writer: Mutex::new(writer),
            known_bytes: AtomicUsize::new(0),
            limit: AtomicUsize::new(usize::MAX),
            tuned: Tuned::default(),
        }
    }

    /// What the index was made for.
    pub fn params(&self) -> &Params {
        &self.params
    }

    /// The index as it is now, for searches that must all see the same.
    pub fn reader(&self) -> Reader {
        Reader::new(self.current.load_full())
    }

    /// Number of vectors.
    pub fn len(&self) -> usize {
        self.current.load().len()
    }

    /// Whether there is no vector.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// [`Reader::search`] on the index as it is now.
    ///
    /// # Errors
    /// As [`Reader::search`].
    pub fn search(
        &self,
        queries: Vectors<'_>,
        search: &Search<'_>,
        scratch: &mut Scratch,
    ) -> Result<(Vec<Neighbors>, Counts), SearchError> {
        self.reader().search(queries, search, scratch)
    }

    /// What the index holds, and the bytes of each part, in memory or in the file it was opened from.
    pub fn stats(&self) -> Stats {
        let state = self.current.load();
        let [rows, corrections, ids, links, pilots, starts, upper, _, _, code_rows] = state.parts();
        Stats {
            len: state.len(),
            deleted: state.deleted.count(),
            code_bytes: code_rows.len(),
            vector_bytes: rows.len() + corrections.len(),
            list_bytes: state.list_bytes(),
            lists: state.listed.as_ref().map_or(0, |listed| listed.ivf.lists().len()),
            graph_bytes: links.len() + pilots.len() + starts.len() + upper.len(),
            id_bytes: ids.len(),
            layers: state.graph.top(),
        }
    }

    /// Bytes of memory of its own, room to grow included; what an opened file holds is not counted.
    pub fn owned_bytes(&self) -> usize {
        // Relaxed: a figure that nothing else depends on.
        self.current.load().owned_bytes() + self.known_bytes.load(Ordering::Relaxed)
    }

    /// The instruction set of each kernel slot.
    pub fn slots(&self) -> Vec<Slot> {
        self.current.load().space.kernels().slots()
    }

    /// What the traversal code is and what recall it costs, measured on a sample when it was fitted; `None` without a code
    /// or while there are too few vectors for one. See also [`coarse`](Self::coarse).
    pub fn code_report(&self) -> Option<String> {
        let state = self.current.load();
        match &state.listed {
            Some(listed) => listed.describe(self.params.code),
            None => state.coded.as_ref().map(|coded| coded.coder.describe()),
        }
    }

    /// Whether the traversal code orders the vectors so poorly that even 16 candidates a result (32 in lists) lose more than 1 % of the
    /// results, by its trial on a sample: a finer code is then the better choice.
    pub fn coarse(&self) -> bool {
        let state = self.current.load();
        state.coded.as_ref().is_some_and(Coded::coarse)
            || state.listed.as_ref().is_some_and(|listed| listed.coarse())
    }

    /// Name of the instruction-set level in use.
    pub fn level(&self) -> &'static str {
        self.current.load().space.kernels().level()
    }

    /// The writer's side, alone.
    pub(crate) fn writer(&self) -> Result<MutexGuard<'_, Writer>, Broken> {
        self.writer.lock().map_err(|_| Broken)
    }

    /// Shows readers the writer's state.
    pub(crate) fn publish(&self, writer: &Writer) {
        let Writer { state, .. } = writer;
        // Relaxed: a figure that nothing else depends on.
        self.known_bytes.store(writer.known_bytes(), Ordering::Relaxed);
        self.current.store(state.view(state.space.len(), state.graph.entry).into());
    }
}

impl Kind {
    /// Whether there is a graph.
    pub(crate) fn is_graph(self) -> bool {
        self == Kind::Hnsw
    }
}
