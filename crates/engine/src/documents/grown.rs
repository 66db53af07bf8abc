//! Documents that were written when the schema named fewer fields, read as if they had been written under the present one.
//!
//! Fields are only added, behind those that are there, so what the files say of the others holds. tantivy takes a field of
//! which they have nothing for one without values, once it knows of it: it is given the present schema in place of the
//! files' own. Where such files are merged it also asks for how long each document's text is, which is 0.

use super::mapping::Mapping;
use super::run::RunError;
use std::io;
use std::path::Path;
use std::sync::Arc;
use tantivy::directory::error::{DeleteError, LockError, OpenReadError, OpenWriteError};
use tantivy::directory::{
    Directory, DirectoryLock, FileHandle, Lock, OwnedBytes, RamDirectory, WatchCallback, WatchHandle,
    WritePtr,
};
use tantivy::fieldnorm::FieldNormsSerializer;
use tantivy::{Index, SegmentReader, TantivyError};

const META: &str = "meta.json";
/// What the name of the file of lengths ends with.
const LENGTHS: &str = "fieldnorm";

/// A directory whose schema is replaced, and its lengths, if they are given.
#[derive(Clone, Debug)]
pub(super) struct Grown {
    inner: Box<dyn Directory>,
    meta: Arc<[u8]>,
    lengths: Option<OwnedBytes>,
}

impl Grown {
    /// `directory` as of `mapping`'s schema; `None` if it has that already.
    ///
    /// # Errors
    /// If the directory cannot be read, or its schema is no beginning of the mapping's.
    pub(super) fn new(mapping: &Mapping, directory: &dyn Directory) -> Result<Option<Grown>, RunError> {
        let wrong = |what: String| TantivyError::SchemaError(what);
        let json = |error: serde_json::Error| wrong(error.to_string());
        let bytes = directory.atomic_read(Path::new(META)).map_err(TantivyError::from)?;
        let mut meta: serde_json::Value = serde_json::from_slice(&bytes).map_err(json)?;
        let all = serde_json::to_value(&mapping.tantivy).map_err(json)?;
        if meta["schema"] == all {
            return Ok(None);
        }
        let fields = |schema: &serde_json::Value| schema.as_array().cloned().unwrap_or_default();
        if meta["schema"].is_null() || !fields(&all).starts_with(&fields(&meta["schema"])) {
            return Err(wrong("the files' schema is not the table's".to_owned()).into());
        }
        meta["schema"] = all;
        let meta = serde_json::to_vec(&meta).map_err(json)?;
        Ok(Some(Grown { inner: directory.box_clone(), meta: meta.into(), lengths: None }))
    }

    /// The same with lengths of all fields, as merging wants them.
    ///
    /// # Errors
    /// If those that are there cannot be read.
    pub(super) fn for_merging(&self, reader: &SegmentReader) -> Result<Index, RunError> {
        let schema = reader.schema();
        let memory = RamDirectory::create();
        let index = Index::create(memory.clone(), schema.clone(), Default::default())?;
        let path = Path::new(LENGTHS);
        let write = index.directory().open_write(path).map_err(TantivyError::from)?;
        let mut lengths = FieldNormsSerializer::from_write(write).map_err(TantivyError::from)?;
        for (field, _) in schema.fields().filter(|(_, entry)| entry.has_fieldnorms()) {
            let known = reader.fieldnorms_readers().get_field(field)?;
            let of = |row| known.as_ref().map_or(0, |known| known.fieldnorm_id(row));
            let all: Vec<u8> = (0..reader.max_doc()).map(of).collect();
            lengths.serialize_field(field, &all).map_err(TantivyError::from)?;
        }
        lengths.close().map_err(TantivyError::from)?;
        let lengths = memory.get_file_handle(path).map_err(TantivyError::from)?;
        let lengths = Some(lengths.read_bytes(0..lengths.len()).map_err(TantivyError::from)?);
        Ok(Index::open(Grown { lengths, ..self.clone() })?)
    }
}

impl Directory for Grown {
    fn get_file_handle(&self, path: &Path) -> Result<Arc<dyn FileHandle>, OpenReadError> {
        match &self.lengths {
            Some(lengths) if path.extension().is_some_and(|end| end == LENGTHS) => {
                Ok(Arc::new(lengths.clone()))
            }
            _ => self.inner.get_file_handle(path),
        }
    }

    fn delete(&self, path: &Path) -> Result<(), DeleteError> {
        self.inner.delete(path)
    }

    fn exists(&self, path: &Path) -> Result<bool, OpenReadError> {
        self.inner.exists(path)
    }

    fn open_write(&self, path: &Path) -> Result<WritePtr, OpenWriteError> {
        self.inner.open_write(path)
    }

    fn atomic_read(&self, path: &Path) -> Result<Vec<u8>, OpenReadError> {
        if path == Path::new(META) { Ok(self.meta.to_vec()) } else { self.inner.atomic_read(path) }
    }

    fn atomic_write(&self, path: &Path, data: &[u8]) -> io::Result<()> {
        self.inner.atomic_write(path, data)
    }

    fn sync_directory(&self) -> io::Result<()> {
        self.inner.sync_directory()
    }

    fn acquire_lock(&self, lock: &Lock) -> Result<DirectoryLock, LockError> {
        self.inner.acquire_lock(lock)
    }

    fn watch(&self, callback: WatchCallback) -> tantivy::Result<WatchHandle> {
        self.inner.watch(callback)
    }
}
