//! A request that was checked: what may be wrong with it is known before anything is searched.

use super::super::view::View;
use super::SearchTableError;
use super::compared::Compared;
use super::fusion::{reach, score};
use super::request::{Fusion, Request};
use crate::documents::{
    Aggregations, Ahead, Compiled, Nearest, Order, Position, Query, Question, Rows, ScoreMode, Scored,
};
use crate::index::{Dtype, Metric, OwnedVectors, Params, Search, SearchError};

/// A request, ready for a table.
pub(in crate::table) struct Ready<'a> {
    pub(in crate::table) request: &'a Request,
    pub(in crate::table) query: Option<Prepared>,
    pub(in crate::table) filter: Option<Prepared>,
    /// Each with its own filter, which is in the other too, if it has one.
    pub(in crate::table) probes: Vec<(Probe, Option<Prepared>)>,
    pub(in crate::table) order: Order,
    pub(in crate::table) after: Option<Position>,
    pub(in crate::table) aggregations: Option<Aggregations>,
    /// Hits up to the end of the page.
    pub(in crate::table) hits: usize,
}

/// The least score that counts. Where one vector is looked for alone, documents are ranked by its distance, negated.
#[derive(Clone, Copy)]
pub(super) struct Least {
    score: Option<f32>,
    alone: Option<Metric>,
}

impl Least {
    /// All count.
    pub(super) const NONE: Least = Least { score: None, alone: None };

    /// Whether a document of this rank counts.
    pub(super) fn passes(self, rank: f32) -> bool {
        self.score.is_none_or(|least| self.score_of(rank) >= least)
    }

    /// The score of a document of this rank.
    pub(super) fn score_of(self, rank: f32) -> f32 {
        // Without the sign of zero.
        self.alone.map_or(rank, |metric| score(metric, 0.0 - rank))
    }
}

/// A vector to look for.
#[derive(Clone)]
pub(in crate::table) struct Probe {
    pub(in crate::table) name: String,
    /// Number of the field.
    pub(in crate::table) field: usize,
    pub(in crate::table) metric: Metric,
    pub(in crate::table) vector: OwnedVectors,
    pub(in crate::table) how: Search<'static>,
    /// Which nested objects have the vectors: the nearest of each document counts.
    pub(in crate::table) path: Option<String>,
    /// All of them count.
    pub(in crate::table) expand: bool,
    /// All that are so near, in place of a number of them.
    pub(in crate::table) radius: Option<f32>,
    pub(in crate::table) min_score: Option<f32>,
}

/// A query, with what must be known before it is asked.
pub(in crate::table) struct Prepared {
    pub(in crate::table) compiled: Compiled,
    /// What stands for it where its rows are kept: itself as JSON, behind what nested objects it is about. Not if it is
    /// about vectors: what is nearest changes.
    pub(in crate::table) json: Option<String>,
    pub(in crate::table) within: Vec<Within>,
}

/// What within a query is answered before it.
pub(in crate::table) struct Within {
    pub(in crate::table) asked: Asked,
    pub(in crate::table) among: Option<Prepared>,
    /// Where it goes.
    pub(in crate::table) rows: Rows,
}

pub(in crate::table) enum Asked {
    /// With `of_documents` it is among the nested objects of what the filter finds.
    Nearest {
        probe: Box<Probe>,
        of_documents: bool,
    },
    Compared(Box<Compared>),
    /// The documents of nested objects.
    Documents(ScoreMode),
}

impl<'a> Ready<'a> {
    /// Of a table as `view` shows it.
    pub(super) fn new(view: &View, request: &'a Request) -> Result<Ready<'a>, SearchTableError> {
        let mapping = &view.mapping;
        let query = request.query.as_ref().map(|query| prepare(view, query)).transpose()?;
        let filter = request.filter.as_ref().map(|filter| prepare(view, filter)).transpose()?;
        let rows = view.parts.iter().map(|part| part.rows()).sum();
        let probes = request.nearest.iter().map(|nearest| {
            let both =
                nearest.filter.iter().map(|filter| &**filter).chain(&request.filter).cloned().collect();
            let filter = nearest.filter.is_some().then(|| prepare(view, &Query::all_of(both)));
            Ok((probe(view, nearest, None)?, filter.transpose()?))
        });
        let probes = probes.collect::<Result<Vec<_>, SearchTableError>>()?;
        check(&request.fusion, probes.len() + usize::from(query.is_some()))?;
        let order = match &request.sort[..] {
            [] => Order::by_score(),
            sorts => mapping.order(sorts)?,
        };
        let asked = &request.aggregations;
        let aggregations = if asked.is_empty() { None } else { Some(mapping.aggregations(asked)?) };
        // More than there are need no memory.
        let hits = request.from.saturating_add(request.size).min(rows);
        let mut ready = Ready { request, query, filter, probes, order, after: None, aggregations, hits };
        if let Some(after) = &request.after {
            ready.after = Some(ready.order.position(after, |shown| ready.shown(shown))?);
        }
        Ok(ready)
    }

    /// The vector that is looked for, if nothing else is: documents are scored by its distance, less being better.
    pub(super) fn alone(&self) -> Option<&Probe> {
        match (&self.query, &self.probes[..]) {
            (None, [(probe, _)]) => Some(probe),
            _ => None,
        }
    }

    /// What counts.
    pub(super) fn least(&self) -> Least {
        Least { score: self.request.min_score, alone: self.alone().map(|probe| probe.metric) }
    }

    /// Whether the vectors that are nearest, by their distance, are all there is to know: no documents are looked at.
    pub(super) fn is_ranking(&self) -> bool {
        self.alone().is_some() && self.order.is_by_score() && self.aggregations.is_none()
    }

    /// Whether documents are looked at.
    pub(super) fn is_searched(&self) -> bool {
        !self.is_ranking() || self.filter.is_some() || self.probes.iter().any(|(_, own)| own.is_some())
    }

    /// What is shown of a score among sort values, and the score of what is shown.
    pub(super) fn shown(&self, score: f32) -> f32 {
        // Without the sign of zero.
        if self.alone().is_some() { 0.0 - score } else { score }
    }
}

fn prepare(view: &View, query: &Query) -> Result<Prepared, SearchTableError> {
    let compiled = view.mapping.compile(query)?;
    let json = key(&compiled, None, query);
    prepared(view, compiled, json)
}

/// What stands for a query where its rows are kept.
fn key(compiled: &Compiled, path: Option<&str>, query: &Query) -> Option<String> {
    let json = || serde_json::to_string(query).expect("a query is JSON");
    compiled.is_fixed().then(|| path.map_or_else(json, |path| format!("{path:?}{}", json())))
}

fn prepared(view: &View, mut compiled: Compiled, json: Option<String>) -> Result<Prepared, SearchTableError> {
    let within = compiled.ahead.drain(..).map(|Ahead { asked, path, among, rows }| {
        let path = path.as_deref();
        let (asked, filter) = match asked {
            Question::Nearest { nearest, of_documents } => {
                let probe = Box::new(probe(view, &nearest, path)?);
                let path = path.filter(|_| !of_documents);
                (Asked::Nearest { probe, of_documents }, nearest.filter.map(|filter| (path, filter)))
            }
            Question::Scored(scored) => {
                let compared = Box::new(compared(view, &scored, path)?);
                (Asked::Compared(compared), Some((path, scored.query)))
            }
            // With their scores they are not kept.
            Question::Documents(mode) => (Asked::Documents(mode), None),
        };
        let among = among.map(|among| {
            let json = filter.and_then(|(path, filter)| key(&among, path, &filter));
            prepared(view, among, json)
        });
        Ok(Within { asked, among: among.transpose()?, rows })
    });
    let within = within.collect::<Result<_, SearchTableError>>()?;
    Ok(Prepared { compiled, json, within })
}

/// A field's number, and one vector, as it is brought there.
fn one_vector(
    view: &View,
    path: Option<&str>,
    (name, vector, how): (&str, &OwnedVectors, &Search<'_>),
) -> Result<(usize, Params, OwnedVectors), SearchTableError> {
    let Some((field, params)) = view.mapping.vector(name) else {
        return Err(SearchTableError::Field { field: name.to_owned() });
    };
    match (view.mapping.schema().nested(name), path) {
        (own, path) if own == path => {}
        (Some(own), None) => {
            return Err(SearchTableError::Nested { field: name.to_owned(), path: own.to_owned() });
        }
        (_, path) => {
            let path = path.unwrap_or_default().to_owned();
            return Err(SearchTableError::NotNested { field: name.to_owned(), path });
        }
    }
    let wrong = |error| SearchTableError::Nearest { field: name.to_owned(), error };
    let vector = brought(name, params.dtype, vector)?;
    let head = view.parts.last().expect("there is always a head").reader(field);
    match head.check(vector.as_vectors(), how).map_err(wrong)? {
        1 => Ok((field, *params, vector)),
        queries => Err(wrong(SearchError::OneQuery { queries })),
    }
}

fn probe(view: &View, nearest: &Nearest, path: Option<&str>) -> Result<Probe, SearchTableError> {
    let name = &*nearest.field;
    let mut how = nearest.how();
    let (field, params, vector) = one_vector(view, path, (name, &nearest.vector, &how))?;
    let wrong = |error| SearchTableError::Nearest { field: name.to_owned(), error };
    if nearest.radius.is_some_and(f32::is_nan) || nearest.min_score.is_some_and(f32::is_nan) {
        return Err(wrong(SearchError::Radius));
    }
    // More than there are need no memory.
    let rows = view.parts.iter().map(|part| part.rows()).sum::<usize>().max(1);
    (how.k, how.ef_search) = (how.k.min(rows), how.ef_search.min(rows));
    let by_score = nearest.min_score.map(|least| reach(params.metric, least));
    let radius = match (nearest.radius, by_score) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    };
    let (name, metric, min_score) = (name.to_owned(), params.metric, nearest.min_score);
    let (path, expand) = (path.map(str::to_owned), nearest.expand);
    Ok(Probe { name, field, metric, vector, how, path, expand, radius, min_score })
}

fn compared(view: &View, scored: &Scored, path: Option<&str>) -> Result<Compared, SearchTableError> {
    let name = &*scored.field;
    let (field, params, vector) = one_vector(view, path, (name, &scored.vector, &Search::new(1)))?;
    Compared::new((name, field, &params), scored.space, vector, scored.min_score)
}

/// A vector as the field's are brought: from JSON all come as floats.
fn brought(field: &str, dtype: Dtype, vector: &OwnedVectors) -> Result<OwnedVectors, SearchTableError> {
    let OwnedVectors::F32(floats) = vector else { return Ok(vector.clone()) };
    let whole = |least: f32, most: f32| {
        let fits = |x: &f32| x.fract() == 0.0 && (least..=most).contains(x);
        match floats.iter().find(|x| !fits(x)) {
            None => Ok(floats.iter().copied()),
            Some(&found) => Err(SearchTableError::Whole { field: field.to_owned(), least, most, found }),
        }
    };
    Ok(match dtype.brought() {
        Dtype::I8 => OwnedVectors::I8(whole(-128.0, 127.0)?.map(|x| x as i8).collect()),
        Dtype::U8 => OwnedVectors::U8(whole(0.0, 255.0)?.map(|x| x as u8).collect()),
        Dtype::Bits => OwnedVectors::Bits(whole(-128.0, 255.0)?.map(|x| x as i16 as u8).collect()),
        _ => vector.clone(),
    })
}

fn check(fusion: &Fusion, rankings: usize) -> Result<(), SearchTableError> {
    let wrong = |what: String| Err(SearchTableError::Fusion { what });
    let (weights, window) = fusion.weights();
    if let Fusion::Rrf { rank_constant, .. } = fusion
        && !(*rank_constant >= 0.0 && rank_constant.is_finite())
    {
        return wrong(format!("rank_constant={rank_constant}: give a number of 0 or more, 60 is usual"));
    }
    if window == 0 {
        return wrong("window=0: give how many documents of the query are ranked, 100 is usual".to_owned());
    }
    let fit = |weight: &f32| *weight >= 0.0 && weight.is_finite();
    if !weights.is_empty() && (weights.len() != rankings || !weights.iter().all(fit)) {
        return wrong(format!(
            "weights={weights:?}: give {rankings} numbers of 0 or more, one for each ranking"
        ));
    }
    Ok(())
}
