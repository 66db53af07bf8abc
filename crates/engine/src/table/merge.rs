//! Making one segment of several, without their dead rows, while searches and writes go on.
//!
//! The rows of the segment with the most live ones come first, and where few of it died its indexes are kept: they lose
//! the dead vectors, are mended, and take in the others (document 003 builds every graph anew). Rows that die meanwhile
//! are marked in the new segment before it takes the place of the old.

use super::bits::Bits;
use super::effort::Effort;
use super::indexes::{add_coded, coded};
use super::memory::Asked;
use super::merge_policy::{Candidate, MergePolicy};
use super::need;
use super::rows::Written;
use super::seal::FlushError;
use super::segment::{self, Sealed, SegmentError, SegmentId, folder};
use super::table::Table;
use super::view::{Body, Part, View};
use crate::Purpose;
use crate::documents::Mapping;
use lanewise_index::{AddError, Executor, Index, OwnedVectors, Params};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

/// How long a merge waits for memory; who looks after tables tries again.
const PATIENCE: Duration = Duration::from_secs(2);
/// A segment's indexes are kept if no more than one in so many of its rows died.
const KEPT_SHARE: usize = 3;

/// Whether a merge keeps the indexes of this part, its first.
fn is_kept(first: &Part) -> bool {
    first.deleted.count() * KEPT_SHARE <= first.rows()
}

/// The parts that are merged, the one with the most live rows first.
fn sources<'a>(view: &'a View, chosen: &[SegmentId]) -> Vec<&'a Part> {
    let mut sources: Vec<&Part> = view.parts.iter().filter(|part| chosen.contains(&part.segment)).collect();
    sources.sort_by_key(|part| std::cmp::Reverse(part.live()));
    sources
}

impl Table {
    /// Merges once, if the policy asks for it: the new segment and those it replaces. Sealed segments only. If there is no
    /// memory for the best merge, it is the best of those for which there is.
    ///
    /// # Errors
    /// If a setting of the policy is out of range, and what failed; all documents are where they were.
    pub fn merge(&self, policy: &MergePolicy) -> Result<Option<(SegmentId, Vec<SegmentId>)>, FlushError> {
        self.merge_with(policy, &Effort::of(self.resources.threads))
    }

    /// As [`merge`](Self::merge), with so much of the machine.
    ///
    /// # Errors
    /// As [`merge`](Self::merge), and if the effort ends before it is done.
    pub fn merge_with(
        &self,
        policy: &MergePolicy,
        effort: &Effort<'_>,
    ) -> Result<Option<(SegmentId, Vec<SegmentId>)>, FlushError> {
        policy.check()?;
        let _sealing = self.sealing.lock().unwrap_or_else(PoisonError::into_inner);
        let candidates = self.candidates();
        let Some(chosen) = policy.choose(&candidates) else { return Ok(None) };
        let (merged, chosen) = match self.merge_these(&chosen, effort) {
            Err(FlushError::Refused(refusal)) => {
                // The best may never fit: no reason to leave the others.
                let fits = |chosen: &[SegmentId]| self.merge_fits(chosen, effort);
                let fitting = policy.choose_where(&candidates, fits).ok_or(refusal)?;
                (self.merge_these(&fitting, effort), fitting)
            }
            merged => (merged, chosen),
        };
        Ok(Some((merged?, chosen)))
    }

    /// Whether there is memory for a merge now.
    fn merge_fits(&self, chosen: &[SegmentId], effort: &Effort<'_>) -> bool {
        let view = self.view();
        let need = self.merge_need(&view, &sources(&view, chosen), effort);
        need.is_ok_and(|bytes| self.resources.admission.has_room(Purpose::Merge, bytes))
    }

    /// Seals the head, then merges until there are at most `segments` (at least 1), and none has dead rows if it is 1;
    /// without a limit to their size. Searches and writes go on meanwhile.
    ///
    /// # Errors
    /// What failed; all documents are where they were.
    pub fn force_merge(&self, segments: usize) -> Result<(), FlushError> {
        self.force_merge_with(segments, &Effort::of(self.resources.threads))
    }

    /// As [`force_merge`](Self::force_merge), with so much of the machine.
    ///
    /// # Errors
    /// As [`force_merge`](Self::force_merge), and if the effort ends before it is done.
    pub fn force_merge_with(&self, segments: usize, effort: &Effort<'_>) -> Result<(), FlushError> {
        self.flush_with(effort)?;
        let _sealing = self.sealing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all = self.candidates();
        let segments = segments.max(1);
        if all.len() <= segments && !(segments == 1 && all.iter().any(|one| one.live < 1.0)) {
            return Ok(());
        }
        // The smallest together: the least is written.
        all.sort_by_key(|one| one.bytes);
        let smallest: Vec<SegmentId> =
            all[..all.len().saturating_sub(segments) + 1].iter().map(|one| one.segment).collect();
        self.merge_these(&smallest, effort).map(|_| ())
    }

    /// The most memory that making one segment of all that are sealed takes besides what is held already, bytes.
    ///
    /// # Errors
    /// If they have more vectors than an index may have.
    pub fn predict_merge(&self) -> Result<u64, FlushError> {
        let view = self.view();
        let mut sources: Vec<&Part> =
            view.parts.iter().filter(|part| matches!(part.body, Body::Sealed(_))).collect();
        sources.sort_by_key(|part| std::cmp::Reverse(part.live()));
        let Some(first) = sources.first() else { return Ok(0) };
        let need = self.merge_need(&view, &sources, &Effort::of(self.resources.threads));
        need.map_err(|error| FlushError::Segment { segment: first.segment, error })
    }

    fn merge_need(&self, view: &View, sources: &[&Part], effort: &Effort<'_>) -> Result<u64, SegmentError> {
        let first = sources[0];
        let kept = view.mapping.schema().vectors().enumerate().map(|(field, (_, params))| {
            let kept = is_kept(first).then(|| segment::open_index(&*self.storage, first, field, params));
            kept.transpose()
        });
        let kept = kept.collect::<Result<Vec<_>, _>>()?;
        Ok(need::merge(&view.mapping, sources, &kept, effort.threads.workers())?)
    }

    /// The sealed segments by size.
    pub(super) fn candidates(&self) -> Vec<Candidate> {
        let view = self.view();
        let candidate = |part: &Part| {
            let Body::Sealed(sealed) = &part.body else { return None };
            let live = part.live() as f64 / part.rows().max(1) as f64;
            Some(Candidate { segment: part.segment, bytes: sealed.bytes, live })
        };
        view.parts.iter().filter_map(candidate).collect()
    }

    fn merge_these(&self, chosen: &[SegmentId], effort: &Effort<'_>) -> Result<SegmentId, FlushError> {
        let elapsed = || self.resources.pool.scheduler().elapsed();
        let (view, began) = (self.view(), elapsed());
        let sources = sources(&view, chosen);
        let segment = self.new_segment();
        if sources.iter().all(|part| part.live() == 0) {
            self.replace(segment, None, &sources)?;
            self.remove_all(&sources);
            self.work.merged(0, 0, elapsed() - began);
            return Ok(segment);
        }
        let bytes = self.merge_need(&view, &sources, effort);
        let bytes = bytes.map_err(|error| FlushError::Segment { segment, error })?;
        let admission = &self.resources.admission;
        let admitted = admission.admit_while(Purpose::Merge, bytes, PATIENCE, effort.proceed);
        let admitted = admitted.map_err(|refusal| {
            // Whoever stops it does not care why it waited.
            effort.check().map_or_else(|error| FlushError::Segment { segment, error }, |()| refusal.into())
        })?;
        let merged = self.merged(segment, &view.mapping, &sources, effort).map_err(|error| {
            // Best effort: what is left is removed when the table is opened.
            let _ = segment::remove(&*self.storage, segment);
            FlushError::Segment { segment, error }
        })?;
        drop(admitted);
        let (rows, bytes) = (merged.rows.len(), merged.bytes);
        self.replace(segment, Some(Arc::new(merged)), &sources)?;
        self.remove_all(&sources);
        self.work.merged(rows, bytes, elapsed() - began);
        Ok(segment)
    }

    /// Removes the files of segments that the manifest does not name any more.
    fn remove_all(&self, gone: &[&Part]) {
        for part in gone {
            // Best effort: what is left is removed when the table is opened. Whoever reads them still has them open.
            let _ = segment::remove(&*self.storage, part.segment);
        }
    }

    /// Writes the live rows of `sources`.
    fn merged(
        &self,
        segment: SegmentId,
        mapping: &Mapping,
        sources: &[&Part],
        effort: &Effort<'_>,
    ) -> Result<Sealed, SegmentError> {
        let live =
            |part: &Part| (0..part.rows() as u32).filter(|&row| part.is_alive(row)).collect::<Vec<u32>>();
        let live: Vec<Vec<u32>> = sources.iter().map(|part| live(part)).collect();
        let folder = segment::begin(&self.storage, segment)?;
        let mut of_vectors = Vec::new();
        // One after the other: none is held longer than it takes.
        for (field, (_, params)) in mapping.schema().vectors().enumerate() {
            effort.check()?;
            let (index, rows) = self.merged_vectors((field, params), sources, &live, effort)?;
            segment::write_index(&*self.storage, segment, field, &index)?;
            of_vectors.push(rows);
        }
        Sealed::write_documents(mapping, folder.clone(), sources, &live)?;
        let places =
            sources.iter().zip(&live).flat_map(|(part, rows)| rows.iter().map(move |&row| (part, row)));
        let mut rows = Vec::with_capacity(live.iter().map(Vec::len).sum());
        rows.extend(places.map(|(part, row)| Written {
            id: part.id(row),
            seq: part.seq(row),
            version: part.version(row),
        }));
        let asked = Asked::Told(&self.resources.admission);
        Sealed::finish(&self.storage, mapping, folder, segment, (&rows, &of_vectors), asked)
    }

    /// The vectors of a field in one index, and the new row of each.
    fn merged_vectors(
        &self,
        (field, params): (usize, &Params),
        sources: &[&Part],
        live: &[Vec<u32>],
        effort: &Effort<'_>,
    ) -> Result<(Index, Vec<u32>), SegmentError> {
        let bases =
            live.iter().scan(0, |base, rows| Some(std::mem::replace(base, *base + rows.len() as u32)));
        let bases: Vec<u32> = bases.collect();
        let path = folder(sources[0].segment).join(format!("vectors-{field}"));
        let failed = |what: String| SegmentError::Damaged { path: path.clone(), what };
        let keep = is_kept(sources[0]);
        let mut index = if keep {
            segment::open_index(&*self.storage, sources[0], field, params)?
        } else {
            Index::new(*params).map_err(AddError::from)?
        };
        // Vectors of live rows, in the order of their numbers, with their new rows.
        let of = |source: usize, number: i64| {
            let row = sources[source].row_of(field, number)?;
            let place = live[source].binary_search(&row).ok()?;
            Some((number, bases[source] + place as u32))
        };
        let alive: Vec<Vec<(i64, u32)>> = (0..sources.len())
            .map(|source| {
                sources[source].reader(field).ids().filter_map(|number| of(source, number)).collect()
            })
            .collect();
        let mut left: usize = alive.iter().skip(usize::from(keep)).map(Vec::len).sum();
        if keep {
            let dead: Vec<i64> =
                sources[0].reader(field).ids().filter(|&number| of(0, number).is_none()).collect();
            index.remove(&dead)?;
            let renumbered = index.renumber(left, &effort.threads, &mut |_, _| (effort.proceed)())?;
            debug_assert!(renumbered.iter().eq(alive[0].iter().map(|(number, _)| number)));
        }
        for (part, alive) in sources.iter().zip(&alive).skip(usize::from(keep)) {
            if !alive.is_empty() {
                // All at once: nothing is copied twice.
                index.reserve(left)?;
                left -= alive.len();
                let numbers: Vec<i64> = alive.iter().map(|(number, _)| *number).collect();
                let vectors: OwnedVectors =
                    part.reader(field).vectors(&numbers).map_err(|error| failed(error.to_string()))?;
                add_coded(&mut index, vectors.as_vectors(), effort)?;
            }
        }
        let rows = alive.into_iter().flatten().map(|(_, row)| row).collect();
        let with = coded(&index, params.code, &effort.threads)?;
        Ok((with.unwrap_or(index), rows))
    }

    /// Puts a merged segment in the place of its sources; what died of them meanwhile is dead in it.
    fn replace(
        &self,
        segment: SegmentId,
        merged: Option<Arc<Sealed>>,
        sources: &[&Part],
    ) -> Result<(), FlushError> {
        let mut writer = self.writer();
        let view = self.view();
        let mut deleted = Bits::default();
        let mut new_row = 0;
        for source in sources {
            let now = view.parts.iter().find(|part| part.segment == source.segment);
            for row in (0..source.rows() as u32).filter(|&row| source.is_alive(row)) {
                if now.is_none_or(|now| !now.is_alive(row)) {
                    deleted.insert(new_row);
                }
                new_row += 1;
            }
        }
        let gone = |part: &&Part| sources.iter().any(|source| source.segment == part.segment);
        let first = view.parts.iter().position(|part| gone(&part)).unwrap_or(0);
        let mut parts: Vec<Part> = view.parts.iter().filter(|part| !gone(part)).cloned().collect();
        if let Some(merged) = merged {
            let merged = merged.as_of(&self.storage, &view.mapping, segment);
            let merged = merged.map_err(|error| FlushError::Segment { segment, error })?;
            let part = Part::new(&view.mapping, segment, Body::Sealed(merged), deleted);
            parts.insert(first.min(parts.len() - 1), part);
        }
        self.record(&mut writer, parts, None)
    }
}
