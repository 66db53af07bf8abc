//! Sealing: the head becomes a segment, the manifest says so, and the log begins anew.

use super::bits::Bits;
use super::effort::Effort;
use super::head::Head;
use super::memory::{Asked, HeadMemory};
use super::need::{self, HeadNeed};
use super::segment::{self, Sealed, SegmentError, SegmentId, folder};
use super::settings::{Settings, SettingsError};
use super::state::Listed;
use super::table::{Table, Writer};
use super::view::{Body, Part, View};
use crate::{Admission, Refusal};
use lanewise_index::{AddError, CreateError, Executor, Kind};
use lanewise_storage::Fault;
use lanewise_storage::fault::planted;
use lanewise_storage::log::AppendError;
use lanewise_storage::manifest::ReplaceError;
use std::collections::HashMap;
use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

/// Vectors in graphs or lists of a head that is sealed before its table is closed: to build so many anew takes about a second.
const BUILT_ANEW: usize = 4096;

/// Why the head could not be sealed. All documents are where they were.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum FlushError {
    #[error("the table takes no writes: {why}; open it again")]
    Failed { why: String },
    #[error(transparent)]
    Log(#[from] AppendError),
    #[error(transparent)]
    Index(#[from] CreateError),
    #[error("segment {}: {error}", segment.0)]
    Segment { segment: SegmentId, error: SegmentError },
    #[error(transparent)]
    Manifest(#[from] ReplaceError),
    #[error("old files of the log: {0}")]
    OldLog(io::Error),
    #[error(transparent)]
    Settings(#[from] SettingsError),
    #[error(transparent)]
    Refused(#[from] Refusal),
}

/// What sealing takes, until this goes: then the head has what it needs for itself.
struct SealingMemory {
    memory: Arc<HeadMemory>,
    admission: Arc<Admission>,
    own: HeadNeed,
}

impl Drop for SealingMemory {
    fn drop(&mut self) {
        self.memory.settle(&self.admission, self.own);
    }
}

impl Table {
    /// Seals the head: all that was written so far is in segments then, and the log begins anew. Searches and writes go on
    /// meanwhile. Nothing happens if nothing was written.
    ///
    /// # Errors
    /// What failed; all documents are where they were.
    pub fn flush(&self) -> Result<(), FlushError> {
        self.flush_with(&Effort::of(self.resources.threads))
    }

    /// As [`flush`](Self::flush), with so much of the machine.
    ///
    /// # Errors
    /// As [`flush`](Self::flush), and if the effort ends before it is done.
    pub fn flush_with(&self, effort: &Effort<'_>) -> Result<(), FlushError> {
        let _sealing = self.sealing.lock().unwrap_or_else(PoisonError::into_inner);
        let (through, _asked) = {
            let mut writer = self.writer();
            // Before anything changes: whoever is refused tries again, and nothing should pile up.
            let asked = self.ask_to_seal(effort)?;
            (self.freeze_as(&mut writer)?, asked)
        };
        let Some(through) = through else { return Ok(()) };
        let elapsed = || self.resources.pool.scheduler().elapsed();
        let (view, began) = (self.view(), elapsed());
        let mapping = &view.mapping;
        let (_, frozen) = view.parts.split_last().expect("there is always a head");
        let mut written = Vec::new();
        for part in frozen {
            let Body::Head(head) = &part.body else { continue };
            let segment = part.segment;
            let clean = || segment::remove(&*self.storage, segment);
            let sealed =
                clean().map_err(|error| SegmentError::Io { path: folder(segment), error }).and_then(|()| {
                    let from = (head, &part.deleted);
                    let asked = Asked::Told(&self.resources.admission);
                    Sealed::write(&self.storage, mapping, segment, from, effort, asked)
                });
            match sealed {
                Ok(sealed) => written.push((segment, Arc::new(sealed))),
                Err(error) => {
                    // Best effort: what is left is removed when the table is opened.
                    let _ = clean();
                    return Err(FlushError::Segment { segment, error });
                }
            }
        }
        if planted(Fault::LogDroppedEarly) {
            let _ = self.log.drop_through(through);
        }
        self.install(&written, through)?;
        self.work.flushed(elapsed() - began);
        self.log.drop_through(through).map(|_| ()).map_err(FlushError::OldLog)
    }

    /// Seals the head if the next opening would have to build much of it anew: for when the table will be dropped.
    ///
    /// # Errors
    /// As [`flush_with`](Self::flush_with).
    pub fn seal_large(&self, effort: &Effort<'_>) -> Result<(), FlushError> {
        let view = self.view();
        let built = |part: &Part| match &part.body {
            Body::Head(head) => head
                .vectors
                .iter()
                .zip(view.mapping.schema().vectors())
                .fold(0, |built, (of, (_, params))| {
                    built + if params.kind == Kind::Flat { 0 } else { of.rows.len() }
                }),
            Body::Sealed(_) => 0,
        };
        let built: usize = view.parts.iter().map(built).sum();
        if built < BUILT_ANEW { Ok(()) } else { self.flush_with(effort) }
    }

    /// The most memory that [`flush`](Self::flush) takes besides what is held already, bytes.
    ///
    /// # Errors
    /// If the head has more vectors than an index may have.
    pub fn predict_flush(&self) -> Result<u64, FlushError> {
        self.predict_flush_with(&Effort::of(self.resources.threads))
    }

    fn predict_flush_with(&self, effort: &Effort<'_>) -> Result<u64, FlushError> {
        Ok(self.seal_need(effort)?.map_or(0, |(_, _, bytes)| bytes))
    }

    /// The head that takes most to be sealed, what it holds, and that most.
    fn seal_need(&self, effort: &Effort<'_>) -> Result<Option<(Arc<HeadMemory>, HeadNeed, u64)>, FlushError> {
        let (view, workers) = (self.view(), effort.threads.workers());
        let need = |part: &Part| {
            let Body::Head(head) = &part.body else { return None };
            let own = need::head(&view.mapping, head, workers);
            let need =
                own.and_then(|own| Ok((head.memory.clone(), own, need::seal(&view.mapping, head, workers)?)));
            let at = |error: AddError| FlushError::Segment { segment: part.segment, error: error.into() };
            (part.rows() > 0).then(|| need.map_err(at))
        };
        let needs = view.parts.iter().filter_map(need).collect::<Result<Vec<_>, _>>()?;
        // One after the other.
        Ok(needs.into_iter().max_by_key(|(_, _, bytes)| *bytes))
    }

    /// Asks for what sealing takes beside what the heads have for it. To be called by who holds the writer.
    fn ask_to_seal(&self, effort: &Effort<'_>) -> Result<Option<SealingMemory>, FlushError> {
        let Some((memory, own, bytes)) = self.seal_need(effort)? else { return Ok(None) };
        let admission = self.resources.admission.clone();
        memory.ask_to_seal(&admission, bytes)?;
        Ok(Some(SealingMemory { memory, admission, own }))
    }

    /// Puts a new head behind the present one, if that holds anything; the last record that the others hold. `None` if
    /// the manifest says all there is. To be called by who holds the writer.
    pub(super) fn freeze_as(&self, writer: &mut Writer) -> Result<Option<u64>, FlushError> {
        if let Some(why) = &writer.failed {
            return Err(FlushError::Failed { why: why.clone() });
        }
        let view = self.view();
        if view.parts.last().is_none_or(|head| head.rows() == 0) && writer.state.replay_from > self.log.last()
        {
            return Ok(None);
        }
        self.log.rotate()?;
        let segment = SegmentId(writer.state.next_segment);
        writer.state.next_segment += 1;
        let mapping = &view.mapping;
        let head = Part::new(mapping, segment, Body::Head(Head::new(mapping)?), Bits::default());
        let parts = view.parts.iter().filter(|part| part.live() > 0).cloned().chain([head]);
        self.show(parts.collect());
        Ok(Some(self.log.last()))
    }

    /// Makes segments that were written the table's own, and removes the files of those that died as a whole.
    fn install(&self, written: &[(SegmentId, Arc<Sealed>)], through: u64) -> Result<(), FlushError> {
        let mut writer = self.writer();
        let view = self.view();
        let mut parts = view.parts.clone();
        for part in &mut parts {
            if let Some((segment, sealed)) = written.iter().find(|(segment, _)| *segment == part.segment) {
                let sealed = sealed.clone().as_of(&self.storage, &view.mapping, *segment);
                let sealed = sealed.map_err(|error| FlushError::Segment { segment: *segment, error })?;
                part.body = Body::Sealed(sealed);
            }
        }
        let listed = writer.state.segments.iter().map(|listed| listed.segment);
        let gone: Vec<SegmentId> =
            listed.filter(|listed| parts.iter().all(|part| part.segment != *listed)).collect();
        self.record(&mut writer, parts, Some(through))?;
        for segment in gone {
            // Best effort, as after merges.
            let _ = segment::remove(&*self.storage, segment);
        }
        Ok(())
    }

    /// A number for a segment.
    pub(super) fn new_segment(&self) -> SegmentId {
        let mut writer = self.writer();
        writer.state.next_segment += 1;
        SegmentId(writer.state.next_segment - 1)
    }

    /// Makes the manifest say what `parts` are, the heads but, and shows them. `through` is the last record that the log
    /// is not needed for, if that changed.
    pub(super) fn record(
        &self,
        writer: &mut Writer,
        parts: Vec<Part>,
        through: Option<u64>,
    ) -> Result<(), FlushError> {
        let stale = self.commit(writer, &parts, through)?;
        self.show(parts);
        self.remove_stale(stale);
        Ok(())
    }

    /// Makes the manifest say what `parts` are; the bitmaps that nobody needs any more, once they are shown.
    pub(super) fn commit(
        &self,
        writer: &mut Writer,
        parts: &[Part],
        through: Option<u64>,
    ) -> Result<Vec<(SegmentId, u64)>, FlushError> {
        if let Some(why) = &writer.failed {
            return Err(FlushError::Failed { why: why.clone() });
        }
        // What died goes from the manifest, or with a merge: what took its place must not be lost after that.
        if !planted(Fault::DiedBeforeLogged) {
            self.log.sync_all().map_err(|poisoned| FlushError::Log(poisoned.into()))?;
        }
        let generation = writer.generation + 1;
        let mut state = writer.state.clone();
        state.segments = Vec::new();
        state.replay_from = through.map_or(state.replay_from, |through| through + 1);
        state.replay_from += u64::from(planted(Fault::ReplayedTooLate));
        let mut durable = HashMap::new();
        let mut stale = Vec::new();
        for Part { segment, body, deleted, .. } in parts {
            let Body::Sealed(sealed) = body else { continue };
            let before = writer.state.segments.iter().find(|listed| listed.segment == *segment);
            let known = writer.durable.get(segment);
            let file = match (known, before) {
                (Some(known), Some(before)) if known == deleted => before.deleted,
                _ if deleted.count() == 0 || planted(Fault::TombstonesLost) => None,
                _ => {
                    let done = sealed.write_deleted(&*self.storage, *segment, generation, deleted);
                    done.map_err(|error| FlushError::Segment { segment: *segment, error })?;
                    stale.extend(before.and_then(|before| Some((*segment, before.deleted?))));
                    Some(generation)
                }
            };
            state.segments.push(Listed { segment: *segment, deleted: file });
            durable.insert(*segment, deleted.clone());
        }
        match state.replace(&*self.storage, writer.generation) {
            Ok(generation) => writer.generation = generation,
            Err(ReplaceError::Unsure(error)) => {
                writer.failed = Some(format!("whether the manifest was replaced is unknown: {error}"));
                return Err(ReplaceError::Unsure(error).into());
            }
            Err(error) => return Err(error.into()),
        }
        (writer.state, writer.durable) = (state, durable);
        // Relaxed: upkeep looks again.
        self.replay_from.store(writer.state.replay_from, Ordering::Relaxed);
        Ok(stale)
    }

    /// Shows segments, of which the manifest knows those that are sealed.
    pub(super) fn show(&self, parts: Vec<Part>) {
        let before = self.view();
        self.settle(&before.parts, &parts);
        self.publish(View { mapping: before.mapping.clone(), parts });
    }

    pub(super) fn remove_stale(&self, stale: Vec<(SegmentId, u64)>) {
        for (segment, generation) in stale {
            // Best effort: a bitmap that nobody reads.
            let _ = self.storage.remove(&segment::deleted(segment, generation));
        }
    }

    /// Changes the settings, durably.
    ///
    /// # Errors
    /// If one is out of range, or the manifest cannot be replaced: they are as they were then.
    pub fn set_settings(&self, settings: Settings) -> Result<(), FlushError> {
        settings.check()?;
        let mut writer = self.writer();
        let before = std::mem::replace(&mut writer.state.settings, settings);
        let parts = self.view().parts.clone();
        let recorded = self.record(&mut writer, parts, None);
        if recorded.is_err() {
            writer.state.settings = before;
        } else {
            self.settings.store(Arc::new(writer.state.settings.clone()));
        }
        recorded
    }
}
