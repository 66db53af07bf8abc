//! A value that many read and a few replace: who reads neither waits nor locks, and a replaced value is freed when the
//! last that reads it is done (document 004, section VI-B, "epoched snapshot").
//!
//! The current value lies in one of a few slots. `current` holds the slot's number and how many have begun to read there:
//! one addition takes both, so nobody can begin to read a slot that was replaced. Who is done takes one off the slot's
//! `balance`; who replaces the value adds to the balance how many have begun. The balance is 0 again exactly once, when
//! both have happened and the last is done; whoever brings it there frees the value.
//!
//! An `Arc` behind a lock would make submitters wait for each other; hazard pointers would need a list of threads.

use crate::sync::{AtomicBool, AtomicI64, AtomicU64, Mutex, Ordering, Padded, UnsafeCell, yield_now};

/// A reader that is suspended keeps its slot; the others go on replacing until all slots are kept.
const SLOTS: usize = if cfg!(loom) { 2 } else { 4 };

/// Below: how many have begun to read. At a hundred million a second these bits last for 22 years.
const SLOT_SHIFT: u32 = 56;

pub(crate) struct Snapshot<T> {
    current: Padded<AtomicU64>,
    slots: [Padded<Slot<T>>; SLOTS],
    /// Held while the value is replaced.
    writer: Mutex<()>,
}

struct Slot<T> {
    value: UnsafeCell<Option<T>>,
    balance: AtomicI64,
    free: AtomicBool,
}

// SAFETY: readers share the value (`Sync`); whoever is last drops it, on any thread (`Send`). The protocol above keeps
// writing and reading apart.
unsafe impl<T: Send + Sync> Sync for Snapshot<T> {}

impl<T> Slot<T> {
    fn settle(&self, change: i64) {
        // Release: what was read was read before. Acquire: who frees comes after all who read.
        if self.balance.fetch_add(change, Ordering::AcqRel) + change == 0 {
            // SAFETY: nobody can begin to read here, and all that began are done.
            drop(self.value.with_mut(|value| unsafe { (*value).take() }));
            // Release, with the acquire of who fills the slot again.
            self.free.store(true, Ordering::Release);
        }
    }
}

/// Takes one off the balance, also when reading panics.
struct Reading<'a, T>(&'a Slot<T>);

impl<T> Drop for Reading<'_, T> {
    fn drop(&mut self) {
        self.0.settle(-1);
    }
}

impl<T> Snapshot<T> {
    pub(crate) fn new(value: T) -> Self {
        let mut first = Some(value);
        let slots = std::array::from_fn(|_| {
            let value = first.take();
            let free = AtomicBool::new(value.is_none());
            Padded(Slot { value: UnsafeCell::new(value), balance: AtomicI64::new(0), free })
        });
        Snapshot { current: Padded(AtomicU64::new(0)), slots, writer: Mutex::new(()) }
    }

    /// Shows the current value.
    pub(crate) fn read<R>(&self, f: impl FnOnce(&T) -> R) -> R {
        // Acquire, with `replace`'s release: the value is there.
        let slot = self.current.fetch_add(1, Ordering::Acquire) >> SLOT_SHIFT;
        let reading = Reading(&self.slots[slot as usize].0);
        // SAFETY: written before it became current, and freed only after `reading` is dropped.
        reading.0.value.with(|value| f(unsafe { (*value).as_ref() }.expect("the current slot is filled")))
    }

    /// Puts the value that `next` makes of the current one into its place, if it makes one; whether it did. Waits for
    /// others that do this, and for readers only if all slots are kept by readers of values long gone.
    pub(crate) fn replace(&self, next: impl FnOnce(&T) -> Option<T>) -> bool {
        let _writer = self.writer.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        // Relaxed: only who holds the lock changes the slot.
        let old = (self.current.load(Ordering::Relaxed) >> SLOT_SHIFT) as usize;
        // SAFETY: the current slot is freed only after it was replaced, and the lock is ours.
        let made = self.slots[old].value.with(|value| next(unsafe { (*value).as_ref() }.expect("filled")));
        let Some(value) = made else { return false };
        let free = loop {
            // Acquire, with `settle`'s release: the old value is gone.
            match self.slots.iter().position(|slot| slot.free.load(Ordering::Acquire)) {
                Some(slot) => break slot,
                None => yield_now(),
            }
        };
        let slot = &self.slots[free];
        // Relaxed: the lock orders who writes it so.
        slot.free.store(false, Ordering::Relaxed);
        // SAFETY: free: no reader can begin before the swap below.
        slot.value.with_mut(|place| unsafe { *place = Some(value) });
        // Release, with `read`'s acquire. Readers' additions need nothing of us: relaxed but for that.
        let begun = self.current.swap((free as u64) << SLOT_SHIFT, Ordering::Release);
        self.slots[old].settle((begun & ((1 << SLOT_SHIFT) - 1)) as i64);
        true
    }
}

#[cfg(all(test, loom))]
mod loom_models {
    use super::Snapshot;
    use loom::sync::Arc;
    use loom::thread;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Loom itself reports a value that is read while another thread frees or fills its slot; this counts what is freed.
    struct Value(u32, std::sync::Arc<AtomicUsize>);

    impl Drop for Value {
        fn drop(&mut self) {
            self.1.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn model(readers: usize, replacements: u32) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(move || {
            let freed = std::sync::Arc::new(AtomicUsize::new(0));
            let snapshot = Arc::new(Snapshot::new(Value(0, freed.clone())));
            let read = {
                let snapshot = snapshot.clone();
                move || {
                    let first = snapshot.read(|value| value.0);
                    let second = snapshot.read(|value| value.0);
                    assert!(first <= second && second <= replacements, "{first} {second}");
                }
            };
            let threads: Vec<_> = (0..readers).map(|_| thread::spawn(read.clone())).collect();
            for _ in 0..replacements {
                assert!(snapshot.replace(|old| Some(Value(old.0 + 1, freed.clone()))));
            }
            snapshot.read(|value| assert_eq!(value.0, replacements));
            threads.into_iter().for_each(|thread| thread.join().unwrap());
            // All readers are done: all that was replaced is freed, and nothing else.
            assert_eq!(freed.load(Ordering::Relaxed), replacements as usize);
        });
    }

    #[test]
    fn what_was_replaced_is_freed_by_the_last_reader() {
        model(2, 1);
    }

    #[test]
    fn slots_are_used_again_only_once_free() {
        model(1, 2);
    }

    #[test]
    fn two_who_replace_lose_nothing() {
        loom::model(|| {
            let snapshot = Arc::new(Snapshot::new(0));
            let other = {
                let snapshot = snapshot.clone();
                thread::spawn(move || snapshot.replace(|old| Some(old + 1)))
            };
            snapshot.replace(|old| Some(old + 1));
            other.join().unwrap();
            assert_eq!(snapshot.read(|value| *value), 2);
        });
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::{SLOTS, Snapshot};
    use std::sync::Arc;

    #[test]
    fn a_replaced_value_lives_until_its_readers_are_done() {
        let first = Arc::new(());
        let snapshot = Snapshot::new((0, first.clone()));
        snapshot.read(|old| {
            assert!(snapshot.replace(|_| Some((1, Arc::new(())))));
            assert_eq!(snapshot.read(|new| new.0), 1);
            assert_eq!((old.0, Arc::strong_count(&first)), (0, 2));
        });
        assert_eq!(Arc::strong_count(&first), 1);
        assert!(!snapshot.replace(|_| None));
        for i in 2..10 * SLOTS {
            snapshot.replace(|old| Some((old.0 + 1, Arc::new(()))));
            assert_eq!(snapshot.read(|value| value.0), i);
        }
    }

    #[test]
    fn a_reader_that_panics_lets_go() {
        let first = Arc::new(());
        let snapshot = Snapshot::new(first.clone());
        let read = std::panic::AssertUnwindSafe(|| snapshot.read(|_| panic!("while reading")));
        assert!(std::panic::catch_unwind(read).is_err());
        snapshot.replace(|_| Some(Arc::new(())));
        assert_eq!(Arc::strong_count(&first), 1);
    }
}
