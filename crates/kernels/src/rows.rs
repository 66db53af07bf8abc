//! Rows of equal length in one piece of memory: what a query is compared with.

use std::marker::PhantomData;

/// Rows of equal length in one piece of memory, `stride` bytes apart.
#[derive(Clone, Copy)]
pub struct Rows<'a, T> {
    pub(crate) base: *const T,
    pub(crate) stride: usize,
    pub(crate) count: usize,
    pub(crate) dim: usize,
    memory: PhantomData<&'a [u8]>,
}

// SAFETY: a shared borrow of plain numbers.
unsafe impl<T: Sync> Send for Rows<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Rows<'_, T> {}

impl<'a, T> Rows<'a, T> {
    /// `count` rows of `dim` elements in `memory`, `stride` bytes apart.
    ///
    /// # Panics
    /// If they do not fit, or `memory` or `stride` do not keep the alignment of `T`.
    pub fn new(memory: &'a [u8], stride: usize, count: usize, dim: usize) -> Self {
        let row = dim.checked_mul(size_of::<T>()).expect("row too long");
        let end = count.checked_sub(1).map_or(Some(0), |last| last.checked_mul(stride)?.checked_add(row));
        assert!(end.is_some_and(|end| end <= memory.len()), "rows do not fit their memory");
        assert!(
            memory.as_ptr().cast::<T>().is_aligned() && stride.is_multiple_of(align_of::<T>()),
            "rows not aligned"
        );
        assert!(row <= stride || count <= 1, "rows overlap");
        Rows { base: memory.as_ptr().cast(), stride, count, dim, memory: PhantomData }
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Elements of a row.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// The elements of row `i`.
    ///
    /// # Panics
    /// If there is no such row.
    #[inline]
    pub fn row(&self, i: usize) -> &'a [T] {
        assert!(i < self.count, "row {i} of {}", self.count);
        // SAFETY: `new` checked that every row lies within `memory`, which is borrowed for 'a and initialised.
        unsafe { std::slice::from_raw_parts(self.base.byte_add(i * self.stride), self.dim) }
    }
}
