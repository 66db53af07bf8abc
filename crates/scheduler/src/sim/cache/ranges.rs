//! Fully associative LRU over objects: runs of lines that are always touched as a whole and in order, such as a vector's
//! row, a node's links or a block of a list. Each touch is O(1), and the count of misses is that of LRU line by line.
//!
//! Why this is exact: the lines in the cache are those on top of the stack of last uses, and there an object's lines lie
//! together, the last line uppermost. So of all objects only the lowest can be partly in the cache: its first `gone` lines
//! went. Touch an object,
//! - and if all of it is there, each line hits;
//! - if none is there, each misses;
//! - if it is the lowest, with `gone ≥ 1`, each misses too: line 0 does, and takes the place of the lowest line in the
//!   cache, which is this object's first that is left; so each miss drops a line of its own just before its turn comes.
//!
//! Then its lines lie on top, and as many lines as exceed the capacity go from the bottom. `tests/it/caches.rs` compares
//! this with LRU line by line and with Mattson's stack distances (IBM Systems Journal 9:2, 1970).

const NONE: u32 = u32::MAX;

/// Of an object that is in the cache.
#[derive(Clone, Copy, Debug)]
struct Slot {
    object: u32,
    lines: u32,
    /// Towards the top of the stack.
    up: u32,
    /// Towards the bottom.
    down: u32,
}

/// The cache. Objects go by numbers, which should be dense.
#[derive(Clone, Debug)]
pub struct Ranges {
    capacity: u64,
    used: u64,
    /// Lines of the lowest object that went.
    gone: u32,
    top: u32,
    bottom: u32,
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// The slot of each object.
    at: Vec<u32>,
}

impl Ranges {
    /// An empty cache of so many lines, for objects numbered below `objects`.
    ///
    /// # Panics
    /// If there are no lines.
    pub fn new(lines: u64, objects: usize) -> Self {
        assert!(lines > 0, "a cache has at least one line");
        Ranges {
            capacity: lines,
            used: 0,
            gone: 0,
            top: NONE,
            bottom: NONE,
            slots: Vec::new(),
            free: Vec::new(),
            at: vec![NONE; objects],
        }
    }

    /// Touches an object of `lines` lines, at least one and always as many: how many of them miss.
    pub fn touch(&mut self, object: u32, lines: u32) -> u32 {
        let slot = self.at[object as usize];
        if slot == NONE {
            self.insert(object, lines);
            self.evict();
            return lines;
        }
        debug_assert_eq!(self.slots[slot as usize].lines, lines, "object {object} has changed its size");
        let torn = slot == self.bottom && self.gone > 0;
        if slot != self.top {
            self.unlink(slot);
            self.link(slot);
        }
        if !torn {
            return 0;
        }
        self.used += u64::from(self.gone);
        self.gone = 0;
        self.evict();
        lines
    }

    fn insert(&mut self, object: u32, lines: u32) {
        debug_assert!(lines > 0, "object {object} has no lines");
        let new = Slot { object, lines, up: NONE, down: NONE };
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = new;
                slot
            }
            None => {
                self.slots.push(new);
                self.slots.len() as u32 - 1
            }
        };
        self.at[object as usize] = slot;
        self.link(slot);
        self.used += u64::from(lines);
    }

    /// Puts a slot on top.
    fn link(&mut self, slot: u32) {
        self.slots[slot as usize].up = NONE;
        self.slots[slot as usize].down = self.top;
        match self.top {
            NONE => self.bottom = slot,
            top => self.slots[top as usize].up = slot,
        }
        self.top = slot;
    }

    fn unlink(&mut self, slot: u32) {
        let Slot { up, down, .. } = self.slots[slot as usize];
        match up {
            NONE => self.top = down,
            up => self.slots[up as usize].down = down,
        }
        match down {
            NONE => self.bottom = up,
            down => self.slots[down as usize].up = up,
        }
    }

    /// Drops lines from the bottom until what is left fits.
    fn evict(&mut self) {
        while self.used > self.capacity {
            let bottom = self.bottom;
            let Slot { object, lines, .. } = self.slots[bottom as usize];
            let (excess, left) = (self.used - self.capacity, lines - self.gone);
            if excess < u64::from(left) {
                self.gone += excess as u32;
                self.used = self.capacity;
                return;
            }
            self.used -= u64::from(left);
            self.gone = 0;
            self.unlink(bottom);
            self.at[object as usize] = NONE;
            self.free.push(bottom);
        }
    }
}
