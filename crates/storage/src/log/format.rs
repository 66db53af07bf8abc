//! Bytes of the log's files: header and records; see `docs/formats/log.md`.

use crate::checksum::{Crc, agrees, u32_at, u64_at};
use std::path::{Path, PathBuf};

const MAGIC: [u8; 8] = *b"LANELOGS";
pub(super) const VERSION: u32 = 1;
/// Bytes of a file's header.
pub(super) const HEADER: usize = 40;
/// Bytes before a record's payload.
pub(super) const PREFIX: usize = 24;
/// Records begin at multiples of this.
pub(super) const ALIGN: usize = 8;
/// The length of a record that only says what is synced.
const MARK: u32 = u32::MAX;
/// The last file's number and the last sequence number: a file that claims more is damaged, and adding one overflows
/// nowhere.
pub(super) const NUMBER_MAX: u64 = u64::MAX >> 1;
/// The longest payload: 256 MiB.
pub const RECORD_BYTES_MAX: usize = 1 << 28;

/// What a file says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) number: u64,
    /// Sequence number of its first record.
    pub(super) first: u64,
    /// Whose log it is.
    pub(super) identity: u64,
}

pub(super) enum HeaderError {
    Damaged(&'static str),
    Version(u32),
}

impl Header {
    pub(super) fn encode(&self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.number.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.first.to_le_bytes());
        bytes[32..].copy_from_slice(&self.identity.to_le_bytes());
        let crc = checksum(&bytes);
        bytes[12..16].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Header, HeaderError> {
        let Some(bytes) = bytes.get(..HEADER) else {
            return Err(HeaderError::Damaged("the header is cut short"));
        };
        if bytes[..8] != MAGIC {
            return Err(HeaderError::Damaged("it does not start with the log's magic"));
        }
        if !agrees(u32_at(bytes, 12), checksum(bytes)) {
            return Err(HeaderError::Damaged("the header does not have its checksum"));
        }
        match u32_at(bytes, 8) {
            VERSION => {}
            found => return Err(HeaderError::Version(found)),
        }
        let [number, first, identity] = [16, 24, 32].map(|at| u64_at(bytes, at));
        if first > NUMBER_MAX {
            return Err(HeaderError::Damaged("its first sequence number is beyond all that exist"));
        }
        Ok(Header { number, first, identity })
    }

    /// What the checksums of this file's records begin with: no record of another file, and none that a writer put into
    /// a payload without knowing whose log it goes to, passes for one of this.
    pub(super) fn seed(&self) -> Crc {
        Crc::new().with(&self.identity.to_le_bytes()).with(&self.number.to_le_bytes())
    }
}

/// Of a header but for its checksum.
fn checksum(header: &[u8]) -> u32 {
    Crc::new().with(&header[..12]).with(&header[16..HEADER]).value()
}

/// A record in a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record<'a> {
    pub(super) sequence: u64,
    /// The file's bytes up to here were known to be durable when it was written.
    pub(super) synced: u64,
    /// None is a mark, which has the sequence number of the record to come.
    pub(super) payload: Option<&'a [u8]>,
    /// Where the next one begins.
    pub(super) end: usize,
}

impl<'a> Record<'a> {
    /// The record at `at`, whose checksum is not looked at.
    pub(super) fn unchecked(file: &'a [u8], at: usize) -> Option<Record<'a>> {
        let prefix = file.get(at..)?.get(..PREFIX)?;
        let length = match u32_at(prefix, 4) {
            MARK => None,
            length => Some(length as usize).filter(|&length| length <= RECORD_BYTES_MAX).map(Some)?,
        };
        let end = at + PREFIX + length.unwrap_or(0).next_multiple_of(ALIGN);
        file.get(..end)?;
        let payload = length.map(|length| &file[at + PREFIX..at + PREFIX + length]);
        Some(Record { sequence: u64_at(prefix, 8), synced: u64_at(prefix, 16), payload, end })
    }

    /// Whether it has its checksum.
    pub(super) fn is_right(&self, file: &[u8], at: usize, seed: &Crc) -> bool {
        agrees(u32_at(file, at), seed.clone().with(&file[at + 4..self.end]).value())
    }
}

/// Makes `buffer` a record, or a mark where there is no payload.
pub(super) fn encode(buffer: &mut Vec<u8>, seed: &Crc, sequence: u64, synced: u64, payload: Option<&[u8]>) {
    buffer.clear();
    buffer.extend_from_slice(&[0; 4]);
    let length = payload.map_or(MARK, |payload| payload.len() as u32);
    buffer.extend_from_slice(&length.to_le_bytes());
    buffer.extend_from_slice(&sequence.to_le_bytes());
    buffer.extend_from_slice(&synced.to_le_bytes());
    buffer.extend_from_slice(payload.unwrap_or(&[]));
    buffer.resize(buffer.len().next_multiple_of(ALIGN), 0);
    let crc = seed.clone().with(&buffer[4..]).value();
    buffer[..4].copy_from_slice(&crc.to_le_bytes());
}

/// Where a file of the log is.
pub(super) fn path(dir: &Path, number: u64) -> PathBuf {
    dir.join(format!("log-{number:016x}"))
}

/// The number in the name of a file of the log.
pub(super) fn number(name: &std::ffi::OsStr) -> Option<u64> {
    let digits = name.to_str()?.strip_prefix("log-")?;
    let lower = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    let number =
        (digits.len() == 16 && digits.bytes().all(lower)).then(|| u64::from_str_radix(digits, 16).ok());
    // So that there is always a next one.
    number.flatten().filter(|&number| number <= NUMBER_MAX)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::ffi::OsStr;

    #[test]
    fn no_number_is_so_large_that_there_is_none_after_it() {
        let header = |first| Header { number: 3, first, identity: 5 };
        assert!(Header::decode(&header(NUMBER_MAX).encode()).is_ok_and(|found| found == header(NUMBER_MAX)));
        assert!(matches!(Header::decode(&header(NUMBER_MAX + 1).encode()), Err(HeaderError::Damaged(_))));
        assert_eq!(number(OsStr::new("log-7fffffffffffffff")), Some(NUMBER_MAX));
        for name in
            ["log-8000000000000000", "log-000000000000000A", "log-1", "log-0000000000000001.tmp", "log"]
        {
            assert_eq!(number(OsStr::new(name)), None, "{name}");
        }
        assert_eq!(path(Path::new("d"), 0x1f), Path::new("d/log-000000000000001f"));
    }
}
