//! Templates: what an index gets beside what its request says. Of index templates the one with the highest priority counts,
//! with its components before it; where none fits, all legacy ones that do, by their order.

use super::{Cluster, matches};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Settings by full name, mappings and aliases, as they add up.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Template {
    pub(crate) settings: Map<String, Value>,
    pub(crate) mappings: Map<String, Value>,
    pub(crate) aliases: Map<String, Value>,
}

/// The patterns of a template.
pub(crate) fn patterns(template: &Value) -> Vec<&str> {
    match &template["index_patterns"] {
        Value::Array(all) => all.iter().filter_map(Value::as_str).collect(),
        Value::String(one) => vec![one],
        _ => Vec::new(),
    }
}

fn fits(template: &Value, name: &str) -> bool {
    patterns(template).iter().any(|pattern| matches(pattern, name))
}

/// How much an index template counts.
pub(crate) fn priority(template: &Value) -> i64 {
    template["priority"].as_i64().unwrap_or(0)
}

/// Whether some name has the form of both patterns.
pub(crate) fn overlap(one: &str, other: &str) -> bool {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    // By what is left of `other`: whether it can go together with what is left of `one`.
    let mut after: Vec<bool> = vec![false; other.len() + 1];
    for left in (0..=one.len()).rev() {
        let mut now = vec![false; other.len() + 1];
        for rest in (0..=other.len()).rev() {
            now[rest] = match (one.get(left), other.get(rest)) {
                (None, None) => true,
                (Some('*'), _) if after[rest] => true,
                (Some('*'), Some(_)) => now[rest + 1],
                (_, Some('*')) => now[rest + 1] || (left < one.len() && after[rest]),
                (Some(a), Some(b)) => a == b && after[rest + 1],
                _ => false,
            };
        }
        after = now;
    }
    after[0]
}

impl Cluster {
    /// The index template that counts for a name.
    pub(crate) fn template_for(&self, name: &str) -> Option<(&str, &Value)> {
        let all = self.index_templates.iter().filter(|(_, template)| fits(template, name));
        all.max_by_key(|(_, template)| priority(template)).map(|(name, template)| (name.as_str(), template))
    }

    /// What templates give an index of this name.
    pub(crate) fn given_to(&self, name: &str) -> Template {
        match self.template_for(name) {
            Some((_, template)) => self.composed(template),
            None => {
                let mut all: Vec<&Value> =
                    self.templates.values().filter(|template| fits(template, name)).collect();
                all.sort_by_key(|template| template["order"].as_i64().unwrap_or(0));
                let mut sum = Template::default();
                all.into_iter().for_each(|template| sum.add(template));
                sum
            }
        }
    }

    /// An index template with its components.
    pub(crate) fn composed(&self, template: &Value) -> Template {
        let mut sum = Template::default();
        let names = template["composed_of"].as_array().into_iter().flatten().filter_map(Value::as_str);
        for component in names.filter_map(|name| self.component_templates.get(name)) {
            sum.add(&component["template"]);
        }
        sum.add(&template["template"]);
        sum
    }
}

impl Template {
    /// Adds `{settings, mappings, aliases}`, which count more than what is there.
    pub(crate) fn add(&mut self, more: &Value) {
        let part = |name: &str| more[name].as_object().cloned().unwrap_or_default();
        self.settings.extend(flat(&part("settings")));
        mapped(&mut self.mappings, &part("mappings"));
        self.aliases.extend(part("aliases"));
    }

    /// As the body of a request that makes an index.
    pub(crate) fn body(self) -> Map<String, Value> {
        let Template { settings, mappings, aliases } = self;
        [("settings", settings), ("mappings", mappings), ("aliases", aliases)]
            .map(|(name, part)| (name.to_owned(), Value::Object(part)))
            .into_iter()
            .collect()
    }

    /// The same with settings nested.
    pub(crate) fn shown(&self) -> Value {
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let settings: BTreeMap<String, String> =
            self.settings.iter().map(|(name, value)| (name.clone(), text(value))).collect();
        json!({
            "settings": crate::settings::shown(&settings, false), "mappings": self.mappings, "aliases": self.aliases,
        })
    }
}

/// Settings by full name; they were checked when the template was put.
fn flat(given: &Map<String, Value>) -> Map<String, Value> {
    let flat = crate::settings::flat(given).unwrap_or_default();
    flat.into_iter().map(|(name, value)| (name, value.map_or(Value::Null, Value::String))).collect()
}

/// Puts more mappings into some: fields into objects, in place of other fields.
fn mapped(mappings: &mut Map<String, Value>, more: &Map<String, Value>) {
    for (name, value) in more {
        match (mappings.get_mut(name), value) {
            (Some(Value::Object(fields)), Value::Object(more)) if name == "properties" => {
                for (field, how) in more {
                    match (fields.get_mut(field), how) {
                        (Some(Value::Object(now)), Value::Object(how))
                            if now.contains_key("properties") && how.contains_key("properties") =>
                        {
                            mapped(now, how);
                        }
                        _ => drop(fields.insert(field.clone(), how.clone())),
                    }
                }
            }
            (Some(Value::Array(all)), Value::Array(more)) if name == "dynamic_templates" => {
                let named = |template: &Value| {
                    template.as_object().and_then(|template| template.keys().next()).cloned()
                };
                all.retain(|template| !more.iter().any(|other| named(other) == named(template)));
                all.extend(more.iter().cloned());
            }
            _ => drop(mappings.insert(name.clone(), value.clone())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn fields_go_into_objects_and_replace_others() {
        let mut sum = Template::default();
        sum.add(&json!({"settings": {"number_of_replicas": 2, "index": {"knn": true}}, "mappings": {"properties": {
            "o": {"properties": {"a": {"type": "keyword"}}}, "t": {"type": "text"}}}, "aliases": {"x": {}}}));
        sum.add(&json!({"settings": {"index.number_of_replicas": 0}, "mappings": {"dynamic": "strict", "properties": {
            "o": {"properties": {"b": {"type": "long"}}}, "t": {"type": "keyword"}}}}));
        assert_eq!(
            sum.shown(),
            json!({"settings": {"index": {"number_of_replicas": "0", "knn": "true"}}, "aliases": {"x": {}},
                "mappings": {"dynamic": "strict", "properties": {"t": {"type": "keyword"},
                    "o": {"properties": {"a": {"type": "keyword"}, "b": {"type": "long"}}}}}})
        );
    }

    proptest! {
        #[test]
        fn patterns_overlap_if_some_name_has_both(one in "[ab*]{0,4}", other in "[ab*]{0,4}") {
            // Whatever both have has a name of at most all their letters.
            let mut names = vec![String::new()];
            for at in 0.. {
                let Some(name) = names.get(at).cloned() else { break };
                if name.len() < 8 {
                    names.extend(["a", "b"].map(|letter| format!("{name}{letter}")));
                }
            }
            let both = names.iter().any(|name| matches(&one, name) && matches(&other, name));
            prop_assert_eq!(overlap(&one, &other), both, "{} {}", one, other);
        }
    }
}
