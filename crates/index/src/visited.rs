//! Which nodes a search has met: one bit each, so that a million nodes take 122 KiB, and cleared by the list of what was
//! met, so that a search costs what it visits and not what the index holds.

/// A set of node ids, reused from search to search.
#[derive(Default)]
pub(crate) struct Visited {
    words: Vec<u64>,
    /// What is in the set, up to `len`; behind that only room.
    met: Vec<u32>,
    len: usize,
}

impl Visited {
    /// Empties the set and makes room for ids below `count`.
    pub(crate) fn reset(&mut self, count: usize) {
        if self.len > self.words.len() / 8 {
            // As many as there are lines: a line is faster cleared in its turn than met again.
            self.words.fill(0);
        } else {
            for &id in &self.met[..self.len] {
                self.words[id as usize / 64] = 0;
            }
        }
        self.len = 0;
        let words = count.div_ceil(64);
        if words > self.words.len() {
            self.words.resize(words, 0);
        }
    }

    /// Adds those of `ids` that are below `count`; gives those that were new. Without branches on what was met, which no
    /// predictor could foresee: half of the neighbours in a walk have been met.
    #[inline]
    pub(crate) fn insert_all(&mut self, ids: impl ExactSizeIterator<Item = u32>, count: usize) -> &[u32] {
        let (most, start) = (ids.len(), self.len);
        if self.met.len() < start + most {
            self.met.resize(2 * (start + most), 0);
        }
        let (words, new) = (&mut *self.words, &mut self.met[start..][..most]);
        let mut kept = 0;
        for id in ids {
            if id as usize >= count {
                continue;
            }
            let word = &mut words[id as usize / 64];
            let bit = 1 << (id % 64);
            new[kept] = id;
            kept += usize::from(*word & bit == 0);
            *word |= bit;
        }
        self.len += kept;
        &new[..kept]
    }

    /// Adds `id`; whether it was new.
    #[inline]
    pub(crate) fn insert(&mut self, id: u32) -> bool {
        !self.insert_all(std::iter::once(id), usize::MAX).is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reset_forgets_all() {
        let mut visited = Visited::default();
        for step in [1, 64, 997] {
            visited.reset(10_000);
            for id in (0..10_000).step_by(step) {
                assert!(visited.insert(id), "{id} at step {step}");
                assert!(!visited.insert(id));
            }
        }
        visited.reset(100_000);
        assert!(visited.insert(99_999));
    }

    #[test]
    fn many_at_once_are_as_one_by_one() {
        let (mut one, mut all) = (Visited::default(), Visited::default());
        for round in 0..20u32 {
            one.reset(1000);
            all.reset(1000);
            for step in 1..30 {
                let ids = || (0..40).map(move |i| (i * step * 37 + round) % 1000);
                let expected: Vec<u32> = ids().filter(|&id| one.insert(id)).collect();
                assert_eq!(all.insert_all(ids(), 1000), expected);
            }
        }
    }
}
