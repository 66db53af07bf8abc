//! Machines that people have: their `sys` folders written from public layouts, and what is read of them.
//!
//! Cores, caches and sizes are from the makers' pages for the CPU named at each test; the numbers of CPUs and nodes are
//! those that Linux gives (`lscpu`, hwloc's `lstopo`): first the first threads of all cores, package by package and
//! chiplet by chiplet, then the second threads in the same order; AMD's nodes per socket (NPS) split a package's
//! chiplets in that order.

use std::ops::Range;

use lanewise_topology::{CpuList, Machine};

use crate::fixture::{Root, V2_MOUNT, layout};

/// A machine with packages of one kind.
struct Server<'a> {
    packages: usize,
    /// NUMA nodes of a package.
    nodes: usize,
    /// Cores and last-level cache of each chiplet of a package, the cache as the kernel writes it.
    chiplets: &'a [(usize, &'a str)],
    /// Hardware threads of a core.
    threads: usize,
    l1d: &'a str,
    l2: &'a str,
}

impl Server<'_> {
    fn cores(&self) -> usize {
        self.packages * self.chiplets.iter().map(|chiplet| chiplet.0).sum::<usize>()
    }

    /// All CPUs.
    fn cpus(&self) -> Range<usize> {
        0..self.cores() * self.threads
    }

    /// The CPUs of cores, as a list.
    fn list(&self, cores: Range<usize>) -> String {
        let threads = (0..self.threads).flat_map(|t| cores.clone().map(move |core| core + t * self.cores()));
        threads.collect::<CpuList>().to_string()
    }

    fn write(&self) -> Root {
        let root = Root::new();
        root.online(&format!("0-{}", self.cores() * self.threads - 1));
        let per_node = self.cores() / self.packages / self.nodes;
        for node in 0..self.packages * self.nodes {
            root.node(node, &self.list(node * per_node..(node + 1) * per_node));
        }
        let mut first = 0;
        for package in 0..self.packages {
            for &(cores, l3) in self.chiplets {
                let behind = self.list(first..first + cores);
                for core in first..first + cores {
                    let own = self.list(core..core + 1);
                    let mut caches = vec![
                        (1, "Data", self.l1d, own.clone()),
                        (1, "Instruction", self.l1d, own.clone()),
                        (2, "Unified", self.l2, own.clone()),
                    ];
                    // Left out where the firmware lists none.
                    if !l3.is_empty() {
                        caches.push((3, "Unified", l3, behind.clone()));
                    }
                    for thread in 0..self.threads {
                        root.cpu(core + thread * self.cores(), package as i32, &own, &caches);
                    }
                }
                first += cores;
            }
        }
        root
    }

    fn read(&self) -> Machine {
        self.write().read(self.cpus())
    }
}

/// One AMD package of equal chiplets, with SMT.
fn epyc<'a>(chiplets: &'a [(usize, &'a str)], l1d: &'a str, l2: &'a str) -> Server<'a> {
    Server { packages: 1, nodes: 1, chiplets, threads: 2, l1d, l2 }
}

/// EPYC 9654: 12 chiplets of 8 cores, 384 MiB of L3.
fn genoa_9654() -> Server<'static> {
    epyc(&[(8, "32768K"); 12], "32K", "1024K")
}

/// Sizes of the chiplets' shared caches, in MiB.
fn llc_mib(machine: &Machine) -> Vec<u64> {
    let bytes = machine.chiplets.iter().map(|c| c.shared_cache().unwrap().bytes.unwrap());
    bytes.map(|bytes| bytes >> 20).collect()
}

fn cores(machine: &Machine) -> Vec<usize> {
    machine.chiplets.iter().map(|chiplet| chiplet.cores.len()).collect()
}

fn nodes(machine: &Machine) -> Vec<u32> {
    machine.chiplets.iter().map(|chiplet| chiplet.node).collect()
}

/// EPYC 7K62 of document 004: 48 cores, 192 MiB of L3. A die holds two complexes of four cores, each with its own L3, so
/// it is the complex that counts as a chiplet.
#[test]
fn rome() {
    let machine = epyc(&[(4, "16384K"); 12], "32K", "512K").read();
    assert_eq!(
        (cores(&machine), llc_mib(&machine), nodes(&machine)),
        (vec![4; 12], vec![16; 12], vec![0; 12])
    );
    let chiplets = layout(&machine);
    assert_eq!((chiplets[0].as_str(), chiplets[11].as_str()), ("0-3,48-51", "44-47,92-95"));
    assert_eq!(machine.shape(), "12x4x16M@2");
}

/// EPYC 7763: 64 cores, 256 MiB of L3; a die is one complex since Milan.
#[test]
fn milan() {
    let machine = epyc(&[(8, "32768K"); 8], "32K", "512K").read();
    assert_eq!((cores(&machine), llc_mib(&machine), nodes(&machine)), (vec![8; 8], vec![32; 8], vec![0; 8]));
    assert_eq!(layout(&machine)[7], "56-63,120-127");
    assert_eq!(machine.shape(), "8x8x32M@2");
}

/// EPYC 9654 of document 004.
#[test]
fn genoa() {
    let machine = genoa_9654().read();
    assert_eq!(
        (cores(&machine), llc_mib(&machine), nodes(&machine)),
        (vec![8; 12], vec![32; 12], vec![0; 12])
    );
    let chiplets = layout(&machine);
    assert_eq!((chiplets[0].as_str(), chiplets[11].as_str()), ("0-7,96-103", "88-95,184-191"));
    assert_eq!(machine.chiplets[11].cores[7].cpus, [95, 191]);
    assert_eq!((machine.threads().get(), machine.shape().as_str()), (192, "12x8x32M@2"));
}

/// EPYC 9755: 128 cores, 512 MiB; and 9965 with the dense cores: 192 cores, 384 MiB.
#[test]
fn turin() {
    let machine = epyc(&[(8, "32768K"); 16], "48K", "1024K").read();
    assert_eq!(
        (cores(&machine), llc_mib(&machine), nodes(&machine)),
        (vec![8; 16], vec![32; 16], vec![0; 16])
    );
    assert_eq!((layout(&machine)[15].as_str(), machine.shape().as_str()), ("120-127,248-255", "16x8x32M@2"));

    let dense = epyc(&[(16, "32768K"); 12], "48K", "1024K").read();
    assert_eq!((cores(&dense), llc_mib(&dense), nodes(&dense)), (vec![16; 12], vec![32; 12], vec![0; 12]));
    assert_eq!((layout(&dense)[11].as_str(), dense.shape().as_str()), ("176-191,368-383", "12x16x32M@2"));
}

/// Ryzen 9 7950X3D: a second die of cache on the first chiplet only.
#[test]
fn x3d_has_caches_of_two_sizes() {
    let machine = epyc(&[(8, "98304K"), (8, "32768K")], "32K", "1024K").read();
    assert_eq!((cores(&machine), llc_mib(&machine), nodes(&machine)), (vec![8; 2], vec![96, 32], vec![0; 2]));
    assert_eq!(layout(&machine), ["0-7,16-23", "8-15,24-31"]);
    assert_eq!(machine.shape(), "1x8x96M+1x8x32M@2");
}

/// EPYC 9654 in two sockets at NPS4: three chiplets to a node, 24 memory channels in eight nodes.
#[test]
fn nps4_has_four_nodes_to_a_package() {
    let server = Server { packages: 2, nodes: 4, ..genoa_9654() };
    let machine = server.read();
    assert_eq!((cores(&machine), llc_mib(&machine)), (vec![8; 24], vec![32; 24]));
    let expected = [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 5, 5, 5, 6, 6, 6, 7, 7, 7];
    assert_eq!(nodes(&machine), expected);
    assert!(machine.chiplets.iter().all(|chiplet| chiplet.package == u32::from(chiplet.id.0 >= 12)));
    assert_eq!((machine.packages_len(), machine.nodes_len()), (2, 8));
    assert_eq!(layout(&machine)[12], "96-103,288-295");
    assert_eq!(machine.shape(), "2p:12x8x32M@2");
}

/// EPYC 9654 at NPS1 with "L3 as NUMA domain": a node for each chiplet.
#[test]
fn a_node_for_each_chiplet() {
    let machine = Server { nodes: 12, ..genoa_9654() }.read();
    assert_eq!(nodes(&machine), (0..12).collect::<Vec<_>>());
    assert_eq!((machine.packages_len(), machine.shape().as_str()), (1, "12x8x32M@2"));
}

/// Two Xeon Platinum 8480+: 56 cores and 105 MiB each. Four dies, but one cache for all of them.
fn sapphire_rapids() -> Server<'static> {
    Server { packages: 2, nodes: 1, chiplets: &[(56, "107520K")], threads: 2, l1d: "48K", l2: "2048K" }
}

#[test]
fn sapphire_rapids_is_one_chiplet_to_a_package() {
    let machine = sapphire_rapids().read();
    assert_eq!(
        (cores(&machine), llc_mib(&machine), nodes(&machine)),
        (vec![56; 2], vec![105; 2], vec![0, 1])
    );
    assert_eq!(layout(&machine), ["0-55,112-167", "56-111,168-223"]);
    assert_eq!(machine.shape(), "2p:1x56x105M@2");
}

/// With sub-NUMA clustering on, the cache is still listed as shared by the package.
#[test]
fn sub_numa_clusters_share_their_cache() {
    let machine = Server { nodes: 4, ..sapphire_rapids() }.read();
    assert_eq!((cores(&machine), nodes(&machine)), (vec![56; 2], vec![0, 4]));
}

/// Graviton 3: 64 Neoverse V1, private L2 of 1 MiB. With the firmware that describes caches (ACPI PPTT) the 32 MiB of the
/// mesh are listed as L3 of all cores.
#[test]
fn graviton_3() {
    let listed =
        Server { packages: 1, nodes: 1, chiplets: &[(64, "32768K")], threads: 1, l1d: "64K", l2: "1024K" };
    let machine = listed.read();
    assert_eq!((cores(&machine), llc_mib(&machine), nodes(&machine)), (vec![64], vec![32], vec![0]));
    assert_eq!((layout(&machine), machine.shape().as_str()), (vec!["0-63".to_owned()], "1x64x32M"));

    // A virtual machine may list the cores' own caches alone. Then no chiplet per core, and no size made up.
    let machine = Server { chiplets: &[(64, "")], ..listed }.read();
    assert_eq!((cores(&machine), nodes(&machine)), (vec![64], vec![0]));
    assert_eq!((machine.chiplets[0].shared_cache(), machine.shape().as_str()), (None, "1x64"));
    assert_eq!(machine.chiplets[0].caches.last().unwrap().bytes, Some(1 << 20));
}

/// Graviton 4 in two sockets (48xlarge): 96 Neoverse V2 and 36 MiB each, private L2 of 2 MiB. Its packages' numbers are
/// places in a table of the firmware and so neither small nor in a row.
#[test]
fn graviton_4_in_two_sockets() {
    for l3 in ["36864K", ""] {
        let server =
            Server { packages: 2, nodes: 1, chiplets: &[(96, l3)], threads: 1, l1d: "64K", l2: "2048K" };
        let root = server.write();
        for cpu in server.cpus() {
            let package = if cpu < 96 { "36\n" } else { "3180\n" };
            root.file(&format!("sys/devices/system/cpu/cpu{cpu}/topology/physical_package_id"), package);
        }
        let machine = root.read(server.cpus());
        assert_eq!((cores(&machine), nodes(&machine)), (vec![96; 2], vec![0, 1]));
        assert_eq!(layout(&machine), ["0-95", "96-191"]);
        assert_eq!((machine.packages_len(), machine.chiplets[1].package), (2, 3180));
        let shared = machine.chiplets.iter().map(|c| c.shared_cache().and_then(|cache| cache.bytes));
        let expected = (!l3.is_empty()).then_some(36 << 20);
        assert_eq!(shared.collect::<Vec<_>>(), [expected; 2]);
        assert_eq!(machine.shape(), if l3.is_empty() { "2p:1x96" } else { "2p:1x96x36M" });
    }
}

/// A small virtual machine.
#[test]
fn one_chiplet_with_two_cores() {
    let machine =
        Server { packages: 1, nodes: 1, chiplets: &[(2, "32768K")], threads: 1, l1d: "32K", l2: "1024K" }
            .read();
    assert_eq!((cores(&machine), llc_mib(&machine), nodes(&machine)), (vec![2], vec![32], vec![0]));
    assert_eq!((machine.threads().get(), machine.shape().as_str()), (2, "1x2x32M"));
}

/// CPUs switched off lose their `cache` and `topology` folders, and leave every other CPU's lists
/// (Linux, `drivers/base/cacheinfo.c`).
#[test]
fn offline_cpus() {
    let server = Server { packages: 1, nodes: 1, chiplets: &[(4, "16384K"); 2], ..genoa_9654() };
    // Core 1 lost its second thread, core 4 both.
    let root = server.write();
    root.online("0-3,5-8,10-11,13-15").node(0, "0-3,5-8,10-11,13-15");
    for gone in [4, 9, 12] {
        for folder in ["cache", "topology"] {
            let path = format!("sys/devices/system/cpu/cpu{gone}/{folder}");
            std::fs::remove_dir_all(root.path(&path)).unwrap();
        }
    }
    root.file("sys/devices/system/cpu/cpu1/topology/core_cpus_list", "1\n");
    for (cpus, l3) in
        [([0, 1, 2, 3, 8, 10, 11].as_slice(), "0-3,8,10-11"), (&[5, 6, 7, 13, 14, 15], "5-7,13-15")]
    {
        for cpu in cpus {
            root.file(
                &format!("sys/devices/system/cpu/cpu{cpu}/cache/index3/shared_cpu_list"),
                format!("{l3}\n"),
            );
        }
    }
    let machine = root.read(server.cpus());
    assert_eq!(layout(&machine), ["0-3,8,10-11", "5-7,13-15"]);
    assert_eq!((cores(&machine), llc_mib(&machine), nodes(&machine)), (vec![4, 3], vec![16, 16], vec![0, 0]));
    assert_eq!(machine.chiplets[0].cores[1].cpus, [1]);
    assert_eq!((machine.threads().get(), machine.shape().as_str()), (13, "1x4x16M+1x3x16M@2"));
}

/// A container on Genoa with a CPU set of six cores of one chiplet and two of the next, and a quota of five and a half.
/// Its `sys` is the host's; the set shows in the affinity mask.
#[test]
fn a_container_that_sees_part_of_a_chiplet() {
    let server = genoa_9654();
    let root = server.write();
    root.cgroups("0::/\n", V2_MOUNT).file("sys/fs/cgroup/cpu.max", "550000 100000\n");
    let machine = root.read((2..10).chain(98..106));
    assert_eq!(layout(&machine), ["2-7,98-103", "8-9,104-105"]);
    assert_eq!((cores(&machine), llc_mib(&machine), nodes(&machine)), (vec![6, 2], vec![32, 32], vec![0, 0]));
    assert_eq!((machine.chiplets[1].id.0, machine.online.len()), (1, 192));
    assert_eq!((machine.threads().get(), machine.shape().as_str()), (5, "1x6x32M+1x2x32M@2"));
    // The cache is as large, and others use it too.
    assert_eq!(machine.chiplets[1].shared_cache().unwrap().cpus_len, Some(16));
}
