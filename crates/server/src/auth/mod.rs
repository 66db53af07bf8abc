//! Who asks, and what they may.
//!
//! `file.rs` is what is known of users and keys, `guard.rs` looks at a request, `tries.rs` slows down whoever guesses.
//! Passwords are hashed by Argon2id, slowly; keys are 256 random bits, for which SHA-256 is enough.

mod file;
mod guard;
mod tries;

pub use file::{NewKey, UsersError, UsersFile};
pub(crate) use guard::{Denied, Guard};

use crate::route::Role;
use std::sync::Arc;

/// Who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Client {
    /// The user's name, or the key's: for logs.
    pub(crate) name: Arc<str>,
    pub(crate) role: Role,
}
