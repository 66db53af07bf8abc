//! The candidates of a search: the best `ef` so far, sorted, each marked once it has been expanded.
//!
//! One sorted array serves as both of HNSW's heaps (as in NSG and Vamana): the next node to expand is the first
//! unmarked entry, the bound is the last. An entry is one integer, key above id above mark, so that comparing entries is
//! comparing integers and ties are broken by id.

/// A candidate: key, id and mark in one integer that orders by key, then id.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Entry(u64);

/// Ids must be below this: their highest bit makes room for the mark.
pub(crate) const IDS: usize = 1 << 31;

impl Entry {
    /// After all others.
    const MAX: Entry = Entry(u64::MAX);

    #[inline]
    pub(crate) fn new(key: i32, id: u32) -> Self {
        let key = key as u32 ^ 0x8000_0000;
        Entry(u64::from(key) << 32 | u64::from(id) << 1)
    }

    #[inline]
    pub(crate) fn id(self) -> u32 {
        self.0 as u32 >> 1
    }

    #[inline]
    pub(crate) fn key(self) -> i32 {
        ((self.0 >> 32) as u32 ^ 0x8000_0000) as i32
    }

    fn expanded(self) -> bool {
        self.0 & 1 == 1
    }
}

/// The best entries so far, ascending.
#[derive(Default)]
pub(crate) struct Pool {
    entries: Vec<Entry>,
    /// No entry before this one is unexpanded.
    next: usize,
    capacity: usize,
    /// Those of `push_all` that are better than the worst, from the front; behind them only room.
    better: Vec<Entry>,
    /// How many entries come before each of them.
    ranks: Vec<usize>,
}

impl Pool {
    /// Empties the pool; it will keep the best `capacity` (at least one).
    pub(crate) fn reset(&mut self, capacity: usize) {
        self.entries.clear();
        self.next = 0;
        self.capacity = capacity.max(1);
    }

    /// Adds `entry` out of order, until `settle` brings order. Fewer than twice the capacity are held meanwhile.
    #[inline]
    pub(crate) fn append(&mut self, entry: Entry) {
        self.entries.push(entry);
        if self.entries.len() >= self.capacity.saturating_mul(2) {
            self.cut();
        }
    }

    /// Makes the pool the best of what was appended.
    pub(crate) fn settle(&mut self) {
        self.cut();
        self.entries.sort_unstable();
    }

    fn cut(&mut self) {
        if self.capacity < self.entries.len() {
            self.entries.select_nth_unstable(self.capacity);
            self.entries.truncate(self.capacity);
        }
    }

    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Inserts `entry`, which must not be there yet, if it is among the best.
    #[inline]
    pub(crate) fn push(&mut self, entry: Entry) {
        if self.entries.len() == self.capacity {
            if self.entries.last().is_some_and(|&worst| entry >= worst) {
                return;
            }
            self.entries.pop();
        }
        let at = self.entries.partition_point(|&e| e < entry);
        self.entries.insert(at, entry);
        self.next = self.next.min(at);
    }

    /// As `push`, for those of `entries` that fit. Most are worse than what is there, unforeseeably which: they are left
    /// out without branches. `first` hears of the best of the others before they are put in their places.
    #[inline]
    pub(crate) fn push_all(
        &mut self,
        entries: impl ExactSizeIterator<Item = Entry>,
        fits: impl Fn(Entry) -> bool,
        first: impl FnOnce(Entry),
    ) {
        if self.better.len() < entries.len() {
            self.better.resize(entries.len(), Entry::MAX);
            self.ranks.resize(entries.len(), 0);
        }
        let worst = self.worst().unwrap_or(Entry::MAX);
        let better = &mut self.better[..entries.len()];
        let mut kept = 0;
        for entry in entries {
            better[kept] = entry;
            kept += usize::from((entry < worst) & fits(entry));
        }
        self.better[..kept].sort_unstable();
        if let Some(&best) = self.better[..kept].first() {
            first(best);
        }
        self.merge(kept);
    }

    /// Merges the first `kept` of `better` in, which are sorted. All places are looked up before anything moves, so that the look-ups overlap
    /// and wait for no move; then every entry moves once.
    fn merge(&mut self, kept: usize) {
        let (better, ranks) = (&mut self.better[..kept], &mut self.ranks[..kept]);
        for (rank, entry) in ranks.iter_mut().zip(&*better) {
            *rank = self.entries.partition_point(|e| e < entry);
        }
        let mut end = self.entries.len();
        self.entries.resize(end + kept, Entry::MAX);
        for (before, (&entry, &at)) in better.iter().zip(&*ranks).enumerate().rev() {
            self.entries.copy_within(at..end, at + before + 1);
            self.entries[at + before] = entry;
            end = at;
        }
        self.entries.truncate(self.capacity);
        self.next = self.next.min(end);
    }

    /// The entry that the next better one would replace, if the pool is full.
    #[inline]
    pub(crate) fn worst(&self) -> Option<Entry> {
        self.entries.last().copied().filter(|_| self.entries.len() == self.capacity)
    }

    /// The best unexpanded entry, now marked as expanded.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Entry> {
        self.skip();
        let entry = self.entries.get_mut(self.next)?;
        let best = *entry;
        entry.0 |= 1;
        Some(best)
    }

    /// The entry that `pop` would give.
    #[inline]
    pub(crate) fn peek(&mut self) -> Option<Entry> {
        self.skip();
        self.entries.get(self.next).copied()
    }

    fn skip(&mut self) {
        while self.entries.get(self.next).is_some_and(|e| e.expanded()) {
            self.next += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Exact searches for many results hold so many for each of their queries, not all vectors.
    #[test]
    fn what_is_appended_stays_below_twice_what_is_kept() {
        let (mut pool, mut all) = (Pool::default(), Vec::new());
        pool.reset(100);
        for id in 0..10_000u32 {
            let entry = Entry::new((id.wrapping_mul(2_654_435_761) >> 8) as i32, id);
            pool.append(entry);
            all.push(entry);
            assert!(pool.entries().len() < 200, "{} after {id}", pool.entries().len());
        }
        all.sort_unstable();
        pool.settle();
        assert_eq!(pool.entries(), &all[..100]);
    }

    proptest! {
        /// Against the definition: keep all, sort, cut; the next is the first not yet taken.
        #[test]
        fn keeps_the_best_and_expands_each_once(
            keys in proptest::collection::vec(any::<i32>(), 0..200),
            capacity in 1usize..40,
        ) {
            let mut pool = Pool::default();
            pool.reset(capacity);
            let mut all: Vec<(i32, u32)> = Vec::new();
            let mut taken = Vec::new();
            for (id, &key) in keys.iter().enumerate() {
                pool.push(Entry::new(key, id as u32));
                all.push((key, id as u32));
                all.sort();
                all.truncate(capacity);
                if id % 3 == 0 {
                    let expected = all.iter().find(|e| !taken.contains(*e)).copied();
                    prop_assert_eq!(pool.peek().map(|e| (e.key(), e.id())), expected);
                    prop_assert_eq!(pool.pop().map(|e| (e.key(), e.id())), expected);
                    taken.extend(expected);
                }
            }
            let kept: Vec<_> = pool.entries().iter().map(|e| (e.key(), e.id())).collect();
            prop_assert_eq!(kept, all);
        }

        /// The same, for many at a time of which some do not fit.
        #[test]
        fn many_at_once_are_as_one_by_one(
            steps in proptest::collection::vec(proptest::collection::vec(-50..50i32, 0..40), 0..20),
            capacity in 1usize..60,
            limit in -20..60i32,
        ) {
            let (mut pool, mut one) = (Pool::default(), Pool::default());
            pool.reset(capacity);
            one.reset(capacity);
            for (step, keys) in steps.iter().enumerate() {
                let entries = keys.iter().enumerate().map(|(i, &key)| Entry::new(key, (40 * step + i) as u32));
                entries.clone().filter(|e| e.key() <= limit).for_each(|e| one.push(e));
                let best = entries.clone().filter(|e| e.key() <= limit && pool.worst().is_none_or(|w| *e < w)).min();
                let mut first = None;
                pool.push_all(entries, |e| e.key() <= limit, |e| first = Some(e));
                prop_assert_eq!(first, best);
                prop_assert_eq!(pool.entries(), one.entries());
                prop_assert_eq!(pool.pop(), one.pop());
            }
        }
    }
}
