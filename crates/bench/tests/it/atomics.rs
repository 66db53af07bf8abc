//! Atomics on Arm: programs compiled for every Armv8 use LSE where the CPU has it.

use std::io::Write;
use std::process::{Command, Stdio};

const TARGET: &str = "aarch64-unknown-linux-gnu";

/// Functions whose atomics are as the whole program's: compiled with the same compiler, target and defaults.
const SOURCE: &str = "#![no_std]
    use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
    #[unsafe(no_mangle)] pub fn take(x: &AtomicBool) -> bool { x.swap(true, Ordering::AcqRel) }
    #[unsafe(no_mangle)] pub fn count(x: &AtomicU64) -> u64 { x.fetch_add(1, Ordering::Relaxed) }";

/// Assembly of `SOURCE`; none where the target is not installed (`rustup target add aarch64-unknown-linux-gnu`).
fn assembly(flags: &[&str]) -> Option<String> {
    let installed =
        |sysroot: &str| std::path::Path::new(sysroot.trim()).join("lib/rustlib").join(TARGET).exists();
    let rustc = || Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    let sysroot = rustc().args(["--print", "sysroot"]).output().ok()?;
    if !installed(&String::from_utf8(sysroot.stdout).unwrap()) {
        return None;
    }
    let mut child = rustc()
        .args(["--edition=2024", "--crate-type=lib", "--crate-name=atomics", "-O", "--emit=asm", "-o-"])
        .args(["--target", TARGET])
        .args(flags)
        .arg("-")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(SOURCE.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    Some(String::from_utf8(output.stdout).unwrap())
}

#[test]
fn arm_builds_choose_their_atomics_when_they_run() {
    let Some(outlined) = assembly(&[]) else {
        eprintln!("SKIPPED: install the target (rustup target add {TARGET})");
        return;
    };
    // The calls that look for LSE; no loop is compiled in.
    for name in ["bl\t__aarch64_swp1_acq_rel", "bl\t__aarch64_ldadd8_relax"] {
        assert!(outlined.contains(name), "{name} is not in {outlined}");
    }
    assert!(!outlined.contains("xr"), "an exclusive load or store is compiled in:\n{outlined}");
    // And with a core named, the instruction itself.
    let named = assembly(&["-Ctarget-cpu=neoverse-n1"]).unwrap();
    assert!(
        named.contains("swpalb") && named.contains("ldadd\t") && !named.contains("__aarch64_"),
        "{named}"
    );
}
