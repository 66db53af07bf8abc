//! The lock around an index: searches share it, a change has it alone.
//!
//! It is only ever waited for without the GIL, since its holder takes the GIL now and then to look for signals. Those
//! run Python code inside the call; if that code came back to the same index it would wait for itself for ever, so each
//! thread knows which indexes it is inside.

use crate::errors::Failure;
use lanewise_engine::index::Index;
use std::cell::RefCell;
use std::sync::RwLock;

/// An index behind its lock.
pub(crate) struct Guarded(RwLock<Index>);

thread_local! {
    /// Addresses of the indexes that this thread is inside.
    static INSIDE: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

/// Leaves the index that was entered last, also when a call unwinds.
struct Inside;

impl Drop for Inside {
    fn drop(&mut self) {
        INSIDE.with_borrow_mut(|all| all.pop());
    }
}

impl Guarded {
    pub(crate) fn new(index: Index) -> Self {
        Guarded(RwLock::new(index))
    }

    /// Runs `work` beside other readers. Call without the GIL.
    pub(crate) fn read<T>(&self, work: impl FnOnce(&Index) -> Result<T, Failure>) -> Result<T, Failure> {
        let _inside = self.enter()?;
        let index = self.0.read().map_err(|_| Failure::Broken)?;
        work(&index)
    }

    /// Runs `work` alone. Call without the GIL.
    pub(crate) fn write<T>(&self, work: impl FnOnce(&mut Index) -> Result<T, Failure>) -> Result<T, Failure> {
        let _inside = self.enter()?;
        let mut index = self.0.write().map_err(|_| Failure::Broken)?;
        work(&mut index)
    }

    fn enter(&self) -> Result<Inside, Failure> {
        let address = &raw const *self as usize;
        INSIDE.with_borrow_mut(|all| {
            if all.contains(&address) {
                return Err(Failure::Reentered);
            }
            all.push(address);
            Ok(Inside)
        })
    }
}
