//! What each part should reach, by the CPU's features, and the verdict.
//!
//! The figures are floors, in bytes per cycle: about half of what sound code reaches on the slowest core at hand or on
//! record that has the features (Zen 4, Sapphire Rapids, Neoverse N1), and still above what the next worse code would
//! reach there where the two are far enough apart. So neither a neighbour on the other hyper-thread nor a small core is
//! marked, and a fallback is. Arm's are estimates from `llvm-mca` and instruction counts; no Arm machine was at hand.

/// A part that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "`name` says what each is")]
pub enum Part {
    Crc32c,
    Xxh3,
    ReadL1,
    ReadL2,
    ReadL3,
    ReadMemory,
    CopyL1,
    CopyL2,
    CopyL3,
    CopyMemory,
    DotF32,
    L2F32,
    DotI8,
    L2I8,
    HammingBits,
}

impl Part {
    /// Every part.
    pub const ALL: [Part; 15] = [
        Part::Crc32c,
        Part::Xxh3,
        Part::ReadL1,
        Part::ReadL2,
        Part::ReadL3,
        Part::ReadMemory,
        Part::CopyL1,
        Part::CopyL2,
        Part::CopyL3,
        Part::CopyMemory,
        Part::DotF32,
        Part::L2F32,
        Part::DotI8,
        Part::L2I8,
        Part::HammingBits,
    ];

    /// Its name in reports. A kernel's is that of the kernel library.
    pub fn name(self) -> &'static str {
        match self {
            Part::Crc32c => "crc32c",
            Part::Xxh3 => "xxh3",
            Part::ReadL1 => "read_l1",
            Part::ReadL2 => "read_l2",
            Part::ReadL3 => "read_l3",
            Part::ReadMemory => "read_memory",
            Part::CopyL1 => "copy_l1",
            Part::CopyL2 => "copy_l2",
            Part::CopyL3 => "copy_l3",
            Part::CopyMemory => "copy_memory",
            Part::DotF32 => "dot_f32",
            Part::L2F32 => "l2_f32",
            Part::DotI8 => "dot_i8",
            Part::L2I8 => "l2_i8",
            Part::HammingBits => "hamming_bits",
        }
    }
}

/// The least that a part should reach where the CPU has all of some features.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Expected {
    /// Features that this takes; none for what every CPU reaches.
    pub features: &'static [&'static str],
    /// Bytes per cycle.
    pub bytes_per_cycle: f64,
}

const fn at_least(bytes_per_cycle: f64, features: &'static [&'static str]) -> Expected {
    Expected { features, bytes_per_cycle }
}

const AVX512: &[&str] = &["avx512f", "avx512bw", "avx512vl"];
const VNNI: &[&str] = &["avx512f", "avx512bw", "avx512vl", "avx512vnni"];

/// What is expected of `part`, most demanding features first; the last row asks for none.
pub fn table(part: Part) -> &'static [Expected] {
    match part {
        // A table of 256 entries gives 0.12 to 0.4, one of 8 × 256 about 1.5.
        Part::Crc32c => {
            const {
                &[
                    at_least(8.0, &["avx512f", "avx512vl", "vpclmulqdq"]),
                    at_least(4.0, &["pclmulqdq", "sse4.1"]),
                    at_least(2.0, &["sse4.2"]),
                    at_least(3.0, &["aes", "crc"]),
                    at_least(2.0, &["crc"]),
                    at_least(0.1, &[]),
                ]
            }
        }
        Part::Xxh3 => {
            const {
                &[
                    at_least(6.0, &["avx2"]),
                    // SSE2, which every x86-64 has.
                    at_least(3.5, &["sse4.1"]),
                    at_least(2.0, &["neon"]),
                    at_least(1.0, &[]),
                ]
            }
        }
        // Plain code, so the width of the base architecture's registers (16 bytes) binds in the L1.
        Part::ReadL1 => const { &[at_least(12.0, &[])] },
        Part::ReadL2 => const { &[at_least(8.0, &[])] },
        // From here on a cycle is no measure of the hardware any more; the floors only find what is badly broken
        // (memory of another node, a throttled machine).
        Part::ReadL3 => const { &[at_least(2.0, &[])] },
        Part::ReadMemory => const { &[at_least(1.0, &[])] },
        // The system's `memcpy`; bytes copied, each of which is read and written. One byte at a time gives 1.
        Part::CopyL1 => const { &[at_least(12.0, &["avx2"]), at_least(8.0, &[])] },
        Part::CopyL2 => const { &[at_least(4.0, &[])] },
        Part::CopyL3 => const { &[at_least(1.0, &[])] },
        Part::CopyMemory => const { &[at_least(0.5, &[])] },
        Part::DotF32 | Part::L2F32 => {
            const {
                &[
                    at_least(17.0, AVX512),
                    at_least(12.0, &["avx2", "fma"]),
                    at_least(5.0, &["neon"]),
                    at_least(0.8, &[]),
                ]
            }
        }
        Part::DotI8 => {
            const {
                &[
                    at_least(15.0, VNNI),
                    at_least(9.0, AVX512),
                    at_least(6.0, &["avx2"]),
                    at_least(4.0, &["dotprod"]),
                    at_least(2.0, &["neon"]),
                    at_least(0.3, &[]),
                ]
            }
        }
        Part::L2I8 => {
            const {
                &[
                    at_least(7.0, VNNI),
                    at_least(6.0, AVX512),
                    at_least(4.0, &["avx2"]),
                    at_least(3.0, &["dotprod"]),
                    at_least(1.5, &["neon"]),
                    at_least(0.3, &[]),
                ]
            }
        }
        Part::HammingBits => {
            const {
                &[
                    at_least(8.0, &["avx512f", "avx512bw", "avx512vpopcntdq"]),
                    at_least(6.0, AVX512),
                    at_least(5.0, &["avx2"]),
                    at_least(3.0, &["neon"]),
                    at_least(0.5, &[]),
                ]
            }
        }
    }
}

/// What is expected of `part` on a CPU with the features `has`.
pub fn expected(part: Part, has: &[&str]) -> &'static Expected {
    let rows = table(part);
    let fits = |row: &&Expected| row.features.iter().all(|name| has.contains(name));
    rows.iter().find(fits).unwrap_or(&rows[rows.len() - 1])
}

/// Whether a part runs as it should.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It reaches what is expected.
    Fine,
    /// It does not: a library chose the wrong code, or the machine is throttled or crowded.
    Below,
}

/// The verdict on `measured` where `expected` is the least; both in bytes per cycle. What is no number is not fine.
pub fn verdict(measured: f64, expected: f64) -> Verdict {
    if measured >= expected { Verdict::Fine } else { Verdict::Below }
}

#[cfg(test)]
mod tests;
