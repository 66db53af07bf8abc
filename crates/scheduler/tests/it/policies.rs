//! Decisions, each on a view made up for it.

use lanewise_scheduler::policy::{dispatch, nap_ns, steal, wake, watch};
use lanewise_scheduler::{Full, Layout, Policy, Steal, View};
use lanewise_topology::ChipletId;
use proptest::prelude::*;

const PATIENCE: u64 = 500;

/// Of each worker: tasks queued, whether it runs one, how long the oldest has waited.
#[derive(Clone, Debug)]
struct Seen(Vec<(usize, bool, u64)>);

impl View for Seen {
    fn queued(&self, worker: usize) -> usize {
        self.0[worker].0
    }
    fn running(&self, worker: usize) -> bool {
        self.0[worker].1
    }
    fn waited_ns(&self, worker: usize) -> u64 {
        self.0[worker].2
    }
}

fn idle(workers: usize) -> Seen {
    Seen(vec![(0, false, 0); workers])
}

/// A layout, and a view of its workers.
fn seen() -> impl Strategy<Value = (Layout, Seen)> {
    prop::collection::vec(1usize..5, 1..6).prop_flat_map(|workers| {
        let layout = Layout::new(&workers);
        let one = (0usize..4, any::<bool>(), 0..2 * PATIENCE)
            .prop_map(|(queued, running, waited)| (queued, running, if queued == 0 { 0 } else { waited }));
        let view = prop::collection::vec(one, layout.workers()).prop_map(Seen);
        (Just(layout), view)
    })
}

#[test]
fn names_are_read_back_and_unknown_ones_name_what_there_is() {
    for policy in Policy::ALL {
        assert_eq!(policy.name().parse(), Ok(policy));
    }
    let error = "fair".parse::<Policy>().unwrap_err().to_string();
    assert_eq!(error, "unknown policy \"fair\": use round-robin, stealing or chiplet");
}

#[test]
fn in_turn_everyone_gets_as_many() {
    let layout = Layout::new(&[3, 2]);
    for policy in [Policy::RoundRobin, Policy::Stealing] {
        let to: Vec<usize> =
            (0..10).map(|turn| dispatch(policy, &layout, &idle(5), turn, &[], 4).unwrap()).collect();
        assert_eq!(to, [0, 1, 2, 3, 4, 0, 1, 2, 3, 4]);
    }
}

proptest! {
    #[test]
    fn a_task_goes_where_it_may_and_is_refused_only_when_all_is_full(
        (layout, view) in seen(),
        turn: usize,
        home: prop::sample::Index,
        capacity in 1usize..5,
    ) {
        let home = ChipletId(home.index(layout.chiplets()) as u32);
        for policy in Policy::ALL {
            let may: Vec<usize> = match policy {
                Policy::Chiplet => layout.on(home).collect(),
                _ => (0..layout.workers()).collect(),
            };
            match dispatch(policy, &layout, &view, turn, &[home], capacity) {
                Ok(worker) => {
                    prop_assert!(may.contains(&worker) && view.queued(worker) < capacity);
                    if policy.on(&layout) == Policy::Chiplet {
                        let load = |w: usize| view.queued(w) + usize::from(view.running(w));
                        let free = |w: &&usize| view.queued(**w) < capacity;
                        prop_assert!(may.iter().filter(free).all(|&w| load(worker) <= load(w)));
                    }
                }
                Err(Full { queued }) => {
                    prop_assert!(may.iter().all(|&w| view.queued(w) >= capacity));
                    prop_assert_eq!(queued, may.iter().map(|&w| view.queued(w)).sum::<usize>());
                }
            }
        }
    }

    #[test]
    fn steals_take_from_queues_and_across_only_when_the_chiplet_has_nothing_to_do(
        (layout, mut view) in seen(),
        me: prop::sample::Index,
        turn: usize,
    ) {
        let me = me.index(layout.workers());
        view.0[me] = (0, false, 0);
        prop_assert_eq!(steal(Policy::RoundRobin, &layout, &view, me, turn, PATIENCE), None);

        let any = (0..layout.workers()).any(|worker| view.queued(worker) > 0);
        let stolen = steal(Policy::Stealing, &layout, &view, me, turn, PATIENCE);
        prop_assert_eq!(stolen.is_some(), any);

        let home = layout.of_worker(me);
        let stolen_near = steal(Policy::Chiplet, &layout, &view, me, turn, PATIENCE);
        for Steal { from, across } in stolen.into_iter().chain(stolen_near) {
            prop_assert!(from != me && view.queued(from) > 0);
            prop_assert_eq!(across, layout.of_worker(from) != home);
        }
        let near = layout.on(home).any(|worker| view.queued(worker) > 0);
        let busy = layout.on(home).any(|worker| view.running(worker));
        let late = (0..layout.workers()).any(|w| layout.of_worker(w) != home && view.waited_ns(w) >= PATIENCE);
        match stolen_near {
            Some(steal) => prop_assert_eq!(steal.across, !near),
            None => prop_assert!(!near),
        }
        prop_assert_eq!(stolen_near.is_some_and(|steal| steal.across), !near && !busy && late);
    }

    #[test]
    fn on_one_chiplet_all_is_decided_as_by_stealing(
        workers in prop::collection::vec((0usize..4, any::<bool>(), 0u64..3 * PATIENCE), 1..6),
        me: prop::sample::Index,
        turn: usize,
    ) {
        let (layout, view) = (Layout::new(&[workers.len()]), Seen(workers));
        let me = me.index(layout.workers());
        let decided = |policy| {
            let to = dispatch(policy, &layout, &view, turn, &[ChipletId(0)], 3);
            let woken = wake(policy, &layout, &view, me, turn, PATIENCE);
            let eyes = (watch(policy, &layout, &view, me), nap_ns(policy, &layout, &view, me, PATIENCE));
            (to, steal(policy, &layout, &view, me, turn, PATIENCE), woken, eyes)
        };
        prop_assert_eq!(decided(Policy::Chiplet), decided(Policy::Stealing));
    }

    /// Whoever is woken runs nothing and would find something to do: else waking it is in vain.
    #[test]
    fn who_is_woken_finds_a_task((layout, mut view) in seen(), target: prop::sample::Index, turn: usize) {
        let target = target.index(layout.workers());
        if view.queued(target) == 0 {
            view.0[target].0 = 1;
        }
        for policy in Policy::ALL {
            if let Some(woken) = wake(policy, &layout, &view, target, turn, PATIENCE) {
                prop_assert!(!view.running(woken));
                let own = view.queued(woken) > 0;
                prop_assert!(own || steal(policy, &layout, &view, woken, turn, PATIENCE).is_some());
            } else {
                prop_assert!(view.running(target));
            }
        }
    }

    /// Whoever naps finds something at the end, and not before; and whoever else may have to look is woken to nap.
    #[test]
    fn a_nap_ends_when_there_is_something_to_take((layout, mut view) in seen(), me: prop::sample::Index) {
        let me = me.index(layout.workers());
        // Nothing to take yet: no tasks on its own chiplet, no long waits on others.
        let home = layout.of_worker(me);
        layout.on(home).for_each(|worker| view.0[worker] = (0, view.0[worker].1 && worker != me, 0));
        view.0.iter_mut().for_each(|seen| seen.2 %= PATIENCE);
        let find = |view: &Seen| steal(Policy::Chiplet, &layout, view, me, 0, PATIENCE);
        let later = |ns: u64| {
            let later = |&(queued, running, waited): &(usize, bool, u64)| {
                (queued, running, if queued == 0 { 0 } else { waited + ns })
            };
            Seen(view.0.iter().map(later).collect())
        };
        match nap_ns(Policy::Chiplet, &layout, &view, me, PATIENCE) {
            Some(nap) => prop_assert!(find(&later(nap)).is_some() && find(&later(nap - 1)).is_none()),
            None => prop_assert!(find(&later(PATIENCE)).is_none()),
        }
        for target in (0..layout.workers()).filter(|&worker| layout.of_worker(worker) != layout.of_worker(me)) {
            let watches = watch(Policy::Chiplet, &layout, &view, target);
            if layout.on(layout.of_worker(me)).all(|worker| !view.running(worker)) {
                prop_assert!(watches.is_some());
            }
            if let Some(worker) = watches {
                prop_assert_ne!(layout.of_worker(worker), layout.of_worker(target));
                prop_assert!(layout.on(layout.of_worker(worker)).all(|worker| !view.running(worker)));
            }
        }
        prop_assert_eq!(watch(Policy::Stealing, &layout, &view, me), None);
    }
}
