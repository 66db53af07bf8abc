//! How much memory tables may take, as `circuit_breaker.limit` says it: bytes, or a share of what the process may have.

use lanewise_topology::Machine;
use std::fmt;
use std::str::FromStr;
use std::sync::OnceLock;

/// A limit to memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MemoryLimit {
    /// So many bytes.
    Bytes(u64),
    /// A share of what the container allows, or the machine has, in percent.
    Percent(f64),
    /// None.
    Unlimited,
}

impl Default for MemoryLimit {
    /// 70 %: what is left is for files' pages, which searches read, and for what nobody counts.
    fn default() -> Self {
        MemoryLimit::Percent(70.0)
    }
}

/// Bytes of memory that this process may have: the container's limit (cgroup v1 or v2), or what the machine has if that is
/// less; `None` if neither is known. Found once.
pub fn allowed_bytes() -> Option<u64> {
    static ALLOWED: OnceLock<Option<u64>> = OnceLock::new();
    *ALLOWED.get_or_init(|| {
        let machine = Machine::detect();
        [machine.limits.memory_bytes, machine.memory.total_bytes].into_iter().flatten().min()
    })
}

impl MemoryLimit {
    /// In bytes; `u64::MAX` if there is none, or what it is a share of is not known.
    pub fn bytes(self) -> u64 {
        self.of(allowed_bytes())
    }

    fn of(self, allowed: Option<u64>) -> u64 {
        match (self, allowed) {
            (MemoryLimit::Bytes(bytes), _) => bytes,
            (MemoryLimit::Percent(percent), Some(allowed)) => (allowed as f64 * percent / 100.0) as u64,
            (MemoryLimit::Percent(_), None) | (MemoryLimit::Unlimited, _) => u64::MAX,
        }
    }
}

/// What is wrong with a limit that was given as text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "circuit_breaker.limit={given:?}: give a number of bytes such as \"512mb\" (b, kb, mb, gb, tb, pb), a share such as \"70%\", or \"none\""
)]
pub struct MemoryLimitError {
    given: String,
}

/// OpenSearch's units, each 1024 times the one before.
const UNITS: [&str; 6] = ["b", "kb", "mb", "gb", "tb", "pb"];

impl FromStr for MemoryLimit {
    type Err = MemoryLimitError;

    fn from_str(given: &str) -> Result<Self, MemoryLimitError> {
        let error = || MemoryLimitError { given: given.to_owned() };
        let text = given.trim().to_ascii_lowercase();
        if text == "none" || text == "-1" {
            return Ok(MemoryLimit::Unlimited);
        }
        let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(error)?;
        let (number, unit) = text.split_at(split);
        let number: f64 = number.parse().map_err(|_| error())?;
        let unit = unit.trim();
        if unit == "%" {
            let share = MemoryLimit::Percent(number);
            return if number > 0.0 && number <= 100.0 { Ok(share) } else { Err(error()) };
        }
        let power = UNITS.iter().position(|name| *name == unit).ok_or_else(error)?;
        let bytes = number * 1024f64.powi(power as i32);
        if bytes < 1.0 || bytes >= u64::MAX as f64 {
            Err(error())
        } else {
            Ok(MemoryLimit::Bytes(bytes as u64))
        }
    }
}

impl fmt::Display for MemoryLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MemoryLimit::Bytes(bytes) => write!(f, "{bytes}b"),
            MemoryLimit::Percent(percent) => write!(f, "{percent}%"),
            MemoryLimit::Unlimited => f.write_str("none"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn limits_are_read_as_opensearch_reads_them() {
        let read = |text: &str| text.parse::<MemoryLimit>();
        assert_eq!(read("512mb"), Ok(MemoryLimit::Bytes(512 << 20)));
        assert_eq!(read(" 1.5 GB "), Ok(MemoryLimit::Bytes(3 << 29)));
        assert_eq!(read("100b"), Ok(MemoryLimit::Bytes(100)));
        assert_eq!(read("70%"), Ok(MemoryLimit::Percent(70.0)));
        assert_eq!(read("none"), Ok(MemoryLimit::Unlimited));
        for bad in
            ["", "10", "mb", "0b", "0%", "101%", "-5mb", "1..2kb", "5 xb", "nan%", "99999999pb", "1e3b"]
        {
            let error = read(bad).unwrap_err().to_string();
            assert!(error.contains("circuit_breaker.limit") && error.contains("512mb"), "{bad}: {error}");
        }
        assert_eq!(MemoryLimit::Percent(50.0).of(Some(1000)), 500);
        assert_eq!(MemoryLimit::Percent(50.0).of(None), u64::MAX);
        assert_eq!(MemoryLimit::Bytes(7).of(Some(5)), 7);
        assert!(allowed_bytes().is_none_or(|bytes| bytes > 1 << 20));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(bytes in 1u64..1 << 50, percent in 0.001f64..100.0, any in ".{0,8}") {
            for limit in [MemoryLimit::Bytes(bytes), MemoryLimit::Percent(percent), MemoryLimit::Unlimited] {
                prop_assert_eq!(limit.to_string().parse(), Ok(limit));
            }
            let _ = any.parse::<MemoryLimit>();
        }
    }
}
