//! A file of bytes with a checksum of every block, written once and read in place.
//!
//! `docs/formats/blob.md` gives every byte. The data comes first, so that in a memory map it is aligned as the map is;
//! the checksums of its blocks follow, then a footer. What the bytes mean is the caller's business.

mod mend;
mod write;

use crate::checksum::{agrees, crc, u32_at, u64_at};
use crate::storage::Bytes;
pub use mend::{Mended, mend};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
pub use write::BlobWriter;

const MAGIC: [u8; 8] = *b"LANEBLOB";
const VERSION: u32 = 1;
/// Bytes of data that have one checksum.
pub const BLOCK: usize = 1 << 16;
const FOOTER: usize = 32;

/// Why bytes are not a blob, or not all of it can be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum BlobError {
    #[error("not a blob, cut short, or damaged at its end; restore the file from a snapshot")]
    Footer,
    #[error("version {found} of blobs, this program reads up to {VERSION}: use a newer Lanewise")]
    Version { found: u32 },
    #[error("{found} bytes do not fit a blob with {data} bytes of data; restore the file from a snapshot")]
    Length { found: u64, data: u64 },
    #[error("damaged: the blocks' checksums do not have theirs; restore the file from a snapshot")]
    Table,
    #[error(
        "damaged between bytes {} and {}: they do not have their checksum; restore the file from a snapshot",
        bytes.start, bytes.end
    )]
    Block { bytes: Range<u64> },
    #[error("bytes {} to {} do not lie within the {data} bytes of the blob", bytes.start, bytes.end)]
    Range { bytes: Range<usize>, data: usize },
}

/// A blob that was opened: its footer and the table of checksums are right, blocks are checked when they are first read.
pub struct Blob {
    file: Bytes,
    data: usize,
    /// A bit for each block that was found right. Relaxed: the bytes never change, so a bit vouches for nothing but them.
    checked: Box<[AtomicU64]>,
}

impl fmt::Debug for Blob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Blob").field("data", &self.data).finish_non_exhaustive()
    }
}

impl Blob {
    /// Opens the bytes of a blob's file; checks its footer and table. Memory taken: a bit for each 64 KiB.
    ///
    /// # Errors
    /// If they are not a blob that this program can read.
    pub fn open(file: Bytes) -> Result<Blob, BlobError> {
        let bytes = (*file).as_ref();
        let Some((rest, footer)) = bytes.split_last_chunk::<FOOTER>() else {
            return Err(BlobError::Footer);
        };
        if footer[..8] != MAGIC || !agrees(u32_at(footer, 28), crc(&footer[..28])) {
            return Err(BlobError::Footer);
        }
        match u32_at(footer, 8) {
            VERSION => {}
            found => return Err(BlobError::Version { found }),
        }
        let (block, said) = (u32_at(footer, 12), u64_at(footer, 16));
        let length = || BlobError::Length { found: bytes.len() as u64, data: said };
        let data = usize::try_from(said).ok().filter(|&data| data <= rest.len()).ok_or_else(length)?;
        let blocks = data.div_ceil(BLOCK);
        if block as usize != BLOCK || rest.len() - data != 4 * blocks {
            return Err(length());
        }
        if !agrees(u32_at(footer, 24), crc(&rest[data..])) {
            return Err(BlobError::Table);
        }
        let checked = (0..blocks.div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
        Ok(Blob { file, data, checked })
    }

    /// Bytes of data.
    pub fn len(&self) -> usize {
        self.data
    }

    /// Whether there is no data.
    pub fn is_empty(&self) -> bool {
        self.data == 0
    }

    /// The checksums of all blocks, and the footer: what follows the data in the file. Blobs with the same end have the same
    /// data, but for one in 2³² of the blocks that differ.
    pub fn end(&self) -> &[u8] {
        &(*self.file).as_ref()[self.data..]
    }

    /// The data in `range`, after checking those blocks of it that were never checked.
    ///
    /// # Errors
    /// If it does not lie within the data, or a block is damaged.
    pub fn read(&self, range: Range<usize>) -> Result<&[u8], BlobError> {
        if range.start > range.end || range.end > self.data {
            return Err(BlobError::Range { bytes: range, data: self.data });
        }
        if !range.is_empty() {
            (range.start / BLOCK..range.end.div_ceil(BLOCK)).try_for_each(|block| self.check(block))?;
        }
        Ok(&(*self.file).as_ref()[range])
    }

    /// Checks all blocks, those too that were checked before: what is on disk may have changed since.
    ///
    /// # Errors
    /// The first that is damaged.
    pub fn verify(&self) -> Result<(), BlobError> {
        self.checked.iter().for_each(|bits| bits.store(0, Ordering::Relaxed));
        self.read(0..self.data).map(|_| ())
    }

    /// All data, for as long as somebody holds it, after checking what was never checked.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn bytes(&self) -> Result<Bytes, BlobError> {
        self.read(0..self.data)?;
        Ok(Arc::new(Data { file: self.file.clone(), data: self.data }))
    }

    fn check(&self, block: usize) -> Result<(), BlobError> {
        let (bits, bit) = (&self.checked[block / 64], 1 << (block % 64));
        if bits.load(Ordering::Relaxed) & bit != 0 {
            return Ok(());
        }
        let file = (*self.file).as_ref();
        let range = block * BLOCK..self.data.min((block + 1) * BLOCK);
        if !agrees(u32_at(file, self.data + 4 * block), crc(&file[range.clone()])) {
            return Err(BlobError::Block { bytes: range.start as u64..range.end as u64 });
        }
        bits.fetch_or(bit, Ordering::Relaxed);
        Ok(())
    }
}

/// The front part of a file.
struct Data {
    file: Bytes,
    data: usize,
}

impl AsRef<[u8]> for Data {
    fn as_ref(&self) -> &[u8] {
        &(*self.file).as_ref()[..self.data]
    }
}
