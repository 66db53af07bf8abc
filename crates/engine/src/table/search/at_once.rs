//! Searches for one vector that the calling thread does itself, in a few milliseconds, waiting for nothing: for servers whose
//! threads are shared by many requests.

use super::super::table::Table;
use super::super::view::{Part, View};
use super::ready::{Probe, Ready};
use super::{Answer, Request, SearchTableError, need};
use crate::Purpose;
use lanewise_index::Plan;
use lanewise_scheduler::MappingId;

/// Bytes that it may read at most: some milliseconds where they come from memory.
const BYTES_MAX: usize = 16 << 20;
/// Neighbours that a graph search compares for each candidate that it keeps, at most, about.
const COMPARED: usize = 32;

impl Table {
    /// As [`search`](Self::search), if the calling thread can answer at once: what is nearest to one vector, found by graphs
    /// or among few vectors, while there is memory and a place on the [pool](crate::Pool). `None`: not so.
    pub fn search_at_once(&self, request: &Request) -> Option<Result<Answer, SearchTableError>> {
        let view = self.view();
        match Ready::new(&view, request).map(|ready| self.is_at_once(&view, &ready)) {
            Err(error) => Some(Err(error)),
            Ok(false) => None,
            Ok(true) => Some(self.search_in(view, None, request, None, None)),
        }
    }

    fn is_at_once(&self, view: &View, ready: &Ready<'_>) -> bool {
        let Some(probe) = ready.alone().filter(|probe| probe.radius.is_none()) else { return false };
        let (admission, scheduler) = (&self.resources.admission, self.resources.pool.scheduler());
        let mut parts = view.parts.iter().filter(|part| !part.reader(probe.field).is_empty());
        let bytes =
            parts.clone().try_fold(0, |sum: usize, part| Some(sum.saturating_add(read(part, probe)?)));
        ready.is_ranking()
            && !ready.is_searched()
            && bytes.is_some_and(|bytes| bytes <= BYTES_MAX)
            && admission.has_room(Purpose::Search, need::search(ready, view, false))
            && parts.all(|part| scheduler.has_place(MappingId::table(part.tables[probe.field].0)))
    }
}

/// What a search of a part reads, about; `None` if it would be divided.
fn read(part: &Part, probe: &Probe) -> Option<usize> {
    let reader = part.reader(probe.field);
    let row = reader.bytes() / reader.len().max(1);
    match reader.plan(&probe.how) {
        Plan::Graph | Plan::FilteredGraph => {
            let candidates = probe.how.ef_search.max(probe.how.k);
            Some((row * candidates).saturating_mul(COMPARED).min(reader.bytes()))
        }
        Plan::Exact | Plan::Codes => Some(reader.bytes()),
        Plan::Lists => None,
    }
}
