//! The verdict, on figures that were measured once; nothing here depends on a time except what is run by hand.

use super::*;
use crate::lowlevel::rate;
use std::hint::black_box;

/// The features of a Sapphire Rapids server as far as they matter here.
const SAPPHIRE_RAPIDS: &[&str] = &[
    "sse4.1",
    "sse4.2",
    "popcnt",
    "pclmulqdq",
    "vpclmulqdq",
    "avx2",
    "fma",
    "avx512f",
    "avx512bw",
    "avx512vl",
    "avx512vnni",
    "avx512vpopcntdq",
];

/// CRC32C by one table of 256 entries, a byte at a time: what document 002's library fell back to.
fn table_crc32c(bytes: &[u8]) -> u32 {
    const TABLE: [u32; 256] = {
        let mut table = [0u32; 256];
        let mut i = 0;
        while i < 256 {
            let mut crc = i as u32;
            let mut bit = 0;
            while bit < 8 {
                crc = crc >> 1 ^ if crc & 1 == 1 { 0x82f6_3b78 } else { 0 };
                bit += 1;
            }
            table[i] = crc;
            i += 1;
        }
        table
    };
    !bytes.iter().fold(!0, |crc: u32, &byte| crc >> 8 ^ TABLE[(crc as u8 ^ byte) as usize])
}

fn block() -> Vec<u8> {
    (0..16 << 10).map(|i| (i * 7 % 253) as u8).collect()
}

#[test]
fn the_table_gives_the_same_checksum() {
    let block = block();
    let sound = crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, &block);
    assert_eq!(u64::from(table_crc32c(&block)), sound);
    assert_eq!(table_crc32c(b"123456789"), 0xe306_9283, "the check value of the standard");
}

/// Document 002: a database on Arm spent 29 % of its time in a CRC library that had chosen its slowest code.
#[test]
fn document_002s_mishap_is_marked() {
    // `table_crc32c` and crc-fast as measured on Sapphire Rapids.
    let (by_table, sound) = (0.12, 28.8);
    let here = expected(Part::Crc32c, SAPPHIRE_RAPIDS).bytes_per_cycle;
    assert_eq!(verdict(by_table, here), Verdict::Below);
    assert_eq!(verdict(sound, here), Verdict::Fine);
    // The same table would be no faster on an Arm server, which has the instructions that it does not use …
    for features in [&["neon", "aes", "crc"][..], &["neon", "crc"]] {
        let arm = expected(Part::Crc32c, features).bytes_per_cycle;
        assert_eq!(verdict(by_table, arm), Verdict::Below, "{features:?}");
    }
    // … and is all that is asked for where there is nothing better.
    assert_eq!(verdict(by_table, expected(Part::Crc32c, &["neon"]).bytes_per_cycle), Verdict::Fine);
}

/// By hand: `cargo test --release -p lanewise-bench -- --ignored --nocapture the_mishap_on_this_machine`.
#[test]
#[ignore = "depends on times"]
fn the_mishap_on_this_machine() {
    let (block, has) = (block(), crate::lowlevel::features::here());
    let expected = expected(Part::Crc32c, &has).bytes_per_cycle;
    for (name, run) in [
        ("table", &(|block: &[u8]| u64::from(table_crc32c(block))) as &dyn Fn(&[u8]) -> u64),
        ("crc-fast", &|block: &[u8]| crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, block)),
    ] {
        let run = &mut || {
            black_box(run(black_box(&block)));
        };
        let reached = rate::best_of(block.len(), run).bytes_per_cycle;
        eprintln!("{name}: {reached:.2} bytes/cycle, expected {expected}: {:?}", verdict(reached, expected));
        assert_eq!(verdict(reached, expected) == Verdict::Below, name == "table");
    }
}

#[test]
fn the_boundary_is_fine_and_what_is_no_number_is_not() {
    assert_eq!(verdict(2.0, 2.0), Verdict::Fine);
    assert_eq!(verdict(1.999, 2.0), Verdict::Below);
    assert_eq!([verdict(f64::NAN, 2.0), verdict(0.0, 2.0)], [Verdict::Below; 2]);
    assert_eq!(verdict(f64::INFINITY, 2.0), Verdict::Fine);
}

#[test]
fn every_part_has_a_floor_on_every_cpu_and_features_only_raise_it() {
    let names: std::collections::BTreeSet<_> = Part::ALL.iter().map(|part| part.name()).collect();
    assert_eq!(names.len(), Part::ALL.len(), "names differ");
    for part in Part::ALL {
        let rows = table(part);
        assert_eq!(rows.last().unwrap().features, [""; 0], "{part:?} says nothing of a plain CPU");
        assert!(rows.iter().all(|row| row.bytes_per_cycle > 0.0));
        for (i, row) in rows.iter().enumerate() {
            for later in &rows[i + 1..] {
                // A later row that applies wherever this one does must promise less, or this one hides it.
                if later.features.iter().all(|name| row.features.contains(name)) {
                    assert!(later.bytes_per_cycle < row.bytes_per_cycle, "{part:?}: {row:?} hides {later:?}");
                }
            }
        }
    }
}

#[test]
fn the_best_row_that_a_cpu_qualifies_for_applies() {
    let of = |part, has: &[&str]| expected(part, has).features;
    assert_eq!(of(Part::DotI8, SAPPHIRE_RAPIDS), VNNI);
    assert_eq!(of(Part::DotI8, &["avx2", "fma"]), ["avx2"]);
    assert_eq!(of(Part::DotI8, &["neon", "dotprod"]), ["dotprod"]);
    assert_eq!(of(Part::DotF32, &["avx2"]), [""; 0], "AVX2 without FMA is not enough");
}
