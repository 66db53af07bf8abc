//! Black-box tests of the `lanewise` program: what it prints, its exit codes, the files that it leaves.

mod access;
mod arguments;
mod bench;
mod build;
mod calibrate;
mod demo;
mod doctor;
mod filled;
mod first_steps;
mod import;
mod limits;
mod search;
mod serve;
mod sim;
mod tables;

use lanewise_bench::dataset::{self, Elements, Matrix};
use lanewise_bench::generate::mixture;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The program, with nothing of the tests' own environment that changes what it does.
fn lanewise() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lanewise"));
    let ours = std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("LANEWISE_"));
    for (name, _) in ours {
        command.env_remove(name);
    }
    command.stdin(Stdio::null());
    command
}

/// A folder that the program runs in, with files that the tests write.
struct Folder(tempfile::TempDir);

/// How the program ended.
struct Ended {
    code: Option<i32>,
    out: String,
    err: String,
}

impl Ended {
    fn of(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).expect("the program writes UTF-8");
        Ended { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }

    /// It did what it was asked to.
    fn ok(self) -> Self {
        assert_eq!(self.code, Some(0), "{}\n{}", self.out, self.err);
        self
    }

    /// It ended with `code` and one line of error that holds `words`; no result was printed.
    fn error(self, code: i32, words: &[&str]) {
        assert_eq!(self.code, Some(code), "{}\n{}", self.out, self.err);
        let errors: Vec<&str> = self.err.lines().filter(|line| !line.starts_with("note: ")).collect();
        let [line] = errors[..] else { panic!("not one line: {}", self.err) };
        assert!(line.starts_with("error: "), "{line}");
        for word in words {
            assert!(line.contains(word), "{word:?} is not in {line:?}");
        }
        assert_eq!(self.out, "");
    }
}

impl Folder {
    fn new() -> Self {
        Folder(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The program in this folder.
    fn command(&self, args: &[&str]) -> Command {
        let mut command = lanewise();
        command.current_dir(self.0.path()).args(args);
        command
    }

    fn run(&self, args: &str) -> Ended {
        let args: Vec<&str> = args.split(' ').filter(|arg| !arg.is_empty()).collect();
        Ended::of(self.command(&args).output().unwrap())
    }

    /// Names of the files, sorted.
    fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.0.path()).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn write(&self, name: &str, columns: usize, elements: Elements) {
        let len = match &elements {
            Elements::F32(x) => x.len(),
            Elements::I8(x) => x.len(),
            Elements::U8(x) | Elements::Bool(x) => x.len(),
            Elements::Int(x) => x.len(),
        };
        let matrix = Matrix { rows: len / columns, columns, elements, rounded: false };
        dataset::write(&self.path(name), &matrix).unwrap();
    }

    /// A folder with `x.npy` (500 × 8 floats) and `q.npy` (20 queries).
    fn with_vectors() -> Self {
        let folder = Folder::new();
        let (x, q) = mixture(8, 500, 20, 5);
        folder.write("x.npy", 8, Elements::F32(x));
        folder.write("q.npy", 8, Elements::F32(q));
        folder
    }
}

/// The ids of a file that `search -o` wrote.
fn ids(path: &Path) -> (Vec<i64>, usize) {
    dataset::read_id_rows(path).unwrap()
}
