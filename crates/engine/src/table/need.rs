//! What making segments takes of memory, said before it begins: vectors as their indexes reckon it, rows by their layout,
//! documents by what tantivy was seen to take.
//!
//! What is there already (the head, what is open) is not in it, nor files' pages. `tests/memory` measures how well it is
//! told, for tables of a few fields.

use super::view::{Body, Part};
use crate::documents::Mapping;
use lanewise_index::{AddError, Code, Dtype, Index, Kind, Need, Params};

/// Of tantivy's writer, whatever it writes.
const WRITER: usize = 12_050_000;
/// Of a row that is written: its places in tantivy's columns, its number, version, id and their copies.
const ROW: usize = 250;
/// Of tantivy's merger, whatever it merges.
const MERGER: usize = 2_750_000;
/// Of a row that is merged.
const MERGED_ROW: usize = 200;
/// Of what the merger holds of documents' terms at a time, the most.
const TERMS: usize = 640_000;

/// What an index of so many vectors takes, made in one call.
fn index(params: Params, vectors: usize, workers: usize) -> Result<Need, AddError> {
    Index::new(params)?.predict(vectors, false, workers)
}

/// Bytes of a vector as it is brought.
fn brought(params: &Params) -> usize {
    match params.dtype.brought() {
        Dtype::F32 => 4 * params.dim,
        Dtype::Bits => params.dim.div_ceil(8),
        _ => params.dim,
    }
}

/// Rows of a part that have a vector of the field, dead ones among them.
fn vectors(part: &Part, field: usize) -> usize {
    part.reader(field).len()
}

/// Bytes of a part's documents, about.
fn documents(part: &Part, mapping: &Mapping) -> usize {
    let fields = mapping.schema().vectors().enumerate();
    let vectors: usize = fields.map(|(field, (_, params))| brought(params) * vectors(part, field)).sum();
    match &part.body {
        Body::Head(head) => (head.bytes as usize).saturating_sub(vectors),
        Body::Sealed(sealed) => sealed.bytes as usize - (sealed.bytes as usize).min(vectors),
    }
}

/// What sealing a head takes.
pub(super) fn seal(mapping: &Mapping, head: &Part, workers: usize) -> Result<u64, AddError> {
    let mut made = 0;
    for (field, (_, params)) in mapping.schema().vectors().enumerate() {
        let count = vectors(head, field);
        let plain = Params { code: Code::None, ..*params };
        if params.code == Code::None && params.kind != Kind::Ivf {
            continue;
        }
        // Vectors are shared with the head; links, lists and codes are its own.
        let shared = index(Params { kind: Kind::Flat, ..plain }, count, workers)?.held;
        made += index(*params, count, workers)?.held.saturating_sub(shared);
    }
    // Terms, columns and sources.
    let written = documents(head, mapping) / 2 * 5;
    Ok((WRITER + made + ROW * head.rows() + written) as u64)
}

/// What making one segment of these takes, the first of which has its indexes `kept` by field, if they are.
pub(super) fn merge(
    mapping: &Mapping,
    sources: &[&Part],
    kept: &[Option<Index>],
    workers: usize,
) -> Result<u64, AddError> {
    let mut most = 0;
    for (field, (_, params)) in mapping.schema().vectors().enumerate() {
        let live = |part: &&Part| vectors(part, field) * part.live() / part.rows().max(1);
        let all = sources.iter().map(live).sum::<usize>();
        let first = live(&sources[0]);
        let need = match &kept[field] {
            Some(index) => {
                let gone = vectors(sources[0], field) - first;
                index.predict_renumbered(gone, all - first, workers)?
            }
            None => index(*params, all, workers)?,
        };
        // The largest of those whose vectors are copied to be added.
        let copied = sources.iter().skip(usize::from(kept[field].is_some())).map(live).max().unwrap_or(0);
        most = most.max(copied * brought(params) + need.peak);
    }
    let live: usize = sources.iter().map(|part| part.live()).sum();
    let documents: usize = sources.iter().map(|part| documents(part, mapping)).sum();
    // Documents are merged from file to file.
    Ok((most.max(MERGER + TERMS.min(documents / 13)) + MERGED_ROW * live) as u64)
}
