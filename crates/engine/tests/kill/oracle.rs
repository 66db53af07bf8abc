//! What a table must hold after a kill, by what its victim reported.
//!
//! Sequence numbers give the order of writes. A document is what the last acknowledged write left, or what one that was
//! never acknowledged left after it; of a call that was cut off a prefix is there. Where nothing was cut off, versions,
//! outcomes and conditions are followed exactly.

use crate::report::{Condition, Done, Item};
use crate::token::Found;
use std::collections::{BTreeMap, HashMap};

/// An acknowledged write.
#[derive(Clone, Debug)]
struct Acknowledged {
    item: Item,
    seq: u64,
    version: u64,
    created: bool,
}

/// What is known of a table.
#[derive(Debug, Default)]
pub(crate) struct Oracle {
    /// Documents as they were after the last look, and are for sure.
    base: BTreeMap<String, Found>,
    /// Acknowledged since then, by id.
    acknowledged: HashMap<String, Vec<Acknowledged>>,
    /// Calls whose end was never heard of.
    cut: Vec<Vec<Item>>,
    /// Calls under way, by thread.
    under_way: HashMap<usize, Vec<Item>>,
    /// The largest number that was acknowledged before this process, and ever.
    before: u64,
    last: u64,
}

impl Oracle {
    pub(crate) fn begin(&mut self, thread: usize, items: Vec<Item>) {
        self.under_way.insert(thread, items);
    }

    pub(crate) fn end(&mut self, thread: usize, done: Vec<Done>) -> Result<usize, String> {
        let items = self.under_way.remove(&thread).ok_or("an end without a beginning")?;
        let mut count = 0;
        for (item, done) in items.into_iter().zip(done) {
            let (seq, version, created) = match done {
                Done::Written { seq, version, created } => (seq, version, created),
                Done::Deleted { seq, version } => (seq, version, false),
                Done::Nothing => continue,
            };
            if seq <= self.before {
                return Err(format!("{item:?} has number {seq}, which was given before"));
            }
            self.last = self.last.max(seq);
            count += 1;
            let of_id = self.acknowledged.entry(item.id.clone()).or_default();
            of_id.push(Acknowledged { item, seq, version, created });
        }
        Ok(count)
    }

    /// The process is gone. Says how many writes it had begun and never acknowledged.
    pub(crate) fn killed(&mut self) -> usize {
        let cut = self.under_way.drain().map(|(_, items)| items);
        let before = self.cut.len();
        self.cut.extend(cut);
        self.before = self.last;
        self.cut[before..].iter().map(Vec::len).sum()
    }

    /// Compares with what was found after a kill, which is what is known from now on. Says how many writes are there that
    /// were never acknowledged.
    pub(crate) fn look(&mut self, found: BTreeMap<String, Found>) -> Result<usize, String> {
        let mut survived = 0;
        let mut seqs = HashMap::new();
        for acknowledged in self.acknowledged.values().flatten() {
            if let Some(other) = seqs.insert(acknowledged.seq, &acknowledged.item) {
                return Err(format!("{other:?} and {:?} have one number", acknowledged.item));
            }
        }
        for id in crate::ids() {
            let now = found.get(&id);
            let (last, sure) = self.followed(&id)?;
            if now == last.as_ref() {
                continue;
            }
            let at = last.map_or(0, |last| last.seq);
            let lost = || format!("{id} is {now:?}; acknowledged: {:?}", self.acknowledged.get(&id));
            if sure {
                return Err(lost());
            }
            let mut cut = self.cut.iter().flatten().filter(|item| item.id == id);
            let fine = match now {
                None => cut.any(|item| item.put.is_none()),
                Some(now) => {
                    survived += 1;
                    let after = now.seq > self.last_of(&id).max(at);
                    let item = cut.find(|item| item.put == Some(now.token));
                    let version = match item.map(|item| item.when) {
                        None => false,
                        Some(Condition::Absent) => now.version == 1,
                        Some(Condition::Seq(seq)) => {
                            last.is_none_or(|last| last.seq != seq || now.version == last.version + 1)
                        }
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
        *self = Oracle { base: found, before: self.last, last: self.last, ..Oracle::default() };
        Ok(survived)
    }

    fn last_of(&self, id: &str) -> u64 {
        self.acknowledged.get(id).into_iter().flatten().map(|one| one.seq).max().unwrap_or(0)
    }

    /// Follows what was acknowledged of a document: what it is then, and whether nothing else may have come between.
    fn followed(&self, id: &str) -> Result<(Option<Found>, bool), String> {
        let sure = !self.cut.iter().flatten().any(|item| item.id == id);
        let mut now = self.base.get(id).copied();
        let mut all: Vec<&Acknowledged> = self.acknowledged.get(id).into_iter().flatten().collect();
        all.sort_by_key(|one| one.seq);
        for Acknowledged { item, seq, version, created } in all {
            let expected = now.map_or(1, |now| now.version + 1);
            let held = match item.when {
                Condition::Always => true,
                Condition::Absent => now.is_none(),
                Condition::Seq(seq) => now.is_some_and(|now| now.seq == seq),
            };
            let told = item.put.is_none() || *created == now.is_none();
            let there = item.put.is_some() || now.is_some();
            if sure && !(expected == *version && held && told && there) {
                return Err(format!(
                    "{item:?} has number {seq}, version {version}, created {created}, after {now:?}"
                ));
            }
            now = item.put.map(|token| Found { token, seq: *seq, version: *version });
        }
        Ok((now, sure))
    }

    /// Where a write of a call that was cut off is there, those before it in the call are too, unless they were written
    /// over or had conditions.
    fn prefixes(&self, found: &BTreeMap<String, Found>) -> Result<(), String> {
        for call in &self.cut {
            let there = |item: &Item| {
                let now = found.get(&item.id)?;
                (item.put == Some(now.token)).then_some(now.seq)
            };
            let Some((last, seq)) = (0..).zip(call).filter_map(|(at, i)| Some((at, there(i)?))).last() else {
                continue;
            };
            for (at, item) in call[..last].iter().enumerate() {
                let others = self.cut.iter().flatten().filter(|other| other.id == item.id).count() > 1;
                let over = self.last_of(&item.id) > seq.saturating_sub((last - at) as u64);
                let plain = item.put.is_some() && item.when == Condition::Always;
                if plain && !others && !over && there(item).is_none() {
                    return Err(format!("of {call:?} write {last} is there, write {at} is not: {found:?}"));
                }
            }
        }
        Ok(())
    }
}
