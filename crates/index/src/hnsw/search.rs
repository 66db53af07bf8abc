//! Walking the graph.

use super::graph::{Graph, Layer, NONE, links};
use crate::filter::Accept;
use crate::pool::{Entry, Pool};
use crate::prefetch::prefetch;
use crate::record::Work;
use crate::space::Compare;
use crate::stop::Stop;
use crate::visited::Visited;
use std::sync::atomic::Ordering;

/// How many candidates a walk keeps, and when it ends before all of them are expanded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Beam<'a> {
    ef: usize,
    /// The walk ends at the first candidate farther than `factor` times the `k`-th nearest so far (distance-adaptive
    /// beam search, Al-Jazzazi et al., arXiv 2505.15636; NGT's ε).
    early: Option<(usize, f32)>,
    /// Asked before each expansion whether to give up.
    stop: Option<Stop<'a>>,
}

impl<'a> Beam<'a> {
    /// The nearest `ef`, all of them expanded.
    pub(crate) fn new(ef: usize) -> Beam<'a> {
        Beam { ef, early: None, stop: None }
    }

    /// The nearest `ef` at most, expanded up to `factor` times the distance of the `k`-th nearest.
    pub(crate) fn adaptive(ef: usize, k: usize, factor: f32) -> Beam<'a> {
        Beam { ef, early: Some((k, factor)), stop: None }
    }

    /// The same, given up when `stop` says so.
    pub(crate) fn until(self, stop: Option<Stop<'a>>) -> Beam<'a> {
        Beam { stop, ..self }
    }

    /// The distance beyond which nothing is expanded, given the nearest so far. It only ever falls.
    #[inline]
    fn limit(&self, space: &impl Compare, nearest: &[Entry]) -> f32 {
        let kth = self.early.and_then(|(k, factor)| Some((nearest.get(k - 1)?, factor)));
        kth.map_or(f32::INFINITY, |(kth, factor)| factor * space.distance(kth.key()).max(0.0))
    }
}

/// Links read before the rows that they lead to are asked for: of a line.
const PART: usize = 16;

/// The memory of a search, reused from one to the next. One per worker.
#[derive(Default)]
pub(crate) struct Walker {
    /// The nearest results so far.
    pub(crate) pool: Pool,
    /// Members that may not be results but lead on.
    detours: Pool,
    pub(super) visited: Visited,
    pub(super) members: Vec<u32>,
    /// Vectors that walks of the base layer pass by, as if they were not in the index (see `calibrate`).
    pub(crate) hidden: Vec<u32>,
    /// Neighbours that fail a filter.
    pub(super) failing: Vec<u32>,
    vectors: Vec<u32>,
    keys: Vec<i32>,
    pub(crate) work: Work,
    /// Whether the walk of the base layer was given up.
    pub(crate) stopped: bool,
}

/// Asks for the links of a candidate.
#[inline]
fn prefetch_links<L: Layer>(layer: &L, candidate: Entry) {
    let links = layer.links_at(candidate.id());
    prefetch(links);
    prefetch(links.wrapping_add(16));
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
                self.expand(&view, space, pilot);
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
        self.work.compared(space, &[vector]);
        key[0]
    }

    /// Leaves the members linked to `member` that this search has not met yet in `self.members`.
    #[inline]
    fn expand<L: Layer, C: Compare>(&mut self, layer: &L, space: &C, member: u32) {
        self.gather(layer, space, member);
        self.work.counts.hops += 1;
        self.work.links(layer, member);
    }

    /// Alone, so that its loop has the registers to itself: together with the counting a walk takes 5 % more instructions.
    #[inline(never)]
    fn gather<L: Layer, C: Compare>(&mut self, layer: &L, space: &C, member: u32) {
        self.members.clear();
        let (links, members) = (layer.links(member), layer.members());
        let far = L::IS_BASE && space.is_far();
        for part in links.chunks(if far { PART } else { links.len() }) {
            let new = self.visited.insert_all(part.iter().map(|link| link.load(Ordering::Relaxed)), members);
            self.members.extend_from_slice(new);
            if far {
                space.prefetch(new);
            }
        }
    }

    /// Keys of `self.members`, into `self.keys`.
    #[inline]
    pub(super) fn compare<L: Layer, C: Compare>(&mut self, layer: &L, space: &C, probe: &C::Probe) {
        self.keys.resize(self.members.len(), 0);
        if L::IS_BASE {
            space.keys_of(probe, &self.members, &mut self.keys);
            self.work.compared(space, &self.members);
        } else {
            self.vectors.clear();
            self.vectors.extend(self.members.iter().map(|&n| layer.vector(n)));
            space.keys_of(probe, &self.vectors, &mut self.keys);
            self.work.compared(space, &self.vectors);
        }
    }

    /// Algorithm 2: leaves in `self.pool` the nearest members of `layer` that are accepted and can be reached from
    /// `starts`, as many as `beam` keeps. The walk goes through members that are not accepted, too.
    pub(crate) fn walk<L: Layer, C: Compare, A: Accept>(
        &mut self,
        layer: &L,
        space: &C,
        probe: &C::Probe,
        starts: &[u32],
        beam: Beam<'_>,
        accept: &A,
    ) {
        self.start(layer, starts, beam);
        loop {
            self.compare(layer, space, probe);
            self.keep(layer, space, beam, accept);
            let Some(next) = self.next(space, beam, A::ALL) else { return };
            self.expand(layer, space, next);
            if !self.hidden.is_empty() {
                self.lead_on(layer, space, next);
            }
            if let Some(next) = self.pool.peek() {
                // Often the next to be expanded: its links arrive while the distances are computed.
                prefetch_links(layer, next);
            }
        }
    }

    /// Where `member` links to a hidden one it is to lead on to whom it would have linked to instead: of the neighbours of
    /// the hidden one the nearest to `member` that it does not link to. Without, walks would lose the links that were left
    /// out in favour of the hidden one, and find less than in an index that never had it.
    fn lead_on<L: Layer, C: Compare>(&mut self, layer: &L, space: &C, member: u32) {
        let mut own: Vec<u32> = links(layer, member).collect();
        for i in 0..own.len() {
            if !self.hidden.contains(&own[i]) {
                continue;
            }
            let new = |other: &u32| *other != member && !own.contains(other) && !self.hidden.contains(other);
            let others: Vec<u32> = links(layer, own[i]).filter(new).collect();
            let (mut probe, mut keys) = (C::Probe::default(), vec![0; others.len()]);
            space.load(member, &mut probe);
            space.keys_of(&probe, &others, &mut keys);
            if let Some((_, other)) = keys.into_iter().zip(others).min() {
                own.push(other);
                if self.visited.insert(other) {
                    self.members.push(other);
                }
            }
        }
    }

    pub(super) fn start<L: Layer>(&mut self, layer: &L, starts: &[u32], beam: Beam<'_>) {
        self.stopped = false;
        self.pool.reset(beam.ef);
        self.detours.reset(usize::MAX);
        self.visited.reset(layer.members());
        for &hidden in &self.hidden {
            self.visited.insert(hidden);
        }
        self.members.clear();
        for &start in starts {
            if self.visited.insert(start) {
                self.members.push(start);
            }
        }
    }

    /// Keeps those of `self.members`, whose keys are known, that are near enough to be results or to lead to some.
    #[inline]
    pub(super) fn keep<L: Layer, C: Compare, A: Accept>(
        &mut self,
        layer: &L,
        space: &C,
        beam: Beam<'_>,
        accept: &A,
    ) {
        let limit = beam.limit(space, self.pool.entries());
        let limited = limit < f32::INFINITY;
        let beyond = |entry: Entry| space.distance(entry.key()) > limit;
        let entries = self.keys.iter().zip(&self.members).map(|(&key, &member)| Entry::new(key, member));
        // The best, if it is better than all before, is the next to be expanded.
        let first = |best| prefetch_links(layer, best);
        if A::ALL && limited {
            return self.pool.push_all(entries, |entry| !beyond(entry), first);
        } else if A::ALL {
            return self.pool.push_all(entries, |_| true, first);
        }
        for entry in entries {
            if limited && beyond(entry) {
                continue;
            }
            if accept.accepts(entry.id()) {
                self.pool.push(entry);
            } else if self.pool.worst().is_none_or(|worst| entry.key() < worst.key()) {
                self.detours.push(entry);
            }
        }
    }

    /// The member to be expanded next, if any is worth it and nobody says stop.
    #[inline]
    pub(super) fn next(&mut self, space: &impl Compare, beam: Beam<'_>, all: bool) -> Option<u32> {
        if beam.stop.is_some_and(Stop::says_so) {
            self.stopped = true;
            return None;
        }
        let next = if all {
            self.pool.pop()?
        } else {
            // A detour is worth it while it is nearer than what would be dropped.
            let worst = self.pool.worst();
            let detour = self.detours.peek().filter(|detour| worst.is_none_or(|worst| *detour < worst));
            match (self.pool.peek(), detour) {
                (Some(straight), Some(detour)) if detour < straight => self.detours.pop()?,
                (Some(_), _) => self.pool.pop()?,
                (None, Some(_)) => self.detours.pop()?,
                (None, None) => return None,
            }
        };
        let ends =
            beam.early.is_some() && space.distance(next.key()) > beam.limit(space, self.pool.entries());
        (!ends).then(|| next.id())
    }

    /// Where a search of the base layer starts.
    pub(crate) fn entrance<C: Compare>(&mut self, graph: &Graph, space: &C, probe: &C::Probe) -> u32 {
        match self.descend(graph, space, probe, 1) {
            NONE => graph.first,
            pilot => graph.pilots[pilot as usize],
        }
    }

    /// The nearest accepted vectors that the graph finds, in `self.pool`.
    pub(crate) fn search<C: Compare, A: Accept>(
        &mut self,
        graph: &Graph,
        space: &C,
        probe: &C::Probe,
        beam: Beam<'_>,
        accept: &A,
    ) {
        let start = self.entrance(graph, space, probe);
        self.walk(&graph.base(), space, probe, &[start], beam, accept);
    }
}
