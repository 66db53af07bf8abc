//! The file of an index, version 2, and how version 1 is read: see `docs/formats/`, which gives every byte.
//!
//! A header of fixed size, then the columns as they lie in memory, each on a cache line of its own and checksummed with
//! CRC32C. So opening is: check everything once, then read in place. Nothing is allocated by a length that the file
//! claims, and links are checked to lead to nodes that exist, so that no file can lead a search outside its memory.

mod recover;

use crate::calibrate::Tuned;
use crate::code::{Code, Coder, ParametersError};
use crate::coded::Coded;
use crate::curve::Curve;
use crate::error::{Broken, CreateError};
use crate::filter::RowSet;
use crate::hnsw::Graph;
use crate::hnsw::graph::NONE;
use crate::index::{Index, State, Writer, version};
use crate::ivf::{Ivf, Packed, Sections};
use crate::listed::{Listed, list_params};
use crate::memory::{Column, FileBytes, Plain};
use crate::params::{Kind, NLIST, Params};
use crate::pool::IDS;
use crate::predict::Need;
use crate::space::{Compare, Space};
use crate::vectors::{Dtype, Metric};
use crc_fast::{CrcAlgorithm, Digest, checksum};
use lanewise_kernels::{ALIGN, Kernels};
pub use recover::Recovered;
use std::ops::{Range, RangeInclusive};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, MutexGuard};

#[cfg(target_endian = "big")]
compile_error!("columns are written and mapped as little-endian numbers");

const MAGIC: [u8; 8] = *b"LANEWISE";
const VERSION: u32 = 2;
const TABLE: usize = 128;
const TABLE_ENTRY: usize = 32;
/// The sections in their order; version 1 has the first seven, and version 2 may end before the last.
const SECTIONS: [&str; 16] = [
    "vectors",
    "corrections",
    "ids",
    "links",
    "pilots",
    "starts",
    "upper links",
    "deleted rows",
    "code parameters",
    "code rows",
    "list parameters",
    "list lengths",
    "list codes",
    "list biases",
    "list rows",
    "curve of recall",
];

/// The section that only indexes whose recall was measured have.
const CURVE: usize = 15;

/// Bytes of the header, and the least and the greatest number of sections, of a version.
fn shape(version: u32) -> Option<(usize, RangeInclusive<usize>)> {
    match version {
        1 => Some((512, 7..=7)),
        VERSION => Some((1024, CURVE..=SECTIONS.len())),
        _ => None,
    }
}
const HEADER: usize = 1024;

/// Why bytes are not an index that can be opened.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum FormatError {
    #[error("not a Lanewise index: it does not start with {:?}", "LANEWISE")]
    Magic,
    #[error("version {found} of the format, this program reads up to {VERSION}: use a newer Lanewise")]
    Version { found: u32 },
    #[error(
        "cut short or grown: {found} bytes where {expected} were written; restore it from a copy or build it anew"
    )]
    Length { found: u64, expected: u64 },
    #[error(
        "damaged: the {section} do not have their checksum; restore the file from a copy or build it anew"
    )]
    Checksum { section: &'static str },
    #[error("damaged or made to mislead: {what}; restore the file from a copy or build it anew")]
    Invalid { what: &'static str },
    #[error(transparent)]
    Parameters(#[from] CreateError),
    #[error("{0}; restore the file from a copy or build it anew")]
    Code(#[from] ParametersError),
}

/// An index as the parts of its file, in order; nothing is copied.
pub struct Image<'a> {
    writer: MutexGuard<'a, Writer>,
    packed: Option<Packed>,
    curve: Vec<u8>,
    header: Vec<u8>,
}

/// The bytes of each section, in pieces.
fn sections<'a>(
    state: &'a State,
    packed: Option<&'a Packed>,
    curve: &'a [u8],
) -> [Vec<&'a [u8]>; SECTIONS.len()] {
    let [a, b, c, d, e, f, g, h, i, j] = state.parts().map(|part| vec![part]);
    let [k, l, m, n, o] = match (&state.listed, packed) {
        (Some(listed), Some(packed)) => listed.ivf.pieces(packed),
        _ => Default::default(),
    };
    [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, vec![curve]]
}

fn length(pieces: &[&[u8]]) -> usize {
    pieces.iter().map(|piece| piece.len()).sum()
}

impl Image<'_> {
    /// The pieces to be written one after the other.
    pub fn pieces(&self) -> impl Iterator<Item = &[u8]> {
        const ZEROS: [u8; ALIGN] = [0; ALIGN];
        let sections = sections(&self.writer.state, self.packed.as_ref(), &self.curve);
        let sections = sections.into_iter().flat_map(|pieces| {
            let zeros = &ZEROS[..padding(length(&pieces))];
            pieces.into_iter().chain([zeros])
        });
        std::iter::once(&self.header[..]).chain(sections)
    }

    /// Length of the file.
    pub fn bytes(&self) -> u64 {
        self.pieces().map(|piece| piece.len() as u64).sum()
    }
}

fn padding(bytes: usize) -> usize {
    bytes.next_multiple_of(ALIGN) - bytes
}

fn crc(bytes: &[u8]) -> u32 {
    checksum(CrcAlgorithm::Crc32Iscsi, bytes) as u32
}

impl Index {
    /// The index as a file's contents. Changes wait until it is dropped.
    ///
    /// # Errors
    /// If an earlier change panicked.
    pub fn image(&self) -> Result<Image<'_>, Broken> {
        let writer = self.writer()?;
        let packed = writer.state.listed.as_ref().map(|listed| listed.ivf.packed());
        let curve = self.tuned.bytes();
        let mut header = vec![0; HEADER];
        let mut offset = HEADER;
        for (i, pieces) in sections(&writer.state, packed.as_ref(), &curve).iter().enumerate() {
            let length = length(pieces);
            let mut sum = Digest::new(CrcAlgorithm::Crc32Iscsi);
            pieces.iter().for_each(|piece| sum.update(piece));
            let entry = &mut header[TABLE + i * TABLE_ENTRY..][..TABLE_ENTRY];
            entry[..8].copy_from_slice(&(offset as u64).to_le_bytes());
            entry[8..16].copy_from_slice(&(length as u64).to_le_bytes());
            entry[16..20].copy_from_slice(&(sum.finalize() as u32).to_le_bytes());
            offset += length + padding(length);
        }
        let p = &self.params;
        header[..8].copy_from_slice(&MAGIC);
        header[8..12].copy_from_slice(&VERSION.to_le_bytes());
        header[12..16].copy_from_slice(&(SECTIONS.len() as u32).to_le_bytes());
        let len = writer.state.space.len() as u64;
        let fields = [offset as u64, len, p.dim as u64, p.m as u64, p.ef_construction as u64, p.seed];
        for (i, field) in fields.iter().enumerate() {
            header[16 + 8 * i..][..8].copy_from_slice(&field.to_le_bytes());
        }
        header[64..68].copy_from_slice(&[p.kind as u8, p.dtype as u8, p.metric as u8, p.code as u8]);
        let State { graph, next_id, coded, listed, .. } = &writer.state;
        header[68..72].copy_from_slice(&graph.entry.to_le_bytes());
        header[72..76].copy_from_slice(&graph.first.to_le_bytes());
        header[76..80].copy_from_slice(&u32::from(next_id.is_some()).to_le_bytes());
        header[80..88].copy_from_slice(&next_id.unwrap_or(0).to_le_bytes());
        let of_code = coded.as_ref().map_or(0, |coded| coded.fitted);
        let fitted = listed.as_ref().map_or(of_code, |listed| listed.fitted) as u64;
        let oversample = listed.as_ref().map_or(0, |listed| listed.oversample);
        header[88..96].copy_from_slice(&fitted.to_le_bytes());
        header[96..104].copy_from_slice(&(p.nlist as u64).to_le_bytes());
        header[104..108].copy_from_slice(&oversample.to_le_bytes());
        let sum = crc(&header[..HEADER - 4]);
        header[HEADER - 4..].copy_from_slice(&sum.to_le_bytes());
        Ok(Image { writer, packed, curve, header })
    }

    /// What opening a file's contents takes besides them, from their header alone: centroids made ready, and for a moment
    /// a byte a vector.
    ///
    /// # Errors
    /// If they do not begin as an index of a version that can be read; and if `LANEWISE_ISA` is wrong.
    pub fn predict_open(file: &[u8]) -> Result<Need, FormatError> {
        let Header { params, count, table, .. } = Header::read(file)?;
        // Sizes are what a space can have, so that what follows from them can be counted.
        Index::new(params)?;
        let length = |section: usize| table.get(section).map_or(0, |entry| entry.1 as usize);
        let (removed, nlist) = (length(7), length(11) / 4);
        let lists = if nlist == 0 || nlist > NLIST { 0 } else { Listed::open_bytes(&params, nlist) };
        let seen = if nlist == 0 { 0 } else { count };
        let held = removed.saturating_add(lists);
        Ok(Need { held, peak: held.saturating_add(removed.max(seen)) })
    }

    /// Opens a file's contents, which are read in place for as long as the index lives.
    ///
    /// # Errors
    /// If they are not an index, of a newer version, cut short or damaged; and if `LANEWISE_ISA` is wrong.
    pub fn open(file: FileBytes) -> Result<Index, FormatError> {
        let kernels = Kernels::get().map_err(CreateError::Isa)?;
        let bytes: &[u8] = (*file).as_ref();
        let header = Header::read(bytes)?;
        let params = header.params;
        params.check()?;
        let mut space =
            Space::new(params.dtype, params.metric, params.dim, kernels).map_err(CreateError::Vector)?;
        let count = header.count;
        let sections = header.sections(bytes)?;
        let too_many = FormatError::Invalid { what: "more vectors than an index holds" };
        let (rows, corrections) = space.stored_bytes(count).filter(|_| count < IDS).ok_or(too_many)?;
        let expect = |section: usize, bytes: usize, what| {
            if sections[section].len() == bytes { Ok(()) } else { Err(FormatError::Invalid { what }) }
        };
        expect(0, rows, "the vectors' size is not that of their number")?;
        expect(1, corrections, "the corrections' size is not that of the vectors' number")?;
        if !sections[2].is_empty() {
            expect(2, count * 8, "the ids' number is not that of the vectors")?;
        }
        let misaligned = FormatError::Invalid { what: "the contents are not aligned in memory" };
        let spaced = space.map_columns(&file, count, sections[0].clone(), sections[1].clone());
        spaced.ok_or(misaligned)?;
        let graph = Graph {
            m: params.m,
            base: column(&file, &sections[3])?,
            pilots: column(&file, &sections[4])?,
            starts: column(&file, &sections[5])?,
            upper: column(&file, &sections[6])?,
            entry: header.entry,
            first: header.first,
        };
        check_graph(&graph, if params.kind.is_graph() { count } else { 0 })
            .map_err(|what| FormatError::Invalid { what })?;
        let (mut coded, mut listed) = (None, None);
        if params.kind == Kind::Ivf {
            listed = self::listed(&file, &sections, &header, &space)?;
        } else {
            coded = self::coded(&file, &sections, &header, *space.kernels())?;
        }
        let parts = [(8, coded.is_some() || listed.is_some()), (9, coded.is_some()), (10, listed.is_some())];
        let parts = parts.into_iter().chain((11..CURVE).map(|i| (i, listed.is_some())));
        if parts.into_iter().any(|(i, used)| !used && sections.get(i).is_some_and(|range| !range.is_empty()))
        {
            return Err(FormatError::Invalid { what: "a section is not empty that should be" });
        }
        let deleted = deleted(bytes, sections.get(7), count)?;
        let numbers = !sections[2].is_empty() || count == 0;
        let numbered = header.next_id.is_none_or(|next| numbers && (0..1 << 62).contains(&next));
        if !numbered {
            return Err(FormatError::Invalid {
                what: "numbering goes on from no ids, or from where there is no room",
            });
        }
        let curve = sections.get(CURVE).map_or(&[][..], |range| &bytes[range.clone()]);
        let curve = Curve::from_bytes(curve, params.metric).map_err(|what| FormatError::Invalid { what })?;
        let mut index = Index::from_state(
            params,
            State {
                space,
                coded,
                listed,
                graph,
                ids: column(&file, &sections[2])?,
                deleted,
                next_id: header.next_id,
                version: version(),
            },
        );
        index.tuned = Tuned::restored(curve);
        Ok(index)
    }
}

fn column<T: Plain>(file: &FileBytes, range: &Range<usize>) -> Result<Column<T>, FormatError> {
    let column = Column::map(file, range.clone());
    column.ok_or(FormatError::Invalid { what: "a section holds no whole number of elements" })
}

/// The rows of the traversal code, if there are any yet.
fn coded(
    file: &FileBytes,
    sections: &[Range<usize>],
    header: &Header,
    kernels: Kernels,
) -> Result<Option<Coded>, FormatError> {
    let Header { params, count, fitted, .. } = header;
    let [_, _, _, _, _, _, _, _, parameters, rows, ..] = sections else { return Ok(None) };
    if parameters.is_empty() && rows.is_empty() {
        return Ok(None);
    }
    if params.code == Code::None || *fitted == 0 {
        return Err(FormatError::Invalid { what: "rows of a code that it does not have" });
    }
    let bytes = &(**file).as_ref()[parameters.clone()];
    let coder = Coder::from_parameters(params.code, params.metric, params.dim, kernels, bytes)?;
    if count.checked_mul(coder.stride()) != Some(rows.len()) {
        return Err(FormatError::Invalid { what: "the code rows' number is not that of the vectors" });
    }
    Ok(Some(Coded::new(Arc::new(coder), params.metric, column(file, rows)?, *fitted, *count)))
}

/// The lists, if there are any yet.
fn listed(
    file: &FileBytes,
    sections: &[Range<usize>],
    header: &Header,
    space: &Space,
) -> Result<Option<Arc<Listed>>, FormatError> {
    let Header { params, count, fitted, oversample, .. } = header;
    let [_, _, _, _, _, _, _, _, parameters, _, learnt, lengths, codes, biases, rows, ..] = sections else {
        return Ok(None);
    };
    if lengths.is_empty() {
        return Ok(None);
    }
    let parameters = &(**file).as_ref()[parameters.clone()];
    let coder = match params.code {
        Code::None | Code::Pq4 => None,
        code => Some(Coder::from_parameters(code, params.metric, params.dim, *space.kernels(), parameters)?),
    };
    let invalid = |what| FormatError::Invalid { what };
    let nlist = lengths.len() / 4;
    if *fitted == 0 || nlist > NLIST || (coder.is_none() && !parameters.is_empty()) {
        return Err(invalid("lists that cannot have been made"));
    }
    if *oversample > 1000 || (params.code == Code::None && *oversample != 1) {
        return Err(invalid("more candidates a result than a search takes"));
    }
    let list_params = list_params(params, space, nlist, coder.as_ref().map(Coder::stride));
    let sections = Sections {
        parameters: learnt.clone(),
        lengths: lengths.clone(),
        codes: codes.clone(),
        biases: biases.clone(),
        rows: rows.clone(),
    };
    let ivf = Ivf::stored(list_params, *space.kernels(), file, sections, *count).map_err(invalid)?;
    Ok(Some(Arc::new(Listed::new(ivf, coder, *fitted, *oversample))))
}

/// The set of deleted rows, of which there are few enough bytes to be copied.
fn deleted(bytes: &[u8], section: Option<&Range<usize>>, count: usize) -> Result<RowSet, FormatError> {
    let words = section.map_or(&[][..], |range| &bytes[range.clone()]).chunks(8);
    let words: Vec<u64> =
        words.map(|word| word.iter().rev().fold(0, |all, &byte| all << 8 | u64::from(byte))).collect();
    let rows = RowSet::of(words);
    let inside = rows.rows().last().is_none_or(|row| (row as usize) < count);
    if inside { Ok(rows) } else { Err(FormatError::Invalid { what: "a deleted row is no vector" }) }
}

struct Header {
    params: Params,
    count: usize,
    entry: u32,
    first: u32,
    next_id: Option<i64>,
    fitted: usize,
    oversample: u32,
    bytes: usize,
    table: Vec<(u64, u64, u32)>,
}

impl Header {
    fn read(bytes: &[u8]) -> Result<Header, FormatError> {
        let found = bytes.len() as u64;
        if bytes.get(..8) != Some(&MAGIC) {
            return Err(FormatError::Magic);
        }
        let version = bytes.get(8..12).map(|b| u32::from_le_bytes(b.try_into().expect("four bytes")));
        let Some((header, counts)) = version.and_then(shape) else {
            let short = FormatError::Length { found, expected: HEADER as u64 };
            return Err(version.map_or(short, |found| FormatError::Version { found }));
        };
        let Some(header) = bytes.get(..header) else {
            return Err(FormatError::Length { found, expected: header as u64 });
        };
        let u32_at = |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().expect("four bytes"));
        let u64_at = |at: usize| u64::from_le_bytes(header[at..at + 8].try_into().expect("eight bytes"));
        if crc(&header[..header.len() - 4]) != u32_at(header.len() - 4) {
            return Err(FormatError::Checksum { section: "header's fields" });
        }
        if u64_at(16) != found {
            return Err(FormatError::Length { found, expected: u64_at(16) });
        }
        let sections = u32_at(12) as usize;
        if !counts.contains(&sections) {
            return Err(FormatError::Invalid { what: "the number of sections is not that of the version" });
        }
        let invalid = |what| FormatError::Invalid { what };
        let size = |at| usize::try_from(u64_at(at)).map_err(|_| invalid("a size exceeds the address space"));
        let params = Params {
            dim: size(32)?,
            metric: *Metric::ALL.get(usize::from(header[66])).ok_or(invalid("unknown metric"))?,
            dtype: *Dtype::ALL.get(usize::from(header[65])).ok_or(invalid("unknown element type"))?,
            kind: *Kind::ALL.get(usize::from(header[64])).ok_or(invalid("unknown kind"))?,
            code: *Code::ALL.get(usize::from(header[67])).ok_or(invalid("unknown code"))?,
            m: size(40)?,
            ef_construction: size(48)?,
            nlist: if version == Some(1) { 0 } else { size(96)? },
            seed: u64_at(56),
        };
        let entry = |i| TABLE + i * TABLE_ENTRY;
        let table = (0..sections).map(|i| (u64_at(entry(i)), u64_at(entry(i) + 8), u32_at(entry(i) + 16)));
        Ok(Header {
            params,
            count: size(24)?,
            entry: u32_at(68),
            first: u32_at(72),
            next_id: (u32_at(76) != 0).then(|| u64_at(80) as i64),
            fitted: if version == Some(1) { 0 } else { size(88)? },
            oversample: if version == Some(1) { 0 } else { u32_at(104) },
            bytes: header.len(),
            table: table.collect(),
        })
    }

    /// Where the sections lie, after their checksums and the padding between them have been checked.
    fn sections(&self, bytes: &[u8]) -> Result<Vec<Range<usize>>, FormatError> {
        let misplaced = FormatError::Invalid { what: "a section does not lie where the version puts it" };
        let mut end = self.bytes;
        let mut ranges = Vec::new();
        for (&(offset, length, sum), name) in self.table.iter().zip(SECTIONS) {
            let length = usize::try_from(length).map_err(|_| misplaced.clone())?;
            let range = end..end.checked_add(length).ok_or(misplaced.clone())?;
            let section =
                bytes.get(range.clone()).filter(|_| offset == end as u64).ok_or(misplaced.clone())?;
            let zeros = bytes.get(range.end..range.end + padding(length)).ok_or(misplaced.clone())?;
            if crc(section) != sum || zeros.iter().any(|&b| b != 0) {
                return Err(FormatError::Checksum { section: name });
            }
            end = range.end + zeros.len();
            ranges.push(range);
        }
        if end == bytes.len() { Ok(ranges) } else { Err(misplaced) }
    }
}

/// Checks that every link leads to a member of its layer.
fn check_graph(graph: &Graph, nodes: usize) -> Result<(), &'static str> {
    let pilots = graph.pilots.len();
    let ensure = |fine, what| if fine { Ok(()) } else { Err(what) };
    ensure(graph.base.len() == nodes * 2 * graph.m, "the links' number is not that of the vectors")?;
    let id = |link: &AtomicU32| link.load(Ordering::Relaxed);
    let in_base = |n: u32| n == NONE || (n as usize) < nodes;
    ensure(graph.base.iter().map(id).all(in_base), "a link leads to no vector")?;
    ensure(graph.pilots.iter().all(|&n| (n as usize) < nodes), "a pilot is no vector")?;
    ensure(graph.pilots.windows(2).all(|w| w[0] < w[1]), "the pilots are not in order")?;
    if pilots == 0 {
        // Without pilots the starts are none, or the one that ends them.
        ensure(graph.starts.iter().all(|&s| s == 0) && graph.starts.len() <= 1, "starts without pilots")?;
        ensure(graph.upper.is_empty(), "upper links without pilots")?;
        ensure((graph.first as usize) < nodes.max(1), "the first node is no vector")?;
        return ensure(graph.entry == NONE, "an entry without pilots");
    }
    ensure(graph.starts.len() == pilots + 1 && graph.starts[0] == 0, "the starts are not the pilots'")?;
    ensure(graph.starts.windows(2).all(|w| w[0] < w[1]), "the starts do not rise")?;
    ensure(
        graph.starts[pilots] as usize * graph.m == graph.upper.len(),
        "the upper links are not the starts'",
    )?;
    ensure((graph.entry as usize) < pilots, "the entry is no pilot")?;
    for pilot in 0..pilots as u32 {
        for layer in 1..=graph.height(pilot) {
            let links = &graph.upper[graph.block(pilot, layer)..][..graph.m];
            let member = |n: u32| n == NONE || ((n as usize) < pilots && graph.height(n) >= layer);
            ensure(links.iter().map(id).all(member), "an upper link leads outside its layer")?;
        }
    }
    Ok(())
}
