//! What can be had of a damaged blob: blocks by themselves, and the whole where no more than a bit is wrong with a part.

use super::{BLOCK, FOOTER, MAGIC, VERSION};
use crate::checksum::{crc, u32_at, u64_at};
use crate::mend::{Flipped, flipped};
use std::ops::Range;

/// A blob that was looked at block by block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mended {
    /// The whole file, with what could be set right, if anything was wrong.
    pub file: Vec<u8>,
    /// Bytes of data.
    pub data: usize,
    /// Blocks of data that are damaged still, ascending; empty: the file is whole.
    pub damaged: Vec<Range<usize>>,
}

/// The bytes of data of a blob's file of this length, which follow from it.
fn data_of(file: usize) -> Option<usize> {
    let rest = file.checked_sub(FOOTER)?;
    let blocks = rest.div_ceil(BLOCK + 4);
    rest.checked_sub(4 * blocks).filter(|data| data.div_ceil(BLOCK) == blocks)
}

/// Sets right what can be in a blob's file: a bit in each block of data, and in the checksums; a footer that follows
/// from the rest. Memory taken: a copy of the file.
///
/// `None` if so little fits together that none of it can be trusted, as where the file was cut short.
pub fn mend(file: &[u8]) -> Option<Mended> {
    let data = data_of(file.len())?;
    let mut file = file.to_vec();
    let end = file.len() - FOOTER;
    let (rest, footer) = file.split_at_mut(end);
    let (content, table) = rest.split_at_mut(data);
    // A footer that says otherwise with a right checksum is another version's, or another file's.
    let footer_right = footer[..8] == MAGIC && u32_at(footer, 28) == crc(&footer[..28]);
    if footer_right && (u32_at(footer, 8) != VERSION || u64_at(footer, 16) != data as u64) {
        return None;
    }
    let mut damaged = Vec::new();
    let mut right = 0;
    for (at, block) in content.chunks_mut(BLOCK).enumerate() {
        let (found, expected) = (crc(block), u32_at(table, 4 * at));
        match (found == expected).then_some(None).or_else(|| flipped(block.len(), found, expected).map(Some))
        {
            Some(None) => right += 1,
            Some(Some(Flipped::Bit(bit))) => block[bit / 8] ^= 1 << (bit % 8),
            Some(Some(Flipped::Checksum)) => table[4 * at..4 * at + 4].copy_from_slice(&found.to_le_bytes()),
            None => damaged.push(at * BLOCK..at * BLOCK + block.len()),
        }
    }
    // Where neither the footer nor any block is as it was written, nothing says that this is a blob at all.
    if !footer_right && right == 0 {
        let mut single = footer.to_vec();
        let bit = flipped(28, crc(&single[..28]), u32_at(&single, 28));
        if let Some(Flipped::Bit(bit)) = bit {
            single[bit / 8] ^= 1 << (bit % 8);
        }
        let fits = bit.is_some() && single[..8] == MAGIC && u64_at(&single, 16) == data as u64;
        if !fits {
            return None;
        }
    }
    let sum = crc(table);
    footer[..8].copy_from_slice(&MAGIC);
    footer[8..12].copy_from_slice(&VERSION.to_le_bytes());
    footer[12..16].copy_from_slice(&(BLOCK as u32).to_le_bytes());
    footer[16..24].copy_from_slice(&(data as u64).to_le_bytes());
    footer[24..28].copy_from_slice(&sum.to_le_bytes());
    let own = crc(&footer[..28]);
    footer[28..].copy_from_slice(&own.to_le_bytes());
    Some(Mended { file, data, damaged })
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::{Blob, BlobWriter};
    use super::*;
    use crate::{Memory, Storage};
    use std::io::Write;
    use std::path::Path;
    use std::sync::Arc;

    fn blob(bytes: usize) -> Vec<u8> {
        let memory = Memory::new();
        let mut writer = BlobWriter::new(memory.create(Path::new("b")).unwrap());
        let data: Vec<u8> = (0..bytes).map(|i| (i * i / 7) as u8).collect();
        writer.write_all(&data).unwrap();
        writer.finish().unwrap();
        (*memory.open(Path::new("b")).unwrap()).as_ref().to_vec()
    }

    #[test]
    fn a_flipped_bit_anywhere_is_set_right() {
        for (bytes, step) in
            [(0, 1), (1, 1), (300, 1), (BLOCK, 4099), (BLOCK + 1, 4099), (3 * BLOCK - 5, 9973)]
        {
            let file = blob(bytes);
            assert_eq!(data_of(file.len()), Some(bytes));
            for bit in (0..8 * file.len()).step_by(step) {
                let mut wrong = file.clone();
                wrong[bit / 8] ^= 1 << (bit % 8);
                assert!(Blob::open(Arc::new(wrong.clone())).and_then(|blob| blob.verify()).is_err());
                let mended = mend(&wrong).unwrap();
                assert!(mended.file == file && mended.damaged.is_empty(), "{bytes} bytes, bit {bit}");
            }
        }
    }

    #[test]
    fn worse_damage_is_named_by_block_and_what_is_cut_short_is_nothing() {
        let file = blob(3 * BLOCK - 5);
        let mut wrong = file.clone();
        wrong[BLOCK + 100..BLOCK + 600].fill(7);
        let mended = mend(&wrong).unwrap();
        assert_eq!(
            (mended.damaged, mended.data),
            (std::iter::once(BLOCK..2 * BLOCK).collect(), 3 * BLOCK - 5)
        );
        // The end overwritten: blocks vouch for themselves.
        let mut wrong = file.clone();
        let end = wrong.len() - 20;
        wrong[end..].fill(0);
        assert_eq!(mend(&wrong).unwrap().file, file);
        for length in [0, 31, 1000, BLOCK + 4, file.len() - 1] {
            assert_eq!(mend(&file[..length]), None, "{length}");
        }
        assert_eq!(mend(&vec![0; file.len()]), None);
    }
}
