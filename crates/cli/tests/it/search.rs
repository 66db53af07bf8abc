//! `lanewise search`: the right neighbours, in every element type, and what is refused.

use crate::{Folder, ids};
use lanewise_bench::dataset::Elements;
use lanewise_engine::scheduler::sim::trace::read;

#[test]
fn the_table_has_the_nearest_first() {
    let folder = Folder::new();
    folder.write("x.npy", 1, Elements::F32(vec![0.0, 1.0, 5.0, 20.0]));
    folder.write("q.npy", 1, Elements::F32(vec![4.0, 30.0]));
    for kind in ["flat", "hnsw"] {
        folder.run(&format!("build x.npy -o {kind} --kind {kind}")).ok();
        let ended = folder.run(&format!("search {kind} q.npy -k 2")).ok();
        let rows: Vec<Vec<&str>> = ended.out.lines().map(|line| line.split_whitespace().collect()).collect();
        let expected = [
            ["query", "rank", "id", "distance"],
            ["0", "1", "2", "1"],
            ["0", "2", "1", "9"],
            ["1", "1", "3", "100"],
            ["1", "2", "2", "625"],
        ];
        assert_eq!(rows, expected, "{kind}");
        assert!(ended.err.contains("queries/s"), "{}", ended.err);
    }
    // More than there are: all there are.
    assert_eq!(folder.run("search flat q.npy -k 99").ok().out.lines().count(), 1 + 2 * 4);
}

#[test]
fn all_within_a_distance() {
    let folder = Folder::new();
    folder.write("x.npy", 1, Elements::F32(vec![0.0, 1.0, 5.0, 20.0]));
    folder.write("q.npy", 1, Elements::F32(vec![4.0, 30.0, 1.0]));
    for metric in ["l2", "ip"] {
        folder.run(&format!("build x.npy -o {metric} --metric {metric}")).ok();
    }
    let rows = |arguments: &str| -> Vec<String> {
        let ended = folder.run(&format!("search {arguments}")).ok();
        let rows = ended.out.lines().skip(1).map(|row| row.split_whitespace().collect::<Vec<_>>().join(" "));
        rows.collect()
    };
    assert_eq!(rows("l2 q.npy --within 9"), ["0 1 2 1", "0 2 1 9", "2 1 1 0", "2 2 0 1"]);
    assert_eq!(rows("l2 q.npy --within 1e9").len(), 12);
    assert_eq!(rows("l2 q.npy --within 0.5"), ["2 1 1 0"]);
    assert_eq!(rows("ip q.npy --within -80"), ["0 1 3 -80", "1 1 3 -600", "1 2 2 -150"]);
    folder.run("search l2 q.npy --within nan").error(2, &["--within", "not a number"]);
    folder.run("search l2 q.npy --within 1 -k 3").error(2, &["--within", "-k"]);
    folder.run("search l2 q.npy --within 1 -o r.npy").error(2, &["--within", "--output"]);
}

#[test]
fn files_of_ids_and_recall_agree_with_exact_search() {
    let folder = Folder::with_vectors();
    folder.run("build x.npy -o flat --kind flat").ok();
    folder.run("search flat q.npy -o t.ivecs").ok();
    folder.run("search flat q.npy -o t.npy").ok();
    assert_eq!(ids(&folder.path("t.ivecs")), ids(&folder.path("t.npy")));
    assert_eq!(ids(&folder.path("t.npy")).1, 10);
    assert!(folder.run("search flat q.npy --truth t.ivecs").ok().out.ends_with("recall@10: 1.0000\n"));
    folder.run("build x.npy -o graph").ok();
    for truth in ["t.ivecs", "t.npy"] {
        let ended =
            folder.run(&format!("search graph q.npy --ef-search 200 --truth {truth} -o r.npy --force")).ok();
        let recall: f64 = ended.out.trim().rsplit(' ').next().unwrap().parse().unwrap();
        let found = ids(&folder.path("r.npy")).0;
        let exact = ids(&folder.path("t.npy")).0;
        let rows = found.chunks(10).zip(exact.chunks(10));
        let hits: usize = rows.map(|(f, e)| f.iter().filter(|id| e.contains(id)).count()).sum();
        assert!((recall - hits as f64 / 200.0).abs() < 1e-4 && recall > 0.95, "{recall} {hits}");
    }
}

#[test]
fn unsigned_bytes_are_exact_as_signed_ones() {
    let folder = Folder::new();
    let byte = |i: usize| (i * i * 31 % 251 + i % 5) as u8;
    folder.write("x.bvecs", 16, Elements::U8((0..200 * 16).map(byte).collect()));
    folder.write("q.npy", 16, Elements::U8((7000..7000 + 10 * 16).map(byte).collect()));
    let built = folder.run("build x.bvecs -o i8 --dtype i8 --kind flat").ok();
    assert!(built.err.contains("subtracting 128") && built.out.contains("flat i8 l2"), "{}", built.err);
    let built = folder.run("build x.bvecs -o f32 --kind flat").ok();
    assert!(built.err.is_empty() && built.out.contains("flat f32 l2"), "{}", built.out);
    let (a, b) = (folder.run("search i8 q.npy").ok().out, folder.run("search f32 q.npy").ok().out);
    assert_eq!(a, b);
    folder
        .run("build x.bvecs -o c --dtype i8 --metric cosine")
        .error(1, &["x.bvecs", "dtype i8 does not hold"]);
}

#[test]
fn bits_are_counted() {
    let folder = Folder::new();
    // Dimension 9: a byte and a bit.
    let rows = [[0; 9], [1; 9], [1, 1, 1, 0, 0, 0, 0, 0, 1]].concat();
    folder.write("x.npy", 9, Elements::Bool(rows));
    folder.write("q.npy", 9, Elements::Bool(vec![0, 0, 0, 0, 0, 0, 0, 0, 1]));
    assert!(folder.run("build x.npy -o i").ok().out.contains("3 vectors of 9 dimensions, hnsw bits hamming"));
    let ended = folder.run("search i q.npy").ok();
    let found: Vec<Vec<&str>> =
        ended.out.lines().skip(1).map(|l| l.split_whitespace().skip(2).collect()).collect();
    assert_eq!(found, [["0", "1"], ["2", "3"], ["1", "8"]]);
}

#[test]
fn what_does_not_go_together_is_refused() {
    let folder = Folder::with_vectors();
    folder.run("build x.npy -o i").ok();
    folder.write("wide.npy", 16, Elements::F32(vec![0.0; 32]));
    folder.write("nan.npy", 8, Elements::F32(vec![f32::NAN; 8]));
    folder.write("t.ivecs", 10, Elements::Int(vec![0; 50]));
    folder.write("t3.ivecs", 3, Elements::Int(vec![0; 60]));
    folder.run("search i wide.npy").error(1, &["wide.npy", "dimension 16", "8"]);
    folder.run("search i nan.npy").error(1, &["nan.npy", "vector 0"]);
    folder.run("search i q.npy --truth t.ivecs").error(1, &["truth has 5 rows for 20 queries"]);
    folder.run("search i q.npy --truth t3.ivecs").error(1, &["truth has 3 neighbours", "k=10"]);
    folder.run("search i q.npy --truth q.npy").error(2, &["q.npy", "integers"]);
    folder.run("search i q.npy -o r.txt").error(2, &["-o r.txt", ".ivecs or .npy"]);
    folder.run("search i q.npy -o t.ivecs").error(2, &["-o t.ivecs", "--force"]);
    folder.run("search i q.npy -o i --force").error(2, &["-o i", "is an input"]);
    folder.run("search none q.npy").error(1, &["none"]);
    folder.run("search x.npy q.npy").error(1, &["x.npy", "not a Lanewise index"]);
}

#[test]
fn a_damaged_index_is_refused() {
    let folder = Folder::with_vectors();
    folder.run("build x.npy -o i").ok();
    let whole = std::fs::read(folder.path("i")).unwrap();
    for place in (0..whole.len()).step_by(whole.len() / 40) {
        let mut bytes = whole.clone();
        bytes[place] ^= 1;
        std::fs::write(folder.path("bad"), &bytes).unwrap();
        let ended = folder.run("search bad q.npy");
        // A gap between sections carries nothing.
        if ended.code != Some(0) {
            ended.error(1, &["bad: "]);
        }
        std::fs::write(folder.path("bad"), &whole[..place]).unwrap();
        folder.run("search bad q.npy").error(1, &["bad: "]);
    }
}

#[test]
fn what_searches_read_is_written_down() {
    let folder = Folder::with_vectors();
    folder.run("build x.npy -o graph").ok();
    folder.run("build x.npy -o lists --kind ivf --nlist 16").ok();
    for index in ["graph", "lists"] {
        let ended = folder.run(&format!("search {index} q.npy --record {index}.trace")).ok();
        assert!(ended.err.contains("20 searches"), "{}", ended.err);
        let file = std::fs::read(folder.path(&format!("{index}.trace"))).unwrap();
        let trace = read([&file[..]]).unwrap();
        assert!(!trace.synthetic && trace.queries.len() == 20);
        assert!(trace.tasks.iter().all(|task| task.lines > 0 && task.compute_ns > 0));
        // A task finds the lists, and one scans each.
        let tasks = if index == "lists" { 17 } else { 1 };
        assert!(trace.queries.iter().all(|query| query.tasks.len() == tasks));
    }
    folder.run("search graph q.npy --record graph.trace").error(2, &["--record", "--force"]);
    folder.run("search graph q.npy --record graph.trace --force").ok();
    folder.run("search graph q.npy --record t -o r.npy").error(2, &["--record", "--output"]);
}
