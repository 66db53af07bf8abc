//! Runs of the simulator: what must add up, and cases of which the outcome is plain.

use lanewise_scheduler::Policy;
use lanewise_scheduler::sim::cache::Replacement;
use lanewise_scheduler::sim::machine::Machine;
use lanewise_scheduler::sim::synthetic::Synthetic;
use lanewise_scheduler::sim::trace::{Access, Builder, Record, Trace};
use lanewise_scheduler::sim::{Arrivals, Orchestration, Outcome, Setup, Workload, run};
use std::sync::LazyLock;

const ALL: [Orchestration; 4] = [
    Orchestration::Policy(Policy::RoundRobin),
    Orchestration::Policy(Policy::Stealing),
    Orchestration::Policy(Policy::Chiplet),
    Orchestration::ParallelFor,
];

/// Graphs, and lists.
static TRACES: LazyLock<[Trace; 2]> = LazyLock::new(|| {
    let few = Synthetic { tables: 4, queries: 12, ..Synthetic::default() };
    let (mut graphs, mut lists) = (Builder::new("graphs", true), Builder::new("lists", true));
    few.graphs(&mut graphs).unwrap();
    few.lists(&mut lists).unwrap();
    [graphs.finish().unwrap(), lists.finish().unwrap()]
});

fn setup(trace: &Trace, machine: Machine, orchestration: Orchestration, workload: Workload) -> Setup<'_> {
    Setup { machine, orchestration, patience_ns: 100_000, workload, trace }
}

fn machine(shape: &str) -> Machine {
    Machine::of(shape.parse().unwrap())
}

/// Each query is answered once, each task runs once, each line is touched and hits or misses, and what misses, and only
/// that, comes through a link and from memory.
fn adds_up(setup: &Setup, outcome: &Outcome) {
    let whole = &outcome.whole;
    assert_eq!((whole.came, whole.answered), (setup.workload.queries, setup.workload.queries));
    assert_eq!(whole.tasks_came, whole.tasks_ran);
    let sum = |of: fn(&lanewise_scheduler::sim::Traffic) -> u64| whole.traffic.iter().map(of).sum::<u64>();
    assert_eq!(sum(|traffic| traffic.lines), whole.lines);
    assert!(whole.traffic.iter().all(|traffic| traffic.missed <= traffic.lines));
    assert!(whole.traffic.iter().all(|traffic| traffic.link_bytes == traffic.missed * 64));
    assert_eq!(sum(|traffic| traffic.link_bytes), whole.memory_bytes);
    let cores = setup.machine.layout().workers() as f64;
    assert!(outcome.stall_ns <= outcome.busy_ns);
    // A slice that began inside may end outside: a little above is possible.
    assert!(outcome.busy_ns <= 1.05 * cores * outcome.measured_ns);
}

#[test]
fn everything_adds_up() {
    let arrivals = [
        Arrivals::Saturated { each: 3 },
        Arrivals::Poisson { rate: 20_000.0 },
        Arrivals::Bursty { rate: 20_000.0 },
    ];
    for trace in &*TRACES {
        for orchestration in ALL {
            for arrivals in arrivals {
                let workload = Workload { arrivals, queries: 80, seed: 5, ..Workload::default() };
                let setup = setup(trace, machine("3x2x1M"), orchestration, workload);
                let outcome = run(&setup);
                adds_up(&setup, &outcome);
                assert_eq!(run(&setup), outcome, "equal seeds, equal runs");
            }
        }
    }
}

#[test]
fn everything_adds_up_by_lines_too() {
    for replacement in Replacement::ALL {
        let machine = Machine { replacement, ..machine("3x2x1M") };
        let workload = Workload { queries: 80, ..Workload::default() };
        let setup = setup(&TRACES[0], machine, ALL[2], workload);
        adds_up(&setup, &run(&setup));
    }
}

#[test]
fn all_policies_are_asked_the_same() {
    for trace in &*TRACES {
        let asked = |orchestration, seed| {
            let workload = Workload { queries: 60, seed, ..Workload::default() };
            let outcome = run(&setup(trace, machine("3x2x1M"), orchestration, workload));
            outcome.whole.lines
        };
        assert!(ALL.iter().all(|&orchestration| asked(orchestration, 1) == asked(ALL[0], 1)));
        assert_ne!(asked(ALL[0], 1), asked(ALL[0], 2));
    }
}

/// One table, `queries` of one task each that reads 64 lines of its own and computes 10 µs.
fn one_table(queries: u32) -> Trace {
    let mut builder = Builder::new("plain", true);
    builder.table("t", Access::Streamed, u64::from(queries) * 4096).unwrap();
    for query in 0..queries {
        builder.query(0, false).unwrap();
        builder.task(None, 10_000, &[(u64::from(query) * 4096, 4096)]).unwrap();
    }
    builder.finish().unwrap()
}

#[test]
fn what_fits_the_cache_computes_all_the_time() {
    let trace = one_table(16);
    for orchestration in &ALL[..3] {
        let workload = Workload { queries: 4000, ..Workload::default() };
        let outcome = run(&setup(&trace, machine("1x4x32M"), *orchestration, workload));
        assert_eq!((outcome.miss_ratio(), outcome.stall_ns), (0.0, 0.0));
        let share = outcome.throughput() / outcome.bound(4);
        // The queue costs 0.15 of 10 µs; where nobody steals, workers wait and are woken.
        let least = if *orchestration == ALL[0] { 0.6 } else { 0.95 };
        assert!(share > least && share <= 1.0, "{orchestration:?}: {share}");
    }
}

/// Everything misses: the link alone says how many queries a second there are.
#[test]
fn what_misses_comes_as_fast_as_the_link_brings_it() {
    let trace = one_table(4096);
    let machine = Machine { link_gb_s: 1.0, ..machine("2x4x64K") };
    let workload = Workload { queries: 8000, ..Workload::default() };
    let outcome = run(&setup(&trace, machine, Orchestration::Policy(Policy::Stealing), workload));
    assert!(outcome.miss_ratio() > 0.95);
    let most = 2.0 * 1.0e9 / 4096.0 / outcome.miss_ratio();
    let share = outcome.throughput() / most;
    assert!(share > 0.97 && share < 1.01, "{share}");
}

/// Two tables that fill a cache each: on chiplets of their own they hit, taken in turn they miss.
#[test]
fn tables_on_chiplets_of_their_own_stay_in_the_cache() {
    let mut builder = Builder::new("two", true);
    for table in 0..2 {
        builder.table("t", Access::Gathered, 900 << 10).unwrap();
        for query in 0..225u64 {
            builder.query(table, false).unwrap();
            builder.task(None, 20_000, &[(query * 4096, 4096)]).unwrap();
        }
    }
    let trace = builder.finish().unwrap();
    let misses = ALL[..3].iter().map(|&orchestration| {
        // Half of what the cores can do: a table that needs more than a chiplet would be on both.
        let arrivals = Arrivals::Poisson { rate: 200_000.0 };
        let workload =
            Workload { arrivals, queries: 12_000, table_skew: 0.0, drift: 0.0, ..Workload::default() };
        let outcome = run(&setup(&trace, machine("2x4x1M"), orchestration, workload));
        outcome.miss_ratio()
    });
    let misses: Vec<f64> = misses.collect();
    assert!(misses[0] > 0.3 && misses[1] > 0.3 && misses[2] < 0.15, "{misses:?}");
}
