//! `lanewise bench`: the figures are there, in Markdown, and those that are not times are right.

use crate::Folder;

/// The cells of the last table, row by row.
fn figures(out: &str) -> Vec<Vec<String>> {
    let table = out.trim_end().rsplit("\n\n").next().unwrap();
    let cells = |line: &str| line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect();
    table.lines().map(cells).collect()
}

#[test]
fn held_out_vectors_are_the_queries() {
    let folder = Folder::with_vectors();
    let ended = folder.run("bench x.npy --ef-search 10,300 --rounds 1").ok();
    assert!(ended.out.starts_with("x.npy: 450 vectors of 8 dimensions, 50 queries\n"), "{}", ended.out);
    assert!(ended.out.contains("bytes/vector") && ended.out.contains("vectors/s"), "{}", ended.out);
    let table = figures(&ended.out);
    assert_eq!(table[0][..3], ["ef_search", "recall@10", "queries/s, 1 thread"]);
    assert_eq!([&table[2][0], &table[3][0]], ["10", "300"]);
    let recall = |row: usize| table[row][1].parse::<f64>().unwrap();
    assert!(recall(3) > 0.99 && recall(2) <= recall(3), "{table:?}");
    assert!(table.iter().all(|row| row.len() == 7), "{table:?}");
    let again = figures(&folder.run("bench x.npy --ef-search 10,300 --rounds 1").ok().out);
    let counted =
        |table: &[Vec<String>]| table.iter().map(|r| (r[1].clone(), r[6].clone())).collect::<Vec<_>>();
    assert_eq!(counted(&table), counted(&again), "recall and work repeat exactly");
    assert_eq!(folder.names(), ["q.npy", "x.npy"], "nothing is written");
}

#[test]
fn a_saved_index_and_given_truth_are_used() {
    let folder = Folder::with_vectors();
    folder.run("build x.npy -o i --metric ip").ok();
    folder.run("build x.npy -o flat --metric ip --kind flat").ok();
    folder.run("search flat q.npy -o t.ivecs").ok();
    let given = folder.run("bench x.npy --queries q.npy --index i --truth t.ivecs --rounds 1").ok();
    let computed = folder.run("bench x.npy --queries q.npy --index i --rounds 1").ok();
    assert!(!given.out.contains("build") && given.out.contains("hnsw f32 ip"), "{}", given.out);
    let recalls = |out: &str| figures(out).iter().map(|row| row[1].clone()).collect::<Vec<_>>();
    assert_eq!(recalls(&given.out), recalls(&computed.out));
    let exact = figures(&folder.run("bench x.npy --queries q.npy --index flat --rounds 1").ok().out);
    assert_eq!((exact.len(), &exact[2][..2]), (3, ["exact".to_owned(), "1.0000".to_owned()].as_slice()));
}

#[test]
fn what_cannot_be_compared_is_refused() {
    let folder = Folder::with_vectors();
    folder.run("build q.npy -o small").ok();
    let mut values = vec![1.0; 40];
    values[35] = f32::NAN;
    folder.write("nan.npy", 4, lanewise_bench::dataset::Elements::F32(values));
    // The row of the file, whichever vectors are held out.
    folder.run("bench nan.npy --held-out 5").error(1, &["nan.npy", "vector 8", "position 3"]);
    let ids: Vec<i64> = (1000..1500).collect();
    folder.write("ids.npy", 1, lanewise_bench::dataset::Elements::Int(ids));
    folder.run("build x.npy -o named --ids ids.npy").ok();
    folder.run("bench x.npy --queries q.npy --index small").error(1, &["--index", "20 vectors", "500"]);
    folder.run("bench x.npy --queries q.npy --index named").error(1, &["--index", "--ids"]);
    folder.run("bench x.npy --index small").error(2, &["--queries"]);
    folder.run("bench x.npy --queries q.npy --index small --m 8").error(2, &["--index", "--m"]);
    folder.run("bench x.npy --queries q.npy --index small --code i8").error(2, &["--index", "--code"]);
    folder.run("bench x.npy --held-out 500").error(2, &["--held-out", "500 of 500"]);
    folder.run("bench x.npy --queries q.npy --truth ids.npy").error(1, &["500 rows", "20 queries"]);
    folder.run("bench x.npy --truth ids.npy").error(2, &["--queries"]);
}
