//! Distance kernels: every instruction set in one binary, chosen once, called through plain pointers.
//!
//! A [`Kernel`] is one operation on one element type; its four forms ([`one`](Kernel::one), [`rows`](Kernel::rows),
//! [`ids`](Kernel::ids), [`tile`](Kernel::tile)) never allocate and never fail. [`Kernels::get`] gives the set that this process uses: the best
//! that the CPU has, or the level that `LANEWISE_ISA` names. The C library and its list of kernels are in `c/`.

mod kernel;
mod raw;
mod rows;
mod scan;

pub use half::{bf16, f16};
pub use kernel::Kernel;
pub use rows::Rows;
pub use scan::{BLOCK, Scan};
use std::ffi::CString;
use std::sync::OnceLock;

/// Bytes that rows are aligned to: one cache line, one 512-bit register. A load that crosses a line costs half as much
/// again.
pub const ALIGN: usize = 64;

/// The feature of variants that run only where `LANEWISE_ISA` names their level.
pub const NAMED: &str = "its name in LANEWISE_ISA";

/// What variants need to be chosen, not to run.
const PREFERENCES: [&str; 3] = [NAMED, "fast-shuffle512", "wide-sve"];

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
    /// The CPU has the level, but the operating system does not let this process use it.
    #[error(
        "LANEWISE_ISA={name:?} is refused by the operating system, which has to be asked for AMX: unset it"
    )]
    NotPermitted {
        /// What was asked for.
        name: String,
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

/// Declares the sets, a field a kernel, in the order of `list.h`.
macro_rules! kernels {
    ($($field:ident($op:literal, $kind:literal): $type:ty, $doc:literal;)*) => {
        /// A set of kernels, one variant each.
        #[derive(Clone, Copy, Debug)]
        pub struct Kernels {
            level: &'static str,
            allowed: u32,
            $(#[doc = $doc] pub $field: $type,)*
        }

        /// Every variant of each kernel that this CPU can run, worst first.
        #[derive(Default, Debug)]
        #[expect(missing_docs, reason = "the fields are those of `Kernels`")]
        pub struct Variants {
            $(pub $field: Vec<$type>,)*
        }

        impl Kernels {
            /// # Safety
            /// The CPU must have `choice.cpu`.
            unsafe fn bind(choice: &raw::Choice) -> Self {
                let mut slots = choice.slot.iter();
                let mut next = |op: &str, kind: &str| {
                    // SAFETY: C fills every slot with a pointer to a constant.
                    let variant = unsafe { &**slots.next().expect("as many fields as slots") };
                    assert_eq!((variant.op(), variant.kind()), (op, kind), "list.h and lib.rs differ");
                    variant
                };
                // SAFETY: the names, compared just now, say which types the kernel has; the caller vouches for the CPU.
                unsafe {
                    Kernels {
                        level: choice.level(),
                        allowed: choice.allowed,
                        $($field: <$type>::bind(next($op, $kind)),)*
                    }
                }
            }

            fn variants(&self) -> Vec<&'static raw::Variant> {
                vec![$(self.$field.variant),*]
            }
        }

        impl Variants {
            /// # Safety
            /// The CPU must have what the variant needs.
            unsafe fn push(&mut self, variant: &'static raw::Variant) {
                match (variant.op(), variant.kind()) {
                    // SAFETY: the names say which types the kernel has; the caller vouches for the CPU.
                    $(($op, $kind) => self.$field.push(unsafe { <$type>::bind(variant) }),)*
                    (op, kind) => unreachable!("list.h has {op}_{kind}, which lib.rs does not know"),
                }
            }
        }
    };
}

kernels! {
    dot_f32("dot", "f32"): Kernel<f32, f32>, "Inner product of floats.";
    l2_f32("l2", "f32"): Kernel<f32, f32>, "Squared Euclidean distance of floats.";
    cosine_f32("cosine", "f32"): Kernel<f32, f32>, "Cosine similarity of floats.";
    l1_f32("l1", "f32"): Kernel<f32, f32>, "Sum of absolute differences of floats.";
    linf_f32("linf", "f32"): Kernel<f32, f32>, "Largest absolute difference of floats.";
    dot_f16("dot", "f16"): Kernel<f16, f32>, "Inner product of halves.";
    l2_f16("l2", "f16"): Kernel<f16, f32>, "Squared Euclidean distance of halves.";
    cosine_f16("cosine", "f16"): Kernel<f16, f32>, "Cosine similarity of halves.";
    dot_bf16("dot", "bf16"): Kernel<bf16, f32>, "Inner product of bfloat16.";
    l2_bf16("l2", "bf16"): Kernel<bf16, f32>, "Squared Euclidean distance of bfloat16.";
    cosine_bf16("cosine", "bf16"): Kernel<bf16, f32>, "Cosine similarity of bfloat16.";
    dot_f32f16("dot", "f32f16"): Kernel<f32, f32, f16>, "Inner product of a float query and halves.";
    l2_f32f16("l2", "f32f16"): Kernel<f32, f32, f16>, "Squared Euclidean distance of a float query and halves.";
    dot_f32bf16("dot", "f32bf16"): Kernel<f32, f32, bf16>, "Inner product of a float query and bfloat16.";
    l2_f32bf16("l2", "f32bf16"): Kernel<f32, f32, bf16>, "Squared Euclidean distance of a float query and bfloat16.";
    dot_f32i8("dot", "f32i8"): Kernel<f32, f32, i8>, "Inner product of a float query and signed bytes.";
    l2_f32i8("l2", "f32i8"): Kernel<f32, f32, i8>, "Squared Euclidean distance of a float query and signed bytes.";
    dot_f32u8("dot", "f32u8"): Kernel<f32, f32, u8>, "Inner product of a float query and unsigned bytes.";
    l2_f32u8("l2", "f32u8"): Kernel<f32, f32, u8>, "Squared Euclidean distance of a float query and unsigned bytes.";
    dot_i8("dot", "i8"): Kernel<i8, i32>, "Inner product of signed bytes.";
    l2_i8("l2", "i8"): Kernel<i8, i32>, "Squared Euclidean distance of signed bytes.";
    cosine_i8("cosine", "i8"): Kernel<i8, f32>, "Cosine similarity of signed bytes.";
    l1_i8("l1", "i8"): Kernel<i8, i32>, "Sum of absolute differences of signed bytes.";
    linf_i8("linf", "i8"): Kernel<i8, i32>, "Largest absolute difference of signed bytes.";
    dot_u8("dot", "u8"): Kernel<u8, i32>, "Inner product of unsigned bytes.";
    l2_u8("l2", "u8"): Kernel<u8, i32>, "Squared Euclidean distance of unsigned bytes.";
    cosine_u8("cosine", "u8"): Kernel<u8, f32>, "Cosine similarity of unsigned bytes.";
    dot_i4("dot", "i4"): Kernel<u8, i32>, "Inner product of signed 4-bit numbers, two a byte.";
    l2_i4("l2", "i4"): Kernel<u8, i32>, "Squared Euclidean distance of signed 4-bit numbers, two a byte.";
    dot_u4("dot", "u4"): Kernel<u8, i32>, "Inner product of unsigned 4-bit numbers, two a byte.";
    l2_u4("l2", "u4"): Kernel<u8, i32>, "Squared Euclidean distance of unsigned 4-bit numbers, two a byte.";
    dot_i8u4("dot", "i8u4"): Kernel<i8, i32, u8>, "Inner product of a query of signed bytes and unsigned 4-bit numbers, two a byte.";
    l2_u8u4("l2", "u8u4"): Kernel<u8, i32>, "Squared Euclidean distance of a query of bytes (0 to 15) and unsigned 4-bit numbers, two a byte.";
    dot_u4bits("dot", "u4bits"): Kernel<u8, i32>, "Inner product of a query of four bit planes and bits.";
    hamming_bits("hamming", "bits"): Kernel<u8, i32>, "Bits that differ of bit vectors packed eight to a byte.";
    jaccard_bits("jaccard", "bits"): Kernel<u8, f32>, "Jaccard distance of bit vectors packed eight to a byte.";
    scan_pq4("scan", "pq4"): Scan, "4-bit product quantization: sums of table entries, 32 vectors at once.";
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
        // Who names a level hears that it is refused. Otherwise nobody is asked: kernels ask when they need to, and can
        // do without.
        if !name.is_empty() && !raw::permit(choice.allowed) {
            return Err(IsaError::NotPermitted { name: name.to_owned() });
        }
        // SAFETY: the caller vouches for the CPU.
        Ok(unsafe { Self::bind(choice) })
    }

    /// Name of the level: the one forced, or the highest whose features are all allowed.
    pub fn level(&self) -> &'static str {
        self.level
    }

    /// What serves each slot and why not something better.
    pub fn slots(&self) -> Vec<Slot> {
        self.variants().into_iter().map(|variant| describe(variant, self.allowed)).collect()
    }

    /// The variants of each kernel that this CPU can run, worst first, for tests and benchmarks.
    pub fn every_variant() -> Variants {
        let mut all = Variants::default();
        // What this CPU would not choose counts too.
        let usable =
            PREFERENCES.map(raw::feature).into_iter().fold(raw::cpu_features(), |all, bit| all | bit);
        for variant in raw::variants().iter().filter(|v| v.needs & !usable == 0 && raw::permit(v.needs)) {
            // SAFETY: the CPU has what it needs.
            unsafe { all.push(variant) };
        }
        all
    }
}

/// Features of this CPU that kernels use, by name.
pub fn cpu_features() -> Vec<&'static str> {
    raw::feature_names(raw::cpu_features())
}

/// The levels that `LANEWISE_ISA` accepts, ascending, each with the features it needs.
pub fn levels() -> Vec<(&'static str, Vec<&'static str>)> {
    let named = raw::feature(NAMED);
    raw::levels().into_iter().map(|(name, features)| (name, raw::feature_names(features & !named))).collect()
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
    let named = raw::feature(NAMED);
    let known = |only: u32| {
        let fits = levels.iter().filter(|(_, features)| features & !(only | named) == 0);
        fits.map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
    };
    match choice.status {
        0 => Ok(()),
        1 => Err(IsaError::Unknown { name: name.to_owned(), known: known(u32::MAX) }),
        _ => {
            let needs = levels.iter().find(|level| level.0 == name).map_or(0, |level| level.1);
            let missing = raw::feature_names(needs & !choice.cpu & !named).join(", ");
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
