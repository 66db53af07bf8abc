//! Mending a graph after deletions (after FreshDiskANN, Singh et al., arXiv 2105.09613, Algorithm 4).
//!
//!   for each layer, for each live member that is linked with deleted ones:
//!     candidates = its live neighbours and the live neighbours of the deleted ones
//!     its links = the selection from these
//!   then, in the base layer, for each live node that cannot be reached from where searches start:
//!     search for it, and link the nearest node that has room (or the nearest) with it
//!
//! So afterwards no live member is linked with a deleted one, searches start at a live one, and every live node can be
//! reached. A batch of members selects from the graph before the batch, so that the result is the same at any number of
//! workers. Links of deleted members stay: readers of an older view may stand there.

use super::build::{ALPHA, Params, lock};
use super::graph::{Graph, Layer, NONE, links};
use super::search::{Beam, Walker};
use super::select::Selector;
use crate::executor::Executor;
use crate::filter::{Everything, RowSet};
use crate::pool::Entry;
use crate::space::Compare;
use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::Mutex;

/// Members that are relinked between two writes.
const BATCH: usize = 4096;
/// How far links are followed through deleted members before a member has enough candidates.
const CANDIDATES: usize = 64;
/// Rounds in which unreached nodes are linked; a link that makes way for one may have been another node's only one.
const ROUNDS: usize = 8;

/// What a repair did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Repaired {
    /// Members of the graph that got other links.
    pub relinked: usize,
    /// Nodes that nothing led to and that were linked again.
    pub connected: usize,
    /// Rows of deleted vectors that were dropped.
    pub dropped: usize,
    /// Whether it came to its end.
    pub finished: bool,
}

/// Mends `graph` after the deletion of `deleted`.
pub(crate) fn repair<C: Compare>(
    graph: &mut Graph,
    space: &C,
    deleted: &RowSet,
    params: Params,
    executor: &dyn Executor,
    proceed: &mut dyn FnMut(usize, usize) -> ControlFlow<()>,
) -> Repaired {
    let mut repaired = Repaired::default();
    for layer in (0..=graph.top()).rev() {
        let relinked = if layer == 0 {
            relink(graph, graph.base(), 0, space, deleted, executor, proceed)
        } else {
            relink(graph, graph.upper(layer), layer, space, deleted, executor, proceed)
        };
        match relinked {
            Some(relinked) => repaired.relinked += relinked,
            None => return repaired,
        }
    }
    move_entry(graph, deleted);
    repaired.connected = connect(graph, space, deleted, params);
    repaired.finished = true;
    repaired
}

/// Relinks the members of one layer; `None` if `proceed` stopped it.
fn relink<C: Compare, L: Layer + Sync>(
    graph: &Graph,
    layer: L,
    number: usize,
    space: &C,
    deleted: &RowSet,
    executor: &dyn Executor,
    proceed: &mut dyn FnMut(usize, usize) -> ControlFlow<()>,
) -> Option<usize> {
    let gone = |member: u32| deleted.contains(layer.vector(member));
    let present = |member: &u32| number == 0 || graph.height(*member) >= number;
    let broken: Vec<u32> = (0..layer.members() as u32)
        .filter(present)
        .filter(|&member| !gone(member) && links(&layer, member).any(gone))
        .collect();
    let (most, alpha) = if number == 0 { (2 * graph.m, ALPHA) } else { (graph.m, 1.0) };
    let workers: Vec<Mutex<Worker<C::Probe>>> = (0..executor.workers()).map(|_| Mutex::default()).collect();
    for (i, batch) in broken.chunks(BATCH).enumerate() {
        if proceed(i * BATCH, broken.len()).is_break() {
            return None;
        }
        let results: Vec<Mutex<Vec<Entry>>> = batch.iter().map(|_| Mutex::default()).collect();
        executor.run(batch.len(), &|worker, i| {
            let mut worker = lock(&workers[worker]);
            worker.relink(&layer, space, &gone, batch[i], most, alpha);
            results[i]
                .lock()
                .unwrap_or_else(|poisoned| poisoned.into_inner())
                .clone_from(&worker.selector.taken);
        });
        for (&member, taken) in batch.iter().zip(results) {
            let taken = taken.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
            graph.write(number, member, taken.iter().map(|e| e.id()));
        }
    }
    Some(broken.len())
}

/// A worker's memory.
struct Worker<P> {
    probe: P,
    selector: Selector<P>,
    members: Vec<u32>,
    vectors: Vec<u32>,
    keys: Vec<i32>,
}

impl<P: Default> Default for Worker<P> {
    fn default() -> Self {
        Worker {
            probe: P::default(),
            selector: Selector::new(),
            members: Vec::new(),
            vectors: Vec::new(),
            keys: Vec::new(),
        }
    }
}

impl<P: Default> Worker<P> {
    /// Selects the new links of `member`, into `self.selector.taken`.
    fn relink<C: Compare<Probe = P>, L: Layer>(
        &mut self,
        layer: &L,
        space: &C,
        gone: &impl Fn(u32) -> bool,
        member: u32,
        most: usize,
        alpha: f32,
    ) {
        let mut met = HashSet::from([member]);
        let mut through = vec![member];
        self.members.clear();
        // Through deleted members, in waves, until there are enough.
        while !through.is_empty() && self.members.len() < CANDIDATES {
            let wave = std::mem::take(&mut through);
            for other in wave.into_iter().flat_map(|via| links(layer, via)) {
                if met.insert(other) {
                    if gone(other) { through.push(other) } else { self.members.push(other) }
                }
            }
        }
        self.vectors.clear();
        self.vectors.extend(self.members.iter().map(|&other| layer.vector(other)));
        self.keys.resize(self.vectors.len(), 0);
        space.load(layer.vector(member), &mut self.probe);
        space.keys_of(&self.probe, &self.vectors, &mut self.keys);
        let mut candidates: Vec<Entry> =
            self.keys.iter().zip(&self.members).map(|(&key, &other)| Entry::new(key, other)).collect();
        candidates.sort_unstable();
        self.selector.select(space, &candidates, most, alpha, |other| layer.vector(other));
    }
}

/// Lets searches start at a live pilot: the first of the highest, or without pilots at the first live node.
fn move_entry(graph: &mut Graph, deleted: &RowSet) {
    let live = |&pilot: &u32| !deleted.contains(graph.pilots[pilot as usize]);
    let best = |a: u32, b: u32| if graph.height(b) > graph.height(a) { b } else { a };
    let entry = (0..graph.pilots.len() as u32).filter(live).reduce(best).unwrap_or(NONE);
    let nodes = graph.base().members() as u32;
    graph.first = (0..nodes).find(|&node| !deleted.contains(node)).unwrap_or(0);
    graph.entry = entry;
}

/// Whether each node can be reached in the base layer from the entry, and how many live ones can.
pub(crate) fn reached(graph: &Graph, deleted: &RowSet) -> (Vec<bool>, usize) {
    let base = graph.base();
    let mut reach = Reach { met: vec![false; base.members()], live: 0 };
    let start = graph.pilots.get(graph.entry as usize).map_or(graph.first, |&node| node);
    if (start as usize) < base.members() && !deleted.contains(start) {
        reach.from(&base, deleted, start);
    }
    (reach.met, reach.live)
}

struct Reach {
    met: Vec<bool>,
    live: usize,
}

impl Reach {
    /// Meets `start`, which is live and new, and what it leads to.
    fn from<L: Layer>(&mut self, layer: &L, deleted: &RowSet, start: u32) {
        let mut open = vec![start];
        self.met[start as usize] = true;
        self.live += 1;
        while let Some(node) = open.pop() {
            for other in links(layer, node) {
                if !deleted.contains(other) && !std::mem::replace(&mut self.met[other as usize], true) {
                    self.live += 1;
                    open.push(other);
                }
            }
        }
    }
}

/// Links every live node that cannot be reached; how many links were made.
pub(crate) fn connect<C: Compare>(graph: &Graph, space: &C, deleted: &RowSet, params: Params) -> usize {
    let base = graph.base();
    let nodes = base.members();
    let mut walker = Walker::default();
    let mut probe = C::Probe::default();
    let mut made = 0;
    for _ in 0..ROUNDS {
        let (met, live) = reached(graph, deleted);
        if live == nodes - deleted.count() {
            break;
        }
        let mut reach = Reach { met, live };
        for node in 0..nodes as u32 {
            if reach.met[node as usize] || deleted.contains(node) {
                continue;
            }
            space.load(node, &mut probe);
            walker.search(graph, space, &probe, Beam::new(params.ef_construction), &Everything);
            let near = || {
                let found = walker.pool.entries().iter().map(|e| e.id());
                found.filter(|&other| other != node && reach.met[other as usize])
            };
            let full = |other: u32| links(&base, other).count() == 2 * graph.m;
            let Some(from) = near().find(|&other| !full(other)).or_else(|| near().next()) else { continue };
            let keep = links(&base, from).take(2 * graph.m - 1).collect::<Vec<u32>>();
            graph.write(0, from, keep.into_iter().chain([node]));
            reach.from(&base, deleted, node);
            made += 1;
        }
    }
    made
}

impl Graph {
    /// The graph of `nodes` alone (ascending), numbered anew, with room for nodes of the heights `more`. Nothing may be
    /// linked with other nodes.
    pub(crate) fn keep(&self, nodes: &[u32], more: &[u8]) -> Result<Graph, crate::OutOfMemory> {
        let mut graph = Graph::new(self.m);
        let kept = |all: &[u32], n: u32| all.binary_search(&n).map_or(NONE, |place| place as u32);
        let pilots: Vec<u32> = (0..self.pilots.len() as u32)
            .filter(|&pilot| nodes.binary_search(&self.pilots[pilot as usize]).is_ok())
            .collect();
        let mut heights = vec![0u8; nodes.len()];
        for &pilot in &pilots {
            heights[kept(nodes, self.pilots[pilot as usize]) as usize] = self.height(pilot) as u8;
        }
        graph.reserve(&[&heights, more].concat())?;
        graph.append(0, &heights);
        let base = self.base();
        let mut places = vec![NONE; base.members()];
        nodes.iter().enumerate().for_each(|(place, &node)| places[node as usize] = place as u32);
        for (place, &node) in nodes.iter().enumerate() {
            let to = links(&base, node).map(|other| places[other as usize]);
            graph.write(0, place as u32, to.filter(|&other| other != NONE));
        }
        for (place, &pilot) in pilots.iter().enumerate() {
            for layer in 1..=self.height(pilot) {
                let upper = self.upper(layer);
                let to = links(&upper, pilot).map(|other| kept(&pilots, other));
                graph.write(layer, place as u32, to.filter(|&other| other != NONE));
            }
        }
        graph.entry = if self.entry == NONE { NONE } else { kept(&pilots, self.entry) };
        Ok(graph)
    }
}
