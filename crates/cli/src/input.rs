//! Vectors from files, made ready for an index.

use crate::failure::Failure;
use crate::say;
use lanewise_bench::convert::VectorSet;
use lanewise_bench::dataset::{self, Elements};
use lanewise_engine::index::{Dtype, Index, Kind, Metric, Params, Search};
use std::path::Path;

/// Reads vectors; `space` chooses metric and element type by what the file holds.
pub(crate) fn vectors(
    path: &Path,
    space: impl FnOnce(&Elements) -> (Metric, Dtype),
) -> Result<(VectorSet, Metric, Dtype), Failure> {
    let matrix = dataset::read(path)?;
    let (metric, dtype) = space(&matrix.elements);
    if (dtype == Dtype::Bits) != metric.of_bits() {
        return Err(Failure::Usage(format!(
            "--metric {} does not measure --dtype {}: use hamming or jaccard with bits, and l2, ip or cosine with numbers",
            metric.name(),
            dtype.name()
        )));
    }
    let (set, note) = VectorSet::of_matrix(matrix, dtype, metric)
        .map_err(|error| Failure::Failed(format!("{}: {error}", path.display())))?;
    // At the door, so that an error names the file and its row, whatever is done with the vectors later.
    let any = Index::new(Params { metric, dtype, kind: Kind::Flat, ..Params::new(set.dim) })?;
    any.reader()
        .check(set.as_vectors(), &Search::new(1))
        .map_err(|error| Failure::Failed(format!("{}: {error}", path.display())))?;
    if let Some(note) = note {
        say(format_args!("note: {}: {note}", path.display()));
    }
    Ok((set, metric, dtype))
}

/// Reads queries for `index`, which must have its dimension.
pub(crate) fn queries(path: &Path, dim: usize, metric: Metric, dtype: Dtype) -> Result<VectorSet, Failure> {
    let (set, ..) = vectors(path, |_| (metric, dtype))?;
    if set.dim != dim {
        return Err(Failure::Failed(format!(
            "{}: queries have dimension {}, the index's vectors {dim}: use queries made like the vectors",
            path.display(),
            set.dim
        )));
    }
    Ok(set)
}

/// Opens a saved index that has something to find.
pub(crate) fn index(path: &Path) -> Result<Index, Failure> {
    let index = lanewise_engine::open(path, None)?;
    if index.is_empty() {
        return Err(Failure::Failed(format!(
            "{}: the index holds no vectors: build one that does",
            path.display()
        )));
    }
    Ok(index)
}
