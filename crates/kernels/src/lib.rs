//! Distance kernels: every instruction set in one binary, chosen once, called through plain pointers.
//!
//! A [`Kernel`] is one operation on one element type; its three forms ([`one`](Kernel::one), [`rows`](Kernel::rows),
//! [`ids`](Kernel::ids)) never allocate and never fail. [`Kernels::get`] gives the set that this process uses: the best
//! that the CPU has, or the level that `LANEWISE_ISA` names. The C library and its list of kernels are in `c/`.

mod raw;

use std::ffi::CString;
use std::fmt;
use std::marker::PhantomData;

/// Bytes that rows are aligned to: one cache line, one 512-bit register. A load that crosses a line costs half as much
/// again.
pub const ALIGN: usize = 64;

/// `LANEWISE_ISA` does not name a level that this CPU can run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IsaError {
    /// No level has that name.
    #[error("LANEWISE_ISA={name:?} is not an instruction-set level: unset it, or use one of {known}")]
    Unknown {
        /// What was asked for.
        name: String,
        /// The names there are, ascending.
        known: String,
    },
    /// The level exists, but this CPU lacks some of its features.
    #[error("LANEWISE_ISA={name:?} needs {missing}, which this CPU lacks: unset it, or use one of {known}")]
    NotOnThisCpu {
        /// What was asked for.
        name: String,
        /// Features that the CPU lacks.
        missing: String,
        /// The names that would work here, ascending.
        known: String,
    },
}

/// Rows of equal length in one piece of memory, `stride` bytes apart.
#[derive(Clone, Copy)]
pub struct Rows<'a, T> {
    base: *const T,
    stride: usize,
    count: usize,
    dim: usize,
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
        assert!(memory.as_ptr().cast::<T>().is_aligned() && stride % align_of::<T>() == 0, "rows not aligned");
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

    /// Asks for the first line of row `i` to be brought near. No effect on results; any `i` is harmless.
    #[inline]
    pub fn prefetch(&self, i: usize) {
        let _ = i;
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a prefetch of any address is harmless, and SSE is part of the base architecture.
        unsafe {
            use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
            _mm_prefetch::<_MM_HINT_T1>(self.base.wrapping_byte_add(i.wrapping_mul(self.stride)).cast());
        }
    }
}

type One<T, O> = unsafe extern "C" fn(*const T, *const T, usize) -> O;
type Many<T, O> = unsafe extern "C" fn(*const T, *const T, usize, usize, usize, *mut O);
type Ids<T, O> = unsafe extern "C" fn(*const T, *const T, usize, *const u32, usize, usize, *mut O);

/// One operation on one element type, bound to the variant that runs it.
pub struct Kernel<T, O> {
    variant: &'static raw::Variant,
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
    unsafe fn bind(variant: &'static raw::Variant) -> Self {
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
        // One pass of a vector maximum: nanoseconds beside the memory that the ids lead to.
        assert!(ids.iter().fold(0, |m, &id| m.max(id as usize + 1)) <= rows.count, "id without a row");
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

/// What serves one slot of the table, for reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Operation and element type, such as `dot_f32`.
    pub kernel: String,
    /// Instruction set of the variant that runs.
    pub isa: &'static str,
    /// The better variants that were passed over, each with the features that were not allowed or not there.
    pub passed_over: Vec<(&'static str, Vec<&'static str>)>,
}

/// A set of kernels, one variant each.
#[derive(Clone, Copy, Debug)]
pub struct Kernels {
    level: &'static str,
    allowed: u32,
    /// Inner product of floats.
    pub dot_f32: Kernel<f32, f32>,
    /// Squared Euclidean distance of floats.
    pub l2_f32: Kernel<f32, f32>,
    /// Inner product of signed bytes.
    pub dot_i8: Kernel<i8, i32>,
    /// Squared Euclidean distance of signed bytes.
    pub l2_i8: Kernel<i8, i32>,
    /// Bits that differ, of bit vectors packed eight to a byte; sizes count bytes.
    pub hamming_bits: Kernel<u8, i32>,
}

impl Kernels {
    /// The set that this process uses, chosen at the first call.
    ///
    /// # Errors
    /// If `LANEWISE_ISA` does not name a level that this CPU can run.
    pub fn get() -> Result<Self, IsaError> {
        let choice = raw::chosen();
        let name = std::env::var_os("LANEWISE_ISA").unwrap_or_default();
        // SAFETY: chosen for this CPU.
        unsafe { Self::from_choice(choice, &name.to_string_lossy()) }
    }

    /// The set at `level`, whatever `LANEWISE_ISA` says.
    ///
    /// # Errors
    /// If there is no such level, or this CPU cannot run it.
    pub fn at_level(level: &str) -> Result<Self, IsaError> {
        let choice = choose(level, raw::cpu_features());
        // SAFETY: chosen for this CPU.
        unsafe { Self::from_choice(&choice, level) }
    }

    /// # Safety
    /// The CPU must have `choice.cpu`.
    unsafe fn from_choice(choice: &raw::Choice, name: &str) -> Result<Self, IsaError> {
        check(choice, name)?;
        // SAFETY: C fills every slot, in the order of `list.h`, which is that of the fields; a test compares names.
        unsafe {
            let slot = |i: usize| &*choice.slot[i];
            Ok(Kernels {
                level: choice.level(),
                allowed: choice.allowed,
                dot_f32: Kernel::bind(slot(0)),
                l2_f32: Kernel::bind(slot(1)),
                dot_i8: Kernel::bind(slot(2)),
                l2_i8: Kernel::bind(slot(3)),
                hamming_bits: Kernel::bind(slot(4)),
            })
        }
    }

    /// Name of the level: the one forced, or the highest whose features are all allowed.
    pub fn level(&self) -> &'static str {
        self.level
    }

    /// What serves each slot and why not something better.
    pub fn slots(&self) -> Vec<Slot> {
        let chosen = [
            self.dot_f32.variant,
            self.l2_f32.variant,
            self.dot_i8.variant,
            self.l2_i8.variant,
            self.hamming_bits.variant,
        ];
        chosen.into_iter().map(|variant| describe(variant, self.allowed)).collect()
    }

    /// The variants of each kernel that this CPU can run, worst first, for tests and benchmarks.
    pub fn every_variant() -> Variants {
        let cpu = raw::cpu_features();
        let mut all = Variants::default();
        for v in raw::variants().iter().filter(|v| v.needs & !cpu == 0) {
            // SAFETY: the names say which kernel it is, and the CPU has what it needs.
            unsafe {
                match (v.op(), v.kind()) {
                    ("dot", "f32") => all.dot_f32.push(Kernel::bind(v)),
                    ("l2", "f32") => all.l2_f32.push(Kernel::bind(v)),
                    ("dot", "i8") => all.dot_i8.push(Kernel::bind(v)),
                    ("l2", "i8") => all.l2_i8.push(Kernel::bind(v)),
                    ("hamming", "bits") => all.hamming_bits.push(Kernel::bind(v)),
                    (op, kind) => unreachable!("list.h has {op}_{kind}, which lib.rs does not know"),
                }
            }
        }
        all
    }
}

/// Every variant of each kernel that this CPU can run, worst first.
#[derive(Default, Debug)]
#[expect(missing_docs, reason = "the fields are those of `Kernels`")]
pub struct Variants {
    pub dot_f32: Vec<Kernel<f32, f32>>,
    pub l2_f32: Vec<Kernel<f32, f32>>,
    pub dot_i8: Vec<Kernel<i8, i32>>,
    pub l2_i8: Vec<Kernel<i8, i32>>,
    pub hamming_bits: Vec<Kernel<u8, i32>>,
}

/// Features of this CPU that kernels use, by name.
pub fn cpu_features() -> Vec<&'static str> {
    raw::feature_names(raw::cpu_features())
}

/// The levels that `LANEWISE_ISA` accepts, ascending, each with the features it needs.
pub fn levels() -> Vec<(&'static str, Vec<&'static str>)> {
    raw::levels().into_iter().map(|(name, features)| (name, raw::feature_names(features))).collect()
}

/// What would serve each slot on a CPU with just `features` when `level` is forced (empty: none is). Pure; nothing is
/// run, so any CPU can be asked about.
///
/// # Errors
/// As [`Kernels::at_level`].
pub fn plan(level: &str, features: &[&str]) -> Result<Vec<Slot>, IsaError> {
    let cpu = (0..32).map(|bit| 1 << bit).filter(|&bit| {
        raw::feature_names(bit).first().is_some_and(|name| features.contains(name))
    });
    let choice = choose(level, cpu.sum());
    check(&choice, level)?;
    // SAFETY: C fills every slot with a pointer to a constant; it is described, not called.
    Ok(choice.slot.iter().map(|&slot| describe(unsafe { &*slot }, choice.allowed)).collect())
}

fn choose(level: &str, cpu: u32) -> raw::Choice {
    // A name with a NUL inside cannot be a level; "?" is none either.
    let level = CString::new(level).unwrap_or_else(|_| c"?".to_owned());
    raw::choose(Some(&level), cpu)
}

fn check(choice: &raw::Choice, name: &str) -> Result<(), IsaError> {
    let levels = raw::levels();
    let known = |only: u32| {
        let fits = levels.iter().filter(|(_, features)| features & !only == 0);
        fits.map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
    };
    match choice.status {
        0 => Ok(()),
        1 => Err(IsaError::Unknown { name: name.to_owned(), known: known(u32::MAX) }),
        _ => {
            let needs = levels.iter().find(|level| level.0 == name).map_or(0, |level| level.1);
            let missing = raw::feature_names(needs & !choice.cpu).join(", ");
            Err(IsaError::NotOnThisCpu { name: name.to_owned(), missing, known: known(choice.cpu) })
        }
    }
}

fn describe(variant: &'static raw::Variant, allowed: u32) -> Slot {
    let better = raw::variants()
        .iter()
        .filter(|v| v.kernel == variant.kernel)
        .skip_while(|v| !std::ptr::eq(*v, variant))
        .skip(1);
    Slot {
        kernel: format!("{}_{}", variant.op(), variant.kind()),
        isa: variant.isa(),
        passed_over: better.map(|v| (v.isa(), raw::feature_names(v.needs & !allowed))).collect(),
    }
}
