//! Writing a blob, block by block.

use super::{BLOCK, FOOTER, MAGIC, VERSION};
use crate::checksum::crc;
use crate::storage::Append;
use std::io::{self, Write};

/// Writes the data of a blob as a stream. It is a blob once [`Self::finish`] succeeded; its name is then to be made
/// durable by [`sync_dir`](crate::Storage::sync_dir).
#[derive(Debug)]
pub struct BlobWriter {
    file: Box<dyn Append>,
    /// The block that is not full yet.
    block: Vec<u8>,
    crcs: Vec<u8>,
    data: u64,
    /// A piece may be missing from the file: nothing may follow.
    failed: bool,
}

impl BlobWriter {
    /// Into a file that is new and empty. Memory taken: a block, and 4 bytes for each 64 KiB written.
    pub fn new(file: Box<dyn Append>) -> BlobWriter {
        BlobWriter { file, block: Vec::with_capacity(BLOCK), crcs: Vec::new(), data: 0, failed: false }
    }

    /// Bytes of data so far.
    pub fn len(&self) -> u64 {
        self.data + self.block.len() as u64
    }

    /// Whether there is no data yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Writes what is left, and makes the file durable. Says how many bytes it has, those around the data included.
    ///
    /// # Errors
    /// What the system says, and if an earlier write failed.
    pub fn finish(mut self) -> io::Result<u64> {
        if !self.block.is_empty() {
            let last = std::mem::take(&mut self.block);
            self.put(&last)?;
        }
        let mut end = std::mem::take(&mut self.crcs);
        let table = crc(&end);
        let mut footer = [0; FOOTER];
        footer[..8].copy_from_slice(&MAGIC);
        footer[8..12].copy_from_slice(&VERSION.to_le_bytes());
        footer[12..16].copy_from_slice(&(BLOCK as u32).to_le_bytes());
        footer[16..24].copy_from_slice(&self.data.to_le_bytes());
        footer[24..28].copy_from_slice(&table.to_le_bytes());
        let sum = crc(&footer[..28]);
        footer[28..].copy_from_slice(&sum.to_le_bytes());
        end.extend_from_slice(&footer);
        self.append(&end)?;
        self.file.sync()?;
        Ok(self.file.len())
    }

    /// A whole block, or the last.
    fn put(&mut self, block: &[u8]) -> io::Result<()> {
        self.append(block)?;
        self.crcs.extend_from_slice(&crc(block).to_le_bytes());
        self.data += block.len() as u64;
        Ok(())
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.failed {
            return Err(io::Error::other(
                "an earlier write of this blob failed: remove the file, write a new one",
            ));
        }
        let appended = self.file.append(bytes);
        self.failed = appended.is_err();
        appended
    }
}

impl Write for BlobWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.block.is_empty() && bytes.len() >= BLOCK {
            self.put(&bytes[..BLOCK])?;
            return Ok(BLOCK);
        }
        let taken = bytes.len().min(BLOCK - self.block.len());
        self.block.extend_from_slice(&bytes[..taken]);
        if self.block.len() == BLOCK {
            let mut full = std::mem::take(&mut self.block);
            self.put(&full)?;
            full.clear();
            self.block = full;
        }
        Ok(taken)
    }

    /// Whole blocks are written at once, the last one by [`Self::finish`]: there is nothing to do.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
