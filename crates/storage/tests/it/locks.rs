//! A lock is one holder's, and ends with it.

use lanewise_storage::{Disk, Memory, Storage};
use std::io::{BufRead, BufReader, ErrorKind};
use std::path::Path;
use std::process::{Command, Stdio};

fn path() -> &'static Path {
    Path::new("lock")
}

fn one_holder(storage: &dyn Storage) {
    let held = storage.lock(path()).unwrap();
    assert_eq!(storage.lock(path()).unwrap_err().kind(), ErrorKind::WouldBlock);
    drop(storage.lock(Path::new("other")).unwrap());
    drop(held);
    drop(storage.lock(path()).unwrap());
}

#[test]
fn a_lock_is_one_holders() {
    one_holder(&Memory::new());
    let folder = tempfile::tempdir().unwrap();
    one_holder(&Disk::new(folder.path()).unwrap());
}

/// Run as a process of its own by the test below: takes the lock, says so, and waits to be killed.
#[test]
fn holder() {
    let Some(root) = std::env::var_os("LANEWISE_TEST_LOCK") else { return };
    let _held = Disk::new(Path::new(&root)).unwrap().lock(path()).unwrap();
    println!("\nheld");
    std::io::stdin().read_line(&mut String::new()).unwrap();
}

#[test]
fn a_lock_ends_with_its_process() {
    let folder = tempfile::tempdir().unwrap();
    let disk = Disk::new(folder.path()).unwrap();
    let mut holder = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "locks::holder", "--nocapture"])
        .env("LANEWISE_TEST_LOCK", folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(holder.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap() == "held"));
    assert_eq!(disk.lock(path()).unwrap_err().kind(), ErrorKind::WouldBlock);
    holder.kill().unwrap();
    holder.wait().unwrap();
    drop(disk.lock(path()).unwrap());
}
