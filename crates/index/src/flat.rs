//! Exact search: every vector is compared. Several queries go through a block of rows together, so that a block is read
//! from memory once.

use crate::pool::{Entry, Pool};
use crate::space::{Compare, Probe, Space};

/// Rows that are compared before the next query's turn: at 3 KiB a row they still fit an L2 cache.
const BLOCK: usize = 128;

/// Above this many results, sorting all vectors once is cheaper than keeping the best so far in order.
const MANY: usize = 1024;

/// The `k` nearest of all vectors for each probe, into the pool of the same place.
pub(crate) fn search(space: &Space, probes: &[Probe], k: usize, pools: &mut [Pool]) {
    if k > MANY {
        for (probe, pool) in probes.iter().zip(pools) {
            let mut all = Vec::with_capacity(space.len());
            visit(space, std::slice::from_ref(probe), |_, entry| all.push(entry));
            pool.fill(all, k);
        }
        return;
    }
    for pool in pools.iter_mut() {
        pool.reset(k);
    }
    visit(space, probes, |i, entry| pools[i].push(entry));
}

/// Gives every vector's entry for each probe, by the probe's place.
fn visit(space: &Space, probes: &[Probe], mut entry: impl FnMut(usize, Entry)) {
    let mut keys = [0; BLOCK];
    for first in (0..space.len()).step_by(BLOCK) {
        let keys = &mut keys[..BLOCK.min(space.len() - first)];
        for (place, probe) in probes.iter().enumerate() {
            space.keys_from(probe, first, keys);
            for (i, &key) in keys.iter().enumerate() {
                entry(place, Entry::new(key, (first + i) as u32));
            }
        }
    }
}
