//! Who keeps an eye on tasks that wait on another chiplet. Algorithm 2's workers look again and again; ours sleep, so
//! somebody has to look when a task has waited for long enough to be taken across.

use super::{Layout, Policy, View};
use lanewise_topology::ChipletId;

/// Whom to wake, where [`super::wake`] names nobody for a task in `target`'s queue, to keep an eye on it: somebody of a
/// chiplet that has nothing to do. No need if that worker naps: it will look.
pub fn watch(policy: Policy, layout: &Layout, view: &impl View, target: usize) -> Option<usize> {
    if policy.on(layout) != Policy::Chiplet {
        return None;
    }
    let free = |chiplet: &ChipletId| layout.on(*chiplet).all(|worker| !view.running(worker));
    let mut others =
        (0..layout.chiplets() as u32).map(ChipletId).filter(|&id| id != layout.of_worker(target));
    others.find(free).map(|chiplet| layout.on(chiplet).start)
}

/// For how long worker `me`, for whom [`super::steal`] found nothing, naps before it looks again; `None`: until it is
/// woken.
pub fn nap_ns(policy: Policy, layout: &Layout, view: &impl View, me: usize, patience_ns: u64) -> Option<u64> {
    let home = layout.of_worker(me);
    if policy.on(layout) != Policy::Chiplet || layout.on(home).any(|worker| view.running(worker)) {
        return None;
    }
    let others = (0..layout.workers()).filter(|&worker| layout.of_worker(worker) != home);
    let waiting = others.filter(|&worker| view.queued(worker) > 0);
    waiting.map(|worker| patience_ns.max(1).saturating_sub(view.waited_ns(worker))).min()
}
