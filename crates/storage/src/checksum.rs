//! CRC32C (Castagnoli), and numbers as bytes.

use crate::fault::{Fault, planted};
use crc_fast::{CrcAlgorithm, Digest};

/// A checksum of pieces.
#[derive(Clone)]
pub(crate) struct Crc(Digest);

impl Crc {
    pub(crate) fn new() -> Crc {
        Crc(Digest::new(CrcAlgorithm::Crc32Iscsi))
    }

    pub(crate) fn with(mut self, bytes: &[u8]) -> Crc {
        self.0.update(bytes);
        self
    }

    pub(crate) fn value(&self) -> u32 {
        self.0.finalize() as u32
    }
}

pub(crate) fn crc(bytes: &[u8]) -> u32 {
    crc_fast::checksum(CrcAlgorithm::Crc32Iscsi, bytes) as u32
}

/// Whether a checksum is what it should be.
pub(crate) fn agrees(found: u32, expected: u32) -> bool {
    found == expected || planted(Fault::ChecksumSkipped)
}

/// The little-endian number at `at`, which must lie within.
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

/// The little-endian number at `at`, which must lie within.
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}
