//! The threads that search the tables of this process and look after them: started when the first table is opened, ended
//! at exit.

use lanewise_engine::scheduler::{Options, StartError};
use lanewise_engine::table::{Resources, Upkeep};
use lanewise_engine::{Admission, MemoryLimit, Pool, Threads};
use std::mem;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};

/// Tables that are flushed or merged at the same time.
const BUILDERS: NonZeroUsize = NonZeroUsize::MIN;

/// The threads of one process.
pub(super) struct Shared {
    process: u32,
    pool: Arc<Pool>,
    pub(super) upkeep: Upkeep,
    /// Of all tables without a limit of their own together.
    admission: Arc<Admission>,
}

impl Shared {
    /// For tables that share a limit of their own, or else that of all.
    pub(super) fn resources(&self, threads: Threads, limit: Option<MemoryLimit>) -> Resources {
        let own = |limit| {
            let admission = Admission::usual();
            admission.set_limit(limit);
            admission
        };
        let admission = limit.map_or_else(|| self.admission.clone(), own);
        Resources { threads, pool: self.pool.clone(), admission }
    }
}

/// Only held with the GIL, so that no fork finds it taken.
static SHARED: Mutex<Option<Arc<Shared>>> = Mutex::new(None);

/// The threads of this process. Call with the GIL.
///
/// # Errors
/// If the system gives none.
pub(super) fn shared() -> Result<Arc<Shared>, StartError> {
    let mut all = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    let process = std::process::id();
    if let Some(here) = all.as_ref().filter(|shared| shared.process == process) {
        return Ok(here.clone());
    }
    let pool = Arc::new(Pool::start(Options::default())?);
    let upkeep = Upkeep::start(BUILDERS, Threads::new(None))
        .map_err(|source| StartError::Thread { started: 0, source })?;
    let started = Arc::new(Shared { process, pool, upkeep, admission: Admission::usual() });
    // Of the process that this one was forked from: its threads are not here.
    mem::forget(all.replace(started.clone()));
    Ok(started)
}

/// Gives up the threads, which end when no table needs them any more.
pub(super) fn end() -> Option<Arc<Shared>> {
    let shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner).take()?;
    if shared.process != std::process::id() {
        mem::forget(shared);
        return None;
    }
    Some(shared)
}
