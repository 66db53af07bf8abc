//! `lanewise build`: an index file from a vector file.

use crate::arguments::{IndexArguments, ThreadsArgument, bytes};
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::{input, numbers, output, progress};
use lanewise_bench::clock::timed;
use lanewise_bench::dataset;
use lanewise_engine::Threads;
use lanewise_engine::index::{AddError, Executor, Index, Params, Vectors};
use std::io::Write;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Duration;

/// Build an index of a file's vectors
#[derive(clap::Args)]
pub(crate) struct Build {
    /// Vectors: .npy, .fvecs or .bvecs
    vectors: PathBuf,
    /// File to write the index to
    #[arg(short, long, value_name = "INDEX")]
    output: PathBuf,
    /// Replace the output if it exists
    #[arg(long)]
    force: bool,
    /// Ids of the vectors: .npy or .ivecs of integers, one each [default: positions from 0]
    #[arg(long, value_name = "FILE")]
    ids: Option<PathBuf>,
    #[command(flatten)]
    index: IndexArguments,
    /// Refuse an index that would take more memory while it is built, as 500MB or 2GiB; the file of vectors is not counted
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    memory_limit: Option<usize>,
    #[command(flatten)]
    threads: ThreadsArgument,
}

impl Build {
    pub(crate) fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let inputs: Vec<_> = [&self.vectors].into_iter().chain(&self.ids).map(PathBuf::as_path).collect();
        output::check("-o", &self.output, self.force, &inputs)?;
        let ids = self.ids.as_deref().map(dataset::read_ids).transpose()?;
        let (set, metric, dtype) = input::vectors(&self.vectors, |elements| self.index.space(elements))?;
        let params = self.index.params(set.dim, metric, dtype);
        let threads = self.threads.threads();

        let interrupt = Interrupt::listen();
        let name = self.output.display();
        let index = Index::new(params)?;
        let need = index.predict(set.len(), ids.is_some(), threads.workers())?;
        index.set_memory_limit(self.memory_limit);
        let time = fill(&index, set.as_vectors(), ids.as_deref(), threads, Some(&interrupt))?;
        drop(set);
        interrupt.check(|| format!("interrupted before saving: {name} was not written"))?;
        let bytes = index.image().map_err(AddError::from)?.bytes();
        let ((), saving) = {
            let (saved, time) = timed(|| lanewise_engine::save(&index, &self.output));
            (saved?, time)
        };
        // Saving is not stopped halfway, so that nothing half done is left behind.
        interrupt.check(|| format!("interrupted while saving: {name} was finished and is complete"))?;

        let (raw, per_vector) = numbers::bytes_per_vector(&index);
        let Params { dim, metric, dtype, kind, .. } = *index.params();
        writeln!(
            out,
            "{}: {} vectors of {dim} dimensions, {} {} {}",
            name,
            numbers::count(index.len()),
            kind.name(),
            dtype.name(),
            metric.name()
        )?;
        writeln!(
            out,
            "built in {} s ({} vectors/s, threads {}, isa {}), saved in {} s",
            numbers::seconds(time),
            numbers::rate(index.len(), time),
            threads.workers(),
            index.level(),
            numbers::seconds(saving)
        )?;
        writeln!(
            out,
            "memory {} bytes, at most {} while it was built (predicted; {} are held)",
            numbers::count(need.held),
            numbers::count(need.peak),
            numbers::count(index.owned_bytes())
        )?;
        writeln!(
            out,
            "file {} bytes; {per_vector:.0} bytes/vector, of which the vector itself {raw}",
            numbers::count(bytes as usize)
        )?;
        Ok(())
    }
}

/// An index of `vectors`, with a progress bar, and the time it took.
pub(crate) fn build(
    params: Params,
    vectors: Vectors<'_>,
    threads: Threads,
) -> Result<(Index, Duration), Failure> {
    let index = Index::new(params)?;
    let time = fill(&index, vectors, None, threads, None)?;
    Ok((index, time))
}

/// Adds `vectors` to `index`, with a progress bar; the time it took. An interrupt, where one is listened for, ends it.
fn fill(
    index: &Index,
    vectors: Vectors<'_>,
    ids: Option<&[i64]>,
    threads: Threads,
    interrupt: Option<&Interrupt>,
) -> Result<Duration, Failure> {
    let bar = progress::bar("building", vectors.count(index.params().dim));
    let mut proceed = |done: usize| {
        bar.set_position(done as u64);
        if interrupt.is_some_and(Interrupt::asked) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    };
    let (added, time) = timed(|| index.add(vectors, ids, &threads, &mut proceed));
    bar.finish_and_clear();
    match added {
        Ok(_) => Ok(time),
        Err(AddError::Cancelled { added, total }) => Err(Failure::Interrupted(format!(
            "interrupted after {} of {} vectors: nothing was written",
            numbers::count(added),
            numbers::count(total)
        ))),
        Err(error) => Err(error.into()),
    }
}
