//! A table under churn: `make bench-churn`.
//!
//! A share of the documents is replaced, or deleted and created anew, evenly over the time of a phase, while clients search.
//! Three phases take turns, round after round: no writes; writes and sealed heads, no merges; writes, sealed heads and
//! merges. Of each: latencies, and recall beside an index that is built anew of the same vectors. The vectors are a mixture
//! (`generate.rs`), not real data.

use clap::Parser;
use lanewise_bench::clock::Start;
use lanewise_bench::generate::{Random, mixture};
use lanewise_bench::measure::percentile;
use lanewise_engine::index::{Index, OwnedVectors, Params, Search, Vectors};
use lanewise_engine::scheduler::Options;
use lanewise_engine::table::{
    Batch, Effort, MergePolicy, Nearest, Request, Resources, Settings, Table, Upkeep, When, Write,
};
use lanewise_engine::topology::Machine;
use lanewise_engine::{Admission, MemoryLimit, Pool, Threads, allowed, search};
use serde_json::{Map, json};
use std::error::Error;
use std::io::{self, Write as _};
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const K: usize = 10;
const QUERIES: usize = 500;
/// Writes of a call.
const CALL: usize = 50;

/// Recall and latencies of a table that is written to all the time
#[derive(Parser)]
#[command(name = "churn")]
struct Arguments {
    /// Documents
    #[arg(long, default_value_t = 200_000, value_parser = clap::value_parser!(u32).range(1000..))]
    rows: u32,
    /// Dimensions
    #[arg(long, default_value_t = 128, value_parser = clap::value_parser!(u16).range(1..=4096))]
    dim: u16,
    /// Documents that a phase replaces, of a hundred
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u8).range(1..=100))]
    percent: u8,
    /// Seconds of a phase
    #[arg(long, default_value_t = 60.0)]
    seconds: f64,
    /// Rounds; medians are shown
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..))]
    rounds: u8,
    /// Clients, which take turns
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=64))]
    clients: u8,
    /// Searches a second, each due at its time whether or not others are answered, and timed from then; 0: each client
    /// searches as soon as it is answered
    #[arg(long, default_value_t = 500)]
    rate: u32,
    /// Candidates that graph searches keep
    #[arg(long, default_value_t = 64)]
    ef_search: u32,
    /// Folder for the table, which is removed in the end
    #[arg(long, default_value = ".cache")]
    cache: PathBuf,
    /// File that the table is written to, too
    #[arg(long)]
    page: Option<PathBuf>,
    /// Seed of vectors and writes
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    Still,
    Sealing,
    Merging,
}

impl Phase {
    const ALL: [Phase; 3] = [Phase::Still, Phase::Sealing, Phase::Merging];

    fn name(self) -> &'static str {
        ["no writes", "churn, no merges", "churn and merges"][self as usize]
    }
}

/// What a phase gave.
struct Figures {
    searches: usize,
    p50: Duration,
    p99: Duration,
    writes: usize,
    recall: f64,
    fresh: f64,
    segments: usize,
    dead: usize,
}

/// The vectors that the table should hold: of each document, the place in `all`.
struct Contents {
    dim: usize,
    all: Vec<f32>,
    now: Vec<usize>,
    next: usize,
}

impl Contents {
    fn vector(&self, place: usize) -> &[f32] {
        &self.all[place * self.dim..][..self.dim]
    }
}

fn main() -> ExitCode {
    match experiment(&Arguments::parse(), &mut io::stdout().lock()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn experiment(arguments: &Arguments, out: &mut dyn io::Write) -> Result<(), Box<dyn Error>> {
    if !(arguments.seconds > 0.0 && arguments.seconds <= 3600.0) {
        return Err(format!("--seconds {}: give more than 0 and at most 3600", arguments.seconds).into());
    }
    let (rows, dim) = (arguments.rows as usize, usize::from(arguments.dim));
    let replaced = rows * usize::from(arguments.percent) / 100;
    let vectors = rows + replaced * 2 * usize::from(arguments.rounds);
    let (all, queries) = mixture(dim, vectors, QUERIES, arguments.seed);
    let mut contents = Contents { dim, all, now: (0..rows).collect(), next: rows };
    std::fs::create_dir_all(&arguments.cache)?;
    let folder = tempfile::tempdir_in(&arguments.cache)?;
    let disk = Arc::new(lanewise_storage::Disk::new(folder.path())?);
    let pool = Arc::new(Pool::start(Options::default())?);
    let admission = Admission::new(MemoryLimit::default(), NonZeroUsize::MIN);
    let resources = Resources { threads: Threads::new(None), pool, admission };
    let vector = json!({"type": "vector", "dim": dim, "metric": "l2", "kind": "hnsw"});
    let schema = serde_json::from_value(json!({"fields": {"v": vector}}))?;
    let table = Table::create(disk, schema, resources)?;
    say(format_args!("loading {rows} × {dim} …"));
    let mut load = table.load()?;
    let batch = Batch {
        ids: Some((0..rows).map(|id| id.to_string()).collect()),
        documents: vec![Map::new(); rows],
        vectors: vec![("v", Vectors::F32(&contents.all[..rows * dim]))],
    };
    let effort = Effort::of(Threads::new(None));
    load.add(batch, &effort)?;
    load.finish(&effort)?;
    let upkeep = Upkeep::start(NonZeroUsize::MIN, Threads::new(None))?;
    let table = upkeep.watch(table);
    let mut figures: [Vec<Figures>; 3] = Default::default();
    for round in 0..arguments.rounds {
        for (phase, figures) in Phase::ALL.into_iter().zip(&mut figures) {
            say(format_args!("round {} of {}: {}", round + 1, arguments.rounds, phase.name()));
            table.set_settings(settings(phase, rows, dim))?;
            if phase == Phase::Still {
                table.flush()?;
                while table.merge(&table.settings().merge)?.is_some() {}
            }
            let (latencies, writes) = run(arguments, phase, &table, &mut contents, &queries, replaced)?;
            figures.push(measured(arguments, &table, &contents, &queries, latencies, writes)?);
        }
    }
    let page = page(arguments, &figures);
    out.write_all(page.as_bytes())?;
    if let Some(path) = &arguments.page {
        std::fs::write(path, page)?;
    }
    Ok(())
}

/// What was measured, as Markdown.
fn page(arguments: &Arguments, figures: &[Vec<Figures>; 3]) -> String {
    let Arguments { rows, dim, percent, seconds, rounds, clients, ef_search, .. } = arguments;
    let (cores, machine) = (allowed(), Machine::detect());
    let pace = match arguments.rate {
        0 => ", as fast as they are answered".to_owned(),
        rate => format!(", {rate} searches a second, timed from when each was due"),
    };
    let cpu = machine.cpu_model.as_deref().unwrap_or("a CPU without a name");
    let mut page = format!(
        "# A table under churn\n\n\
         `make bench-churn` measures this and writes this page. {rows} × {dim} (a mixture, f32, HNSW), of which {percent} % \
         are replaced evenly in {seconds} s while {clients} clients search (k {K}, ef_search {ef_search}{pace}); three phases by \
         turns, medians of {rounds} rounds. *Fresh build* is the recall of an index built anew of the same vectors. {cpu}, \
         {cores} cores ({}), shared.\n\n\
         | phase | searches a second | P50 µs | P99 µs | writes | recall@{K} | fresh build | segments | dead rows |\n\
         | --- | --: | --: | --: | --: | --: | --: | --: | --: |\n",
        machine.shape(),
    );
    let median = |figures: &[Figures], of: &dyn Fn(&Figures) -> f64| {
        let mut values: Vec<f64> = figures.iter().map(of).collect();
        values.sort_unstable_by(f64::total_cmp);
        values[(values.len() - 1) / 2]
    };
    for (phase, figures) in Phase::ALL.into_iter().zip(figures) {
        let median = |of: &dyn Fn(&Figures) -> f64| median(figures, of);
        page += &format!(
            "| {} | {:.0} | {:.0} | {:.0} | {:.0} | {:.4} | {:.4} | {:.0} | {:.0} |\n",
            phase.name(),
            median(&|one| one.searches as f64 / seconds),
            median(&|one| one.p50.as_secs_f64() * 1e6),
            median(&|one| one.p99.as_secs_f64() * 1e6),
            median(&|one| one.writes as f64),
            median(&|one| one.recall),
            median(&|one| one.fresh),
            median(&|one| one.segments as f64),
            median(&|one| one.dead as f64),
        );
    }
    let [_, without, with] = figures.each_ref().map(|phase| median(phase, &|one| one.p99.as_secs_f64()));
    page + &format!("\nMerges make the P99 {:.2} times what it is without them.\n", with / without)
}

fn say(line: std::fmt::Arguments<'_>) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// Heads are sealed at a fiftieth of the table, so that a phase has some ten of them.
fn settings(phase: Phase, rows: usize, dim: usize) -> Settings {
    let head = (rows * dim * 4 / 50).max(1 << 16) as u64;
    let usual = MergePolicy { floor_segment: head / 2, segments_per_tier: 4, ..MergePolicy::default() };
    let never = MergePolicy { segments_per_tier: 1 << 20, deletes_allowed: 1.0, ..usual };
    let merge = if phase == Phase::Sealing { never } else { usual };
    Settings { flush_threshold_bytes: head, merge, ..Settings::default() }
}

/// Clients search for as long as a phase lasts; the latencies of their searches, and how many writes were done meanwhile.
#[expect(
    clippy::disallowed_methods,
    reason = "clients are threads of their own, as they are where a server runs"
)]
fn run(
    arguments: &Arguments,
    phase: Phase,
    table: &Table,
    contents: &mut Contents,
    queries: &[f32],
    replaced: usize,
) -> Result<(Vec<Duration>, usize), Box<dyn Error>> {
    let (over, start) = (AtomicBool::new(false), Start::now());
    let lasts = Duration::from_secs_f64(arguments.seconds);
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..arguments.clients)
            .map(|client| {
                let (over, start) = (&over, &start);
                scope.spawn(move || {
                    let mut latencies = Vec::new();
                    for i in usize::from(client) * 37.. {
                        if over.load(Ordering::Relaxed) {
                            break;
                        }
                        let request = request(arguments, queries, i % QUERIES, false);
                        let due = due(arguments, client, latencies.len());
                        let asked = if let Some(wait) = due.checked_sub(start.elapsed()) {
                            std::thread::sleep(wait);
                            due
                        } else if arguments.rate > 0 {
                            due
                        } else {
                            start.elapsed()
                        };
                        table.search(&request, None).map_err(|error| error.to_string())?;
                        latencies.push(start.elapsed() - asked);
                    }
                    Ok::<_, String>(latencies)
                })
            })
            .collect();
        let mut random = Random::new(arguments.seed, 100 + contents.next as u64);
        let mut writes = 0;
        let wanted = if phase == Phase::Still { 0 } else { replaced };
        let mut failed = None;
        while start.elapsed() < lasts && failed.is_none() {
            // As many as the time that has gone asks for.
            let due = (wanted as f64 * start.elapsed().as_secs_f64() / arguments.seconds) as usize;
            if writes + CALL <= due {
                writes += CALL;
                failed = churn(table, contents, &mut random).err();
            } else {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        over.store(true, Ordering::Relaxed);
        let mut all = Vec::new();
        for client in clients {
            all.extend(client.join().expect("clients do not panic")?);
        }
        failed.map_or(Ok((all, writes)), Err)
    })
}

/// When a client's search is due, after the start of the phase.
fn due(arguments: &Arguments, client: u8, searches: usize) -> Duration {
    let number = searches as f64 * f64::from(arguments.clients) + f64::from(client);
    if arguments.rate == 0 {
        Duration::ZERO
    } else {
        Duration::from_secs_f64(number / f64::from(arguments.rate))
    }
}

/// Replaces documents in one call; a fourth of them is deleted first, and created anew.
fn churn(table: &Table, contents: &mut Contents, random: &mut Random) -> Result<(), Box<dyn Error>> {
    let mut writes = Vec::with_capacity(CALL + CALL / 4);
    for i in 0..CALL {
        let id = random.below(contents.now.len());
        if i % 4 == 0 {
            writes.push(Write::Delete { id: id.to_string(), when: When::Always });
        }
        let vector = contents.vector(contents.next).to_vec();
        writes.push(Write::Put {
            id: Some(id.to_string()),
            document: Map::new(),
            vectors: vec![("v".to_owned(), OwnedVectors::F32(vector))],
            when: When::Always,
        });
        contents.now[id] = contents.next;
        contents.next += 1;
    }
    table.write(writes).into_iter().try_for_each(|written| written.map(drop))?;
    Ok(())
}

fn request(arguments: &Arguments, queries: &[f32], query: usize, exact: bool) -> Request {
    let dim = usize::from(arguments.dim);
    let vector = OwnedVectors::F32(queries[query * dim..][..dim].to_vec());
    let ef_search = Some(arguments.ef_search as usize);
    let nearest = vec![Nearest { k: K, ef_search, exact, ..Nearest::new("v", vector) }];
    Request { nearest, size: K, ..Request::default() }
}

/// Recall of the table as it is, and of an index built anew of the same vectors.
fn measured(
    arguments: &Arguments,
    table: &Table,
    contents: &Contents,
    queries: &[f32],
    mut latencies: Vec<Duration>,
    writes: usize,
) -> Result<Figures, Box<dyn Error>> {
    let dim = contents.dim;
    let fresh = Index::new(Params::new(dim))?;
    let now: Vec<f32> = contents.now.iter().flat_map(|&place| contents.vector(place)).copied().collect();
    let threads = Threads::new(None);
    fresh.add(Vectors::F32(&now), None, &threads, &mut |_| ControlFlow::Continue(()))?;
    let how = Search::new(K).ef(arguments.ef_search as usize);
    let queried = Vectors::F32(queries);
    let (exact, _) = search(&fresh.reader(), queried, &Search { exact: true, ..how }, threads)?;
    let (found, _) = search(&fresh.reader(), queried, &how, threads)?;
    let (mut of_fresh, mut of_table) = (0, 0);
    for (query, (exact, found)) in exact.iter().zip(&found).enumerate() {
        of_fresh += found.ids.iter().filter(|id| exact.ids.contains(id)).count();
        let hits = table.search(&request(arguments, queries, query, false), None)?.hits;
        of_table += hits.iter().filter(|hit| exact.ids.iter().any(|id| id.to_string() == hit.id)).count();
        // The table holds what it should.
        let all = table.search(&request(arguments, queries, query, true), None)?.hits;
        if !all.iter().map(|hit| hit.distance).eq(exact.distances.iter().map(|&distance| Some(distance))) {
            return Err(format!("query {query}: the table holds other vectors than were written").into());
        }
    }
    let share = |hits: usize| hits as f64 / (QUERIES * K) as f64;
    let segments = table.segments();
    if latencies.is_empty() {
        return Err("no search was answered in time: give more --seconds".into());
    }
    Ok(Figures {
        searches: latencies.len(),
        p50: percentile(&mut latencies, 50),
        p99: percentile(&mut latencies, 99),
        writes,
        recall: share(of_table),
        fresh: share(of_fresh),
        segments: segments.iter().filter(|segment| segment.sealed).count(),
        dead: segments.iter().map(|segment| segment.deleted).sum(),
    })
}
