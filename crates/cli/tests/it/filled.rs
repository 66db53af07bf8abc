//! `lanewise table create`, `put`, `search`, `info`.

use crate::{Ended, Folder};
use lanewise_bench::dataset::Elements;
use serde_json::{Value, json};
use std::fs;
use std::io::Write;
use std::process::Stdio;

const SCHEMA: &str = r#"{"fields": {
    "title": {"type": "text"}, "note": {"type": "text"}, "n": {"type": "integer"},
    "v": {"type": "vector", "dim": 2}, "w": {"type": "vector", "dim": 8, "dtype": "i8", "kind": "flat"}
}}"#;

/// A folder with an empty table `t`.
fn made() -> Folder {
    let folder = Folder::new();
    fs::write(folder.path("schema.json"), SCHEMA).unwrap();
    let ended = folder.run("table create t --schema schema.json").ok();
    assert_eq!(ended.out, "t: 5 fields, no documents\n");
    folder
}

fn lines(folder: &Folder, name: &str, lines: &[String]) {
    fs::write(folder.path(name), lines.join("\n")).unwrap();
}

fn document(n: usize) -> String {
    json!({"id": n, "title": format!("shoe number{n}"), "n": n, "v": [n, 1]}).to_string()
}

fn json_of(ended: &Ended) -> Vec<Value> {
    ended.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn info(folder: &Folder) -> Value {
    json_of(&folder.run("table info t --json").ok()).remove(0)
}

#[test]
fn a_table_is_made_loaded_written_searched_and_described() {
    let folder = made();
    lines(&folder, "a.ndjson", &(0..3000).map(document).collect::<Vec<_>>());
    // Loaded: one segment, nothing in the head.
    let ended = folder.run("table put t a.ndjson").ok();
    assert!(ended.out.starts_with("t: 3,000 documents put, 3,000 of them new, in "), "{}", ended.out);
    let said = info(&folder);
    assert_eq!(
        (&said["documents"], &said["segments"][0]["documents"]),
        (&3000.into(), &3000.into()),
        "{said}"
    );
    assert_eq!(said["segments"].as_array().unwrap().len(), 2, "{said}");
    // Written: two replaced, one new, one without an id.
    let more = [document(7), document(8), document(5000), r#"{"title": "nameless"}"#.to_owned()];
    lines(&folder, "b.ndjson", &more);
    let ended = folder.run("table put t b.ndjson --json").ok();
    let put = &json_of(&ended)[0];
    assert_eq!([&put["created"], &put["updated"], &put["refused"]], [2, 2, 0], "{put}");
    let said = info(&folder);
    assert_eq!([&said["documents"], &said["deleted"]], [3002, 2], "{said}");
    assert_eq!(said["schema"]["fields"]["v"]["dim"], 2, "{said}");
    assert_eq!(said["settings"]["durability"], "request", "{said}");
    assert!(
        said["memory"]["limit"].as_u64().unwrap() > 1 << 20 && said["bytes"].as_u64().unwrap() > 0,
        "{said}"
    );
    let ended = folder.run("table info t").ok();
    assert!(ended.out.starts_with("t: 3,002 documents, 2 deleted rows, 1 segments, "), "{}", ended.out);
    assert!(ended.out.contains("| head ") && ended.out.contains("| title "), "{}", ended.out);

    let ended = folder.run("table search t --match number42 --json").ok();
    let found = &json_of(&ended)[0];
    assert_eq!(
        (&found["id"], &found["document"]["n"], &found["distance"]),
        (&"42".into(), &42.into(), &Value::Null)
    );
    folder.write("q.npy", 2, Elements::F32(vec![9.0, 9.0, 100.2, 1.0]));
    let ended = folder.run("table search t --vector q.npy --row 1 --field v -k 3 --json").ok();
    let ids: Vec<_> = json_of(&ended).iter().map(|hit| hit["id"].clone()).collect();
    assert_eq!(ids, ["100", "101", "99"]);
    assert!(ended.err.contains("3 of 3 documents"), "{}", ended.err);
    let filter = r#"{"range": {"field": "n", "range": {"gte": 2000}}}"#;
    let args = ["table", "search", "t", "--vector", "q.npy", "--field", "v", "-k", "2", "--filter", filter];
    let ended = Ended::of(folder.command(&args).output().unwrap()).ok();
    let rows: Vec<Vec<&str>> = ended.out.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(
        (&rows[0][..], rows[1][1], rows[2][1]),
        (&["rank", "id", "score", "distance", "document"][..], "2000", "2001")
    );
    assert!(ended.out.contains(r#"{"n":2000,"title":"shoe number2000"}"#), "{}", ended.out);
    let query = r#"{"term": {"field": "n", "value": 5000}}"#;
    let ended = Ended::of(folder.command(&["table", "search", "t", "--query", query]).output().unwrap()).ok();
    assert!(
        ended.out.contains("5000") && ended.err.contains("1 of 1 documents"),
        "{}{}",
        ended.out,
        ended.err
    );
}

/// Bad lines of every kind, into an empty table and into one that has documents; from a file and from standard input.
#[test]
fn a_bad_line_loses_no_other_unless_strict() {
    for (empty, piped) in [(true, false), (false, true)] {
        let folder = made();
        if !empty {
            lines(&folder, "first.ndjson", &["{\"id\": \"first\"}".to_owned()]);
            folder.run("table put t first.ndjson").ok();
        }
        let before = usize::from(!empty);
        let bad = [
            (3, "{\"title\": ".to_owned(), "EOF"),
            (5, "[1]".to_owned(), "invalid type"),
            (9, json!({"id": 1.5}).to_string(), "its id is 1.5"),
            (14, json!({"id": 14, "n": "many"}).to_string(), "field \"n\""),
            (15, json!({"id": 15, "v": [1, 2, 3]}).to_string(), "field \"v\""),
            (1800, json!({"id": "x".repeat(600)}).to_string(), "id"),
        ];
        let mut all: Vec<String> = (1..=2000).map(document).collect();
        bad.iter().for_each(|(line, text, _)| all[line - 1].clone_from(text));
        // Passed over, but counted.
        all[99] = "   ".to_owned();
        lines(&folder, "all.ndjson", &all);
        let put = |strict: &str| {
            let from = if piped { "-" } else { "all.ndjson" };
            let args: Vec<&str> =
                ["table", "put", "t", from, strict].into_iter().filter(|a| !a.is_empty()).collect();
            let mut child = folder
                .command(&args)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            let bytes = fs::read(folder.path("all.ndjson")).unwrap();
            // One that ends early does not read all.
            let _ = child.stdin.take().unwrap().write_all(&bytes);
            Ended::of(child.wait_with_output().unwrap())
        };
        let name = if piped { "standard input" } else { "all.ndjson" };
        put("--strict").error(1, &[name, "line 3: EOF", "nothing was put"]);
        assert_eq!(info(&folder)["documents"], before);
        let ended = put("");
        assert_eq!(ended.code, Some(1), "{}", ended.err);
        for (line, _, what) in &bad {
            let said =
                ended.err.lines().find(|said| said.starts_with(&format!("note: {name}: line {line}: ")));
            assert!(said.is_some_and(|said| said.contains(what)), "line {line}: {}", ended.err);
        }
        assert!(ended.err.ends_with("6 of 2000 lines were refused, see above\n"), "{}", ended.err);
        assert!(ended.out.contains("1,993 documents put"), "{}", ended.out);
        assert_eq!(info(&folder)["documents"], 1993 + before);
        let ended = folder.run("table search t --match number2000 --json").ok();
        assert_eq!(json_of(&ended)[0]["id"], "2000");
    }
}

/// Some programs begin a file with a byte order mark.
#[test]
fn a_byte_order_mark_is_no_part_of_the_first_document() {
    let folder = made();
    lines(&folder, "a.ndjson", &[format!("\u{feff}{}", document(1)), document(2)]);
    assert!(folder.run("table put t a.ndjson").ok().out.contains("2 documents put"));
    // Elsewhere it is none.
    lines(&folder, "b.ndjson", &[document(3), format!("\u{feff}{}", document(4))]);
    let ended = folder.run("table put t b.ndjson");
    assert!(ended.code == Some(1) && ended.err.contains("line 2"), "{}", ended.err);
    assert_eq!(info(&folder)["documents"], 3);
}

/// What was written and not sealed would have its graph built anew by the next who opens the table.
#[test]
fn many_documents_are_sealed_at_the_end() {
    let folder = made();
    lines(&folder, "a.ndjson", &[document(0)]);
    folder.run("table put t a.ndjson").ok();
    lines(&folder, "b.ndjson", &(1..5000).map(document).collect::<Vec<_>>());
    folder.run("table put t b.ndjson").ok();
    let said = info(&folder);
    let segments = said["segments"].as_array().unwrap();
    assert_eq!(segments.last().unwrap()["documents"], 0, "{said}");
    assert_eq!(said["documents"], 5000);
}

#[test]
fn what_is_wrong_is_named() {
    let folder = made();
    folder.run("table create t --schema schema.json").error(1, &["t: ", "there is a table"]);
    fs::write(folder.path("bad.json"), r#"{"fields": {"v": {"type": "vector", "dim": 0}}}"#).unwrap();
    folder.run("table create u --schema bad.json").error(1, &["--schema bad.json", "\"v\""]);
    folder.run("table create u --schema none.json").error(1, &["--schema none.json"]);
    assert!(!folder.path("u").exists());
    folder.run("table put t none.ndjson").error(1, &["none.ndjson"]);
    folder.run("table put u -").error(1, &["u"]);
    folder.run("table search t --query {").error(2, &["--query"]);
    folder
        .run("table search t --query \"all\" --match x")
        .error(2, &["--query", "lanewise table search --help"]);
    folder.write("q.npy", 2, Elements::F32(vec![9.0, 9.0]));
    folder.run("table search t --vector q.npy").error(2, &["--field", "[\"v\", \"w\"]"]);
    folder.run("table search t --vector q.npy --field x").error(2, &["--field", "\"x\""]);
    folder.run("table search t --vector q.npy --field w").error(1, &["q.npy", "dimension 2"]);
    folder.run("table search t --vector q.npy --field v --row 1").error(2, &["--row 1", "1 vectors"]);
    folder.run("table search t --field v").error(2, &["--vector"]);
    folder.run("table").error(2, &["no command given", "lanewise table --help"]);
    fs::write(folder.path("bare.json"), r#"{"fields": {"n": {"type": "integer"}}}"#).unwrap();
    folder.run("table create bare --schema bare.json").ok();
    folder.run("table search bare --match x").error(2, &["--match", "no text field"]);
    assert!(folder.run("table search t --match x").ok().err.contains("0 of 0 documents"));
}
