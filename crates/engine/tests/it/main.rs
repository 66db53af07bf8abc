//! Black-box tests: threads that run everything once, files that are whole or not there.

mod admission;
mod check;
mod checks;
mod closing;
mod engines;
mod fetches;
mod growth;
mod histories;
mod loads;
mod memory;
mod nested;
mod pins;
mod pools;
mod restores;
mod searches;
mod sequential;
mod snapshots;
mod tables;
#[path = "../token/mod.rs"]
mod token;
mod upkeep;

use lanewise_engine::index::{Executor, Index, Inline, Kind, Params, Search, Vectors};
use lanewise_engine::{FileError, Threads, allowed, open, save, search};
use std::fs;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

fn threads(n: usize) -> Threads {
    Threads::new(NonZeroUsize::new(n))
}

fn floats(n: usize, seed: u64) -> Vec<f32> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1 << 24) as f32
    };
    (0..n).map(|_| next()).collect()
}

fn index(n: usize, on: &dyn Executor) -> Index {
    let index = Index::new(Params::new(16)).unwrap();
    let data = floats(n * 16, 1);
    index.add(Vectors::F32(&data), None, on, &mut |_| ControlFlow::Continue(())).unwrap();
    index
}

#[test]
fn every_task_runs_once_and_no_worker_twice_at_a_time() {
    for n in [1, 2, 3, 16] {
        for count in [0, 1, 2, 1000] {
            let runs: Vec<AtomicUsize> = (0..count).map(|_| AtomicUsize::new(0)).collect();
            let busy: Vec<AtomicUsize> = (0..n).map(|_| AtomicUsize::new(0)).collect();
            threads(n).run(count, &|worker, i| {
                assert_eq!(busy[worker].fetch_add(1, Ordering::SeqCst), 0);
                runs[i].fetch_add(1, Ordering::SeqCst);
                busy[worker].fetch_sub(1, Ordering::SeqCst);
            });
            assert!(runs.iter().all(|r| r.load(Ordering::SeqCst) == 1), "{n} threads, {count} tasks");
        }
    }
}

#[test]
fn the_default_is_what_the_machine_allows() {
    assert_eq!(Threads::new(None).workers(), allowed().get());
    assert!(allowed().get() <= std::thread::available_parallelism().unwrap().get());
}

#[test]
fn the_same_index_and_answers_at_any_number_of_threads() {
    let reference = index(2000, &Inline);
    let queries = floats(100 * 16, 2);
    let expected =
        search(&reference.reader(), Vectors::F32(&queries), &Search::new(10).ef(50), threads(1)).unwrap();
    for n in [2, 5] {
        let built = index(2000, &threads(n));
        assert!(built.image().unwrap().pieces().eq(reference.image().unwrap().pieces()), "{n} threads");
        assert_eq!(
            search(&built.reader(), Vectors::F32(&queries), &Search::new(10).ef(50), threads(n)).unwrap(),
            expected
        );
    }
}

#[test]
fn a_saved_index_opens() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.lanewise");
    let built = index(300, &Inline);
    save(&built, &path).unwrap();
    save(&built, &path).unwrap();
    let opened = open(&path, None).unwrap();
    assert!(opened.image().unwrap().pieces().eq(built.image().unwrap().pieces()));
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left, ["a.lanewise"]);
    // The map outlives the name: a new save replaces the file, and what was opened stays whole.
    save(&index(10, &Inline), &path).unwrap();
    assert_eq!(opened.len(), 300);
    assert!(opened.image().unwrap().pieces().eq(built.image().unwrap().pieces()));
}

/// Who may not read an index may not read the one that replaces it, either.
#[cfg(unix)]
#[test]
fn a_replaced_file_keeps_its_permissions() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.lanewise");
    let built = index(10, &Inline);
    save(&built, &path).unwrap();
    for mode in [0o600, 0o664] {
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        save(&built, &path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, mode, "{mode:o}");
    }
}

#[test]
fn a_failed_save_names_the_file_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let built = index(10, &Inline);
    let missing = folder.path().join("no/such/folder/a");
    let error = save(&built, &missing).unwrap_err();
    assert!(error.to_string().contains("no/such/folder"), "{error}");
    // The name is taken by a folder: the rename fails after the write has succeeded.
    let taken = folder.path().join("taken");
    fs::create_dir(&taken).unwrap();
    fs::write(taken.join("x"), "x").unwrap();
    assert!(matches!(save(&built, &taken), Err(FileError::Io { .. })));
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left, ["taken"]);
    assert!(save(&built, Path::new("/")).is_err());
}

/// What a killed process of the same number left does not stand in the way, and is not ours to delete.
#[test]
fn a_name_that_is_taken_is_passed_over() {
    let folder = tempfile::tempdir().unwrap();
    for i in 0..200 {
        fs::write(folder.path().join(format!(".lanewise-{}-{i}.tmp", std::process::id())), "theirs").unwrap();
    }
    let path = folder.path().join("a");
    save(&index(10, &Inline), &path).unwrap();
    assert_eq!(open(&path, None).unwrap().len(), 10);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 201);
}

/// A pipe (a device, …) is neither replaced nor waited for.
#[cfg(unix)]
#[test]
fn what_is_no_file_is_left_alone() {
    use std::os::unix::fs::FileTypeExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
    assert!(matches!(save(&index(10, &Inline), &path), Err(FileError::Io { .. })));
    assert!(matches!(open(&path, None), Err(FileError::Io { .. })));
    assert!(fs::metadata(&path).unwrap().file_type().is_fifo());
    // A name as long as names may be: the temporary one is not longer.
    let long = folder.path().join("x".repeat(255));
    save(&index(10, &Inline), &long).unwrap();
}

#[test]
fn what_is_no_index_is_named() {
    let folder = tempfile::tempdir().unwrap();
    for (name, contents) in [("empty", &b""[..]), ("text", b"hello"), ("short", b"LANEWISE\x01\0\0\0")] {
        let path = folder.path().join(name);
        fs::write(&path, contents).unwrap();
        let error = open(&path, None).err().expect("refused");
        assert!(matches!(error, FileError::Format { .. }), "{error}");
        assert!(error.to_string().contains(name), "{error}");
    }
    assert!(matches!(open(&folder.path().join("none"), None), Err(FileError::Io { .. })));
    assert!(matches!(open(folder.path(), None), Err(FileError::Io { .. })));
}

#[test]
fn an_opened_index_can_be_extended() {
    let folder = tempfile::tempdir().unwrap();
    for kind in Kind::ALL {
        let path = folder.path().join(kind.name());
        let built = Index::new(Params { kind, ..Params::new(16) }).unwrap();
        let data = floats(500 * 16, 3);
        let (first, second) = data.split_at(300 * 16);
        let mut go_on = |_| ControlFlow::Continue(());
        built.add(Vectors::F32(first), None, &Inline, &mut go_on).unwrap();
        save(&built, &path).unwrap();
        let opened = open(&path, None).unwrap();
        opened.add(Vectors::F32(second), None, &threads(2), &mut go_on).unwrap();
        assert_eq!(opened.len(), 500);
        save(&opened, &path).unwrap();
        assert_eq!(open(&path, None).unwrap().len(), 500);
    }
}

/// A link stays a link; the file that it leads to is replaced.
#[cfg(unix)]
#[test]
fn a_link_is_followed() {
    let folder = tempfile::tempdir().unwrap();
    let (file, link) = (folder.path().join("file"), folder.path().join("link"));
    save(&index(10, &Inline), &file).unwrap();
    std::os::unix::fs::symlink(&file, &link).unwrap();
    save(&index(20, &Inline), &link).unwrap();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(open(&file, None).unwrap().len(), 20);
}

/// Ends the other threads of a test when its own panics, which would wait for it for ever.
struct Ends<'a>(&'a AtomicUsize);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.store(1, Ordering::SeqCst);
        }
    }
}

/// Readers beside a writer: each sees a prefix of what is added, whole and unchanging, and finds in it what is there.
#[test]
#[expect(clippy::disallowed_methods, reason = "readers in threads of their own")]
fn searches_run_while_vectors_are_added() {
    const N: usize = 6000;
    let data = floats(N * 16, 5);
    for kind in Kind::ALL {
        // All lists are scanned; they are made of the first 500 vectors.
        let index = Index::new(Params { kind, nlist: 12, ..Params::new(16) }).unwrap();
        let ids: Vec<i64> = (0..N as i64).map(|i| 3 * i).collect();
        let (done, rounds) = (AtomicUsize::new(0), [AtomicUsize::new(0), AtomicUsize::new(0)]);
        let rounds = &rounds;
        std::thread::scope(|scope| {
            for rounds in rounds {
                let (index, data, done) = (&index, &data, &done);
                scope.spawn(move || {
                    let _ends = Ends(done);
                    let mut lens = vec![0];
                    while done.load(Ordering::SeqCst) == 0 {
                        let reader = index.reader();
                        let len = reader.len();
                        assert!(len >= *lens.last().unwrap(), "vectors went away");
                        lens.push(len);
                        rounds.fetch_add(1, Ordering::SeqCst);
                        for row in (0..len).step_by(len / 20 + 1) {
                            let query = Vectors::F32(&data[row * 16..(row + 1) * 16]);
                            let how = Search::new(5).ef(60);
                            let (found, _) = search(&reader, query, &how, threads(1)).unwrap();
                            assert_eq!(found[0].ids.len(), len.min(5));
                            assert!(found[0].ids.iter().all(|&id| id % 3 == 0 && id < 3 * len as i64));
                            assert_eq!((found[0].ids[0], found[0].distances[0]), (3 * row as i64, 0.0));
                            assert_eq!(reader.len(), len);
                        }
                    }
                    lens.dedup();
                    assert!(lens.len() > 1, "a reader that saw no change proves nothing: {lens:?}");
                });
            }
            for (part, ids) in data.chunks(500 * 16).zip(ids.chunks(500)) {
                // An add may be over before a reader looks once: each looks between one and the next.
                for rounds in rounds {
                    let before = rounds.load(Ordering::SeqCst);
                    while rounds.load(Ordering::SeqCst) == before && done.load(Ordering::SeqCst) == 0 {
                        std::thread::yield_now();
                    }
                }
                let mut go_on = |_| ControlFlow::Continue(());
                index.add(Vectors::F32(part), Some(ids), &Inline, &mut go_on).unwrap();
            }
            done.store(1, Ordering::SeqCst);
        });
    }
}
