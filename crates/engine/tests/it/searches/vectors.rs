//! Vectors within queries, and the least score, against the model.

use super::{Model, distance, filter, model, of, pick, sorts, table};
use lanewise_engine::documents::{Query, Scored, Space};
use lanewise_engine::index::OwnedVectors;
use lanewise_engine::table::{Nearest, Request, SearchTableError, Table};
use lanewise_storage::Rng;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The documents that a query finds, with their scores.
type Found = BTreeMap<String, f32>;
type Means = Box<dyn Fn(&Model) -> Found>;

fn floats(document: &Value, field: &str) -> Option<Vec<f32>> {
    let all = document.get(field)?.as_array()?;
    Some(all.iter().map(|x| x.as_f64().unwrap() as f32).collect())
}

fn space(space: Space, a: &[f32], b: &[f32]) -> f32 {
    let pairs = || a.iter().zip(b).map(|(a, b)| (f64::from(*a), f64::from(*b)));
    let product: f64 = pairs().map(|(a, b)| a * b).sum();
    let length = |v: &[f32]| v.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt();
    let score = match space {
        Space::L2 => 1.0 / (1.0 + pairs().map(|(a, b)| (a - b).powi(2)).sum::<f64>()),
        Space::L1 => 1.0 / (1.0 + pairs().map(|(a, b)| (a - b).abs()).sum::<f64>()),
        Space::Linf => 1.0 / (1.0 + pairs().map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)),
        Space::CosineSimil if length(b) == 0.0 => 0.5,
        Space::CosineSimil => (1.0 + product / (length(a) * length(b))) / 2.0,
        Space::InnerProduct if product >= 0.0 => 1.0 + product,
        Space::InnerProduct => 1.0 / (1.0 - product),
        Space::Hamming => unreachable!("there are no bits"),
    };
    score as f32
}

fn near(random: &mut Rng) -> (Query, Means) {
    let probe = vec![4.0 + random.f32(), 3.0 + random.f32()];
    let (query, meant) = filter(random);
    let mut nearest = Nearest { exact: true, ..Nearest::new("v", OwnedVectors::F32(probe.clone())) };
    if random.bool() {
        nearest.filter = Some(Box::new(query));
    }
    match random.usize(..4) {
        0 => nearest.radius = Some(random.f32() * 20.0),
        1 => nearest.min_score = Some(random.f32()),
        _ => nearest.k = *pick(random, &[1, 3, 10, 1000]),
    }
    let asked = nearest.clone();
    let means = move |model: &Model| {
        let among = model.iter().filter(|(_, document)| asked.filter.is_none() || meant(document));
        let mut all: Vec<(f32, &String)> =
            among.filter_map(|(id, d)| Some((distance(d, "v", &probe)?, id))).collect();
        all.sort_by(|a, b| a.0.total_cmp(&b.0));
        match (asked.radius, asked.min_score) {
            (Some(radius), _) => all.retain(|(distance, _)| *distance <= radius),
            (_, Some(least)) => all.retain(|(distance, _)| 1.0 / (1.0 + distance) >= least),
            _ => all.truncate(asked.k),
        }
        all.into_iter().map(|(distance, id)| (id.clone(), 1.0 / (1.0 + distance))).collect()
    };
    (Query::Nearest(nearest), Box::new(means))
}

fn scored(random: &mut Rng, left: usize) -> (Query, Means) {
    let (inner, means) = tree(random, left);
    let field = *pick(random, &["v", "w"]);
    let probe = match field {
        "v" => vec![random.f32() * 8.0 - 4.0, random.f32() * 8.0 - 4.0],
        _ => vec![f32::from(random.i8(-128..=127)), f32::from(random.i8(1..=127))],
    };
    let asked = *pick(random, &[Space::L2, Space::L1, Space::Linf, Space::CosineSimil, Space::InnerProduct]);
    let query = Query::Scored(Scored {
        query: Box::new(inner),
        field: field.to_owned(),
        vector: OwnedVectors::F32(probe.clone()),
        space: asked,
        min_score: None,
    });
    let means = move |model: &Model| {
        let score = |id: &String| floats(&model[id], field).map_or(0.0, |own| space(asked, &probe, &own));
        means(model).into_keys().map(|id| (id.clone(), score(&id))).collect()
    };
    (query, Box::new(means))
}

/// Queries within queries, most of which are about vectors.
fn tree(random: &mut Rng, left: usize) -> (Query, Means) {
    match if left == 0 { 0 } else { random.usize(..8) } {
        0 => {
            let (query, meant) = filter(random);
            let score = random.u8(1..4).into();
            let means = move |model: &Model| {
                model.iter().filter(|(_, d)| meant(d)).map(|(id, _)| (id.clone(), score)).collect()
            };
            (Query::Constant { query: Box::new(query), score }, Box::new(means))
        }
        1..=3 => near(random),
        4 => scored(random, left - 1),
        5 => {
            let (query, means) = tree(random, left - 1);
            let factor = random.f32() * 3.0;
            let means = move |model: &Model| {
                means(model).into_iter().map(|(id, score)| (id, score * factor)).collect()
            };
            (Query::Boost { query: Box::new(query), factor }, Box::new(means))
        }
        _ => {
            let mut some = |most: usize| -> (Vec<Query>, Vec<Means>) {
                (0..random.usize(..=most)).map(|_| tree(random, left - 1)).unzip()
            };
            let ((must, musts), (should, shoulds)) = (some(2), some(3));
            let ((filter, filters), (must_not, nots)) = (some(1), some(1));
            let least = usize::from(must.is_empty() && filter.is_empty() && !should.is_empty());
            let means = move |model: &Model| {
                let found = |all: &[Means]| -> Vec<Found> { all.iter().map(|means| means(model)).collect() };
                let (musts, shoulds, filters, nots) =
                    (found(&musts), found(&shoulds), found(&filters), found(&nots));
                let fits = |id: &String| {
                    let in_all = |all: &[Found]| all.iter().all(|one| one.contains_key(id));
                    let of_should = shoulds.iter().filter(|one| one.contains_key(id)).count();
                    let no = nots.iter().any(|one| one.contains_key(id));
                    in_all(&musts) && in_all(&filters) && !no && of_should >= least
                };
                let score = |id: &String| musts.iter().chain(&shoulds).filter_map(|one| one.get(id)).sum();
                model.keys().filter(|id| fits(id)).map(|id| (id.clone(), score(id))).collect()
            };
            let query = Query::Bool { must, should, filter, must_not, minimum_should_match: None };
            (query, Box::new(means))
        }
    }
}

fn found(table: &Table, request: &Request) -> Found {
    let answer = table.search(request, None).unwrap();
    assert_eq!(answer.total.value, answer.hits.len() as u64);
    answer.hits.into_iter().map(|hit| (hit.id, hit.score)).collect()
}

fn assert_near(found: &Found, expected: &Found, what: &dyn Fn() -> String) {
    assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>(), "{}", what());
    for (id, score) in expected {
        let own = found[id];
        assert!((own - score).abs() <= 1e-6 * score.max(1.0) * 2.0, "{id}: {own} {score}, {}", what());
    }
}

#[test]
fn vectors_within_queries_are_found_and_scored_as_the_model_says() {
    let mut some = 0;
    for seed in 0..60 {
        let mut random = Rng::with_seed(seed);
        let len = random.usize(..40);
        let model = model(&mut random, len);
        let table = table(&mut random, &model, false);
        for case in 0..12 {
            let (query, means) = tree(&mut random, 3);
            let expected = means(&model);
            some += usize::from(!expected.is_empty());
            let context = || format!("seed {seed}, case {case}: {query:?}");
            let request = Request { query: Some(query.clone()), size: 100, ..Request::default() };
            // As a client does it: through text; and again, when filters are known.
            let text = serde_json::to_string(&request).unwrap();
            for _ in 0..2 {
                assert_near(&found(&table, &serde_json::from_str(&text).unwrap()), &expected, &context);
            }
            // As a filter it scores nothing.
            let request = Request { filter: Some(query.clone()), size: 100, ..Request::default() };
            let ones = expected.keys().map(|id| (id.clone(), 1.0)).collect();
            assert_near(&found(&table, &request), &ones, &context);
        }
    }
    assert!(some > 400, "{some} found something");
}

/// A ranking of its own, with its own filter and radius.
#[test]
fn what_is_near_within_a_radius_is_found_alone_and_among_others() {
    for seed in 0..40 {
        let mut random = Rng::with_seed(seed);
        let model = model(&mut random, 30);
        let table = table(&mut random, &model, false);
        for _ in 0..8 {
            let (query, means) = near(&mut random);
            let Query::Nearest(nearest) = query else { unreachable!("it is") };
            let (other, meant) = filter(&mut random);
            // A filter of the request's counts before the nearest are chosen.
            let request = Request { nearest: vec![nearest.clone()], size: 100, ..Request::default() };
            assert_near(&found(&table, &request), &means(&model), &|| format!("seed {seed}: {nearest:?}"));
            let left = model.iter().filter(|(_, document)| meant(document));
            let left: Model = left.map(|(id, document)| (id.clone(), document.clone())).collect();
            let both = Request { filter: Some(other.clone()), ..request };
            assert_near(&found(&table, &both), &means(&left), &|| {
                format!("seed {seed}: {nearest:?} {other:?}")
            });
        }
    }
}

/// Whatever is asked: those with a lower score are not there, and nothing else changes.
#[test]
fn the_least_score_leaves_those_that_reach_it() {
    let mut left_out = 0;
    for seed in 0..60 {
        let mut random = Rng::with_seed(seed);
        let len = random.usize(1..40);
        let model = model(&mut random, len);
        let table = table(&mut random, &model, false);
        for _ in 0..8 {
            let (query, _) = tree(&mut random, 2);
            let (query, nearest) = match (random.usize(..3), query, near(&mut random).0) {
                (0, query, _) => (Some(query), vec![]),
                (1, query, Query::Nearest(nearest)) => (Some(query), vec![nearest]),
                (_, _, Query::Nearest(nearest)) => (None, vec![nearest]),
                _ => unreachable!("it is about vectors"),
            };
            let aggregations = json!({"i": {"value_count": {"field": "i"}}}).as_object().unwrap().clone();
            let sort = sorts(&mut random);
            let all = Request { query, nearest, sort, size: 100, aggregations, ..Request::default() };
            let whole = table.search(&all, None).unwrap();
            let Some(some) = whole.hits.get(random.usize(..=whole.hits.len())) else { continue };
            let least = some.score;
            let answer = table.search(&Request { min_score: Some(least), ..all.clone() }, None).unwrap();
            let expected: Vec<_> = whole.hits.iter().filter(|hit| hit.score >= least).cloned().collect();
            left_out += whole.hits.len() - expected.len();
            assert_eq!(answer.total.value, expected.len() as u64);
            let values: usize = expected.iter().map(|hit| of(&model[&hit.id], "i").len()).sum();
            assert_eq!(answer.aggregations["i"]["value"], json!(values as f64), "seed {seed}: {all:?}");
            assert_eq!(answer.hits, expected, "seed {seed}: {all:?}");
            // Pages, and where not all is counted.
            let plain = Request { sort: vec![], aggregations: Default::default(), size: 3, ..all };
            let page = |exact_total| Request { min_score: Some(least), exact_total, ..plain.clone() };
            let first = table.search(&page(true), None).unwrap().hits;
            assert_eq!(table.search(&page(false), None).unwrap().hits, first);
        }
    }
    assert!(left_out > 100, "{left_out} left out");
}

/// The radius that is searched is a little wider than the score says.
#[test]
fn the_least_score_of_a_vector_is_exact() {
    let mut random = Rng::with_seed(1);
    let model = model(&mut random, 30);
    let table = table(&mut random, &model, true);
    let near = |least: f32| {
        let vector = OwnedVectors::F32(vec![4.0, 3.0]);
        let nearest = Nearest { min_score: Some(least), exact: true, ..Nearest::new("v", vector) };
        let within =
            Request { query: Some(Query::Nearest(nearest.clone())), size: 100, ..Request::default() };
        let alone = Request { nearest: vec![nearest], size: 100, ..Request::default() };
        let found = found(&table, &within);
        assert_eq!(found, self::found(&table, &alone));
        found
    };
    let all = near(0.0);
    assert!(all.len() > 10);
    for score in all.values() {
        for least in [*score, score.next_up(), score.next_down()] {
            let mut expected = all.clone();
            expected.retain(|_, score| *score >= least);
            assert_eq!(near(least), expected, "{least}");
        }
    }
}

#[test]
fn what_cannot_be_compared_is_refused() {
    let schema = json!({"fields": {
        "c": {"type": "vector", "dim": 2, "metric": "cosine"}, "l": {"type": "vector", "dim": 2},
        "b": {"type": "vector", "dim": 16, "dtype": "bits", "metric": "hamming"}}});
    let table = Table::create(
        std::sync::Arc::new(lanewise_storage::Memory::new()),
        serde_json::from_value(schema).unwrap(),
        crate::check::resources(),
    )
    .unwrap();
    let asked = |query: Value| {
        let query = serde_json::from_value(json!({"bool": {"should": [query]}})).unwrap();
        table.search(&Request { query: Some(query), ..Request::default() }, None)
    };
    let scored = |field: &str, space: &str, vector: Value| {
        asked(json!({"scored": {"query": "all", "field": field, "space": space, "vector": vector}}))
    };
    for (field, space, vector) in [
        ("c", "l2", json!([1, 0])),
        ("l", "hamming", json!([1, 0])),
        ("b", "l1", json!([1, 0])),
        ("l", "cosinesimil", json!([0, 0])),
    ] {
        let refused = scored(field, space, vector);
        assert!(matches!(refused, Err(SearchTableError::Space { .. })), "{field} {space} {refused:?}");
    }
    assert!(
        scored("b", "hamming", json!([1, 0])).is_ok() && scored("c", "cosinesimil", json!([1, 0])).is_ok()
    );
    let near = |more: Value| {
        let mut near = json!({"field": "l", "vector": [1, 0]});
        near.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        asked(json!({"nearest": near}))
    };
    assert!(near(json!({"radius": 1})).is_ok());
    assert!(matches!(near(json!({"field": "x"})), Err(SearchTableError::Field { .. })));
    assert!(matches!(near(json!({"vector": [1]})), Err(SearchTableError::Nearest { .. })));
    let aggs = json!({"aggs": {"a": {"filter": {"nearest": {"field": "l", "vector": [1, 0]}}}}});
    let refused = table.search(&serde_json::from_value(aggs).unwrap(), None);
    assert!(refused.unwrap_err().to_string().contains("are not looked for"));
}
