//! What a submitter holds until its task is answered, and what the worker answers through. A ticket is answered exactly
//! once: a [`Promise`] that is dropped without an answer answers for itself.

use crate::sync::{AtomicBool, Mutex, MutexGuard, Ordering, Thread, current, park};
use crate::task::Trip;
use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll, Waker};

/// What a task gave, and how it got there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer<T> {
    /// What it gave.
    pub value: T,
    /// How it got there.
    pub trip: Trip,
}

/// Why a task has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// Its ticket was told to cancel.
    #[error("cancelled")]
    Cancelled,
    /// Its time was over before it ran, or while it ran and asked.
    #[error("deadline exceeded; allow more time, or send less work")]
    DeadlineExceeded,
    /// It panicked, with this message.
    #[error("a task panicked: {0}")]
    Panicked(String),
}

/// How a task ended.
pub type Outcome<T> = Result<Answer<T>, Failure>;

/// Stands for a task that was taken in. [`Ticket::wait`] for its answer, or await it (in any runtime: the worker wakes
/// the future). A ticket that is dropped does not cancel its task.
#[derive(Debug)]
#[must_use = "the answer comes through the ticket"]
pub struct Ticket<T>(Arc<Core<T>>);

/// Cancels the task of the ticket that it was taken from.
#[derive(Clone, Debug)]
pub struct Canceller(Arc<AtomicBool>);

#[derive(Debug)]
struct Core<T> {
    cancelled: Arc<AtomicBool>,
    state: Mutex<State<T>>,
}

#[derive(Debug)]
enum State<T> {
    Pending(Option<Waiter>),
    Answered(Outcome<T>),
    Taken,
}

#[derive(Debug)]
enum Waiter {
    Thread(Thread),
    Future(Waker),
}

impl<T> Core<T> {
    /// Nothing panics while it is held.
    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The answer; if there is none yet, `waiter` will be woken.
    fn take_or(&self, waiter: impl FnOnce() -> Waiter) -> Option<Outcome<T>> {
        let mut state = self.state();
        match mem::replace(&mut *state, State::Taken) {
            State::Answered(outcome) => Some(outcome),
            State::Pending(_) => {
                *state = State::Pending(Some(waiter()));
                None
            }
            State::Taken => {
                panic!("the answer was taken already: a future must not be polled after it is ready")
            }
        }
    }
}

impl<T> Ticket<T> {
    /// Blocks until the task is answered. Not to be called by a task: where all workers wait for tasks behind them,
    /// nothing goes on.
    ///
    /// # Errors
    /// If the task was cancelled, late, or panicked.
    pub fn wait(self) -> Outcome<T> {
        loop {
            if let Some(outcome) = self.0.take_or(|| Waiter::Thread(current())) {
                return outcome;
            }
            park();
        }
    }

    /// Asks that the task be given up: not run if it has not begun, and stopped where it asks
    /// ([`Context::stopped`](crate::Context::stopped)). Its answer is [`Failure::Cancelled`] then, unless it was done.
    pub fn cancel(&self) {
        cancel(&self.0.cancelled);
    }

    /// Cancels when the ticket is elsewhere, for instance awaited.
    pub fn canceller(&self) -> Canceller {
        Canceller(self.0.cancelled.clone())
    }
}

impl Canceller {
    /// As [`Ticket::cancel`].
    pub fn cancel(&self) {
        cancel(&self.0);
    }
}

fn cancel(flag: &AtomicBool) {
    // Relaxed: the flag says all there is to say.
    flag.store(true, Ordering::Relaxed);
}

impl<T> Future for Ticket<T> {
    type Output = Outcome<T>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Outcome<T>> {
        match self.0.take_or(|| Waiter::Future(cx.waker().clone())) {
            Some(outcome) => Poll::Ready(outcome),
            None => Poll::Pending,
        }
    }
}

/// The worker's end.
#[derive(Debug)]
pub(crate) struct Promise<T>(Arc<Core<T>>);

/// The two ends.
pub(crate) fn ticket<T>() -> (Promise<T>, Ticket<T>) {
    let core = Arc::new(Core { cancelled: Arc::default(), state: Mutex::new(State::Pending(None)) });
    (Promise(core.clone()), Ticket(core))
}

impl<T> Promise<T> {
    /// Set once somebody cancelled.
    pub(crate) fn cancelled(&self) -> &Arc<AtomicBool> {
        &self.0.cancelled
    }

    pub(crate) fn answer(self, outcome: Outcome<T>) {
        self.settle(outcome);
    }

    fn settle(&self, outcome: Outcome<T>) {
        let mut state = self.0.state();
        let State::Pending(waiter) = &mut *state else { return };
        let waiter = waiter.take();
        *state = State::Answered(outcome);
        // Woken without the lock, which they take first of all.
        drop(state);
        match waiter {
            Some(Waiter::Thread(thread)) => thread.unpark(),
            Some(Waiter::Future(waker)) => waker.wake(),
            None => {}
        }
    }
}

impl<T> Drop for Promise<T> {
    fn drop(&mut self) {
        self.settle(Err(Failure::Cancelled));
    }
}
