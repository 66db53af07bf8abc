//! `lanewise doctor`: what this machine has, and what Lanewise makes of it.
//!
//! It reports whatever is wrong, and in that case too: with a wrong `LANEWISE_ISA` it shows what would run without it.
//! What it finds wrong makes it fail, after the report: a script need only look at the exit code.

use crate::failure::Failure;
use crate::measured;
use lanewise_bench::lowlevel;
use lanewise_engine::kernels::{self, IsaError, Kernels, Slot};
use lanewise_engine::topology::{Chiplet, HugePages, Machine};
use serde_json::{Value, json};
use std::io::{self, Write};

/// Show what this CPU has, which kernels run on it and why, and what the container allows
#[derive(clap::Args)]
pub(crate) struct Doctor {
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Time checksum, hash, memory and kernels too, for some seconds; fail if one runs below what this CPU should reach
    #[arg(long)]
    measure: bool,
}

/// The page whose table says how each instruction set is tested; made from the kernel lists.
const PAGE: &str = include_str!("../../../docs/kernels.md");

/// A level that `LANEWISE_ISA` accepts.
struct Level {
    name: &'static str,
    /// How the tests reach its kernels; or that none does.
    tested: &'static str,
    needs: Vec<&'static str>,
    /// Features that the level needs and this CPU has not.
    missing: Vec<&'static str>,
}

/// Everything that is reported, whichever way.
struct Findings {
    features: Vec<&'static str>,
    forced: Option<String>,
    /// The level in use, or what is wrong with the one that was asked for.
    level: Result<&'static str, IsaError>,
    levels: Vec<Level>,
    slots: Vec<Slot>,
    machine: Machine,
}

impl Doctor {
    pub(crate) fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let findings = Findings::collect();
        let measure = || lowlevel::measure(&findings.machine, Kernels::get().ok().as_ref());
        let report = if self.json {
            let report = self.measure.then(measure);
            let mut json = findings.json();
            json["measured"] = report.as_ref().map_or(Value::Null, measured::json);
            writeln!(out, "{json:#}")?;
            report
        } else {
            findings.write(out)?;
            // What is known already is shown while the rest is measured.
            out.flush()?;
            let report = self.measure.then(measure);
            report.as_ref().map_or(Ok(()), |report| measured::write(report, out))?;
            report
        };
        findings.level.map_err(|error| Failure::Failed(error.to_string()))?;
        report.as_ref().map_or(Ok(()), measured::failure)
    }
}

impl Findings {
    fn collect() -> Self {
        let features = kernels::cpu_features();
        let level = |(name, needs): (&'static str, Vec<&'static str>)| {
            let missing = needs.iter().copied().filter(|need| !features.contains(need)).collect();
            Level { name, tested: tested(name), needs, missing }
        };
        let levels = kernels::levels().into_iter().map(level).collect();
        let (level, slots) = match Kernels::get() {
            Ok(kernels) => (Ok(kernels.level()), kernels.slots()),
            // What would run without the wrong choice.
            Err(error) => (Err(error), kernels::plan("", &features).unwrap_or_default()),
        };
        let forced = std::env::var_os("LANEWISE_ISA").filter(|name| !name.is_empty());
        let forced = forced.map(|name| name.to_string_lossy().into_owned());
        Findings { features, forced, level, levels, slots, machine: Machine::detect() }
    }

    /// Why a better variant was passed over: features it needs, by whether the CPU or the forced level keeps them away.
    fn obstacle(&self, features: &[&'static str]) -> String {
        let real = features.iter().filter(|f| **f != kernels::NAMED);
        let (held_back, missing): (Vec<_>, Vec<_>) = real.partition(|f| self.features.contains(f));
        let mut reasons = Vec::new();
        if features.contains(&kernels::NAMED) {
            reasons.push("LANEWISE_ISA has to name it".to_owned());
        }
        if !missing.is_empty() {
            reasons.push(format!("this CPU lacks {}", join(&missing)));
        }
        if !held_back.is_empty() {
            reasons.push(format!("LANEWISE_ISA holds back {}", join(&held_back)));
        }
        reasons.join("; ")
    }

    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "Lanewise {}\n", env!("CARGO_PKG_VERSION"))?;
        writeln!(out, "Machine")?;
        for line in self.machine.to_string().lines() {
            writeln!(out, "  {line}")?;
        }
        let features = if self.features.is_empty() { "none".to_owned() } else { join(&self.features) };
        writeln!(out, "  CPU features that kernels use: {features}")?;

        writeln!(out, "\nInstruction sets (LANEWISE_ISA forces one)")?;
        for level in &self.levels {
            let needs = if level.needs.is_empty() {
                "needs nothing".to_owned()
            } else {
                format!("needs {}", join(&level.needs))
            };
            let usable = match (&self.level, level.missing.is_empty()) {
                (Ok(used), _) if *used == level.name => "in use".to_owned(),
                (_, true) => "usable".to_owned(),
                (_, false) => format!("not on this CPU, which lacks {}", join(&level.missing)),
            };
            writeln!(out, "  {:<18} {usable}; {needs}; tests: {}", level.name, level.tested)?;
        }
        match &self.forced {
            Some(name) => writeln!(out, "  LANEWISE_ISA={name:?}")?,
            None => writeln!(out, "  LANEWISE_ISA is not set")?,
        }

        match &self.level {
            Ok(_) => writeln!(out, "\nKernels")?,
            Err(error) => {
                writeln!(out, "  problem: {error}")?;
                writeln!(out, "\nKernels (if LANEWISE_ISA were not set; nothing runs until it is right)")?;
            }
        }
        for slot in &self.slots {
            writeln!(out, "  {:<18} {}", slot.kernel, slot.isa)?;
            for (isa, features) in &slot.passed_over {
                writeln!(out, "  {:<18}   not {isa}: {}", "", self.obstacle(features))?;
            }
        }
        Ok(())
    }

    fn json(&self) -> Value {
        let level = |level: &Level| {
            json!({
                "name": level.name,
                "needs": level.needs,
                "missing": level.missing,
                "usable": level.missing.is_empty(),
                "tested": level.tested,
            })
        };
        let slot = |slot: &Slot| {
            let passed_over = slot.passed_over.iter();
            let passed_over = passed_over.map(|(isa, features)| {
                json!({
                    "isa": isa,
                    "features": features,
                    "reason": self.obstacle(features),
                })
            });
            json!({ "kernel": slot.kernel, "isa": slot.isa, "passed_over": passed_over.collect::<Vec<_>>() })
        };
        json!({
            "version": env!("CARGO_PKG_VERSION"),
            "cpu_features": self.features,
            "lanewise_isa": self.forced,
            "level": self.level.as_ref().ok(),
            "problem": self.level.as_ref().err().map(ToString::to_string),
            "levels": self.levels.iter().map(level).collect::<Vec<_>>(),
            "kernels": self.slots.iter().map(slot).collect::<Vec<_>>(),
            "machine": machine(&self.machine),
        })
    }
}

fn machine(machine: &Machine) -> Value {
    let chiplet = |chiplet: &Chiplet| {
        let caches = chiplet.caches.iter();
        let caches = caches.map(|c| json!({ "level": c.level, "bytes": c.bytes, "cpus_len": c.cpus_len }));
        json!({
            "id": chiplet.id.0,
            "package": chiplet.package,
            "node": chiplet.node,
            "cores": chiplet.cores.iter().map(|core| &core.cpus).collect::<Vec<_>>(),
            "caches": caches.collect::<Vec<_>>(),
        })
    };
    json!({
        "cpu_model": machine.cpu_model,
        "cpus_online_len": machine.online.len(),
        "cpus_allowed_len": machine.cpus().count(),
        "shape": machine.shape(),
        "threads": machine.threads(),
        "packages_len": machine.packages_len(),
        "nodes_len": machine.nodes_len(),
        "chiplets": machine.chiplets.iter().map(chiplet).collect::<Vec<_>>(),
        "limits": { "cpu_quota": machine.limits.cpu_quota, "memory_bytes": machine.limits.memory_bytes },
        "memory": {
            "total_bytes": machine.memory.total_bytes,
            "available_bytes": machine.memory.available_bytes,
            "page_bytes": machine.memory.page_bytes,
            "huge_page_bytes": machine.memory.huge_page_bytes,
            "huge_pages": machine.memory.huge_pages.map(HugePages::name),
        },
    })
}

/// How the tests reach an instruction set: the last cell of its row on the page.
fn tested(isa: &str) -> &'static str {
    let cells = PAGE.lines().map(|line| line.trim_matches(['|', ' ']).split(" | ").collect::<Vec<_>>());
    let named = |cells: &Vec<&str>| cells.len() == 4 && cells[0] == format!("`{isa}`");
    cells.filter(named).map(|cells| cells[3]).next().unwrap_or("unknown")
}

fn join(names: &[&str]) -> String {
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_level_says_how_it_is_tested() {
        assert_eq!([tested("scalar"), tested("neon")], ["run, emulated", "emulated"]);
        for (level, _) in kernels::levels() {
            assert_ne!(tested(level), "unknown", "{level} is not in the table of docs/kernels.md");
        }
        assert_eq!(tested("needs"), "unknown");
    }
}
