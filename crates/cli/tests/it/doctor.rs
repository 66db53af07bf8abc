//! `lanewise doctor`: it reports on any machine, whatever `LANEWISE_ISA` says.

use crate::{Ended, lanewise};
use lanewise_engine::topology::Machine;
use serde_json::Value;

fn doctor(isa: Option<&str>, args: &[&str]) -> Ended {
    let mut command = lanewise();
    command.arg("doctor").args(args);
    if let Some(isa) = isa {
        command.env("LANEWISE_ISA", isa);
    }
    Ended::of(command.output().unwrap())
}

fn json(ended: &Ended) -> Value {
    serde_json::from_str(&ended.out).unwrap()
}

const KERNELS: [&str; 5] = ["dot_f32", "l2_f32", "dot_i8", "l2_i8", "hamming_bits"];

#[test]
fn every_kernel_and_the_machine_are_reported() {
    let ended = doctor(None, &[]).ok();
    for word in KERNELS.iter().chain(&[
        "shape:",
        "chiplet 0",
        "threads:",
        "huge pages",
        "in use",
        "tests: run",
        "LANEWISE_ISA is not set",
    ]) {
        assert!(ended.out.contains(word), "{word} is not in {}", ended.out);
    }
}

#[test]
fn json_says_the_same_for_programs() {
    let report = json(&doctor(None, &["--json"]).ok());
    let names: Vec<&str> =
        report["kernels"].as_array().unwrap().iter().filter_map(|k| k["kernel"].as_str()).collect();
    assert!(KERNELS.iter().all(|kernel| names.contains(kernel)), "{names:?}");
    // The highest usable level is in use, but for the one that runs only where it is named.
    let usable = |level: &&Value| level["usable"] == true && level["name"] != "avx512fp16";
    let best = report["levels"].as_array().unwrap().iter().rfind(usable).unwrap();
    assert_eq!(report["level"], best["name"]);
    assert_eq!(report["levels"][0]["tested"], "run, emulated");
    assert_eq!((&report["problem"], &report["lanewise_isa"]), (&Value::Null, &Value::Null));
    assert!(report["machine"]["threads"].as_u64().unwrap() >= 1);
    let chiplets = report["machine"]["chiplets"].as_array().unwrap();
    assert!(!chiplets.is_empty());
    let machine = Machine::fake(report["machine"]["shape"].as_str().unwrap()).unwrap();
    assert_eq!(machine.chiplets.len(), chiplets.len());
}

#[test]
fn no_cpu_is_said_to_lack_what_none_has() {
    let ended = doctor(None, &[]).ok();
    assert!(!ended.out.contains("its name in LANEWISE_ISA"), "{}", ended.out);
}

#[test]
fn a_forced_level_shows_what_it_holds_back() {
    let best = json(&doctor(None, &["--json"]).ok());
    let forced = json(&doctor(Some("scalar"), &["--json"]).ok());
    assert_eq!((&forced["level"], &forced["lanewise_isa"]), (&"scalar".into(), &"scalar".into()));
    for (kernel, best) in
        forced["kernels"].as_array().unwrap().iter().zip(best["kernels"].as_array().unwrap())
    {
        assert_eq!(kernel["isa"], "scalar");
        let over = kernel["passed_over"].as_array().unwrap();
        let Some(same) = over.iter().find(|variant| variant["isa"] == best["isa"]) else {
            assert_eq!(best["isa"], "scalar", "{kernel}");
            continue;
        };
        // What runs unforced can only be held back by force.
        let reason = same["reason"].as_str().unwrap();
        assert!(reason.contains("LANEWISE_ISA holds back") && !reason.contains("lacks"), "{reason}");
    }
    let text = doctor(Some("scalar"), &[]).ok().out;
    assert!(text.contains("LANEWISE_ISA=\"scalar\""), "{text}");
}

#[test]
fn a_wrong_level_is_reported_with_all_the_rest() {
    for args in [&[][..], &["--json"]] {
        let ended = doctor(Some("nonsense"), args);
        assert_eq!(ended.code, Some(1));
        assert!(ended.err.starts_with("error: LANEWISE_ISA=\"nonsense\"") && ended.err.lines().count() == 1);
        assert!(ended.out.contains("nonsense") && ended.out.contains("hamming_bits"), "{}", ended.out);
    }
    let report = json(&doctor(Some("nonsense"), &["--json"]));
    assert_eq!(report["level"], Value::Null);
    assert!(report["problem"].as_str().unwrap().contains("unset it, or use one of"), "{report}");
}

/// Nothing here depends on how fast the machine is: the report, its marks and the exit code must only agree.
#[test]
fn measuring_gives_figures_and_marks_what_is_below() {
    let ended = doctor(None, &["--measure", "--json"]);
    let measured = &json(&ended)["measured"];
    assert!(measured["cycle_ns"].as_f64().unwrap() > 0.0);
    let parts = measured["parts"].as_array().unwrap();
    let mut marked = Vec::new();
    for part in parts {
        let figure = |name: &str| part[name].as_f64().unwrap();
        let (reached, expected) = (figure("bytes_per_cycle"), figure("expected_bytes_per_cycle"));
        assert!(reached > 0.0 && expected > 0.0 && figure("bytes_per_second") > reached, "{part}");
        assert_eq!(part["verdict"], if reached < expected { "BELOW" } else { "fine" });
        if reached < expected {
            marked.push(part["part"].clone());
        }
    }
    let names: Vec<&str> = parts.iter().filter_map(|part| part["part"].as_str()).collect();
    for name in
        ["crc32c", "xxh3", "read_l1", "copy_l1", "dot_f32", "l2_f32", "dot_i8", "l2_i8", "hamming_bits"]
    {
        assert!(names.contains(&name), "{name} was not measured: {names:?}");
    }
    assert_eq!(measured["below"], Value::from(marked.clone()));
    assert_eq!(ended.code, Some(if marked.is_empty() { 0 } else { 1 }), "{}", ended.err);
    assert_eq!(ended.err.contains("below what this CPU should reach"), !marked.is_empty());
}

#[test]
fn without_being_asked_to_nothing_is_measured() {
    assert_eq!(json(&doctor(None, &["--json"]).ok())["measured"], Value::Null);
    assert!(!doctor(None, &[]).ok().out.contains("Measured"));
}

#[test]
fn a_wrong_level_keeps_kernels_from_being_measured_but_nothing_else() {
    let ended = doctor(Some("nonsense"), &["--measure"]);
    assert_eq!(ended.code, Some(1));
    assert!(ended.err.starts_with("error: LANEWISE_ISA") && ended.err.lines().count() == 1, "{}", ended.err);
    let (_, table) = ended.out.split_once("\nMeasured").unwrap();
    assert!(table.contains("| crc32c") && !table.contains("| dot_f32"), "{table}");
}
