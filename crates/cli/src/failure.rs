//! Why a command ended early, and the exit code and the one line for it.

use crate::say;
use clap::error::ErrorKind;
use lanewise_bench::convert::ConvertError;
use lanewise_bench::dataset::DatasetError;
use lanewise_bench::measure::MeasureError;
use lanewise_bench::recall::RecallError;
use lanewise_bench::truth::TruthError;
use lanewise_engine::FileError;
use lanewise_engine::index::{AddError, CreateError, SearchError};
use std::io::{self, Write};

/// Why a command did not do what it was asked to.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The arguments make no sense: the user has to write others.
    Usage(String),
    /// It was tried and did not work.
    Failed(String),
    /// The user stopped it.
    Interrupted(String),
    /// Nobody reads the results any more.
    Closed,
    /// Help or the version were asked for.
    Help(String),
}

impl Failure {
    /// Says what there is to say; the exit code.
    pub(crate) fn report(self) -> u8 {
        match self {
            Failure::Usage(what) => {
                say(format_args!("error: {what}"));
                2
            }
            Failure::Failed(what) => {
                say(format_args!("error: {what}"));
                1
            }
            Failure::Interrupted(what) => {
                say(format_args!("error: {what}"));
                130
            }
            Failure::Closed => 0,
            Failure::Help(text) => {
                // As for results: a reader that goes away is no error.
                let _ = io::stdout().write_all(text.as_bytes());
                0
            }
        }
    }
}

impl Failure {
    /// What the parser has to say about arguments for `command`, the program's name and that of the subcommand, if any.
    pub(crate) fn of_arguments(error: &clap::Error, command: &str) -> Self {
        let text = error.render().to_string();
        match error.kind() {
            ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => Failure::Help(text),
            ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand | ErrorKind::MissingSubcommand => {
                Failure::Usage(format!("no command given; see `{command} --help`"))
            }
            _ => {
                // Its paragraphs in one line, without its own usage and pointer to the help.
                let text = text.strip_prefix("error: ").unwrap_or(&text);
                let end = ["Usage: ", "For more information"].iter().filter_map(|mark| text.find(mark)).min();
                let words: Vec<&str> = text[..end.unwrap_or(text.len())].split_whitespace().collect();
                Failure::Usage(format!("{}; see `{command} --help`", words.join(" ")))
            }
        }
    }
}

/// From writing results, which is all that uses `?` on an `io::Result`.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::Closed,
            _ => Failure::Failed(format!("standard output: {error}")),
        }
    }
}

impl From<CreateError> for Failure {
    fn from(error: CreateError) -> Self {
        match error {
            CreateError::Isa(_) => Failure::Failed(error.to_string()),
            _ => Failure::Usage(error.to_string()),
        }
    }
}

impl From<DatasetError> for Failure {
    fn from(error: DatasetError) -> Self {
        match error {
            DatasetError::Extension { .. } | DatasetError::Use { .. } => Failure::Usage(error.to_string()),
            _ => Failure::Failed(error.to_string()),
        }
    }
}

impl From<TruthError> for Failure {
    fn from(error: TruthError) -> Self {
        match error {
            TruthError::Create(error) => error.into(),
            TruthError::Dataset(error) => error.into(),
            _ => Failure::Failed(error.to_string()),
        }
    }
}

/// Errors whose message says all and whose cause is in the data.
macro_rules! failed {
    ($($error:ty),*) => {$(
        impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                Failure::Failed(error.to_string())
            }
        }
    )*};
}
failed!(AddError, SearchError, FileError, ConvertError, MeasureError, RecallError);
