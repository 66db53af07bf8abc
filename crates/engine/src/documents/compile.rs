//! Queries made ready: checked against the schema, and turned into tantivy's.

use super::found::{Ahead, Question, Rows};
use super::mapping::Mapping;
use super::query::{DEPTH_MAX, EDITS_MAX, Fuzziness, Operator, Query, QueryError, Range};
use super::schema::{Analyzer, FieldKind};
use super::settled::Settled;
use super::value;
use serde_json::Value;
use std::ops::Bound;
use tantivy::query::{
    AllQuery, BooleanQuery, BoostQuery, ConstScoreQuery, DisjunctionMaxQuery, EmptyQuery, FuzzyTermQuery,
    Occur, PhrasePrefixQuery, PhraseQuery, Query as Ready, RangeQuery, RegexQuery, TermQuery, TermSetQuery,
};
use tantivy::schema::{Field, IndexRecordOption, OwnedValue};
use tantivy::tokenizer::{TextAnalyzer, TokenizerManager};
use tantivy::{DateTime, Term};

/// A query that was checked, for any run of the same mapping.
#[derive(Debug)]
pub struct Compiled {
    pub(super) query: Box<dyn Ready>,
    /// To be answered, and filled in, before it is weighed.
    pub ahead: Vec<Ahead>,
}

impl Compiled {
    /// Whether what it finds in a segment stays as it is: what is nearest does not.
    pub fn is_fixed(&self) -> bool {
        let fixed = |ahead: &Ahead| {
            let of_documents = matches!(ahead.asked, Question::Documents(_));
            of_documents && ahead.among.as_ref().is_none_or(Compiled::is_fixed)
        };
        self.ahead.iter().all(fixed)
    }
}

/// Where a query stands.
#[derive(Clone, Copy)]
struct Place<'a> {
    /// Queries that may be within it.
    left: usize,
    /// Which nested objects it is about; `None`: documents.
    path: Option<&'a str>,
}

/// Words of a text: as terms, their places, and how many letters they have.
#[derive(Default)]
struct Words {
    terms: Vec<Term>,
    places: Vec<usize>,
    letters: Vec<usize>,
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
        self.compile_at(query, Place { left: DEPTH_MAX, path: None })
    }

    fn compile_at(&self, query: &Query, place: Place<'_>) -> Result<Compiled, QueryError> {
        let mut ahead = Vec::new();
        let mut query = self.placed(query, place, &mut ahead)?;
        if let Some(path) = place.path {
            let marker = any(vec![Term::from_field_text(self.names, &Mapping::marker(path))]);
            query = Box::new(BooleanQuery::new(vec![(Occur::Must, query), (Occur::Must, silent(marker))]));
        }
        Ok(Compiled { query, ahead })
    }

    fn placed(
        &self,
        query: &Query,
        place: Place<'_>,
        ahead: &mut Vec<Ahead>,
    ) -> Result<Box<dyn Ready>, QueryError> {
        let place = Place { left: place.left.checked_sub(1).ok_or(QueryError::Depth)?, ..place };
        let mut all = |queries: &[Query]| -> Result<Vec<Box<dyn Ready>>, QueryError> {
            queries.iter().map(|query| self.placed(query, place, ahead)).collect()
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
                let what = "a pattern of * and ? that is not too large";
                self.regex(field, "wildcard", value, &pattern(value), what)?
            }
            Query::Regexp { field, value } => {
                self.regex(field, "regexp", value, value, "a regular expression that is not too large")?
            }
            Query::Fuzzy { field, value, fuzziness } => {
                let term = self.string(field, value, "fuzzy")?;
                let exactly = any(vec![term.clone()]);
                near(exactly, term, fuzziness.edits(value.chars().count()))?
            }
            Query::Match { field, text, operator, fuzziness } => {
                self.matching(field, text, *operator, *fuzziness)?
            }
            Query::PhrasePrefix { field, text } => {
                let words = self.words(&self.target(field, "phrase_prefix")?, text);
                let Some(Words { mut terms, places, .. }) = words else {
                    return Err(self.kind_error(field, "phrase_prefix"));
                };
                match (terms.len(), terms.pop()) {
                    (_, None) => Box::new(EmptyQuery),
                    (1, Some(only)) => constant(Box::new(FuzzyTermQuery::new_prefix(only, 0, true))),
                    (_, Some(last)) => {
                        let terms = places.into_iter().zip(terms.into_iter().chain([last])).collect();
                        as_lucene(Box::new(PhrasePrefixQuery::new_with_offset(terms)))
                    }
                }
            }
            Query::Phrase { field, text, slop } => {
                let words = self.words(&self.target(field, "phrase")?, text);
                let Words { terms, places, .. } = words.ok_or_else(|| self.kind_error(field, "phrase"))?;
                match terms.len() {
                    0 => Box::new(EmptyQuery),
                    1 => any(terms),
                    _ => {
                        let placed = places.into_iter().zip(terms).collect();
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
            Query::DisMax { queries, tie_breaker } => {
                let tie_breaker = finite("tie_breaker", *tie_breaker)?;
                Box::new(DisjunctionMaxQuery::with_tie_breaker(all(queries)?, tie_breaker))
            }
            Query::Boost { query, factor } => {
                let query = self.placed(query, place, ahead)?;
                Box::new(BoostQuery::new(query, finite("factor", *factor)?))
            }
            Query::Constant { query, score } => {
                let query = self.placed(query, place, ahead)?;
                Box::new(ConstScoreQuery::new(query, finite("score", *score)?))
            }
            Query::Nearest(near) => {
                // As in OpenSearch: in nested objects a filter is about their documents, unless it is itself about them.
                let (filter, of) = match (near.filter.as_deref(), place.path) {
                    (Some(Query::Nested { path, query, .. }), Some(own)) if path == own => {
                        (Some(&**query), place)
                    }
                    (filter, _) => (filter, Place { path: None, ..place }),
                };
                let of_documents = of.path != place.path;
                let among = filter.map(|filter| self.compile_at(filter, of)).transpose()?;
                self.ask_ahead(Question::Nearest { nearest: near.clone(), of_documents }, among, place, ahead)
            }
            Query::Scored(scored) => {
                let among = self.compile_at(&scored.query, place)?;
                self.ask_ahead(Question::Scored(scored.clone()), Some(among), place, ahead)
            }
            Query::Nested { path, query, score } => {
                let error = |of: fn(String) -> QueryError| Err(of(path.clone()));
                if place.path.is_some() {
                    return error(|path| QueryError::NestedTwice { path });
                }
                if self.schema.fields.get(path) != Some(&FieldKind::Nested) {
                    return error(|path| QueryError::Path { path });
                }
                let among = self.compile_at(query, Place { path: Some(path), ..place })?;
                self.ask_ahead(Question::Documents(*score), Some(among), place, ahead)
            }
        })
    }

    /// Notes what is to be answered ahead; what it will find.
    fn ask_ahead(
        &self,
        asked: Question,
        among: Option<Compiled>,
        place: Place<'_>,
        ahead: &mut Vec<Ahead>,
    ) -> Box<dyn Ready> {
        let rows = Rows::default();
        ahead.push(Ahead { asked, path: place.path.map(str::to_owned), among, rows: rows.clone() });
        Box::new(rows)
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
            Some(FieldKind::Object | FieldKind::Nested) => "an object",
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
                FieldKind::Vector(_) | FieldKind::Object | FieldKind::Nested => unreachable!("no target"),
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

    /// The strings of a field that a regular expression describes, which was `given` in another form.
    fn regex(
        &self,
        field: &str,
        asked: &'static str,
        given: &str,
        regex: &str,
        expected: &'static str,
    ) -> Result<Box<dyn Ready>, QueryError> {
        let target = self.target(field, asked)?;
        let Target::Named(name, FieldKind::Keyword | FieldKind::Text { .. }) = target else {
            return Err(self.kind_error(field, asked));
        };
        let regex = RegexQuery::from_pattern(regex, name).map_err(|_| {
            let found = value::kind(&Value::String(given.to_owned()));
            QueryError::Value { field: field.to_owned(), expected, found }
        })?;
        Ok(constant(Box::new(regex)))
    }

    /// The words of `text` as the field has them; `None` where the field has no words.
    fn words(&self, target: &Target<'_>, text: &str) -> Option<Words> {
        let analyzer = match target {
            Target::Named(_, FieldKind::Text { analyzer }) => *analyzer,
            Target::Named(..) => return None,
            Target::Path(_) => Analyzer::Standard,
        };
        let mut analyzer: TextAnalyzer = TokenizerManager::default().get(analyzer.tokenizer())?;
        let mut stream = analyzer.token_stream(text);
        let mut words = Words::default();
        while let Some(token) = stream.next() {
            words.terms.push(match target {
                Target::Named(named, _) => Term::from_field_text(*named, &token.text),
                Target::Path(path) => {
                    Mapping::json_term(self.text, path, |term| term.append_type_and_str(&token.text))
                }
            });
            words.places.push(token.position);
            words.letters.push(token.text.chars().count());
        }
        Some(words)
    }

    fn matching(
        &self,
        field: &str,
        text: &str,
        operator: Operator,
        fuzziness: Option<Fuzziness>,
    ) -> Result<Box<dyn Ready>, QueryError> {
        let target = self.target(field, "match")?;
        let edits = |letters: usize| fuzziness.map_or(0, |fuzziness| fuzziness.edits(letters));
        let Some(Words { terms, letters, .. }) = self.words(&target, text) else {
            let exactly = any(self.terms(field, &Value::String(text.to_owned()))?);
            return match self.string(field, text, "match") {
                Ok(term) => near(exactly, term, edits(text.chars().count())),
                // Of numbers and the like none is near.
                Err(_) => Ok(exactly),
            };
        };
        let occur = if operator == Operator::And { Occur::Must } else { Occur::Should };
        let scored = |(term, letters): (Term, usize)| {
            let exactly = TermQuery::new(term.clone(), IndexRecordOption::WithFreqs);
            Ok((occur, near(as_lucene(Box::new(exactly)), term, edits(letters))?))
        };
        let words = terms.into_iter().zip(letters).map(scored).collect::<Result<_, QueryError>>()?;
        let words = BooleanQuery::new(words);
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

/// The same documents, with nothing to their scores.
fn silent(query: Box<dyn Ready>) -> Box<dyn Ready> {
    Box::new(ConstScoreQuery::new(query, 0.0))
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

/// Documents with a term, and with those that are so near to it; the latter score as little as makes no difference among
/// words that are just as they were asked for.
fn near(exactly: Box<dyn Ready>, term: Term, edits: u8) -> Result<Box<dyn Ready>, QueryError> {
    const NEAR: f32 = 0.01;
    Ok(match edits {
        0 => exactly,
        1..=EDITS_MAX => {
            let near = Box::new(FuzzyTermQuery::new(term, edits, true));
            Box::new(DisjunctionMaxQuery::new(vec![exactly, Box::new(ConstScoreQuery::new(near, NEAR))]))
        }
        given => return Err(QueryError::Fuzziness { given }),
    })
}

/// BM25's scores without the factor k1 + 1 (1.2 + 1), which changes no order: Lucene has left it out since version 8.
fn as_lucene(words: Box<dyn Ready>) -> Box<dyn Ready> {
    Box::new(BoostQuery::new(words, 1.0 / 2.2))
}
