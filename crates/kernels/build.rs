//! Compiles the C library. Each instruction set's file gets exactly the flags of the features it is gated on; all
//! other files get none, so that nothing outside a gated file needs more than the base architecture.

use std::env;

fn main() {
    println!("cargo:rerun-if-changed=c");
    println!("cargo:rerun-if-changed=include");
    let arch = env::var("CARGO_CFG_TARGET_ARCH").unwrap_or_default();
    const AVX2: &[&str] = &["-msse4.1", "-mpopcnt", "-mavx2", "-mfma", "-mf16c"];
    const AVX512: &[&str] = &["-mavx512f", "-mavx512bw", "-mavx512vl"];
    let gated: &[(&str, &[&[&str]])] = match arch.as_str() {
        "x86_64" => &[
            ("sse41", &[&["-msse4.1", "-mpopcnt"]]),
            ("avx2", &[AVX2]),
            ("avxvnni", &[AVX2, &["-mavxvnni"]]),
            ("avx512", &[AVX2, AVX512]),
            ("avx512vnni", &[AVX2, AVX512, &["-mavx512vnni"]]),
            ("avx512vpopcntdq", &[AVX2, AVX512, &["-mavx512vpopcntdq"]]),
            ("avx512bf16", &[AVX2, AVX512, &["-mavx512bf16"]]),
            ("avx512fp16", &[AVX2, AVX512, &["-mavx512fp16"]]),
            (
                "amx",
                &[AVX2, AVX512, &["-mavx512vnni", "-mavx512bf16", "-mamx-tile", "-mamx-int8", "-mamx-bf16"]],
            ),
        ],
        "aarch64" => &[
            ("neon", &[]),
            ("dotprod", &[&["-march=armv8.2-a+dotprod"]]),
            ("sve", &[&["-march=armv8.2-a+sve"]]),
            ("fhm", &[&["-march=armv8.2-a+fp16fml"]]),
            ("bf16", &[&["-march=armv8.2-a+bf16"]]),
            ("i8mm", &[&["-march=armv8.2-a+dotprod+i8mm"]]),
            ("svebf16", &[&["-march=armv8.2-a+sve+bf16"]]),
            ("svei8mm", &[&["-march=armv8.2-a+sve+i8mm"]]),
            ("sve2", &[&["-march=armv8.2-a+sve2"]]),
        ],
        _ => &[],
    };
    for (name, flags) in gated {
        compile(name, &flags.concat());
    }
    for name in ["scalar", "cpu", "choose"] {
        compile(name, &[]);
    }
}

fn compile(name: &str, flags: &[&str]) {
    let mut build = cc::Build::new();
    build
        .file(format!("c/{name}.c"))
        .std("gnu11")
        .opt_level(3)
        .flag("-ffp-contract=off")
        .flag("-fno-math-errno")
        .flag("-fvisibility=hidden")
        // Beyond a kernel's bound integer sums wrap, in scalar code as in vectors.
        .flag("-fwrapv")
        // Kernels with buffers of their own meet the guard page of a stack too small for them.
        .flag_if_supported("-fstack-clash-protection")
        .warnings(true)
        .extra_warnings(true)
        .flag_if_supported("-Wno-unused-function");
    for flag in flags {
        build.flag(flag);
    }
    build.compile(&format!("lanewise_{name}"));
}
