//! `lanewise calibrate` and `search --target-recall`: the curve is shown and kept, and chooses the effort.

use crate::Folder;

#[test]
fn a_curve_is_shown_and_kept() {
    let folder = Folder::with_vectors();
    for (kind, knob) in [("hnsw", "epsilon"), ("ivf --nlist 20", "nprobe")] {
        folder.run(&format!("build x.npy -o i --force --kind {kind}")).ok();
        let before = std::fs::metadata(folder.path("i")).unwrap().len();
        // Without a curve it is measured for the search, and not kept.
        let ended = folder.run("search i q.npy --target-recall 0.9").ok();
        assert!(ended.err.contains("measuring recall") && ended.err.contains(knob), "{}", ended.err);
        assert_eq!(std::fs::metadata(folder.path("i")).unwrap().len(), before);
        let ended = folder.run("calibrate i --threads 1").ok();
        assert!(ended.out.contains("i: 500 vectors, by "), "{}", ended.out);
        assert!(ended.out.contains("held-out vectors"), "{}", ended.out);
        let head = ended.out.lines().find(|line| line.contains("recall")).unwrap();
        assert!(head.contains(knob), "{head}");
        // Of ten results; a hundred are more than an eighth of all, and compared anyway.
        assert!(ended.out.lines().any(|line| line.starts_with("| 10 ")), "{}", ended.out);
        assert!(!ended.out.lines().any(|line| line.starts_with("| 100")), "{}", ended.out);
        assert!(std::fs::metadata(folder.path("i")).unwrap().len() > before);
        let ended = folder.run("search i q.npy --target-recall 0.9").ok();
        assert!(!ended.err.contains("measuring") && ended.err.contains(knob), "{}", ended.err);
        let ended = folder.run("search i q.npy --target-recall 1").ok();
        assert!(ended.err.contains("all vectors are compared"), "{}", ended.err);
    }
    // Its searches without a target scan the codes: nothing is said of their recall.
    folder.run("build x.npy -o flat --kind flat --code bits").ok();
    let ended = folder.run("calibrate flat").ok();
    assert_eq!(ended.out, "flat: 500 vectors: a search with --target-recall compares all of them\n");
    assert_eq!(folder.names(), ["flat", "i", "q.npy", "x.npy"]);
}

#[test]
fn wrong_use_is_named() {
    let folder = Folder::with_vectors();
    folder.run("build x.npy -o i").ok();
    for target in ["0", "1.5", "nan"] {
        folder
            .run(&format!("search i q.npy --target-recall {target}"))
            .error(2, &["--target-recall", "0.95"]);
    }
    folder.run("search i q.npy --target-recall 0.9 --ef-search 5").error(2, &["--ef-search"]);
    // Twenty queries.
    folder.run("calibrate i --queries q.npy").error(1, &["--queries", "50"]);
    folder.run("calibrate nothing").error(1, &["nothing"]);
}
