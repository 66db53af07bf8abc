//! `lanewise table info`: what a table holds.

use super::{opened_with, resources};
use crate::failure::Failure;
use crate::{numbers, table as markdown};
use lanewise_engine::documents::FieldKind;
use lanewise_engine::table::{SegmentInfo, Table};
use lanewise_engine::{Admission, Purpose, Threads};
use serde_json::{Map, Value, json};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Describe a table: its fields, segments, memory and settings
#[derive(clap::Args)]
pub(crate) struct Info {
    /// The table's folder; nobody else may have it open
    folder: PathBuf,
    /// Write it as JSON, in a line
    #[arg(long)]
    json: bool,
}

impl Info {
    pub(crate) fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let resources = resources(Threads::new(None))?;
        let admission = resources.admission.clone();
        let table = opened_with(&self.folder, resources)?;
        if self.json {
            writeln!(out, "{}", described(&self.folder, &table, &admission).map_err(io::Error::from)?)?;
            return Ok(());
        }
        let segments = table.segments();
        let (deleted, sealed) = (dead(&segments), segments.iter().filter(|segment| segment.sealed).count());
        writeln!(
            out,
            "{}: {} documents, {} deleted rows, {sealed} segments, {} bytes on disk",
            self.folder.display(),
            numbers::count(table.len()),
            numbers::count(deleted),
            numbers::count(bytes(&self.folder) as usize)
        )?;
        let limit = Some(admission.limit()).filter(|&limit| limit < u64::MAX);
        let limit = limit.map_or("none".to_owned(), |limit| numbers::count(limit as usize));
        writeln!(out, "memory in use: {}; limit: {limit} bytes", admission.in_use())?;
        writeln!(out, "settings: {}\n", serde_json::to_string(&*table.settings()).map_err(io::Error::from)?)?;
        let field =
            |(name, kind): (&String, &FieldKind)| Ok(vec![name.clone(), serde_json::to_string(kind)?]);
        let fields = table.schema().fields.iter().map(field).collect::<io::Result<Vec<_>>>();
        markdown::write(out, &["field", "kind"].map(str::to_owned), &fields?)?;
        writeln!(out)?;
        let row = |segment: &SegmentInfo| {
            let name = if segment.sealed { segment.segment.0.to_string() } else { "head".to_owned() };
            let numbers = [segment.live, segment.deleted, segment_bytes(&self.folder, segment) as usize];
            [vec![name], numbers.map(numbers::count).to_vec(), vec![segment.uncoded.join(" ")]].concat()
        };
        let head = ["segment", "documents", "deleted", "bytes", "uncoded"].map(str::to_owned);
        markdown::write(out, &head, &segments.iter().map(row).collect::<Vec<_>>())?;
        Ok(())
    }
}

fn described(folder: &Path, table: &Table, admission: &Admission) -> serde_json::Result<Value> {
    let segments = table.segments();
    let segment = |segment: &SegmentInfo| {
        json!({
            "segment": segment.segment, "sealed": segment.sealed, "documents": segment.live,
            "deleted": segment.deleted, "bytes": segment_bytes(folder, segment), "uncoded": segment.uncoded,
        })
    };
    let in_use = Purpose::ALL.iter().zip(admission.in_use().0);
    let in_use: Map<String, Value> =
        in_use.map(|(purpose, bytes)| (purpose.name().to_owned(), bytes.into())).collect();
    Ok(json!({
        "table": folder.to_string_lossy(), "documents": table.len(), "deleted": dead(&segments),
        "bytes": bytes(folder), "segments": segments.iter().map(segment).collect::<Vec<_>>(),
        "memory": {"limit": admission.limit(), "in_use": in_use},
        "schema": serde_json::to_value(&*table.schema())?, "settings": serde_json::to_value(&*table.settings())?,
    }))
}

fn dead(segments: &[SegmentInfo]) -> usize {
    segments.iter().map(|segment| segment.deleted).sum()
}

/// Bytes of a sealed segment's files.
fn segment_bytes(folder: &Path, segment: &SegmentInfo) -> u64 {
    bytes(&folder.join("segments").join(format!("{:016x}", segment.segment.0)))
}

/// Bytes of all files in a folder and its folders; of what is gone or hidden, none.
fn bytes(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let of = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(meta) if meta.is_dir() => bytes(&entry.path()),
        Ok(meta) => meta.len(),
        Err(_) => 0,
    };
    entries.map(of).sum()
}
