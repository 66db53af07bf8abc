//! `lanewise repair`: makes a damaged table, or each damaged table of a folder, open again.

use crate::arguments::ThreadsArgument;
use crate::check::{each, watched};
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use lanewise_engine::table;
use std::io::Write;
use std::path::PathBuf;

/// Repair a damaged table, or each in a folder: loses as little as can be, keeps what is damaged in `lost`
#[derive(clap::Args)]
pub(crate) struct Repair {
    /// A table's folder, a folder of such folders, or an engine's; the tables must be closed
    folder: PathBuf,
    /// Only say what would be done
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,
    /// Do it
    #[arg(long)]
    yes: bool,
    /// The table's schema as JSON, for where the manifest and its copy are both damaged
    #[arg(long, value_name = "FILE")]
    schema: Option<PathBuf>,
    /// Write what is found as JSON, a line for each table
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    threads: ThreadsArgument,
}

impl Repair {
    pub(crate) fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        if !self.dry_run && !self.yes {
            let what = "give --dry-run to see what would be done, or --yes to do it";
            return Err(Failure::Usage(what.to_owned()));
        }
        let schema = self.schema.as_deref().map(|path| {
            let failed = |what: String| Failure::Failed(format!("--schema {}: {what}", path.display()));
            let text = std::fs::read(path).map_err(|error| failed(error.to_string()))?;
            serde_json::from_slice(&text).map_err(|error| failed(error.to_string()))
        });
        let schema = schema.transpose()?;
        let interrupt = Interrupt::listen();
        let threads = self.threads.threads();
        each(&self.folder, self.json, self.yes, out, |storage| {
            let how = table::Repair { dry_run: self.dry_run, schema: schema.clone() };
            let repaired = watched("repairing", &interrupt, |go| table::repair(storage, how, threads, go));
            repaired.map_err(|error| error.to_string())
        })
    }
}
