//! Memory that tables ask for: who is refused, that nothing of it stays, and that all is given back.

use crate::check::{Model, delete, differs, object, open, put, random_write, resources, schema};
use lanewise_engine::table::{
    Batch, Effort, FlushError, LoadError, MergePolicy, Request, Resources, SearchTableError, SegmentError,
    Table, Upkeep, Write, WriteError,
};
use lanewise_engine::{
    Admission, Engine, EngineError, InUse, Limits, MemoryLimit, Purpose, Refusal, TableState, Threads,
};
use lanewise_storage::{Call, Failure, Faulty, Memory, Rng};
use serde_json::json;
use std::cell::RefCell;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::sleep;
use std::time::{Duration, Instant};

const ONE: NonZeroUsize = NonZeroUsize::MIN;
const MIB: u64 = 1 << 20;

fn limited(bytes: u64) -> Resources {
    Resources { admission: Admission::new(MemoryLimit::Bytes(bytes), ONE), ..resources() }
}

fn used(admission: &Admission, purpose: Purpose) -> u64 {
    admission.in_use().0[purpose as usize]
}

fn effort() -> Effort<'static> {
    Effort::of(Threads::new(Some(ONE)))
}

/// Documents of half a KB, from number `first` on.
fn some(first: usize, count: usize) -> Vec<Write> {
    let text =
        |i: usize| (0..60).map(|word| format!("word{} ", (i * 31 + word * 7) % 500)).collect::<String>();
    (first..first + count).map(|i| put(&format!("some-{i}"), json!({"text": text(i)}))).collect()
}

/// Writes until that is refused; how many documents are in.
fn fill(table: &Table, first: usize) -> (usize, Refusal) {
    let mut next = first;
    loop {
        for written in table.write(some(next, 50)) {
            match written {
                Ok(_) => next += 1,
                Err(WriteError::Refused(refusal)) => return (next, refusal),
                Err(error) => panic!("{error}"),
            }
        }
        assert!(next < 1_000_000, "there is no limit");
    }
}

/// Opens, writes, loads, seals, merges, searches and closes at random, within little memory, on storage that fails at times:
/// what is refused changes nothing, and in the end all is given back.
#[test]
fn all_memory_is_given_back_after_any_history() {
    let mut refused = [0; 5];
    for seed in 0..40 {
        let mut random = Rng::with_seed(seed);
        let storage = Memory::new();
        let faulty = Arc::new(Faulty::new(Arc::new(storage.clone())));
        let breaks = seed % 2 == 1;
        let (limit, resources) = (1 << random.u32(14..26), limited(u64::MAX));
        let admission = resources.admission.clone();
        drop(Table::create(faulty.clone(), schema(), resources.clone()).unwrap());
        assert_eq!(admission.in_use(), InUse::default(), "seed {seed}: after it was made");
        let mut table = None;
        let mut model = Model::new();
        for step in 0..60 {
            admission.set_limit(MemoryLimit::Bytes(if random.usize(..3) == 0 { u64::MAX } else { limit }));
            if breaks && random.usize(..4) == 0 {
                faulty.fail(&Call::ALL, random.u64(..20), true, Failure::Full);
            } else {
                faulty.heal();
            }
            let Some(open) = &table else {
                table = Table::open(faulty.clone(), resources.clone()).ok();
                refused[0] += usize::from(table.is_none());
                continue;
            };
            match random.usize(..12) {
                0..5 => {
                    let mut next = model.clone();
                    match open.write(vec![random_write(&mut random, &mut next)]).remove(0) {
                        Ok(_) => model = next,
                        Err(WriteError::Refused(_)) => refused[1] += 1,
                        Err(_) => {}
                    }
                }
                5 => refused[2] += usize::from(open.flush().is_err()),
                6 => refused[2] += usize::from(open.force_merge(1).is_err()),
                7 => refused[2] += usize::from(open.merge(&MergePolicy::default()).is_err()),
                8 => {
                    let load = open.load().and_then(|mut load| {
                        let documents = vec![object(json!({"n": 1}))];
                        load.add(Batch { documents, ..Batch::default() }, &effort())?;
                        Ok(load)
                    });
                    // Given up.
                    refused[3] += usize::from(load.is_err());
                }
                9 | 10 => {
                    let found = open.search(&Request::default(), Some(Duration::from_millis(5)));
                    refused[4] += usize::from(matches!(found, Err(SearchTableError::Memory(_))));
                }
                _ => {
                    table = None;
                    assert_eq!(admission.in_use(), InUse::default(), "seed {seed}, step {step}: closed");
                }
            }
            for purpose in [Purpose::Merge, Purpose::Search] {
                assert_eq!(used(&admission, purpose), 0, "seed {seed}, step {step}: {purpose} is over");
            }
            if let (Some(table), false, 0) = (&table, breaks, step % 4) {
                admission.set_limit(MemoryLimit::Unlimited);
                assert_eq!(differs(table, &model), None, "seed {seed}, step {step}");
            }
        }
        drop(table);
        assert_eq!(admission.in_use(), InUse::default(), "seed {seed}");
    }
    assert!(
        refused.iter().all(|&refused| refused > 10),
        "{refused:?} openings, writes, builds, loads, searches"
    );
}

#[test]
fn a_refused_write_leaves_nothing() {
    let storage = Memory::new();
    let resources = limited(u64::MAX);
    let admission = resources.admission.clone();
    let table = Table::create(Arc::new(storage.clone()), schema(), resources).unwrap();
    table.write(vec![put("d1", json!({"v": [1, 2], "w": [1, 2]}))]).remove(0).unwrap();
    let before = admission.in_use();
    admission.set_limit(MemoryLimit::Bytes(before.total()));
    let both = || vec![put("d2", json!({"v": [3, 4], "w": [3, 4]})), delete("d1")];
    let mut done = table.write(both());
    let Err(WriteError::Refused(Refusal::Limit { purpose, asked, limit, in_use, .. })) = done.remove(0)
    else {
        panic!("there was no room")
    };
    assert_eq!((purpose, limit, in_use), (Purpose::Write, before.total(), before));
    assert!(asked > 0);
    // What takes no memory is done.
    done.remove(0).unwrap();
    assert!(table.get("d2").unwrap().is_none() && table.is_empty());
    assert_eq!(table.segments()[0].live + table.segments()[0].deleted, 1, "a row is left");
    assert!(used(&admission, Purpose::Write) <= before.0[Purpose::Write as usize]);
    admission.set_limit(MemoryLimit::Unlimited);
    drop(table);
    let table = open(Arc::new(storage));
    assert!(table.get("d2").unwrap().is_none() && table.is_empty(), "it was logged");
    table.write(both()).remove(0).unwrap();
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a clock and a thread of the test's own")]
fn a_search_waits_for_memory_until_its_deadline_and_says_so() {
    let resources = limited(64 * MIB);
    let admission = resources.admission.clone();
    let table = Table::create(Arc::new(Memory::new()), schema(), resources).unwrap();
    table.write(some(0, 10)).into_iter().for_each(|written| drop(written.unwrap()));
    let held = admission.admit(Purpose::Search, 64 * MIB - admission.in_use().total()).unwrap();
    let timeout = Duration::from_millis(60);
    let begun = Instant::now();
    let refused = table.search(&Request::default(), Some(timeout)).unwrap_err();
    assert!(begun.elapsed() >= timeout, "it did not wait");
    let SearchTableError::Memory(Refusal::Waited { purpose, asked, limit, in_use, .. }) = refused else {
        panic!("{refused}")
    };
    assert_eq!((purpose, limit, in_use.total()), (Purpose::Search, 64 * MIB, 64 * MIB));
    // What makes the head searchable is asked for when it is its turn.
    let predicted = table.predict_search(&Request::default()).unwrap();
    assert!((1..predicted - 12_000_000).contains(&asked), "{asked} of {predicted}");
    // There is room before its deadline.
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| table.search(&Request::default(), Some(Duration::from_secs(20))));
        while admission.waiting() == 0 {
            std::thread::yield_now();
        }
        drop(held);
        assert_eq!(waiting.join().unwrap().unwrap().total.value, 10);
    });
    // What never fits does not wait.
    admission.set_limit(MemoryLimit::Bytes(1000));
    let refused = table.search(&Request::default(), Some(Duration::from_secs(20)));
    assert!(matches!(refused, Err(SearchTableError::Memory(Refusal::Limit { .. }))), "{refused:?}");
}

/// Whoever is asked whether a search should go on waiting may use the same memory: it gives back, and looks.
#[test]
#[expect(clippy::disallowed_methods, reason = "a thread of the test's own, which may never end")]
fn who_is_asked_while_a_search_waits_may_use_memory() {
    let (say, said) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let resources = limited(64 * MIB);
        let admission = resources.admission.clone();
        let table = Table::create(Arc::new(Memory::new()), schema(), resources).unwrap();
        let rest = 64 * MIB - admission.in_use().total();
        let held = RefCell::new(Some(admission.admit(Purpose::Search, rest).unwrap()));
        let proceed = || {
            assert!(
                table.search(&Request::default(), Some(Duration::ZERO)).is_err() || held.borrow().is_none()
            );
            *held.borrow_mut() = None;
            ControlFlow::Continue(())
        };
        say.send(table.search_with(&Request::default(), None, &proceed).is_ok()).unwrap();
    });
    assert!(said.recv_timeout(Duration::from_secs(20)).expect("it waits for itself"));
}

/// Searches that come while one of them makes a head's documents fit to be searched ask for little: one does it for all.
/// Those who wait for that can be stopped.
#[test]
#[expect(clippy::disallowed_methods, reason = "a thread of the test's own")]
fn one_search_asks_for_the_memory_to_make_documents_searchable() {
    let resources = limited(u64::MAX);
    let admission = resources.admission.clone();
    let table = Table::create(Arc::new(Memory::new()), schema(), resources).unwrap();
    table.write(some(0, 200)).into_iter().for_each(|written| drop(written.unwrap()));
    let request = Request::default();
    assert!(table.predict_search(&request).unwrap() > 12_000_000);
    let (more, nested) = (Mutex::new(Vec::new()), RefCell::new(None));
    let proceed = || {
        if nested.borrow().is_none() && used(&admission, Purpose::Search) > 12_000_000 {
            *nested.borrow_mut() = Some(0);
            let before = used(&admission, Purpose::Search);
            // Another thread waits for what this one does, with what the search itself takes, until it is stopped.
            let asked = AtomicBool::new(false);
            let stopped = std::thread::scope(|scope| {
                let search = || {
                    table.search_with(&request, None, &|| {
                        asked.store(true, Ordering::SeqCst);
                        more.lock().unwrap().push(used(&admission, Purpose::Search) - before);
                        ControlFlow::Break(())
                    })
                };
                scope.spawn(search).join().unwrap()
            });
            assert!(matches!(stopped, Err(SearchTableError::Stopped)) && asked.into_inner());
            // Whoever is asked may search too, and does not wait for itself.
            *nested.borrow_mut() = Some(table.search(&request, None).unwrap().total.value);
        }
        ControlFlow::Continue(())
    };
    let answer = table.search_with(&request, None, &proceed).unwrap();
    assert_eq!((answer.total.value, nested.into_inner()), (200, Some(200)));
    let more = more.into_inner().unwrap();
    assert!(more.iter().all(|&more| more < 1_000_000), "{more:?}");
    assert_eq!(used(&admission, Purpose::Search), 0);
}

#[test]
fn a_panic_while_a_search_waits_leaves_no_place_in_the_queue() {
    let resources = limited(64 * MIB);
    let admission = resources.admission.clone();
    let table = Table::create(Arc::new(Memory::new()), schema(), resources).unwrap();
    let held = admission.admit(Purpose::Search, 64 * MIB - admission.in_use().total()).unwrap();
    let panics = || table.search_with(&Request::default(), None, &|| panic!("of who is asked"));
    assert!(catch_unwind(AssertUnwindSafe(panics)).is_err());
    assert_eq!(admission.waiting(), 0);
    drop(held);
    // Nobody stands before those that come later.
    let long = Duration::from_secs(5);
    drop(admission.admit_later(Purpose::Search, 1, long).unwrap());
    drop(admission.admit_later(Purpose::Merge, 1, long).unwrap());
}

/// A merge that never fits does not keep those that do from being done.
#[test]
fn where_the_best_merge_does_not_fit_another_one_is_done() {
    let resources = limited(u64::MAX);
    let admission = resources.admission.clone();
    let vector = |kind: &str| json!({"type": "vector", "dim": 256, "kind": kind});
    let schema = serde_json::from_value(json!({"fields": {"v": vector("flat")}})).unwrap();
    let table = Table::create(Arc::new(Memory::new()), schema, resources).unwrap();
    for (segment, rows) in [6000, 6000, 6000, 10, 10].into_iter().enumerate() {
        let vector: Vec<f32> = (0..256).map(|i| (i * segment) as f32).collect();
        let row = |row: usize| put(&format!("{segment}-{row}"), json!({"v": vector}));
        table.write((0..rows).map(row).collect()).into_iter().for_each(|written| drop(written.unwrap()));
        table.flush().unwrap();
    }
    let policy = MergePolicy {
        segments_per_tier: 2,
        max_merge_at_once: 3,
        floor_segment: 1 << 30,
        ..MergePolicy::default()
    };
    let live = || table.segments().iter().map(|one| one.live).filter(|live| *live > 0).collect::<Vec<_>>();
    // Half is for sealing and searches: there is room for small ones alone.
    admission.set_limit(MemoryLimit::Bytes(2 * (admission.in_use().total() + 4 * MIB)));
    let merged = table.merge(&policy).unwrap();
    assert!(merged.is_some());
    assert_eq!(live(), [6000, 6000, 6000, 20]);
    // Then nothing fits, which is said.
    assert!(matches!(table.merge(&policy), Err(FlushError::Refused(_))));
    admission.set_limit(MemoryLimit::Unlimited);
    assert!(table.merge(&policy).unwrap().is_some());
    assert_eq!(table.len(), 18_020);
}

/// A merge that waits for memory ends when its table is let go.
#[test]
fn a_merge_that_waits_for_memory_is_stopped_too() {
    let resources = limited(64 * MIB);
    let admission = resources.admission.clone();
    let table = Table::create(Arc::new(Memory::new()), schema(), resources).unwrap();
    for first in [0, 10] {
        table.write(some(first, 10)).into_iter().for_each(|written| drop(written.unwrap()));
        table.flush().unwrap();
    }
    let _held = admission.admit(Purpose::Search, 64 * MIB - admission.in_use().total()).unwrap();
    let proceed = || if admission.waiting() > 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
    // Once it does not wait any more it would go on.
    let gone = AtomicBool::new(false);
    let proceed = || {
        gone.fetch_or(proceed().is_break(), Ordering::SeqCst);
        if gone.load(Ordering::SeqCst) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let policy = MergePolicy { segments_per_tier: 2, floor_segment: 1, ..MergePolicy::default() };
    let policy = MergePolicy { deletes_allowed: 0.0, ..policy };
    table.write(vec![delete("some-0")]).remove(0).unwrap();
    let stopped = table.merge_with(&policy, &Effort::new(Threads::new(Some(ONE)), &proceed));
    let is_stopped =
        |error: &FlushError| matches!(error, FlushError::Segment { error: SegmentError::Stopped, .. });
    assert!(stopped.as_ref().is_err_and(is_stopped), "{stopped:?}");
    assert_eq!((admission.waiting(), used(&admission, Purpose::Merge), table.len()), (0, 0, 19));
}

/// A head that fills all the memory that writes may have can be opened again, sealed and written on, within the same limit.
#[test]
fn what_could_be_written_can_be_opened_sealed_and_written_on() {
    let storage = Memory::new();
    let limit = 40 * MIB;
    let resources = limited(limit);
    let table = Table::create(Arc::new(storage.clone()), schema(), resources.clone()).unwrap();
    let (documents, refusal) = fill(&table, 0);
    assert!(documents > 100, "{documents}: {refusal}");
    assert!(refusal.to_string().contains("for sealing and searches alone"), "{refusal}");
    let written = used(&resources.admission, Purpose::Write);
    drop(table);
    let resources = limited(limit);
    let table = Table::open(Arc::new(storage.clone()), resources.clone()).unwrap();
    assert_eq!(table.len(), documents);
    assert!(used(&resources.admission, Purpose::Write).abs_diff(written) < written / 10, "{written}");
    assert!(table.write(some(documents, 50)).iter().all(Result::is_err));
    table.flush().unwrap();
    assert_eq!(used(&resources.admission, Purpose::Write), 0);
    let (more, _) = fill(&table, documents);
    assert!(more > documents + documents / 2, "{more} after {documents}");
    // With a lower limit it opens too: what was acknowledged is there, and only what comes is refused.
    drop(table);
    let lower = limited(limit / 4);
    let table = Table::open(Arc::new(storage), lower.clone()).unwrap();
    assert_eq!(table.len(), more);
    assert!(lower.admission.in_use().total() > limit / 4);
    assert!(table.write(some(more, 1)).iter().all(Result::is_err));
}

/// A segment of many fields takes more than the document that it was made of: what that leaves can be opened again too,
/// beside all that was in use before.
#[test]
fn segments_that_take_more_than_their_heads_can_be_opened_again() {
    let fields: serde_json::Map<_, _> =
        (0..40).map(|field| (format!("f{field}"), json!({"type": "integer"}))).collect();
    let schema = serde_json::from_value(json!({"fields": fields})).unwrap();
    let (storage, resources) = (Memory::new(), limited(128 * MIB));
    let admission = resources.admission.clone();
    let table = Table::create(Arc::new(storage.clone()), schema, resources.clone()).unwrap();
    // Room for one more document, as writes have it.
    let rest = 128 * MIB - 32 * MIB - admission.in_use().total();
    let _others = admission.admit(Purpose::Open, rest - 40_000).unwrap();
    table.write(some(0, 1)).remove(0).unwrap();
    table.flush().unwrap();
    assert!(admission.in_use().total() > 96 * MIB, "it is not more: {}", admission.in_use());
    assert!(table.write(some(1, 1)).remove(0).is_err());
    drop(table);
    assert_eq!(Table::open(Arc::new(storage), resources).unwrap().len(), 1);
}

#[test]
fn heads_are_sealed_early_where_memory_is_short() {
    let upkeep = Upkeep::start(ONE, Threads::new(Some(ONE))).unwrap();
    let resources = limited(40 * MIB);
    let create = || Table::create(Arc::new(Memory::new()), schema(), resources.clone()).unwrap();
    // The full one is sealed, whoever is refused.
    let (full, other) = (upkeep.watch(create()), upkeep.watch(create()));
    let (documents, _) = fill(&full, 0);
    let mut patience = 3000;
    while other.write(some(0, 400)).remove(0).is_err() {
        sleep(Duration::from_millis(10));
        patience -= 1;
        assert!(patience > 0, "it was never sealed: {}", resources.admission.in_use());
    }
    assert!(full.segments().iter().any(|segment| segment.sealed));
    assert_eq!((full.len(), full.trouble()), (documents, None));
}

#[test]
fn a_batch_that_is_refused_can_be_loaded_later() {
    let resources = limited(u64::MAX);
    let admission = resources.admission.clone();
    let table = Table::create(Arc::new(Memory::new()), schema(), resources).unwrap();
    let mut load = table.load().unwrap();
    let batch = || Batch { documents: vec![object(json!({"n": 1, "v": [1, 2]})); 100], ..Batch::default() };
    load.add(batch(), &effort()).unwrap();
    let before = admission.in_use();
    admission.set_limit(MemoryLimit::Bytes(before.total()));
    let refused = load.add(batch(), &effort());
    assert!(matches!(refused, Err(LoadError::Refused(Refusal::Limit { .. }))), "{refused:?}");
    assert!(matches!(load.reserve(1000), Err(LoadError::Refused(_))));
    assert!(matches!(table.load(), Err(LoadError::Refused(_))));
    assert_eq!((load.len(), admission.in_use()), (100, before));
    admission.set_limit(MemoryLimit::Unlimited);
    load.add(batch(), &effort()).unwrap();
    assert_eq!(load.finish(&effort()).unwrap(), 200);
    assert_eq!((table.len(), used(&admission, Purpose::Write)), (200, 0));
}

#[test]
fn tables_that_nobody_holds_make_room_for_others() {
    let storage = Memory::new();
    let start = |resources: &Resources| {
        Engine::open(Arc::new(storage.clone()), resources.clone(), Limits::default()).unwrap()
    };
    let resources = limited(u64::MAX);
    let engine = start(&resources);
    for name in ["a", "b", "c"] {
        let table = engine.create(name, schema()).unwrap();
        table.write(some(0, 5)).into_iter().for_each(|written| drop(written.unwrap()));
        table.flush().unwrap();
    }
    let each = resources.admission.in_use().total() / 3;
    drop(engine);
    assert_eq!(resources.admission.in_use(), InUse::default());
    // A quarter of it is not for openings: two tables fit.
    let resources = limited(7 * each / 2);
    let engine = start(&resources);
    let (a, b) = (engine.table("a").unwrap(), engine.table("b").unwrap());
    let refused = engine.table("c").unwrap_err();
    let EngineError::Open { error, .. } = &refused else { panic!("{refused}") };
    assert!(error.to_string().contains("circuit_breaker.limit"), "{error}");
    assert_eq!(a.len() + b.len(), 10);
    drop(a);
    assert_eq!(engine.table("c").unwrap().len(), 5, "there was room once nobody held another");
    let state = |name: &str| engine.list().into_iter().find(|one| &*one.name == name).unwrap().state;
    assert_eq!(state("a"), TableState::Closed);
    assert!(matches!(state("b"), TableState::Open { .. }));
}
