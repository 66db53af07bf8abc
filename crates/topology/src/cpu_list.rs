//! A set of CPU ids in the kernel's list format, as in `0-3,8,10-11`.
//!
//! Kept as ranges, so its size follows the length of the text and not the numbers in it: a hostile
//! `0-4294967295` costs nothing. Format: Linux, `Documentation/admin-guide/cputopology.rst`.

use std::fmt;
use std::str::FromStr;

/// CPU ids are below this. Linux is built for 8,192 at most; the rest is room, yet little enough to count
/// through.
pub const MAX_CPUS: usize = 1 << 20;

/// A set of CPU ids.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuList {
    /// First and last of each range: ascending, with a gap of at least one between ranges.
    ranges: Vec<(usize, usize)>,
}

/// Why a text is not a list of CPUs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CpuListError {
    /// A part between commas is neither a number nor two numbers with a `-` between them.
    #[error("CPU list: `{0}` is neither a CPU (`8`) nor a range of CPUs (`0-3`)")]
    Syntax(String),
    /// A range ends before it starts.
    #[error("CPU list: range `{0}-{1}` runs backwards; write `{1}-{0}`")]
    Backwards(usize, usize),
    /// A number is [`MAX_CPUS`] or more.
    #[error("CPU list: `{0}` is too large; CPU ids are below {MAX_CPUS}")]
    TooLarge(String),
}

impl CpuList {
    /// Whether `cpu` is in the set.
    pub fn contains(&self, cpu: usize) -> bool {
        let after = self.ranges.partition_point(|&(first, _)| first <= cpu);
        after > 0 && cpu <= self.ranges[after - 1].1
    }

    /// Number of CPUs in the set.
    pub fn len(&self) -> usize {
        self.ranges.iter().map(|&(first, last)| last - first + 1).sum()
    }

    /// Whether the set holds no CPU.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The CPUs, ascending.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.ranges.iter().flat_map(|&(first, last)| first..=last)
    }

    /// Sorts the ranges and joins those that overlap or touch. Ends are below [`MAX_CPUS`].
    fn from_ranges(mut ranges: Vec<(usize, usize)>) -> Self {
        ranges.sort_unstable();
        ranges.dedup_by(|next, kept| {
            let joins = next.0 <= kept.1 + 1;
            if joins {
                kept.1 = kept.1.max(next.1);
            }
            joins
        });
        Self { ranges }
    }
}

impl FromStr for CpuList {
    type Err = CpuListError;

    /// Reads a list; white space around it is dropped, an empty text is the empty set, and order and
    /// repetition do not matter.
    fn from_str(text: &str) -> Result<Self, CpuListError> {
        let text = text.trim();
        if text.is_empty() {
            return Ok(Self::default());
        }
        let range = |part: &str| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last) = (cpu_id(first, part)?, cpu_id(last, part)?);
            if first > last { Err(CpuListError::Backwards(first, last)) } else { Ok((first, last)) }
        };
        Ok(Self::from_ranges(text.split(',').map(range).collect::<Result<_, _>>()?))
    }
}

/// One number of the list part `part`.
fn cpu_id(digits: &str, part: &str) -> Result<usize, CpuListError> {
    // `parse` alone would let `+8` pass.
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(CpuListError::Syntax(excerpt(part)));
    }
    match digits.parse::<usize>() {
        Ok(cpu) if cpu < MAX_CPUS => Ok(cpu),
        // All are digits, so the only way to fail is to be too large.
        _ => Err(CpuListError::TooLarge(excerpt(digits))),
    }
}

/// Enough of a wrong part to find it by, without control characters, for an error message.
pub(crate) fn excerpt(part: &str) -> String {
    part.chars().filter(|c| !c.is_control()).take(32).collect()
}

impl FromIterator<usize> for CpuList {
    /// Collects CPU ids, in any order.
    ///
    /// # Panics
    /// When an id is [`MAX_CPUS`] or more.
    fn from_iter<I: IntoIterator<Item = usize>>(cpus: I) -> Self {
        let range = |cpu| {
            assert!(cpu < MAX_CPUS, "CPU {cpu}: ids are below {MAX_CPUS}");
            (cpu, cpu)
        };
        Self::from_ranges(cpus.into_iter().map(range).collect())
    }
}

impl fmt::Display for CpuList {
    /// The kernel's format; nothing for the empty set.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, &(first, last)) in self.ranges.iter().enumerate() {
            let comma = if i == 0 { "" } else { "," };
            if first == last {
                write!(f, "{comma}{first}")?;
            } else {
                write!(f, "{comma}{first}-{last}")?;
            }
        }
        Ok(())
    }
}
