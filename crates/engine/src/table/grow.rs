//! More fields for a table that has documents: those from before have no values of them.
//!
//! Fields are only added, and numbered behind those that are there, so no file is written again. The manifest says so before
//! anybody is shown the new fields; what the log holds from before is read under them.

use super::head::Vectors;
use super::seal::FlushError;
use super::segment::SegmentError;
use super::table::Table;
use super::view::{Body, Part, View};
use crate::documents::{Mapping, Schema, SchemaError};
use lanewise_index::AddError;
use lanewise_storage::Storage;
use std::sync::Arc;

/// Why a table did not get more fields: it has those that it had.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum GrowError {
    #[error(transparent)]
    Schema(#[from] SchemaError),
    #[error(transparent)]
    Flush(#[from] FlushError),
}

impl Table {
    /// Adds the fields of `more` that are not there yet, durably, and takes over its rules. Documents that are there have no values of the new fields until they are put again. Searches and writes go
    /// on.
    ///
    /// # Errors
    /// If a field is there and of another kind, the schema would be wrong, or the system fails: nothing has changed.
    pub fn grow(&self, more: &Schema) -> Result<(), GrowError> {
        let mut writer = self.writer();
        let view = self.view();
        let schema = view.mapping.schema().with(more)?;
        if schema == **view.mapping.schema() {
            return Ok(());
        }
        let mapping = Arc::new(Mapping::new(schema.clone())?);
        let mut parts = Vec::new();
        for part in &view.parts {
            let failed = |error| FlushError::Segment { segment: part.segment, error };
            parts.push(part.grown(&self.storage, &mapping).map_err(failed)?);
        }
        let before = std::mem::replace(&mut writer.state.schema, schema);
        let stale = match self.commit(&mut writer, &parts, None) {
            Ok(stale) => stale,
            Err(error) => {
                writer.state.schema = before;
                return Err(error.into());
            }
        };
        for (before, part) in view.parts.iter().zip(&parts) {
            for (field, &table) in part.tables.iter().enumerate().skip(before.tables.len()) {
                self.resources.pool.place(table, part.reader(field));
            }
        }
        self.publish(View { mapping, parts });
        self.count_head(None);
        drop(writer);
        self.remove_stale(stale);
        Ok(())
    }
}

impl Part {
    /// The same with all fields of `mapping`.
    fn grown(&self, storage: &Arc<dyn Storage>, mapping: &Mapping) -> Result<Part, SegmentError> {
        let body = match &self.body {
            Body::Head(head) => {
                let mut head = head.clone();
                head.forget_runs();
                for (_, params) in mapping.schema().vectors().skip(head.vectors.len()) {
                    head.vectors.push(Vectors::new(params).map_err(AddError::from)?);
                }
                Body::Head(head)
            }
            Body::Sealed(sealed) => Body::Sealed(sealed.clone().as_of(storage, mapping, self.segment)?),
        };
        let new = Part::new(mapping, self.segment, body, self.deleted.clone());
        let tables = self.tables.iter().chain(&new.tables[self.tables.len()..]).copied().collect();
        Ok(Part { tables, searched: self.searched, ..new })
    }
}
