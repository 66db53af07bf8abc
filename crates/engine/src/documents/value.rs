//! Values of JSON as fields take them.

use serde_json::{Number, Value};
use tantivy::DateTime;
use tantivy::time::format_description::well_known::{Iso8601, Rfc3339};
use tantivy::time::{Date, OffsetDateTime, PrimitiveDateTime};

/// A whole number: also written with a fraction of 0.
pub(super) fn integer(value: &Value) -> Option<i64> {
    let number = |number: &Number| {
        number.as_i64().or_else(|| {
            let float = number.as_f64()?;
            // Beyond 2⁵³ floats are no longer whole numbers that somebody meant.
            (float.fract() == 0.0 && float.abs() <= 9_007_199_254_740_992.0).then_some(float as i64)
        })
    };
    match value {
        Value::Number(given) => number(given),
        Value::String(text) => text.parse().ok(),
        _ => None,
    }
}

/// A finite number; -0 is 0, as tantivy orders them.
pub(super) fn float(value: &Value) -> Option<f64> {
    let number = match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.parse().ok(),
        _ => None,
    };
    number.filter(|number: &f64| number.is_finite()).map(|number| number + 0.0)
}

/// A value, with 0 for each -0 in it.
pub(super) fn without_negative_zero(value: &Value) -> Value {
    match value {
        Value::Number(number) if number.is_f64() && number.as_f64() == Some(0.0) => 0.0.into(),
        Value::Array(all) => all.iter().map(without_negative_zero).collect(),
        Value::Object(inner) => {
            Value::Object(inner.iter().map(|(k, v)| (k.clone(), without_negative_zero(v))).collect())
        }
        _ => value.clone(),
    }
}

pub(super) fn boolean(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(given) => Some(*given),
        Value::String(text) => text.parse().ok(),
        _ => None,
    }
}

/// A time by ISO 8601, with or without a time of day and an offset (else UTC), or in milliseconds since 1970.
pub(super) fn date(value: &Value) -> Option<DateTime> {
    match value {
        Value::Number(number) => millis(number.as_i64()?),
        Value::String(text) => {
            let with_offset = || OffsetDateTime::parse(text, &Rfc3339).ok();
            let without = || Some(PrimitiveDateTime::parse(text, &Iso8601::DEFAULT).ok()?.assume_utc());
            let day = || Some(Date::parse(text, &Iso8601::DEFAULT).ok()?.midnight().assume_utc());
            let time = with_offset().or_else(without).or_else(day);
            let millis_of = |time: OffsetDateTime| millis((time.unix_timestamp_nanos() / 1_000_000) as i64);
            time.and_then(millis_of).or_else(|| millis(text.parse().ok()?))
        }
        _ => None,
    }
}

/// Whether a string is a time by ISO 8601.
pub fn is_date(text: &str) -> bool {
    text.parse::<f64>().is_err() && date(&Value::String(text.to_owned())).is_some()
}

/// Within what 64 bits of nanoseconds hold: 1677 to 2262.
fn millis(millis: i64) -> Option<DateTime> {
    const MAX: i64 = i64::MAX / 1_000_000;
    (-MAX..=MAX).contains(&millis).then(|| DateTime::from_timestamp_millis(millis))
}

/// What a value is, for whoever is told that it is something else.
pub(super) fn kind(value: &Value) -> String {
    let text = match value {
        Value::Null => return "null".to_owned(),
        Value::Bool(_) => return "a boolean".to_owned(),
        Value::Array(_) => return "an array".to_owned(),
        Value::Object(_) => return "an object".to_owned(),
        Value::Number(number) => return format!("the number {number}"),
        Value::String(text) => text,
    };
    let short: String = text.chars().take(40).collect();
    format!("the string {short:?}{}", if short.len() < text.len() { "…" } else { "" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_are_read_as_users_write_them() {
        assert_eq!([json!(3), json!(3.0), json!("-3")].map(|v| integer(&v)), [Some(3), Some(3), Some(-3)]);
        assert_eq!([json!(3.5), json!(1e300), json!("x"), json!(null)].map(|v| integer(&v)), [None; 4]);
        assert_eq!(
            [json!(3), json!("2.5"), json!("nan"), json!([1])].map(|v| float(&v)),
            [Some(3.0), Some(2.5), None, None]
        );
        assert!(float(&json!(-0.0)).unwrap().is_sign_positive());
        let midnight = Some(DateTime::from_timestamp_millis(1_700_006_400_000));
        for written in
            ["2023-11-15", "2023-11-15T00:00:00", "2023-11-15T00:00:00Z", "2023-11-15T02:00:00+02:00"]
        {
            assert_eq!(date(&json!(written)), midnight, "{written}");
        }
        assert_eq!([json!(1_700_006_400_000_i64), json!("1700006400000")].map(|v| date(&v)), [midnight; 2]);
        assert_eq!(
            [json!("soon"), json!(i64::MAX), json!("9999-01-01T00:00:00Z")].map(|v| date(&v)),
            [None; 3]
        );
    }
}
