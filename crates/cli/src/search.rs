//! `lanewise search`: the vectors nearest to a file's queries.

use crate::arguments::{ThreadsArgument, ef_range, k_range, nprobe_range};
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::{calibrate, input, numbers, output, say};
use lanewise_bench::clock::{Start, timed};
use lanewise_bench::dataset::{self, Elements, Matrix};
use lanewise_bench::recall::recall;
use lanewise_bench::truth::Truth;
use lanewise_engine::index::{self, Executor, Index, Knob, Neighbors, Vectors};
use lanewise_engine::scheduler::sim::trace::TraceWriter;
use lanewise_engine::{RecordError, Threads, record};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Find the vectors nearest to a file's queries, or all within a distance
#[derive(clap::Args)]
pub(crate) struct Search {
    /// Index made by `lanewise build`
    index: PathBuf,
    /// Queries: .npy, .fvecs or .bvecs, of the type that the vectors had
    queries: PathBuf,
    /// Neighbours to find per query
    #[arg(short, value_parser = k_range(), default_value = "10")]
    k: u32,
    /// In place of the nearest k all within this distance, as the table shows distances (smaller is nearer)
    #[arg(long, value_name = "DISTANCE", value_parser = radius, allow_negative_numbers = true)]
    #[arg(conflicts_with_all = ["k", "output", "truth"])]
    within: Option<f32>,
    /// Candidates that a graph search keeps: more is slower and finds more
    #[arg(long, value_parser = ef_range(), default_value = "100")]
    ef_search: u32,
    /// Lists that a search of an IVF index scans: more is slower and finds more
    #[arg(long, value_parser = nprobe_range(), default_value = "16")]
    nprobe: u32,
    /// Share of the nearest to find, above 0 and at most 1: the least effort that is known to, by the index's curve
    #[arg(long, value_name = "SHARE", conflicts_with_all = ["ef_search", "nprobe"])]
    target_recall: Option<f32>,
    /// File to write the ids to, .ivecs or .npy, a row per query [default: print a table]
    #[arg(short, long, value_name = "FILE", group = "written")]
    output: Option<PathBuf>,
    /// Replace the output if it exists
    #[arg(long, requires = "written")]
    force: bool,
    /// Ids of the exact neighbours, .ivecs or .npy, a row per query: prints recall
    #[arg(long, value_name = "FILE")]
    truth: Option<PathBuf>,
    /// In place of results: write what each search reads, and how long it computes, to this file, for `lanewise sim`
    #[arg(long, value_name = "FILE", group = "written", conflicts_with_all = ["truth", "within"])]
    record: Option<PathBuf>,
    #[command(flatten)]
    threads: ThreadsArgument,
}

/// How many are looked for at first where all within a distance are: what the usual `ef_search` finds at no cost.
const FIRST: usize = 64;

/// A distance.
fn radius(text: &str) -> Result<f32, String> {
    let radius: f32 = text.parse().map_err(|_| "not a number".to_owned())?;
    if radius.is_nan() { Err("not a number".to_owned()) } else { Ok(radius) }
}

impl Search {
    pub(crate) fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        if let Some(output) = &self.output {
            let inputs: Vec<_> =
                [&self.index, &self.queries].into_iter().chain(&self.truth).map(PathBuf::as_path).collect();
            output::check("-o", output, self.force, &inputs)?;
            if !["ivecs", "npy"].iter().any(|e| output.extension().is_some_and(|x| x.eq_ignore_ascii_case(e)))
            {
                let name = output.display();
                return Err(Failure::Usage(format!(
                    "-o {name}: ids go to a file that ends in .ivecs or .npy"
                )));
            }
        }
        let index = input::index(&self.index)?;
        let params = *index.params();
        let queries = input::queries(&self.queries, params.dim, params.metric, params.dtype)?;
        let truth = self.truth.as_deref().map(Truth::read).transpose()?;
        let threads = self.threads.threads();

        let how = index::Search::new(self.within.map_or(self.k as usize, |_| FIRST));
        let how = how.ef(self.ef_search as usize).nprobe(self.nprobe as usize);
        let how = self.target_recall.map_or(Ok(how), |target| tuned(&index, how, target, threads))?;
        if let Some(path) = &self.record {
            return self.record(path, &index, queries.as_vectors(), &how);
        }
        let (found, time) = {
            let (reader, queries) = (index.reader(), queries.as_vectors());
            timed(|| match self.within {
                Some(radius) => lanewise_engine::search_within(&reader, queries, radius, None, &how, threads),
                None => lanewise_engine::search(&reader, queries, &how, threads),
            })
        };
        let (found, counts) =
            found.map_err(|e| Failure::Failed(format!("{}: {e}", self.queries.display())))?;
        let k = (self.k as usize).min(index.len());
        let recall = truth.map(|truth| recall(&found, &truth, k)).transpose()?;

        match &self.output {
            Some(path) => {
                let ids = found.iter().flat_map(|n| n.ids.iter().copied()).collect();
                let matrix =
                    Matrix { rows: found.len(), columns: k, elements: Elements::Int(ids), rounded: false };
                // A file half written would stay if the process ended now.
                let _held = Interrupt::listen();
                dataset::write(path, &matrix)?;
                writeln!(out, "{}: {} × {k} ids", path.display(), numbers::count(found.len()))?;
            }
            None => table(out, &found)?,
        }
        if let Some(recall) = recall {
            writeln!(out, "recall@{k}: {recall:.4}")?;
        }
        say(format_args!(
            "{} queries in {} s: {} queries/s, threads {}, {} distances/query",
            numbers::count(found.len()),
            numbers::seconds(time),
            numbers::rate(found.len(), time),
            threads.workers(),
            numbers::per_second(counts.distances as f64 / found.len() as f64)
        ));
        Ok(())
    }
}

impl Search {
    /// Writes what the searches read, one by one on this thread.
    fn record(
        &self,
        path: &Path,
        index: &Index,
        queries: Vectors<'_>,
        how: &index::Search<'_>,
    ) -> Result<(), Failure> {
        output::check("--record", path, self.force, &[&self.index, &self.queries])?;
        let name = self.index.file_stem().unwrap_or_default().to_string_lossy();
        let source = format!("lanewise search {} -k {}", self.index.display(), self.k);
        let reader = index.reader();
        let start = Start::now();
        let now_ns = || start.elapsed().as_nanos() as u64;
        // A file half written would stay if the process ended now.
        let _held = Interrupt::listen();
        let written = dataset::whole(path, |out| {
            let mut writer = TraceWriter::new(out, &source, false)?;
            record(&reader, queries, how, (0, &name), &now_ns, &mut writer)?;
            writer.finish()?;
            Ok(())
        });
        written.map_err(|error| match error {
            RecordError::Search(error) => Failure::Failed(format!("{}: {error}", self.queries.display())),
            RecordError::Write(error) => Failure::Failed(format!("{}: {error}", path.display())),
        })?;
        let count = numbers::count(queries.count(reader.dim()));
        say(format_args!("{}: {count} searches, for lanewise sim", path.display()));
        Ok(())
    }
}

/// `how`, with the effort for a recall. An index without a curve that speaks for it is measured first.
fn tuned<'a>(
    index: &Index,
    how: index::Search<'a>,
    target: f32,
    threads: Threads,
) -> Result<index::Search<'a>, Failure> {
    index::Search::check_target(target)
        .map_err(|error| Failure::Usage(format!("--target-recall: {error}")))?;
    let curve = match index.curve() {
        Some(curve) => curve,
        None => {
            say("measuring recall for this search; `lanewise calibrate` keeps what it finds in the index");
            calibrate::measure(index, None, &threads, None)?
        }
    };
    let how = curve.tune(how, target)?;
    let oversample = how.oversample.map_or(String::new(), |oversample| format!(", oversample {oversample}"));
    match curve.knob {
        _ if how.exact => say("all vectors are compared"),
        Knob::Epsilon => say(format_args!("epsilon {:.4}{oversample}", how.epsilon.unwrap_or_default())),
        Knob::EfSearch => say(format_args!("ef_search {}{oversample}", how.ef_search)),
        Knob::Nprobe => say(format_args!("nprobe {}{oversample}", how.nprobe)),
        Knob::Exact => {}
    }
    Ok(how)
}

/// A line per neighbour, nearest first, in columns.
fn table(out: &mut dyn Write, found: &[Neighbors]) -> io::Result<()> {
    writeln!(out, "{:>8} {:>5} {:>20} {:>14}", "query", "rank", "id", "distance")?;
    for (query, neighbors) in found.iter().enumerate() {
        for (rank, (id, distance)) in neighbors.ids.iter().zip(&neighbors.distances).enumerate() {
            writeln!(out, "{query:>8} {:>5} {id:>20} {distance:>14}", rank + 1)?;
        }
    }
    Ok(())
}
