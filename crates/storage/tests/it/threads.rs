//! Threads that append and sync at once, on a real disk.

use crate::check::history::{IDENTITY, dir};
use lanewise_storage::log::{Log, replay};
use lanewise_storage::{Call, Disk, Faulty, Storage};
use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::Arc;

#[test]
#[expect(clippy::disallowed_methods, reason = "storage starts no threads: its users do")]
fn threads_share_syncs_and_lose_nothing() {
    const THREADS: u64 = 4;
    const EACH: u64 = 200;
    let folder = tempfile::tempdir().unwrap();
    let disk = Faulty::new(Arc::new(Disk::new(folder.path()).unwrap()));
    disk.create_dir(dir()).unwrap();
    let go_on = &mut |_: u64, _: &[u8]| ControlFlow::Continue(());
    let (log, _) = Log::open(Arc::new(disk.clone()), dir(), IDENTITY, 1, go_on).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let log = &log;
            scope.spawn(move || {
                for number in 0..EACH {
                    let position = log.append(&(thread * EACH + number).to_le_bytes()).unwrap();
                    if number % 50 == 7 {
                        log.rotate().unwrap();
                    }
                    log.sync(position).unwrap();
                    assert!(log.durable() >= position.sequence());
                }
            });
        }
    });
    let records = THREADS * EACH;
    assert_eq!(log.last(), records);
    let syncs = disk.calls(&[Call::Sync]);
    println!("{syncs} syncs for {records} records");
    assert!(syncs <= 2 * records, "{syncs} syncs for {records} records");
    // Not closed: as a killed process leaves it.
    drop(log);
    let mut found = HashSet::new();
    let replayed = replay(&disk, dir(), IDENTITY, 1, &mut |_, payload| {
        found.insert(u64::from_le_bytes(payload.try_into().unwrap()));
        ControlFlow::Continue(())
    });
    assert_eq!(replayed.unwrap().records, records);
    assert_eq!(found, (0..records).collect());
}
