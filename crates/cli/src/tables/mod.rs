//! `lanewise table`: makes, fills, searches and describes a table.

mod create;
mod info;
mod put;
mod search;

use crate::check::open;
use crate::failure::Failure;
use lanewise_engine::scheduler::Options;
use lanewise_engine::table::{Resources, Table};
use lanewise_engine::{Admission, Pool, Threads};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

/// Make, fill, search or describe a table of documents with vectors
#[derive(clap::Args)]
pub(crate) struct Tables {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    Create(create::Create),
    Put(put::Put),
    Search(search::Search),
    Info(info::Info),
}

impl Tables {
    pub(crate) fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        match self.command {
            Command::Create(create) => create.run(out),
            Command::Put(put) => put.run(out),
            Command::Search(search) => search.run(out),
            Command::Info(info) => info.run(out),
        }
    }
}

/// A failure that names the table, or another path.
fn failed(path: &Path, what: impl std::fmt::Display) -> Failure {
    Failure::Failed(format!("{}: {what}", path.display()))
}

/// Threads that search, and the usual share of the memory.
fn resources(threads: Threads) -> Result<Resources, Failure> {
    let pool = Pool::start(Options::default()).map_err(|error| Failure::Failed(error.to_string()))?;
    Ok(Resources { threads, pool: Arc::new(pool), admission: Admission::usual() })
}

/// The table in a folder.
pub(crate) fn opened(folder: &Path, threads: Threads) -> Result<Table, Failure> {
    opened_with(folder, resources(threads)?)
}

fn opened_with(folder: &Path, resources: Resources) -> Result<Table, Failure> {
    Table::open(open(folder)?, resources).map_err(|error| failed(folder, error))
}
