//! The graph's arrays.
//!
//! Base layer: 2m links a node, in one array; with m = 16 a node's links are two cache lines. Upper layers: the nodes in
//! them are few (one in m), so they are numbered on their own, as *pilots*, in the order of their nodes; links there name
//! pilots, and pilot p's links in layer l are the l-th block of m from `starts[p]`. Unused links are `NONE`, at the end.
//!
//! One writer changes links while readers walk: links are atomics, read and written one by one (Relaxed). So a reader may
//! see a node's links half old and half new; each is a link that once was right. A link may lead to a member that the
//! reader's view does not have: readers pass over those, so what they do visit was published with their view.

use crate::memory::{Column, Growth, OutOfMemory};
use crate::record::Region;
use std::sync::atomic::{AtomicU32, Ordering};

/// No link.
pub(crate) const NONE: u32 = u32::MAX;

pub(crate) struct Graph {
    /// Links a node has in upper layers; twice that in the base layer.
    pub(crate) m: usize,
    /// Node after node, 2m links each.
    pub(crate) base: Column<AtomicU32>,
    /// The pilots' nodes, ascending.
    pub(crate) pilots: Column<u32>,
    /// Pilot p's first block in `upper`; one more entry at the end, so that p has `starts[p + 1] - starts[p]` layers.
    pub(crate) starts: Column<u32>,
    /// Blocks of m links.
    pub(crate) upper: Column<AtomicU32>,
    /// The pilot where searches start: of those in the highest layer, the first. `NONE` if there is no pilot.
    pub(crate) entry: u32,
    /// The node where searches start while there is no pilot.
    pub(crate) first: u32,
}

/// One layer of the graph: who is linked with whom, and which vector a member stands for.
pub(crate) trait Layer {
    /// How many members there are; links are below.
    fn members(&self) -> usize;
    /// The links of `member`, up to the first `NONE`.
    fn links(&self, member: u32) -> &[AtomicU32];
    /// Where in the layer's array the links start.
    fn links_from(&self, member: u32) -> usize;
    /// Where in memory the links start, for prefetching.
    fn links_at(&self, member: u32) -> *const AtomicU32;
    /// The vector of `member`.
    fn vector(&self, member: u32) -> u32;
    /// Whether members are vectors, so that `vector` need not be called.
    const IS_BASE: bool;
    /// The array that the links are in.
    const REGION: Region;
}

/// The members that `member` is linked with, of those that the layer's view has.
#[inline]
pub(crate) fn links<L: Layer>(layer: &L, member: u32) -> impl Iterator<Item = u32> {
    let members = layer.members();
    let all = layer.links(member).iter().map(|link| link.load(Ordering::Relaxed));
    all.take_while(|&other| other != NONE).filter(move |&other| (other as usize) < members)
}

pub(crate) struct Base<'a>(&'a [AtomicU32], usize);

impl Layer for Base<'_> {
    const IS_BASE: bool = true;
    const REGION: Region = Region::Links;

    fn members(&self) -> usize {
        self.0.len() / self.1
    }
    #[inline]
    fn links(&self, member: u32) -> &[AtomicU32] {
        &self.0[self.links_from(member)..][..self.1]
    }
    #[inline]
    fn links_from(&self, member: u32) -> usize {
        member as usize * self.1
    }
    #[inline]
    fn links_at(&self, member: u32) -> *const AtomicU32 {
        self.0.as_ptr().wrapping_add(self.links_from(member))
    }
    #[inline]
    fn vector(&self, member: u32) -> u32 {
        member
    }
}

pub(crate) struct Upper<'a> {
    graph: &'a Graph,
    layer: usize,
}

impl Layer for Upper<'_> {
    const IS_BASE: bool = false;
    const REGION: Region = Region::UpperLinks;

    fn members(&self) -> usize {
        self.graph.pilots.len()
    }
    #[inline]
    fn links(&self, member: u32) -> &[AtomicU32] {
        &self.graph.upper[self.links_from(member)..][..self.graph.m]
    }
    #[inline]
    fn links_from(&self, member: u32) -> usize {
        self.graph.block(member, self.layer)
    }
    #[inline]
    fn links_at(&self, member: u32) -> *const AtomicU32 {
        self.graph.upper.as_ptr().wrapping_add(self.links_from(member))
    }
    #[inline]
    fn vector(&self, member: u32) -> u32 {
        self.graph.pilots[member as usize]
    }
}

impl Graph {
    pub(crate) fn new(m: usize) -> Self {
        Graph {
            m,
            base: Column::new(),
            pilots: Column::new(),
            starts: Column::new(),
            upper: Column::new(),
            entry: NONE,
            first: 0,
        }
    }

    /// The graph of the first `nodes` nodes, with the entry that it had then, for readers.
    pub(crate) fn view(&self, nodes: usize, entry: u32) -> Graph {
        let pilots = self.pilots.partition_point(|&node| (node as usize) < nodes);
        let starts = (pilots + 1).min(self.starts.len());
        let blocks = self.starts.get(pilots).map_or(0, |&end| end as usize);
        Graph {
            m: self.m,
            base: self.base.view(nodes * 2 * self.m),
            pilots: self.pilots.view(pilots),
            starts: self.starts.view(starts),
            upper: self.upper.view(blocks * self.m),
            entry,
            first: self.first,
        }
    }

    pub(crate) fn base(&self) -> Base<'_> {
        Base(&self.base, 2 * self.m)
    }

    /// The `layer`-th layer, 1 being the one above the base.
    pub(crate) fn upper(&self, layer: usize) -> Upper<'_> {
        Upper { graph: self, layer }
    }

    /// Layers that `pilot` is in, the base not counted.
    pub(crate) fn height(&self, pilot: u32) -> usize {
        (self.starts[pilot as usize + 1] - self.starts[pilot as usize]) as usize
    }

    /// Where in `upper` the links of `pilot` in `layer` start.
    #[inline]
    pub(crate) fn block(&self, pilot: u32, layer: usize) -> usize {
        (self.starts[pilot as usize] as usize + layer - 1) * self.m
    }

    /// The highest layer; 0 if there is only the base.
    pub(crate) fn top(&self) -> usize {
        if self.entry == NONE { 0 } else { self.height(self.entry) }
    }

    /// What [`reserve`](Self::reserve) would take for `nodes`, of which `pilots` are above the base, in `blocks` layers
    /// together.
    pub(crate) fn growth(&self, nodes: usize, (pilots, blocks): (usize, usize)) -> Growth {
        self.base.growth(nodes * 2 * self.m)
            + self.pilots.growth(pilots)
            + self.starts.growth(pilots + 1)
            + self.upper.growth(blocks * self.m)
    }

    /// Makes room for nodes of which `heights` says how many layers above the base each is in.
    pub(crate) fn reserve(&mut self, heights: &[u8]) -> Result<(), OutOfMemory> {
        let pilots = heights.iter().filter(|&&h| h > 0).count();
        let blocks: usize = heights.iter().map(|&h| usize::from(h)).sum();
        self.base.reserve(heights.len() * 2 * self.m)?;
        self.pilots.reserve(pilots)?;
        self.starts.reserve(pilots + 1)?;
        self.upper.reserve(blocks * self.m)
    }

    /// Appends nodes without links, for which room was reserved. Searches do not find them before they are linked, and
    /// never start at them before `raise_entry`.
    pub(crate) fn append(&mut self, first: u32, heights: &[u8]) {
        if self.starts.is_empty() {
            self.starts.push(0);
        }
        self.base.extend_with(heights.len() * 2 * self.m, |_| AtomicU32::new(NONE));
        for (node, &height) in (first..).zip(heights).filter(|(_, h)| **h > 0) {
            self.pilots.push(node);
            let end = self.starts[self.starts.len() - 1] + u32::from(height);
            self.starts.push(end);
            self.upper.extend_with(usize::from(height) * self.m, |_| AtomicU32::new(NONE));
        }
    }

    /// Starts searches at the first of the highest pilots.
    pub(crate) fn raise_entry(&mut self, pilots: std::ops::Range<u32>) {
        for pilot in pilots {
            if self.height(pilot) > self.top() {
                self.entry = pilot;
            }
        }
    }

    /// Replaces the links of `member` in `layer` (0: base) by the first of `to` that there is room for.
    pub(crate) fn write(&self, layer: usize, member: u32, to: impl Iterator<Item = u32>) {
        let (width, start, all) = match layer {
            0 => (2 * self.m, member as usize * 2 * self.m, &self.base),
            _ => (self.m, self.block(member, layer), &self.upper),
        };
        for (slot, id) in all[start..start + width].iter().zip(to.chain(std::iter::repeat(NONE))) {
            slot.store(id, Ordering::Relaxed);
        }
    }

    /// Forgets the nodes from `count` on, which nothing links to.
    pub(crate) fn truncate(&mut self, count: usize) {
        let pilots = self.pilots.partition_point(|&node| (node as usize) < count);
        self.base.truncate(count * 2 * self.m);
        let blocks = self.starts.get(pilots).map_or(0, |&end| end as usize);
        self.upper.truncate(blocks * self.m);
        self.pilots.truncate(pilots);
        self.starts.truncate(pilots + 1);
    }

    /// Makes the links our own, so that they can be changed: a file's are copied.
    pub(crate) fn own(&mut self) -> Result<(), OutOfMemory> {
        self.base.own()?;
        self.upper.own()
    }

    /// What [`own`](Self::own) would take.
    pub(crate) fn own_bytes(&self) -> usize {
        self.base.own_bytes() + self.upper.own_bytes()
    }

    pub(crate) fn owned_bytes(&self) -> usize {
        self.base.owned_bytes()
            + self.pilots.owned_bytes()
            + self.starts.owned_bytes()
            + self.upper.owned_bytes()
    }
}
