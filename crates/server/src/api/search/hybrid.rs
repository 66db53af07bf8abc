//! The `hybrid` query: several queries, whose scores are brought to one range, over all indexes, and made one; as the
//! neural-search plugin does it. How is said by a search pipeline (`pipeline.rs`); not said: by min-max, and the mean.

use super::asked::ask;
use super::{Searched, both};
use crate::error::ApiError;
use crate::query;
use lanewise_engine::documents::Query;
use lanewise_engine::table::{Answer, Fusion, Hit, Normalization, Request, fuse};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

/// Queries of one, at most.
const QUERIES: usize = 5;

/// Several queries, and how their scores are made one.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Hybrid {
    queries: Vec<Value>,
    filter: Option<Value>,
    /// Hits of each query that are ranked, at least.
    depth: usize,
    fusion: Fusion,
}

/// Hits by their places among those of an answer, with their scores.
pub(super) type Ranking = Vec<(usize, f32)>;

/// Reads a body whose query is a hybrid one.
pub(super) fn read(body: &Map<String, Value>) -> Result<Option<Hybrid>, ApiError> {
    let pipeline = pipeline(body.get("search_pipeline"))?;
    let Some(given) = body.get("query").and_then(|query| query.get("hybrid")) else { return Ok(None) };
    let fields = given.as_object().ok_or_else(|| ApiError::parsing("[hybrid] expected an object"))?;
    query::only("hybrid", fields, &["queries", "filter", "pagination_depth"])?;
    let queries = fields.get("queries").and_then(Value::as_array).filter(|queries| !queries.is_empty());
    let queries = queries
        .ok_or_else(|| ApiError::parsing("[hybrid] requires 'queries' field with at least one clause"))?;
    if queries.len() > QUERIES {
        return Err(ApiError::parsing("Number of sub-queries exceeds maximum supported by [hybrid] query"));
    }
    let depth = match fields.get("pagination_depth") {
        None => 0,
        Some(given) => given
            .as_u64()
            .filter(|depth| (1..=10_000).contains(depth))
            .ok_or_else(|| ApiError::argument("[hybrid] pagination_depth should be from 1 to 10000"))?
            as usize,
    };
    let usual = || Ok((by("min_max", "arithmetic_mean", Vec::new())?, 0));
    let (fusion, weights) = pipeline.map_or_else(usual, Ok)?;
    if weights > 0 && weights != queries.len() {
        return Err(ApiError::argument(format!(
            "number of weights [{weights}] must match number of sub-queries [{}] in hybrid query",
            queries.len()
        )));
    }
    let filter = fields.get("filter").cloned();
    Ok(Some(Hybrid { queries: queries.clone(), filter, depth, fusion }))
}

/// How scores are made one, by the names of the processors.
fn by(normalization: &str, combination: &str, weights: Vec<f32>) -> Result<Fusion, ApiError> {
    let normalization = match normalization {
        "min_max" => Normalization::MinMax,
        "l2" => Normalization::L2,
        other => {
            let what = format!("normalization technique [{other}] is not supported: give min_max or l2");
            return Err(ApiError::argument(what));
        }
    };
    let window = usize::MAX;
    match combination {
        "arithmetic_mean" => Ok(Fusion::ArithmeticMean { normalization, weights, window }),
        "geometric_mean" => Ok(Fusion::GeometricMean { normalization, weights, window }),
        "harmonic_mean" => Ok(Fusion::HarmonicMean { normalization, weights, window }),
        other => Err(ApiError::argument(format!(
            "combination technique [{other}] is not supported: give arithmetic_mean, geometric_mean or harmonic_mean"
        ))),
    }
}

/// What a pipeline in a body says of fusion, and how many weights; it may say nothing of it.
pub(super) fn pipeline(given: Option<&Value>) -> Result<Option<(Fusion, usize)>, ApiError> {
    let Some(given) = given.filter(|given| !given.is_null()) else { return Ok(None) };
    let fields = object("search_pipeline", Some(given))?;
    query::only("search_pipeline", &fields, &["description", "version", "phase_results_processors"])?;
    let processors = fields.get("phase_results_processors").and_then(Value::as_array).cloned();
    let mut processors = processors.unwrap_or_default().into_iter();
    let Some(processor) = processors.next() else { return Ok(None) };
    if processors.next().is_some() {
        return Err(ApiError::argument("[search_pipeline] one of phase_results_processors is supported"));
    }
    let (name, how) = query::one(&processor, "phase_results_processors")?;
    let how = object(name, Some(how))?;
    let known = ["normalization", "combination", "tag", "description", "ignore_failure"];
    query::only(name, &how, &known)?;
    let combination = object("combination", how.get("combination"))?;
    query::only("combination", &combination, &["technique", "parameters", "rank_constant"])?;
    let parameters = object("parameters", combination.get("parameters"))?;
    query::only("parameters", &parameters, &["weights"])?;
    let weights = weights(parameters.get("weights"))?;
    let len = weights.len();
    let technique = |of: &Map<String, Value>, usual: &'static str| {
        of.get("technique").and_then(Value::as_str).unwrap_or(usual).to_owned()
    };
    match name {
        "normalization-processor" => {
            let normalization = object("normalization", how.get("normalization"))?;
            query::only("normalization", &normalization, &["technique"])?;
            let (by_what, mean) =
                (technique(&normalization, "min_max"), technique(&combination, "arithmetic_mean"));
            Ok(Some((by(&by_what, &mean, weights)?, len)))
        }
        "score-ranker-processor" if technique(&combination, "") == "rrf" => {
            let constant = combination.get("rank_constant").map_or(Some(60), Value::as_u64);
            let constant = constant.filter(|constant| (1..=10_000).contains(constant)).ok_or_else(|| {
                ApiError::argument("rank constant must be in the interval between 1 and 10000")
            })?;
            let fusion = Fusion::Rrf { rank_constant: constant as f32, weights, window: usize::MAX };
            Ok(Some((fusion, len)))
        }
        other => Err(ApiError::argument(format!("[search_pipeline] [{other}] is not supported"))),
    }
}

fn object(what: &str, given: Option<&Value>) -> Result<Map<String, Value>, ApiError> {
    match given {
        None => Ok(Map::new()),
        Some(Value::Object(fields)) => Ok(fields.clone()),
        Some(_) => Err(ApiError::parsing(format!("[{what}]: give an object"))),
    }
}

fn weights(given: Option<&Value>) -> Result<Vec<f32>, ApiError> {
    let Some(given) = given else { return Ok(Vec::new()) };
    let wrong = |what: &str| ApiError::argument(format!("{what}, submitted weights: {given}"));
    let all = given.as_array().ok_or_else(|| wrong("weights must be an array"))?;
    let weight = |one: &Value| one.as_f64().filter(|one| (0.0..=1.0).contains(one)).map(|one| one as f32);
    let all: Option<Vec<f32>> = all.iter().map(weight).collect();
    let all = all.ok_or_else(|| wrong("all weights must be in range [0.0 ... 1.0]"))?;
    if !all.is_empty() && (all.iter().sum::<f32>() - 1.0).abs() > 0.01 {
        return Err(wrong("sum of weights for combination must be equal to 1.0"));
    }
    Ok(all)
}

impl Hybrid {
    /// What each query finds in an index, as one answer with the hits of all, and the rankings; nothing if it takes too long.
    pub(super) fn search(
        &self,
        searched: &Searched,
        request: &Request,
        timeout: Option<Duration>,
    ) -> Result<Option<(Answer, Vec<Ranking>)>, ApiError> {
        let about = searched.about();
        let filter = self.filter.as_ref().map(|filter| query::read(filter, &about)).transpose()?;
        let filter = both(filter, request.filter.clone());
        let size = request.size.max(self.depth);
        let plain = Request { filter, size, profile: request.profile, ..Request::default() };
        let asked = self.queries.iter().map(|given| ask(given, &about, plain.clone()));
        let asked = asked.collect::<Result<Vec<_>, _>>()?;
        let any = Query::Bool {
            must: Vec::new(),
            should: asked.iter().cloned().map(whole).collect(),
            filter: Vec::new(),
            must_not: Vec::new(),
            minimum_should_match: Some(1),
        };
        let all = Request { query: Some(any), filter: None, size: 0, min_score: None, ..request.clone() };
        let Some(mut answer) = searched.search(&all, timeout)? else { return Ok(None) };
        let (mut places, mut rankings) = (HashMap::new(), Vec::new());
        for request in &asked {
            let Some(found) = searched.search(request, timeout)? else { return Ok(None) };
            let place = |hit: Hit| {
                let at = *places.entry(hit.id.clone()).or_insert_with(|| {
                    answer.hits.push(hit.clone());
                    answer.hits.len() - 1
                });
                (at, hit.score)
            };
            rankings.push(found.hits.into_iter().map(place).collect());
        }
        Ok(Some((answer, rankings)))
    }

    /// The score of each hit, of the rankings of all indexes: by index and query.
    pub(super) fn fuse(&self, of_indexes: &[Vec<Ranking>]) -> BTreeMap<(usize, usize), f32> {
        let of_query = |query: usize| {
            let all = of_indexes.iter().enumerate().flat_map(|(part, rankings)| {
                rankings.get(query).into_iter().flatten().map(move |&(hit, score)| ((part, hit), score))
            });
            let mut all: Vec<((usize, usize), f32)> = all.collect();
            // Stable: of equals those of the first index come first, as it has them.
            all.sort_by(|one, other| other.1.total_cmp(&one.1));
            all
        };
        fuse(&self.fusion, &(0..self.queries.len()).map(of_query).collect::<Vec<_>>())
    }
}

/// All that a request finds, as a query: the nearest are chosen among what its filter finds.
pub(super) fn whole(request: Request) -> Query {
    let Request { query, nearest, filter, .. } = request;
    if query.is_none() && nearest.is_empty() {
        return filter.unwrap_or(Query::All);
    }
    let near = nearest.into_iter().map(|mut nearest| {
        nearest.filter = filter.clone().map(Box::new);
        Query::Nearest(nearest)
    });
    let must: Vec<Query> = query.into_iter().chain(near).collect();
    Query::Bool {
        must,
        should: Vec::new(),
        filter: filter.clone().into_iter().collect(),
        must_not: Vec::new(),
        minimum_should_match: None,
    }
}
