//! `knn_vector`: which index, of what vectors, under any engine's name.
//!
//! | asked for | made |
//! |---|---|
//! | `data_type` float, byte, binary | f32, i8, bits |
//! | `mode` on_disk, `compression_level` 2x, 4x, 8x, 16x and 32x | f16; f32 with code i8, i4, bits, ordered by the whole vectors |
//! | encoder `sq` with fp16, or 16 bits; 7 and 8 bits; 1 bit; `binary` | f16; code i8; code bits; code bits |
//! | encoder `pq` | code pq4 with ivf, else i4 |

use crate::error::ApiError;
use lanewise_engine::documents::VectorField;
use lanewise_engine::index::{Code, Dtype, Kind, Metric, Params};
use serde_json::{Map, Value};

/// The longest vector that OpenSearch takes.
const DIM_MAX: u64 = 16_000;

/// What an index's settings say for fields that do not.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Usual<'a> {
    /// `index.knn.space_type`, as before OpenSearch 2.
    pub(crate) space_type: Option<&'a str>,
    /// `index.knn.algo_param.m` and `ef_construction`.
    pub(crate) m: Option<usize>,
    pub(crate) ef_construction: Option<usize>,
}

/// Reads a field's mapping.
///
/// # Errors
/// What is wrong, or not supported.
pub(super) fn read(
    name: &str,
    field: &Map<String, Value>,
    usual: Usual<'_>,
) -> Result<VectorField, ApiError> {
    let known = [
        "type",
        "dimension",
        "space_type",
        "data_type",
        "mode",
        "compression_level",
        "engine",
        "method",
        "model_id",
        "index",
        "store",
        "doc_values",
        "meta",
        "lanewise",
    ];
    only(name, "", field, &known)?;
    // As a table has it that was made without the server.
    if let Some(own) = field.get("lanewise") {
        return serde_json::from_value(own.clone())
            .map_err(|error| wrong(name, &format!("lanewise: {error}")));
    }
    if field.contains_key("model_id") {
        return Err(wrong(
            name,
            "model_id is not supported: codes are fitted to the vectors of each segment",
        ));
    }
    let dim = match field.get("dimension").map(whole) {
        None => return Err(wrong(name, "dimension is missing")),
        Some(Some(dim @ 1..=DIM_MAX)) => dim as usize,
        Some(_) => {
            return Err(wrong(name, &format!("dimension value must be a whole number from 1 to {DIM_MAX}")));
        }
    };
    let empty = Map::new();
    let method = match field.get("method") {
        None => &empty,
        Some(Value::Object(method)) => method,
        Some(_) => return Err(wrong(name, "method: give an object")),
    };
    only(name, "method: ", method, &["name", "engine", "space_type", "parameters"])?;
    let dtype = match text(name, field, "data_type")?.map(str::to_lowercase).as_deref() {
        None | Some("float") => Dtype::F32,
        Some("byte") => Dtype::I8,
        Some("binary") => Dtype::Bits,
        Some(other) => return Err(wrong(name, &format!("data_type [{other}]: give float, byte, or binary"))),
    };
    if dtype == Dtype::Bits && dim % 8 != 0 {
        return Err(wrong(name, "dimension should be a multiple of 8 for binary vectors"));
    }
    for (fields, key) in [(field, "engine"), (method, "engine")] {
        match text(name, fields, key)? {
            None | Some("faiss" | "lucene" | "nmslib" | "lanewise") => {}
            Some(other) => {
                return Err(wrong(
                    name,
                    &format!("engine [{other}]: give faiss, lucene, or nmslib; all are ours"),
                ));
            }
        }
    }
    let mut params = Params { dtype, metric: metric(name, field, method, usual, dtype)?, ..Params::new(dim) };
    params.m = usual.m.unwrap_or(params.m);
    params.ef_construction = usual.ef_construction.unwrap_or(params.ef_construction);
    params.kind = match text(name, method, "name")? {
        None | Some("hnsw") => Kind::Hnsw,
        Some("ivf") => Kind::Ivf,
        Some("flat") => Kind::Flat,
        Some(other) => return Err(wrong(name, &format!("method [{other}]: give hnsw, ivf, or flat"))),
    };
    compressed(name, field, &mut params)?;
    match method.get("parameters") {
        None => {}
        Some(Value::Object(given)) => parameters(name, given, &mut params)?,
        Some(_) => return Err(wrong(name, "method: parameters: give an object")),
    }
    Ok(VectorField(params))
}

fn metric(
    name: &str,
    field: &Map<String, Value>,
    method: &Map<String, Value>,
    usual: Usual<'_>,
    dtype: Dtype,
) -> Result<Metric, ApiError> {
    let (outer, inner) = (text(name, field, "space_type")?, text(name, method, "space_type")?);
    if let (Some(outer), Some(inner)) = (outer, inner)
        && outer != inner
    {
        return Err(wrong(name, &format!("space_type is [{outer}], and [{inner}] in method: give one")));
    }
    let bits = dtype == Dtype::Bits;
    let space = outer.or(inner).or(usual.space_type).unwrap_or(if bits { "hamming" } else { "l2" });
    match (space, bits) {
        ("hamming" | "hammingbit", true) => Ok(Metric::Hamming),
        ("l2", false) => Ok(Metric::L2),
        ("cosinesimil", false) => Ok(Metric::Cosine),
        ("innerproduct", false) => Ok(Metric::InnerProduct),
        (other, true) => {
            Err(wrong(name, &format!("space_type [{other}] with data_type binary: give hamming")))
        }
        (other, false) => Err(wrong(
            name,
            &format!(
                "space_type [{other}] is not supported for an index: give l2, cosinesimil, or innerproduct"
            ),
        )),
    }
}

fn compressed(name: &str, field: &Map<String, Value>, params: &mut Params) -> Result<(), ApiError> {
    let level = text(name, field, "compression_level")?;
    let usual = match text(name, field, "mode")? {
        None | Some("in_memory") => "1x",
        Some("on_disk") => "32x",
        Some(other) => return Err(wrong(name, &format!("mode [{other}]: give in_memory or on_disk"))),
    };
    let level = level.unwrap_or(usual);
    if params.dtype != Dtype::F32 && level != "1x" {
        return Err(wrong(name, "mode and compression_level are for data_type float"));
    }
    (params.dtype, params.code) = match level {
        "1x" => return Ok(()),
        "2x" => (Dtype::F16, Code::None),
        "4x" => (Dtype::F32, Code::I8),
        "8x" => (Dtype::F32, Code::I4),
        "16x" | "32x" => (Dtype::F32, Code::Bits),
        other => {
            return Err(wrong(
                name,
                &format!("compression_level [{other}]: give 1x, 2x, 4x, 8x, 16x, or 32x"),
            ));
        }
    };
    Ok(())
}

fn parameters(name: &str, given: &Map<String, Value>, params: &mut Params) -> Result<(), ApiError> {
    for (key, value) in given {
        let number =
            || whole(value).ok_or_else(|| wrong(name, &format!("method: {key}: give a whole number")));
        match (key.as_str(), params.kind) {
            ("m", Kind::Hnsw) => params.m = number()? as usize,
            ("ef_construction", Kind::Hnsw) => params.ef_construction = number()? as usize,
            ("nlist", Kind::Ivf) => params.nlist = number()? as usize,
            // How hard to look, for searches that do not say: of a search here.
            ("ef_search", Kind::Hnsw) | ("nprobes", Kind::Ivf) => drop(number()?),
            ("encoder", _) => encoder(name, value, params)?,
            (other, kind) => {
                return Err(wrong(name, &format!("method [{}] has no parameter [{other}]", kind.name())));
            }
        }
    }
    Ok(())
}

fn encoder(name: &str, given: &Value, params: &mut Params) -> Result<(), ApiError> {
    let fields = given.as_object().ok_or_else(|| wrong(name, "encoder: give an object"))?;
    only(name, "encoder: ", fields, &["name", "parameters"])?;
    let empty = Map::new();
    let inner = match fields.get("parameters") {
        None => &empty,
        Some(Value::Object(inner)) => inner,
        Some(_) => return Err(wrong(name, "encoder: parameters: give an object")),
    };
    only(
        name,
        "encoder: ",
        inner,
        &["type", "clip", "bits", "confidence_interval", "m", "code_size", "random_rotation", "enable_adc"],
    )?;
    let bits = inner.get("bits").map(|bits| whole(bits).unwrap_or(0));
    let (dtype, code) = match (text(name, fields, "name")?, bits, inner.get("type").and_then(Value::as_str)) {
        (None | Some("flat"), ..) => return Ok(()),
        (Some("sq"), None | Some(16), Some("fp16") | None) => (Dtype::F16, Code::None),
        (Some("sq"), Some(7 | 8), _) => (Dtype::F32, Code::I8),
        (Some("sq"), Some(1), _) => (Dtype::F32, Code::Bits),
        (Some("binary"), None | Some(1 | 2 | 4), _) => {
            (Dtype::F32, if bits == Some(4) { Code::I4 } else { Code::Bits })
        }
        (Some("pq"), ..) => (Dtype::F32, if params.kind == Kind::Ivf { Code::Pq4 } else { Code::I4 }),
        _ => return Err(wrong(name, &format!("encoder {given}: give flat, sq, pq, or binary"))),
    };
    if params.dtype != Dtype::F32 {
        return Err(wrong(name, "encoder: it is for data_type float, without compression_level"));
    }
    (params.dtype, params.code) = (dtype, code);
    Ok(())
}

fn only(name: &str, of: &str, fields: &Map<String, Value>, known: &[&str]) -> Result<(), ApiError> {
    match fields.keys().find(|key| !known.contains(&key.as_str())) {
        Some(other) => {
            Err(wrong(name, &format!("{of}unknown parameter [{other}]: it takes {}", known.join(", "))))
        }
        None => Ok(()),
    }
}

fn text<'a>(name: &str, fields: &'a Map<String, Value>, key: &str) -> Result<Option<&'a str>, ApiError> {
    match fields.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(wrong(name, &format!("{key}: give a string"))),
    }
}

/// A whole number, also as a string, as settings are.
fn whole(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

fn wrong(name: &str, what: &str) -> ApiError {
    ApiError::mapping(format!("Failed to parse mapping [_doc]: field [{name}]: {what}"))
}
