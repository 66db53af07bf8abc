//! Ending a search early. This crate reads no clock: a search asks its caller at each step, and the caller knows about
//! deadlines and cancellations.

use crate::error::SearchError;
use std::fmt;

/// A question that a search asks between its steps: whether to give up.
///
/// Steps are expansions of the base layer of a graph, lists, and blocks of 128 vectors or codes against up to 32 queries:
/// some microseconds each. A search that is told to give up ends with [`SearchError::Stopped`]; its
/// [`Scratch`](crate::Scratch) serves the next one.
#[derive(Clone, Copy)]
pub struct Stop<'a>(&'a (dyn Fn() -> bool + Sync));

impl<'a> Stop<'a> {
    /// The search gives up as soon as `asked` says so. It is asked often: let it look at a flag, or a clock now and then.
    pub fn new(asked: &'a (dyn Fn() -> bool + Sync)) -> Self {
        Stop(asked)
    }

    #[inline]
    pub(crate) fn says_so(self) -> bool {
        (self.0)()
    }
}

impl fmt::Debug for Stop<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Stop")
    }
}

/// The caller said so.
#[derive(Debug)]
pub(crate) struct Stopped;

impl From<Stopped> for SearchError {
    fn from(_: Stopped) -> Self {
        SearchError::Stopped
    }
}

/// Asks, if there is somebody to be asked.
#[inline]
pub(crate) fn ask(stop: Option<Stop<'_>>) -> Result<(), Stopped> {
    if stop.is_some_and(Stop::says_so) { Err(Stopped) } else { Ok(()) }
}
