//! One operation on one element type, and its three forms as safe calls.

use crate::raw;
use crate::rows::Rows;
use std::fmt;

type One<T, O> = unsafe extern "C" fn(*const T, *const T, usize) -> O;
type Many<T, O> = unsafe extern "C" fn(*const T, *const T, usize, usize, usize, *mut O);
type Ids<T, O> = unsafe extern "C" fn(*const T, *const T, usize, *const u32, usize, usize, *mut O);

/// One operation on one element type, bound to the variant that runs it.
pub struct Kernel<T, O> {
    pub(crate) variant: &'static raw::Variant,
    one: One<T, O>,
    rows: Many<T, O>,
    ids: Ids<T, O>,
}

impl<T, O> Clone for Kernel<T, O> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T, O> Copy for Kernel<T, O> {}

impl<T, O> fmt::Debug for Kernel<T, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}_{}_{}", self.variant.op(), self.variant.kind(), self.variant.isa())
    }
}

impl<T, O> Kernel<T, O> {
    /// # Safety
    /// `variant` must be of the kernel whose element is `T` and whose result is `O`, and its needs must be met by the
    /// CPU.
    pub(crate) unsafe fn bind(variant: &'static raw::Variant) -> Self {
        let missing = "a variant has all three forms";
        // SAFETY: `list.h` gives the C functions the types that the caller vouches for.
        unsafe {
            Kernel {
                variant,
                one: std::mem::transmute::<unsafe extern "C" fn(), One<T, O>>(variant.one.expect(missing)),
                rows: std::mem::transmute::<unsafe extern "C" fn(), Many<T, O>>(variant.rows.expect(missing)),
                ids: std::mem::transmute::<unsafe extern "C" fn(), Ids<T, O>>(variant.ids.expect(missing)),
            }
        }
    }

    /// Name of the instruction set that runs, as in `c/list.h`.
    pub fn isa(&self) -> &'static str {
        self.variant.isa()
    }

    /// Largest number of elements for which the result is exact; `usize::MAX` for float kernels.
    pub fn bound(&self) -> usize {
        raw::bound(self.variant.kernel)
    }

    /// The operation on two slices.
    ///
    /// # Panics
    /// If their lengths differ.
    #[inline]
    pub fn one(&self, a: &[T], b: &[T]) -> O {
        assert_eq!(a.len(), b.len());
        // SAFETY: both hold `a.len()` elements.
        unsafe { (self.one)(a.as_ptr(), b.as_ptr(), a.len()) }
    }

    /// The operation on `query` and each of the rows `first..first + out.len()`, in order.
    ///
    /// # Panics
    /// If the query's length is not the rows', or there are not so many rows.
    #[inline]
    pub fn rows(&self, query: &[T], rows: Rows<'_, T>, first: usize, out: &mut [O]) {
        assert_eq!(query.len(), rows.dim);
        assert!(first <= rows.count && out.len() <= rows.count - first, "rows out of range");
        if out.is_empty() {
            return;
        }
        // SAFETY: the rows lie within their memory (`Rows::new`) and the range within the rows.
        unsafe {
            let base = rows.base.byte_add(first * rows.stride);
            (self.rows)(query.as_ptr(), base, rows.stride, out.len(), rows.dim, out.as_mut_ptr());
        }
    }

    /// The operation on `query` and each row that `ids` names, in order.
    ///
    /// # Panics
    /// If the query's length is not the rows', `out` is not as long as `ids`, or an id has no row.
    #[inline]
    pub fn ids(&self, query: &[T], rows: Rows<'_, T>, ids: &[u32], out: &mut [O]) {
        assert_eq!(query.len(), rows.dim);
        assert_eq!(ids.len(), out.len());
        // One pass over the ids: nanoseconds beside the memory that they lead to.
        let inside = ids.iter().fold(true, |inside, &id| inside & ((id as usize) < rows.count));
        assert!(inside, "id without a row");
        // SAFETY: every id names a row within the memory.
        unsafe {
            (self.ids)(
                query.as_ptr(),
                rows.base,
                rows.stride,
                ids.as_ptr(),
                ids.len(),
                rows.dim,
                out.as_mut_ptr(),
            );
        }
    }
}
