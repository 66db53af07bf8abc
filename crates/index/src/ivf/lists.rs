//! Lists: codes in chunks that never move, so that readers never wait and an insert copies nothing.
//!
//! A list is a chain of chunks, each with a count that only grows. A writer fills places beyond the count and then
//! raises it (release); a reader takes the count (acquire) and what lies below it. A full chunk gets a successor half as
//! large as the list. Writers of a list take turns, readers take part in nothing.
//!
//! Two forms. *Rows*: codes of `stride` bytes one after the other. *Blocks*: 32 vectors' 4-bit codes interleaved as
//! [`Scan`](lanewise_kernels::Scan) wants them, where vectors i and 16 + i share bytes. Of a block that is still being
//! filled a reader takes a copy, made and written by whole atomic words: bits of vectors below the count never change.
//! A *sealed* chunk, from a build or an opened file, is never added to and needs no copy. A file's is read in place.
//!
//! With each code lies the vector's row in the index, and in blocks a 16-bit bias (see `pq`).

use super::kmeans::lock;
use crate::memory::{FileBytes, OutOfMemory};
use lanewise_kernels::{ALIGN, BLOCK};
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

/// How codes lie in a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// `stride` bytes a vector.
    Rows { stride: usize },
    /// `runs` codes of 4 bits a vector, by blocks of 32, and a bias.
    Blocks { runs: usize },
}

impl Form {
    /// Bytes of the codes of a whole number of blocks.
    fn bytes(self, vectors: usize) -> usize {
        match self {
            Form::Rows { stride } => vectors * stride,
            Form::Blocks { runs } => vectors / 2 * runs,
        }
    }

    /// Bytes of the codes of `vectors` vectors in a file, blocks being whole; `None` if too many to count.
    pub(crate) fn stored_bytes(self, vectors: usize) -> Option<usize> {
        match self {
            Form::Rows { stride } => vectors.checked_mul(stride),
            Form::Blocks { runs } => vectors.div_ceil(BLOCK).checked_mul(16 * runs),
        }
    }

    /// Bytes of codes and biases that a scan of a list of `vectors` reads.
    pub(crate) fn scanned_bytes(self, vectors: usize) -> u64 {
        match self {
            Form::Rows { stride } => (vectors * stride) as u64,
            Form::Blocks { runs } => (vectors.div_ceil(BLOCK) * 16 * runs + 2 * vectors) as u64,
        }
    }

    /// Bytes of one vector's code outside of a list: a byte for each run.
    pub(crate) fn code_bytes(self) -> usize {
        match self {
            Form::Rows { stride } => stride,
            Form::Blocks { runs } => runs,
        }
    }
}

/// A piece of a list: whole blocks (or rows) of codes, of which the first `rows.len()` vectors count.
pub(crate) struct Part<'a> {
    pub(crate) codes: &'a [u8],
    /// Empty for rows.
    pub(crate) biases: &'a [u16],
    pub(crate) rows: &'a [u32],
}

/// Writes a vector's code, by its place among those added; gives its row and bias.
pub(crate) type Fill<'a> = dyn FnMut(usize, &mut [u8]) -> (u32, u16) + 'a;

/// Where codes (whole blocks of them), biases and rows of a list lie in a file, in bytes.
pub(crate) struct Place {
    pub(crate) codes: Range<usize>,
    pub(crate) biases: Range<usize>,
    pub(crate) rows: Range<usize>,
}

/// Up to `capacity` vectors: codes, biases and rows. In memory of the chunk's own they lie in this order. Blocks are whole;
/// rows that come at once have no room beside them, since many lists are short.
struct Chunk {
    form: Form,
    capacity: usize,
    sealed: bool,
    /// Vectors that readers may see. Stored with release after they were written, loaded with acquire.
    count: AtomicUsize,
    codes: NonNull<u8>,
    biases: NonNull<u16>,
    rows: NonNull<u32>,
    /// What keeps the memory alive; `None`: it is our own.
    file: Option<FileBytes>,
    next: OnceLock<Box<Chunk>>,
}

// SAFETY: the chunk owns its memory, or keeps the file that is never written. What lies beyond the count is written by one thread at a time, under the list's
// lock, and read by none; below it nothing changes but the words of an open block, which are only accessed atomically.
unsafe impl Send for Chunk {}
// SAFETY: as above.
unsafe impl Sync for Chunk {}

impl Chunk {
    fn new(form: Form, vectors: usize, sealed: bool) -> Result<Chunk, OutOfMemory> {
        let capacity = Self::capacity(form, vectors, sealed);
        let layout = Self::layout(form, capacity);
        // SAFETY: the layout is not empty.
        let codes =
            NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or(OutOfMemory { bytes: layout.size() })?;
        // SAFETY: both lie within the memory, on a line and on an even number of bytes after it.
        let (biases, rows) = unsafe {
            (
                codes.byte_add(Self::biases_at(form, capacity)).cast(),
                codes.byte_add(Self::rows_at(form, capacity)).cast(),
            )
        };
        let (count, next) = (AtomicUsize::new(0), OnceLock::new());
        Ok(Chunk { form, capacity, sealed, count, codes, biases, rows, file: None, next })
    }

    /// The vectors at `place` of `file`; `None` if their sizes do not fit together or they are not aligned.
    fn stored(form: Form, file: &FileBytes, place: Place) -> Option<Chunk> {
        let part = |range: Range<usize>| (**file).as_ref().get(range);
        let (codes, biases, rows) = (part(place.codes)?, part(place.biases)?, part(place.rows)?);
        let count = rows.len() / 4;
        let biased = if let Form::Blocks { .. } = form { 2 * count } else { 0 };
        let fits = rows.len() == 4 * count
            && biases.len() == biased
            && Some(codes.len()) == form.stored_bytes(count);
        let biases = NonNull::from(biases).cast::<u16>();
        let rows = NonNull::from(rows).cast::<u32>();
        let aligned = biases.is_aligned() && rows.is_aligned();
        (fits && aligned).then(|| Chunk {
            form,
            capacity: count.next_multiple_of(BLOCK),
            sealed: true,
            count: AtomicUsize::new(count),
            codes: NonNull::from(codes).cast(),
            biases,
            rows,
            file: Some(file.clone()),
            next: OnceLock::new(),
        })
    }

    fn capacity(form: Form, vectors: usize, sealed: bool) -> usize {
        match form {
            Form::Rows { .. } if sealed => vectors.max(1),
            _ => vectors.max(1).next_multiple_of(BLOCK),
        }
    }

    fn biases_at(form: Form, capacity: usize) -> usize {
        form.bytes(capacity).next_multiple_of(ALIGN)
    }

    fn rows_at(form: Form, capacity: usize) -> usize {
        let biases = if let Form::Blocks { .. } = form { 2 * capacity } else { 0 };
        Self::biases_at(form, capacity) + biases
    }

    fn layout(form: Form, capacity: usize) -> Layout {
        let bytes = Self::rows_at(form, capacity) + 4 * capacity;
        Layout::from_size_align(bytes, ALIGN).expect("as many bytes as vectors below 2^31 can have")
    }

    fn rows(&self, count: usize) -> &[u32] {
        assert!(count <= self.capacity);
        // SAFETY: rows below the count are there and never written again.
        unsafe { std::slice::from_raw_parts(self.rows.as_ptr(), count) }
    }

    fn biases(&self, count: usize) -> &[u16] {
        assert!(count <= self.capacity);
        let count = if let Form::Blocks { .. } = self.form { count } else { 0 };
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts(self.biases.as_ptr(), count) }
    }

    /// Codes of the first `count` vectors: of rows below the published count, of blocks that nobody writes to any more.
    fn codes(&self, count: usize) -> &[u8] {
        assert!(count <= self.capacity);
        // SAFETY: within the chunk, and never written again.
        unsafe { std::slice::from_raw_parts(self.codes.as_ptr(), self.form.bytes(count)) }
    }

    /// The words of 4-bit codes of a block.
    fn words(&self, block: usize) -> &[AtomicU64] {
        let Form::Blocks { runs } = self.form else { return &[] };
        assert!(block < self.capacity / BLOCK);
        // SAFETY: within the chunk and aligned; while the block is open its words are only accessed atomically.
        unsafe { std::slice::from_raw_parts(self.codes.as_ptr().add(block * 16 * runs).cast(), 2 * runs) }
    }

    /// Writes a vector at the published count and publishes it. The caller holds the list's lock and knows that there is
    /// room.
    fn push(&self, row: u32, code: &[u8], bias: u16) {
        // Relaxed: only this thread, or one before it under the lock, changes the count.
        let at = self.count.load(Ordering::Relaxed);
        assert!(at < self.capacity && code.len() == self.form.code_bytes());
        match self.form {
            // SAFETY: the row lies within the chunk, beyond the published count, so nobody reads it.
            Form::Rows { stride } => unsafe {
                let to = self.codes.as_ptr().add(at * stride);
                std::ptr::copy_nonoverlapping(code.as_ptr(), to, stride);
            },
            Form::Blocks { .. } => {
                let (place, high) = (at % 16, at % BLOCK / 16);
                for (words, &code) in self.words(at / BLOCK).chunks_exact(2).zip(code) {
                    let word = &words[place / 8];
                    let bits = u64::from(code & 15) << (8 * (place % 8) + 4 * high);
                    // Relaxed: published by the count. The memory was zero.
                    word.store(
                        (u64::from_le(word.load(Ordering::Relaxed)) | bits).to_le(),
                        Ordering::Relaxed,
                    );
                }
                // SAFETY: as above.
                unsafe { self.biases.as_ptr().add(at).write(bias) };
            }
        }
        // SAFETY: as above.
        unsafe { self.rows.as_ptr().add(at).write(row) };
        // Release: pairs with the acquire of readers.
        self.count.store(at + 1, Ordering::Release);
    }

    /// Shows the vectors published by now.
    fn visit(&self, words: &mut Vec<u64>, part: &mut dyn FnMut(Part<'_>)) {
        // Acquire: pairs with the release of `push`.
        let count = self.count.load(Ordering::Acquire);
        let (rows, biases) = (self.rows(count), self.biases(count));
        let Form::Blocks { runs } = self.form else {
            if count > 0 {
                part(Part { codes: self.codes(count), biases, rows });
            }
            return;
        };
        // Blocks that nobody writes to any more, then the one that somebody may.
        let still = if self.sealed { count.next_multiple_of(BLOCK) } else { count / BLOCK * BLOCK };
        let seen = still.min(count);
        if seen > 0 {
            part(Part { codes: self.codes(still), biases: &biases[..seen], rows: &rows[..seen] });
        }
        if seen < count {
            words.clear();
            // Relaxed: what the count published is there, other vectors' bits may or may not be.
            words.extend(self.words(count / BLOCK).iter().map(|word| word.load(Ordering::Relaxed)));
            // SAFETY: words as the bytes that they are.
            let codes = unsafe { std::slice::from_raw_parts(words.as_ptr().cast::<u8>(), 16 * runs) };
            part(Part { codes, biases: &biases[seen..], rows: &rows[seen..] });
        }
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        if self.file.is_none() {
            // SAFETY: allocated with this layout.
            unsafe { dealloc(self.codes.as_ptr(), Self::layout(self.form, self.capacity)) };
        }
    }
}

/// One list. Readers and writers share it.
pub(crate) struct List {
    form: Form,
    /// In place: a scan waits for memory once less.
    first: OnceLock<Chunk>,
    /// Whose turn it is to write.
    writer: Mutex<()>,
}

impl List {
    pub(crate) fn new(form: Form) -> Self {
        List { form, first: OnceLock::new(), writer: Mutex::new(()) }
    }

    fn chunks(&self) -> impl Iterator<Item = &Chunk> {
        std::iter::successors(self.first.get(), |chunk| chunk.next.get().map(|next| &**next))
    }

    /// Vectors published by now.
    pub(crate) fn len(&self) -> usize {
        // Acquire: who counts vectors may look at them next.
        self.chunks().map(|chunk| chunk.count.load(Ordering::Acquire)).sum()
    }

    /// Bytes that the list holds, room for vectors to come included.
    pub(crate) fn owned_bytes(&self) -> usize {
        let own = |c: &Chunk| if c.file.is_none() { Chunk::layout(c.form, c.capacity).size() } else { 0 };
        self.chunks().map(|c| own(c) + size_of::<Chunk>()).sum()
    }

    /// About the bytes taken when `more` vectors come one by one, each of which is the list's with the chance `share`.
    fn pushed(&self, more: usize, share: f64) -> usize {
        // Relaxed: a figure that nothing else depends on.
        let left = |c: &Chunk| if c.sealed { 0 } else { c.capacity - c.count.load(Ordering::Relaxed) };
        let chance = match self.chunks().last().map_or(0, left) {
            0 => 1.0 - (1.0 - share).powf(more as f64),
            room => f64::from(more as f64 * share > room as f64),
        };
        (chance * chunk_bytes(self.form, self.len() / 2, false) as f64) as usize
    }

    /// Adds one vector: its row, its code (a byte for each run, or the row's bytes) and its bias.
    pub(crate) fn push(&self, row: u32, code: &[u8], bias: u16) -> Result<(), OutOfMemory> {
        let _turn = lock(&self.writer);
        let last = self.chunks().last();
        // Relaxed: the lock orders writers.
        let room = last.filter(|c| !c.sealed && c.count.load(Ordering::Relaxed) < c.capacity);
        let chunk = match room {
            Some(chunk) => chunk,
            None => self.chain(Chunk::new(self.form, self.len() / 2, false)?),
        };
        chunk.push(row, code, bias);
        Ok(())
    }

    /// Whether so many that come at once are a chunk of their own: those that fill a block, and rows that make the list
    /// longer by a quarter, so that its chunks stay few.
    pub(crate) fn extends(&self, count: usize) -> bool {
        count >= BLOCK || (matches!(self.form, Form::Rows { .. }) && 4 * count >= self.len())
    }

    /// Adds `count` vectors as a chunk of their own, which readers see once it is whole. `fill(i, code)` gives the row
    /// and the bias of the `i`th and writes its code.
    pub(crate) fn extend(&self, count: usize, fill: &mut Fill<'_>) -> Result<(), OutOfMemory> {
        if count == 0 {
            return Ok(());
        }
        let chunk = Chunk::new(self.form, count, true)?;
        let mut code = vec![0; self.form.code_bytes()];
        for i in 0..count {
            let (row, bias) = fill(i, &mut code);
            chunk.push(row, &code, bias);
        }
        let _turn = lock(&self.writer);
        self.chain(chunk);
        Ok(())
    }

    /// Puts `chunk` at the end. The caller holds the lock.
    fn chain(&self, chunk: Chunk) -> &Chunk {
        match self.chunks().last() {
            None => self.first.get_or_init(|| chunk),
            Some(last) => last.next.get_or_init(|| Box::new(chunk)),
        }
    }

    /// Shows what the list has by now, piece by piece. `words` is memory for a copy.
    pub(crate) fn visit(&self, words: &mut Vec<u64>, part: &mut dyn FnMut(Part<'_>)) {
        self.chunks().for_each(|chunk| chunk.visit(words, part));
    }

    /// Every vector with its row, code and bias.
    pub(crate) fn entries(&self, entry: &mut dyn FnMut(u32, &[u8], u16)) {
        let mut code = vec![0; self.form.code_bytes()];
        self.visit(&mut Vec::new(), &mut |part| {
            for (i, &row) in part.rows.iter().enumerate() {
                match self.form {
                    Form::Rows { stride } => entry(row, &part.codes[i * stride..][..stride], 0),
                    Form::Blocks { runs } => {
                        let block = &part.codes[i / BLOCK * 16 * runs..][..16 * runs];
                        for (code, bytes) in code.iter_mut().zip(block.chunks_exact(16)) {
                            *code = bytes[i % 16] >> (4 * (i % BLOCK / 16)) & 15;
                        }
                        entry(row, &code, part.biases[i]);
                    }
                }
            }
        });
    }

    /// The list of the vectors to which `number` gives a new row, in one sealed chunk. Whoever reads the old list goes
    /// on undisturbed; the caller keeps writers away until the new one is in its place.
    pub(crate) fn renumbered(&self, number: &dyn Fn(u32) -> Option<u32>) -> Result<List, OutOfMemory> {
        let mut count = 0;
        self.entries(&mut |row, _, _| count += usize::from(number(row).is_some()));
        let list = List::new(self.form);
        if count > 0 {
            let chunk = Chunk::new(self.form, count, true)?;
            self.entries(&mut |row, code, bias| {
                if let Some(row) = number(row) {
                    chunk.push(row, code, bias);
                }
            });
            list.chain(chunk);
        }
        Ok(list)
    }

    /// The list at `place` of `file`, read in place; `None` if sizes do not fit together or are not aligned.
    pub(crate) fn stored(form: Form, file: &FileBytes, place: Place) -> Option<List> {
        let list = List::new(form);
        let chunk = Chunk::stored(form, file, place)?;
        if chunk.capacity > 0 {
            list.chain(chunk);
        }
        Some(list)
    }

    /// The codes as a file holds them, if that is not what the chunks' [`codes`](Self::codes) are one after the other.
    /// Nobody may write meanwhile, as for the three that follow.
    pub(crate) fn packed(&self) -> Option<Vec<u8>> {
        let Form::Blocks { runs } = self.form else { return None };
        if self.chunks().all(|chunk| chunk.sealed) && self.chunks().count() <= 1 {
            return None;
        }
        let mut packed = vec![0; self.form.bytes(self.len().next_multiple_of(BLOCK))];
        let mut i = 0;
        self.entries(&mut |_, code, _| {
            let block = &mut packed[i / BLOCK * 16 * runs..][..16 * runs];
            for (bytes, code) in block.chunks_exact_mut(16).zip(code) {
                bytes[i % 16] |= code << (4 * (i % BLOCK / 16));
            }
            i += 1;
        });
        Some(packed)
    }

    fn counted(&self) -> impl Iterator<Item = (&Chunk, usize)> {
        // Acquire: pairs with the release of `push`.
        self.chunks().map(|chunk| (chunk, chunk.count.load(Ordering::Acquire)))
    }

    /// Codes, piece by piece: of rows, or of blocks that are not [`packed`](Self::packed).
    pub(crate) fn codes(&self) -> impl Iterator<Item = &[u8]> {
        let whole = |count: usize| match self.form {
            Form::Rows { .. } => count,
            Form::Blocks { .. } => count.next_multiple_of(BLOCK),
        };
        self.counted().map(move |(chunk, count)| chunk.codes(whole(count)))
    }

    pub(crate) fn biases(&self) -> impl Iterator<Item = &[u16]> {
        self.counted().map(|(chunk, count)| chunk.biases(count))
    }

    pub(crate) fn rows(&self) -> impl Iterator<Item = &[u32]> {
        self.counted().map(|(chunk, count)| chunk.rows(count))
    }
}

fn chunk_bytes(form: Form, vectors: usize, sealed: bool) -> usize {
    Chunk::layout(form, Chunk::capacity(form, vectors, sealed)).size() + size_of::<Chunk>()
}

/// About what a chunk holds that comes at once, with a number of vectors that is Poisson's, of which `mean` are expected.
fn expected_bytes(form: Form, mean: f64) -> f64 {
    let chunk = (1.0 - (-mean).exp()) * size_of::<Chunk>() as f64;
    chunk
        + match form {
            Form::Rows { stride } => mean * (stride + size_of::<u32>()) as f64,
            Form::Blocks { .. } => expected_blocks(mean) * Chunk::layout(form, BLOCK).size() as f64,
        }
}

/// How many blocks hold a number of vectors that is Poisson's, of which `mean` are expected.
fn expected_blocks(mean: f64) -> f64 {
    let blocks = mean / BLOCK as f64;
    if blocks > 2.0 {
        // Half of the last is not used.
        return blocks + 0.5;
    }
    // A block more with the first vector of each.
    let (mut chance, mut sum, mut expected) = ((-mean).exp(), 0.0, 0.0);
    for vectors in 0..BLOCK * 6 {
        sum += chance;
        if vectors % BLOCK == 0 {
            expected += 1.0 - sum;
        }
        chance *= mean / (vectors + 1) as f64;
    }
    expected
}

/// The lists of an index. A clone shares them: both see what is added to either.
#[derive(Clone)]
pub(crate) struct Lists {
    form: Form,
    lists: Arc<[Arc<List>]>,
}

impl Lists {
    pub(crate) fn new(form: Form, count: usize) -> Self {
        Lists { form, lists: (0..count).map(|_| Arc::new(List::new(form))).collect() }
    }

    pub(crate) fn of(form: Form, lists: impl Iterator<Item = List>) -> Self {
        Lists { form, lists: lists.map(Arc::new).collect() }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &List> {
        self.lists.iter().map(|list| &**list)
    }

    pub(crate) fn form(&self) -> Form {
        self.form
    }

    pub(crate) fn len(&self) -> usize {
        self.lists.len()
    }

    pub(crate) fn list(&self, list: usize) -> &List {
        &self.lists[list]
    }

    /// About what `nlist` lists of `vectors` vectors hold that come at once: half a block of each is not used.
    pub(crate) fn bytes_of(form: Form, nlist: usize, vectors: usize) -> usize {
        let mean = vectors as f64 / nlist as f64;
        let codes = match form {
            Form::Rows { .. } => expected_bytes(form, mean),
            Form::Blocks { .. } => {
                Chunk::layout(form, BLOCK).size() as f64 * (mean / BLOCK as f64 + 0.5)
                    + size_of::<Chunk>() as f64
            }
        };
        nlist * (codes as usize + size_of::<List>())
    }

    /// About what the lists will hold besides what they do once `more` vectors have come, all `at_once` or one by one, of
    /// which each list gets as many as its share.
    pub(crate) fn growth(&self, more: usize, at_once: bool) -> usize {
        // One more in each: an empty list may get some, too.
        let share = 1.0 / (self.iter().map(|list| list.len() + 1).sum::<usize>()) as f64;
        let shares = self.iter().map(|list| (list, share * (list.len() + 1) as f64));
        let grown = shares.map(|(list, share)| {
            let mean = more as f64 * share;
            if at_once && list.extends(mean as usize) {
                expected_bytes(self.form, mean) as usize
            } else {
                list.pushed(more, share)
            }
        });
        grown.sum()
    }

    /// About what the lists hold in memory of their own when they are made anew of `share` of their vectors.
    pub(crate) fn renumbered_bytes(&self, share: f64) -> usize {
        let kept =
            self.iter().map(|list| (list.len() as f64 * share).round() as usize).filter(|&kept| kept > 0);
        kept.map(|kept| chunk_bytes(self.form, kept, true)).sum::<usize>() + self.len() * size_of::<List>()
    }

    /// What `nlist` lists hold besides their vectors.
    pub(crate) fn open_bytes(nlist: usize) -> usize {
        nlist * (size_of::<Chunk>() + size_of::<List>())
    }

    pub(crate) fn owned_bytes(&self) -> usize {
        self.lists.iter().map(|list| list.owned_bytes() + size_of::<List>()).sum()
    }
}
