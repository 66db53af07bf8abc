//! Why a table could not be opened: for damage, which stays until somebody mends it, or for what may pass by itself.

use crate::documents::RunError;
use crate::table::{OpenError, SegmentError, StateError, WriteError};
use lanewise_index::AddError;
use lanewise_storage::log::ReplayError;
use lanewise_storage::manifest::ReadError;
use std::io;
use tantivy::TantivyError;
use tantivy::directory::error::OpenReadError;

/// Whether opening the table again may succeed though nobody mended anything.
pub(super) fn may_pass(error: &OpenError) -> bool {
    match error {
        OpenError::Exists
        | OpenError::Locked
        | OpenError::Manifest(_)
        | OpenError::Refused(_)
        | OpenError::Stopped => true,
        OpenError::Io { error, .. } => passes(error),
        OpenError::State(StateError::Read(ReadError::Io(error))) => passes(error),
        OpenError::Log(ReplayError::Io { error, .. }) => passes(error),
        OpenError::Segment { error, .. } => match error {
            SegmentError::Io { error, .. } => passes(error),
            SegmentError::Documents(RunError(error)) => documents(error),
            // The others do not come of opening.
            SegmentError::Memory(_)
            | SegmentError::Add(_)
            | SegmentError::Remove(_)
            | SegmentError::Refused(_)
            | SegmentError::Stopped => true,
            SegmentError::Blob { .. } | SegmentError::Index { .. } | SegmentError::Damaged { .. } => false,
        },
        OpenError::Write { error: WriteError::Add { error, .. }, .. } => {
            matches!(**error, AddError::Memory(_) | AddError::Limit { .. })
        }
        // Rows could not be taken out of the head's indexes: nothing on disk is at fault.
        OpenError::Write { error: WriteError::Failed { .. }, .. } => true,
        _ => false,
    }
}

/// Whether the table was not opened since memory is short.
pub(super) fn is_for_memory(error: &OpenError) -> bool {
    matches!(error, OpenError::Refused(_) | OpenError::Segment { error: SegmentError::Refused(_), .. })
}

/// A file that is not there, or holds what it should not, does not come back.
fn passes(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidData, InvalidInput, IsADirectory, NotADirectory, NotFound, UnexpectedEof};
    !matches!(
        error.kind(),
        NotFound | InvalidData | InvalidInput | UnexpectedEof | IsADirectory | NotADirectory
    )
}

fn documents(error: &TantivyError) -> bool {
    match error {
        TantivyError::IoError(error) => passes(error),
        TantivyError::OpenReadError(OpenReadError::IoError { io_error, .. }) => passes(io_error),
        _ => false,
    }
}
