//! Who asks what, and when: tables by heat, heat that drifts, arrivals.

use super::random::Random;
use super::trace::Trace;

/// When queries come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arrivals {
    /// So many for each core are always outstanding: what the machine can do at most.
    Saturated {
        /// Queries for each core.
        each: usize,
    },
    /// At random, so many a second on average (a Poisson process).
    Poisson {
        /// Queries a second.
        rate: f64,
    },
    /// The same, but the rate changes between half and three halves, at random times a twentieth of a window apart.
    Bursty {
        /// Queries a second, on average.
        rate: f64,
    },
}

/// A workload.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    /// When queries come.
    pub arrivals: Arrivals,
    /// Zipf's exponent of how much tables are asked.
    pub table_skew: f64,
    /// Standard deviation of what a window adds to the logarithm of a table's heat; heat returns to its mean by a fifth of
    /// the way in each.
    pub drift: f64,
    /// Queries of the run; the first quarter warms up and does not count.
    pub queries: u64,
    /// Windows of the monitor in the run.
    pub windows: u64,
    /// Of everything that is drawn.
    pub seed: u64,
}

impl Default for Workload {
    fn default() -> Self {
        Workload {
            arrivals: Arrivals::Saturated { each: 4 },
            table_skew: 0.9,
            drift: 0.2,
            queries: 20_000,
            windows: 12,
            seed: 0,
        }
    }
}

/// Queries as they come.
#[derive(Clone, Debug)]
pub(super) struct Source {
    random: Random,
    /// Queries of each table.
    of_table: Vec<Vec<u32>>,
    /// Logarithms of the heat without and with what windows added.
    mean: Vec<f64>,
    heat: Vec<f64>,
    weights: Vec<f64>,
    drift: f64,
    /// Of bursts.
    factor: f64,
}

impl Source {
    pub(super) fn new(trace: &Trace, workload: &Workload) -> Self {
        let mut of_table = vec![Vec::new(); trace.tables.len()];
        for (number, query) in trace.queries.iter().enumerate() {
            of_table[query.table as usize].push(number as u32);
        }
        // Tables without queries are never asked; the others by their rank.
        let mut rank = 0.0f64;
        let mean = of_table.iter().map(|queries: &Vec<u32>| {
            rank += f64::from(u8::from(!queries.is_empty()));
            if queries.is_empty() { f64::NEG_INFINITY } else { -workload.table_skew * rank.ln() }
        });
        let mean: Vec<f64> = mean.collect();
        let mut source = Source {
            random: Random::new(workload.seed),
            of_table,
            heat: mean.clone(),
            weights: mean.iter().map(|heat| heat.exp()).collect(),
            mean,
            drift: workload.drift,
            factor: 1.0,
        };
        // As if it had drifted for long.
        (0..10).for_each(|_| source.close_window());
        source
    }

    /// The next query, by its number in the trace.
    pub(super) fn next(&mut self) -> u32 {
        let table = self.random.weighted(&self.weights);
        let queries = &self.of_table[table];
        queries[self.random.below(queries.len() as u64) as usize]
    }

    /// Time to the next arrival.
    pub(super) fn gap_ns(&mut self, rate: f64) -> f64 {
        self.random.exponential(1e9 / (rate * self.factor))
    }

    /// Another rate of bursts.
    pub(super) fn change_rate(&mut self) {
        self.factor = 0.5 + self.random.unit();
    }

    /// Heat moves on.
    pub(super) fn close_window(&mut self) {
        for ((heat, &mean), weight) in self.heat.iter_mut().zip(&self.mean).zip(&mut self.weights) {
            if mean.is_finite() {
                *heat += 0.2 * (mean - *heat) + self.drift * self.random.normal();
                *weight = heat.exp();
            }
        }
    }
}
