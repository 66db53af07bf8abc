//! What of a table can be changed while it serves: how writes become durable, when the head is sealed, what is merged. The
//! manifest keeps it.

use super::merge_policy::MergePolicy;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Settings of a table, as JSON too; what is left out is as usual.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// What an acknowledged write waits for.
    pub durability: Durability,
    /// How long a write that is acknowledged before it is on disk may take to get there, milliseconds. Of
    /// [`Durability::Async`] only.
    pub sync_interval_ms: u64,
    /// The head is sealed when its documents, vectors included, have so many bytes …
    pub flush_threshold_bytes: u64,
    /// … when the oldest record in the log is so old, milliseconds …
    pub flush_after_ms: u64,
    /// … or when at least so many of its rows, and half of them, are dead.
    pub flush_dead_rows: usize,
    /// Which segments are merged.
    pub merge: MergePolicy,
}

/// What an acknowledged write waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Durability {
    /// The disk: it survives a power cut.
    #[default]
    Request,
    /// The system: it survives the end of the process, and a power cut only after `sync_interval_ms`.
    Async,
}

impl Default for Settings {
    /// `request`, 5 s, 256 MiB, 5 minutes, 16,384 rows, [`MergePolicy::default`].
    fn default() -> Self {
        Settings {
            durability: Durability::default(),
            sync_interval_ms: 5000,
            flush_threshold_bytes: 256 << 20,
            flush_after_ms: 300_000,
            flush_dead_rows: 16_384,
            merge: MergePolicy::default(),
        }
    }
}

/// What is wrong with settings.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{argument}={given}: give {expected}")]
pub struct SettingsError {
    argument: &'static str,
    given: String,
    expected: &'static str,
}

/// The longest times that are taken.
const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);

impl Settings {
    /// Checks ranges.
    ///
    /// # Errors
    /// What is out of range.
    pub fn check(&self) -> Result<(), SettingsError> {
        let Settings { sync_interval_ms, flush_threshold_bytes, flush_after_ms, merge, .. } = self;
        let year = YEAR.as_millis() as u64;
        let checks = [
            (
                "sync_interval_ms",
                sync_interval_ms,
                (100..=year).contains(sync_interval_ms),
                "100 or more, a year at most",
            ),
            (
                "flush_threshold_bytes",
                flush_threshold_bytes,
                *flush_threshold_bytes >= 1 << 16,
                "65,536 or more",
            ),
            (
                "flush_after_ms",
                flush_after_ms,
                (100..=year).contains(flush_after_ms),
                "100 or more, a year at most",
            ),
        ];
        if let Some((argument, given, _, expected)) = checks.into_iter().find(|(_, _, fine, _)| !fine) {
            return Err(SettingsError { argument, given: given.to_string(), expected });
        }
        merge.check()
    }
}

impl MergePolicy {
    /// Checks ranges.
    ///
    /// # Errors
    /// What is out of range.
    pub fn check(&self) -> Result<(), SettingsError> {
        let MergePolicy { segments_per_tier, max_merge_at_once, deletes_allowed, .. } = self;
        for (argument, given) in
            [("segments_per_tier", segments_per_tier), ("max_merge_at_once", max_merge_at_once)]
        {
            if *given < 2 {
                return Err(SettingsError { argument, given: given.to_string(), expected: "2 or more" });
            }
        }
        if !(0.0..=1.0).contains(deletes_allowed) {
            let given = deletes_allowed.to_string();
            return Err(SettingsError { argument: "deletes_allowed", given, expected: "0 to 1" });
        }
        Ok(())
    }
}
