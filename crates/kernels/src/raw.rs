//! The only door to the C library: its structures as C lays them out, and its functions. Everything above uses the
//! safe wrappers of `lib.rs`.

use std::ffi::{CStr, c_char};

/// One compiled variant of a kernel (`struct lw_variant`).
#[repr(C)]
pub(crate) struct Variant {
    op: *const c_char,
    kind: *const c_char,
    isa: *const c_char,
    pub(crate) kernel: u32,
    pub(crate) needs: u32,
    pub(crate) one: Option<unsafe extern "C" fn()>,
    pub(crate) rows: Option<unsafe extern "C" fn()>,
    pub(crate) ids: Option<unsafe extern "C" fn()>,
    pub(crate) tile: Option<unsafe extern "C" fn()>,
}

// SAFETY: the pointers lead to constants of the library.
unsafe impl Sync for Variant {}

/// Number of kernels in `list.h`; compared with the library's own before a `Choice` is taken from it.
pub(crate) const KERNELS: usize = 37;

#[repr(C)]
pub(crate) struct Choice {
    level: *const c_char,
    pub(crate) cpu: u32,
    pub(crate) allowed: u32,
    pub(crate) status: u32,
    pub(crate) slot: [*const Variant; KERNELS],
}

unsafe extern "C" {
    fn lw_variants(count: *mut usize) -> *const Variant;
    fn lw_kernel_count() -> u32;
    fn lw_bound(kernel: u32) -> usize;
    fn lw_per(kernel: u32) -> u32;
    fn lw_permit(features: u32) -> i32;
    fn lw_level(i: usize, features: *mut u32) -> *const c_char;
    fn lw_feature_name(bit: u32) -> *const c_char;
    fn lw_cpu_features() -> u32;
    fn lw_choose(level: *const c_char, cpu: u32) -> Choice;
    fn lw_chosen() -> *const Choice;
}

/// Text of a constant of the library; `None` for NULL.
fn text(pointer: *const c_char) -> Option<&'static str> {
    if pointer.is_null() {
        return None;
    }
    // SAFETY: not null, and every string of the library is a NUL-terminated constant.
    unsafe { CStr::from_ptr(pointer) }.to_str().ok()
}

impl Variant {
    pub(crate) fn op(&self) -> &'static str {
        text(self.op).unwrap_or("?")
    }
    pub(crate) fn kind(&self) -> &'static str {
        text(self.kind).unwrap_or("?")
    }
    pub(crate) fn isa(&self) -> &'static str {
        text(self.isa).unwrap_or("?")
    }
}

impl Choice {
    pub(crate) fn level(&self) -> &'static str {
        text(self.level).unwrap_or("?")
    }
}

pub(crate) fn variants() -> &'static [Variant] {
    let mut count = 0;
    // SAFETY: the library returns an array of `count` constants.
    unsafe {
        let first = lw_variants(&mut count);
        std::slice::from_raw_parts(first, count)
    }
}

pub(crate) fn bound(kernel: u32) -> usize {
    // SAFETY: a pure function of its argument.
    unsafe { lw_bound(kernel) }
}

/// Query elements for each row element.
pub(crate) fn per(kernel: u32) -> usize {
    // SAFETY: a pure function of its argument.
    unsafe { lw_per(kernel) as usize }
}

/// Whether the operating system lets this process run the variants of `features`.
pub(crate) fn permit(features: u32) -> bool {
    // SAFETY: asks the operating system for a right of this process, at most.
    unsafe { lw_permit(features) != 0 }
}

/// Names and features of the levels, ascending.
pub(crate) fn levels() -> Vec<(&'static str, u32)> {
    let level = |i| {
        let mut features = 0;
        // SAFETY: `features` may be written; the result is NULL past the last level.
        text(unsafe { lw_level(i, &mut features) }).map(|name| (name, features))
    };
    (0..).map_while(level).collect()
}

/// Names of the set bits of `features`.
pub(crate) fn feature_names(features: u32) -> Vec<&'static str> {
    // SAFETY: a pure function of its argument.
    (0..32)
        .filter(|bit| features >> bit & 1 == 1)
        .filter_map(|bit| text(unsafe { lw_feature_name(1 << bit) }))
        .collect()
}

/// The bit of the feature of that name; 0 if there is none.
pub(crate) fn feature(name: &str) -> u32 {
    (0..32).map(|bit| 1 << bit).find(|&bit| feature_names(bit) == [name]).unwrap_or(0)
}

pub(crate) fn cpu_features() -> u32 {
    // SAFETY: reads the CPU's description only.
    unsafe { lw_cpu_features() }
}

/// The library must agree on the size of a `Choice`.
fn check_count() {
    // SAFETY: returns a constant.
    assert_eq!(unsafe { lw_kernel_count() } as usize, KERNELS, "list.h and raw.rs differ");
}

pub(crate) fn choose(level: Option<&CStr>, cpu: u32) -> Choice {
    check_count();
    // SAFETY: NULL or a NUL-terminated string, and a result of the size that was checked.
    unsafe { lw_choose(level.map_or(std::ptr::null(), CStr::as_ptr), cpu) }
}

pub(crate) fn chosen() -> &'static Choice {
    check_count();
    // SAFETY: the library returns its own constant, made before it returns, of the size that was checked.
    unsafe { &*lw_chosen() }
}
