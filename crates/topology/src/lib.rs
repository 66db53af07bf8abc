//! The machine as a value: chiplets and their caches, what the container allows, and memory.
//!
//! [`Machine::read`] is a pure function from a folder that looks like `/` (`proc` and `sys` below it)
//! and a set of allowed CPUs to a [`Machine`]; [`Machine::detect`] calls it for the running system. So
//! everything here is tested on fixture folders.
//!
//! Nothing in `proc` or `sys` is trusted: a file that is missing or makes no sense counts as "not
//! known", and the answer gets coarser (in the end one chiplet that holds every allowed CPU). It never
//! becomes an error or a panic, since a search has to run on any machine.

mod affinity;
mod cgroup;
mod chiplet;
mod cpu_list;
mod cpu_model;
mod files;
mod memory;
mod report;
mod shape;
mod turns;

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::path::Path;

pub use cgroup::Limits;
pub use chiplet::{Cache, Chiplet, ChipletId, Core};
pub use cpu_list::{CpuList, CpuListError, MAX_CPUS};
pub use memory::{HugePages, Memory};
pub use shape::FakeError;
pub use turns::{Turns, ask_for_turns};

use files::Files;
use shape::Shape;

/// A machine, as far as this process may use it.
///
/// `Display` gives the report that `lanewise doctor` prints.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Machine {
    /// The CPU's name as its maker writes it; on Arm the core's name or its id numbers.
    pub cpu_model: Option<String>,
    /// Every CPU that is online, allowed or not.
    pub online: CpuList,
    /// The allowed CPUs, grouped by the last-level cache they share; ascending by lowest CPU, ids
    /// counted from 0. Never empty, and each allowed CPU is in exactly one core of one chiplet.
    pub chiplets: Vec<Chiplet>,
    /// What the container (cgroup) allows.
    pub limits: Limits,
    /// Memory and page sizes.
    pub memory: Memory,
}

impl Machine {
    /// The machine that this process runs on, restricted to the CPUs that the calling thread may use.
    ///
    /// Full detail on Linux. Elsewhere: one chiplet with
    /// [`available_parallelism`](std::thread::available_parallelism) CPUs.
    pub fn detect() -> Self {
        let mut machine = Self::read(Path::new("/"), &affinity::allowed());
        machine.memory.page_bytes = memory::page_bytes();
        machine
    }

    /// The machine that `root` describes: `root/proc` and `root/sys` have Linux's layout.
    ///
    /// `affinity` holds the ids of the CPUs that may be used, in any order; ids of [`MAX_CPUS`] and
    /// above are left out, and if none is left, CPU 0 stands in, since a process runs somewhere. CPUs
    /// that are not online are skipped. The page size is not to be found in files and stays unknown.
    pub fn read(root: &Path, affinity: &[usize]) -> Self {
        let files = Files::new(root);
        let mut allowed: BTreeSet<usize> = affinity.iter().copied().filter(|&cpu| cpu < MAX_CPUS).collect();
        if allowed.is_empty() {
            allowed.insert(0);
        }
        // Where the list contradicts the mask altogether, the mask wins: it is what we run by.
        let online = match files.parse::<CpuList>("sys/devices/system/cpu/online") {
            Some(online) if allowed.iter().any(|&cpu| online.contains(cpu)) => online,
            _ => allowed.iter().copied().collect(),
        };
        allowed.retain(|&cpu| online.contains(cpu));
        Self {
            cpu_model: cpu_model::read(&files),
            chiplets: chiplet::read(&files, &allowed),
            online,
            limits: cgroup::read(&files),
            memory: memory::read(&files),
        }
    }

    /// A machine made up from its shape: `CHIPLETSxCORESxCACHE`, as in `12x8x32M` (12 chiplets of 8 cores that share
    /// 32 MiB), `2p:12x8x32M@2` (two such packages, two hardware threads to each core), `1x8x96M+1x8x32M` (unequal
    /// caches) or `1x64` (no cache known). Sizes take K, M or G (binary). Of the caches it has the last level only, as
    /// L3. Each package is a NUMA node; nothing is limited; CPUs are numbered as Linux does on most servers.
    ///
    /// ```
    /// let machine = lanewise_topology::Machine::fake("12x8x32M").unwrap();
    /// assert_eq!((machine.chiplets.len(), machine.threads().get()), (12, 96));
    /// ```
    ///
    /// # Errors
    /// If the text is no shape, or has more than [`MAX_CPUS`] CPUs.
    pub fn fake(shape: &str) -> Result<Self, FakeError> {
        Ok(shape.parse::<Shape>()?.machine())
    }

    /// The machine's shape in one word, as [`Machine::fake`] reads it: of a made-up machine exactly the machine; of a
    /// real one the allowed cores of each chiplet and their shared cache, in order, without nodes inside a package. Where
    /// packages are not alike they are not told apart, and each core counts as having the threads of the one that has
    /// most.
    pub fn shape(&self) -> String {
        Shape::of(self).to_string()
    }

    /// How many threads can run at once: the smaller of the CPU quota, rounded down, and the number of
    /// allowed CPUs; at least 1.
    ///
    /// Rounded down because a pool one thread larger than its quota is throttled as a whole, again and
    /// again, in the middle of queries.
    pub fn threads(&self) -> NonZeroUsize {
        // The cast saturates, and the quota is positive: a huge one just leaves the CPU count.
        let quota = self.limits.cpu_quota.map_or(usize::MAX, |cpus| cpus.floor() as usize);
        NonZeroUsize::new(quota.min(self.cpus().count())).unwrap_or(NonZeroUsize::MIN)
    }

    /// Ids of the allowed CPUs, chiplet by chiplet, core by core.
    pub fn cpus(&self) -> impl Iterator<Item = usize> + '_ {
        self.chiplets.iter().flat_map(Chiplet::cpus)
    }

    /// The chiplet that CPU `cpu` is on; `None` when this process may not use the CPU.
    pub fn chiplet_of(&self, cpu: usize) -> Option<ChipletId> {
        self.chiplets.iter().find(|chiplet| chiplet.cpus().any(|c| c == cpu)).map(|chiplet| chiplet.id)
    }

    /// Number of packages (sockets) with at least one allowed CPU.
    pub fn packages_len(&self) -> usize {
        self.chiplets.iter().map(|chiplet| chiplet.package).collect::<BTreeSet<_>>().len()
    }

    /// Number of NUMA nodes with at least one allowed CPU.
    pub fn nodes_len(&self) -> usize {
        self.chiplets.iter().map(|chiplet| chiplet.node).collect::<BTreeSet<_>>().len()
    }

    /// Bytes of memory that this process can hope for: the machine's, or the container's limit when
    /// that is smaller. `None` when neither is known.
    pub fn memory_bytes(&self) -> Option<u64> {
        [self.memory.total_bytes, self.limits.memory_bytes].into_iter().flatten().min()
    }
}
