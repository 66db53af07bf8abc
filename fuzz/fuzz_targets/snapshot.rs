//! Manifests of snapshots from strangers: whatever they say, it is refused, or a table; and no file outside the new table's
//! folder is written.

#![no_main]

mod closed;

use closed::{Files, closed, memory, resources};
use crc_fast::{CrcAlgorithm, checksum};
use lanewise_engine::table::{Repository, Table, decode_snapshot};
use lanewise_storage::Memory;
use libfuzzer_sys::fuzz_target;
use std::ops::ControlFlow;

use std::sync::{Arc, LazyLock};

static REPOSITORY: LazyLock<Files> = LazyLock::new(|| closed().1);

/// Makes what is around the contents right.
fn forge(contents: &[u8]) -> Vec<u8> {
    let mut bytes = b"LANEMANI\x01\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0".to_vec();
    bytes.extend((contents.len() as u64).to_le_bytes());
    bytes.extend(contents);
    let rest = [&bytes[..12], &bytes[16..]].concat();
    let crc = checksum(CrcAlgorithm::Crc32Iscsi, &rest) as u32;
    bytes[12..16].copy_from_slice(&crc.to_le_bytes());
    bytes
}

fuzz_target!(|data: &[u8]| {
    let Some((&how, data)) = data.split_first() else { return };
    let file = if how == 0 { data.to_vec() } else { forge(data) };
    let decoded = decode_snapshot("s", &file);
    let mut files = REPOSITORY.clone();
    files.insert("snapshots/s/manifest".into(), file);
    let repository = Repository::new(Arc::new(memory(&files)));
    let to = Memory::new();
    let go = &mut |_, _| ControlFlow::Continue(());
    let restored = repository.restore("s", &to, go);
    assert!(decoded.is_ok() || restored.is_err());
    if restored.is_ok() {
        // What it is made of may still be no segment.
        if let Ok(table) = Table::open(Arc::new(to), resources()) {
            (0..32).for_each(|i| drop(table.get(&format!("d{i}"))));
        }
    }
    let _ = repository.verify("s", go);
    assert_eq!(repository.list().expect("memory can be read").len(), 1);
    repository.delete("s").expect("it is there");
});
