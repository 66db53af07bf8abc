//! Whether what several threads saw of a table could have been seen one after the other (Herlihy and Wing,
//! "Linearizability", 1990).
//!
//! Sequence numbers say in which order writes were done, so that nothing has to be guessed: writes are replayed in that
//! order, and what each says must follow. A read saw the table after some write, its place: at least the last that ended
//! before the read began, no write that began after it ended, and no earlier one than a read that ended before. Reads
//! are taken by their beginnings and given the first place that fits, which leaves the others the most.

use crate::token::{Found, GROUPS};
use std::collections::{BTreeMap, BTreeSet};

/// A table after some write.
pub(crate) type State = BTreeMap<String, Found>;

/// A write that was asked for.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) id: String,
    /// The document, or that it is to be deleted.
    pub(crate) put: Option<u64>,
    pub(crate) when: Condition,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Condition {
    Always,
    Absent,
    Seq(u64),
}

/// What a call said.
#[derive(Clone, Debug)]
pub(crate) enum Saw {
    Wrote {
        asked: Asked,
        seq: u64,
        version: u64,
        created: bool,
    },
    /// The condition did not hold, by the number of the write that it met.
    Conflict {
        asked: Asked,
        met: Option<u64>,
    },
    Missing {
        id: String,
    },
    Got {
        id: String,
        found: Option<Found>,
    },
    /// All documents of a group (or of all), by id and number; of those with a vector, or of all.
    Listed {
        group: Option<u64>,
        vectors: bool,
        found: BTreeSet<(String, u64)>,
    },
    Counted(usize),
}

/// A call, with the moments (of one counter) before and after it.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) saw: Saw,
}

/// Checks a history that begins with an empty table. Says how many reads had more than one place to choose from, and what
/// the table is in the end.
pub(crate) fn check(events: &[Event]) -> Result<(usize, State), String> {
    let (writes, mut states) = replayed(events)?;
    // The last write that ended before a moment, and the first that began after one, by place.
    let ended = |moment: u64| writes.iter().rposition(|w| w.end < moment).map_or(0, |at| at + 1);
    let begun = |moment: u64| writes.iter().position(|w| w.start > moment).unwrap_or(writes.len());
    let mut reads: Vec<&Event> =
        events.iter().filter(|event| !matches!(event.saw, Saw::Wrote { .. })).collect();
    reads.sort_by_key(|read| read.start);
    // The ends of reads before, with their places.
    let mut placed: Vec<(u64, usize)> = Vec::new();
    let mut open = 0;
    for read in reads {
        let before = placed.iter().filter(|(end, _)| *end < read.start).map(|(_, place)| *place);
        let (first, last) = (before.fold(ended(read.start), usize::max), begun(read.end));
        open += usize::from(last > first);
        let Some(place) = (first..=last).find(|&place| fits(&read.saw, &states[place])) else {
            let between: Vec<&Event> = writes[first.min(last)..last].to_vec();
            return Err(format!(
                "{read:?} fits no place from {first} to {last}: {:?}, then {between:?}",
                states[first]
            ));
        };
        placed.push((read.end, place));
    }
    Ok((open, states.pop().expect("the first")))
}

/// The writes in their order, and the table before and after each.
fn replayed(events: &[Event]) -> Result<(Vec<&Event>, Vec<State>), String> {
    let number = |event: &Event| match event.saw {
        Saw::Wrote { seq, .. } => Some(seq),
        _ => None,
    };
    let mut writes: Vec<&Event> = events.iter().filter(|event| number(event).is_some()).collect();
    writes.sort_by_key(|event| number(event));
    let mut latest = 0;
    for pair in writes.windows(2) {
        latest = latest.max(pair[0].start);
        if number(pair[0]) == number(pair[1]) || pair[1].end < latest {
            return Err(format!("{:?} comes after {:?} or a later one", pair[1], pair[0]));
        }
    }
    let mut states = vec![State::new()];
    for event in &writes {
        let Saw::Wrote { asked, seq, version, created } = &event.saw else { unreachable!("a write") };
        let mut state = states.last().expect("the first").clone();
        let before = state.get(&asked.id);
        let held = holds(asked.when, before);
        let told = if asked.put.is_some() { *created == before.is_none() } else { before.is_some() };
        if !held || !told || *version != before.map_or(1, |before| before.version + 1) {
            return Err(format!("{event:?} does not follow {before:?}"));
        }
        match asked.put {
            Some(token) => state.insert(asked.id.clone(), Found { token, seq: *seq, version: *version }),
            None => state.remove(&asked.id),
        };
        states.push(state);
    }
    Ok((writes, states))
}

fn holds(when: Condition, now: Option<&Found>) -> bool {
    match when {
        Condition::Always => true,
        Condition::Absent => now.is_none(),
        Condition::Seq(seq) => now.is_some_and(|now| now.seq == seq),
    }
}

/// Whether a read may have seen this.
fn fits(saw: &Saw, state: &State) -> bool {
    match saw {
        Saw::Wrote { .. } => unreachable!("no read"),
        Saw::Conflict { asked, met } => {
            let now = state.get(&asked.id);
            !holds(asked.when, now) && now.map(|now| now.seq) == *met
        }
        Saw::Missing { id } => !state.contains_key(id),
        Saw::Got { id, found } => state.get(id) == found.as_ref(),
        Saw::Listed { group, vectors, found } => {
            let of = |now: &Found| {
                group.is_none_or(|group| now.token % GROUPS == group)
                    && (!vectors || crate::token::vector(now.token).is_some())
            };
            let expected = state.iter().filter(|(_, now)| of(now));
            expected.map(|(id, now)| (id.clone(), now.seq)).eq(found.iter().cloned())
        }
        Saw::Counted(len) => state.len() == *len,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrote(start: u64, end: u64, put: Option<u64>, seq: u64, version: u64, created: bool) -> Event {
        let asked = Asked { id: "a".to_owned(), put, when: Condition::Always };
        Event { start, end, saw: Saw::Wrote { asked, seq, version, created } }
    }

    fn got(start: u64, end: u64, found: Option<(u64, u64, u64)>) -> Event {
        let found = found.map(|(token, seq, version)| Found { token, seq, version });
        Event { start, end, saw: Saw::Got { id: "a".to_owned(), found } }
    }

    /// Two writes of one document, the second from moment 3 to moment 10, and reads around it.
    #[test]
    fn histories_that_no_order_explains_are_refused() {
        let writes = [wrote(1, 2, Some(7), 1, 1, true), wrote(3, 10, Some(8), 2, 2, false)];
        let (old, new) = (Some((7, 1, 1)), Some((8, 2, 2)));
        let with = |reads: &[Event]| check(&[&writes[..], reads].concat());
        assert_eq!(with(&[got(4, 5, old), got(6, 7, new)]).unwrap().0, 2);
        assert!(with(&[got(4, 6, new), got(5, 7, old)]).is_ok(), "they overlap");
        assert!(with(&[got(4, 5, new), got(6, 7, old)]).is_err(), "back in time");
        assert!(with(&[got(11, 12, old)]).is_err(), "older than what was acknowledged");
        assert!(with(&[got(4, 5, None)]).is_err(), "gone");
        assert!(with(&[got(4, 5, Some((8, 2, 1)))]).is_err(), "a version that it never had");
        assert!(with(&[Event { start: 4, end: 5, saw: Saw::Counted(2) }]).is_err(), "both at once");
        assert!(check(&[writes[0].clone(), wrote(3, 4, Some(8), 2, 1, true)]).is_err(), "created twice");
        assert!(
            check(&[wrote(3, 4, Some(7), 1, 1, true), wrote(1, 2, Some(8), 2, 2, false)]).is_err(),
            "by numbers against time"
        );
        let mut on_condition = writes[1].clone();
        if let Saw::Wrote { asked, .. } = &mut on_condition.saw {
            asked.when = Condition::Absent;
        }
        assert!(check(&[writes[0].clone(), on_condition]).is_err(), "a condition that did not hold");
    }
}
