//! Numbers as people read them.

use lanewise_engine::index::{Dtype, Index};
use std::time::Duration;

/// A count with its thousands apart: `12,345`.
pub(crate) fn count(n: usize) -> String {
    let digits = n.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A rate per second, rounded to whole numbers.
pub(crate) fn rate(n: usize, time: Duration) -> String {
    per_second(n as f64 / time.as_secs_f64())
}

/// A number per second, rounded to whole numbers.
pub(crate) fn per_second(rate: f64) -> String {
    // The cast saturates: a time too short to be measured gives a large number.
    count(rate.round() as usize)
}

/// Seconds with two decimals.
pub(crate) fn seconds(time: Duration) -> String {
    format!("{:.2}", time.as_secs_f64())
}

/// Microseconds with one decimal.
pub(crate) fn microseconds(time: Duration) -> String {
    format!("{:.1}", time.as_secs_f64() * 1e6)
}

/// Bytes of a vector as the user brings it, and all that the index keeps for one: vector, padding, links, id.
pub(crate) fn bytes_per_vector(index: &Index) -> (usize, f64) {
    let (stats, params) = (index.stats(), index.params());
    let dtype: Dtype = params.dtype;
    let beside = stats.code_bytes + stats.graph_bytes + stats.list_bytes + stats.id_bytes;
    let all = stats.vector_bytes + beside;
    (dtype.vector_bytes(params.dim), all as f64 / stats.len.max(1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_stand_apart() {
        assert_eq!([0, 999, 1000, 1_234_567].map(count), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(rate(3, Duration::from_millis(2)), "1,500");
        assert_eq!(microseconds(Duration::from_nanos(1_250)), "1.2");
        assert_eq!(seconds(Duration::from_millis(1_239)), "1.24");
    }
}
