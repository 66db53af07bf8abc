//! Reading documents back, with their vectors: as they came where the schema keeps them so, else as they are stored.

use super::table::{Document, Table};
use super::view::{At, View};
use crate::documents::{RunError, given};
use lanewise_index::{GetError, OwnedVectors};
use std::collections::BTreeMap;

/// Why a document or its vectors cannot be read.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum FetchError {
    #[error("vectors: field {field:?}: the schema names no such vector field")]
    Field { field: String },
    #[error("field {field:?}: {error}")]
    Vectors { field: String, error: GetError },
    #[error(transparent)]
    Documents(#[from] RunError),
}

/// A document with those of its vectors that were asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Fetched {
    /// The document.
    pub document: Document,
    /// By field, in the order in which they were asked for; `None` where it has none. One of `dim` numbers, bits packed: as
    /// it came where the schema's rules say `exact`, else as
    /// [`Reader::vectors`](lanewise_index::Reader::vectors) gives it.
    pub vectors: Vec<Option<OwnedVectors>>,
}

impl Table {
    /// The document with each id, all as of the same moment, with the vectors of `fields`; `None` for those not there.
    ///
    /// # Errors
    /// If a field is no vector field, or something cannot be read.
    pub fn fetch(&self, ids: &[&str], fields: &[&str]) -> Result<Vec<Option<Fetched>>, FetchError> {
        let view = self.view();
        let found: Vec<Option<At>> = ids.iter().map(|id| view.find(id)).collect();
        let there: Vec<At> = found.iter().flatten().copied().collect();
        let columns = fields.iter().map(|field| view.vectors(field, &there));
        let mut columns =
            columns.map(|column| Ok(column?.into_iter())).collect::<Result<Vec<_>, FetchError>>()?;
        let fetch = |(id, at): (&&str, Option<At>)| {
            let Some(at) = at else { return Ok(None) };
            let vectors = columns.iter_mut().map(|column| column.next().flatten()).collect();
            Ok(Some(Fetched { document: view.document(id, at)?, vectors }))
        };
        ids.iter().zip(found).map(fetch).collect()
    }
}

impl View {
    pub(super) fn document(&self, id: &str, at: At) -> Result<Document, RunError> {
        let part = &self.parts[at.part];
        let (seq, version) = (part.seq(at.row), part.version(at.row));
        Ok(Document { id: id.to_owned(), seq, version, source: part.source(at.row)? })
    }

    /// The vector of a field of each of these rows, which are alive.
    pub(super) fn vectors(&self, name: &str, places: &[At]) -> Result<Vec<Option<OwnedVectors>>, FetchError> {
        let known = self.mapping.vector(name);
        let (field, params) = known.ok_or_else(|| FetchError::Field { field: name.to_owned() })?;
        // Part by part: an index may have to look through all of its ids.
        let mut wanted: BTreeMap<usize, (Vec<usize>, Vec<i64>)> = BTreeMap::new();
        let mut all = vec![None; places.len()];
        let is_given = self.mapping.is_given(name);
        for (place, at) in places.iter().enumerate() {
            let part = &self.parts[at.part];
            let Some(number) = part.number_of(field, at.row) else { continue };
            if is_given {
                all[place] = given::read(&part.given(&self.mapping, at.row)?, field);
            }
            if all[place].is_none() {
                let (places, numbers) = wanted.entry(at.part).or_default();
                places.push(place);
                numbers.push(number);
            }
        }
        for (part, (places, numbers)) in wanted {
            let vectors = self.parts[part].reader(field).vectors(&numbers);
            let vectors = vectors.map_err(|error| FetchError::Vectors { field: name.to_owned(), error })?;
            for (i, place) in places.into_iter().enumerate() {
                all[place] = Some(OwnedVectors::from(vectors.as_vectors().slice(params.dim, i..i + 1)));
            }
        }
        Ok(all)
    }
}
