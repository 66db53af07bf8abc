//! A small table that was closed, whose files the targets damage: a sealed segment with dead rows, and writes in the log.

#![allow(dead_code, reason = "not all targets need all of it")]

use lanewise_engine::scheduler::{Layout, Options, Workers};
use lanewise_engine::table::{Repository, Resources, Table, When, Write};
use lanewise_engine::{Admission, MemoryLimit, Pool, Threads};
use lanewise_storage::{Kind, Memory, Storage};
use serde_json::json;
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

pub fn resources() -> Resources {
    static POOL: LazyLock<Arc<Pool>> = LazyLock::new(|| {
        let workers = Workers::Unbound(Layout::new(&[1]));
        Arc::new(Pool::start(Options { workers, ..Options::default() }).expect("a thread"))
    });
    let admission = Admission::new(MemoryLimit::Unlimited, NonZeroUsize::MIN);
    Resources { threads: Threads::new(NonZeroUsize::new(1)), pool: POOL.clone(), admission }
}

pub type Files = BTreeMap<PathBuf, Vec<u8>>;

fn gather(storage: &dyn Storage, dir: &Path, all: &mut Files) {
    for entry in storage.list(dir).expect("a folder") {
        let path = dir.join(&entry.name);
        match entry.kind {
            Kind::Folder => gather(storage, &path, all),
            Kind::File => drop(all.insert(path.clone(), (*storage.open(&path).expect("a file")).as_ref().to_vec())),
        }
    }
}

fn files(memory: &Memory) -> Files {
    let mut all = Files::new();
    gather(memory, Path::new(""), &mut all);
    all
}

/// A storage of files.
pub fn memory(files: &Files) -> Memory {
    let memory = Memory::new();
    for (path, bytes) in files {
        let mut dir = PathBuf::new();
        for part in path.parent().into_iter().flat_map(Path::components) {
            dir.push(part);
            let _ = memory.create_dir(&dir);
        }
        memory.create(path).and_then(|file| file.append(bytes)).expect("memory has room");
    }
    memory
}

/// The files of the table, and of a repository with its snapshot `s`.
pub fn closed() -> (Files, Files) {
    let schema = json!({"fields": {
        "t": {"type": "text"}, "n": {"type": "integer"},
        "v": {"type": "vector", "dim": 3, "m": 3, "ef_construction": 8},
        "w": {"type": "vector", "dim": 3, "kind": "flat", "dtype": "i8"},
    }});
    let (storage, backup) = (Memory::new(), Memory::new());
    let schema = serde_json::from_value(schema).expect("a schema");
    let table = Table::create(Arc::new(storage.clone()), schema, resources()).expect("memory has room");
    let put = |i: usize| {
        let mut document = json!({"n": i, "t": format!("word{i} all"), "d": {"x": i}});
        if i % 3 > 0 {
            document["v"] = json!([i, 1, 2]);
            document["w"] = json!([i, 1, 2]);
        }
        let document = document.as_object().expect("an object").clone();
        Write::Put { id: Some(format!("d{i}")), document, vectors: Vec::new(), when: When::Always }
    };
    let write = |writes: Vec<Write>| table.write(writes).into_iter().for_each(|done| drop(done.expect("a write")));
    let delete = |i: usize| Write::Delete { id: format!("d{i}"), when: When::Always };
    write((0..20).map(put).collect());
    table.flush().expect("memory has room");
    write(vec![delete(3), put(5)]);
    table.flush().expect("memory has room");
    let repository = Repository::new(Arc::new(backup.clone()));
    table.snapshot(&repository, "s", 1, &mut |_, _| ControlFlow::Continue(())).expect("memory has room");
    write(vec![put(30), delete(7), put(8)]);
    drop(table);
    (files(&storage), files(&backup))
}

/// The log's identity, and its first record that counts, which the manifest says.
pub fn log_of(files: &Files) -> (u64, u64) {
    let manifest = lanewise_storage::manifest::decode(&files[Path::new("manifest")]).expect("a manifest");
    let state: serde_json::Value = serde_json::from_slice(&manifest.contents).expect("JSON");
    let number = |name: &str| state[name].as_u64().expect("a number");
    (number("identity"), number("replay_from"))
}
