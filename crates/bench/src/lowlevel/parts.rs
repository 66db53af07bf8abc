//! The parts, as pieces of work on prepared memory.
//!
//! XXH3 is here as the shared hash: what needs a fast hash that stays the same (ids, contents of documents) takes it
//! from `twox-hash`, which chooses its code at run time; the standard library's is neither stable nor fast. Encryption
//! is not: nothing uses it.

use super::expected::Part;
use super::levels::{Level, levels};
use lanewise_engine::kernels::{ALIGN, Kernel, Kernels, Rows};
use lanewise_engine::topology::Machine;
use std::hint::black_box;

/// A piece of work.
pub(super) struct Work<'a> {
    /// What it is.
    pub(super) part: Part,
    /// What does it.
    pub(super) by: String,
    /// Bytes that one call of `run` goes over.
    pub(super) bytes: usize,
    /// Does it once.
    pub(super) run: &'a mut dyn FnMut(),
}

/// Bytes for checksums and hashes: far beyond their set-up, inside every L1.
const BLOCK: usize = 16 << 10;

/// Dimensions of the vectors that kernels are timed with.
const DIM: usize = 1024;

/// Bytes of rows that kernels are timed with: with the query inside every L1.
const ROWS: usize = 16 << 10;

/// Gives each part of this machine to `visit`, one after the other; kernels only if there are any.
pub(super) fn all(machine: &Machine, kernels: Option<&Kernels>, visit: &mut dyn FnMut(Work<'_>)) {
    let block: Vec<u8> = (0..BLOCK).map(|i| (i * 31 % 251) as u8).collect();
    visit(Work {
        part: Part::Crc32c,
        by: "crc-fast".into(),
        bytes: BLOCK,
        run: &mut || {
            black_box(crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, black_box(&block)));
        },
    });
    visit(Work {
        part: Part::Xxh3,
        by: "twox-hash".into(),
        bytes: BLOCK,
        run: &mut || {
            black_box(twox_hash::XxHash3_64::oneshot(black_box(&block)));
        },
    });

    memory(&levels(machine), visit);

    if let Some(kernels) = kernels {
        let float = |i: usize| (i % 17) as f32 - 8.0;
        let byte = |i: usize| (i % 251) as u8 as i8;
        let bits = |i: usize| (i * 37 % 256) as u8;
        kernel(Part::DotF32, kernels.dot_f32, DIM, float, visit);
        kernel(Part::L2F32, kernels.l2_f32, DIM, float, visit);
        kernel(Part::DotI8, kernels.dot_i8, DIM, byte, visit);
        kernel(Part::L2I8, kernels.l2_i8, DIM, byte, visit);
        kernel(Part::HammingBits, kernels.hamming_bits, DIM / 8, bits, visit);
    }
}

/// Reads and copies on each level, so far as there is memory for it.
fn memory(levels: &[Level], visit: &mut dyn FnMut(Work<'_>)) {
    let mut memory: Vec<u64> = Vec::new();
    let largest = levels.iter().rev().find(|level| memory.try_reserve_exact(level.bytes / 8).is_ok());
    // Written, so that it is memory and not a promise of it.
    memory.extend(0..largest.map_or(0, |level| level.bytes / 8) as u64);
    for level in levels {
        let Some(words) = memory.get_mut(..level.bytes / 8) else { return };
        let run = &mut || {
            black_box(sum(black_box(words)));
        };
        visit(Work { part: level.read, by: "plain code".into(), bytes: level.bytes, run });
        let (from, to) = words.split_at_mut(level.bytes / 16);
        let run = &mut || {
            black_box(&mut *to).copy_from_slice(black_box(from));
        };
        visit(Work { part: level.copy, by: "memcpy".into(), bytes: level.bytes / 2, run });
    }
}

/// Sum of the words: the compiler reads them in as wide pieces as the base architecture has.
fn sum(words: &[u64]) -> u64 {
    words.iter().fold(0, |sum, &word| sum.wrapping_add(word))
}

/// One query against rows of `len` elements, all in the L1.
fn kernel<T: Element, O: Copy + Default>(
    part: Part,
    kernel: Kernel<T, O>,
    len: usize,
    element: impl Fn(usize) -> T,
    visit: &mut dyn FnMut(Work<'_>),
) {
    let row = len * size_of::<T>();
    let count = ROWS / row;
    let elements = (0..count * len).flat_map(|i| element(i).to_bytes());
    let (mut memory, skip) = aligned(count * row);
    memory.splice(skip..skip + count * row, elements);
    let rows = Rows::<T>::new(&memory[skip..], row, count, len);
    let query: Vec<T> = rows.row(0).to_vec();
    let mut out = vec![O::default(); count];
    visit(Work {
        part,
        by: kernel.isa().into(),
        bytes: count * row,
        run: &mut || {
            kernel.rows(black_box(&query), black_box(rows), 0, &mut out);
            black_box(&out);
        },
    });
}

/// `bytes` zeros that start on a line, and where that is: loads that cross lines would be slower.
fn aligned(bytes: usize) -> (Vec<u8>, usize) {
    let memory = vec![0; bytes + ALIGN];
    let skip = memory.as_ptr().align_offset(ALIGN).min(ALIGN);
    (memory, skip)
}

/// What rows are made of, as bytes.
trait Element: Copy + 'static {
    fn to_bytes(self) -> impl IntoIterator<Item = u8>;
}
impl Element for f32 {
    fn to_bytes(self) -> impl IntoIterator<Item = u8> {
        self.to_ne_bytes()
    }
}
impl Element for i8 {
    fn to_bytes(self) -> impl IntoIterator<Item = u8> {
        self.to_ne_bytes()
    }
}
impl Element for u8 {
    fn to_bytes(self) -> impl IntoIterator<Item = u8> {
        [self]
    }
}
