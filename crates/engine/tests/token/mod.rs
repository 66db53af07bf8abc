//! Documents that are known by one number: whoever finds one knows what all of it must be, so that half a document, or two
//! that were mixed, is seen.

use lanewise_engine::documents::{Query, Schema};
use lanewise_engine::index::OwnedVectors;
use lanewise_engine::table::{Hit, Nearest, Request, Table};
use lanewise_storage::Rng;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::error::Error;

pub(crate) const DIM: usize = 4;
/// Documents are of so many groups, to search within.
pub(crate) const GROUPS: u64 = 5;

/// A vector field of any kind whose numbers come back as they went in, and fields of documents.
pub(crate) fn schema(random: &mut Rng) -> Schema {
    let kind = ["flat", "hnsw", "ivf"][random.usize(..3)];
    let dtype = ["f32", "f16", "bf16"][random.usize(..3)];
    let code = ["none", "i8"][random.usize(..2)];
    let vector = json!({"type": "vector", "dim": DIM, "metric": "l2", "kind": kind, "dtype": dtype, "code": code,
        "m": 4, "ef_construction": 20, "nlist": 4});
    let schema = json!({"fields": {"v": vector, "token": {"type": "integer"}, "group": {"type": "integer"}}});
    serde_json::from_value(schema).expect("a schema")
}

/// What a document holds beside its vector.
pub(crate) fn source(token: u64) -> Value {
    // Some records are longer than a sector, a few longer than a page.
    let length = match token % 11 {
        0 => 5000,
        1..4 => 600,
        _ => token as usize % 50,
    };
    json!({"token": token, "group": token % GROUPS, "text": format!("word{} ", token % 3).repeat(length / 6 + 1)})
}

/// Its vector, if it has one: small whole numbers, which all types hold.
pub(crate) fn vector(token: u64) -> Option<[f32; DIM]> {
    let mut random = Rng::with_seed(token);
    (!token.is_multiple_of(7)).then(|| std::array::from_fn(|_| random.u8(..16).into()))
}

/// The document as it is put.
pub(crate) fn document(token: u64) -> Map<String, Value> {
    let Value::Object(mut document) = source(token) else { unreachable!("an object") };
    if let Some(vector) = vector(token) {
        document.insert("v".to_owned(), json!(vector));
    }
    document
}

/// The number of a document that was read, if it is a whole one.
pub(crate) fn read(bytes: &[u8]) -> Result<u64, String> {
    let found: Value = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    let token = found["token"].as_u64().ok_or("a document without its number")?;
    if found == source(token) { Ok(token) } else { Err(format!("a document that is not {token}'s: {found}")) }
}

pub(crate) fn distance(token: u64, query: &[f32; DIM]) -> Option<f32> {
    Some(vector(token)?.iter().zip(query).map(|(a, b)| (a - b) * (a - b)).sum())
}

/// A search of vectors, exact or as usual, among all or among those that a filter lets through.
pub(crate) fn nearest(
    table: &Table,
    query: &[f32; DIM],
    k: usize,
    exact: bool,
    filter: Option<&Query>,
) -> Result<Vec<Hit>, Box<dyn Error>> {
    let nearest = Nearest { k, exact, ..Nearest::new("v", OwnedVectors::F32(query.to_vec())) };
    let request = Request { nearest: vec![nearest], filter: filter.cloned(), size: k, ..Request::default() };
    Ok(table.search(&request, None)?.hits)
}

/// All documents, or those that a filter lets through, and how many the table says they are.
pub(crate) fn matching(
    table: &Table,
    filter: Option<&Query>,
    size: usize,
) -> Result<(Vec<Hit>, u64), Box<dyn Error>> {
    let request = Request { filter: filter.cloned(), size, ..Request::default() };
    let answer = table.search(&request, None)?;
    Ok((answer.hits, answer.total.value))
}

/// A document as a table has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) token: u64,
    pub(crate) seq: u64,
    pub(crate) version: u64,
}

/// All documents of a table that nobody writes to, once its reads, its searches of documents and those of vectors agree on
/// which there are.
pub(crate) fn contents(
    table: &Table,
    ids: impl Iterator<Item = String>,
) -> Result<BTreeMap<String, Found>, Box<dyn Error>> {
    let mut all = BTreeMap::new();
    for id in ids {
        let Some(document) = table.get(&id)? else { continue };
        let token = read(&document.source).map_err(|what| format!("{id}: {what}"))?;
        let twice = || format!("{id}: read as {}", document.id);
        if document.id != id {
            return Err(twice().into());
        }
        all.insert(id, Found { token, seq: document.seq, version: document.version });
    }
    if table.len() != all.len() {
        return Err(format!("{} documents, of which {} can be read", table.len(), all.len()).into());
    }
    let group = Query::Term { field: "group".to_owned(), value: json!(2) };
    let query = [7.0, 3.0, 9.0, 1.0];
    let of = |filter: Option<&Query>| {
        let mut chosen: Vec<(&String, &Found)> =
            all.iter().filter(|(_, found)| filter.is_none() || found.token % GROUPS == 2).collect();
        chosen.sort_by_key(|(_, found)| found.seq);
        chosen
    };
    for filter in [None, Some(&group)] {
        let expected: Vec<(String, u64)> =
            of(filter).into_iter().map(|(id, f)| (id.clone(), f.seq)).collect();
        let (hits, matches) = matching(table, filter, all.len().max(1))?;
        let mut hits: Vec<(String, u64)> = hits.into_iter().map(|hit| (hit.id, hit.seq)).collect();
        hits.sort_by_key(|hit| hit.1);
        if hits != expected || matches != expected.len() as u64 {
            return Err(format!("a search of documents finds {hits:?}, not {expected:?}").into());
        }
        let with_vector = of(filter).into_iter();
        let with_vector = with_vector.filter_map(|(id, f)| Some((distance(f.token, &query)?, f.seq, id)));
        let mut expected: Vec<(f32, u64, String)> =
            with_vector.map(|(d, seq, id)| (d, seq, id.clone())).collect();
        expected.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        for (exact, k) in [(true, all.len().max(1)), (false, 5)] {
            let hits = nearest(table, &query, k, exact, filter)?;
            let mut hits: Vec<(f32, u64, String)> =
                hits.into_iter().filter_map(|hit| Some((hit.distance?, hit.seq, hit.id))).collect();
            hits.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            // What is not exact gives as many, each of them true.
            let fine = if exact { hits == expected } else { hits.iter().all(|hit| expected.contains(hit)) };
            if !fine || hits.len() != k.min(expected.len()) {
                return Err(
                    format!("a search of vectors (exact {exact}) finds {hits:?}, not {expected:?}").into()
                );
            }
        }
    }
    Ok(all)
}
