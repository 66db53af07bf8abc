//! `lanewise build`: the index that comes out, and what is refused without leaving anything behind.

use crate::{Ended, Folder};
use lanewise_bench::dataset::Elements;

#[test]
fn a_summary_says_what_was_built() {
    let folder = Folder::with_vectors();
    let ended = folder.run("build x.npy -o i --metric cosine").ok();
    for word in ["i: 500 vectors of 8 dimensions, hnsw f32 cosine", "built in", "bytes/vector"] {
        assert!(ended.out.contains(word), "{}", ended.out);
    }
    assert_eq!(folder.names(), ["i", "q.npy", "x.npy"]);
}

#[test]
fn the_same_input_gives_the_same_bytes_at_any_number_of_threads() {
    let folder = Folder::with_vectors();
    for threads in ["1", "3"] {
        folder.run(&format!("build x.npy -o i{threads} --seed 9 --threads {threads}")).ok();
    }
    let bytes = |name| std::fs::read(folder.path(name)).unwrap();
    assert_eq!(bytes("i1"), bytes("i3"));
    folder.run("build x.npy -o other --seed 10").ok();
    assert_ne!(bytes("i1"), bytes("other"));
}

#[test]
fn an_existing_file_is_replaced_only_by_force() {
    let folder = Folder::with_vectors();
    std::fs::write(folder.path("i"), "precious").unwrap();
    folder.run("build x.npy -o i").error(2, &["-o i", "exists already", "--force"]);
    assert_eq!(std::fs::read(folder.path("i")).unwrap(), b"precious");
    folder.run("build x.npy -o i --force").ok();
    folder.run("search i q.npy").ok();
    // An input is never replaced, however it is called.
    for name in ["x.npy", "./x.npy"] {
        folder.run(&format!("build x.npy -o {name} --force")).error(2, &["is an input"]);
    }
    assert_eq!(folder.names(), ["i", "q.npy", "x.npy"]);
}

#[test]
fn a_place_that_takes_no_file_is_refused_before_the_work() {
    let folder = Folder::with_vectors();
    // The vectors do not exist either: the output is looked at first.
    folder.run("build none.npy -o no/i").error(1, &["-o no/i", "create it"]);
    std::fs::create_dir(folder.path("d")).unwrap();
    folder.run("build none.npy -o d --force").error(2, &["-o d", "is a folder"]);
    folder.run("build none.npy -o ..").error(2, &["is a folder"]);
}

#[test]
fn wrong_vectors_are_refused_by_file_and_place() {
    let folder = Folder::new();
    std::fs::write(folder.path("short.fvecs"), [2, 0, 0, 0, 1]).unwrap();
    std::fs::write(folder.path("x.txt"), "1 2 3").unwrap();
    folder.write("nan.npy", 2, Elements::F32(vec![1.0, 2.0, 3.0, f32::NAN]));
    folder.write("zero.npy", 2, Elements::F32(vec![1.0, 2.0, 0.0, 0.0]));
    folder.write("ids.npy", 1, Elements::Int(vec![1, 2]));
    folder.write("half.npy", 1, Elements::F32(vec![0.5]));
    folder.write("wide.npy", 65_537, Elements::F32(vec![1.0; 65_537]));
    let cases: [(&str, i32, &[&str]); 8] = [
        ("none.npy", 1, &["none.npy"]),
        ("short.fvecs", 1, &["short.fvecs, byte 0", "cut short"]),
        ("x.txt", 2, &["x.txt", ".npy, .fvecs"]),
        ("nan.npy", 1, &["nan.npy", "vector 1", "position 1"]),
        ("zero.npy --metric cosine", 1, &["zero.npy", "vector 1", "zero"]),
        ("ids.npy", 1, &["ids.npy", "not vectors"]),
        ("wide.npy", 2, &["dim=65537"]),
        ("half.npy --dtype i8", 1, &["half.npy", "vector 0", "0.5"]),
    ];
    let before = folder.names();
    for (args, code, words) in cases {
        folder.run(&format!("build {args} -o i")).error(code, words);
    }
    assert_eq!(folder.names(), before, "nothing is left");
}

#[test]
fn ids_of_ones_own_must_fit_the_vectors() {
    let folder = Folder::new();
    folder.write("x.npy", 1, Elements::F32(vec![0.0, 10.0, 20.0]));
    folder.write("good.npy", 1, Elements::Int(vec![7, -8, 1 << 40]));
    folder.write("few.npy", 1, Elements::Int(vec![7, 8]));
    folder.write("twice.npy", 1, Elements::Int(vec![7, 8, 7]));
    folder.run("build x.npy -o i --ids few.npy").error(1, &["ids has 2 entries for 3 vectors"]);
    folder.run("build x.npy -o i --ids twice.npy").error(1, &["ids names 7 twice"]);
    folder.run("build x.npy -o i --ids x.npy").error(2, &["x.npy", "integers"]);
    folder.run("build x.npy -o i --ids good.npy").ok();
    folder.run("search i x.npy -k 1 -o r.npy").ok();
    assert_eq!(crate::ids(&folder.path("r.npy")), (vec![7, -8, 1 << 40], 1));
    folder.run("search i x.npy -k 1 -o r.ivecs").error(2, &["1099511627776", "write .npy"]);
}

#[test]
fn a_wrong_isa_is_heard_of() {
    let folder = Folder::with_vectors();
    let output =
        folder.command(&["build", "x.npy", "-o", "i"]).env("LANEWISE_ISA", "nonsense").output().unwrap();
    Ended::of(output).error(1, &["LANEWISE_ISA=\"nonsense\"", "unset it"]);
    assert_eq!(folder.names(), ["q.npy", "x.npy"]);
}

/// Ctrl-C in the middle: a message, exit code 130, and no file, temporary or other.
#[cfg(target_os = "linux")]
#[test]
fn an_interrupted_build_leaves_nothing() {
    use lanewise_bench::generate::mixture;
    use std::process::{Command, Stdio};

    let folder = Folder::new();
    folder.write("x.npy", 64, Elements::F32(mixture(64, 100_000, 0, 1).0));
    let args = ["build", "x.npy", "-o", "i", "--ef-construction", "2000", "--threads", "1"];
    let mut child = folder.command(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // Until the program listens, the signal would end it in the system's way; its mask of caught signals tells.
    let status = format!("/proc/{}/status", child.id());
    let listens = || {
        let text = std::fs::read_to_string(&status).unwrap();
        let mask = text.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap().trim().to_owned();
        u64::from_str_radix(&mask, 16).unwrap() & (1 << (2 - 1)) != 0
    };
    while !listens() {
        assert!(child.try_wait().unwrap().is_none(), "it ended without listening");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
    Ended::of(child.wait_with_output().unwrap())
        .error(130, &["interrupted after", "100,000", "nothing was written"]);
    assert_eq!(folder.names(), ["x.npy"]);
}
