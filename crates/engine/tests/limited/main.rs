//! A process that may have little memory: what a table cannot take in it refuses, and says why; nothing ends the process,
//! reads and searches go on, and writes resume once the head is sealed.
//!
//! Needs a limit around the process, in bytes in `LANEWISE_MEMORY`: `scripts/reliability memory` sets one.

#![cfg(unix)]

use lanewise_engine::index::OwnedVectors;
use lanewise_engine::scheduler::{Layout, Options, Workers};
use lanewise_engine::table::{Nearest, Request, Resources, Table, Upkeep, When, Write, WriteError};
use lanewise_engine::{Admission, MemoryLimit, Pool, Purpose, Refusal, Threads};
use lanewise_storage::{Disk, Rng};
use serde_json::{Map, json};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

const DIM: usize = 768;
/// Writes of a call.
const CALL: usize = 200;

fn resources() -> Resources {
    let workers = Workers::Unbound(Layout::new(&[2]));
    let pool = Arc::new(Pool::start(Options { workers, ..Options::default() }).unwrap());
    let admission = Admission::new(MemoryLimit::default(), NonZeroUsize::MIN);
    Resources { threads: Threads::new(NonZeroUsize::new(2)), pool, admission }
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
    }
    // Reads all that there is, which is more than memory holds.
    let last = OwnedVectors::F32(vector(documents - 1));
    let nearest = vec![Nearest { k: 1, exact: true, ..Nearest::new("v", last) }];
    let found = table.search(&Request { nearest, ..Request::default() }, None).unwrap();
    assert_eq!(found.hits[0].id, (documents - 1).to_string());
}

#[test]
#[ignore = "needs a limit to its memory: scripts/reliability memory"]
fn what_memory_does_not_allow_is_refused() {
    let limit = std::env::var("LANEWISE_MEMORY").ok().and_then(|bytes| bytes.parse::<usize>().ok());
    let limit = limit.expect("LANEWISE_MEMORY: give the limit, bytes");
    let folder = tempfile::tempdir().unwrap();
    let schema = json!({"fields": {"v": {"type": "vector", "dim": DIM, "kind": "flat"}}});
    let schema = serde_json::from_value(schema).unwrap();
    let disk = || Arc::new(Disk::new(folder.path()).unwrap());
    // Nobody looks after it: heads are sealed by this test alone.
    let table = Table::create(disk(), schema, resources()).unwrap();
    let (mut documents, mut refused) = (0, 0);
    // Vectors of as much as there is.
    while documents * DIM * 4 < limit {
        let (written, error) = write(&table, documents);
        documents += written;
        let Some(error) = error else { continue };
        println!("after {documents} documents: {error}");
        let WriteError::Refused(Refusal::Limit { purpose: Purpose::Write, asked, limit, in_use, kept }) =
            error
        else {
            panic!("{error}")
        };
        assert!(in_use.total() + asked > limit - kept);
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
    // Where upkeep looks after it, room is made before anybody notices, or soon after.
    let upkeep = Upkeep::start(NonZeroUsize::MIN, Threads::new(NonZeroUsize::new(1))).unwrap();
    let table = upkeep.watch(Table::open(disk(), resources()).unwrap());
    serves(&table, documents);
    let (before, more) = (table.segments().len(), documents + limit / DIM / 8);
    while documents < more {
        let (written, error) = write(&table, documents);
        documents += written;
        if error.is_some() {
            std::thread::sleep(Duration::from_millis(50));
        }
    }
    serves(&table, documents);
    assert!(table.segments().len() > before, "nobody sealed it");
    assert_eq!(table.trouble(), None);
    println!("{documents} documents, {refused} times refused");
}
