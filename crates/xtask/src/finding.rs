//! What a check reports: a place, what is wrong there, and the remedy.

use std::fmt;

/// One broken rule. Sorts by place, so that the report reads in file order.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    /// Path from the repository's root, with `/`.
    pub(crate) path: String,
    /// Counted from 1.
    pub(crate) line: usize,
    /// What is wrong and what to do about it, in one line.
    pub(crate) text: String,
}

impl Finding {
    pub(crate) fn new(path: impl Into<String>, line: usize, text: impl Into<String>) -> Self {
        Self { path: path.into(), line, text: text.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_reads_as_editors_expect_and_sorts_by_place() {
        let late = Finding::new("a.rs", 10, "x");
        let early = Finding::new("a.rs", 9, "y");
        assert_eq!(late.to_string(), "a.rs:10: x");
        assert!(early < late);
    }
}
