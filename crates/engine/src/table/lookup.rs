//! Rows by document id: open addressing over 32-bit places, half of them empty, as memory that the head's writer fills
//! while others read, and as bytes of a segment.
//!
//! An id may have several rows in a head, of which at most one is alive; so all rows of an id are given, oldest first.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use twox_hash::XxHash3_64;

/// An empty place. Others hold a row, plus one.
const EMPTY: u32 = 0;

pub(super) fn hash(id: &str) -> u64 {
    XxHash3_64::oneshot(id.as_bytes())
}

/// Places for so many rows.
fn places(rows: usize) -> usize {
    (rows * 2).next_power_of_two().max(16)
}

/// What lies at the places from `hash` on, up to the first empty one; none is asked twice.
fn chain(hash: u64, places: usize, at: impl Fn(usize) -> u32) -> impl Iterator<Item = u32> {
    let first = hash as usize;
    (0..places)
        .map(move |i| at((first + i) & (places - 1)))
        .take_while(|&row| row != EMPTY)
        .map(|row| row - 1)
}

/// Of the head: shared with readers, filled by one writer.
#[derive(Clone)]
pub(super) struct Lookup {
    places: Arc<[AtomicU32]>,
}

impl Lookup {
    pub(super) fn new(rows: usize) -> Lookup {
        Lookup { places: (0..places(rows)).map(|_| AtomicU32::new(EMPTY)).collect() }
    }

    /// Whether one more row than `rows` calls for a larger one.
    pub(super) fn is_full(&self, rows: usize) -> bool {
        places(rows + 1) > self.places.len()
    }

    /// Rows that may be of an id with this hash, oldest first. Rows that came after a reader's view may be among them.
    pub(super) fn rows(&self, hash: u64) -> impl Iterator<Item = u32> {
        // Acquire, with the writer's release: what the row number leads to is there.
        chain(hash, self.places.len(), |place| self.places[place].load(Ordering::Acquire))
    }

    /// By the writer only, and not if it is full.
    pub(super) fn insert(&self, hash: u64, row: u32) {
        let mask = self.places.len() - 1;
        let free = (0..self.places.len()).map(|i| (hash as usize + i) & mask);
        let free = free.into_iter().find(|&place| self.places[place].load(Ordering::Relaxed) == EMPTY);
        // Release: see `rows`.
        self.places[free.expect("it is not full")].store(row + 1, Ordering::Release);
    }
}

/// The bytes of a table of rows whose ids have these hashes; `None`: a row without an id.
pub(super) fn to_bytes(hashes: impl ExactSizeIterator<Item = Option<u64>>) -> Vec<u8> {
    let lookup = Lookup::new(hashes.len());
    (0..)
        .zip(hashes)
        .filter_map(|(row, hash)| Some((row, hash?)))
        .for_each(|(row, hash)| lookup.insert(hash, row));
    lookup.places.iter().flat_map(|place| place.load(Ordering::Relaxed).to_le_bytes()).collect()
}

/// Bytes of a table of so many rows.
pub(super) fn bytes(rows: usize) -> usize {
    4 * places(rows)
}

/// As [`Lookup::rows`], of a table's bytes, of which there are [`bytes`].
pub(super) fn rows(bytes: &[u8], hash: u64) -> impl Iterator<Item = u32> {
    let (places, _) = bytes.as_chunks::<4>();
    chain(hash, places.len(), |place| u32::from_le_bytes(places[place]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn rows_are_found_by_hash(hashes in prop::collection::vec(0u64..40, 0..200)) {
            let bytes = to_bytes(hashes.iter().copied().map(Some));
            prop_assert_eq!(bytes.len(), super::bytes(hashes.len()));
            let lookup = Lookup::new(hashes.len());
            (0..).zip(&hashes).for_each(|(row, &hash)| lookup.insert(hash, row));
            prop_assert!(!lookup.is_full(hashes.len().saturating_sub(1)));
            for hash in 0..45 {
                let expected = |rows: Vec<u32>| {
                    let own = rows.iter().copied().filter(|&row| hashes[row as usize] == hash);
                    let all = (0..).zip(&hashes).filter(|(_, h)| **h == hash).map(|(row, _)| row);
                    own.eq(all)
                };
                prop_assert!(expected(lookup.rows(hash).collect()), "{hash}");
                prop_assert!(expected(rows(&bytes, hash).collect()), "{hash} in bytes");
            }
        }
    }
}
