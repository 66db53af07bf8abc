//! Each source file opens by saying what it is: its first line of content is a comment or a docstring with words in it.

use crate::finding::Finding;
use crate::tree::{Source, Tree};

/// Finds the source files that start with code. Empty files (Python's package markers) have nothing to explain.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let silent = tree.sources.iter().filter(|source| !opens_with_words(source));
    silent
        .map(|source| {
            Finding::new(&source.path, 1, "does not say what it is: open it with a comment that does")
        })
        .collect()
}

fn opens_with_words(source: &Source) -> bool {
    // A byte order mark, a shebang and a licence tag say nothing about what the file is.
    let text = source.text.trim_start_matches('\u{feff}');
    let mut lines = text.lines().map(str::trim).filter(|line| {
        !line.is_empty() && !line.starts_with("#!/") && !line.contains("SPDX-License-Identifier")
    });
    let Some(first) = lines.next() else { return true };
    let openers: &[&str] = match source.extension() {
        "py" => &["r\"\"\"", "\"\"\"", "'''", "#"],
        _ => &["//", "/*"],
    };
    let Some(opener) = openers.iter().find(|opener| first.starts_with(**opener)) else { return false };
    let has_words = |line: &str| line.chars().any(char::is_alphabetic);
    // A block may put its words on the line after the opener.
    let block = !matches!(*opener, "//" | "#");
    has_words(&first[opener.len()..]) || (block && lines.next().is_some_and(has_words))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::temporary;

    fn passes(name: &str, text: &str) -> bool {
        let (_folder, tree) = temporary(&[(name, text)]);
        assert_eq!(tree.sources.len(), 1);
        let found = check(&tree);
        assert!(
            found.iter().all(|f| f.to_string().starts_with(&format!("{name}:1: does not say"))),
            "{found:?}"
        );
        found.is_empty()
    }

    #[test]
    fn files_that_open_with_a_comment_pass() {
        assert!(passes("a.rs", "//! Reads logs.\nfn f() {}\n"));
        assert!(passes("a.rs", "\n\n/* Reads logs. */\n"));
        assert!(passes("a.c", "/*\n * Dot products.\n */\n"));
        assert!(passes("a.h", "// SPDX-License-Identifier: Apache-2.0\n// Dot products.\n"));
        assert!(passes("a.java", "/** Scores vectors. */\nclass A {}\n"));
        assert!(passes("a.py", "#!/usr/bin/env python3\n\"\"\"Parses glosses.\"\"\"\n"));
        assert!(passes("a.py", "\"\"\"\nParses glosses.\n\"\"\"\n"));
        assert!(passes("a.py", "# Parses glosses.\n"));
        assert!(passes("__init__.py", ""));
    }

    #[test]
    fn files_that_open_with_code_or_an_empty_comment_are_found() {
        assert!(!passes("a.rs", "fn f() {}\n//! Too late.\n"));
        assert!(!passes("a.rs", "//\nfn f() {}\n"));
        assert!(!passes("a.rs", "#![no_std]\n"));
        assert!(!passes("a.c", "#include <stdint.h>\n"));
        assert!(!passes("a.h", "// SPDX-License-Identifier: Apache-2.0\n#pragma once\n"));
        assert!(!passes("a.py", "#!/usr/bin/env python3\nimport os\n"));
    }
}
