//! The choice of variants: the one that the list promises is the one that runs, on this CPU and on made-up ones.

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
use lanewise_kernels::Rows;
use lanewise_kernels::{IsaError, Kernels, cpu_features, levels, plan};

/// Features of a CPU, and what must serve some of its kernels.
type Expected = (&'static [&'static str], &'static [(&'static str, &'static str)]);

#[cfg(target_arch = "x86_64")]
const EXPECTED: &[Expected] = &[
    (&[], &[("dot_f32", "scalar"), ("dot_i8", "scalar"), ("hamming_bits", "scalar"), ("scan_pq4", "scalar")]),
    // SSE4.1 without POPCNT (Penryn).
    (&["sse4.1"], &[("dot_f32", "scalar"), ("hamming_bits", "scalar")]),
    (&["sse4.1", "popcnt"], &[("dot_f32", "sse41"), ("dot_f16", "sse41"), ("hamming_bits", "sse41")]),
    // AVX2 without FMA, and the reverse, exist in virtual machines.
    (&["sse4.1", "popcnt", "avx2", "f16c"], &[("dot_f32", "sse41"), ("dot_i8", "sse41")]),
    (&["sse4.1", "popcnt", "fma", "f16c"], &[("dot_f32", "sse41")]),
    (&HASWELL, &[("dot_f32", "avx2"), ("dot_f16", "avx2"), ("dot_i8", "avx2"), ("scan_pq4", "avx2")]),
    (
        &ALDER_LAKE,
        &[("dot_f32", "avx2"), ("dot_i8", "avxvnni"), ("l2_u4", "avxvnni"), ("hamming_bits", "avx2")],
    ),
    // Knights Mill: VPOPCNTDQ without BW and VL.
    (
        &["sse4.1", "popcnt", "avx2", "fma", "f16c", "avx512f", "avx512vpopcntdq"],
        &[("dot_f32", "avx2"), ("hamming_bits", "avx2")],
    ),
    (
        &SKYLAKE,
        &[("dot_f32", "avx512"), ("dot_i8", "avx512"), ("hamming_bits", "avx512"), ("scan_pq4", "avx512")],
    ),
    // Cascade Lake: VNNI without VPOPCNTDQ.
    (
        &["sse4.1", "popcnt", "avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512vl", "avx512vnni"],
        &[
            ("dot_f32", "avx512"),
            ("dot_i8", "avx512vnni"),
            ("dot_bf16", "avx512"),
            ("hamming_bits", "avx512"),
        ],
    ),
    // Zen 4 has no FP16, and shuffles 512 bits at half speed.
    (
        &ZEN4,
        &[
            ("dot_i8", "avx512vnni"),
            ("dot_bf16", "avx512bf16"),
            ("dot_f16", "avx512"),
            ("hamming_bits", "avx512vpopcntdq"),
            ("scan_pq4", "avx2"),
        ],
    ),
    // Sapphire Rapids: nothing that has to be named.
    (
        &SAPPHIRE_RAPIDS,
        &[
            ("dot_i8", "amx"),
            ("cosine_u8", "amx"),
            ("dot_bf16", "amx"),
            ("l2_bf16", "avx512"),
            ("dot_f16", "avx512"),
            ("scan_pq4", "avx512"),
        ],
    ),
];
#[cfg(target_arch = "x86_64")]
const HASWELL: [&str; 5] = ["sse4.1", "popcnt", "avx2", "fma", "f16c"];
#[cfg(target_arch = "x86_64")]
const ALDER_LAKE: [&str; 6] = ["sse4.1", "popcnt", "avx2", "fma", "f16c", "avxvnni"];
#[cfg(target_arch = "x86_64")]
const SKYLAKE: [&str; 9] =
    ["sse4.1", "popcnt", "avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512vl", "fast-shuffle512"];
#[cfg(target_arch = "x86_64")]
const ZEN4: [&str; 11] = [
    "sse4.1",
    "popcnt",
    "avx2",
    "fma",
    "f16c",
    "avx512f",
    "avx512bw",
    "avx512vl",
    "avx512vnni",
    "avx512vpopcntdq",
    "avx512bf16",
];
#[cfg(target_arch = "x86_64")]
const SAPPHIRE_RAPIDS: [&str; 17] = [
    "sse4.1",
    "popcnt",
    "avx2",
    "fma",
    "f16c",
    "avxvnni",
    "avx512f",
    "avx512bw",
    "avx512vl",
    "avx512vnni",
    "avx512vpopcntdq",
    "avx512bf16",
    "avx512fp16",
    "fast-shuffle512",
    "amx-tile",
    "amx-int8",
    "amx-bf16",
];

#[cfg(target_arch = "aarch64")]
const EXPECTED: &[Expected] = &[
    (&[], &[("dot_f32", "scalar"), ("dot_i8", "scalar")]),
    (&["neon"], &[("dot_f32", "neon"), ("dot_i8", "neon"), ("hamming_bits", "neon")]),
    (&["neon", "dotprod"], &[("dot_f32", "neon"), ("dot_i8", "dotprod"), ("hamming_bits", "dotprod")]),
    // SVE as long as NEON is left alone, wherever it stands: Neoverse V2 and N2.
    (&["neon", "dotprod", "sve"], &[("dot_f32", "neon"), ("dot_i8", "dotprod")]),
    (
        &["neon", "dotprod", "fhm", "bf16", "i8mm", "sve", "sve-bf16", "sve-i8mm", "sve2"],
        &[("dot_f16", "fhm"), ("dot_bf16", "bf16"), ("dot_i8", "i8mm"), ("l2_i8", "dotprod")],
    ),
    // A64FX.
    (
        &["neon", "sve", "wide-sve"],
        &[("dot_f32", "sve"), ("dot_f16", "sve"), ("dot_i8", "sve"), ("dot_u4", "sve"), ("scan_pq4", "neon")],
    ),
    // Neoverse V1, and one with longer registers than any Armv9 has.
    (
        &NEOVERSE_V1,
        &[
            ("dot_f32", "sve"),
            ("dot_f16", "fhm"),
            ("dot_bf16", "svebf16"),
            ("dot_i8", "svei8mm"),
            ("l2_i8", "sve"),
            ("hamming_bits", "sve"),
        ],
    ),
    (
        &["neon", "dotprod", "fhm", "bf16", "i8mm", "sve", "wide-sve", "sve-bf16", "sve-i8mm", "sve2"],
        &[("dot_f16", "sve2"), ("l2_f16", "sve2"), ("dot_bf16", "svebf16"), ("l2_bf16", "sve")],
    ),
];

#[cfg(target_arch = "aarch64")]
const NEOVERSE_V1: [&str; 9] =
    ["neon", "dotprod", "fhm", "bf16", "i8mm", "sve", "wide-sve", "sve-bf16", "sve-i8mm"];

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const EXPECTED: &[Expected] = &[(&[], &[("dot_f32", "scalar")])];

fn isas(level: &str, features: &[&str]) -> Vec<&'static str> {
    plan(level, features).unwrap().iter().map(|slot| slot.isa).collect()
}

#[test]
fn made_up_cpus_get_what_they_can_run() {
    for (features, expected) in EXPECTED {
        let plan = plan("", features).unwrap();
        for (kernel, isa) in *expected {
            let slot = plan.iter().find(|slot| slot.kernel == *kernel).unwrap();
            assert_eq!(slot.isa, *isa, "{kernel} with {features:?}");
        }
    }
}

/// What has to be named runs when it is, and only then.
#[cfg(target_arch = "x86_64")]
#[test]
fn fp16_runs_only_where_it_is_named() {
    let isa = |level: &str, kernel: &str| {
        let plan = plan(level, &SAPPHIRE_RAPIDS).unwrap();
        plan.iter().find(|slot| slot.kernel == kernel).unwrap().isa
    };
    assert_eq!(isa("", "dot_f16"), "avx512");
    assert_eq!(isa("amx", "dot_f16"), "avx512");
    assert_eq!(isa("avx512fp16", "dot_f16"), "avx512fp16");
    assert_eq!(isa("avx512fp16", "dot_i8"), "avx512vnni");
}

#[cfg(target_arch = "x86_64")]
#[test]
fn without_one_part_of_amx_there_are_no_tiles() {
    for hidden in ["amx-tile", "amx-int8", "amx-bf16"] {
        let features: Vec<_> = SAPPHIRE_RAPIDS.into_iter().filter(|f| *f != hidden).collect();
        let slots = plan("", &features).unwrap();
        assert!(slots.iter().all(|slot| slot.isa != "amx"), "without {hidden}");
        let error = plan("amx", &features).unwrap_err();
        assert!(error.to_string().contains(hidden), "{error}");
    }
}

/// The tiles are asked for by the first call that uses them and by no other, and where they are refused the results
/// are the same. In processes of their own: a permission is not given back.
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
#[test]
fn tiles_are_asked_for_late_and_may_be_refused() {
    if !SAPPHIRE_RAPIDS.iter().filter(|f| f.starts_with("amx")).all(|f| cpu_features().contains(f)) {
        return;
    }
    const CHILD: &str = "LANEWISE_TEST_TILES";
    let Ok(refused) = std::env::var(CHILD) else {
        for refused in ["", "refused"] {
            let name = "choice::tiles_are_asked_for_late_and_may_be_refused";
            let mut child = std::process::Command::new(std::env::current_exe().unwrap());
            child.args(["--exact", name]).env(CHILD, refused).env_remove("LANEWISE_ISA");
            let ended = child.output().unwrap();
            assert!(ended.status.success(), "{refused}: {}", String::from_utf8_lossy(&ended.stdout));
        }
        return;
    };
    let refused = !refused.is_empty();
    if refused {
        // Linux gives nobody the tiles while a thread's signal stack is too small for them.
        let stack = Vec::leak(vec![0u8; 8192]);
        let small = libc::stack_t { ss_sp: stack.as_mut_ptr().cast(), ss_flags: 0, ss_size: stack.len() };
        // SAFETY: the stack outlives the process; no signal handler needs more.
        assert_eq!(unsafe { libc::sigaltstack(&small, std::ptr::null_mut()) }, 0);
    }
    let permitted = || {
        let mut features = 0u64;
        // SAFETY: ARCH_GET_XCOMP_PERM writes 8 bytes.
        assert_eq!(unsafe { libc::syscall(libc::SYS_arch_prctl, 0x1022, &mut features) }, 0);
        features >> 18 & 1 == 1
    };
    let (n, queries, count) = (100, 16, 40);
    let data: Vec<i8> = (0..n * count).map(|i| (i * i % 251) as u8 as i8).collect();
    // SAFETY: signed bytes read as bytes.
    let bytes = unsafe { std::slice::from_raw_parts(data.as_ptr().cast::<u8>(), data.len()) };
    let (few, all) = (Rows::new(bytes, n, queries, n), Rows::new(bytes, n, count, n));
    let dot = Kernels::get().unwrap().dot_i8;
    assert_eq!(dot.isa(), "amx");
    let mut expected = vec![0; queries * count];
    for (j, out) in expected.chunks_mut(count).enumerate() {
        dot.rows(&data[j * n..][..n], all, 0, out);
    }
    assert!(!permitted(), "asked for what nobody needed yet");
    let mut out = vec![0; queries * count];
    dot.tile(few, all, &mut out);
    assert_eq!(out, expected);
    assert_eq!(permitted(), !refused);
    let named = Kernels::at_level("amx");
    assert_eq!(matches!(named, Err(IsaError::NotPermitted { .. })), refused, "{named:?}");
}

/// The variant that is bound is the one that the plan names, and the one that runs: on the emulated models this is what
/// shows that an instruction set is really used, and only where it is legal.
#[test]
fn this_cpu_runs_what_the_plan_says() {
    let features = cpu_features();
    for (level, needs) in levels() {
        if !needs.iter().all(|f| features.contains(f)) {
            assert!(matches!(Kernels::at_level(level), Err(IsaError::NotOnThisCpu { .. })), "{level}");
            continue;
        }
        let kernels = match Kernels::at_level(level) {
            Err(IsaError::NotPermitted { .. }) => continue,
            kernels => kernels.unwrap(),
        };
        let bound: Vec<_> = kernels.slots().iter().map(|slot| slot.isa).collect();
        assert_eq!(bound, isas(level, &features), "{level}");
        assert_eq!(kernels.level(), level);
        let names = kernels.slots().iter().map(|slot| slot.kernel.clone()).collect::<Vec<_>>();
        let at = |name: &str| names.iter().position(|n| n == name).unwrap();
        assert_eq!(bound[at("dot_i8")], kernels.dot_i8.isa(), "{level}");
        assert_eq!(bound[at("hamming_bits")], kernels.hamming_bits.isa(), "{level}");
    }
    // An emulated CPU's model says what must have been found there.
    if let Ok(expected) = std::env::var("LANEWISE_EXPECT_ISA") {
        let best = Kernels::at_level("").unwrap();
        assert_eq!(best.dot_i8.isa(), expected, "dot_i8 on {features:?}");
    }
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
