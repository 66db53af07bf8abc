//! The process that is killed: opens a table, or creates it, and writes, loads, searches, seals, merges and makes snapshots
//! at random, on several threads, until it is killed or has done enough.

use crate::report::{Condition, Done, Item, Line, Making, say};
use crate::token::{self, DIM};
use crate::{BACKUP, FAULTS, TABLE, THREADS, alone, ids};
use lanewise_engine::scheduler::{Layout, Options, Workers};
use lanewise_engine::table::{
    Batch, Durability, Effort, MergePolicy, OpenError, Repository, Resources, Settings, StateError, Table,
    Upkeep, When, Write, WriteError,
};
use lanewise_engine::{Admission, MemoryLimit, Pool, Threads};
use lanewise_storage::fault::plant;
use lanewise_storage::{Disk, Faulty, Rng, Storage};
use std::error::Error;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// Calls of a thread, if nobody kills it.
const CALLS: usize = 400;

/// How this process works: another way at each start.
struct Habits {
    threads: usize,
    /// Writes of a call, at most.
    call: usize,
    /// Of so many calls one makes segments.
    making: usize,
    /// Of so many calls one loads documents, or makes a snapshot.
    large: usize,
    /// Where snapshots go; locked by who makes one.
    repository: Mutex<Repository>,
}

pub(crate) fn resources(random: &mut Rng) -> Resources {
    let layout: &[usize] = [&[1][..], &[1, 1], &[2]][random.usize(..3)];
    let workers = Workers::Unbound(Layout::new(layout));
    let pool = Pool::start(Options { workers, ..Options::default() }).expect("threads");
    let admission = Admission::new(MemoryLimit::Unlimited, NonZeroUsize::MIN);
    Resources {
        threads: Threads::new(NonZeroUsize::new(1 + random.usize(..2))),
        pool: Arc::new(pool),
        admission,
    }
}

/// Opens the table, or creates it if no manifest says that there is one.
pub(crate) fn open(folder: &Path, table_seed: u64, random: &mut Rng) -> Result<Table, OpenError> {
    let io = |error| OpenError::Io { path: folder.to_owned(), error };
    let disk = Arc::new(Disk::new(&folder.join(TABLE)).map_err(io)?);
    // Planted faults of storage are carried out there.
    let storage: Arc<dyn Storage> = Arc::new(Faulty::new(disk));
    match Table::open(storage.clone(), resources(random)) {
        Err(OpenError::State(StateError::Read(lanewise_storage::manifest::ReadError::Missing))) => {
            let schema = token::schema(&mut Rng::with_seed(table_seed));
            Table::create(storage, schema, resources(random))
        }
        opened => opened,
    }
}

/// Settings that the manifest keeps: much is sealed and merged. What is acknowledged before it is on disk survives the end
/// of the process too.
fn how_it_serves(random: &mut Rng) -> Settings {
    let merge = MergePolicy { segments_per_tier: 2, floor_segment: 1, ..MergePolicy::default() };
    let durability = [Durability::Request, Durability::Async][random.usize(..2)];
    Settings { durability, flush_after_ms: 100, flush_threshold_bytes: 1 << 16, merge, ..Settings::default() }
}

/// Works until it is killed.
#[expect(clippy::disallowed_methods, reason = "writers in threads of their own")]
pub(crate) fn work(folder: &Path, table_seed: u64, seed: u64, fault: Option<&str>) {
    let _planted = plant(fault.and_then(|name| FAULTS.into_iter().find(|f| format!("{f:?}") == name)));
    let mut random = Rng::with_seed(seed);
    say(&Line::Opening);
    let table = match open(folder, table_seed, &mut random) {
        Ok(table) => table,
        Err(error) => return say(&Line::Failed(format!("open: {error}"))),
    };
    if let Err(error) = table.set_settings(how_it_serves(&mut random)) {
        return say(&Line::Failed(format!("settings: {error}")));
    }
    say(&Line::Opened);
    let upkeep = random
        .bool()
        .then(|| Upkeep::start(NonZeroUsize::MIN, Threads::new(Some(NonZeroUsize::MIN))).expect("threads"));
    let backup = Disk::new(&folder.join(BACKUP)).expect("made by who starts this");
    let (watched, alone);
    let table: &Table = match &upkeep {
        Some(upkeep) => {
            watched = upkeep.watch(table);
            &watched
        }
        None => {
            alone = table;
            &alone
        }
    };
    let habits = Habits {
        threads: 1 + random.usize(..THREADS),
        call: [1, 3, 12][random.usize(..3)],
        making: [4, 15, 60][random.usize(..3)],
        large: [5, 15, 60][random.usize(..3)],
        repository: Mutex::new(Repository::new(Arc::new(backup))),
    };
    std::thread::scope(|scope| {
        for thread in 0..habits.threads {
            let mut random = Rng::with_seed(random.u64(..));
            let habits = &habits;
            scope.spawn(move || {
                for _ in 0..CALLS {
                    if let Err(error) = one(table, thread, habits, &mut random) {
                        say(&Line::Failed(error.to_string()));
                        std::process::exit(1);
                    }
                }
            });
        }
    });
}

/// One call of the table.
fn one(table: &Table, thread: usize, habits: &Habits, random: &mut Rng) -> Result<(), Box<dyn Error>> {
    if random.usize(..habits.making) == 0 {
        let making = [Making::Flush, Making::Merge, Making::ForceMerge][random.usize(..3)];
        say(&Line::Making(making));
        match making {
            Making::Flush => table.flush()?,
            Making::Merge => drop(table.merge(&table.settings().merge)?),
            Making::ForceMerge => table.force_merge(1 + random.usize(..2))?,
        }
        say(&Line::Made(making));
        return Ok(());
    }
    if random.usize(..habits.large) == 0 {
        return if random.bool() { load(table, thread, random) } else { save(table, habits, random) };
    }
    if random.usize(..4) == 0 {
        let query: [f32; DIM] = std::array::from_fn(|_| random.u8(..16).into());
        let hits = token::nearest(table, &query, 5, random.bool(), None)?;
        let sorted = hits.is_sorted_by(|a, b| a.distance <= b.distance);
        return if sorted && hits.len() <= 5 { Ok(()) } else { Err(format!("found {hits:?}").into()) };
    }
    let count = 1 + random.usize(..habits.call);
    let items: Vec<Item> = std::iter::repeat_with(|| item(table, random)).take(count).collect();
    let writes = items.iter().map(write).collect();
    say(&Line::Writing { thread, items });
    let done = table.write(writes).into_iter().map(|result| match result {
        Ok(written) => Ok(Done::new(written.seq, written.version, written.outcome)),
        Err(WriteError::Conflict { .. }) => Ok(Done::Nothing),
        Err(error) => Err(error),
    });
    let done = done.collect::<Result<Vec<Done>, WriteError>>()?;
    say(&Line::Wrote { thread, done });
    Ok(())
}

/// Documents in bulk, some of which others write meanwhile, and one that is this thread's.
fn load(table: &Table, thread: usize, random: &mut Rng) -> Result<(), Box<dyn Error>> {
    let count = random.usize(..16);
    let ids = random.choose_multiple(ids(), count).into_iter().chain([alone(thread)]);
    let items: Vec<Item> =
        ids.map(|id| Item { id, put: Some(draw(random)), when: Condition::Always }).collect();
    say(&Line::Loading { thread, items: items.clone() });
    let effort = Effort::of(Threads::new(NonZeroUsize::new(1 + random.usize(..2))));
    let mut load = table.load()?;
    load.reserve(items.len())?;
    for some in items.chunks(1 + random.usize(..items.len())) {
        let documents = some.iter().filter_map(|item| item.put).map(token::document).collect();
        let ids = Some(some.iter().map(|item| item.id.clone()).collect());
        load.add(Batch { ids, documents, vectors: Vec::new() }, &effort)?;
    }
    let loaded = load.finish(&effort)?;
    let found = table.get(&alone(thread))?.filter(|_| loaded == items.len());
    let seq = found.ok_or(format!("{loaded} of {} are loaded", items.len()))?.seq;
    say(&Line::Loaded { thread, seq });
    Ok(())
}

fn save(table: &Table, habits: &Habits, random: &mut Rng) -> Result<(), Box<dyn Error>> {
    let Ok(repository) = habits.repository.try_lock() else { return Ok(()) };
    let name = format!("s{:x}", random.u64(..));
    say(&Line::Saving(name.clone()));
    table.snapshot(&repository, &name, 0, &mut |_, _| ControlFlow::Continue(()))?;
    say(&Line::Saved);
    Ok(())
}

/// Numbers that nobody draws twice, and that are exact in JSON's floats.
fn draw(random: &mut Rng) -> u64 {
    random.u64(..1 << 53)
}

fn item(table: &Table, random: &mut Rng) -> Item {
    let id = random.choice(ids()).expect("there are some");
    let when = match random.usize(..6) {
        0 => Condition::Absent,
        1 | 2 => {
            let found = table.get(&id).ok().flatten();
            found.map_or(Condition::Absent, |document| Condition::Seq(document.seq))
        }
        _ => Condition::Always,
    };
    let put = (random.usize(..4) > 0).then(|| draw(random));
    Item { id, put, when }
}

fn write(item: &Item) -> Write {
    let when = match item.when {
        Condition::Always => When::Always,
        Condition::Absent => When::Absent,
        Condition::Seq(seq) => When::Seq(seq),
    };
    let id = item.id.clone();
    match item.put {
        Some(token) => {
            Write::Put { id: Some(id), document: token::document(token), vectors: Vec::new(), when }
        }
        None => Write::Delete { id, when },
    }
}
