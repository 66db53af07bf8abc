//! What `lanewise doctor --measure` found: a table, its JSON, and the failure if something runs below what it should.

use crate::failure::Failure;
use crate::table;
use lanewise_bench::lowlevel::expected::Verdict;
use lanewise_bench::lowlevel::{Reading, Report};
use serde_json::{Value, json};
use std::io::{self, Write};

/// Writes the table.
pub(crate) fn write(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let cycle = report.cycle_seconds;
    writeln!(out, "\nMeasured (one thread; a cycle is {:.3} ns, {:.2} GHz)\n", cycle * 1e9, 1e-9 / cycle)?;
    let head = ["part", "by", "over", "GB/s", "bytes/cycle", "at least", "since this CPU has", "verdict"];
    let row = |reading: &Reading| {
        let features = reading.expected.features;
        vec![
            reading.part.name().to_owned(),
            reading.by.clone(),
            size(reading.bytes),
            format!("{:.1}", reading.bytes_per_second / 1e9),
            format!("{:.2}", reading.bytes_per_cycle),
            format!("{:.2}", reading.expected.bytes_per_cycle),
            if features.is_empty() { "–".to_owned() } else { features.join(", ") },
            name(reading.verdict()).to_owned(),
        ]
    };
    let rows: Vec<Vec<String>> = report.readings.iter().map(row).collect();
    table::write(out, &head.map(str::to_owned), &rows)
}

/// The same for programs.
pub(crate) fn json(report: &Report) -> Value {
    let part = |reading: &Reading| {
        json!({
            "part": reading.part.name(),
            "by": reading.by,
            "bytes": reading.bytes,
            "bytes_per_second": reading.bytes_per_second,
            "bytes_per_cycle": reading.bytes_per_cycle,
            "expected_bytes_per_cycle": reading.expected.bytes_per_cycle,
            "expected_for": reading.expected.features,
            "verdict": name(reading.verdict()),
        })
    };
    json!({
        "cycle_ns": report.cycle_seconds * 1e9,
        "parts": report.readings.iter().map(part).collect::<Vec<_>>(),
        "below": below(report),
    })
}

/// The failure if any part is below what is expected.
pub(crate) fn failure(report: &Report) -> Result<(), Failure> {
    let below = below(report);
    if below.is_empty() {
        return Ok(());
    }
    let (count, all) = (below.len(), report.readings.len());
    Err(Failure::Failed(format!(
        "{count} of {all} parts below what this CPU should reach: {}; measure again when the machine is idle: what stays \
         runs the wrong code, or on a throttled CPU",
        below.join(", ")
    )))
}

fn below(report: &Report) -> Vec<&'static str> {
    let below = report.readings.iter().filter(|reading| reading.verdict() == Verdict::Below);
    below.map(|reading| reading.part.name()).collect()
}

fn name(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Fine => "fine",
        Verdict::Below => "BELOW",
    }
}

/// Bytes in the largest binary unit that leaves at least one of them.
fn size(bytes: usize) -> String {
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..1_048_576 => format!("{} KiB", bytes >> 10),
        _ => format!("{} MiB", bytes >> 20),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanewise_bench::lowlevel::expected::{Part, expected};

    fn report(crc: f64) -> Report {
        let reading = |part, bytes_per_cycle| Reading {
            part,
            by: "somebody".into(),
            bytes: 16 << 10,
            bytes_per_cycle,
            bytes_per_second: bytes_per_cycle * 4e9,
            expected: expected(part, &["pclmulqdq", "sse4.1"]),
        };
        let readings = vec![reading(Part::Crc32c, crc), reading(Part::ReadL2, 20.0)];
        Report { cycle_seconds: 0.25e-9, readings }
    }

    #[test]
    fn what_runs_below_is_marked_in_every_form() {
        let (sound, ill) = (report(9.0), report(0.3));
        assert!(failure(&sound).is_ok());
        let Err(Failure::Failed(why)) = failure(&ill) else { panic!("0.3 bytes per cycle are too few") };
        assert!(why.starts_with("1 of 2 parts below") && why.contains(": crc32c;"), "{why}");
        assert_eq!((&json(&sound)["below"], &json(&ill)["below"]), (&json!([]), &json!(["crc32c"])));
        let mut text = Vec::new();
        write(&ill, &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        let line = |part: &str| text.lines().find(|line| line.contains(part)).unwrap();
        assert!(line("crc32c").contains("BELOW") && line("crc32c").contains("pclmulqdq, sse4.1"), "{text}");
        assert!(line("read_l2").contains("fine") && line("read_l2").contains("16 KiB"), "{text}");
    }

    #[test]
    fn sizes_read_well() {
        assert_eq!([512, 1 << 10, 3 << 20].map(size), ["512 B", "1 KiB", "3 MiB"]);
    }
}
