//! Many tables by name: each is opened when somebody first asks for it, and closed again when others need its place.
//!
//! A start reads the tables' names and nothing else, so that ten thousand of them cost one listing. Tables that nobody
//! holds are closed, those first that were asked for longest ago, while more are open than [`Limits`] say. A table that is
//! damaged is put aside by its name, and the others serve (`quarantine.rs`); tables come and go as a whole, whenever the
//! machine stops (`catalog.rs`).

mod catalog;
mod name;
mod quarantine;
mod slot;

use crate::Admission;
use crate::documents::Schema;
use crate::table::{
    Effort, OpenError, Progress, Repository, Resources, SnapshotError, Table, Upkeep, Watched,
};
use arc_swap::ArcSwap;
use catalog::{Catalog, NotMade};
use lanewise_storage::{Disk, Storage, Sub};
pub use name::wrong_name;
use slot::{Slot, Stage};
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How much is kept open for tables that nobody holds, and who looks after those that are open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Tables. Each has two files open for writing, which the system counts (`ulimit -n`).
    pub open_tables: usize,
    /// Files of their segments, a memory map each, which Linux counts (`vm.max_map_count`, 65,530 if nobody changed it).
    pub open_files: usize,
    /// Threads that seal and merge, one table each at a time.
    pub builders: NonZeroUsize,
}

impl Default for Limits {
    /// 256 tables, 16,384 files, one builder.
    fn default() -> Self {
        Limits { open_tables: 256, open_files: 16_384, builders: NonZeroUsize::MIN }
    }
}

/// Tables by name. All methods may be called from any thread.
pub struct Engine {
    /// Replaced as a whole: who asks for a table that is open waits for nobody.
    slots: ArcSwap<BTreeMap<Arc<str>, Arc<Slot>>>,
    /// Those that may be open.
    open: Mutex<Vec<Arc<Slot>>>,
    /// Openings so far.
    now: AtomicU64,
    resources: Resources,
    limits: Limits,
    // After the tables that it looks after.
    upkeep: Upkeep,
    // Last: others may open the folder then.
    catalog: Catalog,
}

/// A table's name, and how it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Its name.
    pub name: Arc<str>,
    /// How it is.
    pub state: TableState,
}

/// How a table is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TableState {
    /// On disk; the next who asks for it opens it.
    Closed,
    /// Somebody opens, closes or drops it at this moment.
    Busy,
    /// In memory too.
    Open {
        /// Its documents.
        documents: usize,
        /// Files that it has mapped.
        files: usize,
    },
    /// Put aside: it is not tried again before [`Engine::retry`].
    Damaged {
        /// What is wrong with it.
        why: Arc<str>,
    },
}

/// Why a table cannot be had, made or dropped.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum EngineError {
    #[error("the folder is in use by another process, or another engine of this one")]
    Locked,
    #[error("this folder is a table, not a folder of tables: open it with Table.open (Rust: Table::open)")]
    IsTable,
    #[error("{what}: {error}")]
    Io { what: &'static str, error: io::Error },
    #[error("table name {name:?}: {what}")]
    Name { name: String, what: &'static str },
    #[error("there is no table {name:?}: create it first")]
    Missing { name: String },
    #[error("there is a table {name:?} already: drop it first, or use another name")]
    Exists { name: String },
    #[error("table {name:?}: {error}")]
    Open { name: String, error: Box<OpenError> },
    #[error(
        "table {name:?} is damaged and was put aside: {why}. Mend it with `lanewise repair` or restore it from a snapshot, then have it tried again; or drop it"
    )]
    Damaged { name: String, why: Arc<str> },
}

/// Why a snapshot was not restored.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum RestoreError {
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
}

fn open_failed(name: &str, error: OpenError) -> EngineError {
    EngineError::Open { name: name.to_owned(), error: Box::new(error) }
}

impl Engine {
    /// Opens the tables below `storage`'s root; a folder without any becomes an engine's. None is opened yet. Starts
    /// the threads that look after open tables.
    ///
    /// # Errors
    /// If another engine has the folder open, it is a table, or the system fails.
    pub fn open(
        storage: Arc<dyn Storage>,
        resources: Resources,
        limits: Limits,
    ) -> Result<Engine, EngineError> {
        if Table::is_in(&*storage) {
            return Err(EngineError::IsTable);
        }
        let opened = Catalog::open(storage).map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => EngineError::Locked,
            _ => EngineError::Io { what: "the folder of tables cannot be read", error },
        });
        let (catalog, names) = opened?;
        let slots = names.into_iter().map(|name| (name.into(), Arc::new(Slot::new(Stage::Closed))));
        let slots = ArcSwap::from_pointee(slots.collect());
        let upkeep = Upkeep::start(limits.builders, resources.threads)
            .map_err(|error| EngineError::Io { what: "no threads for the upkeep of tables", error })?;
        let (open, now) = (Mutex::default(), AtomicU64::new(1));
        Ok(Engine { slots, open, now, resources, limits, upkeep, catalog })
    }

    /// As [`open`](Self::open), in a folder of the operating system's, which is made if it is missing.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_folder(folder: &Path, resources: Resources, limits: Limits) -> Result<Engine, EngineError> {
        let storage = std::fs::create_dir_all(folder).and_then(|()| Disk::new(folder));
        let what = "the folder of tables cannot be made";
        let storage = storage.map_err(|error| EngineError::Io { what, error })?;
        Engine::open(Arc::new(storage), resources, limits)
    }

    /// Who says what memory may be taken.
    pub fn admission(&self) -> &Arc<Admission> {
        &self.resources.admission
    }

    /// Makes a table: when it returns, the table is on disk. It is open as long as somebody holds it, and perhaps longer.
    ///
    /// # Errors
    /// If the name is none for a table or taken, the schema is wrong, or the system fails.
    pub fn create(&self, name: &str, schema: Schema) -> Result<Arc<Watched>, EngineError> {
        let create = |files: Arc<Sub>| Table::create(files, schema, self.resources.clone());
        self.make(name, |files| create(files).map_err(|error| open_failed(name, error)))
    }

    /// Makes a table of a snapshot, as [`Repository::restore`] does: when it returns, the table is on disk, as a whole; a
    /// crash before that leaves nothing. Whoever asks for it meanwhile waits.
    ///
    /// # Errors
    /// As [`create`](Self::create), and as [`Repository::restore`]: there is no such table then.
    pub fn restore(
        &self,
        name: &str,
        repository: &Repository,
        snapshot: &str,
        progress: Progress<'_>,
    ) -> Result<Arc<Watched>, RestoreError> {
        self.make(name, |files| {
            repository.restore(snapshot, &*files, progress)?;
            let opened = Table::open(files, self.resources.clone());
            Ok(opened.map_err(|error| open_failed(name, error))?)
        })
    }

    /// Makes a table in a folder that is empty.
    fn make<E: From<EngineError>>(
        &self,
        name: &str,
        make: impl FnOnce(Arc<Sub>) -> Result<Table, E>,
    ) -> Result<Arc<Watched>, E> {
        if let Some(what) = wrong_name(name) {
            return Err(EngineError::Name { name: name.to_owned(), what }.into());
        }
        // Whoever asks for the table meanwhile waits until it is there, or not.
        let slot = Arc::new(Slot::new(Stage::Gone));
        let mut stage = slot.stage();
        // The name is free, too, if somebody has removed the folder by hand.
        let enlisted = self.enlist(name, &slot) || (self.strike_if_gone(name) && self.enlist(name, &slot));
        if !enlisted {
            return Err(EngineError::Exists { name: name.to_owned() }.into());
        }
        match self.catalog.create(name, make) {
            Ok((table, files)) => {
                let table = Arc::new(self.upkeep.watch(table));
                self.keep(&slot, &mut stage, files, &table);
                drop(stage);
                self.evict();
                Ok(table)
            }
            Err(error) => {
                self.strike(name, &slot);
                Err(match error {
                    NotMade::Table(error) => error,
                    NotMade::Folder(error) => {
                        EngineError::Io { what: "the table's folder was not made", error }.into()
                    }
                })
            }
        }
    }

    /// The table with this name, opened if it is not; whoever holds it keeps it open. Those who ask for the same table
    /// while it is being opened wait for it.
    ///
    /// # Errors
    /// If there is no such table, it is damaged (then it is put aside), or the system fails (then it is tried again when
    /// somebody asks again).
    pub fn table(&self, name: &str) -> Result<Arc<Watched>, EngineError> {
        self.table_with(name, &|| ControlFlow::Continue(()))
    }

    /// The table of this name, if it is open: opens none, and waits for nobody.
    pub fn table_if_open(&self, name: &str) -> Option<Arc<Watched>> {
        // Relaxed: as in `asked`.
        self.slots.load().get(name)?.table(self.now.load(Ordering::Relaxed))
    }

    /// As [`table`](Self::table), asking `proceed` on this thread at times whether to go on with opening it, or with
    /// waiting for who does. It is not asked if the table is open.
    ///
    /// # Errors
    /// As [`table`](Self::table), and [`OpenError::Stopped`]: the table can be asked for again.
    pub fn table_with(
        &self,
        name: &str,
        proceed: &dyn Fn() -> ControlFlow<()>,
    ) -> Result<Arc<Watched>, EngineError> {
        self.asked(name, &self.slot(name)?, proceed)
    }

    fn asked(
        &self,
        name: &str,
        slot: &Arc<Slot>,
        proceed: &dyn Fn() -> ControlFlow<()>,
    ) -> Result<Arc<Watched>, EngineError> {
        // Relaxed: an order for eviction.
        match slot.table(self.now.load(Ordering::Relaxed)) {
            Some(table) => Ok(table),
            None => self.open_table(name, slot, false, proceed),
        }
    }

    /// Runs `work` on the table of this name, which is opened as by [`table_with`](Self::table_with).
    ///
    /// # Errors
    /// As [`table_with`](Self::table_with); [`EngineError::Missing`] also if the table was dropped meanwhile, whatever came
    /// of the work.
    pub fn on<R>(
        &self,
        name: &str,
        proceed: &dyn Fn() -> ControlFlow<()>,
        work: impl FnOnce(&Table) -> R,
    ) -> Result<R, EngineError> {
        let slot = self.slot(name)?;
        let table = self.asked(name, &slot, proceed)?;
        let done = work(&table);
        // Whoever drops a table takes it from its slot before anything else.
        if !slot.has(&table) && matches!(*slot.stage(), Stage::Gone) {
            return Err(EngineError::Missing { name: name.to_owned() });
        }
        Ok(done)
    }

    /// As [`table`](Self::table), and tries again what was put aside: for when somebody has mended it.
    ///
    /// # Errors
    /// As [`table`](Self::table).
    pub fn retry(&self, name: &str) -> Result<Arc<Watched>, EngineError> {
        self.retry_with(name, &|| ControlFlow::Continue(()))
    }

    /// As [`retry`](Self::retry), asking `proceed` as [`table_with`](Self::table_with) does.
    ///
    /// # Errors
    /// As [`table_with`](Self::table_with).
    pub fn retry_with(
        &self,
        name: &str,
        proceed: &dyn Fn() -> ControlFlow<()>,
    ) -> Result<Arc<Watched>, EngineError> {
        self.open_table(name, &self.slot(name)?, true, proceed)
    }

    fn open_table(
        &self,
        name: &str,
        slot: &Arc<Slot>,
        again: bool,
        proceed: &dyn Fn() -> ControlFlow<()>,
    ) -> Result<Arc<Watched>, EngineError> {
        let failed = |error| open_failed(name, error);
        let mut stage = slot.stage_while(proceed).ok_or_else(|| failed(OpenError::Stopped))?;
        match &*stage {
            Stage::Gone => return Err(EngineError::Missing { name: name.to_owned() }),
            Stage::Damaged(why) if !again => {
                return Err(EngineError::Damaged { name: name.to_owned(), why: why.clone() });
            }
            Stage::Open(_) => {
                let table = slot.table(self.now.load(Ordering::Relaxed));
                return Ok(table.expect("nobody closes it while its stage is held"));
            }
            Stage::Closed | Stage::Damaged(_) => {}
        }
        let files = self.catalog.files(name);
        let files =
            files.map_err(|error| EngineError::Io { what: "the table's folder cannot be had", error })?;
        let files = Arc::new(files);
        let opened = loop {
            match Table::open_with(files.clone(), self.resources.clone(), proceed) {
                // There is room once another is closed, perhaps.
                Err(error) if quarantine::is_for_memory(&error) && self.close_oldest() => {}
                opened => break opened,
            }
        };
        match opened {
            Ok(table) => {
                let table = Arc::new(self.upkeep.watch(table));
                self.keep(slot, &mut stage, files, &table);
                drop(stage);
                self.evict();
                Ok(table)
            }
            Err(_) if self.catalog.is_gone(name) => {
                slot.set(&mut stage, Stage::Gone, None);
                self.strike(name, slot);
                Err(EngineError::Missing { name: name.to_owned() })
            }
            Err(error) if quarantine::may_pass(&error) => Err(failed(error)),
            Err(error) => {
                let why: Arc<str> = error.to_string().into();
                slot.set(&mut stage, Stage::Damaged(why.clone()), None);
                Err(EngineError::Damaged { name: name.to_owned(), why })
            }
        }
    }

    /// Drops a table, damaged or not: when it returns, the table is gone, also after a crash. Whoever holds it can go on to
    /// read it; what they write goes nowhere.
    ///
    /// # Errors
    /// If there is no such table, or the system fails.
    pub fn drop_table(&self, name: &str) -> Result<(), EngineError> {
        let slot = self.slot(name)?;
        let mut stage = slot.stage();
        let missing = || EngineError::Missing { name: name.to_owned() };
        let kept = |error| EngineError::Io { what: "the table was not dropped", error };
        let files = match &*stage {
            Stage::Gone => return Err(missing()),
            Stage::Open(files) => files.clone(),
            Stage::Closed | Stage::Damaged(_) => Arc::new(self.catalog.files(name).map_err(kept)?),
        };
        // Before its files go: what fails for want of them is known to have failed for this (`on`).
        let table = slot.take();
        let dropped = match self.catalog.drop(&files) {
            Ok(()) => Ok(()),
            Err((_, true)) if self.catalog.is_gone(name) => Err(missing()),
            Err((error, true)) => {
                slot.put_back(table);
                return Err(kept(error));
            }
            Err((error, false)) => {
                let what = "the table is gone, but may be there again after a crash; drop it again then";
                Err(EngineError::Io { what, error })
            }
        };
        slot.set(&mut stage, Stage::Gone, None);
        self.forget(&slot);
        self.strike(name, &slot);
        dropped
    }

    /// Closes a table that nobody holds, as [`Watched::close`] does; whether it is closed.
    ///
    /// # Errors
    /// If there is no such table.
    pub fn close(&self, name: &str) -> Result<bool, EngineError> {
        let slot = self.slot(name)?;
        let mut stage = slot.stage();
        let closed = slot.close(&mut stage, Some(&Effort::of(self.resources.threads)));
        if closed {
            self.forget(&slot);
        }
        Ok(closed)
    }

    /// Closes all tables that nobody holds, one after the other, as [`Watched::close`] does: for when the engine will be
    /// dropped, which seals nothing. Once `effort` ends, nothing is sealed any more; all are closed nevertheless.
    pub fn close_all(&self, effort: &Effort<'_>) {
        let open = self.open_slots().clone();
        for slot in open {
            let mut stage = slot.stage();
            if slot.close(&mut stage, Some(effort)) {
                self.forget(&slot);
            }
        }
    }

    /// The names of all tables, ascending.
    pub fn names(&self) -> Vec<Arc<str>> {
        let slots = self.slots.load();
        slots.iter().filter(|(_, slot)| slot.is_there()).map(|(name, _)| name.clone()).collect()
    }

    /// All tables, by ascending name, and how they are. Opens none, and waits for nobody.
    pub fn list(&self) -> Vec<Listed> {
        let state = |slot: &Slot| match slot.try_stage().as_deref() {
            None => TableState::Busy,
            Some(Stage::Damaged(why)) => TableState::Damaged { why: why.clone() },
            Some(Stage::Open(files)) => {
                let documents = slot.table(slot.used()).map_or(0, |table| table.len());
                TableState::Open { documents, files: files.open_files() }
            }
            Some(Stage::Closed | Stage::Gone) => TableState::Closed,
        };
        let slots = self.slots.load();
        let there = slots.iter().filter(|(_, slot)| slot.is_there());
        there.map(|(name, slot)| Listed { name: name.clone(), state: state(slot) }).collect()
    }

    /// The tables that are open, by ascending name. Opens none, and waits for nobody; who holds one keeps it open.
    pub fn opened(&self) -> Vec<(Arc<str>, Arc<Watched>)> {
        let slots = self.slots.load();
        let open = slots.iter().filter_map(|(name, slot)| Some((name.clone(), slot.table(slot.used())?)));
        open.collect()
    }

    fn slot(&self, name: &str) -> Result<Arc<Slot>, EngineError> {
        let slot = self.slots.load().get(name).cloned();
        slot.ok_or_else(|| EngineError::Missing { name: name.to_owned() })
    }

    /// Makes the slot the name's; whether the name was free.
    fn enlist(&self, name: &str, slot: &Arc<Slot>) -> bool {
        let name: Arc<str> = name.into();
        let before = self.slots.rcu(|slots| {
            let mut slots = BTreeMap::clone(slots);
            slots.entry(name.clone()).or_insert_with(|| slot.clone());
            slots
        });
        !before.contains_key(&name)
    }

    fn strike(&self, name: &str, slot: &Arc<Slot>) {
        self.slots.rcu(|slots| {
            let mut slots = BTreeMap::clone(slots);
            if slots.get(name).is_some_and(|now| Arc::ptr_eq(now, slot)) {
                slots.remove(name);
            }
            slots
        });
    }

    /// Strikes the name of a table whose folder somebody has removed by hand; whether it was so.
    fn strike_if_gone(&self, name: &str) -> bool {
        let Ok(slot) = self.slot(name) else { return true };
        // Who holds the stage is at work on the table.
        let Some(mut stage) = slot.try_stage() else { return false };
        let gone = !matches!(*stage, Stage::Gone) && self.catalog.is_gone(name);
        if gone {
            slot.set(&mut stage, Stage::Gone, None);
            self.forget(&slot);
            self.strike(name, &slot);
        }
        gone
    }

    fn open_slots(&self) -> MutexGuard<'_, Vec<Arc<Slot>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A table was opened; its stage is held.
    fn keep(&self, slot: &Arc<Slot>, stage: &mut Stage, files: Arc<Sub>, table: &Arc<Watched>) {
        slot.set(stage, Stage::Open(files), Some(table.clone()));
        slot.touch(self.now.fetch_add(1, Ordering::Relaxed) + 1);
        self.open_slots().push(slot.clone());
    }

    /// A table is open no longer; its stage is held.
    fn forget(&self, slot: &Arc<Slot>) {
        self.open_slots().retain(|other| !Arc::ptr_eq(other, slot));
    }

    /// Closes the table that was asked for longest ago of those that nobody holds; whether there was one.
    fn close_oldest(&self) -> bool {
        let mut open = self.open_slots().clone();
        open.sort_by_key(|slot| slot.used());
        open.iter().any(|slot| {
            let Some(mut stage) = slot.try_stage() else { return false };
            let closed = slot.close(&mut stage, None);
            if closed {
                self.forget(slot);
            }
            closed
        })
    }

    /// Closes tables that nobody holds, those first that were asked for longest ago, while more is open than the limits
    /// say.
    fn evict(&self) {
        let mut open = self.open_slots().clone();
        let files = |stage: &Stage| if let Stage::Open(files) = stage { files.open_files() } else { 0 };
        let mut tables = open.len();
        let mut mapped: usize = open.iter().filter_map(|slot| Some(files(&*slot.try_stage()?))).sum();
        open.sort_by_key(|slot| slot.used());
        for slot in &open {
            if tables <= self.limits.open_tables && mapped <= self.limits.open_files {
                return;
            }
            // Who holds the stage is at work on the table.
            let Some(mut stage) = slot.try_stage() else { continue };
            let its = files(&stage);
            if slot.close(&mut stage, None) {
                self.forget(slot);
                tables -= 1;
                mapped = mapped.saturating_sub(its);
            }
        }
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("limits", &self.limits).finish_non_exhaustive()
    }
}
