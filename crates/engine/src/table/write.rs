//! Writes: checked, decided, logged, applied, shown; all but the wait for the disk under the writer's lock.
//!
//! Vectors go into the head's indexes before the records into the log, since memory may be short there: readers do not
//! see them until the view is replaced, and those of refused records are taken out again.

use super::head::{Head, Row};
use super::op::{encode_delete, encode_put};
use super::table::{Table, Writer};
use super::view::{At, Body, View};
use crate::documents::{DocumentError, Parsed};
use lanewise_index::{AddError, OwnedVectors, RemoveError, Search, SearchError};
use lanewise_storage::log::{AppendError, Poisoned, Position};
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;

/// The longest id, bytes.
const ID_BYTES_MAX: usize = 512;

/// One write.
#[derive(Clone, Debug)]
pub enum Write {
    /// Puts a document, in place of the one that has its id.
    Put {
        /// 1 to 512 bytes; not given: one that nobody has.
        id: Option<String>,
        /// The document.
        document: Map<String, Value>,
        /// Vectors by field, for whoever has them in memory; no field may come inside the document too.
        vectors: Vec<(String, OwnedVectors)>,
        /// On what condition.
        when: When,
    },
    /// Removes the document with an id.
    Delete {
        /// Its id.
        id: String,
        /// On what condition.
        when: When,
    },
}

/// On what condition a write is done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum When {
    /// On none.
    #[default]
    Always,
    /// If no document has the id.
    Absent,
    /// If the document was last written by the write with this sequence number.
    Seq(u64),
}

/// What a write did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// The document's id.
    pub id: String,
    /// Number of the write; later ones have larger numbers.
    pub seq: u64,
    /// How often the document was written since it was last created.
    pub version: u64,
    /// What it did.
    pub outcome: Outcome,
}

/// What became of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "their names say it")]
pub enum Outcome {
    Created,
    Updated,
    Deleted,
    /// There was nothing to delete.
    Missing,
}

/// Why a write was not done, or is not acknowledged.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum WriteError {
    #[error("id {id:?}: give 1 to {ID_BYTES_MAX} bytes")]
    Id { id: String },
    #[error(transparent)]
    Document(#[from] DocumentError),
    #[error("field {field:?}: {error}")]
    Vector { field: String, error: SearchError },
    #[error("document {id:?}: {}", conflict(.when, .found))]
    Conflict { id: String, when: When, found: Option<u64> },
    #[error("field {field:?}: {error}")]
    Add { field: String, error: Arc<AddError> },
    #[error(transparent)]
    Remove(Arc<RemoveError>),
    #[error(transparent)]
    Log(Arc<AppendError>),
    #[error("the write is done, but may not survive a crash: {0}")]
    NotDurable(Poisoned),
    #[error("the table takes no writes: {why}; open it again")]
    Failed { why: String },
}

fn conflict(when: &When, found: &Option<u64>) -> String {
    match (when, found) {
        (When::Seq(seq), Some(found)) => format!("its sequence number is {found}, not {seq}"),
        (When::Seq(seq), None) => format!("it is not there, so its sequence number is not {seq}"),
        _ => "it is there already".to_owned(),
    }
}

/// A write that was checked.
pub(super) struct Checked {
    pub(super) id: String,
    /// What to put; `None` deletes.
    pub(super) put: Option<Parsed>,
    pub(super) when: When,
    /// Sequence number and version, of what the log holds already.
    pub(super) logged: Option<(u64, u64)>,
}

/// A document as writes of the same call left it.
#[derive(Clone, Copy)]
struct Touched {
    /// Its version, if it is there.
    version: Option<u64>,
    at: Option<At>,
}

impl Table {
    /// Does writes, in order, each by itself: what is wrong with one does not touch the others. When it returns, those that
    /// succeeded are on disk, and every search sees them.
    pub fn write(&self, writes: Vec<Write>) -> Vec<Result<Written, WriteError>> {
        let checked: Vec<_> = writes.into_iter().map(|write| self.check(write)).collect();
        let mut writer = self.writer();
        if let Some(why) = writer.failed.clone() {
            return checked.into_iter().map(|_| Err(WriteError::Failed { why: why.clone() })).collect();
        }
        // A full disk is met before the head takes in what would be refused.
        if let Err(error) = self.log.prepare().map_err(Arc::new) {
            let refused = |write: Result<Checked, _>| write.and(Err(WriteError::Log(error.clone())));
            return checked.into_iter().map(refused).collect();
        }
        let (results, last) = self.apply(&mut writer, checked);
        drop(writer);
        let synced = last.map_or(Ok(()), |position| self.log.sync(position));
        let Err(poisoned) = synced else { return results };
        let not_durable =
            |result: Result<Written, WriteError>| result.and(Err(WriteError::NotDurable(poisoned.clone())));
        results.into_iter().map(not_durable).collect()
    }

    fn check(&self, write: Write) -> Result<Checked, WriteError> {
        let (id, when) = match &write {
            Write::Put { id, when, .. } => (id.clone().unwrap_or_else(|| self.new_id()), *when),
            Write::Delete { id, when } => (id.clone(), *when),
        };
        if !(1..=ID_BYTES_MAX).contains(&id.len()) {
            return Err(WriteError::Id { id });
        }
        let Write::Put { document, vectors, .. } = write else {
            return Ok(Checked { id, put: None, when, logged: None });
        };
        let parsed = self.mapping.parse(&id, &document, vectors)?;
        // Whether its numbers suit the metric only the index can tell; any of the field will do.
        let view = self.view();
        let head = view.parts.last().expect("there is always a head");
        for ((field, (name, _)), vector) in self.mapping.schema().vectors().enumerate().zip(&parsed.vectors) {
            let Some(vector) = vector else { continue };
            let checked = head.reader(field).check(vector.as_vectors(), &Search::new(1));
            checked.map_err(|error| WriteError::Vector { field: name.to_owned(), error })?;
        }
        Ok(Checked { id, put: Some(parsed), when, logged: None })
    }

    /// Decides on writes and does them; also the position of the last that was logged now.
    pub(super) fn apply(
        &self,
        writer: &mut Writer,
        checked: Vec<Result<Checked, WriteError>>,
    ) -> (Vec<Result<Written, WriteError>>, Option<Position>) {
        let view = self.view();
        let mut parts = view.parts.clone();
        let last = parts.len() - 1;
        // What is decided by conditions is decided in order; whoever fails here adds nothing.
        let mut seen: HashMap<String, bool> = HashMap::new();
        let decided: Vec<Result<Checked, WriteError>> = checked
            .into_iter()
            .map(|write| {
                let write = write?;
                let now = seen.get(&write.id).copied();
                let found = match now {
                    // Written by this call: with a number that nobody knows yet.
                    Some(there) => there.then_some(0),
                    None => view.find(&write.id).map(|at| view.parts[at.part].seq(at.row)),
                };
                let done = match write.when {
                    When::Always => true,
                    When::Absent => found.is_none(),
                    When::Seq(seq) => now.is_none() && found == Some(seq),
                };
                if !done {
                    return Err(WriteError::Conflict { id: write.id, when: write.when, found });
                }
                seen.insert(write.id.clone(), write.put.is_some());
                Ok(write)
            })
            .collect();
        let Body::Head(head) = &mut parts[last].body else { unreachable!("the last part is the head") };
        let mut dead = Vec::new();
        let decided = self.add_vectors(head, decided, |row| dead.push(At { part: last, row }));
        let mut touched: HashMap<String, Touched> = HashMap::new();
        let mut position = None;
        let mut results = Vec::with_capacity(decided.len());
        for write in decided {
            let Checked { id, put, logged, .. } = match write {
                Ok(write) => write,
                Err(error) => {
                    results.push(Err(error));
                    continue;
                }
            };
            let before = touched.get(&id).copied().unwrap_or_else(|| {
                let at = view.find(&id);
                Touched { version: at.map(|at| view.parts[at.part].version(at.row)), at }
            });
            let Body::Head(head) = &mut parts[last].body else { unreachable!("the last part is the head") };
            let version = before.version.map_or(1, |version| version + 1);
            if put.is_none() && before.at.is_none() {
                let (seq, outcome) = (self.log.last(), Outcome::Missing);
                results.push(Ok(Written { id, seq, version, outcome }));
                continue;
            }
            let version = logged.map_or(version, |(_, version)| version);
            let appended = match (logged, &put) {
                (Some(_), _) => Ok(None),
                (None, Some(parsed)) => self.log.append(&encode_put(&id, version, parsed)).map(Some),
                (None, None) => self.log.append(&encode_delete(&id, version)).map(Some),
            };
            let now = appended.as_ref().ok().copied().flatten().map(Position::sequence);
            let seq = now.or(logged.map(|(seq, _)| seq)).unwrap_or(0);
            let at = put.map(|parsed| At {
                part: last,
                row: head.push(Row { id: id.clone(), seq, version, parsed }),
            });
            match appended {
                Ok(now) => position = now.or(position),
                Err(error) => {
                    // Its vectors have numbers already: it is a row that died at once.
                    dead.extend(at);
                    results.push(Err(WriteError::Log(Arc::new(error))));
                    continue;
                }
            }
            dead.extend(before.at);
            let outcome = match (at, before.at) {
                (Some(_), Some(_)) => Outcome::Updated,
                (Some(_), None) => Outcome::Created,
                (None, _) => Outcome::Deleted,
            };
            touched.insert(id.clone(), Touched { version: at.map(|_| version), at });
            results.push(Ok(Written { id, seq, version, outcome }));
        }
        dead.sort_unstable();
        for same in dead.chunk_by(|a, b| a.part == b.part) {
            let part = &mut parts[same[0].part];
            let rows: Vec<u32> = same.iter().map(|at| at.row).collect();
            rows.iter().for_each(|&row| {
                part.deleted.insert(row);
            });
            if let Body::Head(head) = &mut part.body
                && let Err(error) = head.remove(&rows)
            {
                // Searches go by the bitmap no longer: what is dead would be found.
                writer.failed = Some(error.to_string());
            }
        }
        self.publish(View { parts });
        (results, position)
    }

    /// Adds the vectors of all puts to the head's indexes, field by field. Where one is refused, all puts are, and `dead`
    /// hears the rows of what was added before.
    fn add_vectors(
        &self,
        head: &mut Head,
        mut writes: Vec<Result<Checked, WriteError>>,
        dead: impl FnMut(u32),
    ) -> Vec<Result<Checked, WriteError>> {
        let mut failed = None;
        for (field, (name, _)) in self.mapping.schema().vectors().enumerate() {
            let puts = writes.iter().filter_map(|write| write.as_ref().ok()?.put.as_ref());
            let Some(all) = joined(puts.filter_map(|parsed| parsed.vectors[field].as_ref())) else {
                continue;
            };
            let index = &head.vectors[field].index;
            let added = index
                .add(all.as_vectors(), None, &self.resources.threads, &mut |_| ControlFlow::Continue(()));
            if let Err(error) = added {
                failed = Some((field, name.to_owned(), Arc::new(error)));
                break;
            }
        }
        let Some((field, name, error)) = failed else {
            head.refresh();
            return writes;
        };
        let puts = writes.iter_mut().filter(|write| write.as_ref().is_ok_and(|write| write.put.is_some()));
        let refused = puts.filter_map(|write| {
            let error = WriteError::Add { field: name.clone(), error: error.clone() };
            std::mem::replace(write, Err(error)).ok()
        });
        refused
            .filter_map(|Checked { id, put, .. }| {
                let mut parsed = put?;
                parsed.vectors[field..].fill(None);
                Some(head.push(Row { id, seq: 0, version: 0, parsed }))
            })
            .for_each(dead);
        head.refresh();
        writes
    }
}

/// Vectors of one field, one after the other; `None` if there are none.
fn joined<'a>(mut vectors: impl Iterator<Item = &'a OwnedVectors>) -> Option<OwnedVectors> {
    let mut all = vectors.next()?.clone();
    vectors.for_each(|one| all.extend(one.as_vectors()));
    Some(all)
}
