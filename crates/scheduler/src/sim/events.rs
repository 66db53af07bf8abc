//! What happens next: events by their time, of equal times the one that was planned first.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Event {
    /// A query comes.
    Arrive,
    /// The rate of arrivals changes.
    Burst,
    /// A worker looks for a task.
    Look(usize),
    /// A worker runs its task on.
    Run(usize),
    /// A worker has come to the end of its task.
    Finish(usize),
    /// A query is answered.
    Answer(u32),
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Planned {
    time_ns: f64,
    number: u64,
    event: Event,
}

impl Eq for Planned {}

impl Ord for Planned {
    fn cmp(&self, other: &Self) -> Ordering {
        self.time_ns.total_cmp(&other.time_ns).then(self.number.cmp(&other.number))
    }
}

impl PartialOrd for Planned {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Events {
    heap: BinaryHeap<Reverse<Planned>>,
    count: u64,
}

impl Events {
    pub(super) fn plan(&mut self, time_ns: f64, event: Event) {
        self.heap.push(Reverse(Planned { time_ns, number: self.count, event }));
        self.count += 1;
    }

    pub(super) fn next(&mut self) -> Option<(f64, Event)> {
        self.heap.pop().map(|Reverse(planned)| (planned.time_ns, planned.event))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_by_time_and_then_as_planned() {
        let mut events = Events::default();
        for (time, worker) in [(2.0, 0), (1.0, 1), (2.0, 2), (0.5, 3), (1.0, 4)] {
            events.plan(time, Event::Look(worker));
        }
        let order: Vec<_> = std::iter::from_fn(|| events.next()).map(|(_, event)| event).collect();
        assert_eq!(order, [3, 1, 4, 0, 2].map(Event::Look));
    }
}
