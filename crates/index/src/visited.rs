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
}
