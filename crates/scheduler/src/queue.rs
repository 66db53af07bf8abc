//! A worker's queue: a bounded ring that anyone pushes to, and that its owner and thieves pop from; first in, first out.
//!
//! Dmitry Vyukov's bounded queue (1024cores.net, "Bounded MPMC queue"). Slot `i` holds the values of tickets `i`, `i +
//! size`, …; its `turn` says whose turn it is: `ticket`, that ticket's pusher may write; `ticket + 1`, its popper may
//! read. Who wins the exchange of `tail` (or `head`) from `ticket` to `ticket + 1` has the slot alone until it passes the
//! turn on. Invariant: each value that was taken in comes out once.
//!
//! A double-ended queue (Chase and Lev's, as in crossbeam-deque) would be cheaper for its owner, but lets only the owner
//! push; here everyone but the owner does.

use crate::sync::{AtomicU64, AtomicUsize, Ordering, Padded, UnsafeCell};
use std::mem::MaybeUninit;

pub(crate) struct Queue<T> {
    /// The next pusher's ticket.
    tail: Padded<AtomicUsize>,
    /// The next popper's ticket.
    head: Padded<AtomicUsize>,
    slots: Box<[Slot<T>]>,
}

struct Slot<T> {
    turn: AtomicUsize,
    /// When its value came.
    since_ns: AtomicU64,
    value: UnsafeCell<MaybeUninit<T>>,
}

// SAFETY: the turns let one thread at a time at a slot's value, and pass it on with release and acquire.
unsafe impl<T: Send> Sync for Queue<T> {}
// SAFETY: it owns its values.
unsafe impl<T: Send> Send for Queue<T> {}

impl<T> Queue<T> {
    /// Takes at least `capacity` values: the next power of two, and 2 (with one slot, a turn would mean both that it is
    /// written and that it may be written again).
    pub(crate) fn new(capacity: usize) -> Self {
        let slot = |turn| Slot {
            turn: AtomicUsize::new(turn),
            since_ns: AtomicU64::new(0),
            value: UnsafeCell::new(MaybeUninit::uninit()),
        };
        Queue {
            tail: Padded(AtomicUsize::new(0)),
            head: Padded(AtomicUsize::new(0)),
            slots: (0..capacity.next_power_of_two().max(2)).map(slot).collect(),
        }
    }

    fn slot(&self, ticket: usize) -> &Slot<T> {
        &self.slots[ticket & (self.slots.len() - 1)]
    }

    /// Puts a value at the end.
    ///
    /// # Errors
    /// The value, if there is no room.
    pub(crate) fn push(&self, value: T, now_ns: u64) -> Result<(), T> {
        // Relaxed: a ticket protects nothing. The slot's turn does.
        let mut ticket = self.tail.load(Ordering::Relaxed);
        loop {
            let slot = self.slot(ticket);
            // Acquire, with the popper's release: it has read the value of the round before, which is overwritten now.
            let turn = slot.turn.load(Ordering::Acquire);
            match turn.wrapping_sub(ticket) as isize {
                0 => match self.tail.compare_exchange_weak(
                    ticket,
                    ticket.wrapping_add(1),
                    Ordering::Relaxed,
                    Ordering::Relaxed,
                ) {
                    Ok(_) => {
                        slot.since_ns.store(now_ns, Ordering::Relaxed);
                        // SAFETY: the slot is this ticket's, empty, until the turn is passed on below.
                        slot.value.with_mut(|place| unsafe { (*place).write(value) });
                        // Release, with the popper's acquire: the value is there.
                        slot.turn.store(ticket.wrapping_add(1), Ordering::Release);
                        return Ok(());
                    }
                    Err(now) => ticket = now,
                },
                // A round behind: its value has not been read.
                behind if behind < 0 => return Err(value),
                _ => ticket = self.tail.load(Ordering::Relaxed),
            }
        }
    }

    /// Takes the first value. `None` if there is none, or if the first is still being written: whoever writes it looks
    /// for a worker to wake afterwards.
    pub(crate) fn pop(&self) -> Option<T> {
        let mut ticket = self.head.load(Ordering::Relaxed);
        loop {
            let slot = self.slot(ticket);
            // Acquire, with the pusher's release: the value is there.
            let turn = slot.turn.load(Ordering::Acquire);
            match turn.wrapping_sub(ticket.wrapping_add(1)) as isize {
                0 => match self.head.compare_exchange_weak(
                    ticket,
                    ticket.wrapping_add(1),
                    Ordering::Relaxed,
                    Ordering::Relaxed,
                ) {
                    Ok(_) => {
                        // SAFETY: the slot is this ticket's, written, until the turn is passed on below.
                        let value = slot.value.with(|place| unsafe { (*place).assume_init_read() });
                        // Release, with the next round's pusher's acquire: the value has been read.
                        slot.turn.store(ticket.wrapping_add(self.slots.len()), Ordering::Release);
                        return Some(value);
                    }
                    Err(now) => ticket = now,
                },
                behind if behind < 0 => return None,
                _ => ticket = self.head.load(Ordering::Relaxed),
            }
        }
    }

    /// How many values there are, those that are being written or read among them.
    pub(crate) fn len(&self) -> usize {
        // Relaxed: old the moment it is known. The second may have overtaken the first.
        let head = self.head.load(Ordering::Relaxed);
        let ahead = self.tail.load(Ordering::Relaxed).wrapping_sub(head) as isize;
        (ahead.max(0) as usize).min(self.slots.len())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// When the first value came; `None` if there is none. May be of a value that was first a moment ago.
    pub(crate) fn oldest_ns(&self) -> Option<u64> {
        let head = self.head.load(Ordering::Relaxed);
        let slot = self.slot(head);
        // Acquire, with the pusher's release: the time is of this round.
        (slot.turn.load(Ordering::Acquire) == head.wrapping_add(1))
            .then(|| slot.since_ns.load(Ordering::Relaxed))
    }
}

impl<T> Drop for Queue<T> {
    fn drop(&mut self) {
        while self.pop().is_some() {}
    }
}

#[cfg(all(test, loom))]
mod loom_models {
    use super::Queue;
    use crate::sync::{AtomicUsize, Ordering};
    use loom::sync::Arc;
    use loom::thread;

    /// Counts how often each value came out, and that none is left undropped.
    struct Counted(usize, std::sync::Arc<[std::sync::atomic::AtomicUsize; 4]>);

    impl Drop for Counted {
        fn drop(&mut self) {
            self.1[self.0].fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        }
    }

    #[test]
    fn two_pushers_and_two_poppers_lose_and_double_nothing() {
        let mut builder = loom::model::Builder::new();
        // Four threads: all interleavings would take hours; bugs of such rings need two or three switches.
        builder.preemption_bound = Some(3);
        builder.check(|| {
            let dropped = std::sync::Arc::new([const { std::sync::atomic::AtomicUsize::new(0) }; 4]);
            let queue = Arc::new(Queue::new(2));
            let accepted = Arc::new(AtomicUsize::new(0));
            let push = |values: std::ops::Range<usize>| {
                let (queue, accepted, dropped) = (queue.clone(), accepted.clone(), dropped.clone());
                thread::spawn(move || {
                    for value in values {
                        if queue.push(Counted(value, dropped.clone()), 0).is_ok() {
                            accepted.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                })
            };
            let threads = [push(0..1), push(1..3)];
            let thief = {
                let queue = queue.clone();
                thread::spawn(move || usize::from(queue.pop().is_some()))
            };
            let mut out = usize::from(queue.pop().is_some());
            threads.into_iter().for_each(|thread| thread.join().unwrap());
            out += thief.join().unwrap();
            while queue.pop().is_some() {
                out += 1;
            }
            assert_eq!(out, accepted.load(Ordering::Relaxed));
            let dropped = dropped.each_ref().map(|count| count.load(std::sync::atomic::Ordering::Relaxed));
            assert_eq!(dropped, [1, 1, 1, 0]);
        });
    }

    #[test]
    fn a_slot_is_used_again_only_once_read() {
        loom::model(|| {
            let queue = Arc::new(Queue::new(2));
            assert!(queue.push(1, 0).is_ok() && queue.push(2, 0).is_ok());
            assert_eq!(queue.push(3, 0), Err(3));
            let popper = {
                let queue = queue.clone();
                thread::spawn(move || queue.pop())
            };
            let third = queue.push(3, 0).is_ok();
            assert_eq!(popper.join().unwrap(), Some(1));
            let rest: Vec<_> = std::iter::from_fn(|| queue.pop()).collect();
            assert_eq!(rest, if third { vec![2, 3] } else { vec![2] });
        });
    }

    #[test]
    fn one_producer_is_seen_in_order() {
        loom::model(|| {
            let queue = Arc::new(Queue::new(2));
            let producer = {
                let queue = queue.clone();
                thread::spawn(move || {
                    (1..=3).filter(|&value| queue.push(value, value as u64).is_ok()).count()
                })
            };
            let mut seen = Vec::new();
            for _ in 0..2 {
                seen.extend(queue.pop());
                assert!(queue.len() <= 2);
                let _ = queue.oldest_ns();
            }
            producer.join().unwrap();
            seen.extend(std::iter::from_fn(|| queue.pop()));
            assert!(seen.is_sorted() && seen.len() >= 2, "{seen:?}");
        });
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::Queue;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn first_in_first_out_until_full() {
        let queue = Queue::new(3);
        assert_eq!((queue.len(), queue.oldest_ns(), queue.pop()), (0, None, None));
        for i in 0..4 {
            assert_eq!(queue.push(Box::new(i), 10 + i), Ok(()));
        }
        assert_eq!(queue.push(Box::new(9), 0), Err(Box::new(9)));
        assert_eq!((queue.len(), queue.oldest_ns()), (4, Some(10)));
        assert_eq!(queue.pop(), Some(Box::new(0)));
        assert_eq!(queue.push(Box::new(4), 14), Ok(()));
        assert_eq!((queue.len(), queue.oldest_ns()), (4, Some(11)));
        assert_eq!(std::iter::from_fn(|| queue.pop()).map(|b| *b).collect::<Vec<_>>(), [1, 2, 3, 4]);
        // What is left is freed with it (Miri and the address sanitizer would tell).
        assert_eq!(queue.push(Box::new(5), 0), Ok(()));
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the test brings its own threads")]
    fn many_threads_lose_and_double_nothing() {
        let each = if cfg!(miri) { 50 } else { 20_000 };
        let queue = Queue::new(8);
        let taken: Vec<AtomicUsize> = (0..2 * each).map(|_| AtomicUsize::new(0)).collect();
        let left = AtomicUsize::new(2 * each);
        std::thread::scope(|scope| {
            for producer in 0..2 {
                let queue = &queue;
                scope.spawn(move || {
                    for i in 0..each {
                        let mut value = Box::new(producer * each + i);
                        while let Err(back) = queue.push(value, 0) {
                            value = back;
                            std::thread::yield_now();
                        }
                    }
                });
            }
            for _ in 0..2 {
                scope.spawn(|| {
                    while left.load(Ordering::Relaxed) > 0 {
                        match queue.pop() {
                            Some(value) => {
                                taken[*value].fetch_add(1, Ordering::Relaxed);
                                left.fetch_sub(1, Ordering::Relaxed);
                            }
                            None => std::thread::yield_now(),
                        }
                    }
                });
            }
        });
        assert!(taken.iter().all(|count| count.load(Ordering::Relaxed) == 1));
    }
}
