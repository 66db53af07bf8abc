//! `filter_path=hits.hits._id,-took`: which fields of an answer are sent.

use serde_json::{Map, Value};

/// What is sent, and what is not.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FilterPath {
    with: Vec<Vec<String>>,
    without: Vec<Vec<String>>,
}

impl FilterPath {
    /// Of paths between commas; `*` stands for any characters of a name, `**` for any names; those after `-` are left out.
    pub(crate) fn parse(paths: &str) -> FilterPath {
        let (without, with): (Vec<&str>, Vec<&str>) =
            paths.split(',').filter(|path| !path.is_empty()).partition(|path| path.starts_with('-'));
        FilterPath::new(with, without.into_iter().map(|path| &path[1..]))
    }

    /// Of paths to fields that are kept, all if there are none, and of paths to fields that are not.
    pub(crate) fn new<'a>(
        with: impl IntoIterator<Item = &'a str>,
        without: impl IntoIterator<Item = &'a str>,
    ) -> FilterPath {
        let split = |path: &str| path.split('.').map(str::to_owned).collect();
        FilterPath {
            with: with.into_iter().map(split).collect(),
            without: without.into_iter().map(split).collect(),
        }
    }

    /// What of `value` is sent.
    pub(crate) fn apply(&self, value: Value) -> Value {
        let with: Vec<&[String]> = self.with.iter().map(Vec::as_slice).collect();
        let without: Vec<&[String]> = self.without.iter().map(Vec::as_slice).collect();
        let kept = if with.is_empty() { Some(value) } else { kept(value, &with) };
        let empty = || Value::Object(Map::new());
        let Some(kept) = kept else { return empty() };
        if without.is_empty() { kept } else { left(kept, &without).unwrap_or_else(empty) }
    }
}

/// What is left of the paths behind `name`; an empty one says that all below is meant.
fn behind<'a>(paths: &[&'a [String]], name: &str) -> Vec<&'a [String]> {
    let mut behind = Vec::new();
    for path in paths {
        match path.split_first() {
            None => {}
            Some((first, rest)) if first == "**" => {
                behind.push(*path);
                behind.extend(self::behind(&[rest], name));
            }
            Some((first, rest)) if crate::cluster::matches(first, name) => behind.push(rest),
            Some(_) => {}
        }
    }
    behind
}

fn is_meant(paths: &[&[String]]) -> bool {
    paths.iter().any(|path| path.is_empty() || path.iter().all(|name| name == "**"))
}

/// What the paths lead to; `None` if that is nothing.
fn kept(value: Value, paths: &[&[String]]) -> Option<Value> {
    if is_meant(paths) {
        return Some(value);
    }
    match value {
        Value::Object(fields) => {
            let fields = fields.into_iter();
            let fields: Map<_, _> = fields
                .filter_map(|(name, value)| {
                    let value = kept(value, &behind(paths, &name))?;
                    Some((name, value))
                })
                .collect();
            (!fields.is_empty()).then_some(Value::Object(fields))
        }
        // Paths pass through arrays.
        Value::Array(values) => {
            let values: Vec<_> = values.into_iter().filter_map(|value| kept(value, paths)).collect();
            (!values.is_empty()).then_some(Value::Array(values))
        }
        _ => None,
    }
}

/// What the paths do not lead to; `None` if nothing is left.
fn left(value: Value, paths: &[&[String]]) -> Option<Value> {
    if is_meant(paths) {
        return None;
    }
    if paths.is_empty() {
        return Some(value);
    }
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            let fields = fields.into_iter();
            let fields: Map<_, _> = fields
                .filter_map(|(name, value)| {
                    let value = left(value, &behind(paths, &name))?;
                    Some((name, value))
                })
                .collect();
            (!fields.is_empty()).then_some(Value::Object(fields))
        }
        Value::Array(values) if !values.is_empty() => {
            let values: Vec<_> = values.into_iter().filter_map(|value| left(value, paths)).collect();
            (!values.is_empty()).then_some(Value::Array(values))
        }
        value => Some(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn paths_choose_what_is_sent() {
        let answer = || json!({"took": 3, "hits": {"total": {"value": 2}, "hits": [{"_id": "a", "_score": 1.0}, {"_id": "b", "_score": 0.5}]}});
        for (paths, sent) in [
            ("took", json!({"took": 3})),
            ("hits.hits._id", json!({"hits": {"hits": [{"_id": "a"}, {"_id": "b"}]}})),
            ("hits.to*", json!({"hits": {"total": {"value": 2}}})),
            ("**._id", json!({"hits": {"hits": [{"_id": "a"}, {"_id": "b"}]}})),
            ("**.value,took", json!({"took": 3, "hits": {"total": {"value": 2}}})),
            ("-hits", json!({"took": 3})),
            ("hits,-hits.hits._score,-hits.total", json!({"hits": {"hits": [{"_id": "a"}, {"_id": "b"}]}})),
            ("nothing", json!({})),
        ] {
            assert_eq!(FilterPath::parse(paths).apply(answer()), sent, "{paths}");
        }
    }
}
