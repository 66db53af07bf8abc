//! Where documents come from.

use super::parquet::Records;
use crate::failure::Failure;
use indicatif::ProgressBar;
use lanewise_bench::dataset::{self, Elements, Matrix};
use serde_json::{Map, Value, json};
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::num::NonZeroUsize;
use std::path::Path;

/// Bytes of one line.
const LINE_BYTES: u64 = 64 << 20;

/// A file that is read from its beginning to its end.
pub(super) enum Source {
    Lines(Lines),
    Rows(Rows),
    /// Of Parquet, and the field that names documents.
    Records(Box<Records>, Option<String>),
}

/// A document as it is sent, or what is wrong with it.
pub(super) enum Read {
    Document { id: Option<String>, text: String },
    Wrong(String),
}

/// Lines of JSON.
pub(super) struct Lines {
    from: Box<dyn BufRead + Send>,
    name: String,
    bytes: usize,
    number: u64,
    id: Option<String>,
}

/// Vectors.
pub(super) struct Rows {
    matrix: Matrix,
    ids: Option<Vec<i64>>,
    field: String,
    row: usize,
}

fn failed(path: &Path, what: impl std::fmt::Display) -> Failure {
    Failure::Failed(format!("{}: {what}", path.display()))
}

impl Source {
    /// Opens a file by the end of its name. `id` is the field of documents that names them; `field` is where vectors go, and
    /// `ids` their names.
    pub(super) fn open(
        path: &Path,
        id: Option<String>,
        field: Option<String>,
        ids: Option<&Path>,
    ) -> Result<Source, Failure> {
        let usage = |what: &str| Failure::Usage(format!("{}: {what}", path.display()));
        let end = path.extension().and_then(|end| end.to_str()).unwrap_or_default().to_ascii_lowercase();
        match (end.as_str(), field) {
            ("npy" | "fvecs" | "bvecs", _) if id.is_some() => Err(usage("vectors have no fields: use --ids")),
            ("parquet" | "ndjson" | "jsonl" | "json", _) if ids.is_some() => {
                Err(usage("--ids is for .npy, .fvecs, .bvecs: use --id"))
            }
            ("npy" | "fvecs" | "bvecs", Some(field)) => Source::rows(path, field, ids),
            ("npy" | "fvecs" | "bvecs", None) => Err(usage("these are vectors: say their --field")),
            ("parquet", _) => Ok(Source::Records(Box::new(Records::open(path)?), id)),
            (_, Some(_)) => Err(usage("--field is for vectors: .npy, .fvecs, .bvecs, .parquet")),
            ("ndjson" | "jsonl" | "json", None) => Source::lines(path, id),
            _ if path == Path::new("-") => Source::lines(path, id),
            _ => Err(usage(
                "give .ndjson, .jsonl, .parquet, .npy, .fvecs, .bvecs, or - for lines of standard input",
            )),
        }
    }

    fn lines(path: &Path, id: Option<String>) -> Result<Source, Failure> {
        let (from, bytes): (Box<dyn BufRead + Send>, _) = if path == Path::new("-") {
            (Box::new(BufReader::new(io::stdin())), 0)
        } else {
            let file = File::open(path).map_err(|error| failed(path, error))?;
            let bytes = file.metadata().map_or(0, |meta| meta.len());
            (Box::new(BufReader::with_capacity(1 << 20, file)), bytes as usize)
        };
        Ok(Source::Lines(Lines { from, name: path.display().to_string(), bytes, number: 0, id }))
    }

    fn rows(path: &Path, field: String, ids: Option<&Path>) -> Result<Source, Failure> {
        let matrix = dataset::read(path)?;
        let ids = ids.map(dataset::read_ids).transpose()?;
        if let Some(ids) = ids.as_ref().filter(|ids| ids.len() != matrix.rows) {
            let what = format!("{} ids for {} vectors: give one for each", ids.len(), matrix.rows);
            return Err(failed(path, what));
        }
        Ok(Source::Rows(Rows { matrix, ids, field, row: 0 }))
    }

    /// Dimensions of the vectors that go into `field`, if there are any.
    ///
    /// # Errors
    /// If the file has no such vectors.
    pub(super) fn dim(&mut self, field: &str) -> Result<Option<NonZeroUsize>, Failure> {
        match self {
            Source::Rows(rows) => Ok(NonZeroUsize::new(rows.matrix.columns)),
            Source::Records(records, _) => records.dim(field),
            Source::Lines(_) => Ok(None),
        }
    }

    /// Steps of its progress: bytes, or vectors or rows.
    pub(super) fn len(&self) -> usize {
        match self {
            Source::Lines(lines) => lines.bytes,
            Source::Rows(rows) => rows.matrix.rows,
            Source::Records(records, _) => records.len(),
        }
    }

    /// The next document and its number, of lines from 1, of vectors and rows from 0.
    pub(super) fn next(&mut self, bar: &ProgressBar) -> Result<Option<(u64, Read)>, Failure> {
        match self {
            Source::Lines(lines) => lines.next(bar),
            Source::Rows(rows) => Ok(rows.next(bar)),
            Source::Records(records, id) => Ok(records.next(bar)?.map(|(number, document)| {
                let text = || Value::Object(document.clone()).to_string();
                (number, named(id.as_deref(), &document, text))
            })),
        }
    }
}

impl Lines {
    fn next(&mut self, bar: &ProgressBar) -> Result<Option<(u64, Read)>, Failure> {
        use std::io::Read as _;
        let mut line = Vec::new();
        loop {
            line.clear();
            let read = (&mut self.from).take(LINE_BYTES + 1).read_until(b'\n', &mut line);
            let read = read.map_err(|error| Failure::Failed(format!("{}: {error}", self.name)))?;
            if read == 0 {
                return Ok(None);
            }
            self.number += 1;
            if line.len() as u64 > LINE_BYTES {
                let what = format!("{}: line {} has more than {LINE_BYTES} bytes", self.name, self.number);
                return Err(Failure::Failed(what));
            }
            bar.inc(read as u64);
            if !line.trim_ascii().is_empty() {
                return Ok(Some((self.number, self.document(line.trim_ascii()))));
            }
        }
    }

    /// Looked at here too: a line that is no document would be taken for what its neighbours are.
    fn document(&self, line: &[u8]) -> Read {
        let document: Map<String, Value> = match serde_json::from_slice(line) {
            Ok(document) => document,
            Err(error) => return Read::Wrong(format!("it is no JSON object: {error}")),
        };
        // JSON is UTF-8.
        named(self.id.as_deref(), &document, || String::from_utf8_lossy(line).into_owned())
    }
}

/// A document with the id that its `field` says.
fn named(field: Option<&str>, document: &Map<String, Value>, text: impl FnOnce() -> String) -> Read {
    let id = match field.map(|field| (field, document.get(field))) {
        None => None,
        Some((_, Some(Value::String(id)))) => Some(id.clone()),
        Some((_, Some(Value::Number(id)))) if !id.is_f64() => Some(id.to_string()),
        Some((field, None)) => return Read::Wrong(format!("it has no field {field:?} for its id")),
        Some((_, Some(other))) => {
            return Read::Wrong(format!("its id is {other}: give a string or a whole number"));
        }
    };
    Read::Document { id, text: text() }
}

impl Rows {
    fn next(&mut self, bar: &ProgressBar) -> Option<(u64, Read)> {
        let Matrix { rows, columns, elements, .. } = &self.matrix;
        let row = self.row;
        if row == *rows {
            return None;
        }
        self.row += 1;
        bar.inc(1);
        let range = row * columns..(row + 1) * columns;
        let vector = match elements {
            Elements::F32(all) => json!(all[range]),
            Elements::I8(all) => json!(all[range]),
            Elements::U8(all) | Elements::Bool(all) => json!(all[range]),
            Elements::Int(all) => json!(all[range]),
        };
        let id = self.ids.as_ref().map_or(row as i64, |ids| ids[row]);
        let text = json!({&self.field: vector}).to_string();
        Some((row as u64, Read::Document { id: Some(id.to_string()), text }))
    }
}
