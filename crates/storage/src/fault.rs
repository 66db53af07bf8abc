//! Faults that can be planted, to prove that tests find them: a test that passes with one of them proves nothing.
//!
//! Planting is for a whole process, and one fault at a time, so that a test of any crate above can do it: build with the
//! feature `seeded-faults`, keep what `plant` returns. Without the feature every question is answered at compile time.
//! Those of files are carried out by [`Faulty`](crate::Faulty), which must stand between; the others live in the code
//! that they break.

/// What can be broken on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Syncs of files do nothing.
    SyncDropped,
    /// Syncs of folders do nothing.
    SyncDirDropped,
    /// What is written under a temporary name is renamed first and synced afterwards.
    RenamedBeforeSync,
    /// Checksums are not compared.
    ChecksumSkipped,
    /// After a failed sync the log goes on.
    PoisonIgnored,
    /// A torn tail of the log is taken for damage.
    TornTailIsDamage,
    /// Damage within the log is taken for a torn tail.
    DamageIsTornTail,
    /// The log acknowledges before the sync that it promises.
    AcknowledgedBeforeSync,
    /// A file of the log that has fewer records than the next one builds on passes.
    GapPasses,
    /// The log is continued behind records that were never synced.
    RecoveredUnsynced,
    /// A table's manifest does not name the bitmaps of dead rows.
    TombstonesLost,
    /// A table drops its log before the manifest names the segments.
    LogDroppedEarly,
    /// A table replays its log from one record too late on.
    ReplayedTooLate,
    /// A table's searches find dead rows.
    DeadFound,
    /// A table's manifest says that rows died by writes that the log may lose.
    DiedBeforeLogged,
}

impl Fault {
    /// Those in the code of storage.
    pub const ALL: [Fault; 10] = [
        Fault::SyncDropped,
        Fault::SyncDirDropped,
        Fault::RenamedBeforeSync,
        Fault::ChecksumSkipped,
        Fault::PoisonIgnored,
        Fault::TornTailIsDamage,
        Fault::DamageIsTornTail,
        Fault::AcknowledgedBeforeSync,
        Fault::GapPasses,
        Fault::RecoveredUnsynced,
    ];

    /// Those in the code of tables.
    pub const OF_TABLES: [Fault; 5] = [
        Fault::TombstonesLost,
        Fault::LogDroppedEarly,
        Fault::ReplayedTooLate,
        Fault::DeadFound,
        Fault::DiedBeforeLogged,
    ];
}

/// Whether this one is planted: for the code that it breaks.
#[cfg(not(feature = "seeded-faults"))]
#[inline(always)]
pub fn planted(_: Fault) -> bool {
    false
}

#[cfg(feature = "seeded-faults")]
pub use planting::{Planted, plant, planted};

#[cfg(feature = "seeded-faults")]
mod planting {
    use super::Fault;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::sync::{Mutex, MutexGuard, PoisonError};

    /// Its number, plus one; 0 is none. Relaxed throughout: whoever plants one starts or calls what it breaks afterwards.
    static NOW: AtomicU32 = AtomicU32::new(0);
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

    /// Whether this one is planted: for the code that it breaks.
    pub fn planted(fault: Fault) -> bool {
        NOW.load(Ordering::Relaxed) == fault as u32 + 1
    }

    /// A fault for as long as this lives.
    #[derive(Debug)]
    pub struct Planted(#[expect(dead_code, reason = "held")] MutexGuard<'static, ()>);

    /// Plants a fault in this process, or none and keeps others from doing so; waits while another is planted.
    pub fn plant(fault: Option<Fault>) -> Planted {
        let guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        NOW.store(fault.map_or(0, |fault| fault as u32 + 1), Ordering::Relaxed);
        Planted(guard)
    }

    impl Drop for Planted {
        fn drop(&mut self) {
            NOW.store(0, Ordering::Relaxed);
        }
    }
}
