//! Documents in order: by score, by what is in their fields, at last by id, so that no two are equal and the order does not
//! depend on how rows are divided into runs.
//!
//! Of several values of a field the first in the order counts: the least, or the greatest if it descends. Where values are
//! of several types (dynamic fields), booleans come before numbers, numbers before dates, dates before strings.
//!
//! Within a run strings are compared by their places among the run's strings ([`Columns`]); what leaves a run has
//! strings in their place.

use super::mapping::Mapping;
use super::query::QueryError;
use super::run::{Run, RunError};
use super::schema::FieldKind;
use super::value;
use serde::de::{Deserializer, Error as _};
use serde::ser::{SerializeMap, Serializer};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::cmp::Ordering;
use tantivy::columnar::{DynamicColumn, TermOrdHit};
use tantivy::schema::OwnedValue;
use tantivy::time::OffsetDateTime;
use tantivy::time::format_description::well_known::Rfc3339;
use tantivy::{DateTime, TantivyError};

/// A key of an order. As JSON: `"price"`, `{"price": "desc"}`, `{"price": {"order": "desc", "missing": "_first"}}`;
/// `_score` and `_id` stand for these.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sort {
    /// What documents are ordered by.
    pub by: SortBy,
    /// Whether the greatest comes first; not given: of scores only.
    pub descending: bool,
    /// Whether documents without a value come first; not given: last, whatever the direction.
    pub missing_first: bool,
}

/// What documents are ordered by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SortBy {
    /// How well they fit.
    Score,
    /// Their ids, as bytes; what comes after it decides nothing.
    Id,
    /// A keyword, number, date or boolean; of dynamic fields any value.
    Field(String),
}

impl Sort {
    /// As it is where only `by` is said.
    pub fn new(by: SortBy) -> Sort {
        let descending = by == SortBy::Score;
        Sort { by, descending, missing_first: false }
    }
}

impl SortBy {
    fn name(&self) -> &str {
        match self {
            SortBy::Score => "_score",
            SortBy::Id => "_id",
            SortBy::Field(field) => field,
        }
    }

    fn named(name: &str) -> SortBy {
        match name {
            "_score" => SortBy::Score,
            "_id" => SortBy::Id,
            field => SortBy::Field(field.to_owned()),
        }
    }
}

impl Serialize for Sort {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let order = if self.descending { "desc" } else { "asc" };
        let missing = if self.missing_first { "_first" } else { "_last" };
        let mut map = serializer.serialize_map(Some(1))?;
        let how = serde_json::json!({"order": order, "missing": missing});
        map.serialize_entry(self.by.name(), &how)?;
        map.end()
    }
}

impl<'de> Deserialize<'de> for Sort {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        /// How, in full.
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct How {
            order: Option<String>,
            missing: Option<String>,
        }
        let one = |object: Map<String, Value>| {
            let mut entries = object.into_iter();
            entries.next().filter(|_| entries.next().is_none())
        };
        let wrong = || D::Error::custom("sort: give a field, or an object of one field and how it is sorted");
        let (name, how) = match Value::deserialize(deserializer)? {
            Value::String(name) => (name, Value::Object(Map::new())),
            Value::Object(object) => one(object).ok_or_else(wrong)?,
            _ => return Err(wrong()),
        };
        let how = match how {
            Value::String(order) => How { order: Some(order), missing: None },
            how => How::deserialize(how)
                .map_err(|error| D::Error::custom(format_args!("sort by {name:?}: {error}")))?,
        };
        let usual = Sort::new(SortBy::named(&name));
        let choice = |given: Option<String>, usual: bool, [no, yes]: [&str; 2]| match given {
            None => Ok(usual),
            Some(given) if given == no => Ok(false),
            Some(given) if given == yes => Ok(true),
            Some(given) => {
                Err(D::Error::custom(format_args!("sort by {name:?}: {given:?}: give {no:?} or {yes:?}")))
            }
        };
        Ok(Sort {
            descending: choice(how.order, usual.descending, ["asc", "desc"])?,
            missing_first: choice(how.missing, usual.missing_first, ["_last", "_first"])?,
            by: usual.by,
        })
    }
}

/// What is wrong with an order, or with a place in it.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum OrderError {
    #[error(transparent)]
    Field(#[from] QueryError),
    #[error("after has {found} values: give the {expected} sort values of a hit")]
    Len { expected: usize, found: usize },
    #[error("after, value of {key:?}: expected {expected}, found {found}")]
    Value { key: String, expected: &'static str, found: String },
}

/// A number, compared as what it stands for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// A whole one.
    Whole(i128),
    /// Any; finite.
    Float(f64),
}

impl Number {
    /// The same whether it came from a column of floats or of whole numbers.
    fn of(float: f64) -> Number {
        let whole = float.fract() == 0.0 && float.abs() < 9_007_199_254_740_992.0;
        if whole { Number::Whole(float as i128) } else { Number::Float(float) }
    }

    fn cmp(self, other: Number) -> Ordering {
        match (self, other) {
            (Number::Whole(a), Number::Whole(b)) => a.cmp(&b),
            (Number::Float(a), Number::Float(b)) => a.total_cmp(&b),
            (Number::Whole(a), Number::Float(b)) => (a as f64).total_cmp(&b).then(a.cmp(&(b as i128))),
            (Number::Float(_), Number::Whole(_)) => other.cmp(self).reverse(),
        }
    }
}

/// A value by which a document is sorted; `T` stands for strings.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell<T> {
    /// It has none.
    Missing,
    /// A boolean.
    Boolean(bool),
    /// A number.
    Number(Number),
    /// A time.
    Date(DateTime),
    /// A string.
    Text(T),
}

impl<T: Ord> Cell<T> {
    fn rank(&self) -> u8 {
        match self {
            Cell::Missing => 0,
            Cell::Boolean(_) => 1,
            Cell::Number(_) => 2,
            Cell::Date(_) => 3,
            Cell::Text(_) => 4,
        }
    }

    fn cmp(&self, other: &Cell<T>) -> Ordering {
        match (self, other) {
            (Cell::Boolean(a), Cell::Boolean(b)) => a.cmp(b),
            (Cell::Number(a), Cell::Number(b)) => a.cmp(*b),
            (Cell::Date(a), Cell::Date(b)) => a.cmp(b),
            (Cell::Text(a), Cell::Text(b)) => a.cmp(b),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

/// A key that was checked.
#[derive(Clone, Debug)]
struct Key {
    sort: Sort,
    /// Of fields: what tantivy knows the column as, and what the schema says of it.
    column: Option<(String, Option<FieldKind>)>,
}

/// An order that was checked, for any run of the same mapping.
#[derive(Clone, Debug)]
pub struct Order {
    keys: Vec<Key>,
    id_descending: bool,
}

/// A place in an order: that of a document, there or not.
#[derive(Clone, Debug, PartialEq)]
pub struct Position {
    /// One for each key.
    pub cells: Vec<Cell<String>>,
    /// The id.
    pub id: String,
}

impl Position {
    /// Of a document in an order by score alone.
    pub fn of_score(score: f32, id: String) -> Position {
        Position { cells: vec![Cell::Number(Number::Float(score.into()))], id }
    }
}

impl Mapping {
    /// Makes an order ready; ids decide at last.
    ///
    /// # Errors
    /// If a field cannot be sorted by.
    pub fn order(&self, sorts: &[Sort]) -> Result<Order, OrderError> {
        let mut keys = Vec::new();
        for sort in sorts {
            let column = match &sort.by {
                SortBy::Id => return Ok(Order { keys, id_descending: sort.descending }),
                SortBy::Score => None,
                SortBy::Field(field) => Some(self.column(field, "sort")?),
            };
            keys.push(Key { sort: sort.clone(), column });
        }
        Ok(Order { keys, id_descending: false })
    }
}

impl Order {
    /// By score, best first.
    pub fn by_score() -> Order {
        Order { keys: vec![Key { sort: Sort::new(SortBy::Score), column: None }], id_descending: false }
    }

    /// Whether scores alone decide, best first, and then ids.
    pub fn is_by_score(&self) -> bool {
        matches!(&self.keys[..], [Key { sort: Sort { by: SortBy::Score, descending: true, .. }, .. }])
            && !self.id_descending
    }

    /// What comes first; ids are only asked for where the rest is equal.
    pub fn compare<'a, T: Ord>(
        &self,
        a: (&[Cell<T>], impl FnOnce() -> &'a str),
        b: (&[Cell<T>], impl FnOnce() -> &'a str),
    ) -> Ordering {
        for (Key { sort, .. }, (x, y)) in self.keys.iter().zip(a.0.iter().zip(b.0)) {
            let missing = |cell: &Cell<T>| matches!(cell, Cell::Missing) != sort.missing_first;
            let (value, gap) = (x.cmp(y), missing(x).cmp(&missing(y)));
            let order = gap.then(if sort.descending { value.reverse() } else { value });
            if order.is_ne() {
                return order;
            }
        }
        let ids = a.1().cmp(b.1());
        if self.id_descending { ids.reverse() } else { ids }
    }

    /// The sort values of a document, as JSON: one for each key, and the id. `score` says what is shown of a score.
    pub fn values(&self, position: &Position, score: impl Fn(f32) -> f32) -> Vec<Value> {
        let shown = |(key, cell): (&Key, &Cell<String>)| match (key, cell) {
            (Key { column: None, .. }, Cell::Number(Number::Float(given))) => {
                Value::from(score(*given as f32))
            }
            (Key { column: Some((_, kind)), .. }, cell) => key_value(kind.as_ref(), cell),
            _ => Value::Null,
        };
        let values = self.keys.iter().zip(&position.cells).map(shown);
        values.chain([Value::from(position.id.as_str())]).collect()
    }

    /// The place that has these sort values. `score` takes a score back from what is shown of it.
    ///
    /// # Errors
    /// If they are not what [`values`](Self::values) gives.
    pub fn position(&self, values: &[Value], score: impl Fn(f32) -> f32) -> Result<Position, OrderError> {
        let (expected, found) = (self.keys.len() + 1, values.len());
        let Some((id, values)) = values.split_last().filter(|_| expected == found) else {
            return Err(OrderError::Len { expected, found });
        };
        let fail = |key: &str, expected, found: &Value| OrderError::Value {
            key: key.to_owned(),
            expected,
            found: value::kind(found),
        };
        let mut cells = Vec::new();
        for (Key { sort, column }, given) in self.keys.iter().zip(values) {
            let fail = |expected| fail(sort.by.name(), expected, given);
            let cell = match column {
                None => given
                    .as_f64()
                    .map(|given| Cell::Number(Number::Float(score(given as f32).into())))
                    .ok_or_else(|| fail("a score"))?,
                Some((_, kind)) => cell(kind.as_ref(), given).map_err(fail)?,
            };
            cells.push(cell);
        }
        let id = id.as_str().ok_or_else(|| fail("_id", "a document's id", id))?.to_owned();
        Ok(Position { cells, id })
    }
}

fn key_value(kind: Option<&FieldKind>, cell: &Cell<String>) -> Value {
    match cell {
        Cell::Missing => Value::Null,
        Cell::Boolean(given) => Value::from(*given),
        Cell::Number(Number::Float(float)) => Value::from(*float),
        // Within what 64 bits hold, with or without a sign: it came from such a column.
        Cell::Number(Number::Whole(whole)) => match (i64::try_from(*whole), kind) {
            (_, Some(FieldKind::Float)) => Value::from(*whole as f64),
            (Ok(whole), _) => Value::from(whole),
            (Err(_), _) => Value::from(u64::try_from(*whole).unwrap_or(u64::MAX)),
        },
        Cell::Date(date) if kind.is_some() => Value::from(date.into_timestamp_millis()),
        // As it was written: what looks so is a date.
        Cell::Date(date) => {
            let time = OffsetDateTime::from_unix_timestamp_nanos(date.into_timestamp_nanos().into());
            time.ok().and_then(|time| time.format(&Rfc3339).ok()).map_or(Value::Null, Value::from)
        }
        Cell::Text(text) => Value::from(text.as_str()),
    }
}

fn cell(kind: Option<&FieldKind>, given: &Value) -> Result<Cell<String>, &'static str> {
    let number = |number: Option<f64>| number.map(Number::of).map(Cell::Number);
    let cell = match (kind, given) {
        (_, Value::Null) => Some(Cell::Missing),
        (Some(FieldKind::Integer), _) => {
            return value::integer(given)
                .map(|whole| Cell::Number(Number::Whole(whole.into())))
                .ok_or("a whole number");
        }
        (Some(FieldKind::Float), _) => return number(value::float(given)).ok_or("a number"),
        (Some(FieldKind::Date), _) => return value::date(given).map(Cell::Date).ok_or("a date"),
        (Some(FieldKind::Boolean), _) => {
            return value::boolean(given).map(Cell::Boolean).ok_or("true or false");
        }
        (Some(_), Value::String(text)) => Some(Cell::Text(text.clone())),
        (Some(_), _) => return Err("a string"),
        (None, given) => match OwnedValue::from(given.clone()) {
            OwnedValue::Bool(given) => Some(Cell::Boolean(given)),
            OwnedValue::I64(whole) => Some(Cell::Number(Number::Whole(whole.into()))),
            OwnedValue::U64(whole) => Some(Cell::Number(Number::Whole(whole.into()))),
            OwnedValue::F64(float) => number(Some(float)),
            OwnedValue::Date(date) => Some(Cell::Date(date)),
            OwnedValue::Str(text) => Some(Cell::Text(text)),
            _ => None,
        },
    };
    cell.ok_or("a single value, or null")
}

/// What a run's documents are sorted by.
pub struct Columns<'a> {
    order: &'a Order,
    /// By key; of scores none, of dynamic fields one for each type.
    columns: Vec<Vec<DynamicColumn>>,
}

impl Run {
    /// The columns that an order needs.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn columns<'a>(&self, order: &'a Order) -> Result<Columns<'a>, RunError> {
        let open = |key: &Key| -> Result<Vec<DynamicColumn>, RunError> {
            let Some((name, _)) = &key.column else { return Ok(Vec::new()) };
            let handles = self.segment().fast_fields().dynamic_column_handles(name)?;
            let columns: Result<Vec<_>, _> = handles.iter().map(|handle| handle.open()).collect();
            Ok(columns.map_err(TantivyError::from)?)
        };
        Ok(Columns { order, columns: order.keys.iter().map(open).collect::<Result<_, _>>()? })
    }
}

impl Columns<'_> {
    /// Appends what `row` with this score is sorted by. A string is twice its place among the run's, plus one.
    pub fn cells(&self, row: u32, score: f32, cells: &mut Vec<Cell<u64>>) {
        for (Key { sort, column }, columns) in self.order.keys.iter().zip(&self.columns) {
            if column.is_none() {
                cells.push(Cell::Number(Number::Float(score.into())));
                continue;
            }
            let mut first = Cell::Missing;
            let mut take = |cell: Cell<u64>| {
                let order = cell.cmp(&first);
                let order = if sort.descending { order.reverse() } else { order };
                if matches!(first, Cell::Missing) || order.is_lt() {
                    first = cell;
                }
            };
            for column in columns {
                match column {
                    DynamicColumn::Bool(column) => {
                        column.values_for_doc(row).for_each(|v| take(Cell::Boolean(v)));
                    }
                    DynamicColumn::I64(column) => {
                        column.values_for_doc(row).for_each(|v| take(Cell::Number(Number::Whole(v.into()))))
                    }
                    DynamicColumn::U64(column) => {
                        column.values_for_doc(row).for_each(|v| take(Cell::Number(Number::Whole(v.into()))))
                    }
                    DynamicColumn::F64(column) => {
                        column.values_for_doc(row).for_each(|v| take(Cell::Number(Number::of(v))));
                    }
                    DynamicColumn::DateTime(column) => {
                        column.values_for_doc(row).for_each(|v| take(Cell::Date(v)));
                    }
                    DynamicColumn::Str(column) => {
                        column.term_ords(row).for_each(|v| take(Cell::Text(2 * v + 1)));
                    }
                    // No document has such values.
                    DynamicColumn::IpAddr(_) | DynamicColumn::Bytes(_) => {}
                }
            }
            cells.push(first);
        }
    }

    /// The same with strings in place of their places.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn resolve(&self, cells: &[Cell<u64>]) -> Result<Vec<Cell<String>>, RunError> {
        let resolve = |(columns, cell): (&Vec<DynamicColumn>, &Cell<u64>)| {
            Ok(match cell {
                Cell::Missing => Cell::Missing,
                Cell::Boolean(given) => Cell::Boolean(*given),
                Cell::Number(number) => Cell::Number(*number),
                Cell::Date(date) => Cell::Date(*date),
                Cell::Text(place) => {
                    let mut text = String::new();
                    if let Some(strings) = strings(columns) {
                        strings.ord_to_str(place / 2, &mut text).map_err(TantivyError::from)?;
                    }
                    Cell::Text(text)
                }
            })
        };
        self.columns.iter().zip(cells).map(resolve).collect()
    }

    /// Where a document, or one that is not there, stands among the run's: a string that the run does not have is twice the
    /// place of the next.
    ///
    /// # Errors
    /// If strings cannot be read.
    pub fn place(&self, position: &Position) -> Result<Vec<Cell<u64>>, RunError> {
        let place = |(columns, cell): (&Vec<DynamicColumn>, &Cell<String>)| {
            Ok(match cell {
                Cell::Missing => Cell::Missing,
                Cell::Boolean(given) => Cell::Boolean(*given),
                Cell::Number(number) => Cell::Number(*number),
                Cell::Date(date) => Cell::Date(*date),
                Cell::Text(text) => Cell::Text(match strings(columns) {
                    None => 0,
                    Some(strings) => {
                        let hit = strings.dictionary().term_ord_or_next(text).map_err(TantivyError::from)?;
                        match hit {
                            TermOrdHit::Exact(place) => 2 * place + 1,
                            TermOrdHit::Next(place) => place.saturating_mul(2),
                        }
                    }
                }),
            })
        };
        self.columns.iter().zip(&position.cells).map(place).collect()
    }
}

fn strings(columns: &[DynamicColumn]) -> Option<&tantivy::columnar::StrColumn> {
    columns.iter().find_map(|column| match column {
        DynamicColumn::Str(strings) => Some(strings),
        _ => None,
    })
}
