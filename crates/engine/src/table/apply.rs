//! Doing writes. All are decided first, in order, each seeing what those before it will have done; then their vectors go
//! into the head's indexes, since memory may be short there; then each goes into the log and the head.
//!
//! Works on a copy of the parts, so readers see none of it until that is published. A row that is refused late has its
//! place already, and is dead from the start.

use super::head::{Head, Row};
use super::indexes::joined;
use super::op;
use super::view::{At, Body, Part, find};
use super::write::{Outcome, When, WriteError, Written};
use crate::Threads;
use crate::documents::{Mapping, Parsed};
use lanewise_storage::log::{AppendError, Log, Position};
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;

/// A write that was checked.
pub(super) struct Checked {
    pub(super) id: String,
    /// What to put; `None` deletes.
    pub(super) put: Option<Parsed>,
    pub(super) when: When,
    /// Sequence number and version, of what the log holds already.
    pub(super) logged: Option<(u64, u64)>,
}

/// What came of writes.
pub(super) struct Applied {
    pub(super) parts: Vec<Part>,
    pub(super) results: Vec<Result<Written, WriteError>>,
    /// The last record that was logged.
    pub(super) last: Option<Position>,
    /// Why nothing more can be written.
    pub(super) failed: Option<String>,
}

/// Who writes, and where to.
pub(super) struct Writing<'a> {
    pub(super) mapping: &'a Mapping,
    pub(super) threads: Threads,
    /// `None`: all writes are logged already.
    pub(super) log: Option<&'a Log>,
    /// Asked while vectors are added; what is not logged yet is refused then.
    pub(super) proceed: &'a dyn Fn() -> ControlFlow<()>,
}

/// A document as writes before this one leave it.
#[derive(Clone, Copy)]
struct Found {
    at: Option<At>,
    version: u64,
    /// `None`: written by the same call, with a number that nobody knows yet.
    seq: Option<u64>,
}

/// A write as it will be done.
struct Decided {
    id: String,
    put: Option<Parsed>,
    version: u64,
    /// Its number, if the log holds it already.
    logged: Option<u64>,
    /// The row that dies by it.
    kills: Option<At>,
}

impl Decided {
    fn outcome(&self) -> Outcome {
        match (&self.put, self.kills) {
            (Some(_), Some(_)) => Outcome::Updated,
            (Some(_), None) => Outcome::Created,
            (None, Some(_)) => Outcome::Deleted,
            (None, None) => Outcome::Missing,
        }
    }
}

fn head_of(parts: &mut [Part]) -> &mut Head {
    match parts.last_mut().map(|part| &mut part.body) {
        Some(Body::Head(head)) => head,
        _ => unreachable!("the last part is the head"),
    }
}

impl Writing<'_> {
    /// Does `checked`, of which some may be refused already.
    pub(super) fn apply(&self, mut parts: Vec<Part>, checked: Vec<Result<Checked, WriteError>>) -> Applied {
        let last = parts.len() - 1;
        let mut writes = decide(&parts, checked);
        let added = self.add_vectors(head_of(&mut parts), &writes);
        let head = head_of(&mut parts);
        head.refresh();
        let mut applied = Applied { parts: Vec::new(), results: Vec::new(), last: None, failed: None };
        let mut dead = Vec::new();
        let mut refused: Option<Arc<AppendError>> = None;
        for write in writes.drain(..) {
            let mut decided = match write {
                Ok(decided) => decided,
                Err(error) => {
                    applied.results.push(Err(error));
                    continue;
                }
            };
            let outcome = decided.outcome();
            let logged = match &added {
                Err(failed) => {
                    // Vectors of the fields before are in.
                    if let Some(parsed) = &mut decided.put {
                        parsed.each_row(|row| row.vectors[failed.field..].fill(None));
                    }
                    Err(WriteError::Add { field: failed.name.clone(), error: failed.error.clone() })
                }
                Ok(()) if outcome == Outcome::Missing => Ok(self.log.map_or(0, Log::last)),
                Ok(()) => self.number(&decided, &mut applied.last, &mut refused),
            };
            let Decided { id, put, version, kills, .. } = decided;
            let seq = *logged.as_ref().unwrap_or(&0);
            let row = put.map(|parsed| head.push(Row { id: id.clone(), seq, version, parsed }));
            applied.results.push(match logged {
                Ok(seq) => {
                    dead.extend(kills);
                    Ok(Written { id, seq, version, outcome })
                }
                Err(error) => {
                    dead.extend(row.map(|row| At { part: last, row }));
                    Err(error)
                }
            });
        }
        applied.failed = kill(&mut parts, dead).err();
        applied.parts = parts;
        applied
    }

    /// Logs a write, unless it is logged or one before it could not be; its number.
    fn number(
        &self,
        decided: &Decided,
        last: &mut Option<Position>,
        refused: &mut Option<Arc<AppendError>>,
    ) -> Result<u64, WriteError> {
        let Decided { id, put, version, logged, .. } = decided;
        let (Some(log), None) = (self.log, logged) else { return Ok(logged.unwrap_or(0)) };
        if refused.is_none() {
            match log.append(&op::encode(id, *version, put.as_ref())) {
                Ok(position) => {
                    *last = Some(position);
                    return Ok(position.sequence());
                }
                Err(error) => *refused = Some(Arc::new(error)),
            }
        }
        Err(WriteError::Log(refused.clone().expect("just set")))
    }

    /// Adds the vectors of all puts to the head's indexes, field by field.
    fn add_vectors(&self, head: &Head, writes: &[Result<Decided, WriteError>]) -> Result<(), NotAdded> {
        for (field, (name, _)) in self.mapping.schema().vectors().enumerate() {
            let puts = writes.iter().filter_map(|write| write.as_ref().ok()?.put.as_ref());
            let rows = puts.flat_map(Parsed::rows);
            let Some(all) = joined(rows.filter_map(|row| row.vectors[field].as_ref())) else {
                continue;
            };
            let go = &mut |_| (self.proceed)();
            let added = head.vectors[field].index.add(all.as_vectors(), None, &self.threads, go);
            added.map_err(|error| NotAdded { field, name: name.to_owned(), error: Arc::new(error) })?;
        }
        Ok(())
    }
}

/// A field whose vectors, as those of the fields behind it, were not added.
struct NotAdded {
    field: usize,
    name: String,
    error: Arc<lanewise_index::AddError>,
}

/// What each write will do.
fn decide(parts: &[Part], checked: Vec<Result<Checked, WriteError>>) -> Vec<Result<Decided, WriteError>> {
    let last = parts.len() - 1;
    let mut next = parts[last].rows() as u32;
    let mut touched: HashMap<String, Found> = HashMap::new();
    let mut decide = |write: Checked| {
        let Checked { id, put, when, logged } = write;
        let found = touched.get(&id).copied().unwrap_or_else(|| match find(parts, &id) {
            Some(at) => {
                let part = &parts[at.part];
                Found { at: Some(at), version: part.version(at.row), seq: Some(part.seq(at.row)) }
            }
            None => Found { at: None, version: 0, seq: None },
        });
        let holds = match when {
            When::Always => true,
            When::Absent => found.at.is_none(),
            When::Seq(seq) => found.at.is_some() && found.seq == Some(seq),
        };
        if !holds {
            let found = found.at.map(|_| found.seq.unwrap_or(0));
            return Err(WriteError::Conflict { id, when, found });
        }
        // What was loaded later is in a segment already (see `load.rs`).
        let skipped = logged.is_some_and(|(seq, _)| found.seq.is_some_and(|found| found > seq));
        let (put, found) = if skipped { (None, Found { at: None, ..found }) } else { (put, found) };
        op::check(&id, put.as_ref()).map_err(|error| WriteError::Log(Arc::new(error)))?;
        let version = logged.map_or(found.version + 1, |(_, version)| version);
        let at = put.as_ref().map(|_| At { part: last, row: next });
        next += put.as_ref().map_or(0, |parsed| parsed.rows().count() as u32);
        if at.is_some() || found.at.is_some() {
            let version = if at.is_some() { version } else { 0 };
            touched.insert(id.clone(), Found { at, version, seq: None });
        }
        Ok(Decided { id, put, version, logged: logged.map(|(seq, _)| seq), kills: found.at })
    };
    checked.into_iter().map(|write| write.and_then(&mut decide)).collect()
}

/// Marks documents as dead, and their nested objects; if that fails, why.
pub(super) fn kill(parts: &mut [Part], mut dead: Vec<At>) -> Result<(), String> {
    dead.sort_unstable();
    for same in dead.chunk_by(|a, b| a.part == b.part) {
        let part = &mut parts[same[0].part];
        let rows = same.iter().flat_map(|at| std::iter::once(at.row).chain(part.nested_of(at.row)));
        let rows: Vec<u32> = rows.collect();
        for &row in &rows {
            part.deleted.insert(row);
        }
        if let Body::Head(head) = &mut part.body {
            // Searches of heads do not go by the bitmap: what is dead would be found.
            head.remove(&rows).map_err(|error| error.to_string())?;
        }
    }
    Ok(())
}
