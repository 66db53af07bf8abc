//! Memory between two pages that may not be touched: a read of one byte too many is a segmentation fault.

use std::ptr;

/// A readable piece of memory of whole pages with an inaccessible page before and after it.
pub(crate) struct Guarded {
    map: *mut u8,
    page: usize,
    inner: usize,
}

impl Guarded {
    /// At least `bytes` readable bytes.
    pub(crate) fn new(bytes: usize) -> Self {
        // SAFETY: reads a constant of the system.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
        let inner = bytes.div_ceil(page).max(1) * page;
        // SAFETY: a fresh private mapping, checked; the inner pages are opened within it.
        unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            let map = libc::mmap(ptr::null_mut(), inner + 2 * page, libc::PROT_NONE, flags, -1, 0);
            assert_ne!(map, libc::MAP_FAILED);
            let map = map.cast::<u8>();
            let open = libc::mprotect(map.add(page).cast(), inner, libc::PROT_READ | libc::PROT_WRITE);
            assert_eq!(open, 0);
            Guarded { map, page, inner }
        }
    }

    fn readable(&mut self) -> &mut [u8] {
        // SAFETY: the inner pages are mapped, zeroed and owned by self.
        unsafe { std::slice::from_raw_parts_mut(self.map.add(self.page), self.inner) }
    }

    /// A copy of `data` that ends at the guard page behind it.
    pub(crate) fn at_end<T: Copy>(&mut self, data: &[T]) -> &[T] {
        let start = self.inner - size_of_val(data);
        self.place(data, start)
    }

    /// A copy of `data` that starts at the guard page before it.
    pub(crate) fn at_start<T: Copy>(&mut self, data: &[T]) -> &[T] {
        self.place(data, 0)
    }

    fn place<T: Copy>(&mut self, data: &[T], start: usize) -> &[T] {
        let target = self.readable()[start..start + size_of_val(data)].as_mut_ptr().cast::<T>();
        assert!(target.is_aligned());
        // SAFETY: the range was checked by the slice above, the alignment just now.
        unsafe {
            ptr::copy_nonoverlapping(data.as_ptr(), target, data.len());
            std::slice::from_raw_parts(target, data.len())
        }
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        // SAFETY: the mapping that `new` made.
        unsafe { libc::munmap(self.map.cast(), self.inner + 2 * self.page) };
    }
}
