//! Formatters and linters: rustfmt, clang-format, ruff. One that is not installed is reported as skipped, never passed
//! in silence.

use std::path::Path;
use std::process::{Command, Output};

use crate::finding::Finding;
use crate::tiers::cargo;
use crate::tree::Tree;

/// What the formatters say.
#[derive(Debug, Default)]
pub(crate) struct Formatting {
    pub(crate) findings: Vec<Finding>,
    /// Formatters that could not run, each with how to install it.
    pub(crate) skipped: Vec<String>,
}

/// A program outside of this workspace.
struct Tool {
    name: &'static str,
    /// Environment variable that holds the program's path; empty for none.
    variable: &'static str,
    /// Names under which it is looked for, in `.venv/bin` first and then in `PATH`.
    programs: &'static [&'static str],
    /// What `--version` must print: the output of another version differs. Empty for any.
    version: &'static str,
    install: &'static str,
}

const RUSTFMT: Tool = Tool {
    name: "rustfmt",
    variable: "",
    programs: &[],
    version: "",
    install: "rustup component add rustfmt",
};

const CLANG_FORMAT: Tool = Tool {
    name: "clang-format 19",
    variable: "CLANG_FORMAT",
    programs: &["clang-format-19", "clang-format"],
    version: "version 19.",
    install: "apt-get install clang-format-19, or pip install 'clang-format==19.*'",
};

const RUFF: Tool =
    Tool { name: "ruff", variable: "RUFF", programs: &["ruff"], version: "", install: "pip install ruff" };

/// A tool's work on this tree: its files, and the arguments that check and that mend them.
struct Job<'a> {
    tool: &'a Tool,
    files: Vec<&'a str>,
    check: &'static [&'static [&'static str]],
    fix: &'static [&'static [&'static str]],
}

fn jobs(tree: &Tree) -> Vec<Job<'_>> {
    let c = tree.with_extensions(&["c", "h"]).into_iter().filter(|path| path.starts_with("crates/"));
    let jobs = [
        Job {
            tool: &RUSTFMT,
            files: tree.with_extensions(&["rs"]),
            check: &[&["fmt", "--all", "--check"]],
            fix: &[&["fmt", "--all"]],
        },
        Job {
            tool: &CLANG_FORMAT,
            files: c.collect(),
            check: &[&["--dry-run", "--Werror"]],
            fix: &[&["-i"]],
        },
        Job {
            tool: &RUFF,
            files: tree.with_extensions(&["py", "pyi"]),
            check: &[
                &["format", "--check", "--no-cache", "--force-exclude"],
                &["check", "--no-cache", "--force-exclude"],
            ],
            fix: &[
                &["check", "--fix", "--no-cache", "--force-exclude"],
                &["format", "--no-cache", "--force-exclude"],
            ],
        },
    ];
    jobs.into_iter().filter(|job| !job.files.is_empty()).collect()
}

/// Asks every formatter what it would change.
pub(crate) fn check(tree: &Tree) -> Result<Formatting, String> {
    ask(tree, jobs(tree))
}

fn ask(tree: &Tree, jobs: Vec<Job<'_>>) -> Result<Formatting, String> {
    let mut formatting = Formatting::default();
    for job in jobs {
        let Some(program) = job.tool.find(&tree.root)? else {
            formatting.skipped.push(format!("{} ({})", job.tool.name, job.tool.install));
            continue;
        };
        for arguments in job.check {
            let output = job.run(&program, arguments, &tree.root)?;
            formatting.findings.extend(job.findings(&output, tree));
        }
    }
    formatting.findings.sort();
    formatting.findings.dedup();
    Ok(formatting)
}

/// Runs every formatter that is there in write mode. What it cannot mend is left to [`check`].
pub(crate) fn fix(tree: &Tree) -> Result<(), String> {
    for job in jobs(tree) {
        if let Some(program) = job.tool.find(&tree.root)? {
            for arguments in job.fix {
                job.run(&program, arguments, &tree.root)?;
            }
        }
    }
    Ok(())
}

impl Tool {
    /// The program to run, or none when it is not installed. A path given by hand must work.
    fn find(&self, root: &Path) -> Result<Option<String>, String> {
        if self.programs.is_empty() {
            let works = cargo().args(["fmt", "--version"]).output().is_ok_and(|o| o.status.success());
            return Ok(works.then(|| cargo().get_program().to_string_lossy().into_owned()));
        }
        if let Some(given) = std::env::var_os(self.variable) {
            let given = given.to_string_lossy().into_owned();
            return match self.answers(&given) {
                true => Ok(Some(given)),
                false => Err(format!("{}={given} is not {}: correct or unset it", self.variable, self.name)),
            };
        }
        let private =
            self.programs.iter().map(|name| root.join(".venv/bin").join(name).to_string_lossy().into_owned());
        let public = self.programs.iter().map(|name| (*name).to_string());
        Ok(private.chain(public).find(|program| self.answers(program)))
    }

    fn answers(&self, program: &str) -> bool {
        let output = Command::new(program).arg("--version").output();
        output.is_ok_and(|o| o.status.success() && String::from_utf8_lossy(&o.stdout).contains(self.version))
    }
}

impl Job<'_> {
    fn run(&self, program: &str, arguments: &[&str], root: &Path) -> Result<Output, String> {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(root).env("RUFF_OUTPUT_FORMAT", "concise").env("NO_COLOR", "1");
        // cargo finds its files itself.
        if !self.tool.programs.is_empty() {
            command.args(&self.files);
        }
        command.output().map_err(|e| format!("cannot run {program}: {e}"))
    }

    /// One finding per complaint of a linter, one per file of a formatter.
    fn findings(&self, output: &Output, tree: &Tree) -> Vec<Finding> {
        if output.status.success() {
            return Vec::new();
        }
        let said = format!(
            "{}\n{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
        let mut findings: Vec<Finding> = Vec::new();
        for line in said.lines() {
            let Some((path, line, complaint)) = place(line, tree) else { continue };
            let is_lint =
                self.tool.name == RUFF.name && !complaint.is_empty() && !complaint.starts_with("unformatted");
            let text = match is_lint {
                true => format!("ruff: {complaint}"),
                false => {
                    format!("not as {} writes it: run `cargo run -p xtask -- tidy --fix`", self.tool.name)
                }
            };
            if is_lint || !findings.iter().any(|f| f.path == path && f.text == text) {
                findings.push(Finding::new(path, line, text));
            }
        }
        if findings.is_empty() {
            // It failed without naming a file: a broken configuration, say.
            let why = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("no reason given");
            findings.push(Finding::new(
                self.files[0],
                1,
                format!("{} failed: {}", self.tool.name, why.trim()),
            ));
        }
        findings
    }
}

/// Reads `PATH:LINE:COLUMN: COMPLAINT`, the line and what follows it being optional, behind any of the words that the
/// tools put before it. None when it names no file of the tree.
fn place(said: &str, tree: &Tree) -> Option<(String, usize, String)> {
    let said = said.trim_start();
    let said = ["Diff in ", "--> ", "Would reformat: ", "error: Failed to parse "]
        .iter()
        .find_map(|prefix| said.strip_prefix(prefix))
        .unwrap_or(said);
    let mut parts = said.splitn(4, ':');
    let path = Path::new(parts.next()?);
    let path = path.strip_prefix(&tree.root).unwrap_or(path).to_str()?;
    tree.paths.iter().find(|known| *known == path)?;
    let line = parts.next().and_then(|line| line.parse().ok()).unwrap_or(1);
    Some((path.into(), line, parts.nth(1).unwrap_or("").trim().into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::temporary;

    const MANIFEST: (&str, &str) = ("Cargo.toml", "[package]\nname = \"tiny\"\nedition = \"2024\"\n");
    const STYLE: (&str, &str) = (".clang-format", "BasedOnStyle: LLVM\n");

    /// What formatting says about a file; none when its formatter is not installed on this machine.
    fn said(tool: &Tool, path: &str, text: &str) -> Option<Vec<String>> {
        let (_folder, tree) = temporary(&[MANIFEST, STYLE, (path, text)]);
        let formatting = check(&tree).unwrap();
        if tool.find(&tree.root).unwrap().is_none() {
            assert_eq!(formatting.skipped, [format!("{} ({})", tool.name, tool.install)]);
            return None;
        }
        assert!(formatting.skipped.is_empty(), "{:?}", formatting.skipped);
        Some(formatting.findings.iter().map(Finding::to_string).collect())
    }

    #[test]
    fn rust_is_checked_by_rustfmt() {
        let Some(found) = said(&RUSTFMT, "src/lib.rs", "//! a\n\nfn  f(){}\nfn  g(){}\n") else { return };
        assert_eq!(found, ["src/lib.rs:1: not as rustfmt writes it: run `cargo run -p xtask -- tidy --fix`"]);
        assert_eq!(said(&RUSTFMT, "src/lib.rs", "//! a\n\nfn f() {}\n").unwrap(), [""; 0]);
        let broken = said(&RUSTFMT, "src/lib.rs", "//! a\nfn f( {\n").unwrap();
        assert!(broken[0].starts_with("src/lib.rs:2:"), "{broken:?}");
    }

    #[test]
    fn c_under_crates_is_checked_by_clang_format() {
        let Some(found) = said(&CLANG_FORMAT, "crates/a/a.c", "// a\nint  a;\nint  b;\n") else { return };
        assert_eq!(
            found,
            ["crates/a/a.c:2: not as clang-format 19 writes it: run `cargo run -p xtask -- tidy --fix`"]
        );
        assert_eq!(said(&CLANG_FORMAT, "crates/a/a.c", "// a\nint a;\n").unwrap(), [""; 0]);
        let (_folder, elsewhere) = temporary(&[("elsewhere/a.c", "int  a;\n")]);
        assert!(check(&elsewhere).unwrap().findings.is_empty());
    }

    #[test]
    fn python_is_checked_by_ruff() {
        let Some(found) = said(&RUFF, "a.py", "\"\"\"a\"\"\"\n\nx = {  }\n") else { return };
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("a.py:") && found[0].contains("not as ruff writes it"), "{found:?}");
        let lint = said(&RUFF, "a.py", "\"\"\"a\"\"\"\n\nprint(f\"none\", undefined)\n").unwrap();
        assert!(lint.iter().any(|f| f.starts_with("a.py:3: ruff: F821")), "{lint:?}");
        assert_eq!(said(&RUFF, "a.py", "\"\"\"a\"\"\"\n\nx = {}\n").unwrap(), [""; 0]);
    }

    #[test]
    fn fix_leaves_nothing_to_find() {
        let files =
            [MANIFEST, STYLE, ("src/lib.rs", "//! a\nfn  f(){}\n"), ("crates/a/a.c", "// a\nint  a;\n")];
        let (_folder, tree) = temporary(&files);
        let before = check(&tree).unwrap();
        assert_eq!(before.findings.len() + before.skipped.len(), 2);
        fix(&tree).unwrap();
        assert_eq!(check(&tree).unwrap().findings, []);
    }

    #[test]
    fn a_tool_that_is_not_there_is_skipped_and_other_versions_do_not_count() {
        let root = Path::new("/");
        let absent = Tool { programs: &["no-such-formatter"], variable: "LANEWISE_NO_SUCH", ..CLANG_FORMAT };
        assert_eq!(absent.find(root), Ok(None));
        let (_folder, tree) = temporary(&[("crates/a/a.c", "int  a;\n")]);
        let asked =
            ask(&tree, vec![Job { tool: &absent, files: vec!["crates/a/a.c"], check: &[&["-n"]], fix: &[] }]);
        let Formatting { findings, skipped } = asked.unwrap();
        assert_eq!((findings.len(), skipped), (0, vec![format!("{} ({})", absent.name, absent.install)]));
        let git = Tool { programs: &["git"], version: "git version", ..absent };
        assert_eq!(git.find(root), Ok(Some("git".into())));
        assert_eq!(Tool { version: "git version 0.", ..git }.find(root), Ok(None));
        // A path given by hand must work: `PATH` is set, and is no program.
        let given = Tool { variable: "PATH", ..CLANG_FORMAT };
        assert!(given.find(root).unwrap_err().contains("is not clang-format 19: correct or unset it"));
    }

    #[test]
    fn places_are_read_in_every_tool_s_way_of_writing() {
        let (_folder, tree) = temporary(&[("a b.py", "")]);
        let absolute = format!("Diff in {}/a b.py:7:", tree.root.display());
        for (said, line, complaint) in [
            ("a b.py:7:1: E1 why: so", 7, "E1 why: so"),
            ("Would reformat: a b.py", 1, ""),
            ("error: Failed to parse a b.py:3:2: what", 3, "what"),
            ("   --> a b.py:2:9", 2, ""),
            (absolute.as_str(), 7, ""),
            ("a b.py:999999999999999999999999:1: x", 1, "x"),
        ] {
            assert_eq!(place(said, &tree), Some(("a b.py".into(), line, complaint.into())), "{said}");
        }
        assert_eq!(place("other.py:1:1: x", &tree), None);
        assert_eq!(place("1 file would be reformatted", &tree), None);
        assert_eq!(place("", &tree), None);
    }
}
