//! A machine in one word, `12x8x32M`: read to make a machine up, written of any machine.
//!
//! ```text
//! shape    = [ packages "p:" ] chiplets { "+" chiplets } [ "@" threads ]
//! chiplets = number "x" cores [ "x" size ]          of one kind; what is written holds for each package
//! size     = number ( "K" | "M" | "G" )             last-level cache of each chiplet, binary units; left out: not known
//! ```
//!
//! `12x8x32M`: 12 chiplets of 8 cores and 32 MiB; `2p:12x8x32M@2`: two such packages, each core with two hardware
//! threads; `1x8x96M+1x8x32M`: caches of two sizes; `1x64`: no cache known.
//!
//! A made-up machine has the shape it was made of, and nothing else: a package is a NUMA node, nothing is limited, and
//! CPUs are numbered as Linux does on most servers, first the first threads of all cores, then their second ones.
//! The shape of a real machine says less than the machine: nodes within a package, private caches and CPU numbers are
//! not in it; the package count only where all packages are alike; each core counts as having the threads of the one
//! that has most.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use crate::chiplet::cache_bytes;
use crate::cpu_list::excerpt;
use crate::{Cache, Chiplet, ChipletId, Core, Limits, MAX_CPUS, Machine, Memory};

/// Why a text is no shape of a machine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FakeError {
    /// A part between `+` does not have two or three parts with `x` between them.
    #[error(
        "machine shape: `{0}` is not CHIPLETSxCORESxCACHE; write `12x8x32M`, `2p:12x8x32M@2` (two packages, two \
         threads a core) or `1x8x96M+1x8x32M` (unequal caches)"
    )]
    Chiplets(String),
    /// A count is no number, zero or huge.
    #[error("machine shape: `{found}` is no number of {what}; write a whole number from 1 to {MAX_CPUS}")]
    Count {
        /// What is counted.
        what: &'static str,
        /// The text in its place.
        found: String,
    },
    /// A cache size has no unit, or is not a size.
    #[error(
        "machine shape: `{0}` is no cache size; write a whole number and K, M or G (binary), as in `32M`"
    )]
    CacheSize(String),
    /// All parts together make too many CPUs.
    #[error("machine shape: {0} CPUs are too many; packages x chiplets x cores x threads may be {MAX_CPUS}")]
    TooManyCpus(usize),
}

/// What the word says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    packages: usize,
    /// The chiplets of each package. Neighbours differ.
    chiplets: Vec<Kind>,
    threads: usize,
}

/// Chiplets in a row that are alike.
#[derive(Debug, PartialEq, Eq)]
struct Kind {
    count: usize,
    cores: usize,
    cache_bytes: Option<u64>,
}

impl Shape {
    pub(crate) fn of(machine: &Machine) -> Self {
        let mut packages: BTreeMap<u32, Vec<Kind>> = BTreeMap::new();
        for chiplet in &machine.chiplets {
            // Kernels know no caches of parts of a KiB.
            let kib = chiplet.shared_cache().and_then(|cache| cache.bytes).map(|bytes| bytes / 1024);
            let cache_bytes = kib.filter(|&kib| kib > 0).map(|kib| kib * 1024);
            let kind = Kind { count: 1, cores: chiplet.cores.len(), cache_bytes };
            push(packages.entry(chiplet.package).or_default(), kind);
        }
        let cores = machine.chiplets.iter().flat_map(|chiplet| &chiplet.cores);
        let threads = cores.map(|core| core.cpus.len()).max().unwrap_or(1);
        let len = packages.len();
        let mut packages = packages.into_values();
        let mut chiplets = packages.next().unwrap_or_default();
        let rest: Vec<_> = packages.collect();
        if rest.iter().all(|package| *package == chiplets) {
            return Self { packages: len, chiplets, threads };
        }
        rest.into_iter().flatten().for_each(|kind| push(&mut chiplets, kind));
        Self { packages: 1, chiplets, threads }
    }

    pub(crate) fn machine(&self) -> Machine {
        let cores_len = self.cpus_len() / self.threads;
        let mut chiplets = Vec::new();
        let mut first = 0;
        for package in 0..self.packages {
            for kind in self.chiplets.iter().flat_map(|kind| std::iter::repeat_n(kind, kind.count)) {
                let cpus = |core| (0..self.threads).map(|thread| core + thread * cores_len).collect();
                let cores = (first..first + kind.cores).map(|core| Core { cpus: cpus(core) }).collect();
                first += kind.cores;
                let cpus_len = Some(kind.cores * self.threads);
                chiplets.push(Chiplet {
                    id: ChipletId(chiplets.len() as u32),
                    package: package as u32,
                    node: package as u32,
                    cores,
                    caches: kind
                        .cache_bytes
                        .map(|bytes| Cache { level: 3, bytes: Some(bytes), cpus_len })
                        .into_iter()
                        .collect(),
                });
            }
        }
        Machine {
            cpu_model: Some(format!("fake {self}")),
            online: (0..self.cpus_len()).collect(),
            chiplets,
            limits: Limits::default(),
            memory: Memory::default(),
        }
    }

    /// All CPUs; the most that a `usize` holds if there are more.
    fn cpus_len(&self) -> usize {
        let cores = self.chiplets.iter().map(|kind| kind.count.saturating_mul(kind.cores));
        let cores = cores.fold(0, usize::saturating_add);
        cores.saturating_mul(self.packages).saturating_mul(self.threads)
    }
}

/// Adds chiplets at the end, to the last kind if they are of it.
fn push(chiplets: &mut Vec<Kind>, kind: Kind) {
    match chiplets.last_mut() {
        Some(last) if (last.cores, last.cache_bytes) == (kind.cores, kind.cache_bytes) => {
            last.count = last.count.saturating_add(kind.count);
        }
        _ => chiplets.push(kind),
    }
}

impl FromStr for Shape {
    type Err = FakeError;

    fn from_str(text: &str) -> Result<Self, FakeError> {
        let text = text.trim();
        let (packages, text) = match text.split_once("p:") {
            Some((packages, text)) => (count("packages", packages)?, text),
            None => (1, text),
        };
        let (text, threads) = match text.split_once('@') {
            Some((text, threads)) => (text, count("threads of a core", threads)?),
            None => (text, 1),
        };
        let mut chiplets = Vec::new();
        for part in text.split('+') {
            push(&mut chiplets, kind(part)?);
        }
        let shape = Self { packages, chiplets, threads };
        match shape.cpus_len() {
            0..=MAX_CPUS => Ok(shape),
            cpus => Err(FakeError::TooManyCpus(cpus)),
        }
    }
}

fn kind(text: &str) -> Result<Kind, FakeError> {
    let parts: Vec<&str> = text.split('x').collect();
    let (chiplets, cores, cache) = match parts[..] {
        [chiplets, cores] => (chiplets, cores, None),
        [chiplets, cores, cache] => (chiplets, cores, Some(cache)),
        _ => return Err(FakeError::Chiplets(excerpt(text))),
    };
    Ok(Kind {
        count: count("chiplets", chiplets)?,
        cores: count("cores of a chiplet", cores)?,
        cache_bytes: cache.map(size).transpose()?,
    })
}

fn count(what: &'static str, text: &str) -> Result<usize, FakeError> {
    number(text)
        .and_then(|digits| digits.parse().ok())
        .filter(|count| (1..=MAX_CPUS).contains(count))
        .ok_or_else(|| FakeError::Count { what, found: excerpt(text) })
}

fn size(text: &str) -> Result<u64, FakeError> {
    // Bare digits are bytes to the kernel; `12x8x32` is more likely a forgotten M.
    text.strip_suffix(['K', 'M', 'G'])
        .and_then(number)
        .and_then(|_| cache_bytes(text))
        .ok_or_else(|| FakeError::CacheSize(excerpt(text)))
}

/// `text` if it is digits; `parse` alone would let `+8` pass.
fn number(text: &str) -> Option<&str> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then_some(text)
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.packages > 1 {
            write!(f, "{}p:", self.packages)?;
        }
        for (i, kind) in self.chiplets.iter().enumerate() {
            let plus = if i == 0 { "" } else { "+" };
            write!(f, "{plus}{}x{}", kind.count, kind.cores)?;
            if let Some(bytes) = kind.cache_bytes {
                let units = [(30, 'G'), (20, 'M')];
                let fits = |&&(shift, _): &&(u32, char)| bytes.trailing_zeros() >= shift;
                let &(shift, unit) = units.iter().find(fits).unwrap_or(&(10, 'K'));
                write!(f, "x{}{unit}", bytes >> shift)?;
            }
        }
        if self.threads > 1 {
            write!(f, "@{}", self.threads)?;
        }
        Ok(())
    }
}
