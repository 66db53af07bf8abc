//! `lanewise snapshot` and `lanewise snapshots`: tables into a repository, and what is in one.

use crate::arguments::ThreadsArgument;
use crate::check::{open, watched};
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::table as markdown;
use crate::tables::opened;
use lanewise_engine::table::Repository;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Save a table as it is now into a repository of snapshots
#[derive(clap::Args)]
pub(crate) struct Snapshot {
    /// The table's folder; nobody else may have it open
    folder: PathBuf,
    /// The repository's folder, which is made if it is not there
    repository: PathBuf,
    /// The snapshot's name: letters, digits, `.`, `_`, `-`
    name: String,
    #[command(flatten)]
    threads: ThreadsArgument,
}

impl Snapshot {
    pub(crate) fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let named = |path: &Path, what: String| Failure::Failed(format!("{}: {what}", path.display()));
        let (from, to) = (self.folder.canonicalize(), std::path::absolute(&self.repository));
        if let (Ok(from), Ok(to)) = (from, to)
            && to.starts_with(from)
        {
            let what = "it lies in the table's own folder: name another".to_owned();
            return Err(Failure::Usage(format!("{}: {what}", self.repository.display())));
        }
        let table = opened(&self.folder, self.threads.threads())?;
        std::fs::create_dir_all(&self.repository)
            .map_err(|error| named(&self.repository, error.to_string()))?;
        let repository = Repository::new(open(&self.repository)?);
        let interrupt = Interrupt::listen();
        #[expect(clippy::disallowed_methods, reason = "an edge of the system")]
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64);
        let made = watched("saving", &interrupt, |go| table.snapshot(&repository, &self.name, now, go));
        interrupt.check(|| "interrupted: no snapshot was made".to_owned())?;
        let made = made.map_err(|error| named(&self.repository, error.to_string()))?;
        let shared = made.bytes - made.copied.min(made.bytes);
        writeln!(
            out,
            "{}: {} documents in {} segments, {} bytes copied, {shared} bytes were there",
            made.name, made.documents, made.segments, made.copied
        )?;
        Ok(())
    }
}

/// List the snapshots of a repository
#[derive(clap::Args)]
pub(crate) struct Snapshots {
    /// The repository's folder
    repository: PathBuf,
    /// Read all files of each, and compare their checksums
    #[arg(long)]
    verify: bool,
    /// Write them as JSON, a line each
    #[arg(long)]
    json: bool,
    /// Delete the snapshot of this name
    #[arg(long, value_name = "NAME", conflicts_with_all = ["verify", "json"])]
    delete: Option<String>,
}

impl Snapshots {
    pub(crate) fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let failed = |what: String| Failure::Failed(format!("{}: {what}", self.repository.display()));
        let repository = Repository::new(open(&self.repository)?);
        if let Some(name) = &self.delete {
            return repository.delete(name).map_err(|error| failed(error.to_string()));
        }
        let interrupt = Interrupt::listen();
        let (mut rows, mut wrong) = (Vec::new(), 0);
        for (name, read) in repository.list().map_err(|error| failed(error.to_string()))? {
            let snapshot = match read {
                Ok(snapshot) => snapshot,
                Err(error) => {
                    crate::say(format_args!("note: {name}: {error}"));
                    wrong += 1;
                    continue;
                }
            };
            if self.verify {
                let found = watched("verifying", &interrupt, |go| repository.verify(&name, go));
                interrupt.check(|| "interrupted: not all were verified".to_owned())?;
                for finding in found.map_err(|error| failed(error.to_string()))? {
                    crate::say(format_args!("note: {name}: {}", finding.what));
                    wrong += 1;
                }
            }
            if self.json {
                writeln!(out, "{}", serde_json::to_string(&snapshot).map_err(std::io::Error::from)?)?;
            } else {
                let seconds = (snapshot.created_ms / 1000).to_string();
                let numbers =
                    [snapshot.documents, snapshot.segments as u64, snapshot.bytes].map(|n| n.to_string());
                rows.push([vec![name, seconds], numbers.to_vec()].concat());
            }
        }
        if !self.json {
            let head = ["snapshot", "made (s since 1970)", "documents", "segments", "bytes"];
            markdown::write(out, &head.map(str::to_owned), &rows)?;
        }
        if wrong > 0 { Err(failed(format!("{wrong} things are wrong, see above"))) } else { Ok(()) }
    }
}
