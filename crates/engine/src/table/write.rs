//! Writes: checked, applied (see `apply.rs`), shown; all but the wait for the disk under the writer's lock.

use super::apply::{Applied, Checked, Writing};
use super::indexes::check_vectors;
use super::need::{self, HeadNeed};
use super::settings::Durability;
use super::table::Table;
use super::view::{Body, View};
use crate::Refusal;
use crate::documents::DocumentError;
use lanewise_index::{AddError, Executor, OwnedVectors, SearchError};
use lanewise_storage::log::{AppendError, Poisoned};
use serde_json::{Map, Value};
use std::ops::ControlFlow;
use std::sync::Arc;

/// The longest id, bytes.
pub(super) const ID_BYTES_MAX: usize = 512;

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
    Refused(#[from] Refusal),
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

impl Table {
    /// Does writes, in order, each by itself: what is wrong with one does not touch the others. When it returns, those that
    /// succeeded are on disk ([`Durability::Async`]: with the system), and every search sees them.
    pub fn write(&self, writes: Vec<Write>) -> Vec<Result<Written, WriteError>> {
        let mut checked: Vec<_> = writes.into_iter().map(|write| self.check(write)).collect();
        let mut writer = self.writer();
        if let Some(why) = writer.failed.clone() {
            return checked.into_iter().map(|_| Err(WriteError::Failed { why: why.clone() })).collect();
        }
        // A full disk is met before the head takes in what would be refused.
        if let Err(error) = self.log.prepare().map_err(Arc::new) {
            let refused = |write: Result<Checked, _>| write.and(Err(WriteError::Log(error.clone())));
            return checked.into_iter().map(refused).collect();
        }
        // Somebody may have added fields since they were checked.
        let fields = self.view().mapping.schema().vectors().count();
        for parsed in checked.iter_mut().flatten().filter_map(|checked| checked.put.as_mut()) {
            parsed.each_row(|row| row.vectors.resize(fields, None));
        }
        // Before anything is decided: what is refused leaves nothing. What deletes needs no memory to speak of.
        let mut sealing = None;
        let checked = match self.ask_to_write(&checked) {
            Ok(asked) => {
                sealing = asked;
                checked
            }
            Err(error) => {
                let is_put = |write: &Checked| write.put.is_some();
                let refused =
                    |write: Checked| if is_put(&write) { Err(error.clone().into()) } else { Ok(write) };
                checked.into_iter().map(|write| write.and_then(refused)).collect()
            }
        };
        let view = self.view();
        let writing = Writing {
            mapping: &view.mapping,
            threads: self.resources.threads.yielding(),
            log: Some(&self.log),
            proceed: &|| ControlFlow::Continue(()),
        };
        let Applied { parts, results, last, failed } = writing.apply(view.parts.clone(), checked);
        writer.failed = failed;
        self.publish(View { mapping: view.mapping.clone(), parts });
        self.count_head(sealing);
        drop(writer);
        let waits = self.settings().durability == Durability::Request;
        let synced = last.filter(|_| waits).map_or(Ok(()), |position| self.log.sync(position));
        let Err(poisoned) = synced else { return results };
        let not_durable =
            |result: Result<Written, WriteError>| result.and(Err(WriteError::NotDurable(poisoned.clone())));
        results.into_iter().map(not_durable).collect()
    }

    /// Asks for the memory that the head will need; what of it is for sealing, if something is put.
    fn ask_to_write(&self, checked: &[Result<Checked, WriteError>]) -> Result<Option<u64>, Refusal> {
        let view = self.view();
        let Some(Body::Head(head)) = view.parts.last().map(|part| &part.body) else { return Ok(None) };
        let writes = checked.iter().flatten();
        if writes.clone().all(|write| write.put.is_none()) {
            return Ok(None);
        }
        // What cannot be predicted cannot be added either, which is said there.
        let need = need::grown(&view.mapping, head, writes, self.resources.threads.workers());
        let Ok(need) = need else { return Ok(None) };
        head.memory.ask(&self.resources.admission, need)?;
        Ok(Some(need.sealing))
    }

    /// Counts what the head holds now; `sealing` is what it takes to seal it, where that is known: to predict it takes
    /// an index for each coded field. To be called by who holds the writer.
    pub(super) fn count_head(&self, sealing: Option<u64>) {
        let view = self.view();
        let Some(Body::Head(head)) = view.parts.last().map(|part| &part.body) else { return };
        let workers = self.resources.threads.workers();
        let need = match sealing {
            Some(sealing) => Ok(HeadNeed { written: need::head_written(head), sealing }),
            None => need::head(&view.mapping, head, workers),
        };
        if let Ok(need) = need {
            head.memory.settle(&self.resources.admission, need);
        }
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
        let view = self.view();
        let parsed = view.mapping.parse(&id, &document, vectors)?;
        let head = view.parts.last().expect("there is always a head");
        check_vectors(&view.mapping, &parsed, |field| head.reader(field))?;
        Ok(Checked { id, put: Some(parsed), when, logged: None })
    }
}
