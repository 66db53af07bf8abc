//! What is measured of an index: recall, queries a second, latencies.
//!
//! The machines are shared, so a time means little alone. Settings that are compared take turns, round after round, so
//! that a disturbance hits all of them, and each is given by the median of its rounds.

use crate::clock::timed;
use crate::recall::{RecallError, recall};
use crate::truth::Truth;
use lanewise_engine::index::{Index, Search, SearchError, Vectors};
use lanewise_engine::{Threads, search};
use std::num::NonZeroUsize;
use std::time::Duration;

/// A short run is disturbed by anything, so that few queries are asked again until their run takes about that long.
const RUN: Duration = Duration::from_millis(50);

/// The figures of one setting.
#[derive(Clone, Debug, PartialEq)]
pub struct Figures {
    /// Candidates that a graph search kept, or lists that were scanned.
    pub effort: usize,
    /// Mean recall@k, 0 to 1.
    pub recall: f64,
    /// Queries a second on one thread, queries given all at once; median of the rounds.
    pub per_second_one: f64,
    /// Queries a second on all threads; median of the rounds.
    pub per_second_all: f64,
    /// Half of single queries, one at a time on one thread, took no longer.
    pub p50: Duration,
    /// 99 of 100 single queries took no longer.
    pub p99: Duration,
    /// Distances computed per query, on average.
    pub distances: f64,
}

/// How an index is measured.
#[derive(Clone, Copy, Debug)]
pub struct Plan<'a> {
    /// Neighbours per query.
    pub k: usize,
    /// The settings of `ef_search`, or of lists of `nprobe`.
    pub efforts: &'a [usize],
    /// What "all threads" means.
    pub threads: Threads,
    /// Rounds whose median counts, at least one.
    pub rounds: usize,
}

/// Why an index was not measured.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages are those of the causes")]
pub enum MeasureError {
    #[error(transparent)]
    Search(#[from] SearchError),
    #[error(transparent)]
    Recall(#[from] RecallError),
}

/// Measures `index` with `queries`, whose exact neighbours `truth` knows, at each setting. `step` hears after each
/// of [`steps`] steps.
///
/// # Errors
/// If queries or settings are wrong, or `truth` is of other queries or fewer neighbours.
///
/// # Panics
/// If the index is empty.
pub fn figures(
    index: &Index,
    queries: Vectors<'_>,
    truth: &Truth,
    plan: Plan<'_>,
    step: &mut dyn FnMut(),
) -> Result<Vec<Figures>, MeasureError> {
    let reader = index.reader();
    let how = |effort| Search::new(plan.k).ef(effort).nprobe(effort);
    let one = Threads::new(Some(NonZeroUsize::MIN));
    let k = plan.k.min(reader.len());
    let mut all = Vec::with_capacity(plan.efforts.len());
    let mut repeats = Vec::with_capacity(plan.efforts.len());
    let count = reader.check(queries, &Search::new(plan.k))?;
    for &effort in plan.efforts {
        // Recall first: it warms what is measured next.
        let (result, time) = timed(|| search(&reader, queries, &how(effort), plan.threads));
        let (found, counts) = result?;
        repeats.push((RUN.as_secs_f64() / time.as_secs_f64()).clamp(1.0, 1000.0) as usize);
        step();
        all.push(Figures {
            effort,
            recall: recall(&found, truth, k)?,
            per_second_one: 0.0,
            per_second_all: 0.0,
            p50: Duration::ZERO,
            p99: Duration::ZERO,
            distances: counts.distances as f64 / count as f64,
        });
    }
    let repeats: Vec<usize> = repeats.into_iter().flat_map(|repeats| [repeats, repeats]).collect();
    let medians = interleaved(&repeats, plan.rounds, &mut |setting, last| {
        let threads = if setting % 2 == 0 { one } else { plan.threads };
        let (result, time) = timed(|| search(&reader, queries, &how(plan.efforts[setting / 2]), threads));
        result.expect("the queries were checked");
        if last {
            step();
        }
        time
    });
    for (i, figures) in all.iter_mut().enumerate() {
        let per_second = |time: Duration| count as f64 / time.as_secs_f64();
        figures.per_second_one = per_second(medians[2 * i]);
        figures.per_second_all = per_second(medians[2 * i + 1]);
        let mut times = Vec::with_capacity(count);
        for query in 0..count {
            let query = queries.slice(reader.dim(), query..query + 1);
            let (result, time) = timed(|| search(&reader, query, &how(figures.effort), one));
            result?;
            times.push(time);
        }
        (figures.p50, figures.p99) = (percentile(&mut times, 50), percentile(&mut times, 99));
        step();
    }
    Ok(all)
}

/// How often [`figures`] reports a step.
pub fn steps(plan: Plan<'_>) -> usize {
    plan.efforts.len() * (1 + 2 * plan.rounds + 1)
}

/// The median time of one run of each setting. All settings take turns, `rounds` times; at its turn setting `i` runs
/// `repeats[i]` times, whose mean counts. `run(setting, last)` gives the time of one run; `last` marks the turn's end.
///
/// # Panics
/// If there is no round, or a setting is to run no times.
pub fn interleaved(
    repeats: &[usize],
    rounds: usize,
    run: &mut dyn FnMut(usize, bool) -> Duration,
) -> Vec<Duration> {
    assert!(rounds > 0 && !repeats.contains(&0), "a median needs a round, and a round a run");
    let mut times = vec![Vec::with_capacity(rounds); repeats.len()];
    for _ in 0..rounds {
        for (setting, times) in times.iter_mut().enumerate() {
            let count = repeats[setting];
            let total: Duration = (1..=count).map(|i| run(setting, i == count)).sum();
            times.push(total.div_f64(count as f64));
        }
    }
    times.iter_mut().map(|times| percentile(times, 50)).collect()
}

/// The smallest of `times` that at least `percent` of 100 of them do not exceed (nearest rank).
///
/// # Panics
/// If there is no time, or `percent` is not between 1 and 100.
pub fn percentile(times: &mut [Duration], percent: usize) -> Duration {
    assert!(!times.is_empty() && (1..=100).contains(&percent), "a percentile of some times");
    times.sort_unstable();
    times[(times.len() * percent).div_ceil(100) - 1]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_by_nearest_rank() {
        let mut times: Vec<Duration> = (1..=200).rev().map(Duration::from_micros).collect();
        assert_eq!(percentile(&mut times, 50), Duration::from_micros(100));
        assert_eq!(percentile(&mut times, 99), Duration::from_micros(198));
        assert_eq!(percentile(&mut times, 100), Duration::from_micros(200));
        assert_eq!(percentile(&mut times[..1], 50), Duration::from_micros(1));
        assert_eq!(percentile(&mut times[..3], 50), Duration::from_micros(2));
    }

    #[test]
    fn settings_take_turns_and_the_median_is_of_one_run() {
        let mut made_up =
            [10, 4, 2, 6, 1000, 900, 900, 900, 20, 1, 1, 1].map(Duration::from_millis).into_iter();
        let mut calls = Vec::new();
        let medians = interleaved(&[1, 3], 3, &mut |setting, last| {
            calls.push((setting, last));
            made_up.next().unwrap()
        });
        let turn = [(0, true), (1, false), (1, false), (1, true)];
        assert_eq!(calls, [turn, turn, turn].concat());
        // The second round was disturbed. The first setting took 10, 1000 and 20, the second on average 4, 900 and 1.
        assert_eq!(medians, [20, 4].map(Duration::from_millis));
    }
}
