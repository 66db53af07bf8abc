//! Stored vectors by their ids, and searches that start from them.
//!
//! Positions that serve as ids are looked up at once. Ids of one's own take one pass over all of them for each call: the
//! map from ids to rows is the writer's, for whom readers never wait.

use crate::error::{GetError, SearchError};
use crate::filter::Filter;
use crate::index::State;
use crate::memory::OutOfMemory;
use crate::search::{Counts, Neighbors, Reader, Search};
use crate::space::Compare;
use crate::vectors::{Dtype, Vectors};
use std::collections::HashMap;

/// Vectors in memory of their own, row after row, in the type in which users bring them.
#[derive(Clone, Debug, PartialEq)]
pub enum OwnedVectors {
    /// As [`Vectors::F32`].
    F32(Vec<f32>),
    /// As [`Vectors::I8`].
    I8(Vec<i8>),
    /// As [`Vectors::U8`].
    U8(Vec<u8>),
    /// As [`Vectors::Bits`].
    Bits(Vec<u8>),
}

impl From<Vectors<'_>> for OwnedVectors {
    fn from(vectors: Vectors<'_>) -> Self {
        match vectors {
            Vectors::F32(all) => OwnedVectors::F32(all.to_vec()),
            Vectors::I8(all) => OwnedVectors::I8(all.to_vec()),
            Vectors::U8(all) => OwnedVectors::U8(all.to_vec()),
            Vectors::Bits(all) => OwnedVectors::Bits(all.to_vec()),
        }
    }
}

impl OwnedVectors {
    /// The vectors in `places` of `vectors`, in that order.
    ///
    /// # Panics
    /// If there are not so many.
    pub fn picked(vectors: Vectors<'_>, dim: usize, places: &[usize]) -> OwnedVectors {
        let mut all = match vectors {
            Vectors::F32(_) => OwnedVectors::F32(Vec::new()),
            Vectors::I8(_) => OwnedVectors::I8(Vec::new()),
            Vectors::U8(_) => OwnedVectors::U8(Vec::new()),
            Vectors::Bits(_) => OwnedVectors::Bits(Vec::new()),
        };
        places.iter().for_each(|&place| all.extend(vectors.slice(dim, place..place + 1)));
        all
    }

    /// Adds vectors at the end.
    ///
    /// # Panics
    /// If they are of another type.
    pub fn extend(&mut self, more: Vectors<'_>) {
        match (self, more) {
            (OwnedVectors::F32(all), Vectors::F32(more)) => all.extend_from_slice(more),
            (OwnedVectors::I8(all), Vectors::I8(more)) => all.extend_from_slice(more),
            (OwnedVectors::U8(all), Vectors::U8(more)) => all.extend_from_slice(more),
            (OwnedVectors::Bits(all), Vectors::Bits(more)) => all.extend_from_slice(more),
            _ => panic!("vectors of one type take in no others"),
        }
    }

    /// As queries, or as vectors to be added.
    pub fn as_vectors(&self) -> Vectors<'_> {
        match self {
            OwnedVectors::F32(all) => Vectors::F32(all),
            OwnedVectors::I8(all) => Vectors::I8(all),
            OwnedVectors::U8(all) => Vectors::U8(all),
            OwnedVectors::Bits(all) => Vectors::Bits(all),
        }
    }
}

impl Reader {
    /// The row of each of `ids`, in their order.
    fn rows(&self, ids: &[i64]) -> Vec<Option<u32>> {
        let State { space, ids: own, deleted, .. } = self.state();
        let live = |row: u32| (row as usize) < space.len() && !deleted.contains(row);
        if own.is_empty() {
            return ids.iter().map(|&id| u32::try_from(id).ok().filter(|&row| live(row))).collect();
        }
        let mut wanted: HashMap<i64, Option<u32>> = ids.iter().map(|&id| (id, None)).collect();
        for (row, id) in (0..).zip(own.iter()) {
            if let Some(found) = wanted.get_mut(id).filter(|_| live(row)) {
                *found = Some(row);
            }
        }
        ids.iter().map(|id| wanted[id]).collect()
    }

    /// The vectors with `ids` as they are stored, in that order: floats of an index whose metric is cosine are
    /// normalised, those stored in 16 bits rounded to them. An id may come twice.
    ///
    /// # Errors
    /// If an id is not there (the first of them), or there is no memory.
    pub fn vectors(&self, ids: &[i64]) -> Result<OwnedVectors, GetError> {
        let rows = self.rows(ids).into_iter().zip(ids);
        let rows: Vec<u32> =
            rows.map(|(row, &id)| row.ok_or(GetError::Missing { id })).collect::<Result<_, _>>()?;
        let space = &self.state().space;
        let width = space.dtype.brought().vector_bytes(space.dim);
        let bytes = || rows.iter().flat_map(|&row| space.vector_bytes(row));
        Ok(match space.dtype {
            Dtype::F32 | Dtype::F16 | Dtype::Bf16 => {
                let mut all = reserved(rows.len(), width / size_of::<f32>())?;
                all.resize(rows.len() * space.dim, 0.0);
                let each = all.chunks_exact_mut(space.dim);
                rows.iter().zip(each).for_each(|(&row, to)| space.write_floats(row, to));
                OwnedVectors::F32(all)
            }
            Dtype::I8 => {
                let mut all = reserved(rows.len(), width)?;
                all.extend(bytes().map(|&byte| byte as i8));
                OwnedVectors::I8(all)
            }
            Dtype::U8 | Dtype::Bits => {
                let mut all = reserved(rows.len(), width)?;
                all.extend(bytes());
                if space.dtype == Dtype::U8 { OwnedVectors::U8(all) } else { OwnedVectors::Bits(all) }
            }
        })
    }

    /// The vectors with `ids`, for searches among them; ids that are not there are passed over.
    pub fn filter_of(&self, ids: &[i64]) -> Filter {
        self.filter_of_rows(self.rows(ids).into_iter().flatten())
    }

    /// All vectors, for searches among them: what [`filter_without`](Self::filter_without) takes some from.
    pub fn filter_of_all(&self) -> Filter {
        Filter::of_all(self.state().version, self.state().space.len(), &self.state().deleted)
    }

    /// The vectors of `filter` but those with `ids`; ids that are not there are passed over. Costs a copy of a bit for each
    /// vector, not a question about each as [`filter`](Self::filter).
    pub fn filter_without(&self, filter: &Filter, ids: &[i64]) -> Filter {
        filter.without(self.rows(ids).into_iter().flatten())
    }

    /// The vectors in `rows`, which are live, for searches among them.
    pub(crate) fn filter_of_rows(&self, rows: impl Iterator<Item = u32>) -> Filter {
        Filter::of_rows(self.state().version, self.state().space.len(), rows)
    }

    /// The `search.k` vectors nearest to each of those with `ids`, without itself: k, or as many others as there are
    /// (others that match, if there is a filter). `find` runs the search of the stored vectors; give it
    /// [`search`](Self::search), on as many threads as you like.
    ///
    /// # Errors
    /// As [`vectors`](Self::vectors) and `find`.
    pub fn search_by_id<E: From<SearchError>>(
        &self,
        ids: &[i64],
        search: &Search<'_>,
        find: impl FnOnce(Vectors<'_>, &Search<'_>) -> Result<(Vec<Neighbors>, Counts), E>,
    ) -> Result<(Vec<Neighbors>, Counts), E> {
        let vectors = self.vectors(ids).map_err(SearchError::from)?;
        self.check(vectors.as_vectors(), search)?;
        // One more, for itself; among many identical ones it may be missing.
        let more = Search { k: search.k.saturating_add(1), ..*search };
        let (mut found, counts) = find(vectors.as_vectors(), &more)?;
        for (neighbors, id) in found.iter_mut().zip(ids) {
            let place = neighbors.ids.iter().position(|found| found == id);
            if let Some(place) = place {
                neighbors.ids.remove(place);
                neighbors.distances.remove(place);
            }
            neighbors.ids.truncate(search.k);
            neighbors.distances.truncate(search.k);
        }
        Ok((found, counts))
    }
}

/// Room for `rows` rows of `width` elements.
fn reserved<T>(rows: usize, width: usize) -> Result<Vec<T>, OutOfMemory> {
    let mut all = Vec::new();
    let bytes = rows.saturating_mul(width).saturating_mul(size_of::<T>());
    all.try_reserve_exact(rows.saturating_mul(width)).map_err(|_| OutOfMemory { bytes })?;
    Ok(all)
}
