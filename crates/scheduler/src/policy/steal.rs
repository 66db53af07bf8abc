//! Whom a worker that has nothing to do takes a task from, and who is woken for a new task (Algorithm 2).

use super::{Layout, Policy, View};
use lanewise_topology::ChipletId;
use std::time::Duration;

/// For how long a task waits before another chiplet takes it, where nobody says otherwise: about one search.
pub const PATIENCE: Duration = Duration::from_micros(200);

/// Where to take a task from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Steal {
    /// Whose queue.
    pub from: usize,
    /// Whether it is on another chiplet.
    pub across: bool,
}

/// Whom worker `me`, whose queue is empty, takes its next task from; `None`: it sleeps until it is woken. `turn` is any
/// number that changes from call to call.
///
/// [`Policy::Chiplet`] takes the longest queue of its own chiplet. It looks at other chiplets only if nobody on its own has
/// anything to do, and takes there only what has waited for `patience_ns`: a steal across brings its data into a cache that
/// does not hold it, which pays when the imbalance lasts.
pub fn steal(
    policy: Policy,
    layout: &Layout,
    view: &impl View,
    me: usize,
    turn: usize,
    patience_ns: u64,
) -> Option<Steal> {
    let home = layout.of_worker(me);
    let found = |from| Steal { from, across: layout.of_worker(from) != home };
    match policy.on(layout) {
        Policy::RoundRobin => None,
        Policy::Stealing => {
            let workers = layout.workers();
            let start = scatter(turn, workers);
            let others = (0..workers).map(|i| (start + i) % workers);
            others.filter(|&worker| worker != me).find(|&worker| view.queued(worker) > 0).map(found)
        }
        Policy::Chiplet => {
            let mates = layout.on(home).filter(|&worker| worker != me);
            let longest = mates.clone().max_by_key(|&worker| view.queued(worker));
            if let Some(mate) = longest.filter(|&worker| view.queued(worker) > 0) {
                return Some(found(mate));
            }
            if mates.clone().any(|worker| view.running(worker)) {
                return None;
            }
            let others = (0..layout.workers()).filter(|&worker| layout.of_worker(worker) != home);
            let behind = others.map(|worker| (view.waited_ns(worker), worker)).max()?;
            (behind.0 >= patience_ns.max(1)).then(|| found(behind.1))
        }
    }
}

/// Whom to wake when worker `target` has tasks in its queue: after one was put there, and after `target` took one and left
/// others. Of those who run nothing, whoever would take it.
pub fn wake(
    policy: Policy,
    layout: &Layout,
    view: &impl View,
    target: usize,
    turn: usize,
    patience_ns: u64,
) -> Option<usize> {
    if !view.running(target) {
        return Some(target);
    }
    match policy.on(layout) {
        Policy::RoundRobin => None,
        Policy::Stealing => {
            let workers = layout.workers();
            let start = scatter(turn, workers);
            (0..workers).map(|i| (start + i) % workers).find(|&worker| !view.running(worker))
        }
        Policy::Chiplet => {
            let home = layout.of_worker(target);
            if let Some(mate) = layout.on(home).find(|&worker| !view.running(worker)) {
                return Some(mate);
            }
            if view.waited_ns(target) < patience_ns.max(1) {
                return None;
            }
            let free = |chiplet: &ChipletId| {
                layout.on(*chiplet).all(|worker| !view.running(worker) && view.queued(worker) == 0)
            };
            let mut others = (0..layout.chiplets() as u32).map(ChipletId).filter(|&chiplet| chiplet != home);
            others.find(free).map(|chiplet| layout.on(chiplet).start)
        }
    }
}

/// A place below `count` that looks random: neighbours in `turn` do not start at neighbours (SplitMix64's mixing step).
fn scatter(turn: usize, count: usize) -> usize {
    let mut x = (turn as u64).wrapping_add(0x9E37_79B9_7F4A_7C15);
    x = (x ^ x >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ x >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    ((x ^ x >> 31) % count as u64) as usize
}
