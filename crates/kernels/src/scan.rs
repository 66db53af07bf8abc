//! 4-bit product quantization: sums of table entries for blocks of 32 vectors.

use crate::raw;
use std::fmt;

type Function = unsafe extern "C" fn(*const u8, *const u8, usize, usize, *mut u16);

/// Vectors of a block.
pub const BLOCK: usize = 32;

/// The scan, bound to the variant that runs it (André et al., Cache locality is not enough, VLDB 2015).
#[derive(Clone, Copy)]
pub struct Scan {
    pub(crate) variant: &'static raw::Variant,
    bound: usize,
    function: Function,
}

impl fmt::Debug for Scan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}_{}_{}", self.variant.op(), self.variant.kind(), self.variant.isa())
    }
}

impl Scan {
    /// # Safety
    /// `variant` must be of a scan, and its needs must be met by the CPU.
    pub(crate) unsafe fn bind(variant: &'static raw::Variant) -> Self {
        let erased = variant.rows.expect("a scan has its one form");
        Scan {
            variant,
            bound: raw::bound(variant.kernel),
            // SAFETY: `list.h` gives the C function this type, as the caller vouches.
            function: unsafe { std::mem::transmute::<unsafe extern "C" fn(), Function>(erased) },
        }
    }

    /// Name of the instruction set that runs, as in `c/list.h`.
    pub fn isa(&self) -> &'static str {
        self.variant.isa()
    }

    /// Largest number of sub-quantizers whose sums stay inside 16 bits.
    pub fn bound(&self) -> usize {
        self.bound
    }

    /// `out[32 * block + i]`: the sum over the sub-quantizers `s` of `tables[16 * s + code]`. Of each block, `codes` has
    /// 16 bytes for each sub-quantizer: byte `i` holds the code of vector `i` in its low half and of vector `16 + i` in
    /// its high half. `tables` has 16 bytes for each sub-quantizer.
    ///
    /// # Panics
    /// If the lengths do not fit each other, or there are more sub-quantizers than the bound.
    pub fn scan(&self, tables: &[u8], codes: &[u8], out: &mut [u16]) {
        let m = tables.len() / 16;
        assert!(tables.len().is_multiple_of(16), "tables have 16 bytes for each sub-quantizer");
        assert!(m <= self.bound, "{self:?} is exact up to {} sub-quantizers, not {m}", self.bound);
        assert!(out.len().is_multiple_of(BLOCK), "a block has {BLOCK} vectors");
        let blocks = out.len() / BLOCK;
        assert_eq!(Some(codes.len()), blocks.checked_mul(16 * m), "bytes of the codes");
        // SAFETY: the lengths were checked.
        unsafe { (self.function)(tables.as_ptr(), codes.as_ptr(), blocks, m, out.as_mut_ptr()) }
    }
}
