//! Disk and memory answer alike, whatever is asked in whatever order.

use lanewise_storage::{Append, Disk, Memory, Rng, Storage};
use std::io;
use std::path::Path;

const PATHS: [&str; 12] = ["a", "b", "d", "e", "d/a", "d/b", "d/d", "d/d/a", "e/a", "a/a", "../a", "/a"];

/// What both are asked; the answer as text, errors by their kind.
fn ask(
    storage: &dyn Storage,
    open: &mut Vec<Box<dyn Append>>,
    what: usize,
    one: &Path,
    two: &Path,
    size: usize,
) -> String {
    fn said<T: std::fmt::Debug>(answer: io::Result<T>) -> String {
        match answer {
            Ok(value) => format!("{value:?}"),
            Err(error) => format!("{:?}", error.kind()),
        }
    }
    match what {
        0..3 => said(storage.create(one).map(|file| open.push(file))),
        3..6 if !open.is_empty() => {
            let file = &open[size % open.len()];
            let bytes: Vec<u8> = (0..size).map(|at| at as u8).collect();
            said(file.append(&bytes).and_then(|()| file.sync()).map(|()| file.len()))
        }
        6 => said(storage.rename(one, two)),
        7 => said(storage.remove(one)),
        8 => said(storage.link(one, two)),
        9 => said(storage.list(one)),
        10..12 => said(storage.create_dir(one)),
        12 => said(storage.remove_dir(one)),
        13 => said(storage.sync_dir(one)),
        14 => said(storage.sync_file(one)),
        15 => said(storage.lock(one).map(drop)),
        _ => said(storage.open(one).map(|bytes| (*bytes).as_ref().to_vec())),
    }
}

#[test]
fn disk_and_memory_behave_alike() {
    let mut asked = 0;
    for seed in 0..60 {
        let random = &mut Rng::with_seed(seed);
        let folder = tempfile::tempdir().unwrap();
        let (disk, memory) = (Disk::new(folder.path()).unwrap(), Memory::new());
        let (mut on_disk, mut in_memory) = (Vec::new(), Vec::new());
        for step in 0..150 {
            let what = random.usize(..18);
            let [one, two] = [(); 2].map(|()| Path::new(PATHS[random.usize(..PATHS.len())]));
            let size = random.usize(..2000);
            let from_disk = ask(&disk, &mut on_disk, what, one, two, size);
            let from_memory = ask(&memory, &mut in_memory, what, one, two, size);
            assert_eq!(from_disk, from_memory, "seed {seed}, step {step}: call {what} of {one:?}, {two:?}");
            asked += 1;
        }
    }
    println!("{asked} calls");
}

#[test]
fn a_reader_keeps_what_it_opened() {
    let folder = tempfile::tempdir().unwrap();
    let storages: [Box<dyn Storage>; 2] =
        [Box::new(Disk::new(folder.path()).unwrap()), Box::new(Memory::new())];
    for storage in storages {
        let path = Path::new("file");
        let file = storage.create(path).unwrap();
        file.append(b"before").unwrap();
        let bytes = storage.open(path).unwrap();
        file.append(b" and after").unwrap();
        storage.create(Path::new("other")).unwrap();
        storage.rename(Path::new("other"), path).unwrap();
        storage.remove(path).unwrap();
        assert_eq!((*bytes).as_ref(), b"before");
        assert!(storage.open(path).is_err());
        assert!(storage.free_bytes().unwrap() > 0);
    }
}
