//! What can be wrong with what a caller brings. Each message names the argument and the remedy.

use crate::code::CodeError;
use crate::memory::OutOfMemory;

/// A vector, or the shape of a set of vectors, that an index cannot take.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum VectorError {
    #[error("dim={dim} is not between 1 and {max}, what dtype {dtype:?} allows")]
    Dim { dim: usize, max: usize, dtype: &'static str },
    #[error(
        "metric={metric:?} does not measure dtype={dtype:?}: use \"hamming\" or \"jaccard\" with \"bits\", and \"l2\", \"ip\" or \"cosine\" with numbers"
    )]
    MetricOfDtype { metric: &'static str, dtype: &'static str },
    #[error("vectors are {got}, but the index holds {expected}")]
    Dtype { got: &'static str, expected: &'static str },
    #[error("{elements} elements are not a whole number of vectors of {width}")]
    Shape { elements: usize, width: usize },
    #[error("vector {row} has {value} at position {column}: vectors must be finite, drop or repair it")]
    NotFinite { row: usize, column: usize, value: f32 },
    #[error(
        "vector {row} has {value} at position {column}, which f16 does not hold: scale the vectors down, or use dtype \"bf16\""
    )]
    BeyondF16 { row: usize, column: usize, value: f32 },
    #[error("vector {row} is too long: its squared norm exceeds what f32 holds; scale the vectors down")]
    TooLarge { row: usize },
    #[error(
        "vector {row} is zero (or nearly), which has no direction: drop it, or use metric \"l2\" or \"ip\""
    )]
    Zero { row: usize },
    #[error("vector {row} has bits set beyond dim={dim}: clear the last byte's high bits")]
    BitsBeyondDim { row: usize, dim: usize },
}

/// Why an index could not be made.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum CreateError {
    #[error(transparent)]
    Vector(#[from] VectorError),
    #[error("code={code:?} has nothing to make smaller of bits: use code=\"none\"")]
    CodeOfBits { code: &'static str },
    #[error("m={m} is not between 2 and 512")]
    M { m: usize },
    #[error("code={code:?} is for lists, not for kind={kind:?}: use kind=\"ivf\", or code=\"i4\"")]
    CodeOfLists { code: &'static str, kind: &'static str },
    #[error("nlist={nlist} is not between 0 (chosen by the number of vectors) and 65536")]
    Nlist { nlist: usize },
    #[error("ef_construction={ef} is not between 1 and 65536")]
    EfConstruction { ef: usize },
    #[error(transparent)]
    Isa(#[from] lanewise_kernels::IsaError),
}

/// An earlier change of the index panicked, and left behind what nobody should build on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "an earlier change ended in a panic: the index can be searched, but not changed or saved; open it again"
)]
pub struct Broken;

/// Why vectors were not added, or not all of them.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum AddError {
    #[error(transparent)]
    Vector(#[from] VectorError),
    #[error("x has no vectors")]
    Empty,
    #[error("ids has {ids} entries for {vectors} vectors: give one each")]
    IdsLen { ids: usize, vectors: usize },
    #[error("ids names {id} twice, or the index has it already: ids must be unique")]
    DuplicateId { id: i64 },
    #[error("ids must be given: the vectors so far have ids of their own")]
    IdsMissing,
    #[error(
        "an index holds at most {max} vectors: {len} are there and {more} were to be added; use several indexes"
    )]
    Full { len: usize, more: usize, max: usize },
    #[error(
        "memory_limit={limit}: with these vectors, {vectors} in all, the index would take up to {needs} bytes; raise the \
         limit, add fewer, or choose a smaller dtype or code"
    )]
    Limit { limit: usize, needs: usize, vectors: usize },
    #[error(transparent)]
    Memory(#[from] OutOfMemory),
    #[error(transparent)]
    Broken(#[from] Broken),
    #[error(transparent)]
    Code(#[from] CodeError),
    #[error(transparent)]
    Create(#[from] CreateError),
    #[error("cancelled: the first {added} of {total} vectors were added and can be searched")]
    Cancelled { added: usize, total: usize },
}

/// Why vectors were not removed, or what removals left was not mended.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum RemoveError {
    #[error("the repair was stopped, so nothing was numbered anew")]
    Stopped,
    #[error(transparent)]
    Memory(#[from] OutOfMemory),
    #[error(
        "memory_limit={limit}: to be repaired, links that lie in the opened file are copied, and the index would take \
         {needs} bytes; raise the limit"
    )]
    Limit { limit: usize, needs: usize },
    #[error(transparent)]
    Broken(#[from] Broken),
}

/// Why stored vectors were not given.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum GetError {
    #[error("ids names {id}, which is not there: index.ids() has those that are")]
    Missing { id: i64 },
    #[error(transparent)]
    Memory(#[from] OutOfMemory),
}

/// Why a search could not be run.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum SearchError {
    #[error(transparent)]
    Vector(#[from] VectorError),
    #[error("q has no queries")]
    Empty,
    #[error("k=0: ask for at least one result")]
    K,
    #[error("ef_search=0: use at least 1, better 16 or more")]
    EfSearch,
    #[error("nprobe=0: use at least 1, better 8 or more")]
    Nprobe,
    #[error("epsilon is not between 0 and 10: 0.1 is usual")]
    Epsilon,
    #[error("epsilon is a share of a distance, which metric \"ip\" does not have: use ef_search")]
    EpsilonOfInnerProduct,
    #[error("oversample is not between 1 and 1000: 2 to 10 is usual")]
    Oversample,
    #[error("target_recall is not above 0 and at most 1: 0.95 is usual")]
    TargetRecall,
    #[error("the filter was made for another state of the index: make it anew")]
    Filter,
    #[error("radius is not a number: give the largest distance that results may have")]
    Radius,
    #[error("q has {queries} queries: pages are of one, and so are the steps of a search")]
    OneQuery { queries: usize },
    #[error("partials are not one of each list of this query: merge what scanning each of them gave, once")]
    Partials,
    #[error("the search was stopped by its caller")]
    Stopped,
    #[error(transparent)]
    Get(#[from] GetError),
}

/// Why no curve of recall was measured.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum CalibrateError {
    #[error(transparent)]
    Vector(VectorError),
    #[error(
        "queries are {count}, too few to vouch for anything: give {fewest} or more, or none, to hold out stored vectors"
    )]
    FewQueries { count: usize, fewest: usize },
    #[error("k must be one to eight numbers of results from 1 to 10000, rising: (1, 10, 100) is usual")]
    Ks,
    #[error("cancelled: the curve of recall is what it was")]
    Cancelled,
}
