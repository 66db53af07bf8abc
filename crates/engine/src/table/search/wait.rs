//! Waiting for the pool while somebody outside may say that it is enough.

use super::SearchTableError;
use std::future::Future;
use std::ops::ControlFlow;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

/// Between two questions: nobody notices so much, and a thread that wakes so seldom takes nothing.
const PERIOD: Duration = Duration::from_millis(20);

/// Wakes the thread that waits.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// What `future` gives, unless `proceed` ends the wait, which is asked at once and then at times.
pub(super) fn wait<F: Future + Unpin>(
    mut future: F,
    proceed: &dyn Fn() -> ControlFlow<()>,
) -> Result<F::Output, SearchTableError> {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        if let Poll::Ready(output) = Pin::new(&mut future).poll(&mut context) {
            return Ok(output);
        }
        if proceed().is_break() {
            return Err(SearchTableError::Stopped);
        }
        thread::park_timeout(PERIOD);
    }
}
