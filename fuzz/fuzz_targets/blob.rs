//! Blobs from strangers: whatever the bytes, opening and reading them gives an error or the data. Magic, lengths and
//! checksums of the end are made right first, those of the blocks on every other input.

#![no_main]

use crc_fast::{CrcAlgorithm, checksum};
use lanewise_storage::blob::{BLOCK, Blob};
use libfuzzer_sys::fuzz_target;
use std::sync::Arc;

fn crc(bytes: &[u8]) -> [u8; 4] {
    (checksum(CrcAlgorithm::Crc32Iscsi, bytes) as u32).to_le_bytes()
}

/// The bytes as a blob's whose data they begin with, as far as they go.
fn forge(bytes: &mut [u8], blocks_too: bool) {
    let Some(footer) = bytes.len().checked_sub(32) else { return };
    let said = u64::from_le_bytes(bytes[footer + 16..footer + 24].try_into().unwrap()) as usize;
    if let Some(table) = bytes.get(said..footer) {
        let sum = crc(table);
        if blocks_too {
            for block in (0..table.len() / 4).take(said.div_ceil(BLOCK)) {
                let sum = crc(&bytes[block * BLOCK..said.min((block + 1) * BLOCK)]);
                bytes[said + 4 * block..said + 4 * block + 4].copy_from_slice(&sum);
            }
            let sum = crc(&bytes[said..footer]);
            bytes[footer + 24..footer + 28].copy_from_slice(&sum);
        } else {
            bytes[footer + 24..footer + 28].copy_from_slice(&sum);
        }
    }
    bytes[footer..footer + 8].copy_from_slice(b"LANEBLOB");
    bytes[footer + 8..footer + 12].copy_from_slice(&1u32.to_le_bytes());
    let sum = crc(&bytes[footer..footer + 28]);
    bytes[footer + 28..].copy_from_slice(&sum);
}

fuzz_target!(|data: &[u8]| {
    let Some((&how, data)) = data.split_first() else { return };
    let mut bytes = data.to_vec();
    if how != 0 {
        forge(&mut bytes, how & 1 == 0);
    }
    let Ok(blob) = Blob::open(Arc::new(bytes.clone())) else { return };
    assert!(blob.len() < bytes.len());
    let (start, end) = (blob.len() / 3, blob.len() / 2);
    if let Ok(part) = blob.read(start..end) {
        assert_eq!(part, &bytes[start..end]);
    }
    assert_eq!(blob.verify().is_ok(), blob.bytes().is_ok());
    assert!(blob.read(0..blob.len() + 1).is_err());
});
