//! The Python module `lanewise._lanewise`: the engine's indexes behind NumPy arrays and Python's exceptions.
//!
//! Thin: arguments are checked at the door ([`arguments`], [`arrays`]), the work runs in the engine without the GIL
//! ([`index`]), and what goes wrong is mapped to Python in one place ([`errors`]).

mod add;
mod arguments;
mod arrays;
mod convert;
mod effort;
mod errors;
mod filter;
mod guard;
mod index;
mod info;
mod parts;
mod reach;
mod results;
mod table;
mod tune;
mod watch;

use pyo3::prelude::*;
use std::ffi::OsString;

/// Indexes of the engine; use it as `lanewise`.
#[pymodule]
mod _lanewise {
    #[pymodule_export]
    use super::index::Index;

    #[pymodule_export]
    use super::filter::Filter;

    #[pymodule_export]
    use super::reach::Pages;

    #[pymodule_export]
    use super::table::Table;

    #[pymodule_export]
    use super::table::Engine;

    #[pymodule_export]
    use super::table::end_pool;

    #[pymodule_export]
    use super::command_line;

    #[pymodule_export]
    #[expect(non_upper_case_globals, reason = "Python's name for it")]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}

/// Runs the command line `lanewise` with its arguments, the first of which is its own name; the exit code.
#[pyfunction]
fn command_line(py: Python<'_>, argv: Vec<OsString>) -> u8 {
    py.detach(|| lanewise_cli::run(argv))
}
