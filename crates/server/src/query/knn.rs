//! The `knn` query: one vector, and how hard to look for what is near.

use super::{one, only};
use crate::error::ApiError;
use axum::http::StatusCode;
use lanewise_engine::documents::{FieldKind, Query, Schema, VectorField};
use lanewise_engine::index::{Dtype, OwnedVectors};
use lanewise_engine::table::Nearest;
use serde_json::Value;

/// As OpenSearch has it.
const K_MAX: u64 = 10_000;

/// Reads `{"field": {"vector": […], "k": 10, …}}`: what is near, among what. `ef_search` is the index's, for queries that do
/// not say.
///
/// # Errors
/// What is wrong, or not supported.
pub(crate) fn read(
    given: &Value,
    schema: &Schema,
    ef_search: Option<usize>,
) -> Result<(Nearest, Option<Query>), ApiError> {
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
    if !asked.contains_key("k") {
        return Err(ApiError::argument("[knn] max_distance and min_score are not supported yet: give k"));
    }
    let k = asked["k"].as_u64().filter(|k| (1..=K_MAX).contains(k));
    let k =
        k.ok_or_else(|| ApiError::argument(format!("[knn] requires k to be in the range (0, {K_MAX}]")))?;
    let Some(FieldKind::Vector(VectorField(params))) = schema.fields.get(field) else {
        return Err(failed(format!("Field '{field}' is not knn_vector type.")));
    };
    let Some(Value::Array(numbers)) = asked.get("vector") else {
        return Err(ApiError::parsing("[knn] requires query vector: an array of numbers"));
    };
    let expected = if params.dtype == Dtype::Bits { params.dim / 8 } else { params.dim };
    if numbers.len() != expected {
        let reason =
            format!("Query vector has invalid dimension: {}. Dimension should be: {expected}", numbers.len());
        return Err(failed(reason));
    }
    let wrong = || ApiError::parsing("[knn] vector: an array of numbers is expected");
    let whole = |number: &Value| number.as_f64().filter(|x| x.fract() == 0.0 && (-128.0..256.0).contains(x));
    let bytes = || numbers.iter().map(|number| whole(number).map(|x| x as i64).ok_or_else(wrong));
    let vector = match params.dtype.brought() {
        Dtype::I8 => OwnedVectors::I8(bytes().map(|x| x.map(|x| x as i8)).collect::<Result<_, _>>()?),
        Dtype::U8 => OwnedVectors::U8(bytes().map(|x| x.map(|x| x as u8)).collect::<Result<_, _>>()?),
        Dtype::Bits => OwnedVectors::Bits(bytes().map(|x| x.map(|x| x as u8)).collect::<Result<_, _>>()?),
        _ => {
            let float = |number: &Value| number.as_f64().map(|x| x as f32).ok_or_else(wrong);
            OwnedVectors::F32(numbers.iter().map(float).collect::<Result<_, _>>()?)
        }
    };
    let mut nearest = Nearest { k: k as usize, ef_search, ..Nearest::new(field, vector) };
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
        None | Some(Value::Null | Value::Bool(_)) => {}
        Some(rescore) => {
            let rescore = super::object("knn", rescore)?;
            only("knn", rescore, &["oversample_factor"])?;
            let factor = rescore.get("oversample_factor").and_then(Value::as_f64);
            let factor = factor.filter(|factor| (1.0..=100.0).contains(factor));
            let wrong = || ApiError::argument("[knn] oversample_factor must be from 1.0 to 100.0");
            nearest.oversample = Some(factor.ok_or_else(wrong)? as f32);
        }
    }
    let filter = asked.get("filter").map(super::read).transpose()?;
    Ok((nearest, filter))
}

/// As OpenSearch's shards fail.
fn failed(reason: String) -> ApiError {
    ApiError::new(StatusCode::BAD_REQUEST, "query_shard_exception", reason)
}
