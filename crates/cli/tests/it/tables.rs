//! `lanewise check`, `repair`, `snapshot`, `snapshots`, `restore`: on tables that were closed, and damaged.

use crate::Folder;
use lanewise_engine::scheduler::Options;
use lanewise_engine::table::{Resources, Table, When, Write};
use lanewise_engine::{Admission, Pool, Threads};
use lanewise_storage::Disk;
use std::fs;
use std::sync::Arc;

fn resources() -> Resources {
    let pool = Arc::new(Pool::start(Options::default()).unwrap());
    Resources { threads: Threads::new(None), pool, admission: Admission::usual() }
}

/// Makes a table of `count` documents, most of them in a segment, in a new folder.
fn table(folder: &Folder, name: &str, count: usize) {
    let path = folder.path(name);
    fs::create_dir_all(&path).unwrap();
    let schema = r#"{"fields": {"n": {"type": "integer"}, "v": {"type": "vector", "dim": 2}}}"#;
    let schema = serde_json::from_str(schema).unwrap();
    let table = Table::create(Arc::new(Disk::new(&path).unwrap()), schema, resources()).unwrap();
    let put = |i: usize| {
        let document = serde_json::json!({"n": i, "v": [i, 1]});
        let (id, document) = (Some(i.to_string()), document.as_object().unwrap().clone());
        Write::Put { id, document, vectors: Vec::new(), when: When::Always }
    };
    table.write((1..count).map(put).collect()).into_iter().for_each(|written| drop(written.unwrap()));
    table.flush().unwrap();
    table.write(vec![put(0)]).remove(0).unwrap();
}

fn len(folder: &Folder, name: &str) -> usize {
    Table::open(Arc::new(Disk::new(&folder.path(name)).unwrap()), resources()).unwrap().len()
}

/// Overwrites the middle of a file.
fn damage(folder: &Folder, path: &str) {
    let path = folder.path(path);
    let mut bytes = fs::read(&path).unwrap();
    let middle = bytes.len() / 3;
    bytes[middle..middle + 9].fill(0x5a);
    fs::write(path, bytes).unwrap();
}

#[test]
fn a_damaged_table_is_found_and_repaired_the_others_are_left() {
    let folder = Folder::new();
    for name in ["all/a", "all/b", "all/c", "engine/tables/d"] {
        table(&folder, name, 30);
    }
    let ended = folder.run("check engine").ok();
    assert!(ended.out.starts_with("engine/tables/d: nothing is wrong"), "{}", ended.out);
    let ended = folder.run("check all").ok();
    assert_eq!(ended.out.matches("nothing is wrong").count(), 3, "{}", ended.out);
    damage(&folder, "all/b/segments/0000000000000001/vectors-0");
    damage(&folder, "all/c/manifest");
    let ended = folder.run("check all");
    assert_eq!(ended.code, Some(1), "{}", ended.out);
    assert!(ended.err.contains("2 of 3 tables"), "{}", ended.err);
    let ended = folder.run("check all/b --json");
    let report: serde_json::Value = serde_json::from_str(ended.out.trim()).unwrap();
    assert_eq!((&report["table"], &report["documents"]), (&"all/b".into(), &29.into()), "{report}");
    let finding = &report["findings"][0];
    assert_eq!(finding["path"], "segments/0000000000000001", "{report}");
    assert!(finding["what"].as_str().unwrap().contains("0000000000000001/vectors-0: damaged"), "{report}");
    folder.run("repair all").error(2, &["--yes", "--dry-run"]);
    let before = fs::read(folder.path("all/c/manifest")).unwrap();
    assert_eq!(folder.run("repair all --dry-run").code, Some(1));
    assert_eq!(fs::read(folder.path("all/c/manifest")).unwrap(), before);
    let ended = folder.run("repair all --yes").ok();
    assert!(ended.out.contains("its copy takes its place"), "{}", ended.out);
    folder.run("check all").ok();
    for name in ["all/a", "all/b", "all/c"] {
        assert_eq!(len(&folder, name), 30, "{name}");
    }
    assert!(!folder.path("all/a/lost").exists());
    assert_eq!(fs::read(folder.path("all/c/lost/manifest")).unwrap(), before);
    folder.run("check nothing").error(1, &["nothing"]);
    fs::create_dir(folder.path("empty")).unwrap();
    folder.run("check empty").error(1, &["empty", "manifest"]);
}

#[test]
fn a_repository_beside_tables_is_no_damaged_table() {
    let folder = Folder::new();
    table(&folder, "all/a", 30);
    folder.run("snapshot all/a all/repository one").ok();
    let ended = folder.run("check all").ok();
    assert!(ended.out.starts_with("all/a: nothing is wrong"), "{}", ended.out);
    fs::write(folder.path("schema.json"), r#"{"fields": {}}"#).unwrap();
    folder.run("repair all --schema schema.json --yes").ok();
    folder.run("repair all/repository --schema schema.json --yes").error(1, &["a repository of snapshots"]);
    assert!(!folder.path("all/repository/manifest").exists());
}

#[test]
fn a_table_is_saved_listed_and_restored() {
    let folder = Folder::new();
    table(&folder, "t", 30);
    let ended = folder.run("snapshot t backup one").ok();
    assert!(ended.out.starts_with("one: 30 documents in 2 segments, "), "{}", ended.out);
    let ended = folder.run("snapshot t backup two").ok();
    assert!(ended.out.contains(" 0 bytes copied"), "{}", ended.out);
    folder.run("snapshot t backup two").error(1, &["two", "delete it"]);
    folder.run("snapshot t t/inside x").error(2, &["t/inside"]);
    let ended = folder.run("snapshots backup --verify").ok();
    assert!(ended.out.contains("| one ") && ended.out.contains("| two "), "{}", ended.out);
    let ended = folder.run("snapshots backup --json").ok();
    let first: serde_json::Value = serde_json::from_str(ended.out.lines().next().unwrap()).unwrap();
    assert_eq!((&first["name"], &first["documents"]), (&"one".into(), &30.into()));
    folder.run("restore backup one again").ok();
    assert_eq!(len(&folder, "again"), 30);
    folder.run("restore backup one again").error(1, &["again"]);
    folder.run("restore backup three other").error(1, &["three"]);
    assert!(!folder.path("other").exists());
    folder.run("snapshots backup --delete one").ok();
    let ended = folder.run("snapshots backup").ok();
    assert!(!ended.out.contains("one") && ended.out.contains("| two "), "{}", ended.out);
    let stored = fs::read_dir(folder.path("backup/segments")).unwrap().next().unwrap().unwrap().path();
    damage(&folder, stored.join("rows").strip_prefix(folder.path("")).unwrap().to_str().unwrap());
    let ended = folder.run("snapshots backup --verify");
    assert!(ended.code == Some(1) && ended.err.contains("rows"), "{}", ended.err);
    folder.run("restore backup two third").error(1, &["rows"]);
    assert!(!folder.path("third").exists());
}
