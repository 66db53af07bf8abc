//! What the manifest holds: the table's schema, its segments, and where the log counts from.

use super::segment::SegmentId;
use super::settings::Settings;
use crate::documents::Schema;
use lanewise_storage::Storage;
use lanewise_storage::manifest::{self, Manifest, ReadError};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The newest version of a table's files; what older programs can read says that it is 1.
const VERSION: u32 = 3;
const PATH: &str = "manifest";
/// The same, for repairs.
const COPY: &str = "manifest.copy";

/// A table's durable state, as JSON in the manifest.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct State {
    version: u32,
    pub(super) schema: Schema,
    #[serde(default)]
    pub(super) settings: Settings,
    /// Told to the log, so that another table's is not taken for this one's.
    pub(super) identity: u64,
    /// The next segment's number.
    pub(super) next_segment: u64,
    /// The first record that the segments do not hold.
    pub(super) replay_from: u64,
    pub(super) segments: Vec<Listed>,
}

/// A segment, and its newest bitmap of dead rows, if any are.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Listed {
    pub(super) segment: SegmentId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) deleted: Option<u64>,
}

/// What is wrong with a manifest.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// It cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// It is a manifest, but no table's.
    #[error("the manifest is no table's: {0}")]
    Json(serde_json::Error),
    /// Written by a newer program.
    #[error("version {0} of tables, this program reads up to {VERSION}: use a newer Lanewise")]
    Version(u32),
}

impl State {
    pub(super) fn new(schema: Schema, identity: u64) -> State {
        let (settings, segments) = (Settings::default(), Vec::new());
        State {
            version: schema.version(),
            schema,
            settings,
            identity,
            next_segment: 1,
            replay_from: 1,
            segments,
        }
    }

    /// With its generation.
    pub(super) fn read(storage: &dyn Storage) -> Result<(State, u64), StateError> {
        State::read_at(storage, Path::new(PATH))
    }

    /// As [`read`](Self::read), for whoever builds on it.
    pub(super) fn read_durable(storage: &dyn Storage) -> Result<(State, u64), StateError> {
        let manifest = manifest::read_durable(storage, Path::new(PATH))?;
        State::of(manifest)
    }

    fn read_at(storage: &dyn Storage, path: &Path) -> Result<(State, u64), StateError> {
        State::of(manifest::read(storage, path)?)
    }

    fn of(manifest: Manifest) -> Result<(State, u64), StateError> {
        /// Of any version.
        #[derive(Deserialize)]
        struct Any {
            version: u32,
        }
        let Any { version } = serde_json::from_slice(&manifest.contents).map_err(StateError::Json)?;
        if version > VERSION {
            return Err(StateError::Version(version));
        }
        let state = serde_json::from_slice(&manifest.contents).map_err(StateError::Json)?;
        Ok((state, manifest.generation))
    }

    /// Replaces the manifest of `generation`; the new one's generation.
    pub(super) fn replace(
        &self,
        storage: &dyn Storage,
        generation: u64,
    ) -> Result<u64, manifest::ReplaceError> {
        let state = State { version: self.schema.version(), ..self.clone() };
        let json = serde_json::to_vec(&state).expect("a state is JSON");
        let replaced = manifest::replace(storage, Path::new(PATH), generation, &json)?;
        // What the state before names is removed only after this: a copy that is one behind is right too. An older one
        // must not be there.
        if manifest::replace(storage, Path::new(COPY), generation, &json).is_err() {
            let _ = storage.remove(Path::new(COPY));
        }
        Ok(replaced)
    }

    /// The manifest's copy, which is the same or one behind; `None` if it cannot be read.
    pub(super) fn read_copy(storage: &dyn Storage) -> Option<(State, u64)> {
        State::read_at(storage, Path::new(COPY)).ok()
    }
}
