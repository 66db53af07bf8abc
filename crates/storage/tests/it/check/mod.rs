//! What must hold, as functions that say what does not: used here, and by `tests/faults`, which plants faults and asks
//! that one of them finds each.

pub(crate) mod blobs;
pub(crate) mod flips;
pub(crate) mod history;
pub(crate) mod logs;
pub(crate) mod manifests;

/// What a check counted, or what it found broken.
pub(crate) type Checked = Result<usize, String>;

/// Turns what is not as it should be into the check's answer.
#[macro_export]
macro_rules! require {
    ($condition:expr, $($why:tt)+) => {
        if !$condition {
            return Err(format!($($why)+));
        }
    };
}
