//! One operation on one element type, and its four forms as safe calls.

use crate::raw;
use crate::rows::Rows;
use std::fmt;

type Erased = Option<unsafe extern "C" fn()>;
type One<Q, O, R> = unsafe extern "C" fn(*const Q, *const R, usize) -> O;
type Many<Q, O, R> = unsafe extern "C" fn(*const Q, *const R, usize, usize, usize, *mut O);
type Ids<Q, O, R> = unsafe extern "C" fn(*const Q, *const R, usize, *const u32, usize, usize, *mut O);
type Tile<Q, O, R> =
    unsafe extern "C" fn(*const Q, usize, usize, *const R, usize, usize, usize, *mut O, usize);

/// One operation on queries of elements `Q` and rows of elements `R`, bound to the variant that runs it.
///
/// Lengths count row elements, which are bytes for `i4`, `u4`, `i8u4`, `u8u4`, `bits` and `u4bits`; a query has
/// [`per`](Kernel::per) elements for each. No call is longer than [`bound`](Kernel::bound).
pub struct Kernel<Q, O, R = Q> {
    pub(crate) variant: &'static raw::Variant,
    per: usize,
    bound: usize,
    one: One<Q, O, R>,
    rows: Many<Q, O, R>,
    ids: Ids<Q, O, R>,
    tile: Tile<Q, O, R>,
}

impl<Q, O, R> Clone for Kernel<Q, O, R> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<Q, O, R> Copy for Kernel<Q, O, R> {}

impl<Q, O, R> fmt::Debug for Kernel<Q, O, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}_{}_{}", self.variant.op(), self.variant.kind(), self.variant.isa())
    }
}

impl<Q, O, R> Kernel<Q, O, R> {
    /// # Safety
    /// `variant` must be of the kernel whose elements are `Q` and `R` and whose result is `O`, and its needs must be
    /// met by the CPU.
    pub(crate) unsafe fn bind(variant: &'static raw::Variant) -> Self {
        let missing = "a variant has all four forms";
        // SAFETY: `list.h` gives the C functions the types that the caller vouches for.
        unsafe {
            Kernel {
                variant,
                per: raw::per(variant.kernel),
                bound: raw::bound(variant.kernel),
                one: std::mem::transmute::<Erased, Option<One<Q, O, R>>>(variant.one).expect(missing),
                rows: std::mem::transmute::<Erased, Option<Many<Q, O, R>>>(variant.rows).expect(missing),
                ids: std::mem::transmute::<Erased, Option<Ids<Q, O, R>>>(variant.ids).expect(missing),
                tile: std::mem::transmute::<Erased, Option<Tile<Q, O, R>>>(variant.tile).expect(missing),
            }
        }
    }

    /// Name of the instruction set that runs, as in `c/list.h`.
    pub fn isa(&self) -> &'static str {
        self.variant.isa()
    }

    /// Largest number of row elements for which the result is exact; `usize::MAX` for float kernels.
    pub fn bound(&self) -> usize {
        self.bound
    }

    /// Query elements for each row element: 1; 2 for `i8u4` and `u8u4`; 4 for `u4bits`.
    pub fn per(&self) -> usize {
        self.per
    }

    /// `query` elements against rows of `dim` elements.
    fn check(&self, query: usize, dim: usize) {
        assert!(dim <= self.bound, "{self:?} is exact up to {} elements, not {dim}", self.bound);
        assert_eq!(query, dim * self.per, "elements of the query, and those that the row's length asks for");
    }

    /// The operation on a query and a row.
    ///
    /// # Panics
    /// If their lengths do not fit each other, or are beyond the bound.
    #[inline]
    pub fn one(&self, a: &[Q], b: &[R]) -> O {
        self.check(a.len(), b.len());
        // SAFETY: both hold as many elements as `b.len()` row elements ask for.
        unsafe { (self.one)(a.as_ptr(), b.as_ptr(), b.len()) }
    }

    /// The operation on `query` and each of the rows `first..first + out.len()`, in order.
    ///
    /// # Panics
    /// If the query's length does not fit the rows', is beyond the bound, or there are not so many rows.
    #[inline]
    pub fn rows(&self, query: &[Q], rows: Rows<'_, R>, first: usize, out: &mut [O]) {
        self.check(query.len(), rows.dim);
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
    /// If the query's length does not fit the rows', is beyond the bound, `out` is not as long as `ids`, or an id has
    /// no row.
    #[inline]
    pub fn ids(&self, query: &[Q], rows: Rows<'_, R>, ids: &[u32], out: &mut [O]) {
        self.check(query.len(), rows.dim);
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

    /// The operation on each of `queries` and each of `rows`: `out` holds `rows.len()` results a query, query by query.
    ///
    /// # Panics
    /// If the queries' length does not fit the rows', is beyond the bound, or `out` is not as long as there are pairs.
    #[inline]
    pub fn tile(&self, queries: Rows<'_, Q>, rows: Rows<'_, R>, out: &mut [O]) {
        self.check(queries.dim, rows.dim);
        assert_eq!(Some(out.len()), queries.count.checked_mul(rows.count), "one result for each pair");
        if out.is_empty() {
            return;
        }
        // SAFETY: both lie within their memory, and `out` holds a result for each pair.
        unsafe {
            (self.tile)(
                queries.base,
                queries.stride,
                queries.count,
                rows.base,
                rows.stride,
                rows.count,
                rows.dim,
                out.as_mut_ptr(),
                rows.count,
            );
        }
    }
}
