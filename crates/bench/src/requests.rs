//! Who asks what: an endless stream of requests to many tables, most of them to a few tables and with a few queries.
//!
//! Document 004, section III: traffic falls on tables by a law like Zipf's, and within a short time queries of one table
//! read overlapping parts of it. Here a request draws a table and then one of that table's queries, both by Zipf's law:
//! the query of rank r (from 1) with a probability in proportion to r to the power of minus the skew. How hot a table is
//! has nothing to do with its size, nor one query with the next.

use crate::generate::Random;

/// Zipf's law over the numbers from 0 on, the first the likeliest.
#[derive(Clone, Debug)]
pub struct Zipf {
    /// Of each number, how likely it or a lower one is. The last is 1.
    up_to: Vec<f64>,
}

impl Zipf {
    /// The law over `count` numbers; `skew` 0: all alike.
    ///
    /// # Panics
    /// If there is no number, or `skew` is negative or not finite.
    pub fn new(count: usize, skew: f64) -> Self {
        assert!(count > 0, "a law needs something to choose from");
        assert!(skew >= 0.0 && skew.is_finite(), "skew {skew} is no finite number from 0 on");
        let mut sum = 0.0;
        let mut up_to: Vec<f64> = (1..=count)
            .map(|rank| {
                sum += (rank as f64).powf(-skew);
                sum
            })
            .collect();
        up_to.iter_mut().for_each(|p| *p /= sum);
        Self { up_to }
    }

    /// A number by this law.
    pub fn draw(&self, random: &mut Random) -> usize {
        // 53 bits are what an f64 holds exactly; the result is below 1, and so the place below the count.
        let even = (random.next() >> 11) as f64 / (1u64 << 53) as f64;
        self.up_to.partition_point(|&p| p <= even)
    }
}

/// One request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Number of the table.
    pub table: usize,
    /// Number of the query among that table's.
    pub query: usize,
}

/// An endless stream of requests.
#[derive(Clone, Debug)]
pub struct Requests {
    tables: Zipf,
    /// The tables from the hottest to the coldest.
    by_heat: Vec<usize>,
    queries: Zipf,
    random: Random,
}

impl Requests {
    /// Requests to `tables` tables with `queries` queries each, skewed by so much.
    ///
    /// # Panics
    /// If there is no table or no query, or a skew is negative or not finite.
    pub fn new(tables: (usize, f64), queries: (usize, f64), seed: u64) -> Self {
        let mut order = Random::new(seed, 0);
        let mut by_heat: Vec<usize> = (0..tables.0).collect();
        // Fisher and Yates' shuffle.
        for last in (1..by_heat.len()).rev() {
            by_heat.swap(last, order.below(last + 1));
        }
        Self {
            tables: Zipf::new(tables.0, tables.1),
            by_heat,
            queries: Zipf::new(queries.0, queries.1),
            random: Random::new(seed, 1),
        }
    }

    /// To the same tables, as hot, but other requests: a client's own.
    pub fn shifted(self, seed: u64) -> Self {
        Self { random: Random::new(seed, 2), ..self }
    }

    /// The tables from the hottest to the coldest.
    pub fn by_heat(&self) -> &[usize] {
        &self.by_heat
    }
}

impl Iterator for Requests {
    type Item = Request;

    fn next(&mut self) -> Option<Request> {
        let table = self.by_heat[self.tables.draw(&mut self.random)];
        Some(Request { table, query: self.queries.draw(&mut self.random) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_as_often_as_the_law_says() {
        const DRAWS: usize = 200_000;
        for skew in [0.0, 0.6, 1.0, 1.2] {
            let law = Zipf::new(60, skew);
            let mut random = Random::new(7, 7);
            let mut seen = [0usize; 60];
            (0..DRAWS).for_each(|_| seen[law.draw(&mut random)] += 1);
            let all: f64 = (1..=60).map(|rank| f64::from(rank).powf(-skew)).sum();
            for (number, &seen) in seen.iter().enumerate() {
                let expected = DRAWS as f64 * ((number + 1) as f64).powf(-skew) / all;
                let off = (seen as f64 - expected).abs() / expected.sqrt();
                assert!(off < 4.5, "skew {skew}, number {number}: {seen}, not {expected:.0}");
            }
        }
        assert_eq!(Zipf::new(1, 1.0).draw(&mut Random::new(0, 0)), 0);
    }

    #[test]
    fn the_seed_decides_and_every_table_has_its_place() {
        let stream = |seed| Requests::new((60, 1.0), (100, 1.0), seed);
        let first = |seed| stream(seed).take(1000).collect::<Vec<_>>();
        assert_eq!(first(1), first(1));
        assert_ne!(first(1), first(2));
        let mut tables = stream(1).by_heat().to_vec();
        assert!(!tables.is_sorted(), "heat has nothing to do with size");
        tables.sort_unstable();
        assert_eq!(tables, (0..60).collect::<Vec<_>>());
    }

    #[test]
    fn requests_of_a_short_time_overlap_and_the_hottest_table_leads() {
        let window: Vec<Request> = Requests::new((60, 1.0), (1000, 1.0), 3).take(10_000).collect();
        let hottest = Requests::new((60, 1.0), (1000, 1.0), 3).by_heat()[0];
        let to = |table| window.iter().filter(move |request| request.table == table);
        // 1 / (1 + 1/2 + … + 1/60) of them: 2137, deviation 41.
        let count = to(hottest).count();
        assert!((1900..2400).contains(&count), "{count}");
        assert!((0..60).all(|table| to(table).count() <= count));
        let mut queries: Vec<usize> = to(hottest).map(|request| request.query).collect();
        queries.sort_unstable();
        queries.dedup();
        // Drawn evenly, 2137 requests would reach 882 of the 1000 queries.
        assert!(queries.len() < 700 && *queries.last().unwrap() < 1000, "{}", queries.len());
    }
}
