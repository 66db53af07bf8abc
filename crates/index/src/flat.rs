//! Comparing every vector, or every code. Several queries go through a block of rows together, so that a block is read
//! from memory once.

use crate::filter::Accept;
use crate::pool::{Entry, Pool};
use crate::space::Compare;
use crate::stop::{Stop, Stopped, ask};

/// Rows that are compared before the next query's turn: at 3 KiB a row they still fit an L2 cache.
pub(crate) const BLOCK: usize = 128;

/// Above this many results, sorting all vectors once is cheaper than keeping the best so far in order.
const MANY: usize = 1024;

/// The `k` nearest of all accepted vectors for each probe, into the pool of the same place.
pub(crate) fn search<C: Compare>(
    space: &C,
    probes: &[C::Probe],
    k: usize,
    pools: &mut [Pool],
    accept: &impl Accept,
    stop: Option<Stop<'_>>,
) -> Result<(), Stopped> {
    let mut nearest = Nearest::new(k, pools);
    let mut keys = [0; BLOCK];
    for first in (0..space.len()).step_by(BLOCK) {
        ask(stop)?;
        let keys = &mut keys[..BLOCK.min(space.len() - first)];
        for (place, probe) in probes.iter().enumerate() {
            space.keys_from(probe, first, keys);
            for (row, &key) in (first as u32..).zip(&*keys) {
                if accept.accepts(row) {
                    nearest.push(place, Entry::new(key, row));
                }
            }
        }
    }
    nearest.finish();
    Ok(())
}

/// As `search`, among `rows` alone, which ascend, of those whose key is `within`.
pub(crate) fn search_among<C: Compare>(
    space: &C,
    probes: &[C::Probe],
    k: usize,
    pools: &mut [Pool],
    rows: impl Iterator<Item = u32>,
    within: impl Fn(i32) -> bool,
    stop: Option<Stop<'_>>,
) -> Result<(), Stopped> {
    let rows: Vec<u32> = rows.collect();
    let mut nearest = Nearest::new(k, pools);
    let mut keys = [0; BLOCK];
    for rows in rows.chunks(BLOCK) {
        ask(stop)?;
        let keys = &mut keys[..rows.len()];
        for (place, probe) in probes.iter().enumerate() {
            // Rows without a gap are read in sequence.
            if (rows[rows.len() - 1] - rows[0]) as usize == rows.len() - 1 {
                space.keys_from(probe, rows[0] as usize, keys);
            } else {
                space.keys_of(probe, rows, keys);
            }
            for (&row, &key) in rows.iter().zip(&*keys) {
                if within(key) {
                    nearest.push(place, Entry::new(key, row));
                }
            }
        }
    }
    nearest.finish();
    Ok(())
}

/// The nearest `k` so far, for each probe.
struct Nearest<'a> {
    k: usize,
    pools: &'a mut [Pool],
}

impl<'a> Nearest<'a> {
    fn new(k: usize, pools: &'a mut [Pool]) -> Self {
        pools.iter_mut().for_each(|pool| pool.reset(k));
        Nearest { k, pools }
    }

    #[inline]
    fn push(&mut self, place: usize, entry: Entry) {
        if self.k > MANY {
            self.pools[place].append(entry);
        } else {
            self.pools[place].push(entry);
        }
    }

    fn finish(self) {
        if self.k > MANY {
            self.pools.iter_mut().for_each(Pool::settle);
        }
    }
}
