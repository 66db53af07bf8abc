//! What searches see: the segments of a table as they were at one moment, the head among them.

use super::bits::Bits;
use super::head::{Divided, Head};
use super::segment::{Sealed, SegmentId};
use crate::TableId;
use crate::documents::{Mapping, RunError};
use lanewise_index::{Filter, Reader};
use lanewise_storage::Fault;
use lanewise_storage::fault::planted;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// A table at one moment.
pub(super) struct View {
    /// Of the schema as it was.
    pub(super) mapping: Arc<Mapping>,
    /// The head last.
    pub(super) parts: Vec<Part>,
}

/// A segment, or the head, with its dead rows.
#[derive(Clone)]
pub(super) struct Part {
    pub(super) segment: SegmentId,
    pub(super) body: Body,
    pub(super) deleted: Bits,
    /// What the pool knows its indexes as, by vector field.
    pub(super) tables: Arc<[TableId]>,
    /// What the pool knows its documents as.
    pub(super) searched: TableId,
}

#[derive(Clone)]
pub(super) enum Body {
    Head(Head),
    Sealed(Arc<Sealed>),
}

/// A row's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct At {
    pub(super) part: usize,
    pub(super) row: u32,
}

/// Where the document with `id` is among `parts`.
pub(super) fn find(parts: &[Part], id: &str) -> Option<At> {
    let found = |(part, of): (usize, &Part)| of.find(id).map(|row| At { part, row });
    // Newest first: most writes are of what was written lately.
    parts.iter().enumerate().rev().find_map(found)
}

impl View {
    /// Where the document with `id` is.
    pub(super) fn find(&self, id: &str) -> Option<At> {
        find(&self.parts, id)
    }

    /// Number of documents.
    pub(super) fn len(&self) -> usize {
        self.parts.iter().map(Part::documents).sum()
    }
}

impl Part {
    pub(super) fn new(mapping: &Mapping, segment: SegmentId, body: Body, deleted: Bits) -> Part {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        // Relaxed: only uniqueness matters.
        let new = || TableId(NEXT.fetch_add(1, Ordering::Relaxed));
        let tables = mapping.schema().vectors().map(|_| new()).collect();
        Part { segment, body, deleted, tables, searched: new() }
    }

    /// All that the pool knows it as.
    pub(super) fn homes(&self) -> impl Iterator<Item = TableId> {
        self.tables.iter().copied().chain([self.searched])
    }

    /// Rows of nested objects, each behind that of its document.
    pub(super) fn nested(&self) -> &Bits {
        match &self.body {
            Body::Head(head) => &head.nested,
            Body::Sealed(sealed) => sealed.rows.nested(),
        }
    }

    /// The rows of a document's nested objects.
    pub(super) fn nested_of(&self, row: u32) -> impl Iterator<Item = u32> {
        self.nested().run_behind(row)
    }

    /// The row of the document that a row belongs to.
    pub(super) fn document_of(&self, row: u32) -> u32 {
        self.nested().last_absent(row).unwrap_or(row)
    }

    /// Rows, dead ones among them.
    pub(super) fn rows(&self) -> usize {
        match &self.body {
            Body::Head(head) => head.rows.len(),
            Body::Sealed(sealed) => sealed.rows.len(),
        }
    }

    /// Bytes of a head's documents and vectors, as the log holds them; of a sealed segment's files.
    pub(super) fn bytes(&self) -> u64 {
        match &self.body {
            Body::Head(head) => head.bytes,
            Body::Sealed(sealed) => sealed.bytes,
        }
    }

    /// Rows that are alive.
    pub(super) fn live(&self) -> usize {
        self.rows() - self.deleted.count()
    }

    /// Documents that are alive.
    pub(super) fn documents(&self) -> usize {
        self.live() - self.nested().count_without(&self.deleted)
    }

    /// Whether a row is that of a document that is alive.
    pub(super) fn is_document(&self, row: u32) -> bool {
        self.is_alive(row) && !self.nested().contains(row)
    }

    pub(super) fn is_alive(&self, row: u32) -> bool {
        (row as usize) < self.rows() && !self.deleted.contains(row)
    }

    /// The live row of the document with `id`.
    pub(super) fn find(&self, id: &str) -> Option<u32> {
        match &self.body {
            Body::Head(head) => head.rows_of(id).find(|&row| self.is_alive(row)),
            Body::Sealed(sealed) => sealed.rows.rows_of(id).find(|&row| self.is_alive(row)),
        }
    }

    /// # Panics
    /// If there is no such row; so the next two.
    pub(super) fn id(&self, row: u32) -> &str {
        match &self.body {
            Body::Head(head) => &head.rows.get(row as usize).expect("a row of this part").id,
            Body::Sealed(sealed) => sealed.rows.id(row),
        }
    }

    pub(super) fn seq(&self, row: u32) -> u64 {
        match &self.body {
            Body::Head(head) => head.rows.get(row as usize).expect("a row of this part").seq,
            Body::Sealed(sealed) => sealed.rows.seq(row),
        }
    }

    pub(super) fn version(&self, row: u32) -> u64 {
        match &self.body {
            Body::Head(head) => head.rows.get(row as usize).expect("a row of this part").version,
            Body::Sealed(sealed) => sealed.rows.version(row),
        }
    }

    /// The document without its vectors, as JSON.
    pub(super) fn source(&self, row: u32) -> Result<Vec<u8>, RunError> {
        match &self.body {
            Body::Head(head) => {
                Ok(head.rows.get(row as usize).map_or_else(Vec::new, |row| row.parsed.source.clone()))
            }
            Body::Sealed(sealed) => sealed.run.source(row),
        }
    }

    /// Vectors of a row as they came, those that indexes keep otherwise.
    pub(super) fn given(&self, mapping: &Mapping, row: u32) -> Result<Vec<u8>, RunError> {
        match &self.body {
            Body::Head(head) => {
                Ok(head.rows.get(row as usize).map_or_else(Vec::new, |row| mapping.given_of(&row.parsed)))
            }
            Body::Sealed(sealed) => sealed.run.given(row),
        }
    }

    /// Runs that hold all rows, each with its first row.
    pub(super) fn runs(&self, mapping: &Mapping) -> Result<Divided, RunError> {
        let go_on = || ControlFlow::Continue(());
        let head = match &self.body {
            Body::Head(head) => head,
            Body::Sealed(sealed) => return Ok(Arc::new(vec![(0, sealed.run.clone())])),
        };
        let turn = head.turn(&go_on).expect("nobody ends it");
        let made =
            head.runs().map_or_else(|| head.make_runs(&turn, mapping, &go_on), |runs| Ok(Some(runs)))?;
        Ok(made.expect("nobody ended it"))
    }

    /// The vectors of a field.
    pub(super) fn reader(&self, field: usize) -> &Reader {
        match &self.body {
            Body::Head(head) => &head.vectors[field].reader,
            Body::Sealed(sealed) => &sealed.readers[field],
        }
    }

    /// The row that a field's vector belongs to, by the vector's number.
    pub(super) fn row_of(&self, field: usize, number: i64) -> Option<u32> {
        let number = usize::try_from(number).ok()?;
        match &self.body {
            Body::Head(head) => head.vectors[field].rows.get(number).copied(),
            Body::Sealed(sealed) => Some(u32::from_le_bytes(*sealed.rows.of_vectors(field).get(number)?)),
        }
    }

    /// The number of the vector that a row has in a field, if it has one.
    pub(super) fn number_of(&self, field: usize, row: u32) -> Option<i64> {
        let number = match &self.body {
            Body::Head(head) => head.vectors[field].rows.position(&row),
            Body::Sealed(sealed) => {
                let rows = sealed.rows.of_vectors(field);
                rows.binary_search_by_key(&row, |row| u32::from_le_bytes(*row)).ok()
            }
        };
        number.map(|number| number as i64)
    }

    /// The field's vectors whose rows are alive, and in `rows`, which the filter that is given with it (as JSON, if it may be
    /// kept) finds, if there is one; `None`: all are.
    pub(super) fn filter(&self, field: usize, rows: Option<(Option<&str>, &Bits)>) -> Option<Filter> {
        // The head's indexes know which of their vectors are gone.
        let dead =
            matches!(self.body, Body::Sealed(_)) && self.deleted.count() > 0 && !planted(Fault::DeadFound);
        if !dead && rows.is_none() {
            return None;
        }
        let reader = self.reader(field);
        let asked = || {
            let may = |row: u32| self.is_alive(row) && rows.is_none_or(|(_, rows)| rows.contains(row));
            reader.filter(|number| self.row_of(field, number).is_some_and(may))
        };
        let kept = rows.map_or(Some(""), |(filter, _)| filter);
        Some(match (&self.body, kept) {
            (Body::Head(_), _) | (_, None) => asked(),
            (Body::Sealed(sealed), Some(filter)) => {
                let make = |known: Option<(Bits, Filter)>| {
                    let known =
                        known.or_else(|| rows.is_none().then(|| (Bits::default(), reader.filter_of_all())));
                    let Some((before, filter)) = known else { return asked() };
                    let numbers: Vec<i64> =
                        self.deleted.since(&before).filter_map(|row| self.number_of(field, row)).collect();
                    reader.filter_without(&filter, &numbers)
                };
                sealed.filters.vectors(filter, field, &self.deleted, make)
            }
        })
    }
}
