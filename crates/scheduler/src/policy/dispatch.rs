//! To whose queue a new task goes.

use super::{Layout, Policy, View};
use lanewise_topology::ChipletId;

/// All queues that a task may go to are full: come again later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("busy: {queued} tasks wait already; try again later, or give the scheduler longer queues")]
pub struct Full {
    /// Tasks in these queues.
    pub queued: usize,
}

/// The worker whose queue a task goes to. `turn` counts submissions; `home` are the chiplets that hold what the task reads
/// ([`Policy::Chiplet`] alone looks at them), at least one; no queue takes more than `capacity` tasks.
///
/// In turn, a full queue is passed over. On its chiplets, the task goes to whoever has least to do.
///
/// # Errors
/// If all queues that come into question are full.
pub fn dispatch(
    policy: Policy,
    layout: &Layout,
    view: &impl View,
    turn: usize,
    home: &[ChipletId],
    capacity: usize,
) -> Result<usize, Full> {
    let workers = layout.workers();
    let in_turn = |count: usize| (0..count).map(move |i| (turn % count + i) % count);
    match policy.on(layout) {
        Policy::RoundRobin | Policy::Stealing => in_turn(workers)
            .find(|&worker| view.queued(worker) < capacity)
            .ok_or_else(|| Full { queued: (0..workers).map(|worker| view.queued(worker)).sum() }),
        Policy::Chiplet => {
            let candidates = home.iter().flat_map(|&chiplet| {
                let on = layout.on(chiplet);
                in_turn(on.len()).map(move |i| on.start + i)
            });
            let load = |worker: &usize| view.queued(*worker) + usize::from(view.running(*worker));
            let best = candidates.clone().filter(|&worker| view.queued(worker) < capacity).min_by_key(load);
            best.ok_or_else(|| Full { queued: candidates.map(|worker| view.queued(worker)).sum() })
        }
    }
}
