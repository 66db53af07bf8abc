//! Machines that are simulated: how many chiplets, how fast each part is, and where those numbers are from.
//!
//! Figures are ratios between policies on the same machine; the numbers set how much a miss, a full link, a steal cost
//! against computing. `lanewise sim` varies those that matter by half each way.
//!
//! Sources, named in the fields:
//! - \[004\] document 004, table I.
//! - \[AMD\] AMD EPYC 9004 Series Architecture Overview, publication 58015: links of 32 bytes a cycle towards a chiplet,
//!   12 channels of DDR5-4800 (460.8 GB/s). For the second generation, HPC Tuning Guide for EPYC 7002, publication 56827.
//! - \[CC\] Chips and Cheese, "Genoa-X: Server V-Cache Round 2" (2023): latencies, bandwidth of one chiplet.
//! - \[AT\] AnandTech, "AMD Rome: Second Generation EPYC" (2019): latencies of Rome.
//! - \[V\] Velten, Schöne, Ilsche, Hackenberg, "Memory Performance of AMD EPYC Rome and Intel Cascade Lake SP Server
//!   Processors" (ICPE 2022, arXiv 2204.03290): lines from other chiplets, bandwidth of a few cores.
//! - \[MU\] Micron, November 2022: STREAM 378 GB/s a socket with DDR5-4800 on the fourth generation, 189 GB/s with DDR4-3200
//!   on the third, whose memory channels are those of the second.
//! - \[EPCC\] Bull, "Measuring Synchronisation and Scheduling Overheads in OpenMP" (EWOMP 1999) and its successors: what is
//!   measured; \[IW\] Iwainsky et al., "How Many Threads will be too Many?" (Euro-Par 2015): GNU's grows with the threads.
//!
//! "Estimate" means: no source for this very number; it lies where the sources' neighbours lie.

use super::cache::{LINE_BYTES, Replacement};
use crate::policy::Layout;
use std::fmt;
use std::str::FromStr;

/// Most chiplets, cores of a chiplet, and bytes of a cache.
const CHIPLETS: u64 = 64;
const CORES: u64 = 256;
const CACHE_BYTES: u64 = 1 << 33;

/// How many of what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Chiplets.
    pub chiplets: usize,
    /// Cores of each chiplet.
    pub cores: usize,
    /// Bytes of each chiplet's last-level cache.
    pub cache_bytes: u64,
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (size, unit) = match self.cache_bytes {
            bytes if bytes.is_multiple_of(1 << 20) => (bytes >> 20, "M"),
            bytes => (bytes >> 10, "K"),
        };
        write!(f, "{}x{}x{size}{unit}", self.chiplets, self.cores)
    }
}

/// This does not say how many of what.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a machine: {0:?}; write CHIPLETSxCORESxCACHE, such as 12x8x32M (up to 64x256x8192M)")]
pub struct UnknownShape(String);

impl FromStr for Shape {
    type Err = UnknownShape;

    fn from_str(text: &str) -> Result<Self, UnknownShape> {
        let parsed = || {
            let [chiplets, cores, cache] = text.split('x').collect::<Vec<_>>()[..] else { return None };
            let (digits, unit) = cache.split_at(cache.find(|c: char| !c.is_ascii_digit())?);
            let unit = match unit {
                "K" => 1u64 << 10,
                "M" => 1 << 20,
                _ => return None,
            };
            let within = |text: &str, most: u64| {
                let number = text.parse::<u64>().ok()?;
                (1..=most).contains(&number).then_some(number)
            };
            Some(Shape {
                chiplets: within(chiplets, CHIPLETS)? as usize,
                cores: within(cores, CORES)? as usize,
                cache_bytes: within(digits, CACHE_BYTES / unit)? * unit,
            })
        };
        parsed().ok_or_else(|| UnknownShape(text.into()))
    }
}

/// A machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// How many of what.
    pub shape: Shape,
    /// How lines of the last-level cache are replaced. LRU is over objects and fully associative, the others go by sets of
    /// 16 ways \[CC\].
    pub replacement: Replacement,
    /// What a line from memory takes longer than one from the last-level cache.
    pub memory_ns: f64,
    /// Lines that a core has on their way at once, when it gathers.
    pub in_flight: f64,
    /// Bytes a nanosecond that one core streams from memory.
    pub core_gb_s: f64,
    /// Bytes a nanosecond from memory to a chiplet.
    pub link_gb_s: f64,
    /// Bytes a nanosecond from memory to all chiplets.
    pub memory_gb_s: f64,
    /// A steal from the same chiplet: a few lines that change hands in its cache.
    pub steal_near_ns: f64,
    /// A steal from another.
    pub steal_far_ns: f64,
    /// From a wake to the first instruction of the worker.
    pub wake_ns: f64,
    /// A task's way through a queue.
    pub queue_ns: f64,
    /// Merging one task's results into its query's.
    pub merge_ns: f64,
    /// Beginning and end of a parallel loop, without and for each thread.
    pub loop_ns: f64,
    /// See [`Self::loop_ns`].
    pub loop_thread_ns: f64,
    /// Drawing an iteration of a loop with a dynamic schedule, which all threads do from one counter.
    pub draw_ns: f64,
}

impl Machine {
    /// The fourth generation of document 004 (EPYC 9654) with this many of what.
    pub fn genoa(shape: Shape) -> Self {
        Machine {
            shape,
            replacement: Replacement::Lru,
            // [CC]: about 115 ns from memory, about 15 (54 cycles) from the cache.
            memory_ns: 100.0,
            // Estimate: 24 misses outstanding in a Zen 4 core's first cache.
            in_flight: 24.0,
            // Estimate after [V], whose Rome cores reach 20 to 25.
            core_gb_s: 25.0,
            // [CC]: a chiplet reads a little over 50 GB/s; [AMD]: 32 bytes × 1.8 GHz = 57.6 at most.
            link_gb_s: 55.0,
            // [MU]
            memory_gb_s: 378.0,
            // Estimates after [V]: three lines at 20 to 25 ns inside, at 100 to 150 ns between chiplets.
            steal_near_ns: 75.0,
            steal_far_ns: 350.0,
            // Estimate: a futex and a switch.
            wake_ns: 3000.0,
            // Estimates: a few lines that come from the core that submits, and a heap of a hundred.
            queue_ns: 150.0,
            merge_ns: 500.0,
            // Estimates within what is published for GNU OpenMP at such numbers of threads [EPCC, IW]: 7 µs with 96.
            loop_ns: 1000.0,
            loop_thread_ns: 60.0,
            // Estimate after [V]: the line with the counter comes from another chiplet.
            draw_ns: 120.0,
        }
    }

    /// The second generation of document 004 (EPYC 7K62) with this many of what. Its "chiplets" of four cores are half a
    /// die; both halves share a link.
    pub fn rome(shape: Shape) -> Self {
        Machine {
            // [AT]: about 125 ns from memory (128 MB, at random), about 10 from the cache.
            memory_ns: 110.0,
            // Estimate: 22 misses outstanding in a Zen 2 core's first cache.
            in_flight: 22.0,
            // [V]
            core_gb_s: 22.0,
            // [AMD]: 32 bytes × 1.467 GHz for two halves.
            link_gb_s: 23.5,
            // [MU]
            memory_gb_s: 189.0,
            ..Machine::genoa(shape)
        }
    }

    /// The one of the two that has this shape's cache.
    pub fn of(shape: Shape) -> Self {
        if shape.cache_bytes <= 16 << 20 { Machine::rome(shape) } else { Machine::genoa(shape) }
    }

    /// With another number of chiplets.
    pub fn with_chiplets(&self, chiplets: usize) -> Self {
        Machine { shape: Shape { chiplets, ..self.shape }, ..self.clone() }
    }

    /// Its workers: one for each core.
    pub fn layout(&self) -> Layout {
        Layout::new(&vec![self.shape.cores; self.shape.chiplets])
    }

    /// Lines of a chiplet's cache.
    pub fn cache_lines(&self) -> u64 {
        self.shape.cache_bytes / LINE_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_read_back_and_nonsense_is_not() {
        for text in ["12x8x32M", "12x4x16M", "1x1x512K", "64x256x8192M"] {
            assert_eq!(text.parse::<Shape>().unwrap().to_string(), text);
        }
        let bad = [
            "",
            "12x8",
            "0x8x32M",
            "12x8x0M",
            "65x1x1M",
            "1x257x1M",
            "1x1x8193M",
            "1x1x32",
            "1x1x1G",
            "axbxcM",
        ];
        for text in bad.iter().chain(&["1x1x1Mx", "-1x1x1M", "1x1x99999999999999999999M"]) {
            assert!(text.parse::<Shape>().is_err(), "{text}");
        }
    }
}
