//! Queries against their meaning, evaluated over the documents as JSON.

use super::*;
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use tantivy::directory::RamDirectory;

fn mapping() -> Mapping {
    let schema = json!({"fields": {
        "k": {"type": "keyword"}, "t": {"type": "text"}, "i": {"type": "integer"}, "f": {"type": "float"},
        "b": {"type": "boolean"}, "d": {"type": "date"}, "o": {"type": "object"}, "a.k": {"type": "keyword"},
        "v": {"type": "vector", "dim": 2}, "w": {"type": "vector", "dim": 12, "dtype": "bits"},
    }});
    Mapping::new(serde_json::from_value(schema).unwrap()).unwrap()
}

fn run(mapping: &Mapping, documents: &[Value]) -> Run {
    let parsed: Vec<Parsed> = (0..).zip(documents).map(|(i, d)| parse(mapping, i, d).unwrap()).collect();
    Run::write(mapping, Box::new(RamDirectory::create()), parsed.iter().map(Some)).unwrap()
}

fn parse(mapping: &Mapping, i: usize, document: &Value) -> Result<Parsed, DocumentError> {
    mapping.parse(&format!("id{i}"), document.as_object().unwrap(), Vec::new())
}

fn found(mapping: &Mapping, run: &Run, query: &Query) -> Vec<u32> {
    let mut rows = Vec::new();
    let query = mapping.compile(query).unwrap().weigh(&[run], false).unwrap().unwrap();
    run.matches(&query, &|| false, &mut |row| rows.push(row)).unwrap();
    rows
}

/// Values of a field, by its path; an array's one by one.
fn values<'a>(document: &'a Value, path: &str) -> Vec<&'a Value> {
    let mut now = vec![document];
    for key in path.split('.') {
        now = now.into_iter().filter_map(|value| value.get(key)).collect();
    }
    let each =
        now.into_iter().flat_map(|value| value.as_array().map_or(vec![value], |all| all.iter().collect()));
    each.filter(|value| !value.is_null()).collect()
}

/// Whether there is anything in it.
fn holds(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Array(all) => all.iter().any(holds),
        Value::Object(fields) => fields.values().any(holds),
        _ => true,
    }
}

fn words(text: &str) -> Vec<String> {
    text.to_lowercase().split_whitespace().map(str::to_owned).collect()
}

fn equal(a: &Value, b: &Value) -> bool {
    match (a.as_f64(), b.as_f64()) {
        (Some(a), Some(b)) => a == b,
        _ => a == b,
    }
}

fn ordered(a: &Value, b: &Value) -> Option<std::cmp::Ordering> {
    match (a, b) {
        (Value::String(a), Value::String(b)) => Some(a.cmp(b)),
        _ => a.as_f64()?.partial_cmp(&b.as_f64()?),
    }
}

fn is(document: &Value, id: usize, query: &Query) -> bool {
    use std::cmp::Ordering::{Greater, Less};
    let any = |field: &str, f: &dyn Fn(&Value) -> bool| values(document, field).into_iter().any(f);
    match query {
        Query::All => true,
        Query::None => false,
        Query::Ids(ids) => ids.contains(&format!("id{id}")),
        Query::Term { field, value } if field == "t" => {
            any(field, &|v| words(v.as_str().unwrap()).contains(&value.as_str().unwrap().to_owned()))
        }
        Query::Term { field, value } => any(field, &|v| equal(v, value)),
        Query::Terms { field, values } => any(field, &|v| values.iter().any(|value| equal(v, value))),
        Query::Exists { field } => any(field, &holds),
        Query::Prefix { field, value } => any(field, &|v| v.as_str().is_some_and(|s| s.starts_with(value))),
        Query::Wildcard { field, value } => {
            // Only what the strategy below writes: x*, *x, x?x.
            let form = |s: &str| match value.split_once('*') {
                Some((before, after)) => {
                    s.len() >= before.len() + after.len() && s.starts_with(before) && s.ends_with(after)
                }
                None => {
                    s.len() == value.len() && s.bytes().zip(value.bytes()).all(|(s, w)| w == b'?' || s == w)
                }
            };
            any(field, &|v| v.as_str().is_some_and(form))
        }
        Query::Range { field, range } => any(field, &|v| {
            let bound = |bound: &Option<Value>, fits: &dyn Fn(std::cmp::Ordering) -> bool| {
                bound.as_ref().is_none_or(|bound| ordered(v, bound).is_some_and(fits))
            };
            bound(&range.gt, &|o| o == Greater)
                && bound(&range.gte, &|o| o != Less)
                && bound(&range.lt, &|o| o == Less)
                && bound(&range.lte, &|o| o != Greater)
        }),
        Query::Match { field, text, operator, fuzziness } => {
            let own: Vec<String> =
                values(document, field).into_iter().filter_map(Value::as_str).flat_map(words).collect();
            let asked = words(text);
            let is_near = |word: &String| {
                let most = fuzziness.map_or(0, |fuzziness| fuzziness.edits(word.len()));
                own.iter().any(|own| apart(own, word) <= most.into())
            };
            match operator {
                Operator::Or => asked.iter().any(is_near),
                Operator::And => !asked.is_empty() && asked.iter().all(is_near),
            }
        }
        Query::Fuzzy { field, value, fuzziness } => {
            let most = fuzziness.edits(value.len()).into();
            let of = |v: &Value| {
                let text = v.as_str().unwrap_or_default();
                let all = if field == "t" { words(text) } else { vec![text.to_owned()] };
                all.iter().any(|own| apart(own, value) <= most)
            };
            any(field, &|v| v.is_string() && of(v))
        }
        Query::Regexp { field, value } => {
            // Only what the strategy below writes: (ab|b)c?.
            assert_eq!(value, "(ab|b)c?");
            any(field, &|v| v.as_str().is_some_and(|s| ["ab", "abc", "b", "bc"].contains(&s)))
        }
        Query::PhrasePrefix { field, text } => any(field, &|v| {
            let (own, asked) = (words(v.as_str().unwrap_or_default()), words(text));
            let Some((last, first)) = asked.split_last() else { return false };
            own.windows(asked.len())
                .any(|part| part.starts_with(first) && part[first.len()].starts_with(last))
        }),
        Query::DisMax { queries, .. } => queries.iter().any(|query| is(document, id, query)),
        Query::Phrase { field, text, .. } => any(field, &|v| {
            let (own, asked) = (words(v.as_str().unwrap_or_default()), words(text));
            !asked.is_empty() && own.windows(asked.len()).any(|part| part == asked)
        }),
        Query::Bool { must, should, filter, must_not, minimum_should_match } => {
            let usual = usize::from(must.is_empty() && filter.is_empty() && !should.is_empty());
            must.iter().chain(filter).all(|query| is(document, id, query))
                && !must_not.iter().any(|query| is(document, id, query))
                && should.iter().filter(|query| is(document, id, query)).count()
                    >= minimum_should_match.unwrap_or(usual)
        }
        Query::Boost { query, .. } | Query::Constant { query, .. } => is(document, id, query),
        Query::Nearest(_) | Query::Scored(_) | Query::Nested { .. } => {
            unreachable!("a document alone does not say what is near")
        }
    }
}

/// Letters that two words are apart (optimal string alignment).
fn apart(a: &str, b: &str) -> usize {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut rows = vec![(0..=b.len()).collect::<Vec<usize>>()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let change = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = change.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

fn fuzziness() -> impl Strategy<Value = Fuzziness> + Clone {
    prop_oneof![Just(Fuzziness::Auto), (0u8..3).prop_map(Fuzziness::Edits)]
}

fn one_or_more(value: impl Strategy<Value = Value> + Clone + 'static) -> impl Strategy<Value = Value> {
    prop_oneof![value.clone(), prop::collection::vec(value, 0..3).prop_map(Value::Array), Just(Value::Null)]
}

fn word() -> impl Strategy<Value = String> + Clone {
    prop::sample::select(vec!["ab", "abc", "b", "bc", "cab"]).prop_map(str::to_owned)
}

fn text() -> impl Strategy<Value = String> + Clone {
    prop::collection::vec(word(), 0..5).prop_map(|words| words.join(" "))
}

fn whole() -> impl Strategy<Value = Value> + Clone {
    (-3i64..4).prop_map(Value::from)
}

fn fraction() -> impl Strategy<Value = Value> + Clone {
    (-6i64..7).prop_map(|half| Value::from(half as f64 / 2.0))
}

fn document() -> impl Strategy<Value = Value> {
    let field = |value: BoxedStrategy<Value>| prop::option::of(value);
    (
        field(one_or_more(word().prop_map(Value::from)).boxed()),
        field(one_or_more(text().prop_map(Value::from)).boxed()),
        field(one_or_more(whole()).boxed()),
        field(one_or_more(fraction()).boxed()),
        field(one_or_more(any::<bool>().prop_map(Value::from)).boxed()),
        // Dynamic: inside of the object, beside a named field, at the top; and a named one inside.
        field(
            prop_oneof![
                whole(),
                fraction(),
                word().prop_map(Value::from),
                any::<bool>().prop_map(Value::from)
            ]
            .boxed(),
        ),
        field(text().prop_map(Value::from).boxed()),
        field(word().prop_map(Value::from).boxed()),
    )
        .prop_map(|(k, t, i, f, b, x, y, ak)| {
            let mut all = Map::new();
            for (name, value) in [("k", k), ("t", t), ("i", i), ("f", f), ("b", b), ("y", y.clone())] {
                all.extend(value.map(|value| (name.to_owned(), value)));
            }
            let object = |fields: [(&str, Option<Value>); 2]| {
                let given = fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
                Value::Object(given.collect())
            };
            all.insert("o".to_owned(), object([("x", x.clone()), ("y", y)]));
            all.insert("a".to_owned(), object([("k", ak), ("x", x)]));
            Value::Object(all)
        })
}

fn query() -> impl Strategy<Value = Query> {
    let name = |names: &'static [&'static str]| prop::sample::select(names).prop_map(str::to_owned);
    let term = prop_oneof![
        (name(&["k", "a.k", "o.x", "a.x"]), word().prop_map(Value::from)),
        (Just("t".to_owned()), word().prop_map(Value::from)),
        (name(&["i", "f", "o.x", "a.x"]), prop_oneof![whole(), fraction()]),
        (name(&["b", "o.x", "a.x"]), any::<bool>().prop_map(Value::from)),
    ];
    let bound = |value: BoxedStrategy<Value>| {
        let one = prop_oneof![
            Just((None, None)),
            value.clone().prop_map(|v| (Some(v), None)),
            value.prop_map(|v| (None, Some(v))),
        ];
        (one.clone(), one).prop_filter_map("a bound", |((gt, gte), (lt, lte))| {
            let range = Range { gt, gte, lt, lte };
            (range != Range::default()).then_some(range)
        })
    };
    let leaf = prop_oneof![
        Just(Query::All),
        Just(Query::None),
        prop::collection::vec((0..12).prop_map(|i| format!("id{i}")), 0..4).prop_map(Query::Ids),
        term.clone().prop_map(|(field, value)| Query::Term { field, value }),
        (name(&["i", "f"]), prop::collection::vec(whole(), 0..3))
            .prop_map(|(field, values)| Query::Terms { field, values }),
        name(&["k", "t", "i", "f", "b", "o", "o.x", "o.y", "a", "a.k", "a.x", "y"])
            .prop_map(|field| Query::Exists { field }),
        (name(&["k", "a.k"]), word()).prop_map(|(field, value)| Query::Prefix { field, value }),
        (name(&["k", "a.k"]), name(&["a*", "*c", "a?", "?", "a*c", "*"]))
            .prop_map(|(field, value)| Query::Wildcard { field, value }),
        (name(&["i", "f"]), bound(prop_oneof![whole(), fraction()].boxed()))
            .prop_map(|(field, range)| Query::Range { field, range }),
        (name(&["k", "a.k"]), bound(word().prop_map(Value::from).boxed()))
            .prop_map(|(field, range)| Query::Range { field, range }),
        (
            name(&["t", "y", "o.y"]),
            text(),
            prop_oneof![Just(Operator::Or), Just(Operator::And)],
            prop::option::of(fuzziness())
        )
            .prop_map(|(field, text, operator, fuzziness)| Query::Match {
                field,
                text,
                operator,
                fuzziness
            }),
        (name(&["t", "y", "o.y"]), text()).prop_map(|(field, text)| Query::Phrase { field, text, slop: 0 }),
        (name(&["t", "y", "o.y"]), text()).prop_map(|(field, text)| Query::PhrasePrefix { field, text }),
        (name(&["t", "k", "a.k"]), word(), fuzziness()).prop_map(|(field, value, fuzziness)| Query::Fuzzy {
            field,
            value,
            fuzziness
        }),
        Just(Query::Regexp { field: "k".to_owned(), value: "(ab|b)c?".to_owned() }),
    ];
    leaf.prop_recursive(3, 20, 4, |inner| {
        let some = || prop::collection::vec(inner.clone(), 0..3);
        prop_oneof![
            (some(), some(), some(), some(), prop::option::of(0usize..3)).prop_map(
                |(must, should, filter, must_not, least)| {
                    let minimum_should_match = least.filter(|&least| least <= should.len());
                    Query::Bool { must, should, filter, must_not, minimum_should_match }
                }
            ),
            some().prop_map(|queries| Query::DisMax { queries, tie_breaker: 0.5 }),
            inner.prop_map(|query| Query::Boost { query: Box::new(query), factor: 2.0 }),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn queries_find_what_they_mean(
        documents in prop::collection::vec(document(), 1..12),
        queries in prop::collection::vec(query(), 1..12),
    ) {
        let mapping = mapping();
        let run = run(&mapping, &documents);
        for query in &queries {
            let expected: Vec<u32> =
                (0..documents.len()).filter(|&i| is(&documents[i], i, query)).map(|i| i as u32).collect();
            prop_assert_eq!(found(&mapping, &run, query), expected, "{:?} of {:#?}", query, documents);
            let text = serde_json::to_string(query).unwrap();
            prop_assert_eq!(&serde_json::from_str::<Query>(&text).unwrap(), query);
        }
        for (row, document) in (0..).zip(&documents) {
            prop_assert_eq!(&serde_json::from_slice::<Value>(&run.source(row).unwrap()).unwrap(), document);
        }
    }

    /// However documents are divided into runs, they score the same.
    #[test]
    fn scores_do_not_depend_on_the_division(
        documents in prop::collection::vec(document(), 2..12),
        cut: prop::sample::Index,
        text in text(),
    ) {
        let mapping = mapping();
        let query = Query::Match { field: "t".to_owned(), text, operator: Operator::Or, fuzziness: None };
        let query = mapping.compile(&query).unwrap();
        let scores = |runs: &[&Run]| {
            let query = query.weigh(runs, true).unwrap().unwrap();
            let (mut all, mut base) = (Vec::new(), 0);
            for run in runs {
                run.scores(&query, &|| false, &mut |row, score| all.push((base + row, score))).unwrap();
                base += run.rows();
            }
            all
        };
        let cut = 1 + cut.index(documents.len() - 1);
        let parts = [run(&mapping, &documents[..cut]), run(&mapping, &documents[cut..])];
        let (divided, whole) = (scores(&[&parts[0], &parts[1]]), scores(&[&run(&mapping, &documents)]));
        prop_assert_eq!(divided.len(), whole.len());
        for (a, b) in divided.iter().zip(&whole) {
            prop_assert_eq!(a.0, b.0);
            prop_assert!((a.1 - b.1).abs() <= 1e-6 * b.1.abs(), "{:?} {:?}", a, b);
        }
    }
}

#[test]
fn what_is_wrong_with_a_document_names_the_field() {
    let mapping = mapping();
    for (document, says) in [
        (json!({"i": 1.5}), "field \"i\": expected a whole number of 64 bits, found the number 1.5"),
        (json!({"f": "x"}), "field \"f\": expected a number, found the string \"x\""),
        (json!({"b": 1}), "field \"b\": expected true or false, found the number 1"),
        (
            json!({"d": "soon"}),
            "field \"d\": expected a date (ISO 8601, or milliseconds since 1970), found the string \"soon\"",
        ),
        (json!({"o": 3}), "field \"o\": expected an object, found the number 3"),
        (json!({"k": {"x": 1}}), "field \"k\": expected a string, found an object"),
        (json!({"k": "x".repeat(40_000)}), "field \"k\": a keyword has at most 32766 bytes, not 40000"),
        (json!({"v": [1.0]}), "field \"v\": a vector of 2 numbers is expected, this one has 1"),
        (json!({"v": [1.0, "x"]}), "field \"v\": expected a vector of numbers, found the string \"x\""),
        (json!({"v": "x"}), "field \"v\": expected a vector of numbers, found the string \"x\""),
        (
            json!({"w": [256, 0]}),
            "field \"w\": expected a vector of bytes, whole numbers from -128 to 255, eight bits each, found the number 256",
        ),
    ] {
        assert_eq!(parse(&mapping, 0, &document).unwrap_err().to_string(), says);
    }
    let strict = json!({"dynamic": "strict", "fields": {"a.b": {"type": "keyword"}}});
    let strict = Mapping::new(serde_json::from_value(strict).unwrap()).unwrap();
    let says =
        "field \"a.c\": the schema does not name it, and is strict: add it to the schema, or leave it out";
    assert_eq!(parse(&strict, 0, &json!({"a": {"b": "x", "c": 1}})).unwrap_err().to_string(), says);
}

#[test]
fn vectors_lie_beside_the_source() {
    let mapping = mapping();
    let document = json!({"v": [1, 2.5], "w": [-1, 8], "k": "x"});
    let parsed = parse(&mapping, 0, &document).unwrap();
    let [Some(v), Some(w)] = &parsed.vectors[..] else { panic!("both are there") };
    assert_eq!(v, &lanewise_index::OwnedVectors::F32(vec![1.0, 2.5]));
    assert_eq!(w, &lanewise_index::OwnedVectors::Bits(vec![255, 8]));
    assert_eq!(serde_json::from_slice::<Value>(&parsed.source).unwrap(), json!({"k": "x"}));
    let run =
        Run::write(&mapping, Box::new(RamDirectory::create()), [Some(&parsed), None].into_iter()).unwrap();
    let query = Query::Exists { field: "v".to_owned() };
    assert_eq!((found(&mapping, &run, &query), run.source(1).unwrap()), (vec![0], Vec::new()));
}

/// tantivy's own exclusion asks a phrase about documents in front of its place.
#[test]
fn a_phrase_that_must_not_be() {
    let mapping = mapping();
    let run = run(&mapping, &[json!({"t": "b ab"}), json!({"t": "ab b"}), json!({"t": "b ab"})]);
    let must_not = vec![Query::Phrase { field: "t".to_owned(), text: "ab b".to_owned(), slop: 0 }];
    let (must, should, filter) = (vec![Query::All], vec![], vec![]);
    let query = Query::Bool { must, should, filter, must_not, minimum_should_match: None };
    assert_eq!(found(&mapping, &run, &query), [0, 2]);
}

/// A merge of dead rows alone leaves a run without rows, which tantivy's own bitmaps cannot be asked about.
#[test]
fn a_run_without_rows_is_asked_in_vain() {
    let mapping = mapping();
    let run = run(&mapping, &[]);
    for query in [
        Query::Prefix { field: "k".to_owned(), value: "a".to_owned() },
        Query::Terms { field: "k".to_owned(), values: vec![json!("a"), json!("b")] },
    ] {
        assert_eq!(found(&mapping, &run, &query), Vec::<u32>::new());
        let weighed = mapping.compile(&query).unwrap().weigh(&[&run], true).unwrap().unwrap();
        run.scores(&weighed, &|| false, &mut |row, _| panic!("row {row}")).unwrap();
        run.best(&weighed, &mut |row, _| panic!("row {row}")).unwrap();
    }
}

#[test]
fn dates_and_limits_of_queries() {
    let mapping = mapping();
    let day = |day: u32| json!({"d": format!("2024-03-{day:02}T12:00:00.250Z"), "when": format!("2024-03-{day:02}T12:00:00Z")});
    let run = run(&mapping, &[day(1), day(2), day(3)]);
    let range = |field: &str, gte: Value| Query::Range {
        field: field.to_owned(),
        range: Range { gte: Some(gte), ..Range::default() },
    };
    assert_eq!(found(&mapping, &run, &range("d", json!("2024-03-02"))), [1, 2]);
    assert_eq!(found(&mapping, &run, &range("when", json!("2024-03-02T12:00:00Z"))), [1, 2]);
    let term = Query::Term { field: "when".to_owned(), value: json!("2024-03-02T12:00:00Z") };
    assert_eq!(found(&mapping, &run, &term), [1]);
    let exact = Query::Term { field: "d".to_owned(), value: json!("2024-03-02T12:00:00.250Z") };
    assert_eq!(found(&mapping, &run, &exact), [1]);

    let mut deep = Query::All;
    for _ in 0..100 {
        deep = Query::Bool {
            must: vec![deep],
            should: vec![],
            filter: vec![],
            must_not: vec![],
            minimum_should_match: None,
        };
    }
    assert_eq!(mapping.compile(&deep).unwrap_err(), QueryError::Depth);
    let wrong = |query: &Query| mapping.compile(query).unwrap_err().to_string();
    assert_eq!(
        wrong(&Query::Range { field: "d".to_owned(), range: Range::default() }),
        "field \"d\": a range needs a bound: gt, gte, lt or lte; of gt and gte, and of lt and lte, give one"
    );
    assert_eq!(wrong(&range("b", json!(true))), "field \"b\" is a boolean: it cannot be asked by range");
    assert_eq!(
        wrong(&Query::Term { field: "v".to_owned(), value: json!(1) }),
        "field \"v\" is a vector: it cannot be asked by term"
    );
}

/// tantivy orders -0 before 0.
#[test]
fn negative_zero_is_zero() {
    let mapping = mapping();
    let both =
        [json!({"f": -0.0, "x": -0.0, "o": {"x": [-0.0]}}), json!({"f": 0.0, "x": 0, "o": {"x": 0.0}})];
    let run = run(&mapping, &both);
    for (field, zero) in ["f", "x", "o.x"].into_iter().flat_map(|field| [(field, 0.0), (field, -0.0)]) {
        let (field, zero) = (field.to_owned(), json!(zero));
        let range = |range| found(&mapping, &run, &Query::Range { field: field.clone(), range });
        let none = Vec::<u32>::new();
        assert_eq!(range(Range { lt: Some(zero.clone()), ..Range::default() }), none, "{field} {zero}");
        assert_eq!(range(Range { gt: Some(zero.clone()), ..Range::default() }), none, "{field} {zero}");
        assert_eq!(range(Range { gte: Some(zero.clone()), ..Range::default() }), [0, 1], "{field} {zero}");
        let term = Query::Term { field: field.clone(), value: zero.clone() };
        assert_eq!(found(&mapping, &run, &term), [0, 1], "{field} {zero}");
    }
    let source = String::from_utf8(run.source(0).unwrap()).unwrap();
    assert_eq!(source.matches("-0.0").count(), 3, "{source}");
}

#[test]
fn whole_numbers_between_large_floats() {
    let mapping = mapping();
    let numbers = [i64::MIN, -100_000_000_000_000_000, 5, 100_000_000_000_000_000, i64::MAX];
    let run = run(&mapping, &numbers.map(|number| json!({"i": number})));
    let bounds = [-1e300, i64::MIN as f64, -1e17, 4.5, 5.0, 1e17, i64::MAX as f64, 1e300];
    for bound in bounds {
        let fits = |ordering: fn(std::cmp::Ordering) -> bool| -> Vec<u32> {
            let compare = |number: &i64| match bound.abs() < 1e30 {
                true => (i128::from(*number) * 2).cmp(&((bound * 2.0) as i128)),
                false => 0.0.partial_cmp(&bound).unwrap(),
            };
            (0..).zip(&numbers).filter(|(_, number)| ordering(compare(number))).map(|(row, _)| row).collect()
        };
        let found = |range| found(&mapping, &run, &Query::Range { field: "i".to_owned(), range });
        let value = || Some(json!(bound));
        assert_eq!(found(Range { lt: value(), ..Range::default() }), fits(|o| o.is_lt()), "below {bound}");
        assert_eq!(found(Range { lte: value(), ..Range::default() }), fits(|o| o.is_le()), "to {bound}");
        assert_eq!(found(Range { gt: value(), ..Range::default() }), fits(|o| o.is_gt()), "above {bound}");
        assert_eq!(found(Range { gte: value(), ..Range::default() }), fits(|o| o.is_ge()), "from {bound}");
    }
}

/// Whatever the type: what is ignored would be believed to hold.
#[test]
fn parameters_that_a_field_does_not_have_are_refused_by_name() {
    let schema = |field: Value| serde_json::from_value::<Schema>(json!({"fields": {"x": field}}));
    for kind in ["keyword", "text", "integer", "float", "date", "boolean", "object", "vector"] {
        let mut field = json!({"type": kind});
        if kind == "vector" {
            field["dim"] = json!(2);
        }
        let read = schema(field.clone()).unwrap();
        assert_eq!(serde_json::from_value::<Schema>(serde_json::to_value(&read).unwrap()).unwrap(), read);
        field["analyser"] = json!("english");
        let error = schema(field).unwrap_err().to_string();
        assert!(error.contains("`analyser`"), "{kind}: {error}");
    }
    let english = schema(json!({"type": "text", "analyzer": "english"})).unwrap();
    assert_eq!(english.fields["x"], FieldKind::Text { analyzer: Analyzer::English });
}
