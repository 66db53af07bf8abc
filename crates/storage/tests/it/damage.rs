//! Files cut short, zeroed, flipped, exchanged: detected, or nothing that was acknowledged is missing.

use crate::check::flips;
use crate::check::flips::{files, memory, small_log};
use crate::check::history::{IDENTITY, dir, open};
use lanewise_storage::blob::{BLOCK, Blob};
use lanewise_storage::log::{Log, ReplayError, replay};
use lanewise_storage::{Memory, Storage, manifest};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

type Files = Vec<(PathBuf, Vec<u8>)>;

/// The numbers that a log gives and where it goes on, or that it is damaged.
fn numbers(files: &Files, from: u64) -> Result<Vec<u64>, ReplayError> {
    open(Arc::new(memory(dir(), files)), from).map(|(_, _, records)| records.into_keys().collect())
}

#[test]
fn every_bit_of_a_log_is_detected_or_harmless() {
    for (closed, unsynced) in [(true, 0), (false, 0), (false, 2)] {
        let detected = flips::log(closed, unsynced).unwrap();
        println!("closed {closed}, {unsynced} records not synced: {detected} bits detected");
        assert!(detected > 0);
    }
}

#[test]
fn every_bit_of_a_blob_and_a_manifest_is_detected() {
    let bits = flips::others().unwrap();
    println!("{bits} bits");
}

#[test]
fn a_log_that_was_closed_has_few_bits_that_do_not_matter() {
    // Those of the marks at the ends of its files, and of what was never a record: there are none of these.
    let running = small_log(true, 0);
    let files = files(&running.memory, dir());
    let bits: usize = files.iter().map(|(_, bytes)| bytes.len() * 8).sum();
    let detected = flips::log(true, 0).unwrap();
    assert!(bits - detected <= 3 * 24 * 8, "{} of {bits} bits are harmless", bits - detected);
}

/// What remains of a log whose file `at` was changed, for all lengths that the change may begin at.
fn remains(change: fn(&mut Vec<u8>, usize)) {
    let running = small_log(true, 0);
    let files = files(&running.memory, dir());
    for at in 0..files.len() {
        let last = at + 1 == files.len();
        for length in 0..files[at].1.len() {
            let mut files = files.clone();
            change(&mut files[at].1, length);
            match numbers(&files, 1) {
                Ok(numbers) if last => assert!((6..=7).contains(&numbers.len()), "{numbers:?}"),
                Ok(numbers) => assert_eq!(numbers.len(), 7, "file {at} from {length} on"),
                Err(ReplayError::Damaged { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }
}

#[test]
fn a_cut_or_zeroed_end_is_damage_within_the_log_and_a_torn_tail_at_its_end() {
    remains(|bytes, length| bytes.truncate(length));
    remains(|bytes, length| bytes[length..].fill(0));
}

#[test]
fn a_zeroed_end_of_an_unsynced_file_is_no_damage() {
    let mut running = small_log(false, 0);
    for number in 0..40 {
        running.append(vec![number; 90]).unwrap();
    }
    let mut files = files(&running.memory, dir());
    let (path, last) = files.last_mut().unwrap();
    let zeroed = last.len() - 3000;
    last[zeroed..].fill(0);
    let path = path.clone();
    let (_, replayed, records) = open(Arc::new(memory(dir(), &files)), 1).unwrap();
    running.model.admits(&records, &replayed).unwrap();
    let torn = replayed.torn.unwrap();
    assert_eq!(torn.path, path);
    assert!(torn.offset <= zeroed as u64 && torn.offset + torn.bytes == zeroed as u64 + 3000);
}

#[test]
fn files_that_are_missing_exchanged_or_of_another_log_are_detected() {
    let running = small_log(true, 0);
    let files = files(&running.memory, dir());
    let refused = |files: Files, from: u64| numbers(&files, from).unwrap_err();
    let without = |at: usize| {
        let mut files = files.clone();
        files.remove(at);
        files
    };
    assert!(matches!(refused(without(0), 1), ReplayError::Missing { wanted: 1, first: 4 }));
    assert!(matches!(refused(without(1), 1), ReplayError::Damaged { sequence: 4, .. }));
    assert!(matches!(refused(without(1), 3), ReplayError::Damaged { sequence: 4, .. }));
    // What is not wanted may be gone, and may be damaged.
    assert_eq!(numbers(&without(0), 4).unwrap(), [4, 5, 6, 7]);
    let mut broken = files.clone();
    broken[0].1.fill(7);
    assert_eq!(numbers(&broken, 4).unwrap(), [4, 5, 6, 7]);
    let mut exchanged = files.clone();
    let (first, second) = (exchanged[0].1.clone(), exchanged[1].1.clone());
    (exchanged[0].1, exchanged[1].1) = (second, first);
    assert!(matches!(refused(exchanged, 1), ReplayError::Damaged { what: "its name is another file's", .. }));
    let memory = memory(dir(), &files);
    let other = replay(&memory, dir(), IDENTITY + 1, 1, &mut |_, _| ControlFlow::Continue(()));
    assert!(matches!(other, Err(ReplayError::Damaged { what: "it belongs to another log", .. })));
}

#[test]
fn a_record_that_was_cut_out_or_doubled_is_detected() {
    // Whole records of 24 + 16 bytes with good checksums, in the wrong place.
    let mut running = crate::check::history::Running::begin();
    for number in 0..3 {
        running.append(vec![number; 16]).unwrap();
    }
    let file = files(&running.memory, dir());
    let mut cut = file.clone();
    cut[0].1.drain(80..120);
    let mut doubled = file.clone();
    let record = doubled[0].1[80..120].to_vec();
    doubled[0].1.splice(80..80, record);
    for files in [cut, doubled] {
        let error = numbers(&files, 1).unwrap_err();
        assert!(matches!(error, ReplayError::Damaged { what: "a record is out of order", .. }), "{error}");
    }
}

/// A log whose only record is not acknowledged, and holds a whole file of a log with this identity.
fn holding(identity: u64) -> Files {
    let inner = Memory::new();
    inner.create_dir(dir()).unwrap();
    let go_on = &mut |_: u64, _: &[u8]| ControlFlow::Continue(());
    let (log, _) = Log::open(Arc::new(inner.clone()), dir(), identity, 1, go_on).unwrap();
    for _ in 0..3 {
        let position = log.append(&[5; 50]).unwrap();
        log.sync(position).unwrap();
    }
    let payload = files(&inner, dir()).remove(0).1;
    let outer = Memory::new();
    outer.create_dir(dir()).unwrap();
    let (log, _) = Log::open(Arc::new(outer.clone()), dir(), IDENTITY, 1, go_on).unwrap();
    log.append(&payload).unwrap();
    let mut files = files(&outer, dir());
    // Torn at the front.
    files[0].1[40] ^= 1;
    files
}

#[test]
fn a_log_in_a_payload_does_not_pass_for_the_log() {
    assert_eq!(numbers(&holding(IDENTITY + 1), 1).unwrap(), []);
    // It would, if whoever wrote it knew the identity.
    assert!(matches!(numbers(&holding(IDENTITY), 1), Err(ReplayError::Damaged { .. })));
}

#[test]
fn a_file_made_to_be_searched_for_ever_is_damage() {
    // Every 24 bytes begin what could be a record of 32 KiB that vouches for what is before it, and none is one.
    let running = small_log(false, 0);
    let mut files = files(&running.memory, dir());
    let last = &mut files[2].1;
    last.truncate(40);
    while last.len() < 400_000 {
        last.extend([0x8000 << 32, 100, 48].map(u64::to_le_bytes).concat());
    }
    assert!(matches!(numbers(&files, 1), Err(ReplayError::Damaged { .. })));
    // Few of them are no reason to give up the search.
    files[2].1.truncate(4000);
    assert_eq!(numbers(&files, 1).unwrap(), [1, 2, 3, 4, 5, 6]);
}

#[test]
fn a_cut_or_zeroed_end_of_a_blob_or_manifest_is_detected() {
    let path = Path::new("file");
    let storage = Memory::new();
    crate::check::blobs::write(&storage, path, &crate::check::blobs::data(BLOCK + 100)).unwrap();
    let blob = files(&storage, Path::new("")).remove(0).1;
    let storage = Memory::new();
    manifest::replace(&storage, path, 0, &[7; 60]).unwrap();
    let manifest = files(&storage, Path::new("")).remove(0).1;
    let blob_is_damaged =
        |bytes: Vec<u8>| Blob::open(Arc::new(bytes)).and_then(|blob| blob.verify()).is_err();
    for length in (0..blob.len()).step_by(97).chain(blob.len() - 300..blob.len()) {
        let mut bytes = blob.clone();
        bytes[length..].fill(0);
        assert!(bytes == blob || blob_is_damaged(bytes), "zeros from {length} on");
        assert!(blob_is_damaged(blob[..length].to_vec()), "cut to {length}");
    }
    for length in 0..manifest.len() {
        let mut bytes = manifest.clone();
        bytes[length..].fill(0);
        assert!(manifest::decode(&bytes).is_err(), "zeros from {length} on");
        assert!(manifest::decode(&manifest[..length]).is_err(), "cut to {length}");
    }
}
