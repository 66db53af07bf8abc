//! Prints the instruction-set levels that this CPU has, one a line: what `LANEWISE_ISA` may be here.
#![expect(clippy::print_stdout, reason = "printing is what this program is for")]

fn main() {
    let cpu = lanewise_kernels::cpu_features();
    for (level, needs) in lanewise_kernels::levels() {
        if needs.iter().all(|feature| cpu.contains(feature)) {
            println!("{level}");
        }
    }
}
