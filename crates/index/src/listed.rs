//! The vectors of an index in inverted lists: what the lists hold of each, when they are made, how they are searched.
//!
//! Lists are made by the first `add` that leaves enough vectors, and anew, beside the old ones, when there are
//! [`AGAIN`] times as many as they were made of, as long as those were fewer than the clustering can use. Until then
//! searches are exact. What lists hold is the stored vectors themselves, so that a scan reads memory in order, or a code:
//! i8 with one scale for all; i4 and bits of what a vector adds to its list's centroid (RaBitQ with the centroid for
//! centre, as its authors have it); pq4. By codes some candidates are found that are then ordered by the stored vectors:
//! how many it takes is tried out on the vectors at hand once the lists are filled.
//!
//! All rows of the writer's space are in one list each. Readers share the lists and pass over rows that are not in their
//! view yet. The lists' distance is squared L2 between vectors for all but inner products; bits are taken as 0 and 1,
//! whose squared distance is Hamming's, so that centroids are means and not only majorities.

use crate::code::{Code, CodeError, CodeProbe, Coder, stride_of};
use crate::coded::{self, CodeFailure};
use crate::executor::Executor;
use crate::ivf::{
    self, Allowed, Best, Ivf, ListCode, ListProbe, SAMPLE, ScanScratch, Source, TrainError, Which,
};
use crate::memory::{Growth, OutOfMemory};
use crate::params::{NLIST, Params};
use crate::predict::Part;
use crate::space::{Compare, Probe, Space};
use crate::vectors::Metric;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

/// Vectors of which lists are made first, where their number is chosen here; else so many for each list …
const FIRST: usize = 1024;
const FIRST_EACH: usize = 8;
/// … and at least this many, from which codes can be fitted.
const FEWEST: usize = 32;
/// With so many times the vectors, lists are made anew.
const AGAIN: usize = 16;
/// Up to so many vectors are put in one by one.
const FEW: usize = 16;

/// Queries of the trial, results that each should find, numbers of candidates for each result that are tried, and the
/// share of the results that makes one enough.
const QUERIES: usize = 100;
const K: usize = 10;
const OVERSAMPLES: [usize; 9] = [2, 3, 4, 6, 8, 12, 16, 24, 32];
const RECALL: f64 = 0.99;
/// Vectors that a query of the trial is compared with, about.
const SEEN: usize = 4096;

/// Asked at times whether to go on.
pub(crate) type Proceed<'a> = dyn FnMut(usize) -> ControlFlow<()> + 'a;

/// Lists of all vectors of a space.
pub(crate) struct Listed {
    pub(crate) ivf: Ivf,
    held: Held,
    /// The coder as a file keeps it; empty if there is none.
    pub(crate) parameters: Arc<[u8]>,
    /// Number of vectors that the lists were made of.
    pub(crate) fitted: usize,
    /// Candidates for each result that were enough in the trial; 0: no number was. Without a code 1.
    pub(crate) oversample: u32,
}

/// What lists hold of a vector.
#[derive(Clone)]
enum Held {
    Vectors,
    I8(Arc<Coder>),
    /// i4 or bits, with the rotated centroids, row after row.
    Residuals(Arc<Coder>, Arc<[f32]>),
    Pq4,
}

/// A query made ready to scan lists, by any number of threads.
#[derive(Default)]
pub(crate) struct ListQuery {
    lists: ListProbe,
    /// Of codes that are the same for all lists; for inner products with centres' residuals, but for what each adds.
    code: CodeProbe,
    rotated: Vec<f32>,
}

impl ListQuery {
    /// The lists to be scanned, nearest first.
    pub(crate) fn lists(&self) -> &ListProbe {
        &self.lists
    }
}

/// Memory of a scan.
#[derive(Default)]
pub(crate) struct ListScan {
    scan: ScanScratch,
    code: CodeProbe,
    residual: Vec<f32>,
}

/// Memory of searches.
#[derive(Default)]
pub(crate) struct ListScratch {
    pub(crate) query: ListQuery,
    pub(crate) scan: ListScan,
    pub(crate) best: Best,
}

impl Source for Space {
    fn fetch(&self, row: usize, to: &mut [f32]) {
        self.write_floats(row as u32, to);
    }
}

impl From<TrainError> for CodeFailure {
    fn from(error: TrainError) -> Self {
        match error {
            TrainError::Cancelled => CodeFailure::Cancelled,
            TrainError::Memory(error) => CodeFailure::Memory(error),
            TrainError::Few { .. } | TrainError::Runs { .. } => {
                unreachable!("there are more vectors than lists, and runs are the default")
            }
        }
    }
}

/// The number of lists for `count` vectors: a query then compares itself with about as many centroids as, in sixteen
/// lists, vectors.
fn nlist_for(count: usize) -> usize {
    (4 * count.isqrt()).clamp(16, NLIST)
}

/// Bytes of the rotated centroids.
fn rotated_bytes(params: &Params, nlist: usize) -> usize {
    if matches!(params.code, Code::I4 | Code::Bits) { size_of::<f32>() * nlist * params.dim } else { 0 }
}

/// What `ivf` is told to make.
pub(crate) fn list_params(
    params: &Params,
    space: &Space,
    nlist: usize,
    stride: Option<usize>,
) -> ivf::Params {
    let metric = if space.metric.of_bits() { Metric::L2 } else { space.metric };
    let code = match params.code {
        Code::Pq4 => ListCode::Pq4 { runs: ivf::default_runs(space.dim) },
        _ => ListCode::Rows { stride: stride.unwrap_or(space.list_stride()) },
    };
    ivf::Params { metric, dim: space.dim, nlist, code, seed: params.seed }
}

impl Listed {
    pub(crate) fn new(ivf: Ivf, coder: Option<Coder>, fitted: usize, oversample: u32) -> Listed {
        let parameters: Arc<[u8]> = match &coder {
            Some(coder) => coder.parameters().into(),
            None => [].into(),
        };
        let held = match coder {
            None => match ivf.lists().form() {
                ivf::Form::Rows { .. } => Held::Vectors,
                ivf::Form::Blocks { .. } => Held::Pq4,
            },
            Some(coder) if coder.code() == Code::I8 => Held::I8(coder.into()),
            Some(coder) => {
                let mut rotated = Vec::new();
                let mut centroids = Vec::with_capacity(ivf.centroids().vectors().len());
                for list in 0..ivf.lists().len() as u32 {
                    coder.rotate(ivf.centroids().vector(list), &mut rotated);
                    centroids.extend_from_slice(&rotated);
                }
                Held::Residuals(coder.into(), centroids.into())
            }
        };
        Listed { ivf, held, parameters, fitted, oversample }
    }

    /// Brings `listed` up to the vectors of `space`, of which those from `before` on are new: makes lists if it is time,
    /// or puts the new ones in.
    ///
    /// # Errors
    /// If the code cannot order the vectors, `proceed` stopped, or there is no memory. Nothing of the new vectors is then
    /// in the lists; where that takes it, there are no lists any more.
    pub(crate) fn update(
        listed: &mut Option<Arc<Listed>>,
        params: &Params,
        space: &Space,
        before: usize,
        executor: &dyn Executor,
        proceed: &mut Proceed<'_>,
    ) -> Result<(), CodeFailure> {
        if space.len() >= Self::due(listed.as_deref(), params)
            && let Some(new) = Self::train(params, space, executor, proceed)?
        {
            *listed = Some(Arc::new(new));
        } else if let Some(old) = listed
            && let Err(failure) = old.take_in(space, before..space.len(), executor, proceed)
        {
            if matches!(failure, CodeFailure::Memory(_)) {
                // Some are in, and their rows will be others'.
                *listed = None;
            }
            return Err(failure);
        }
        Ok(())
    }

    /// The number of vectors at which lists are made, anew if there are any.
    fn due(listed: Option<&Listed>, params: &Params) -> usize {
        match listed {
            None if params.nlist == 0 => FIRST,
            None => (params.nlist * FIRST_EACH).max(FEWEST),
            Some(old) if old.fitted < old.ivf.lists().len() * SAMPLE => old.fitted.saturating_mul(AGAIN),
            Some(_) => usize::MAX,
        }
    }

    /// What `update` takes for `more` vectors than `before`; `anew`: of lists that are [kept](Self::keep) first, with so
    /// many vectors.
    pub(crate) fn part(
        listed: Option<&Listed>,
        params: &Params,
        space: &Space,
        (before, more): (usize, usize),
        anew: bool,
        workers: usize,
    ) -> Part {
        let all = before + more;
        let held = listed.map_or(0, Listed::owned_bytes);
        let learns = all >= Self::due(listed, params);
        let nlist = match listed {
            Some(listed) if !learns => listed.ivf.lists().len(),
            _ if params.nlist == 0 => nlist_for(all),
            _ => params.nlist,
        };
        let coded = !matches!(params.code, Code::None | Code::Pq4);
        let stride = coded.then(|| stride_of(params.code, space.metric, space.dim));
        let list_params = list_params(params, space, nlist, stride);
        // A worker assigns a block; each vector has a list, and is then sorted by it.
        let filling = 12 * if learns { all } else { more } + Ivf::assign_bytes(list_params, workers);
        let kept = |listed: &Listed| {
            let lists = listed.ivf.lists();
            let vectors = lists.iter().map(|list| list.len()).sum::<usize>().max(1);
            lists.renumbered_bytes(before as f64 / vectors as f64) + held - lists.owned_bytes()
        };
        let held = listed.filter(|_| anew).map_or(held, kept);
        if learns {
            let lists = Ivf::bytes_of(list_params, all) + rotated_bytes(params, nlist);
            let growth = Growth { held: lists, replaced: held };
            let code = if coded { coded::train_bytes(params.code, space, all) } else { 0 };
            let learning = code.max(Ivf::train_bytes(list_params, all, workers));
            return Part { growth, learning, filling };
        }
        let Some(listed) = listed else { return Part::default() };
        let added = listed.ivf.lists().growth(more, more > FEW);
        Part { growth: Growth { held: held + added, replaced: 0 }, learning: 0, filling }
    }

    /// What `nlist` lists hold whose vectors lie in an opened file.
    pub(crate) fn open_bytes(params: &Params, nlist: usize) -> usize {
        Ivf::open_bytes(params.dim, nlist) + rotated_bytes(params, nlist)
    }

    /// Lists of all vectors of `space`; none if these are copies of one, which no code tells apart.
    fn train(
        params: &Params,
        space: &Space,
        executor: &dyn Executor,
        proceed: &mut Proceed<'_>,
    ) -> Result<Option<Listed>, CodeFailure> {
        let count = space.len();
        let coder = match params.code {
            Code::None | Code::Pq4 => None,
            code => match coded::train(code, space, params.seed)? {
                Err(CodeError::Constant { .. }) => return Ok(None),
                coder => Some(coder?),
            },
        };
        let nlist = if params.nlist == 0 { nlist_for(count) } else { params.nlist };
        let list_params = list_params(params, space, nlist, coder.as_ref().map(Coder::stride));
        let ivf = Ivf::train(list_params, *space.kernels(), space, count, executor, &mut |_| proceed(0))?;
        let mut listed = Listed::new(ivf, coder, count, 1);
        listed.take_in(space, 0..count, executor, proceed)?;
        if params.code != Code::None {
            listed.oversample = listed.trial(space);
        }
        Ok(Some(listed))
    }

    /// Puts `rows` of `space` into their lists.
    fn take_in(
        &self,
        space: &Space,
        rows: Range<usize>,
        executor: &dyn Executor,
        proceed: &mut Proceed<'_>,
    ) -> Result<(), CodeFailure> {
        let code = |row: usize, list: u32, to: &mut [u8]| self.write(space, row as u32, list, to);
        if rows.len() <= FEW {
            let (mut probe, mut vector) = (ListProbe::default(), Vec::new());
            for row in rows {
                space.floats(row as u32, &mut vector);
                self.ivf.insert(row as u32, &vector, &|list, to| code(row, list, to), &mut probe)?;
            }
            return Ok(());
        }
        let mut lists = Vec::new();
        let bytes = rows.len() * size_of::<u32>();
        lists.try_reserve_exact(rows.len()).map_err(|_| OutOfMemory { bytes })?;
        lists.resize(rows.len(), 0);
        if !self.ivf.assign(space, rows.start, &mut lists, executor, &mut |_| proceed(0)) {
            return Err(CodeFailure::Cancelled);
        }
        Ok(self.ivf.add(space, rows.start, &lists, &code, executor)?)
    }

    /// Writes what a list holds of the vector in `row`.
    fn write(&self, space: &Space, row: u32, list: u32, to: &mut [u8]) {
        let mut vector = Vec::new();
        match &self.held {
            Held::Vectors => space.write_listed(row, to),
            Held::I8(coder) => {
                space.floats(row, &mut vector);
                coder.encode(&vector, to, &mut Vec::new());
            }
            Held::Residuals(coder, centroids) => {
                space.floats(row, &mut vector);
                let mut residual = Vec::new();
                coder.rotate(&vector, &mut residual);
                let centroid = &centroids[list as usize * space.dim..][..space.dim];
                residual.iter_mut().zip(centroid).for_each(|(r, c)| *r -= c);
                coder.encode_residual(&residual, to);
            }
            Held::Pq4 => unreachable!("lists make these codes"),
        }
    }

    /// Makes a query, which comes as `floats`, ready to scan the `nprobe` lists nearest to it.
    pub(crate) fn prepare(&self, space: &Space, floats: &[f32], nprobe: usize, query: &mut ListQuery) {
        let ListQuery { lists, code, rotated } = query;
        self.ivf.probe(floats, nprobe, lists);
        match &self.held {
            Held::I8(coder) => coder.prepare(floats, code),
            Held::Residuals(coder, _) => {
                coder.rotate(floats, rotated);
                if space.metric == Metric::InnerProduct {
                    coder.prepare_residual(rotated, code);
                }
            }
            Held::Vectors | Held::Pq4 => {}
        }
    }

    /// Scans the `i`th list of a query, which comes as `probe` and as made ready, into `best`: the list's number, and how
    /// many vectors it has.
    pub(crate) fn scan(
        &self,
        space: &Space,
        (probe, query): (&Probe, &ListQuery),
        i: usize,
        allowed: Allowed<'_>,
        scratch: &mut ListScan,
        best: &mut Best,
    ) -> (u32, usize) {
        let ListScan { scan, code: own, residual } = scratch;
        let list = query.lists.list(i);
        let vectors = self.ivf.lists().list(list as usize).len();
        let (mut code, mut base) = (&query.code, None);
        if let Held::Residuals(coder, centroids) = &self.held {
            let centroid = &centroids[list as usize * space.dim..][..space.dim];
            if space.metric == Metric::InnerProduct {
                base = Some(-space.kernels().dot_f32.one(&query.rotated, centroid));
            } else {
                residual.clear();
                residual.extend(query.rotated.iter().zip(centroid).map(|(q, c)| q - c));
                coder.prepare_residual(residual, own);
                code = own;
            }
        }
        let mut keys = |_: u32, codes: &[u8], keys: &mut [i32]| match &self.held {
            Held::Vectors => space.keys_listed(probe, codes, keys),
            Held::I8(coder) | Held::Residuals(coder, _) => coder.keys_of_list(code, base, codes, keys),
            Held::Pq4 => unreachable!("lists compare these codes"),
        };
        self.ivf.scan(&query.lists, i, &mut keys, allowed, scan, best);
        (list, vectors)
    }

    /// Whether keys of the lists are those of the stored vectors.
    pub(crate) fn exact(&self) -> bool {
        matches!(self.held, Held::Vectors)
    }

    /// The least number of candidates for each result with which vectors of the index find their nearest, of those in
    /// the lists around them; 0 if none that is tried is enough.
    fn trial(&self, space: &Space) -> u32 {
        let (mut probe, mut floats, mut scratch) = (Probe::default(), Vec::new(), ListScratch::default());
        let count = space.len();
        let queries = QUERIES.min(count);
        let nprobe = (self.ivf.lists().len() * SEEN / count).max(8);
        let most = OVERSAMPLES[OVERSAMPLES.len() - 1] * K;
        let (mut hits, mut all) = ([0; OVERSAMPLES.len()], 0);
        for query in 0..queries {
            let row = (query * count / queries) as u32;
            space.load(row, &mut probe);
            space.floats(row, &mut floats);
            let allowed = Allowed { rows: count, which: Which::All };
            let ListScratch { query, scan, best } = &mut scratch;
            self.prepare(space, &floats, nprobe, query);
            best.reset(most + 1);
            for i in 0..query.lists().len() {
                self.scan(space, (&probe, query), i, allowed, scan, best);
            }
            let others = best.sorted().iter().map(|entry| entry.id()).filter(|&id| id != row);
            let ids: Vec<u32> = others.take(most).collect();
            let mut keys = vec![0; ids.len()];
            space.keys_of(&probe, &ids, &mut keys);
            let mut order: Vec<(i32, usize)> = keys.into_iter().zip(0..).collect();
            order.sort_unstable();
            order.truncate(K);
            all += order.len();
            for (hits, oversample) in hits.iter_mut().zip(OVERSAMPLES) {
                *hits += order.iter().filter(|(_, place)| *place < oversample * K).count();
            }
        }
        let enough = hits.iter().position(|&hits| hits as f64 >= RECALL * all as f64);
        enough.map_or(0, |i| OVERSAMPLES[i] as u32)
    }

    /// Candidates for each result.
    pub(crate) fn candidates(&self) -> u32 {
        if self.coarse() { OVERSAMPLES[OVERSAMPLES.len() - 1] as u32 } else { self.oversample }
    }

    /// Whether no number of candidates that was tried is enough.
    pub(crate) fn coarse(&self) -> bool {
        self.oversample == 0
    }

    /// What was made and measured, in a line; nothing without a code.
    pub(crate) fn describe(&self, code: Code) -> Option<String> {
        let lists = self.ivf.lists();
        let found = if self.coarse() { "not even " } else { "" };
        (!self.exact()).then(|| {
            format!(
                "code {} in {} lists, made of {} vectors: {found}{} candidates a result find {} % of the nearest",
                code.name(),
                lists.len(),
                self.fitted,
                self.candidates(),
                100.0 * RECALL
            )
        })
    }

    /// The rows `rows` alone, numbered anew.
    pub(crate) fn keep(&self, rows: &[u32], count: usize) -> Result<Listed, OutOfMemory> {
        let mut places = vec![u32::MAX; count];
        rows.iter().zip(0..).for_each(|(&row, place)| places[row as usize] = place);
        let number = |row: u32| places.get(row as usize).copied().filter(|&place| place != u32::MAX);
        let ivf = self.ivf.renumbered(&number)?;
        Ok(Listed { ivf, held: self.held.clone(), parameters: self.parameters.clone(), ..*self })
    }

    pub(crate) fn owned_bytes(&self) -> usize {
        let rotated =
            if let Held::Residuals(_, centroids) = &self.held { size_of_val(&**centroids) } else { 0 };
        self.ivf.lists().owned_bytes() + self.ivf.centroids().owned_bytes() + rotated
    }
}
