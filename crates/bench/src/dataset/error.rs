//! What can be wrong with a vector file. Each message names the file and the remedy.

use std::io;
use std::path::PathBuf;

/// Why a vector file was not read or written.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum DatasetError {
    #[error("{}: {error}", path.display())]
    Io { path: PathBuf, error: io::Error },
    #[error("{}: the name must end in .npy, .fvecs, .bvecs or .ivecs, which says the format", path.display())]
    Extension { path: PathBuf },
    #[error("{}, byte {offset}: {what}", path.display())]
    Malformed { path: PathBuf, offset: u64, what: String },
    #[error("{}: {what}", path.display())]
    Use { path: PathBuf, what: String },
    #[error(
        "{}: no memory for its {bytes} bytes: use a part of the file, or raise the memory limit",
        path.display()
    )]
    Memory { path: PathBuf, bytes: u64 },
}
