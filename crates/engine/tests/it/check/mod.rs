//! Tables against a model: random histories, every crash that a power cut may leave, damage. A check says how often it
//! looked, or what it found wrong.

use lanewise_engine::documents::{Query, Schema};
use lanewise_engine::index::OwnedVectors;
use lanewise_engine::scheduler::{Layout, Options, Workers};
use lanewise_engine::table::{
    Answer, Batch, Concurrent, Durability, Effort, MergePolicy, Nearest, Request, Resources, Settings, Table,
    When, Write,
};
use lanewise_engine::{Admission, MemoryLimit, Pool, Threads};
use lanewise_storage::{Faulty, Kind, Memory, Rng, Storage};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::error::Error;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

pub(crate) type Checked = Result<usize, String>;

/// A document: version, source, vector.
pub(crate) type Known = (u64, Value, Option<[f32; 2]>);
pub(crate) type Model = BTreeMap<String, Known>;

pub(crate) const IDS: usize = 12;

pub(crate) fn schema() -> Schema {
    let kinds = ["hnsw", "flat"];
    let vector =
        |kind: &str| json!({"type": "vector", "dim": 2, "kind": kind, "m": 4, "ef_construction": 20});
    let schema = json!({"fields": {"v": vector(kinds[0]), "w": vector(kinds[1]), "n": {"type": "integer"}}});
    serde_json::from_value(schema).unwrap()
}

/// Two chiplets of one worker each, for all tests.
pub(crate) fn resources() -> Resources {
    static POOL: LazyLock<Arc<Pool>> = LazyLock::new(|| {
        let workers = Workers::Unbound(Layout::new(&[1, 1]));
        Arc::new(Pool::start(Options { workers, ..Options::default() }).unwrap())
    });
    let admission = Admission::new(MemoryLimit::Unlimited, NonZeroUsize::MIN);
    Resources { threads: Threads::new(NonZeroUsize::new(1)), pool: POOL.clone(), admission }
}

pub(crate) fn object(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

pub(crate) fn put(id: &str, document: Value) -> Write {
    Write::Put {
        id: Some(id.to_owned()),
        document: object(document),
        vectors: Vec::new(),
        when: When::Always,
    }
}

pub(crate) fn delete(id: &str) -> Write {
    Write::Delete { id: id.to_owned(), when: When::Always }
}

/// A random write, and what it makes of the model.
pub(crate) fn random_write(random: &mut Rng, model: &mut Model) -> Write {
    let id = format!("d{}", random.usize(..IDS));
    if random.usize(..4) == 0 {
        model.remove(&id);
        return delete(&id);
    }
    let n = random.usize(..5);
    let vector = (random.usize(..3) > 0).then(|| [random.usize(..9) as f32, random.usize(..9) as f32]);
    let source = json!({"n": n, "text": format!("word{n} all")});
    let mut document = source.clone();
    if let Some(vector) = vector {
        document["v"] = json!(vector);
        document["w"] = json!(vector);
    }
    let version = model.get(&id).map_or(1, |known| known.0 + 1);
    model.insert(id.clone(), (version, source, vector));
    put(&id, document)
}

/// What a table does not hold, or holds otherwise than the model.
pub(crate) fn differs(table: &Table, model: &Model) -> Option<String> {
    compare(table, model).unwrap_or_else(|error| panic!("{error}"))
}

/// As [`differs`]; fails if the table cannot be read.
pub(crate) fn compare(table: &Table, model: &Model) -> Result<Option<String>, Box<dyn Error>> {
    let check = |fine: bool, what: &dyn Fn() -> String| if fine { None } else { Some(what()) };
    let at = |what: &str, id: &str| format!("{what} of {id}");
    for i in 0..IDS {
        let id = format!("d{i}");
        let found = table.get(&id)?;
        let known = found.map(|d| (d.version, serde_json::from_slice::<Value>(&d.source).unwrap()));
        let expected = model.get(&id).map(|known| (known.0, known.1.clone()));
        let wrong = || format!("{}: {known:?}, expected {expected:?}", at("document", &id));
        if let Some(what) = check(known == expected, &wrong) {
            return Ok(Some(what));
        }
    }
    if let Some(what) = check(table.len() == model.len(), &|| format!("{} documents", table.len())) {
        return Ok(Some(what));
    }
    let query = [4.0, 3.5];
    let distance = |v: &[f32; 2]| (v[0] - query[0]).powi(2) + (v[1] - query[1]).powi(2);
    for (field, filter) in [("v", None), ("w", None), ("v", Some(2)), ("w", Some(2))] {
        let nearest = Nearest::new(field, OwnedVectors::F32(query.to_vec()));
        let request = Request {
            nearest: vec![Nearest { k: 5, exact: field == "v", ..nearest }],
            filter: filter.map(|n| Query::Term { field: "n".to_owned(), value: json!(n) }),
            concurrent: if field == "v" { Concurrent::On } else { Concurrent::Auto },
            ..Request::default()
        };
        let Answer { hits, .. } = table.search(&request, None)?;
        let fits = |known: &&Known| filter.is_none_or(|n| known.1["n"] == json!(n));
        let mut expected: Vec<f32> =
            model.values().filter(fits).filter_map(|k| k.2.as_ref().map(distance)).collect();
        expected.sort_by(f32::total_cmp);
        expected.truncate(5);
        let own = hits
            .iter()
            .all(|hit| model.get(&hit.id).and_then(|known| known.2.as_ref().map(distance)) == hit.distance);
        let found: Vec<f32> = hits.iter().filter_map(|hit| hit.distance).collect();
        if let Some(what) =
            check(own && found == expected, &|| format!("{field} {filter:?}: {hits:?}, {expected:?}"))
        {
            return Ok(Some(what));
        }
    }
    let query = Query::Match {
        field: "text".to_owned(),
        text: "word3".to_owned(),
        operator: Default::default(),
        fuzziness: None,
    };
    let request = Request { query: Some(query), size: 100, ..Request::default() };
    let Answer { hits, total, .. } = table.search(&request, None)?;
    let mut found: Vec<String> = hits.into_iter().map(|hit| hit.id).collect();
    found.sort();
    let expected: Vec<&String> =
        model.iter().filter(|(_, known)| known.1["n"] == json!(3)).map(|(id, _)| id).collect();
    Ok(check(found.iter().eq(expected) && total.value == found.len() as u64, &|| format!("words: {found:?}")))
}

pub(crate) fn open(storage: Arc<dyn Storage>) -> Table {
    Table::open(storage, resources()).unwrap()
}

/// A random history: writes in calls of several, flushes, restarts. Half of them wait for the disk, the others do not. Notes
/// in `storage` how many writes were said to be on disk. The model after each write, the first before all.
pub(crate) fn history(seed: u64, storage: &Memory, calls: usize) -> Result<Vec<Model>, String> {
    let mut random = Rng::with_seed(seed);
    // Planted faults of storage are carried out there.
    let shared: Arc<dyn Storage> = Arc::new(Faulty::new(Arc::new(storage.clone())));
    let mut table = Table::create(shared.clone(), schema(), resources()).unwrap();
    storage.note(0);
    let durability = if seed.is_multiple_of(2) { Durability::Request } else { Durability::Async };
    table.set_settings(Settings { durability, ..Settings::default() }).unwrap();
    let mut models = vec![Model::new()];
    for _ in 0..calls {
        let mut on_disk = durability == Durability::Request;
        match random.usize(..10) {
            0 => {
                table.flush().unwrap();
                on_disk = true;
            }
            1 => {
                drop(table);
                table = open(shared.clone());
                on_disk = true;
            }
            2 if random.usize(..2) == 0 => {
                table.force_merge(1 + random.usize(..2)).unwrap();
                on_disk = true;
            }
            2 => {
                let (segments_per_tier, floor_segment) = (2, 1);
                let policy = MergePolicy { segments_per_tier, floor_segment, ..MergePolicy::default() };
                while table.merge(&policy).unwrap().is_some() {}
            }
            3 => on_disk |= load(&mut random, &table, &mut models),
            _ => {
                let mut model = models.last().unwrap().clone();
                let mut writes = Vec::new();
                for _ in 0..1 + random.usize(..3) {
                    writes.push(random_write(&mut random, &mut model));
                    models.push(model.clone());
                }
                for result in table.write(writes) {
                    result.unwrap();
                }
            }
        }
        if on_disk {
            storage.note(models.len() as u64 - 1);
        }
        if let Some(what) = differs(&table, models.last().unwrap()) {
            return Err(format!("seed {seed}: {what}"));
        }
    }
    Ok(models)
}

/// Loads documents in batches, some of them twice, while others are written; a load that is given up leaves nothing. Whether
/// it was not.
fn load(random: &mut Rng, table: &Table, models: &mut Vec<Model>) -> bool {
    let effort = Effort::of(Threads::new(NonZeroUsize::new(1)));
    let mut load = table.load().unwrap();
    let mut loaded = Model::new();
    for _ in 0..1 + random.usize(..2) {
        let mut batch = Batch { ids: Some(Vec::new()), ..Batch::default() };
        for _ in 0..random.usize(..5) {
            let before = loaded.clone();
            match random_write(random, &mut loaded) {
                Write::Put { id: Some(id), document, .. } => {
                    batch.ids.as_mut().unwrap().push(id);
                    batch.documents.push(document);
                }
                // A load has no deletes.
                _ => loaded = before,
            }
        }
        load.add(batch, &effort).unwrap();
    }
    let mut model = models.last().unwrap().clone();
    let write = random_write(random, &mut model);
    table.write(vec![write]).remove(0).unwrap();
    models.push(model.clone());
    if random.usize(..4) == 0 {
        return false;
    }
    let all = load.len();
    assert!(load.finish(&effort).unwrap() <= all);
    for (id, (_, source, vector)) in loaded {
        let version = model.get(&id).map_or(1, |known| known.0 + 1);
        model.insert(id, (version, source, vector));
    }
    models.push(model);
    // Of no documents it says nothing.
    all > 0
}

/// Opens what a crash left: it must be the model after some write, no earlier than the last that was on disk.
pub(crate) fn recovers(image: &Memory, models: &[Model], acknowledged: Option<u64>) -> Result<(), String> {
    let shared: Arc<dyn Storage> = Arc::new(image.clone());
    let table = match (Table::open(shared, resources()), acknowledged) {
        (Ok(table), _) => table,
        // The table was never acknowledged to be.
        (Err(_), None) => return Ok(()),
        (Err(error), _) => return Err(error.to_string()),
    };
    let first = acknowledged.unwrap_or(0) as usize;
    let why: Vec<String> =
        match models[first..].iter().map(|model| differs(&table, model)).collect::<Option<_>>() {
            Some(why) => why,
            None => return Ok(()),
        };
    Err(why[..why.len().min(4)].join("; or "))
}

/// What was recovered takes writes, which survive the next crash with all that was there.
fn goes_on(image: &Memory, random: &mut Rng) -> Result<(), String> {
    let table = open(Arc::new(image.clone()));
    table.write(vec![put("d0", json!({"n": 7}))]).remove(0).map_err(|error| error.to_string())?;
    table.sync().map_err(|error| error.to_string())?;
    let all = |table: &Table| -> Vec<_> { (0..IDS).map(|i| table.get(&format!("d{i}")).unwrap()).collect() };
    let before = all(&table);
    drop(table);
    let journal = image.journal();
    let again = Table::open(Arc::new(journal.image(journal.len(), random)), resources());
    let after = all(&again.map_err(|error| format!("then after a write: {error}"))?);
    if after == before { Ok(()) } else { Err(format!("then after a write: {before:?} became {after:?}")) }
}

/// Crashes before and after each sync of a random history, a tenth of them again while they recover.
pub(crate) fn crashes(seed: u64) -> Checked {
    let storage = Memory::new();
    let models = history(seed, &storage, 12)?;
    let journal = storage.journal();
    let mut random = Rng::with_seed(seed);
    let mut crashes = 0;
    for at in journal.syncs().flat_map(|at| [at, at + 1]) {
        let acknowledged = journal.notes(at).max();
        let image = if random.usize(..8) == 0 { journal.killed(at) } else { journal.image(at, &mut random) };
        // A process that was killed leaves changes that are not durable yet.
        let before = image.journal().len();
        recovers(&image, &models, acknowledged)
            .map_err(|what| format!("seed {seed}, crash at {at}: {what}"))?;
        crashes += 1;
        if acknowledged.is_some() && random.usize(..4) == 0 {
            goes_on(&image, &mut random).map_err(|what| format!("seed {seed}, crash at {at}, {what}"))?;
            crashes += 1;
            continue;
        }
        if random.usize(..10) == 0 {
            let journal = image.journal();
            let then = before + random.usize(..journal.len() + 1 - before);
            recovers(&journal.image(then, &mut random), &models, acknowledged).map_err(|what| {
                format!("seed {seed}, crash at {at}, then at {then} of the recovery: {what}")
            })?;
            crashes += 1;
        }
    }
    Ok(crashes)
}

/// A table of two segments with two documents each.
pub(crate) fn replaced(storage: Arc<dyn Storage>) -> Table {
    let table = Table::create(storage, schema(), resources()).unwrap();
    for ids in [["d0", "d1"], ["d2", "d3"]] {
        let writes = ids.map(|id| put(id, json!({"n": 1}))).to_vec();
        table.write(writes).into_iter().for_each(|written| drop(written.unwrap()));
        table.flush().unwrap();
    }
    table
}

/// Documents of segments are replaced by writes that do not wait for the disk, the manifest is, and then the power is
/// cut: none may be gone.
pub(crate) fn deaths(seed: u64) -> Checked {
    const IMAGES: usize = 12;
    let mut random = Rng::with_seed(seed);
    let settings = |sync_interval_ms| {
        let durability = Durability::Async;
        Settings { durability, sync_interval_ms, ..Settings::default() }
    };
    let merge = MergePolicy { segments_per_tier: 2, deletes_allowed: 0.0, ..MergePolicy::default() };
    for merges in [false, true] {
        let memory = Memory::new();
        let table = replaced(Arc::new(Faulty::new(Arc::new(memory.clone()))));
        table.set_settings(settings(1000)).unwrap();
        let writes = vec![put("d0", json!({"n": 2})), put("d2", json!({"n": 2})), delete("d3")];
        table.write(writes).into_iter().for_each(|written| drop(written.unwrap()));
        if merges {
            assert!(table.merge(&merge).unwrap().is_some());
        } else {
            table.set_settings(settings(2000)).unwrap();
        }
        let journal = memory.journal();
        for _ in 0..IMAGES {
            let lost = open(Arc::new(journal.image(journal.len(), &mut random)));
            if let Some(id) = ["d0", "d1", "d2"].into_iter().find(|id| lost.get(id).unwrap().is_none()) {
                return Err(format!("seed {seed}: {id} is gone, merges: {merges}"));
            }
        }
    }
    Ok(2 * IMAGES)
}

/// All files of a storage, with what they hold.
pub(crate) fn files(storage: &dyn Storage, dir: &Path, all: &mut Vec<(PathBuf, Vec<u8>)>) {
    for entry in storage.list(dir).unwrap() {
        let path = dir.join(&entry.name);
        match entry.kind {
            Kind::Folder => files(storage, &path, all),
            Kind::File => all.push((path.clone(), (*storage.open(&path).unwrap()).as_ref().to_vec())),
        }
    }
}

/// Flips bits of all files of a table that was closed, of each `step` one: opening or reading it fails, or nothing is
/// wrong with it.
pub(crate) fn flips(seed: u64, step: usize) -> Checked {
    let storage = Memory::new();
    let models = history(seed, &storage, 25)?;
    let model = models.last().expect("at least the first");
    let (mut all, end) = (Vec::new(), storage.journal().len());
    files(&storage, Path::new(""), &mut all);
    let (mut bit, mut flips) = (seed as usize % step, 0);
    for (path, bytes) in &all {
        while bit < 8 * bytes.len() {
            let damaged = storage.journal().killed(end);
            let mut bytes = bytes.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            damaged.remove(path).unwrap();
            damaged.create(path).unwrap().append(&bytes).unwrap();
            let wrong = || match Table::open(Arc::new(damaged), resources()) {
                Ok(table) => compare(&table, model).ok().flatten(),
                Err(_) => None,
            };
            let found =
                catch_unwind(AssertUnwindSafe(wrong)).unwrap_or_else(|_| Some("it panics".to_owned()));
            if let Some(what) = found {
                return Err(format!("seed {seed}, bit {bit} of {}: {what}", path.display()));
            }
            flips += 1;
            bit += step;
        }
        bit -= 8 * bytes.len();
    }
    Ok(flips)
}
