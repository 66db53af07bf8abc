//! Which workers are on which chiplet.

use lanewise_topology::{ChipletId, Machine};
use std::ops::Range;

/// Workers, numbered chiplet by chiplet. There is at least one, and no chiplet is without.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Chiplet `c` has the workers from `starts[c]` to `starts[c + 1]`.
    starts: Vec<usize>,
    /// The chiplet of each worker.
    chiplets: Vec<u32>,
}

impl Layout {
    /// So many workers on each chiplet; chiplets without any are left out.
    ///
    /// # Panics
    /// If there are no workers at all.
    pub fn new(workers: &[usize]) -> Self {
        let mut layout = Layout { starts: vec![0], chiplets: Vec::new() };
        for &count in workers.iter().filter(|&&count| count > 0) {
            let chiplet = layout.starts.len() as u32 - 1;
            layout.chiplets.resize(layout.chiplets.len() + count, chiplet);
            layout.starts.push(layout.chiplets.len());
        }
        assert!(!layout.chiplets.is_empty(), "a layout has at least one worker");
        layout
    }

    /// A worker for each core, as far as the machine allows that many threads: full chiplets first, so that few caches
    /// are used rather than many.
    pub fn of(machine: &Machine) -> Self {
        let mut left = machine.threads().get();
        let workers = machine.chiplets.iter().map(|chiplet| {
            let here = chiplet.cores.len().min(left);
            left -= here;
            here
        });
        Layout::new(&workers.collect::<Vec<_>>())
    }

    /// Number of workers.
    pub fn workers(&self) -> usize {
        self.chiplets.len()
    }

    /// Number of chiplets.
    pub fn chiplets(&self) -> usize {
        self.starts.len() - 1
    }

    /// The workers of a chiplet.
    pub fn on(&self, chiplet: ChipletId) -> Range<usize> {
        self.starts[chiplet.0 as usize]..self.starts[chiplet.0 as usize + 1]
    }

    /// The chiplet of a worker.
    pub fn of_worker(&self, worker: usize) -> ChipletId {
        ChipletId(self.chiplets[worker])
    }
}
