//! The caches against slower ones of which the truth is plain.

use lanewise_scheduler::sim::cache::{Ranges, Replacement, Sets};
use lanewise_scheduler::sim::random::Random;
use proptest::prelude::*;
use std::collections::HashMap;

/// LRU line by line, the last used first.
struct Naive {
    capacity: usize,
    lines: Vec<(u32, u32)>,
}

impl Naive {
    fn touch(&mut self, line: (u32, u32)) -> bool {
        let found = self.lines.iter().position(|&held| held == line);
        if let Some(at) = found {
            self.lines.remove(at);
        }
        self.lines.insert(0, line);
        self.lines.truncate(self.capacity);
        found.is_some()
    }
}

/// How many different lines were touched since each was touched last, itself included (Mattson et al. 1970): sums of a
/// binary indexed tree (Fenwick 1994) with a one at each line's last touch.
struct StackDistances {
    sums: Vec<u64>,
    last: HashMap<(u32, u32), usize>,
    now: usize,
}

impl StackDistances {
    fn new(touches: usize) -> Self {
        StackDistances { sums: vec![0; touches + 1], last: HashMap::new(), now: 0 }
    }

    fn add(&mut self, mut at: usize, change: i64) {
        while at < self.sums.len() {
            self.sums[at] = self.sums[at].wrapping_add_signed(change);
            at += at & at.wrapping_neg();
        }
    }

    fn up_to(&self, mut at: usize) -> u64 {
        let mut sum = 0;
        while at > 0 {
            sum += self.sums[at];
            at &= at - 1;
        }
        sum
    }

    /// `None`: it was never touched.
    fn touch(&mut self, line: (u32, u32)) -> Option<u64> {
        self.now += 1;
        let before = self.last.insert(line, self.now);
        let distance = before.map(|before| {
            let distance = self.up_to(self.now - 1) - self.up_to(before) + 1;
            self.add(before, -1);
            distance
        });
        self.add(self.now, 1);
        distance
    }
}

fn lines_of(object: u32, lines: u32) -> impl Iterator<Item = (u32, u32)> {
    (0..lines).map(move |line| (object, line))
}

proptest! {
    /// Capacities below and above the sizes of objects, and few objects, so that the lowest is often torn.
    #[test]
    fn objects_miss_as_their_lines_do(
        capacity in 1u64..40,
        sizes in prop::collection::vec(1u32..12, 1..10),
        touches in prop::collection::vec(any::<prop::sample::Index>(), 1..400),
    ) {
        let mut fast = Ranges::new(capacity, sizes.len());
        let mut naive = Naive { capacity: capacity as usize, lines: Vec::new() };
        for index in touches {
            let object = index.index(sizes.len()) as u32;
            let lines = sizes[object as usize];
            let missed = lines_of(object, lines).filter(|&line| !naive.touch(line)).count() as u32;
            prop_assert_eq!(fast.touch(object, lines), missed);
        }
    }

    /// One set with all ways is fully associative LRU.
    #[test]
    fn one_set_is_lru(capacity in 1u64..20, touches in prop::collection::vec(0u64..30, 1..300)) {
        let mut sets = Sets::new(capacity, capacity as usize, Replacement::Lru, 0);
        let mut naive = Naive { capacity: capacity as usize, lines: Vec::new() };
        for line in touches {
            prop_assert_eq!(sets.touch(line), naive.touch((0, line as u32)));
        }
    }

    /// Each set is a cache of its own, whatever the replacement.
    #[test]
    fn sets_do_not_meet(touches in prop::collection::vec(0u64..64, 1..300)) {
        for replacement in [Replacement::Lru, Replacement::Srrip] {
            let mut all = Sets::new(16, 4, replacement, 0);
            let mut one = Sets::new(4, 4, replacement, 0);
            for &line in &touches {
                let hit = all.touch(line);
                if line % 4 == 3 {
                    prop_assert_eq!(hit, one.touch(line));
                }
            }
        }
    }
}

/// A miss is a stack distance beyond the capacity, line for line, over a long run with heat.
#[test]
fn misses_are_stack_distances_beyond_the_capacity() {
    const TOUCHES: usize = 60_000;
    let mut random = Random::new(11);
    let sizes: Vec<u32> = (0..800).map(|_| 1 + random.below(16) as u32).collect();
    let hot = lanewise_scheduler::sim::random::Zipf::new(sizes.len() as u64, 0.8);
    let sequence: Vec<u32> = (0..TOUCHES).map(|_| hot.draw(&mut random) as u32).collect();
    let lines = sequence.iter().map(|&object| sizes[object as usize] as usize).sum();
    let mut distances = StackDistances::new(lines);
    let capacities = [1, 7, 64, 500, 3000, 100_000];
    let mut caches: Vec<Ranges> =
        capacities.iter().map(|&capacity| Ranges::new(capacity, sizes.len())).collect();
    let mut hits = [0u64; 6];
    for object in sequence {
        let count = sizes[object as usize];
        let found: Vec<_> = lines_of(object, count).map(|line| distances.touch(line)).collect();
        for ((cache, &capacity), hits) in caches.iter_mut().zip(&capacities).zip(&mut hits) {
            let beyond = found.iter().filter(|distance| distance.is_none_or(|d| d > capacity)).count();
            assert_eq!(cache.touch(object, count) as usize, beyond, "capacity {capacity}");
            *hits += u64::from(count) - beyond as u64;
        }
    }
    // The run told the capacities apart.
    assert!(hits.windows(2).all(|pair| pair[0] < pair[1]), "{hits:?}");
}

/// A line that comes again and again outlives a scan that is longer than the set: SRRIP's point, which LRU misses.
#[test]
fn srrip_keeps_what_comes_again_through_a_scan() {
    let hits = |replacement| {
        let mut sets = Sets::new(8, 8, replacement, 0);
        let mut hits = 0;
        for round in 0..100u64 {
            for hot in 0..4 {
                hits += u32::from(sets.touch(hot)) + u32::from(sets.touch(hot));
            }
            (0..12).for_each(|i| {
                sets.touch(1000 + round * 12 + i);
            });
        }
        hits
    };
    // The second touch of each pair always hits.
    assert_eq!(hits(Replacement::Lru), 400);
    assert!(hits(Replacement::Srrip) > 700, "{}", hits(Replacement::Srrip));
    assert_eq!(hits(Replacement::Random), hits(Replacement::Random));
}
