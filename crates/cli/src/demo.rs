//! `lanewise demo`: the whole way on vectors made up on the spot, with no network and no file.

use crate::arguments::ThreadsArgument;
use crate::failure::Failure;
use crate::{bench, build, numbers, say};
use lanewise_bench::convert::VectorSet;
use lanewise_bench::generate::{self, CLUSTERS, LATENT};
use lanewise_bench::truth::Truth;
use lanewise_engine::index::Params;
use lanewise_engine::topology::Machine;
use std::io::Write;

/// Queries that are asked.
const QUERIES: usize = 1_000;

/// Settings from fast to thorough.
const EF_SEARCH: [usize; 4] = [16, 32, 64, 128];

/// Rounds whose median counts: few, since this is to be seen, not published.
const ROUNDS: usize = 3;

/// Build and search an index of made-up vectors: no network, no files
#[derive(clap::Args)]
pub(crate) struct Demo {
    /// Number of vectors
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=100_000_000), default_value = "50000")]
    n: u32,
    /// Dimensions
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=65_536), default_value = "128")]
    dim: u32,
    /// Of the vectors and of the index
    #[arg(long, default_value = "42")]
    seed: u64,
    #[command(flatten)]
    threads: ThreadsArgument,
}

impl Demo {
    pub(crate) fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let (n, dim, seed) = (self.n as usize, self.dim as usize, self.seed);
        let threads = self.threads.threads();
        // The vectors themselves, a copy to find exact neighbours or the index's own.
        let bytes = 2 * 4 * (self.n as u64 + QUERIES as u64) * u64::from(self.dim);
        if Machine::detect().memory_bytes().is_some_and(|there| bytes > there) {
            let what = format!(
                "--n {n} --dim {dim} takes {} bytes or more, which this machine",
                numbers::count(bytes as usize)
            );
            return Err(Failure::Usage(format!("{what} does not have: give less")));
        }
        let params = Params { seed, ..Params::new(dim) };
        // Before any work: a wrong LANEWISE_ISA is to be heard of at once.
        lanewise_engine::index::Index::new(params)?;

        say("making vectors up");
        let (vectors, queries) = generate::mixture(dim, n, QUERIES, seed);
        let (vectors, queries) = (VectorSet::floats(dim, vectors), VectorSet::floats(dim, queries));
        say("finding the exact neighbours");
        let truth = Truth::compute(params, vectors.as_vectors(), queries.as_vectors(), bench::K, threads)?;
        let (index, time) = build::build(params, vectors.as_vectors(), threads)?;
        drop(vectors);

        writeln!(
            out,
            "Synthetic vectors, not real data: {} of {dim} dimensions, {} queries; a mixture of {CLUSTERS} clusters in {} \
             latent dimensions, seed {seed}.\n",
            numbers::count(n),
            numbers::count(QUERIES),
            LATENT.min(dim),
        )?;
        bench::describe(out, &index, Some(time), threads)?;
        bench::measure(out, &index, queries.as_vectors(), &truth, &EF_SEARCH, threads, ROUNDS)
    }
}
