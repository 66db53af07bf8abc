//! Which runs there are: for the figures, and for the sweep over what the model assumes.

use lanewise_scheduler::sim::cache::Replacement;
use lanewise_scheduler::sim::machine::{Machine, Shape};
use lanewise_scheduler::sim::trace::Trace;
use lanewise_scheduler::sim::{Arrivals, Orchestration, Setup, Workload};
use lanewise_scheduler::{PATIENCE, Policy};

/// Names that `--figures` takes.
pub(super) const FIGURES: [&str; 12] =
    ["5", "6", "7", "8", "14", "15", "16", "17", "18", "19", "20", "sweep"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Hnsw,
    Ivf,
}

impl Kind {
    pub(super) const ALL: [Kind; 2] = [Kind::Hnsw, Kind::Ivf];

    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::Hnsw => "hnsw",
            Kind::Ivf => "ivf",
        }
    }

    /// Tables in document 004.
    pub(super) fn tables(self) -> u32 {
        match self {
            Kind::Hnsw => 60,
            Kind::Ivf => 15,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Version {
    V0,
    V1,
    V2,
}

impl Version {
    pub(super) const ALL: [Version; 3] = [Version::V0, Version::V1, Version::V2];

    pub(super) fn name(self) -> &'static str {
        ["V0", "V1", "V2"][self as usize]
    }

    fn orchestration(self, kind: Kind) -> Orchestration {
        match (self, kind) {
            (Version::V0, Kind::Hnsw) => Orchestration::Policy(Policy::RoundRobin),
            (Version::V0, Kind::Ivf) => Orchestration::ParallelFor,
            (Version::V1, _) => Orchestration::Policy(Policy::Stealing),
            (Version::V2, _) => Orchestration::Policy(Policy::Chiplet),
        }
    }
}

/// What a run is for.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Case {
    /// Figures 5 and 14 to 19.
    Scaling,
    /// Figure 20.
    Serving,
    /// One cell of the sweep: what differs.
    Cell(String),
}

#[derive(Clone, Debug)]
pub(super) struct Job {
    pub(super) case: Case,
    pub(super) kind: Kind,
    pub(super) version: Version,
    pub(super) machine: Machine,
    pub(super) workload: Workload,
}

impl Job {
    pub(super) fn setup<'a>(&self, traces: &'a [(Kind, Trace)]) -> Setup<'a> {
        let trace =
            traces.iter().find(|(kind, _)| *kind == self.kind).expect("jobs are of kinds that are there");
        Setup {
            machine: self.machine.clone(),
            orchestration: self.version.orchestration(self.kind),
            patience_ns: PATIENCE.as_nanos() as u64,
            workload: self.workload.clone(),
            trace: &trace.1,
        }
    }
}

pub(super) struct Plan {
    pub(super) machines: Vec<Machine>,
    pub(super) figures: Vec<String>,
    pub(super) jobs: Vec<Job>,
}

impl Plan {
    pub(super) fn new(
        machines: Vec<Machine>,
        traces: &[(Kind, Trace)],
        seeds: u64,
        quick: bool,
        figures: &[String],
    ) -> Self {
        let wants = |name: &str| figures.is_empty() || figures.iter().any(|figure| figure == name);
        let mut plan = Plan {
            figures: FIGURES.iter().filter(|name| wants(name)).map(|&name| name.to_owned()).collect(),
            jobs: Vec::new(),
            machines,
        };
        // Queries for each core: enough to fill all caches before the first quarter has passed; half as many, as the sweep
        // has, must be more than are outstanding at once.
        let each = if quick { 16 } else { 125 };
        let seeds = if quick { seeds.min(2) } else { seeds };
        for &(kind, _) in traces {
            for machine in plan.machines.clone() {
                if ["5", "14", "15", "16", "17", "18", "19"].iter().any(|name| wants(name)) {
                    for chiplets in steps(machine.shape.chiplets) {
                        plan.add(&Case::Scaling, kind, &machine.with_chiplets(chiplets), each, seeds, |_| ());
                    }
                }
            }
            let Some(machine) = plan.machines.first().cloned() else { continue };
            if wants("20") {
                let bound = bound(&machine, kind, traces);
                plan.add(&Case::Serving, kind, &machine, 3 * each, 2.min(seeds), |workload| {
                    workload.arrivals = Arrivals::Bursty { rate: bound };
                    workload.windows = 30;
                });
            }
            if wants("sweep") {
                for (name, machine, skew) in cells(&machine) {
                    plan.add(&Case::Cell(name), kind, &machine, each / 2, seeds, |workload| {
                        workload.table_skew = skew.unwrap_or(workload.table_skew);
                    });
                }
            }
        }
        plan
    }

    fn add(
        &mut self,
        case: &Case,
        kind: Kind,
        machine: &Machine,
        each: u64,
        seeds: u64,
        change: impl Fn(&mut Workload),
    ) {
        let cores = machine.shape.chiplets * machine.shape.cores;
        for seed in 0..seeds {
            // One query at a time cannot keep up with what others are asked in figure 20: as there, two are shown.
            for version in Version::ALL.into_iter().skip(usize::from(*case == Case::Serving)) {
                let mut workload = Workload { queries: each * cores as u64, seed, ..Workload::default() };
                change(&mut workload);
                let (case, machine) = (case.clone(), machine.clone());
                self.jobs.push(Job { case, kind, version, machine, workload });
            }
        }
    }
}

/// 1, 2, 4, 8, 12, … chiplets.
fn steps(most: usize) -> Vec<usize> {
    let steps = [1, 2].into_iter().chain((4..most).step_by(4)).filter(|&step| step < most);
    steps.chain([most]).collect()
}

/// A rate that keeps an eighth of the cores busy if everything hits: with what misses, about half.
fn bound(machine: &Machine, kind: Kind, traces: &[(Kind, Trace)]) -> f64 {
    let trace = &traces.iter().find(|trace| trace.0 == kind).expect("of a kind that is there").1;
    let compute_ns: f64 = trace.tasks.iter().map(|task| task.compute_ns as f64).sum();
    let cores = (machine.shape.chiplets * machine.shape.cores) as f64;
    0.12 * cores * 1e9 * trace.queries.len() as f64 / compute_ns
}

/// One thing at a time is different from `machine`; the last says how tables are asked.
fn cells(machine: &Machine) -> Vec<(String, Machine, Option<f64>)> {
    let mut cells = vec![("as it is".to_owned(), machine.clone(), None)];
    for factor in [0.5, 1.5] {
        let cache_bytes = (machine.shape.cache_bytes as f64 * factor) as u64;
        let shape = Shape { cache_bytes, ..machine.shape };
        cells.push((format!("cache × {factor}"), Machine { shape, ..machine.clone() }, None));
        let slower = Machine { memory_ns: machine.memory_ns * factor, ..machine.clone() };
        cells.push((format!("latency × {factor}"), slower, None));
        let link = Machine { link_gb_s: machine.link_gb_s * factor, ..machine.clone() };
        cells.push((format!("link × {factor}"), link, None));
        let memory = Machine { memory_gb_s: machine.memory_gb_s * factor, ..machine.clone() };
        cells.push((format!("memory × {factor}"), memory, None));
    }
    for replacement in [Replacement::Random, Replacement::Srrip] {
        cells.push((format!("{replacement} replacement"), Machine { replacement, ..machine.clone() }, None));
    }
    for skew in [0.0, 0.4, 0.8, 1.2] {
        cells.push((format!("skew {skew}"), machine.clone(), Some(skew)));
    }
    for chiplets in [2, 4, 8, 16] {
        cells.push((format!("{chiplets} chiplets"), machine.with_chiplets(chiplets), None));
    }
    cells
}
