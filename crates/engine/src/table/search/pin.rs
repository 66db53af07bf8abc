//! A table as it was at one moment, for searches that follow one another (scrolls, points in time).
//!
//! A view never changes, so a pin is one that is kept, with the runs of its head: BM25 counts all rows of a run, and runs
//! of a head take in what is written later. What it costs is what would be gone: a head's memory after it was sealed,
//! segments' memory and disk space after they were merged. Files are read in maps, which outlive their names.

use super::super::head::Divided;
use super::super::table::Table;
use super::super::view::View;
use super::{Answer, Request, SearchTableError};
use crate::Pool;
use arc_swap::ArcSwap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

/// A table at one moment: whatever is written, sealed or merged later, searches on it find the same. (How far a walk
/// through a head's graph comes may change, as the graph goes on to grow.) Made by [`Table::pin`].
pub struct Pin {
    view: Arc<View>,
    runs: Vec<Divided>,
    /// What the table shows now.
    table: Arc<ArcSwap<View>>,
    pool: Arc<Pool>,
}

impl Table {
    /// Keeps the table as it is now, for [`search_pinned`](Self::search_pinned). Costs what the first search for words
    /// costs after the last write, and then what would go if nobody held it: memory of heads and segments, which counts
    /// as in use, and the disk space of segments that were merged.
    ///
    /// # Errors
    /// If memory is short, or documents cannot be read.
    pub fn pin(&self, timeout: Option<Duration>) -> Result<Pin, SearchTableError> {
        let until = timeout.map(|timeout| self.resources.pool.scheduler().elapsed().saturating_add(timeout));
        let view = self.view();
        let runs = view.parts.iter().map(|part| self.runs(&view, part, until, &|| ControlFlow::Continue(())));
        let runs = runs.collect::<Result<_, _>>()?;
        Ok(Pin { view, runs, table: self.view.clone(), pool: self.resources.pool.clone() })
    }

    /// As [`search`](Self::search), of the table as it was when `pin` was made.
    ///
    /// # Errors
    /// As [`search`](Self::search), and if the pin is not of this table since it was opened.
    pub fn search_pinned(
        &self,
        pin: &Pin,
        request: &Request,
        timeout: Option<Duration>,
    ) -> Result<Answer, SearchTableError> {
        if !Arc::ptr_eq(&pin.table, &self.view) {
            return Err(SearchTableError::Pin);
        }
        self.search_in(pin.view.clone(), Some(&pin.runs), request, timeout, None)
    }
}

impl Pin {
    /// Number of documents.
    pub fn len(&self) -> usize {
        self.view.len()
    }

    /// Whether there is no document.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        // Searches on it may have given homes again to what the table has let go.
        let now = self.table.load();
        let gone = self.view.parts.iter().filter(|p| !now.parts.iter().any(|n| n.searched == p.searched));
        gone.flat_map(|part| part.homes()).for_each(|table| self.pool.forget(table));
    }
}

impl std::fmt::Debug for Pin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pin").field("documents", &self.len()).finish_non_exhaustive()
    }
}
