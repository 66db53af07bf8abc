//! What a table must hold after a kill, by what its victim reported.
//!
//! Sequence numbers give the order of writes. A document is what the last acknowledged write left, or what one that was
//! never acknowledged left after it; of a call that was cut off a prefix is there, of a load all or nothing. Where nothing
//! was cut off, versions, outcomes and conditions are followed exactly.
//!
//! A snapshot is a table like any other, of which only what came before its last number is known.

use crate::report::{Condition, Done, Item};
use crate::token::Found;
use std::collections::{BTreeMap, HashMap, HashSet};

/// An acknowledged write.
#[derive(Clone, Debug)]
struct Acknowledged {
    begun: usize,
    item: Item,
    seq: u64,
    /// The version, and whether it was created; a load does not say.
    told: Option<(u64, bool)>,
}

/// A call under way, or one whose end was never heard of.
#[derive(Clone, Debug)]
struct Call {
    begun: usize,
    items: Vec<Item>,
    /// A load, which is there as a whole or not at all.
    whole: bool,
}

/// A snapshot that was begun.
#[derive(Clone, Debug)]
pub(crate) struct Saved {
    pub(crate) name: String,
    /// Whether its end was heard of.
    pub(crate) done: bool,
    /// The largest number acknowledged before.
    from: u64,
    /// How many calls had begun when it ended.
    begun: usize,
}

/// What is known of a table.
#[derive(Clone, Debug, Default)]
pub(crate) struct Oracle {
    /// Documents as they were after the last look, and are for sure.
    base: BTreeMap<String, Found>,
    /// Acknowledged since then, by id.
    acknowledged: HashMap<String, Vec<Acknowledged>>,
    /// Their numbers.
    seqs: HashSet<u64>,
    /// Calls whose end was never heard of.
    cut: Vec<Call>,
    /// Calls under way, by thread.
    under_way: HashMap<usize, Call>,
    /// Calls that have begun.
    begun: usize,
    /// Snapshots, and the one under way, since the last look.
    saved: Vec<Saved>,
    saving: Option<Saved>,
    /// The largest number that was acknowledged before this process, and ever.
    before: u64,
    last: u64,
}

impl Oracle {
    pub(crate) fn begin(&mut self, thread: usize, items: Vec<Item>, whole: bool) {
        self.begun += 1;
        self.under_way.insert(thread, Call { begun: self.begun, items, whole });
    }

    pub(crate) fn end(&mut self, thread: usize, done: Vec<Done>) -> Result<usize, String> {
        let Call { begun, items, .. } = self.under_way.remove(&thread).ok_or("an end without a beginning")?;
        let mut count = 0;
        for (item, done) in items.into_iter().zip(done) {
            let (seq, told) = match done {
                Done::Written { seq, version, created } => (seq, (version, created)),
                Done::Deleted { seq, version } => (seq, (version, false)),
                Done::Nothing => continue,
            };
            self.number(seq)?;
            count += 1;
            let of_id = self.acknowledged.entry(item.id.clone()).or_default();
            of_id.push(Acknowledged { begun, item, seq, told: Some(told) });
        }
        Ok(count)
    }

    pub(crate) fn loaded(&mut self, thread: usize, seq: u64) -> Result<usize, String> {
        let Call { begun, items, .. } = self.under_way.remove(&thread).ok_or("an end without a beginning")?;
        self.number(seq)?;
        let count = items.len();
        for item in items {
            let of_id = self.acknowledged.entry(item.id.clone()).or_default();
            of_id.push(Acknowledged { begun, item, seq, told: None });
        }
        Ok(count)
    }

    fn number(&mut self, seq: u64) -> Result<(), String> {
        if seq <= self.before || !self.seqs.insert(seq) {
            return Err(format!("number {seq} is given twice"));
        }
        self.last = self.last.max(seq);
        Ok(())
    }

    pub(crate) fn save(&mut self, name: String) {
        self.saving = Some(Saved { name, done: false, from: self.last, begun: 0 });
    }

    pub(crate) fn saved(&mut self, done: bool) {
        let begun = self.begun;
        self.saved.extend(self.saving.take().map(|saving| Saved { done, begun, ..saving }));
    }

    /// The process is gone. Says how many writes it had begun and never acknowledged.
    pub(crate) fn killed(&mut self) -> usize {
        let calls = self.cut.len();
        self.cut.extend(self.under_way.drain().map(|(_, call)| call));
        self.saved(false);
        self.before = self.last;
        self.cut[calls..].iter().map(|call| call.items.len()).sum()
    }

    /// Snapshots since the last look; not those that were cut off and are not there.
    pub(crate) fn snapshots(&mut self) -> Vec<Saved> {
        std::mem::take(&mut self.saved)
    }

    /// Compares a snapshot, whose last write had the number `last`, with what the table was between the beginning of the
    /// call and its end.
    pub(crate) fn look_at(
        &self,
        saved: &Saved,
        last: u64,
        found: &BTreeMap<String, Found>,
    ) -> Result<(), String> {
        if last < saved.from || found.values().any(|found| found.seq > last) {
            return Err(format!("it ends at {last}; acknowledged before: {}; {found:?}", saved.from));
        }
        let mut then = self.clone();
        let before = |begun: usize| begun <= saved.begun;
        for of_id in then.acknowledged.values_mut() {
            of_id.retain(|one| before(one.begun) && one.seq <= last);
        }
        then.cut.retain(|call| before(call.begun));
        then.look(found.clone()).map(|_| ())
    }

    /// Compares with what was found after a kill, which is what is known from now on. Says how many writes are there that
    /// were never acknowledged.
    pub(crate) fn look(&mut self, found: BTreeMap<String, Found>) -> Result<usize, String> {
        let mut survived = 0;
        for id in crate::all_ids() {
            let now = found.get(&id);
            let (last, sure) = self.followed(&id)?;
            let told = sure || self.last_of(&id).is_none_or(|one| one.told.is_some());
            let write = |found: &Found| (found.token, found.seq);
            if now == last.as_ref() || !told && now.map(write) == last.as_ref().map(write) {
                continue;
            }
            let at = last.map_or(0, |last| last.seq);
            let lost = || format!("{id} is {now:?}; acknowledged: {:?}", self.acknowledged.get(&id));
            if sure {
                return Err(lost());
            }
            let mut cut = self.cut_items().filter(|item| item.id == id);
            let fine = match now {
                None => cut.any(|item| item.put.is_none()),
                Some(now) => {
                    survived += 1;
                    let after = now.seq > self.last_of(&id).map_or(at, |one| one.seq);
                    let item = cut.find(|item| item.put == Some(now.token));
                    let version = match item.map(|item| item.when) {
                        None => false,
                        Some(Condition::Absent) => now.version == 1,
                        Some(Condition::Seq(seq)) => last
                            .is_none_or(|last| last.seq != seq || !told || now.version == last.version + 1),
                        Some(Condition::Always) => now.version > 0,
                    };
                    after && version
                }
            };
            if !fine {
                return Err(format!("{}; cut off: {:?}", lost(), self.cut));
            }
        }
        self.prefixes(&found)?;
        self.last = found.values().map(|found| found.seq).fold(self.last, u64::max);
        let (last, begun) = (self.last, self.begun);
        *self = Oracle { base: found, before: last, last, begun, ..Oracle::default() };
        Ok(survived)
    }

    fn cut_items(&self) -> impl Iterator<Item = &Item> {
        self.cut.iter().flat_map(|call| &call.items)
    }

    fn last_of(&self, id: &str) -> Option<&Acknowledged> {
        self.acknowledged.get(id)?.iter().max_by_key(|one| one.seq)
    }

    /// Follows what was acknowledged of a document: what it is then, and whether nothing else may have come between.
    fn followed(&self, id: &str) -> Result<(Option<Found>, bool), String> {
        let sure = !self.cut_items().any(|item| item.id == id);
        let mut now = self.base.get(id).copied();
        let mut all: Vec<&Acknowledged> = self.acknowledged.get(id).into_iter().flatten().collect();
        all.sort_by_key(|one| one.seq);
        for Acknowledged { item, seq, told, .. } in all {
            let expected = now.map_or(1, |now| now.version + 1);
            let (version, created) = told.unwrap_or((expected, now.is_none()));
            let held = match item.when {
                Condition::Always => true,
                Condition::Absent => now.is_none(),
                Condition::Seq(seq) => now.is_some_and(|now| now.seq == seq),
            };
            let created_it = item.put.is_none() || created == now.is_none();
            let there = item.put.is_some() || now.is_some();
            if sure && !(expected == version && held && created_it && there) {
                return Err(format!(
                    "{item:?} has number {seq}, version {version}, created {created}, after {now:?}"
                ));
            }
            now = item.put.map(|token| Found { token, seq: *seq, version });
        }
        Ok((now, sure))
    }

    /// Where a write of a call that was cut off is there, those before it in the call are too (of a load, all others),
    /// unless they were written over or had conditions.
    fn prefixes(&self, found: &BTreeMap<String, Found>) -> Result<(), String> {
        for call in &self.cut {
            let there = |item: &Item| {
                let now = found.get(&item.id)?;
                (item.put == Some(now.token)).then_some(now.seq)
            };
            let found_of = (0..).zip(&call.items).filter_map(|(at, item)| Some((at, there(item)?)));
            let Some((last, seq)) = found_of.last() else { continue };
            let expected = if call.whole { call.items.len() } else { last };
            for (at, item) in call.items[..expected].iter().enumerate() {
                let of_this = if call.whole { seq } else { seq.saturating_sub((last - at) as u64) };
                let deleted = |other: &Item| other.id == item.id && other.put.is_none();
                let after = match found.get(&item.id) {
                    Some(now) => now.seq >= of_this,
                    None => {
                        self.last_of(&item.id).is_some_and(|one| one.seq > of_this)
                            || self.cut_items().any(deleted)
                    }
                };
                let plain = item.put.is_some() && item.when == Condition::Always;
                if plain && !after {
                    return Err(format!("of {call:?} write {last} is there, write {at} is not: {found:?}"));
                }
            }
        }
        Ok(())
    }
}
