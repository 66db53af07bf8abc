//! Paged results: ever farther vectors of one state of an index, page by page.
//!
//! Each time the pages so far are used up, four times as many are looked for, and those that came before are left out. A
//! search for all that match finds all that match, so no vector is left out in the end; what an approximate search missed
//! at first comes with a later page.

use crate::error::SearchError;
use crate::filter::Filter;
use crate::get::OwnedVectors;
use crate::range::WIDER;
use crate::search::{Counts, Neighbors, Reader, Scratch, Search};
use crate::stop::Stop;
use crate::vectors::Vectors;
use std::collections::HashSet;
use std::vec;

/// The vectors nearest to a query, then the next ones, and so on. Whatever changes in the index meanwhile, it goes on with
/// the vectors that were there when it was made; it holds their memory as long as it lives.
pub struct Pages {
    reader: Reader,
    query: OwnedVectors,
    search: Search<'static>,
    filter: Option<Filter>,
    page_size: usize,
    /// What came with a page.
    given: HashSet<i64>,
    /// What the last search found beyond that.
    waiting: vec::IntoIter<(i64, f32)>,
}

impl Reader {
    /// Pages of `search.k` vectors each, the nearest to one query first. What may stop a search is given for each page
    /// ([`Pages::next_page_until`]).
    ///
    /// # Errors
    /// As [`search`](Self::search), or if there are several queries.
    pub fn pages(&self, query: Vectors<'_>, search: &Search<'_>) -> Result<Pages, SearchError> {
        let queries = self.check(query, search)?;
        if queries != 1 {
            return Err(SearchError::OneQuery { queries });
        }
        Ok(Pages {
            reader: self.clone(),
            query: query.into(),
            search: Search { k: 0, filter: None, stop: None, ..*search },
            filter: search.filter.cloned(),
            page_size: search.k,
            given: HashSet::new(),
            waiting: Vec::new().into_iter(),
        })
    }
}

impl Pages {
    /// The next page and the work done for it: its vectors in ascending distance, each once in all pages together; fewer
    /// than the page's size only with the last page. `None` when all that match have come.
    ///
    /// # Errors
    /// None that making it would not have found.
    pub fn next_page(&mut self, scratch: &mut Scratch) -> Result<Option<(Neighbors, Counts)>, SearchError> {
        self.next_page_until(None, scratch)
    }

    /// As [`next_page`](Self::next_page), given up when `stop` says so; the page can be asked for again.
    ///
    /// # Errors
    /// If `stop` says stop.
    pub fn next_page_until(
        &mut self,
        stop: Option<Stop<'_>>,
        scratch: &mut Scratch,
    ) -> Result<Option<(Neighbors, Counts)>, SearchError> {
        let matches = self.filter.as_ref().map_or(self.reader.len(), Filter::matches);
        let mut counts = Counts::default();
        if self.waiting.len() < self.page_size && self.search.k < matches {
            let k = self.search.k.saturating_mul(WIDER).max(self.page_size).min(matches);
            let how = Search { k, filter: self.filter.as_ref(), stop, ..self.search };
            let (found, work) = self.reader.search(self.query.as_vectors(), &how, scratch)?;
            self.search.k = k;
            counts = work;
            let found = found.into_iter().flat_map(|one| one.ids.into_iter().zip(one.distances));
            let others: Vec<_> = found.filter(|(id, _)| !self.given.contains(id)).collect();
            self.waiting = others.into_iter();
        }
        let (ids, distances): (Vec<i64>, Vec<f32>) = self.waiting.by_ref().take(self.page_size).unzip();
        self.given.extend(&ids);
        Ok((!ids.is_empty()).then_some((Neighbors { ids, distances }, counts)))
    }
}
