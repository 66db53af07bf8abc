//! Changes of an index, or of a table's segments, one thread after the other. Searches of indexes need no guard: they never
//! wait.
//!
//! A change is only ever waited for without the GIL, since it takes the GIL now and then to look for signals. Those run
//! Python code inside the call; if that code changed the same index it would wait for itself for ever, so each thread
//! knows what it is changing, and what it calls that others may close.

use crate::errors::Failure;
use std::any::TypeId;
use std::cell::RefCell;

/// What a thread may be inside of. A struct and its first field have one address.
type Place = (usize, TypeId);

thread_local! {
    /// What this thread is inside of.
    static INSIDE: RefCell<Vec<Place>> = const { RefCell::new(Vec::new()) };
}

/// Leaves what was entered last, also when a call unwinds.
pub(crate) struct Inside;

impl Drop for Inside {
    fn drop(&mut self) {
        INSIDE.with_borrow_mut(|all| all.pop());
    }
}

fn place<C: 'static>(of: &C) -> Place {
    (&raw const *of as usize, TypeId::of::<C>())
}

/// From now on this thread is inside of `of`, perhaps again: what would wait for that is refused by [`change`].
pub(crate) fn enter<C: 'static>(of: &C) -> Inside {
    INSIDE.with_borrow_mut(|all| all.push(place(of)));
    Inside
}

/// Whether this thread is inside of `of`.
pub(crate) fn is_inside<C: 'static>(of: &C) -> bool {
    INSIDE.with_borrow(|all| all.contains(&place(of)))
}

/// Runs `work`, which changes `of` or waits for changes to end. Call without the GIL.
pub(crate) fn change<C: 'static, T>(
    of: &C,
    work: impl FnOnce(&C) -> Result<T, Failure>,
) -> Result<T, Failure> {
    if is_inside(of) {
        return Err(Failure::Reentered);
    }
    let _inside = enter(of);
    work(of)
}
