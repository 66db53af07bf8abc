//! What tables take of memory, said before it is taken: vectors as their indexes reckon it, rows by their layout, documents by
//! what tantivy was seen to take. All predictions are here; who asks is `memory.rs`, `seal.rs`, `merge.rs`, `load.rs` and
//! `search/mod.rs`.
//!
//! Pages of files are not in it, nor what callers hold. `tests/memory` measures how well it is told, for tables of a few
//! fields.

use super::apply::Checked;
use super::head::Head;
use super::lookup;
use super::search::{Asked, Prepared, Probe, Ready, Within};
use super::view::{Body, Part, View};
use crate::documents::{Mapping, Parsed};
use lanewise_index::{AddError, Code, Dtype, Index, Kind, Need, OwnedVectors, Params};
use lanewise_storage::Bytes;
use serde_json::Value;

/// Of tantivy's writer, whatever it writes: when it ends, and before.
const WRITER: usize = 12_050_000;
const WRITING: usize = 8_500_000;
/// Of a row that is written: its places in tantivy's columns, its number, version, id and their copies.
const ROW: usize = 250;
/// Of tantivy's merger, whatever it merges, and of what it holds of documents' terms at a time, the most.
const MERGER: usize = 2_750_000;
const TERMS: usize = 640_000;
/// Of a row whose documents are merged, whose vector is merged, and whose number, version and id are.
const MERGED_ROW: usize = 36;
const MERGED_VECTOR: usize = 24;
const NUMBERED_ROW: usize = 90;
/// Of a table that is open, whatever is in it; of each of its segments, and each field of these.
pub(super) const TABLE: u64 = 8_000;
const SEGMENT: usize = 9_000;
const FIELD: usize = 3_000;
/// Of the documents that a segment keeps unpacked, at most.
const SOURCES: usize = 270_000;
/// Of a head, whatever is in it, and of each of its rows.
const HEAD: usize = 24_000;
const HEAD_ROW: usize = 124;
/// Of a document that was parsed, and of one that is loaded.
const PARSED_ROW: usize = 192;
const LOADED_ROW: usize = 350;
/// Of each byte of vectors that are kept with a head's documents: as they came, and as they are searched.
const GIVEN: usize = 2;
/// Of a hit while hits are put into order, and of each value that it is sorted by.
const HIT: usize = 114;
const CELL: usize = 48;
/// Of a vector that was found, and of one that is looked at on the way.
const NEIGHBOR: usize = 106;
const MET: usize = 16;
/// Nested objects that are found for each document that is looked for.
const NESTED: usize = 16;
/// Of an aggregation (tantivy's of terms, with as many buckets as there may be).
const FIGURES: usize = 9_580_000;
/// Of one that is a figure or a few.
const FIGURE: usize = 40_000;
/// Of a search, whatever it asks for.
const SEARCH: usize = 4096;

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
    let vectors =
        || -> usize { fields.map(|(field, (_, params))| brought(params) * vectors(part, field)).sum() };
    match &part.body {
        Body::Head(head) => head.documents as usize,
        Body::Sealed(sealed) => sealed.bytes as usize - (sealed.bytes as usize).min(vectors()),
    }
}

/// What writing documents of so many bytes takes.
fn written(rows: usize, documents: usize) -> usize {
    // Terms, columns and sources.
    ROW * rows + documents / 2 * 5
}

/// What a segment takes while it is open, of so many rows, with its indexes in `files` and its documents, packed, in so many
/// bytes.
pub(super) fn open(mapping: &Mapping, rows: usize, files: &[Bytes], packed: u64) -> u64 {
    // What is wrong with a file is said when it is opened.
    let held = |file: &Bytes| Index::predict_open((**file).as_ref()).map_or(0, |need| need.held);
    let indexes: usize = files.iter().map(held).sum();
    let fields = mapping.schema().fields.len();
    // A bit for each row: some will be dead.
    let sources = SOURCES.min(packed as usize / 2 * 5);
    (SEGMENT + FIELD * fields + indexes + rows.div_ceil(8) + sources) as u64
}

/// What a head needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HeadNeed {
    /// To hold what was written, and, on the way there, what is replaced as it grows.
    pub(super) written: u64,
    /// To be sealed, beside what every head needs for that.
    pub(super) sealing: u64,
}

/// What a head holds.
pub(super) fn head(mapping: &Mapping, head: &Head, workers: usize) -> Result<HeadNeed, AddError> {
    let (rows, bytes) = (head.rows.len(), head.documents as usize);
    let sealing = sealed(indexes_sealed(mapping, head, &[], workers)?, rows, bytes) - WRITER;
    Ok(HeadNeed { written: head_written(head), sealing: sealing as u64 })
}

/// What of that was written.
pub(super) fn head_written(head: &Head) -> u64 {
    let indexes: usize = head.vectors.iter().map(|of| of.index.owned_bytes()).sum();
    let rows = rows_of(head.rows.len(), head.documents as usize, head.vectors.len());
    (rows + GIVEN * head.given + indexes) as u64
}

/// What sealing takes, with indexes that take so much, one at a time, and then documents.
fn sealed(indexes: usize, rows: usize, bytes: usize) -> usize {
    indexes.max(WRITER + written(rows, bytes))
}

/// What a head that holds `head` will need once all of `writes` are in it, and on the way there.
pub(super) fn grown<'a>(
    mapping: &Mapping,
    head: &Head,
    writes: impl Iterator<Item = &'a Checked>,
    workers: usize,
) -> Result<HeadNeed, AddError> {
    let (mut rows, mut bytes, mut given) = (0, 0, head.given);
    let mut counts = vec![0; head.vectors.len()];
    for Checked { id, put, .. } in writes {
        let Some(parsed) = put else { continue };
        bytes += id.len() + parsed.source.len();
        given += parsed.given;
        for row in parsed.rows() {
            rows += 1;
            let vectors = counts.iter_mut().zip(&row.vectors);
            vectors.for_each(|(count, vector)| *count += usize::from(vector.is_some()));
        }
    }
    let (mut indexes, mut copied) = (0, 0);
    for (of, (&count, (_, params))) in head.vectors.iter().zip(counts.iter().zip(mapping.schema().vectors()))
    {
        // What readers still have is counted with each field: they are shown the new one when all are done.
        indexes += of.index.predict(count, false, workers)?.peak;
        copied = copied.max(count * brought(params));
    }
    let (rows, bytes) = (rows + head.rows.len(), bytes + head.documents as usize);
    let held = rows_of(rows, bytes, head.vectors.len());
    let sealing = sealed(indexes_sealed(mapping, head, &counts, workers)?, rows, bytes) - WRITER;
    Ok(HeadNeed { written: (held + GIVEN * given + indexes + copied) as u64, sealing: sealing as u64 })
}

/// Rows of a head, and their documents: as they were brought, as they are searched.
fn rows_of(rows: usize, documents: usize, fields: usize) -> usize {
    if rows == 0 {
        return 0;
    }
    // Four times as they were brought, and three times as they are searched.
    HEAD + (HEAD_ROW + 4 * fields) * rows + lookup::bytes(rows) + documents / 10 * 69
}

/// What a head's indexes take on their way into a segment, beside what they hold: one field after the other, with so
/// many vectors `more`.
fn indexes_sealed(mapping: &Mapping, head: &Head, more: &[usize], workers: usize) -> Result<usize, AddError> {
    let mut most = 0;
    for (field, (_, params)) in mapping.schema().vectors().enumerate() {
        let of = &head.vectors[field].index;
        let stats = of.stats();
        let added = more.get(field).copied().unwrap_or(0);
        let (before, count) = ((stats.len + stats.deleted).max(1), stats.len + stats.deleted + added);
        let links = stats.graph_bytes / before * count;
        let mut made = 0;
        if params.code != Code::None || params.kind == Kind::Ivf {
            // Vectors are shared with the head; links, lists and codes are the segment's own. Links are not predicted from
            // numbers of nodes, which takes a step for each.
            let kind = if params.kind == Kind::Ivf { Kind::Ivf } else { Kind::Flat };
            let shared =
                index(Params { kind: Kind::Flat, code: Code::None, ..*params }, count, workers)?.held;
            made = index(Params { kind, ..*params }, count, workers)?.peak.saturating_sub(shared) + links;
        }
        if of.repair_due() {
            // Without the dead, in memory of its own, beside links that are mended.
            made += (stats.vector_bytes + stats.code_bytes) / before * count + 2 * links;
        }
        most = most.max(made);
    }
    Ok(most)
}

/// What sealing a head takes.
pub(super) fn seal(mapping: &Mapping, head: &Head, workers: usize) -> Result<u64, AddError> {
    let indexes = indexes_sealed(mapping, head, &[], workers)?;
    Ok(sealed(indexes, head.rows.len(), head.documents as usize) as u64)
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
        most = most.max(copied * brought(params) + need.peak + MERGED_VECTOR * all);
    }
    let live: usize = sources.iter().map(|part| part.live()).sum();
    let documents: usize = sources.iter().map(|part| documents(part, mapping)).sum();
    // Documents are merged from file to file.
    let merged = MERGER + TERMS.min(documents / 13) + MERGED_ROW * live;
    let numbered = NUMBERED_ROW * live + 3 * lookup::bytes(live);
    Ok(most.max(merged).max(numbered) as u64)
}

/// Documents that are loaded, so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Loaded {
    pub(super) rows: usize,
    /// Of ids and documents.
    pub(super) bytes: usize,
}

/// What a load takes, with indexes of so many bytes, which are written before the documents' end is.
pub(super) fn loaded(Loaded { rows, bytes }: Loaded, indexes: usize) -> u64 {
    (LOADED_ROW * rows + bytes / 2 * 5 + WRITER.max(WRITING + indexes)) as u64
}

/// Documents of a batch that were parsed, until they are loaded, and their vectors, which are joined.
pub(super) fn batch(parsed: &[Parsed]) -> usize {
    let rows = || parsed.iter().flat_map(Parsed::rows);
    let vectors: usize = rows().flat_map(|row| row.vectors.iter().flatten()).map(brought_bytes).sum();
    let sources: usize = parsed.iter().map(|one| one.source.len()).sum();
    let vectors = vectors + parsed.iter().map(|one| one.given).sum::<usize>();
    PARSED_ROW * rows().count() + 4 * sources + vectors
}

fn brought_bytes(vector: &OwnedVectors) -> usize {
    let vector = vector.as_vectors();
    vector.elements() * if vector.dtype() == Dtype::F32 { 4 } else { 1 }
}

/// What a search takes at most, of `view`; `searched`: whether documents are looked at. The memory that threads of the pool
/// keep from search to search is not in it.
pub(super) fn search(ready: &Ready<'_>, view: &View, searched: bool) -> u64 {
    let mut need = SEARCH;
    let cells = ready.request.sort.len().max(1);
    for part in &view.parts {
        let rows = part.rows();
        let bits = rows.div_ceil(64) * 8;
        // Of documents twice as many as are wanted are kept at a time.
        need += if searched { 2 } else { 1 } * ready.hits.min(rows) * (HIT + CELL * cells);
        for (found, own) in &ready.probes {
            need += probe(found, rows);
            need += if ready.filter.is_some() || part.deleted.count() > 0 { bits } else { 0 };
            need += own.iter().map(|own| bits + within(own, rows)).sum::<usize>();
        }
        need += ready.query.iter().chain(&ready.filter).map(|query| within(query, rows)).sum::<usize>();
        // The filter's rows, and those that were found.
        need += if ready.filter.is_some() { bits } else { 0 };
        need += if searched && !ready.probes.is_empty() { 2 * bits } else { 0 };
    }
    need += ready.request.aggregations.values().map(figures).sum::<usize>();
    need as u64
}

/// What is found near one vector, of so many rows.
fn probe(probe: &Probe, rows: usize) -> usize {
    let k = match (probe.radius, &probe.path) {
        (Some(_), _) => rows,
        (None, None) => probe.how.k.min(rows),
        // Until there are so many documents.
        (None, Some(_)) => (NESTED * probe.how.k).min(rows),
    };
    k * NEIGHBOR + probe.how.ef_search.min(rows) * MET
}

/// What is found by vectors within a query.
fn within(query: &Prepared, rows: usize) -> usize {
    let each = query.within.iter().map(|Within { asked, among, .. }| {
        let own = match asked {
            Asked::Nearest { probe: asked, .. } => probe(asked, rows),
            Asked::Compared(_) | Asked::Documents(_) => rows * NEIGHBOR,
        };
        // What may be found, its filter, and its rows.
        own + 2 * rows.div_ceil(8) + among.as_ref().map_or(0, |among| within(among, rows))
    });
    each.sum()
}

/// What it takes to put the rows of a head that nobody searched into a form that can be searched.
pub(super) fn runs(head: &Head) -> u64 {
    let (rows, unsearched) = (head.rows.len(), head.unsearched());
    if unsearched == 0 {
        return 0;
    }
    // Of those before, the last are written again.
    let again = (3 * unsearched).min(rows);
    (WRITER + written(again, (head.documents as usize / rows.max(1)) * again)) as u64
}

/// What an aggregation takes.
fn figures(asked: &Value) -> usize {
    let few = ["avg", "min", "max", "sum", "stats", "extended_stats", "value_count", "percentiles"];
    if few.iter().any(|kind| asked.get(kind).is_some()) { FIGURE } else { FIGURES }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_figure_takes_less_than_buckets() {
        assert_eq!(figures(&json!({"stats": {"field": "n"}})), FIGURE);
        assert_eq!(
            figures(&json!({"terms": {"field": "n"}, "aggs": {"a": {"avg": {"field": "n"}}}})),
            FIGURES
        );
    }
}
