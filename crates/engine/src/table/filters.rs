//! What filters match in a sealed segment, kept for the next search.
//!
//! Which rows a filter matches never changes in a segment, as dead rows are passed over by whoever searches; which vectors
//! may be results changes as rows die, so that is kept with them, and of what was kept those that died since are taken out:
//! asking about each row anew takes milliseconds, which one search after each write would wait for. It goes when the
//! segment goes, and is at most about four bytes for each row, what was used longest ago going first; where memory is short
//! nothing more is kept. Nothing is evaluated under the lock.

use super::bits::Bits;
use crate::Admitted;
use lanewise_index::Filter;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Bitmaps of all rows that a segment keeps.
const BITMAPS: usize = 32;
/// Bytes that even the smallest segment keeps.
const BYTES_MIN: usize = 4096;

/// What is kept of a segment.
pub(super) struct Filters {
    bytes_max: usize,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    /// Used last at the end.
    entries: Vec<Entry>,
    bytes: usize,
    /// Of the whole segment, and what it is without what is kept here.
    memory: Option<Admitted>,
    base: u64,
}

struct Entry {
    /// The filter as JSON; empty: none.
    filter: Box<str>,
    bytes: usize,
    value: Value,
}

enum Value {
    Rows(Bits),
    Vectors { field: usize, dead: Bits, filter: Filter },
}

impl Filters {
    /// Of a segment with so many rows, whose memory it keeps.
    pub(super) fn new(rows: usize, memory: Option<Admitted>) -> Filters {
        let base = memory.as_ref().map_or(0, Admitted::bytes);
        let kept = Mutex::new(Kept { memory, base, ..Kept::default() });
        Filters { bytes_max: BYTES_MIN + BITMAPS * rows.div_ceil(8), kept }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The rows that `filter` matches, if they are known.
    pub(super) fn rows(&self, filter: &str) -> Option<Bits> {
        self.kept().find(filter, |value| match value {
            Value::Rows(rows) => Some(rows.clone()),
            Value::Vectors { .. } => None,
        })
    }

    pub(super) fn keep_rows(&self, filter: &str, rows: &Bits) {
        self.keep(filter, rows.bytes(), Value::Rows(rows.clone()));
    }

    /// The vectors of `field` whose rows `filter` matches and that are not `dead`. If they are not known, `make` makes them of
    /// those that are, if there are any: with the rows that were dead then, fewer than now.
    pub(super) fn vectors(
        &self,
        filter: &str,
        field: usize,
        dead: &Bits,
        make: impl FnOnce(Option<(Bits, Filter)>) -> Filter,
    ) -> Filter {
        let known = self.kept().find(filter, |value| match value {
            Value::Vectors { field: f, dead, filter } if *f == field => Some((dead.clone(), filter.clone())),
            _ => None,
        });
        // Rows only die: as many are the same.
        let known = match known {
            Some((before, filter)) if before.count() == dead.count() => return filter,
            // Whoever searches began before those died.
            Some((later, _)) if later.count() > dead.count() => return make(None),
            known => known,
        };
        let made = make(known);
        let value = Value::Vectors { field, dead: dead.clone(), filter: made.clone() };
        self.keep(filter, made.bytes() + dead.bytes(), value);
        made
    }

    fn keep(&self, filter: &str, bytes: usize, value: Value) {
        let bytes = bytes + filter.len() + size_of::<Entry>();
        if bytes > self.bytes_max {
            return;
        }
        let mut kept = self.kept();
        // What was made meanwhile, or before rows died.
        kept.remove(|entry| *entry.filter == *filter && entry.value.is_replaced_by(&value));
        while kept.bytes + bytes > self.bytes_max {
            kept.remove_first();
        }
        if !kept.hold(bytes) {
            return;
        }
        kept.bytes += bytes;
        kept.entries.push(Entry { filter: filter.into(), bytes, value });
    }
}

impl Value {
    fn is_replaced_by(&self, other: &Value) -> bool {
        match (self, other) {
            (Value::Rows(_), Value::Rows(_)) => true,
            (Value::Vectors { field: a, .. }, Value::Vectors { field: b, .. }) => a == b,
            _ => false,
        }
    }
}

impl Kept {
    fn find<T>(&mut self, filter: &str, of: impl Fn(&Value) -> Option<T>) -> Option<T> {
        let own = |entry: &Entry| if *entry.filter == *filter { of(&entry.value) } else { None };
        let (at, found) = self.entries.iter().enumerate().find_map(|(at, entry)| Some((at, own(entry)?)))?;
        self.entries[at..].rotate_left(1);
        Some(found)
    }

    /// Whether there is memory for so much more than is kept.
    fn hold(&mut self, more: usize) -> bool {
        let kept = self.base + self.bytes as u64;
        let Some(memory) = &mut self.memory else { return true };
        memory.settle(memory.bytes().min(kept));
        memory.raise_if_free(kept + more as u64)
    }

    fn remove(&mut self, which: impl Fn(&Entry) -> bool) {
        if let Some(at) = self.entries.iter().position(which) {
            self.bytes -= self.entries.remove(at).bytes;
        }
    }

    fn remove_first(&mut self) {
        self.bytes -= self.entries.remove(0).bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Admission, MemoryLimit, Purpose, Threads};
    use lanewise_index::{Index, Params, Vectors};
    use proptest::prelude::*;
    use std::num::NonZeroUsize;
    use std::ops::ControlFlow;

    fn rows(seed: u32) -> Bits {
        let mut rows = Bits::default();
        for row in (0..1000).filter(|row| row % (seed + 2) == 0) {
            rows.insert(row);
        }
        rows
    }

    proptest! {
        /// What is known is what was kept, what is kept has a bound, and what was just used is known.
        #[test]
        fn what_is_kept_is_right_and_bounded(asked in prop::collection::vec((0u32..90, any::<bool>()), 1..300)) {
            let filters = Filters::new(1000, None);
            for (seed, keep) in asked {
                let name = seed.to_string();
                if let Some(known) = filters.rows(&name) {
                    prop_assert_eq!(known, rows(seed));
                } else if keep {
                    filters.keep_rows(&name, &rows(seed));
                    prop_assert!(filters.rows(&name).is_some());
                }
                let kept = filters.kept();
                prop_assert_eq!(kept.bytes, kept.entries.iter().map(|entry| entry.bytes).sum::<usize>());
                prop_assert!(kept.bytes <= filters.bytes_max);
            }
        }
    }

    proptest! {
        /// Whatever was known when rows died, and whoever still looks at an older view: the same as asking about each.
        #[test]
        fn vectors_are_those_that_match_and_are_alive(
            steps in prop::collection::vec((prop::collection::vec(0u32..200, 0..20), 0usize..3, 0u32..3), 1..30),
        ) {
            let index = Index::new(Params::new(1)).unwrap();
            let vectors: Vec<f32> = (0..200).map(|row| row as f32).collect();
            let threads = Threads::new(Some(NonZeroUsize::MIN));
            index.add(Vectors::F32(&vectors), None, &threads, &mut |_| ControlFlow::Continue(())).unwrap();
            let (reader, filters) = (index.reader(), Filters::new(1000, None));
            let mut views = vec![Bits::default()];
            for (kill, back, seed) in steps {
                let mut dead = views.last().unwrap().clone();
                for row in kill {
                    dead.insert(row);
                }
                views.push(dead);
                let dead = &views[views.len().saturating_sub(1 + back)];
                let matching = rows(seed);
                let asked = || {
                    let may = |row| !dead.contains(row) && (seed == 0 || matching.contains(row));
                    reader.filter(|number| may(number as u32))
                };
                let make = |known: Option<(Bits, Filter)>| match known {
                    Some((before, filter)) => {
                        let died: Vec<i64> = dead.since(&before).map(i64::from).collect();
                        reader.filter_without(&filter, &died)
                    }
                    None => asked(),
                };
                let name = if seed == 0 { String::new() } else { seed.to_string() };
                prop_assert_eq!(filters.vectors(&name, 0, dead, make), asked());
            }
        }
    }

    /// A filter that is not kept is evaluated again: no head is sealed for it.
    #[test]
    fn a_filter_that_is_not_kept_makes_memory_no_shorter() {
        let admission = Admission::new(MemoryLimit::Bytes(1000), NonZeroUsize::MIN);
        let filters = Filters::new(1000, Some(admission.admit(Purpose::Open, 700).unwrap()));
        filters.keep_rows("all", &rows(0));
        assert!(filters.rows("all").is_none());
        assert!(!admission.is_short(0));
        assert!(admission.admit(Purpose::Open, 200).is_err() && admission.is_short(0));
    }

    #[test]
    fn what_was_used_longest_ago_goes_first() {
        let filters = Filters::new(1000, None);
        let fits = filters.bytes_max / (rows(0).bytes() + 2 + size_of::<Entry>());
        for seed in 0..fits as u32 {
            filters.keep_rows(&format!("{seed:02}"), &rows(seed));
        }
        assert!(filters.rows("00").is_some());
        filters.keep_rows("new", &rows(3));
        assert!(filters.rows("00").is_some() && filters.rows("01").is_none());
        // What is larger than all that may be kept is not.
        let long = "x".repeat(filters.bytes_max);
        filters.keep_rows(&long, &rows(0));
        assert!(filters.rows(&long).is_none() && filters.rows("new").is_some());
    }
}
