//! The repository's chores: `tidy` checks what reviewers should not have to, `codegen` writes generated files.
//!
//! Each check is a function from a [`Tree`] (the files of the checkout, read once) to [`Finding`]s, so it is tested
//! on a tiny tree; only `format`, `codegen` and `tiers` run other programs or write.

mod codegen;
mod finding;
mod format;
mod headings;
mod kernel_header;
mod kernel_table;
mod phrases;
mod rust_code;
mod size;
mod tiers;
mod tree;

use std::io::{self, Write};
use std::process::ExitCode;

use finding::Finding;
use tiers::Workspace;
use tree::Tree;

const USAGE: &str = "usage: cargo run -p xtask -- COMMAND

  tidy               check tiers, file sizes, headings, phrases, generated files and formatting; exit 1 on a finding
  tidy --fix         first write the generated files and run the formatters over the tree
  codegen            write the generated files
  codegen --check    only say which generated files are stale; exit 1 if any is";

#[derive(Debug, PartialEq)]
enum Command {
    Tidy { fix: bool },
    Codegen { check: bool },
    Help,
}

fn parse(args: &[String]) -> Result<Command, String> {
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["tidy"] => Ok(Command::Tidy { fix: false }),
        ["tidy", "--fix"] => Ok(Command::Tidy { fix: true }),
        ["codegen"] => Ok(Command::Codegen { check: false }),
        ["codegen", "--check"] => Ok(Command::Codegen { check: true }),
        ["help" | "--help" | "-h"] => Ok(Command::Help),
        [] => Err("no command given".into()),
        _ => Err(format!("unknown arguments `{}`", args.join(" "))),
    }
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let done = match parse(&args) {
        Ok(Command::Tidy { fix }) => tidy(fix),
        Ok(Command::Codegen { check }) => codegen(check),
        Ok(Command::Help) => say(&[USAGE.into()]).map(|()| true),
        Err(why) => {
            eprintln!("xtask: {why}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("xtask: {why}");
            ExitCode::from(2)
        }
    }
}

/// Runs every check, prints findings and a last line that counts them; true when there are none.
fn tidy(fix: bool) -> Result<bool, String> {
    let workspace = Workspace::here()?;
    if fix {
        codegen::write(&workspace.root)?;
        let tree = Tree::read(&workspace.root)?;
        format::fix(&tree)?;
    }
    let tree = Tree::read(&workspace.root)?;
    let formatting = format::check(&tree)?;
    let mut findings = tiers::check(&workspace)?;
    findings.extend(size::check(&tree)?);
    findings.extend(headings::check(&tree));
    findings.extend(phrases::check(&tree));
    findings.extend(codegen::check(&workspace.root)?);
    findings.extend(formatting.findings);
    findings.sort();

    let mut lines: Vec<String> = findings.iter().map(Finding::to_string).collect();
    lines.extend(formatting.skipped.iter().map(|what| format!("skipped: {what}")));
    lines.push(format!(
        "tidy: {}, {} skipped, {} source files",
        count(findings.len()),
        formatting.skipped.len(),
        tree.sources.len()
    ));
    say(&lines)?;
    Ok(findings.is_empty())
}

/// Writes the generated files, or with `check` only reports the stale ones; true when nothing is left stale.
fn codegen(check: bool) -> Result<bool, String> {
    let root = Workspace::here()?.root;
    if check {
        let findings = codegen::check(&root)?;
        let mut lines: Vec<String> = findings.iter().map(Finding::to_string).collect();
        lines.push(format!("codegen: {}", count(findings.len())));
        say(&lines)?;
        return Ok(findings.is_empty());
    }
    let written = codegen::write(&root)?;
    let mut lines: Vec<String> = written.iter().map(|path| format!("wrote {path}")).collect();
    lines.push(format!("codegen: {} written, the rest up to date", written.len()));
    say(&lines)?;
    Ok(true)
}

fn count(findings: usize) -> String {
    match findings {
        0 => "no findings".into(),
        1 => "1 finding".into(),
        n => format!("{n} findings"),
    }
}

fn say(lines: &[String]) -> Result<(), String> {
    let mut out = io::stdout().lock();
    match lines.iter().try_for_each(|line| writeln!(out, "{line}")) {
        // The reader (`| head`) has what it wanted; the exit status still tells the verdict.
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other.map_err(|e| format!("cannot write to standard output: {e}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(args: &[&str]) -> Result<Command, String> {
        parse(&args.iter().map(|a| (*a).to_string()).collect::<Vec<_>>())
    }

    #[test]
    fn commands_are_read_and_anything_else_is_refused() {
        assert_eq!(parsed(&["tidy"]), Ok(Command::Tidy { fix: false }));
        assert_eq!(parsed(&["tidy", "--fix"]), Ok(Command::Tidy { fix: true }));
        assert_eq!(parsed(&["codegen", "--check"]), Ok(Command::Codegen { check: true }));
        assert_eq!(parsed(&["codegen"]), Ok(Command::Codegen { check: false }));
        assert!(parsed(&[]).is_err());
        assert!(parsed(&["tidy", "--check"]).unwrap_err().contains("tidy --check"));
    }
}
