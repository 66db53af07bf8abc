//! `lanewise sim`: the policies on simulated machines, and the figures of document 004 as CSV.
//!
//! Everything it prints and writes is simulated and says so; throughput is given as a ratio, never in queries a second.

mod figures;
mod plan;
mod statistics;

use crate::arguments::ThreadsArgument;
use crate::failure::Failure;
use crate::{progress, say};
use lanewise_engine::index::Executor;
use lanewise_scheduler::sim::machine::{Machine, Shape};
use lanewise_scheduler::sim::synthetic::Synthetic;
use lanewise_scheduler::sim::trace::{self, Access, Builder, Trace};
use lanewise_scheduler::sim::{Outcome, run};
use plan::{Job, Kind, Plan};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Simulate which policy serves how much on machines with many chiplets
///
/// Tasks are dispatched and stolen by the code that real workers run; caches, links and memory are simulated, after
/// published numbers. Without --traces, tables and queries are made up after document 004 and figures say "synthetic".
#[derive(clap::Args)]
pub(crate) struct Sim {
    /// A machine as CHIPLETSxCORESxCACHE; can be given several times [default: 12x8x32M and 12x4x16M]
    #[arg(long, value_name = "SHAPE")]
    machine: Vec<Shape>,
    /// Recorded traces: of graphs, of lists, or of each
    #[arg(long, value_name = "FILE", num_args = 1..)]
    traces: Vec<PathBuf>,
    /// Runs of each case, of which means and 95 % intervals are given
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u16).range(2..=1000))]
    seeds: u16,
    /// Folder for the CSV files, made if need be
    #[arg(long, value_name = "DIR", default_value = "sim-out")]
    out: PathBuf,
    /// Only these: numbers of document 004's figures, or sweep
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = plan::FIGURES)]
    figures: Vec<String>,
    /// Small runs, for a first look and for tests
    #[arg(long)]
    quick: bool,
    #[command(flatten)]
    threads: ThreadsArgument,
}

impl Sim {
    pub(crate) fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let traces = self.traces()?;
        // Before hours of work, not after.
        std::fs::create_dir_all(&self.out).map_err(|error| failed(&self.out, &error))?;
        let mut shapes = self.machine.clone();
        if shapes.is_empty() {
            shapes = ["12x8x32M", "12x4x16M"].map(|shape| shape.parse().expect("a machine")).to_vec();
        }
        let machines = shapes.into_iter().map(Machine::of).collect();
        let plan = Plan::new(machines, &traces, self.seeds.into(), self.quick, &self.figures);
        let outcomes = self.outcomes(&plan.jobs, &traces);
        let figures = figures::of(&plan, &traces, &outcomes);
        for figure in &figures {
            let path = self.out.join(format!("{}.csv", figure.name));
            std::fs::write(&path, figure.csv()).map_err(|error| failed(&path, &error))?;
        }
        writeln!(out, "simulated ({})\n", figures::source(&traces))?;
        figures::print(out, &plan, &outcomes)?;
        say(format_args!("note: {} CSV files in {}", figures.len(), self.out.display()));
        Ok(())
    }

    /// What is asked: of each kind that is there, its trace.
    fn traces(&self) -> Result<Vec<(Kind, Trace)>, Failure> {
        let mut traces = Vec::new();
        if self.traces.is_empty() {
            say("note: no --traces: tables and queries are made up");
            for kind in Kind::ALL {
                let mut builder = Builder::new("made up after document 004", true);
                let made = Synthetic { tables: kind.tables(), ..Synthetic::default() };
                let made = if self.quick { Synthetic { tables: 8, queries: 40, ..made } } else { made };
                match kind {
                    Kind::Hnsw => made.graphs(&mut builder),
                    Kind::Ivf => made.lists(&mut builder),
                }
                .expect("memory takes it");
                traces.push((kind, builder.finish().expect("it is small enough")));
            }
            return Ok(traces);
        }
        let read = |path: &PathBuf| std::fs::read(path).map_err(|error| failed(path, &error));
        let files = self.traces.iter().map(read).collect::<Result<Vec<_>, _>>()?;
        let mut of_kind: [Vec<usize>; 2] = Default::default();
        for (i, (bytes, path)) in files.iter().zip(&self.traces).enumerate() {
            let trace = trace::read([&bytes[..]]).map_err(|(_, error)| failed(path, &error))?;
            let mut accesses = trace.queries.iter().map(|query| trace.tables[query.table as usize].access);
            let Some(first) = accesses.next() else {
                return Err(failed(path, &"it has no queries; record some"));
            };
            if accesses.any(|access| access != first) {
                return Err(failed(path, &"it has graphs and lists; record them into one file each"));
            }
            of_kind[usize::from(first == Access::Streamed)].push(i);
        }
        for (kind, numbers) in Kind::ALL.into_iter().zip(of_kind).filter(|(_, numbers)| !numbers.is_empty()) {
            let trace = trace::read(numbers.iter().map(|&i| &files[i][..]));
            traces.push((kind, trace.map_err(|(i, error)| failed(&self.traces[numbers[i]], &error))?));
        }
        Ok(traces)
    }

    fn outcomes(&self, jobs: &[Job], traces: &[(Kind, Trace)]) -> Vec<Outcome> {
        let bar = progress::bar("simulating", jobs.len());
        let slots: Vec<OnceLock<Outcome>> = jobs.iter().map(|_| OnceLock::new()).collect();
        // The long ones first, so that no thread is left alone with one.
        let mut order: Vec<usize> = (0..jobs.len()).collect();
        order.sort_by_key(|&i| std::cmp::Reverse(jobs[i].workload.queries));
        self.threads.threads().run(jobs.len(), &|_, i| {
            let job = &jobs[order[i]];
            let set = slots[order[i]].set(run(&job.setup(traces)));
            debug_assert!(set.is_ok(), "each job runs once");
            bar.inc(1);
        });
        bar.finish_and_clear();
        slots.into_iter().map(|slot| slot.into_inner().expect("each job ran")).collect()
    }
}

fn failed(path: &Path, error: &dyn std::fmt::Display) -> Failure {
    Failure::Failed(format!("{}: {error}", path.display()))
}
