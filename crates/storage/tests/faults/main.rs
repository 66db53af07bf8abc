//! Each planted fault is found by one of the checks; without one all pass. A process of its own, since planting is for
//! the whole of it.

#[path = "../it/check/mod.rs"]
mod check;

use check::{Checked, blobs, flips, logs, manifests};
use lanewise_storage::Fault;
use lanewise_storage::fault::plant;

/// A check of which a few histories are enough.
fn some(check: fn(u64) -> Checked) -> Checked {
    (1..=40).try_fold(0, |done, seed| check(seed).map(|now| done + now))
}

type Check = (&'static str, fn() -> Checked);

const CHECKS: [Check; 6] = [
    ("crashes of the log", || some(logs::crashes)),
    ("crashes of a manifest", || some(manifests::crashes)),
    ("crashes of blobs", || some(blobs::crashes)),
    ("a failed sync", logs::poison),
    ("flipped bits of the log", || flips::log(true, 0)),
    ("flipped bits of blob and manifest", flips::others),
];

#[test]
fn all_checks_pass_without_a_fault() {
    let _none = plant(None);
    for (name, check) in CHECKS {
        let done = check().unwrap_or_else(|why| panic!("{name}: {why}"));
        assert!(done > 0, "{name} checked nothing");
    }
}

#[test]
fn every_planted_fault_is_found() {
    for fault in Fault::ALL {
        let _planted = plant(Some(fault));
        let found: Vec<&str> =
            CHECKS.iter().filter(|(_, check)| check().is_err()).map(|&(name, _)| name).collect();
        println!("{fault:?}: found by {found:?}");
        assert!(!found.is_empty(), "{fault:?} is found by none");
    }
}
