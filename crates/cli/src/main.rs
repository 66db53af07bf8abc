//! The `lanewise` program; all of it is in the library, which the Python package runs too.

use std::process::ExitCode;

fn main() -> ExitCode {
    lanewise_cli::run(std::env::args_os()).into()
}
