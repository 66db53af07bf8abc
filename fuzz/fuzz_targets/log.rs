//! Logs from strangers: whatever the bytes of their files, they are damaged, or give records that are in order, and can be
//! appended to. One input is several files, cut at a word; checksums are made right first where records seem to be.

#![no_main]

use crc_fast::{CrcAlgorithm, Digest, checksum};
use lanewise_storage::log::Log;
use lanewise_storage::{Memory, Storage};
use libfuzzer_sys::fuzz_target;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

/// What the seeds' files have between them, and their identity.
const CUT: &[u8] = b"next file";
const IDENTITY: u64 = 7;

/// Makes magic, version, number, identity and checksums right, up to the first record that ends outside.
fn forge(file: &mut [u8], number: u64) {
    if file.len() < 40 {
        return;
    }
    file[..8].copy_from_slice(b"LANELOGS");
    file[8..12].copy_from_slice(&1u32.to_le_bytes());
    file[16..24].copy_from_slice(&number.to_le_bytes());
    file[32..40].copy_from_slice(&IDENTITY.to_le_bytes());
    let header = [&file[..12], &file[16..40]].concat();
    file[12..16].copy_from_slice(&(checksum(CrcAlgorithm::Crc32Iscsi, &header) as u32).to_le_bytes());
    let mut at = 40;
    while at + 24 <= file.len() {
        let length = match u32::from_le_bytes(file[at + 4..at + 8].try_into().unwrap()) {
            u32::MAX => 0,
            length => length as usize,
        };
        let end = at + 24 + length.next_multiple_of(8);
        if end > file.len() {
            return;
        }
        // A first byte of 0xBD stays a wrong checksum, so that what follows is searched.
        if file[at] != 0xBD {
            let mut crc = Digest::new(CrcAlgorithm::Crc32Iscsi);
            crc.update(&IDENTITY.to_le_bytes());
            crc.update(&number.to_le_bytes());
            crc.update(&file[at + 4..end]);
            let crc = crc.finalize() as u32;
            file[at..at + 4].copy_from_slice(&crc.to_le_bytes());
        }
        at = end;
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((&from, data)) = data.split_first() else { return };
    let (memory, dir) = (Memory::new(), Path::new(""));
    let mut rest = data;
    for number in 1..=8u64 {
        let cut = rest.windows(CUT.len()).position(|bytes| bytes == CUT);
        let mut file = rest[..cut.unwrap_or(rest.len())].to_vec();
        forge(&mut file, number);
        let name = format!("log-{number:016x}");
        memory.create(Path::new(&name)).unwrap().append(&file).unwrap();
        match cut {
            Some(cut) => rest = &rest[cut + CUT.len()..],
            None => break,
        }
    }
    let from = u64::from(from & 15);
    let mut next = from.max(1);
    let mut each = |number: u64, _: &[u8]| {
        assert_eq!(number, next, "records are in order");
        next += 1;
        ControlFlow::Continue(())
    };
    let Ok((log, replayed)) = Log::open(Arc::new(memory.clone()), dir, IDENTITY, from, &mut each) else {
        return;
    };
    assert_eq!(replayed.next, next);
    let position = log.append(b"more").unwrap();
    log.sync(position).unwrap();
    let again =
        lanewise_storage::log::replay(&memory, dir, IDENTITY, from, &mut |_, _| ControlFlow::Continue(()));
    assert_eq!(again.unwrap().next, next + 1, "what was recovered is recovered again");
});
