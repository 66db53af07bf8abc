//! Files that no kernel would write: the machine may get coarser, its promises must hold.

use std::collections::BTreeSet;

use lanewise_topology::Machine;
use proptest::prelude::*;

use crate::fixture::{Root, V2_MOUNT, genoa, layout};

/// Every file of a two-CPU machine that is read somewhere.
const FILES: &[&str] = &[
    "proc/cpuinfo",
    "proc/meminfo",
    "proc/self/cgroup",
    "proc/self/mountinfo",
    "sys/devices/system/cpu/online",
    "sys/devices/system/cpu/cpu0/topology/physical_package_id",
    "sys/devices/system/cpu/cpu0/topology/core_cpus_list",
    "sys/devices/system/cpu/cpu1/topology/thread_siblings_list",
    "sys/devices/system/cpu/cpu0/cache/index0/level",
    "sys/devices/system/cpu/cpu0/cache/index0/type",
    "sys/devices/system/cpu/cpu0/cache/index0/size",
    "sys/devices/system/cpu/cpu0/cache/index0/shared_cpu_list",
    "sys/devices/system/cpu/cpu1/cache/index0/level",
    "sys/devices/system/cpu/cpu1/cache/index0/shared_cpu_list",
    "sys/devices/system/node/node0/cpulist",
    "sys/devices/system/node/node99999999999/cpulist",
    "sys/kernel/mm/transparent_hugepage/enabled",
    "sys/kernel/mm/transparent_hugepage/hpage_pmd_size",
    "sys/fs/cgroup/cpu.max",
    "sys/fs/cgroup/memory.max",
];

/// What `Machine` promises whatever it read.
fn check(machine: &Machine, affinity: &[usize]) {
    let cpus: Vec<usize> = machine.cpus().collect();
    let set: BTreeSet<usize> = cpus.iter().copied().collect();
    assert_eq!(cpus.len(), set.len(), "a CPU is in two places: {machine:?}");
    assert!(!set.is_empty());
    let expected: BTreeSet<usize> =
        affinity.iter().copied().filter(|&cpu| machine.online.contains(cpu)).collect();
    assert_eq!(set, expected);
    assert!((1..=cpus.len()).contains(&machine.threads().get()));
    for (place, chiplet) in machine.chiplets.iter().enumerate() {
        assert_eq!(chiplet.id.0 as usize, place);
        assert!(!chiplet.cores.is_empty() && chiplet.cores.iter().all(|core| !core.cpus.is_empty()));
        assert!(chiplet.caches.is_sorted_by(|a, b| a.level < b.level));
    }
    assert!(machine.limits.cpu_quota.is_none_or(|cpus| cpus > 0.0));
    let fake = Machine::fake(&machine.shape()).unwrap();
    let cores = |machine: &Machine| machine.chiplets.iter().map(|c| c.cores.len()).sum::<usize>();
    assert_eq!((fake.chiplets.len(), cores(&fake)), (machine.chiplets.len(), cores(machine)));
    let report = machine.to_string();
    assert!(!report.contains(|c: char| c.is_control() && c != '\n'), "{report:?}");
    assert!(report.len() < 4096, "{report}");
}

/// Contents that come close to being right, or are not at all.
fn content() -> impl Strategy<Value = Vec<u8>> {
    let close = prop::sample::select(vec![
        "",
        "0",
        "1",
        "-1",
        "0-1",
        "1-0",
        "0-4294967295",
        "0-1048575",
        "1",
        "3",
        "255",
        "99999999999999999999",
        "18446744073709551615",
        "18446744073709551615K",
        "max",
        "max 0",
        "1 0",
        "0 1",
        "1 18446744073709551615",
        "18446744073709551615 1",
        "NaN inf",
        "0::/",
        "0::/../..",
        "0::",
        "::",
        "3:cpu,memory:/",
        "Data",
        "Instruction",
        "always [madvise] never",
        "[]",
        "MemTotal: 18446744073709551615 kB",
        "MemTotal: kB",
        "model name: \x1b[2J\x07evil",
        "CPU implementer: 0x\nCPU part: 0x",
        V2_MOUNT,
        "1 1 1:1 / / - cgroup2",
        "1 1 1:1 / /.. rw - cgroup2 a b",
        "1 1 1:1 \\057 /\\777\\0 rw - cgroup2 a b",
        " - ",
        " - cgroup",
    ])
    .prop_map(|text| text.as_bytes().to_vec());
    prop_oneof![3 => close, 1 => prop::collection::vec(any::<u8>(), 0..200)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_content_keeps_the_promises(contents in prop::collection::vec(prop::option::of(content()), FILES.len())) {
        let root = Root::new();
        for (path, content) in FILES.iter().zip(&contents) {
            if let Some(content) = content {
                root.file(path, content);
            }
        }
        check(&root.read([0, 1]), &[0, 1]);
    }

    #[test]
    fn any_sharing_lists_split_the_cpus(lists in prop::collection::vec((0usize..8, 0usize..8, 0usize..8, 0usize..8), 8)) {
        let root = Root::new();
        for (cpu, (a, b, c, d)) in lists.into_iter().enumerate() {
            let range = |a: usize, b: usize| format!("{}-{}", a.min(b), a.max(b));
            root.cpu(cpu, 0, &range(c, d), &[(3, "Unified", "1M", range(a, b))]);
        }
        let affinity: Vec<usize> = (0..8).collect();
        check(&root.read(affinity.clone()), &affinity);
    }
}

#[test]
fn an_online_list_that_contradicts_the_mask_loses() {
    let root = genoa();
    for online in ["", "garbage", "100-200", "0-4294967295"] {
        root.online(online);
        assert_eq!(layout(&root.read([2, 3])), ["2-3"], "{online}");
    }
}

#[test]
fn garbage_in_one_place_leaves_the_rest() {
    let root = genoa();
    root.file("proc/cpuinfo", [0xff; 5000])
        .file("proc/meminfo", "MemTotal: 18446744073709551615 kB\nMemAvailable: 5 kB\n");
    root.cgroups("nonsense\n\n0::/\n", &format!("\n- - -\n{V2_MOUNT}"));
    root.file("sys/fs/cgroup/cpu.max", "600000 100000\n").file("sys/fs/cgroup/memory.max", "-5\n");
    let machine = root.read(0..32);
    assert_eq!(machine.chiplets.len(), 4);
    assert_eq!((machine.memory.total_bytes, machine.memory.available_bytes), (None, Some(5120)));
    assert_eq!((machine.limits.cpu_quota, machine.limits.memory_bytes), (Some(6.0), None));
    assert_eq!(machine.cpu_model, None);
}

#[test]
fn folders_and_endless_files_in_place_of_files() {
    let root = genoa();
    std::fs::create_dir_all(root.path("proc/meminfo")).unwrap();
    // The mount comes after more than anyone wants to read.
    root.cgroups("0::/\n", &format!("{}\n{V2_MOUNT}", "x".repeat(8 << 20)));
    root.file("sys/fs/cgroup/cpu.max", "100000 100000\n");
    let shared = "sys/devices/system/cpu/cpu0/cache/index3/shared_cpu_list";
    std::fs::remove_file(root.path(shared)).unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink("/dev/zero", root.path(shared)).unwrap();
    // CPU 0 lost its list; CPU 1 still names it.
    let machine = root.read(0..32);
    assert_eq!(layout(&machine)[0], "0-3,16-19");
    assert_eq!((machine.memory.total_bytes, machine.limits.cpu_quota), (None, None));
}

/// Fails by hanging.
#[test]
#[cfg(unix)]
fn a_named_pipe_is_not_waited_for() {
    let root = Root::new();
    let pipe = root.file("proc/version", "").path("proc/meminfo");
    let name = std::ffi::CString::new(pipe.to_str().unwrap()).unwrap();
    // SAFETY: the name ends with a zero byte and lives through the call.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
    assert_eq!(root.read([0]).memory.total_bytes, None);
}
