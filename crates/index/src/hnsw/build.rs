//! Insertion in batches, reproducible at any number of workers.
//!
//!   for each batch of new nodes (few while the graph is small, then up to BATCH):
//!     1. in parallel, each new node searches the graph as it stands and selects its neighbours from what it finds there
//!        and from the nodes before it in the batch
//!     2. their links are written
//!     3. in parallel, each node that was linked to takes the new ones into its own links, selecting again if full
//!     4. those are written
//!
//! The searches of step 1 do not see the batch, so a node compares itself with the nodes before it there one by one:
//! without that, vectors that come in order (one cluster after another, a time series) would not find each other.
//! A batch is at most 1/SHARE of the graph, which bounds that work.

use super::graph::{Graph, Layer, NONE, links};
use super::search::{Beam, Walker};
use super::select::Selector;
use crate::executor::Executor;
use crate::filter::Everything;
use crate::pool::Entry;
use crate::search::Counts;
use crate::space::Compare;
use std::ops::ControlFlow;
use std::sync::Mutex;

/// The most nodes of one batch: enough work for a hundred cores between two joins.
const BATCH: usize = 512;
/// A batch is at most this part of the graph.
const SHARE: usize = 32;

/// What the user chose.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Params {
    pub(crate) m: usize,
    pub(crate) ef_construction: usize,
    pub(crate) seed: u64,
}

/// Slack of the neighbour selection in the base layer; the upper layers do without. Chosen on Fashion-MNIST and on
/// sentence embeddings, see docs/architecture.md.
pub(crate) const ALPHA: f32 = 1.1;

/// Layers above the base of `node`: l or more with probability m^-l, from integers alone, so that all machines agree.
pub(crate) fn height(params: Params, node: u32) -> u8 {
    let mut z = params.seed.wrapping_add((u64::from(node) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^= z >> 31;
    let mut height = 0;
    let mut share = u64::MAX / params.m as u64;
    while z < share {
        height += 1;
        share /= params.m as u64;
    }
    height
}

/// What linking takes besides the graph of `count` nodes: each worker's visited set; a batch with all that links to it,
/// twice, before and after it is written; and the check of what can be reached.
pub(crate) fn bytes(params: Params, count: usize, workers: usize) -> usize {
    let batch = (count / SHARE).clamp(1, BATCH);
    let pairs = batch * params.m;
    let one_way = size_of::<Mutex<Links>>() + size_of::<Links>() + 3 * params.m / 2 * size_of::<Entry>();
    let linked = pairs * (2 * size_of::<(usize, u32, Entry)>() + one_way);
    (workers * count / 4 + linked).max(5 * count)
}

/// A worker's memory.
struct Builder<P> {
    walker: Walker,
    selector: Selector<P>,
    probe: P,
    candidates: Vec<Entry>,
    keys: Vec<i32>,
    ids: Vec<u32>,
    vectors: Vec<u32>,
}

/// New links of one node: in layer `layer` (0: base), from `member` to each of `to`, with the distances' keys.
#[derive(Default)]
struct Links {
    layer: usize,
    member: u32,
    to: Vec<Entry>,
}

/// Links the nodes from `first` on, to which `graph` has been extended, batch by batch. Before each batch
/// `proceed` hears how many are linked and may stop the build there. Returns the number linked and the work done.
pub(crate) fn link<C: Compare>(
    graph: &mut Graph,
    space: &C,
    params: Params,
    first: usize,
    executor: &dyn Executor,
    proceed: &mut dyn FnMut(&Graph, usize) -> ControlFlow<()>,
) -> (usize, Counts) {
    let builders: Vec<Mutex<Builder<C::Probe>>> =
        (0..executor.workers()).map(|_| Mutex::new(Builder::new())).collect();
    let mut pilot = graph.pilots.partition_point(|&node| (node as usize) < first) as u32;
    let mut done = first;
    while done < space.len() {
        if proceed(graph, done).is_break() {
            break;
        }
        // The first node has nothing to be linked with.
        let batch = (done / SHARE).clamp(1, BATCH).min(space.len() - done);
        let nodes = done..done + batch;
        let pilots_before = pilot;
        let own = if done == 0 {
            Vec::new()
        } else {
            search_all(graph, space, params, nodes.clone(), executor, &builders)
        };
        for links in &own {
            links.write(graph);
        }
        let groups = reversed(&own);
        for links in take_in_all(graph, space, &groups, executor, &builders) {
            links.write(graph);
        }
        while (pilot as usize) < graph.pilots.len() && (graph.pilots[pilot as usize] as usize) < nodes.end {
            pilot += 1;
        }
        graph.raise_entry(pilots_before..pilot);
        done = nodes.end;
    }
    let mut counts = Counts::default();
    for builder in builders {
        let builder = builder.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
        counts.hops += builder.walker.work.counts.hops;
        counts.distances += builder.walker.work.counts.distances + builder.selector.distances;
    }
    (done, counts)
}

/// Step 1: the links of each new node, layer by layer.
fn search_all<C: Compare>(
    graph: &Graph,
    space: &C,
    params: Params,
    nodes: std::ops::Range<usize>,
    executor: &dyn Executor,
    builders: &[Mutex<Builder<C::Probe>>],
) -> Vec<Links> {
    let found: Vec<Mutex<Vec<Links>>> = nodes.clone().map(|_| Mutex::default()).collect();
    executor.run(nodes.len(), &|worker, i| {
        let node = (nodes.start + i) as u32;
        let links = lock(&builders[worker]).search(graph, space, params, nodes.start as u32, node);
        *lock(&found[i]) = links;
    });
    found
        .into_iter()
        .flat_map(|links| links.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner()))
        .collect()
}

/// The links of `own` seen from their other ends: for each member linked to, who links to it; in the order of layers and
/// members, then of distances.
fn reversed(own: &[Links]) -> Vec<Links> {
    let mut all: Vec<(usize, u32, Entry)> = Vec::new();
    for links in own {
        all.extend(links.to.iter().map(|e| (links.layer, e.id(), Entry::new(e.key(), links.member))));
    }
    all.sort_unstable();
    let groups = all.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1));
    groups.map(|g| Links { layer: g[0].0, member: g[0].1, to: g.iter().map(|e| e.2).collect() }).collect()
}

/// Step 3: what each member's links become when it takes in those that now link to it.
fn take_in_all<C: Compare>(
    graph: &Graph,
    space: &C,
    groups: &[Links],
    executor: &dyn Executor,
    builders: &[Mutex<Builder<C::Probe>>],
) -> Vec<Links> {
    let results: Vec<Mutex<Links>> = groups.iter().map(|_| Mutex::default()).collect();
    executor.run(groups.len(), &|worker, i| {
        let links = lock(&builders[worker]).take_in(graph, space, &groups[i]);
        *lock(&results[i]) = links;
    });
    results
        .into_iter()
        .map(|links| links.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner()))
        .collect()
}

/// A lock that no other worker holds; a panic elsewhere is raised by the executor, not here.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl Links {
    fn write(&self, graph: &Graph) {
        graph.write(self.layer, self.member, self.to.iter().map(|e| e.id()));
    }
}

impl<P: Default> Builder<P> {
    fn new() -> Self {
        Builder {
            walker: Walker::default(),
            selector: Selector::new(),
            probe: P::default(),
            candidates: Vec::new(),
            keys: Vec::new(),
            ids: Vec::new(),
            vectors: Vec::new(),
        }
    }

    /// The links of `node`, whose batch starts at `first`.
    fn search(
        &mut self,
        graph: &Graph,
        space: &impl Compare<Probe = P>,
        params: Params,
        first: u32,
        node: u32,
    ) -> Vec<Links> {
        let pilot = graph.pilots.binary_search(&node).ok().map(|pilot| pilot as u32);
        let height = pilot.map_or(0, |pilot| graph.height(pilot));
        space.load(node, &mut self.probe);
        let start = self.walker.descend(graph, space, &self.probe, height + 1);
        let mut starts = vec![start];
        let mut found = Vec::new();
        if let Some(pilot) = pilot {
            let vector = |p: u32| graph.pilots[p as usize];
            let batch = graph.pilots.partition_point(|&n| n < first) as u32;
            // Above the graph's top there is nobody yet to be linked with.
            for layer in (1..=height.min(graph.top())).rev() {
                self.walker.walk(
                    &graph.upper(layer),
                    space,
                    &self.probe,
                    &starts,
                    Beam::new(params.ef_construction),
                    &Everything,
                );
                starts.clear();
                starts.extend(self.walker.pool.entries().first().map(|e| e.id()));
                self.ids.clear();
                self.ids.extend((batch..pilot).filter(|&p| graph.height(p) >= layer));
                self.meet(space, vector);
                self.selector.select(space, self.walker.pool.entries(), graph.m, 1.0, vector);
                found.push(Links { layer, member: pilot, to: self.selector.taken.clone() });
            }
        }
        for start in &mut starts {
            *start = if *start == NONE { graph.first } else { graph.pilots[*start as usize] };
        }
        self.walker.walk(
            &graph.base(),
            space,
            &self.probe,
            &starts,
            Beam::new(params.ef_construction),
            &Everything,
        );
        self.ids.clear();
        self.ids.extend(first..node);
        self.meet(space, |n| n);
        self.selector.select(space, self.walker.pool.entries(), graph.m, ALPHA, |n| n);
        found.push(Links { layer: 0, member: node, to: self.selector.taken.clone() });
        found
    }

    /// Adds the members `self.ids`, which no walk can reach yet, to what the walk found, if they are near enough.
    fn meet(&mut self, space: &impl Compare<Probe = P>, vector: impl Fn(u32) -> u32) {
        self.vectors.clear();
        self.vectors.extend(self.ids.iter().map(|&member| vector(member)));
        self.keys.resize(self.vectors.len(), 0);
        space.keys_of(&self.probe, &self.vectors, &mut self.keys);
        self.selector.distances += self.vectors.len() as u64;
        for (&key, &member) in self.keys.iter().zip(&self.ids) {
            self.walker.pool.push(Entry::new(key, member));
        }
    }

    fn take_in(&mut self, graph: &Graph, space: &impl Compare<Probe = P>, new: &Links) -> Links {
        if new.layer == 0 {
            self.take_in_layer(graph.base(), space, new, 2 * graph.m, ALPHA)
        } else {
            self.take_in_layer(graph.upper(new.layer), space, new, graph.m, 1.0)
        }
    }

    fn take_in_layer<L: Layer>(
        &mut self,
        layer: L,
        space: &impl Compare<Probe = P>,
        new: &Links,
        most: usize,
        alpha: f32,
    ) -> Links {
        let old: Vec<u32> = links(&layer, new.member).collect();
        let to = if old.len() + new.to.len() <= most {
            // No choice to make: the order of links within a node means nothing, their keys are not kept.
            old.iter().map(|&n| Entry::new(0, n)).chain(new.to.iter().copied()).collect()
        } else {
            self.ids.clear();
            self.ids.extend(old.iter().map(|&n| layer.vector(n)));
            self.keys.resize(old.len(), 0);
            space.load(layer.vector(new.member), &mut self.probe);
            space.keys_of(&self.probe, &self.ids, &mut self.keys);
            self.selector.distances += self.ids.len() as u64;
            self.candidates.clear();
            self.candidates.extend(self.keys.iter().zip(&old).map(|(&key, &n)| Entry::new(key, n)));
            self.candidates.extend_from_slice(&new.to);
            self.candidates.sort_unstable();
            self.selector.select(space, &self.candidates, most, alpha, |n| layer.vector(n));
            self.selector.taken.clone()
        };
        Links { layer: new.layer, member: new.member, to }
    }
}
