//! Generated files: which there are, whether they are up to date, and writing them.
//!
//! A generator is a function from the repository's root to the file's whole text. Documents mix generated sections with
//! hand-written text; [`splice`] replaces a section and leaves the rest alone.

use std::fs;
use std::path::Path;

use crate::finding::Finding;
use crate::{kernel_header, kernel_table};

struct Generated {
    path: &'static str,
    /// The text that belongs into the file, or why there is none.
    text: fn(&Path) -> Result<String, Finding>,
}

const GENERATED: [Generated; 2] = [
    Generated { path: kernel_table::DOCUMENT, text: kernel_table::document },
    Generated { path: kernel_header::HEADER, text: kernel_header::header },
];

const REMEDY: &str = "run `cargo run -p xtask -- codegen`";

/// Finds the generated files that differ from what their generator makes.
pub(crate) fn check(root: &Path) -> Result<Vec<Finding>, String> {
    let mut findings = Vec::new();
    for generated in &GENERATED {
        match (generated.text)(root) {
            Ok(text) => findings.extend(stale(root, generated.path, &text)?),
            Err(finding) => findings.push(finding),
        }
    }
    Ok(findings)
}

/// Writes the generated files that are not up to date and returns their paths.
pub(crate) fn write(root: &Path) -> Result<Vec<&'static str>, String> {
    let mut written = Vec::new();
    for generated in &GENERATED {
        let text = (generated.text)(root).map_err(|finding| finding.to_string())?;
        if stale(root, generated.path, &text)?.is_some() {
            fs::write(root.join(generated.path), text)
                .map_err(|e| format!("cannot write {}: {e}", generated.path))?;
            written.push(generated.path);
        }
    }
    Ok(written)
}

fn stale(root: &Path, path: &str, text: &str) -> Result<Option<Finding>, String> {
    let there = match fs::read_to_string(root.join(path)) {
        Ok(there) => there,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            return Ok(Some(Finding::new(path, 1, format!("generated, but not there: {REMEDY}"))));
        }
        Err(e) => return Err(format!("cannot read {path}: {e}")),
    };
    if there == text {
        return Ok(None);
    }
    let same = there.lines().zip(text.lines()).take_while(|(a, b)| a == b).count();
    Ok(Some(Finding::new(path, same + 1, format!("differs from what it is generated from: {REMEDY}"))))
}

/// Replaces what stands between the line `<!-- generated: SECTION … -->` and the next line `<!-- end -->`. In C the marks
/// stand behind `// `.
pub(crate) fn splice(path: &str, text: &str, section: &str, body: &str) -> Result<String, Finding> {
    const OPEN: &str = "<!-- generated: ";
    const CLOSE: &str = "<!-- end -->";
    let lines: Vec<&str> = text.lines().collect();
    fn mark(line: &str) -> &str {
        line.strip_prefix("// ").unwrap_or(line)
    }
    let opens = |line: &&str| {
        mark(line).strip_prefix(OPEN).is_some_and(|rest| rest.split_whitespace().next() == Some(section))
    };
    let Some(open) = lines.iter().position(opens) else {
        let text =
            format!("has no section `{section}`: put `{OPEN}{section} -->` and `{CLOSE}` where it belongs");
        return Err(Finding::new(path, 1, text));
    };
    if let Some(again) = lines[open + 1..].iter().position(opens) {
        let text = format!("a second section `{section}`: keep one");
        return Err(Finding::new(path, open + again + 2, text));
    }
    let length =
        lines[open + 1..].iter().position(|line| mark(line) == CLOSE || mark(line).starts_with(OPEN));
    let Some(length) = length.filter(|length| mark(lines[open + 1 + length]) == CLOSE) else {
        let text = format!("section `{section}` is not closed: put `{CLOSE}` on the line after it");
        return Err(Finding::new(path, open + 1, text));
    };
    let (before, after) = (&lines[..=open], &lines[open + 1 + length..]);
    Ok(format!("{}\n{}\n{}\n", before.join("\n"), body.trim_end(), after.join("\n")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_is_replaced_and_the_rest_is_left() {
        let text = "# A\n<!-- generated: one from x -->\nold\n<!-- end -->\nb\n<!-- generated: two -->\n<!-- end -->\n";
        let once = splice("a.md", text, "one", "new\n").unwrap();
        let twice = splice("a.md", &once, "two", "more").unwrap();
        assert_eq!(
            twice,
            "# A\n<!-- generated: one from x -->\nnew\n<!-- end -->\nb\n<!-- generated: two -->\nmore\n<!-- end -->\n"
        );
        assert_eq!(splice("a.md", &twice, "one", "new").unwrap(), twice);
    }

    #[test]
    fn broken_markers_are_found_and_nothing_is_replaced() {
        let place = |text: &str| splice("a.md", text, "one", "new").unwrap_err().to_string();
        assert!(place("# A\n").starts_with("a.md:1: has no section `one`"));
        assert!(
            place("# A\n<!-- generated: one -->\nold\n").starts_with("a.md:2: section `one` is not closed")
        );
        let twice = "<!-- generated: one -->\n<!-- end -->\n<!-- generated: one -->\n<!-- end -->\n";
        assert!(place(twice).starts_with("a.md:3: a second section"));
        let nested = "<!-- generated: one -->\n<!-- generated: two -->\n<!-- end -->\n";
        assert!(place(nested).starts_with("a.md:1: section `one` is not closed"));
    }

    #[test]
    fn a_stale_file_is_found_at_its_first_different_line() {
        let folder = tempfile::tempdir().unwrap();
        let said = |text: &str| stale(folder.path(), "a.md", text).unwrap().map(|f| f.to_string());
        assert!(said("x\n").unwrap().starts_with("a.md:1: generated, but not there: run `cargo run"));
        fs::write(folder.path().join("a.md"), "x\ny\n").unwrap();
        assert_eq!(said("x\ny\n"), None);
        assert!(said("x\nz\n").unwrap().starts_with("a.md:2: differs"));
        assert!(said("x\ny\nz\n").unwrap().starts_with("a.md:3: differs"));
        assert!(said("x\ny").is_some());
    }
}
