//! Manifests from strangers: whatever the bytes, they are refused, or are what the writer makes of what they say.

#![no_main]

use crc_fast::{CrcAlgorithm, checksum};
use lanewise_storage::{Memory, Storage, manifest};
use libfuzzer_sys::fuzz_target;
use std::path::Path;

fuzz_target!(|data: &[u8]| {
    let Some((&how, data)) = data.split_first() else { return };
    let mut bytes = data.to_vec();
    if how != 0 && bytes.len() >= 32 {
        bytes[..8].copy_from_slice(b"LANEMANI");
        let rest = [&bytes[..12], &bytes[16..]].concat();
        let crc = checksum(CrcAlgorithm::Crc32Iscsi, &rest) as u32;
        bytes[12..16].copy_from_slice(&crc.to_le_bytes());
    }
    let Ok(found) = manifest::decode(&bytes) else { return };
    // No writer makes generation 0, and there is none after the last.
    let Some(before) = found.generation.checked_sub(1) else { return };
    let (memory, path) = (Memory::new(), Path::new("manifest"));
    manifest::replace(&memory, path, before, &found.contents).unwrap();
    assert_eq!((*memory.open(path).unwrap()).as_ref(), bytes, "there is one way to write a manifest");
});
