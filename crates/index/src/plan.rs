//! How a search is carried out: chosen from how many vectors there are, how many may be results, and how hard to look.
//!
//! Costs are counted in vectors compared at random places. A walk that keeps `ef` candidates compares some `WALK · ef`.
//! Walking through what fails a filter, the pool fills with the share that passes, so the walk grows by its inverse.
//! Walking around what fails costs about twice a plain walk, in links read, as long as two links still lead from one
//! passing vector to enough others.

/// Vectors compared for each candidate that a walk keeps: 13 to 17 on Fashion-MNIST and sentence embeddings at `m` 16.
const WALK: usize = 16;

/// Walking around failing vectors costs so many times a plain walk.
const AROUND: usize = 2;

/// Below this share two links (32 · 32 neighbours) lead to fewer than ten that pass.
const SPARSE: f64 = 0.01;

/// Without a filter, searches that keep one in so many of all vectors are exact: a walk among so few compares most of
/// them, at random places, where in order is cheaper.
const EXACT_SHARE: usize = 8;

/// How a search is carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Plan {
    /// Every vector that may be a result is compared.
    Exact,
    /// The graph is walked; vectors that fail the filter, or were deleted, are walked through.
    Graph,
    /// The graph is walked from one vector that passes the filter to another, around those that fail.
    FilteredGraph,
    /// The lists nearest to the query are scanned; the more of them, the fewer vectors pass the filter.
    Lists,
    /// The codes of all vectors that may be results are compared, and the best by code ordered by the vectors.
    Codes,
}

/// Comparing codes pays where no more than one in so many is compared again by its vector, at a random place.
const RESCORED_SHARE: usize = 8;

/// The plan without a graph (with one, if it is [`Plan::Exact`]), where `wanted` of `matches` vectors are to be ordered by the vectors after their codes.
pub(crate) fn by_code(matches: usize, wanted: usize) -> Plan {
    if wanted.saturating_mul(RESCORED_SHARE) <= matches { Plan::Codes } else { Plan::Exact }
}

/// Vectors compared in order, as lists have them, for one at a random place.
const IN_ORDER: usize = 4;

/// How many of `nlist` lists, if any, to scan for `k` of `matches` of `len` vectors where `nprobe` would do without a
/// filter; none if all that match are compared sooner, or the lists hold hardly as many. Lists nearest to a query hold
/// the share of its neighbours that passes, so they are taken by its inverse.
pub(crate) fn probes(len: usize, matches: usize, k: usize, nprobe: usize, nlist: usize) -> Option<usize> {
    let share = matches as f64 / len.max(1) as f64;
    let probes = ((nprobe.min(nlist) as f64 / share).ceil() as usize).min(nlist);
    let scanned = len / nlist * probes;
    let enough = k > 0 && k <= scanned * matches / len;
    (enough && scanned + nlist <= IN_ORDER * matches).then_some(probes)
}

/// The plan for the nearest `k` among `matches` of `len` vectors, `filtered` or not, keeping `ef` candidates.
pub(crate) fn choose(len: usize, matches: usize, filtered: bool, k: usize, ef: usize, graph: bool) -> Plan {
    let ef = ef.max(k).min(len);
    let share = matches as f64 / len.max(1) as f64;
    let through = (WALK * ef) as f64 / share;
    let around = (WALK * ef * AROUND) as f64;
    let exact = if filtered { matches as f64 <= through.min(around) } else { matches <= EXACT_SHARE * ef };
    match () {
        () if !graph || k == 0 || exact => Plan::Exact,
        () if !filtered || through <= around => Plan::Graph,
        () if share < SPARSE => Plan::Exact,
        () => Plan::FilteredGraph,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_scanned_by_the_share_that_passes() {
        let of = |matches, k| probes(1_000_000, matches, k, 16, 4000);
        assert_eq!(of(1_000_000, 10), Some(16));
        assert_eq!(of(500_000, 10), Some(32));
        assert_eq!(of(40_000, 10), Some(400));
        // Comparing all that match is less.
        assert_eq!(of(10_000, 10), None);
        assert_eq!(of(0, 0), None);
        // More than 16 lists hold.
        assert_eq!((of(1_000_000, 4000), of(1_000_000, 4001)), (Some(16), None));
        assert_eq!(probes(1000, 1000, 10, 100, 40), Some(40));
        // Centroids alone are more than the vectors.
        assert_eq!(probes(10, 10, 1, 16, 64), None);
    }

    #[test]
    fn codes_are_scanned_where_few_are_compared_again() {
        assert_eq!(by_code(1000, 125), Plan::Codes);
        assert_eq!(by_code(1000, 126), Plan::Exact);
        assert_eq!(by_code(10, usize::MAX), Plan::Exact);
    }

    #[test]
    fn plans_follow_the_share_that_passes() {
        let plan = |matches| choose(1_000_000, matches, true, 10, 64, true);
        assert_eq!(plan(0), Plan::Exact);
        assert_eq!(plan(1_000), Plan::Exact);
        assert_eq!(plan(9_999), Plan::Exact);
        assert_eq!(plan(10_000), Plan::FilteredGraph);
        assert_eq!(plan(100_000), Plan::FilteredGraph);
        assert_eq!(plan(499_000), Plan::FilteredGraph);
        assert_eq!(plan(500_000), Plan::Graph);
        assert_eq!(plan(1_000_000), Plan::Graph);
        assert_eq!(choose(1_000_000, 1_000_000, false, 10, 64, false), Plan::Exact);
        assert_eq!(choose(1_000_000, 999_000, false, 10, 64, true), Plan::Graph);
        assert_eq!(choose(10_000, 10_000, false, 10, 64, true), Plan::Graph);
        assert_eq!(choose(1_000, 1_000, false, 10, 128, true), Plan::Exact);
        assert_eq!(choose(1_000_000, 1_000_000, false, 200_000, 64, true), Plan::Exact);
    }
}
