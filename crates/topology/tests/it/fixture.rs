//! A folder with `proc` and `sys` below it, built by calls that read like the machine's description.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use lanewise_topology::{CpuList, Machine};
use tempfile::TempDir;

/// Mount line of the unified hierarchy as most systems have it.
pub(crate) const V2_MOUNT: &str = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n";

/// A root folder for `Machine::read`, deleted when dropped.
///
/// A large machine has thousands of small files with few different contents: each content is written once, in memory
/// where the system has a folder for that, and linked to wherever it belongs.
pub(crate) struct Root {
    dir: TempDir,
    contents: RefCell<HashMap<Vec<u8>, PathBuf>>,
}

/// One entry of a CPU's `cache` folder: level, type, size, CPUs that share it.
pub(crate) type CacheFiles<'a> = (u8, &'a str, &'a str, String);

impl Root {
    pub(crate) fn new() -> Self {
        let memory = Path::new("/dev/shm");
        let dir = if memory.is_dir() { TempDir::new_in(memory) } else { TempDir::new() };
        Self { dir: dir.unwrap(), contents: RefCell::default() }
    }

    /// Writes a file and the folders above it.
    pub(crate) fn file(&self, path: &str, content: impl AsRef<[u8]>) -> &Self {
        let (path, content) = (self.path(path), content.as_ref());
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        // Writing into a file that is there would change all that have the same content.
        let _ = fs::remove_file(&path);
        let mut contents = self.contents.borrow_mut();
        let next = self.path(&format!("content{}", contents.len()));
        let written = contents.entry(content.to_vec()).or_insert_with(|| {
            fs::write(&next, content).unwrap();
            next
        });
        fs::hard_link(written, path).unwrap();
        self
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    pub(crate) fn online(&self, cpus: &str) -> &Self {
        self.file("sys/devices/system/cpu/online", format!("{cpus}\n"))
    }

    pub(crate) fn cpu(&self, cpu: usize, package: i32, siblings: &str, caches: &[CacheFiles]) -> &Self {
        let folder = format!("sys/devices/system/cpu/cpu{cpu}");
        self.file(&format!("{folder}/topology/physical_package_id"), format!("{package}\n"));
        self.file(&format!("{folder}/topology/core_cpus_list"), format!("{siblings}\n"));
        for (index, (level, kind, size, shared)) in caches.iter().enumerate() {
            let folder = format!("{folder}/cache/index{index}");
            self.file(&format!("{folder}/level"), format!("{level}\n"));
            self.file(&format!("{folder}/type"), format!("{kind}\n"));
            self.file(&format!("{folder}/size"), format!("{size}\n"));
            self.file(&format!("{folder}/shared_cpu_list"), format!("{shared}\n"));
        }
        self
    }

    pub(crate) fn node(&self, node: usize, cpus: &str) -> &Self {
        self.file(&format!("sys/devices/system/node/node{node}/cpulist"), format!("{cpus}\n"))
    }

    /// The process's cgroups and the mount table.
    pub(crate) fn cgroups(&self, cgroups: &str, mounts: &str) -> &Self {
        self.file("proc/self/cgroup", cgroups).file("proc/self/mountinfo", mounts)
    }

    pub(crate) fn read(&self, affinity: impl IntoIterator<Item = usize>) -> Machine {
        Machine::read(self.dir.path(), &affinity.into_iter().collect::<Vec<_>>())
    }
}

/// Two packages of two chiplets of four cores with two hardware threads, numbered as on AMD Genoa: first
/// the first threads of all cores, then the second ones. CPUs 0-31.
pub(crate) fn genoa() -> Root {
    let root = Root::new();
    root.online("0-31").node(0, "0-7,16-23").node(1, "8-15,24-31");
    root.file("proc/cpuinfo", "processor\t: 0\nmodel name\t: AMD EPYC 9454 48-Core Processor\n");
    for cpu in 0..32 {
        let core = cpu % 16;
        let siblings = format!("{core},{}", core + 16);
        let first = core / 4 * 4;
        let behind_l3 = format!("{first}-{},{}-{}", first + 3, first + 16, first + 19);
        let caches = [
            (1, "Data", "32K", siblings.clone()),
            (1, "Instruction", "32K", siblings.clone()),
            (2, "Unified", "1024K", siblings.clone()),
            (3, "Unified", "32768K", behind_l3),
        ];
        root.cpu(cpu, i32::from(core >= 8), &siblings, &caches);
    }
    root
}

/// The CPUs of each chiplet, in list format.
pub(crate) fn layout(machine: &Machine) -> Vec<String> {
    let chiplets = machine.chiplets.iter();
    chiplets.map(|chiplet| chiplet.cpus().collect::<CpuList>().to_string()).collect()
}
