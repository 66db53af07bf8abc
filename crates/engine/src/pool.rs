//! Searches on threads that stay, one for each core: each where a cache holds what it reads (document 004).
//!
//! A graph search is one task of its table; a search of lists is a task for each list that it probes, the last of which
//! merges, so that one query uses many cores. [`Pool::place`] says what a table holds before there is any traffic.

use crate::search::with_scratch;
use lanewise_index::{
    Counts, Neighbors, OwnedVectors, Partial, Plan, Reader, Scratch, Search, SearchError, Stop, Vectors,
};
use lanewise_scheduler::{
    Answer, Context, Failure, Full, Homes, MappingId, Options, Outcome, Scheduler, StartError, Stats, Ticket,
    Trip,
};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

/// Number of a table, as its user counts them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableId(pub u32);

/// Threads that search. See [`Scheduler`] for who may call what, and for what is promised.
#[derive(Debug)]
pub struct Pool {
    scheduler: Scheduler<Scratch>,
}

/// Why a search was not taken in.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// Something about it is wrong.
    #[error(transparent)]
    Wrong(#[from] SearchError),
    /// Too many wait already.
    #[error(transparent)]
    Busy(#[from] Full),
}

/// A search's results, and how they came about.
#[derive(Clone, Debug)]
pub struct Found {
    /// The nearest vectors.
    pub neighbors: Neighbors,
    /// The work done.
    pub counts: Counts,
    /// Who did it, and how long it waited.
    pub trip: Trip,
}

/// Stands for a search that was taken in: [`wait`](Self::wait) for it, or await it. Dropping it does not cancel the search.
#[derive(Debug)]
#[must_use = "the results come through it"]
pub struct Pending(Ticket<Result<(Neighbors, Counts), SearchError>>);

impl Pending {
    /// Blocks until the search is done. Not to be called by a task of the same pool.
    ///
    /// # Errors
    /// If it was cancelled, took too long, or panicked.
    pub fn wait(self) -> Result<Found, Failure> {
        found(self.0.wait())
    }

    /// Gives the search up, at its next step.
    pub fn cancel(&self) {
        self.0.cancel();
    }
}

impl Future for Pending {
    type Output = Result<Found, Failure>;

    fn poll(mut self: Pin<&mut Self>, context: &mut std::task::Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(context).map(found)
    }
}

fn found(outcome: Outcome<Result<(Neighbors, Counts), SearchError>>) -> Result<Found, Failure> {
    let Answer { value, trip } = outcome?;
    let (neighbors, counts) = value.expect("it was checked, and a search that was stopped has no answer");
    Ok(Found { neighbors, counts, trip })
}

impl Pool {
    /// Starts the threads.
    ///
    /// # Errors
    /// As [`Scheduler::new`].
    pub fn start(options: Options) -> Result<Pool, StartError> {
        Ok(Pool { scheduler: Scheduler::new(options)? })
    }

    /// Gives a table, or each of its lists, a home by its size. To be called when a table is opened, and when it has grown
    /// or was made anew; without, homes are chosen by number until traffic tells better.
    pub fn place(&self, table: TableId, reader: &Reader) {
        let lists =
            (0..).zip(reader.lists()).map(|(list, size)| (MappingId::list(table.0, list), size.bytes));
        let mut sizes: Vec<(MappingId, u64)> = lists.collect();
        if sizes.is_empty() {
            sizes.push((MappingId::table(table.0), reader.bytes() as u64));
        }
        self.scheduler.place(&sizes);
    }

    /// Forgets the homes of a table that is closed.
    pub fn forget(&self, table: TableId) {
        self.scheduler.forget(|id| id.is_of(table.0));
    }

    /// Finds what is nearest to one query, within `timeout` if one is given.
    ///
    /// # Errors
    /// If anything about the query or the search is wrong, or the queues are full. `how.stop` is not looked at: the ticket
    /// cancels.
    pub fn search(
        &self,
        table: TableId,
        reader: &Reader,
        query: Vectors<'_>,
        how: &Search<'_>,
        timeout: Option<Duration>,
    ) -> Result<Pending, Refused> {
        self.find((table, reader), query, how, timeout, false)
    }

    /// The same for who waits for it at once, whose thread may do it itself ([`Scheduler::submit_here`]).
    ///
    /// # Errors
    /// As [`search`](Self::search).
    pub fn search_here(
        &self,
        table: TableId,
        reader: &Reader,
        query: Vectors<'_>,
        how: &Search<'_>,
        timeout: Option<Duration>,
    ) -> Result<Pending, Refused> {
        self.find((table, reader), query, how, timeout, true)
    }

    fn find(
        &self,
        (table, reader): (TableId, &Reader),
        query: Vectors<'_>,
        how: &Search<'_>,
        timeout: Option<Duration>,
        here: bool,
    ) -> Result<Pending, Refused> {
        let (filter, how) = (how.filter.cloned(), Search { filter: None, stop: None, ..*how });
        let whole = Search { filter: filter.as_ref(), ..how };
        let probed = match reader.plan(&whole) {
            Plan::Lists => with_scratch(|scratch| reader.probe(query, &whole, scratch))?,
            _ => None,
        };
        let Some(probed) = probed else {
            return self.whole((table, reader), query, None, &whole, timeout, here);
        };
        let ids: Vec<MappingId> = probed.lists().map(|list| MappingId::list(table.0, list)).collect();
        let probed = Arc::new(probed);
        let lists = probed.clone();
        let each = move |i: usize, scratch: &mut Scratch, _: &Context<'_>| {
            let partial = lists.scan(i, scratch);
            let bytes = partial.counts().bytes;
            (partial, bytes)
        };
        let merge = move |partials: Vec<Partial>, scratch: &mut Scratch, context: &Context<'_>| {
            let stopped = || context.stopped();
            let found = probed.merge(&partials, Some(Stop::new(&stopped)), scratch);
            let scanned: u64 = partials.iter().map(|partial| partial.counts().bytes).sum();
            let bytes = found.as_ref().map_or(0, |(_, counts)| counts.bytes - scanned);
            (found, bytes)
        };
        Ok(Pending(self.scheduler.submit_all(&ids, timeout, each, merge)?))
    }

    /// Where what was placed is, and what was read of it lately.
    pub fn homes(&self) -> Homes {
        self.scheduler.homes()
    }

    /// Finds all within `radius` of one query, as [`Reader::within`]; else as [`search`](Self::search).
    ///
    /// # Errors
    /// As [`search`](Self::search), and if `radius` is not a number.
    pub fn within(
        &self,
        table: TableId,
        reader: &Reader,
        query: Vectors<'_>,
        radius: f32,
        how: &Search<'_>,
        timeout: Option<Duration>,
    ) -> Result<Pending, Refused> {
        reader.check_within(query, radius, how)?;
        self.whole((table, reader), query, Some(radius), how, timeout, false)
    }

    /// One task: all within `radius`, if there is one, or the nearest.
    fn whole(
        &self,
        (table, reader): (TableId, &Reader),
        query: Vectors<'_>,
        radius: Option<f32>,
        how: &Search<'_>,
        timeout: Option<Duration>,
        here: bool,
    ) -> Result<Pending, Refused> {
        if reader.check(query, how)? != 1 {
            return Err(SearchError::OneQuery { queries: query.count(reader.dim()) }.into());
        }
        let (filter, how) = (how.filter.cloned(), Search { filter: None, stop: None, ..*how });
        let (reader, query) = (reader.clone(), OwnedVectors::from(query));
        let search = move |scratch: &mut Scratch, context: &Context<'_>| {
            let stopped = || context.stopped();
            let how = Search { filter: filter.as_ref(), stop: Some(Stop::new(&stopped)), ..how };
            let found = match radius {
                Some(radius) => reader.within(query.as_vectors(), radius, None, &how, scratch),
                None => reader.search(query.as_vectors(), &how, scratch),
            };
            // One query has one result.
            let found = found.map(|(mut all, counts)| (all.remove(0), counts));
            let bytes = found.as_ref().map_or(0, |(_, counts)| counts.bytes);
            (found, bytes)
        };
        let id = MappingId::table(table.0);
        Ok(Pending(match here {
            true => self.scheduler.submit_here(id, timeout, search)?,
            false => self.scheduler.submit(id, timeout, search)?,
        }))
    }

    /// What has been done so far.
    pub fn stats(&self) -> Stats {
        self.scheduler.stats()
    }

    /// The threads.
    pub fn scheduler(&self) -> &Scheduler<Scratch> {
        &self.scheduler
    }
}
