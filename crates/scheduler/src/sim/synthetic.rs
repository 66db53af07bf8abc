//! Traces that nobody recorded: made up after what document 004 says of its tables (sections III-C and VIII-A), for when
//! no recorded ones are at hand. Their figures are labelled "synthetic".
//!
//! Sizes, dimensions, links, numbers of lists are the document's. It gives no numbers for how heat is spread inside a table
//! (its figure 6 shows steep curves without a scale): here queries have topics, topics have Zipf heat, and queries of a
//! topic read overlapping parts. Searches are shorter than the document's (its top 100–500 at recall 0.99 reads some ten
//! times as many rows), which lets a run have more of them.

use super::random::{Random, Zipf};
use super::trace::{Access, Record};
use std::io;

/// What to make up.
#[derive(Clone, Debug)]
pub struct Synthetic {
    /// Tables; the first is asked most.
    pub tables: u32,
    /// Queries of the table that is asked most; others have fewer, by their heat, at least a twentieth.
    pub queries: u32,
    /// Of the topics inside a table (an estimate).
    pub skew: f64,
    /// Of everything.
    pub seed: u64,
}

impl Default for Synthetic {
    fn default() -> Self {
        Synthetic { tables: 60, queries: 1000, skew: 0.9, seed: 0 }
    }
}

/// Links of a node in bytes: M = 32, so 64 in the base layer, four bytes each.
const LINKS_BYTES: u64 = 256;
/// Nodes that are near each other.
const REGION: u64 = 4096;
/// Nodes that many searches pass.
const HUBS: u64 = 2048;
/// Time for a distance without its dimensions (visited set, heap), for each of its dimensions, and for each list (estimates,
/// after this project's own measurements with everything in the cache: `crates/bench/record`).
const DISTANCE_NS: f64 = 12.0;
const DIMENSION_NS: f64 = 0.12;
const LIST_NS: f64 = 500.0;

/// Evenly in its logarithm.
fn between(random: &mut Random, low: f64, high: f64) -> f64 {
    low * (high / low).powf(random.unit())
}

fn dim(random: &mut Random) -> u64 {
    [64, 96, 128, 192, 256][random.below(5) as usize]
}

fn distance_ns(dim: u64) -> f64 {
    DISTANCE_NS + DIMENSION_NS * dim as f64
}

impl Synthetic {
    /// Makes up tables that are searched by their graphs: 1 to 10 million rows of 64 to 256 floats.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn graphs(&self, to: &mut impl Record) -> io::Result<()> {
        let mut random = Random::new(self.seed);
        let mut touched = Vec::new();
        for table in 0..self.tables {
            let rows = between(&mut random, 1e6, 1e7) as u64;
            let dim = dim(&mut random);
            let row_bytes = dim * 4;
            to.table(&format!("graph-{table}"), Access::Gathered, rows * (row_bytes + LINKS_BYTES))?;
            let steps = between(&mut random, 60.0, 160.0) as u64;
            let regions = rows / REGION;
            let topics = Zipf::new(regions, self.skew);
            let (hubs, near) = (Zipf::new(HUBS, 0.8), Zipf::new(REGION, 0.6));
            for _ in 0..self.queries_of(table) {
                // The same topics are hot for all queries of the table, wherever they lie.
                let region = spread(topics.draw(&mut random), regions, self.seed ^ u64::from(table));
                touched.clear();
                let mut compute = 0.0;
                let mut visited = std::collections::HashSet::new();
                for step in 0..steps {
                    let node = |random: &mut Random| {
                        if step < steps / 8 {
                            spread(hubs.draw(random), rows, 1)
                        } else {
                            region * REGION + spread(near.draw(random), REGION, 2)
                        }
                    };
                    let at = node(&mut random);
                    touched.push((rows * row_bytes + at * LINKS_BYTES, LINKS_BYTES as u32));
                    compute += 50.0;
                    for _ in 0..12 {
                        let row = node(&mut random);
                        if visited.insert(row) {
                            touched.push((row * row_bytes, row_bytes as u32));
                            compute += distance_ns(dim);
                        }
                    }
                }
                to.query(table, false)?;
                to.task(None, compute as u64, &touched)?;
            }
        }
        Ok(())
    }

    /// Makes up tables that are searched by lists: 10 thousand to 15 million rows of 64 to 256 floats in 128 to 8192 lists.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn lists(&self, to: &mut impl Record) -> io::Result<()> {
        let mut random = Random::new(self.seed);
        for table in 0..self.tables {
            let rows = between(&mut random, 1e4, 1.5e7);
            let dim = dim(&mut random);
            let row_bytes = dim * 4;
            let lists = ((4.0 * rows.sqrt()) as u64).next_power_of_two().clamp(128, 8192);
            // Lists differ in length by a factor of about two.
            let lengths: Vec<u64> = (0..lists)
                .map(|_| (rows / lists as f64 * (0.6 * random.normal() - 0.18).exp()).ceil() as u64)
                .collect();
            let centroids = lists * row_bytes;
            let starts: Vec<u64> = lengths
                .iter()
                .scan(centroids, |next, &length| Some(std::mem::replace(next, *next + length * row_bytes)))
                .collect();
            let bytes = centroids + lengths.iter().sum::<u64>() * row_bytes;
            to.table(&format!("lists-{table}"), Access::Streamed, bytes)?;
            let probes = (lists / 64).clamp(8, 48);
            let topics = Zipf::new(lists, self.skew);
            for _ in 0..self.queries_of(table) {
                let topic = spread(topics.draw(&mut random), lists, self.seed ^ u64::from(table));
                to.query(table, true)?;
                to.task(None, (lists as f64 * distance_ns(dim)) as u64, &[(0, centroids as u32)])?;
                // Lists near the topic, most of them the same for all its queries.
                let mut left = probes;
                for i in 0..2 * probes {
                    let keep = left as f64 / (2 * probes - i) as f64;
                    let chance = if i < probes / 2 { 1.0 } else { keep };
                    if left == 0 || random.unit() >= chance {
                        continue;
                    }
                    left -= 1;
                    let list = ((topic + i) % lists) as usize;
                    let compute = LIST_NS + lengths[list] as f64 * distance_ns(dim);
                    let length = lengths[list] * row_bytes;
                    to.task(Some(list as u32), compute as u64, &[(starts[list], length as u32)])?;
                }
            }
        }
        Ok(())
    }

    fn queries_of(&self, table: u32) -> u32 {
        (self.queries / (table + 1)).max(self.queries / 20).max(1)
    }
}

/// Ranks to places all over: one to one, and always the same for a seed.
fn spread(rank: u64, count: u64, seed: u64) -> u64 {
    // A step that has no divisor in common with the count leads through all places.
    let mut step = (count as f64 * 0.618_033_988_75) as u64 | 1;
    while gcd(step, count) != 1 {
        step += 2;
    }
    ((u128::from(rank) * u128::from(step) + u128::from(seed)) % u128::from(count)) as u64
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::trace::Builder;

    #[test]
    fn ranks_spread_one_to_one() {
        for count in [1, 2, 3, 100, 128, 4096, 4095] {
            let mut places: Vec<u64> = (0..count).map(|rank| spread(rank, count, 5)).collect();
            places.sort_unstable();
            assert!(places.into_iter().eq(0..count), "{count}");
        }
    }

    #[test]
    fn equal_seeds_make_equal_traces_and_hot_parts_are_hot() {
        let few = Synthetic { tables: 3, queries: 60, ..Synthetic::default() };
        let make = |seed| {
            let (mut graphs, mut lists) = (Builder::new("g", true), Builder::new("l", true));
            Synthetic { seed, ..few.clone() }.graphs(&mut graphs).unwrap();
            Synthetic { seed, ..few.clone() }.lists(&mut lists).unwrap();
            [graphs.finish().unwrap(), lists.finish().unwrap()]
        };
        let traces = make(1);
        assert_eq!(traces, make(1));
        assert_ne!(traces, make(2));
        for trace in traces {
            let mut counts = vec![0u64; trace.lines.len()];
            for span in &trace.spans {
                (span.first..span.first + span.count).for_each(|object| counts[object as usize] += 1);
            }
            counts.sort_unstable_by(|a, b| b.cmp(a));
            let tenth: u64 = counts[..counts.len() / 10].iter().sum();
            let all: u64 = counts.iter().sum();
            assert!(tenth as f64 > 0.15 * all as f64, "{tenth} of {all}");
        }
    }
}
