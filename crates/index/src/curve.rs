//! What recall which effort reaches, as measured (see `calibrate`), and the effort for a recall that is asked for.
//!
//! For some numbers of results k there is a table: points of rising cost and rising recall. Between two of them effort is
//! interpolated along a straight line: each bit of effort finds less than the one before, so recall lies above the line.
//! The effort taken is that whose lower confidence bound reaches the target. Where so few queries cannot vouch for it,
//! the greatest effort measured serves if it missed no more than the target allows; beyond that, and for targets above
//! [`CERTAIN`], a search compares all vectors: who asks for a recall gets it, and pays.
//!
//! In a file (little-endian): u8 1; u8 knob; u8 1 if stored vectors were held out; u8 number of tables; u32 queries; u64
//! vectors; u64 vectors removed since; u64 vectors that lists or code were made of; then of each table u32 k, u32 number
//! of points, and of each point five f32: effort, oversample (0: none), recall, its lower bound, vectors compared.

use crate::error::SearchError;
use crate::search::Search;
use crate::vectors::Metric;

/// Targets above this are not for a sample to vouch for.
pub(crate) const CERTAIN: f32 = 0.999;

/// The most tables and points that a curve has.
pub(crate) const TABLES: usize = 8;
const POINTS: usize = 256;

/// What a search is given more of to find more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Knob {
    /// Nothing: searches compare all vectors.
    Exact = 0,
    /// [`Search::epsilon`].
    Epsilon = 1,
    /// [`Search::ef_search`].
    EfSearch = 2,
    /// [`Search::nprobe`].
    Nprobe = 3,
}

impl Knob {
    const ALL: [Knob; 4] = [Knob::Exact, Knob::Epsilon, Knob::EfSearch, Knob::Nprobe];

    /// Whether its values are whole numbers.
    pub fn is_whole(self) -> bool {
        self != Knob::Epsilon
    }

    /// The name users write.
    pub fn name(self) -> &'static str {
        match self {
            Knob::Exact => "exact",
            Knob::Epsilon => "epsilon",
            Knob::EfSearch => "ef_search",
            Knob::Nprobe => "nprobe",
        }
    }
}

/// An effort and what it finds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// The knob's value.
    pub effort: f32,
    /// Candidates for each result, with a code.
    pub oversample: Option<f32>,
    /// Share of the results that the queries found.
    pub recall: f32,
    /// Lower bound of the recall, which holds with a probability of 0.95.
    pub low: f32,
    /// Vectors compared, on average of the queries; those at random places, by which candidates of a code are ordered,
    /// count four times.
    pub distances: f32,
}

/// The points of one k, both cost and recall rising.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Number of results.
    pub k: usize,
    /// At least one.
    pub points: Vec<Point>,
}

/// What recall which effort reaches.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// What is given more of.
    pub knob: Knob,
    /// Whether stored vectors were the queries, each searched for as if it were not in the index.
    pub held_out: bool,
    /// Number of queries.
    pub queries: usize,
    /// Number of vectors when it was measured.
    pub len: usize,
    /// By rising k; none if searches compare all vectors anyway.
    pub tables: Vec<Table>,
    /// Vectors removed from the index till then.
    pub(crate) removed: u64,
    /// Vectors that lists or code were made of.
    pub(crate) fitted: u64,
}

impl Curve {
    /// `search` with the least effort that is known to find the share `target` of its results, in place of what it says
    /// of effort and `oversample`.
    ///
    /// Between two measured k the greater effort of both is taken: needs rise with k (`nprobe`, `ef_search`) or fall
    /// (`epsilon`), unevenly where vectors have copies. Above the greatest k, `ef_search` and `nprobe` grow in proportion
    /// to k, as no more lists or nodes than that hold the results; `epsilon` is relative already.
    ///
    /// # Errors
    /// If `target` is not above 0 and at most 1.
    pub fn tune<'a>(&self, search: Search<'a>, target: f32) -> Result<Search<'a>, SearchError> {
        Search::check_target(target)?;
        let k = search.k;
        let last = self.tables.len().saturating_sub(1);
        let above = self.tables.iter().position(|table| table.k >= k).unwrap_or(last);
        let below = if self.tables.get(above).is_some_and(|table| table.k > k) {
            above.saturating_sub(1)
        } else {
            above
        };
        let around = self.tables.iter().take(above + 1).skip(below);
        let greater = |a: Option<(f32, Option<f32>)>, b: Option<(f32, Option<f32>)>| {
            let ((a, o), (b, p)) = (a?, b?);
            Some((a.max(b), o.into_iter().chain(p).reduce(f32::max)))
        };
        let Some(Some((effort, oversample))) = around.map(|table| table.setting(target)).reduce(greater)
        else {
            return Ok(Search { exact: true, ..search });
        };
        let scale = self.tables.last().map_or(1.0, |table| (k as f32 / table.k as f32).max(1.0));
        let scaled = (effort * scale).ceil() as usize;
        let search = Search { exact: false, epsilon: None, oversample, ..search };
        Ok(match self.knob {
            Knob::Exact => Search { exact: true, ..search },
            Knob::Epsilon => Search { epsilon: Some(effort), ..search },
            Knob::EfSearch => Search { ef_search: scaled, ..search },
            Knob::Nprobe => Search { nprobe: scaled, ..search },
        })
    }

    /// Whether it speaks for an index of `len` vectors, from which `removed` were removed in all, and whose lists or code
    /// were made of `fitted`: not once more came in than there were, a quarter was removed or replaced, or lists or code
    /// were made anew.
    pub(crate) fn speaks_for(&self, len: usize, removed: u64, fitted: u64) -> bool {
        let (then, gone) = (self.len as u64, removed.saturating_sub(self.removed));
        let added = (len as u64).saturating_add(gone).saturating_sub(then);
        fitted == self.fitted && added <= then && gone <= then / 4
    }

    /// The curve as a file keeps it, where `removed` vectors were removed from the index in all.
    pub(crate) fn bytes(&self, removed: u64) -> Vec<u8> {
        let mut bytes = vec![1, self.knob as u8, u8::from(self.held_out), self.tables.len() as u8];
        bytes.extend((self.queries as u32).to_le_bytes());
        for number in [self.len as u64, removed.saturating_sub(self.removed), self.fitted] {
            bytes.extend(number.to_le_bytes());
        }
        for Table { k, points } in &self.tables {
            bytes.extend((*k as u32).to_le_bytes());
            bytes.extend((points.len() as u32).to_le_bytes());
            for Point { effort, oversample, recall, low, distances } in points {
                for number in [*effort, oversample.unwrap_or(0.0), *recall, *low, *distances] {
                    bytes.extend(number.to_le_bytes());
                }
            }
        }
        bytes
    }

    /// The curve that `bytes` of a file describe, and how many vectors were removed since; none if there are no bytes.
    ///
    /// # Errors
    /// If they do not describe one, or none of an index with such a metric.
    pub(crate) fn from_bytes(bytes: &[u8], metric: Metric) -> Result<Option<(Curve, u64)>, &'static str> {
        if bytes.is_empty() {
            return Ok(None);
        }
        let mut rest = bytes;
        let head = take(&mut rest, 4).ok_or(SHORT)?;
        let knob = Knob::ALL.get(usize::from(head[1])).copied();
        let knob = knob.filter(|&knob| head[0] == 1 && head[2] <= 1 && knob_fits(knob, metric));
        let knob = knob.ok_or("the curve of recall is of an unknown form")?;
        let queries = word(&mut rest)? as usize;
        let [len, removed, fitted] = [long(&mut rest)?, long(&mut rest)?, long(&mut rest)?];
        let wrong = "the curve of recall has numbers that none can have";
        let len = usize::try_from(len).map_err(|_| wrong)?;
        if usize::from(head[3]) > TABLES {
            return Err(wrong);
        }
        let mut tables: Vec<Table> = Vec::new();
        for _ in 0..head[3] {
            let (k, count) = (word(&mut rest)? as usize, word(&mut rest)? as usize);
            let rises = tables.last().is_none_or(|last| last.k < k);
            if k == 0 || !rises || !(1..=POINTS).contains(&count) {
                return Err(wrong);
            }
            let mut points = Vec::new();
            for _ in 0..count {
                let mut float = || word(&mut rest).map(f32::from_bits);
                let [effort, oversample, recall, low, distances] =
                    [float()?, float()?, float()?, float()?, float()?];
                let oversample = Some(oversample).filter(|&o| o != 0.0);
                let point = Point { effort, oversample, recall, low, distances };
                if !fits(knob, &point) {
                    return Err(wrong);
                }
                points.push(point);
            }
            tables.push(Table { k, points });
        }
        let curve = Curve { knob, held_out: head[2] == 1, queries, len, tables, removed: 0, fitted };
        if rest.is_empty() {
            Ok(Some((curve, removed)))
        } else {
            Err("the curve of recall has bytes to spare")
        }
    }
}

const SHORT: &str = "the curve of recall is cut short";

fn take<'a>(bytes: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (first, rest) = bytes.split_at_checked(count)?;
    *bytes = rest;
    Some(first)
}

fn word(bytes: &mut &[u8]) -> Result<u32, &'static str> {
    let word = take(bytes, 4).and_then(|four| four.try_into().ok());
    word.map(u32::from_le_bytes).ok_or(SHORT)
}

fn long(bytes: &mut &[u8]) -> Result<u64, &'static str> {
    let long = take(bytes, 8).and_then(|eight| eight.try_into().ok());
    long.map(u64::from_le_bytes).ok_or(SHORT)
}

fn knob_fits(knob: Knob, metric: Metric) -> bool {
    knob != Knob::Epsilon || metric != Metric::InnerProduct
}

/// Whether a search takes what a point says.
fn fits(knob: Knob, point: &Point) -> bool {
    let effort = match knob {
        Knob::Exact => false,
        Knob::Epsilon => (0.0..=10.0).contains(&point.effort),
        Knob::EfSearch | Knob::Nprobe => (1.0..=1e9).contains(&point.effort),
    };
    let share = |x: f32| (0.0..=1.0).contains(&x);
    effort
        && point.oversample.is_none_or(|o| (1.0..=1000.0).contains(&o))
        && share(point.recall)
        && share(point.low)
        && point.distances >= 0.0
}

impl Search<'_> {
    /// Checks a recall that is asked for.
    ///
    /// # Errors
    /// If it is not above 0 and at most 1.
    pub fn check_target(target: f32) -> Result<(), SearchError> {
        if target > 0.0 && target <= 1.0 { Ok(()) } else { Err(SearchError::TargetRecall) }
    }
}

impl Table {
    /// Effort and oversample for a recall; none if none that was measured is known to reach it.
    fn setting(&self, target: f32) -> Option<(f32, Option<f32>)> {
        let last = self.points.last().filter(|last| last.recall >= target && target <= CERTAIN)?;
        let Some(i) = self.points.iter().position(|point| point.low >= target) else {
            return Some((last.effort, last.oversample));
        };
        let point = self.points[i];
        let before = i.checked_sub(1).map(|i| self.points[i]);
        let effort = match before.filter(|before| before.oversample == point.oversample) {
            Some(before) => {
                let share = (target - before.low) / (point.low - before.low);
                before.effort + share * (point.effort - before.effort)
            }
            None => point.effort,
        };
        Some((effort, point.oversample))
    }
}

/// Of all points those that find more than every cheaper one.
pub(crate) fn stairs(mut points: Vec<Point>) -> Vec<Point> {
    points.sort_by(|a, b| a.distances.total_cmp(&b.distances).then(a.effort.total_cmp(&b.effort)));
    let mut stairs: Vec<Point> = Vec::new();
    for point in points {
        if stairs.last().is_none_or(|last| point.recall > last.recall && point.low > last.low) {
            stairs.push(point);
        }
    }
    stairs
}

/// Makes recall and bound of points of rising effort rise: a greater effort finds no less, so what falls is chance.
pub(crate) fn rise(points: &mut [Point]) {
    let recalls = isotonic(points.iter().map(|point| point.recall));
    let lows = isotonic(points.iter().map(|point| point.low));
    for (point, (recall, low)) in points.iter_mut().zip(recalls.into_iter().zip(lows)) {
        (point.recall, point.low) = (recall, low);
    }
}

/// The rising values nearest to `values` in squares: neighbours that fall are replaced by their mean (pool adjacent
/// violators, Ayer et al. 1955).
fn isotonic(values: impl Iterator<Item = f32>) -> Vec<f32> {
    let mut runs: Vec<(f32, usize)> = Vec::new();
    for value in values {
        runs.push((value, 1));
        while let [.., (a, m), (b, n)] = runs[..]
            && a > b
        {
            runs.truncate(runs.len() - 2);
            runs.push(((a * m as f32 + b * n as f32) / (m + n) as f32, m + n));
        }
    }
    runs.iter().flat_map(|&(value, count)| std::iter::repeat_n(value, count)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn point(effort: f32, oversample: Option<f32>, recall: f32, low: f32, distances: f32) -> Point {
        Point { effort, oversample, recall, low, distances }
    }

    fn curve(knob: Knob, tables: Vec<Table>) -> Curve {
        Curve { knob, held_out: true, queries: 512, len: 1000, tables, removed: 3, fitted: 0 }
    }

    fn usual(knob: Knob) -> Curve {
        let of = |k: usize, scale: f32| {
            let point = |effort: f32, recall, low| point(effort * scale, None, recall, low, 100.0 * effort);
            Table { k, points: vec![point(1.0, 0.7, 0.68), point(2.0, 0.92, 0.9), point(4.0, 0.997, 0.99)] }
        };
        curve(knob, vec![of(1, 1.0), of(10, 2.0), of(100, 1.5)])
    }

    #[test]
    fn efforts_for_a_recall() {
        let lists = usual(Knob::Nprobe);
        let nprobe = |k, target| {
            let search = lists.tune(Search::new(k), target).unwrap();
            (!search.exact).then_some(search.nprobe)
        };
        // The least that was measured, on the point, halfway (rounded up), the last, beyond.
        assert_eq!(nprobe(10, 0.1), Some(2));
        assert_eq!(nprobe(10, 0.9), Some(4));
        assert_eq!(nprobe(10, 0.945), Some(6));
        assert_eq!(nprobe(10, 0.99), Some(8));
        // Vouched for by the estimate, not by its bound.
        assert_eq!(nprobe(10, 0.995), Some(8));
        assert_eq!((nprobe(10, 0.998), nprobe(10, 1.0)), (None, None));
        // Between two: the greater. Above all: in proportion.
        let between = [1, 2, 5, 10, 30, 100].map(|k| nprobe(k, 0.9));
        assert_eq!(between, [2, 4, 4, 4, 4, 3].map(Some));
        assert_eq!(nprobe(1000, 0.9), Some(30));
        let graph = usual(Knob::Epsilon).tune(Search::new(1000), 0.9).unwrap();
        assert_eq!((graph.epsilon, graph.exact, graph.oversample), (Some(3.0), false, None));
        let ip = usual(Knob::EfSearch).tune(Search::new(1000).epsilon(0.1), 0.9).unwrap();
        assert_eq!((ip.epsilon, ip.ef_search), (None, 30));
        // Nothing was measured where searches are exact.
        assert!(curve(Knob::Exact, Vec::new()).tune(Search::new(5), 0.5).unwrap().exact);
        for wrong in [0.0, -1.0, 1.01, f32::NAN, f32::INFINITY] {
            assert_eq!(lists.tune(Search::new(5), wrong).unwrap_err(), SearchError::TargetRecall);
        }
    }

    #[test]
    fn efforts_are_interpolated_with_equal_candidates_alone() {
        let (two, four) = (Some(2.0), Some(4.0));
        let points = vec![
            point(10.0, two, 0.8, 0.8, 1.0),
            point(20.0, two, 0.9, 0.9, 2.0),
            point(20.0, four, 0.97, 0.97, 3.0),
        ];
        let table = Table { k: 10, points };
        let setting = |target| table.setting(target).unwrap();
        let (effort, oversample) = setting(0.825);
        assert!((effort - 12.5).abs() < 1e-3 && oversample == two);
        assert_eq!(setting(0.95), (20.0, four));
    }

    #[test]
    fn what_is_cheaper_and_finds_more_stays() {
        let p = |recall, distances| point(1.0, None, recall, recall - 0.1, distances);
        let kept = stairs(vec![p(0.9, 30.0), p(0.5, 10.0), p(0.4, 20.0), p(0.9, 40.0), p(0.95, 50.0)]);
        assert_eq!(kept, [p(0.5, 10.0), p(0.9, 30.0), p(0.95, 50.0)]);
    }

    #[test]
    fn curves_grow_old() {
        let curve = usual(Knob::Epsilon);
        let old = |len, removed, fitted| !curve.speaks_for(len, removed, fitted);
        assert!(!old(1000, 3, 0) && !old(2000, 3, 0) && old(2001, 3, 0));
        // A quarter replaced, or removed.
        assert!(!old(1000, 253, 0) && old(1000, 254, 0) && !old(750, 253, 0) && old(749, 254, 0));
        assert!(old(1000, 3, 256));
    }

    proptest! {
        #[test]
        fn what_falls_is_pooled(values in proptest::collection::vec(0f32..1.0, 0..30)) {
            let risen = isotonic(values.iter().copied());
            prop_assert_eq!(risen.len(), values.len());
            prop_assert!(risen.windows(2).all(|pair| pair[0] <= pair[1]));
            let (a, b): (f32, f32) = (values.iter().sum(), risen.iter().sum());
            prop_assert!((a - b).abs() < 1e-4);
            // The max-min formula.
            for (i, risen) in risen.into_iter().enumerate() {
                let mean = |from: usize, to: usize| values[from..=to].iter().sum::<f32>() / (to + 1 - from) as f32;
                let least = |from: usize| (i..values.len()).map(|to| mean(from, to)).fold(1.0, f32::min);
                let right = (0..=i).map(least).fold(0.0, f32::max);
                prop_assert!((risen - right).abs() < 1e-4, "{risen} {right}");
            }
        }

        /// Bytes come back as the curve; any others are refused or make one that searches take.
        #[test]
        fn bytes_make_curves_or_errors(
            knob in 1usize..4,
            edits in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
            cut in proptest::option::of(any::<prop::sample::Index>()),
        ) {
            let curve = usual(Knob::ALL[knob]);
            let mut bytes = curve.bytes(10);
            let (read, removed) = Curve::from_bytes(&bytes, Metric::L2).unwrap().unwrap();
            prop_assert_eq!((&read, removed), (&Curve { removed: 0, ..curve }, 7));
            let whole = bytes.len();
            edits.iter().for_each(|(at, value)| bytes[at.index(whole)] = *value);
            bytes.truncate(cut.map_or(whole, |cut| cut.index(whole)));
            let read = Curve::from_bytes(&bytes, Metric::InnerProduct);
            if let Ok(Some((curve, _))) = read {
                prop_assert!(bytes.len() == whole && curve.knob != Knob::Epsilon);
                for k in [1, 7, 1000] {
                    let search = curve.tune(Search::new(k), 0.9).unwrap();
                    prop_assert!(search.exact || (search.ef_search >= 1 && search.nprobe >= 1));
                }
            } else {
                prop_assert!(read.is_err() || bytes.is_empty());
            }
        }
    }

    #[test]
    fn wrong_curves_are_refused() {
        let bytes = usual(Knob::Epsilon).bytes(10);
        let refused = |edit: &dyn Fn(&mut Vec<u8>)| {
            let mut bytes = bytes.clone();
            edit(&mut bytes);
            Curve::from_bytes(&bytes, Metric::L2).expect_err("refused")
        };
        for (at, value) in
            [(0, 2), (1, 4), (1, 0), (2, 2), (3, 2), (3, 4), (3, 9), (32, 0), (32, 10), (36, 0), (36, 9)]
        {
            refused(&|bytes| bytes[at] = value);
        }
        for (field, wrong) in
            [(0, -1.0), (0, 11.0), (0, f32::NAN), (1, 0.5), (2, 1.5), (3, -0.5), (4, f32::NAN)]
        {
            let at = 40 + 4 * field;
            refused(&|bytes| bytes[at..at + 4].copy_from_slice(&f32::to_le_bytes(wrong)));
        }
        assert_eq!(refused(&|bytes| bytes.push(0)), "the curve of recall has bytes to spare");
        refused(&|bytes| bytes.truncate(20));
        assert!(Curve::from_bytes(&bytes, Metric::InnerProduct).is_err());
        assert_eq!(Curve::from_bytes(&[], Metric::L2), Ok(None));
    }
}
