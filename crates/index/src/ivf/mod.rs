//! Inverted lists (Sivic & Zisserman, ICCV 2003; Jégou et al., PAMI 2011): vectors lie in the list of their nearest
//! centroid, and a query scans the lists of the centroids nearest to it.
//!
//! [`Ivf`] is the door. A build trains on a sample ([`Ivf::train`]), then takes vectors in ([`Ivf::add`] many at once,
//! [`Ivf::insert`] one). A search is in steps that a scheduler may run apart: [`Ivf::probe`] chooses the lists and makes
//! the query's tables, [`Ivf::scan`] scans one of them into a [`Best`], `Best::merge` joins what several workers found.
//! What comes out are rows by *estimated* distance, to be rescored by the caller from the stored vectors.
//!
//! A file holds [`Ivf::parameters`] and what the lists hold: see `stored`.
//!
//! Who may call what when: `probe` and `scan` at any time from any thread; `add` and `insert` too, they take turns list
//! by list, and readers never wait. A reader sees rows below its own view's count only ([`Allowed`]), so a vector has to
//! be stored before it is inserted here. [`Ivf::renumbered`] gives a new value: inserts must wait until it has taken the
//! old one's place.

mod centroids;
mod floats;
pub(crate) mod kmeans;
mod lists;
#[cfg(test)]
mod measure;
mod parameters;
mod pq;
mod scan;
mod stored;
#[cfg(test)]
mod tests;

use crate::executor::Executor;
use crate::memory::OutOfMemory;
use crate::vectors::Metric;
pub(crate) use centroids::{Centroids, Choice, Dense, Source};
use floats::Floats;
use kmeans::{Cancelled, Plan, cluster, lock, spread};
use lanewise_kernels::Kernels;
pub(crate) use lists::{Form, Lists};
use parameters::ParameterError;
use pq::{Codebook, Tables};
pub(crate) use scan::{Allowed, Best, ScanScratch, Which};
use std::ops::{ControlFlow, Range};
use std::sync::{Arc, Mutex};
pub(crate) use stored::{Packed, Sections};

/// Vectors of the sample for each list, at most.
pub(crate) const SAMPLE: usize = 256;
/// Bytes of the sample, about, as long as there are [`LEAST`] vectors for each list.
const SAMPLE_BYTES: usize = 512 << 20;
const LEAST: usize = 40;
/// Iterations of the clustering, at most.
const ITERATIONS: usize = 12;
/// Vectors that prototypes are learnt from.
const PROTOTYPE_SAMPLE: usize = 8192;

/// Why lists could not be made.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(crate) enum TrainError {
    #[error(
        "nlist={nlist} needs at least that many vectors to train on, not {vectors}: lower nlist, or add more first"
    )]
    Few { nlist: usize, vectors: usize },
    #[error("runs={runs} is not between 1 and {most}, what dim and 16-bit sums allow")]
    Runs { runs: usize, most: usize },
    #[error("cancelled before the lists were made")]
    Cancelled,
    #[error(transparent)]
    Memory(#[from] OutOfMemory),
}

impl From<Cancelled> for TrainError {
    fn from(_: Cancelled) -> Self {
        TrainError::Cancelled
    }
}

/// What lists hold of each vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListCode {
    /// Codes that the caller makes and compares, `stride` bytes each: the stored rows themselves, i8, bits.
    Rows { stride: usize },
    /// 4-bit product quantization by `runs` runs of dimensions.
    Pq4 { runs: usize },
}

/// What the user chose.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Params {
    pub(crate) metric: Metric,
    pub(crate) dim: usize,
    pub(crate) nlist: usize,
    pub(crate) code: ListCode,
    pub(crate) seed: u64,
}

impl Params {
    /// How codes lie in the lists.
    fn form(self) -> Form {
        match self.code {
            ListCode::Rows { stride } => Form::Rows { stride },
            ListCode::Pq4 { runs } => Form::Blocks { runs },
        }
    }

    /// Vectors of the sample, if there are as many.
    fn sample(self) -> usize {
        (SAMPLE_BYTES / (2 * self.dim)).clamp(self.nlist * LEAST, self.nlist * SAMPLE)
    }
}

/// Runs for `dim` dimensions: one for four, a multiple of four (a register holds four runs' tables), at most 256.
pub(crate) fn default_runs(dim: usize) -> usize {
    (dim.div_ceil(4).next_multiple_of(4)).min(256).min(dim)
}

/// Gives the keys of a list's codes that the caller made: list, codes, keys.
pub(crate) type ListKeys<'a> = dyn FnMut(u32, &[u8], &mut [i32]) + 'a;

/// An inverted file. A clone shares the lists.
#[derive(Clone)]
pub(crate) struct Ivf {
    kernels: Kernels,
    centroids: Arc<Centroids>,
    book: Option<Arc<Codebook>>,
    lists: Lists,
}

/// A query made ready: the lists to scan and its tables. Memory, reused from query to query.
#[derive(Default)]
pub(crate) struct ListProbe {
    choice: Choice,
    tables: Tables,
}

impl ListProbe {
    /// The lists to be scanned, nearest first.
    pub(crate) fn lists(&self) -> impl ExactSizeIterator<Item = u32> + '_ {
        self.choice.lists.iter().map(|&(_, list)| list)
    }

    /// How many.
    pub(crate) fn len(&self) -> usize {
        self.choice.lists.len()
    }

    /// The `i`th of them.
    pub(crate) fn list(&self, i: usize) -> u32 {
        self.choice.lists[i].1
    }
}

impl Ivf {
    /// About what lists of `count` vectors hold that come at once, with their centroids and prototypes.
    pub(crate) fn bytes_of(params: Params, count: usize) -> usize {
        let prototypes = match params.code {
            ListCode::Rows { .. } => 0,
            ListCode::Pq4 { .. } => 16 * 4 * params.dim,
        };
        let lists = Lists::bytes_of(params.form(), params.nlist, count);
        lists + Centroids::bytes_of(params.dim, params.nlist) + prototypes
    }

    /// What `nlist` lists hold whose vectors lie in an opened file.
    pub(crate) fn open_bytes(dim: usize, nlist: usize) -> usize {
        Centroids::bytes_of(dim, nlist) + Lists::open_bytes(nlist)
    }

    /// What `train` takes with `count` vectors.
    pub(crate) fn train_bytes(params: Params, count: usize, workers: usize) -> usize {
        let Params { dim, nlist, .. } = params;
        let sample = params.sample().min(count);
        let points = sample * (size_of::<usize>() + floats::row_bytes(dim) + size_of::<f32>());
        let part = sample.min(PROTOTYPE_SAMPLE) * dim * size_of::<f32>();
        let prototypes = match params.code {
            ListCode::Rows { .. } => 0,
            ListCode::Pq4 { runs } => part + runs * dim * 4 + Centroids::bytes_of(dim, nlist),
        };
        part + prototypes.max(points + kmeans::bytes(sample, dim, nlist, workers))
    }

    /// What `workers` need to assign vectors and to write their codes.
    pub(crate) fn assign_bytes(params: Params, workers: usize) -> usize {
        workers * (4 * params.dim * kmeans::BLOCK + floats::scratch_bytes(params.dim, params.nlist))
            + params.nlist * size_of::<&[u32]>()
    }

    /// Learns centroids, and prototypes if the code needs them, from a sample of the `count` vectors of `source`.
    /// `proceed` hears how many of `ITERATIONS` are done and may stop there.
    pub(crate) fn train(
        params: Params,
        kernels: Kernels,
        source: &dyn Source,
        count: usize,
        executor: &dyn Executor,
        proceed: &mut dyn FnMut(usize) -> ControlFlow<()>,
    ) -> Result<Ivf, TrainError> {
        let Params { metric, dim, nlist, code, seed } = params;
        if nlist == 0 || count < nlist {
            return Err(TrainError::Few { nlist, vectors: count });
        }
        let runs_most = dim.min(kernels.scan_pq4.bound());
        if let ListCode::Pq4 { runs } = code
            && !(1..=runs_most).contains(&runs)
        {
            return Err(TrainError::Runs { runs, most: runs_most });
        }
        let rows = spread(count, params.sample(), seed);
        let part = gather(source, dim, &every(&rows, PROTOTYPE_SAMPLE));
        let origin = floats::mean(&part, dim);
        let mut points = Floats::new(&origin, metric == Metric::Cosine, rows.len(), kernels)?;
        let mut vector = vec![0.0; dim];
        // Every eighth first, so that the first part is a sample too.
        for &row in (0..8).flat_map(|i| rows.iter().skip(i).step_by(8)) {
            source.fetch(row, &mut vector);
            points.push(&vector);
        }
        let plan = Plan { lists: nlist, iterations: ITERATIONS, seed };
        let centroids = cluster(&points, plan, executor, proceed)?;
        drop((points, rows));
        let centroids = Centroids::new(metric, centroids, origin, kernels)?;
        let book = match code {
            ListCode::Rows { .. } => None,
            ListCode::Pq4 { runs } => {
                let mut lists = vec![0; part.len() / dim];
                let dense = Dense { vectors: &part, dim };
                centroids.assign(&dense, 0, &mut lists, executor, &mut |_| ControlFlow::Continue(()));
                let book = Codebook::train(&centroids, &part, &lists, runs, seed, executor);
                Some(Arc::new(book))
            }
        };
        let lists = Lists::new(params.form(), nlist);
        Ok(Ivf { kernels, centroids: Arc::new(centroids), book, lists })
    }

    pub(crate) fn centroids(&self) -> &Centroids {
        &self.centroids
    }

    pub(crate) fn lists(&self) -> &Lists {
        &self.lists
    }

    /// The list of each of the vectors `first..first + lists.len()`; whether `proceed` let it finish.
    pub(crate) fn assign(
        &self,
        source: &dyn Source,
        first: usize,
        lists: &mut [u32],
        executor: &dyn Executor,
        proceed: &mut dyn FnMut(usize) -> ControlFlow<()>,
    ) -> bool {
        self.centroids.assign(source, first, lists, executor, proceed)
    }

    /// Takes in the vectors from row `first` on, of which `assigned` says the lists. Of codes that the caller makes,
    /// `code(row, list, to)` writes one; 4-bit codes are made here.
    pub(crate) fn add(
        &self,
        source: &dyn Source,
        first: usize,
        assigned: &[u32],
        code: &(dyn Fn(usize, u32, &mut [u8]) + Sync),
        executor: &dyn Executor,
    ) -> Result<(), OutOfMemory> {
        let mut order: Vec<(u32, u32)> =
            assigned.iter().zip(first as u32..).map(|(&l, row)| (l, row)).collect();
        order.sort_unstable();
        let groups: Vec<&[(u32, u32)]> = order.chunk_by(|a, b| a.0 == b.0).collect();
        let failed = Mutex::new(None);
        executor.run(groups.len(), &|_, i| {
            let list = groups[i][0].0;
            let centroid = self.centroids.vector(list);
            let mut residual = vec![0.0; centroid.len()];
            let mut fill = |i_th: usize, to: &mut [u8]| {
                let row = groups[i][i_th].1;
                let Some(book) = &self.book else {
                    code(row as usize, list, to);
                    return (row, 0);
                };
                source.fetch(row as usize, &mut residual);
                residual.iter_mut().zip(centroid).for_each(|(r, c)| *r -= c);
                (row, book.stored(book.encode(&residual, centroid, to)))
            };
            let (to, count) = (self.lists.list(list as usize), groups[i].len());
            let result = if to.extends(count) {
                to.extend(count, &mut fill)
            } else {
                let mut code = vec![0; self.lists.form().code_bytes()];
                (0..count).try_for_each(|i| {
                    let (row, bias) = fill(i, &mut code);
                    to.push(row, &code, bias)
                })
            };
            if let Err(error) = result {
                *lock(&failed) = Some(error);
            }
        });
        failed.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner()).map_or(Ok(()), Err)
    }

    /// Takes in one vector, which the caller has stored as `row`: compared with all centroids as a query is.
    pub(crate) fn insert(
        &self,
        row: u32,
        vector: &[f32],
        code: &dyn Fn(u32, &mut [u8]),
        probe: &mut ListProbe,
    ) -> Result<(), OutOfMemory> {
        self.centroids.nearest(vector, &mut probe.choice);
        let list = probe.choice.lists[0].1;
        let mut to = vec![0; self.lists.form().code_bytes()];
        let bias = match &self.book {
            None => {
                code(list, &mut to);
                0
            }
            Some(book) => {
                let centroid = self.centroids.vector(list);
                let residual: Vec<f32> = vector.iter().zip(centroid).map(|(x, c)| x - c).collect();
                book.stored(book.encode(&residual, centroid, &mut to))
            }
        };
        self.lists.list(list as usize).push(row, &to, bias)
    }

    /// Makes `query` (of length 1 for cosine) ready to scan the `nprobe` lists nearest to it.
    pub(crate) fn probe(&self, query: &[f32], nprobe: usize, probe: &mut ListProbe) {
        self.centroids.choose(query, nprobe, &mut probe.choice);
        if let Some(book) = &self.book {
            book.prepare(query, probe.choice.lists[0].0, &mut probe.tables);
        }
    }

    /// What `probe` read of the centroids: where their codes lie, if these were compared, and the bytes of the rows of
    /// those that were compared again.
    pub(crate) fn choice_reads<'a>(&self, probe: &'a ListProbe) -> (Range<usize>, usize, &'a [u32]) {
        let ids = probe.choice.compared();
        let codes = if ids.len() < self.lists.len() { self.centroids.rows_from() } else { 0 };
        (0..codes, floats::row_bytes(self.centroids.dim()), ids)
    }

    /// Scans the `i`th list of `probe` into `best`: one step, for any thread. `keys(list, codes, keys)` gives the keys of
    /// codes that the caller made.
    pub(crate) fn scan(
        &self,
        probe: &ListProbe,
        i: usize,
        keys: &mut ListKeys<'_>,
        allowed: Allowed<'_>,
        scratch: &mut ScanScratch,
        best: &mut Best,
    ) {
        let (base, id) = probe.choice.lists[i];
        let list = self.lists.list(id as usize);
        if self.book.is_some() {
            scan::blocks(&self.kernels.scan_pq4, list, &probe.tables, base, allowed, scratch, best);
        } else {
            let keys = &mut |codes: &[u8], found: &mut [i32]| keys(id, codes, found);
            scan::rows(list, self.lists.form(), keys, allowed, scratch, best);
        }
    }

    /// The same with the rows that `number` gives; without those that get none.
    pub(crate) fn renumbered(&self, number: &dyn Fn(u32) -> Option<u32>) -> Result<Ivf, OutOfMemory> {
        let lists: Vec<_> =
            self.lists.iter().map(|list| list.renumbered(number)).collect::<Result<_, _>>()?;
        Ok(Ivf { lists: Lists::of(self.lists.form(), lists.into_iter()), ..self.clone() })
    }
}

/// At most `most` of `rows`, at even distances.
fn every(rows: &[usize], most: usize) -> Vec<usize> {
    let most = most.min(rows.len());
    (0..most).map(|i| rows[i * rows.len() / most]).collect()
}

/// Vectors of `source`, row after row.
fn gather(source: &dyn Source, dim: usize, rows: &[usize]) -> Vec<f32> {
    let mut vectors = vec![0.0; rows.len() * dim];
    for (&row, to) in rows.iter().zip(vectors.chunks_exact_mut(dim)) {
        source.fetch(row, to);
    }
    vectors
}
