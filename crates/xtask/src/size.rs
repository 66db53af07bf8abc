//! The size ratchet: a source file over [`LIMIT`] lines is listed with its count and a reason, and may only shrink.

use std::collections::BTreeMap;
use std::fs;

use crate::finding::Finding;
use crate::tree::Tree;

const LIMIT: usize = 600;
const LIST: &str = "crates/xtask/ratchet.txt";

struct Entry {
    /// Line of the list that holds it, counted from 1.
    at: usize,
    /// Lines the file had when it was recorded.
    lines: usize,
}

/// Compares every source file's length with the list, and the list with the files.
pub(crate) fn check(tree: &Tree) -> Result<Vec<Finding>, String> {
    let text = match fs::read_to_string(tree.root.join(LIST)) {
        Ok(text) => text,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(e) => return Err(format!("cannot read {LIST}: {e}")),
    };
    let mut findings = Vec::new();
    let mut entries = parse(&text, &mut findings);
    for source in &tree.sources {
        let lines = source.text.lines().count();
        let path = &source.path;
        match entries.remove(path.as_str()) {
            None if lines > LIMIT => findings.push(Finding::new(
                path,
                LIMIT + 1,
                format!(
                    "{lines} lines, over {LIMIT}: split it by idea, or add `{path} {lines} REASON` to {LIST}"
                ),
            )),
            None => {}
            Some(entry) if lines <= LIMIT => findings.push(Finding::new(
                LIST,
                entry.at,
                format!("{path} is down to {lines} lines: remove this entry"),
            )),
            Some(entry) if lines > entry.lines => findings.push(Finding::new(
                path,
                entry.lines + 1,
                format!("grew from {} to {lines} lines: move the new part to its own file", entry.lines),
            )),
            Some(entry) if lines < entry.lines => findings.push(Finding::new(
                LIST,
                entry.at,
                format!("{path} shrank from {} lines: lower its record to {lines}", entry.lines),
            )),
            Some(_) => {}
        }
    }
    let stale = entries.into_iter();
    findings.extend(stale.map(|(path, entry)| {
        Finding::new(LIST, entry.at, format!("{path} is no source file of this tree: remove this entry"))
    }));
    Ok(findings)
}

fn parse<'a>(text: &'a str, findings: &mut Vec<Finding>) -> BTreeMap<&'a str, Entry> {
    let mut entries = BTreeMap::new();
    for (index, line) in text.lines().enumerate() {
        let at = index + 1;
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let mut words = line.split_whitespace();
        let (path, lines) = (words.next(), words.next().and_then(|count| count.parse().ok()));
        let (Some(path), Some(lines), Some(_reason)) = (path, lines, words.next()) else {
            findings.push(Finding::new(LIST, at, "not an entry: write `PATH LINES REASON`"));
            continue;
        };
        if entries.insert(path, Entry { at, lines }).is_some() {
            findings.push(Finding::new(LIST, at, format!("{path} is listed twice: keep one entry")));
        }
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::temporary;

    fn findings(lines: usize, list: &str) -> Vec<String> {
        let (_folder, tree) = temporary(&[("a/big.rs", &"// line\n".repeat(lines)), (LIST, list)]);
        check(&tree).unwrap().iter().map(Finding::to_string).collect()
    }

    #[test]
    fn six_hundred_lines_pass_and_one_more_does_not() {
        assert!(findings(600, "# none\n").is_empty());
        let found = findings(601, "# none\n");
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("a/big.rs:601: 601 lines, over 600"));
        assert!(found[0].contains("`a/big.rs 601 REASON`"));
    }

    #[test]
    fn a_listed_file_may_stay_but_neither_grow_nor_shrink_unnoticed() {
        let list = "# big ones\na/big.rs 700 one table\n";
        assert!(findings(700, list).is_empty());
        let grown = findings(701, list);
        assert_eq!(grown.len(), 1, "{grown:?}");
        assert!(grown[0].starts_with("a/big.rs:701: grew from 700 to 701 lines"));
        let shrunk = findings(650, list);
        assert_eq!(shrunk.len(), 1, "{shrunk:?}");
        assert!(
            shrunk[0].starts_with("crates/xtask/ratchet.txt:2:")
                && shrunk[0].ends_with("lower its record to 650")
        );
    }

    #[test]
    fn stale_entries_are_found() {
        let small = findings(600, "a/big.rs 700 one table\n");
        assert_eq!(small.len(), 1, "{small:?}");
        assert!(small[0].contains("down to 600 lines: remove this entry"));
        let gone = findings(10, "a/gone.rs 700 one table\n");
        assert_eq!(
            gone,
            ["crates/xtask/ratchet.txt:1: a/gone.rs is no source file of this tree: remove this entry"]
        );
    }

    #[test]
    fn malformed_entries_are_found() {
        for list in ["a/big.rs\n", "a/big.rs 700\n", "a/big.rs many reasons here\n", "a/big.rs -1 reason\n"] {
            let found = findings(10, list);
            assert_eq!(
                found,
                ["crates/xtask/ratchet.txt:1: not an entry: write `PATH LINES REASON`"],
                "{list:?}"
            );
        }
        let twice = findings(700, "a/big.rs 700 one table\na/big.rs 700 one table\n");
        assert_eq!(twice, ["crates/xtask/ratchet.txt:2: a/big.rs is listed twice: keep one entry"]);
    }

    #[test]
    fn a_tree_without_a_list_is_checked_all_the_same() {
        let (_folder, tree) = temporary(&[("big.py", &"# line\n".repeat(601))]);
        assert_eq!(check(&tree).unwrap().len(), 1);
    }
}
