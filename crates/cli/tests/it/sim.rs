//! `lanewise sim`: figures of small runs, and traces that are no traces.

use crate::Folder;

#[test]
fn figures_are_written_and_say_that_they_are_simulated() {
    let folder = Folder::new();
    let run = || folder.run("sim --quick --seeds 2 --machine 2x2x1M --out figures").ok();
    let ended = run();
    assert!(ended.out.starts_with("simulated (hnsw: synthetic, 8 tables, "), "{}", ended.out);
    for line in ["| 2x2x1M hnsw V0 |", "| 2x2x1M ivf V2  |"] {
        assert!(ended.out.contains(line), "{}", ended.out);
    }
    let figures = ["05", "06-cdf", "06-traffic", "07", "08", "14", "15", "16", "17", "18", "19", "20"];
    let figures = figures.map(|figure| format!("figure-{figure}"));
    let all = figures.iter().map(String::as_str).chain(["sweep"]);
    let names: Vec<String> = all.map(|name| format!("figures/{name}.csv")).collect();
    let read = || -> Vec<String> {
        names.iter().map(|name| std::fs::read_to_string(folder.path(name)).unwrap()).collect()
    };
    let first = read();
    for (text, name) in first.iter().zip(&names) {
        let mut lines = text.lines();
        assert!(lines.next().unwrap().starts_with("# simulated; "), "{name}");
        let head: Vec<&str> = lines.next().unwrap().split(',').collect();
        let columns = head.len();
        let rows: Vec<&str> = lines.collect();
        assert!(
            !rows.is_empty() && rows.iter().all(|row| row.split(',').count() == columns),
            "{name}: {text}"
        );
        // Only intervals may be unknown, and a remap has no latency.
        for row in rows.iter().filter(|row| !row.contains(",remap,")) {
            let known = row
                .split(',')
                .zip(&head)
                .all(|(cell, column)| !cell.is_empty() || column.starts_with("half"));
            assert!(known && !row.contains("inf"), "{name}: {row}");
        }
    }
    // V0 on one chiplet is what the ratios are over.
    assert!(first[5].contains("2x2x1M,hnsw,V0,1,1.00000,0.00000,"), "{}", first[5]);
    run();
    assert_eq!(first, read(), "equal seeds, equal figures");
}

#[test]
fn what_is_no_trace_or_no_machine_is_refused() {
    let folder = Folder::new();
    std::fs::write(folder.path("notes.txt"), "not a trace").unwrap();
    folder.run("sim --traces notes.txt").error(1, &["notes.txt", "not a trace"]);
    folder.run("sim --traces absent").error(1, &["absent"]);
    folder.run("sim --machine 12x8").error(2, &["--machine", "12x8x32M"]);
    folder.run("sim --figures 13").error(2, &["--figures", "sweep"]);
}
