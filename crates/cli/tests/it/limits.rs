//! Little memory: an error that says so, never a crash and never half a file.
#![cfg(target_os = "linux")]

use crate::{Ended, Folder};
use lanewise_bench::dataset::Elements;
use std::process::Command;

/// Runs the program with so much address space.
fn run_within(folder: &Folder, mebibytes: usize, args: &str) -> Ended {
    let script = format!("ulimit -v {} && exec \"$0\" {args}", mebibytes << 10);
    let mut shell = Command::new("sh");
    shell.current_dir(folder.path("")).env_remove("LANEWISE_ISA").arg("-c").arg(script);
    Ended::of(shell.arg(env!("CARGO_BIN_EXE_lanewise")).output().unwrap())
}

#[test]
fn a_memory_limit_is_refused_before_anything_is_built() {
    let folder = Folder::with_vectors();
    folder
        .run("build x.npy -o i --memory-limit 100kB")
        .error(1, &["memory_limit=100000", "500 in all", "raise the limit"]);
    assert_eq!(folder.names(), ["q.npy", "x.npy"]);
    folder.run("build x.npy -o i --memory-limit 0.5GiB").ok();
    folder.run("build x.npy -o j --memory-limit much").error(2, &["--memory-limit", "2GiB"]);
}

#[test]
fn vectors_that_do_not_fit_are_refused() {
    let folder = Folder::new();
    let mebi = 1 << 20;
    folder.write("x.npy", 1024, Elements::I8(vec![1; 64 * mebi]));
    // Not even the file's bytes.
    run_within(&folder, 48, "build x.npy -o i").error(1, &["x.npy", "no memory for its 67108864 bytes"]);
    // The bytes, but not as floats.
    run_within(&folder, 160, "build x.npy -o i --dtype f32")
        .error(1, &["x.npy", "no memory for 268435456 bytes"]);
    // The vectors, but not the index.
    run_within(&folder, 112, "build x.npy -o i --kind flat --threads 1")
        .error(1, &["no memory for 67108864 more bytes", "raise the memory limit"]);
    assert_eq!(folder.names(), ["x.npy"]);
}
