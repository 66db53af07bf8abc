//! Wrong use: exit code 2, one line that names the argument and where to read on.

use crate::{Ended, Folder, lanewise};
use std::process::Stdio;

#[test]
fn wrong_arguments_are_named() {
    let folder = Folder::with_vectors();
    let cases: [(&str, &[&str]); 18] = [
        ("", &["no command given", "lanewise --help"]),
        ("frob", &["frob", "`lanewise --help`"]),
        ("build", &["--output <INDEX>", "<VECTORS>", "`lanewise build --help`"]),
        ("build x.npy", &["--output <INDEX>"]),
        ("build x.npy -o i --frob", &["--frob"]),
        ("build x.npy -o i --metric l3", &["--metric", "l3", "l2, ip, cosine, hamming"]),
        ("build x.npy -o i --dtype f64", &["--dtype", "f32, i8, bits"]),
        ("build x.npy -o i --kind lsh", &["--kind", "flat, hnsw, ivf"]),
        ("build x.npy -o i --kind ivf --nlist 65537", &["--nlist", "0..=65536"]),
        ("search i q.npy --nprobe 0", &["--nprobe", "1..=65536"]),
        ("build x.npy -o i --m 1", &["--m", "2..=512"]),
        ("build x.npy -o i --ef-construction 0", &["--ef-construction"]),
        ("build x.npy -o i --threads 0", &["--threads"]),
        (
            "build x.npy -o i --metric cosine --dtype bits",
            &["--metric cosine", "hamming or jaccard with bits"],
        ),
        ("search i q.npy -k 0", &["-k", "1..=10000", "`lanewise search --help`"]),
        ("search i q.npy --ef-search 0", &["--ef-search"]),
        ("demo --n 0", &["--n"]),
        ("bench x.npy --held-out 3 --queries q.npy", &["--held-out", "--queries"]),
    ];
    for (args, words) in cases {
        folder.run(args).error(2, words);
    }
    assert_eq!(folder.names(), ["q.npy", "x.npy"]);
}

#[test]
fn help_and_version_go_to_standard_output() {
    let folder = Folder::new();
    for (args, word) in [
        ("--help", "bench"),
        ("build --help", "--ef-construction"),
        ("--version", env!("CARGO_PKG_VERSION")),
        ("help search", "--truth"),
    ] {
        let ended = folder.run(args).ok();
        assert!(ended.out.contains(word) && ended.err.is_empty(), "{args}: {}", ended.out);
    }
}

/// `| head`: nobody reads on, which is no error and no message.
#[test]
fn a_reader_that_goes_away_is_no_error() {
    let folder = Folder::with_vectors();
    folder.run("build x.npy -o i --kind flat").ok();
    for args in [&["doctor"][..], &["search", "i", "x.npy", "-k", "500"], &["--help"]] {
        let mut child = folder.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let ended = Ended::of(child.wait_with_output().unwrap());
        assert!(
            ended.code == Some(0) && !ended.err.contains("error"),
            "{args:?}: {:?} {}",
            ended.code,
            ended.err
        );
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_standard_output_is_an_error() {
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let ended = Ended::of(lanewise().arg("doctor").stdout(full).stderr(Stdio::piped()).output().unwrap());
    ended.error(1, &["standard output"]);
}
