//! Reads C's X-macro lists: `#define NAME(X) X(a, b) X(c, d) …`, over as many continued lines as it likes.

use crate::finding::Finding;

/// One `X(…)`.
#[derive(Debug, PartialEq)]
pub(crate) struct Row {
    /// Line of the file that the row starts on, counted from 1.
    pub(crate) line: usize,
    /// The arguments, trimmed, line breaks within them turned into spaces.
    pub(crate) arguments: Vec<String>,
}

/// One list.
#[derive(Debug)]
pub(crate) struct List {
    pub(crate) name: String,
    pub(crate) rows: Vec<Row>,
}

/// Every list of a file, in order. Defines with another parameter than `X`, and those that only join other lists, are
/// left out.
pub(crate) fn lists(path: &str, text: &str) -> Result<Vec<List>, Finding> {
    let mut lists = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((index, line)) = lines.next() {
        let define = line.strip_prefix("#define ").and_then(|rest| rest.split_once("(X)"));
        let Some((name, body)) = define else { continue };
        // The macro's body with its line breaks, so that rows keep their line numbers.
        let mut body = body.to_string();
        while body.ends_with('\\') {
            body.pop();
            body.push('\n');
            body.push_str(lines.next().map_or("", |(_, next)| next));
        }
        let rows = rows(path, &body, index + 1)?;
        if !rows.is_empty() {
            lists.push(List { name: name.trim().into(), rows });
        }
    }
    Ok(lists)
}

fn rows(path: &str, body: &str, first_line: usize) -> Result<Vec<Row>, Finding> {
    let mut rows = Vec::new();
    let mut rest = 0;
    while let Some(at) = body[rest..].find("X(").map(|at| rest + at) {
        rest = at + 2;
        // `X` may be the end of a longer name.
        if body[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_') {
            continue;
        }
        let line = first_line + body[..at].matches('\n').count();
        let Some(length) = body[rest..].find(['(', ')']).filter(|end| body[rest + end..].starts_with(')'))
        else {
            let text = "cannot read this row: write `X(a, b, …)` without parentheses inside";
            return Err(Finding::new(path, line, text));
        };
        let arguments = body[rest..rest + length].split(',');
        let arguments = arguments.map(|a| a.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        rows.push(Row { line, arguments });
        rest += length + 1;
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_read_with_their_lines() {
        let text = "/* X(not, this) */\n#define A(X) X(a, 1) \\\n    X(b, \\\n      P | Q)\n#define B(X) A(X) C(X)\n\n\
                    #define F(Y) X(no)\n#define C(X) \\\n    MAX(no) X(\"c\")\n";
        let lists = lists("l.h", text).unwrap();
        let names: Vec<&str> = lists.iter().map(|list| list.name.as_str()).collect();
        assert_eq!(names, ["A", "C"]);
        let row = |line, arguments: &[&str]| Row {
            line,
            arguments: arguments.iter().map(|a| (*a).into()).collect(),
        };
        assert_eq!(lists[0].rows, [row(2, &["a", "1"]), row(3, &["b", "P | Q"])]);
        assert_eq!(lists[1].rows, [row(9, &["\"c\""])]);
    }

    #[test]
    fn a_row_that_cannot_be_read_is_found_at_its_line() {
        for text in ["#define A(X) X(a) \\\n X(b", "#define A(X) X(a) \\\n X(f(b), c)"] {
            let finding = lists("l.h", text).unwrap_err();
            assert!(finding.to_string().starts_with("l.h:2: cannot read this row"), "{finding}");
        }
        assert!(lists("l.h", "#define A(X) \\").unwrap().is_empty());
    }
}
