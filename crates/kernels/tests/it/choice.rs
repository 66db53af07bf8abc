//! The choice of variants: the one that the list promises is the one that runs, on this CPU and on made-up ones.

use lanewise_kernels::{IsaError, Kernels, cpu_features, levels, plan};

/// Expected variants, in the order dot_f32, l2_f32, dot_i8, l2_i8, hamming_bits.
#[cfg(target_arch = "x86_64")]
const EXPECTED: &[(&[&str], [&str; 5])] = &[
    (&[], ["scalar"; 5]),
    // Each feature alone is not enough: FMA without AVX2 and the reverse exist in virtual machines.
    (&["avx2"], ["scalar", "scalar", "avx2", "avx2", "avx2"]),
    (&["fma"], ["scalar"; 5]),
    (&["avx2", "fma"], ["avx2"; 5]),
    (&["avx2", "fma", "avx512f"], ["avx2"; 5]),
    (&["avx2", "fma", "avx512f", "avx512bw", "avx512vl"], ["avx512"; 5]),
    // Knights Mill: VPOPCNTDQ without BW and VL.
    (&["avx2", "fma", "avx512f", "avx512vpopcntdq"], ["avx2"; 5]),
    // Cascade Lake: VNNI without VPOPCNTDQ.
    (
        &["avx2", "fma", "avx512f", "avx512bw", "avx512vl", "avx512vnni"],
        ["avx512", "avx512", "avx512vnni", "avx512vnni", "avx512"],
    ),
    (
        &["avx2", "fma", "avx512f", "avx512bw", "avx512vl", "avx512vnni", "avx512vpopcntdq"],
        ["avx512", "avx512", "avx512vnni", "avx512vnni", "avx512vpopcntdq"],
    ),
];

#[cfg(target_arch = "aarch64")]
const EXPECTED: &[(&[&str], [&str; 5])] = &[
    (&[], ["scalar"; 5]),
    (&["neon"], ["neon"; 5]),
    (&["neon", "dotprod"], ["neon", "neon", "dotprod", "dotprod", "neon"]),
];

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const EXPECTED: &[(&[&str], [&str; 5])] = &[(&[], ["scalar"; 5])];

fn isas(level: &str, features: &[&str]) -> Vec<&'static str> {
    plan(level, features).unwrap().iter().map(|slot| slot.isa).collect()
}

#[test]
fn made_up_cpus_get_what_they_can_run() {
    for (features, expected) in EXPECTED {
        assert_eq!(isas("", features), expected, "{features:?}");
    }
}

/// The variant that is bound is the one that the plan names, and the one that runs: on the Arm models under emulation
/// this is what shows that the dot-product code is really used, and only where it is legal.
#[test]
fn this_cpu_runs_what_the_plan_says() {
    let features = cpu_features();
    for (level, needs) in levels() {
        if !needs.iter().all(|f| features.contains(f)) {
            assert!(matches!(Kernels::at_level(level), Err(IsaError::NotOnThisCpu { .. })), "{level}");
            continue;
        }
        let kernels = Kernels::at_level(level).unwrap();
        let bound: Vec<_> = kernels.slots().iter().map(|slot| slot.isa).collect();
        assert_eq!(bound, isas("", &needs), "{level}");
        assert_eq!(bound, isas(level, &features), "{level}");
        let own = [
            kernels.dot_f32.isa(),
            kernels.l2_f32.isa(),
            kernels.dot_i8.isa(),
            kernels.l2_i8.isa(),
            kernels.hamming_bits.isa(),
        ];
        assert_eq!(bound, own, "{level}");
        assert_eq!(kernels.level(), level);
    }
    // An emulated CPU's model says what must have been found there.
    if let Ok(expected) = std::env::var("LANEWISE_EXPECT_ISA") {
        let best = Kernels::at_level("").unwrap();
        assert_eq!(best.dot_i8.isa(), expected, "dot_i8 on {features:?}");
    }
}

#[test]
fn the_names_are_in_the_order_of_the_fields() {
    let names: Vec<_> = plan("", &[]).unwrap().into_iter().map(|slot| slot.kernel).collect();
    assert_eq!(names, ["dot_f32", "l2_f32", "dot_i8", "l2_i8", "hamming_bits"]);
}

#[test]
fn an_unknown_level_is_an_error_that_lists_the_known() {
    for name in ["avx1024", "AVX2", " scalar", "sca\0lar"] {
        let error = Kernels::at_level(name).unwrap_err();
        assert!(matches!(error, IsaError::Unknown { .. }), "{name:?}");
        assert!(error.to_string().contains("scalar"), "{error}");
    }
    assert!(Kernels::at_level("scalar").is_ok());
}

#[test]
fn a_level_beyond_the_cpu_is_an_error_that_names_what_is_missing() {
    let Some((level, needs)) = levels().pop().filter(|(_, needs)| !needs.is_empty()) else { return };
    let error = plan(level, &needs[..needs.len() - 1]).unwrap_err();
    assert!(error.to_string().contains(needs[needs.len() - 1]), "{error}");
}

#[test]
fn what_was_passed_over_is_named_with_the_reason() {
    let slots = plan("scalar", &cpu_features()).unwrap();
    for slot in slots {
        for (isa, missing) in slot.passed_over {
            assert!(!missing.is_empty(), "{}: {isa} was legal and yet passed over", slot.kernel);
        }
    }
}
