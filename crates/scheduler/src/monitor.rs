//! What was asked of each mapping id lately, window by window, and the mapping that follows from it (document 004,
//! section VI-B).

use crate::mapping::{Mapping, Sample};
use crate::policy::MappingId;
use std::collections::{HashMap, VecDeque};
use std::time::Duration;

/// Windows that count together: one alone may be short of rare requests.
pub const WINDOWS: usize = 3;

/// The last windows.
#[derive(Debug, Default)]
pub struct Monitor {
    windows: VecDeque<(u64, HashMap<MappingId, Sample>)>,
}

impl Monitor {
    /// Takes in what happened in the `window_ns` that end now; the mapping that should take the place of `current`, if
    /// anything moves.
    pub fn close_window(
        &mut self,
        window_ns: u64,
        samples: HashMap<MappingId, Sample>,
        current: &Mapping,
    ) -> Option<Mapping> {
        if self.windows.len() == WINDOWS {
            self.windows.pop_front();
        }
        self.windows.push_back((window_ns, samples));
        current.follow(&self.lately(), self.span().as_nanos() as u64)
    }

    /// How long the windows that count are together.
    pub fn span(&self) -> Duration {
        Duration::from_nanos(self.windows.iter().map(|window| window.0).sum())
    }

    /// What happened in all windows that count.
    pub fn lately(&self) -> HashMap<MappingId, Sample> {
        let mut all: HashMap<MappingId, Sample> = HashMap::new();
        for (&id, &sample) in self.windows.iter().flat_map(|(_, samples)| samples) {
            *all.entry(id).or_default() += sample;
        }
        all
    }
}
