//! Which vectors may be results: sets of rows as bitmaps. A row is a vector's place in an index, in the order of
//! insertion.

use std::sync::Arc;

/// A set of rows; rows beyond its words are not in it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct RowSet {
    words: Arc<[u64]>,
    count: usize,
}

impl RowSet {
    pub(crate) fn of(words: Vec<u64>) -> RowSet {
        let count = words.iter().map(|word| word.count_ones() as usize).sum();
        RowSet { words: words.into(), count }
    }

    /// The words as the bytes that a file holds (little-endian machines only, see `format`).
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: numbers without padding.
        unsafe { std::slice::from_raw_parts(self.words.as_ptr().cast(), size_of_val(&*self.words)) }
    }

    /// The rows in the set, ascending.
    pub(crate) fn rows(&self) -> impl Iterator<Item = u32> {
        self.words.iter().enumerate().flat_map(|(i, &word)| {
            let mut left = word;
            std::iter::from_fn(move || {
                let bit = (left != 0).then(|| left.trailing_zeros())?;
                left &= left - 1;
                Some(i as u32 * 64 + bit)
            })
        })
    }

    /// A bit for each row in the set.
    pub(crate) fn words(&self) -> &[u64] {
        &self.words
    }

    /// Number of rows in the set.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    #[inline]
    pub(crate) fn contains(&self, row: u32) -> bool {
        bit(&self.words, row)
    }

    /// Of the `of` rows of a state those that are not in this set, the deleted ones.
    pub(crate) fn others(&self, of: usize) -> RowSet {
        let word = |at: usize| {
            let all = if of - 64 * at < 64 { (1 << (of % 64)) - 1 } else { u64::MAX };
            all & !self.words.get(at).unwrap_or(&0)
        };
        RowSet::of((0..of.div_ceil(64)).map(word).collect())
    }

    /// The set without `rows`.
    pub(crate) fn without(&self, rows: impl Iterator<Item = u32>) -> RowSet {
        let mut words = self.words.to_vec();
        for row in rows {
            if let Some(word) = words.get_mut(row as usize / 64) {
                *word &= !(1 << (row % 64));
            }
        }
        RowSet::of(words)
    }

    /// The set with `rows` besides.
    pub(crate) fn with(&self, rows: &[u32]) -> RowSet {
        let Some(most) = rows.iter().max() else { return self.clone() };
        let mut words = self.words.to_vec();
        words.resize(words.len().max(*most as usize / 64 + 1), 0);
        rows.iter().for_each(|&row| words[row as usize / 64] |= 1 << (row % 64));
        RowSet::of(words)
    }
}

/// Whether the bit of `row` is there and set.
#[inline]
pub(crate) fn bit(words: &[u64], row: u32) -> bool {
    words.get(row as usize / 64).is_some_and(|word| word >> (row % 64) & 1 == 1)
}

/// Which members of a graph, or rows of a space, may be results.
pub(crate) trait Accept: Sync {
    /// Whether all may, so that nobody need ask.
    const ALL: bool = false;
    fn accepts(&self, row: u32) -> bool;
}

/// All of them.
pub(crate) struct Everything;

impl Accept for Everything {
    const ALL: bool = true;
    #[inline]
    fn accepts(&self, _: u32) -> bool {
        true
    }
}

/// Those that were not deleted.
impl Accept for RowSet {
    #[inline]
    fn accepts(&self, row: u32) -> bool {
        !self.contains(row)
    }
}

/// The vectors among which a search looks for the nearest: made by [`Reader::filter`](crate::Reader::filter) for one
/// state of an index, usable for any number of searches of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Filter {
    /// Deleted rows are not in it.
    rows: RowSet,
    /// The state whose rows they are.
    pub(crate) version: u64,
}

impl Filter {
    /// Of the `of` rows of a state those that `chosen` says, which is asked once for each
    /// that is not `deleted`, in order.
    pub(crate) fn new(
        version: u64,
        of: usize,
        deleted: &RowSet,
        mut chosen: impl FnMut(u32) -> bool,
    ) -> Filter {
        let word = |first: usize| {
            let live =
                (first..of.min(first + 64)).map(|row| row as u32).filter(|&row| !deleted.contains(row));
            live.fold(0, |word, row| word | u64::from(chosen(row)) << (row % 64))
        };
        Filter { rows: RowSet::of((0..of).step_by(64).map(word).collect()), version }
    }

    /// Of the `of` rows of a state just `rows`, none of which was deleted.
    pub(crate) fn of_rows(version: u64, of: usize, rows: impl Iterator<Item = u32>) -> Filter {
        let mut words = vec![0; of.div_ceil(64)];
        rows.for_each(|row| words[row as usize / 64] |= 1 << (row % 64));
        Filter { rows: RowSet::of(words), version }
    }

    /// Of the `of` rows of a state all that are not `deleted`.
    pub(crate) fn of_all(version: u64, of: usize, deleted: &RowSet) -> Filter {
        Filter { rows: deleted.others(of), version }
    }

    /// The filter without `rows`.
    pub(crate) fn without(&self, rows: impl Iterator<Item = u32>) -> Filter {
        Filter { rows: self.rows.without(rows), version: self.version }
    }

    /// Number of vectors that may be results.
    pub fn matches(&self) -> usize {
        self.rows.count
    }

    /// Memory that it takes.
    pub fn bytes(&self) -> usize {
        size_of_val(self.words())
    }

    /// A bit for each row that may be a result.
    pub(crate) fn words(&self) -> &[u64] {
        self.rows.words()
    }

    /// The rows that may be results, ascending.
    pub(crate) fn rows(&self) -> impl Iterator<Item = u32> {
        self.rows.rows()
    }
}

impl Accept for Filter {
    #[inline]
    fn accepts(&self, row: u32) -> bool {
        self.rows.contains(row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn a_filter_is_the_set_that_it_was_made_of(
            of in 0usize..300,
            deleted in proptest::collection::btree_set(0u32..300, 0..80),
            chosen in proptest::collection::btree_set(0u32..300, 0..80),
        ) {
            let gone: Vec<u32> = deleted.iter().copied().collect();
            let (first, second) = gone.split_at(gone.len() / 2);
            let set = RowSet::default().with(first).with(second);
            prop_assert_eq!(set.count(), deleted.len());
            let filter = Filter::new(0, of, &set, |row| chosen.contains(&row));
            let expected: BTreeSet<u32> =
                chosen.difference(&deleted).copied().filter(|&row| (row as usize) < of).collect();
            prop_assert_eq!(filter.matches(), expected.len());
            prop_assert!(filter.rows().eq(expected.iter().copied()));
            for row in 0..400 {
                prop_assert_eq!(filter.accepts(row), expected.contains(&row));
                prop_assert_eq!(set.accepts(row), !deleted.contains(&row));
            }
            let all = Filter::of_all(0, of, &set);
            prop_assert!(all.rows().eq((0..of as u32).filter(|row| !deleted.contains(row))));
            let left = all.without(chosen.iter().copied());
            let expected = |row: &u32| !deleted.contains(row) && !chosen.contains(row);
            prop_assert!(left.rows().eq((0..of as u32).filter(expected)));
            prop_assert_eq!(left.matches(), left.rows().count());
        }
    }
}
