//! The class `lanewise.Index`.

use crate::errors::{Failure, argument, warn_fewer};
use crate::filter::{Filter, filter, given_filter};
use crate::guard::change;
use crate::parts::nearest;
use crate::tune::{self, Monitored};
use crate::watch::Watch;
use crate::{add, arguments, arrays, info, reach, results};
use lanewise_engine as engine;
use lanewise_engine::Threads;
use lanewise_engine::index::{Code, Dtype, Executor, Index as Inner, Kind, Metric, Monitor, Params, Search};
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyType};
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// An index of vectors.
///
/// dim: dimensions of a vector, 1 to 65536 (i8, u8: 1 to 33025; bits: 1 to 1048576, counting bits).
/// metric: "l2" (squared Euclidean distance), "ip" (negated inner product), "cosine" (one minus the cosine; vectors
///     are normalised as they enter), "hamming" (differing bits) or "jaccard" (one minus common bits over bits set in
///     either). Not given: "l2", for bits "hamming".
/// dtype: what vectors are stored as: "f32", "f16" or "bf16" (floats of 16 bits, rounded as they enter), "i8" (signed
///     bytes), "u8" (unsigned bytes) or "bits".
/// kind: "hnsw" (approximate, Malkov & Yashunin 2016), "ivf" (approximate, by the lists of the nearest centroids; built
///     fastest) or "flat" (exact, by comparing all; with a code all codes are compared, and the best by code ordered).
/// code: what searches walk on: "none" (the vectors themselves), "i8" (a byte a dimension), "i4" (half a byte), "bits"
///     (RaBitQ) or, for kind "ivf", "pq4" (product quantization, half a byte for four dimensions). The best by code are then ordered by the vectors. Fitted to the vectors once there are 256; info()["code_report"] says what
///     recall it costs on a sample of them. Not for dtype "bits".
/// m: HNSW, links of a node in upper layers, twice that in the base layer; 2 to 512.
/// ef_construction: HNSW, candidates kept while a vector is added; 1 to 65536.
/// nlist: IVF, number of lists, up to 65536; 0: about four times the square root of the number of vectors. Lists are made
///     by the first add() that leaves enough vectors, at least 1024 or 8 a list (searches are exact till then), and anew
///     once there are 16 times as many.
/// memory_limit: the most bytes that the index may take, with what it takes while vectors are added; see memory_limit.
/// seed: what the layers of HNSW, the samples of lists and the rotations of codes are drawn from. Same vectors, parameters, calls and seed give the same index, at any
///     number of threads.
///
/// Smaller distances are nearer for every metric. Threads may use an index together: a search waits for
/// nothing and sees the vectors that were in when it began; changes wait for each other. An array must not be changed while a call reads it.
///
/// Raises ArgumentError, DtypeError (wrong arguments) and IsaError (wrong LANEWISE_ISA).
#[pyclass(frozen, module = "lanewise")]
pub(crate) struct Index {
    pub(crate) params: Params,
    pub(crate) inner: Inner,
    monitored: Monitored,
}

#[pymethods]
impl Index {
    #[new]
    #[pyo3(
        signature = (dim, metric=None, dtype=Dtype::F32, kind=Kind::Hnsw, code=Code::None, m=16, ef_construction=200, seed=0, nlist=0, *, memory_limit=None),
        text_signature = "(dim, metric=None, dtype='f32', kind='hnsw', code='none', m=16, ef_construction=200, seed=0, nlist=0, *, memory_limit=None)"
    )]
    #[expect(clippy::too_many_arguments, reason = "Python's keyword arguments")]
    fn new(
        py: Python<'_>,
        #[pyo3(from_py_with = arguments::dim)] dim: usize,
        #[pyo3(from_py_with = arguments::metric)] metric: Option<Metric>,
        #[pyo3(from_py_with = arguments::dtype)] dtype: Dtype,
        #[pyo3(from_py_with = arguments::kind)] kind: Kind,
        #[pyo3(from_py_with = arguments::code)] code: Code,
        #[pyo3(from_py_with = arguments::m)] m: usize,
        #[pyo3(from_py_with = arguments::ef_construction)] ef_construction: usize,
        #[pyo3(from_py_with = arguments::seed)] seed: u64,
        #[pyo3(from_py_with = arguments::nlist)] nlist: usize,
        #[pyo3(from_py_with = arguments::memory_limit)] memory_limit: Option<usize>,
    ) -> PyResult<Self> {
        let usual = if dtype == Dtype::Bits { Metric::Hamming } else { Metric::L2 };
        let metric = metric.unwrap_or(usual);
        let params = Params { dim, metric, dtype, kind, code, m, ef_construction, nlist, seed };
        let inner = Inner::new(params).map_err(|error| Failure::Create(error).raise(py))?;
        inner.set_memory_limit(memory_limit);
        Ok(inner.into())
    }

    /// Opens an index that save() wrote.
    ///
    /// path: str or os.PathLike.
    /// memory_limit: as for Index(): bytes besides those of the file.
    ///
    /// All of the file is checked, then it is read in place by memory map, so that opening copies nothing. The file must
    /// not be changed while the index lives; save() replaces files and never changes one.
    ///
    /// Raises OSError (FileNotFoundError and so on), FormatError (damaged, no index, or of a newer version), IsaError.
    #[classmethod]
    #[pyo3(signature = (path, *, memory_limit=None))]
    fn open(
        class: &Bound<'_, PyType>,
        #[pyo3(from_py_with = arguments::path)] path: PathBuf,
        #[pyo3(from_py_with = arguments::memory_limit)] memory_limit: Option<usize>,
    ) -> PyResult<Self> {
        let py = class.py();
        let opened = py.detach(|| engine::open(&path, memory_limit));
        opened.map(Index::from).map_err(|error| Failure::File(error).raise(py))
    }

    /// What open() would take, as a dict: file_bytes, read in place and shared with other processes; memory_bytes, what
    /// the index would hold besides; peak_bytes, the most of that while it is opened. Reads the file's header only.
    ///
    /// path: str or os.PathLike.
    ///
    /// Raises OSError, FormatError.
    #[staticmethod]
    fn predict_open<'py>(
        py: Python<'py>,
        #[pyo3(from_py_with = arguments::path)] path: PathBuf,
    ) -> PyResult<Bound<'py, PyDict>> {
        let predicted = engine::predict_open(&path).map_err(|error| Failure::File(error).raise(py))?;
        let need = info::need(py, predicted.1)?;
        need.set_item("file_bytes", predicted.0)?;
        Ok(need)
    }

    /// What adding n vectors in one call would take, as a dict: memory_bytes, what the index would hold then (as
    /// info()["memory_bytes"] says it); peak_bytes, the most it would hold on the way there. Within 5 % from some
    /// megabytes on. The array that add() is given is not counted.
    ///
    /// n: number of vectors.
    /// ids: whether they would come with ids.
    /// num_threads: as for add().
    ///
    /// Raises ArgumentError, DtypeError.
    #[pyo3(signature = (n, *, ids=false, num_threads=None))]
    fn predict_add<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = arguments::n)] n: usize,
        ids: bool,
        #[pyo3(from_py_with = arguments::num_threads)] num_threads: Option<NonZeroUsize>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let workers = Threads::new(num_threads).workers();
        let need = py.detach(|| change(&self.inner, |index| Ok(index.predict(n, ids, workers)?)));
        info::need(py, need.map_err(|error| error.raise(py))?)
    }

    /// The most bytes that the index may take, or None. An add() or upsert() that would take more, by what predict_add()
    /// says, raises MemoryError with the numbers and changes nothing; the memory of removed vectors is given back only
    /// where there is room for a copy of the others, and repair() raises MemoryError where there is none for the links of
    /// an opened file. What readers of an earlier state keep alive is not counted, nor is an opened file. May be set
    /// at any time; what the index holds already stays.
    #[getter]
    fn memory_limit(&self) -> Option<usize> {
        self.inner.memory_limit()
    }

    #[setter]
    fn set_memory_limit(&self, #[pyo3(from_py_with = arguments::memory_limit)] memory_limit: Option<usize>) {
        self.inner.set_memory_limit(memory_limit);
    }

    /// Writes the index to a file, for Index.open().
    ///
    /// path: str or os.PathLike. What the file held before is replaced once all of the index is on disk; if anything
    ///     fails it stays as it was.
    ///
    /// Raises OSError.
    fn save(&self, py: Python<'_>, #[pyo3(from_py_with = arguments::path)] path: PathBuf) -> PyResult<()> {
        py.detach(|| change(&self.inner, |index| Ok(engine::save(index, &path)?)))
            .map_err(|error| error.raise(py))
    }

    /// Adds vectors and returns the index.
    ///
    /// x: shape (n, dim), or (dim,) for one vector; any array of floats, integers or bools, in any layout, whose values
    ///     the index's dtype holds (float64 is rounded to f32). For dtype "bits": bools or 0 and 1, or uint8 of shape
    ///     (n, ceil(dim / 8)) packed as by np.packbits(x, axis=-1, bitorder="little").
    /// ids: n distinct integers, shape (n,). Not given: the vectors are numbered on from the first, 0. Give ids for all
    ///     adds of an index from some point on.
    /// progress: whether to draw a bar on sys.stderr.
    /// num_threads: 1 to 4096. Not given: what CPU affinity and container limits allow.
    ///
    /// If the arguments are wrong, or memory does not suffice, nothing is added. Ctrl-C (or a signal handler that
    /// raises) ends the call; the vectors that are in by then stay, and a note on the exception says how many.
    ///
    /// Raises ArgumentError, DtypeError, MemoryError.
    #[pyo3(signature = (x, ids=None, *, progress=false, num_threads=None))]
    fn add<'py>(
        this: Bound<'py, Self>,
        x: &Bound<'py, PyAny>,
        ids: Option<&Bound<'py, PyAny>>,
        #[pyo3(from_py_with = arguments::progress)] progress: bool,
        #[pyo3(from_py_with = arguments::num_threads)] num_threads: Option<NonZeroUsize>,
    ) -> PyResult<Bound<'py, Self>> {
        let ids = ids.map(|ids| arrays::ids("ids", ids)).transpose()?;
        add::add(this, x, ids, false, progress, num_threads)
    }

    /// Adds vectors, or replaces those whose ids are there already, and returns the index.
    ///
    /// As add(), but for that; every search finds either the old or the new vector of an id.
    ///
    /// Raises ArgumentError, DtypeError, MemoryError.
    #[pyo3(signature = (x, ids, *, progress=false, num_threads=None))]
    fn upsert<'py>(
        this: Bound<'py, Self>,
        x: &Bound<'py, PyAny>,
        ids: &Bound<'py, PyAny>,
        #[pyo3(from_py_with = arguments::progress)] progress: bool,
        #[pyo3(from_py_with = arguments::num_threads)] num_threads: Option<NonZeroUsize>,
    ) -> PyResult<Bound<'py, Self>> {
        let ids = arrays::ids("ids", ids)?;
        let done = add::add(this, x, Some(ids), true, progress, num_threads)?;
        done.get().repair_if_due(done.py(), num_threads)?;
        Ok(done)
    }

    /// Removes vectors; how many of the ids were there.
    ///
    /// ids: integers, shape (n,). Those that are not there are passed over.
    /// num_threads: for a repair. Not given: what CPU affinity and container limits allow.
    ///
    /// No later search finds them. Once an eighth of all vectors are removed ones, repair() runs as part of the call.
    ///
    /// Raises ArgumentError, DtypeError, MemoryError.
    #[pyo3(signature = (ids, *, num_threads=None))]
    fn remove(
        &self,
        ids: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = arguments::num_threads)] num_threads: Option<NonZeroUsize>,
    ) -> PyResult<usize> {
        let py = ids.py();
        let ids = arrays::ids("ids", ids)?;
        let removed = py.detach(|| change(&self.inner, |index| Ok(index.remove(&ids)?)));
        let removed = removed.map_err(|error| error.raise(py))?;
        self.repair_if_due(py, num_threads)?;
        Ok(removed)
    }

    /// Mends what removals left: links to removed vectors are replaced, and their memory is given back.
    ///
    /// num_threads: 1 to 4096. Not given: what CPU affinity and container limits allow.
    ///
    /// Searches run meanwhile; changes wait. Ctrl-C ends it, and leaves the rest for another time.
    ///
    /// Raises MemoryError.
    #[pyo3(signature = (*, num_threads=None))]
    pub(crate) fn repair(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = arguments::num_threads)] num_threads: Option<NonZeroUsize>,
    ) -> PyResult<()> {
        let mut watch = Watch::new(None);
        let threads = Threads::new(num_threads);
        let repaired = py.detach(|| {
            change(&self.inner, |index| Ok(index.repair(&threads, &mut |done, _| watch.proceed(done))?))
        });
        let repaired = repaired.map_err(|error| error.raise(py))?;
        if repaired.finished { Ok(()) } else { Err(Failure::Stopped(watch.raised).raise(py)) }
    }

    /// The vectors among which searches are to look, as a Filter for search().
    ///
    /// chosen: ids, an array of integers; or a bool for each vector, shape (len(index),), in the order of ids(); or a
    ///     function that takes an array of ids and returns such bools.
    ///
    /// It fits the index as it is now: after a change it must be made anew.
    ///
    /// Raises ArgumentError, DtypeError, and what the function raises.
    fn filter(&self, chosen: &Bound<'_, PyAny>) -> PyResult<Filter> {
        Ok(Filter { inner: filter(&self.inner.reader(), chosen)? })
    }

    /// The ids of all vectors, int64 of shape (len(index),), in the order in which they came.
    fn ids<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        let reader = self.inner.reader();
        PyArray1::from_vec(py, py.detach(|| reader.ids().collect()))
    }

    /// The min(k, len(index)) nearest vectors to each query, nearest first: a Found, which unpacks into
    /// (ids, distances).
    ///
    /// q: shape (n, dim), or (dim,) for one query; arrays as for add().
    /// k: how many to find. More than there are: all are returned, with a FewerResultsWarning.
    /// ef_search: HNSW, candidates kept while searching: more is better and slower; below k it counts as k.
    /// epsilon: HNSW, in place of ef_search: the search goes on while there are candidates nearer than 1 + epsilon times
    ///     the k-th nearest so far. 0 to 10, 0.1 is usual. It does little for easy queries and more for hard ones, and so
    ///     finds more than ef_search for the same work. Not for metric "ip".
    /// nprobe: IVF, lists that are scanned: more is better and slower; more than there are counts as all.
    /// oversample: with a code, how many candidates for each result are ordered by the vectors; 1 to 1000. Not given: what
    ///     the code needed on a sample.
    /// target_recall: above 0, at most 1, in place of all four: the least effort that is known to find this share of the
    ///     results, by the curve that calibrate() measured. The first such search measures it, and later ones anew if
    ///     more vectors came in since than there were then, or a quarter was removed or replaced. What no measured effort
    ///     is known to reach, and all above 0.999, is searched exactly. With a filter, what was measured is without it.
    /// filter: only these vectors may be results: a Filter, or what filter() takes. How a filtered search is carried out
    ///     depends on how many pass; there are always min(k, len(filter)) results.
    /// num_threads: 1 to 4096. Not given: what CPU affinity and container limits allow.
    ///
    /// ids (int64) and distances (float32) have shape (n, min(k, len(index))), or (min(k, len(index)),) for one query.
    ///
    /// Raises ArgumentError, DtypeError, MemoryError.
    #[pyo3(signature = (q, k=10, *, ef_search=64, epsilon=None, nprobe=16, oversample=None, target_recall=None, filter=None, num_threads=None))]
    #[expect(clippy::too_many_arguments, reason = "Python's keyword arguments")]
    fn search<'py>(
        &self,
        q: &Bound<'py, PyAny>,
        #[pyo3(from_py_with = arguments::k)] k: usize,
        #[pyo3(from_py_with = arguments::ef_search)] ef_search: usize,
        #[pyo3(from_py_with = arguments::epsilon)] epsilon: Option<f32>,
        #[pyo3(from_py_with = arguments::nprobe)] nprobe: usize,
        #[pyo3(from_py_with = arguments::oversample)] oversample: Option<f32>,
        #[pyo3(from_py_with = arguments::target_recall)] target_recall: Option<f32>,
        filter: Option<&Bound<'py, PyAny>>,
        #[pyo3(from_py_with = arguments::num_threads)] num_threads: Option<NonZeroUsize>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = q.py();
        // The curve first: measuring it lets other threads run.
        let curve = match target_recall {
            Some(_) if epsilon.is_some() || oversample.is_some() => {
                let message = "target_recall chooses epsilon and oversample: leave these out, or it";
                return Err(argument(py, "target_recall", message));
            }
            Some(target) => {
                Search::check_target(target).map_err(|error| Failure::Search(error).raise(py))?;
                Some((tune::curve(&self.inner, num_threads, py)?, target))
            }
            None => None,
        };
        let reader = self.inner.reader();
        // A filter first: its function runs Python code, and none may run once an array is lent.
        let filter = given_filter(&reader, filter)?;
        let batch = arrays::vectors("q", q, &self.params)?;
        let vectors = batch.vectors();
        let threads = Threads::new(num_threads);
        let filter = filter.as_ref().map(|filter| &filter.inner);
        let how = Search { epsilon, nprobe, oversample, filter, ..Search::new(k).ef(ef_search) };
        let how = match curve {
            Some((curve, target)) => {
                curve.tune(how, target).map_err(|error| Failure::Search(error).raise(py))?
            }
            None => how,
        };
        let monitor = self.monitored.get();
        let found = py.detach(|| nearest(&reader, vectors, &how, threads, monitor.as_deref()));
        let found = found.map_err(|error| error.raise(py))?;
        if found.k < k {
            warn_fewer(py, k, found.k, if filter.is_some() { "the filter" } else { "the index" })?;
        }
        let shape = if batch.single { vec![found.k] } else { vec![batch.count, found.k] };
        results::found(py, found.ids, found.distances, &shape, &found.counts)
    }

    /// All vectors within a radius of each query, nearest first: a FoundRange with lims, distances and ids, which gives a
    /// pair (ids, distances) for each query when iterated.
    ///
    /// q: shape (n, dim), or (dim,) for one query; arrays as for add().
    /// radius: the largest distance that results may have, as search() reports distances. Smaller is nearer for every
    ///     metric: "l2" is squared, and for "ip", whose distances are negated, -0.8 asks for products of at least 0.8.
    /// limit: how many results a query has at most, its nearest. Not given: all within.
    /// filter: as for search().
    /// effort: ef_search, epsilon, nprobe, oversample, num_threads, as for search().
    ///
    /// Exact for kind "flat" without a code. Else more and more are looked for until the last is beyond the radius, so that what is
    /// within is found as well as search() finds as many.
    ///
    /// Raises ArgumentError, DtypeError, MemoryError.
    #[pyo3(signature = (q, radius, *, limit=None, filter=None, **effort))]
    fn range_search<'py>(
        &self,
        q: &Bound<'py, PyAny>,
        #[pyo3(from_py_with = arguments::radius)] radius: f32,
        #[pyo3(from_py_with = arguments::limit)] limit: Option<NonZeroUsize>,
        filter: Option<&Bound<'py, PyAny>>,
        effort: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        reach::range_search(self, q, radius, limit, filter, effort)
    }

    /// The min(k, others) nearest to each of some stored vectors, itself left out: a Found, as of search().
    ///
    /// ids: an id, or integers of shape (n,).
    /// k: how many to find. More than there are others: all are returned, with a FewerResultsWarning.
    /// filter: as for search(); the vectors searched from need not pass. Where k is more than all that pass, rows of
    ///     vectors that do (one other less) end with id -1 and an infinite distance if there are rows of others.
    /// effort: ef_search, epsilon, nprobe, oversample, num_threads, as for search().
    ///
    /// Raises IdError (a KeyError: an id is not there), ArgumentError, DtypeError, MemoryError.
    #[pyo3(signature = (ids, k=10, *, filter=None, **effort))]
    fn search_by_id<'py>(
        &self,
        ids: &Bound<'py, PyAny>,
        #[pyo3(from_py_with = arguments::k)] k: usize,
        filter: Option<&Bound<'py, PyAny>>,
        effort: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        reach::search_by_id(self, ids, k, filter, effort)
    }

    /// For each query the k groups that have the nearest vectors, and of each group its nearest: a list of Group(key,
    /// ids, distances), nearest group first; for shape (n, dim) a list of n such lists.
    ///
    /// q: shape (n, dim), or (dim,) for one query; arrays as for add().
    /// k: how many groups to find; fewer come if there are no others.
    /// groups: which group a vector belongs to: a function from an id (an int) to a key, a mapping from ids to keys, or
    ///     an array of keys addressed by ids. Keys are anything hashable. Asked once for each id that it is needed for:
    ///     those of the nearest, but of all vectors if there are fewer than k groups, or (per_group above 1) if a group
    ///     has others that are far from the query.
    /// per_group: how many vectors of a group to find; fewer come if it has no others.
    /// filter: as for search().
    /// effort: ef_search, epsilon, nprobe, oversample, num_threads, as for search().
    ///
    /// Raises ArgumentError, DtypeError, MemoryError, and what the function raises.
    #[pyo3(signature = (q, k, groups, *, per_group=NonZeroUsize::MIN, filter=None, **effort), text_signature = "($self, q, k, groups, *, per_group=1, filter=None, **effort)")]
    fn search_groups<'py>(
        &self,
        q: &Bound<'py, PyAny>,
        #[pyo3(from_py_with = arguments::k)] k: usize,
        groups: &Bound<'py, PyAny>,
        #[pyo3(from_py_with = arguments::per_group)] per_group: NonZeroUsize,
        filter: Option<&Bound<'py, PyAny>>,
        effort: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyList>> {
        reach::search_groups(self, q, k, groups, per_group, filter, effort)
    }

    /// An iterator over ever farther results of one query: a Found of page_size vectors each time, of fewer the last.
    ///
    /// q: shape (dim,) or (1, dim); arrays as for add().
    /// page_size: vectors of a page.
    /// filter: as for search().
    /// effort: ef_search, epsilon, nprobe, oversample, as for search(); num_threads is of no use.
    ///
    /// All pages are of the index as it is now, whatever changes later, and hold its memory as long as the iterator
    /// lives. Read to the end, they have every vector (that passes) once. Each page ascends in distance; one that an
    /// approximate search missed comes with a later page.
    ///
    /// Raises ArgumentError, DtypeError.
    #[pyo3(signature = (q, page_size=NonZeroUsize::new(10).unwrap(), *, filter=None, **effort), text_signature = "($self, q, page_size=10, *, filter=None, **effort)")]
    fn pages<'py>(
        &self,
        q: &Bound<'py, PyAny>,
        #[pyo3(from_py_with = arguments::page_size)] page_size: NonZeroUsize,
        filter: Option<&Bound<'py, PyAny>>,
        effort: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<reach::Pages> {
        reach::pages(self, q, page_size, filter, effort)
    }

    /// Stored vectors, shape (n, dim), or (dim,) for one id: float32, int8 (dtype "i8"), uint8 ("u8") or bool ("bits").
    ///
    /// ids: an id, or integers of shape (n,); one may come twice.
    ///
    /// As they are stored: for metric "cosine" floats are normalised, for dtype "f16" and "bf16" rounded.
    ///
    /// Raises IdError (a KeyError: an id is not there), ArgumentError, DtypeError, MemoryError.
    fn get<'py>(&self, ids: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        reach::get(self, ids)
    }

    /// Measures which effort reaches which recall, for search(target_recall=...), and returns the curve as info() shows it.
    ///
    /// queries: 50 or more, arrays as for add(); of more than 1024, so many are taken. Not given: 512 stored vectors, each
    ///     searched for as if it and its copies were not in the index. Give queries where they are unlike the vectors.
    /// k: the numbers of results that are measured: one to eight, rising. Not given: (1, 10, 100). Efforts for others lie
    ///     between these; above the greatest, nprobe and ef_search grow in proportion.
    /// progress: whether to draw a bar on sys.stderr.
    /// num_threads: 1 to 4096. Not given: what CPU affinity and container limits allow. The curve does not depend on it.
    ///
    /// It takes about as long as comparing all vectors with two to five times as many queries. Ctrl-C ends it; the curve
    /// is then what it was. save() keeps it. Changes wait for nothing.
    ///
    /// Raises ArgumentError, DtypeError.
    #[pyo3(signature = (queries=None, *, k=None, progress=false, num_threads=None), text_signature = "(self, queries=None, *, k=None, progress=False, num_threads=None)")]
    fn calibrate<'py>(
        &self,
        py: Python<'py>,
        queries: Option<&Bound<'py, PyAny>>,
        k: Option<&Bound<'py, PyAny>>,
        #[pyo3(from_py_with = arguments::progress)] progress: bool,
        #[pyo3(from_py_with = arguments::num_threads)] num_threads: Option<NonZeroUsize>,
    ) -> PyResult<Bound<'py, PyList>> {
        let ks = tune::ks(k)?;
        let curve = tune::calibrate(&self.inner, queries, &ks, progress, num_threads, py)?;
        tune::points(py, &curve)
    }

    /// From now on samples searches, for recall_estimate(), and forgets what was sampled before.
    ///
    /// rate: share of the queries, 0 to 1, that are also searched exactly, as part of the call that asks them: they cost
    ///     so much more time. 0 ends it.
    /// window: how many sampled queries are remembered, the last ones, so that an estimate follows a drift.
    /// seed: what the queries are drawn by.
    ///
    /// Raises ArgumentError, DtypeError.
    #[pyo3(signature = (rate=0.01, *, window=1000, seed=0))]
    fn monitor(
        &self,
        #[pyo3(from_py_with = arguments::rate)] rate: f64,
        #[pyo3(from_py_with = arguments::window)] window: usize,
        #[pyo3(from_py_with = arguments::seed)] seed: u64,
    ) {
        self.monitored.set((rate > 0.0).then(|| Monitor::new(rate, window, seed)));
    }

    /// The recall of the searches that monitor() sampled last: a RecallEstimate, (recall, low, high, queries).
    ///
    /// low and high are the ends of a 95 % confidence interval. Before any query was sampled: (nan, 0, 1, 0).
    fn recall_estimate<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        tune::estimate(py, self.monitored.get().map(|monitor| monitor.estimate()))
    }

    /// What the index holds, takes and runs on, as a dict.
    ///
    /// len; removed: vectors removed whose memory repair() gives back; dim, metric, dtype, kind, code, m, ef_construction, seed,
    /// nlist: as given. lists: how many there are, 0 until there are vectors enough. vector_bytes, code_bytes, graph_bytes,
    /// list_bytes, id_bytes: of each part, in memory or in the opened file; bytes_per_vector: their sum over len. memory_bytes: what the index holds
    /// for itself, without the opened file. layers: of the graph, above the base. isa: the instruction-set level in
    /// use; kernels: the instruction set that serves each kernel. recall_curve: what calibrate() measured, or None; a dict
    /// for each k and effort: k; epsilon, ef_search or nprobe; oversample (None without a code); recall; recall_low, which the recall of all
    /// queries exceeds with 95 % confidence; distances, vectors compared for a query.
    fn info<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        info::info(&self.inner, py)
    }

    fn __len__(&self) -> usize {
        self.inner.len()
    }

    fn __repr__(&self) -> String {
        let Params { dim, metric, dtype, kind, code, m, ef_construction, nlist, seed } = self.params;
        let graph = match kind {
            Kind::Flat => String::new(),
            Kind::Hnsw => format!(", m={m}, ef_construction={ef_construction}, seed={seed}"),
            Kind::Ivf => format!(", nlist={nlist}, seed={seed}"),
        };
        let code = if code == Code::None { String::new() } else { format!(", code={:?}", code.name()) };
        let (metric, dtype, kind) = (metric.name(), dtype.name(), kind.name());
        let len = self.__len__();
        format!(
            "<lanewise.Index dim={dim}, metric={metric:?}, dtype={dtype:?}, kind={kind:?}{code}{graph}, len={len}>"
        )
    }

    /// Dimensions of a vector; bits for dtype "bits".
    #[getter]
    fn dim(&self) -> usize {
        self.params.dim
    }

    /// How distances are measured.
    #[getter]
    fn metric(&self) -> &'static str {
        self.params.metric.name()
    }

    /// What vectors are stored as.
    #[getter]
    fn dtype(&self) -> &'static str {
        self.params.dtype.name()
    }

    /// How near vectors are found.
    #[getter]
    fn kind(&self) -> &'static str {
        self.params.kind.name()
    }

    /// What searches walk on.
    #[getter]
    fn code(&self) -> &'static str {
        self.params.code.name()
    }

    /// HNSW: links of a node in upper layers.
    #[getter]
    fn m(&self) -> usize {
        self.params.m
    }

    /// HNSW: candidates kept while a vector is added.
    #[getter]
    fn ef_construction(&self) -> usize {
        self.params.ef_construction
    }

    /// What the layers of HNSW, the samples of lists and the rotations of codes are drawn from.
    #[getter]
    fn seed(&self) -> u64 {
        self.params.seed
    }

    /// IVF: number of lists as asked for; 0 if it is chosen by the number of vectors.
    #[getter]
    fn nlist(&self) -> usize {
        self.params.nlist
    }
}

impl From<Inner> for Index {
    fn from(inner: Inner) -> Self {
        Index { params: *inner.params(), inner, monitored: Monitored::default() }
    }
}
