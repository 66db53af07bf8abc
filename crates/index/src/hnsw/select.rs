//! Which candidates become neighbours: the diversity heuristic (Malkov & Yashunin, Algorithm 4) with slack α (DiskANN's
//! RobustPrune). Going outwards, a candidate is taken unless one already taken is nearer to it, by the factor α, than the
//! new vector is.
//!
//! Each taken candidate is compared at once with the candidates behind it that are still in question, by one gathered
//! kernel call: the same pairs as candidate by candidate, but in calls that are worth making. Candidates come by blocks,
//! so that those far out are not compared at all when enough have been taken before them.

use crate::pool::Entry;
use crate::space::Compare;

/// Candidates that are in question together.
const BLOCK: usize = 48;

/// The memory of a selection, reused.
pub(crate) struct Selector<P> {
    probe: P,
    open: Vec<Entry>,
    vectors: Vec<u32>,
    keys: Vec<i32>,
    pub(crate) taken: Vec<Entry>,
    pub(crate) distances: u64,
}

impl<P: Default> Selector<P> {
    pub(crate) fn new() -> Self {
        Selector {
            probe: P::default(),
            open: Vec::new(),
            vectors: Vec::new(),
            keys: Vec::new(),
            taken: Vec::new(),
            distances: 0,
        }
    }

    /// Leaves up to `most` of `candidates` (ascending, none twice) in `self.taken`, ascending. `vector` gives the vector
    /// that a candidate's id stands for.
    pub(crate) fn select(
        &mut self,
        space: &impl Compare<Probe = P>,
        candidates: &[Entry],
        most: usize,
        alpha: f32,
        vector: impl Fn(u32) -> u32,
    ) {
        self.taken.clear();
        // Copies of the new vector itself: half the places at most, and of more the last, whose places are still free.
        let copies = candidates.partition_point(|e| space.distance(e.key()) <= space.identical());
        let (copies, candidates) = candidates.split_at(copies);
        self.taken.extend_from_slice(&copies[copies.len().saturating_sub(most / 2)..]);
        for block in candidates.chunks(BLOCK) {
            self.open.clear();
            self.open.extend_from_slice(block);
            for i in 0..self.taken.len() {
                self.strike(space, self.taken[i], alpha, &vector);
            }
            while !self.open.is_empty() {
                let best = self.open.remove(0);
                self.taken.push(best);
                if self.taken.len() == most {
                    return;
                }
                self.strike(space, best, alpha, &vector);
            }
        }
    }

    /// Drops the open candidates that `taken` makes needless.
    fn strike(
        &mut self,
        space: &impl Compare<Probe = P>,
        taken: Entry,
        alpha: f32,
        vector: &impl Fn(u32) -> u32,
    ) {
        if self.open.is_empty() {
            return;
        }
        self.vectors.clear();
        self.vectors.extend(self.open.iter().map(|e| vector(e.id())));
        self.keys.resize(self.vectors.len(), 0);
        space.load(vector(taken.id()), &mut self.probe);
        space.keys_of(&self.probe, &self.vectors, &mut self.keys);
        self.distances += self.vectors.len() as u64;
        let (slack, identical) = (space.slack(alpha), space.identical());
        let mut keys = self.keys.iter();
        self.open.retain(|candidate| {
            let between = space.distance(*keys.next().expect("one key each"));
            // Of vectors identical to each other one is enough: more would fill every place.
            between > identical && slack * between >= space.distance(candidate.key())
        });
    }
}
