//! To which CPUs a worker's thread is bound.
//!
//! One worker has one core, where there is a worker for each. Where the container allows less CPU time than there are
//! cores, the workers are fewer, and each may run on any CPU of its chiplet: with others in the same container on the same
//! cores, a thread that is bound to one core waits there while its neighbour is free.

use crate::policy::Layout;
use lanewise_topology::{Chiplet, Machine};

/// The CPUs of each worker of `layout`, which was made of `machine`.
pub(crate) fn cpus(machine: &Machine, layout: &Layout) -> Vec<Vec<usize>> {
    let cores: usize = machine.chiplets.iter().map(|chiplet| chiplet.cores.len()).sum();
    let all_cores = layout.workers() == cores;
    let of = |worker: usize| {
        let id = layout.of_worker(worker);
        let chiplet: &Chiplet = &machine.chiplets[id.0 as usize];
        let core = &chiplet.cores[worker - layout.on(id).start];
        if all_cores { core.cpus.clone() } else { chiplet.cpus().collect() }
    };
    (0..layout.workers()).map(of).collect()
}

/// Binds the calling thread. Where the system refuses, or is none that binds, the thread runs anywhere: slower at worst.
#[cfg(target_os = "linux")]
pub(crate) fn bind(cpus: &[usize]) {
    use libc::c_ulong;
    const WORD_BITS: usize = c_ulong::BITS as usize;

    let Some(&last) = cpus.iter().max() else { return };
    // `cpu_set_t` ends at CPU 1023; the call takes longer masks.
    let mut mask: Vec<c_ulong> = vec![0; last / WORD_BITS + 1];
    for &cpu in cpus {
        mask[cpu / WORD_BITS] |= 1 << (cpu % WORD_BITS);
    }
    // SAFETY: the kernel reads the given number of bytes, all of them `mask`'s; its words are what `cpu_set_t` is made of.
    let _ = unsafe { libc::sched_setaffinity(0, size_of_val(mask.as_slice()), mask.as_ptr().cast()) };
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn bind(_cpus: &[usize]) {}

/// The CPU that the calling thread is on now, where the system tells.
#[cfg(target_os = "linux")]
pub(crate) fn current_cpu() -> Option<usize> {
    // SAFETY: it takes nothing.
    usize::try_from(unsafe { libc::sched_getcpu() }).ok()
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn current_cpu() -> Option<usize> {
    None
}
