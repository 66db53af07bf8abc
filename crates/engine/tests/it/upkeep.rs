//! What looks after tables: heads are sealed, segments merged, acknowledged writes synced, while writes and searches go
//! on; and it lets go when it is told to.

use crate::check::{Model, differs, open, put, random_write, resources, schema};
use lanewise_engine::Threads;
use lanewise_engine::table::{Durability, MergePolicy, Settings, Table, Upkeep, Watched};
use lanewise_storage::{Call, Failure, Faulty, Memory, Rng};
use serde_json::json;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;

const ONE: NonZeroUsize = NonZeroUsize::MIN;

fn upkeep() -> Upkeep {
    Upkeep::start(ONE, Threads::new(Some(ONE))).unwrap()
}

/// Small segments, so that a test has many.
fn settings() -> Settings {
    let merge = MergePolicy {
        floor_segment: 1,
        segments_per_tier: 2,
        max_merge_at_once: 4,
        ..MergePolicy::default()
    };
    Settings { flush_after_ms: 100, merge, ..Settings::default() }
}

/// Waits until it holds, for as long as it takes within a test's patience.
fn until(what: &str, holds: impl Fn() -> bool) {
    for _ in 0..3000 {
        if holds() {
            return;
        }
        sleep(Duration::from_millis(20));
    }
    panic!("{what}: it never came");
}

fn sealed(table: &Watched) -> usize {
    table.segments().iter().filter(|segment| segment.sealed).count()
}

#[test]
fn heads_are_sealed_and_segments_merged_while_a_table_serves() {
    let memory = Memory::new();
    let table = Table::create(Arc::new(memory.clone()), schema(), resources()).unwrap();
    table.set_settings(settings()).unwrap();
    let upkeep = upkeep();
    let table = upkeep.watch(table);
    let mut random = Rng::with_seed(31);
    let mut model = Model::new();
    for _ in 0..6 {
        for _ in 0..40 {
            let writes = vec![random_write(&mut random, &mut model)];
            table.write(writes).remove(0).unwrap();
            assert_eq!(differs(&table, &model), None);
        }
        // Frozen heads are neither sealed nor last.
        let is_sealed = || {
            table.segments().split_last().is_some_and(|(head, rest)| {
                head.live == 0 && !rest.is_empty() && rest.iter().all(|segment| segment.sealed)
            })
        };
        until("a sealed head", is_sealed);
    }
    until("few segments", || table.merge(&table.settings().merge).unwrap().is_none());
    assert_eq!((differs(&table, &model), table.trouble()), (None, None));
    drop(table);
    drop(upkeep);
    assert_eq!(differs(&open(Arc::new(memory)), &model), None);
}

#[test]
fn a_merge_by_settings_that_make_no_sense_is_refused() {
    let table = Table::create(Arc::new(Memory::new()), schema(), resources()).unwrap();
    let usual = MergePolicy::default;
    for (policy, what) in [
        (MergePolicy { segments_per_tier: 1, ..usual() }, "segments_per_tier=1: give 2 or more"),
        (MergePolicy { max_merge_at_once: 0, ..usual() }, "max_merge_at_once=0: give 2 or more"),
        (MergePolicy { deletes_allowed: -0.5, ..usual() }, "deletes_allowed=-0.5: give 0 to 1"),
    ] {
        assert_eq!(table.merge(&policy).unwrap_err().to_string(), what);
        let settings = Settings { merge: policy, ..Settings::default() };
        assert_eq!(table.set_settings(settings).unwrap_err().to_string(), what);
    }
    assert_eq!(table.merge(&usual()).unwrap(), None);
}

#[test]
fn a_large_head_is_sealed_and_one_that_is_mostly_dead() {
    let table = Table::create(Arc::new(Memory::new()), schema(), resources()).unwrap();
    let usual = Settings::default();
    let small = Settings { flush_threshold_bytes: 1 << 16, flush_dead_rows: 500, ..usual.clone() };
    table.set_settings(small).unwrap();
    let upkeep = upkeep();
    let table = upkeep.watch(table);
    let text = "word ".repeat(20_000);
    table.write(vec![put("d0", json!({"text": text}))]).remove(0).unwrap();
    until("a sealed head", || sealed(&table) == 1);
    for i in 0..600 {
        table.write(vec![put("d1", json!({"n": i}))]).remove(0).unwrap();
    }
    until("another", || table.segments().last().unwrap().deleted < 500);
    assert_eq!(table.len(), 2);
}

/// What is acknowledged before it is on disk gets there by itself; until then a power cut may take it, in order.
#[test]
fn writes_that_do_not_wait_are_synced_soon() {
    let memory = Memory::new();
    let table = Table::create(Arc::new(memory.clone()), schema(), resources()).unwrap();
    let settings = Settings { durability: Durability::Async, sync_interval_ms: 100, ..Settings::default() };
    table.set_settings(settings.clone()).unwrap();
    let lost = || memory.journal().image(memory.journal().len(), &mut Rng::with_seed(1));
    table.write(vec![put("d0", json!({}))]).remove(0).unwrap();
    assert!(open(Arc::new(lost())).is_empty());
    let upkeep = upkeep();
    let table = upkeep.watch(table);
    until("a sync", || open(Arc::new(lost())).len() == 1);
    table.write(vec![put("d1", json!({}))]).remove(0).unwrap();
    drop(table);
    let table = open(Arc::new(lost()));
    assert_eq!((table.len(), &*table.settings()), (2, &settings));
}

/// A disk that is full is said, and tried again.
#[test]
fn trouble_is_said_and_passes() {
    let faulty = Arc::new(Faulty::new(Arc::new(Memory::new())));
    let table = Table::create(faulty.clone(), schema(), resources()).unwrap();
    table.set_settings(settings()).unwrap();
    table.write(vec![put("d0", json!({"v": [1, 2]}))]).remove(0).unwrap();
    faulty.fail(&[Call::CreateDir], 0, false, Failure::Full);
    let upkeep = upkeep();
    let table = upkeep.watch(table);
    until("trouble", || table.trouble().is_some_and(|trouble| trouble.contains("No space left")));
    assert_eq!(table.len(), 1);
    faulty.heal();
    until("its end", || table.trouble().is_none() && sealed(&table) == 1);
}

/// What could not be sealed for trouble that passed is sealed soon, however small the head is by then.
#[test]
fn a_large_head_that_could_not_be_sealed_is_tried_again() {
    let faulty = Arc::new(Faulty::new(Arc::new(Memory::new())));
    let table = Table::create(faulty.clone(), schema(), resources()).unwrap();
    table.set_settings(Settings { flush_threshold_bytes: 1 << 16, ..Settings::default() }).unwrap();
    table.write(vec![put("d0", json!({"text": "word ".repeat(20_000)}))]).remove(0).unwrap();
    faulty.fail(&[Call::CreateDir], 0, false, Failure::Full);
    assert!(table.flush().is_err());
    faulty.heal();
    let upkeep = upkeep();
    let table = upkeep.watch(table);
    until("a sealed head", || sealed(&table) == 1);
    assert_eq!(table.len(), 1);
}

/// A panic ends neither the builder nor who waits for it.
#[test]
fn a_panic_of_upkeep_is_said_and_passes() {
    let faulty = Arc::new(Faulty::new(Arc::new(Memory::new())));
    let table = Table::create(faulty.clone(), schema(), resources()).unwrap();
    table.set_settings(settings()).unwrap();
    table.write(vec![put("d0", json!({"v": [1, 2]}))]).remove(0).unwrap();
    faulty.fail(&[Call::CreateDir], 0, true, Failure::Panic);
    let upkeep = upkeep();
    let table = upkeep.watch(table);
    until("trouble", || table.trouble().is_some_and(|trouble| trouble.contains("panicked")));
    until("its end", || table.trouble().is_none() && sealed(&table) == 1);
    assert_eq!(table.len(), 1);
}

#[test]
fn settings_are_checked() {
    let table = Table::create(Arc::new(Memory::new()), schema(), resources()).unwrap();
    let wrong = Settings { sync_interval_ms: 7, ..Settings::default() };
    let says = "sync_interval_ms=7: give 100 or more, a year at most";
    assert_eq!(table.set_settings(wrong).unwrap_err().to_string(), says);
    let mut wrong = Settings::default();
    wrong.merge.deletes_allowed = 1.5;
    assert_eq!(table.set_settings(wrong).unwrap_err().to_string(), "deletes_allowed=1.5: give 0 to 1");
    assert_eq!(*table.settings(), Settings::default());
    let json = r#"{"merge": {"segments_per_tier": 4}}"#;
    let settings: Settings = serde_json::from_str(json).unwrap();
    let merge = MergePolicy { segments_per_tier: 4, ..MergePolicy::default() };
    assert_eq!(settings, Settings { merge, ..Settings::default() });
}
