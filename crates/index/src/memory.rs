//! Columns: arrays of plain numbers, in our own memory or part of an opened file, that one writer extends while others
//! read what was there before.
//!
//! Our own memory starts on a cache line, and on a huge page once it is large: a random row then costs no page walk of
//! four levels (20 % of a gathered distance, measured on Zen 4). A column of a file is read in place and copied the
//! first time that it grows.
//!
//! A [`view`](Column::view) shares the memory of a column up to a length. What it shows never moves and is never written
//! again, save for atomic elements: the column grows into memory that no view shows, or, when that is used up, into a
//! larger copy, while views keep the old one alive.

use std::alloc::{Layout, alloc, dealloc};
use std::marker::PhantomData;
use std::num::NonZeroUsize;
use std::ops::{Deref, Range};
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64};

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
/// Every bit pattern of the type must be a value of it, without padding, and shared references may go to other threads.
pub(crate) unsafe trait Plain: Send + Sync + 'static {}
// SAFETY: integers, floats and their atomic forms.
unsafe impl Plain for u8 {}
// SAFETY: as above.
unsafe impl Plain for i32 {}
// SAFETY: as above.
unsafe impl Plain for u32 {}
// SAFETY: as above.
unsafe impl Plain for i64 {}
// SAFETY: as above.
unsafe impl Plain for AtomicU32 {}
// SAFETY: as above.
unsafe impl Plain for AtomicU64 {}

/// Memory of our own, freed with the last column that shows it.
struct Block {
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: the block only owns its memory; access is the columns' matter.
unsafe impl Send for Block {}
// SAFETY: as above.
unsafe impl Sync for Block {}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: allocated with this very layout.
        unsafe { dealloc(self.start.as_ptr(), self.layout) };
    }
}

const LINE: usize = lanewise_kernels::ALIGN;
const HUGE_PAGE: usize = 2 << 20;

impl Block {
    fn new(bytes: usize) -> Result<Block, OutOfMemory> {
        let refused = OutOfMemory { bytes };
        let align = if bytes >= 2 * HUGE_PAGE { HUGE_PAGE } else { LINE };
        let layout = Layout::from_size_align(bytes.max(1), align).map_err(|_| refused)?;
        // SAFETY: the layout is not empty.
        let start = NonNull::new(unsafe { alloc(layout) }).ok_or(refused)?;
        #[cfg(target_os = "linux")]
        if align == HUGE_PAGE {
            // SAFETY: advice on memory of our own; a kernel without huge pages says no, and nothing else changes.
            unsafe { libc::madvise(start.as_ptr().cast(), layout.size(), libc::MADV_HUGEPAGE) };
        }
        Ok(Block { start, layout })
    }
}

/// What columns hold once they have grown, and the memory they leave, which lasts as long as somebody shows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Growth {
    pub(crate) held: usize,
    pub(crate) replaced: usize,
}

impl std::ops::Add for Growth {
    type Output = Growth;

    fn add(self, other: Growth) -> Growth {
        Growth {
            held: self.held.saturating_add(other.held),
            replaced: self.replaced.saturating_add(other.replaced),
        }
    }
}

/// Where a column's elements live.
enum Memory {
    None,
    Own(Arc<Block>),
    Shared { block: Arc<Block> },
    File(FileBytes),
}

/// An array of plain numbers.
pub(crate) struct Column<T> {
    start: NonNull<T>,
    len: usize,
    /// How many elements fit without a copy; of memory that is not our own to write: none.
    capacity: usize,
    memory: Memory,
    element: PhantomData<T>,
}

// SAFETY: elements are plain numbers; those that a view shows are never written, save through atomics.
unsafe impl<T: Plain> Send for Column<T> {}
// SAFETY: as above; shared access only reads.
unsafe impl<T: Plain> Sync for Column<T> {}

impl<T: Plain> Column<T> {
    pub(crate) const fn new() -> Self {
        // Dangling, but on a line of its own: an empty matrix is as aligned as a full one.
        let start = NonNull::without_provenance(NonZeroUsize::new(LINE).unwrap());
        Column { start, len: 0, capacity: 0, memory: Memory::None, element: PhantomData }
    }

    /// The part `range` (bytes) of `file`; `None` if it lies outside, is misaligned or holds no whole number of `T`.
    pub(crate) fn map(file: &FileBytes, range: Range<usize>) -> Option<Self> {
        let bytes = (**file).as_ref().get(range)?;
        let start = NonNull::from(bytes).cast::<T>();
        let whole = bytes.len() % size_of::<T>() == 0 && start.is_aligned();
        let len = bytes.len() / size_of::<T>();
        whole.then(|| Column {
            start,
            len,
            capacity: 0,
            memory: Memory::File(file.clone()),
            element: PhantomData,
        })
    }

    /// The first `len` elements, for readers.
    pub(crate) fn view(&self, len: usize) -> Self {
        assert!(len <= self.len, "a view of {len} elements of {}", self.len);
        let memory = match &self.memory {
            Memory::None => Memory::None,
            Memory::Own(block) | Memory::Shared { block } => Memory::Shared { block: block.clone() },
            Memory::File(file) => Memory::File(file.clone()),
        };
        Column { start: self.start, len, capacity: 0, memory, element: PhantomData }
    }

    /// The capacity with room for `more` elements: exactly that the first time, half as much again later, so that one
    /// large `add` wastes nothing and many small ones copy each element a bounded number of times. `None`: it is there.
    fn grown(&self, more: usize) -> Option<usize> {
        let needed = self.len.saturating_add(more);
        let first = self.capacity == 0;
        (needed > self.capacity && more > 0)
            .then(|| if first { needed } else { needed.max(self.capacity + self.capacity / 2) })
    }

    /// What [`reserve`](Self::reserve) would take.
    pub(crate) fn growth(&self, more: usize) -> Growth {
        let held = self.owned_bytes();
        match self.grown(more) {
            None => Growth { held, replaced: 0 },
            Some(grown) => Growth { held: grown.saturating_mul(size_of::<T>()), replaced: held },
        }
    }

    /// Makes room for `more` elements in memory of our own.
    pub(crate) fn reserve(&mut self, more: usize) -> Result<(), OutOfMemory> {
        self.grown(more).map_or(Ok(()), |grown| self.grow(grown))
    }

    /// As [`reserve`](Self::reserve), for no more than these.
    pub(crate) fn reserve_exact(&mut self, more: usize) -> Result<(), OutOfMemory> {
        if self.grown(more).is_some() { self.grow(self.len + more) } else { Ok(()) }
    }

    fn grow(&mut self, grown: usize) -> Result<(), OutOfMemory> {
        let too_many = OutOfMemory { bytes: usize::MAX };
        let block = Block::new(grown.checked_mul(size_of::<T>()).ok_or(too_many)?)?;
        let start = block.start.cast::<T>();
        // SAFETY: the old elements fit the new memory; only this column's holder writes to them, atomics included.
        unsafe { ptr::copy_nonoverlapping(self.start.as_ptr(), start.as_ptr(), self.len) };
        (self.start, self.capacity, self.memory) = (start, grown, Memory::Own(Arc::new(block)));
        Ok(())
    }

    /// Makes the memory our own, so that atomic elements can be written: a file's, and what is another's, is copied.
    pub(crate) fn own(&mut self) -> Result<(), OutOfMemory> {
        if self.own_bytes() > 0 { self.reserve(1) } else { Ok(()) }
    }

    /// What [`own`](Self::own) would take.
    pub(crate) fn own_bytes(&self) -> usize {
        let borrowed = matches!(self.memory, Memory::File(_) | Memory::Shared { .. }) && self.len > 0;
        if borrowed { self.growth(1).held } else { 0 }
    }

    /// Appends `count` elements, for which room was reserved.
    pub(crate) fn extend_with(&mut self, count: usize, mut element: impl FnMut(usize) -> T) {
        assert!(self.len <= self.capacity && count <= self.capacity - self.len, "room was reserved");
        for i in 0..count {
            // SAFETY: there is room, which no view shows.
            unsafe { self.start.as_ptr().add(self.len).write(element(i)) };
            self.len += 1;
        }
    }

    pub(crate) fn push(&mut self, value: T) {
        let mut value = Some(value);
        self.extend_with(1, |_| value.take().expect("called once"));
    }

    /// Forgets the elements from `len` on, which no view shows.
    pub(crate) fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// Bytes of memory that the column keeps alive, room to grow included; a file's are the file's.
    pub(crate) fn owned_bytes(&self) -> usize {
        match &self.memory {
            Memory::Own(block) | Memory::Shared { block } => block.layout.size(),
            Memory::None | Memory::File(_) => 0,
        }
    }

    /// The column as the bytes that a file holds (little-endian machines only, see `format`). Atomic elements must not
    /// change meanwhile.
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: `Plain` types have no padding.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr().cast(), self.len * size_of::<T>()) }
    }
}

impl<T: Plain + Copy> Column<T> {
    /// Appends `values`, for which room was reserved.
    pub(crate) fn extend(&mut self, values: &[T]) {
        assert!(self.len <= self.capacity && values.len() <= self.capacity - self.len, "room was reserved");
        // SAFETY: there is room, which no view shows, so `values` cannot overlap it.
        unsafe { ptr::copy_nonoverlapping(values.as_ptr(), self.start.as_ptr().add(self.len), values.len()) };
        self.len += values.len();
    }

    /// Appends `count` times `value`, for which room was reserved; the new elements, to be written.
    pub(crate) fn extend_slots(&mut self, count: usize, value: T) -> &mut [T] {
        self.extend_with(count, |_| value);
        // SAFETY: just written, shown by no view, exclusively ours while `self` is borrowed.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr().add(self.len - count), count) }
    }
}

impl<T> Deref for Column<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: the first `len` elements are initialised, aligned, and kept alive by `memory`.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}
