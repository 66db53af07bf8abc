//! Asking for memory before it is read. A core has a few dozen lines on their way at a time: a walk waits for memory
//! least if it asks for all that its next step reads at once, and for nothing else.

use lanewise_kernels::ALIGN;

/// Lines of a row that are asked for before it is compared; the kernels ask for the rest.
const LINES: usize = 2;

/// Asks for the first lines of the rows `ids`.
#[inline]
pub(crate) fn prefetch_rows(rows: &[u8], stride: usize, ids: &[u32]) {
    for &id in ids {
        let row = rows.as_ptr().wrapping_add(id as usize * stride);
        (0..stride.min(LINES * ALIGN)).step_by(ALIGN).for_each(|line| prefetch(row.wrapping_add(line)));
    }
}

/// Asks for the line of `address`.
#[inline]
pub(crate) fn prefetch<T>(address: *const T) {
    let _ = address;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch of any address is harmless, and SSE is part of the base architecture.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(address.cast());
    }
}
