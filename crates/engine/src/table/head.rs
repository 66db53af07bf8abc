//! The head: rows in memory, searched as soon as they are in.
//!
//! One writer appends; readers hold copies that stay as they were ([`Appended`]). Vectors go into indexes that grow and
//! mend in place; they have no code, since one that cannot order what comes would refuse it. Documents are put into [`Run`]s when somebody first asks for what is in them: each run holds what came
//! since the last, and runs are put together as they become many, so that a document is written again a few times only.

use super::append::Appended;
use super::bits::Bits;
use super::lookup::{Lookup, hash};
use super::memory::HeadMemory;
use super::op;
use crate::Threads;
use crate::documents::{Mapping, Parsed, Run, RunError};
use arc_swap::ArcSwap;
use lanewise_index::{AddError, Code, CreateError, Index, Params, Reader, RemoveError};
use std::cell::Cell;
use std::ops::{ControlFlow, Range};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::thread;
use std::time::Duration;
use tantivy::directory::RamDirectory;

/// Runs that hold all rows, in order, each with its first row.
pub(super) type Divided = Arc<Vec<(u32, Run)>>;

/// Rows between two questions whether to go on, and between two while somebody else makes runs.
const ASKED_EVERY: u32 = 64;
const PERIOD: Duration = Duration::from_millis(2);

/// A document, and which write it came with; or a nested object of the document before it, which has no id.
pub(super) struct Row {
    pub(super) id: String,
    pub(super) seq: u64,
    pub(super) version: u64,
    pub(super) parsed: Parsed,
}

/// Vectors of one field: the index, as it was when it was last looked at, and the row of each vector's number.
#[derive(Clone)]
pub(super) struct Vectors {
    pub(super) index: Arc<Index>,
    pub(super) reader: Reader,
    /// Ascending: a row has one vector of a field.
    pub(super) rows: Appended<u32>,
}

impl Vectors {
    pub(super) fn new(params: &Params) -> Result<Vectors, CreateError> {
        let index = Arc::new(Index::new(Params { code: Code::None, ..*params })?);
        Ok(Vectors { reader: index.reader(), index, rows: Appended::default() })
    }
}

/// A head; a copy stays as it was.
#[derive(Clone)]
pub(super) struct Head {
    pub(super) rows: Appended<Row>,
    /// Bytes of the rows' records.
    pub(super) bytes: u64,
    /// Bytes of their ids and documents alone.
    pub(super) documents: u64,
    /// Bytes of vectors that are kept with them as they came.
    pub(super) given: usize,
    /// Rows of nested objects.
    pub(super) nested: Bits,
    lookup: Lookup,
    /// By vector field.
    pub(super) vectors: Vec<Vectors>,
    runs: Arc<Runs>,
    /// Given back when nobody looks at the head any more.
    pub(super) memory: Arc<HeadMemory>,
}

impl Head {
    pub(super) fn new(mapping: &Mapping) -> Result<Head, CreateError> {
        let vectors = mapping.schema().vectors().map(|(_, params)| Vectors::new(params));
        let vectors = vectors.collect::<Result<Vec<_>, CreateError>>()?;
        Ok(Head {
            rows: Appended::default(),
            bytes: 0,
            documents: 0,
            given: 0,
            nested: Bits::default(),
            lookup: Lookup::new(0),
            vectors,
            runs: Arc::default(),
            memory: Arc::default(),
        })
    }

    /// Adds a document whose vectors, with those of its nested objects, are the next of those that were added to the
    /// indexes. Its row.
    pub(super) fn push(&mut self, mut row: Row) -> u32 {
        let (seq, version) = (row.seq, row.version);
        let nested = std::mem::take(&mut row.parsed.nested);
        let number = self.push_row(row);
        for parsed in nested {
            let row = self.push_row(Row { id: String::new(), seq, version, parsed });
            self.nested.insert(row);
        }
        number
    }

    fn push_row(&mut self, mut row: Row) -> u32 {
        self.bytes += op::bytes(&row.id, Some(&row.parsed)) as u64;
        self.documents += (row.id.len() + row.parsed.source.len()) as u64;
        self.given += row.parsed.given;
        let Head { rows, lookup, vectors, .. } = self;
        let number = rows.len() as u32;
        for (vectors, given) in vectors.iter_mut().zip(&row.parsed.vectors) {
            if given.is_some() {
                vectors.rows.push(number);
            }
        }
        // The indexes have them.
        row.parsed.vectors = Vec::new();
        if lookup.is_full(rows.len()) {
            *lookup = Lookup::new(2 * rows.len() + 1);
            let named = (0..).zip(rows.iter()).filter(|(_, row)| !row.id.is_empty());
            named.for_each(|(at, row)| lookup.insert(hash(&row.id), at));
        }
        let hash = (!row.id.is_empty()).then(|| hash(&row.id));
        rows.push(row);
        hash.into_iter().for_each(|hash| lookup.insert(hash, number));
        number
    }

    /// Takes the vectors of rows out of the indexes.
    pub(super) fn remove(&mut self, rows: &[u32]) -> Result<(), RemoveError> {
        for vectors in &mut self.vectors {
            let number = |row: &u32| vectors.rows.position(row).map(|number| number as i64);
            let numbers: Vec<i64> = rows.iter().filter_map(number).collect();
            if !numbers.is_empty() {
                vectors.index.remove(&numbers)?;
                vectors.reader = vectors.index.reader();
            }
        }
        Ok(())
    }

    /// Shows the indexes as they are now.
    pub(super) fn refresh(&mut self) {
        self.vectors.iter_mut().for_each(|vectors| vectors.reader = vectors.index.reader());
    }

    /// The same with indexes of its own, which hold what died since this copy was made; nobody may have added rows.
    pub(super) fn as_of(&self, threads: &Threads) -> Result<Head, AddError> {
        let mut head = self.clone();
        for of in &mut head.vectors {
            of.index = Arc::new(of.index.as_of(&of.reader, threads)?);
        }
        Ok(head)
    }

    /// Rows of the id, alive or not, oldest first.
    pub(super) fn rows_of<'a>(&'a self, id: &'a str) -> impl Iterator<Item = u32> + 'a {
        let rows = self.lookup.rows(hash(id));
        rows.filter(move |&row| self.rows.get(row as usize).is_some_and(|row| row.id == id))
    }

    /// Runs that hold all rows, in order, each with its first row, if they are made; the last may hold some that came later.
    pub(super) fn runs(&self) -> Option<Divided> {
        let len = self.rows.len() as u32;
        let now = self.runs.current.load_full();
        (now.last().map_or(0, |(first, run)| first + run.rows()) >= len).then_some(now)
    }

    /// To be held by whoever makes runs, so that nothing is made twice; `None` if `proceed` ended the wait for others.
    pub(super) fn turn(&self, proceed: &dyn Fn() -> ControlFlow<()>) -> Option<Turn<'_>> {
        loop {
            let turn = match self.runs.writing.try_lock() {
                Ok(turn) => Some(turn),
                Err(TryLockError::Poisoned(turn)) => Some(turn.into_inner()),
                Err(TryLockError::WouldBlock) => None,
            };
            if turn.is_some() || MAKING.get() > 0 {
                MAKING.set(MAKING.get() + 1);
                return Some(Turn(turn));
            }
            if proceed().is_break() {
                return None;
            }
            thread::sleep(PERIOD);
        }
    }

    /// Makes the runs that are missing: then as [`runs`](Self::runs). `None` if `proceed` ended it.
    pub(super) fn make_runs(
        &self,
        _turn: &Turn<'_>,
        mapping: &Mapping,
        proceed: &dyn Fn() -> ControlFlow<()>,
    ) -> Result<Option<Divided>, RunError> {
        let len = self.rows.len() as u32;
        let mut runs = (*self.runs.current.load_full()).clone();
        let mut first = runs.last().map_or(0, |(first, run)| first + run.rows());
        // What is no larger than twice what is new is written again with it.
        while let Some((start, _)) = runs.pop_if(|(_, run)| run.rows() <= 2 * (len - first)) {
            first = start;
        }
        let Some(run) = self.run(mapping, first..len, proceed)? else { return Ok(None) };
        runs.push((first, run));
        let runs = Arc::new(runs);
        self.runs.current.store(runs.clone());
        Ok(Some(runs))
    }

    /// Has runs made anew, for when there are more fields.
    pub(super) fn forget_runs(&mut self) {
        self.runs = Arc::default();
    }

    /// Rows that were added since documents were last searched.
    pub(super) fn unsearched(&self) -> usize {
        let runs = self.runs.current.load();
        let searched = runs.last().map_or(0, |(first, run)| first + run.rows());
        self.rows.len().saturating_sub(searched as usize)
    }

    fn run(
        &self,
        mapping: &Mapping,
        rows: Range<u32>,
        proceed: &dyn Fn() -> ControlFlow<()>,
    ) -> Result<Option<Run>, RunError> {
        let mut stopped = false;
        let parsed = rows.map_while(|row| {
            stopped = row % ASKED_EVERY == 0 && proceed().is_break();
            (!stopped).then(|| self.rows.get(row as usize).map(|row| &row.parsed))
        });
        let run = Run::write(mapping, Box::new(RamDirectory::create()), parsed)?;
        Ok((!stopped).then_some(run))
    }
}

thread_local! {
    /// Turns that this thread has: somebody who is asked whether to go on may search the same head, and would wait for
    /// itself.
    static MAKING: Cell<usize> = const { Cell::new(0) };
}

/// Whose turn it is to make runs.
pub(super) struct Turn<'a>(#[expect(dead_code, reason = "held")] Option<MutexGuard<'a, ()>>);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        MAKING.set(MAKING.get() - 1);
    }
}

/// Runs that readers made, shared by all views.
#[derive(Default)]
struct Runs {
    current: ArcSwap<Vec<(u32, Run)>>,
    /// Held by whoever makes one.
    writing: Mutex<()>,
}
