//! The readable report of a machine, one line per fact and one per chiplet.

use std::fmt;

use crate::{Chiplet, CpuList, HugePages, Machine};

/// Shown for what the system does not tell.
const UNKNOWN: &str = "unknown";

impl fmt::Display for Machine {
    /// Lines without a newline after the last.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let allowed = self.cpus().count();
        let cores = self.chiplets.iter().map(|chiplet| chiplet.cores.len()).sum();
        writeln!(f, "CPU: {}", self.cpu_model.as_deref().unwrap_or(UNKNOWN))?;
        writeln!(
            f,
            "layout: {}, {}, {}, {}, {} ({} online)",
            count(self.packages_len(), "package"),
            count(self.nodes_len(), "NUMA node"),
            count(self.chiplets.len(), "chiplet"),
            count(cores, "core"),
            count(allowed, "CPU"),
            self.online.len(),
        )?;
        writeln!(f, "shape: {}", self.shape())?;
        // One node for all is no news on each line.
        let place = self.packages_len() > 1 || self.nodes_len() > 1;
        for chiplet in &self.chiplets {
            write!(f, "{chiplet}")?;
            if place {
                write!(f, ", package {}, node {}", chiplet.package, chiplet.node)?;
            }
            writeln!(f)?;
        }
        let quota = match self.limits.cpu_quota {
            Some(cpus) => format!("quota {} CPUs", Rounded(cpus)),
            None => "no quota".to_owned(),
        };
        writeln!(f, "threads: {} ({} allowed, {quota})", self.threads(), count(allowed, "CPU"))?;
        writeln!(
            f,
            "memory: {} total, {} available, {}",
            bytes_or_unknown(self.memory.total_bytes),
            bytes_or_unknown(self.memory.available_bytes),
            self.limits.memory_bytes.map_or("no limit".to_owned(), |limit| format!("limit {}", Bytes(limit))),
        )?;
        write!(
            f,
            "pages: {}, transparent huge pages {} ({})",
            bytes_or_unknown(self.memory.page_bytes),
            self.memory.huge_pages.map_or(UNKNOWN, HugePages::name),
            bytes_or_unknown(self.memory.huge_page_bytes),
        )
    }
}

impl fmt::Display for Chiplet {
    /// One line such as `chiplet 0: cores 0-7 (SMT 16-23), L3 32 MiB, L2 1 MiB, L1d 32 KiB`: the lowest
    /// CPU of each core, then the other CPUs of the same cores, then the caches from the last level down.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let first: CpuList = self.cores.iter().filter_map(|core| core.cpus.first().copied()).collect();
        let others: CpuList = self.cores.iter().flat_map(|core| core.cpus.iter().copied().skip(1)).collect();
        let noun = if first.len() == 1 { "core" } else { "cores" };
        write!(f, "chiplet {}: {noun} {first}", self.id.0)?;
        if !others.is_empty() {
            write!(f, " (SMT {others})")?;
        }
        for cache in self.caches.iter().rev() {
            let data = if cache.level == 1 { "d" } else { "" };
            write!(f, ", L{}{data} {}", cache.level, bytes_or_unknown(cache.bytes))?;
        }
        if self.caches.is_empty() {
            write!(f, ", caches {UNKNOWN}")?;
        }
        Ok(())
    }
}

fn count(n: usize, noun: &str) -> String {
    format!("{n} {noun}{}", if n == 1 { "" } else { "s" })
}

fn bytes_or_unknown(bytes: Option<u64>) -> String {
    bytes.map_or(UNKNOWN.to_owned(), |bytes| Bytes(bytes).to_string())
}

/// A number with at most two decimals.
struct Rounded(f64);

impl fmt::Display for Rounded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{:.2}", self.0);
        f.write_str(text.trim_end_matches('0').trim_end_matches('.'))
    }
}

/// A size in the largest unit that it fills.
struct Bytes(u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
        // 1024 = 2^10, so the unit follows from the highest set bit.
        let unit = self.0.checked_ilog2().unwrap_or(0) as usize / 10;
        write!(f, "{} {}", Rounded(self.0 as f64 / (1u64 << (10 * unit)) as f64), units[unit])
    }
}
