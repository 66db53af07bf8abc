//! What searches leave open for those that follow: scrolls and points in time. Each goes when it is not asked for in the
//! time that its requests give it, or when an index of it goes.

use crate::error::ApiError;
use crate::node::{new_uuid, now_ms};
use crate::settings::time_ms;
use axum::http::StatusCode;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The longest that one is kept.
const KEEP_MS: u64 = 24 * 3_600_000;

/// What one kind is called, how many there may be, and the settings that say so in OpenSearch.
pub(super) struct Kind {
    pub(super) name: &'static str,
    pub(super) open: usize,
    pub(super) open_setting: &'static str,
    pub(super) keep_setting: &'static str,
}

/// All of one kind.
pub(super) struct Contexts<T> {
    kind: &'static Kind,
    open: Mutex<HashMap<String, Arc<Context<T>>>>,
}

/// One that is open.
pub(super) struct Context<T> {
    pub(super) made_ms: u64,
    pub(super) keep_ms: AtomicU64,
    until_ms: AtomicU64,
    /// The indexes that it is about.
    indexes: Vec<String>,
    pub(super) what: T,
}

impl Kind {
    /// How long one is kept, as a request says it.
    pub(super) fn keep(&self, text: &str) -> Result<u64, ApiError> {
        let wrong = || {
            let what = format!("failed to parse [keep_alive] with value [{text}]: give a time such as 5m");
            ApiError::argument(what)
        };
        let keep = time_ms(text).filter(|keep| *keep > 0).ok_or_else(wrong)?;
        if keep > KEEP_MS {
            return Err(ApiError::argument(format!(
                "Keep alive for request ({text}) is too large. It must be less than (24h). This limit can be set by \
                 changing the [{}] cluster level setting.",
                self.keep_setting
            )));
        }
        Ok(keep)
    }
}

impl<T> Contexts<T> {
    pub(super) fn new(kind: &'static Kind) -> Contexts<T> {
        Contexts { kind, open: Mutex::default() }
    }

    /// Those that are open now.
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<Context<T>>>> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let now = now_ms();
        // Relaxed: whoever is late finds it gone.
        open.retain(|_, context| context.until_ms.load(Ordering::Relaxed) > now);
        open
    }

    /// Lets go of those whose time is over.
    pub(super) fn sweep(&self) {
        drop(self.lock());
    }

    /// Keeps one; its id.
    pub(super) fn insert(&self, indexes: &[String], keep_ms: u64, what: T) -> Result<String, ApiError> {
        let Kind { name, open: most, open_setting, .. } = self.kind;
        let (id, made_ms) = (new_uuid() + &new_uuid(), now_ms());
        let until_ms = AtomicU64::new(made_ms + keep_ms);
        let context = Context { made_ms, keep_ms: keep_ms.into(), until_ms, indexes: indexes.to_vec(), what };
        let mut open = self.lock();
        if open.len() >= *most {
            let reason = format!(
                "Trying to create too many {name} contexts. Must be less than or equal to: [{most}]. This limit can be \
                 set by changing the [{open_setting}] setting."
            );
            return Err(ApiError::new(StatusCode::TOO_MANY_REQUESTS, "rejected_execution_exception", reason));
        }
        open.insert(id.clone(), Arc::new(context));
        Ok(id)
    }

    /// The one with this id, kept from now on for `keep_ms`, or as long as it was to be.
    pub(super) fn get(&self, id: &str, keep_ms: Option<u64>) -> Result<Arc<Context<T>>, ApiError> {
        let found = self.lock().get(id).cloned().ok_or_else(|| {
            let reason = format!("No search context found for id [{id}]");
            ApiError::new(StatusCode::NOT_FOUND, "search_context_missing_exception", reason)
        })?;
        if let Some(keep_ms) = keep_ms {
            found.keep_ms.store(keep_ms, Ordering::Relaxed);
            found.until_ms.store(now_ms() + keep_ms, Ordering::Relaxed);
        }
        Ok(found)
    }

    /// Those that are open, by id, oldest first.
    pub(super) fn all(&self) -> Vec<(String, Arc<Context<T>>)> {
        let mut all: Vec<_> = self.lock().iter().map(|(id, one)| (id.clone(), one.clone())).collect();
        all.sort_by_key(|(_, one)| one.made_ms);
        all
    }

    /// Lets go of those that `gone` accepts; how many there were.
    pub(super) fn remove(&self, gone: impl Fn(&str) -> bool) -> usize {
        let mut open = self.lock();
        let before = open.len();
        open.retain(|id, _| !gone(id));
        before - open.len()
    }

    /// Lets go of those that are about an index.
    pub(super) fn forget(&self, index: &str) {
        self.lock().retain(|_, context| !context.indexes.iter().any(|name| name == index));
    }

    pub(super) fn len(&self) -> usize {
        self.lock().len()
    }
}
