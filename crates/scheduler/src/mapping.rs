//! Which chiplets hold which mapping id: a value that never changes. A new one takes its place as a whole, so that each
//! submission sees one or the other.

use crate::policy::{Item, Layout, MappingId, follow, pieces};
use lanewise_topology::ChipletId;
use std::collections::HashMap;
use std::time::Duration;

/// The load may exceed a chiplet's share by this part before anything moves.
pub const DAMPING: f64 = 0.1;

/// What tasks of a mapping id did in a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// Tasks that were run.
    pub tasks: u64,
    /// Tasks that were refused since queues were full.
    pub refused: u64,
    /// Bytes that they touched (equations 1 and 2).
    pub bytes: u64,
    /// Time that they ran.
    pub busy_ns: u64,
}

impl std::ops::AddAssign for Sample {
    fn add_assign(&mut self, other: Sample) {
        self.tasks += other.tasks;
        self.refused += other.refused;
        self.bytes += other.bytes;
        self.busy_ns += other.busy_ns;
    }
}

impl Sample {
    /// What those that were run took, as much as if none had been refused.
    fn demanded(&self, amount: u64) -> f64 {
        amount as f64 * (1.0 + self.refused as f64 / self.tasks.max(1) as f64)
    }
}

/// Where one mapping id is.
#[derive(Clone, Debug)]
struct Place {
    chiplets: Vec<ChipletId>,
    /// Bytes that it holds; 0 if nobody said.
    size: u64,
}

/// Where a mapping id is, what it holds and what was asked of it, for whoever watches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Home {
    /// The id.
    pub id: MappingId,
    /// The chiplets that hold it.
    pub chiplets: Vec<ChipletId>,
    /// Bytes that it holds; 0 if nobody said.
    pub size: u64,
    /// What its tasks did lately.
    pub lately: Sample,
}

/// All that were placed, for whoever watches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Homes {
    /// By ascending id.
    pub homes: Vec<Home>,
    /// How long "lately" is.
    pub window: Duration,
}

/// Chiplets of mapping ids.
#[derive(Clone, Debug)]
pub struct Mapping {
    epoch: u64,
    /// Workers of each chiplet.
    workers: Vec<usize>,
    /// 0, 1, …: homes of ids that nobody has placed.
    all: Vec<ChipletId>,
    places: HashMap<MappingId, Place>,
}

impl Mapping {
    /// No id has been placed.
    pub fn new(layout: &Layout) -> Self {
        let all: Vec<ChipletId> = (0..layout.chiplets() as u32).map(ChipletId).collect();
        let workers = all.iter().map(|&chiplet| layout.on(chiplet).len()).collect();
        Mapping { epoch: 0, workers, all, places: HashMap::new() }
    }

    /// Counts the mappings that came before.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// The chiplets that hold what tasks of `id` read; at least one. An id that nobody placed has one too, by its number.
    pub fn home(&self, id: MappingId) -> &[ChipletId] {
        match self.places.get(&id) {
            Some(place) => &place.chiplets,
            None => {
                // Lists of a table follow each other: so do their homes.
                let number = (id.0 >> 32).wrapping_add(id.0 & u64::from(u32::MAX));
                let at = (number % self.all.len() as u64) as usize;
                &self.all[at..=at]
            }
        }
    }

    /// Where all are that were placed, with what was asked of them, by id.
    pub(crate) fn homes(&self, lately: &HashMap<MappingId, Sample>) -> Vec<Home> {
        let home = |(&id, place): (&MappingId, &Place)| Home {
            id,
            chiplets: place.chiplets.clone(),
            size: place.size,
            lately: lately.get(&id).copied().unwrap_or_default(),
        };
        let mut homes: Vec<Home> = self.places.iter().map(home).collect();
        homes.sort_unstable_by_key(|home| home.id);
        homes
    }

    /// With ids that hold so many bytes, before anybody knows their traffic: the largest first, each to the chiplet that
    /// holds the fewest bytes by worker. An id that is there keeps its home.
    pub fn with(&self, sizes: &[(MappingId, u64)]) -> Mapping {
        let mut next = self.next();
        let mut held = vec![0.0; self.workers.len()];
        for place in self.places.values() {
            let each = place.size as f64 / place.chiplets.len() as f64;
            place.chiplets.iter().for_each(|chiplet| held[chiplet.0 as usize] += each);
        }
        let mut sizes: Vec<_> = sizes.to_vec();
        sizes.sort_unstable_by_key(|&(id, size)| (std::cmp::Reverse(size), id));
        for (id, size) in sizes {
            let place = next.places.entry(id).or_insert_with(|| {
                let load = |&chiplet: &usize| held[chiplet] / self.workers[chiplet] as f64;
                let all = 0..held.len();
                let least = all.min_by(|a, b| load(a).total_cmp(&load(b))).expect("there is a chiplet");
                // One byte at least, so that empty ids are spread too.
                held[least] += size.max(1) as f64;
                Place { chiplets: vec![ChipletId(least as u32)], size }
            });
            place.size = size;
        }
        next
    }

    /// Without the ids that `gone` accepts.
    pub fn without(&self, mut gone: impl FnMut(MappingId) -> bool) -> Mapping {
        let mut next = self.next();
        next.places.retain(|&id, _| !gone(id));
        next
    }

    /// After tasks did what `samples` say in `window_ns`; `None` if nothing moves. Ids without a sample stay where they
    /// are.
    pub fn follow(&self, samples: &HashMap<MappingId, Sample>, window_ns: u64) -> Option<Mapping> {
        let mut ids: Vec<MappingId> = samples.keys().copied().collect();
        // Their order decides between equals.
        ids.sort_unstable();
        let homes: Vec<Vec<ChipletId>> = ids.iter().map(|&id| self.home(id).to_vec()).collect();
        let chiplets = self.workers.len();
        let mean = self.workers.iter().sum::<usize>() as f64 / chiplets as f64;
        let items: Vec<Item> = ids
            .iter()
            .zip(&homes)
            .map(|(id, home)| {
                let sample = &samples[id];
                let cores = sample.demanded(sample.busy_ns) / window_ns.max(1) as f64;
                Item {
                    traffic: sample.demanded(sample.bytes),
                    pieces: pieces(cores, mean, chiplets, home.len()),
                }
            })
            .collect();
        let after = follow(&items, &homes, &self.workers, DAMPING);
        if after == homes {
            return None;
        }
        let mut next = self.next();
        for (id, chiplets) in ids.into_iter().zip(after) {
            let size = next.places.get(&id).map_or(0, |place| place.size);
            next.places.insert(id, Place { chiplets, size });
        }
        Some(next)
    }

    fn next(&self) -> Mapping {
        Mapping { epoch: self.epoch + 1, ..self.clone() }
    }
}
