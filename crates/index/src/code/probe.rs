//! How rows and queries lie in memory: the floats at the end of a row, and a query that starts on a cache line.

use lanewise_kernels::ALIGN;

/// A query, or a stored row, made ready to be compared with rows of a code; memory for the next one is kept.
pub(crate) struct CodeProbe {
    lines: Vec<Line>,
    bytes: usize,
    pub(super) terms: Terms,
    scratch: Vec<f32>,
}

#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([u8; ALIGN]);

/// The query's part of a key.
#[derive(Clone, Copy, Default, Debug, PartialEq)]
pub(super) struct Terms {
    pub(super) a: f32,
    pub(super) c: f32,
    pub(super) d: f32,
    pub(super) e: f32,
}

impl CodeProbe {
    pub(crate) fn new() -> Self {
        CodeProbe { lines: Vec::new(), bytes: 0, terms: Terms::default(), scratch: Vec::new() }
    }

    /// Memory for a query of so many bytes, with what it held before, and the scratch for floats.
    pub(super) fn parts(&mut self, bytes: usize) -> (&mut [u8], &mut Vec<f32>) {
        if self.bytes != bytes {
            self.lines.clear();
            self.lines.resize(bytes.div_ceil(ALIGN), Line([0; ALIGN]));
            self.bytes = bytes;
        }
        // SAFETY: lines are arrays of bytes without padding, and so many.
        let all = unsafe { std::slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast::<u8>(), bytes) };
        (all, &mut self.scratch)
    }

    pub(super) fn query(&self) -> &[u8] {
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts(self.lines.as_ptr().cast::<u8>(), self.bytes) }
    }
}

/// The `i`-th float from the end of a row.
#[inline]
pub(super) fn read_tail(row: &[u8], i: usize) -> f32 {
    let at = row.len() - 4 * (i + 1);
    f32::from_le_bytes([row[at], row[at + 1], row[at + 2], row[at + 3]])
}

pub(super) fn write_tail(row: &mut [u8], i: usize, value: f32) {
    let at = row.len() - 4 * (i + 1);
    row[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

/// Bytes as signed ones.
pub(super) fn signed(bytes: &[u8]) -> &[i8] {
    // SAFETY: same size and alignment, every bit pattern is a value of both.
    unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast(), bytes.len()) }
}

/// The bytes of a row of so many of code, and floats: half a cache line, or whole ones.
pub(super) fn row_bytes(code: usize, floats: usize) -> usize {
    let row = code + 4 * floats;
    if row <= ALIGN / 2 { ALIGN / 2 } else { row.next_multiple_of(ALIGN) }
}
