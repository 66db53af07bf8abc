//! `lanewise check`: what is wrong with a table, or with each table of a folder.

use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::progress;
use lanewise_engine::table::{self, Report, Severity};
use lanewise_storage::{Disk, Storage};
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Documents that are named at most; `--json` names all.
const NAMED: usize = 20;

/// Check a table, or each table in a folder: reads all of it, changes nothing
#[derive(clap::Args)]
pub(crate) struct Check {
    /// A table's folder, a folder of such folders, or an engine's; the tables must be closed
    folder: PathBuf,
    /// Write what is found as JSON, a line for each table
    #[arg(long)]
    json: bool,
}

impl Check {
    pub(crate) fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let interrupt = Interrupt::listen();
        each(&self.folder, self.json, false, out, |storage| {
            watched("checking", &interrupt, |go| table::check(storage, go)).map_err(|error| error.to_string())
        })
    }
}

/// Calls `look` for the table in `folder`, or each table in its folders, and writes what it says. Fails, after all were
/// looked at, if that failed or, unless it is `mended`, something is wrong.
pub(crate) fn each(
    folder: &Path,
    json: bool,
    mended: bool,
    out: &mut dyn Write,
    mut look: impl FnMut(&Arc<dyn Storage>) -> Result<Report, String>,
) -> Result<(), Failure> {
    let tables = tables(folder)?;
    let (mut wrong, count) = (0, tables.len());
    for path in tables {
        let looked = open(&path).and_then(|storage| look(&storage).map_err(Failure::Failed));
        match looked {
            Ok(report) => {
                wrong += usize::from(!mended && report.severity() > Some(Severity::Harmless));
                if json {
                    let mut line = serde_json::to_value(&report).map_err(io::Error::from)?;
                    line["table"] = path.to_string_lossy().into();
                    writeln!(out, "{line}")?;
                } else {
                    write(out, &path, &report)?;
                }
            }
            Err(Failure::Failed(what)) if count > 1 => {
                wrong += 1;
                crate::say(format_args!("note: {}: {what}", path.display()));
            }
            Err(Failure::Failed(what)) => return Err(Failure::Failed(format!("{}: {what}", path.display()))),
            Err(failure) => return Err(failure),
        }
    }
    match wrong {
        0 => Ok(()),
        wrong => Err(Failure::Failed(format!("{wrong} of {count} tables: something is wrong, see above"))),
    }
}

/// The table in a folder, those in its folders, or an engine's.
fn tables(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let repository = |path: &Path| path.join("snapshots").is_dir();
    let table = |path: &Path| {
        ["manifest", "manifest.copy"].iter().any(|name| path.join(name).is_file())
            || path.join("segments").is_dir() && !repository(path)
    };
    if table(folder) {
        return Ok(vec![folder.to_owned()]);
    }
    // An engine keeps its tables in a folder of that name, and there also those that come and go.
    let inside = folder.join("tables");
    let within = if inside.is_dir() { &inside } else { folder };
    let failed = |error: io::Error| Failure::Failed(format!("{}: {error}", within.display()));
    let mut found = Vec::new();
    for entry in std::fs::read_dir(within).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        if table(&entry.path()) && !entry.file_name().as_encoded_bytes().starts_with(b"_") {
            found.push(entry.path());
        }
    }
    found.sort();
    if found.is_empty() {
        let what = match repository(folder) {
            true => "a repository of snapshots: use `lanewise snapshots --verify`",
            false => "neither a table nor a folder of tables: name a folder that holds a manifest",
        };
        return Err(Failure::Failed(format!("{}: {what}", folder.display())));
    }
    Ok(found)
}

/// A folder that is there, as a storage.
pub(crate) fn open(folder: &Path) -> Result<Arc<dyn Storage>, Failure> {
    let disk =
        Disk::new(folder).map_err(|error| Failure::Failed(format!("{}: {error}", folder.display())))?;
    Ok(Arc::new(disk))
}

/// Calls `work` with a bar that it moves, and that an interrupt ends.
pub(crate) fn watched<T>(
    what: &'static str,
    interrupt: &Interrupt,
    work: impl FnOnce(table::Progress<'_>) -> T,
) -> T {
    let bar = progress::bar(what, 0);
    let done = work(&mut |done, all| {
        bar.set_length(all);
        bar.set_position(done);
        if interrupt.asked() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    bar.finish_and_clear();
    done
}

/// A report for people.
fn write(out: &mut dyn Write, path: &Path, report: &Report) -> io::Result<()> {
    let verdict = match report.severity() {
        None => "nothing is wrong",
        Some(Severity::Harmless) => "nothing is wrong that matters",
        Some(Severity::Mendable) => "damaged; a repair loses nothing",
        Some(Severity::Loss) => "damaged; something is lost",
    };
    let Report { files, bytes, documents, .. } = report;
    writeln!(
        out,
        "{}: {verdict} ({files} files, {bytes} bytes, {documents} documents in segments)",
        path.display()
    )?;
    for finding in &report.findings {
        let severity = match finding.severity {
            Severity::Harmless => "harmless",
            Severity::Mendable => "mendable",
            Severity::Loss => "loss",
        };
        writeln!(out, "  {severity}: {}: {}", finding.path.display(), finding.what)?;
    }
    if let Some(lost) = &report.lost_writes {
        writeln!(out, "  lost: writes {} to {}", lost.start(), lost.end())?;
    }
    for affected in report.affected.iter().take(NAMED) {
        let effect = match &affected.effect {
            table::Effect::Gone => "is gone".to_owned(),
            table::Effect::Vector { field } => format!("has lost its vector {field:?}"),
            table::Effect::Older { seq } => format!("is as it was before write {seq}"),
            table::Effect::Back => "may have been deleted before".to_owned(),
        };
        writeln!(out, "  document {:?} {effect}", affected.id)?;
    }
    match report.affected.len().saturating_sub(NAMED) {
        0 => Ok(()),
        more => writeln!(out, "  and {more} more documents: --json names all"),
    }
}
