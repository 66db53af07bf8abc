//! Where a table is: open by itself, or an engine's, which opens it for each call if it has closed it meanwhile.

use super::calls::Calls;
use super::engine::Tables;
use super::pool::Shared;
use crate::errors::Failure;
use crate::guard::{enter, is_inside};
use crate::watch::Watch;
use lanewise_engine::documents::Schema;
use lanewise_engine::table::{Effort, OpenError, Table, Watched};
use lanewise_engine::{Admission, EngineError};
use std::cell::RefCell;
use std::ops::ControlFlow;
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
    /// A signal handler raised while it was opened, or asked for a table to be opened meanwhile.
    Ended(Failure),
}

/// What `get` gives, which may open a table; signal handlers run meanwhile, and may end it. Call without the GIL.
pub(super) fn opened<R>(
    tables: &Tables,
    get: impl FnOnce(&dyn Fn() -> ControlFlow<()>) -> Result<R, EngineError>,
) -> Result<R, Gone> {
    // A handler that waits for a table which this thread opens would wait for ever.
    let inside = is_inside(&tables.engine);
    let watch = RefCell::new(Watch::new(None));
    let got = get(&|| {
        if inside {
            return ControlFlow::Break(());
        }
        let _inside = enter(&tables.engine);
        watch.borrow_mut().proceed(0)
    });
    let raised = watch.into_inner().raised;
    match got {
        Ok(got) => raised.map_or(Ok(got), |error| Err(Gone::Ended(Failure::Stopped(Some(error))))),
        Err(EngineError::Open { error, .. }) if matches!(*error, OpenError::Stopped) => {
            Err(Gone::Ended(if inside { Failure::Reentered } else { Failure::Stopped(raised) }))
        }
        Err(error) => Err(Gone::Engine(tables.folder.clone(), error)),
    }
}

impl Home {
    /// Runs `work` on the table, which has `schema`. Call without the GIL.
    pub(super) fn with<R>(&self, schema: &Schema, work: impl FnOnce(&Table) -> R) -> Result<R, Gone> {
        match self {
            Home::Own { table, .. } => Ok(work(table)),
            Home::Of { engine, name } => {
                let work = |table: &Table| {
                    if *table.schema() != *schema { Err(Gone::Replaced) } else { Ok(work(table)) }
                };
                let done = engine.with(|tables| opened(tables, |go| tables.engine.on(name, go, work))?);
                done.unwrap_or(Err(Gone::Closed))
            }
        }
    }

    /// Closes a table of its own, a large head being sealed first; an engine's stays as it is.
    pub(super) fn close(self, effort: &Effort<'_>) {
        if let Home::Own { table, .. } = self {
            // What was not sealed is in the log.
            let _ = table.close(effort);
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
