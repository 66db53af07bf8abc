//! A set of rows, shared and replaced rather than changed.

use std::sync::Arc;

/// Rows by their numbers; those beyond its words are not in it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Bits {
    words: Arc<Vec<u64>>,
    count: usize,
}

impl Bits {
    pub(super) fn contains(&self, row: u32) -> bool {
        self.words.get(row as usize / 64).is_some_and(|word| word >> (row % 64) & 1 == 1)
    }

    /// Whether `row` was not in it.
    pub(super) fn insert(&mut self, row: u32) -> bool {
        if self.contains(row) {
            return false;
        }
        let words = Arc::make_mut(&mut self.words);
        words.resize(words.len().max(row as usize / 64 + 1), 0);
        words[row as usize / 64] |= 1 << (row % 64);
        self.count += 1;
        true
    }

    /// Number of rows in it.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// The rows, ascending.
    pub(super) fn rows(&self) -> impl Iterator<Item = u32> {
        ascending(self.words.iter().copied())
    }

    /// The rows right behind `row` that are in it, up to the first that is not.
    pub(super) fn run_behind(&self, row: u32) -> impl Iterator<Item = u32> {
        (row + 1..).take_while(|&row| self.contains(row))
    }

    /// The last row that is not in it, of those up to `row`.
    pub(super) fn last_absent(&self, row: u32) -> Option<u32> {
        let (at, above) = (row as usize / 64, 63 - row % 64);
        // What lies above the row is of no interest.
        let absent = |at: usize| !self.words.get(at).copied().unwrap_or(0);
        let first = absent(at) << above >> above;
        let (at, word) = std::iter::once((at, first))
            .chain((0..at).rev().map(|at| (at, absent(at))))
            .find(|(_, word)| *word != 0)?;
        Some(64 * at as u32 + 63 - word.leading_zeros())
    }

    /// How many rows are in it, and not in `other`.
    pub(super) fn count_without(&self, other: &Bits) -> usize {
        if other.count == 0 {
            return self.count;
        }
        let left =
            |(at, word): (usize, &u64)| (word & !other.words.get(at).unwrap_or(&0)).count_ones() as usize;
        self.words.iter().enumerate().map(left).sum()
    }

    /// The rows that are in it and not in `before`, ascending.
    pub(super) fn since(&self, before: &Bits) -> impl Iterator<Item = u32> {
        let new = |(at, word): (usize, &u64)| word & !before.words.get(at).unwrap_or(&0);
        ascending(self.words.iter().enumerate().map(new))
    }

    /// Memory that it takes.
    pub(super) fn bytes(&self) -> usize {
        8 * self.words.len()
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        self.words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    /// `None` if they are no words, or a row is not below `rows`.
    pub(super) fn from_bytes(bytes: &[u8], rows: usize) -> Option<Bits> {
        let (words, rest) = bytes.as_chunks::<8>();
        let words: Vec<u64> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
        let last = words.iter().enumerate().rev().find(|(_, word)| **word != 0);
        let end = last.map_or(0, |(at, word)| at * 64 + 64 - word.leading_zeros() as usize);
        let count = words.iter().map(|word| word.count_ones() as usize).sum();
        (rest.is_empty() && end <= rows).then(|| Bits { words: words.into(), count })
    }
}

impl Extend<u32> for Bits {
    fn extend<I: IntoIterator<Item = u32>>(&mut self, rows: I) {
        for row in rows {
            self.insert(row);
        }
    }
}

/// The bits that are set.
fn ascending(words: impl Iterator<Item = u64>) -> impl Iterator<Item = u32> {
    (0..).zip(words).flat_map(|(at, word)| {
        let mut left = word;
        std::iter::from_fn(move || {
            let bit = (left != 0).then(|| left.trailing_zeros())?;
            left &= left - 1;
            Some(64 * at + bit)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn bits_are_a_set(rows in prop::collection::vec(0u32..300, 0..80), limit in 0usize..400) {
            let (mut bits, mut set) = (Bits::default(), BTreeSet::new());
            for &row in &rows {
                prop_assert_eq!(bits.insert(row), set.insert(row));
            }
            prop_assert_eq!(bits.count(), set.len());
            prop_assert!((0..400).all(|row| bits.contains(row) == set.contains(&row)));
            prop_assert!(bits.rows().eq(set.iter().copied()));
            let absent = |row: u32| (0..=row).rev().find(|row| !set.contains(row));
            prop_assert!((0..400).all(|row| bits.last_absent(row) == absent(row)));
            let mut before = Bits::default();
            for &row in rows.iter().take(rows.len() / 2) {
                before.insert(row);
            }
            prop_assert!(bits.since(&before).eq(set.iter().copied().filter(|&row| !before.contains(row))));
            prop_assert_eq!(before.since(&bits).count(), 0);
            prop_assert_eq!(bits.count_without(&before), bits.since(&before).count());
            let inside = set.last().is_none_or(|&row| (row as usize) < limit);
            prop_assert_eq!(Bits::from_bytes(&bits.to_bytes(), limit).is_some(), inside);
            prop_assert_eq!(Bits::from_bytes(&bits.to_bytes(), 400), Some(bits));
        }
    }
}
