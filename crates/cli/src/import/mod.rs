//! `lanewise import`: documents from a file into an index of a node that runs, over its REST API: the node alone writes to
//! its folder, and the same command fills a node elsewhere.

mod node;
mod parquet;
mod source;

use crate::arguments::ThreadsArgument;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::{numbers, progress, say};
use indicatif::ProgressBar;
use lanewise_bench::clock::timed;
use lanewise_engine::index::Executor;
use node::{Node, NodeArguments, Refused};
use serde_json::{Value, json};
use source::{Read, Source};
use std::io::Write;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// Documents of a request, and bytes of its lines.
const BATCH: usize = 1000;
const BATCH_BYTES: usize = 4 << 20;
/// Refused documents that are named; all are counted.
const NAMED: usize = 20;

/// Import documents into an index of a node that runs
///
/// FILE is .ndjson, .jsonl or .json (a JSON object in each line; `-` reads standard input), .parquet (a document in each row), or
/// .npy, .fvecs, .bvecs (vectors, for --field). With --field the index of the vectors is made if there is none.
#[derive(clap::Args)]
pub(crate) struct Import {
    /// The documents, or vectors
    file: PathBuf,
    /// The index
    #[arg(long, value_name = "NAME")]
    index: String,
    /// Documents: the field that is their id; without it they get one
    #[arg(long, value_name = "FIELD", conflicts_with = "ids")]
    id: Option<String>,
    /// Vectors: the field that they go into; of .parquet, the column that has them
    #[arg(long)]
    field: Option<String>,
    /// Vectors: their ids, one for each (.npy of whole numbers); without it their rows are counted from 0
    #[arg(long, value_name = "FILE", requires = "field")]
    ids: Option<PathBuf>,
    /// Vectors: how they are compared, where the index is made: l2, cosinesimil, innerproduct
    #[arg(long, value_name = "SPACE", default_value = "l2", requires = "field")]
    space_type: String,
    /// End with the first document that is refused; else the others are imported
    #[arg(long)]
    strict: bool,
    /// Write what was done as JSON, in a line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    node: NodeArguments,
    #[command(flatten)]
    threads: ThreadsArgument,
}

/// What was done so far.
#[derive(Default)]
struct Done {
    imported: usize,
    refused: usize,
    /// The first reason to stop.
    failure: Option<Failure>,
}

/// What threads that send have in common.
struct Shared {
    /// Whoever makes the next request holds it.
    source: Mutex<Source>,
    done: Mutex<Done>,
    node: Node,
    bar: ProgressBar,
    interrupt: Interrupt,
    strict: bool,
    index: String,
}

/// A request, and the lines or rows that its documents come from.
struct Batch {
    body: String,
    numbers: Vec<u64>,
}

impl Import {
    pub(crate) fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let node = self.node.connect()?;
        let mut source = Source::open(&self.file, self.id.clone(), self.field.clone(), self.ids.as_deref())?;
        if let Some(field) = &self.field
            && let Some(dim) = source.dim(field)?
        {
            self.make_index(&node, field, dim)?;
        }
        let threads = self.threads.threads();
        let shared = Shared {
            bar: progress::bar("importing", source.len()),
            source: Mutex::new(source),
            done: Mutex::default(),
            node,
            interrupt: Interrupt::listen(),
            strict: self.strict,
            index: self.index,
        };
        let workers = threads.workers();
        let ((), time) = timed(|| threads.run(workers, &|_, _| shared.work()));
        shared.bar.finish_and_clear();
        let Done { imported, refused, failure } =
            shared.done.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some(failure) = failure {
            return Err(failure);
        }
        let index = shared.index;
        if self.json {
            let said = json!({
                "index": index, "imported": imported, "refused": refused, "seconds": time.as_secs_f64(),
            });
            writeln!(out, "{said}")?;
        } else {
            writeln!(
                out,
                "{index}: {} documents imported in {} s ({} documents/s, threads {workers})",
                numbers::count(imported),
                numbers::seconds(time),
                numbers::rate(imported, time),
            )?;
        }
        match refused {
            0 => Ok(()),
            some => Err(Failure::Failed(format!("{some} documents were refused, see above"))),
        }
    }

    /// Makes an index for vectors, if it is not there.
    fn make_index(&self, node: &Node, field: &str, dim: NonZeroUsize) -> Result<(), Failure> {
        if node.has(&self.index)? {
            return Ok(());
        }
        let vector = json!({"type": "knn_vector", "dimension": dim, "space_type": self.space_type});
        let body = json!({"settings": {"index.knn": true}, "mappings": {"properties": {field: vector}}});
        node.make(&self.index, &body)?;
        say(format_args!(
            "note: made the index {}: {field} has {dim} dimensions, {}",
            self.index, self.space_type
        ));
        Ok(())
    }
}

impl Shared {
    /// Sends batch after batch, until there are no more or somebody fails.
    fn work(&self) {
        loop {
            let step = self.next().and_then(|batch| match batch {
                Some(batch) => self.send(&batch).map(|()| true),
                None => Ok(false),
            });
            let mut done = self.done();
            match step {
                Ok(true) if done.failure.is_none() => {}
                Ok(_) => return,
                Err(failure) => {
                    done.failure.get_or_insert(failure);
                    return;
                }
            }
        }
    }

    fn done(&self) -> std::sync::MutexGuard<'_, Done> {
        self.done.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn so_far(&self) -> String {
        format!("{} documents were imported", numbers::count(self.done().imported))
    }

    /// The next request.
    fn next(&self) -> Result<Option<Batch>, Failure> {
        let mut source = self.source.lock().unwrap_or_else(PoisonError::into_inner);
        let mut batch = Batch { body: String::new(), numbers: Vec::new() };
        while batch.numbers.len() < BATCH && batch.body.len() < BATCH_BYTES {
            self.interrupt.check(|| format!("interrupted: {}", self.so_far()))?;
            let Some((number, read)) = source.next(&self.bar)? else { break };
            match read {
                Read::Document { id, text } => {
                    let action = id.map_or_else(|| json!({}), |id| json!({"_id": id}));
                    batch.body += &format!("{}\n{text}\n", json!({"index": action}));
                    batch.numbers.push(number);
                }
                Read::Wrong(what) => self.refuse(number, &what)?,
            }
        }
        Ok(if batch.numbers.is_empty() { None } else { Some(batch) })
    }

    fn send(&self, batch: &Batch) -> Result<(), Failure> {
        let stop = || self.interrupt.asked();
        let answer = self.node.bulk(&self.index, &batch.body, &stop).map_err(|refused| match refused {
            Refused::Stopped => Failure::Interrupted(format!("interrupted: {}", self.so_far())),
            Refused::Said(what) => Failure::Failed(format!("{what}; {}", self.so_far())),
        })?;
        let items = answer["items"].as_array().map_or(&[][..], Vec::as_slice);
        if items.len() != batch.numbers.len() {
            return Err(Failure::Failed(format!(
                "the node answered for {} of {} documents: is it an OpenSearch?",
                items.len(),
                batch.numbers.len()
            )));
        }
        for (item, &number) in items.iter().zip(&batch.numbers) {
            match &item["index"]["error"] {
                Value::Null => self.done().imported += 1,
                error => self.refuse(number, error["reason"].as_str().unwrap_or("refused"))?,
            }
        }
        Ok(())
    }

    /// Says what is wrong with a document.
    fn refuse(&self, number: u64, what: &str) -> Result<(), Failure> {
        if self.strict {
            return Err(Failure::Failed(format!("document {number}: {what}; {}", self.so_far())));
        }
        let refused = {
            let mut done = self.done();
            done.refused += 1;
            done.refused
        };
        match refused {
            ..=NAMED => self.bar.suspend(|| say(format_args!("note: document {number}: {what}"))),
            more if more == NAMED + 1 => self.bar.suspend(|| say("note: … and more")),
            _ => {}
        }
        Ok(())
    }
}
