//! Changes of an index, one thread after the other. Searches need no guard: they never wait.
//!
//! A change is only ever waited for without the GIL, since it takes the GIL now and then to look for signals. Those run
//! Python code inside the call; if that code changed the same index it would wait for itself for ever, so each thread
//! knows which indexes it is changing.

use crate::errors::Failure;
use lanewise_engine::index::Index;
use std::cell::RefCell;

thread_local! {
    /// Addresses of the indexes that this thread is changing.
    static INSIDE: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

/// Leaves the index that was entered last, also when a call unwinds.
struct Inside;

impl Drop for Inside {
    fn drop(&mut self) {
        INSIDE.with_borrow_mut(|all| all.pop());
    }
}

/// Runs `work`, which changes `index` or waits for changes to end. Call without the GIL.
pub(crate) fn change<T>(
    index: &Index,
    work: impl FnOnce(&Index) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let address = &raw const *index as usize;
    let _inside = INSIDE.with_borrow_mut(|all| {
        if all.contains(&address) {
            return Err(Failure::Reentered);
        }
        all.push(address);
        Ok(Inside)
    })?;
    work(index)
}
