//! Columns: arrays of plain numbers that are either our own memory or part of an opened file.
//!
//! Our own memory starts on a cache line, and on a huge page once it is large: a random row then costs no page walk of
//! four levels (20 % of a gathered distance, measured on Zen 4). A column of a file is read in place and copied the
//! first time that it is changed.

use std::alloc::{Layout, alloc, dealloc};
use std::marker::PhantomData;
use std::num::NonZeroUsize;
use std::ops::{Deref, Range};
use std::ptr::{self, NonNull};
use std::sync::Arc;

/// The system gave no memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no memory for {bytes} more bytes: add fewer vectors, or raise the memory limit")]
pub struct OutOfMemory {
    /// How much was asked for.
    pub bytes: usize,
}

/// What an opened file's bytes live in: a memory map, or a vector in tests.
pub type FileBytes = Arc<dyn AsRef<[u8]> + Send + Sync>;

/// Numbers without padding or forbidden values, so that any bytes of a file are valid ones.
///
/// # Safety
/// Every bit pattern of the type must be a value of it, without padding.
pub(crate) unsafe trait Plain: Copy + Default + 'static {}
// SAFETY: integers and floats.
unsafe impl Plain for u8 {}
// SAFETY: as above.
unsafe impl Plain for i32 {}
// SAFETY: as above.
unsafe impl Plain for u32 {}
// SAFETY: as above.
unsafe impl Plain for i64 {}

/// An array of plain numbers, in our own memory or a file's.
pub(crate) enum Column<T> {
    Owned(Buffer<T>),
    Mapped { file: FileBytes, range: Range<usize>, element: PhantomData<T> },
}

impl<T: Plain> Column<T> {
    pub(crate) fn new() -> Self {
        Column::Owned(Buffer::new())
    }

    /// The part `range` (bytes) of `file`; `None` if it lies outside, is misaligned or holds no whole number of `T`.
    pub(crate) fn map(file: &FileBytes, range: Range<usize>) -> Option<Self> {
        let bytes = (**file).as_ref().get(range.clone())?;
        let whole = bytes.len() % size_of::<T>() == 0 && bytes.as_ptr().cast::<T>().is_aligned();
        whole.then(|| Column::Mapped { file: file.clone(), range, element: PhantomData })
    }

    /// Makes room for `more` elements, in our own memory: a file's are copied there.
    pub(crate) fn reserve(&mut self, more: usize) -> Result<(), OutOfMemory> {
        if let Column::Mapped { .. } = self {
            let mut buffer = Buffer::new();
            buffer.reserve(self.len() + more)?;
            buffer.extend(self);
            *self = Column::Owned(buffer);
        }
        self.owned().reserve(more)
    }

    /// The column to be changed, after `reserve` has made it our own.
    pub(crate) fn owned(&mut self) -> &mut Buffer<T> {
        match self {
            Column::Owned(buffer) => buffer,
            Column::Mapped { .. } => unreachable!("reserve comes before a change"),
        }
    }

    /// Bytes of memory that the column holds for itself; a file's are the file's.
    pub(crate) fn owned_bytes(&self) -> usize {
        match self {
            Column::Owned(buffer) => buffer.capacity * size_of::<T>(),
            Column::Mapped { .. } => 0,
        }
    }

    /// The column as the bytes that a file holds (little-endian machines only, see `format`).
    pub(crate) fn bytes(&self) -> &[u8] {
        let all: &[T] = self;
        // SAFETY: `Plain` types have no padding.
        unsafe { std::slice::from_raw_parts(all.as_ptr().cast(), size_of_val(all)) }
    }
}

impl<T: Plain> Deref for Column<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        match self {
            Column::Owned(buffer) => buffer,
            Column::Mapped { file, range, .. } => {
                let bytes = &(**file).as_ref()[range.clone()];
                // SAFETY: `map` checked size and alignment; any bytes are valid `Plain` values.
                unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast(), bytes.len() / size_of::<T>()) }
            }
        }
    }
}

/// A growing array that starts on a cache line, and on a huge page when it is at least two of them long.
pub(crate) struct Buffer<T> {
    start: NonNull<T>,
    len: usize,
    capacity: usize,
}

// SAFETY: the buffer owns its memory; `T` is a plain number.
unsafe impl<T: Plain> Send for Buffer<T> {}
// SAFETY: as above; shared access only reads.
unsafe impl<T: Plain> Sync for Buffer<T> {}

const LINE: usize = lanewise_kernels::ALIGN;
const HUGE_PAGE: usize = 2 << 20;

impl<T> Buffer<T> {
    pub(crate) const fn new() -> Self {
        // Dangling, but on a line of its own: an empty matrix is as aligned as a full one.
        Buffer { start: NonNull::without_provenance(NonZeroUsize::new(LINE).unwrap()), len: 0, capacity: 0 }
    }

    /// Memory for `capacity` elements; `None` if that exceeds the address space.
    fn layout(capacity: usize) -> Option<Layout> {
        let bytes = capacity.checked_mul(size_of::<T>())?;
        Layout::from_size_align(bytes, if bytes >= 2 * HUGE_PAGE { HUGE_PAGE } else { LINE }).ok()
    }

    fn free(&mut self) {
        if let Some(layout) = Self::layout(self.capacity).filter(|layout| layout.size() > 0) {
            // SAFETY: allocated with this very layout.
            unsafe { dealloc(self.start.as_ptr().cast(), layout) };
        }
    }
}

impl<T: Plain> Buffer<T> {
    /// Makes room for `more` elements: exactly so the first time, by half as much again later, so that one large
    /// `add` wastes nothing and many small ones copy each element a bounded number of times.
    pub(crate) fn reserve(&mut self, more: usize) -> Result<(), OutOfMemory> {
        let needed = self.len.checked_add(more).ok_or(OutOfMemory { bytes: usize::MAX })?;
        if needed <= self.capacity {
            return Ok(());
        }
        let grown = if self.capacity == 0 { needed } else { needed.max(self.capacity + self.capacity / 2) };
        let layout = Self::layout(grown).ok_or(OutOfMemory { bytes: usize::MAX })?;
        // SAFETY: the layout is not empty, since `needed` exceeds the capacity; the old elements fit the new memory.
        unsafe {
            let start =
                NonNull::new(alloc(layout).cast::<T>()).ok_or(OutOfMemory { bytes: layout.size() })?;
            #[cfg(target_os = "linux")]
            if layout.align() == HUGE_PAGE {
                // Advice: a kernel without huge pages says no, and nothing else changes.
                libc::madvise(start.as_ptr().cast(), layout.size(), libc::MADV_HUGEPAGE);
            }
            ptr::copy_nonoverlapping(self.start.as_ptr(), start.as_ptr(), self.len);
            self.free();
            self.start = start;
        }
        self.capacity = grown;
        Ok(())
    }

    /// Appends `values`, for which room was reserved.
    pub(crate) fn extend(&mut self, values: &[T]) {
        assert!(values.len() <= self.capacity - self.len, "room was reserved");
        // SAFETY: there is room; `values` cannot overlap memory that self owns exclusively.
        unsafe { ptr::copy_nonoverlapping(values.as_ptr(), self.start.as_ptr().add(self.len), values.len()) };
        self.len += values.len();
    }

    pub(crate) fn push(&mut self, value: T) {
        self.extend(&[value]);
    }

    /// Appends `count` times `value`, for which room was reserved.
    pub(crate) fn fill(&mut self, count: usize, value: T) {
        assert!(count <= self.capacity - self.len, "room was reserved");
        for i in self.len..self.len + count {
            // SAFETY: there is room.
            unsafe { self.start.as_ptr().add(i).write(value) };
        }
        self.len += count;
    }

    pub(crate) fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    pub(crate) fn as_mut_slice(&mut self) -> &mut [T] {
        // SAFETY: the first `len` elements are initialised and exclusively ours.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl<T> Deref for Buffer<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: the first `len` elements are initialised.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl<T> Drop for Buffer<T> {
    fn drop(&mut self) {
        self.free();
    }
}
