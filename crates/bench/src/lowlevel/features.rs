//! What this CPU offers to low-level libraries, found by the standard library: independent of what those libraries find
//! themselves, and of `LANEWISE_ISA`.

/// The names, of those that [`expected`](super::expected) asks for, that this CPU has.
pub(super) fn here() -> Vec<&'static str> {
    let mut names = Vec::new();
    macro_rules! detect {
        ($detected:ident: $($name:tt)*) => {
            $(if std::arch::$detected!($name) { names.push($name); })*
        };
    }
    #[cfg(target_arch = "x86_64")]
    detect!(is_x86_feature_detected:
        "sse4.1" "sse4.2" "pclmulqdq" "vpclmulqdq" "avx2" "fma"
        "avx512f" "avx512bw" "avx512vl" "avx512vnni" "avx512vpopcntdq");
    #[cfg(target_arch = "aarch64")]
    detect!(is_aarch64_feature_detected: "neon" "aes" "crc" "dotprod");
    names
}

#[cfg(test)]
mod tests {
    use crate::lowlevel::expected::{Part, table};

    /// A misspelt feature in the table would never be found on any CPU, and its row never apply.
    #[test]
    fn the_table_asks_for_features_that_are_looked_for() {
        let source = include_str!("features.rs");
        let looked_for = source.split("mod tests").next().unwrap();
        let rows = Part::ALL.iter().flat_map(|&part| table(part));
        let asked: Vec<&str> = rows.flat_map(|expected| expected.features).copied().collect();
        for name in &asked {
            assert!(looked_for.contains(&format!("\"{name}\"")), "{name} is never detected");
        }
        assert!(asked.len() > 20);
        for name in super::here() {
            assert!(asked.contains(&name), "nothing asks for {name}");
        }
    }
}
