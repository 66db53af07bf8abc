//! Where things are placed, and what moves when their traffic changes.

use lanewise_scheduler::policy::{Item, follow, pieces, place};
use lanewise_scheduler::{DAMPING, Layout, Mapping, MappingId, Monitor, Sample, WINDOWS};
use lanewise_topology::ChipletId;
use proptest::prelude::*;
use std::collections::{HashMap, HashSet};

const SECOND: u64 = 1_000_000_000;

/// Workers of each chiplet, and items that fit on so many chiplets.
fn problem() -> impl Strategy<Value = (Vec<usize>, Vec<Item>)> {
    prop::collection::vec(1usize..9, 1..13).prop_flat_map(|workers| {
        let most = workers.len();
        // Heavy tails, as traffic has them, and many that are never asked.
        let traffic = prop_oneof![Just(0.0), (0.0f64..20.0).prop_map(|power| power.exp2().round())];
        let one = (traffic, prop_oneof![4 => Just(1), 1 => 1..=most]);
        let items = prop::collection::vec(one.prop_map(|(traffic, pieces)| Item { traffic, pieces }), 0..60);
        (Just(workers), items)
    })
}

/// Bytes by worker of each chiplet.
fn loads(items: &[Item], homes: &[Vec<ChipletId>], workers: &[usize]) -> Vec<f64> {
    let mut loads = vec![0.0; workers.len()];
    for (item, home) in items.iter().zip(homes) {
        for chiplet in home {
            let chiplet = chiplet.0 as usize;
            loads[chiplet] += item.traffic / item.pieces as f64 / workers[chiplet] as f64;
        }
    }
    loads
}

fn each_piece_is_placed_once(items: &[Item], homes: &[Vec<ChipletId>], workers: &[usize]) {
    assert_eq!(homes.len(), items.len());
    for (item, home) in items.iter().zip(homes) {
        let distinct: HashSet<_> = home.iter().collect();
        assert_eq!((home.len(), distinct.len()), (item.pieces, item.pieces));
        assert!(home.iter().all(|chiplet| (chiplet.0 as usize) < workers.len()));
    }
}

/// The mean load, and that of the largest piece alone on the smallest chiplet.
fn bound(items: &[Item], workers: &[usize]) -> (f64, f64) {
    let mean = items.iter().map(|i| i.traffic).sum::<f64>() / workers.iter().sum::<usize>() as f64;
    let largest = items.iter().map(|i| i.traffic / i.pieces as f64).fold(0.0, f64::max);
    (mean, largest / *workers.iter().min().unwrap() as f64)
}

proptest! {
    #[test]
    fn algorithm_1_places_each_piece_once_within_the_bound_of_the_greedy((workers, items) in problem()) {
        let homes = place(&items, &workers);
        each_piece_is_placed_once(&items, &homes, &workers);
        // Pieces of one item exclude chiplets for each other: the bound is that of whole items.
        if items.iter().all(|item| item.pieces == 1) {
            let (mean, largest) = bound(&items, &workers);
            let most = loads(&items, &homes, &workers).into_iter().fold(0.0, f64::max);
            prop_assert!(most <= (mean + largest) * (1.0 + 1e-9), "{most} > {mean} + {largest}");
        }
    }

    #[test]
    fn the_hottest_are_on_different_chiplets(
        mut traffic in prop::collection::hash_set(1u32..1_000_000, 1..40),
        chiplets in 1usize..13,
    ) {
        let mut items: Vec<Item> =
            traffic.drain().map(|traffic| Item { traffic: f64::from(traffic), pieces: 1 }).collect();
        items.sort_by(|a, b| b.traffic.total_cmp(&a.traffic));
        let homes = place(&items, &vec![8; chiplets]);
        // Each opens an empty chiplet as long as there is one; a cold one that was paired may be among them, when there
        // are fewer than two for each chiplet.
        let hottest = chiplets.min(items.len() / 2);
        let distinct: HashSet<_> = homes[..hottest].iter().flatten().collect();
        prop_assert_eq!(distinct.len(), hottest);
    }

    #[test]
    fn following_ends_within_the_damping_or_the_bound(
        (workers, items) in problem(),
        places in prop::collection::vec(any::<prop::sample::Index>(), 60),
        known in prop::collection::vec(any::<bool>(), 60),
    ) {
        let homes: Vec<Vec<ChipletId>> = items.iter().zip(&places).zip(&known)
            .map(|((_, place), &known)| {
                let at = ChipletId(place.index(workers.len()) as u32);
                if known { vec![at] } else { Vec::new() }
            })
            .collect();
        let after = follow(&items, &homes, &workers, DAMPING);
        each_piece_is_placed_once(&items, &after, &workers);
        if items.iter().all(|item| item.pieces == 1) {
            let (mean, largest) = bound(&items, &workers);
            let allowed = ((1.0 + DAMPING) * mean.max(largest)).max(mean + largest);
            let most = loads(&items, &after, &workers).into_iter().fold(0.0, f64::max);
            prop_assert!(most <= allowed * (1.0 + 1e-9), "{most} > {allowed}");
        }
    }

    #[test]
    fn small_changes_move_nothing((workers, mut items) in problem(), changes in prop::collection::vec(0.0f64..1.0, 60)) {
        let homes = place(&items, &workers);
        let most = loads(&items, &homes, &workers).into_iter().fold(0.0, f64::max);
        let (mean, largest) = bound(&items, &workers);
        // Where Algorithm 1 leaves room below the damping, traffic may grow by as much.
        let room = (1.0 + DAMPING) * mean.max(largest) / most - 1.0;
        if most > 0.0 && room > 0.0 {
            items.iter_mut().zip(changes).for_each(|(item, change)| item.traffic *= 1.0 + change * room * 0.999);
            prop_assert_eq!(follow(&items, &homes, &workers, DAMPING), homes);
        }
    }

    #[test]
    fn as_many_pieces_as_the_demand_takes(cores in 0.0f64..200.0, workers in 1usize..17, chiplets in 1usize..17) {
        let workers = workers as f64;
        let new = pieces(cores, workers, chiplets, 1);
        prop_assert!(new == chiplets || cores <= 0.8 * workers * new as f64 + 1e-9);
        prop_assert!(new == 1 || cores > 0.8 * workers * (new - 1) as f64 - 1e-9);
        // The same demand again changes nothing, a slightly lower one neither.
        prop_assert_eq!(pieces(cores, workers, chiplets, new), new);
        prop_assert_eq!(pieces(cores * 0.95, workers, chiplets, new), new);
    }
}

#[test]
fn hot_goes_with_cold_where_both_fit_below_the_mean() {
    let at = |traffic: &[f64]| {
        let items: Vec<Item> = traffic.iter().map(|&traffic| Item { traffic, pieces: 1 }).collect();
        place(&items, &[1, 1]).into_iter().map(|home| home[0].0).collect::<Vec<_>>()
    };
    assert_eq!(at(&[6.0, 5.0, 4.0, 3.0]), [0, 1, 1, 0]);
    assert_eq!(at(&[8.0, 7.0, 3.0]), [0, 1, 1]);
}

fn busy(share_of_a_core: f64, bytes: u64) -> Sample {
    Sample { tasks: 100, refused: 0, bytes, busy_ns: (share_of_a_core * SECOND as f64) as u64 }
}

#[test]
fn hot_tables_part_and_stay_apart() {
    let layout = Layout::new(&[4, 4]);
    let ids: Vec<MappingId> = (0..4).map(MappingId::table).collect();
    let mapping = Mapping::new(&layout).with(&[(ids[0], 40), (ids[1], 30), (ids[2], 20), (ids[3], 10)]);
    assert_eq!((mapping.home(ids[0]), mapping.home(ids[3])), (mapping.home(ids[3]), mapping.home(ids[0])));
    // The two that lie together by size are the hot ones.
    let samples: HashMap<_, _> = [(ids[0], 900), (ids[1], 10), (ids[2], 10), (ids[3], 800)]
        .map(|(id, bytes)| (id, busy(1.0, bytes)))
        .into();
    let next = mapping.follow(&samples, SECOND).expect("they move");
    assert_ne!(next.home(ids[0]), next.home(ids[3]));
    assert_eq!(next.epoch(), mapping.epoch() + 1);
    assert!(next.follow(&samples, SECOND).is_none(), "the same again moves nothing");
}

#[test]
fn what_one_chiplet_cannot_serve_is_split_and_comes_together_again() {
    let layout = Layout::new(&[4; 6]);
    let (hot, cold) = (MappingId::table(7), MappingId::table(8));
    let mut mapping = Mapping::new(&layout).with(&[(hot, 1 << 30), (cold, 1 << 20)]);
    let after = |mapping: &Mapping, cores: f64, refused: u64| {
        let hot_sample = Sample { refused, ..busy(cores, (cores * 1e9) as u64) };
        let samples = [(hot, hot_sample), (cold, busy(0.1, 1000))].into();
        mapping.follow(&samples, SECOND)
    };
    mapping = after(&mapping, 4.0, 0).expect("a full chiplet gets help");
    assert_eq!(mapping.home(hot).len(), 2);
    mapping = after(&mapping, 6.0, 100).expect("twice as much was asked for");
    assert_eq!(mapping.home(hot).len(), 4);
    assert!(after(&mapping, 11.0, 0).is_none(), "fewer would do, but not by far");
    mapping = after(&mapping, 2.0, 0).expect("one is enough");
    assert_eq!(mapping.home(hot).len(), 1);
    assert_eq!(mapping.home(cold).len(), 1);
}

#[test]
fn ids_that_nobody_placed_have_a_home_and_lists_are_spread() {
    let mapping = Mapping::new(&Layout::new(&[2, 2, 2]));
    let homes: HashSet<_> = (0..3).map(|list| mapping.home(MappingId::list(5, list))[0]).collect();
    assert_eq!(homes.len(), 3);
    let placed = mapping.with(&[(MappingId::list(5, 0), 10)]);
    let gone = placed.without(|id| id == MappingId::list(5, 0));
    assert_eq!(gone.home(MappingId::list(5, 0)), mapping.home(MappingId::list(5, 0)));
    assert!(mapping.follow(&HashMap::new(), SECOND).is_none());
}

#[test]
fn windows_that_are_over_do_not_count() {
    let mapping = Mapping::new(&Layout::new(&[1, 1]));
    let mut monitor = Monitor::default();
    let id = MappingId::table(1);
    for window in 0..2 * WINDOWS as u64 {
        let _ = monitor.close_window(SECOND, [(id, busy(0.1, 1 << window))].into(), &mapping);
        let counted = (window + 1).min(WINDOWS as u64);
        let bytes: u64 = (0..counted).map(|back| 1 << (window - back)).sum();
        assert_eq!((monitor.lately()[&id].bytes, monitor.lately()[&id].tasks), (bytes, 100 * counted));
    }
}
