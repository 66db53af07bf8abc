//! Ctrl-C while there is something to clean up: the signal is noted, and the work stops at its next chance.
//!
//! Before and after, the system's own handling applies and ends the process at once.

use crate::failure::Failure;
use signal_hook::SigId;
use signal_hook::consts::{SIGINT, SIGTERM};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Notes interrupts (SIGINT, SIGTERM) for as long as it lives.
pub(crate) struct Interrupt {
    asked: Arc<AtomicBool>,
    handlers: Vec<SigId>,
}

impl Interrupt {
    /// Begins to note. Where the system allows no handler, its own handling stays.
    pub(crate) fn listen() -> Self {
        let asked = Arc::new(AtomicBool::new(false));
        let handlers = [SIGINT, SIGTERM].into_iter();
        let handlers = handlers.filter_map(|signal| signal_hook::flag::register(signal, asked.clone()).ok());
        Interrupt { handlers: handlers.collect(), asked }
    }

    /// Whether the user asked to stop.
    pub(crate) fn asked(&self) -> bool {
        // Relaxed: the flag alone is shared.
        self.asked.load(Ordering::Relaxed)
    }

    /// Fails with `what` if the user asked to stop.
    pub(crate) fn check(&self, what: impl FnOnce() -> String) -> Result<(), Failure> {
        if self.asked() { Err(Failure::Interrupted(what())) } else { Ok(()) }
    }
}

impl Drop for Interrupt {
    fn drop(&mut self) {
        for handler in self.handlers.drain(..) {
            signal_hook::low_level::unregister(handler);
        }
    }
}
