//! What can be had of a damaged index file: its vectors, without graph, lists and code, which are made of them.

use super::{CURVE, FormatError, Header, column, crc, deleted, padding};
use crate::Code;
use crate::error::CreateError;
use crate::filter::RowSet;
use crate::hnsw::Graph;
use crate::index::{Index, State, version};
use crate::memory::FileBytes;
use crate::params::{Kind, Params};
use crate::pool::IDS;
use crate::search::Reader;
use crate::space::Space;
use lanewise_kernels::Kernels;
use std::ops::Range;

/// The vectors of a damaged index.
#[expect(missing_debug_implementations, reason = "a reader has none")]
pub struct Recovered {
    /// What the index was made for.
    pub params: Params,
    /// Its vectors, to be read; those that are damaged are not among them.
    pub vectors: Reader,
}

impl Index {
    /// The vectors of a damaged file, which may go on after its end. `whole` says of a range of its bytes whether they are
    /// known to be as they were written, for whoever has checksums of smaller pieces than a section.
    ///
    /// Vectors that the index had lost before may be among them, if that is damaged.
    ///
    /// # Errors
    /// If the header or the ids are damaged, or it is no index that this program can open.
    pub fn recover(file: &FileBytes, whole: &dyn Fn(Range<usize>) -> bool) -> Result<Recovered, FormatError> {
        let kernels = Kernels::get().map_err(CreateError::Isa)?;
        let bytes: &[u8] = (**file).as_ref();
        // Its own length is behind the magic, the version and the number of sections.
        let said = bytes.get(16..24).map(|said| u64::from_le_bytes(said.try_into().expect("eight bytes")));
        let said = said.and_then(|said| usize::try_from(said).ok()).and_then(|said| bytes.get(..said));
        let header = Header::read(said.unwrap_or(bytes))?;
        let (params, count) = (header.params, header.count);
        params.check()?;
        let mut space =
            Space::new(params.dtype, params.metric, params.dim, kernels).map_err(CreateError::Vector)?;
        let invalid = |what| FormatError::Invalid { what };
        let (rows, corrections) = space
            .stored_bytes(count)
            .filter(|_| count < IDS)
            .ok_or(invalid("more vectors than an index holds"))?;
        // Where they lie; lengths that cannot be are found by the file's end.
        let mut end = header.bytes;
        let mut ranges = Vec::new();
        for &(_, length, sum) in header.table.iter().take(CURVE) {
            let range = usize::try_from(length).ok().and_then(|length| Some(end..end.checked_add(length)?));
            let range = range
                .filter(|range| range.end <= bytes.len())
                .ok_or(invalid("a section is beyond its end"))?;
            end = range.end + padding(range.len());
            let right = crc(&bytes[range.clone()]) == sum || whole(range.clone());
            ranges.push((range, right));
        }
        let [
            (vectors, vectors_right),
            (corrected, corrected_right),
            (ids, ids_right),
            ..,
            (gone, gone_right),
        ] = &ranges[..8.min(ranges.len())]
        else {
            return Err(invalid("it has too few sections"));
        };
        let sized = vectors.len() == rows && corrected.len() == corrections;
        if !sized || !(ids.is_empty() || ids.len() == count * 8) {
            return Err(invalid("the sections' sizes are not those of the vectors' number"));
        }
        if !ids_right {
            return Err(FormatError::Checksum { section: "ids" });
        }
        let misaligned = invalid("the contents are not aligned in memory");
        space.map_columns(file, count, vectors.clone(), corrected.clone()).ok_or(misaligned)?;
        let removed = if *gone_right { deleted(bytes, Some(gone), count)? } else { RowSet::of(Vec::new()) };
        let stride = rows.checked_div(count).unwrap_or(0);
        let width = corrections.checked_div(count).unwrap_or(0);
        let lost = |row: &u32| {
            let at =
                |from: usize, size: usize| from + *row as usize * size..from + (*row as usize + 1) * size;
            !(*vectors_right || whole(at(vectors.start, stride)))
                || !(*corrected_right || whole(at(corrected.start, width)))
        };
        let removed = removed.with(&(0..count as u32).filter(lost).collect::<Vec<u32>>());
        let ids = column(file, ids)?;
        let graph = Graph::new(params.m);
        let (coded, listed, next_id) = (None, None, None);
        let flat = Params { kind: Kind::Flat, code: Code::None, ..params };
        let state = State { space, coded, listed, graph, ids, deleted: removed, next_id, version: version() };
        Ok(Recovered { params, vectors: Index::from_state(flat, state).reader() })
    }
}
