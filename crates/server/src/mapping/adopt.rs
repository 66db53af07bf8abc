//! Mappings of a table that was made without the server: those that would make it.

use lanewise_engine::documents::{Dynamic, FieldKind, Rules, Schema};
use lanewise_engine::index::{Dtype, Metric};
use serde_json::{Map, Value, json};

/// Mappings that say what a schema says. What it does not name is found as the table has it, and not mapped.
pub(crate) fn of_schema(schema: &Schema) -> Map<String, Value> {
    let mut properties = json!({});
    for (name, kind) in &schema.fields {
        let field = field(kind, schema.rules.get(name));
        let whole = name
            .match_indices('.')
            .map(|(at, _)| &name[..at])
            .find(|outer| schema.fields.get(*outer).is_some_and(|kind| *kind != FieldKind::Nested));
        match whole {
            None => *at(&mut properties, name, "properties") = field,
            Some(whole) => {
                at(&mut properties, whole, "properties")["fields"][&name[whole.len() + 1..]] = field;
            }
        }
    }
    let dynamic = if schema.dynamic == Dynamic::Strict { "strict" } else { "false" };
    Map::from_iter([("dynamic".to_owned(), dynamic.into()), ("properties".to_owned(), properties)])
}

/// The place of a field among others, in objects whose fields are below `key`.
fn at<'a>(fields: &'a mut Value, name: &str, key: &str) -> &'a mut Value {
    match name.split_once('.') {
        None => &mut fields[name],
        Some((outer, rest)) => at(&mut fields[outer][key], rest, key),
    }
}

fn field(kind: &FieldKind, rules: Option<&Rules>) -> Value {
    let mut field = match kind {
        FieldKind::Vector(vector) => {
            let params = vector.0;
            let mut field = json!({"type": "knn_vector", "dimension": params.dim, "lanewise": vector,
            "space_type": match params.metric {
                Metric::Cosine => "cosinesimil",
                Metric::InnerProduct => "innerproduct",
                Metric::Hamming => "hamming",
                metric => metric.name(),
            }});
            match params.dtype {
                Dtype::I8 | Dtype::U8 => field["data_type"] = "byte".into(),
                Dtype::Bits => field["data_type"] = "binary".into(),
                _ => {}
            }
            return field;
        }
        FieldKind::Keyword => json!({"type": "keyword"}),
        FieldKind::Text { analyzer } => json!({"type": "text", "analyzer": analyzer}),
        FieldKind::Integer => json!({"type": "long", "coerce": false}),
        FieldKind::Float => json!({"type": "double"}),
        FieldKind::Date => json!({"type": "date"}),
        FieldKind::Boolean => json!({"type": "boolean"}),
        FieldKind::Object => json!({"type": "flat_object"}),
        FieldKind::Nested => json!({"type": "nested"}),
    };
    if let Some(rules) = rules {
        let said = serde_json::to_value(rules).unwrap_or_default();
        let said = said.as_object().into_iter().flatten().filter(|(name, _)| *name != "exact");
        said.for_each(|(name, value)| field[name] = value.clone());
    }
    field
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mapping::{Mappings, Usual};

    #[test]
    fn adopted_mappings_make_the_fields_that_they_are_of() {
        let schema: Schema = serde_json::from_value(json!({"dynamic": "strict", "fields": {
            "v": {"type": "vector", "dim": 3, "dtype": "bf16", "metric": "cosine", "kind": "ivf", "nlist": 7},
            "o.u": {"type": "vector", "dim": 4, "dtype": "u8"}, "b": {"type": "vector", "dim": 16, "dtype": "bits"},
            "t": {"type": "text", "analyzer": "english"}, "t.raw": {"type": "keyword"}, "n": {"type": "integer"},
            "f": {"type": "float"}, "d": {"type": "date"}, "x": {"type": "boolean"}, "any": {"type": "object"}, "p.q": {"type": "nested"},
            "p.q.v": {"type": "vector", "dim": 2}, "p.q.k": {"type": "keyword"}, "p.q.k.t": {"type": "text"}},
            "rules": {"t.raw": {"ignore_above": 3}, "t": {"copy_to": ["all.of"]}, "n": {"null_value": 4}}}))
        .unwrap();
        let mut schema = schema;
        schema.fields.insert("all.of".to_owned(), FieldKind::Keyword);
        schema.check().unwrap();
        let read = Mappings::read(&of_schema(&schema), Usual::default()).unwrap().schema;
        assert_eq!(read.fields, schema.fields);
        let named = |schema: &Schema| {
            let mut rules = schema.rules.clone();
            rules.retain(|name, _| !["v", "o.u", "b", "p.q.v"].contains(&&**name));
            rules
        };
        assert_eq!(named(&read), named(&schema));
        assert!(schema.with(&read).is_ok());
    }
}
