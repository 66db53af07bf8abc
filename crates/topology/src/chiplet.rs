//! Chiplets: the allowed CPUs, grouped by the last-level cache they share.
//!
//! Source: Linux, `Documentation/ABI/testing/sysfs-devices-system-cpu`. For each CPU, the entry of
//! `cpuN/cache/` with the highest level names the CPUs behind that cache. The lists come from outside and
//! may contradict each other, so each CPU in turn claims those of its list that nobody has claimed yet;
//! whatever the lists say, the result splits the CPUs without overlap.
//!
//! Two kinds of CPU have no such list: those without cache files, and those whose topmost cache is a
//! private L1 or L2. The second is common on Arm servers, whose system cache the firmware does not list; a
//! chiplet per core would be plainly wrong there. Both are grouped by package and NUMA node. A private L3
//! stands: AMD sells parts with one core to each L3.

use std::collections::{BTreeMap, BTreeSet};

use crate::cpu_list::CpuList;
use crate::files::Files;

/// `index0` … of one CPU that are looked at; real CPUs have four or five.
const MAX_CACHES: usize = 16;

/// Number of a chiplet within its machine, counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChipletId(pub u32);

/// Cores that share a last-level cache, as far as this process may use them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chiplet {
    /// Its number, which is its place in [`Machine::chiplets`](crate::Machine::chiplets).
    pub id: ChipletId,
    /// Package (socket) of its lowest CPU; 0 when not known.
    pub package: u32,
    /// NUMA node of its lowest CPU; 0 when not known.
    pub node: u32,
    /// Its cores, ascending by lowest CPU; never empty.
    pub cores: Vec<Core>,
    /// Data and unified caches as its lowest CPU sees them, ascending by level, one per level. On
    /// hybrid CPUs other cores' private caches may have other sizes.
    pub caches: Vec<Cache>,
}

/// A physical core.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Core {
    /// Its CPUs (hardware threads, SMT siblings), ascending; never empty.
    pub cpus: Vec<usize>,
}

/// One cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cache {
    /// 1 for L1d, 2 for L2, …
    pub level: u8,
    /// Its size; `None` when not known.
    pub bytes: Option<u64>,
    /// How many online CPUs share it, whether this process may use them or not; `None` when not known.
    pub cpus_len: Option<usize>,
}

impl Chiplet {
    /// Ids of its CPUs, core by core.
    pub fn cpus(&self) -> impl Iterator<Item = usize> + '_ {
        self.cores.iter().flat_map(|core| core.cpus.iter().copied())
    }

    /// The cache that makes it a chiplet: its last level, if all its CPUs are behind it.
    ///
    /// `None` when no cache is known or none is shared by all.
    pub fn shared_cache(&self) -> Option<&Cache> {
        self.caches.last().filter(|cache| cache.cpus_len.is_some_and(|len| len >= self.cpus().count()))
    }
}

/// One entry of `cpuN/cache/`, as far as it could be read.
struct CacheEntry {
    level: u8,
    bytes: Option<u64>,
    shared: Option<CpuList>,
}

/// The chiplets that `allowed` falls into. `allowed` is not empty, and neither is the result.
pub(crate) fn read(files: &Files, allowed: &BTreeSet<usize>) -> Vec<Chiplet> {
    let nodes = nodes(files);
    let mut groups = group_by_cache(files, allowed);
    let grouped: BTreeSet<usize> = groups.iter().flatten().copied().collect();

    let mut rest: BTreeMap<(u32, u32), Vec<usize>> = BTreeMap::new();
    for &cpu in allowed.difference(&grouped) {
        rest.entry((package(files, cpu), node(&nodes, cpu))).or_default().push(cpu);
    }
    groups.extend(rest.into_values());
    groups.sort_unstable_by_key(|group| group[0]);

    let chiplet = |(id, cpus): (u32, Vec<usize>)| Chiplet {
        id: ChipletId(id),
        package: package(files, cpus[0]),
        node: node(&nodes, cpus[0]),
        caches: caches(files, cpus[0])
            .into_iter()
            .map(|entry| Cache {
                level: entry.level,
                bytes: entry.bytes,
                cpus_len: entry.shared.map(|cpus| cpus.len()),
            })
            .collect(),
        cores: cores(files, &cpus),
    };
    (0..).zip(groups).map(chiplet).collect()
}

/// Groups of CPUs (ascending, not empty) behind one last-level cache. CPUs without one are left out.
fn group_by_cache(files: &Files, allowed: &BTreeSet<usize>) -> Vec<Vec<usize>> {
    let mut free = allowed.clone();
    let mut groups = Vec::new();
    for &cpu in allowed {
        if !free.contains(&cpu) {
            continue;
        }
        let Some(shared) = last_level_sharers(files, cpu) else { continue };
        let group: Vec<usize> =
            free.iter().copied().filter(|&peer| peer == cpu || shared.contains(peer)).collect();
        free.retain(|peer| group.binary_search(peer).is_err());
        groups.push(group);
    }
    groups
}

/// The CPUs behind `cpu`'s last-level cache, or `None` when that says nothing about chiplets.
fn last_level_sharers(files: &Files, cpu: usize) -> Option<CpuList> {
    let last = caches(files, cpu).pop()?;
    let shared = last.shared?;
    let private = shared.len() <= 1 || siblings(files, cpu).is_some_and(|own| own == shared);
    (last.level >= 3 || !private).then_some(shared)
}

/// `cpu`'s data and unified caches, ascending by level, the first entry of each level.
fn caches(files: &Files, cpu: usize) -> Vec<CacheEntry> {
    let mut entries: Vec<CacheEntry> = (0..MAX_CACHES)
        .filter_map(|index| {
            let file = |name| format!("sys/devices/system/cpu/cpu{cpu}/cache/index{index}/{name}");
            let level = files.parse::<u8>(&file("level")).filter(|level| (1..=9).contains(level))?;
            (files.text(&file("type")).as_deref() != Some("Instruction")).then(|| CacheEntry {
                level,
                bytes: files.text(&file("size")).and_then(|text| cache_bytes(&text)),
                shared: files.parse(&file("shared_cpu_list")),
            })
        })
        .collect();
    entries.sort_by_key(|entry| entry.level);
    entries.dedup_by_key(|entry| entry.level);
    entries
}

/// A size such as `32768K`, in bytes.
pub(crate) fn cache_bytes(text: &str) -> Option<u64> {
    let units = [("K", 1 << 10), ("M", 1 << 20), ("G", 1 << 30)];
    let (digits, unit) = units
        .iter()
        .find_map(|&(suffix, unit)| text.strip_suffix(suffix).map(|digits| (digits, unit)))
        .unwrap_or((text, 1));
    digits.parse::<u64>().ok()?.checked_mul(unit).filter(|&bytes| bytes > 0)
}

/// Splits `cpus` (ascending) into physical cores, by the claiming rule of this file's head.
fn cores(files: &Files, cpus: &[usize]) -> Vec<Core> {
    let mut free: BTreeSet<usize> = cpus.iter().copied().collect();
    let mut cores = Vec::new();
    while let Some(cpu) = free.pop_first() {
        let own = siblings(files, cpu).unwrap_or_default();
        let others: Vec<usize> = free.iter().copied().filter(|&peer| own.contains(peer)).collect();
        free.retain(|peer| others.binary_search(peer).is_err());
        cores.push(Core { cpus: std::iter::once(cpu).chain(others).collect() });
    }
    cores
}

/// The SMT siblings of `cpu`, itself among them. Kernels before 5.3 know the second name only.
fn siblings(files: &Files, cpu: usize) -> Option<CpuList> {
    ["core_cpus_list", "thread_siblings_list"]
        .iter()
        .find_map(|name| files.parse(&format!("sys/devices/system/cpu/cpu{cpu}/topology/{name}")))
}

/// The package of `cpu`. Kernels that do not know it write -1.
fn package(files: &Files, cpu: usize) -> u32 {
    files.parse(&format!("sys/devices/system/cpu/cpu{cpu}/topology/physical_package_id")).unwrap_or(0)
}

/// NUMA nodes that list their CPUs, ascending by number.
fn nodes(files: &Files) -> Vec<(u32, CpuList)> {
    let folder = "sys/devices/system/node";
    let mut nodes: Vec<(u32, CpuList)> = files
        .names(folder)
        .iter()
        .filter_map(|name| {
            let id = name.strip_prefix("node")?.parse().ok()?;
            Some((id, files.parse(&format!("{folder}/{name}/cpulist"))?))
        })
        .collect();
    nodes.sort_unstable_by_key(|node| node.0);
    nodes
}

/// The first of `nodes` that has `cpu`.
fn node(nodes: &[(u32, CpuList)], cpu: usize) -> u32 {
    nodes.iter().find(|(_, cpus)| cpus.contains(cpu)).map_or(0, |node| node.0)
}
