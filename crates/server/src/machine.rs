//! What the machine and the process have and use; nothing where the system does not say.

use std::fs;

/// A process's figures, bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) resident: u64,
    pub(crate) virtual_: u64,
    pub(crate) open_files: u64,
    pub(crate) threads: u64,
}

/// The machine's memory, bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Memory {
    pub(crate) total: u64,
    pub(crate) available: u64,
}

impl Process {
    pub(crate) fn now() -> Process {
        let text = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let (resident, virtual_) = (kib(&text, "VmRSS:"), kib(&text, "VmSize:"));
        let open_files = fs::read_dir("/proc/self/fd").map_or(0, |all| all.count() as u64);
        Process { resident, virtual_, open_files, threads: number(&text, "Threads:") }
    }
}

impl Memory {
    pub(crate) fn now() -> Memory {
        let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
        Memory { total: kib(&text, "MemTotal:"), available: kib(&text, "MemAvailable:") }
    }

    /// Which part of it so many bytes are, percent; 0 if it is not known.
    pub(crate) fn percent(self, part: u64) -> u64 {
        (part * 100).checked_div(self.total).unwrap_or(0)
    }
}

/// The load of the last minute, five, and fifteen.
pub(crate) fn load() -> Option<[f64; 3]> {
    let text = fs::read_to_string("/proc/loadavg").ok()?;
    let mut parts = text.split(' ').map_while(|part| part.parse().ok());
    Some([parts.next()?, parts.next()?, parts.next()?])
}

/// The system's version.
pub(crate) fn kernel() -> String {
    let text = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    text.trim().to_owned()
}

fn number(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

fn kib(text: &str, name: &str) -> u64 {
    number(text, name) * 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_read_by_name() {
        let text = "Name:\tx\nVmSize:\t    2048 kB\nVmRSS:\t     100 kB\nThreads:\t7\n";
        assert_eq!((kib(text, "VmRSS:"), kib(text, "VmSize:")), (102_400, 2_097_152));
        assert_eq!((number(text, "Threads:"), number(text, "VmPeak:")), (7, 0));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_process_has_memory_files_and_a_thread() {
        let Process { resident, virtual_, open_files, threads } = Process::now();
        assert!(resident > 0 && virtual_ >= resident && open_files > 0 && threads > 0);
        let Memory { total, available } = Memory::now();
        assert!(total >= available && available > 0);
    }
}
