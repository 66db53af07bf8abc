//! Compiles the C library. Each instruction set's file gets exactly the flags of the features it is gated on; all
//! other files get none, so that nothing outside a gated file needs more than the base architecture.

use std::env;

fn main() {
    println!("cargo:rerun-if-changed=c");
    let arch = env::var("CARGO_CFG_TARGET_ARCH").unwrap_or_default();
    let gated: &[(&str, &[&str])] = match arch.as_str() {
        "x86_64" => &[
            ("avx2", &["-mavx2", "-mfma"]),
            ("avx512", &["-mavx512f", "-mavx512bw", "-mavx512vl"]),
            ("avx512vnni", &["-mavx512f", "-mavx512bw", "-mavx512vl", "-mavx512vnni"]),
            ("avx512vpopcntdq", &["-mavx512f", "-mavx512bw", "-mavx512vpopcntdq"]),
        ],
        "aarch64" => &[("neon", &[]), ("dotprod", &["-march=armv8.2-a+dotprod"])],
        _ => &[],
    };
    for (name, flags) in gated {
        compile(name, flags);
    }
    for name in ["scalar", "cpu", "choose"] {
        compile(name, &[]);
    }
}

fn compile(name: &str, flags: &[&str]) {
    let mut build = cc::Build::new();
    build
        .file(format!("c/{name}.c"))
        .std("c11")
        .opt_level(3)
        .flag("-ffp-contract=off")
        .flag("-fvisibility=hidden")
        // Beyond a kernel's bound integer sums wrap, in scalar code as in vectors.
        .flag("-fwrapv")
        .warnings(true)
        .extra_warnings(true)
        .flag_if_supported("-Wno-unused-function");
    for flag in flags {
        build.flag(flag);
    }
    build.compile(&format!("lanewise_{name}"));
}
