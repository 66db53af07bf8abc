//! Walking the graph among the few members that a filter accepts (ACORN-1, Patel et al., SIGMOD 2024).
//!
//! Where most neighbours of a node fail the filter, walking through them one by one compares many vectors for nothing.
//! So only accepted members are compared and expanded; a neighbour that fails is replaced by those of its own
//! neighbours that pass, whose links are read instead of its vector.
//!
//! Accepted members may lie far from the query, or in places that two links do not join (a filter that is correlated
//! with the vectors). So the walk also starts at a sample of them, and gives up when it has done as much work as
//! comparing all of them would be.

use super::graph::{Graph, Layer, links};
use super::search::{Beam, Walker};
use crate::filter::Accept;
use crate::prefetch::prefetch;
use crate::space::Compare;

/// Failing neighbours whose links are prefetched ahead of their turn.
const AHEAD: usize = 4;

impl Walker {
    /// Leaves the nearest accepted vectors in `self.pool`; `samples` are some accepted ones. Whether it came to an end:
    /// `false` once it has compared vectors and read links `budget` times.
    #[expect(clippy::too_many_arguments, reason = "a search and its filter")]
    pub(crate) fn search_filtered<C: Compare, A: Accept>(
        &mut self,
        graph: &Graph,
        space: &C,
        probe: &C::Probe,
        beam: Beam<'_>,
        accept: &A,
        samples: &[u32],
        budget: u64,
    ) -> bool {
        let base = graph.base();
        let entrance = self.entrance(graph, space, probe);
        let before = self.work.counts.distances;
        let mut reads = 0;
        self.start(&base, samples, beam);
        if self.visited.insert(entrance) && accept.accepts(entrance) {
            self.members.push(entrance);
        }
        self.compare(&base, space, probe);
        self.keep(&base, space, beam, accept);
        // The entrance leads on even where it fails the filter.
        let mut member = entrance;
        loop {
            self.work.counts.hops += 1;
            reads += self.gather_two_hops(&base, member, accept, 2 * graph.m);
            if self.work.counts.distances - before + reads > budget {
                return false;
            }
            self.compare(&base, space, probe);
            self.keep(&base, space, beam, accept);
            match self.next(space, beam, true) {
                Some(next) => member = next,
                None => return true,
            }
        }
    }

    /// The accepted members within two links of `member` that this search has not met yet, about `most` of them, into
    /// `self.members`. How many failing neighbours' links were read.
    fn gather_two_hops<L: Layer, A: Accept>(
        &mut self,
        layer: &L,
        member: u32,
        accept: &A,
        most: usize,
    ) -> u64 {
        self.work.links(layer, member);
        self.members.clear();
        self.failing.clear();
        for other in links(layer, member) {
            if self.visited.insert(other) {
                let kept = if accept.accepts(other) { &mut self.members } else { &mut self.failing };
                kept.push(other);
            }
        }
        for i in 0..self.failing.len() {
            if self.members.len() >= most {
                return i as u64;
            }
            if let Some(&ahead) = self.failing.get(i + AHEAD) {
                prefetch(layer.links_at(ahead));
                prefetch(layer.links_at(ahead).wrapping_add(16));
            }
            self.work.links(layer, self.failing[i]);
            for other in links(layer, self.failing[i]) {
                // Those that fail stay unmet: they may yet be some accepted member's own neighbours.
                if accept.accepts(other) && self.visited.insert(other) {
                    self.members.push(other);
                }
            }
        }
        self.failing.len() as u64
    }
}
