//! `lanewise table search`: documents by words, by vectors, or by both.

use super::{failed, opened};
use crate::arguments::{ef_range, k_range, nprobe_range};
use crate::failure::Failure;
use crate::input;
use lanewise_engine::Threads;
use lanewise_engine::documents::{FieldKind, Operator, Query, RunError};
use lanewise_engine::index::OwnedVectors;
use lanewise_engine::table::{Answer, Hit, Nearest, Request, Table};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Characters of a document that are shown.
const SHOWN: usize = 100;

/// Find documents by what they say and by what their vectors are near
#[derive(clap::Args)]
pub(crate) struct Search {
    /// The table's folder; nobody else may have it open
    folder: PathBuf,
    /// Words, any of which a document should have in any of its texts
    #[arg(long = "match", value_name = "WORDS")]
    words: Option<String>,
    /// In place of words a query as JSON, as docs/tables.md has it: {"term": {"field": "color", "value": "red"}}
    #[arg(long, value_name = "JSON", conflicts_with = "words")]
    query: Option<String>,
    /// Only documents that this query finds, as JSON
    #[arg(long, value_name = "JSON")]
    filter: Option<String>,
    /// A vector: .npy, .fvecs or .bvecs; with words or a query, both are fused
    #[arg(long, value_name = "FILE")]
    vector: Option<PathBuf>,
    /// Which vector of the file, from 0
    #[arg(long, value_name = "N", default_value = "0", requires = "vector")]
    row: usize,
    /// The vector field that is searched [default: the only one]
    #[arg(long, value_name = "NAME", requires = "vector")]
    field: Option<String>,
    /// Documents to find
    #[arg(short, value_parser = k_range(), default_value = "10")]
    k: u32,
    /// Candidates that a graph search keeps: more is slower and finds more
    #[arg(long, value_parser = ef_range(), default_value = "100")]
    ef_search: u32,
    /// Lists that a search of an IVF index scans: more is slower and finds more
    #[arg(long, value_parser = nprobe_range(), default_value = "16")]
    nprobe: u32,
    /// Compare all vectors
    #[arg(long)]
    exact: bool,
    /// Write each document that is found as JSON, a line each
    #[arg(long)]
    json: bool,
}

impl Search {
    pub(crate) fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let query = self.query.as_deref().map(|given| parsed("--query", given)).transpose()?;
        let filter = self.filter.as_deref().map(|given| parsed("--filter", given)).transpose()?;
        let table = opened(&self.folder, Threads::new(None))?;
        let query = match &self.words {
            Some(words) => Some(any_text(&table, words)?),
            None => query,
        };
        let nearest = self.vector.as_deref().map(|path| self.nearest(&table, path)).transpose()?;
        let nearest = nearest.into_iter().collect();
        let request = Request { query, filter, nearest, size: self.k as usize, ..Request::default() };
        let answer = table.search(&request, None).map_err(|error| failed(&self.folder, error))?;
        let found = answer.hits.iter().map(|hit| source(&answer, hit).map(|source| (hit, source)));
        let found = found.collect::<Result<Vec<_>, _>>().map_err(|error| failed(&self.folder, error))?;
        if self.json {
            for (Hit { id, score, distance, .. }, source) in found {
                let line = json!({"id": id, "score": score, "distance": distance, "document": source});
                writeln!(out, "{line}")?;
            }
        } else {
            written(out, &found)?;
        }
        let (value, most) = (answer.total.value, if answer.total.exact { "" } else { "at least " });
        crate::say(format_args!("{} of {most}{value} documents", answer.hits.len()));
        Ok(())
    }

    fn nearest(&self, table: &Table, path: &Path) -> Result<Nearest, Failure> {
        let schema = table.schema();
        let fields: Vec<_> = schema.vectors().filter(|(name, _)| schema.nested(name).is_none()).collect();
        let (field, params) = match (&self.field, &fields[..]) {
            (None, [only]) => *only,
            (Some(name), _) if fields.iter().any(|(field, _)| field == name) => {
                *fields.iter().find(|(field, _)| field == name).expect("found just now")
            }
            (named, _) => {
                let all: Vec<&str> = fields.iter().map(|(name, _)| *name).collect();
                let what = match named {
                    Some(name) => format!("{name:?} is no vector field of the table"),
                    None => "which vector field is searched?".to_owned(),
                };
                return Err(Failure::Usage(format!("--field: {what}: it has {all:?}")));
            }
        };
        let set = input::queries(path, params.dim, params.metric, params.dtype)?;
        if self.row >= set.len() {
            let what = format!("--row {}: {} has {} vectors", self.row, path.display(), set.len());
            return Err(Failure::Usage(what));
        }
        let vector = OwnedVectors::from(set.part(self.row..self.row + 1));
        let (ef_search, nprobe) = (Some(self.ef_search as usize), Some(self.nprobe as usize));
        let k = self.k as usize;
        Ok(Nearest { k, ef_search, nprobe, exact: self.exact, ..Nearest::new(field, vector) })
    }
}

/// JSON from an argument.
fn parsed<T: DeserializeOwned>(option: &str, given: &str) -> Result<T, Failure> {
    serde_json::from_str(given).map_err(|error| Failure::Usage(format!("{option}: {error}")))
}

/// Any of the words in any text field that the schema names.
fn any_text(table: &Table, words: &str) -> Result<Query, Failure> {
    let schema = table.schema();
    let texts = schema.fields.iter().filter(|(_, kind)| matches!(kind, FieldKind::Text { .. }));
    let of = |(name, _): (&String, _)| Query::Match {
        field: name.clone(),
        text: words.to_owned(),
        operator: Operator::default(),
        fuzziness: None,
    };
    let should: Vec<Query> = texts.map(of).collect();
    if should.is_empty() {
        let what = "--match: the schema names no text field: use --query, as {\"match\": {\"field\": …, \"text\": …}}";
        return Err(Failure::Usage(what.to_owned()));
    }
    Ok(serde_json::from_value(json!({"bool": {"should": should}})).expect("a query is JSON"))
}

fn source(answer: &Answer, hit: &Hit) -> Result<Value, RunError> {
    // What is stored is JSON that was written by us.
    Ok(serde_json::from_slice(&answer.source(hit)?).unwrap_or_default())
}

/// A line per document, best first, in columns.
fn written(out: &mut dyn Write, found: &[(&Hit, Value)]) -> io::Result<()> {
    let width = found.iter().map(|(hit, _)| hit.id.chars().count()).max().unwrap_or(0).max(8);
    writeln!(out, "{:>5} {:>width$} {:>12} {:>14}  document", "rank", "id", "score", "distance")?;
    for (rank, (hit, source)) in found.iter().enumerate() {
        let distance = hit.distance.map_or("-".to_owned(), |distance| distance.to_string());
        let text = source.to_string();
        let cut = text.char_indices().nth(SHOWN).map_or(text.len(), |(at, _)| at);
        let more = if cut < text.len() { "…" } else { "" };
        let Hit { id, score, .. } = hit;
        writeln!(out, "{:>5} {id:>width$} {score:>12} {distance:>14}  {}{more}", rank + 1, &text[..cut])?;
    }
    Ok(())
}
