//! How long a thread runs at a time while others want its CPU.

use std::marker::PhantomData;
use std::time::Duration;

/// Asks the system to let the calling thread run for `turn` at a time (0.1 to 100 ms) while others want its CPU. Short
/// turns are not more or less time: a thread that asks for them and wakes goes before one in the middle of a longer turn.
///
/// Linux 6.12 and later, where turns are of 1 to 3 ms otherwise (EEVDF's slices, `sched_setattr(2)`); elsewhere, and where it is
/// not allowed, nothing changes.
pub fn ask_for_turns(turn: Duration) {
    set(turn);
}

/// Turns that the calling thread asked for (see [`ask_for_turns`]), until this is dropped; then they are as long as before.
#[derive(Debug)]
pub struct Turns {
    before: Option<Duration>,
    /// They are this thread's.
    _thread: PhantomData<*const ()>,
}

impl Turns {
    /// Of `turn`.
    pub fn of(turn: Duration) -> Turns {
        Turns { before: set(turn), _thread: PhantomData }
    }
}

impl Drop for Turns {
    fn drop(&mut self) {
        self.before.map(set);
    }
}

/// Sets the turns; how long they were, if that worked.
#[cfg(target_os = "linux")]
fn set(turn: Duration) -> Option<Duration> {
    let mut attributes = attributes()?;
    // Of a real-time thread it would be a budget.
    if ![libc::SCHED_OTHER as u32, libc::SCHED_BATCH as u32].contains(&attributes.sched_policy) {
        return None;
    }
    let before = Duration::from_nanos(attributes.sched_runtime);
    attributes.sched_runtime = turn.as_nanos() as u64;
    // SAFETY: the kernel reads `attributes`, whose size it has.
    let status = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
    (status == 0).then_some(before)
}

/// Nothing: only Linux has such a wish.
#[cfg(not(target_os = "linux"))]
fn set(_turn: Duration) -> Option<Duration> {
    None
}

/// What the calling thread runs by.
#[cfg(target_os = "linux")]
fn attributes() -> Option<libc::sched_attr> {
    if cfg!(miri) {
        // It has no such call.
        return None;
    }
    // SAFETY: numbers, of which zero is one.
    let mut attributes: libc::sched_attr = unsafe { std::mem::zeroed() };
    let size = size_of_val(&attributes) as u32;
    // SAFETY: the kernel writes that many bytes at most, all of them of `attributes`.
    let status = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, size, 0) };
    (status == 0).then_some(attributes)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::{Turns, ask_for_turns, attributes};
    use std::time::Duration;

    #[test]
    fn a_thread_gets_its_turns_and_keeps_what_else_it_runs_by() {
        let before = attributes().expect("every Linux answers");
        ask_for_turns(Duration::from_micros(700));
        let after = attributes().unwrap();
        // Before Linux 6.12 the system has no turns to tell.
        assert!(before.sched_runtime == 0 || after.sched_runtime == 700_000, "{}", after.sched_runtime);
        let others =
            |of: &libc::sched_attr| (of.sched_policy, of.sched_flags, of.sched_nice, of.sched_priority);
        assert_eq!(others(&after), others(&before));
    }

    #[test]
    fn turns_end_with_what_they_were_asked_for() {
        ask_for_turns(Duration::from_micros(700));
        let runtime = || attributes().unwrap().sched_runtime;
        let before = runtime();
        let turns = Turns::of(Duration::from_micros(200));
        assert!(before == 0 || runtime() == 200_000, "{}", runtime());
        drop(turns);
        assert_eq!(runtime(), before);
    }
}
