//! Documents of consecutive rows, immutably, in one segment of tantivy's whose document numbers are the rows.
//!
//! Rows that are deleted later are passed over by whoever reads; a row without a document is empty.

use super::compile::Compiled;
use super::grown::Grown;
use super::mapping::{Mapping, Parsed};
use serde_json::{Value as Json, json};
use tantivy::directory::{Directory, OwnedBytes};
use tantivy::fastfield::{AliveBitSet, write_alive_bitset};
use tantivy::indexer::merge_filtered_segments;
use tantivy::query::{Bm25StatisticsProvider, EnableScoring, Weight};
use tantivy::schema::{Field, IndexRecordOption, Value};
use tantivy::store::StoreReader;
use tantivy::{
    BitSet, COLLECT_BLOCK_BUFFER_LEN, DocSet, Index, IndexReader, IndexSettings, ReloadPolicy, Searcher,
    SegmentReader, SingleSegmentIndexWriter, TERMINATED, TantivyDocument, TantivyError, Term,
};

/// Memory for terms before the table of terms grows, bytes: few documents should not pay for many.
const BUDGET_BYTES: usize = 1 << 18;
/// Blocks of sources that a run keeps unpacked.
const SOURCE_BLOCKS: usize = 16;

/// Rows between two questions whether to stop: some microseconds.
const ASKED_EVERY: usize = 256;

/// Why documents cannot be written or read.
#[derive(Debug, thiserror::Error)]
#[error("documents: {0}")]
pub struct RunError(#[from] pub TantivyError);

/// Nothing starts a thread.
fn settings() -> IndexSettings {
    IndexSettings { docstore_compress_dedicated_thread: false, ..IndexSettings::default() }
}

/// Writes a run row by row.
pub struct RunWriter {
    source: Field,
    writer: SingleSegmentIndexWriter,
}

impl RunWriter {
    /// Into `directory`.
    ///
    /// # Errors
    /// If it cannot be written; so for the others.
    pub fn new(mapping: &Mapping, directory: Box<dyn Directory>) -> Result<RunWriter, RunError> {
        let builder = Index::builder().schema(mapping.tantivy.clone()).settings(settings());
        Ok(RunWriter {
            source: mapping.source,
            writer: builder.single_segment_index_writer(directory, BUDGET_BYTES)?,
        })
    }

    fn push(&mut self, document: Option<TantivyDocument>) -> Result<(), RunError> {
        Ok(self.writer.add_document(document.unwrap_or_default())?)
    }

    /// Writes the next rows: a document, and its nested objects.
    pub fn add(&mut self, parsed: Parsed) -> Result<(), RunError> {
        self.push(Some(parsed.document))?;
        parsed.nested.into_iter().try_for_each(|nested| self.push(Some(nested.document)))
    }

    /// The run.
    pub fn finish(self) -> Result<Run, RunError> {
        Run::of(self.source, self.writer.finalize()?)
    }
}

/// The documents of consecutive rows.
#[derive(Clone)]
pub struct Run {
    searcher: Searcher,
    source: Field,
    store: std::sync::Arc<StoreReader>,
    /// Its files, if they are of fewer fields.
    grown: Option<Grown>,
}

impl Run {
    /// Writes documents, a row each; `None` leaves a row empty.
    ///
    /// # Errors
    /// If the directory cannot be written.
    pub fn write<'a>(
        mapping: &Mapping,
        directory: Box<dyn Directory>,
        documents: impl Iterator<Item = Option<&'a Parsed>>,
    ) -> Result<Run, RunError> {
        let mut writer = RunWriter::new(mapping, directory)?;
        documents
            .into_iter()
            .try_for_each(|parsed| writer.push(parsed.map(|parsed| parsed.document.clone())))?;
        writer.finish()
    }

    /// Writes the rows of each run that are named, ascending, one run after the other.
    ///
    /// # Errors
    /// If a run cannot be read, or the directory not be written.
    pub fn merge(
        mapping: &Mapping,
        directory: Box<dyn Directory>,
        runs: &[(Run, &[u32])],
    ) -> Result<Run, RunError> {
        if runs.iter().all(|(_, rows)| rows.is_empty()) {
            return Run::write(mapping, directory, std::iter::empty());
        }
        let (mut segments, mut alive) = (Vec::new(), Vec::new());
        for (run, rows) in runs.iter().filter(|(_, rows)| !rows.is_empty()) {
            let filled = run.grown.as_ref().map(|grown| grown.for_merging(run.segment())).transpose()?;
            segments.extend(filled.as_ref().unwrap_or(run.searcher.index()).searchable_segments()?);
            let mut bits = BitSet::with_max_value(run.rows());
            for &row in *rows {
                bits.insert(row);
            }
            let mut bytes = Vec::new();
            write_alive_bitset(&bits, &mut bytes).map_err(TantivyError::from)?;
            alive.push(Some(AliveBitSet::open(OwnedBytes::new(bytes))));
        }
        Run::of(mapping.source, merge_filtered_segments(&segments, settings(), alive, directory)?)
    }

    /// Opens what [`write`](Self::write) wrote, perhaps when the schema named fewer fields.
    ///
    /// # Errors
    /// If it is not there, or not what the mapping says.
    pub fn open(mapping: &Mapping, directory: Box<dyn Directory>) -> Result<Run, RunError> {
        let Some(grown) = Grown::new(mapping, &*directory)? else {
            return Run::of(mapping.source, Index::open(directory)?);
        };
        let run = Run::of(mapping.source, Index::open(grown.clone())?)?;
        Ok(Run { grown: Some(grown), ..run })
    }

    fn of(source: Field, index: Index) -> Result<Run, RunError> {
        let reader: IndexReader = index.reader_builder().reload_policy(ReloadPolicy::Manual).try_into()?;
        let searcher = reader.searcher();
        if searcher.segment_readers().len() != 1 {
            let what = format!("{} segments where there should be one", searcher.segment_readers().len());
            return Err(TantivyError::SchemaError(what).into());
        }
        let store = searcher.segment_reader(0).get_store_reader(SOURCE_BLOCKS).map_err(TantivyError::from)?;
        Ok(Run { searcher, source, store: store.into(), grown: None })
    }

    /// Whether it has the fields of `mapping`.
    pub(crate) fn is_of(&self, mapping: &Mapping) -> bool {
        *self.searcher.schema() == mapping.tantivy
    }

    /// Number of rows.
    pub fn rows(&self) -> u32 {
        self.segment().max_doc()
    }

    pub(super) fn segment(&self) -> &SegmentReader {
        self.searcher.segment_reader(0)
    }

    /// The document in `row` without its vectors, as JSON; empty if there is none.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn source(&self, row: u32) -> Result<Vec<u8>, RunError> {
        source_of(&self.store, self.source, row)
    }

    /// What is kept of the vectors in `row` as they came, see `given.rs`; empty if nothing is.
    ///
    /// # Errors
    /// If it cannot be read.
    pub(crate) fn given(&self, row: u32) -> Result<Vec<u8>, RunError> {
        Ok(nth_source(&self.store.get(row)?, self.source, 1))
    }

    /// Gives `each` the ids of all rows that have one, with their rows, by id.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn ids(&self, mapping: &Mapping, mut each: impl FnMut(&[u8], u32)) -> Result<(), RunError> {
        let index = self.segment().inverted_index(mapping.id)?;
        let mut terms = index.terms().stream().map_err(TantivyError::from)?;
        while terms.advance() {
            let mut rows = index
                .read_postings_from_terminfo(terms.value(), IndexRecordOption::Basic)
                .map_err(TantivyError::from)?;
            while rows.doc() != TERMINATED {
                each(terms.key(), rows.doc());
                rows.advance();
            }
        }
        Ok(())
    }

    /// Gives the rows that a query finds, ascending, until `stop` says so, which is asked every few hundred rows.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn matches(
        &self,
        query: &Weighed,
        stop: &dyn Fn() -> bool,
        found: &mut dyn FnMut(u32),
    ) -> Result<(), RunError> {
        // tantivy 0.27 cannot ask bitmaps of no rows for the first.
        if self.rows() == 0 {
            return Ok(());
        }
        let mut rows = query.0.scorer(self.segment(), 1.0)?;
        let mut block = [0; COLLECT_BLOCK_BUFFER_LEN];
        for blocks in 0_usize.. {
            let len = rows.fill_buffer(&mut block);
            block[..len].iter().for_each(|&row| found(row));
            if len < block.len() || blocks.is_multiple_of(ASKED_EVERY / block.len()) && stop() {
                break;
            }
        }
        Ok(())
    }

    /// As [`matches`](Self::matches), with their scores.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn scores(
        &self,
        query: &Weighed,
        stop: &dyn Fn() -> bool,
        found: &mut dyn FnMut(u32, f32),
    ) -> Result<(), RunError> {
        if self.rows() == 0 {
            return Ok(());
        }
        let mut rows = query.0.scorer(self.segment(), 1.0)?;
        let (mut row, mut asked) = (rows.doc(), 0_usize);
        while row != TERMINATED {
            found(row, rows.score());
            row = rows.advance();
            asked += 1;
            if asked.is_multiple_of(ASKED_EVERY) && stop() {
                break;
            }
        }
        Ok(())
    }

    /// How the score of a row that a query finds came about: `value`, `description`, and `details` of the same form.
    ///
    /// # Errors
    /// If it does not find it, or it cannot be read.
    pub fn explain(&self, query: &Weighed, row: u32) -> Result<Json, RunError> {
        /// As OpenSearch has it: with details, be there none.
        fn told(explanation: Json) -> Json {
            let details = explanation["details"].as_array().cloned().unwrap_or_default();
            let details: Vec<Json> = details.into_iter().map(told).collect();
            json!({
                "value": explanation["value"], "description": explanation["description"], "details": details,
            })
        }
        let explanation = query.0.explain(self.segment(), row)?;
        let explanation = serde_json::to_value(explanation);
        Ok(told(explanation.map_err(|error| TantivyError::InternalError(error.to_string()))?))
    }

    /// Of the rows that a query finds those with a score above what `found` returned last (before: all), and some others:
    /// blocks of rows that cannot have such a score are passed over.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn best(&self, query: &Weighed, found: &mut dyn FnMut(u32, f32) -> f32) -> Result<(), RunError> {
        if self.rows() == 0 {
            return Ok(());
        }
        Ok(query.0.for_each_pruning(f32::MIN, self.segment(), found)?)
    }
}

/// The document in `row` of a store.
pub(super) fn source_of(store: &StoreReader, source: Field, row: u32) -> Result<Vec<u8>, RunError> {
    Ok(nth_source(&store.get(row)?, source, 0))
}

/// A value of `_source`, empty if there is none: the document, then vectors.
fn nth_source(document: &TantivyDocument, source: Field, n: usize) -> Vec<u8> {
    let value = document.get_all(source).nth(n);
    value.and_then(|value| value.as_bytes().map(<[u8]>::to_vec)).unwrap_or_default()
}

impl Mapping {
    /// As [`Run::given`], of a document that is in no run.
    pub(crate) fn given_of(&self, parsed: &Parsed) -> Vec<u8> {
        nth_source(&parsed.document, self.source, 1)
    }
}

impl std::fmt::Debug for Run {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Run").field("rows", &self.rows()).finish_non_exhaustive()
    }
}

/// A query made ready for all runs of a table.
pub struct Weighed(Box<dyn Weight>);

impl Compiled {
    /// Ready for `runs`, all of a table's: with BM25's scores by their statistics, or without scores. `None` if there are
    /// no runs.
    ///
    /// # Errors
    /// If statistics cannot be read.
    pub fn weigh(&self, runs: &[&Run], scored: bool) -> Result<Option<Weighed>, RunError> {
        let Some(first) = runs.first() else { return Ok(None) };
        let statistics = Statistics(runs);
        let scoring = match scored {
            true => EnableScoring::enabled_from_statistics_provider(&statistics, &first.searcher),
            false => EnableScoring::disabled_from_searcher(&first.searcher),
        };
        Ok(Some(Weighed(self.query.weight(scoring)?)))
    }
}

/// Frequencies over several runs, so that a document's score does not depend on how rows are divided.
struct Statistics<'a>(&'a [&'a Run]);

impl Bm25StatisticsProvider for Statistics<'_> {
    fn total_num_tokens(&self, field: Field) -> tantivy::Result<u64> {
        self.0.iter().map(|run| Ok(run.segment().inverted_index(field)?.total_num_tokens())).sum()
    }

    fn total_num_docs(&self) -> tantivy::Result<u64> {
        Ok(self.0.iter().map(|run| u64::from(run.rows())).sum())
    }

    fn doc_freq(&self, term: &Term) -> tantivy::Result<u64> {
        let of = |run: &&Run| Ok(u64::from(run.segment().inverted_index(term.field())?.doc_freq(term)?));
        self.0.iter().map(of).sum()
    }
}
