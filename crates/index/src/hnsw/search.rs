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

    /// Algorithm 2: leaves the nearest `ef` members of `layer` that can be reached from `starts` in `self.pool`.
    pub(crate) fn walk<L: Layer, C: Compare>(
        &mut self,
        layer: &L,
        space: &C,
        probe: &C::Probe,
        starts: &[u32],
        ef: usize,
    ) {
        self.pool.reset(ef);
        self.visited.reset(layer.members());
        self.members.clear();
        for &start in starts {
            if self.visited.insert(start) {
                self.members.push(start);
            }
        }
        loop {
            self.compare(layer, space, probe);
            for (&key, &member) in self.keys.iter().zip(&self.members) {
                self.pool.push(Entry::new(key, member));
            }
            let Some(best) = self.pool.pop() else { return };
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

    /// The nearest `ef` vectors that the graph finds, in `self.pool`.
    pub(crate) fn search<C: Compare>(&mut self, graph: &Graph, space: &C, probe: &C::Probe, ef: usize) {
        let pilot = self.descend(graph, space, probe, 1);
        let start = if pilot == NONE { 0 } else { graph.pilots[pilot as usize] };
        self.walk(&graph.base(), space, probe, &[start], ef);
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
