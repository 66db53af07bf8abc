//! Tasks that borrow. A scope returns only when each of its tasks is gone: run, answered, and all that it held dropped; so
//! what they borrow outlives them. Signatures and reasoning as `std::thread::scope`.

use crate::policy::{Full, MappingId};
use crate::scheduler::Scheduler;
use crate::sync::{AtomicUsize, Ordering, Thread, current, park};
use crate::task::{Body, Context, Place, Single};
use crate::ticket::{Ticket, ticket};
use std::marker::PhantomData;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::time::Duration;

/// Takes tasks that may borrow what lives longer than `'scope`; see [`Scheduler::scope`]. What ends before is refused:
///
/// ```compile_fail,E0597
/// # use lanewise_scheduler::{MappingId, Scheduler};
/// fn late(scheduler: &Scheduler<()>) {
///     scheduler.scope(|scope| {
///         let here = 5;
///         let _ = scope.submit(MappingId(0), None, |_, _| (&here, 0));
///     });
/// }
/// ```
pub struct Scope<'scope, 'env: 'scope, S: Default + Send + 'static> {
    scheduler: &'env Scheduler<S>,
    pending: Arc<Pending>,
    /// Invariant in both, so that `'scope` can be neither shrunk nor extended.
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
    /// Not `Sync`: a worker that waited here for room would wait for itself.
    owned: PhantomData<*const ()>,
}

/// Tasks that are not gone, and who waits for them. Shared by reference count: a worker still holds it for a moment after
/// it has counted down, when the scope may be over.
struct Pending {
    tasks: AtomicUsize,
    owner: Thread,
}

/// Counts a task down when it is dropped.
struct Gone(Arc<Pending>);

impl Drop for Gone {
    fn drop(&mut self) {
        // Release, with the acquire of who waits: all that the task did and dropped was before.
        self.0.tasks.fetch_sub(1, Ordering::Release);
        self.0.owner.unpark();
    }
}

impl Pending {
    /// Until at most `tasks` are left.
    fn wait(&self, tasks: usize) {
        // Acquire, with `Gone`'s release.
        while self.tasks.load(Ordering::Acquire) > tasks {
            park();
        }
    }
}

/// Fields are dropped in this order: the count goes down when all else is gone.
struct Scoped<T, F> {
    single: Single<T, F>,
    gone: Gone,
}

impl<S: Default, T: Send, F> Body<S> for Scoped<T, F>
where
    F: FnOnce(&mut S, &Context<'_>) -> (T, u64) + Send,
{
    fn run(self: Box<Self>, place: &Place<'_>, scratch: &mut Option<S>) {
        let Scoped { single, gone } = *self;
        // Declared first, so dropped last, also when something panics.
        let _gone = gone;
        single.go(place, scratch);
    }
}

impl<'scope, S: Default + Send + 'static> Scope<'scope, '_, S> {
    /// As [`Scheduler::submit`], but the task may borrow, and a full queue is waited for: until another task of this scope
    /// is done, and so on.
    ///
    /// # Errors
    /// If the queues are full of others' tasks: none of this scope is pending. The task is dropped.
    pub fn submit<T, F>(
        &'scope self,
        id: MappingId,
        timeout: Option<Duration>,
        task: F,
    ) -> Result<Ticket<T>, Full>
    where
        T: Send + 'scope,
        F: FnOnce(&mut S, &Context<'_>) -> (T, u64) + Send + 'scope,
    {
        let (promise, ticket) = ticket();
        // Relaxed: only the scope's owner and its tasks' ends look at the number.
        self.pending.tasks.fetch_add(1, Ordering::Relaxed);
        let gone = Gone(self.pending.clone());
        let body: Box<dyn Body<S> + 'scope> = Box::new(Scoped { single: Single { promise, f: task }, gone });
        // SAFETY: only the lifetime changes. `run` does not return before `gone` was dropped, which is after all else of
        // the body was; `run` returns before `'scope` ends.
        let body = unsafe { mem::transmute::<Box<dyn Body<S> + 'scope>, Box<dyn Body<S>>>(body) };
        let mut task = self.scheduler.task(id, timeout, body);
        loop {
            // This task is one of them.
            let others = self.pending.tasks.load(Ordering::Relaxed) - 1;
            match self.scheduler.shared.admit(task) {
                Ok(()) => return Ok(ticket),
                Err((full, _)) if others == 0 => {
                    self.scheduler.shared.refuse(id);
                    return Err(full);
                }
                Err((_, back)) => task = back,
            }
            self.pending.wait(others);
        }
    }
}

pub(crate) fn run<'env, S: Default + Send + 'static, R>(
    scheduler: &'env Scheduler<S>,
    f: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env, S>) -> R,
) -> R {
    let pending = Arc::new(Pending { tasks: AtomicUsize::new(0), owner: current() });
    let scope = Scope { scheduler, pending, scope: PhantomData, env: PhantomData, owned: PhantomData };
    let result = catch_unwind(AssertUnwindSafe(|| f(&scope)));
    scope.pending.wait(0);
    match result {
        Ok(result) => result,
        Err(panic) => resume_unwind(panic),
    }
}
