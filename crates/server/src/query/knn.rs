//! The `knn` query: one vector, and how many or how near are looked for.

use super::{About, at_depth, factor, one, only};
use crate::error::ApiError;
use axum::http::StatusCode;
use lanewise_engine::documents::{FieldKind, VectorField};
use lanewise_engine::index::{Dtype, Metric, OwnedVectors, Params};
use lanewise_engine::table::Nearest;
use serde_json::{Map, Value};

/// As OpenSearch has it.
const K_MAX: u64 = 10_000;

/// Reads `{"field": {"vector": […], "k": 10, …}}`: what is near, and the factor of its scores; nothing if the field is not
/// there, and that is allowed.
///
/// # Errors
/// What is wrong, or not supported.
pub(super) fn read(
    given: &Value,
    about: &About,
    left: usize,
) -> Result<Option<(Nearest, Option<f32>)>, ApiError> {
    let (field, asked) = one(given, "knn")?;
    let asked = super::object("knn", asked)?;
    let known = [
        "vector",
        "k",
        "max_distance",
        "min_score",
        "filter",
        "method_parameters",
        "rescore",
        "boost",
        "ignore_unmapped",
        "expand_nested_docs",
    ];
    only("knn", asked, &known)?;
    let limits = ["k", "max_distance", "min_score"].iter().filter(|key| asked.contains_key(**key)).count();
    if limits != 1 {
        return Err(ApiError::argument("[knn] requires exactly one of k, distance or score to be set"));
    }
    let Some(schema) = &about.schema else {
        return Err(ApiError::parsing("[knn] is not supported in the filters of [aggs]"));
    };
    let params = match schema.fields.get(field) {
        Some(FieldKind::Vector(VectorField(params))) => params,
        None if asked.get("ignore_unmapped") == Some(&Value::Bool(true)) => return Ok(None),
        _ => return Err(failed(format!("Field '{field}' is not knn_vector type."))),
    };
    let Some(given) = asked.get("vector") else {
        return Err(ApiError::parsing("[knn] requires query vector: an array of numbers"));
    };
    let mut nearest = Nearest::new(field, vector("knn", given, params)?);
    nearest.ef_search = about.ef_search;
    reach(asked, params, &mut nearest)?;
    if let Some(parameters) = asked.get("method_parameters") {
        for (key, value) in super::object("knn", parameters)? {
            let number = || {
                let number = value.as_u64().filter(|number| *number > 0);
                number.ok_or_else(|| ApiError::argument(format!("[knn] [{key}] should be greater than 0")))
            };
            match key.as_str() {
                "ef_search" => nearest.ef_search = Some(number()? as usize),
                "nprobes" => nearest.nprobe = Some(number()? as usize),
                other => {
                    return Err(ApiError::argument(format!(
                        "[knn] method_parameters: unknown parameter [{other}]"
                    )));
                }
            }
        }
    }
    match asked.get("rescore") {
        None | Some(Value::Null) => {}
        Some(_) if !asked.contains_key("k") => {
            return Err(ApiError::argument("[knn] rescore is not supported with max_distance and min_score"));
        }
        Some(Value::Bool(true)) => {}
        // The vectors are compared nevertheless: no more than are wanted.
        Some(Value::Bool(false)) => nearest.oversample = Some(1.0),
        Some(rescore) => {
            let rescore = super::object("knn", rescore)?;
            only("knn", rescore, &["oversample_factor"])?;
            let factor = rescore.get("oversample_factor").and_then(Value::as_f64);
            let factor = factor.filter(|factor| (1.0..=100.0).contains(factor));
            let wrong = || ApiError::argument("[knn] oversample_factor must be from 1.0 to 100.0");
            nearest.oversample = Some(factor.ok_or_else(wrong)? as f32);
        }
    }
    nearest.expand = match asked.get("expand_nested_docs") {
        None | Some(Value::Bool(false)) => false,
        Some(Value::Bool(true)) => true,
        Some(_) => return Err(ApiError::parsing("[knn] expand_nested_docs: give true or false")),
    };
    let filter = asked.get("filter").map(|filter| at_depth(filter, about, left)).transpose()?;
    nearest.filter = filter.map(Box::new);
    Ok(Some((nearest, factor("knn", Some(asked))?)))
}

/// How many are looked for, or how near.
fn reach(asked: &Map<String, Value>, params: &Params, nearest: &mut Nearest) -> Result<(), ApiError> {
    let number = |key: &str| match asked.get(key).map(Value::as_f64) {
        None => Ok(None),
        Some(Some(number)) => Ok(Some(number as f32)),
        Some(None) => Err(ApiError::parsing(format!("[knn] [{key}]: give a number"))),
    };
    if let Some(k) = asked.get("k") {
        let k = k.as_u64().filter(|k| (1..=K_MAX).contains(k));
        let wrong = || ApiError::argument(format!("[knn] requires k to be in the range (0, {K_MAX}]"));
        nearest.k = k.ok_or_else(wrong)? as usize;
    }
    nearest.min_score = number("min_score")?;
    // Of inner products OpenSearch 3.5 takes the least; an index has them negated.
    let sign = if params.metric == Metric::InnerProduct { -1.0 } else { 1.0 };
    nearest.radius = number("max_distance")?.map(|distance| sign * distance);
    Ok(())
}

/// A vector as a field's are brought.
pub(super) fn vector(query: &str, given: &Value, params: &Params) -> Result<OwnedVectors, ApiError> {
    let wrong = || ApiError::parsing(format!("[{query}] vector: an array of numbers is expected"));
    let numbers = given.as_array().ok_or_else(wrong)?;
    let expected = if params.dtype == Dtype::Bits { params.dim / 8 } else { params.dim };
    if numbers.len() != expected {
        let reason =
            format!("Query vector has invalid dimension: {}. Dimension should be: {expected}", numbers.len());
        return Err(failed(reason));
    }
    let whole = |number: &Value| number.as_f64().filter(|x| x.fract() == 0.0 && (-128.0..256.0).contains(x));
    let bytes = || numbers.iter().map(|number| whole(number).map(|x| x as i64).ok_or_else(wrong));
    Ok(match params.dtype.brought() {
        Dtype::I8 => OwnedVectors::I8(bytes().map(|x| x.map(|x| x as i8)).collect::<Result<_, _>>()?),
        Dtype::U8 => OwnedVectors::U8(bytes().map(|x| x.map(|x| x as u8)).collect::<Result<_, _>>()?),
        Dtype::Bits => OwnedVectors::Bits(bytes().map(|x| x.map(|x| x as u8)).collect::<Result<_, _>>()?),
        _ => {
            let float = |number: &Value| number.as_f64().map(|x| x as f32).ok_or_else(wrong);
            OwnedVectors::F32(numbers.iter().map(float).collect::<Result<_, _>>()?)
        }
    })
}

/// As OpenSearch's shards fail.
pub(super) fn failed(reason: String) -> ApiError {
    ApiError::new(StatusCode::BAD_REQUEST, "query_shard_exception", reason)
}
