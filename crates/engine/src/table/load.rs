//! Loading many documents at once: they go straight into a segment, whose indexes are built once, by all the cores there
//! are, and not through the log and the head.
//!
//! Nothing of a load is seen before [`Load::finish`], which makes it durable and shows it as a whole: then it takes the
//! place of what was written under the same ids until that moment. A number of the log's is spent on it, so that what the
//! log holds from before is known to be older when it is replayed.

use super::apply::kill;
use super::bits::Bits;
use super::directory::Folder;
use super::effort::Effort;
use super::indexes::{add_coded, check_vectors, coded, joined};
use super::memory::Asked;
use super::need::{self, Loaded};
use super::op;
use super::rows;
use super::seal::FlushError;
use super::segment::{self, Sealed, SegmentError, SegmentId};
use super::table::Table;
use super::view::{At, Body, Part};
use super::write::{ID_BYTES_MAX, WriteError};
use crate::documents::{DocumentError, Mapping, Parsed, RunWriter};
use crate::{Admitted, Purpose, Refusal};
use lanewise_index::{AddError, CreateError, Executor, Index, OwnedVectors, Reader, Search, Vectors};
use lanewise_storage::manifest::ReplaceError;
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::sync::Arc;

/// Documents under way into a table; dropped without [`finish`](Self::finish), nothing of them stays.
pub struct Load<'a> {
    begun: Begun<'a>,
    folder: Folder,
    documents: RunWriter,
    /// Of each row; empty: a nested object of the document before it.
    ids: Vec<String>,
    /// Rows of nested objects.
    nested: usize,
    /// By vector field; with the row of each vector's number.
    indexes: Vec<(Index, Vec<u32>)>,
    /// Some of a batch is in, and some is not.
    broken: bool,
    loaded: Loaded,
    memory: Admitted,
}

/// A segment that is removed again unless it is finished.
struct Begun<'a> {
    table: &'a Table,
    /// As the load began.
    mapping: Arc<Mapping>,
    segment: SegmentId,
    finished: bool,
}

impl Drop for Begun<'_> {
    fn drop(&mut self) {
        if !self.finished {
            // Best effort: what is left is removed when the table is opened.
            let _ = segment::remove(&*self.table.storage, self.segment);
        }
    }
}

/// Documents to be loaded together.
#[derive(Clone, Debug, Default)]
pub struct Batch<'a> {
    /// One for each document, 1 to 512 bytes; not given: ones that nobody has.
    pub ids: Option<Vec<String>>,
    /// The documents, which may hold vectors.
    pub documents: Vec<Map<String, Value>>,
    /// Vectors by field, one for each document, one after the other.
    pub vectors: Vec<(&'a str, Vectors<'a>)>,
}

/// Why documents were not loaded.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum LoadError {
    #[error("{ids} ids for {documents} documents: give one each")]
    Ids { ids: usize, documents: usize },
    #[error("field {field:?}: {vectors} vectors for {documents} documents: give one each")]
    Vectors { field: String, vectors: usize, documents: usize },
    #[error("document {number}: {error}")]
    Document { number: usize, error: WriteError },
    #[error("field {field:?}: {error}; begin the load again")]
    Add { field: String, error: AddError },
    #[error("an earlier batch failed when some of it was in: begin the load again")]
    Broken,
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error(transparent)]
    Segment(#[from] SegmentError),
    #[error(transparent)]
    Create(#[from] CreateError),
}

impl Table {
    /// Begins to load documents.
    ///
    /// # Errors
    /// If memory is short, or the system fails.
    pub fn load(&self) -> Result<Load<'_>, LoadError> {
        let loaded = Loaded::default();
        let memory = self.resources.admission.admit(Purpose::Write, need::loaded(loaded, 0))?;
        let segment = self.new_segment();
        let mapping = self.view().mapping.clone();
        let indexes = mapping.schema().vectors().map(|(_, params)| Ok((Index::new(*params)?, Vec::new())));
        let indexes = indexes.collect::<Result<Vec<_>, CreateError>>()?;
        segment::remove(&*self.storage, segment)
            .map_err(|error| SegmentError::Io { path: segment::folder(segment), error })?;
        let folder = segment::begin(&self.storage, segment)?;
        let documents = RunWriter::new(&mapping, Box::new(folder.clone())).map_err(SegmentError::from)?;
        let ids = Vec::new();
        let begun = Begun { table: self, mapping, segment, finished: false };
        Ok(Load { begun, folder, documents, ids, nested: 0, indexes, broken: false, loaded, memory })
    }
}

impl Load<'_> {
    /// Makes room for so many documents with all their vectors: without, memory grows by halves, and is copied.
    ///
    /// # Errors
    /// If there is no memory: nothing has changed.
    pub fn reserve(&mut self, documents: usize) -> Result<(), LoadError> {
        let rows = self.loaded.rows + documents;
        self.ask(Loaded { rows, ..self.loaded }, &vec![documents; self.indexes.len()], 0, 1)?;
        self.ids.reserve(documents);
        let schema = self.begun.mapping.schema();
        for ((name, _), (index, _)) in schema.vectors().zip(&self.indexes) {
            index.reserve(documents).map_err(|error| LoadError::Add { field: name.to_owned(), error })?;
        }
        Ok(())
    }

    /// Takes in documents; one large batch is built by more cores than many small ones. A document whose id came before
    /// in this load replaces the earlier one.
    ///
    /// # Errors
    /// If anything about a document is wrong or memory is short, nothing of the batch is taken in. If an index refuses
    /// vectors or the system fails, the load is over.
    pub fn add(&mut self, batch: Batch<'_>, effort: &Effort<'_>) -> Result<(), LoadError> {
        if self.broken {
            return Err(LoadError::Broken);
        }
        let (ids, parsed) = self.parse(&batch)?;
        let first = self.ids.len() as u32;
        let bytes = ids.iter().map(String::len).chain(parsed.iter().map(|one| one.source.len()));
        let bytes = self.loaded.bytes + bytes.sum::<usize>();
        let schema = self.begun.mapping.schema();
        let rows: Vec<&Parsed> = parsed.iter().flat_map(Parsed::rows).collect();
        let loaded = Loaded { rows: self.loaded.rows + rows.len(), bytes };
        let counts = schema.vectors().enumerate().map(|(field, (name, _))| {
            let given = batch.vectors.iter().any(|(of, _)| *of == name);
            if given { parsed.len() } else { rows.iter().filter(|row| row.vectors[field].is_some()).count() }
        });
        let counts: Vec<usize> = counts.collect();
        self.ask(loaded, &counts, need::batch(&parsed), effort.threads.workers())?;
        self.loaded = loaded;
        self.broken = true;
        let schema = self.begun.mapping.schema();
        for (field, ((name, _), (index, of))) in schema.vectors().zip(&mut self.indexes).enumerate() {
            let given = batch.vectors.iter().find(|(of, _)| *of == name);
            let inside = || joined(rows.iter().filter_map(|row| row.vectors[field].as_ref()));
            let owned = if given.is_some() { None } else { inside() };
            let Some(vectors) = given.map(|(_, all)| *all).or(owned.as_ref().map(OwnedVectors::as_vectors))
            else {
                continue;
            };
            add_coded(index, vectors, effort)
                .map_err(|error| LoadError::Add { field: name.to_owned(), error })?;
            // What comes beside documents is of each of them, and of no nested object.
            let has = |row: &Parsed| {
                if given.is_some() { !row.source.is_empty() } else { row.vectors[field].is_some() }
            };
            of.extend((first..).zip(&rows).filter(|(_, row)| has(row)).map(|(row, _)| row));
        }
        for (id, parsed) in ids.into_iter().zip(parsed) {
            self.ids.push(id);
            self.ids.extend(parsed.nested.iter().map(|_| String::new()));
            self.nested += parsed.nested.len();
            self.documents.add(parsed).map_err(SegmentError::from)?;
        }
        self.broken = false;
        let held = self.indexes.iter().map(|(index, _)| index.owned_bytes()).sum();
        self.memory.settle(need::loaded(self.loaded, held));
        Ok(())
    }

    /// Asks for the memory of documents `loaded` with so many vectors more by field, beside so many bytes that pass.
    fn ask(
        &mut self,
        loaded: Loaded,
        counts: &[usize],
        passing: usize,
        workers: usize,
    ) -> Result<(), LoadError> {
        let (mut held, mut most) = (0, 0);
        let schema = self.begun.mapping.schema();
        for ((name, _), ((index, _), &count)) in schema.vectors().zip(self.indexes.iter().zip(counts)) {
            let need = index.predict(count, false, workers);
            let need = need.map_err(|error| LoadError::Add { field: name.to_owned(), error })?;
            held += need.held;
            most = most.max(need.peak.saturating_sub(need.held));
        }
        Ok(self.memory.raise(need::loaded(loaded, held + most + passing))?)
    }

    /// Number of documents so far, replaced ones among them.
    pub fn len(&self) -> usize {
        self.ids.len() - self.nested
    }

    /// Whether there are none yet.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// The documents with their ids. Vectors that come beside them stay where they are.
    fn parse(&self, batch: &Batch<'_>) -> Result<(Vec<String>, Vec<Parsed>), LoadError> {
        let table = self.begun.table;
        let mapping = &self.begun.mapping;
        let documents = batch.documents.len();
        let ids = match &batch.ids {
            Some(ids) if ids.len() != documents => return Err(LoadError::Ids { ids: ids.len(), documents }),
            Some(ids) => ids.clone(),
            None => (0..documents).map(|_| table.new_id()).collect(),
        };
        let wrong = |number: usize, error: WriteError| LoadError::Document { number, error };
        let readers: Vec<Reader> = self.indexes.iter().map(|(index, _)| index.reader()).collect();
        let mut dims = Vec::new();
        for &(name, all) in &batch.vectors {
            let known = mapping.vector(name).filter(|_| mapping.schema().nested(name).is_none());
            let Some((field, params)) = known else {
                return Err(wrong(0, DocumentError::NoVector { field: name.to_owned() }.into()));
            };
            let vectors = all.count(params.dim);
            if vectors != documents {
                return Err(LoadError::Vectors { field: name.to_owned(), vectors, documents });
            }
            dims.push((name, all, params.dim));
            let check = |vectors: Vectors<'_>| readers[field].check(vectors, &Search::new(1));
            if let Err(error) = check(all) {
                let of = |number: usize| check(all.slice(params.dim, number..number + 1)).err();
                let first = (0..documents).find_map(|number| Some((number, of(number)?)));
                let (number, error) = first.unwrap_or((0, error));
                return Err(wrong(number, WriteError::Vector { field: name.to_owned(), error }));
            }
        }
        let mut parsed = Vec::with_capacity(documents);
        for (number, (id, document)) in ids.iter().zip(&batch.documents).enumerate() {
            if !(1..=ID_BYTES_MAX).contains(&id.len()) {
                return Err(wrong(number, WriteError::Id { id: id.clone() }));
            }
            let owned = |&(name, all, dim): &(&str, Vectors<'_>, usize)| {
                (name.to_owned(), OwnedVectors::from(all.slice(dim, number..number + 1)))
            };
            let beside = dims.iter().map(owned).collect();
            let mut one = mapping.parse(id, document, beside).map_err(|error| wrong(number, error.into()))?;
            for (field, (name, _)) in mapping.schema().vectors().enumerate() {
                if batch.vectors.iter().any(|(given, _)| *given == name) {
                    one.vectors[field] = None;
                }
            }
            check_vectors(mapping, &one, |field| &readers[field]).map_err(|error| wrong(number, error))?;
            parsed.push(one);
        }
        Ok((ids, parsed))
    }

    /// Makes all of it durable and shows it. How many documents there are, each id counted once.
    ///
    /// # Errors
    /// What failed; the table is as it was.
    pub fn finish(self, effort: &Effort<'_>) -> Result<usize, FlushError> {
        let Load { mut begun, folder, documents, ids, indexes: built, broken, memory: _memory, .. } = self;
        let (table, segment) = (begun.table, begun.segment);
        let failed = |error: SegmentError| FlushError::Segment { segment, error };
        if broken {
            return Err(failed(SegmentError::Stopped));
        }
        if ids.is_empty() {
            return Ok(0);
        }
        let mut of_vectors = Vec::new();
        let mapping = begun.mapping.clone();
        let fields = mapping.schema().vectors().enumerate();
        for ((index, rows), (field, (_, params))) in built.into_iter().zip(fields) {
            let coded = coded(&index, params.code, &effort.threads).map_err(|e| failed(e.into()))?;
            let index = coded.unwrap_or(index);
            segment::write_index(&*table.storage, segment, field, &index).map_err(failed)?;
            of_vectors.push(rows);
        }
        effort.check().map_err(failed)?;
        documents.finish().map_err(|error| failed(error.into()))?;
        let mut last: HashMap<&str, u32> = HashMap::with_capacity(ids.len());
        let mut replaced = Bits::default();
        for (row, id) in (0..).zip(&ids).filter(|(_, id)| !id.is_empty()) {
            if let Some(earlier) = last.insert(id, row) {
                replaced.insert(earlier);
                let nested = (earlier + 1..).zip(&ids[earlier as usize + 1..]);
                replaced.extend(nested.take_while(|(_, id)| id.is_empty()).map(|(row, _)| row));
            }
        }
        let loaded = last.len();
        drop(last);

        // From here on writers wait: what they wrote last is what is replaced.
        let mut writer = table.writer();
        if let Some(why) = &writer.failed {
            return Err(FlushError::Failed { why: why.clone() });
        }
        let position = table.log.append(&op::encode_load())?;
        table.log.sync(position).map_err(|poisoned| FlushError::Log(poisoned.into()))?;
        let seq = position.sequence();
        let view = table.view();
        let (mut rows, mut dead) = (Vec::with_capacity(ids.len()), Vec::new());
        for (row, id) in (0..).zip(&ids) {
            if let (true, Some(&of)) = (id.is_empty(), rows.last()) {
                rows.push(rows::Written { id, ..of });
                continue;
            }
            let found = view.find(id).filter(|_| !replaced.contains(row));
            let version = found.map_or(1, |at| view.parts[at.part].version(at.row) + 1);
            dead.extend(found);
            rows.push(rows::Written { id, seq, version });
        }
        let of = (&rows[..], &of_vectors[..]);
        let asked = Asked::Told(&table.resources.admission);
        let sealed = Sealed::finish(&table.storage, &mapping, folder, segment, of, asked);
        let sealed = Arc::new(sealed.map_err(failed)?);
        let sealed = sealed.as_of(&table.storage, &view.mapping, segment).map_err(failed)?;
        let mut parts = view.parts.clone();
        let (heads, rest): (Vec<At>, Vec<At>) =
            dead.into_iter().partition(|at| matches!(view.parts[at.part].body, Body::Head(_)));
        let fine = kill(&mut parts, rest);
        debug_assert!(fine.is_ok(), "bits are set");
        let part = Part::new(&view.mapping, segment, Body::Sealed(sealed), replaced);
        let at = parts.len() - 1;
        parts.insert(at, part);
        let committed = table.commit(&mut writer, &parts, None);
        // A manifest that may hold names the segment.
        begun.finished = matches!(committed, Ok(_) | Err(FlushError::Manifest(ReplaceError::Unsure(_))));
        let stale = committed?;
        // What cannot be undone comes after what may fail.
        let heads =
            heads.into_iter().map(|At { part, row }| At { part: part + usize::from(part >= at), row });
        writer.failed = kill(&mut parts, heads.collect()).err();
        table.show(parts);
        drop(writer);
        table.remove_stale(stale);
        Ok(loaded)
    }
}
