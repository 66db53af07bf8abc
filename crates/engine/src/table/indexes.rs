//! Indexes of vector fields on their way into a segment: what is refused for its code goes without.

use super::effort::Effort;
use super::segment::SegmentError;
use super::write::WriteError;
use crate::documents::{Mapping, Parsed};
use lanewise_index::{AddError, Code, Executor, Index, OwnedVectors, Reader, Search, Vectors};
use std::sync::Arc;

/// `index` with the code that it should have; `None` if it has it, or the code cannot order its vectors: a segment
/// without its code is searched by the vectors themselves.
pub(super) fn coded(index: &Index, code: Code, executor: &dyn Executor) -> Result<Option<Index>, AddError> {
    if index.params().code == code {
        return Ok(None);
    }
    match index.with_code(code, executor) {
        Ok(coded) => Ok(Some(coded)),
        Err(AddError::Code(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether a document's vectors suit their fields: that numbers suit a metric only an index can tell, any of the field
/// will do.
pub(super) fn check_vectors<'a>(
    mapping: &Mapping,
    parsed: &Parsed,
    reader: impl Fn(usize) -> &'a Reader,
) -> Result<(), WriteError> {
    for (field, (name, _)) in mapping.schema().vectors().enumerate() {
        for vector in parsed.rows().filter_map(|row| row.vectors[field].as_ref()) {
            let checked = reader(field).check(vector.as_vectors(), &Search::new(1));
            checked.map_err(|error| WriteError::Vector { field: name.to_owned(), error })?;
        }
    }
    Ok(())
}

/// A head's index as it is sealed: with its code, and mended if much of it died.
pub(super) fn sealed_index(
    index: &Arc<Index>,
    code: Code,
    effort: &Effort<'_>,
) -> Result<Arc<Index>, SegmentError> {
    let coded = coded(index, code, &effort.threads)?;
    if !index.repair_due() {
        return Ok(coded.map_or_else(|| index.clone(), Arc::new));
    }
    // A copy: writers remove from the head's own.
    let copy = coded.map_or_else(|| index.with_code(index.params().code, &effort.threads), Ok)?;
    if !copy.repair(&effort.threads, &mut |_, _| (effort.proceed)())?.finished {
        return Err(SegmentError::Stopped);
    }
    Ok(Arc::new(copy))
}

/// Adds vectors, without the code if it cannot order them.
pub(super) fn add_coded(index: &mut Index, all: Vectors<'_>, effort: &Effort<'_>) -> Result<(), AddError> {
    let add = |index: &Index| index.add(all, None, &effort.threads, &mut |_| (effort.proceed)());
    let mut added = add(index);
    if matches!(added, Err(AddError::Code(_))) {
        *index = index.with_code(Code::None, &effort.threads)?;
        added = add(index);
    }
    added.map(|_| ())
}

/// Vectors of one field, one after the other; `None` if there are none.
pub(super) fn joined<'a>(mut vectors: impl Iterator<Item = &'a OwnedVectors>) -> Option<OwnedVectors> {
    let mut all = vectors.next()?.clone();
    vectors.for_each(|one| all.extend(one.as_vectors()));
    Some(all)
}
