//! What tables take of memory, by an allocator that counts: ten thousand at rest, and sealing and merging against what was
//! predicted. Alone in its process, and one test, since what others allocate would count.
#![expect(clippy::print_stdout, reason = "what was measured is for whoever fits the predictions")]

use lanewise_engine::documents::Schema;
use lanewise_engine::index::{OwnedVectors, Vectors};
use lanewise_engine::scheduler::{Layout, Options, Workers};
use lanewise_engine::table::{Batch, Effort, FlushError, Request, Resources, Table, When, Write};
use lanewise_engine::{Admission, Engine, Limits, MemoryLimit, Pool, Purpose, Refusal, TableState, Threads};
use lanewise_storage::{Disk, Rng, Storage};
use serde_json::{Value, json};
use std::alloc::{GlobalAlloc, Layout as Size, System};
use std::fs;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// What small things may be off by, bytes.
const FIXED: u64 = 300_000;

/// The system's allocator, counted: bytes that are out, and the most that were.
struct Counted;

static HELD: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: everything is the system's, counting changes nothing.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Size) -> *mut u8 {
        PEAK.fetch_max(HELD.fetch_add(layout.size(), Relaxed) + layout.size(), Relaxed);
        // SAFETY: as the caller promised.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Size) {
        HELD.fetch_sub(layout.size(), Relaxed);
        // SAFETY: as above.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counted = Counted;

/// The most that `work` takes beyond what is held.
fn peak<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = HELD.load(Relaxed);
    PEAK.store(before, Relaxed);
    let done = work();
    (done, PEAK.load(Relaxed) - before)
}

fn resources(limit: MemoryLimit) -> Resources {
    let workers = Workers::Unbound(Layout::new(&[1]));
    let pool = Arc::new(Pool::start(Options { workers, ..Options::default() }).unwrap());
    let one = NonZeroUsize::MIN;
    Resources { threads: Threads::new(Some(one)), pool, admission: Admission::new(limit, one) }
}

/// Vectors for cosine are kept as they came, too.
fn schema(vector: Value) -> Schema {
    let rules = if vector["metric"] == "cosine" { json!({"v": {"exact": true}}) } else { json!({}) };
    serde_json::from_value(json!({"fields": {"v": vector, "n": {"type": "integer"}}, "rules": rules}))
        .unwrap()
}

fn put(i: usize, words: usize, dim: usize, random: &mut Rng) -> Write {
    let text: Vec<String> = (0..words).map(|_| format!("word{}", random.usize(..2000))).collect();
    let document = json!({"n": i, "text": text.join(" ")}).as_object().unwrap().clone();
    let vector = OwnedVectors::F32((0..dim).map(|_| random.f32() - 0.5).collect());
    let vectors = vec![("v".to_owned(), vector)];
    Write::Put { id: Some(format!("document-{i}")), document, vectors, when: When::Always }
}

fn fill(table: &Table, rows: std::ops::Range<usize>, words: usize, dim: usize) {
    let random = &mut Rng::with_seed(rows.start as u64);
    let all: Vec<usize> = rows.collect();
    for some in all.chunks(500) {
        let writes = some.iter().map(|&i| put(i, words, dim, random)).collect();
        table.write(writes).into_iter().for_each(|written| drop(written.unwrap()));
    }
}

fn off(said: u64, was: usize) -> f64 {
    100.0 * (said as f64 / was as f64 - 1.0)
}

/// Ten thousand tables: a start reads their names, they cost little, and those that are asked for serve.
fn tables_at_rest() {
    const TABLES: usize = 10_000;
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::open_folder(folder.path(), resources(MemoryLimit::Unlimited), Limits::default());
    let engine = engine.unwrap();
    let table = engine.create("first", schema(json!({"type": "vector", "dim": 8}))).unwrap();
    fill(&table, 0..20, 3, 8);
    drop((table, engine));
    let first = folder.path().join("tables/first");
    for i in 0..TABLES {
        let table = folder.path().join(format!("tables/table-{i}"));
        // A start reads names alone.
        if i % 37 == 0 { copy(&first, &table) } else { fs::create_dir(&table).unwrap() }
    }
    let resources = resources(MemoryLimit::Unlimited);
    let limits = Limits { open_tables: 16, ..Limits::default() };
    let before = HELD.load(Relaxed);
    let (engine, most) = peak(|| Engine::open_folder(folder.path(), resources, limits).unwrap());
    let each = (HELD.load(Relaxed) - before) / TABLES;
    println!("{TABLES} tables at rest: {each} bytes each, {} at most while starting", most / TABLES);
    assert_eq!(engine.names().len(), TABLES + 1);
    assert!(each < 1024 && most / TABLES < 16 << 10, "{each} bytes each, {most} to start");
    // A few hundred of them are asked for: those that nobody holds are closed again.
    for i in (0..TABLES).step_by(37) {
        assert_eq!(engine.table(&format!("table-{i}")).unwrap().len(), 20);
    }
    let open = engine.list().iter().filter(|one| matches!(one.state, TableState::Open { .. })).count();
    let now = HELD.load(Relaxed) - before;
    println!("{open} of them open: {now} bytes in all");
    assert!(open <= 17 && now / TABLES < 16 << 10, "{open} open, {now} bytes");
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}

/// What was said against what was taken, to within so many percent, or a few hundred KB.
fn check(what: &str, within: f64, said: u64, was: usize) {
    println!("{what}: {was} bytes, {said} predicted ({:+.1} %)", off(said, was));
    let all = std::env::var_os("LANEWISE_SHOW").is_some();
    let near = said.abs_diff(was as u64) <= FIXED;
    assert!(all || near || off(said, was).abs() <= within, "{what}: {was} bytes, {said} predicted");
}

/// Seals and merges a table, opens it and searches it, each against what was predicted.
fn made(what: &str, vector: Value, rows: usize, words: usize) {
    let dim = vector["dim"].as_u64().unwrap() as usize;
    let what = format!("{what}, {rows} rows of {words} words");
    let folder = tempfile::tempdir().unwrap();
    let disk = || Arc::new(Disk::new(folder.path()).unwrap()) as Arc<dyn Storage>;
    let resources = resources(MemoryLimit::Unlimited);
    let admission = resources.admission.clone();
    let table = Table::create(disk(), schema(vector), resources.clone()).unwrap();
    let used = |purpose: Purpose| admission.in_use().0[purpose as usize];
    let (first, second) = (0..rows * 2 / 3, rows * 2 / 3..rows);
    let before = HELD.load(Relaxed);
    fill(&table, first.clone(), words, dim);
    let _ = table.search(&serde_json::from_value(json!({"sort": [{"n": "asc"}]})).unwrap(), None).unwrap();
    check(&format!("{what}, head"), 5.0, used(Purpose::Write), HELD.load(Relaxed) - before);
    let said = table.predict_flush().unwrap();
    // What does not fit is refused with the numbers; nothing has changed, and it is done when there is room.
    let (asked, others) = (said - used(Purpose::Seal), admission.in_use().total());
    admission.set_limit(MemoryLimit::Bytes(others + asked - 1));
    let refused = table.flush();
    let Err(FlushError::Refused(Refusal::Limit { purpose, asked: found, limit, .. })) = refused else {
        panic!("{refused:?}")
    };
    assert_eq!((purpose, found, limit), (Purpose::Seal, asked, others + asked - 1));
    assert_eq!((table.len(), table.segments().len()), (first.len(), 1));
    assert_eq!(admission.in_use().total(), others);
    admission.set_limit(MemoryLimit::Bytes(others + asked));
    let (flushed, was) = peak(|| table.flush());
    flushed.unwrap();
    check(&format!("{what}, seal"), 5.0, said, was);
    assert_eq!((used(Purpose::Write), used(Purpose::Seal)), (0, 0));
    admission.set_limit(MemoryLimit::Unlimited);
    fill(&table, second, words, dim);
    table.flush().unwrap();
    for dead in [0, rows / 20] {
        let delete = |i: usize| Write::Delete { id: format!("document-{i}"), when: When::Always };
        table
            .write((0..dead).map(|i| delete(3 * i)).collect())
            .into_iter()
            .for_each(|done| drop(done.unwrap()));
        if dead > 0 {
            fill(&table, rows..rows + rows / 2, words, dim);
            table.flush().unwrap();
        }
        let said = table.predict_merge().unwrap();
        let (merged, was) = peak(|| table.force_merge(1));
        merged.unwrap();
        check(&format!("{what}, merge, {dead} of them dead"), 5.0, said, was);
    }
    let held = used(Purpose::Open);
    drop(table);
    assert_eq!(admission.in_use().total(), 0);
    let before = HELD.load(Relaxed);
    let (table, most) = peak(|| Table::open(disk(), resources).unwrap());
    assert!(most as u64 <= held, "{most} to open it");
    assert_eq!(used(Purpose::Open), held, "opened again it takes what it took");
    for i in 0..rows + rows / 2 {
        table.get(&format!("document-{i}")).unwrap();
    }
    check(&format!("{what}, open and read"), 5.0, held, HELD.load(Relaxed) - before);
    // How much a query or a filter will match is not known: the most is told.
    for (name, request, known) in [
        (
            "nearest",
            json!({"nearest": [{"field": "v", "vector": vec![0.5; dim], "k": 1000}], "size": 1000}),
            true,
        ),
        ("words", json!({"query": {"match": {"field": "text", "text": "word7"}}, "size": 1000}), false),
        ("order", json!({"sort": [{"n": "asc"}], "size": 2000}), true),
        ("filter", json!({"filter": {"range": {"field": "n", "range": {"gt": 3}}}, "size": 10}), false),
        (
            "figures",
            json!({"size": 0, "aggregations": {"by": {"terms": {"field": "n", "size": 1000}}}}),
            true,
        ),
    ] {
        let request: Request = serde_json::from_value(request).unwrap();
        table.search(&request, None).unwrap();
        let said = table.predict_search(&request).unwrap();
        let (_, was) = peak(|| table.search(&request, None).unwrap());
        let what = format!("{what}, search by {name}");
        println!("{what}: {was} bytes, {said} predicted ({:+.1} %)", off(said, was));
        assert!(said as f64 > was as f64 * 0.95, "{what}: {was} bytes, {said} predicted");
        assert!(!known || off(said, was) <= 5.0, "{what}: {was} bytes, {said} predicted");
    }
}

/// Loads documents, with what the load holds against what it asked for.
fn loaded(what: &str, dim: usize, rows: usize, words: usize) {
    let folder = tempfile::tempdir().unwrap();
    let disk: Arc<dyn Storage> = Arc::new(Disk::new(folder.path()).unwrap());
    let resources = resources(MemoryLimit::Unlimited);
    let admission = resources.admission.clone();
    let table = Table::create(disk, schema(json!({"type": "vector", "dim": dim})), resources).unwrap();
    let random = &mut Rng::with_seed(7);
    let before = HELD.load(Relaxed);
    let mut load = table.load().unwrap();
    load.reserve(rows).unwrap();
    let effort = Effort::of(Threads::new(Some(NonZeroUsize::MIN)));
    for first in (0..rows).step_by(500) {
        let mut batch = Batch { ids: Some(Vec::new()), ..Batch::default() };
        let mut all: Vec<f32> = Vec::new();
        for i in first..first + 500 {
            let Write::Put { id, document, mut vectors, .. } = put(i, words, dim, random) else {
                unreachable!()
            };
            batch.ids.as_mut().unwrap().extend(id);
            batch.documents.push(document);
            let OwnedVectors::F32(vector) = vectors.remove(0).1 else { unreachable!() };
            all.extend(vector);
        }
        batch.vectors = vec![("v", Vectors::F32(&all))];
        load.add(batch, &effort).unwrap();
    }
    let said = admission.in_use().0[Purpose::Write as usize];
    let held = HELD.load(Relaxed) - before;
    let (done, more) = peak(|| load.finish(&effort));
    assert_eq!(done.unwrap(), rows);
    println!("{what}, load: {held} bytes before it is finished");
    check(&format!("{what}, {rows} rows of {words} words, load"), 5.0, said, held + more);
}

#[test]
fn memory_is_what_was_said() {
    loaded("vectors", 256, 4000, 3);
    loaded("text", 2, 4000, 100);
    let hnsw = |dim: usize, code: &str| json!({"type": "vector", "dim": dim, "code": code});
    made("hnsw i8", hnsw(256, "i8"), 3000, 3);
    made("hnsw", hnsw(256, "none"), 3000, 3);
    made("flat i8", json!({"type": "vector", "dim": 256, "code": "i8", "kind": "flat"}), 6000, 3);
    made("ivf", json!({"type": "vector", "dim": 256, "kind": "ivf"}), 6000, 3);
    made("exact", json!({"type": "vector", "dim": 256, "metric": "cosine", "kind": "flat"}), 3000, 3);
    made("text", json!({"type": "vector", "dim": 2, "kind": "flat"}), 3000, 100);
    made("text", json!({"type": "vector", "dim": 2, "kind": "flat"}), 6000, 100);
    made("small", json!({"type": "vector", "dim": 2, "kind": "flat"}), 300, 10);
    tables_at_rest();
}
