//! Aggregations: counts and figures over the documents that are found, in the JSON that Elasticsearch and tantivy share.
//!
//! What is asked is checked here, field by field, and brought into tantivy's form: dynamic fields by their path, and
//! filters as [`Query`]s. Each run collects for itself ([`Collecting`]); parts of the answer ([`Partial`]) are put
//! together in the end. All terms of a run go into that, so that counts do not depend on how rows are divided into runs.

use super::compile::Compiled;
use super::mapping::Mapping;
use super::query::{Query, QueryError};
use super::run::{Run, RunError};
use super::schema::FieldKind;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::sync::Arc;
use tantivy::aggregation::agg_req::{self, Aggregation, AggregationVariants};
use tantivy::aggregation::bucket::{FilterAggregation, QueryBuilder};
use tantivy::aggregation::intermediate_agg_result::IntermediateAggregationResults;
use tantivy::aggregation::{
    AggContextParams, AggregationLimitsGuard, AggregationSegmentCollector, ValueSource, ValueSourceProvider,
    ValueSourceRegistry,
};
use tantivy::collector::SegmentCollector;
use tantivy::columnar::{Column, ColumnType};
use tantivy::directory::RamDirectory;
use tantivy::query::{EmptyQuery, Query as Ready};
use tantivy::tokenizer::TokenizerManager;
use tantivy::{SegmentReader, TantivyError};

/// Aggregations within aggregations, at most.
const DEPTH_MAX: usize = 16;
/// Buckets of an answer, at most.
const BUCKETS_MAX: u32 = 65_535;
/// Memory of what is collected, bytes, at most.
const MEMORY_BYTES_MAX: u64 = 256 << 20;

/// What is wrong with aggregations.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum AggregationError {
    #[error("aggregation {name:?}: {what}")]
    Wrong { name: String, what: String },
    #[error("aggregation {name:?}: {error}")]
    Field { name: String, error: QueryError },
    #[error("aggregations: {0}")]
    Failed(TantivyError),
}

/// The kinds, and what values they take. Figures of dates would be in tantivy's nanoseconds: not offered.
const KINDS: [(&str, Takes); 13] = [
    ("terms", Takes::Any),
    ("cardinality", Takes::Any),
    ("value_count", Takes::Any),
    ("range", Takes::Numbers),
    ("histogram", Takes::Numbers),
    ("date_histogram", Takes::Dates),
    ("avg", Takes::Numbers),
    ("min", Takes::Numbers),
    ("max", Takes::Numbers),
    ("sum", Takes::Numbers),
    ("stats", Takes::Numbers),
    ("extended_stats", Takes::Numbers),
    ("percentiles", Takes::Numbers),
];
const FILTER: &str = "filter";

#[derive(Clone, Copy, PartialEq)]
enum Takes {
    Any,
    Numbers,
    Dates,
}

/// Aggregations that were checked, for any run of the same mapping.
pub struct Aggregations {
    asked: agg_req::Aggregations,
    /// Counts the memory of all that is collected for this search.
    context: AggContextParams,
    /// What no documents give.
    nothing: Partial,
}

/// The numbers among a field's values as floats, in every run: by itself tantivy takes bounds of ranges as the run's column
/// has them, without fractions or signs where that has none, and of several types of values any.
struct Numbers(String);

impl ValueSourceProvider for Numbers {
    fn for_segment(
        &self,
        reader: &SegmentReader,
        _: Option<&[ColumnType]>,
    ) -> tantivy::Result<Option<Box<dyn ValueSource>>> {
        let numbers = [ColumnType::F64, ColumnType::I64, ColumnType::U64];
        let all = reader.fast_fields().dynamic_column_handles(&self.0)?;
        let own = all.into_iter().find(|column| numbers.contains(&column.column_type()));
        let opened = own.map(|own| Ok::<_, TantivyError>((own.open_u64_lenient()?, own.column_type())));
        let (column, of) = match opened.transpose()? {
            Some((Some(column), of)) => (column, of),
            _ => (Column::build_empty_column(reader.max_doc()), ColumnType::F64),
        };
        Ok(Some(Box::new((column, of)).to_f64()))
    }
}

/// A filter as tantivy takes it.
#[derive(Debug, Serialize, Deserialize)]
struct Filter {
    /// Never written nor read: a search does not leave the process.
    #[serde(skip, default = "nothing")]
    query: Box<dyn Ready>,
}

fn nothing() -> Box<dyn Ready> {
    Box::new(EmptyQuery)
}

#[typetag::serde(name = "lanewise")]
impl QueryBuilder for Filter {
    fn build_query(
        &self,
        _: &tantivy::schema::Schema,
        _: &TokenizerManager,
    ) -> tantivy::Result<Box<dyn Ready>> {
        Ok(self.query.box_clone())
    }

    fn box_clone(&self) -> Box<dyn QueryBuilder> {
        Box::new(Filter { query: self.query.box_clone() })
    }
}

impl Mapping {
    /// Makes aggregations ready: an object of names, each with a kind and perhaps `aggs` within it.
    ///
    /// # Errors
    /// What is wrong, by name.
    pub fn aggregations(&self, asked: &Map<String, Value>) -> Result<Aggregations, AggregationError> {
        let mut sources = ValueSourceRegistry::default();
        let asked = self.aggregations_at(asked, "", DEPTH_MAX, &mut sources)?;
        let limits = AggregationLimitsGuard::new(Some(MEMORY_BYTES_MAX), Some(BUCKETS_MAX));
        let context = AggContextParams::new(limits, TokenizerManager::default());
        let context = context.with_value_sources(Arc::new(sources));
        let nothing = Partial(IntermediateAggregationResults::default());
        let mut ready = Aggregations { asked, context, nothing };
        // What tantivy has against it is known before a search begins, also of an empty table. (Of a run without rows its
        // bitmaps cannot be asked.)
        let empty = Run::write(self, Box::new(RamDirectory::create()), std::iter::once(None));
        let empty = empty.map_err(|RunError(error)| AggregationError::Failed(error))?;
        ready.nothing = ready.on(&empty)?.finish()?;
        ready.answer([])?;
        Ok(ready)
    }

    fn aggregations_at(
        &self,
        asked: &Map<String, Value>,
        above: &str,
        left: usize,
        sources: &mut ValueSourceRegistry,
    ) -> Result<agg_req::Aggregations, AggregationError> {
        let mut ready = agg_req::Aggregations::default();
        for (name, body) in asked {
            let path = format!("{above}{name}");
            let wrong = |what: &str| AggregationError::Wrong { name: path.clone(), what: what.to_owned() };
            if left == 0 {
                return Err(wrong(&format!("aggregations within aggregations are at most {DEPTH_MAX} deep")));
            }
            let body = body.as_object().ok_or_else(|| wrong("give an object with its kind"))?;
            let (mut own, mut inner) = (None, agg_req::Aggregations::default());
            for (key, value) in body {
                if key == "aggs" || key == "aggregations" {
                    let asked = value.as_object().ok_or_else(|| wrong("aggs: give an object"))?;
                    inner = self.aggregations_at(asked, &format!("{path}>"), left - 1, sources)?;
                } else if own.replace((key, value)).is_some() {
                    return Err(wrong("give one kind"));
                }
            }
            let (kind, how) = own.ok_or_else(|| wrong("give its kind, for instance terms"))?;
            let agg = self.aggregation(&path, kind, how, sources)?;
            ready.insert(name.clone(), Aggregation { agg, sub_aggregation: inner });
        }
        Ok(ready)
    }

    fn aggregation(
        &self,
        name: &str,
        kind: &str,
        how: &Value,
        sources: &mut ValueSourceRegistry,
    ) -> Result<AggregationVariants, AggregationError> {
        let wrong = |what: String| AggregationError::Wrong { name: name.to_owned(), what };
        let in_field = |error| AggregationError::Field { name: name.to_owned(), error };
        if kind == FILTER {
            let query = Query::deserialize(how).map_err(|error| wrong(format!("filter: {error}")))?;
            let Compiled { query, ahead } = self.compile(&query).map_err(in_field)?;
            if !ahead.is_empty() {
                return Err(in_field(QueryError::Ahead));
            }
            return Ok(AggregationVariants::Filter(FilterAggregation::new_with_builder(Box::new(Filter {
                query,
            }))));
        }
        let Some((_, takes)) = KINDS.iter().find(|(known, _)| *known == kind) else {
            let known: Vec<&str> = KINDS.iter().map(|(known, _)| *known).chain([FILTER]).collect();
            return Err(wrong(format!("its kind is {kind:?}: give {}", known.join(", "))));
        };
        let mut how = how.as_object().cloned().ok_or_else(|| wrong(format!("{kind}: give an object")))?;
        let Some(Value::String(field)) = how.get("field") else {
            return Err(wrong(format!("{kind}: give a field")));
        };
        let (column, of) = self.column(field, "an aggregation").map_err(in_field)?;
        let fits = match (takes, &of) {
            (Takes::Any, _) | (_, None) => true,
            (Takes::Numbers, Some(of)) => matches!(of, FieldKind::Integer | FieldKind::Float),
            (Takes::Dates, Some(of)) => *of == FieldKind::Date,
        };
        if !fits {
            let needs = if *takes == Takes::Dates { "dates" } else { "numbers" };
            return Err(wrong(format!("{kind}: it takes {needs}, and field {field:?} holds none")));
        }
        let own = if *takes == Takes::Numbers && (kind == "range" || of.is_none()) {
            let name = format!("numbers of {column}");
            sources.register(&name, Arc::new(Numbers(column)));
            name
        } else {
            column
        };
        how.insert("field".to_owned(), Value::from(own));
        if kind == "terms" {
            // Whatever the run's best are: all take part, so that no count is a guess.
            how.remove("shard_size");
            how.insert("segment_size".to_owned(), Value::from(u32::MAX));
        }
        let tagged = Map::from_iter([(kind.to_owned(), Value::Object(how))]);
        AggregationVariants::deserialize(Value::Object(tagged))
            .map_err(|error| wrong(format!("{kind}: {error}")))
    }
}

/// Aggregations of one run under way.
pub struct Collecting(AggregationSegmentCollector);

/// What one run has for the answer.
#[derive(Clone)]
pub struct Partial(IntermediateAggregationResults);

impl Aggregations {
    /// Begins with a run.
    ///
    /// # Errors
    /// If its columns cannot be read.
    pub fn on(&self, run: &Run) -> Result<Collecting, AggregationError> {
        let reader: &SegmentReader = run.segment();
        let collector =
            AggregationSegmentCollector::from_agg_req_and_reader(&self.asked, reader, 0, &self.context);
        Ok(Collecting(collector.map_err(AggregationError::Failed)?))
    }

    /// The answer, of all runs together.
    ///
    /// # Errors
    /// If it has too many buckets.
    pub fn answer(&self, partials: impl IntoIterator<Item = Partial>) -> Result<Value, AggregationError> {
        let mut partials = partials.into_iter();
        let Partial(mut all) = partials.next().unwrap_or_else(|| self.nothing.clone());
        for Partial(partial) in partials {
            all.merge_fruits(partial).map_err(AggregationError::Failed)?;
        }
        let limits = self.context.limits.clone();
        let answer = all.into_final_result(self.asked.clone(), limits).map_err(AggregationError::Failed)?;
        serde_json::to_value(answer)
            .map_err(|error| AggregationError::Failed(TantivyError::InternalError(error.to_string())))
    }
}

impl Collecting {
    /// Takes a row in; rows ascend.
    pub fn take(&mut self, row: u32) {
        self.0.collect(row, 0.0);
    }

    /// What the rows give.
    ///
    /// # Errors
    /// If they need too much memory, or columns cannot be read.
    pub fn finish(self) -> Result<Partial, AggregationError> {
        self.0.harvest().map(Partial).map_err(AggregationError::Failed)
    }
}
