//! Words that may not stand in the source: an unfinished mark without an issue, a name that says nothing, the
//! `unsafe` keyword in a crate that has no business with it.

use crate::finding::Finding;
use crate::rust_code::code_only;
use crate::tree::{Source, Tree};

/// Split in two so that this file does not find itself.
const MARKS: [&str; 2] = [concat!("TO", "DO"), concat!("FIX", "ME")];

const EMPTY_NAMES: [&str; 6] = ["utils", "util", "common", "helpers", "helper", "misc"];

/// The crates that talk to C, to the operating system, to mapped memory or to Python.
const UNSAFE_CRATES: [&str; 8] =
    ["kernels", "index", "engine", "topology", "scheduler", "storage", "python", "bench"];

/// Checks names and text of every source file.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in &tree.sources {
        findings.extend(empty_name(source));
        findings.extend(unfinished_marks(source));
        findings.extend(misplaced_unsafe(source));
    }
    findings
}

/// A folder or file called after nothing in particular.
fn empty_name(source: &Source) -> Option<Finding> {
    let stems = source.path.split('/').map(|part| part.split('.').next().unwrap_or(part));
    let name = stems.into_iter().find(|stem| EMPTY_NAMES.contains(stem))?;
    Some(Finding::new(&source.path, 1, format!("`{name}` says nothing: name it after what it holds")))
}

fn unfinished_marks(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, line) in source.text.lines().enumerate() {
        for mark in MARKS {
            if after_word(line, mark).is_some_and(|rest| !names_issue(rest)) {
                let text =
                    format!("{mark} without an issue: do it now, or open an issue and write `{mark}(#N)`");
                findings.push(Finding::new(&source.path, index + 1, text));
            }
        }
    }
    findings
}

fn misplaced_unsafe(source: &Source) -> Vec<Finding> {
    let allowed = source.path.strip_prefix("crates/").and_then(|rest| rest.split('/').next());
    if source.extension() != "rs" || allowed.is_some_and(|name| UNSAFE_CRATES.contains(&name)) {
        return Vec::new();
    }
    let code = code_only(&source.text);
    let lines = code.lines().enumerate().filter(|(_, line)| after_word(line, "unsafe").is_some());
    lines
        .map(|(index, _)| {
            let text = format!("`unsafe` outside of {}: use their safe functions", UNSAFE_CRATES.join(", "));
            Finding::new(&source.path, index + 1, text)
        })
        .collect()
}

/// What follows the first whole-word occurrence of `word`.
fn after_word<'a>(line: &'a str, word: &str) -> Option<&'a str> {
    let part_of_word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    line.match_indices(word).find_map(|(at, _)| {
        let (before, after) = (&line[..at], &line[at + word.len()..]);
        (!part_of_word(before.chars().next_back()) && !part_of_word(after.chars().next())).then_some(after)
    })
}

/// Whether the text holds `#` and a number.
fn names_issue(text: &str) -> bool {
    text.split('#').skip(1).any(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::temporary;

    fn findings(path: &str, text: &str) -> Vec<String> {
        let (_folder, tree) = temporary(&[(path, text)]);
        assert_eq!(tree.sources.len(), 1);
        check(&tree).iter().map(Finding::to_string).collect()
    }

    #[test]
    fn an_unfinished_mark_needs_an_issue() {
        for mark in MARKS {
            assert!(findings("a.py", &format!("# {mark}(#12): split\n")).is_empty());
            assert!(findings("a.py", &format!("# {mark} #3 split\n")).is_empty());
            assert!(findings("a.c", &format!("int {mark}S; // not the word\n")).is_empty());
            assert!(findings("a.c", &format!("int NO_{mark}; // nor this\n")).is_empty());
            for text in [format!("// a\n// {mark}: split\n"), format!("// #12\n// #12 {mark}(#soon)\n")] {
                let found = findings("a.c", &text);
                assert_eq!(found.len(), 1, "{found:?}");
                assert!(found[0].starts_with(&format!("a.c:2: {mark} without an issue")));
            }
        }
    }

    #[test]
    fn names_that_say_nothing_are_found() {
        assert!(findings("crates/index/src/uncommon.rs", "").is_empty());
        for path in ["a/utils.rs", "a/common/mod.rs", "a/helpers.test.py", "misc.h", "x/util/A.java"] {
            let found = findings(path, "");
            assert_eq!(found.len(), 1, "{path}");
            assert!(found[0].contains("says nothing"));
        }
    }

    #[test]
    fn the_unsafe_keyword_stays_in_its_crates() {
        let code = "//! a\nfn f() {\n    unsafe { g() }\n}\n";
        assert!(findings("crates/kernels/src/raw.rs", code).is_empty());
        for path in ["crates/cli/src/main.rs", "fuzz/open.rs", "crates/kernels2/src/lib.rs", "kernels/lib.rs"]
        {
            let found = findings(path, code);
            assert_eq!(found.len(), 1, "{path}: {found:?}");
            assert!(found[0].starts_with(&format!("{path}:3: `unsafe` outside of kernels")));
        }
    }

    #[test]
    fn the_word_in_comments_strings_and_lint_names_is_fine() {
        let text = "//! unsafe\n#![deny(unsafe_op_in_unsafe_fn)]\nconst A: &str = \"unsafe\"; /* unsafe\nunsafe */\n";
        assert!(findings("crates/cli/src/main.rs", text).is_empty());
        assert!(findings("a.py", "unsafe = 1\n").is_empty());
    }
}
