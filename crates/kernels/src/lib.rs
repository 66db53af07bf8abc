//! Distance kernels: every instruction set in one binary, chosen once, called through plain pointers.
//!
//! A [`Kernel`] is one operation on one element type; its three forms ([`one`](Kernel::one), [`rows`](Kernel::rows),
//! [`ids`](Kernel::ids)) never allocate and never fail. [`Kernels::get`] gives the set that this process uses: the best
//! that the CPU has, or the level that `LANEWISE_ISA` names. The C library and its list of kernels are in `c/`.

mod kernel;
mod raw;
mod rows;

pub use kernel::Kernel;
pub use rows::Rows;
use std::ffi::CString;
use std::sync::OnceLock;

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
        // With the choice goes the name that led to it, whatever the variable says later.
        static CHOSEN: OnceLock<Result<Kernels, IsaError>> = OnceLock::new();
        let chosen = CHOSEN.get_or_init(|| {
            let choice = raw::chosen();
            let name = std::env::var_os("LANEWISE_ISA").unwrap_or_default();
            // SAFETY: chosen for this CPU.
            unsafe { Self::from_choice(choice, &name.to_string_lossy()) }
        });
        chosen.clone()
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
    let cpu = (0..32)
        .map(|bit| 1 << bit)
        .filter(|&bit| raw::feature_names(bit).first().is_some_and(|name| features.contains(name)));
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
