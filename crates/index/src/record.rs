//! What searches read, byte range by byte range, so that a simulator of caches can replay it.
//!
//! An index is laid out in an address space of its own, a region for each array that searches read, each on a page of its
//! own. Within a region addresses are those of the array:
//!
//! | region | what lies there | at |
//! |---|---|---|
//! | `Vectors` | stored rows, padding included | row × bytes of a row |
//! | `Norms` | what inner products of bytes leave out | row × 4 |
//! | `Codes` | rows of the traversal code | row × bytes of a row |
//! | `Links` | links of the base layer | node × 8 m |
//! | `UpperLinks` | links of the layers above | block × 4 m |
//! | `Centroids` | signed bytes of all centroids, then rows of 16-bit floats | list × bytes of each |
//! | `Lists` | codes, then biases, of one list after the other, each from a line on | as [`Layout::list`] says |
//!
//! Not counted, as small beside these or as seldom read: ids, numbers of rows in lists, filters, marks of what was visited,
//! the query itself.

use crate::flat::BLOCK;
use crate::hnsw::graph::Layer;
use crate::ivf::{Ivf, ListProbe};
use crate::search::{Counts, Reader, Scratch};
use crate::space::Compare;
use std::ops::Range;
use std::sync::Arc;

/// Where regions begin, and lists.
const PAGE: u64 = 4096;
const LINE: u64 = 64;

/// An array that searches read; see the module for what lies where.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the module's table says what they are")]
#[repr(u8)]
pub enum Region {
    Vectors,
    Norms,
    Codes,
    Links,
    UpperLinks,
    Centroids,
    Lists,
}

impl Region {
    /// All, in the order in which they lie.
    pub const ALL: [Region; 7] = [
        Region::Vectors,
        Region::Norms,
        Region::Codes,
        Region::Links,
        Region::UpperLinks,
        Region::Centroids,
        Region::Lists,
    ];
}

/// A range of bytes that a search read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Touch {
    /// What was read.
    pub region: Region,
    /// Whose: the (first) row, the node, the pilot (see `docs/architecture.md`) or the list.
    pub of: u32,
    /// Where it begins in the index's address space, in bytes.
    pub offset: u64,
    /// How many bytes.
    pub bytes: u64,
}

/// How an index lies in its address space: one state of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Layout {
    version: u64,
    /// By the regions' order.
    regions: [Range<u64>; Region::ALL.len()],
    lists: Vec<Range<u64>>,
}

impl Layout {
    /// Addresses of a region; empty if the index has none.
    pub fn region(&self, region: Region) -> Range<u64> {
        self.regions[region as usize].clone()
    }

    /// Addresses of a list.
    ///
    /// # Panics
    /// If there is no such list.
    pub fn list(&self, list: u32) -> Range<u64> {
        self.lists[list as usize].clone()
    }

    /// Number of lists.
    pub fn lists(&self) -> usize {
        self.lists.len()
    }

    /// The end of the address space.
    pub fn end(&self) -> u64 {
        self.regions[Region::ALL.len() - 1].end
    }
}

/// Vectors and bytes of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListSize {
    /// Vectors, removed ones included.
    pub vectors: usize,
    /// Bytes that a scan reads.
    pub bytes: u64,
}

impl Reader {
    /// The lists by their numbers; none while there are too few vectors for lists, or if the kind has none. Vectors that
    /// come in after the reader was made may be counted.
    pub fn lists(&self) -> impl ExactSizeIterator<Item = ListSize> + '_ {
        let lists = self.state().listed.as_ref().map(|listed| listed.ivf.lists());
        (0..lists.map_or(0, |lists| lists.len())).map(move |list| {
            let vectors = lists.map_or(0, |lists| lists.list(list).len());
            ListSize { vectors, bytes: lists.map_or(0, |lists| lists.form().scanned_bytes(vectors)) }
        })
    }

    /// Bytes of the vectors and all that searches of them need.
    pub fn bytes(&self) -> usize {
        self.state().bytes()
    }

    /// How this state of the index lies in its address space.
    pub fn layout(&self) -> Layout {
        let state = self.state();
        let sizes = [
            state.space.rows.len() as u64,
            4 * state.space.corrections.len() as u64,
            state.coded.as_ref().map_or(0, |coded| coded.rows.len() as u64),
            4 * state.graph.base.len() as u64,
            4 * state.graph.upper.len() as u64,
            state.listed.as_ref().map_or(0, |listed| listed.ivf.centroids().scanned_bytes()),
            self.lists().map(|list| list.bytes.next_multiple_of(LINE)).sum(),
        ];
        let mut next = 0u64;
        let regions = sizes.map(|bytes| {
            let start = next.next_multiple_of(PAGE);
            next = start + bytes;
            start..next
        });
        let mut next = regions[Region::Lists as usize].start;
        let lists = self.lists().map(|list| {
            let start = next;
            next += list.bytes.next_multiple_of(LINE);
            start..start + list.bytes
        });
        let lists = lists.collect();
        Layout { version: state.version, regions, lists }
    }
}

impl Scratch {
    /// From now on searches with this memory leave what they read, if they are of the state that `layout` is of; `None`:
    /// no longer. What was left and not taken is dropped.
    ///
    /// Of a list that has grown since the layout was made, only what was there then is recorded.
    pub fn record(&mut self, layout: Option<Arc<Layout>>) {
        self.walker.work.recorder =
            layout.map(|layout| Box::new(Recorder { layout, on: false, touches: Vec::new() }));
    }

    /// What searches since the last call read, in order; a block of rows that several queries share comes once. What a
    /// search read that was stopped is among it.
    pub fn recorded(&mut self) -> Vec<Touch> {
        self.walker
            .work
            .recorder
            .as_mut()
            .map_or(Vec::new(), |recorder| std::mem::take(&mut recorder.touches))
    }

    /// Gets ready for a search of the state `version`.
    pub(crate) fn begin(&mut self, version: u64) {
        if let Some(recorder) = &mut self.walker.work.recorder {
            recorder.on = recorder.layout.version == version;
        }
    }
}

/// What comparing a member reads.
#[derive(Clone, Copy)]
pub(crate) struct RowRead {
    /// Where its row is, and the row's bytes.
    pub(crate) region: Region,
    pub(crate) row: usize,
    /// Bytes of its norm, if it has one apart.
    pub(crate) norm: usize,
}

impl RowRead {
    #[inline]
    pub(crate) fn bytes(self) -> u64 {
        (self.row + self.norm) as u64
    }
}

/// What a search has done so far, and where what it read is written down, if anybody wants to know.
#[derive(Default)]
pub(crate) struct Work {
    pub(crate) counts: Counts,
    recorder: Option<Box<Recorder>>,
}

struct Recorder {
    layout: Arc<Layout>,
    /// Whether the search that runs is of the layout's state.
    on: bool,
    touches: Vec<Touch>,
}

impl Work {
    /// Counts `rows` as compared, one by one.
    #[inline]
    pub(crate) fn compared<C: Compare>(&mut self, space: &C, rows: &[u32]) {
        self.counts.distances += rows.len() as u64;
        self.counts.bytes += rows.len() as u64 * space.reads().bytes();
        if let Some(recorder) = &mut self.recorder {
            recorder.rows(space.reads(), rows.iter().copied(), 1);
        }
    }

    /// Counts `count` rows, which ascend, as compared block by block with so many `queries`, which share what is read.
    pub(crate) fn scanned<C: Compare>(
        &mut self,
        space: &C,
        (rows, count): (impl Iterator<Item = u32>, usize),
        queries: usize,
    ) {
        self.counts.distances += (count * queries) as u64;
        self.counts.bytes += count as u64 * space.scans().bytes();
        if let Some(recorder) = &mut self.recorder {
            recorder.rows(space.scans(), rows, BLOCK);
        }
    }

    /// Counts the links of `member` as read.
    #[inline]
    pub(crate) fn links<L: Layer>(&mut self, layer: &L, member: u32) {
        let bytes = size_of_val(layer.links(member));
        self.counts.bytes += bytes as u64;
        if let Some(recorder) = &mut self.recorder {
            recorder.touch(L::REGION, member, size_of::<u32>() * layer.links_from(member), bytes);
        }
    }

    /// Counts the choice of the lists of `probe` as made.
    pub(crate) fn chosen(&mut self, ivf: &Ivf, probe: &ListProbe) {
        let (codes, row, near) = ivf.choice_reads(probe);
        self.counts.distances += ivf.lists().len() as u64;
        self.counts.bytes += (codes.len() + near.len() * row) as u64;
        if let Some(recorder) = &mut self.recorder {
            recorder.touch(Region::Centroids, 0, codes.start, codes.len());
            let rows = ivf.centroids().rows_from();
            near.iter().for_each(|&list| {
                recorder.touch(Region::Centroids, list, rows + list as usize * row, row);
            });
        }
    }

    /// Counts `vectors` of a list as scanned, of which it read `bytes`.
    pub(crate) fn list(&mut self, list: u32, vectors: usize, bytes: u64) {
        self.counts.distances += vectors as u64;
        self.counts.bytes += bytes;
        if let Some(recorder) = &mut self.recorder {
            recorder.list(list, bytes);
        }
    }
}

impl Recorder {
    /// `bytes` at `at` of a region.
    #[cold]
    fn touch(&mut self, region: Region, of: u32, at: usize, bytes: usize) {
        if self.on && bytes > 0 {
            let offset = self.layout.region(region).start + at as u64;
            self.touches.push(Touch { region, of, offset, bytes: bytes as u64 });
        }
    }

    /// Rows; of those that follow one another `most` at a time are read in one go.
    #[cold]
    fn rows(&mut self, reads: RowRead, rows: impl Iterator<Item = u32>, most: usize) {
        let mut rows = rows.peekable();
        while let Some(first) = rows.next() {
            let mut count = 1;
            while count < most && rows.next_if_eq(&(first + count as u32)).is_some() {
                count += 1;
            }
            self.touch(reads.region, first, first as usize * reads.row, count * reads.row);
            self.touch(Region::Norms, first, first as usize * reads.norm, count * reads.norm);
        }
    }

    /// The first `bytes` of a list, or as many as it had when the layout was made.
    #[cold]
    fn list(&mut self, list: u32, bytes: u64) {
        if let Some(place) = self.layout.lists.get(list as usize).cloned() {
            let at = place.start - self.layout.region(Region::Lists).start;
            self.touch(Region::Lists, list, at as usize, bytes.min(place.end - place.start) as usize);
        }
    }
}
