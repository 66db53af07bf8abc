//! From runs to the figures of document 004, as tables.

use super::plan::{Case, Kind, Plan, Version};
use super::statistics::Mean;
use crate::table;
use lanewise_scheduler::sim::machine::Shape;
use lanewise_scheduler::sim::trace::{Access, Trace};
use lanewise_scheduler::sim::{Outcome, quantile};
use std::io::{self, Write};

/// Tables that figures 7, 16 and 17 show.
const SHOWN: usize = 15;
/// Points of a curve.
const POINTS: usize = 100;

pub(super) struct Figure {
    pub(super) name: String,
    head: Vec<String>,
    rows: Vec<Vec<String>>,
    note: String,
}

impl Figure {
    pub(super) fn csv(&self) -> String {
        let lines = std::iter::once(&self.head).chain(&self.rows).map(|cells| {
            let quoted = cells.iter().map(|cell| match cell.contains([',', '"']) {
                true => format!("\"{}\"", cell.replace('"', "\"\"")),
                false => cell.clone(),
            });
            quoted.collect::<Vec<_>>().join(",") + "\n"
        });
        format!("# {}\n{}", self.note, lines.collect::<String>())
    }
}

/// What was asked.
pub(super) fn source(traces: &[(Kind, Trace)]) -> String {
    let each = traces.iter().map(|(kind, trace)| {
        let how = if trace.synthetic { "synthetic" } else { "recorded" };
        let (tables, queries) = (trace.tables.len(), trace.queries.len());
        let source: String = trace.source.split_whitespace().collect::<Vec<_>>().join(" ");
        format!("{}: {how}, {tables} tables, {queries} queries, {source}", kind.name())
    });
    each.collect::<Vec<_>>().join("; ")
}

/// Runs by what they are for.
struct Runs<'a> {
    plan: &'a Plan,
    outcomes: &'a [Outcome],
}

impl Runs<'_> {
    /// Seed by seed, with the number of cores.
    fn of(&self, case: &Case, kind: Kind, shape: Option<Shape>, version: Version) -> Vec<&Outcome> {
        let jobs = self.plan.jobs.iter().zip(self.outcomes);
        let wanted = jobs.filter(|(job, _)| {
            job.case == *case
                && job.kind == kind
                && job.version == version
                && shape.is_none_or(|shape| job.machine.shape == shape)
        });
        wanted.map(|(_, outcome)| outcome).collect()
    }

    /// Throughput over that of `base`, seed by seed.
    fn ratios(of: &[&Outcome], base: &[&Outcome]) -> Mean {
        let ratios = of.iter().zip(base).map(|(of, base)| of.throughput() / base.throughput());
        Mean::of(&ratios.collect::<Vec<_>>())
    }

    fn steps(&self, kind: Kind, full: Shape) -> Vec<Shape> {
        let of = self.plan.jobs.iter().filter(|job| {
            let shape = job.machine.shape;
            job.case == Case::Scaling
                && job.kind == kind
                && Shape { chiplets: full.chiplets, ..shape } == full
        });
        let mut steps: Vec<Shape> = of.map(|job| job.machine.shape).collect();
        steps.dedup();
        steps
    }
}

/// All figures of the plan.
pub(super) fn of(plan: &Plan, traces: &[(Kind, Trace)], outcomes: &[Outcome]) -> Vec<Figure> {
    let runs = Runs { plan, outcomes };
    let note = format!("simulated; {}", source(traces));
    let mut figures = Vec::new();
    let mut add = |name: &str, head: &[&str], rows: Vec<Vec<String>>| {
        let head = head.iter().map(|&cell| cell.to_owned()).collect();
        figures.push(Figure { name: name.to_owned(), head, rows, note: note.clone() });
    };
    for name in &plan.figures {
        let of_kinds = |make: &dyn Fn(Kind, &Trace) -> Vec<Vec<String>>| {
            traces.iter().flat_map(|(kind, trace)| make(*kind, trace)).collect::<Vec<_>>()
        };
        let scaling_head = ["machine", "kind", "version", "chiplets", "ratio", "half", "bound"];
        match name.as_str() {
            "5" => add("figure-05", &scaling_head, of_kinds(&|kind, _| scaling(&runs, kind, &[Version::V0]))),
            "14" => add("figure-14", &scaling_head, scaling(&runs, Kind::Hnsw, &Version::ALL)),
            "15" => add("figure-15", &scaling_head, scaling(&runs, Kind::Ivf, &Version::ALL)),
            "6" => {
                add(
                    "figure-06-cdf",
                    &["kind", "table", "share_of_parts", "share_of_accesses"],
                    of_kinds(&cdf),
                );
                add("figure-06-traffic", &["kind", "rank", "share", "megabytes"], of_kinds(&traffic));
            }
            "7" => add(
                "figure-07",
                &["kind", "table", "window", "share"],
                of_kinds(&|kind, _| drift(&runs, kind)),
            ),
            "8" => add("figure-08", &["kind", "rank", "share", "relative_time"], of_kinds(&times)),
            "16" | "17" => {
                let q = if name == "16" { 0.5 } else { 0.999 };
                let rows = of_kinds(&|kind, trace| latencies(&runs, kind, trace, q));
                add(
                    &format!("figure-{name}"),
                    &["kind", "table", "version", "ratio", "half", "queries"],
                    rows,
                );
            }
            "18" => add(
                "figure-18",
                &["kind", "version", "chiplet", "miss_ratio", "half"],
                of_kinds(&|kind, _| misses(&runs, kind)),
            ),
            "19" => add(
                "figure-19",
                &["kind", "version", "measure", "value", "half"],
                of_kinds(&|kind, _| stalls(&runs, kind)),
            ),
            "20" => add(
                "figure-20",
                &["kind", "version", "share_of_run", "ratio"],
                of_kinds(&|kind, _| serving(&runs, kind)),
            ),
            _ => add(
                "sweep",
                &["kind", "cell", "v2_over_v1", "half_v1", "v2_over_v0", "half_v0", "loses"],
                of_kinds(&|kind, _| sweep(&runs, kind)),
            ),
        }
    }
    figures
}

/// Empty where it is not known: the interval of a single run.
fn number(value: f64) -> String {
    if value.is_nan() { String::new() } else { format!("{value:.5}") }
}

/// Throughput over that of V0 on one chiplet.
fn scaling(runs: &Runs, kind: Kind, versions: &[Version]) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for machine in &runs.plan.machines {
        let steps = runs.steps(kind, machine.shape);
        let Some(&one) = steps.first() else { continue };
        let base = runs.of(&Case::Scaling, kind, Some(one), Version::V0);
        for &version in versions {
            for &shape in &steps {
                let of = runs.of(&Case::Scaling, kind, Some(shape), version);
                let ratio = Runs::ratios(&of, &base);
                let cores = shape.chiplets * shape.cores;
                let bounds = of.iter().zip(&base).map(|(of, base)| of.bound(cores) / base.throughput());
                let bound = Mean::of(&bounds.collect::<Vec<_>>()).mean;
                let mut row = vec![machine.shape.to_string(), kind.name().into(), version.name().into()];
                row.push(shape.chiplets.to_string());
                row.extend([ratio.mean, ratio.half, bound].map(number));
                rows.push(row);
            }
        }
    }
    rows
}

/// Numbers of accesses, of nodes (rows and links) or of lists, of one table.
fn accesses(trace: &Trace, table: u32) -> Vec<u64> {
    let mut counts = std::collections::HashMap::new();
    for query in trace.queries.iter().filter(|query| query.table == table) {
        for task in &trace.tasks[query.tasks.start as usize..query.tasks.end as usize] {
            match trace.tables[table as usize].access {
                Access::Gathered => trace.spans[task.spans.clone()]
                    .iter()
                    .for_each(|span| *counts.entry(u64::from(span.first)).or_insert(0) += 1),
                Access::Streamed => *counts.entry(task.id.0).or_insert(0) += 1,
            }
        }
    }
    let mut counts: Vec<u64> = counts.into_values().collect();
    counts.sort_unstable_by(|a, b| b.cmp(a));
    counts
}

/// Three tables: how much of all accesses the most accessed parts have, of those that are accessed at all.
fn cdf(kind: Kind, trace: &Trace) -> Vec<Vec<String>> {
    let tables = trace.tables.len();
    let mut rows = Vec::new();
    for table in [0, tables / 3, 2 * tables / 3] {
        let counts = accesses(trace, table as u32);
        let all: u64 = counts.iter().sum();
        for point in 0..=POINTS {
            let parts = counts.len() * point / POINTS;
            let share = counts[..parts].iter().sum::<u64>() as f64 / all.max(1) as f64;
            let place = point as f64 / POINTS as f64;
            let name = trace.tables[table].name.clone();
            rows.push(vec![kind.name().into(), name, number(place), number(share)]);
        }
    }
    rows
}

/// Bytes by table (graphs) or by list of the table that is asked most.
fn traffic(kind: Kind, trace: &Trace) -> Vec<Vec<String>> {
    ranked(kind, of_parts(trace, |task| (1, task.lines as f64 * 64.0 / 1e6)), false)
}

/// Computing time of a search by table, or of a scan by list of the table that is asked most, over the median.
fn times(kind: Kind, trace: &Trace) -> Vec<Vec<String>> {
    ranked(kind, of_parts(trace, |task| (1, task.compute_ns as f64)), true)
}

type OfTask = fn(&lanewise_scheduler::sim::trace::Task) -> (u64, f64);

/// For each table, or each list of the first table: number of tasks, and a sum.
fn of_parts(trace: &Trace, of: OfTask) -> Vec<(u64, f64)> {
    let mut sums = std::collections::BTreeMap::new();
    for query in &trace.queries {
        let lists = trace.tables[query.table as usize].access == Access::Streamed;
        if lists && query.table != 0 {
            continue;
        }
        let skip = u32::from(query.leads);
        for task in &trace.tasks[(query.tasks.start + skip) as usize..query.tasks.end as usize] {
            let (count, value) = of(task);
            let sum = sums.entry(task.id).or_insert((0, 0.0));
            *sum = (sum.0 + count, sum.1 + value);
        }
    }
    sums.into_values().collect()
}

fn ranked(kind: Kind, parts: Vec<(u64, f64)>, mean: bool) -> Vec<Vec<String>> {
    let value = |&(count, sum): &(u64, f64)| if mean { sum / count as f64 } else { sum };
    let mut values: Vec<f64> = parts.iter().map(value).collect();
    values.sort_unstable_by(|a, b| b.total_cmp(a));
    let unit = if mean { values.get(values.len() / 2).copied().unwrap_or(1.0).max(1e-9) } else { 1.0 };
    let count = values.len();
    let shown = (0..count).filter(|rank| count <= 4 * POINTS || rank % (count / (4 * POINTS)) == 0);
    let row = |rank: usize| {
        let place = (rank as f64 + 1.0) / count as f64;
        vec![kind.name().into(), rank.to_string(), number(place), number(values[rank] / unit)]
    };
    shown.map(row).collect()
}

/// A version's runs on the first machine as a whole.
fn whole<'a>(runs: &Runs<'a>, kind: Kind, version: Version) -> Vec<&'a Outcome> {
    let plan: &'a Plan = runs.plan;
    let runs = Runs { plan, outcomes: runs.outcomes };
    let shape = plan.machines.first().map(|machine| machine.shape);
    let jobs = plan.jobs.iter().zip(runs.outcomes);
    jobs.filter(|(job, _)| {
        job.case == Case::Scaling
            && job.kind == kind
            && job.version == version
            && Some(job.machine.shape) == shape
    })
    .map(|(_, outcome)| outcome)
    .collect()
}

/// Each table's share of the lines that are touched, window by window.
fn drift(runs: &Runs, kind: Kind) -> Vec<Vec<String>> {
    let outcomes = runs.of(&Case::Serving, kind, None, Version::V2);
    let Some(outcome) = outcomes.first() else { return Vec::new() };
    let mut rows = Vec::new();
    for (window, lines) in outcome.windows.iter().enumerate() {
        let all: u64 = lines.iter().sum();
        for (table, &lines) in lines.iter().enumerate().take(SHOWN) {
            let share = lines as f64 / all.max(1) as f64;
            rows.push(vec![kind.name().into(), table.to_string(), window.to_string(), number(share)]);
        }
    }
    rows
}

/// A quantile of each shown table's latencies over V0's median of that table.
fn latencies(runs: &Runs, kind: Kind, trace: &Trace, q: f64) -> Vec<Vec<String>> {
    let tables = trace.tables.len();
    let shown = (0..tables).step_by((tables / SHOWN).max(1)).take(SHOWN);
    let base = whole(runs, kind, Version::V0);
    let mut rows = Vec::new();
    for table in shown {
        for version in Version::ALL {
            let (mut ratios, mut queries) = (Vec::new(), 0);
            for (of, base) in whole(runs, kind, version).iter().zip(&base) {
                let of = of.latencies_ns(Some(table as u32));
                queries += of.len();
                let median = quantile(&base.latencies_ns(Some(table as u32)), 0.5);
                if let (Some(value), Some(median)) = (quantile(&of, q), median) {
                    ratios.push(value / median);
                }
            }
            if !ratios.is_empty() {
                let Mean { mean, half } = Mean::of(&ratios);
                let mut row =
                    vec![kind.name().into(), trace.tables[table].name.clone(), version.name().into()];
                row.extend([number(mean), number(half), queries.to_string()]);
                rows.push(row);
            }
        }
    }
    rows
}

fn misses(runs: &Runs, kind: Kind) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for version in Version::ALL {
        let of = whole(runs, kind, version);
        let chiplets = of.first().map_or(0, |outcome| outcome.traffic.len());
        for chiplet in 0..chiplets {
            let ratio = |outcome: &&Outcome| {
                let traffic = outcome.traffic[chiplet];
                traffic.missed as f64 / traffic.lines.max(1) as f64
            };
            let Mean { mean, half } = Mean::of(&of.iter().map(ratio).collect::<Vec<_>>());
            let mut row = vec![kind.name().into(), version.name().into(), chiplet.to_string()];
            row.extend([number(mean), number(half)]);
            rows.push(row);
        }
    }
    rows
}

fn stalls(runs: &Runs, kind: Kind) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for version in Version::ALL {
        let of = whole(runs, kind, version);
        let mut add = |measure: &str, values: Vec<f64>| {
            if !values.is_empty() {
                let Mean { mean, half } = Mean::of(&values);
                let mut row = vec![kind.name().into(), version.name().into(), measure.into()];
                row.extend([number(mean), number(half)]);
                rows.push(row);
            }
        };
        add("stall share", of.iter().map(|outcome| outcome.stall_share()).collect());
        add("cross-chiplet share of steals", of.iter().filter_map(|outcome| outcome.far_share()).collect());
        add(
            "cross-chiplet steals by task",
            of.iter().map(|outcome| outcome.steals_far as f64 / outcome.tasks.max(1) as f64).collect(),
        );
    }
    rows
}

/// Latency over the run, over V1's mean; and when the mapping changed (as version "remap").
fn serving(runs: &Runs, kind: Kind) -> Vec<Vec<String>> {
    let of = |version| runs.of(&Case::Serving, kind, None, version).first().copied();
    let (Some(v1), Some(v2)) = (of(Version::V1), of(Version::V2)) else { return Vec::new() };
    let latencies = v1.latencies_ns(None);
    let unit = latencies.iter().sum::<f64>() / latencies.len().max(1) as f64;
    let mut rows = Vec::new();
    for (version, outcome) in [(Version::V1, v1), (Version::V2, v2)] {
        let times = outcome.answered.iter().map(|answered| answered.at_ns);
        let (from, to) = times.fold((f64::INFINITY, 0.0f64), |(a, b), at| (a.min(at), b.max(at)));
        let place = |at: f64| (at - from) / (to - from).max(1.0);
        let mut bins = [(0.0, 0u32); POINTS];
        for answered in &outcome.answered {
            let bin = &mut bins[((place(answered.at_ns) * POINTS as f64) as usize).min(POINTS - 1)];
            *bin = (bin.0 + answered.latency_ns, bin.1 + 1);
        }
        for (i, (sum, count)) in bins.into_iter().enumerate().filter(|(_, (_, count))| *count > 0) {
            let at = (i as f64 + 0.5) / POINTS as f64;
            let ratio = sum / f64::from(count) / unit;
            rows.push(vec![kind.name().into(), version.name().into(), number(at), number(ratio)]);
        }
        for &at in outcome.remaps_ns.iter().filter(|&&at| at >= from) {
            rows.push(vec![kind.name().into(), "remap".into(), number(place(at)), String::new()]);
        }
    }
    rows
}

/// The sweep's cells; V2 loses where it is below the better of the others by more than the interval.
fn sweep(runs: &Runs, kind: Kind) -> Vec<Vec<String>> {
    let mut cells: Vec<&Case> =
        runs.plan.jobs.iter().filter(|job| job.kind == kind).map(|job| &job.case).collect();
    cells.retain(|case| matches!(case, Case::Cell(_)));
    cells.dedup();
    let mut rows = Vec::new();
    for case in cells {
        let Case::Cell(name) = case else { continue };
        let of = |version| runs.of(case, kind, None, version);
        let over = |version| Runs::ratios(&of(Version::V2), &of(version));
        let (v1, v0) = (over(Version::V1), over(Version::V0));
        let verdict = |over: Mean| match over {
            Mean { mean, half } if mean - half >= 1.0 => "no",
            Mean { mean, half } if mean + half < 1.0 => "yes",
            _ => "unclear",
        };
        let worst = ["yes", "unclear", "no"].into_iter().find(|&word| [v1, v0].map(verdict).contains(&word));
        let mut row = vec![kind.name().into(), name.clone()];
        row.extend([v1.mean, v1.half, v0.mean, v0.half].map(number));
        row.push(worst.expect("it is one of them").into());
        rows.push(row);
    }
    rows
}

/// The summary that people read first.
pub(super) fn print(out: &mut dyn Write, plan: &Plan, outcomes: &[Outcome]) -> io::Result<()> {
    let runs = Runs { plan, outcomes };
    let mut rows = Vec::new();
    for machine in &plan.machines {
        for kind in Kind::ALL {
            let of = |version| runs.of(&Case::Scaling, kind, Some(machine.shape), version);
            let all = Version::ALL.map(of);
            if all[0].is_empty() {
                continue;
            }
            let one = runs.steps(kind, machine.shape)[0];
            let base = runs.of(&Case::Scaling, kind, Some(one), Version::V0);
            for (version, of) in Version::ALL.into_iter().zip(&all) {
                let mean = |value: &dyn Fn(&Outcome) -> f64| {
                    Mean::of(&of.iter().map(|&o| value(o)).collect::<Vec<_>>())
                };
                let far: Vec<f64> = of.iter().filter_map(|outcome| outcome.far_share()).collect();
                let cores = machine.shape.chiplets * machine.shape.cores;
                rows.push(vec![
                    format!("{} {} {}", machine.shape, kind.name(), version.name()),
                    Runs::ratios(of, &base).to_string(),
                    Runs::ratios(of, &all[1]).to_string(),
                    mean(&|outcome| outcome.throughput() / outcome.bound(cores)).to_string(),
                    mean(&Outcome::miss_ratio).to_string(),
                    mean(&Outcome::stall_share).to_string(),
                    if far.is_empty() { "—".into() } else { Mean::of(&far).to_string() },
                ]);
            }
        }
    }
    if rows.is_empty() {
        return Ok(());
    }
    let head = [
        "simulated",
        "throughput over V0 on one chiplet",
        "over V1",
        "share of the bound",
        "miss ratio",
        "stall share",
        "cross-chiplet steals",
    ];
    table::write(out, &head.map(str::to_owned), &rows)
}
