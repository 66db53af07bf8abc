//! Vectors are read back as the index alone would store them, or as they came, wherever the rows are.

use crate::check::{delete, object, open, resources};
use lanewise_engine::Threads;
use lanewise_engine::index::{Dtype, Index, Inline, OwnedVectors, Params};
use lanewise_engine::table::{Batch, Effort, FetchError, Nearest, Request, Table, When, Write};
use lanewise_storage::{Memory, Rng};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

const DIM: usize = 11;
const FIELDS: [&str; 12] = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"];
/// Those that are kept as they came.
const EXACT: usize = 9;

fn schema() -> Value {
    let field = |how: Value| {
        let mut all = object(json!({"type": "vector", "dim": DIM, "m": 4, "ef_construction": 20}));
        all.extend(object(how));
        all
    };
    json!({"fields": {
        "a": field(json!({})), "b": field(json!({"metric": "cosine"})),
        "c": field(json!({"dtype": "f16", "metric": "cosine", "kind": "flat"})),
        "d": field(json!({"dtype": "bf16", "metric": "ip", "kind": "ivf"})),
        "e": field(json!({"dtype": "i8"})), "f": field(json!({"dtype": "u8", "kind": "ivf"})),
        "g": field(json!({"dtype": "bits", "metric": "hamming"})), "h": field(json!({"code": "i8"})),
        "i": field(json!({"dtype": "bf16", "metric": "cosine", "code": "i4"})),
        "j": field(json!({"metric": "cosine"})), "k": field(json!({"dtype": "f16"})), "l": field(json!({"dtype": "i8"})),
    }, "rules": {"j": {"exact": true}, "k": {"exact": true}, "l": {"exact": true}}})
}

fn vector(random: &mut Rng, params: &Params) -> OwnedVectors {
    let mut bytes = || (0..DIM).map(|_| random.u8(1..=255)).collect::<Vec<_>>();
    match params.dtype {
        Dtype::I8 => OwnedVectors::I8(bytes().into_iter().map(|x| x as i8).collect()),
        Dtype::U8 => OwnedVectors::U8(bytes()),
        Dtype::Bits => OwnedVectors::Bits(vec![bytes()[0], bytes()[1] & 0b111]),
        _ => OwnedVectors::F32((0..DIM).map(|_| random.f32() * 6.0 - 3.0).collect()),
    }
}

/// As an index stores it.
fn stored(params: &Params, vector: &OwnedVectors) -> OwnedVectors {
    let index = Index::new(Params { code: lanewise_engine::index::Code::None, ..*params }).unwrap();
    index.add(vector.as_vectors(), None, &Inline, &mut |_| ControlFlow::Continue(())).unwrap();
    index.reader().vectors(&[0]).unwrap()
}

/// As a table gives the vector of a field back.
fn kept_as(field: usize, params: &Params, vector: &OwnedVectors) -> OwnedVectors {
    if field < EXACT { stored(params, vector) } else { vector.clone() }
}

type Model = BTreeMap<String, Vec<Option<OwnedVectors>>>;

/// Compares all, read by id and as hits.
fn same(table: &Table, model: &Model, what: &str) {
    let ids: Vec<String> = (0..40).map(|n| n.to_string()).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    let fetched = table.fetch(&ids, &FIELDS).unwrap();
    for (id, found) in ids.iter().zip(fetched) {
        let document = table.get(id).unwrap();
        assert_eq!(found.as_ref().map(|found| &found.document), document.as_ref(), "{what}: {id}");
        assert_eq!(found.map(|found| found.vectors).as_ref(), model.get(*id), "{what}: {id}");
    }
    let near = Nearest { k: 7, exact: true, ..Nearest::new("a", OwnedVectors::F32(vec![0.0; DIM])) };
    for nearest in [vec![], vec![near]] {
        let answer = table.search(&Request { nearest, size: 50, ..Request::default() }, None).unwrap();
        for (number, field) in FIELDS.iter().enumerate() {
            let vectors = answer.vectors(field).unwrap();
            let expected: Vec<_> = answer.hits.iter().map(|hit| model[&hit.id][number].clone()).collect();
            assert_eq!(vectors, expected, "{what}: {field}");
        }
    }
}

#[test]
fn what_is_put_is_read_back_wherever_it_is() {
    for seed in 0..4 {
        let mut random = Rng::with_seed(seed);
        let memory = Memory::new();
        let schema: lanewise_engine::documents::Schema = serde_json::from_value(schema()).unwrap();
        let params: Vec<Params> = schema.vectors().map(|(_, params)| *params).collect();
        let mut table = Table::create(Arc::new(memory.clone()), schema, resources()).unwrap();
        let (mut model, mut done) = (Model::new(), [0; 5]);
        for step in 0..80 {
            let choice = random.usize(..12);
            let what = format!("seed {seed}, step {step}, choice {choice}");
            match choice {
                0..6 => {
                    let writes = (0..random.usize(1..6)).map(|_| {
                        let id = random.usize(..40).to_string();
                        if random.usize(..5) == 0 {
                            model.remove(&id);
                            return delete(&id);
                        }
                        let some = params.iter().map(|params| (random.usize(..4) > 0).then_some(params));
                        let some: Vec<_> = some.collect();
                        let given: Vec<_> = some
                            .iter()
                            .map(|params| params.map(|params| vector(&mut random, params)))
                            .collect();
                        let kept = params.iter().zip(&given).enumerate();
                        let kept = kept.map(|(n, (params, given))| Some(kept_as(n, params, given.as_ref()?)));
                        model.insert(id.clone(), kept.collect());
                        let vectors = FIELDS.iter().zip(given);
                        let vectors = vectors.filter_map(|(name, given)| Some((name.to_string(), given?)));
                        let (document, vectors) = (object(json!({})), vectors.collect());
                        Write::Put { id: Some(id), document, vectors, when: When::Always }
                    });
                    let writes = writes.collect();
                    table.write(writes).into_iter().for_each(|written| drop(written.unwrap()));
                }
                6 | 7 => table.flush().unwrap(),
                8 => table.force_merge(1 + random.usize(..2)).unwrap(),
                9 => {
                    // Closed first: it holds the lock.
                    drop(table);
                    table = open(Arc::new(memory.clone()));
                }
                10 => {
                    let effort = Effort::of(Threads::new(None));
                    let mut load = table.load().unwrap();
                    let ids: Vec<String> = (0..3).map(|_| random.usize(..40).to_string()).collect();
                    let of = |params: &Params| ids.iter().map(|_| vector(&mut random, params)).collect();
                    let columns: Vec<Vec<OwnedVectors>> = params.iter().map(of).collect();
                    for (place, id) in ids.iter().enumerate() {
                        let of = params.iter().zip(&columns);
                        let of = of.enumerate();
                        let of = of.map(|(n, (params, column))| Some(kept_as(n, params, &column[place])));
                        model.insert(id.clone(), of.collect());
                    }
                    let joined = columns.into_iter().map(|column| {
                        let mut column = column.into_iter();
                        let mut all = column.next().unwrap();
                        column.for_each(|one| all.extend(one.as_vectors()));
                        all
                    });
                    let joined: Vec<OwnedVectors> = joined.collect();
                    let vectors = FIELDS.iter().zip(&joined).map(|(&name, all)| (name, all.as_vectors()));
                    let documents = ids.iter().map(|_| object(json!({}))).collect();
                    load.add(Batch { ids: Some(ids), documents, vectors: vectors.collect() }, &effort)
                        .unwrap();
                    load.finish(&effort).unwrap();
                }
                _ => continue,
            }
            done[choice.saturating_sub(5).min(4)] += 1;
            same(&table, &model, &what);
        }
        assert!(done.iter().all(|&times| times > 0), "{done:?}");
    }
}

/// Of few dimensions, where the rounded vector's norm is far from one: normalised again as segments merge, it would change.
#[test]
fn normalised_vectors_of_16_bits_stay_as_they_are_when_segments_merge() {
    for dtype in ["f16", "bf16"] {
        let field = json!({"type": "vector", "dim": 3, "metric": "cosine", "dtype": dtype, "kind": "flat"});
        let schema = serde_json::from_value(json!({"fields": {"v": field}})).unwrap();
        let table = Table::create(Arc::new(Memory::new()), schema, resources()).unwrap();
        let mut random = Rng::with_seed(1);
        for part in 0..2 {
            let put = |n: usize| {
                let vector: Vec<f32> = (0..3).map(|_| random.f32() - 0.5).collect();
                let (id, document) = (Some(format!("{part}-{n}")), object(json!({ "v": vector })));
                Write::Put { id, document, vectors: Vec::new(), when: When::Always }
            };
            let writes: Vec<Write> = (0..200).map(put).collect();
            table.write(writes).into_iter().for_each(|written| drop(written.unwrap()));
            table.flush().unwrap();
        }
        let ids: Vec<String> = (0..400).map(|n| format!("{}-{}", n / 200, n % 200)).collect();
        let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
        let before = table.fetch(&ids, &["v"]).unwrap();
        table.force_merge(1).unwrap();
        assert_eq!(table.fetch(&ids, &["v"]).unwrap(), before, "{dtype}");
    }
}

#[test]
fn a_field_that_holds_no_vectors_is_named() {
    let schema = json!({"fields": {"n": {"type": "integer"}, "v": {"type": "vector", "dim": 1}}});
    let schema = serde_json::from_value(schema).unwrap();
    let table = Table::create(Arc::new(Memory::new()), schema, resources()).unwrap();
    for field in ["n", "w"] {
        let error = table.fetch(&["1"], &["v", field]).unwrap_err();
        assert!(matches!(&error, FetchError::Field { field: named } if named == field), "{error}");
    }
    assert_eq!(table.fetch(&["1"], &["v"]).unwrap(), [None]);
}
