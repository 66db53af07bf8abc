//! Files of each version of the formats, kept: what was written once is read for ever, and is written the same today.
//! `LANEWISE_GOLDEN=1` writes those of the present version anew, which is right only for a new version.

use crate::check::blobs::data;
use crate::check::flips::files;
use crate::check::history::{Running, dir, open};
use lanewise_storage::blob::{Blob, BlobWriter};
use lanewise_storage::{Memory, Storage, manifest};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The kept bytes of a name, which must be these.
fn kept(name: &str, today: &[u8]) -> Vec<u8> {
    let path = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden")).join(name);
    if std::env::var_os("LANEWISE_GOLDEN").is_some() {
        std::fs::write(&path, today).unwrap();
    }
    let kept = std::fs::read(&path).unwrap();
    assert!(kept == today, "{name} is written differently today");
    kept
}

#[test]
fn a_log_of_version_1() {
    let mut running = Running::begin();
    running.append(b"one".to_vec()).unwrap();
    running.append(vec![]).unwrap();
    assert!(running.sync());
    running.append(vec![3; 16]).unwrap();
    running.log.close().unwrap();
    let kept = kept("log-1.lw", &files(&running.memory, dir())[0].1);
    let memory = crate::check::flips::memory(dir(), &[(dir().join("log-0000000000000001"), kept)]);
    let (_, replayed, records) = open(Arc::new(memory), 1).unwrap();
    assert_eq!(records.into_values().collect::<Vec<_>>(), [b"one".to_vec(), vec![], vec![3; 16]]);
    assert_eq!((replayed.next, replayed.torn), (4, None));
}

#[test]
fn a_blob_of_version_1() {
    let memory = Memory::new();
    let mut writer = BlobWriter::new(memory.create(Path::new("blob")).unwrap());
    writer.write_all(&data(100)).unwrap();
    writer.finish().unwrap();
    let kept = kept("blob-1.lw", &files(&memory, Path::new(""))[0].1);
    assert_eq!((*Blob::open(Arc::new(kept)).unwrap().bytes().unwrap()).as_ref(), data(100));
}

#[test]
fn a_manifest_of_version_1() {
    let memory = Memory::new();
    manifest::replace(&memory, Path::new("manifest"), 6, b"contents").unwrap();
    let kept = kept("manifest-1.lw", &files(&memory, Path::new(""))[0].1);
    let found = manifest::decode(&kept).unwrap();
    assert_eq!((found.generation, &found.contents[..]), (7, &b"contents"[..]));
}
