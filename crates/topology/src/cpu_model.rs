//! The CPU's name, from `/proc/cpuinfo`.
//!
//! Arm kernels give no name but the maker and part number of the core (register MIDR_EL1, fields
//! Implementer and PartNum); the cores that servers have are named here from their technical reference
//! manuals.

use crate::files::Files;

/// The first CPU's block lies well within; the whole file of a large machine takes milliseconds per CPU.
const HEAD_BYTES: u64 = 16 << 10;

/// Longer names are cut: they are not a maker's.
const NAME_CHARS: usize = 128;

/// Implementer, part and name of Arm server cores.
const ARM_CORES: &[(u32, u32, &str)] = &[
    (0x41, 0xd08, "Arm Cortex-A72"),
    (0x41, 0xd0b, "Arm Cortex-A76"),
    (0x41, 0xd0c, "Arm Neoverse N1"),
    (0x41, 0xd40, "Arm Neoverse V1"),
    (0x41, 0xd49, "Arm Neoverse N2"),
    (0x41, 0xd4f, "Arm Neoverse V2"),
    (0x41, 0xd84, "Arm Neoverse V3"),
    (0x41, 0xd8e, "Arm Neoverse N3"),
    (0x46, 0x001, "Fujitsu A64FX"),
    (0xc0, 0xac3, "Ampere-1"),
    (0xc0, 0xac4, "Ampere-1A"),
];

/// The name of the first CPU that is listed.
pub(crate) fn read(files: &Files) -> Option<String> {
    let text = files.head("proc/cpuinfo", HEAD_BYTES)?;
    let value = |key: &str| {
        let mut pairs = text.lines().filter_map(|line| line.split_once(':'));
        pairs.find(|(k, _)| k.trim() == key).map(|(_, value)| value.trim())
    };
    value("model name").and_then(printable).or_else(|| {
        let implementer = hex(value("CPU implementer")?)?;
        let part = hex(value("CPU part")?)?;
        let known = ARM_CORES.iter().find(|core| (core.0, core.1) == (implementer, part));
        Some(known.map_or_else(
            || format!("Arm core, implementer {implementer:#04x} part {part:#05x}"),
            |core| core.2.to_owned(),
        ))
    })
}

/// The name as it may be printed: no control characters (a terminal would obey them), cut to a sane length.
fn printable(name: &str) -> Option<String> {
    let name: String = name.chars().filter(|c| !c.is_control()).take(NAME_CHARS).collect();
    (!name.is_empty()).then_some(name)
}

fn hex(text: &str) -> Option<u32> {
    u32::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}
