//! What a blob, a manifest and a log give back, and what they refuse.

use crate::check::blobs::{data, write};
use crate::check::history::{IDENTITY, Running, dir, open};
use lanewise_storage::blob::{BLOCK, Blob, BlobError, BlobWriter};
use lanewise_storage::log::{AppendError, Log, RECORD_BYTES_MAX, ReplayError};
use lanewise_storage::manifest::{self, Manifest, ReadError};
use lanewise_storage::{Call, Disk, Failure, Faulty, Memory, Storage, remove_temporaries};
use std::io::Write;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

fn file() -> &'static Path {
    Path::new("file")
}

fn blob_file(data: &[u8]) -> Vec<u8> {
    let memory = Memory::new();
    let bytes = write(&memory, file(), data).unwrap();
    let written = (*memory.open(file()).unwrap()).as_ref().to_vec();
    assert_eq!(written.len() as u64, bytes);
    written
}

#[test]
fn a_blob_gives_back_what_was_written() {
    let folder = tempfile::tempdir().unwrap();
    let disk = Disk::new(folder.path()).unwrap();
    for (name, bytes) in [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 70 * BLOCK + 5].into_iter().enumerate() {
        let (path, data) = (name.to_string(), data(bytes));
        write(&disk, Path::new(&path), &data).unwrap();
        let blob = Blob::open(disk.open(Path::new(&path)).unwrap()).unwrap();
        assert_eq!((blob.len(), blob.is_empty()), (bytes, bytes == 0));
        assert_eq!(blob.read(0..bytes).unwrap(), data);
        assert_eq!(blob.read(bytes / 3..bytes / 2).unwrap(), &data[bytes / 3..bytes / 2]);
        blob.verify().unwrap();
        let all = blob.bytes().unwrap();
        assert_eq!((*all).as_ref(), data);
        assert!(bytes == 0 || (*all).as_ref().as_ptr().addr().is_multiple_of(64));
        assert_eq!(
            blob.read(bytes..bytes + 1).unwrap_err(),
            BlobError::Range { bytes: bytes..bytes + 1, data: bytes }
        );
    }
}

#[test]
fn a_damaged_block_is_met_by_who_reads_it_and_by_nobody_else() {
    let mut bytes = blob_file(&data(3 * BLOCK));
    bytes[BLOCK + 77] ^= 4;
    let blob = Blob::open(Arc::new(bytes)).unwrap();
    let damaged = Err(BlobError::Block { bytes: BLOCK as u64..2 * BLOCK as u64 });
    assert_eq!(blob.read(0..BLOCK).unwrap(), &data(3 * BLOCK)[..BLOCK]);
    assert_eq!(blob.read(2 * BLOCK..3 * BLOCK).unwrap().len(), BLOCK);
    assert_eq!(blob.read(BLOCK..BLOCK).unwrap(), b"");
    for _ in 0..2 {
        assert_eq!(blob.read(BLOCK - 1..BLOCK + 1).map(drop), damaged);
        assert_eq!(blob.verify(), damaged);
        assert_eq!(blob.bytes().map(drop), damaged);
    }
}

/// A file that a disk begins to give back wrongly.
struct Rotting {
    right: Vec<u8>,
    wrong: Vec<u8>,
    rotten: Arc<AtomicBool>,
}

impl AsRef<[u8]> for Rotting {
    fn as_ref(&self) -> &[u8] {
        if self.rotten.load(Ordering::Relaxed) { &self.wrong } else { &self.right }
    }
}

#[test]
fn a_block_is_checked_once_and_again_when_all_are_verified() {
    let right = blob_file(&data(2 * BLOCK));
    let mut wrong = right.clone();
    wrong[5] ^= 1;
    wrong[BLOCK + 5] ^= 1;
    let rotten = Arc::new(AtomicBool::new(false));
    let blob = Blob::open(Arc::new(Rotting { right, wrong, rotten: rotten.clone() })).unwrap();
    blob.read(0..10).unwrap();
    rotten.store(true, Ordering::Relaxed);
    blob.read(0..10).unwrap();
    assert!(blob.read(BLOCK..BLOCK + 10).is_err(), "it was not checked before");
    assert_eq!(blob.verify(), Err(BlobError::Block { bytes: 0..BLOCK as u64 }));
    assert!(blob.read(0..10).is_err());
}

#[test]
fn a_blob_whose_write_failed_takes_nothing_more() {
    let storage = Faulty::new(Arc::new(Memory::new()));
    let mut writer = BlobWriter::new(storage.create(file()).unwrap());
    storage.fail(&[Call::Append], 0, true, Failure::Full);
    assert!(writer.write_all(&data(BLOCK)).is_err());
    assert!(writer.write_all(&data(BLOCK)).is_err());
    assert!(writer.finish().unwrap_err().to_string().contains("earlier write"));
}

#[test]
fn strange_bytes_are_no_blob() {
    let opened = |bytes: &[u8]| Blob::open(Arc::new(bytes.to_vec())).map(drop).unwrap_err();
    assert_eq!(opened(b""), BlobError::Footer);
    assert_eq!(opened(&[0; 500]), BlobError::Footer);
    let mut table = blob_file(&data(10));
    table[10] ^= 1;
    assert_eq!(opened(&table), BlobError::Table);
    let mut longer = vec![1; 8];
    longer.extend(blob_file(&data(10)));
    assert_eq!(opened(&longer), BlobError::Length { found: 54, data: 10 });
}

#[test]
fn a_manifest_is_read_back_and_rises_by_one() {
    let storage = Memory::new();
    assert!(matches!(manifest::read(&storage, file()), Err(ReadError::Missing)));
    assert_eq!(manifest::replace(&storage, file(), 0, b"one").unwrap(), 1);
    // What a crash left half-written is no hindrance.
    storage.create(Path::new("file.tmp")).unwrap().append(b"half").unwrap();
    assert_eq!(manifest::replace(&storage, file(), 1, b"two").unwrap(), 2);
    let found = manifest::read(&storage, file()).unwrap();
    assert_eq!(found, Manifest { generation: 2, contents: b"two".to_vec() });
    storage.create(Path::new("file.tmp")).unwrap();
    storage.create(Path::new("kept")).unwrap();
    assert_eq!(remove_temporaries(&storage, Path::new("")).unwrap(), 1);
    assert_eq!(storage.list(Path::new("")).unwrap().len(), 2);
}

#[test]
fn a_log_refuses_what_it_cannot_keep() {
    let running = Running::begin();
    let long = vec![0; RECORD_BYTES_MAX + 1];
    assert!(matches!(running.log.append(&long), Err(AppendError::TooLong { .. })));
    assert_eq!(running.log.append(b"").unwrap().sequence(), 1);
    running.log.close().unwrap();
    let reopened = Log::open(Arc::new(running.memory.clone()), dir(), IDENTITY, 1, &mut |number, payload| {
        assert_eq!((number, payload), (1, &b""[..]));
        ControlFlow::Break(())
    });
    assert!(matches!(reopened, Err(ReplayError::Stopped { sequence: 1 })));
    let none = open(Arc::new(running.memory), u64::MAX);
    assert!(matches!(none, Err(ReplayError::Missing { .. })));
}

#[test]
fn a_log_that_is_opened_and_closed_writes_nothing() {
    let running = Running::begin();
    let files = |memory: &Memory| memory.list(dir()).unwrap().len();
    running.log.close().unwrap();
    assert_eq!(files(&running.memory), 0);
    let (log, replayed, _) = open(Arc::new(running.memory.clone()), 50).unwrap();
    assert_eq!((replayed.next, log.last(), log.file_bytes()), (50, 49, 0));
    assert_eq!(log.append(b"x").unwrap().sequence(), 50);
    log.close().unwrap();
    let syncs = running.memory.journal().syncs().count();
    let (log, ..) = open(Arc::new(running.memory.clone()), 50).unwrap();
    log.close().unwrap();
    assert_eq!(files(&running.memory), 1);
    assert_eq!(running.memory.journal().syncs().count(), syncs, "a closed log is durable already");
}

#[test]
fn what_a_crash_left_of_a_new_file_is_removed_when_the_log_is_opened() {
    let running = Running::begin();
    running.memory.create(Path::new("log/log-0000000000000001.tmp")).unwrap().append(b"LANE").unwrap();
    let (log, ..) = open(Arc::new(running.memory.clone()), 1).unwrap();
    assert_eq!(running.memory.list(dir()).unwrap(), []);
    assert_eq!(log.append(b"x").unwrap().sequence(), 1);
}

#[test]
fn dropping_keeps_what_is_wanted() {
    let mut running = Running::begin();
    for number in 0..9u8 {
        running.append(vec![number; 5]).unwrap();
        if number % 3 == 2 {
            running.log.rotate().unwrap();
        }
    }
    let dropped: Vec<usize> =
        [0, 2, 3, 8, 9, 20].map(|number| running.log.drop_through(number).unwrap()).into();
    assert_eq!(dropped, [0, 0, 1, 1, 1, 0], "the last file is appended to");
    assert_eq!(open(Arc::new(running.memory.clone()), 10).unwrap().1.next, 10);
    assert!(matches!(
        open(Arc::new(running.memory.clone()), 9).map(drop),
        Err(ReplayError::Missing { wanted: 9, first: 10 })
    ));
    // Once reopened, no file is appended to.
    let (log, ..) = open(Arc::new(running.memory.clone()), 10).unwrap();
    assert_eq!(log.drop_through(9).unwrap(), 1);
    assert_eq!(log.append(b"x").unwrap().sequence(), 10);
    assert_eq!(running.memory.list(dir()).unwrap().len(), 1);
}
