//! Grouped search: the vectors nearest to a query, but at most so many of each group (the passages of a document, the
//! pictures of a product).
//!
//! First which groups: more and more of the nearest are looked for, each time four times as many, until they are of enough
//! groups. Then, if there may be several of a group, their members: a group of which too few are among the nearest is
//! searched by itself, since the others may be anywhere. That takes the group of every vector, once for a call.

use crate::error::SearchError;
use crate::get::OwnedVectors;
use crate::range::WIDER;
use crate::search::{Counts, Neighbors, Reader, Search};
use crate::space::Compare;
use crate::vectors::Vectors;
use std::collections::HashMap;
use std::hash::Hash;
use std::num::NonZeroUsize;

/// Results that are held at a time: what is looked for can come to all vectors for each query.
const RESULTS: usize = 1 << 20;

/// The nearest vectors of one group.
#[derive(Clone, Debug, PartialEq)]
pub struct Group<G> {
    /// Which group.
    pub key: G,
    /// Its vectors nearest to the query, nearest first; at least one.
    pub members: Neighbors,
}

/// The groups found for one query, nearest first.
pub type Groups<G> = Vec<Group<G>>;

impl Reader {
    /// For each query the `search.k` groups that have the nearest vectors, nearest group first, and of each group up to
    /// `per_group` vectors. Fewer groups only if there are no others, fewer members only if a group has no others that
    /// match. Which are the nearest is found as well as `find` finds them.
    ///
    /// `group` says which groups the vectors with some ids belong to, and must say the same each time. `find` runs
    /// searches: give it [`search`](Self::search), on as many threads as you like.
    ///
    /// # Errors
    /// As [`search`](Self::search), `group` and `find`.
    pub fn search_groups<G: Clone + Eq + Hash, E: From<SearchError>>(
        &self,
        queries: Vectors<'_>,
        per_group: NonZeroUsize,
        search: &Search<'_>,
        mut group: impl FnMut(&[i64]) -> Result<Vec<G>, E>,
        mut find: impl FnMut(Vectors<'_>, &Search<'_>) -> Result<(Vec<Neighbors>, Counts), E>,
    ) -> Result<(Vec<Groups<G>>, Counts), E> {
        let count = self.check(queries, search)?;
        let (groups, per_group, matches) = (search.k, per_group.get(), self.matches(search));
        let mut answers: Vec<Groups<G>> = vec![Vec::new(); count];
        let mut counts = Counts::default();
        // Queries whose nearest were of too few groups; and those of whose groups members may be missing.
        let (mut pending, mut short): (Vec<usize>, Vec<usize>) = ((0..count).collect(), Vec::new());
        let mut k = groups;
        while !pending.is_empty() {
            k = k.saturating_mul(WIDER).min(matches.max(1));
            let mut few = Vec::new();
            for places in pending.chunks((RESULTS / k).max(1)) {
                let part = OwnedVectors::picked(queries, self.dim(), places);
                let (found, work) = find(part.as_vectors(), &Search { k, ..*search })?;
                counts += work;
                for (&place, found) in places.iter().zip(&found) {
                    answers[place] = grouped(found, group(&found.ids)?, groups, per_group);
                    if k < matches && answers[place].len() < groups {
                        few.push(place);
                    } else if k < matches && answers[place].iter().any(|g| g.members.ids.len() < per_group) {
                        short.push(place);
                    }
                }
            }
            pending = few;
        }
        if short.is_empty() {
            return Ok((answers, counts));
        }
        let members = self.members(search, &mut group)?;
        for place in short {
            let answer = &mut answers[place];
            let missing = |one: &Group<G>| {
                one.members.ids.len() < per_group.min(members.get(&one.key).map_or(0, Vec::len))
            };
            let among: Vec<&G> = answer.iter().filter(|one| missing(one)).map(|one| &one.key).collect();
            if among.is_empty() {
                continue;
            }
            let filter = self.filter_of_rows(among.iter().flat_map(|&key| &members[key]).copied());
            let query = queries.slice(self.dim(), place..place + 1);
            let how = Search { k: filter.matches(), filter: Some(&filter), ..*search };
            let (found, work) = find(query, &how)?;
            counts += work;
            let found = found.into_iter().next().unwrap_or_default();
            for whole in grouped(&found, group(&found.ids)?, among.len(), per_group) {
                answer.iter_mut().filter(|one| one.key == whole.key).for_each(|one| *one = whole.clone());
            }
            // Stable: groups at the same distance keep the order in which their vectors were found.
            answer.sort_by(|a, b| a.members.distances[0].total_cmp(&b.members.distances[0]));
        }
        Ok((answers, counts))
    }

    /// The rows of each group's vectors that match.
    fn members<G: Eq + Hash, E>(
        &self,
        search: &Search<'_>,
        group: impl FnOnce(&[i64]) -> Result<Vec<G>, E>,
    ) -> Result<HashMap<G, Vec<u32>>, E> {
        let state = self.state();
        let rows: Vec<u32> = match search.filter {
            Some(filter) => filter.rows().collect(),
            None => (0..state.space.len() as u32).filter(|&row| !state.deleted.contains(row)).collect(),
        };
        let ids: Vec<i64> = rows.iter().map(|&row| state.id(row)).collect();
        let mut members: HashMap<G, Vec<u32>> = HashMap::new();
        for (row, key) in rows.into_iter().zip(group(&ids)?) {
            members.entry(key).or_default().push(row);
        }
        Ok(members)
    }
}

/// The first `groups` groups among results, whose groups are `keys`, with the first `per_group` of each.
fn grouped<G: Clone + Eq + Hash>(
    found: &Neighbors,
    keys: Vec<G>,
    groups: usize,
    per_group: usize,
) -> Groups<G> {
    let mut places: HashMap<G, usize> = HashMap::new();
    let mut answer: Groups<G> = Vec::new();
    for (key, (&id, &distance)) in keys.into_iter().zip(found.ids.iter().zip(&found.distances)) {
        let place = match places.get(&key) {
            Some(&place) => place,
            None if answer.len() == groups => continue,
            None => {
                places.insert(key.clone(), answer.len());
                answer.push(Group { key, members: Neighbors::default() });
                answer.len() - 1
            }
        };
        let members = &mut answer[place].members;
        if members.ids.len() < per_group {
            members.ids.push(id);
            members.distances.push(distance);
        }
    }
    answer
}
