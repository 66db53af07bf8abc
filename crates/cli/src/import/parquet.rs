//! Documents from Parquet files, row by row: a column is a field, by its name.

use crate::failure::Failure;
use indicatif::ProgressBar;
use parquet::basic::{LogicalType, TimeUnit};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::reader::RowIter;
use parquet::record::{Field, Row};
use serde_json::{Map, Value, json};
use std::collections::HashSet;
use std::fs::File;
use std::iter::Peekable;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

const DAY_MS: i64 = 86_400_000;

/// Rows of a file.
pub(super) struct Records {
    rows: Peekable<Guarded>,
    name: String,
    count: usize,
    number: u64,
    /// Columns of times in nanoseconds, which come as plain numbers.
    nanos: HashSet<String>,
}

/// A document and the number of its row.
type Numbered = (u64, Map<String, Value>);

/// Rows, until one cannot be read. Files come from strangers, and where one is damaged the library may panic.
struct Guarded {
    rows: RowIter<'static>,
    over: bool,
}

impl Iterator for Guarded {
    type Item = Result<Row, ParquetError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.over {
            return None;
        }
        let row = guarded(|| self.rows.next().transpose()).transpose()?;
        self.over = row.is_err();
        Some(row)
    }
}

fn guarded<T>(work: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, ParquetError> {
    let damaged = |_| Err(ParquetError::General("the file is damaged".to_owned()));
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(damaged)
}

impl Records {
    pub(super) fn open(path: &Path) -> Result<Records, Failure> {
        let failed = |what: &dyn std::fmt::Display| Failure::Failed(format!("{}: {what}", path.display()));
        let file = File::open(path).map_err(|error| failed(&error))?;
        let reader = guarded(|| SerializedFileReader::new(file)).map_err(|error| failed(&error))?;
        let meta = reader.metadata().file_metadata();
        let is_nanos = |kind: Option<&LogicalType>| matches!(kind, Some(LogicalType::Timestamp(time)) if time.unit == TimeUnit::NANOS);
        let columns = meta.schema().get_fields().iter();
        let nanos = columns.filter(|field| is_nanos(field.get_basic_info().logical_type_ref()));
        let nanos = nanos.map(|field| field.name().to_owned()).collect();
        let count = usize::try_from(meta.num_rows()).unwrap_or(0);
        let rows = Guarded { rows: RowIter::from_file_into(Box::new(reader)), over: false }.peekable();
        Ok(Records { rows, name: path.display().to_string(), count, number: 0, nanos })
    }

    /// Dimensions of the first vector in a column.
    ///
    /// # Errors
    /// If there is no such column of lists.
    pub(super) fn dim(&mut self, field: &str) -> Result<Option<NonZeroUsize>, Failure> {
        let Some(Ok(row)) = self.rows.peek() else { return Ok(None) };
        match row.get_column_iter().find(|(name, _)| *name == field) {
            Some((_, Field::ListInternal(list))) => Ok(NonZeroUsize::new(list.elements().len())),
            other => {
                let names: Vec<_> = row.get_column_iter().map(|(name, _)| name.as_str()).collect();
                let what = if other.is_some() { "no lists of numbers" } else { "not there" };
                let name = &self.name;
                Err(Failure::Usage(format!(
                    "--field {field}: the column is {what}; {name} has {}",
                    names.join(", ")
                )))
            }
        }
    }

    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// The next row, counted from 0.
    pub(super) fn next(&mut self, bar: &ProgressBar) -> Result<Option<Numbered>, Failure> {
        let Some(row) = self.rows.next() else { return Ok(None) };
        let row = row.map_err(|error| {
            let so_far = format!("after {} rows", self.number);
            Failure::Failed(format!("{}: {error}, {so_far}", self.name))
        })?;
        bar.inc(1);
        let number = self.number;
        self.number += 1;
        let value = |name: &String, field: &Field| match field {
            Field::Long(nanos) if self.nanos.contains(name) => json!(nanos.div_euclid(1_000_000)),
            field => json_of(field),
        };
        Ok(Some((
            number,
            row.get_column_iter().map(|(name, field)| (name.clone(), value(name, field))).collect(),
        )))
    }
}

/// Times are milliseconds since 1970, or of the day, decimals text with all of their digits, bytes Base64; what JSON has
/// no number for is `null`.
fn json_of(field: &Field) -> Value {
    match field {
        Field::Null => Value::Null,
        Field::Bool(value) => json!(value),
        Field::Byte(value) => json!(value),
        Field::Short(value) => json!(value),
        Field::Int(value) => json!(value),
        Field::Long(value) => json!(value),
        Field::UByte(value) => json!(value),
        Field::UShort(value) => json!(value),
        Field::UInt(value) => json!(value),
        Field::ULong(value) => json!(value),
        Field::Float16(value) => json!(f32::from(*value)),
        Field::Float(value) => json!(value),
        Field::Double(value) => json!(value),
        Field::Decimal(_) => json!(field.to_string()),
        Field::Str(value) => json!(value),
        Field::Bytes(value) => {
            use base64::Engine;
            json!(base64::prelude::BASE64_STANDARD.encode(value.data()))
        }
        Field::Date(days) => json!(i64::from(*days) * DAY_MS),
        Field::TimeMillis(value) => json!(value),
        Field::TimeMicros(value) => json!(value.div_euclid(1000)),
        Field::TimestampMillis(value) => json!(value),
        Field::TimestampMicros(value) => json!(value.div_euclid(1000)),
        Field::Group(row) => {
            row.get_column_iter().map(|(name, field)| (name.clone(), json_of(field))).collect()
        }
        Field::ListInternal(list) => list.elements().iter().map(json_of).collect(),
        Field::MapInternal(map) => {
            let key = |key: &Field| match key {
                Field::Str(key) => key.clone(),
                key => key.to_string(),
            };
            map.entries().iter().map(|(name, value)| (key(name), json_of(value))).collect()
        }
    }
}
