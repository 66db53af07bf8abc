//! Every bit of small files flipped: detected, or harmless.

use super::Checked;
use super::history::{Running, dir, open};
use crate::require;
use lanewise_storage::blob::Blob;
use lanewise_storage::{Kind, Memory, Storage, manifest};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The files of a folder.
pub(crate) fn files(storage: &dyn Storage, dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let entries = storage.list(dir).unwrap().into_iter().filter(|entry| entry.kind == Kind::File);
    let paths = entries.map(|entry| dir.join(entry.name));
    paths.map(|path| (path.clone(), (*storage.open(&path).unwrap()).as_ref().to_vec())).collect()
}

/// A memory with these files in one folder.
pub(crate) fn memory(dir: &Path, files: &[(PathBuf, Vec<u8>)]) -> Memory {
    let memory = Memory::new();
    if !dir.as_os_str().is_empty() {
        memory.create_dir(dir).unwrap();
    }
    for (path, bytes) in files {
        memory.create(path).unwrap().append(bytes).unwrap();
    }
    memory
}

/// A log of three files, of which all records were acknowledged but `unsynced` at its end.
pub(crate) fn small_log(closed: bool, unsynced: usize) -> Running {
    let mut running = Running::begin();
    for number in 0..7u8 {
        running.append(vec![number * 37; usize::from(number) * 9]).unwrap();
        if number % 3 != 1 {
            assert!(running.sync());
        }
        if number % 3 == 2 {
            running.log.rotate().unwrap();
        }
    }
    for number in 0..unsynced {
        running.append(vec![number as u8; 11]).unwrap();
    }
    if closed {
        let (memory, model) = (running.memory.clone(), running.model.clone());
        running.log.close().unwrap();
        return Running {
            storage: running.storage,
            log: open(Arc::new(memory.clone()), 1).unwrap().0,
            memory,
            model,
        };
    }
    running
}

/// Each bit of a log: what was acknowledged is there, or the damage is reported. Records that were never acknowledged may
/// be taken for a torn tail. Says how many bits were detected.
pub(crate) fn log(closed: bool, unsynced: usize) -> Checked {
    let running = small_log(closed, unsynced);
    let files = files(&running.memory, dir());
    assert_eq!(files.len(), 3);
    let mut detected = 0;
    for file in 0..files.len() {
        for bit in 0..files[file].1.len() * 8 {
            let mut files = files.clone();
            files[file].1[bit / 8] ^= 1 << (bit % 8);
            match open(Arc::new(memory(dir(), &files)), 1) {
                Ok((_, replayed, records)) => {
                    let admitted = running.model.admits(&records, &replayed);
                    admitted.map_err(|why| format!("bit {bit} of file {file}: {why}"))?;
                }
                Err(_) => detected += 1,
            }
        }
    }
    Ok(detected)
}

/// Each bit of a blob and of a manifest: always detected.
pub(crate) fn others() -> Checked {
    let path = Path::new("file");
    let original = Memory::new();
    super::blobs::write(&original, path, &super::blobs::data(300)).unwrap();
    let blob = files(&original, Path::new("")).remove(0).1;
    let original = Memory::new();
    manifest::replace(&original, path, 4, &[7; 60]).unwrap();
    let manifest = files(&original, Path::new("")).remove(0).1;
    for bit in 0..blob.len() * 8 {
        let mut blob = blob.clone();
        blob[bit / 8] ^= 1 << (bit % 8);
        let opened = Blob::open(Arc::new(blob)).and_then(|blob| blob.verify());
        require!(opened.is_err(), "bit {bit} of the blob");
    }
    for bit in 0..manifest.len() * 8 {
        let mut manifest = manifest.clone();
        manifest[bit / 8] ^= 1 << (bit % 8);
        require!(manifest::decode(&manifest).is_err(), "bit {bit} of the manifest");
    }
    Ok((blob.len() + manifest.len()) * 8)
}
