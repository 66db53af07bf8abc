//! Documents of a run whose other files may be damaged: the store of documents alone is read.

use super::mapping::Mapping;
use super::run::{RunError, source_of};
use std::path::Path;
use tantivy::TantivyError;
use tantivy::directory::Directory;
use tantivy::directory::footer::Footer;
use tantivy::schema::Field;
use tantivy::store::StoreReader;

/// Blocks of documents that are kept unpacked.
const BLOCKS: usize = 4;

/// The store of a run's documents.
pub struct Sources {
    store: StoreReader,
    source: Field,
}

impl Sources {
    /// Opens the store, the file `path` of `directory`.
    ///
    /// # Errors
    /// If it cannot be read, or its end is damaged.
    pub fn open(mapping: &Mapping, directory: &dyn Directory, path: &Path) -> Result<Sources, RunError> {
        let file = directory.open_read(path).map_err(TantivyError::from)?;
        let (_, body) = Footer::extract_footer(file).map_err(TantivyError::from)?;
        let store = StoreReader::open(body, BLOCKS).map_err(TantivyError::from)?;
        Ok(Sources { store, source: mapping.source })
    }

    /// As [`Run::source`](super::Run::source).
    ///
    /// # Errors
    /// If the block that it lies in is damaged.
    pub fn source(&self, row: u32) -> Result<Vec<u8>, RunError> {
        source_of(&self.store, self.source, row)
    }
}
