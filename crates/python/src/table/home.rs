//! Where a table is: open by itself, or an engine's, which opens it for each call if it has closed it meanwhile.

use super::calls::Calls;
use super::engine::Tables;
use super::pool::Shared;
use lanewise_engine::documents::Schema;
use lanewise_engine::table::{Table, Watched};
use lanewise_engine::{Admission, EngineError};
use std::path::PathBuf;
use std::sync::Arc;

/// Fields are dropped in their order: the table before those who look after it.
pub(super) enum Home {
    Own { table: Watched, admission: Arc<Admission>, _shared: Arc<Shared> },
    Of { engine: Arc<Calls<Tables>>, name: String },
}

/// Why there is no table to work on.
pub(super) enum Gone {
    /// It, or its engine, was closed.
    Closed,
    /// It was dropped, and another made by its name.
    Replaced,
    /// The engine, whose folder this is, cannot open it.
    Engine(PathBuf, EngineError),
}

impl Home {
    /// Runs `work` on the table, which has `schema`. Call without the GIL.
    pub(super) fn with<R>(&self, schema: &Schema, work: impl FnOnce(&Table) -> R) -> Result<R, Gone> {
        match self {
            Home::Own { table, .. } => Ok(work(table)),
            Home::Of { engine, name } => {
                let done = engine.with(|tables| {
                    let table = tables.engine.table(name);
                    let table = table.map_err(|error| Gone::Engine(tables.folder.clone(), error))?;
                    if table.schema() != schema { Err(Gone::Replaced) } else { Ok(work(&table)) }
                });
                done.unwrap_or(Err(Gone::Closed))
            }
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        matches!(self, Home::Of { engine, .. } if engine.is_closed())
    }

    /// Who admits its uses of memory, unless it is closed.
    pub(super) fn admission(&self) -> Option<Arc<Admission>> {
        match self {
            Home::Own { admission, .. } => Some(admission.clone()),
            Home::Of { engine, .. } => engine.with(|tables| tables.engine.admission().clone()),
        }
    }
}
