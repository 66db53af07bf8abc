//! Changes of an index, or of a table's segments, one thread after the other. Searches need no guard: they never wait.
//!
//! A change is only ever waited for without the GIL, since it takes the GIL now and then to look for signals. Those run
//! Python code inside the call; if that code changed the same index it would wait for itself for ever, so each thread
//! knows what it is changing.

use crate::errors::Failure;
use std::cell::RefCell;

thread_local! {
    /// Addresses of what this thread is changing.
    static INSIDE: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

/// Leaves what was entered last, also when a call unwinds.
struct Inside;

impl Drop for Inside {
    fn drop(&mut self) {
        INSIDE.with_borrow_mut(|all| all.pop());
    }
}

/// Runs `work`, which changes `of` or waits for changes to end. Call without the GIL.
pub(crate) fn change<C, T>(of: &C, work: impl FnOnce(&C) -> Result<T, Failure>) -> Result<T, Failure> {
    let address = &raw const *of as usize;
    let _inside = INSIDE.with_borrow_mut(|all| {
        if all.contains(&address) {
            return Err(Failure::Reentered);
        }
        all.push(address);
        Ok(Inside)
    })?;
    work(of)
}
