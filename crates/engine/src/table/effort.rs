//! How much of the machine making segments may take, and whether to go on.

use super::segment::SegmentError;
use crate::Threads;
use std::ops::ControlFlow;

/// What work on a table's segments may take.
#[derive(Clone, Copy)]
pub struct Effort<'a> {
    /// Who works.
    pub threads: Threads,
    /// Asked at times whether to go on; what was begun is then undone.
    pub proceed: &'a (dyn Fn() -> ControlFlow<()> + Sync),
}

impl Effort<'_> {
    /// Until it is done.
    pub fn of(threads: Threads) -> Effort<'static> {
        Effort { threads, proceed: &|| ControlFlow::Continue(()) }
    }

    /// Ends the work if it is not wanted any more.
    pub(super) fn check(&self) -> Result<(), SegmentError> {
        if (self.proceed)().is_break() { Err(SegmentError::Stopped) } else { Ok(()) }
    }
}
