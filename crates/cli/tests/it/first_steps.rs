//! The first steps of `docs/serve.md`, as they stand there.
#![cfg(unix)]

use crate::Folder;
use crate::serve::Node;
use std::process::Command;

/// The fenced block between two marks.
fn block(mark: &str) -> String {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/serve.md")).unwrap();
    let (_, rest) = page.split_once(&format!("<!-- {mark} -->\n```")).unwrap();
    let (block, _) = rest.split_once(&format!("\n```\n<!-- /{mark} -->")).unwrap();
    block.split_once('\n').unwrap().1.to_owned()
}

/// What a program prints for its last argument, in which the node's address stands for the usual one; nothing where it is
/// not there.
fn printed(mark: &str, program: &[&str], there: &[&str]) -> Option<String> {
    if !Command::new(there[0]).args(&there[1..]).output().is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: {there:?} fails");
        return None;
    }
    let folder = Folder::new();
    let node = Node::start(&folder, "");
    let text = block(mark).replace("localhost:9200", &node.address);
    let output = Command::new(program[0]).args(&program[1..]).arg(&text).output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}\n{err}");
    Some(out.into_owned())
}

#[test]
fn with_curl() {
    let Some(out) = printed("curl", &["sh", "-ec"], &["curl", "--version"]) else { return };
    assert!(!out.contains("\"error\"") && !out.contains("\"errors\":true"), "{out}");
    assert!(out.contains("red shoe") && !out.contains("blue shoe"), "{out}");
}

#[test]
fn with_opensearch_py() {
    let there = ["python3", "-c", "import opensearchpy"];
    let Some(out) = printed("python", &["python3", "-c"], &there) else { return };
    assert_eq!(out.trim(), "['7', '8', '6']");
}
