//! Memory sizes, page sizes and the transparent-huge-page mode.

use crate::files::Files;

/// What is known of the machine's memory. `None` means not known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Memory of the machine (`MemTotal`).
    pub total_bytes: Option<u64>,
    /// Memory that can be had without swapping (`MemAvailable`).
    pub available_bytes: Option<u64>,
    /// Size of a base page.
    pub page_bytes: Option<u64>,
    /// Size of a transparent huge page.
    pub huge_page_bytes: Option<u64>,
    /// When the kernel backs anonymous memory with huge pages.
    pub huge_pages: Option<HugePages>,
}

/// Mode of transparent huge pages, `/sys/kernel/mm/transparent_hugepage/enabled`
/// (Linux, `Documentation/admin-guide/mm/transhuge.rst`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HugePages {
    /// For every mapping that is large enough.
    Always,
    /// For mappings that ask with `madvise(MADV_HUGEPAGE)`.
    Madvise,
    /// For none.
    Never,
}

impl HugePages {
    /// The kernel's word for the mode.
    pub fn name(self) -> &'static str {
        match self {
            Self::Always => "always",
            Self::Madvise => "madvise",
            Self::Never => "never",
        }
    }
}

/// Reads everything but the page size, which no file tells.
pub(crate) fn read(files: &Files) -> Memory {
    let meminfo = files.text("proc/meminfo").unwrap_or_default();
    let enabled = files.text("sys/kernel/mm/transparent_hugepage/enabled").unwrap_or_default();
    Memory {
        total_bytes: meminfo_bytes(&meminfo, "MemTotal"),
        available_bytes: meminfo_bytes(&meminfo, "MemAvailable"),
        page_bytes: None,
        huge_page_bytes: files.parse("sys/kernel/mm/transparent_hugepage/hpage_pmd_size"),
        huge_pages: enabled.split_whitespace().find_map(|word| match word {
            "[always]" => Some(HugePages::Always),
            "[madvise]" => Some(HugePages::Madvise),
            "[never]" => Some(HugePages::Never),
            _ => None,
        }),
    }
}

/// The value of a line such as `MemTotal:  24684112 kB`, in bytes.
fn meminfo_bytes(meminfo: &str, key: &str) -> Option<u64> {
    let mut pairs = meminfo.lines().filter_map(|line| line.split_once(':'));
    let (_, value) = pairs.find(|(k, _)| *k == key)?;
    value.trim().strip_suffix("kB")?.trim_end().parse::<u64>().ok()?.checked_mul(1024)
}

/// The system's base page size.
pub(crate) fn page_bytes() -> Option<u64> {
    #[cfg(unix)]
    {
        // SAFETY: takes and gives plain numbers.
        let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        u64::try_from(bytes).ok().filter(|&bytes| bytes > 0)
    }
    #[cfg(not(unix))]
    None
}
