//! What documents are asked for by what is in their fields.
//!
//! As JSON: `{"term": {"field": "color", "value": "red"}}`. A field that the schema does not name is a path into the dynamic
//! ones; a trailing `.keyword` is passed over there, since each of their strings is both a keyword and a text.

use super::found::{Rows, Vectored, Vectors};
use super::mapping::Mapping;
use super::nearest::{Nearest, Scored};
use super::schema::{Analyzer, FieldKind};
use super::settled::Settled;
use super::value;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::ops::Bound;
use tantivy::query::{
    AllQuery, BooleanQuery, BoostQuery, ConstScoreQuery, EmptyQuery, FuzzyTermQuery, Occur, PhraseQuery,
    Query as Ready, RangeQuery, RegexQuery, TermQuery, TermSetQuery,
};
use tantivy::schema::{Field, IndexRecordOption, OwnedValue};
use tantivy::tokenizer::{TextAnalyzer, TokenizerManager};
use tantivy::{DateTime, Term};

/// Queries within queries, at most.
const DEPTH_MAX: usize = 64;

/// What is asked for. Scores are BM25's for words, 1 for all else, and add up in [`Query::Bool`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[expect(missing_docs, reason = "the variants say what their fields are")]
pub enum Query {
    /// Every document.
    All,
    /// No document.
    None,
    /// With exactly this value. Of a text: with this word, as it stands in the index.
    Term { field: String, value: Value },
    /// With any of these values.
    Terms { field: String, values: Vec<Value> },
    /// With a value between bounds.
    Range { field: String, range: Range },
    /// With any value.
    Exists { field: String },
    /// With a string that begins so.
    Prefix { field: String, value: String },
    /// With a keyword, or a word, that has this form: `*` stands for any characters, `?` for one.
    Wildcard { field: String, value: String },
    /// With the words of `text`, made of it as of the field's: any of them, or all. Of other fields: with this value.
    Match {
        field: String,
        text: String,
        #[serde(default)]
        operator: Operator,
    },
    /// With the words of `text` one after the other, `slop` places apart at most.
    Phrase {
        field: String,
        text: String,
        #[serde(default)]
        slop: u32,
    },
    /// With one of these ids.
    Ids(Vec<String>),
    /// With all of `must` and `filter` and none of `must_not`; of `should` with `minimum_should_match` (not given: 1 if
    /// there is neither `must` nor `filter`, else 0). `filter` and `must_not` do not count for the score.
    Bool {
        #[serde(default)]
        must: Vec<Query>,
        #[serde(default)]
        should: Vec<Query>,
        #[serde(default)]
        filter: Vec<Query>,
        #[serde(default)]
        must_not: Vec<Query>,
        #[serde(default)]
        minimum_should_match: Option<usize>,
    },
    /// The same with scores times `factor`.
    Boost { query: Box<Query>, factor: f32 },
    /// The same, each with this score.
    Constant { query: Box<Query>, score: f32 },
    /// With a vector that is near, of all in the table; scored by what OpenSearch makes of its distance.
    Nearest(Nearest),
    /// Those that a query finds, scored by their vectors.
    Scored(Scored),
}

impl Query {
    /// What all of them find, without scores.
    pub fn all_of(queries: Vec<Query>) -> Query {
        Query::Bool {
            must: Vec::new(),
            should: Vec::new(),
            filter: queries,
            must_not: Vec::new(),
            minimum_should_match: None,
        }
    }
}

/// Bounds; any may be left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Range {
    /// Above this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gt: Option<Value>,
    /// This or above.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gte: Option<Value>,
    /// Below this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lt: Option<Value>,
    /// This or below.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lte: Option<Value>,
}

/// How many of a text's words a document must have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Operator {
    /// Any.
    #[default]
    Or,
    /// All.
    And,
}

/// What is wrong with a query.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum QueryError {
    #[error("field {field:?}: expected {expected}, found {found}")]
    Value { field: String, expected: &'static str, found: String },
    #[error("field {field:?} is {kind}: it cannot be asked by {asked}")]
    Kind { field: String, kind: &'static str, asked: &'static str },
    #[error("field {field:?} is a text: {asked} takes whole values; make it a keyword")]
    Text { field: String, asked: &'static str },
    #[error(
        "field {field:?}: a range needs a bound: gt, gte, lt or lte; of gt and gte, and of lt and lte, give one"
    )]
    Bounds { field: String },
    #[error("queries within queries are at most {DEPTH_MAX} deep")]
    Depth,
    #[error("{argument}={given}: give a finite number, 0 or more")]
    Number { argument: &'static str, given: f32 },
    #[error("vectors are not looked for in a filter of aggregations")]
    Vectors,
    #[error("minimum_should_match={given}: there are {should} queries in should")]
    Minimum { given: usize, should: usize },
}

/// A query that was checked, for any run of the same mapping.
#[derive(Debug)]
pub struct Compiled {
    pub(super) query: Box<dyn Ready>,
    /// To be answered, and filled in, before it is weighed.
    pub vectored: Vec<Vectored>,
}

/// Where a field's values are.
enum Target<'a> {
    Named(Field, &'a FieldKind),
    Path(&'a str),
}

impl Mapping {
    /// Makes a query ready, for any of the table's runs.
    ///
    /// # Errors
    /// What is wrong, by field.
    pub fn compile(&self, query: &Query) -> Result<Compiled, QueryError> {
        self.compile_at(query, DEPTH_MAX)
    }

    fn compile_at(&self, query: &Query, left: usize) -> Result<Compiled, QueryError> {
        let mut vectored = Vec::new();
        let query = self.at_depth(query, left, &mut vectored)?;
        Ok(Compiled { query, vectored })
    }

    fn at_depth(
        &self,
        query: &Query,
        left: usize,
        vectored: &mut Vec<Vectored>,
    ) -> Result<Box<dyn Ready>, QueryError> {
        let left = left.checked_sub(1).ok_or(QueryError::Depth)?;
        let mut all = |queries: &[Query]| -> Result<Vec<Box<dyn Ready>>, QueryError> {
            queries.iter().map(|query| self.at_depth(query, left, vectored)).collect()
        };
        Ok(match query {
            Query::All => Box::new(AllQuery),
            Query::None => Box::new(EmptyQuery),
            Query::Ids(ids) => {
                let terms = ids.iter().map(|id| Term::from_field_text(self.id, id));
                constant(Box::new(TermSetQuery::new(terms)))
            }
            Query::Term { field, value } => any(self.terms(field, value)?),
            Query::Terms { field, values } => {
                let terms: Result<Vec<Vec<Term>>, _> =
                    values.iter().map(|value| self.terms(field, value)).collect();
                constant(Box::new(TermSetQuery::new(terms?.into_iter().flatten())))
            }
            Query::Exists { field } => {
                let name = field.strip_suffix(".keyword").filter(|_| !self.schema.fields.contains_key(field));
                any(vec![Term::from_field_text(self.names, name.unwrap_or(field))])
            }
            Query::Range { field, range } => constant(self.range(field, range)?),
            Query::Prefix { field, value } => {
                let term = self.string(field, value, "prefix")?;
                constant(Box::new(FuzzyTermQuery::new_prefix(term, 0, true)))
            }
            Query::Wildcard { field, value } => {
                let asked = "wildcard";
                let Target::Named(name, FieldKind::Keyword | FieldKind::Text { .. }) =
                    self.target(field, asked)?
                else {
                    return Err(self.kind_error(field, asked));
                };
                let regex =
                    RegexQuery::from_pattern(&pattern(value), name).map_err(|_| QueryError::Value {
                        field: field.clone(),
                        expected: "a pattern of * and ? that is not too large",
                        found: value::kind(&Value::String(value.clone())),
                    })?;
                constant(Box::new(regex))
            }
            Query::Match { field, text, operator } => self.matching(field, text, *operator)?,
            Query::Phrase { field, text, slop } => {
                let words = self.words(&self.target(field, "phrase")?, text);
                let (terms, at) = words.ok_or_else(|| self.kind_error(field, "phrase"))?;
                match terms.len() {
                    0 => Box::new(EmptyQuery),
                    1 => any(terms),
                    _ => {
                        let placed = at.into_iter().zip(terms).collect();
                        as_lucene(Box::new(PhraseQuery::new_with_offset_and_slop(placed, *slop)))
                    }
                }
            }
            Query::Bool { must, should, filter, must_not, minimum_should_match } => {
                let least = usize::from(must.is_empty() && filter.is_empty() && !should.is_empty());
                let least = minimum_should_match.unwrap_or(least);
                if least > should.len() {
                    return Err(QueryError::Minimum { given: least, should: should.len() });
                }
                let mut clauses: Vec<(Occur, Box<dyn Ready>)> = Vec::new();
                clauses.extend(all(must)?.into_iter().map(|query| (Occur::Must, query)));
                let silent = |query| Box::new(ConstScoreQuery::new(query, 0.0)) as Box<dyn Ready>;
                clauses.extend(all(filter)?.into_iter().map(|query| (Occur::Must, silent(query))));
                clauses.extend(all(should)?.into_iter().map(|query| (Occur::Should, query)));
                let nothing_asked = must.is_empty() && filter.is_empty() && least == 0;
                let settled = |query| Box::new(Settled(query)) as Box<dyn Ready>;
                clauses.extend(all(must_not)?.into_iter().map(|query| (Occur::MustNot, settled(query))));
                if nothing_asked {
                    // What is not asked for is no condition: all documents, but those that must not be.
                    clauses.push((Occur::Must, silent(Box::new(AllQuery))));
                }
                Box::new(BooleanQuery::with_minimum_required_clauses(clauses, least))
            }
            Query::Boost { query, factor } => {
                let query = self.at_depth(query, left, vectored)?;
                Box::new(BoostQuery::new(query, finite("factor", *factor)?))
            }
            Query::Constant { query, score } => {
                let query = self.at_depth(query, left, vectored)?;
                Box::new(ConstScoreQuery::new(query, finite("score", *score)?))
            }
            Query::Nearest(near) => {
                let (asked, among) = (Vectors::Nearest(near.clone()), near.filter.as_deref());
                self.vectored(asked, among, left, vectored)?
            }
            Query::Scored(scored) => {
                self.vectored(Vectors::Scored(scored.clone()), Some(&scored.query), left, vectored)?
            }
        })
    }

    /// Notes what is asked of vectors; what it will find.
    fn vectored(
        &self,
        asked: Vectors,
        among: Option<&Query>,
        left: usize,
        vectored: &mut Vec<Vectored>,
    ) -> Result<Box<dyn Ready>, QueryError> {
        let among = among.map(|among| self.compile_at(among, left)).transpose()?;
        let rows = Rows::default();
        vectored.push(Vectored { asked, among, rows: rows.clone() });
        Ok(Box::new(rows))
    }

    fn target<'a>(&'a self, field: &'a str, asked: &'static str) -> Result<Target<'a>, QueryError> {
        match (self.fields.get(field), self.schema.fields.get(field)) {
            (Some(&named), Some(kind)) => Ok(Target::Named(named, kind)),
            (None, None) => Ok(Target::Path(field.strip_suffix(".keyword").unwrap_or(field))),
            _ => Err(self.kind_error(field, asked)),
        }
    }

    /// The column of a field's values, as tantivy names it, and what the schema says of the field.
    pub(super) fn column(
        &self,
        field: &str,
        asked: &'static str,
    ) -> Result<(String, Option<FieldKind>), QueryError> {
        match self.target(field, asked)? {
            Target::Named(_, FieldKind::Text { .. }) => {
                Err(QueryError::Text { field: field.to_owned(), asked })
            }
            Target::Named(_, kind) => Ok((field.to_owned(), Some(kind.clone()))),
            Target::Path(path) => Ok((format!("{}.{path}", super::mapping::RAW), None)),
        }
    }

    fn kind_error(&self, field: &str, asked: &'static str) -> QueryError {
        let kind = match self.schema.fields.get(field) {
            Some(FieldKind::Vector(_)) => "a vector",
            Some(FieldKind::Object) => "an object",
            Some(FieldKind::Keyword | FieldKind::Text { .. }) => "a string",
            Some(FieldKind::Integer | FieldKind::Float) => "a number",
            Some(FieldKind::Date) => "a date",
            Some(FieldKind::Boolean) => "a boolean",
            None => "not named in the schema",
        };
        QueryError::Kind { field: field.to_owned(), kind, asked }
    }

    /// The terms that stand for a value; a document with any of them has it.
    fn terms(&self, field: &str, value: &Value) -> Result<Vec<Term>, QueryError> {
        let fail =
            |expected| QueryError::Value { field: field.to_owned(), expected, found: value::kind(value) };
        let term = match self.target(field, "term")? {
            Target::Path(path) => return self.path_terms(path, value).ok_or_else(|| fail("a single value")),
            Target::Named(name, kind) => match kind {
                FieldKind::Vector(_) | FieldKind::Object => unreachable!("no target"),
                FieldKind::Keyword | FieldKind::Text { .. } => match value {
                    Value::String(text) => Term::from_field_text(name, text),
                    Value::Number(number) => Term::from_field_text(name, &number.to_string()),
                    Value::Bool(given) => Term::from_field_text(name, &given.to_string()),
                    _ => return Err(fail("a string")),
                },
                FieldKind::Integer => match (value::integer(value), value::float(value)) {
                    (Some(number), _) => Term::from_field_i64(name, number),
                    // No whole number is equal to it.
                    (None, Some(_)) => return Ok(Vec::new()),
                    _ => return Err(fail("a whole number")),
                },
                FieldKind::Float => {
                    Term::from_field_f64(name, value::float(value).ok_or_else(|| fail("a number"))?)
                }
                FieldKind::Boolean => {
                    Term::from_field_bool(name, value::boolean(value).ok_or_else(|| fail("true or false"))?)
                }
                FieldKind::Date => {
                    let date = value::date(value).ok_or_else(|| fail("a date"))?;
                    Term::from_field_date_for_search(name, date)
                }
            },
        };
        Ok(vec![term])
    }

    /// A term below `path`, in `field` of JSON, that `with` completes.
    fn json_term(field: Field, path: &str, with: impl FnOnce(&mut Term)) -> Term {
        let mut term = Term::from_field_json_path(field, path, true);
        with(&mut term);
        term
    }

    fn path_terms(&self, path: &str, value: &Value) -> Option<Vec<Term>> {
        let of = |with: &dyn Fn(&mut Term)| Mapping::json_term(self.raw, path, |term| with(term));
        let number = |number: f64| {
            let number = number + 0.0;
            let mut terms = vec![of(&|term| term.append_type_and_fast_value(number))];
            if number.fract() == 0.0 && number.abs() < 9.2e18 {
                terms.push(of(&|term| term.append_type_and_fast_value(number as i64)));
            }
            terms
        };
        Some(match (value, OwnedValue::from(value.clone())) {
            (_, OwnedValue::Str(text)) => {
                // Numbers and booleans may be asked for as strings.
                let mut terms = vec![of(&|term| term.append_type_and_str(&text))];
                terms.extend(
                    text.parse().ok().filter(|n: &f64| n.is_finite()).map(number).unwrap_or_default(),
                );
                terms.extend(text.parse().ok().map(|b: bool| of(&|term| term.append_type_and_fast_value(b))));
                terms
            }
            (_, OwnedValue::Bool(given)) => vec![of(&|term| term.append_type_and_fast_value(given))],
            (_, OwnedValue::Date(date)) => vec![of(&|term| term.append_type_and_fast_value(truncated(date)))],
            (Value::Number(given), OwnedValue::I64(whole)) => {
                let mut terms = vec![of(&|term| term.append_type_and_fast_value(whole))];
                terms.extend(given.as_f64().map(|float| of(&|term| term.append_type_and_fast_value(float))));
                terms
            }
            (Value::Number(given), _) => number(given.as_f64()?),
            _ => return None,
        })
    }

    /// A string's term, whole.
    fn string(&self, field: &str, text: &str, asked: &'static str) -> Result<Term, QueryError> {
        match self.target(field, asked)? {
            Target::Named(name, FieldKind::Keyword | FieldKind::Text { .. }) => {
                Ok(Term::from_field_text(name, text))
            }
            Target::Named(..) => Err(self.kind_error(field, asked)),
            Target::Path(path) => {
                Ok(Mapping::json_term(self.raw, path, |term| term.append_type_and_str(text)))
            }
        }
    }

    /// The words of `text` as the field has them, and their places; `None` where the field has no words.
    fn words(&self, target: &Target<'_>, text: &str) -> Option<(Vec<Term>, Vec<usize>)> {
        let analyzer = match target {
            Target::Named(_, FieldKind::Text { analyzer }) => *analyzer,
            Target::Named(..) => return None,
            Target::Path(_) => Analyzer::Standard,
        };
        let mut analyzer: TextAnalyzer = TokenizerManager::default().get(analyzer.tokenizer())?;
        let mut stream = analyzer.token_stream(text);
        let (mut terms, mut places) = (Vec::new(), Vec::new());
        while let Some(token) = stream.next() {
            terms.push(match target {
                Target::Named(named, _) => Term::from_field_text(*named, &token.text),
                Target::Path(path) => {
                    Mapping::json_term(self.text, path, |term| term.append_type_and_str(&token.text))
                }
            });
            places.push(token.position);
        }
        Some((terms, places))
    }

    fn matching(&self, field: &str, text: &str, operator: Operator) -> Result<Box<dyn Ready>, QueryError> {
        let target = self.target(field, "match")?;
        let Some((words, _)) = self.words(&target, text) else {
            return Ok(any(self.terms(field, &Value::String(text.to_owned()))?));
        };
        let occur = if operator == Operator::And { Occur::Must } else { Occur::Should };
        let scored = |term| as_lucene(Box::new(TermQuery::new(term, IndexRecordOption::WithFreqs)));
        let words = BooleanQuery::new(words.into_iter().map(|term| (occur, scored(term))).collect());
        if let Target::Path(path) = target {
            // What is no string has no words: it is found whole.
            let whole = self.path_terms(path, &Value::String(text.to_owned())).unwrap_or_default();
            let (words, whole) =
                (Box::new(words) as Box<dyn Ready>, any(whole.into_iter().skip(1).collect()));
            return Ok(Box::new(BooleanQuery::union(vec![words, whole])));
        }
        Ok(Box::new(words))
    }

    fn range(&self, field: &str, range: &Range) -> Result<Box<dyn Ready>, QueryError> {
        let bounds = || QueryError::Bounds { field: field.to_owned() };
        let low = match (&range.gt, &range.gte) {
            (Some(_), Some(_)) => return Err(bounds()),
            (Some(value), None) => Bound::Excluded(value),
            (None, Some(value)) => Bound::Included(value),
            (None, None) => Bound::Unbounded,
        };
        let high = match (&range.lt, &range.lte) {
            (Some(_), Some(_)) => return Err(bounds()),
            (Some(value), None) => Bound::Excluded(value),
            (None, Some(value)) => Bound::Included(value),
            (None, None) => Bound::Unbounded,
        };
        if matches!((low, high), (Bound::Unbounded, Bound::Unbounded)) {
            return Err(bounds());
        }
        let fail = |expected| {
            move |value: &Value| QueryError::Value {
                field: field.to_owned(),
                expected,
                found: value::kind(value),
            }
        };
        let between = |term: &dyn Fn(&Value) -> Result<Term, QueryError>| -> Result<_, QueryError> {
            Ok(Box::new(RangeQuery::new(bound(low, term)?, bound(high, term)?)) as Box<dyn Ready>)
        };
        match self.target(field, "range")? {
            Target::Named(name, kind) => match kind {
                FieldKind::Integer => {
                    // Bounds with a fraction, or beyond 64 bits, lie between whole numbers.
                    let whole = |value: &Value, up: bool| -> Result<(i64, bool), QueryError> {
                        if let Some(number) = value::integer(value) {
                            return Ok((number, true));
                        }
                        let float = value::float(value).ok_or_else(|| fail("a number")(value))?;
                        let rounded = if up { float.ceil() } else { float.floor() };
                        Ok((rounded as i64, rounded == float && rounded as i64 as i128 == rounded as i128))
                    };
                    const TWO_63: f64 = 9_223_372_036_854_775_808.0;
                    let beyond = |bound: Bound<&Value>, is: fn(f64) -> bool| match bound {
                        Bound::Included(v) | Bound::Excluded(v) => {
                            value::integer(v).is_none() && value::float(v).is_some_and(is)
                        }
                        Bound::Unbounded => false,
                    };
                    if beyond(low, |float| float >= TWO_63) || beyond(high, |float| float < -TWO_63) {
                        return Ok(Box::new(EmptyQuery));
                    }
                    let term = |bound: Bound<&Value>, up: bool| -> Result<Bound<Term>, QueryError> {
                        let (Bound::Included(v) | Bound::Excluded(v)) = bound else {
                            return Ok(Bound::Unbounded);
                        };
                        let (number, exact) = whole(v, up)?;
                        let term = Term::from_field_i64(name, number);
                        let excluded = exact && matches!(bound, Bound::Excluded(_));
                        Ok(if excluded { Bound::Excluded(term) } else { Bound::Included(term) })
                    };
                    Ok(Box::new(RangeQuery::new(term(low, true)?, term(high, false)?)))
                }
                FieldKind::Float => between(&|v| {
                    Ok(Term::from_field_f64(name, value::float(v).ok_or_else(|| fail("a number")(v))?))
                }),
                FieldKind::Date => between(&|v| {
                    Ok(Term::from_field_date(name, value::date(v).ok_or_else(|| fail("a date")(v))?))
                }),
                FieldKind::Keyword => between(&|v| match v {
                    Value::String(text) => Ok(Term::from_field_text(name, text)),
                    _ => Err(fail("a string")(v)),
                }),
                _ => Err(self.kind_error(field, "range")),
            },
            Target::Path(path) => between(&|v| {
                let full =
                    |with: &dyn Fn(&mut Term)| Ok(Mapping::json_term(self.raw, path, |term| with(term)));
                match OwnedValue::from(v.clone()) {
                    OwnedValue::Str(text) => full(&|term| term.append_type_and_str(&text)),
                    OwnedValue::I64(whole) => full(&|term| term.append_type_and_fast_value(whole)),
                    OwnedValue::U64(whole) => full(&|term| term.append_type_and_fast_value(whole)),
                    OwnedValue::F64(float) => full(&|term| term.append_type_and_fast_value(float + 0.0)),
                    OwnedValue::Date(date) => full(&|term| term.append_type_and_fast_value(date)),
                    _ => Err(fail("a number, a date or a string")(v)),
                }
            }),
        }
    }
}

/// Dates of dynamic fields stand among the terms to the second.
fn truncated(date: DateTime) -> DateTime {
    date.truncate(tantivy::schema::DATE_TIME_PRECISION_INDEXED)
}

fn bound(
    bound: Bound<&Value>,
    term: &dyn Fn(&Value) -> Result<Term, QueryError>,
) -> Result<Bound<Term>, QueryError> {
    Ok(match bound {
        Bound::Included(value) => Bound::Included(term(value)?),
        Bound::Excluded(value) => Bound::Excluded(term(value)?),
        Bound::Unbounded => Bound::Unbounded,
    })
}

fn constant(query: Box<dyn Ready>) -> Box<dyn Ready> {
    Box::new(ConstScoreQuery::new(query, 1.0))
}

/// Documents with any of the terms.
fn any(terms: Vec<Term>) -> Box<dyn Ready> {
    constant(Box::new(TermSetQuery::new(terms)))
}

fn finite(argument: &'static str, given: f32) -> Result<f32, QueryError> {
    if given.is_finite() && given >= 0.0 { Ok(given) } else { Err(QueryError::Number { argument, given }) }
}

/// As a regular expression of tantivy's, whose matches are whole.
fn pattern(wildcard: &str) -> String {
    let mut regex = String::new();
    for c in wildcard.chars() {
        match c {
            '*' => regex.push_str("(.|\n)*"),
            '?' => regex.push_str("(.|\n)"),
            c if c.is_alphanumeric() || c == '_' || c.is_whitespace() || !c.is_ascii() => regex.push(c),
            c => regex.extend(['\\', c]),
        }
    }
    regex
}

/// BM25's scores without the factor k1 + 1 (1.2 + 1), which changes no order: Lucene has left it out since version 8.
fn as_lucene(words: Box<dyn Ready>) -> Box<dyn Ready> {
    Box::new(BoostQuery::new(words, 1.0 / 2.2))
}
