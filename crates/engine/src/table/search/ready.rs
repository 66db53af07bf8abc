//! A request that was checked: what may be wrong with it is known before anything is searched.

use super::super::view::View;
use super::SearchTableError;
use super::request::{Fusion, Nearest, Request};
use crate::documents::{Aggregations, Compiled, Order, Position};
use crate::index::{Dtype, Metric, OwnedVectors, Search};

/// A request, ready for a table.
pub(in crate::table) struct Ready<'a> {
    pub(in crate::table) request: &'a Request,
    pub(in crate::table) query: Option<Compiled>,
    /// With its JSON, which stands for it.
    pub(in crate::table) filter: Option<(String, Compiled)>,
    pub(in crate::table) probes: Vec<Probe<'a>>,
    pub(in crate::table) order: Order,
    pub(in crate::table) after: Option<Position>,
    pub(in crate::table) aggregations: Option<Aggregations>,
    /// Hits up to the end of the page.
    pub(in crate::table) hits: usize,
}

/// A vector to look for.
pub(in crate::table) struct Probe<'a> {
    pub(in crate::table) name: &'a str,
    /// Number of the field.
    pub(in crate::table) field: usize,
    pub(in crate::table) metric: Metric,
    pub(in crate::table) vector: OwnedVectors,
    pub(in crate::table) how: Search<'static>,
}

impl<'a> Ready<'a> {
    /// Of a table as `view` shows it.
    pub(super) fn new(view: &View, request: &'a Request) -> Result<Ready<'a>, SearchTableError> {
        let mapping = &view.mapping;
        let query = request.query.as_ref().map(|query| mapping.compile(query)).transpose()?;
        let filter = request.filter.as_ref().map(|filter| {
            let json = serde_json::to_string(filter).expect("a query is JSON");
            Ok::<_, SearchTableError>((json, mapping.compile(filter)?))
        });
        let rows = view.parts.iter().map(|part| part.rows()).sum();
        let probes = request.nearest.iter().map(|nearest| probe(view, nearest, rows));
        let probes = probes.collect::<Result<Vec<_>, _>>()?;
        check(&request.fusion, probes.len() + usize::from(query.is_some()))?;
        let order = match &request.sort[..] {
            [] => Order::by_score(),
            sorts => mapping.order(sorts)?,
        };
        let asked = &request.aggregations;
        let aggregations = if asked.is_empty() { None } else { Some(mapping.aggregations(asked)?) };
        // More than there are need no memory.
        let hits = request.from.saturating_add(request.size).min(rows);
        let mut ready = Ready {
            request,
            query,
            filter: filter.transpose()?,
            probes,
            order,
            after: None,
            aggregations,
            hits,
        };
        if let Some(after) = &request.after {
            ready.after = Some(ready.order.position(after, |shown| ready.shown(shown))?);
        }
        Ok(ready)
    }

    /// The vector that is looked for, if nothing else is: documents are scored by its distance, less being better.
    pub(super) fn alone(&self) -> Option<&Probe<'a>> {
        match (&self.query, &self.probes[..]) {
            (None, [probe]) => Some(probe),
            _ => None,
        }
    }

    /// Whether the vectors that are nearest, by their distance, are all there is to know: no documents are looked at.
    pub(super) fn is_ranking(&self) -> bool {
        self.alone().is_some() && self.order.is_by_score() && self.aggregations.is_none()
    }

    /// Whether documents are looked at.
    pub(super) fn is_searched(&self) -> bool {
        !self.is_ranking() || self.filter.is_some()
    }

    /// What is shown of a score among sort values, and the score of what is shown.
    pub(super) fn shown(&self, score: f32) -> f32 {
        // Without the sign of zero.
        if self.alone().is_some() { 0.0 - score } else { score }
    }
}

fn probe<'a>(view: &View, nearest: &'a Nearest, rows: usize) -> Result<Probe<'a>, SearchTableError> {
    let name = &*nearest.field;
    let Some((field, params)) = view.mapping.vector(name) else {
        return Err(SearchTableError::Field { field: name.to_owned() });
    };
    let wrong = |error| SearchTableError::Nearest { field: name.to_owned(), error };
    let vector = brought(name, params.dtype, &nearest.vector)?;
    let head = view.parts.last().expect("there is always a head").reader(field);
    let mut how = nearest.how();
    match head.check(vector.as_vectors(), &how).map_err(wrong)? {
        1 => {}
        queries => return Err(wrong(lanewise_index::SearchError::OneQuery { queries })),
    }
    // More than there are need no memory.
    (how.k, how.ef_search) = (how.k.min(rows.max(1)), how.ef_search.min(rows.max(1)));
    Ok(Probe { name, field, metric: params.metric, vector, how })
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
    let (Fusion::Rrf { weights, window, .. } | Fusion::ArithmeticMean { weights, window, .. }) = fusion;
    if let Fusion::Rrf { rank_constant, .. } = fusion
        && !(*rank_constant >= 0.0 && rank_constant.is_finite())
    {
        return wrong(format!("rank_constant={rank_constant}: give a number of 0 or more, 60 is usual"));
    }
    if *window == 0 {
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
