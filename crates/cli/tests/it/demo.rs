//! `lanewise demo`: it needs nothing, says that its vectors are made up, and shows every figure.

use crate::Folder;

#[test]
fn the_demo_shows_all_and_leaves_nothing() {
    let folder = Folder::new();
    let ended = folder.run("demo --n 2000 --dim 32 --seed 3").ok();
    for word in
        ["Synthetic vectors, not real data: 2,000 of 32", "seed 3", "recall@10", "queries/s, 1 thread", "P99"]
    {
        assert!(ended.out.contains(word), "{word}: {}", ended.out);
    }
    for word in ["bytes/vector", "build", "isa "] {
        assert!(ended.out.contains(word), "{word}: {}", ended.out);
    }
    let best: f64 = ended.out.lines().last().unwrap().split('|').nth(2).unwrap().trim().parse().unwrap();
    assert!(best > 0.99, "{}", ended.out);
    assert!(folder.names().is_empty());
}

#[test]
fn the_smallest_demo_works_and_the_largest_is_refused() {
    let folder = Folder::new();
    assert!(folder.run("demo --n 1 --dim 1").ok().out.contains("recall@1 "));
    folder.run("demo --n 100000000 --dim 65536").error(2, &["--n 100000000 --dim 65536", "give less"]);
}
