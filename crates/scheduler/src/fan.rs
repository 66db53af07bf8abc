//! Several tasks, one answer: each has its partial result for itself; whoever finishes last merges them (document 004,
//! section V-B: the lists of one IVF query).
//!
//! The last is the one that gets the shared state out of its `Arc`. The first failure answers at once and tells the others
//! to stop.

use crate::sync::{AtomicBool, Mutex, Ordering};
use crate::task::{Body, Context, Place, Trip, attempt, call};
use crate::ticket::{Answer, Failure, Promise};
use std::sync::{Arc, PoisonError};

pub(crate) struct Fan<P, T, E, M> {
    each: E,
    partials: Vec<Mutex<Option<Answer<P>>>>,
    stop: Arc<AtomicBool>,
    /// Taken by whoever answers.
    end: Mutex<Option<(Promise<T>, M)>>,
}

impl<P, T, E, M> Fan<P, T, E, M> {
    pub(crate) fn new(tasks: usize, each: E, merge: M, promise: Promise<T>) -> Self {
        Fan {
            each,
            partials: (0..tasks).map(|_| Mutex::new(None)).collect(),
            stop: promise.cancelled().clone(),
            end: Mutex::new(Some((promise, merge))),
        }
    }

    fn fail(&self, why: Failure) {
        // Taken before the others are told to stop: they would answer that they were cancelled.
        let end = self.end.lock().unwrap_or_else(PoisonError::into_inner).take();
        // Relaxed: the flag says all there is to say.
        self.stop.store(true, Ordering::Relaxed);
        if let Some((promise, _)) = end {
            promise.answer(Err(why));
        }
    }

    /// All tasks are done.
    fn finish<S: Default>(self, last: &Place<'_>, scratch: &mut Option<S>)
    where
        M: FnOnce(Vec<P>, &mut S, &Context<'_>) -> (T, u64),
    {
        let Some((promise, merge)) = self.end.into_inner().unwrap_or_else(PoisonError::into_inner) else {
            return;
        };
        let partials =
            self.partials.into_iter().map(|p| p.into_inner().unwrap_or_else(PoisonError::into_inner));
        // None is missing, since a failure would have taken `end`.
        let Some(partials) = partials.collect::<Option<Vec<_>>>() else { return };
        let farthest = partials.iter().map(|partial| partial.trip.stolen).max();
        let mut trip = Trip {
            worker: last.worker,
            chiplet: last.chiplet,
            waited_ns: partials.iter().map(|partial| partial.trip.waited_ns).max().unwrap_or(0),
            ran_ns: partials.iter().map(|partial| partial.trip.ran_ns).sum(),
            bytes: partials.iter().map(|partial| partial.trip.bytes).sum(),
            stolen: farthest.unwrap_or(last.stolen),
        };
        let values = partials.into_iter().map(|partial| partial.value).collect();
        let merged =
            call(last, promise.cancelled(), scratch, |scratch, context| merge(values, scratch, context));
        trip.ran_ns += last.clock.now_ns() - last.end_ns.load(Ordering::Relaxed);
        last.end_ns.store(last.clock.now_ns(), Ordering::Relaxed);
        if matches!(merged, Err(Failure::Panicked(_))) {
            last.counters.panicked_elsewhere();
        }
        promise.answer(merged.map(|(value, bytes)| {
            trip.bytes += bytes;
            Answer { value, trip }
        }));
    }
}

/// One of its tasks.
pub(crate) struct Part<P, T, E, M> {
    pub(crate) fan: Arc<Fan<P, T, E, M>>,
    pub(crate) index: usize,
}

impl<S: Default, P: Send, T: Send, E, M> Body<S> for Part<P, T, E, M>
where
    E: Fn(usize, &mut S, &Context<'_>) -> (P, u64) + Send + Sync,
    M: FnOnce(Vec<P>, &mut S, &Context<'_>) -> (T, u64) + Send,
{
    fn run(self: Box<Self>, place: &Place<'_>, scratch: &mut Option<S>) {
        let Part { fan, index } = *self;
        let each = |scratch: &mut S, context: &Context<'_>| (fan.each)(index, scratch, context);
        match attempt(place, &fan.stop, scratch, each) {
            Ok(partial) => {
                *fan.partials[index].lock().unwrap_or_else(PoisonError::into_inner) = Some(partial)
            }
            Err(why) => fan.fail(why),
        }
        if let Some(fan) = Arc::into_inner(fan) {
            fan.finish(place, scratch);
        }
    }
}

#[cfg(all(test, loom))]
mod loom_models {
    use super::Fan;
    use crate::sync::Ordering;
    use crate::ticket::{Failure, ticket};
    use loom::sync::Arc;
    use loom::thread;

    /// Found by the soak, on a machine where others had precedence: who was told to stop answered before who told it.
    #[test]
    fn who_fails_first_answers() {
        loom::model(|| {
            let (promise, ticket) = ticket::<()>();
            let stop = promise.cancelled().clone();
            let fan: Arc<Fan<(), (), (), ()>> = Arc::new(Fan::new(2, (), (), promise));
            let other = {
                let (fan, stop) = (fan.clone(), stop.clone());
                thread::spawn(move || {
                    if stop.load(Ordering::Relaxed) {
                        fan.fail(Failure::Cancelled);
                    }
                })
            };
            fan.fail(Failure::DeadlineExceeded);
            other.join().unwrap();
            assert_eq!(ticket.wait().unwrap_err(), Failure::DeadlineExceeded);
        });
    }
}
