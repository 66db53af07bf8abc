//! `lanewise restore`: a table of a snapshot, in a folder of its own.

use crate::check::{open, watched};
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use lanewise_engine::table::Repository;
use std::io::Write;
use std::path::PathBuf;

/// Make a table of a snapshot: all of it, with every checksum compared, or nothing
#[derive(clap::Args)]
pub(crate) struct Restore {
    /// The repository's folder
    repository: PathBuf,
    /// The snapshot's name
    name: String,
    /// The folder to make the table in, which must be empty or not there
    folder: PathBuf,
}

impl Restore {
    pub(crate) fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let failed = |path: &PathBuf, what: String| Failure::Failed(format!("{}: {what}", path.display()));
        let repository = Repository::new(open(&self.repository)?);
        let there = self.folder.exists();
        std::fs::create_dir_all(&self.folder).map_err(|error| failed(&self.folder, error.to_string()))?;
        let to = open(&self.folder)?;
        let interrupt = Interrupt::listen();
        let restored = watched("restoring", &interrupt, |go| repository.restore(&self.name, &*to, go));
        if restored.is_err() && !there {
            // Best effort: the error that matters is the one below.
            let _ = std::fs::remove_file(self.folder.join("lock"));
            let _ = std::fs::remove_dir(&self.folder);
        }
        interrupt.check(|| "interrupted: no table was made".to_owned())?;
        let made = restored.map_err(|error| failed(&self.folder, error.to_string()))?;
        writeln!(
            out,
            "{}: {} documents in {} segments",
            self.folder.display(),
            made.documents,
            made.segments
        )?;
        Ok(())
    }
}
