//! `lanewise calibrate`: which effort reaches which recall, kept in the index's file for `search --target-recall`.

use crate::arguments::ThreadsArgument;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::{input, numbers, progress, table};
use lanewise_engine::index::{CalibrateError, Curve, Executor, Index, KS, Vectors};
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;

/// Measure which effort reaches which recall, and keep the curve in the index's file
#[derive(clap::Args)]
pub(crate) struct Calibrate {
    /// Index made by `lanewise build`, which is replaced by the same with its curve
    index: PathBuf,
    /// Queries, 50 or more, of the type that the vectors had [default: vectors of the index, held out in turn]
    #[arg(long, value_name = "FILE")]
    queries: Option<PathBuf>,
    #[command(flatten)]
    threads: ThreadsArgument,
}

impl Calibrate {
    pub(crate) fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let index = input::index(&self.index)?;
        let params = *index.params();
        let queries = self.queries.as_deref();
        let queries =
            queries.map(|path| input::queries(path, params.dim, params.metric, params.dtype)).transpose()?;
        let interrupt = Interrupt::listen();
        let name = self.index.display();
        let curve = measure(
            &index,
            queries.as_ref().map(|set| set.as_vectors()),
            &self.threads.threads(),
            Some(&interrupt),
        )?;
        lanewise_engine::save(&index, &self.index)?;
        interrupt.check(|| format!("interrupted while saving: {name} was finished and is complete"))?;
        let vectors = numbers::count(curve.len);
        if curve.tables.is_empty() {
            writeln!(out, "{name}: {vectors} vectors: a search with --target-recall compares all of them")?;
            return Ok(());
        }
        let of = if curve.held_out { "held-out vectors" } else { "queries" };
        writeln!(out, "{name}: {vectors} vectors, by {} {of}\n", curve.queries)?;
        write(out, &curve)
    }
}

/// The curve of `index`, with a progress bar: measured by `queries`; without, by vectors held out. An interrupt, where
/// one is listened for, ends it.
pub(crate) fn measure(
    index: &Index,
    queries: Option<Vectors<'_>>,
    threads: &dyn Executor,
    interrupt: Option<&Interrupt>,
) -> Result<Arc<Curve>, Failure> {
    let bar = progress::bar("measuring recall", 0);
    let curve = index.calibrate(queries, &KS, threads, &mut |done, all| {
        bar.set_length(all as u64);
        bar.set_position(done as u64);
        if interrupt.is_some_and(Interrupt::asked) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    });
    bar.finish_and_clear();
    curve.map_err(|error| match error {
        CalibrateError::Cancelled => Failure::Interrupted("interrupted: nothing was written".to_owned()),
        CalibrateError::Vector(_) | CalibrateError::FewQueries { .. } | CalibrateError::Ks => {
            Failure::Failed(format!("--queries: {error}"))
        }
    })
}

/// The curve as a table.
fn write(out: &mut dyn Write, curve: &Curve) -> Result<(), Failure> {
    let head = ["k", curve.knob.name(), "oversample", "recall", "at least (95 %)", "distances/query"];
    let rows = curve.tables.iter().flat_map(|table| {
        table.points.iter().map(move |point| {
            vec![
                table.k.to_string(),
                if curve.knob.is_whole() { point.effort.to_string() } else { format!("{:.4}", point.effort) },
                point.oversample.map_or("–".to_owned(), |oversample| oversample.to_string()),
                format!("{:.4}", point.recall),
                format!("{:.4}", point.low),
                numbers::per_second(f64::from(point.distances)),
            ]
        })
    });
    let written: io::Result<()> = table::write(out, &head.map(str::to_owned), &rows.collect::<Vec<_>>());
    Ok(written?)
}
