//! Limits of containers, cgroup v1 and v2, and the thread count that follows from them.

use crate::fixture::{Root, V2_MOUNT};

/// Quota and thread count on a machine with eight CPUs.
fn quota(root: &Root) -> (Option<f64>, usize) {
    let machine = root.read(0..8);
    (machine.limits.cpu_quota, machine.threads().get())
}

#[test]
fn no_cgroup_no_limit() {
    assert_eq!(quota(&Root::new()), (None, 8));
    let root = Root::new();
    root.cgroups("0::/a\n", V2_MOUNT).file("sys/fs/cgroup/a/cpu.max", "max 100000\n");
    root.file("sys/fs/cgroup/a/memory.max", "max\n");
    assert_eq!(quota(&root), (None, 8));
    assert_eq!(root.read([0]).limits.memory_bytes, None);
}

#[test]
fn v2_smallest_limit_on_the_way_up_wins() {
    let root = Root::new();
    root.cgroups("0::/kube/pod/box\n", V2_MOUNT);
    root.file("sys/fs/cgroup/kube/pod/box/cpu.max", "600000 100000\n");
    root.file("sys/fs/cgroup/kube/pod/cpu.max", "250000 50000\n");
    root.file("sys/fs/cgroup/kube/cpu.max", "max 100000\n");
    root.file("sys/fs/cgroup/kube/pod/box/memory.max", "max\n");
    root.file("sys/fs/cgroup/kube/pod/memory.max", "8589934592\n");
    root.file("sys/fs/cgroup/kube/memory.max", "2147483648\n");
    // A neighbour's limit is not ours.
    root.file("sys/fs/cgroup/kube/other/cpu.max", "100000 100000\n");
    assert_eq!(quota(&root), (Some(5.0), 5));
    let machine = root.file("proc/meminfo", "MemTotal:       16777216 kB\n").read(0..8);
    assert_eq!(machine.limits.memory_bytes, Some(2 << 30));
    assert_eq!((machine.memory.total_bytes, machine.memory_bytes()), (Some(16 << 30), Some(2 << 30)));
}

#[test]
fn v2_inside_a_cgroup_namespace() {
    let root = Root::new();
    root.cgroups("0::/\n", V2_MOUNT).file("sys/fs/cgroup/cpu.max", "350000 100000\n");
    assert_eq!(quota(&root), (Some(3.5), 3));
}

#[test]
fn half_a_cpu_is_one_thread() {
    let root = Root::new();
    root.cgroups("0::/\n", V2_MOUNT).file("sys/fs/cgroup/cpu.max", "50000 100000\n");
    assert_eq!(quota(&root), (Some(0.5), 1));
}

#[test]
fn a_quota_above_the_affinity_changes_nothing() {
    let root = Root::new();
    root.cgroups("0::/\n", V2_MOUNT).file("sys/fs/cgroup/cpu.max", "6400000 100000\n");
    assert_eq!(quota(&root), (Some(64.0), 8));
    root.file("sys/fs/cgroup/cpu.max", "18446744073709551615 1\n");
    assert_eq!(quota(&root).1, 8);
}

#[test]
fn v2_period_may_be_left_out() {
    let root = Root::new();
    root.cgroups("0::/\n", V2_MOUNT).file("sys/fs/cgroup/cpu.max", "200000\n");
    assert_eq!(quota(&root), (Some(2.0), 2));
}

#[test]
fn zero_is_no_quota() {
    for text in ["0 100000", "100000 0", "0 0", "-1 100000", "1.5 1"] {
        let root = Root::new();
        root.cgroups("0::/\n", V2_MOUNT).file("sys/fs/cgroup/cpu.max", text);
        assert_eq!(quota(&root), (None, 8), "{text}");
    }
}

#[test]
fn v1_one_and_a_half_cpus_are_one_thread() {
    let root = Root::new();
    let mounts = "31 30 0:28 / /sys/fs/cgroup/cpu,cpuacct rw shared:8 - cgroup cgroup rw,cpu,cpuacct\n\
                  32 30 0:29 / /sys/fs/cgroup/memory rw shared:9 - cgroup cgroup rw,memory\n\
                  33 30 0:30 / /sys/fs/cgroup/cpuset rw shared:9 - cgroup cgroup rw,cpuset\n";
    root.cgroups("11:cpuset:/\n4:memory:/box\n3:cpu,cpuacct:/box\n1:name=systemd:/\n", mounts);
    root.file("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
    root.file("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
    root.file("sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_quota_us", "150000\n");
    root.file("sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_period_us", "100000\n");
    root.file("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    assert_eq!(quota(&root), (Some(1.5), 1));
    assert_eq!(root.read([0]).limits.memory_bytes, None);
    root.file("sys/fs/cgroup/memory/box/memory.limit_in_bytes", "1073741824\n");
    assert_eq!(root.read([0]).limits.memory_bytes, Some(1 << 30));
}

#[test]
fn v1_in_a_container_that_sees_the_hosts_path() {
    // Without a cgroup namespace: the path is the host's, and the mount shows the container's part of it.
    let root = Root::new();
    let mounts = "31 30 0:28 /docker/f00 /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu\n";
    root.cgroups("3:cpu:/docker/f00\n", mounts);
    root.file("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "400000\n");
    root.file("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    assert_eq!(quota(&root), (Some(4.0), 4));
    root.cgroups("3:cpu:/docker/f00/inner\n", mounts);
    root.file("sys/fs/cgroup/cpu/inner/cpu.cfs_quota_us", "200000\n");
    root.file("sys/fs/cgroup/cpu/inner/cpu.cfs_period_us", "100000\n");
    assert_eq!(quota(&root), (Some(2.0), 2));
}

#[test]
fn v1_and_v2_side_by_side_both_count() {
    let root = Root::new();
    let mounts = "31 30 0:28 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
                  41 30 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
    root.cgroups("1:cpu:/\n0::/\n", mounts);
    root.file("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "500000\n");
    root.file("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    assert_eq!(quota(&root), (Some(5.0), 5));
    root.file("sys/fs/cgroup/unified/cpu.max", "300000 100000\n");
    assert_eq!(quota(&root), (Some(3.0), 3));
}

#[test]
fn a_folder_that_is_not_there_does_not_end_the_walk() {
    let root = Root::new();
    root.cgroups("0::/gone/too (deleted)\n", V2_MOUNT).file("sys/fs/cgroup/cpu.max", "200000 100000\n");
    assert_eq!(quota(&root), (Some(2.0), 2));
}

#[test]
fn mount_points_with_spaces() {
    let root = Root::new();
    root.cgroups("0::/a\n", "30 23 0:26 / /my\\040groups rw - cgroup2 cgroup2 rw\n");
    root.file("my groups/a/cpu.max", "200000 100000\n");
    assert_eq!(quota(&root), (Some(2.0), 2));
}

#[test]
fn mount_points_stay_below_the_root() {
    let root = Root::new();
    root.cgroups("0::/\n", "30 23 0:26 / /sys/../out rw - cgroup2 cgroup2 rw\n");
    root.file("out/cpu.max", "200000 100000\n").file("sys/marker", "");
    assert_eq!(quota(&root), (None, 8));
}

/// Quota found when the mount's root and the process's path are these, with 3 CPUs set at the mount point,
/// 2 CPUs at `/box` below it and 1 CPU above it, where nobody may look.
fn seen_from(mount_root: &str, path: &str) -> Option<f64> {
    let root = Root::new();
    root.cgroups(&format!("0::{path}\n"), &format!("30 23 0:26 {mount_root} /cg rw - cgroup2 none rw\n"));
    root.file("cg/cpu.max", "300000 100000\n").file("cg/box/cpu.max", "200000 100000\n");
    root.file("cpu.max", "100000 100000\n");
    quota(&root).0
}

#[test]
fn mounts_and_paths_across_namespaces() {
    assert_eq!(seen_from("/", "/box"), Some(2.0));
    // The mount shows a cgroup above the namespace: its own limit holds, names below are not known.
    assert_eq!(seen_from("/../..", "/"), Some(3.0));
    assert_eq!(seen_from("/../..", "/box"), Some(3.0));
    assert_eq!(seen_from("/..", "/../box"), Some(2.0));
    // The mount shows some other part of the tree.
    assert_eq!(seen_from("/elsewhere", "/box"), None);
    assert_eq!(seen_from("/", "/../box"), None);
    assert_eq!(seen_from("/..", "/../../box"), None);
    // A prefix of the text is not a folder above.
    assert_eq!(seen_from("/bo", "/box"), None);
    // Nothing may lead out of the mount point.
    assert_eq!(seen_from("/", "/box/../.."), None);
}
