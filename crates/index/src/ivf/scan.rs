//! One list against one query: the best candidates so far, and what of a list can be among them.
//!
//! Sums of a block are compared with the bound all at once; only those below it are looked at. The bound is that of the
//! best `2 × want` kept so far, cut back to `want` when they are full, which costs a constant per candidate where a heap
//! costs a logarithm. What comes out is the `want` least of all, by distance and then row, in whatever order lists are
//! scanned: so they may be scanned by several workers, each into its own `Best`, and merged.

use super::lists::{Form, List, Part};
use super::pq::Tables;
use crate::filter::bit;
use crate::pool::{Entry, IDS};
use crate::space::{float_of, key_of};
use lanewise_kernels::{BLOCK, Scan};

/// Vectors whose sums are made before they are looked at.
const STEP: usize = 16 * BLOCK;

/// The best candidates so far.
#[derive(Default)]
pub(crate) struct Best {
    want: usize,
    entries: Vec<Entry>,
    /// Entries from this one on are not among the best.
    bound: Option<Entry>,
}

impl Best {
    /// Forgets all; `want` (at least one) will be kept.
    pub(crate) fn reset(&mut self, want: usize) {
        self.want = want.max(1);
        self.entries.clear();
        self.bound = None;
    }

    /// Takes `entry` in if it is among the best so far; whether the bound has changed.
    #[inline]
    pub(crate) fn push(&mut self, entry: Entry) -> bool {
        if self.bound.is_some_and(|bound| entry >= bound) {
            return false;
        }
        self.entries.push(entry);
        let full = self.entries.len() >= 2 * self.want;
        if full {
            self.cut();
        }
        full
    }

    fn cut(&mut self) {
        if self.entries.len() >= self.want {
            let (_, &mut last, _) = self.entries.select_nth_unstable(self.want - 1);
            self.entries.truncate(self.want);
            self.bound = Some(last);
        }
    }

    /// No candidate farther than this is among the best.
    fn limit(&self) -> f32 {
        self.bound.map_or(f32::INFINITY, |bound| float_of(bound.key()))
    }

    /// Whether something at `distance` may be among the best.
    #[inline]
    pub(super) fn may_take(&self, distance: f32) -> bool {
        self.bound.is_none_or(|bound| key_of(distance) <= bound.key())
    }

    /// Takes in what another has found.
    pub(crate) fn merge(&mut self, others: &[Entry]) {
        others.iter().for_each(|&entry| {
            self.push(entry);
        });
    }

    /// The best, nearest first.
    pub(crate) fn sorted(&mut self) -> &[Entry] {
        self.cut();
        self.entries.sort_unstable();
        &self.entries
    }
}

/// Which rows count: those that the reader's view of the index has, and of these those that live (and pass a filter).
#[derive(Clone, Copy, Default)]
pub(crate) struct Allowed<'a> {
    /// Rows from this one on are not in the reader's view yet.
    pub(crate) rows: usize,
    /// Which of these count.
    pub(crate) which: Which<'a>,
}

/// Sets of rows, as a bit for each; rows beyond the end of the words have none.
#[derive(Clone, Copy, Default)]
pub(crate) enum Which<'a> {
    #[default]
    All,
    In(&'a [u64]),
    NotIn(&'a [u64]),
}

impl Allowed<'_> {
    #[inline]
    pub(crate) fn has(&self, row: u32) -> bool {
        (row as usize) < self.rows.min(IDS)
            && match self.which {
                Which::All => true,
                Which::In(words) => bit(words, row),
                Which::NotIn(words) => !bit(words, row),
            }
    }
}

/// Memory of a scan.
#[derive(Default)]
pub(crate) struct ScanScratch {
    words: Vec<u64>,
    sums: Vec<u16>,
    keys: Vec<i32>,
}

/// Scans a list of 4-bit codes, whose centroid's own distance is `base`.
pub(super) fn blocks(
    scan: &Scan,
    list: &List,
    tables: &Tables,
    base: f32,
    allowed: Allowed<'_>,
    scratch: &mut ScanScratch,
    best: &mut Best,
) {
    let base = base + tables.offset;
    let Some(mut most) = most(base, tables.step, best.limit()) else { return };
    scratch.sums.resize(STEP, 0);
    let (words, sums) = (&mut scratch.words, &mut scratch.sums);
    list.visit(words, &mut |part| {
        let block_bytes = tables.bytes.len();
        let steps = part.rows.chunks(STEP).zip(part.biases.chunks(STEP));
        for ((rows, biases), codes) in steps.zip(part.codes.chunks(STEP / BLOCK * block_bytes)) {
            let sums = &mut sums[..rows.len().next_multiple_of(BLOCK)];
            scan.scan(&tables.bytes, codes, sums);
            let blocks = rows.chunks(BLOCK).zip(biases.chunks(BLOCK));
            for ((rows, biases), sums) in blocks.zip(sums.as_chunks_mut::<BLOCK>().0) {
                let mut found = match biases.try_into() {
                    Ok(biases) => below(sums, biases, tables.factor as u16, most),
                    Err(_) => {
                        let mut padded = [0; BLOCK];
                        padded[..biases.len()].copy_from_slice(biases);
                        below(sums, &padded, tables.factor as u16, most) & ((1 << rows.len()) - 1)
                    }
                };
                while found != 0 {
                    let i = found.trailing_zeros() as usize;
                    found &= found - 1;
                    let entry =
                        Entry::new(key_of(base + tables.step * f32::from(sums[i])), rows[i] % IDS as u32);
                    if allowed.has(rows[i]) && best.push(entry) {
                        most = self::most(base, tables.step, best.limit()).unwrap_or(0);
                    }
                }
            }
        }
    });
}

/// The largest sum that may be within `limit`, or a little more; none where a sum would have to be negative.
fn most(base: f32, step: f32, limit: f32) -> Option<u16> {
    // Rounding of a sum's distance, `base + step * sum`, is allowed for.
    let most = (limit - base) / step + 1.0 + base.abs() / step * 1e-6;
    (most >= 0.0).then_some(most as u16)
}

/// Adds the biases to the sums; a bit for each sum that is at most `most`.
#[inline]
fn below(sums: &mut [u16; BLOCK], biases: &[u16; BLOCK], factor: u16, most: u16) -> u32 {
    let mut flags = [0u8; BLOCK];
    for i in 0..BLOCK {
        let bias = (u32::from(biases[i]) * u32::from(factor)) >> 16;
        sums[i] = sums[i].saturating_add(bias as u16);
        flags[i] = u8::from(sums[i] <= most);
    }
    let mut mask = 0;
    for (i, eight) in flags.as_chunks::<8>().0.iter().enumerate() {
        // Eight bytes of 0 or 1: the product's highest byte has their bits, the first lowest.
        mask |= ((u64::from_le_bytes(*eight).wrapping_mul(0x0102_0408_1020_4080) >> 56) as u32) << (8 * i);
    }
    mask
}

/// Scans a list of rows. `keys(codes, keys)` gives the key of each of the codes.
pub(crate) fn rows(
    list: &List,
    form: Form,
    keys: &mut dyn FnMut(&[u8], &mut [i32]),
    allowed: Allowed<'_>,
    scratch: &mut ScanScratch,
    best: &mut Best,
) {
    let Form::Rows { stride } = form else { unreachable!("blocks have a scan of their own") };
    let found = &mut scratch.keys;
    list.visit(&mut scratch.words, &mut |part: Part<'_>| {
        for (rows, codes) in part.rows.chunks(STEP).zip(part.codes.chunks(STEP * stride)) {
            found.resize(rows.len(), 0);
            keys(codes, found);
            for (&key, &row) in found.iter().zip(rows) {
                if best.bound.is_none_or(|bound| key <= bound.key()) && allowed.has(row) {
                    best.push(Entry::new(key, row));
                }
            }
        }
    });
}
