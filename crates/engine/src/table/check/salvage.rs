//! What is left of a damaged segment: rows whose documents can be read, with those of their vectors that can be.

use crate::documents::{Mapping, Parsed, Run, RunError, Sources};
use crate::table::bits::Bits;
use crate::table::directory::Folder;
use crate::table::rows::Rows;
use crate::table::segment::{SegmentId, folder, read_blob, vectors};
use lanewise_index::{FileBytes, Index, OwnedVectors, Reader};
use lanewise_storage::Storage;
use serde_json::{Map, Value};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

pub(in crate::table) struct Salvage {
    pub(in crate::table) rows: Rows,
    sources: Documents,
    /// By vector field, its vectors, and the numbers of those that are there; `None`: none are.
    vectors: Vec<Option<(Reader, Bits)>>,
    /// Rows whose documents cannot be read.
    pub(super) lost: Bits,
}

pub(super) enum Documents {
    Run(Run),
    Sources(Sources),
    None,
}

impl Documents {
    /// What of the documents in a segment's folder can be read.
    pub(super) fn open(storage: &Arc<dyn Storage>, mapping: &Mapping, segment: SegmentId) -> Documents {
        let folder_of = || Folder::new(storage.clone(), folder(segment));
        if let Ok(run) = Run::open(mapping, Box::new(folder_of())) {
            return Documents::Run(run);
        }
        let entries = storage.list(&folder(segment)).unwrap_or_default();
        let store = entries
            .iter()
            .map(|entry| Path::new(&entry.name))
            .find(|name| name.extension().is_some_and(|e| e == "store"));
        let sources = store.and_then(|store| Sources::open(mapping, &folder_of(), store).ok());
        sources.map_or(Documents::None, Documents::Sources)
    }

    pub(super) fn source(&self, row: u32) -> Option<Vec<u8>> {
        let source: Result<Vec<u8>, RunError> = match self {
            Documents::Run(run) => run.source(row),
            Documents::Sources(sources) => sources.source(row),
            Documents::None => return None,
        };
        source.ok()
    }
}

impl Salvage {
    /// `damaged` says of the files of the segment which ranges of their data are damaged.
    pub(super) fn open(
        storage: &Arc<dyn Storage>,
        mapping: &Mapping,
        segment: SegmentId,
        (rows, sources): (Rows, Documents),
        damaged: &super::Damaged,
    ) -> Salvage {
        let of_field = |field: usize| {
            let path = vectors(&folder(segment), field);
            let (_, params) = mapping.schema().vectors().nth(field)?;
            let whole = read_blob(&**storage, &path).ok().and_then(|bytes| Index::open(bytes).ok());
            let (found, reader) = match whole {
                Some(index) => (*index.params(), index.reader()),
                None => {
                    let file: FileBytes = storage.open(&path).ok()?;
                    let ranges = damaged.get(&path).and_then(Option::as_ref);
                    let right = |range: Range<usize>| {
                        ranges.is_some_and(|(data, all)| {
                            range.end <= *data
                                && all.iter().all(|bad| bad.end <= range.start || range.end <= bad.start)
                        })
                    };
                    let recovered = Index::recover(&file, &right).ok()?;
                    (recovered.params, recovered.vectors)
                }
            };
            let same = (found.dim, found.dtype, found.metric) == (params.dim, params.dtype, params.metric);
            let mut there = Bits::default();
            for id in reader.ids() {
                there.insert(u32::try_from(id).ok()?);
            }
            same.then_some((reader, there))
        };
        let vectors = (0..mapping.schema().vectors().count()).map(of_field).collect();
        Salvage { rows, sources, vectors, lost: Bits::default() }
    }

    /// Rows of live documents that can be read: their nested objects are made anew of them.
    pub(in crate::table) fn usable<'a>(&'a self, dead: &'a Bits) -> impl Iterator<Item = u32> + 'a {
        self.rows.documents().filter(|&row| !dead.contains(row) && !self.lost.contains(row))
    }

    /// Documents as they are written, with the numbers of the fields whose vectors are gone; `None` for one that is gone
    /// itself.
    pub(in crate::table) fn parsed(
        &self,
        mapping: &Mapping,
        rows: &[u32],
    ) -> Vec<Option<(Parsed, Vec<usize>)>> {
        let mut beside = vec![(Vec::<(String, OwnedVectors)>::new(), Vec::new()); rows.len()];
        for (field, (name, params)) in mapping.schema().vectors().enumerate() {
            let numbers = self.rows.of_vectors(field);
            let number = |row: u32| numbers.binary_search_by_key(&row, |row| u32::from_le_bytes(*row)).ok();
            let (mut wanted, mut places) = (Vec::new(), Vec::new());
            for (at, number) in rows.iter().enumerate().filter_map(|(at, &row)| Some((at, number(row)?))) {
                match &self.vectors[field] {
                    Some((_, there)) if there.contains(number as u32) => {
                        wanted.push(number as i64);
                        places.push(at);
                    }
                    _ => beside[at].1.push(field),
                }
            }
            let all = self.vectors[field].as_ref().and_then(|(reader, _)| reader.vectors(&wanted).ok());
            for (i, &at) in places.iter().enumerate() {
                match &all {
                    Some(all) => {
                        let one = OwnedVectors::picked(all.as_vectors(), params.dim, &[i]);
                        beside[at].0.push((name.to_owned(), one));
                    }
                    None => beside[at].1.push(field),
                }
            }
        }
        let parse = |(&row, (vectors, gone)): (&u32, _)| {
            let source: Map<String, Value> = serde_json::from_slice(&self.sources.source(row)?).ok()?;
            Some((mapping.parse_again(self.rows.id(row), &source, vectors).ok()?, gone))
        };
        rows.iter().zip(beside).map(parse).collect()
    }
}
