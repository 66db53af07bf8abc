//! Exact search: every vector is compared. Several queries go through a block of rows together, so that a block is read
//! from memory once.

use crate::pool::{Entry, Pool};
use crate::space::{Probe, Space};

/// Rows that are compared before the next query's turn: at 3 KiB a row they still fit an L2 cache.
const BLOCK: usize = 128;

/// The `k` nearest of all vectors for each probe, into the pool of the same place.
pub(crate) fn search(space: &Space, probes: &[Probe], k: usize, pools: &mut [Pool]) {
    let mut keys = [0; BLOCK];
    for pool in pools.iter_mut() {
        pool.reset(k);
    }
    for first in (0..space.len()).step_by(BLOCK) {
        let keys = &mut keys[..BLOCK.min(space.len() - first)];
        for (probe, pool) in probes.iter().zip(pools.iter_mut()) {
            space.keys_from(probe, first, keys);
            for (i, &key) in keys.iter().enumerate() {
                pool.push(Entry::new(key, (first + i) as u32));
            }
        }
    }
}
