//! A process that may have little memory: what a table cannot take in it refuses, and says why; nothing ends the process,
//! reads and searches go on, and writes resume once the head is sealed.
//!
//! Needs a limit around the process, in bytes in `LANEWISE_MEMORY`: `scripts/reliability memory` sets one.

#![cfg(unix)]

use lanewise_engine::index::OwnedVectors;
use lanewise_engine::scheduler::{Layout, Options, Workers};
use lanewise_engine::table::{Nearest, Request, Resources, Settings, Table, When, Write, WriteError};
use lanewise_engine::{Admission, Engine, Limits, MemoryLimit, Pool, Threads};
use lanewise_storage::Rng;
use serde_json::{Map, json};
use std::num::NonZeroUsize;
use std::sync::Arc;

const DIM: usize = 768;
/// Writes of a call.
const CALL: usize = 200;

fn engine(folder: &std::path::Path) -> Engine {
    let workers = Workers::Unbound(Layout::new(&[2]));
    let pool = Arc::new(Pool::start(Options { workers, ..Options::default() }).unwrap());
    let admission = Admission::new(MemoryLimit::default(), NonZeroUsize::MIN);
    let resources = Resources { threads: Threads::new(NonZeroUsize::new(2)), pool, admission };
    Engine::open_folder(folder, resources, Limits::default()).unwrap()
}

fn vector(number: usize) -> Vec<f32> {
    let mut random = Rng::with_seed(number as u64);
    (0..DIM).map(|_| random.f32()).collect()
}

/// Writes documents from number `next` on; how many of them were acknowledged, and what was wrong with the others.
fn write(table: &Table, next: usize) -> (usize, Option<WriteError>) {
    let put = |number: usize| Write::Put {
        id: Some(number.to_string()),
        document: Map::new(),
        vectors: vec![("v".to_owned(), OwnedVectors::F32(vector(number)))],
        when: When::Absent,
    };
    let results = table.write((next..next + CALL).map(put).collect());
    let written = results.iter().take_while(|result| result.is_ok()).count();
    assert!(results[written..].iter().all(Result::is_err), "what is refused is the end of a call");
    (written, results.into_iter().find_map(Result::err))
}

/// Documents are there, and found by their vectors.
fn serves(table: &Table, documents: usize) {
    assert_eq!(table.len(), documents);
    for number in (0..documents).step_by(documents / 7 + 1) {
        assert!(table.get(&number.to_string()).unwrap().is_some(), "{number}");
        let nearest =
            vec![Nearest { k: 1, exact: true, ..Nearest::new("v", OwnedVectors::F32(vector(number))) }];
        let found = table.search(&Request { nearest, ..Request::default() }, None).unwrap();
        assert_eq!(found.hits[0].id, number.to_string());
    }
}

#[test]
#[ignore = "needs a limit to its memory: scripts/reliability memory"]
fn what_memory_does_not_allow_is_refused() {
    let limit = std::env::var("LANEWISE_MEMORY").ok().and_then(|bytes| bytes.parse::<usize>().ok());
    let limit = limit.expect("LANEWISE_MEMORY: give the limit, bytes");
    let folder = tempfile::tempdir().unwrap();
    let schema = json!({"fields": {"v": {"type": "vector", "dim": DIM, "kind": "flat"}}});
    let schema = serde_json::from_value(schema).unwrap();
    let running = engine(folder.path());
    let table = running.create("t", schema).unwrap();
    // Nobody seals the head but this test.
    let never = Settings { flush_threshold_bytes: u64::MAX, flush_after_ms: 1 << 34, ..Settings::default() };
    table.set_settings(never).unwrap();
    let (mut documents, mut refused) = (0, 0);
    // Vectors of twice what there is.
    while documents * DIM * 4 < 2 * limit {
        let (written, error) = write(&table, documents);
        documents += written;
        let Some(error) = error else { continue };
        println!("after {documents} documents: {error}");
        assert!(error.to_string().contains("circuit_breaker"), "{error}");
        refused += 1;
        serves(&table, documents);
        table.flush().unwrap();
        serves(&table, documents);
        let (written, error) = write(&table, documents);
        documents += written;
        assert!(error.is_none(), "sealing the head gave nothing back: {error:?}");
    }
    assert!(refused > 0, "{documents} documents, and none refused: there was no limit");
    drop(table);
    drop(running);
    serves(&engine(folder.path()).table("t").unwrap(), documents);
    println!("{documents} documents, {refused} times refused");
}
