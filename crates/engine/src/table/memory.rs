//! What the parts of a table hold of memory: asked for, or counted, and given back with the last who looks at them.

use super::need::HeadNeed;
use super::segment::SegmentError;
use crate::{Admission, Admitted, Purpose, Refusal};
use std::sync::{Arc, Mutex, PoisonError};

/// Of whom the memory of a segment that is opened is.
#[derive(Clone, Copy)]
pub(super) enum Asked<'a> {
    /// Who may say no.
    Of(&'a Arc<Admission>),
    /// Who is told, since what made the segment had that memory.
    Told(&'a Arc<Admission>),
    /// Nobody: repairs and snapshots open one at a time.
    Nobody,
}

impl Asked<'_> {
    pub(super) fn hold(self, bytes: u64) -> Result<Option<Admitted>, SegmentError> {
        Ok(match self {
            Asked::Of(admission) => Some(admission.admit(Purpose::Open, bytes)?),
            Asked::Told(admission) => {
                let mut told = admission.nothing(Purpose::Open);
                told.settle(bytes);
                Some(told)
            }
            Asked::Nobody => None,
        })
    }
}

/// Memory of a head, and what sealing it will take beside what is kept for that anyway: what was taken in can be sealed.
#[derive(Default)]
pub(super) struct HeadMemory(Mutex<Option<Held>>);

struct Held {
    written: Admitted,
    sealing: Admitted,
}

impl HeadMemory {
    fn with<T>(&self, admission: &Arc<Admission>, work: impl FnOnce(&mut Held) -> T) -> T {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        work(held.get_or_insert_with(|| Held {
            written: admission.nothing(Purpose::Write),
            sealing: admission.nothing(Purpose::Seal),
        }))
    }

    /// Asks for what a head will need.
    ///
    /// # Errors
    /// If there is no room; nothing has changed.
    pub(super) fn ask(&self, admission: &Arc<Admission>, need: HeadNeed) -> Result<(), Refusal> {
        self.with(admission, |Held { written, sealing }| {
            // As one, and as a write: it may not take what is kept for sealing.
            let more = need.sealing.saturating_sub(sealing.bytes());
            written.raise(need.written + more)?;
            sealing.settle(sealing.bytes() + more);
            written.settle(written.bytes() - more);
            Ok(())
        })
    }

    /// Makes it what a head needs, limit or not.
    pub(super) fn settle(&self, admission: &Arc<Admission>, need: HeadNeed) {
        self.with(admission, |Held { written, sealing }| {
            written.settle(need.written);
            sealing.settle(need.sealing);
        });
    }

    /// Asks for all that sealing takes.
    ///
    /// # Errors
    /// As [`ask`](Self::ask).
    pub(super) fn ask_to_seal(&self, admission: &Arc<Admission>, bytes: u64) -> Result<(), Refusal> {
        self.with(admission, |held| held.sealing.raise(bytes))
    }
}
