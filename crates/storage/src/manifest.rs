//! One small file that is replaced as a whole: after any crash it holds what it held, or what replaced it.
//!
//! `docs/formats/manifest.md` gives every byte. The contents are the caller's. Each replacement has a generation, one
//! above that before.

use crate::checksum::{Crc, agrees, u32_at, u64_at};
use crate::mend::{Flipped, flipped};
use crate::publish::{PublishError, publish};
use crate::storage::Storage;
use std::io;
use std::path::Path;

const MAGIC: [u8; 8] = *b"LANEMANI";
const VERSION: u32 = 1;
const HEADER: usize = 32;

/// What a manifest holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// Rises by one with each replacement; the first is 1.
    pub generation: u64,
    /// The caller's.
    pub contents: Vec<u8>,
}

/// Why a manifest could not be read.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum ReadError {
    #[error("there is no manifest")]
    Missing,
    #[error("the manifest cannot be read: {0}")]
    Io(io::Error),
    #[error("the manifest is damaged: {what}; restore it from a snapshot")]
    Damaged { what: &'static str },
    #[error("version {found} of the manifest, this program reads up to {VERSION}: use a newer Lanewise")]
    Version { found: u32 },
}

/// Why a manifest was not replaced.
#[derive(Debug, thiserror::Error)]
pub enum ReplaceError {
    /// The manifest is as it was, also after a crash.
    #[error("the manifest was not replaced: {0}")]
    Kept(io::Error),
    /// After a crash the manifest may be the old one or the new. Nothing may be built on either before it is read again
    /// by a new process.
    #[error("whether the manifest was replaced is unknown: {0}")]
    Unsure(io::Error),
}

/// Reads the manifest `path`.
///
/// # Errors
/// If there is none, it cannot be read, is damaged, or of a newer version.
pub fn read(storage: &dyn Storage, path: &Path) -> Result<Manifest, ReadError> {
    let bytes = storage.open(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => ReadError::Missing,
        _ => ReadError::Io(error),
    })?;
    decode((*bytes).as_ref())
}

/// As [`read`], for whoever builds on it: what was read stays. A process that died may have left a manifest that was renamed
/// and not durable yet; after a power cut the one before it would be back, and what follows from this one gone or wrong.
///
/// # Errors
/// As [`read`].
pub fn read_durable(storage: &dyn Storage, path: &Path) -> Result<Manifest, ReadError> {
    let manifest = read(storage, path)?;
    storage.sync_dir(path.parent().unwrap_or(Path::new(""))).map_err(ReadError::Io)?;
    Ok(manifest)
}

/// Makes the generation after `generation` (0 if there is no manifest yet) the manifest `path`, and says its number.
///
/// # Errors
/// What the system says, and whether the old manifest is certain to be still there.
pub fn replace(
    storage: &dyn Storage,
    path: &Path,
    generation: u64,
    contents: &[u8],
) -> Result<u64, ReplaceError> {
    let generation = generation + 1;
    match publish(storage, path, &[&header(generation, contents), contents]) {
        Ok(_) => Ok(generation),
        Err(PublishError::Before(error)) => Err(ReplaceError::Kept(error)),
        Err(PublishError::Unsure(error)) => Err(ReplaceError::Unsure(error)),
    }
}

fn header(generation: u64, contents: &[u8]) -> [u8; HEADER] {
    let mut header = [0; HEADER];
    header[..8].copy_from_slice(&MAGIC);
    header[8..12].copy_from_slice(&VERSION.to_le_bytes());
    header[16..24].copy_from_slice(&generation.to_le_bytes());
    header[24..].copy_from_slice(&(contents.len() as u64).to_le_bytes());
    let crc = checksum(&header, contents);
    header[12..16].copy_from_slice(&crc.to_le_bytes());
    header
}

/// Of everything but itself.
fn checksum(header: &[u8], contents: &[u8]) -> u32 {
    Crc::new().with(&header[..12]).with(&header[16..]).with(contents).value()
}

/// What the bytes of a manifest say.
///
/// # Errors
/// As [`read`].
pub fn decode(bytes: &[u8]) -> Result<Manifest, ReadError> {
    let damaged = |what| Err(ReadError::Damaged { what });
    let Some((header, contents)) = bytes.split_at_checked(HEADER) else {
        return damaged("it is cut short");
    };
    if header[..8] != MAGIC {
        return damaged("it does not start with its magic");
    }
    // Before the version: a flipped bit must not pass for a newer program's file.
    if !agrees(u32_at(header, 12), checksum(header, contents)) {
        return damaged("it does not have its checksum");
    }
    match u32_at(header, 8) {
        VERSION => {}
        found => return Err(ReadError::Version { found }),
    }
    if u64_at(header, 24) != contents.len() as u64 {
        return damaged("it does not have its length");
    }
    Ok(Manifest { generation: u64_at(header, 16), contents: contents.to_vec() })
}

/// The bytes of a manifest with the one bit set right that is wrong in them; `None` if that is not what is wrong.
pub fn mend(bytes: &[u8]) -> Option<Vec<u8>> {
    let (header, contents) = bytes.split_at_checked(HEADER)?;
    let bit = flipped(bytes.len() - 4, checksum(header, contents), u32_at(header, 12))?;
    let mut mended = bytes.to_vec();
    match bit {
        Flipped::Checksum => mended[12..16].copy_from_slice(&checksum(header, contents).to_le_bytes()),
        // The checksum itself is passed over.
        Flipped::Bit(bit) => mended[bit / 8 + if bit < 96 { 0 } else { 4 }] ^= 1 << (bit % 8),
    }
    decode(&mended).is_ok().then_some(mended)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_flipped_bit_anywhere_is_set_right() {
        let contents = b"what the owner wrote";
        let file = [&header(3, contents)[..], contents].concat();
        assert_eq!(mend(&file), None);
        for bit in 0..8 * file.len() {
            let mut wrong = file.clone();
            wrong[bit / 8] ^= 1 << (bit % 8);
            assert!(decode(&wrong).is_err());
            assert_eq!(mend(&wrong).as_ref(), Some(&file), "bit {bit}");
            wrong[5] ^= 1 << (bit % 7 + usize::from(bit / 8 == 5));
            assert_eq!(mend(&wrong), None);
        }
    }
}
