//! How CPUs fall into chiplets and cores.

use lanewise_topology::{Cache, ChipletId, Core, MAX_CPUS};

use crate::fixture::{CacheFiles, Root, genoa, layout};

#[test]
fn two_packages_with_smt() {
    let machine = genoa().read(0..32);
    assert_eq!(layout(&machine), ["0-3,16-19", "4-7,20-23", "8-11,24-27", "12-15,28-31"]);
    let places: Vec<_> = machine.chiplets.iter().map(|c| (c.id.0, c.package, c.node)).collect();
    assert_eq!(places, [(0, 0, 0), (1, 0, 0), (2, 1, 1), (3, 1, 1)]);
    assert_eq!(machine.chiplets[1].cores[2], Core { cpus: vec![6, 22] });
    let cache = |level, bytes, cpus_len| Cache { level, bytes: Some(bytes), cpus_len: Some(cpus_len) };
    let expected = [cache(1, 32 << 10, 2), cache(2, 1 << 20, 2), cache(3, 32 << 20, 8)];
    assert_eq!(machine.chiplets[3].caches, expected);
    assert_eq!(machine.chiplets[3].shared_cache(), Some(&expected[2]));
    assert_eq!((machine.packages_len(), machine.nodes_len(), machine.threads().get()), (2, 2, 32));
    assert_eq!(machine.chiplet_of(29), Some(ChipletId(3)));
    assert_eq!(machine.chiplet_of(32), None);
    assert_eq!(machine.cpu_model.as_deref(), Some("AMD EPYC 9454 48-Core Processor"));
}

#[test]
fn affinity_restricts_cores_and_drops_chiplets() {
    // Out of order, repeated, and with CPUs that do not exist.
    let machine = genoa().read([25, 9, 2, 18, 2, 9, 500, usize::MAX]);
    assert_eq!(layout(&machine), ["2,18", "9,25"]);
    assert_eq!(machine.chiplets[0].cores, [Core { cpus: vec![2, 18] }]);
    assert_eq!(machine.chiplets[1].id, ChipletId(1));
    assert_eq!(machine.chiplets[1].package, 1);
    assert_eq!(machine.online.len(), 32);
    assert_eq!(machine.threads().get(), 4);
}

#[test]
fn offline_cpus_are_skipped() {
    let root = genoa();
    root.online("0-4,6-31");
    let machine = root.read(0..32);
    assert_eq!(layout(&machine)[1], "4,6-7,20-23");
    // The sibling of CPU 5 still runs, as a core of its own.
    assert!(machine.chiplets[1].cores.contains(&Core { cpus: vec![21] }));
    assert_eq!(machine.chiplet_of(5), None);
    assert_eq!(machine.threads().get(), 31);
}

#[test]
fn without_cache_files_packages_and_nodes_make_the_groups() {
    let root = Root::new();
    for cpu in 0..8 {
        root.cpu(cpu, i32::from(cpu >= 4), &cpu.to_string(), &[]);
    }
    root.node(0, "0-1").node(1, "2-3").node(2, "4-7");
    let machine = root.read(0..8);
    assert_eq!(layout(&machine), ["0-1", "2-3", "4-7"]);
    assert_eq!(machine.chiplets[1].shared_cache(), None);
    assert_eq!(machine.online.to_string(), "0-7");
}

#[test]
fn one_cpu_without_cache_files_joins_its_peers_list() {
    let root = genoa();
    std::fs::remove_dir_all(root.path("sys/devices/system/cpu/cpu0/cache")).unwrap();
    assert_eq!(layout(&root.read(0..32))[0], "0-3,16-19");
}

#[test]
fn an_empty_root_is_one_chiplet() {
    let machine = Root::new().read([3, 1, 7]);
    assert_eq!(layout(&machine), ["1,3,7"]);
    assert_eq!(machine.chiplets[0].cores.len(), 3);
    assert_eq!(machine.chiplets[0].caches, []);
    assert_eq!((machine.packages_len(), machine.nodes_len(), machine.threads().get()), (1, 1, 3));
    assert_eq!((machine.cpu_model, machine.memory.total_bytes), (None, None));
    // Nothing allowed at all cannot be: this very code runs on some CPU.
    assert_eq!(layout(&Root::new().read([])), ["0"]);
    assert_eq!(layout(&Root::new().read([MAX_CPUS, 6, MAX_CPUS - 1, usize::MAX])), ["6,1048575"]);
}

/// Four single-threaded cores of one package, each with the last-level cache `last`.
fn four_cores(last: impl Fn(usize) -> CacheFiles<'static>) -> Vec<String> {
    let root = Root::new();
    for cpu in 0..4 {
        root.cpu(cpu, 0, &cpu.to_string(), &[(1, "Data", "64K", cpu.to_string()), last(cpu)]);
    }
    layout(&root.read(0..4))
}

#[test]
fn a_private_l2_is_no_chiplet_but_a_private_l3_and_a_shared_l2_are() {
    assert_eq!(four_cores(|cpu| (2, "Unified", "1024K", cpu.to_string())), ["0-3"]);
    assert_eq!(four_cores(|cpu| (3, "Unified", "32M", cpu.to_string())), ["0", "1", "2", "3"]);
    let pair = |cpu: usize| format!("{}-{}", cpu / 2 * 2, cpu / 2 * 2 + 1);
    assert_eq!(four_cores(|cpu| (2, "Unified", "4096K", pair(cpu))), ["0-1", "2-3"]);
    // Shared by everyone, yet not a place where data live.
    assert_eq!(four_cores(|_| (3, "Instruction", "64K", "0-1".into())), ["0-3"]);
}

#[test]
fn an_l2_shared_by_smt_siblings_alone_is_private() {
    let root = Root::new();
    for cpu in 0..4 {
        let core = format!("{},{}", cpu % 2, cpu % 2 + 2);
        root.cpu(cpu, 0, &core, &[(2, "Unified", "1024K", core.clone())]);
    }
    let machine = root.read(0..4);
    assert_eq!(layout(&machine), ["0-3"]);
    assert_eq!(machine.chiplets[0].cores, [Core { cpus: vec![0, 2] }, Core { cpus: vec![1, 3] }]);
    assert_eq!(machine.chiplets[0].shared_cache(), None);
}

#[test]
fn older_kernels_name_siblings_differently() {
    let root = Root::new();
    root.file("sys/devices/system/cpu/cpu0/topology/thread_siblings_list", "0-1\n");
    assert_eq!(root.read(0..2).chiplets[0].cores, [Core { cpus: vec![0, 1] }]);
}

#[test]
fn cache_sizes_take_the_kernels_units() {
    for (text, bytes) in [
        ("512K", Some(512 << 10)),
        ("2M", Some(2 << 20)),
        ("1G", Some(1 << 30)),
        ("64", Some(64)),
        ("0K", None),
        ("-1K", None),
        ("K", None),
        ("99999999999999999999K", None),
        ("18446744073709551615K", None),
    ] {
        let root = Root::new();
        root.cpu(0, 0, "0", &[(3, "Unified", text, "0".into())]);
        assert_eq!(root.read([0]).chiplets[0].caches[0].bytes, bytes, "{text}");
    }
}

#[test]
fn a_level_listed_twice_counts_once() {
    let root = Root::new();
    root.cpu(0, 0, "0", &[(3, "Unified", "8M", "0".into()), (3, "Unified", "9M", "0-1".into())]);
    root.cpu(1, 0, "1", &[]);
    let machine = root.read([0, 1]);
    assert_eq!(machine.chiplets[0].caches, [Cache { level: 3, bytes: Some(8 << 20), cpus_len: Some(1) }]);
    assert_eq!(layout(&machine), ["0", "1"]);
}

#[test]
fn arm_cores_are_named_by_number() {
    for (implementer, part, name) in [
        ("0x41", "0xd40", "Arm Neoverse V1"),
        ("0xc0", "0xac3", "Ampere-1"),
        ("0x41", "0xfff", "Arm core, implementer 0x41 part 0xfff"),
    ] {
        let root = Root::new();
        let text = format!("processor\t: 0\nCPU implementer\t: {implementer}\nCPU part\t: {part}\n");
        root.file("proc/cpuinfo", text);
        assert_eq!(root.read([0]).cpu_model.as_deref(), Some(name));
    }
}
