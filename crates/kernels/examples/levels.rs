//! Prints the instruction-set levels that run here, one a line: what `LANEWISE_ISA` may be here.
#![expect(clippy::print_stdout, reason = "printing is what this program is for")]

fn main() {
    for (level, _) in lanewise_kernels::levels() {
        if lanewise_kernels::Kernels::at_level(level).is_ok() {
            println!("{level}");
        }
    }
}
