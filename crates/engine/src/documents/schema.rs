//! What fields a table's documents have. As JSON it is what the manifest keeps and what users write:
//! `{"dynamic": "true", "fields": {"title": {"type": "text"}, "embedding": {"type": "vector", "dim": 384}}}`.

use lanewise_index::{Code, CreateError, Dtype, Index, Kind, Metric, Params};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The most fields of a table.
const FIELDS_MAX: usize = 1000;
/// The longest name, bytes.
const NAME_BYTES_MAX: usize = 255;

/// Fields by name, and what happens to those that it does not name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Schema {
    /// What becomes of fields that are not named here.
    #[serde(default)]
    pub dynamic: Dynamic,
    /// The fields, by name. One whose name lies inside that of another, no object and no vector (`title.keyword` in `title`),
    /// takes the values of that one.
    pub fields: BTreeMap<String, FieldKind>,
    /// How fields take values, where it is not the usual way.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub rules: BTreeMap<String, Rules>,
    /// The fields that came after the table was made, in that order: files number fields by it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub later: Vec<String>,
}

/// How a field takes values.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Rules {
    /// Of a vector: it is given back as it came, where the index keeps it normalised, or in 16 bits. Takes four bytes for
    /// each number on disk.
    #[serde(skip_serializing_if = "is_usual")]
    pub exact: bool,
    /// A longer string (UTF-16 units) is kept, and not found.
    #[serde(skip_serializing_if = "is_usual")]
    pub ignore_above: Option<usize>,
    /// What is found where the document says `null`.
    #[serde(skip_serializing_if = "is_usual")]
    pub null_value: Option<Value>,
    /// Of a whole number: one with a fraction is taken without it.
    #[serde(skip_serializing_if = "is_usual")]
    pub coerce: bool,
    /// A value that is none of the field's is kept, and not found.
    #[serde(skip_serializing_if = "is_usual")]
    pub ignore_malformed: bool,
    /// Fields that take the values too.
    #[serde(skip_serializing_if = "is_usual")]
    pub copy_to: Vec<String>,
}

fn is_usual<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// What becomes of a document's fields that the schema does not name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dynamic {
    /// They can be searched: strings as keywords and as text, numbers, booleans, dates by their form.
    #[default]
    True,
    /// They are kept, not searched.
    False,
    /// The document is refused.
    Strict,
}

/// What a field holds; all but vectors may hold several values.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase", from = "Given")]
pub enum FieldKind {
    /// One vector.
    Vector(VectorField),
    /// A string that is compared as a whole, at most 32,766 bytes.
    Keyword,
    /// A string that is searched by its words.
    Text {
        /// How words are made of it.
        #[serde(default)]
        analyzer: Analyzer,
    },
    /// A whole number of 64 bits.
    Integer,
    /// A number.
    Float,
    /// A time: ISO 8601, or milliseconds since 1970; kept to the millisecond.
    Date,
    /// True or false.
    Boolean,
    /// An object, whose fields are searched by paths (`a.b`) as if they were dynamic.
    Object,
    /// Objects that are searched one by one ([`Query::Nested`](super::Query::Nested)), each with the vectors that the schema
    /// names inside.
    Nested,
}

/// As JSON: a variant with no fields between braces refuses all, one without braces would ignore them.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "lowercase", deny_unknown_fields)]
enum Given {
    Vector(VectorField),
    Keyword {},
    Text {
        #[serde(default)]
        analyzer: Analyzer,
    },
    Integer {},
    Float {},
    Date {},
    Boolean {},
    Object {},
    Nested {},
}

impl From<Given> for FieldKind {
    fn from(given: Given) -> FieldKind {
        match given {
            Given::Vector(field) => FieldKind::Vector(field),
            Given::Keyword {} => FieldKind::Keyword,
            Given::Text { analyzer } => FieldKind::Text { analyzer },
            Given::Integer {} => FieldKind::Integer,
            Given::Float {} => FieldKind::Float,
            Given::Date {} => FieldKind::Date,
            Given::Boolean {} => FieldKind::Boolean,
            Given::Object {} => FieldKind::Object,
            Given::Nested {} => FieldKind::Nested,
        }
    }
}

/// How words are made of a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Analyzer {
    /// At what is no letter or digit; in lower case.
    #[default]
    Standard,
    /// As the standard, without endings.
    English,
    /// At white space; as written.
    Whitespace,
}

impl Analyzer {
    /// Its name among the tokenizers.
    pub(super) fn tokenizer(self) -> &'static str {
        match self {
            Analyzer::Standard => "default",
            Analyzer::English => "en_stem",
            Analyzer::Whitespace => "whitespace",
        }
    }
}

/// A vector field: what its indexes are made for. As JSON, everything but `dim` may be left out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VectorField(pub Params);

/// As JSON.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    dim: usize,
    #[serde(default)]
    metric: Option<String>,
    #[serde(default)]
    dtype: Option<String>,
    #[serde(default)]
    kind: Option<String>,
    #[serde(default)]
    code: Option<String>,
    #[serde(default)]
    m: Option<usize>,
    #[serde(default)]
    ef_construction: Option<usize>,
    #[serde(default)]
    nlist: Option<usize>,
    #[serde(default)]
    seed: Option<u64>,
}

impl Serialize for VectorField {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Params { dim, metric, dtype, kind, code, m, ef_construction, nlist, seed } = self.0;
        let name = |name: &str| Some(name.to_owned());
        let (metric, dtype) = (name(metric.name()), name(dtype.name()));
        let (kind, code) = (name(kind.name()), name(code.name()));
        let (m, ef_construction, nlist, seed) = (Some(m), Some(ef_construction), Some(nlist), Some(seed));
        Written { dim, metric, dtype, kind, code, m, ef_construction, nlist, seed }.serialize(serializer)
    }
}

/// The one of `all` that `name` names, or the usual one.
fn named<T: Copy, E: serde::de::Error>(
    argument: &str,
    given: Option<String>,
    usual: T,
    all: &[T],
    name: impl Fn(T) -> &'static str,
) -> Result<T, E> {
    let Some(given) = given else { return Ok(usual) };
    all.iter().copied().find(|&one| name(one) == given).ok_or_else(|| {
        let names: Vec<&str> = all.iter().map(|&one| name(one)).collect();
        E::custom(format!("{argument} is {given:?}: give {}", names.join(", ")))
    })
}

impl<'de> Deserialize<'de> for VectorField {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let written = Written::deserialize(deserializer)?;
        let usual = Params::new(written.dim);
        let dtype = named("dtype", written.dtype, usual.dtype, &Dtype::ALL, Dtype::name)?;
        let metric = if dtype == Dtype::Bits { Metric::Hamming } else { usual.metric };
        Ok(VectorField(Params {
            dim: written.dim,
            metric: named("metric", written.metric, metric, &Metric::ALL, Metric::name)?,
            dtype,
            kind: named("kind", written.kind, usual.kind, &Kind::ALL, Kind::name)?,
            code: named("code", written.code, usual.code, &Code::ALL, Code::name)?,
            m: written.m.unwrap_or(usual.m),
            ef_construction: written.ef_construction.unwrap_or(usual.ef_construction),
            nlist: written.nlist.unwrap_or(usual.nlist),
            seed: written.seed.unwrap_or(usual.seed),
        }))
    }
}

/// What is wrong with a schema.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum SchemaError {
    #[error("{len} fields: a table has at most {FIELDS_MAX}")]
    TooMany { len: usize },
    #[error(
        "field {name:?}: a name has 1 to {NAME_BYTES_MAX} bytes, does not begin with `_`, and has no dot at its ends and no control characters"
    )]
    Name { name: String },
    #[error("field {name:?} and field {inside:?}: a name cannot be both a field and an object's path")]
    Inside { name: String, inside: String },
    #[error("field {name:?} and field {inside:?}: nested objects hold no others")]
    NestedTwice { name: String, inside: String },
    #[error("field {name:?}: {error}")]
    Vector { name: String, error: CreateError },
    #[error("field {name:?}: there are rules for it, and it is not there, or not of a kind that they fit")]
    Rules { name: String },
    #[error("field {name:?} came later, or not: name each field that did once")]
    Later { name: String },
    #[error("field {name:?} cannot become another: make a table with it, and put the documents again")]
    Differs { name: String },
}

impl Schema {
    /// Checks names and parameters.
    ///
    /// # Errors
    /// What is wrong, by field.
    pub fn check(&self) -> Result<(), SchemaError> {
        if self.fields.len() > FIELDS_MAX {
            return Err(SchemaError::TooMany { len: self.fields.len() });
        }
        for (name, kind) in &self.fields {
            let inner = name.split('.').all(|part| !part.is_empty());
            let fine = inner && name.len() <= NAME_BYTES_MAX && !name.starts_with('_');
            if !fine || name.chars().any(char::is_control) {
                return Err(SchemaError::Name { name: name.clone() });
            }
            let mut above = name.match_indices('.').map(|(at, _)| &name[..at]);
            if let (FieldKind::Nested, Some(outer)) = (kind, self.nested(name)) {
                return Err(SchemaError::NestedTwice { name: outer.to_owned(), inside: name.clone() });
            }
            let holds = |outer: &&str| match self.fields.get(*outer) {
                None | Some(FieldKind::Nested) => false,
                // A field of several kinds.
                Some(whole) => !whole.is_value() || !kind.is_value(),
            };
            if let Some(outer) = above.find(holds) {
                return Err(SchemaError::Inside { name: outer.to_owned(), inside: name.clone() });
            }
            if let FieldKind::Vector(VectorField(params)) = kind {
                Index::new(*params).map_err(|error| SchemaError::Vector { name: name.clone(), error })?;
            }
        }
        self.check_rules()?;
        let mut seen = BTreeSet::new();
        let odd = self.later.iter().find(|name| !self.fields.contains_key(*name) || !seen.insert(*name));
        odd.map_or(Ok(()), |name| Err(SchemaError::Later { name: name.clone() }))
    }

    fn check_rules(&self) -> Result<(), SchemaError> {
        for (name, rules) in &self.rules {
            let is_value = |name: &String| self.fields.get(name).is_some_and(FieldKind::is_value);
            let fits = match self.fields.get(name) {
                Some(FieldKind::Vector(_)) => *rules == Rules { exact: rules.exact, ..Rules::default() },
                Some(FieldKind::Object | FieldKind::Nested) | None => false,
                // What copies lead to is not copied again, and lies in the same object.
                Some(_) => {
                    let led = |to: &String| {
                        let again = self.rules.get(to).is_some_and(|rules| !rules.copy_to.is_empty());
                        is_value(to) && !again && self.nested(to) == self.nested(name)
                    };
                    !rules.exact && rules.copy_to.iter().all(led)
                }
            };
            if !fits {
                return Err(SchemaError::Rules { name: name.clone() });
            }
        }
        Ok(())
    }

    /// The field of nested objects that `name` lies in.
    pub fn nested(&self, name: &str) -> Option<&str> {
        let mut outer = name.match_indices('.').map(|(at, _)| &name[..at]);
        let found = outer.find_map(|outer| {
            self.fields.get_key_value(outer).filter(|(_, kind)| **kind == FieldKind::Nested)
        });
        found.map(|(path, _)| path.as_str())
    }

    /// The fields in the order in which files number them: by name, then those that came later.
    pub(super) fn ordered(&self) -> impl Iterator<Item = (&String, &FieldKind)> {
        let first = self.fields.iter().filter(|(name, _)| !self.later.contains(name));
        first.chain(self.later.iter().filter_map(|name| self.fields.get_key_value(name)))
    }

    /// The vector fields, by name, then those that came later.
    pub fn vectors(&self) -> impl Iterator<Item = (&str, &Params)> {
        self.ordered().filter_map(|(name, kind)| match kind {
            FieldKind::Vector(VectorField(params)) => Some((name.as_str(), params)),
            _ => None,
        })
    }

    /// This schema with the fields of `more` that are not there yet, and its rules. What becomes of others stays.
    ///
    /// Whether a vector is given back as it came stays as it is for fields that are there.
    ///
    /// # Errors
    /// If a field is there and of another kind, or the sum cannot be.
    pub fn with(&self, more: &Schema) -> Result<Schema, SchemaError> {
        let mut sum = self.clone();
        for (name, kind) in more.ordered() {
            let differs = || SchemaError::Differs { name: name.clone() };
            let rules = more.rules.get(name);
            match self.fields.get(name) {
                Some(now) if now != kind => return Err(differs()),
                Some(FieldKind::Vector(_)) => continue,
                Some(_) => {}
                None => {
                    sum.fields.insert(name.clone(), kind.clone());
                    sum.later.push(name.clone());
                }
            }
            match rules {
                Some(rules) => drop(sum.rules.insert(name.clone(), rules.clone())),
                None => drop(sum.rules.remove(name)),
            }
        }
        sum.check()?;
        Ok(sum)
    }

    /// The version of tables and snapshots whose program can read it.
    pub(crate) fn version(&self) -> u32 {
        let of_several =
            |name: &String| name.match_indices('.').any(|(at, _)| self.fields.contains_key(&name[..at]));
        let is_new = !self.rules.is_empty() || !self.later.is_empty() || self.fields.keys().any(of_several);
        let has_nested = self.fields.values().any(|kind| *kind == FieldKind::Nested);
        if has_nested {
            3
        } else if is_new {
            2
        } else {
            1
        }
    }
}

impl FieldKind {
    /// Whether it is neither a vector nor an object.
    pub fn is_value(&self) -> bool {
        !matches!(self, FieldKind::Vector(_) | FieldKind::Object | FieldKind::Nested)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_is_read_with_what_is_usual_and_written_back() {
        let text = r#"{"fields": {
            "title": {"type": "text", "analyzer": "english"}, "n": {"type": "integer"}, "a.b": {"type": "keyword"},
            "v": {"type": "vector", "dim": 8, "metric": "cosine", "code": "i8"}, "w": {"type": "vector", "dim": 64, "dtype": "bits"}
        }}"#;
        let schema: Schema = serde_json::from_str(text).unwrap();
        schema.check().unwrap();
        let params = Params { metric: Metric::Cosine, code: Code::I8, ..Params::new(8) };
        assert_eq!(schema.fields["v"], FieldKind::Vector(VectorField(params)));
        assert_eq!(schema.vectors().map(|(name, p)| (name, p.metric)).last(), Some(("w", Metric::Hamming)));
        let back: Schema = serde_json::from_str(&serde_json::to_string(&schema).unwrap()).unwrap();
        assert_eq!(back, schema);
    }

    #[test]
    fn what_is_wrong_names_the_field_and_the_remedy() {
        let wrong = |text: &str| match serde_json::from_str::<Schema>(text) {
            Ok(schema) => schema.check().unwrap_err().to_string(),
            Err(error) => error.to_string(),
        };
        for (fields, says) in [
            (
                r#""t": {"type": "text"}, "t.v": {"type": "vector", "dim": 2}"#,
                "field \"t\" and field \"t.v\"",
            ),
            (r#""_id": {"type": "keyword"}"#, "field \"_id\": a name has"),
            (r#""a..b": {"type": "keyword"}"#, "field \"a..b\": a name has"),
            (r#""a": {"type": "object"}, "a.b": {"type": "float"}"#, "field \"a\" and field \"a.b\""),
            (r#""v": {"type": "vector", "dim": 0}"#, "field \"v\": "),
            (r#""v": {"type": "vector", "dim": 8, "metric": "l3"}"#, "metric is \"l3\": give l2, ip, cosine"),
            (r#""v": {"type": "vector", "dim": 8, "size": 3}"#, "unknown field `size`"),
            (r#""v": {"type": "vektor"}"#, "unknown variant `vektor`"),
        ] {
            let said = wrong(&format!("{{\"fields\": {{{fields}}}}}"));
            assert!(said.contains(says), "{said}");
        }
    }

    #[test]
    fn a_schema_grows_at_its_end_and_never_changes() {
        let of = |text: &str| serde_json::from_str::<Schema>(text).unwrap();
        let first = of(r#"{"fields": {"m": {"type": "vector", "dim": 2}, "t": {"type": "text"}}}"#);
        assert_eq!(first.version(), 1);
        let more = of(
            r#"{"fields": {"a": {"type": "vector", "dim": 3}, "t.k": {"type": "keyword"}, "t": {"type": "text"}},
                "rules": {"t.k": {"ignore_above": 4}}}"#,
        );
        let sum = first.with(&more).unwrap();
        assert_eq!(sum.vectors().map(|(name, _)| name).collect::<Vec<_>>(), ["m", "a"]);
        assert_eq!((sum.version(), &sum.later[..]), (2, &["a".to_owned(), "t.k".to_owned()][..]));
        assert_eq!(sum.with(&more).unwrap(), sum);
        assert_eq!(of(&serde_json::to_string(&sum).unwrap()), sum);
        for (other, says) in [
            (r#"{"fields": {"t": {"type": "keyword"}}}"#, "\"t\" cannot become another"),
            (r#"{"fields": {"m": {"type": "vector", "dim": 3}}}"#, "\"m\" cannot become another"),
            (r#"{"fields": {"t.k.x": {"type": "object"}}}"#, "both a field and an object's path"),
            (
                r#"{"fields": {"x": {"type": "text"}}, "rules": {"x": {"exact": true}}}"#,
                "\"x\": there are rules",
            ),
            (
                r#"{"fields": {"x": {"type": "text"}}, "rules": {"x": {"copy_to": ["y"]}}}"#,
                "\"x\": there are rules",
            ),
        ] {
            let said = sum.with(&of(other)).unwrap_err().to_string();
            assert!(said.contains(says), "{said}");
        }
        assert!(Schema { later: vec!["no".to_owned()], ..first }.check().is_err());
    }
}
