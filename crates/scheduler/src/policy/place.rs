//! Which chiplets hold what: Algorithm 1 of document 004, and how a placement follows the traffic without moving more than
//! it must.
//!
//! Algorithm 1 places from scratch: the hottest that is left goes to the chiplet with the least load, and the coldest that
//! is left goes with it if both fit below the mean. [`follow`] starts from what is: as long as no chiplet has more than
//! `1 + damping` times its share, nothing moves; then single pieces move from the most to the least loaded chiplet, each
//! the one that evens the two best, until that holds or no move helps. The end is no worse than Algorithm 1's bound, since
//! where no move helps, the gap is less than the smallest piece. Only where a chiplet has twice its share is all placed
//! anew: most would move anyway.
//!
//! Beyond the paper: what needs more cores than a chiplet has is cut into equal pieces on as many chiplets as it takes.
//! Chiplets may have different numbers of workers: loads are then per worker.

use lanewise_topology::ChipletId;

/// A chiplet's workers are taken as full at this share of their time: beyond, queues grow.
const FULL: f64 = 0.8;
/// With a piece less, the others would have to be below this share before one is given up.
const SPARE: f64 = 0.6;
/// So many times its share, and a chiplet's load is far off.
const FAR_OFF: f64 = 2.0;

/// Something to place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Item {
    /// Bytes that its tasks touch in a window.
    pub traffic: f64,
    /// Number of chiplets to spread it over; from 1 to as many as there are.
    pub pieces: usize,
}

/// Over how many chiplets of `workers` workers each (of `chiplets`) to spread tasks that keep `cores` cores busy; `now`
/// over so many. Follows a falling demand late, so that it does not swing.
pub fn pieces(cores: f64, workers: f64, chiplets: usize, now: usize) -> usize {
    let at = |share: f64| (cores / (workers * share)).ceil().clamp(1.0, chiplets as f64) as usize;
    // At least what is needed to be below FULL, at most what would be below SPARE.
    now.clamp(at(FULL), at(SPARE))
}

/// Load of each chiplet, in bytes by worker.
struct Loads<'a> {
    workers: &'a [usize],
    bytes: Vec<f64>,
    held: Vec<usize>,
}

impl<'a> Loads<'a> {
    fn new(workers: &'a [usize]) -> Self {
        Loads { workers, bytes: vec![0.0; workers.len()], held: vec![0; workers.len()] }
    }

    fn of(&self, chiplet: usize) -> f64 {
        self.bytes[chiplet] / self.workers[chiplet] as f64
    }

    fn add(&mut self, chiplet: usize, bytes: f64) {
        self.bytes[chiplet] += bytes;
        self.held[chiplet] += 1;
    }

    fn remove(&mut self, chiplet: usize, bytes: f64) {
        self.bytes[chiplet] = (self.bytes[chiplet] - bytes).max(0.0);
        self.held[chiplet] -= 1;
    }

    /// The least loaded of those that `may`; of equals the one that holds least.
    fn least(&self, may: impl Fn(usize) -> bool) -> Option<usize> {
        let all = (0..self.workers.len()).filter(|&chiplet| may(chiplet));
        all.min_by(|&a, &b| self.of(a).total_cmp(&self.of(b)).then(self.held[a].cmp(&self.held[b])))
    }

    fn most(&self) -> usize {
        let all = 0..self.workers.len();
        all.max_by(|&a, &b| self.of(a).total_cmp(&self.of(b)).then(b.cmp(&a))).expect("there is a chiplet")
    }
}

/// Algorithm 1: the chiplets of each item, as many as it has pieces. `workers` of each chiplet, at least one each.
///
/// No chiplet's load (bytes by worker) exceeds the mean by more than the largest piece does, and as long as there are
/// chiplets, the hottest items are on different ones.
pub fn place(items: &[Item], workers: &[usize]) -> Vec<Vec<ChipletId>> {
    let mut loads = Loads::new(workers);
    let mut homes: Vec<Vec<ChipletId>> = items.iter().map(|item| Vec::with_capacity(item.pieces)).collect();
    let mut order: Vec<usize> =
        items.iter().enumerate().flat_map(|(i, item)| std::iter::repeat_n(i, item.pieces)).collect();
    let traffic = |i: usize| items[i].traffic / items[i].pieces as f64;
    order.sort_by(|&a, &b| traffic(b).total_cmp(&traffic(a)).then(a.cmp(&b)));
    let mean = items.iter().map(|item| item.traffic).sum::<f64>() / workers.iter().sum::<usize>() as f64;

    let mut left = &order[..];
    while let [hot, rest @ ..] = left {
        left = rest;
        let chiplet = loads
            .least(|chiplet| !homes[*hot].contains(&ChipletId(chiplet as u32)))
            .expect("an item has no more pieces than there are chiplets");
        let room = mean * workers[chiplet] as f64 - loads.bytes[chiplet] - traffic(*hot);
        let cold = left.last().filter(|&&cold| {
            traffic(cold) <= room && cold != *hot && !homes[cold].contains(&ChipletId(chiplet as u32))
        });
        for &item in std::iter::once(hot).chain(cold) {
            homes[item].push(ChipletId(chiplet as u32));
            loads.add(chiplet, traffic(item));
        }
        if cold.is_some() {
            left = &left[..left.len() - 1];
        }
    }
    homes
}

/// The chiplets of each item where `homes` were its chiplets (none: it is new): the same, as far as that keeps every
/// chiplet within `1 + damping` times its share of the load, or of the largest piece.
pub fn follow(
    items: &[Item],
    homes: &[Vec<ChipletId>],
    workers: &[usize],
    damping: f64,
) -> Vec<Vec<ChipletId>> {
    let piece = |i: usize| items[i].traffic / items[i].pieces as f64;
    let mean = items.iter().map(|item| item.traffic).sum::<f64>() / workers.iter().sum::<usize>() as f64;
    let fewest = workers.iter().copied().min().expect("there is a chiplet") as f64;
    let largest = (0..items.len()).map(piece).fold(0.0, f64::max) / fewest;
    let share = mean.max(largest);

    let mut homes = homes.to_vec();
    let mut loads = Loads::new(workers);
    for (i, home) in homes.iter_mut().enumerate() {
        // Of pieces that go, those on the last chiplets; where they stay does not depend on how many there were.
        home.truncate(items[i].pieces);
        home.iter().for_each(|chiplet| loads.add(chiplet.0 as usize, piece(i)));
    }
    let mut new: Vec<usize> = (0..items.len()).filter(|&i| homes[i].len() < items[i].pieces).collect();
    new.sort_by(|&a, &b| piece(b).total_cmp(&piece(a)).then(a.cmp(&b)));
    for i in new {
        while homes[i].len() < items[i].pieces {
            let to = loads.least(|chiplet| !homes[i].contains(&ChipletId(chiplet as u32)));
            let to = to.expect("an item has no more pieces than there are chiplets");
            homes[i].push(ChipletId(to as u32));
            loads.add(to, piece(i));
        }
    }
    if loads.of(loads.most()) > FAR_OFF * share {
        return place(items, workers);
    }

    let mut on: Vec<Vec<usize>> = vec![Vec::new(); workers.len()];
    for (i, home) in homes.iter().enumerate() {
        home.iter().for_each(|chiplet| on[chiplet.0 as usize].push(i));
    }
    // Each move lowers the highest load or the number of chiplets that have it; the count is a guard against rounding.
    for _ in 0..items.len() {
        let from = loads.most();
        if loads.of(from) <= (1.0 + damping) * share {
            break;
        }
        let to = loads.least(|chiplet| chiplet != from);
        let Some(to) = to else { break };
        let high = loads.of(from);
        // What the fuller of the two has after the move: lower is better.
        let after = |i: usize| {
            let from = (loads.bytes[from] - piece(i)) / workers[from] as f64;
            from.max((loads.bytes[to] + piece(i)) / workers[to] as f64)
        };
        let movable = on[from].iter().enumerate().filter(|(_, i)| {
            piece(**i) > 0.0 && !homes[**i].contains(&ChipletId(to as u32)) && after(**i) < high
        });
        let Some((place, &i)) = movable.min_by(|a, b| after(*a.1).total_cmp(&after(*b.1))) else { break };
        on[from].swap_remove(place);
        on[to].push(i);
        loads.remove(from, piece(i));
        loads.add(to, piece(i));
        let home = homes[i].iter_mut().find(|chiplet| chiplet.0 as usize == from);
        *home.expect("the piece was there") = ChipletId(to as u32);
    }
    homes
}
