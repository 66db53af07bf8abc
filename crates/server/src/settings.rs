//! An index's settings: by full names, values as strings, as OpenSearch gives them back; and what a table makes of them.

use crate::error::ApiError;
use lanewise_engine::MemoryLimit;
use lanewise_engine::table::{Durability, Settings};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// When a setting may be given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum When {
    /// With the index, never after.
    Created,
    /// At any time.
    Always,
    /// By nobody: it is made with the index.
    Never,
}

/// What a value must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Any,
    Flag,
    Number,
    Time,
    Bytes,
    /// Bytes, or a share of the machine's.
    Memory,
}

impl Form {
    /// Refuses a value of another form.
    pub(crate) fn check(self, name: &str, value: &str) -> Result<(), ApiError> {
        let (fits, expected) = match self {
            Form::Any => (true, "a value"),
            Form::Flag => (matches!(value, "true" | "false"), "true or false"),
            Form::Number => (value.parse::<f64>().is_ok_and(f64::is_finite), "a number"),
            Form::Time => (value == "-1" || time_ms(value).is_some(), "a time such as 30s"),
            Form::Bytes => (value == "-1" || bytes(value).is_some(), "a size such as 512mb"),
            Form::Memory => {
                (value.parse::<MemoryLimit>().is_ok(), "a size such as 512mb, or a share such as 50%")
            }
        };
        if fits {
            return Ok(());
        }
        Err(ApiError::argument(format!(
            "Failed to parse value [{value}] for setting [{name}]: give {expected}"
        )))
    }
}

/// The settings that are known. Those that a table does not follow are kept and given back: nothing is promised that they
/// would change.
const KNOWN: &[(&str, When, Form)] = &[
    ("index.creation_date", When::Never, Form::Any),
    ("index.provided_name", When::Never, Form::Any),
    ("index.uuid", When::Never, Form::Any),
    ("index.version.created", When::Never, Form::Any),
    ("index.number_of_shards", When::Created, Form::Number),
    ("index.number_of_replicas", When::Always, Form::Number),
    ("index.auto_expand_replicas", When::Always, Form::Any),
    ("index.replication.type", When::Created, Form::Any),
    ("index.refresh_interval", When::Always, Form::Time),
    ("index.search.idle.after", When::Always, Form::Time),
    ("index.max_result_window", When::Always, Form::Number),
    ("index.search.default_pipeline", When::Always, Form::Any),
    ("index.hidden", When::Always, Form::Flag),
    ("index.codec", When::Created, Form::Any),
    ("index.translog.durability", When::Always, Form::Any),
    ("index.translog.sync_interval", When::Always, Form::Time),
    ("index.translog.flush_threshold_size", When::Always, Form::Bytes),
    ("index.translog.generation_threshold_size", When::Always, Form::Bytes),
    ("index.merge.policy.floor_segment", When::Always, Form::Bytes),
    ("index.merge.policy.segments_per_tier", When::Always, Form::Number),
    ("index.merge.policy.max_merge_at_once", When::Always, Form::Number),
    ("index.merge.policy.max_merged_segment", When::Always, Form::Bytes),
    ("index.merge.policy.deletes_pct_allowed", When::Always, Form::Number),
    ("index.merge.scheduler.max_thread_count", When::Always, Form::Number),
    ("index.merge.scheduler.max_merge_count", When::Always, Form::Number),
    ("index.merge.scheduler.auto_throttle", When::Always, Form::Flag),
    ("index.mapping.total_fields.limit", When::Always, Form::Number),
    ("index.search.concurrent_segment_search.enabled", When::Always, Form::Flag),
    ("index.search.concurrent_segment_search.mode", When::Always, Form::Any),
    ("index.search.slowlog.threshold.query.warn", When::Always, Form::Time),
    ("index.search.slowlog.threshold.query.info", When::Always, Form::Time),
    ("index.knn", When::Created, Form::Flag),
    ("index.knn.space_type", When::Created, Form::Any),
    ("index.knn.algo_param.m", When::Created, Form::Number),
    ("index.knn.algo_param.ef_construction", When::Created, Form::Number),
    ("index.knn.algo_param.ef_search", When::Always, Form::Number),
    ("index.knn.advanced.approximate_threshold", When::Always, Form::Number),
    ("index.knn.advanced.filtered_exact_search_threshold", When::Always, Form::Number),
    ("index.knn.derived_source.enabled", When::Created, Form::Flag),
    ("index.knn.disk.vector.shard_level_rescoring_disabled", When::Always, Form::Flag),
    ("index.knn.remote_index_build.enabled", When::Always, Form::Flag),
    ("index.blocks.read_only", When::Always, Form::Flag),
    ("index.blocks.write", When::Always, Form::Flag),
    ("index.blocks.read_only_allow_delete", When::Always, Form::Flag),
];

/// The names of the settings that clients may give, and whether they may later.
pub(crate) fn names() -> impl Iterator<Item = (&'static str, bool)> {
    let given = KNOWN.iter().filter(|(_, when, _)| *when != When::Never);
    given.map(|(name, when, _)| (*name, *when == When::Always))
}

/// Settings by full name.
pub(crate) type Flat = BTreeMap<String, Option<String>>;

/// Reads what a client gave: flat, nested, with `index.` before the names or without; `null` takes a setting back.
///
/// # Errors
/// If something is no value.
pub(crate) fn flat(given: &Map<String, Value>) -> Result<Flat, ApiError> {
    let mut all = Flat::new();
    for (name, value) in flattened(given)? {
        let known = name == "index" || name.starts_with("index.");
        all.insert(if known { name } else { format!("index.{name}") }, value);
    }
    Ok(all)
}

/// Flat or nested settings by full name.
///
/// # Errors
/// If something is no value.
pub(crate) fn flattened(given: &Map<String, Value>) -> Result<Flat, ApiError> {
    fn walk(path: &str, value: &Value, all: &mut Flat) -> Result<(), ApiError> {
        let text = match value {
            Value::Object(inner) => {
                return inner.iter().try_for_each(|(key, value)| walk(&format!("{path}.{key}"), value, all));
            }
            Value::Null => None,
            Value::String(text) => Some(text.clone()),
            Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
            Value::Array(_) => {
                return Err(ApiError::argument(format!("setting [{path}] is an array: give one value")));
            }
        };
        all.insert(path.to_owned(), text);
        Ok(())
    }
    let mut all = Flat::new();
    given.iter().try_for_each(|(key, value)| walk(key, value, &mut all))?;
    Ok(all)
}

/// Settings as they are given back: by full name, or nested.
pub(crate) fn shown(settings: &BTreeMap<String, String>, flat: bool) -> Value {
    let mut root = Map::new();
    for (name, value) in settings {
        if flat {
            root.insert(name.clone(), json!(value));
            continue;
        }
        let mut now = &mut root;
        let mut parts: Vec<&str> = name.split('.').collect();
        let mut last = parts.pop().unwrap_or_default().to_owned();
        let mut path = String::new();
        for part in parts {
            path += part;
            // Below a setting that has a value itself names stay together: `"knn": "true", "knn.algo_param": {…}`.
            if now.get(&path).is_some_and(|there| !there.is_object()) {
                path.push('.');
                continue;
            }
            let inner = now.entry(std::mem::take(&mut path)).or_insert_with(|| json!({}));
            now = inner.as_object_mut().expect("what is there was looked at");
        }
        last.insert_str(0, &path);
        now.insert(last, json!(value));
    }
    Value::Object(root)
}

/// Refuses settings that are not known, have no such value, or may not be given now.
///
/// # Errors
/// Naming the first.
pub(crate) fn check(given: &Flat, creating: bool) -> Result<(), ApiError> {
    for (name, value) in given {
        let Some((_, when, form)) = KNOWN.iter().find(|(known, ..)| known == name) else {
            return Err(ApiError::argument(format!(
                "unknown setting [{name}] please check that any required plugins are installed, or check the breaking \
                 changes documentation for removed settings"
            )));
        };
        match (when, creating) {
            (When::Never, _) => {
                return Err(ApiError::argument(format!(
                    "private index setting [{name}] can not be set explicitly"
                )));
            }
            (When::Created, false) => {
                return Err(ApiError::argument(format!(
                    "final index setting [{name}], not updateable: it is given when an index is created"
                )));
            }
            _ => {}
        }
        let Some(value) = value else { continue };
        form.check(name, value)?;
    }
    Ok(())
}

/// What a table makes of an index's settings.
///
/// # Errors
/// If a value is out of range.
pub(crate) fn of_table(settings: &BTreeMap<String, String>) -> Result<Settings, ApiError> {
    let mut made = Settings::default();
    let get = |name: &str| settings.get(name).map(String::as_str);
    match get("index.translog.durability").map(str::to_lowercase).as_deref() {
        None | Some("request") => {}
        Some("async") => made.durability = Durability::Async,
        Some(other) => {
            return Err(ApiError::argument(format!(
                "index.translog.durability [{other}]: give request or async"
            )));
        }
    }
    if let Some(ms) = get("index.translog.sync_interval").and_then(time_ms) {
        made.sync_interval_ms = ms;
    }
    if let Some(bytes) = get("index.translog.flush_threshold_size").and_then(bytes) {
        made.flush_threshold_bytes = bytes;
    }
    let number = |name: &str| get(name).and_then(|text| text.parse::<f64>().ok());
    let merge = &mut made.merge;
    if let Some(bytes) = get("index.merge.policy.floor_segment").and_then(bytes) {
        merge.floor_segment = bytes;
    }
    if let Some(bytes) = get("index.merge.policy.max_merged_segment").and_then(bytes) {
        merge.max_merged_segment = bytes;
    }
    if let Some(n) = number("index.merge.policy.segments_per_tier") {
        merge.segments_per_tier = n as _;
    }
    if let Some(n) = number("index.merge.policy.max_merge_at_once") {
        merge.max_merge_at_once = n as _;
    }
    if let Some(percent) = number("index.merge.policy.deletes_pct_allowed") {
        merge.deletes_allowed = percent / 100.0;
    }
    made.check().map_err(|error| ApiError::argument(error.to_string()))?;
    Ok(made)
}

/// Milliseconds of `30s`, `500ms`, `1m`, …
pub(crate) fn time_ms(text: &str) -> Option<u64> {
    let units = [
        ("nanos", 0.000_001),
        ("micros", 0.001),
        ("ms", 1.0),
        ("s", 1e3),
        ("m", 6e4),
        ("h", 3.6e6),
        ("d", 8.64e7),
    ];
    let (number, unit) = units.iter().find_map(|(unit, ms)| Some((text.strip_suffix(unit)?, ms)))?;
    let number: f64 = number.parse().ok().filter(|number: &f64| *number >= 0.0 && number.is_finite())?;
    Some((number * unit) as u64)
}

/// Bytes of `512mb`, `1g`, `100b`, …
pub(crate) fn bytes(text: &str) -> Option<u64> {
    let text = text.to_lowercase();
    let units = [
        ("kb", 10),
        ("mb", 20),
        ("gb", 30),
        ("tb", 40),
        ("pb", 50),
        ("k", 10),
        ("m", 20),
        ("g", 30),
        ("t", 40),
        ("p", 50),
        ("b", 0),
    ];
    let (number, shift) = units.iter().find_map(|(unit, shift)| Some((text.strip_suffix(unit)?, shift)))?;
    let number: f64 = number.parse().ok().filter(|number: &f64| *number >= 0.0 && number.is_finite())?;
    Some((number * (1u64 << shift) as f64) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_in_every_form() {
        let given = json!({"index": {"knn": true, "translog": {"durability": "async"}}, "number_of_shards": 1,
            "index.refresh_interval": "-1", "translog.sync_interval": "30s"});
        let all = flat(given.as_object().unwrap()).unwrap();
        check(&all, true).unwrap();
        let all: BTreeMap<_, _> = all.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
        assert_eq!(all["index.knn"], "true");
        assert_eq!(all["index.number_of_shards"], "1");
        let made = of_table(&all).unwrap();
        assert_eq!((made.durability, made.sync_interval_ms), (Durability::Async, 30_000));
    }

    #[test]
    fn what_cannot_be_set_is_named() {
        for (given, creating, says) in [
            (json!({"foo": 1}), true, "unknown setting [index.foo]"),
            (json!({"uuid": "x"}), true, "private index setting [index.uuid]"),
            (json!({"knn": true}), false, "final index setting [index.knn], not updateable"),
            (json!({"knn": "yes"}), true, "give true or false"),
            (json!({"refresh_interval": "soon"}), true, "a time such as 30s"),
        ] {
            let said = flat(given.as_object().unwrap())
                .and_then(|all| check(&all, creating))
                .unwrap_err()
                .to_string();
            assert!(said.contains(says), "{said}");
        }
    }

    #[test]
    fn names_stay_together_below_a_setting_with_a_value() {
        let flat = [
            ("index.knn", "true"),
            ("index.knn.algo_param.ef_search", "100"),
            ("index.knn.space_type", "l2"),
            ("index.uuid", "x"),
        ];
        let flat: BTreeMap<_, _> =
            flat.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let nested = json!({"index": {"knn": "true", "knn.algo_param": {"ef_search": "100"}, "knn.space_type": "l2", "uuid": "x"}});
        assert_eq!(shown(&flat, false), nested);
        assert_eq!(shown(&flat, true)["index.knn.algo_param.ef_search"], "100");
    }

    #[test]
    fn times_and_sizes_are_opensearchs() {
        assert_eq!(
            (time_ms("500ms"), time_ms("1.5s"), time_ms("2m"), time_ms("1"), time_ms("-1s")),
            (Some(500), Some(1500), Some(120_000), None, None)
        );
        assert_eq!(
            (bytes("512mb"), bytes("1G"), bytes("7b"), bytes("7"), bytes("-1kb")),
            (Some(512 << 20), Some(1 << 30), Some(7), None, None)
        );
    }
}
