//! The report that `lanewise doctor` prints.

use crate::fixture::{Root, V2_MOUNT, genoa};

#[test]
fn of_a_machine_with_everything() {
    let root = genoa();
    root.cgroups("0::/\n", V2_MOUNT).file("sys/fs/cgroup/cpu.max", "1250000 100000\n");
    root.file("sys/fs/cgroup/memory.max", "25769803776\n");
    root.file("proc/meminfo", "MemTotal:       263454720 kB\nMemFree: 1 kB\nMemAvailable:   1536 kB\n");
    root.file("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
    root.file("sys/kernel/mm/transparent_hugepage/hpage_pmd_size", "2097152\n");
    let affinity = (0..32).filter(|cpu| *cpu != 15 && *cpu != 31);
    let expected = "\
CPU: AMD EPYC 9454 48-Core Processor
layout: 2 packages, 2 NUMA nodes, 4 chiplets, 15 cores, 30 CPUs (32 online)
shape: 3x4x32M+1x3x32M@2
chiplet 0: cores 0-3 (SMT 16-19), L3 32 MiB, L2 1 MiB, L1d 32 KiB, package 0, node 0
chiplet 1: cores 4-7 (SMT 20-23), L3 32 MiB, L2 1 MiB, L1d 32 KiB, package 0, node 0
chiplet 2: cores 8-11 (SMT 24-27), L3 32 MiB, L2 1 MiB, L1d 32 KiB, package 1, node 1
chiplet 3: cores 12-14 (SMT 28-30), L3 32 MiB, L2 1 MiB, L1d 32 KiB, package 1, node 1
threads: 12 (30 CPUs allowed, quota 12.5 CPUs)
memory: 251.25 GiB total, 1.5 MiB available, limit 24 GiB
pages: unknown, transparent huge pages madvise (2 MiB)";
    assert_eq!(root.read(affinity).to_string(), expected);
}

#[test]
fn of_a_machine_that_tells_nothing() {
    let expected = "\
CPU: unknown
layout: 1 package, 1 NUMA node, 1 chiplet, 1 core, 1 CPU (1 online)
shape: 1x1
chiplet 0: core 5, caches unknown
threads: 1 (1 CPU allowed, no quota)
memory: unknown total, unknown available, no limit
pages: unknown, transparent huge pages unknown (unknown)";
    assert_eq!(Root::new().read([5]).to_string(), expected);
}
