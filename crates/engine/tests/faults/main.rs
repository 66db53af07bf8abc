//! Each planted fault is found by one of the checks of tables; without one all pass. A process of its own, since planting is
//! for the whole of it.

#[path = "../it/check/mod.rs"]
mod check;

use check::{Checked, crashes, deaths, flips};
use lanewise_storage::Fault;
use lanewise_storage::fault::plant;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Faults that the log's own checks find: nothing in a table could hide them.
const OF_THE_LOG: [Fault; 3] = [Fault::PoisonIgnored, Fault::DamageIsTornTail, Fault::GapPasses];

type Check = (&'static str, fn(u64) -> Checked);

const CHECKS: [Check; 3] =
    [("crashes", crashes), ("deaths", deaths), ("flipped bits", |seed| flips(seed, 1999))];

/// Whether one of a few histories fails; a panic is a failure too.
fn finds(check: fn(u64) -> Checked) -> Option<String> {
    (0..60).find_map(|seed| match catch_unwind(AssertUnwindSafe(|| check(seed))) {
        Ok(done) => done.err(),
        Err(_) => Some("it panics".to_owned()),
    })
}

#[test]
fn all_checks_pass_without_a_fault() {
    let _none = plant(None);
    for (name, check) in CHECKS {
        assert!(check(0).unwrap() > 20, "{name} checked little");
    }
}

#[test]
fn every_planted_fault_is_found() {
    for fault in Fault::ALL.into_iter().chain(Fault::OF_TABLES).filter(|fault| !OF_THE_LOG.contains(fault)) {
        let _planted = plant(Some(fault));
        let found = CHECKS.iter().find_map(|&(name, check)| Some((name, finds(check)?)));
        println!("{fault:?}: {found:?}");
        assert!(found.is_some(), "{fault:?} is found by none");
    }
}
