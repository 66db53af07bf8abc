//! Walking the graph.

use super::graph::{Graph, Layer, NONE};
use crate::pool::{Entry, Pool};
use crate::space::Compare;
use crate::visited::Visited;
use std::sync::atomic::Ordering;

/// What a search counts: the work that it did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Nodes whose links were followed.
    pub hops: u64,
    /// Vectors that were compared with the query.
    pub distances: u64,
}

impl std::ops::AddAssign for Counts {
    fn add_assign(&mut self, more: Counts) {
        self.hops += more.hops;
        self.distances += more.distances;
    }
}

/// How many candidates a walk keeps, and when it ends before all of them are expanded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Beam {
    ef: usize,
    /// The walk ends at the first candidate farther than `factor` times the `k`-th nearest so far (distance-adaptive
    /// beam search, Al-Jazzazi et al., arXiv 2505.15636; NGT's ε).
    early: Option<(usize, f32)>,
}

impl Beam {
    /// The nearest `ef`, all of them expanded.
    pub(crate) fn new(ef: usize) -> Beam {
        Beam { ef, early: None }
    }

    /// The nearest `ef` at most, expanded up to `factor` times the distance of the `k`-th nearest.
    pub(crate) fn adaptive(ef: usize, k: usize, factor: f32) -> Beam {
        Beam { ef, early: Some((k, factor)) }
    }

    /// The distance beyond which nothing is expanded, given the nearest so far. It only ever falls.
    #[inline]
    fn limit(&self, space: &impl Compare, nearest: &[Entry]) -> f32 {
        let kth = self.early.and_then(|(k, factor)| Some((nearest.get(k - 1)?, factor)));
        kth.map_or(f32::INFINITY, |(kth, factor)| factor * space.distance(kth.key()).max(0.0))
    }
}

/// The memory of a search, reused from one to the next. One per worker.
#[derive(Default)]
pub(crate) struct Walker {
    pub(crate) pool: Pool,
    visited: Visited,
    members: Vec<u32>,
    vectors: Vec<u32>,
    keys: Vec<i32>,
    pub(crate) counts: Counts,
}

impl Walker {
    /// The member of the base layer where a search starts: found by greedy descent from the entry. `layers` are walked
    /// from the top down to this one (1: all). Returns the pilot reached, or `NONE` without pilots.
    pub(crate) fn descend<C: Compare>(
        &mut self,
        graph: &Graph,
        space: &C,
        probe: &C::Probe,
        layers: usize,
    ) -> u32 {
        let mut pilot = graph.entry;
        if pilot == NONE {
            return NONE;
        }
        let mut best = self.key(space, probe, graph.pilots[pilot as usize]);
        for layer in (layers.max(1)..=graph.top()).rev() {
            let view = graph.upper(layer);
            self.visited.reset(view.members());
            self.visited.insert(pilot);
            loop {
                self.counts.hops += 1;
                self.gather(&view, pilot);
                self.compare(&view, space, probe);
                let nearest = self.keys.iter().zip(&self.members).map(|(&key, &n)| Entry::new(key, n)).min();
                match nearest.filter(|e| (e.key(), e.id()) < (best, pilot)) {
                    Some(entry) => (best, pilot) = (entry.key(), entry.id()),
                    None => break,
                }
            }
        }
        pilot
    }

    fn key<C: Compare>(&mut self, space: &C, probe: &C::Probe, vector: u32) -> i32 {
        let mut key = [0];
        space.keys_of(probe, &[vector], &mut key);
        self.counts.distances += 1;
        key[0]
    }

    /// The members linked to `member` that this search has not met yet, into `self.members`.
    #[inline]
    fn gather<L: Layer>(&mut self, layer: &L, member: u32) {
        self.members.clear();
        let members = layer.members();
        for link in layer.links(member) {
            let other = link.load(Ordering::Relaxed);
            if other as usize >= members {
                if other == NONE {
                    break;
                }
                continue;
            }
            if self.visited.insert(other) {
                self.members.push(other);
            }
        }
    }

    /// Keys of `self.members`, into `self.keys`.
    #[inline]
    fn compare<L: Layer, C: Compare>(&mut self, layer: &L, space: &C, probe: &C::Probe) {
        self.keys.resize(self.members.len(), 0);
        self.counts.distances += self.members.len() as u64;
        if L::IS_BASE {
            space.keys_of(probe, &self.members, &mut self.keys);
        } else {
            self.vectors.clear();
            self.vectors.extend(self.members.iter().map(|&n| layer.vector(n)));
            space.keys_of(probe, &self.vectors, &mut self.keys);
        }
    }

    /// Algorithm 2: leaves the nearest members of `layer` that can be reached from `starts` in `self.pool`, as many as
    /// `beam` keeps.
    pub(crate) fn walk<L: Layer, C: Compare>(
        &mut self,
        layer: &L,
        space: &C,
        probe: &C::Probe,
        starts: &[u32],
        beam: Beam,
    ) {
        self.pool.reset(beam.ef);
        self.visited.reset(layer.members());
        self.members.clear();
        for &start in starts {
            if self.visited.insert(start) {
                self.members.push(start);
            }
        }
        loop {
            self.compare(layer, space, probe);
            let limit = beam.limit(space, self.pool.entries());
            for (&key, &member) in self.keys.iter().zip(&self.members) {
                if limit == f32::INFINITY || space.distance(key) <= limit {
                    self.pool.push(Entry::new(key, member));
                }
            }
            let Some(best) = self.pool.pop() else { return };
            if beam.early.is_some() && space.distance(best.key()) > beam.limit(space, self.pool.entries()) {
                return;
            }
            self.counts.hops += 1;
            self.gather(layer, best.id());
            if let Some(next) = self.pool.peek() {
                // Often the next to be expanded: its links arrive while the distances are computed.
                let links = layer.links_at(next.id());
                prefetch(links);
                prefetch(links.wrapping_add(16));
            }
        }
    }

    /// The nearest vectors that the graph finds, in `self.pool`.
    pub(crate) fn search<C: Compare>(&mut self, graph: &Graph, space: &C, probe: &C::Probe, beam: Beam) {
        let pilot = self.descend(graph, space, probe, 1);
        let start = if pilot == NONE { 0 } else { graph.pilots[pilot as usize] };
        self.walk(&graph.base(), space, probe, &[start], beam);
    }
}

#[inline]
pub(crate) fn prefetch<T>(address: *const T) {
    let _ = address;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch of any address is harmless, and SSE is part of the base architecture.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(address.cast());
    }
}
