//! What a sealed segment knows of its rows beside their documents: ids, sequence numbers, versions, which rows have which
//! vectors, and rows by id. One file, read in place; `docs/formats/table.md` gives every byte.

use super::bits::Bits;
use super::lookup;
use lanewise_storage::Bytes;
use std::ops::Range;

/// Which part of a file is not what it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the rows' {0} do not fit their number")]
pub(super) struct RowsError(&'static str);

/// A row as it is written. That of a nested object has no id, and lies behind its document's.
#[derive(Clone, Copy)]
pub(super) struct Written<'a> {
    pub(super) id: &'a str,
    pub(super) seq: u64,
    pub(super) version: u64,
}

/// The bytes of a file of rows. `vectors` are, by field, the row of each vector's number.
pub(super) fn to_bytes(rows: &[Written<'_>], vectors: &[Vec<u32>]) -> Vec<u8> {
    let words = 2 + vectors.len() + 3 * rows.len();
    let ids: usize = rows.iter().map(|row| row.id.len()).sum();
    let of_vectors: usize = vectors.iter().map(Vec::len).sum();
    let mut bytes = Vec::with_capacity(8 * words + lookup::bytes(rows.len()) + 4 * of_vectors + ids);
    let mut word = |word: u64| bytes.extend(word.to_le_bytes());
    word(rows.len() as u64);
    word(vectors.len() as u64);
    vectors.iter().for_each(|rows| word(rows.len() as u64));
    rows.iter().for_each(|row| word(row.seq));
    rows.iter().for_each(|row| word(row.version));
    let mut end = 0;
    for row in rows {
        end += row.id.len() as u64;
        word(end);
    }
    bytes.extend(lookup::to_bytes(rows.iter().map(|row| (!row.id.is_empty()).then(|| lookup::hash(row.id)))));
    vectors.iter().flatten().for_each(|row| bytes.extend(row.to_le_bytes()));
    rows.iter().for_each(|row| bytes.extend(row.id.as_bytes()));
    bytes
}

/// The rows of a segment.
pub(super) struct Rows {
    bytes: Bytes,
    len: usize,
    seqs: usize,
    versions: usize,
    ends: usize,
    lookup: Range<usize>,
    vectors: Vec<Range<usize>>,
    ids: usize,
    nested: Bits,
}

impl Rows {
    /// Of a segment with so many vector fields at most: others came later.
    pub(super) fn open(bytes: Bytes, fields: usize) -> Result<Rows, RowsError> {
        let all: &[u8] = (*bytes).as_ref();
        let word = |at: usize| {
            let word = at.checked_mul(8).and_then(|at| all.get(at..at + 8)).map(|word| word.try_into().ok());
            word.flatten().map(u64::from_le_bytes).and_then(|word| usize::try_from(word).ok())
        };
        let len = word(0).filter(|&len| len < u32::MAX as usize).ok_or(RowsError("number"))?;
        let fields = word(1).filter(|&own| own <= fields).ok_or(RowsError("vector fields"))?;
        let seqs = 8 * (2 + fields);
        let (versions, ends) = (seqs + 8 * len, seqs + 16 * len);
        let first = ends + 8 * len;
        let table = lookup::bytes(len);
        if all.len() < first + table {
            return Err(RowsError("lookup"));
        }
        let mut at = first + table;
        let mut vectors = Vec::new();
        for field in 0..fields {
            let count = word(2 + field).filter(|&count| count <= len).ok_or(RowsError("vectors"))?;
            let range = at..at + 4 * count;
            let rows = all.get(range.clone()).ok_or(RowsError("vectors"))?.as_chunks::<4>().0;
            if rows.iter().any(|row| u32::from_le_bytes(*row) as usize >= len) {
                return Err(RowsError("vectors"));
            }
            at = range.end;
            vectors.push(range);
        }
        let (lookup, nested) = (first..first + table, Bits::default());
        let mut rows = Rows { len, seqs, versions, ends, lookup, vectors, ids: at, nested, bytes };
        let ids = rows.all().len() - at;
        let mut before = 0;
        for row in 0..len {
            let end = rows.word(ends, row) as usize;
            let id = (before <= end && end <= ids)
                .then(|| std::str::from_utf8(&rows.all()[at + before..at + end]));
            if !matches!(id, Some(Ok(_))) {
                return Err(RowsError("ids"));
            }
            if before == end {
                if row == 0 {
                    return Err(RowsError("nested objects"));
                }
                rows.nested.insert(row as u32);
            }
            before = end;
        }
        if before != ids {
            return Err(RowsError("ids"));
        }
        let inside = |place: &[u8; 4]| u32::from_le_bytes(*place) as usize <= len;
        if !rows.all()[rows.lookup.clone()].as_chunks::<4>().0.iter().all(inside) {
            return Err(RowsError("lookup"));
        }
        Ok(rows)
    }

    fn all(&self) -> &[u8] {
        (*self.bytes).as_ref()
    }

    fn word(&self, column: usize, row: usize) -> u64 {
        u64::from_le_bytes(self.all()[column + 8 * row..][..8].try_into().expect("eight bytes"))
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn seq(&self, row: u32) -> u64 {
        self.word(self.seqs, row as usize)
    }

    pub(super) fn version(&self, row: u32) -> u64 {
        self.word(self.versions, row as usize)
    }

    pub(super) fn id(&self, row: u32) -> &str {
        let row = row as usize;
        let first = if row == 0 { 0 } else { self.word(self.ends, row - 1) as usize };
        let end = self.word(self.ends, row) as usize;
        std::str::from_utf8(&self.all()[self.ids + first..self.ids + end])
            .expect("checked when it was opened")
    }

    /// Rows of nested objects.
    pub(super) fn nested(&self) -> &Bits {
        &self.nested
    }

    /// Rows of documents.
    pub(super) fn documents(&self) -> impl Iterator<Item = u32> + Clone {
        (0..self.len as u32).filter(|&row| !self.nested.contains(row))
    }

    /// The rows of a document's nested objects.
    pub(super) fn nested_of(&self, row: u32) -> impl Iterator<Item = u32> {
        self.nested.run_behind(row)
    }

    /// Rows of the id, alive or not.
    pub(super) fn rows_of<'a>(&'a self, id: &'a str) -> impl Iterator<Item = u32> + 'a {
        let rows = lookup::rows(&self.all()[self.lookup.clone()], lookup::hash(id));
        rows.filter(move |&row| (row as usize) < self.len && self.id(row) == id)
    }

    /// Vector fields that there were when it was written.
    pub(super) fn fields(&self) -> usize {
        self.vectors.len()
    }

    /// The row of each vector's number.
    pub(super) fn of_vectors(&self, field: usize) -> &[[u8; 4]] {
        let range = self.vectors.get(field).cloned().unwrap_or_default();
        self.all()[range].as_chunks::<4>().0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::sync::Arc;

    proptest! {
        #[test]
        fn rows_are_read_as_written(
            mut ids in prop::collection::vec("[a-cé]{0,2}", 0..60),
            cut: prop::sample::Index,
            flip: prop::sample::Index,
        ) {
            // The first is a document.
            ids.iter_mut().take(1).filter(|id| id.is_empty()).for_each(|id| id.push('a'));
            let rows: Vec<Written<'_>> =
                (0..).zip(&ids).map(|(i, id)| Written { id, seq: 3 * i, version: i + 1 }).collect();
            let some: Vec<u32> = (0..rows.len() as u32).filter(|row| row % 3 > 0).collect();
            let bytes = to_bytes(&rows, &[Vec::new(), some.clone()]);
            let read = Rows::open(Arc::new(bytes.clone()), 2).unwrap();
            prop_assert_eq!(read.len(), rows.len());
            for (row, written) in (0..).zip(&rows) {
                prop_assert_eq!((read.id(row), read.seq(row), read.version(row)), (written.id, written.seq, written.version));
            }
            prop_assert!(read.documents().eq((0..).zip(&ids).filter(|(_, id)| !id.is_empty()).map(|(row, _)| row)));
            prop_assert_eq!(read.rows_of("").count(), 0);
            for id in ids.iter().filter(|id| !id.is_empty()) {
                let expected = (0..).zip(&ids).filter(|(_, other)| *other == id).map(|(row, _)| row);
                prop_assert!(read.rows_of(id).eq(expected));
            }
            prop_assert_eq!(read.rows_of("zz").count(), 0);
            prop_assert!(read.of_vectors(1).iter().map(|row| u32::from_le_bytes(*row)).eq(some));
            // Damage that the checksums let through is refused, or harmless.
            prop_assert!(Rows::open(Arc::new(bytes.clone()), 1).is_err());
            // A field that came later has no vectors.
            let later = Rows::open(Arc::new(bytes.clone()), 3).unwrap();
            prop_assert!(later.fields() == 2 && later.of_vectors(2).is_empty());
            prop_assert!(Rows::open(Arc::new(bytes[..cut.index(bytes.len())].to_vec()), 2).is_err());
            let mut other = bytes;
            let at = flip.index(8 * other.len());
            other[at / 8] ^= 1 << (at % 8);
            if let Ok(read) = Rows::open(Arc::new(other), 2) {
                for row in 0..read.len() as u32 {
                    let _ = (read.id(row), read.seq(row), read.rows_of(read.id(row)).count());
                }
            }
        }
    }
}
