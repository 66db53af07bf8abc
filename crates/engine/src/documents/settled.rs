//! A query whose documents are all found before the first is given.
//!
//! tantivy 0.27 asks what must not match about documents in front of the place where that is already, which phrases
//! cannot answer (`DocSet::seek_danger` forbids it; `query::Exclude` does it). A bitmap can.

use tantivy::query::{BitSetDocSet, ConstScorer, EnableScoring, Explanation, Query, Scorer, Weight};
use tantivy::{BitSet, DocId, Score, SegmentReader, Term};

/// The same documents, in a bitmap.
#[derive(Debug)]
pub(super) struct Settled(pub(super) Box<dyn Query>);

impl Clone for Settled {
    fn clone(&self) -> Self {
        Settled(self.0.box_clone())
    }
}

impl Query for Settled {
    fn weight(&self, scoring: EnableScoring<'_>) -> tantivy::Result<Box<dyn Weight>> {
        Ok(Box::new(SettledWeight(self.0.weight(scoring)?)))
    }

    fn query_terms<'a>(&'a self, visitor: &mut dyn FnMut(&'a Term, bool)) {
        self.0.query_terms(visitor);
    }
}

struct SettledWeight(Box<dyn Weight>);

impl Weight for SettledWeight {
    fn scorer(&self, reader: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        let mut found = BitSet::with_max_value(reader.max_doc());
        self.0.for_each_no_score(reader, &mut |rows| {
            for &row in rows {
                found.insert(row);
            }
        })?;
        Ok(Box::new(ConstScorer::new(BitSetDocSet::from(found), boost)))
    }

    fn explain(&self, reader: &SegmentReader, row: DocId) -> tantivy::Result<Explanation> {
        self.0.explain(reader, row)
    }
}
