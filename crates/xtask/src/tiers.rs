//! The direction of dependencies between the workspace's crates.
//!
//! A crate uses crates of lower tiers only. The table below is the one place that says which crate is in which tier;
//! cargo says what each crate really uses.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::finding::Finding;

/// The tiers, innermost first; a crate goes by its folder's name under `crates/`. Crates of one tier do not use each
/// other.
const TIERS: [&[&str]; 4] = [
    &["kernels", "topology"],
    &["index", "scheduler", "storage"],
    &["engine"],
    &["server", "cli", "ffi", "python", "bench", "xtask"],
];

/// The exceptions inside a tier: the first may use the second.
const SIDEWAYS: [(&str, &str); 4] =
    [("python", "cli"), ("python", "bench"), ("cli", "bench"), ("cli", "server")];

/// This file, where a new crate is entered.
const HERE: &str = "crates/xtask/src/tiers.rs";

/// What cargo knows about the workspace.
#[derive(Debug)]
pub(crate) struct Workspace {
    pub(crate) root: PathBuf,
    metadata: Value,
}

impl Workspace {
    /// The workspace of the current directory.
    pub(crate) fn here() -> Result<Self, String> {
        Self::at(Path::new("."))
    }

    fn at(folder: &Path) -> Result<Self, String> {
        let output = cargo()
            .args(["metadata", "--no-deps", "--format-version", "1"])
            .current_dir(folder)
            .output()
            .map_err(|e| format!("cannot run cargo ({e}): install Rust with rustup"))?;
        if !output.status.success() {
            return Err(format!(
                "cargo metadata failed:\n{}",
                String::from_utf8_lossy(&output.stderr).trim()
            ));
        }
        let metadata: Value = serde_json::from_slice(&output.stdout)
            .map_err(|e| format!("cargo metadata did not print JSON ({e}): update Rust"))?;
        let root = PathBuf::from(text(&metadata, "workspace_root")?);
        Ok(Self { root, metadata })
    }

    /// A folder's path from the root, with `/`; none when it lies outside.
    fn relative(&self, folder: &Path) -> Option<String> {
        let inside = folder.strip_prefix(&self.root).ok()?;
        Some(inside.components().map(|c| c.as_os_str().to_string_lossy()).collect::<Vec<_>>().join("/"))
    }
}

/// The cargo that runs us, so that the pinned toolchain is kept.
pub(crate) fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// Checks every workspace crate's path dependencies against the table.
pub(crate) fn check(workspace: &Workspace) -> Result<Vec<Finding>, String> {
    let mut findings = Vec::new();
    for package in list(&workspace.metadata, "packages")? {
        let manifest = Path::new(text(package, "manifest_path")?);
        let folder = manifest.parent().and_then(|folder| workspace.relative(folder));
        let folder = folder.ok_or_else(|| format!("{} lies outside the workspace", manifest.display()))?;
        let place = if folder.is_empty() { "Cargo.toml".into() } else { format!("{folder}/Cargo.toml") };
        let Some((name, tier)) = placed(&folder) else {
            findings.push(Finding::new(
                place,
                1,
                format!("{folder:?} is in no tier: add it to TIERS in {HERE}"),
            ));
            continue;
        };
        let toml = fs::read_to_string(manifest).map_err(|e| format!("cannot read {place}: {e}"))?;
        for dependency in list(package, "dependencies")? {
            // Only path dependencies are ours; the rest come from a registry.
            let Some(path) = dependency["path"].as_str() else { continue };
            let alias = dependency["rename"].as_str().unwrap_or(text(dependency, "name")?);
            let line = line_of(&toml, alias);
            let Some(used_folder) = workspace.relative(Path::new(path)) else {
                let text =
                    format!("`{alias}` lies outside the workspace: move it in or take it from a registry");
                findings.push(Finding::new(&place, line, text));
                continue;
            };
            // A used crate outside the table is reported once, at its own manifest.
            let Some((used, used_tier)) = placed(&used_folder) else { continue };
            let dev = dependency["kind"].as_str() == Some("dev");
            if !allowed((name, tier), (used, used_tier), dev) {
                let text = format!(
                    "`{name}` (tier {tier}) must not use `{used}` (tier {used_tier}){}: move the shared part down, or \
                     turn the use round",
                    if dev { " even in tests" } else { "" }
                );
                findings.push(Finding::new(&place, line, text));
            }
        }
    }
    Ok(findings)
}

/// The rule: down always; sideways in tests or where the table says so; up never.
fn allowed((from, from_tier): (&str, usize), (to, to_tier): (&str, usize), dev: bool) -> bool {
    to_tier < from_tier || (dev && to_tier == from_tier) || SIDEWAYS.contains(&(from, to))
}

/// A crate's name and tier by its folder (`crates/NAME`).
fn placed(folder: &str) -> Option<(&str, usize)> {
    let name = folder.strip_prefix("crates/")?;
    let tier = TIERS.iter().position(|tier| tier.contains(&name))?;
    Some((name, tier))
}

/// The line that declares a dependency (`name = …`, `name.workspace = …` or `[dependencies.name]`), 1 if none does.
fn line_of(toml: &str, name: &str) -> usize {
    let declares = |line: &str| match line.trim().strip_prefix(name) {
        Some(rest) => rest.starts_with(['.', ' ', '=']),
        None => line.trim().ends_with(&format!("dependencies.{name}]")),
    };
    toml.lines().position(declares).map_or(1, |at| at + 1)
}

fn text<'a>(value: &'a Value, key: &str) -> Result<&'a str, String> {
    value[key].as_str().ok_or_else(|| format!("cargo metadata has no text `{key}`: update Rust"))
}

fn list<'a>(value: &'a Value, key: &str) -> Result<&'a Vec<Value>, String> {
    value[key].as_array().ok_or_else(|| format!("cargo metadata has no list `{key}`: update Rust"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A workspace of crates given as (folder under `crates/`, lines of its manifest after `[package]`).
    fn findings_in(crates: &[(&str, &str)]) -> Vec<Finding> {
        let folder = tempfile::tempdir().unwrap();
        fs::write(
            folder.path().join("Cargo.toml"),
            "[workspace]\nresolver = \"3\"\nmembers = [\"crates/*\"]\n",
        )
        .unwrap();
        for (name, rest) in crates {
            let src = folder.path().join("crates").join(name).join("src");
            fs::create_dir_all(&src).unwrap();
            fs::write(src.join("lib.rs"), "").unwrap();
            let toml = format!("[package]\nname = \"lw-{name}\"\nedition = \"2024\"\n{rest}");
            fs::write(src.with_file_name("Cargo.toml"), toml).unwrap();
        }
        check(&Workspace::at(folder.path()).unwrap()).unwrap()
    }

    #[test]
    fn dependencies_that_point_down_pass() {
        let found = findings_in(&[
            ("kernels", ""),
            ("index", "[dependencies]\nlw-kernels.path = \"../kernels\"\n"),
            ("engine", "[dependencies]\nlw-index.path = \"../index\"\nlw-kernels.path = \"../kernels\"\n"),
            ("bench", "[build-dependencies]\nlw-engine.path = \"../engine\"\n"),
            ("cli", "[dependencies]\nlw-bench.path = \"../bench\"\n"),
        ]);
        assert_eq!(found, []);
    }

    #[test]
    fn a_dependency_that_points_up_or_sideways_is_found_at_its_line() {
        let found = findings_in(&[
            ("kernels", "[dependencies]\n\nlw-index = { path = \"../index\" }\n"),
            ("index", ""),
            ("storage", "[dependencies.lw-index]\npath = \"../index\"\n"),
            ("bench", "[dependencies]\nlw-server.path = \"../server\"\n"),
            ("server", ""),
        ]);
        let mut places: Vec<String> = found.iter().map(Finding::to_string).collect();
        places.sort();
        assert_eq!(places.len(), 3, "{places:?}");
        assert!(
            places[0]
                .starts_with("crates/bench/Cargo.toml:5: `bench` (tier 3) must not use `server` (tier 3)")
        );
        assert!(
            places[1]
                .starts_with("crates/kernels/Cargo.toml:6: `kernels` (tier 0) must not use `index` (tier 1)")
        );
        assert!(
            places[2]
                .starts_with("crates/storage/Cargo.toml:4: `storage` (tier 1) must not use `index` (tier 1)")
        );
    }

    #[test]
    fn tests_may_use_their_own_tier_but_not_a_higher_one() {
        let sideways = "[dev-dependencies]\nlw-index.path = \"../index\"\n";
        assert_eq!(findings_in(&[("index", ""), ("storage", sideways)]), []);
        let up = "[dev-dependencies]\nlw-engine.path = \"../engine\"\n";
        let found = findings_in(&[("engine", ""), ("index", up)]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].text.contains("`engine` (tier 2) even in tests"));
    }

    #[test]
    fn a_crate_missing_from_the_table_is_found_once() {
        let found =
            findings_in(&[("novelty", ""), ("cli", "[dependencies]\nlw-novelty.path = \"../novelty\"\n")]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(
            found[0].to_string().starts_with("crates/novelty/Cargo.toml:1: \"crates/novelty\" is in no tier")
        );
    }

    #[test]
    fn a_path_outside_the_workspace_is_found() {
        let outside = tempfile::tempdir().unwrap();
        fs::create_dir(outside.path().join("src")).unwrap();
        fs::write(outside.path().join("src/lib.rs"), "").unwrap();
        fs::write(outside.path().join("Cargo.toml"), "[package]\nname = \"far\"\n[workspace]\n").unwrap();
        let dependency = format!("[dependencies]\nfar = {{ path = {:?} }}\n", outside.path());
        let found = findings_in(&[("cli", &dependency)]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(
            found[0].to_string().starts_with("crates/cli/Cargo.toml:5: `far` lies outside the workspace")
        );
    }

    #[test]
    fn the_table_names_each_crate_once_and_exceptions_stay_inside_a_tier() {
        let mut names: Vec<&str> = TIERS.iter().flat_map(|tier| tier.iter().copied()).collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
        for (from, to) in SIDEWAYS {
            let tier = |name: &str| placed(&format!("crates/{name}")).map(|(_, tier)| tier);
            assert!(tier(from).is_some() && tier(from) == tier(to), "{from} -> {to}");
            assert!(!SIDEWAYS.contains(&(to, from)), "{from} and {to} use each other");
        }
    }
}
