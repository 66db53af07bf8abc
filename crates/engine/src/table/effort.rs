//! How much of the machine making segments may take, and whether to go on.

use super::segment::SegmentError;
use crate::Threads;
use std::ops::ControlFlow;

/// What work on a table's segments may take.
#[derive(Clone, Copy)]
pub struct Effort<'a> {
    /// Who works, yielding to searches.
    pub(super) threads: Threads,
    pub(super) proceed: &'a (dyn Fn() -> ControlFlow<()> + Sync),
}

impl<'a> Effort<'a> {
    /// Until it is done.
    pub fn of(threads: Threads) -> Effort<'static> {
        Effort::new(threads, &|| ControlFlow::Continue(()))
    }

    /// As long as `proceed`, which is asked at times, says to go on; what was begun is then undone.
    pub fn new(threads: Threads, proceed: &'a (dyn Fn() -> ControlFlow<()> + Sync)) -> Effort<'a> {
        Effort { threads: threads.yielding(), proceed }
    }

    /// Ends the work if it is not wanted any more.
    pub(super) fn check(&self) -> Result<(), SegmentError> {
        if (self.proceed)().is_break() { Err(SegmentError::Stopped) } else { Ok(()) }
    }
}
