//! The kernel's CPU list format, on good and hostile texts.

use std::collections::BTreeSet;

use lanewise_topology::{CpuList, CpuListError, MAX_CPUS};
use proptest::prelude::*;

fn parse(text: &str) -> Result<CpuList, CpuListError> {
    text.parse()
}

#[test]
fn reads_and_writes_the_kernels_format() {
    let list = parse("0-3,8,10-11\n").unwrap();
    assert_eq!(list.iter().collect::<Vec<_>>(), [0, 1, 2, 3, 8, 10, 11]);
    assert_eq!((list.len(), list.is_empty(), list.to_string().as_str()), (7, false, "0-3,8,10-11"));
    assert!(list.contains(11) && !list.contains(9) && !list.contains(12) && !list.contains(usize::MAX));
    assert_eq!(parse("11,2-3,10,0-2,8,8").unwrap(), list);
    assert_eq!(parse(" \n").unwrap(), CpuList::default());
}

#[test]
fn errors_name_what_is_wrong() {
    for text in ["a", "1,,2", ",", "-", "1-", "-1", "1-2-3", "+1", "1 2", "0x3", "0-7:2/4", "٣"] {
        assert!(matches!(parse(text), Err(CpuListError::Syntax(_))), "{text}: {:?}", parse(text));
    }
    assert_eq!(parse("7-3"), Err(CpuListError::Backwards(7, 3)));
    let message = parse("0-99999999999999999999999").unwrap_err().to_string();
    assert_eq!(message, "CPU list: `99999999999999999999999` is too large; CPU ids are below 1048576");
    assert_eq!(
        parse("1,two,3").unwrap_err().to_string(),
        "CPU list: `two` is neither a CPU (`8`) nor a range of CPUs (`0-3`)"
    );
    let hostile = parse(&format!("\x1b[31m{}", "x".repeat(1 << 20))).unwrap_err().to_string();
    assert!(hostile.len() < 200 && !hostile.contains('\x1b'), "{hostile:?}");
}

#[test]
fn huge_ranges_cost_nothing() {
    assert_eq!(parse("0-4294967295"), Err(CpuListError::TooLarge("4294967295".into())));
    let widest = format!("0-{}", MAX_CPUS - 1);
    let text = vec![widest.as_str(); 10_000].join(",");
    let list = parse(&text).unwrap();
    assert_eq!((list.len(), list.to_string()), (MAX_CPUS, widest));
}

/// The format's meaning, written as plainly as can be: a set of numbers, small enough to spell out.
fn reference(text: &str) -> Option<BTreeSet<usize>> {
    let mut cpus = BTreeSet::new();
    for part in text.trim().split(',').filter(|_| !text.trim().is_empty()) {
        let ends: Vec<&str> = part.split('-').collect();
        let digits = |end: &&str| !end.is_empty() && end.chars().all(|c| c.is_ascii_digit());
        if ends.len() > 2 || !ends.iter().all(digits) {
            return None;
        }
        let first: usize = ends[0].parse().ok()?;
        let last: usize = ends[ends.len() - 1].parse().ok()?;
        if first > last || last >= MAX_CPUS {
            return None;
        }
        cpus.extend(first..=last);
    }
    Some(cpus)
}

proptest! {
    #[test]
    fn any_set_survives_writing_and_reading(cpus in prop::collection::btree_set(0usize..300, 0..80)) {
        let list: CpuList = cpus.iter().copied().rev().collect();
        prop_assert_eq!(list.iter().collect::<BTreeSet<_>>(), cpus.clone());
        prop_assert_eq!(list.len(), cpus.len());
        for cpu in 0..302 {
            prop_assert_eq!(list.contains(cpu), cpus.contains(&cpu));
        }
        prop_assert_eq!(parse(&list.to_string()).unwrap(), list);
    }

    #[test]
    fn near_misses_agree_with_the_reference(text in "([0-9]{1,3}(-[0-9]{1,3})?,){0,6}[0-9,\\- ]{0,4}") {
        let list = parse(&text).ok().map(|list| list.iter().collect::<BTreeSet<_>>());
        prop_assert_eq!(list, reference(&text));
    }

    #[test]
    fn hostile_texts_never_panic_and_stay_small(text in "(\\PC|[0-9,\\-\\x00-\\x20]){0,200}") {
        if let Ok(list) = parse(&text) {
            prop_assert!(list.len() <= MAX_CPUS);
            prop_assert!(list.to_string().len() <= text.len());
        }
    }
}
