//! Document 004's experiment on the machine at hand: `make bench-scheduler`.
//!
//! 60 HNSW tables, then 15 IVF tables, are searched by clients that always wait for one answer, as many as keep all workers
//! busy; policies take turns. With several chiplets this is the paper's experiment, with one it shows what the policies
//! cost. `--record` writes what the same searches read, for `lanewise sim`.

use clap::Parser;
use lanewise_bench::clock::Start;
use lanewise_bench::dataset::whole;
use lanewise_bench::requests::Requests;
use lanewise_bench::tables::{Table, tables};
use lanewise_engine::index::{Kind, Reader, Search, Vectors};
use lanewise_engine::scheduler::sim::quantile;
use lanewise_engine::scheduler::sim::trace::TraceWriter;
use lanewise_engine::scheduler::{Options, Policy, WorkerStats, Workers};
use lanewise_engine::topology::Machine;
use lanewise_engine::{Pool, RecordError, Refused, TableId, Threads, record, search};
use std::error::Error;
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Results of a query, as the paper's services ask for.
const K: usize = 100;
/// Queries of each table, most asked first.
const QUERIES: usize = 1000;
/// Queries of which recall is measured, over all tables.
const RECALL_QUERIES: usize = 4;

/// Many tables searched by V0 (round-robin), V1 (stealing) and V2 (chiplet)
#[derive(Parser)]
#[command(name = "scheduler")]
struct Arguments {
    /// Folder where tables are kept once they are built
    #[arg(long, default_value = ".cache/tables")]
    cache: PathBuf,
    /// Memory that the tables of a kind take together, MiB
    #[arg(long, default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..))]
    mib: u32,
    /// Seconds of each round
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,
    /// Rounds, in which the policies take turns; medians are shown
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u16).range(1..=1000))]
    rounds: u16,
    /// Clients that wait for one answer each, for each worker
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=64))]
    clients: u16,
    /// Candidates that graph searches keep
    #[arg(long, default_value_t = 200)]
    ef_search: u32,
    /// Lists that a search of lists scans, of each hundred
    #[arg(long, default_value_t = 8.0)]
    nprobe_percent: f64,
    /// How skewed requests are, over tables and over queries (Zipf's exponent)
    #[arg(long, default_value_t = 0.9)]
    skew: f64,
    /// Seed of tables and requests
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Only tables of this kind (hnsw, ivf)
    #[arg(long)]
    kind: Option<String>,
    /// In place of the experiment: write what searches read to files in this folder, a file for each kind
    #[arg(long, value_name = "FOLDER")]
    record: Option<PathBuf>,
    /// With --record: queries of each table
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=QUERIES as i64))]
    queries: u32,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match experiment(&arguments, &mut io::stdout().lock()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // The reader (`| head`) has what it wanted.
            if error.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe) {
                return ExitCode::SUCCESS;
            }
            let _ = writeln!(io::stderr(), "error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// A table that is open.
struct Open {
    reader: Reader,
    queries: Vec<f32>,
    how: Search<'static>,
}

impl Open {
    fn query(&self, i: usize) -> Vectors<'_> {
        let dim = self.reader.dim();
        Vectors::F32(&self.queries[i * dim..][..dim])
    }
}

fn experiment(arguments: &Arguments, out: &mut dyn Write) -> Result<(), Box<dyn Error>> {
    if !(arguments.seconds > 0.0 && arguments.seconds <= 3600.0) {
        return Err(format!("--seconds {}: give more than 0 and at most 3600", arguments.seconds).into());
    }
    if !(arguments.skew >= 0.0 && arguments.skew <= 10.0) {
        return Err(format!("--skew {}: give 0 to 10", arguments.skew).into());
    }
    let kinds = [Kind::Hnsw, Kind::Ivf];
    let chosen = kinds.into_iter().filter(|kind| arguments.kind.as_deref().is_none_or(|k| k == kind.name()));
    let chosen: Vec<Kind> = chosen.collect();
    if chosen.is_empty() {
        return Err("--kind: give hnsw or ivf".into());
    }
    for kind in chosen {
        let tables = tables(kind, arguments.mib as usize * 1024 * 1024, arguments.seed)?;
        let open = opened(arguments, &tables)?;
        match &arguments.record {
            Some(folder) => write_down(arguments, folder, kind, &tables, &open)?,
            None => compare(arguments, kind, &open, out)?,
        }
    }
    Ok(())
}

/// The tables' indexes, from the cache or built.
fn opened(arguments: &Arguments, tables: &[Table]) -> Result<Vec<Open>, Box<dyn Error>> {
    let threads = Threads::new(None);
    let mut open = Vec::with_capacity(tables.len());
    for (number, table) in tables.iter().enumerate() {
        let all = tables.len();
        say(format_args!("table {} of {all}: {} × {} …", number + 1, table.rows, table.params.dim));
        let index = table.index(&arguments.cache, threads, &mut |_| ControlFlow::Continue(()))?;
        let lists = index.reader().lists().len();
        let nprobe = (lists as f64 * arguments.nprobe_percent / 100.0).ceil().max(1.0) as usize;
        let how = Search::new(K).ef(arguments.ef_search as usize).nprobe(nprobe);
        open.push(Open { reader: index.reader(), queries: table.queries(QUERIES), how });
    }
    Ok(open)
}

fn say(line: std::fmt::Arguments<'_>) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// Share of the nearest `K` that the searches find, over a few queries of each table.
fn recall(open: &[Open]) -> Result<f64, Box<dyn Error>> {
    let (mut found, mut all) = (0, 0);
    for table in open {
        let dim = table.reader.dim();
        let queries = Vectors::F32(&table.queries[..RECALL_QUERIES * dim]);
        let threads = Threads::new(None);
        let exact = Search { exact: true, ..table.how };
        let (right, _) = search(&table.reader, queries, &exact, threads)?;
        let (got, _) = search(&table.reader, queries, &table.how, threads)?;
        for (right, got) in right.iter().zip(&got) {
            all += right.ids.len();
            found += got.ids.iter().filter(|id| right.ids.contains(id)).count();
        }
    }
    Ok(found as f64 / all as f64)
}

/// What a round gave.
struct Round {
    per_second: f64,
    latency_us: Vec<f64>,
    stats: WorkerStats,
    epoch: u64,
}

fn compare(
    arguments: &Arguments,
    kind: Kind,
    open: &[Open],
    out: &mut dyn Write,
) -> Result<(), Box<dyn Error>> {
    let machine = Machine::detect();
    let recall = recall(open)?;
    let bytes: usize = open.iter().map(|table| table.reader.bytes()).sum();
    writeln!(
        out,
        "{}: {} tables, {:.0} MiB, k {K}, recall {recall:.3}, skew {}, machine {}, {} clients a worker, {} rounds of {} s",
        kind.name(),
        open.len(),
        bytes as f64 / (1 << 20) as f64,
        arguments.skew,
        machine.shape(),
        arguments.clients,
        arguments.rounds,
        arguments.seconds,
    )?;
    let mut rounds: Vec<Vec<Round>> = Policy::ALL.iter().map(|_| Vec::new()).collect();
    for number in 0..arguments.rounds {
        for (policy, rounds) in Policy::ALL.into_iter().zip(&mut rounds) {
            say(format_args!("round {} of {}: {policy}", number + 1, arguments.rounds));
            rounds.push(round(arguments, policy, &machine, open, u64::from(number))?);
        }
    }
    writeln!(
        out,
        "{:<12} {:>10} {:>10} {:>10} {:>12} {:>12} {:>8} {:>7}  over stealing (median of rounds, range)",
        "policy", "searches/s", "P50 µs", "P999 µs", "steals near", "steals cross", "asleep", "remaps"
    )?;
    for (policy, mine) in Policy::ALL.into_iter().zip(&rounds) {
        let median = |of: &dyn Fn(&Round) -> f64| at(mine.iter().map(of).collect(), 0.5);
        let mut ratios: Vec<f64> = mine
            .iter()
            .zip(&rounds[1])
            .map(|(mine, stealing)| mine.per_second / stealing.per_second)
            .collect();
        ratios.sort_unstable_by(f64::total_cmp);
        let middle = at(ratios.clone(), 0.5);
        let share = |of: &dyn Fn(&WorkerStats) -> u64| {
            let tasks: u64 = mine.iter().map(|round| round.stats.tasks).sum();
            let those: u64 = mine.iter().map(|round| of(&round.stats)).sum();
            format!("{:.2} %", 100.0 * those as f64 / tasks.max(1) as f64)
        };
        writeln!(
            out,
            "{:<12} {:>10.0} {:>10.0} {:>10.0} {:>12} {:>12} {:>8.0} {:>7.0}  {middle:.3} ({:.3} to {:.3})",
            policy,
            median(&|round| round.per_second),
            median(&|round| at(round.latency_us.clone(), 0.5)),
            median(&|round| at(round.latency_us.clone(), 0.999)),
            share(&|stats| stats.stolen_near),
            share(&|stats| stats.stolen_across),
            median(&|round| round.stats.sleeps as f64),
            median(&|round| round.epoch as f64),
            ratios.first().copied().unwrap_or(f64::NAN),
            ratios.last().copied().unwrap_or(f64::NAN),
        )?;
    }
    Ok(())
}

/// The value that a share `q` does not exceed; no number of none.
fn at(mut values: Vec<f64>, q: f64) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    quantile(&values, q).unwrap_or(f64::NAN)
}

/// One round of one policy: clients ask until the time is over.
#[expect(
    clippy::disallowed_methods,
    reason = "clients are threads of their own, as they are where a server runs"
)]
fn round(
    arguments: &Arguments,
    policy: Policy,
    machine: &Machine,
    open: &[Open],
    number: u64,
) -> Result<Round, Box<dyn Error>> {
    let workers = Workers::Of(Box::new(machine.clone()));
    // Half a round to find out about the traffic, and half with the mapping that follows.
    let remap_interval = Duration::from_secs_f64(arguments.seconds / 4.0);
    let pool = Pool::start(Options { policy, workers, remap_interval, ..Options::default() })?;
    for (table, open) in (0..).map(TableId).zip(open) {
        pool.place(table, &open.reader);
    }
    let (over, failed) = (AtomicBool::new(false), Mutex::new(None));
    let clients = pool.scheduler().layout().workers() * usize::from(arguments.clients);
    let start = Start::now();
    let client = |client: usize| {
        let seed = arguments.seed ^ number << 32 ^ (client as u64) << 48;
        // Which tables are hot is the same for all.
        let requests = Requests::new((open.len(), arguments.skew), (QUERIES, arguments.skew), arguments.seed);
        let mut latency_us = Vec::new();
        for request in requests.shifted(seed) {
            if over.load(Ordering::Relaxed) {
                break;
            }
            let (table, id) = (&open[request.table], TableId(request.table as u32));
            let asked = Start::now();
            let answer = match pool.search(id, &table.reader, table.query(request.query), &table.how, None) {
                Ok(pending) => pending.wait().map(drop).map_err(|failure| failure.to_string()),
                // As a client would: later.
                Err(Refused::Busy(_)) => {
                    std::thread::yield_now();
                    continue;
                }
                Err(error) => Err(error.to_string()),
            };
            latency_us.push(asked.elapsed().as_secs_f64() * 1e6);
            if let Err(error) = answer {
                failed.lock().expect("nobody panics with it").get_or_insert(error);
                break;
            }
        }
        latency_us
    };
    let latency_us = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..clients).map(|i| scope.spawn(move || client(i))).collect();
        std::thread::sleep(Duration::from_secs_f64(arguments.seconds));
        over.store(true, Ordering::Relaxed);
        threads
            .into_iter()
            .flat_map(|thread| thread.join().expect("clients do not panic"))
            .collect::<Vec<_>>()
    });
    let seconds = start.elapsed().as_secs_f64();
    if let Some(error) = failed.into_inner()? {
        return Err(error.into());
    }
    let stats = pool.stats();
    Ok(Round {
        per_second: latency_us.len() as f64 / seconds,
        latency_us,
        stats: stats.total(),
        epoch: stats.epoch,
    })
}

/// Writes what the searches read.
fn write_down(
    arguments: &Arguments,
    folder: &Path,
    kind: Kind,
    tables: &[Table],
    open: &[Open],
) -> Result<(), Box<dyn Error>> {
    std::fs::create_dir_all(folder)?;
    let path = folder.join(format!("{}.trace", kind.name()));
    let source = format!(
        "{} {} tables of mixtures, {} MiB, seed {}, k {K}, ef_search {}, nprobe {} %, {} queries each",
        open.len(),
        kind.name(),
        arguments.mib,
        arguments.seed,
        arguments.ef_search,
        arguments.nprobe_percent,
        arguments.queries
    );
    let start = Start::now();
    let now_ns = || start.elapsed().as_nanos() as u64;
    whole(&path, |out| {
        let mut writer = TraceWriter::new(out, &source, false)?;
        for (number, (table, open)) in tables.iter().zip(open).enumerate() {
            say(format_args!("recording table {} of {}", number + 1, tables.len()));
            let count = arguments.queries as usize;
            let queries = Vectors::F32(&open.queries[..count * open.reader.dim()]);
            let name = format!("{} × {}", table.rows, table.params.dim);
            record(&open.reader, queries, &open.how, (number as u32, &name), &now_ns, &mut writer)?;
        }
        writer.finish()?;
        Ok::<(), RecordError>(())
    })?;
    say(format_args!("{}: {}", path.display(), source));
    Ok(())
}
