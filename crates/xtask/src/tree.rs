//! The files of the checkout, read once: every path git does not ignore, and the text of the source files.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Languages whose files count as source.
const SOURCE_EXTENSIONS: [&str; 5] = ["rs", "c", "h", "py", "java"];

/// A source file and its text.
#[derive(Debug)]
pub(crate) struct Source {
    /// Path from the repository's root, with `/`.
    pub(crate) path: String,
    pub(crate) text: String,
}

impl Source {
    /// The part after the last dot of the name.
    pub(crate) fn extension(&self) -> &str {
        extension(&self.path)
    }
}

/// What the checks look at.
#[derive(Debug)]
pub(crate) struct Tree {
    pub(crate) root: PathBuf,
    /// Every file that git tracks or would track, sorted; links are left out.
    pub(crate) paths: Vec<String>,
    pub(crate) sources: Vec<Source>,
}

impl Tree {
    /// Reads the checkout at `root`. Fails where git cannot list it or a source file is not UTF-8.
    pub(crate) fn read(root: &Path) -> Result<Self, String> {
        let mut paths = git_files(root)?;
        paths.retain(|path| fs::symlink_metadata(root.join(path)).is_ok_and(|m| m.is_file()));
        paths.sort();
        paths.dedup();
        let sources = paths
            .iter()
            .filter(|path| SOURCE_EXTENSIONS.contains(&extension(path)))
            .map(|path| {
                let bytes = fs::read(root.join(path)).map_err(|e| format!("cannot read {path}: {e}"))?;
                let text =
                    String::from_utf8(bytes).map_err(|e| format!("{path} is not UTF-8 ({e}): convert it"))?;
                Ok(Source { path: path.clone(), text })
            })
            .collect::<Result<_, String>>()?;
        Ok(Self { root: root.to_path_buf(), paths, sources })
    }

    /// The paths with one of these extensions, in order.
    pub(crate) fn with_extensions(&self, extensions: &[&str]) -> Vec<&str> {
        self.paths.iter().map(String::as_str).filter(|path| extensions.contains(&extension(path))).collect()
    }
}

fn extension(path: &str) -> &str {
    Path::new(path).extension().and_then(|e| e.to_str()).unwrap_or("")
}

fn git_files(root: &Path) -> Result<Vec<String>, String> {
    let output = Command::new("git")
        .arg("-C")
        .arg(root)
        // A container often runs as another user than the checkout's owner; git refuses such a checkout by default.
        // Whoever runs tidy already builds and runs this tree's code, so there is nothing left to protect.
        .args(["-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        // Set inside git hooks, where they would point git at the hook's repository and not at `root`.
        .env_remove("GIT_DIR")
        .env_remove("GIT_WORK_TREE")
        .env_remove("GIT_INDEX_FILE")
        .output()
        .map_err(|e| format!("cannot run git ({e}): install git"))?;
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr);
        return Err(format!("git cannot list {} ({}): run this in a clone", root.display(), why.trim()));
    }
    output
        .stdout
        .split(|&byte| byte == 0)
        .filter(|path| !path.is_empty())
        .map(|path| match std::str::from_utf8(path) {
            Ok(path) => Ok(path.to_string()),
            Err(_) => Err(format!("file name {:?} is not UTF-8: rename it", String::from_utf8_lossy(path))),
        })
        .collect()
}

/// A throw-away repository holding `files` (path, text), for the checks' tests.
#[cfg(test)]
pub(crate) fn temporary(files: &[(&str, &str)]) -> (tempfile::TempDir, Tree) {
    let folder = tempfile::tempdir().unwrap();
    let made = Command::new("git")
        .args(["init", "--quiet"])
        .arg(folder.path())
        .env_remove("GIT_DIR")
        .env_remove("GIT_WORK_TREE")
        .env_remove("GIT_INDEX_FILE")
        .status();
    assert!(made.unwrap().success());
    for (path, text) in files {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let tree = Tree::read(folder.path()).unwrap();
    (folder, tree)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_files_are_left_out_and_only_source_is_read() {
        let (_folder, tree) = temporary(&[
            (".gitignore", "/target/\n"),
            ("target/debug/made.rs", "//! made\n"),
            ("crates/a/src/lib.rs", "//! a\n"),
            ("docs/a b.md", "text"),
        ]);
        assert_eq!(tree.paths, [".gitignore", "crates/a/src/lib.rs", "docs/a b.md"]);
        assert_eq!(tree.sources.len(), 1);
        assert_eq!((tree.sources[0].text.as_str(), tree.sources[0].extension()), ("//! a\n", "rs"));
        assert_eq!(tree.with_extensions(&["md"]), ["docs/a b.md"]);
    }

    #[test]
    #[cfg(unix)]
    fn links_are_left_out() {
        let (folder, _) = temporary(&[("a.rs", "//! a\n")]);
        std::os::unix::fs::symlink("a.rs", folder.path().join("b.rs")).unwrap();
        std::os::unix::fs::symlink("/", folder.path().join("c.rs")).unwrap();
        assert_eq!(Tree::read(folder.path()).unwrap().paths, ["a.rs"]);
    }

    #[test]
    fn a_source_file_that_is_not_text_is_named() {
        let (folder, _) = temporary(&[("a.c", "// a\n")]);
        fs::write(folder.path().join("a.c"), [b'/', b'/', 0xff]).unwrap();
        assert!(Tree::read(folder.path()).unwrap_err().contains("a.c is not UTF-8"));
    }

    #[test]
    fn a_folder_that_is_no_repository_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        assert!(Tree::read(folder.path()).unwrap_err().contains("run this in a clone"));
    }
}
