//! Which nodes a search has met: one bit each, so that a million nodes take 122 KiB, and cleared by the list of what was
//! set, so that a search costs what it visits and not what the index holds.

/// A set of node ids, reused from search to search.
#[derive(Default)]
pub(crate) struct Visited {
    words: Vec<u64>,
    touched: Vec<u32>,
}

impl Visited {
    /// Empties the set and makes room for ids below `count`.
    pub(crate) fn reset(&mut self, count: usize) {
        for &word in &self.touched {
            self.words[word as usize] = 0;
        }
        self.touched.clear();
        let words = count.div_ceil(64);
        if words > self.words.len() {
            self.words.resize(words, 0);
        }
    }

    /// Adds `ids` and appends those that were new to `new`. Without branches on what was met, which no predictor could
    /// foresee: half of the neighbours in a walk have been met.
    #[inline]
    pub(crate) fn insert_all(&mut self, ids: impl Iterator<Item = u32>, most: usize, new: &mut Vec<u32>) {
        let (mut kept, mut touched) = (new.len(), self.touched.len());
        new.resize(kept + most, 0);
        self.touched.resize(touched + most, 0);
        for id in ids.take(most) {
            let word = &mut self.words[id as usize / 64];
            let bit = 1 << (id % 64);
            self.touched[touched] = id / 64;
            touched += usize::from(*word == 0);
            new[kept] = id;
            kept += usize::from(*word & bit == 0);
            *word |= bit;
        }
        new.truncate(kept);
        self.touched.truncate(touched);
    }

    /// Adds `id`; whether it was new.
    #[inline]
    pub(crate) fn insert(&mut self, id: u32) -> bool {
        let word = &mut self.words[id as usize / 64];
        let bit = 1 << (id % 64);
        let new = *word & bit == 0;
        if *word == 0 {
            self.touched.push(id / 64);
        }
        *word |= bit;
        new
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
                let mut new = vec![7];
                all.insert_all(ids(), 40, &mut new);
                assert_eq!(new[1..], expected);
            }
        }
    }
}
