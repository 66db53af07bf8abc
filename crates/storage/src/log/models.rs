//! The log itself under loom, over a memory: two threads append and sync; all interleavings of their locks are tried.

use super::{Log, Position};
use crate::faulty::{Call, Failure, Faulty};
use crate::memory::Memory;
use fastrand::Rng;
use loom::sync::Arc;
use loom::thread;
use std::ops::ControlFlow;
use std::path::Path;

fn dir() -> &'static Path {
    Path::new("")
}

/// A log whose first file is begun, and what is below it.
fn log() -> (Arc<Log>, Faulty, Memory) {
    let memory = Memory::new();
    let storage = Faulty::new(std::sync::Arc::new(memory.clone()));
    let go_on = &mut |_: u64, _: &[u8]| ControlFlow::Continue(());
    let (log, _) = Log::open(std::sync::Arc::new(storage.clone()), dir(), 1, 1, go_on).unwrap();
    log.sync(log.append(b"first").unwrap()).unwrap();
    (Arc::new(log), storage, memory)
}

/// How many records a power cut leaves at the least: of the images that it may leave, some have nothing but what is
/// durable.
fn durable(memory: &Memory) -> u64 {
    let journal = memory.journal();
    let last = |seed| {
        let image = journal.image(journal.len(), &mut Rng::with_seed(seed));
        super::replay(&image, dir(), 1, 1, &mut |_, _| ControlFlow::Continue(())).unwrap().next - 1
    };
    (0..8).map(last).min().unwrap()
}

/// Appends and syncs; if that was acknowledged, it is durable.
fn write(log: &Log, memory: &Memory) -> Option<Position> {
    let position = log.append(&[7; 3]).ok()?;
    log.sync(position).ok()?;
    assert!(durable(memory) >= position.sequence(), "acknowledged, not durable");
    assert!(log.durable() >= position.sequence());
    Some(position)
}

#[test]
fn loom_whoever_was_acknowledged_is_durable_and_nobody_waits_for_ever() {
    loom::model(|| {
        let (log, _, memory) = log();
        let other = (log.clone(), memory.clone());
        let thread = thread::spawn(move || write(&other.0, &other.1).unwrap());
        let mine = write(&log, &memory).unwrap();
        let theirs = thread.join().unwrap();
        assert_eq!([mine, theirs].map(Position::sequence).iter().sum::<u64>(), 2 + 3);
        assert_eq!(durable(&memory), 3);
    });
}

#[test]
fn loom_a_failed_sync_reaches_all() {
    loom::model(|| {
        let (log, storage, memory) = log();
        storage.fail(&[Call::Sync], 0, true, Failure::Broken);
        let other = (log.clone(), memory.clone());
        let thread = thread::spawn(move || write(&other.0, &other.1));
        let mine = write(&log, &memory);
        // The first sync fails, so nobody's is acknowledged, whoever led.
        assert_eq!((mine, thread.join().unwrap()), (None, None));
        assert!(log.append(b"more").is_err() && log.sync_all().is_err());
        assert_eq!(log.durable(), 1);
    });
}

#[test]
fn loom_a_new_file_is_begun_while_others_sync() {
    loom::model(|| {
        let (log, _, memory) = log();
        let other = (log.clone(), memory.clone());
        let thread = thread::spawn(move || write(&other.0, &other.1).unwrap());
        log.rotate().unwrap();
        write(&log, &memory).unwrap();
        thread.join().unwrap();
        assert_eq!(durable(&memory), 3);
    });
}
