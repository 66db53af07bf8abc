//! Documents: what fields they have, and finding them by what is in these. Rests on tantivy, joined to vectors by row.
//!
//! A [`Schema`] is what users say of a table; a [`Mapping`] is the schema made ready: it checks documents, and turns them
//! and [`Query`]s into tantivy's. A [`Run`] holds the documents of consecutive rows, immutably.

mod aggregations;
mod compile;
mod found;
pub(crate) mod given;
mod grown;
mod mapping;
mod nearest;
mod order;
mod query;
mod run;
mod schema;
mod settled;
mod sources;
#[cfg(test)]
mod tests;
mod value;
mod walk;

pub use aggregations::{AggregationError, Aggregations, Collecting, Partial};
pub use compile::Compiled;
pub use found::{Ahead, Question, Rows};
pub use mapping::{DocumentError, Mapping, Parsed};
pub use nearest::{Nearest, Scored, Space};
pub use order::{Cell, Columns, Number, Order, OrderError, Position, Sort, SortBy};
pub use query::{Fuzziness, Operator, Query, QueryError, Range, ScoreMode};
pub use run::{Run, RunError, RunWriter, Weighed};
pub use schema::{Analyzer, Dynamic, FieldKind, Rules, Schema, SchemaError, VectorField};
pub use sources::Sources;
pub use value::is_date;
