//! `lanewise table create`: an empty table.

use super::{failed, resources};
use crate::check::open;
use crate::failure::Failure;
use lanewise_engine::Threads;
use lanewise_engine::documents::Schema;
use lanewise_engine::table::Table;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Make a table
#[derive(clap::Args)]
pub(crate) struct Create {
    /// The folder to make it in, which is made if it is not there
    folder: PathBuf,
    /// The fields as JSON: {"fields": {"title": {"type": "text"}, "v": {"type": "vector", "dim": 384}}}
    #[arg(long, value_name = "FILE")]
    schema: PathBuf,
}

impl Create {
    pub(crate) fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let schema = schema(&self.schema)?;
        let there = self.folder.exists();
        std::fs::create_dir_all(&self.folder).map_err(|error| failed(&self.folder, error))?;
        let fields = schema.fields.len();
        let made = Table::create(open(&self.folder)?, schema, resources(Threads::new(None))?);
        if let Err(error) = made {
            if !there {
                // Best effort: the error that matters is the one below.
                let _ = std::fs::remove_file(self.folder.join("lock"));
                let _ = std::fs::remove_dir(&self.folder);
            }
            return Err(failed(&self.folder, error));
        }
        writeln!(out, "{}: {fields} fields, no documents", self.folder.display())?;
        Ok(())
    }
}

/// A schema from a file.
fn schema(path: &Path) -> Result<Schema, Failure> {
    let failed = |what: String| Failure::Failed(format!("--schema {}: {what}", path.display()));
    let read = |path: &Path| -> io::Result<Schema> { Ok(serde_json::from_slice(&std::fs::read(path)?)?) };
    let schema = read(path).map_err(|error| failed(error.to_string()))?;
    schema.check().map_err(|error| failed(error.to_string()))?;
    Ok(schema)
}
