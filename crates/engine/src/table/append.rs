//! A vector that grows at its end while others read what was there: one writer, and readers that never wait.

use std::cmp::Ordering;
use std::sync::{Arc, OnceLock};

/// Elements that are allocated at a time.
const CHUNK: usize = 256;

/// Elements that were there at one moment; growing it does not change the copies that others hold.
pub(super) struct Appended<T> {
    chunks: Vec<Arc<[OnceLock<T>]>>,
    len: usize,
}

impl<T> Default for Appended<T> {
    fn default() -> Self {
        Appended { chunks: Vec::new(), len: 0 }
    }
}

impl<T> Clone for Appended<T> {
    fn clone(&self) -> Self {
        Appended { chunks: self.chunks.clone(), len: self.len }
    }
}

impl<T> Appended<T> {
    /// To be called on the newest copy only.
    pub(super) fn push(&mut self, element: T) {
        if self.len == self.chunks.len() * CHUNK {
            self.chunks.push((0..CHUNK).map(|_| OnceLock::new()).collect());
        }
        let place = &self.chunks[self.len / CHUNK][self.len % CHUNK];
        assert!(place.set(element).is_ok(), "an older copy was added to");
        self.len += 1;
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn get(&self, at: usize) -> Option<&T> {
        // Another copy may have gone on.
        if at < self.len { self.chunks[at / CHUNK][at % CHUNK].get() } else { None }
    }

    /// The place of an element; they must ascend.
    pub(super) fn position(&self, element: &T) -> Option<usize>
    where
        T: Ord,
    {
        let (mut low, mut high) = (0, self.len);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.get(middle)?.cmp(element) {
                Ordering::Less => low = middle + 1,
                Ordering::Equal => return Some(middle),
                Ordering::Greater => high = middle,
            }
        }
        None
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        (0..self.len).filter_map(|at| self.get(at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_stay_as_they_were() {
        let mut newest = Appended::default();
        let mut copies = Vec::new();
        for i in 0..3 * CHUNK + 7 {
            copies.push(newest.clone());
            newest.push(i);
        }
        for (len, copy) in copies.iter().enumerate() {
            assert!(copy.len() == len && copy.get(len).is_none() && copy.iter().copied().eq(0..len));
            let place = |i: usize| (i < len).then_some(i);
            assert!((0..len + 3).step_by(41).all(|i| copy.position(&i) == place(i)));
        }
    }
}
