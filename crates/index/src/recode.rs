//! The same vectors with another traversal code.
//!
//! A code is fitted to vectors that are there, and some sets of vectors no code can order. Who takes in vectors that must
//! not be refused keeps them without a code, and gives them one when they are many.

use crate::code::Code;
use crate::coded::{CodeFailure, Coded};
use crate::error::AddError;
use crate::executor::Executor;
use crate::index::{Index, State};
use crate::listed::Listed;
use crate::params::{Kind, Params};
use crate::search::Reader;
use crate::space::Compare;
use std::ops::ControlFlow;

impl Index {
    /// An index of the same vectors, ids and links with `code`, which is fitted to them now. It shares the memory of the
    /// vectors with this one until either grows; neither sees the other's changes.
    ///
    /// # Errors
    /// If the kind or the metric has no such code, the code cannot order the vectors ([`AddError::Code`]), there is no
    /// memory, or an earlier change panicked.
    pub fn with_code(&self, code: Code, executor: &dyn Executor) -> Result<Index, AddError> {
        self.copied(None, code, executor)
    }

    /// An index of what `reader`, which must be this index's own, sees: for whoever needs it as it was before vectors
    /// were removed. As [`with_code`](Self::with_code) for the rest.
    ///
    /// # Errors
    /// As [`with_code`](Self::with_code).
    ///
    /// # Panics
    /// If vectors were added since.
    pub fn as_of(&self, reader: &Reader, executor: &dyn Executor) -> Result<Index, AddError> {
        self.copied(Some(reader), self.params.code, executor)
    }

    fn copied(
        &self,
        reader: Option<&Reader>,
        code: Code,
        executor: &dyn Executor,
    ) -> Result<Index, AddError> {
        let params = Params { code, ..self.params };
        params.check()?;
        let writer = self.writer()?;
        let mut state = writer.state.view(writer.state.space.len(), writer.state.graph.entry);
        if let Some(reader) = reader {
            assert!(reader.state().space.len() == state.space.len(), "vectors were added since");
            state.deleted = reader.state().deleted.clone();
        }
        // Links are changed in place, so there must be no writer yet.
        state.graph.own()?;
        drop(writer);
        (state.coded, state.listed) = (None, None);
        let State { space, coded, listed, .. } = &mut state;
        let made = if params.kind == Kind::Ivf {
            Listed::update(listed, &params, space, 0, executor, &mut |_| ControlFlow::Continue(()))
        } else {
            Coded::update(coded, code, space, params.seed, executor)
        };
        match made {
            Ok(()) => Ok(Index::from_state(params, state)),
            Err(CodeFailure::Code(error)) => Err(error.into()),
            Err(CodeFailure::Memory(error)) => Err(error.into()),
            Err(CodeFailure::Cancelled) => unreachable!("nobody cancels"),
        }
    }
}
