//! Nested objects, each a row behind that of its document: what of them is found, and the documents that they are of.

use super::super::bits::Bits;
use super::super::view::At;
use super::ready::{Prepared, Probe};
use super::steps::{Filtered, Ranking, Searching};
use super::{SearchTableError, score};
use crate::documents::{Run, ScoreMode};
use lanewise_index::Search;
use std::collections::BTreeSet;

/// Scores of a document's objects.
#[derive(Clone, Copy)]
struct Scores {
    sum: f64,
    count: f64,
    min: f32,
    max: f32,
}

impl Scores {
    fn of(score: f32) -> Scores {
        Scores { sum: f64::from(score), count: 1.0, min: score, max: score }
    }

    fn add(&mut self, score: f32) {
        self.sum += f64::from(score);
        self.count += 1.0;
        self.min = self.min.min(score);
        self.max = self.max.max(score);
    }

    fn score(self, mode: ScoreMode) -> f32 {
        match mode {
            ScoreMode::Avg => (self.sum / self.count) as f32,
            ScoreMode::Max => self.max,
            ScoreMode::Min => self.min,
            ScoreMode::Sum => self.sum as f32,
            ScoreMode::None => 0.0,
        }
    }
}

impl Searching<'_> {
    /// Puts into `found`, by segment, the documents of the objects that `nested` finds, dead ones among them.
    pub(super) fn documents_of(
        &mut self,
        mode: ScoreMode,
        nested: &Prepared,
        found: &mut [Vec<(u32, f32)>],
    ) -> Result<(), SearchTableError> {
        self.fill(&nested.within)?;
        let all: Vec<&Run> = self.runs.iter().flat_map(|runs| runs.iter().map(|(_, run)| run)).collect();
        let Some(weighed) = nested.compiled.weigh(&all, mode != ScoreMode::None)? else { return Ok(()) };
        let (view, runs) = (self.view, &self.runs);
        let work = |number: usize, stop: &dyn Fn() -> bool| {
            let part = &view.parts[number];
            let mut documents: Vec<(u32, Scores)> = Vec::new();
            for (start, run) in runs[number].iter() {
                // They come in order: those of one document one after the other.
                run.scores(&weighed, stop, &mut |row, score| {
                    let document = part.document_of(start + row);
                    match documents.last_mut() {
                        Some((last, scores)) if *last == document => scores.add(score),
                        _ => documents.push((document, Scores::of(score))),
                    }
                })?;
            }
            Ok(documents)
        };
        let parts = (0..found.len()).filter(|&number| view.parts[number].nested().count() > 0);
        for (number, documents, _) in self.on_pool(parts, work)? {
            found[number] = documents.into_iter().map(|(row, scores)| (row, scores.score(mode))).collect();
        }
        Ok(())
    }

    /// The objects of the documents that a filter finds.
    pub(super) fn nested_of(&self, documents: &Filtered) -> Filtered {
        let of = |(part, rows): (&super::Part, &Bits)| {
            let mut nested = Bits::default();
            // What a document must not be, its objects are not.
            let documents = rows.rows().filter(|&row| !part.nested().contains(row));
            nested.extend(documents.flat_map(|row| part.nested_of(row)));
            nested
        };
        // Not what the filter itself finds.
        let json = documents.json.as_ref().map(|json| format!("nested {json}"));
        Filtered { json, rows: self.view.parts.iter().zip(&documents.rows).map(of).collect() }
    }

    /// What is near a vector, scored: documents, or of nested objects the nearest of each of `k` documents.
    pub(super) fn nearest_of_documents(
        &mut self,
        probe: &Probe,
        among: Option<&Filtered>,
    ) -> Result<Ranking, SearchTableError> {
        let view = self.view;
        let scored = |probe: &Probe, distance| score(probe.metric, distance);
        let mut search = |probe: &Probe, among: Option<&Filtered>| -> Result<Ranking, SearchTableError> {
            Ok(self.nearest(&[(probe, among)], &scored)?.pop().unwrap_or_default())
        };
        if probe.path.is_none() || probe.radius.is_some() {
            return search(probe, among);
        }
        let document = |at: &At| At { row: view.parts[at.part].document_of(at.row), ..*at };
        let rows: usize = view.parts.iter().map(|part| part.nested().count()).sum();
        let mut k = probe.how.k;
        let mut first = loop {
            let how = Search { k, ef_search: probe.how.ef_search.max(k), ..probe.how };
            let ranking = search(&Probe { how, ..probe.clone() }, among)?;
            let (found, mut documents) = (ranking.len(), BTreeSet::new());
            let mut first = ranking;
            // The nearest come first.
            first.retain(|(at, _)| documents.insert(document(at)));
            if first.len() >= probe.how.k || found < k || k >= rows {
                first.truncate(probe.how.k);
                break first;
            }
            k = rows.min(2 * k);
        };
        if probe.expand {
            let mut wanted = vec![Bits::default(); view.parts.len()];
            let known = |at: &At| among.is_none_or(|among| among.rows[at.part].contains(at.row));
            for At { part, row } in first.iter().map(|(at, _)| document(at)) {
                let all = view.parts[part].nested_of(row).map(|row| At { part, row });
                wanted[part].extend(all.filter(known).map(|at| at.row));
            }
            let k = wanted.iter().map(Bits::count).sum::<usize>().max(1);
            let how = Search { k, exact: true, ..probe.how };
            first = search(&Probe { how, ..probe.clone() }, Some(&Filtered { json: None, rows: wanted }))?;
        }
        Ok(first)
    }
}
