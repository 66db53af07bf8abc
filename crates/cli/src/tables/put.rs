//! `lanewise table put`: documents from lines of JSON. An empty table is loaded in bulk; into another one they are written
//! batch by batch.

use super::{failed, opened};
use crate::arguments::ThreadsArgument;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::{numbers, progress, say};
use indicatif::ProgressBar;
use lanewise_bench::clock::timed;
use lanewise_engine::documents::{Mapping, Schema};
use lanewise_engine::index::Executor;
use lanewise_engine::table::{
    self, Batch, Effort, Load, LoadError, Outcome, Table, Upkeep, When, WriteError,
};
use lanewise_storage::log::AppendError;
use serde_json::{Map, Value, json};
use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// Documents of a batch, and bytes of its lines.
const BATCH: usize = 1024;
const BATCH_BYTES: usize = 16 << 20;
/// What some programs put before all text in UTF-8 (a byte order mark).
const MARK: &[u8] = b"\xef\xbb\xbf";
/// Lines that are named; all are counted.
const NAMED: usize = 20;

/// Put documents into a table, a JSON object in each line
#[derive(clap::Args)]
pub(crate) struct Put {
    /// The table's folder; nobody else may have it open
    folder: PathBuf,
    /// The documents, a line each; `-`: standard input. Their field `id` is their id; without it they get one
    documents: PathBuf,
    /// End with the first line that is refused; else the others are put
    #[arg(long)]
    strict: bool,
    /// Write what was done as JSON, in a line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    threads: ThreadsArgument,
}

/// A document, and its line.
struct Read {
    line: u64,
    id: Option<String>,
    document: Map<String, Value>,
}

/// What was done so far.
#[derive(Default)]
struct Done {
    lines: u64,
    created: u64,
    updated: u64,
    refused: u64,
}

/// Where lines come from, and what becomes of them.
struct Lines {
    from: Box<dyn BufRead>,
    name: String,
    bar: ProgressBar,
    strict: bool,
    /// Whether a field `id` is the document's own.
    keeps_id: bool,
    /// Not where lines are typed: a read that waits for one would not end.
    interrupt: Option<Interrupt>,
    done: Done,
}

impl Put {
    pub(crate) fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let threads = self.threads.threads();
        let table = opened(&self.folder, threads)?;
        let mut lines = Lines::of(&self.documents, self.strict, table.schema().fields.contains_key("id"))?;
        let (result, time) = timed(|| match table.is_empty() {
            true => self.load(&table, &mut lines),
            false => self.write(table, &mut lines),
        });
        lines.bar.finish_and_clear();
        result?;
        let Done { lines: read, created, updated, refused } = lines.done;
        let put = (created + updated) as usize;
        if self.json {
            let said = json!({
                "table": self.folder.to_string_lossy(), "lines": read, "created": created, "updated": updated,
                "refused": refused, "seconds": time.as_secs_f64(),
            });
            writeln!(out, "{said}")?;
        } else {
            writeln!(
                out,
                "{}: {} documents put, {} of them new, in {} s ({} documents/s, threads {})",
                self.folder.display(),
                numbers::count(put),
                numbers::count(created as usize),
                numbers::seconds(time),
                numbers::rate(put, time),
                threads.workers(),
            )?;
        }
        match refused {
            0 => Ok(()),
            some => Err(Failure::Failed(format!(
                "{}: {some} of {read} lines were refused, see above",
                lines.name
            ))),
        }
    }

    /// All of it, or nothing: indexes are built once, by all threads.
    fn load(&self, table: &Table, lines: &mut Lines) -> Result<(), Failure> {
        let failed = |error: &dyn Display| failed(&self.folder, error);
        let mapping = Mapping::new(Schema::clone(&table.schema())).map_err(|error| failed(&error))?;
        let mut load = table.load().map_err(|error| failed(&error))?;
        let mut more = true;
        while more {
            let batch;
            (batch, more) = lines.batch()?;
            // Ids are given to all documents of a batch, or to none.
            let (named, unnamed) = batch.into_iter().partition(|one| one.id.is_some());
            for batch in [named, unnamed] {
                self.add(&mut load, &mapping, batch, lines)?;
            }
        }
        lines.bar.set_message("building");
        let interrupt = &lines.interrupt;
        let proceed = || proceed(interrupt);
        let finished = load.finish(&Effort::new(self.threads.threads(), &proceed));
        lines.check()?;
        lines.done.created = finished.map_err(|error| failed(&error))? as u64;
        Ok(())
    }

    /// Adds a batch to a load, without the documents that are refused.
    fn add(
        &self,
        load: &mut Load<'_>,
        mapping: &Mapping,
        mut batch: Vec<Read>,
        lines: &mut Lines,
    ) -> Result<(), Failure> {
        while !batch.is_empty() {
            let ids: Option<Vec<String>> = batch.iter().map(|one| one.id.clone()).collect();
            let documents = batch.iter().map(|one| one.document.clone()).collect();
            let interrupt = &lines.interrupt;
            let proceed = || proceed(interrupt);
            let effort = Effort::new(self.threads.threads(), &proceed);
            let added = load.add(Batch { ids, documents, vectors: Vec::new() }, &effort);
            lines.check()?;
            let (number, error) = match added {
                Ok(()) => return Ok(()),
                Err(LoadError::Document { number, error }) => (number, error),
                Err(error) => return Err(failed(&self.folder, error)),
            };
            lines.refuse(batch.remove(number).line, error)?;
            // One is named at a time: the others are looked at here, lest a batch be tried as often as it has wrong ones.
            let mut fine = Vec::with_capacity(batch.len());
            for one in batch {
                match mapping.parse(one.id.as_deref().unwrap_or_default(), &one.document, Vec::new()) {
                    Ok(_) => fine.push(one),
                    Err(error) => lines.refuse(one.line, error)?,
                }
            }
            batch = fine;
        }
        Ok(())
    }

    /// Batch by batch, each of which is on disk before the next.
    fn write(&self, table: Table, lines: &mut Lines) -> Result<(), Failure> {
        let upkeep = Upkeep::start(NonZeroUsize::MIN, self.threads.threads());
        let upkeep = upkeep.map_err(|error| failed(&self.folder, error))?;
        let table = upkeep.watch(table);
        let mut more = true;
        while more {
            let batch;
            (batch, more) = lines.batch()?;
            let numbers: Vec<u64> = batch.iter().map(|one| one.line).collect();
            let put = |Read { id, document, .. }| table::Write::Put {
                id,
                document,
                vectors: Vec::new(),
                when: When::Always,
            };
            for (line, written) in numbers.into_iter().zip(table.write(batch.into_iter().map(put).collect()))
            {
                match written.map(|written| written.outcome) {
                    Ok(Outcome::Created) => lines.done.created += 1,
                    Ok(_) => lines.done.updated += 1,
                    Err(error) if is_its_own(&error) => lines.refuse(line, error)?,
                    Err(error) => return Err(failed(&self.folder, format!("{error}; {}", lines.so_far()))),
                }
            }
        }
        let interrupt = &lines.interrupt;
        let proceed = || proceed(interrupt);
        let effort = Effort::new(self.threads.threads(), &proceed);
        // Not sealed, the table takes longer to open, and that is all.
        let _ = table.close(&effort);
        Ok(())
    }
}

fn proceed(interrupt: &Option<Interrupt>) -> ControlFlow<()> {
    let stop = interrupt.as_ref().is_some_and(Interrupt::asked);
    if stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}

/// Whether the fault is the document's own, so that others may go on.
fn is_its_own(error: &WriteError) -> bool {
    match error {
        WriteError::Id { .. } | WriteError::Document(_) | WriteError::Vector { .. } => true,
        WriteError::Log(error) => matches!(**error, AppendError::TooLong { .. }),
        _ => false,
    }
}

impl Lines {
    fn of(path: &Path, strict: bool, keeps_id: bool) -> Result<Lines, Failure> {
        let (done, typed) = (Done::default(), path == Path::new("-"));
        let (from, name, bytes): (Box<dyn BufRead>, _, _) = if typed {
            (Box::new(io::stdin().lock()), "standard input".to_owned(), 0)
        } else {
            let file = File::open(path).map_err(|error| failed(path, error))?;
            let bytes = file.metadata().map_or(0, |meta| meta.len());
            (Box::new(BufReader::new(file)), path.display().to_string(), bytes)
        };
        let (bar, interrupt) = (progress::bar("reading", bytes as usize), (!typed).then(Interrupt::listen));
        Ok(Lines { from, name, bar, strict, keeps_id, interrupt, done })
    }

    /// What was put, in words.
    fn so_far(&self) -> String {
        let put = numbers::count((self.done.created + self.done.updated) as usize);
        if put == "0" { "nothing was put".to_owned() } else { format!("{put} documents were put") }
    }

    /// Fails if the user asked to stop.
    fn check(&self) -> Result<(), Failure> {
        let what = || format!("interrupted: {}", self.so_far());
        self.interrupt.as_ref().map_or(Ok(()), |interrupt| interrupt.check(what))
    }

    /// Says what is wrong with a line.
    fn refuse(&mut self, line: u64, what: impl Display) -> Result<(), Failure> {
        if self.strict {
            let so_far = self.so_far();
            return Err(Failure::Failed(format!("{}: line {line}: {what}; {so_far}", self.name)));
        }
        self.done.refused += 1;
        match self.done.refused as usize {
            ..=NAMED => self.bar.suspend(|| say(format_args!("note: {}: line {line}: {what}", self.name))),
            more if more == NAMED + 1 => self.bar.suspend(|| say("note: … and more")),
            _ => {}
        }
        Ok(())
    }

    /// The next documents, and whether there may be more.
    fn batch(&mut self) -> Result<(Vec<Read>, bool), Failure> {
        let (mut batch, mut bytes, mut line) = (Vec::new(), 0, Vec::new());
        while batch.len() < BATCH && bytes < BATCH_BYTES {
            self.check()?;
            line.clear();
            let read = self.from.read_until(b'\n', &mut line);
            let read = read.map_err(|error| Failure::Failed(format!("{}: {error}", self.name)))?;
            if read == 0 {
                return Ok((batch, false));
            }
            bytes += read;
            self.bar.inc(read as u64);
            self.done.lines += 1;
            let marked = if self.done.lines == 1 { line.strip_prefix(MARK) } else { None };
            let line = marked.unwrap_or(&line).trim_ascii();
            if line.is_empty() {
                continue;
            }
            let number = self.done.lines;
            match document(line, self.keeps_id) {
                Ok((id, document)) => batch.push(Read { line: number, id, document }),
                Err(what) => self.refuse(number, what)?,
            }
        }
        Ok((batch, true))
    }
}

/// The document in a line, and its id.
fn document(line: &[u8], keeps_id: bool) -> Result<(Option<String>, Map<String, Value>), String> {
    let mut document: Map<String, Value> = serde_json::from_slice(line).map_err(|error| error.to_string())?;
    let id = if keeps_id { document.get("id").cloned() } else { document.remove("id") };
    match id {
        None | Some(Value::Null) => Ok((None, document)),
        Some(Value::String(id)) => Ok((Some(id), document)),
        Some(Value::Number(id)) if !id.is_f64() => Ok((Some(id.to_string()), document)),
        Some(other) => Err(format!("its id is {other}: give a string or a whole number")),
    }
}
