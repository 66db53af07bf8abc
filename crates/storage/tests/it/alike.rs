//! Disk, memory and a folder of one answer alike, whatever is asked in whatever order.

use lanewise_storage::{Append, Disk, Memory, Rng, Storage, Sub};
use std::io;
use std::path::Path;
use std::sync::Arc;

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
fn storages_behave_alike() {
    let mut asked = 0;
    for seed in 0..60 {
        let random = &mut Rng::with_seed(seed);
        let folder = tempfile::tempdir().unwrap();
        let (disk, memory) = (Disk::new(folder.path()).unwrap(), Memory::new());
        let around = Memory::new();
        for folder in ["x", "x/y"] {
            around.create_dir(Path::new(folder)).unwrap();
        }
        let sub = Sub::new(Arc::new(around.clone()), Path::new("x/y")).unwrap();
        let (mut on_disk, mut in_memory, mut in_sub) = (Vec::new(), Vec::new(), Vec::new());
        for step in 0..150 {
            let what = random.usize(..18);
            let [one, two] = [(); 2].map(|()| Path::new(PATHS[random.usize(..PATHS.len())]));
            let size = random.usize(..2000);
            let from_disk = ask(&disk, &mut on_disk, what, one, two, size);
            let from_memory = ask(&memory, &mut in_memory, what, one, two, size);
            let from_sub = ask(&sub, &mut in_sub, what, one, two, size);
            let call = format!("seed {seed}, step {step}: call {what} of {one:?}, {two:?}");
            assert_eq!(from_disk, from_memory, "{call}");
            assert_eq!(from_memory, from_sub, "{call}");
            asked += 1;
        }
        let names = |dir: &str| around.list(Path::new(dir)).unwrap().into_iter().map(|entry| entry.name);
        assert!(names("").eq(["x"]) && names("x").eq(["y"]), "seed {seed}: it left its folder");
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

#[test]
fn a_folder_goes_on_where_it_was_moved_to() {
    let folder = tempfile::tempdir().unwrap();
    let storages: [Arc<dyn Storage>; 2] =
        [Arc::new(Disk::new(folder.path()).unwrap()), Arc::new(Memory::new())];
    for around in storages {
        let [a, b, file] = ["a", "b", "file"].map(Path::new);
        around.create_dir(a).unwrap();
        let sub = Sub::new(around.clone(), a).unwrap();
        let held = sub.lock(Path::new("lock")).unwrap();
        let growing = sub.create(file).unwrap();
        growing.append(b"before").unwrap();
        let bytes = sub.open(file).unwrap();
        assert_eq!(sub.open_files(), 1);
        sub.relocate(b).unwrap();
        growing.append(b" and after").unwrap();
        assert_eq!((*sub.open(file).unwrap()).as_ref(), b"before and after");
        assert_eq!((*bytes).as_ref(), b"before");
        assert!(around.open(&a.join(file)).is_err());
        // Who holds a lock holds it in the new place, and there alone.
        around.create_dir(a).unwrap();
        assert!(around.lock(&a.join("lock")).is_ok());
        assert_eq!(around.lock(&b.join("lock")).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        drop((held, bytes));
        assert!(around.lock(&b.join("lock")).is_ok());
        assert_eq!(sub.open_files(), 0);
        // What fails leaves it where it was.
        assert!(sub.relocate(Path::new("no/such/folder")).is_err());
        assert!(sub.open(file).is_ok());
        for root in [
            sub.remove_dir(Path::new("")),
            sub.rename(Path::new(""), Path::new("c")),
            sub.create_dir(Path::new("")),
        ] {
            assert_eq!(root.unwrap_err().kind(), io::ErrorKind::InvalidInput);
        }
    }
}
