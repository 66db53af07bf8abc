//! `lanewise bench`: recall against speed, memory and build time, on the user's own vectors.

use crate::arguments::{IndexArguments, ThreadsArgument, ef_range, nprobe_range};
use crate::failure::Failure;
use crate::{build, input, numbers, progress, say, table};
use lanewise_bench::convert::VectorSet;
use lanewise_bench::generate;
use lanewise_bench::measure::{Figures, Plan, figures, steps};
use lanewise_bench::truth::Truth;
use lanewise_engine::Threads;
use lanewise_engine::index::{Executor, Index, Kind, Vectors};
use lanewise_engine::topology::Machine;
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

/// Neighbours whose recall is measured.
pub(crate) const K: usize = 10;

/// Queries held out unless told otherwise, where there are enough vectors.
const HELD_OUT: usize = 1_000;

/// Measure an index of a file's vectors: recall, queries a second, latency, memory, build time
#[derive(clap::Args)]
pub(crate) struct Bench {
    /// Vectors: .npy, .fvecs or .bvecs
    vectors: PathBuf,
    /// Queries, of the same type [default: vectors held out]
    #[arg(long, value_name = "FILE")]
    queries: Option<PathBuf>,
    /// Vectors to hold out as queries, drawn by the seed [default: a tenth, at most 1000]
    #[arg(long, value_name = "N", conflicts_with = "queries")]
    held_out: Option<usize>,
    /// Ids of the queries' exact neighbours, .ivecs or .npy [default: computed]
    #[arg(long, value_name = "FILE", requires = "queries")]
    truth: Option<PathBuf>,
    /// Measure this saved index of all the vectors instead of building one
    #[arg(
        long = "index",
        value_name = "INDEX",
        requires = "queries",
        conflicts_with_all = ["metric", "dtype", "kind", "code", "m", "ef_construction", "nlist", "seed"]
    )]
    saved: Option<PathBuf>,
    /// Candidates that a search keeps, one line of the table for each
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = ef_range(),
          default_value = "10,20,40,80,160,320")]
    ef_search: Vec<u32>,
    /// IVF: lists that a search scans, one line of the table for each
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = nprobe_range(),
          default_value = "1,2,4,8,16,32,64,128")]
    nprobe: Vec<u32>,
    /// Rounds whose median counts
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=100), default_value = "5")]
    rounds: u16,
    #[command(flatten)]
    index: IndexArguments,
    #[command(flatten)]
    threads: ThreadsArgument,
}

impl Bench {
    pub(crate) fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let threads = self.threads.threads();
        let saved = self.saved.as_deref().map(input::index).transpose()?;
        let (mut set, metric, dtype) = input::vectors(&self.vectors, |elements| match &saved {
            Some(index) => (index.params().metric, index.params().dtype),
            None => self.index.space(elements),
        })?;
        if let Some(index) = &saved {
            self.check_saved(index, &set)?;
        }
        let queries = match &self.queries {
            Some(path) => input::queries(path, set.dim, metric, dtype)?,
            None => self.hold_out(&mut set)?,
        };
        let params =
            saved.as_ref().map_or_else(|| self.index.params(set.dim, metric, dtype), |index| *index.params());
        let truth = match &self.truth {
            Some(path) => Truth::read(path)?,
            None => {
                say(format_args!(
                    "finding the exact neighbours of {} queries",
                    numbers::count(queries.len())
                ));
                Truth::compute(params, set.as_vectors(), queries.as_vectors(), K, threads)?
            }
        };
        // Before hours go into an index that cannot be measured.
        truth.fits(queries.len(), K.min(set.len()))?;
        let (index, time) = match saved {
            Some(index) => (index, None),
            None => {
                let (index, time) = build::build(params, set.as_vectors(), threads)?;
                (index, Some(time))
            }
        };
        drop(set);
        writeln!(
            out,
            "{}: {} vectors of {} dimensions, {} queries\n",
            self.vectors.display(),
            numbers::count(index.len()),
            params.dim,
            numbers::count(queries.len())
        )?;
        describe(out, &index, time, threads)?;
        let settings = if params.kind == Kind::Ivf { &self.nprobe } else { &self.ef_search };
        let mut efforts: Vec<usize> = settings.iter().map(|&effort| effort as usize).collect();
        if params.kind == Kind::Flat {
            // An exact search has no candidates to choose.
            efforts.truncate(1);
        }
        measure(out, &index, queries.as_vectors(), &truth, &efforts, threads, self.rounds.into())
    }

    /// That the saved index is one of these vectors, as far as can be seen.
    fn check_saved(&self, index: &Index, set: &VectorSet) -> Result<(), Failure> {
        let wrong = |what: String| Err(Failure::Failed(format!("--index: {what}")));
        if index.stats().id_bytes > 0 {
            return wrong(
                "its vectors have ids of their own, which cannot be compared: build it without --ids".into(),
            );
        }
        if (index.params().dim, index.len()) != (set.dim, set.len()) {
            return wrong(format!(
                "it holds {} vectors of dimension {}, the file {} of {}: give the file that it was built of",
                index.len(),
                index.params().dim,
                set.len(),
                set.dim
            ));
        }
        Ok(())
    }

    fn hold_out(&self, set: &mut VectorSet) -> Result<VectorSet, Failure> {
        let len = set.len();
        let count = self.held_out.unwrap_or_else(|| (len / 10).clamp(1, HELD_OUT));
        if count == 0 || count >= len {
            let what =
                format!("{count} of {len} vectors as queries: at least one must be a query and one be left");
            return Err(Failure::Usage(format!("--held-out: {what}; give --queries")));
        }
        Ok(set.take_out(&generate::sample(len, count, self.index.seed)))
    }
}

/// Writes what was measured on, and what the index takes.
pub(crate) fn describe(
    out: &mut dyn Write,
    index: &Index,
    build: Option<Duration>,
    threads: Threads,
) -> io::Result<()> {
    let params = index.params();
    let model = Machine::detect().cpu_model.unwrap_or_else(|| "unknown CPU".to_owned());
    let (raw, per_vector) = numbers::bytes_per_vector(index);
    let mut rows = vec![
        ["machine", &format!("{model}, threads {}, isa {}", threads.workers(), index.level())]
            .map(str::to_owned),
        ["index", &format!("{} {} {}", params.kind.name(), params.dtype.name(), params.metric.name())]
            .map(str::to_owned),
    ];
    let mut row = |name: &str, value: String| rows.push([name.to_owned(), value]);
    if params.kind == Kind::Hnsw {
        row("m, ef_construction, seed", format!("{}, {}, {}", params.m, params.ef_construction, params.seed));
    }
    if params.kind == Kind::Ivf {
        row("lists, seed", format!("{}, {}", index.stats().lists, params.seed));
    }
    row("bytes/vector", format!("{per_vector:.0}, of which the vector itself {raw}"));
    if let Some(time) = build {
        row("build", format!("{} s, {} vectors/s", numbers::seconds(time), numbers::rate(index.len(), time)));
    }
    let rows: Vec<Vec<String>> = rows.into_iter().map(Vec::from).collect();
    table::write(out, &["".to_owned(), "".to_owned()], &rows)?;
    writeln!(out)
}

/// Measures and writes the table of figures.
pub(crate) fn measure(
    out: &mut dyn Write,
    index: &Index,
    queries: Vectors<'_>,
    truth: &Truth,
    efforts: &[usize],
    threads: Threads,
    rounds: usize,
) -> Result<(), Failure> {
    let plan = Plan { k: K, efforts, threads, rounds };
    let bar = progress::bar("measuring", steps(plan));
    let measured = figures(index, queries, truth, plan, &mut || bar.inc(1));
    bar.finish_and_clear();
    let measured = measured?;
    let head = [
        if index.params().kind == Kind::Ivf { "nprobe" } else { "ef_search" }.to_owned(),
        format!("recall@{}", K.min(index.len())),
        "queries/s, 1 thread".to_owned(),
        format!("queries/s, threads {}", threads.workers()),
        "P50 µs".to_owned(),
        "P99 µs".to_owned(),
        "distances/query".to_owned(),
    ];
    let exact = index.params().kind == Kind::Flat;
    let row = |f: &Figures| {
        vec![
            if exact { "exact".to_owned() } else { f.effort.to_string() },
            format!("{:.4}", f.recall),
            numbers::per_second(f.per_second_one),
            numbers::per_second(f.per_second_all),
            numbers::microseconds(f.p50),
            numbers::microseconds(f.p99),
            numbers::per_second(f.distances),
        ]
    };
    table::write(out, &head, &measured.iter().map(row).collect::<Vec<_>>())?;
    Ok(())
}
